//! Rows of slots, the same in every pass: which record is in each slot in a pass, and in which row a record is.

use std::ops::Range;

use super::classes::{Classes, RECORDS};
use super::order::{Scopes, key, permutation, row_order};
use crate::error::Result;
use crate::record::Pass;
use crate::view::allocate::make_room;
use crate::view::fit::{self, FreeRoom, NO_BIN, Strategy};

/// Sets the orders of slots apart from those of the stream.
const SLOTS: u64 = 1;

/// Rows whose records change places with others of their size.
pub(in crate::view) struct Rows {
    /// Consecutive records that share rows among themselves.
    scopes: Scopes,
    slots: Slots,
}

enum Slots {
    /// All records are equal: `per_row` to a row.
    Even { per_row: u64, rows: u64 },
    /// By list: 12 bytes for each record.
    Listed {
        classes: Classes,
        /// The first class of each scope, and their end.
        of_scopes: Vec<u32>,
        /// Row by row, for each slot the number that it has among those of all classes, class by class.
        slots: Vec<u32>,
        /// The inverse.
        places: Vec<u32>,
        /// Where each row ends among the slots.
        ends: Vec<u32>,
    },
}

impl Rows {
    /// Rows of `per_row` records of the same size; of none where they have no size.
    pub(in crate::view) fn even(n: u64, per_row: Option<u64>, scope: Option<u64>) -> Rows {
        let rows = per_row.map_or(0, |per_row| n.div_ceil(per_row));
        Rows { scopes: Scopes::new(n, scope), slots: Slots::Even { per_row: per_row.unwrap_or(1), rows } }
    }

    /// Rows of `length` positions of records of these sizes, fewer than 2^32 - 1.
    ///
    /// # Errors
    /// `Memory`.
    pub(in crate::view) fn listed(
        sizes: Vec<u32>,
        length: u32,
        strategy: Strategy,
        scope: Option<u64>,
    ) -> Result<Rows> {
        Rows::in_classes(Classes::new(RECORDS), sizes, length, strategy, scope)
    }

    fn in_classes(
        mut classes: Classes,
        mut sizes: Vec<u32>,
        length: u32,
        strategy: Strategy,
        scope: Option<u64>,
    ) -> Result<Rows> {
        let n = sizes.len() as u64;
        let scopes = Scopes::new(n, scope);
        let mut of_scopes = vec![0];
        let (mut slots, mut places, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for scope in 0..scopes.count() {
            let records = scopes.range(scope);
            let sizes = &mut sizes[records.start as usize..records.end as usize];
            classes.extend(records.start as u32, sizes, n)?;
            let placed = match strategy {
                Strategy::BestFit => best_fit(&classes, sizes, length)?,
                Strategy::FirstFit => first_fit(&classes, sizes, length),
            };
            row_by_row(placed, &mut slots, &mut ends)?;
            make_room(&mut of_scopes, 1, scopes.count())?;
            of_scopes.push(classes.len() as u32);
        }
        drop(sizes);
        // From the class of each slot to its number among those of all.
        let mut next: Vec<u32> = (0..classes.len()).map(|class| classes.first(class) as u32).collect();
        make_room(&mut places, slots.len(), slots.len() as u64)?;
        places.resize(slots.len(), 0);
        for (at, slot) in slots.iter_mut().enumerate() {
            let number = &mut next[*slot as usize];
            *slot = *number;
            places[*number as usize] = at as u32;
            *number += 1;
        }
        Ok(Rows { scopes, slots: Slots::Listed { classes, of_scopes, slots, places, ends } })
    }

    /// How many there are.
    pub(in crate::view) fn len(&self) -> u64 {
        match &self.slots {
            Slots::Even { rows, .. } => *rows,
            Slots::Listed { ends, .. } => ends.len() as u64,
        }
    }

    /// Records in the row that holds most of them.
    pub(in crate::view) fn most(&self) -> u64 {
        match &self.slots {
            Slots::Even { rows: 0, .. } => 0,
            Slots::Even { per_row, .. } => (*per_row).min(self.scopes.n()),
            Slots::Listed { ends, .. } => {
                let rows = (0..ends.len()).map(|row| range(ends, row).len() as u64);
                rows.max().unwrap_or(0)
            }
        }
    }

    /// The records of a row that is there, in the order of its slots.
    ///
    /// # Errors
    /// Those of `take`.
    pub(in crate::view) fn records(
        &self,
        row: u64,
        pass: Pass,
        mut take: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let key = key(pass);
        let mut order = None;
        match &self.slots {
            Slots::Even { per_row, .. } => {
                let start = row * per_row;
                for slot in start..start.saturating_add(*per_row).min(self.scopes.n()) {
                    let scope = self.scopes.of(slot);
                    let of_scope = self.scopes.range(scope);
                    let len = of_scope.end - of_scope.start;
                    let (_, order) =
                        kept(&mut order, scope, || permutation(key, [scope, pass.view, SLOTS], len));
                    take(of_scope.start + order.apply(slot - of_scope.start))?;
                }
            }
            Slots::Listed { classes, slots, ends, .. } => {
                for slot in &slots[range(ends, row as usize)] {
                    let class = classes.of_place(*slot as usize);
                    let (members, number) = (classes.members(class), class as u64);
                    let len = members.len() as u64;
                    let (_, order) =
                        kept(&mut order, number, || permutation(key, [number, pass.view, SLOTS], len));
                    let of_class = u64::from(*slot) - classes.first(class) as u64;
                    take(members[order.apply(of_class) as usize].into())?;
                }
            }
        }
        Ok(())
    }

    /// The row of a record in a pass; `None` where it is in none.
    pub(in crate::view) fn row_of(&self, record: u64, size: u32, pass: Pass) -> Option<u64> {
        let scope = self.scopes.of(record);
        match &self.slots {
            Slots::Even { rows: 0, .. } => None,
            Slots::Even { per_row, .. } => {
                let of_scope = self.scopes.range(scope);
                let order = permutation(key(pass), [scope, pass.view, SLOTS], of_scope.end - of_scope.start);
                Some((of_scope.start + order.invert(record - of_scope.start)) / per_row)
            }
            Slots::Listed { classes, of_scopes, places, ends, .. } => {
                let of_scope = of_scopes[scope as usize] as usize..of_scopes[scope as usize + 1] as usize;
                let class = classes.of_size(of_scope, size)?;
                let members = classes.members(class);
                let member = members.binary_search(&u32::try_from(record).ok()?).ok()?;
                let order = permutation(key(pass), [class as u64, pass.view, SLOTS], members.len() as u64);
                let slot = places[classes.first(class) + order.invert(member as u64) as usize];
                Some(ends.partition_point(|end| *end <= slot) as u64)
            }
        }
    }
}

// The order under a number, made where another one is kept.
fn kept<T>(kept: &mut Option<(u64, T)>, number: u64, make: impl FnOnce() -> T) -> &(u64, T) {
    let found = kept.take().filter(|(of, _)| *of == number);
    kept.insert(found.unwrap_or_else(|| (number, make())))
}

// The slots of a row.
fn range(ends: &[u32], row: usize) -> Range<usize> {
    let start = if row == 0 { 0 } else { ends[row - 1] as usize };
    start..ends[row] as usize
}

/// A slot that was put into a row, counted from the first one of the scope.
struct Placed {
    row: u32,
    class: u32,
}

// Slots of more than half a row first, the longest first; the others in one random order.
fn best_fit(classes: &Classes, of: &[u32], length: u32) -> Result<Vec<Placed>> {
    let mut big = Vec::new();
    let mut rest = Vec::new();
    for class in of.iter().copied().filter(|class| *class != NO_BIN) {
        let is_big = classes.size(class as usize) > length / 2;
        let list = if is_big { &mut big } else { &mut rest };
        make_room(list, 1, of.len() as u64)?;
        list.push(class);
    }
    // A class of lower number has longer slots; equal ones stay by number.
    big.sort();
    let order = row_order(rest.len() as u64);
    let rest = (0..rest.len() as u64).map(|i| rest[order.apply(i) as usize]);
    let placed_ones = of.iter().filter(|class| **class != NO_BIN);
    let volume: u64 = placed_ones.map(|class| u64::from(classes.size(*class as usize))).sum();
    let mut free = FreeRoom::new(length.min(u32::try_from(volume).unwrap_or(u32::MAX)));
    let mut placed = Vec::new();
    make_room(&mut placed, of.len(), of.len() as u64)?;
    placed.extend(
        big.iter()
            .copied()
            .chain(rest)
            .map(|class| Placed { row: free.take(classes.size(class as usize)), class }),
    );
    Ok(placed)
}

// In record order, each into the first row with room.
fn first_fit(classes: &Classes, of: &[u32], length: u32) -> Vec<Placed> {
    let sizes = of.iter().map(|class| if *class == NO_BIN { 0 } else { classes.size(*class as usize) });
    let mut rows: Vec<u32> = sizes.collect();
    let volume = rows.iter().map(|size| u64::from(*size)).sum();
    fit::first_fit(&mut rows, length.min(u32::try_from(volume).unwrap_or(u32::MAX)), volume);
    let placed = rows.iter().zip(of).filter(|(row, _)| **row != NO_BIN);
    placed.map(|(row, class)| Placed { row: *row, class: *class }).collect()
}

// Appends the classes of the slots of each row, in the order in which they were put there, and where rows end.
fn row_by_row(placed: Vec<Placed>, slots: &mut Vec<u32>, ends: &mut Vec<u32>) -> Result<()> {
    let rows = placed.iter().map(|placed| placed.row as usize + 1).max().unwrap_or(0);
    let (first_row, first) = (ends.len(), slots.len());
    make_room(ends, rows, (first_row + rows) as u64)?;
    ends.resize(first_row + rows, 0);
    let ends = &mut ends[first_row..];
    placed.iter().for_each(|placed| ends[placed.row as usize] += 1);
    let mut start = first as u32;
    for end in ends.iter_mut() {
        start += std::mem::replace(end, start);
    }
    make_room(slots, placed.len(), (first + placed.len()) as u64)?;
    slots.resize(first + placed.len(), 0);
    // Each is where its row starts now, and moves to its end while the row is filled.
    for Placed { row, class } in placed {
        let at = &mut ends[row as usize];
        slots[*at as usize] = class;
        *at += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::order::tests::{numbers, recorded};
    use super::*;

    #[test]
    fn classes_and_rows_and_who_holds_their_slots_are_as_they_are_recorded() {
        let recorded = recorded();
        let row = &recorded["classes"][0];
        let number = |name: &str| row[name].as_u64().unwrap();
        let sizes: Vec<u32> = numbers(&row["sizes"]).iter().map(|size| *size as u32).collect();
        let mut of = sizes.clone();
        let mut classes = Classes::new(number("docs") as usize);
        classes.extend(0, &mut of, sizes.len() as u64).unwrap();
        assert_eq!(of.iter().map(|class| u64::from(*class)).collect::<Vec<_>>(), numbers(&row["of"]));
        let slots: Vec<u64> = (0..classes.len()).map(|class| classes.size(class).into()).collect();
        assert_eq!(slots, numbers(&row["slots"]));

        let classes = Classes::new(number("docs") as usize);
        let length = number("length") as u32;
        let rows = Rows::in_classes(classes, sizes.clone(), length, Strategy::BestFit, None).unwrap();
        let expected: Vec<Vec<u64>> = row["rows"].as_array().unwrap().iter().map(numbers).collect();
        assert_eq!(rows.len(), expected.len() as u64);
        for (epoch, holders) in (0..).zip(row["epochs"].as_array().unwrap()) {
            let pass = Pass { seed: 11, epoch, ..Pass::default() };
            let mut holders: Vec<_> =
                holders.as_array().unwrap().iter().map(|of| numbers(of).into_iter()).collect();
            for (at, slots) in (0..).zip(&expected) {
                let held: Vec<u64> =
                    slots.iter().map(|class| holders[*class as usize].next().unwrap()).collect();
                let mut found = Vec::new();
                rows.records(at, pass, |record| {
                    found.push(record);
                    Ok(())
                })
                .unwrap();
                assert_eq!(found, held, "row {at} of epoch {epoch}");
                for record in found {
                    assert_eq!(rows.row_of(record, sizes[record as usize], pass), Some(at));
                }
            }
        }
    }
}
