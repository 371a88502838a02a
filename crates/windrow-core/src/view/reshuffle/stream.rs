//! The stream of all documents in the order of a pass: which document a number of it is of, and where a document is in it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::kept::Kept;
use super::narrow::Narrow;
use super::order::{Scopes, WORD, documents};
use super::sums::{Outcome, PLACES, Sums, other_lengths};
use crate::error::{Error, Result};
use crate::permutation::Permutation;
use crate::record::{Lengths, Pass};
use crate::view::allocate::make_room;
use crate::view::ends::last_from;
use crate::view::lengths::{self, RunningSums};
use crate::view::share::Share;

/// Places of a group whose records are looked up at once.
const AHEAD: usize = 8;

/// A place of a stream: which record is there, and its share of the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::view) struct Place {
    /// Records before it.
    pub(in crate::view) number: u64,
    /// The record.
    pub(in crate::view) record: u64,
    /// Its share.
    pub(in crate::view) share: Range<u64>,
}

/// A stream of records, one after the other.
pub(in crate::view) trait Places {
    /// The place in whose share `number` lies, which is in the stream.
    ///
    /// # Errors
    /// What the lengths say.
    fn find(&mut self, number: u64) -> Result<Place>;

    /// The place after one that is not the last.
    ///
    /// # Errors
    /// As [`Places::find`].
    fn after(&mut self, place: &Place) -> Result<Place>;
}

/// Records in their own order.
impl Places for &RunningSums {
    fn find(&mut self, number: u64) -> Result<Place> {
        let record = RunningSums::find(self, number);
        Ok(Place { number: record, record, share: self.range(record)? })
    }

    fn after(&mut self, place: &Place) -> Result<Place> {
        let record = place.record + 1;
        Ok(Place { number: record, record, share: self.range(record)? })
    }
}

/// All records in another order in each pass.
pub(in crate::view) struct Reshuffled {
    lengths: Narrow,
    /// What a record takes.
    each: Share,
    scopes: Scopes,
    /// How many records trade places among themselves, where that was chosen.
    scope: Option<u64>,
    total: u64,
    n_empty: u64,
    begins: Begins,
}

/// How it is known where places begin.
enum Begins {
    /// Narrow are equal: by arithmetic.
    Even(u64),
    /// By the sums of each pass.
    Sums(Kept<Sums>),
    /// Scopes begin at the same number in each pass, and places within them by sums of their own.
    Scopes { starts: Vec<u64>, sums: Kept<Vec<OnceLock<OfScope>>> },
}

impl Reshuffled {
    /// Records of these lengths, which take `each`, `scope` of which trade places among themselves. One pass over the
    /// lengths, or none where they are uniform.
    ///
    /// # Errors
    /// `Config` for fewer than two records, and for a scope of 0; `Corrupt` when the sum passes 64 bits; what the lengths say.
    pub(in crate::view) fn new(lengths: Arc<dyn Lengths>, each: Share, scope: Option<u64>) -> Result<Self> {
        let n = lengths.len();
        check_count(n)?;
        scope.map_or(Ok(()), |records| lengths::at_least_one("scope", records))?;
        let scopes = Scopes::new(n, scope);
        if let Some(length) = lengths::uniform(&*lengths)? {
            let share = each.of(length).filter(|share| share.checked_mul(n).is_some());
            let share = share.ok_or_else(|| lengths::too_many(n))?;
            let n_empty = if length == 0 { n } else { 0 };
            let (lengths, begins) = (Narrow::Asked(lengths), Begins::Even(share));
            return Ok(Reshuffled { lengths, each, scopes, scope, total: share * n, n_empty, begins });
        }
        let is_whole = scopes.count() == 1;
        let (mut total, mut n_empty, mut starts) = (0u64, 0, Vec::new());
        let mut narrow = Narrow::new();
        lengths::each_few(&*lengths, |first, some| {
            narrow.extend(some, &lengths)?;
            for (record, length) in (first..).zip(&*some) {
                if !is_whole && scopes.range(scopes.of(record)).start == record {
                    make_room(&mut starts, 1, scopes.count())?;
                    starts.push(total);
                }
                n_empty += u64::from(*length == 0);
                let end = each.of(*length).and_then(|share| total.checked_add(share));
                total = end.ok_or_else(|| lengths::too_many(n).record(record))?;
            }
            Ok(())
        })?;
        let begins = match is_whole {
            true => Begins::Sums(Kept::default()),
            false => Begins::Scopes { starts, sums: Kept::default() },
        };
        Ok(Reshuffled { lengths: narrow, each, scopes, scope, total, n_empty, begins })
    }

    /// How many records.
    pub(in crate::view) fn records(&self) -> u64 {
        self.scopes.n()
    }

    /// The end of the last share.
    pub(in crate::view) fn total(&self) -> u64 {
        self.total
    }

    /// Records without values.
    pub(in crate::view) fn n_empty(&self) -> u64 {
        self.n_empty
    }

    /// The share of all records, where they have the same.
    pub(in crate::view) fn even(&self) -> Option<u64> {
        match self.begins {
            Begins::Even(each) => Some(each),
            Begins::Sums(_) | Begins::Scopes { .. } => None,
        }
    }

    /// The order in words that never change for the same one.
    pub(in crate::view) fn describe(&self) -> String {
        let scope = self.scope.map_or(String::new(), |records| format!("(scope={records})"));
        format!("reshuffle={WORD}{scope}")
    }

    /// Whether a pass begins with work over all lengths.
    pub(in crate::view) fn is_summed(&self) -> bool {
        matches!(self.begins, Begins::Sums(_))
    }

    /// Does that work before it is needed, until it is not wanted any more.
    ///
    /// # Errors
    /// What the lengths say.
    pub(in crate::view) fn prepare(&self, pass: Pass, is_wanted: &dyn Fn() -> bool) -> Result<()> {
        if let Begins::Sums(kept) = &self.begins {
            self.summed(kept, kept.get_ahead(pass, || self.sums(pass))?, is_wanted)?;
        }
        Ok(())
    }

    /// The stream of a pass.
    ///
    /// # Errors
    /// What the lengths say.
    pub(in crate::view) fn in_pass(&self, pass: Pass) -> Result<InPass<'_>> {
        let begins = match &self.begins {
            Begins::Even(each) => OfPass::Even(*each),
            Begins::Sums(kept) => OfPass::Sums(loop {
                let sums = kept.get(pass, || self.sums(pass))?;
                // What somebody else could not read, one reads for oneself.
                if self.summed(kept, sums.clone(), &|| true)? {
                    break sums;
                }
            }),
            Begins::Scopes { starts, sums } => OfPass::Scopes {
                starts,
                sums: sums.get(pass, || {
                    let mut sums = Vec::new();
                    make_room(&mut sums, starts.len(), starts.len() as u64)?;
                    sums.resize_with(starts.len(), OnceLock::new);
                    Ok(sums)
                })?,
            },
        };
        Ok(InPass { stream: self, pass, begins, order: None })
    }

    fn sums(&self, pass: Pass) -> Result<Sums> {
        Sums::new(documents(pass, 0, self.records()), self.records())
    }

    // Whether they are ready.
    fn summed(&self, kept: &Kept<Sums>, sums: Arc<Sums>, is_wanted: &dyn Fn() -> bool) -> Result<bool> {
        let outcome = sums.ready(&self.lengths, (self.each, self.total), is_wanted);
        if !matches!(outcome, Ok(Outcome::Ready | Outcome::Left)) {
            kept.forget(&sums);
        }
        Ok(outcome? == Outcome::Ready)
    }

    fn share(&self, record: u64) -> Result<u64> {
        self.each.of(self.lengths.length(record)?).ok_or_else(other_lengths)
    }
}

/// # Errors
/// `Config` where there is nothing to put in another order.
pub(in crate::view) fn check_count(n: u64) -> Result<()> {
    match n {
        0 | 1 => Err(Error::config(format!("there are {n} records, expected at least 2 to put them in another order each epoch"))
            .field("reshuffle")
            .hint("a document is a record: a stream of tokens is opened as documents with @open_with_eos@, the token that ends each")),
        _ => Ok(()),
    }
}

/// The stream of one pass.
pub(in crate::view) struct InPass<'s> {
    stream: &'s Reshuffled,
    pass: Pass,
    begins: OfPass<'s>,
    /// The order of the scope that was looked at last.
    order: Option<(u64, Permutation)>,
}

/// What is kept of a scope in a pass.
struct OfScope {
    /// Of a large one, where it is small beside the sums.
    order: Option<Box<Permutation>>,
    /// Where each 16th place begins, counted from where the scope begins.
    starts: Box<[u64]>,
}

/// Documents of a scope whose order is kept: half a byte for each of them.
const LARGE: u64 = 1024;

enum OfPass<'s> {
    Even(u64),
    Sums(Arc<Sums>),
    Scopes { starts: &'s [u64], sums: Arc<Vec<OnceLock<OfScope>>> },
}

impl InPass<'_> {
    /// A record's share.
    ///
    /// # Errors
    /// `OutOfRange`; what the lengths say.
    pub(in crate::view) fn range(&mut self, record: u64) -> Result<Range<u64>> {
        lengths::check_record(record, self.stream.records())?;
        let scope = self.stream.scopes.of(record);
        let first = self.stream.scopes.range(scope).start;
        let place = first + self.order(scope).invert(record - first);
        if let OfPass::Even(each) = self.begins {
            return Ok(place * each..(place + 1) * each);
        }
        let group = (place - first) / PLACES;
        let mut at = self.group_start(scope, group)?;
        for before in first + group * PLACES..place {
            let record = self.record(before);
            at = self.end_of(at, record)?;
        }
        Ok(at..self.end_of(at, record)?)
    }

    /// The record at a place that is there.
    fn record(&mut self, place: u64) -> u64 {
        let scope = self.stream.scopes.of(place);
        let first = self.stream.scopes.range(scope).start;
        first + self.order(scope).apply(place - first)
    }

    fn order(&mut self, scope: u64) -> &Permutation {
        match &self.begins {
            OfPass::Sums(sums) => sums.order(),
            OfPass::Even(_) | OfPass::Scopes { .. } => {
                let of_scope = self.order.take().filter(|(of, _)| *of == scope).unwrap_or_else(|| {
                    let range = self.stream.scopes.range(scope);
                    (scope, documents(self.pass, scope, range.end - range.start))
                });
                &self.order.insert(of_scope).1
            }
        }
    }

    fn end_of(&self, start: u64, record: u64) -> Result<u64> {
        start.checked_add(self.stream.share(record)?).ok_or_else(other_lengths)
    }

    // Where the `group`-th 16 places of a scope begin.
    fn group_start(&mut self, scope: u64, group: u64) -> Result<u64> {
        match &self.begins {
            OfPass::Even(each) => Ok((self.stream.scopes.range(scope).start + group * PLACES) * each),
            OfPass::Sums(sums) => Ok(sums.start(group as usize)),
            OfPass::Scopes { starts, sums } => {
                let (start, sums) = (starts[scope as usize], sums.clone());
                Ok(start + self.sums_of(scope, &sums)?[group as usize])
            }
        }
    }

    // The sums of a scope, counted from where it begins. Two that need them at once both add them up.
    fn sums_of<'a>(&mut self, scope: u64, sums: &'a [OnceLock<OfScope>]) -> Result<&'a [u64]> {
        let of_scope = &sums[scope as usize];
        if let Some(OfScope { order, starts }) = of_scope.get() {
            if let Some(order) = order
                && self.order.as_ref().is_none_or(|(of, _)| *of != scope)
            {
                self.order = Some((scope, Permutation::clone(order)));
            }
            return Ok(starts);
        }
        let range = self.stream.scopes.range(scope);
        let mut starts = Vec::new();
        let n_groups = (range.end - range.start).div_ceil(PLACES);
        make_room(&mut starts, n_groups as usize, n_groups)?;
        starts.resize(n_groups as usize, 0u64);
        let stream = self.stream;
        let Reshuffled { lengths, each, .. } = stream;
        let order = self.order(scope);
        let mut some = [0; 1024];
        let mut first = range.start;
        while first < range.end {
            let some = &mut some[..(range.end - first).min(1024) as usize];
            lengths.lengths(first, some)?;
            for (record, length) in (first..).zip(&*some) {
                let start = &mut starts[(order.invert(record - range.start) / PLACES) as usize];
                *start = start.wrapping_add(each.of(*length).unwrap_or(0));
            }
            first += some.len() as u64;
        }
        let mut at = 0u64;
        for start in &mut starts {
            let places = std::mem::replace(start, at);
            at = at.checked_add(places).ok_or_else(other_lengths)?;
        }
        if at != stream.scope_total(scope) {
            return Err(other_lengths());
        }
        let order = (range.end - range.start >= LARGE).then(|| Box::new(order.clone()));
        Ok(&of_scope.get_or_init(|| OfScope { order, starts: starts.into_boxed_slice() }).starts)
    }
}

impl Reshuffled {
    // Numbers of a scope.
    fn scope_total(&self, scope: u64) -> u64 {
        match &self.begins {
            Begins::Scopes { starts, .. } => {
                let scope = scope as usize;
                starts.get(scope + 1).copied().unwrap_or(self.total) - starts[scope]
            }
            Begins::Even(_) | Begins::Sums(_) => self.total,
        }
    }
}

impl Places for InPass<'_> {
    fn find(&mut self, number: u64) -> Result<Place> {
        let (scope, group) = match &self.begins {
            OfPass::Even(each) => {
                let (each, place) = (*each, number / (*each).max(1));
                let record = self.record(place);
                return Ok(Place { number: place, record, share: place * each..(place + 1) * each });
            }
            OfPass::Sums(sums) => {
                (0, last_from(sums.len(), |i| sums.start(i), number, self.stream.total) as u64)
            }
            OfPass::Scopes { starts, sums } => {
                let scope = last_from(starts.len(), |i| starts[i], number, self.stream.total);
                let (within, total) = (number - starts[scope], self.stream.scope_total(scope as u64));
                let sums = sums.clone();
                let sums = self.sums_of(scope as u64, &sums)?;
                (scope as u64, last_from(sums.len(), |i| sums[i], within, total) as u64)
            }
        };
        let places = self.stream.scopes.range(scope);
        let mut at = self.group_start(scope, group)?;
        let first = places.start + group * PLACES;
        for some in (first..places.end.min(first + PLACES)).step_by(AHEAD) {
            let mut records = [0; AHEAD];
            let some = some..places.end.min(some + AHEAD as u64);
            // Their lengths come from memory side by side.
            for (place, record) in some.clone().zip(&mut records) {
                *record = self.record(place);
                self.stream.lengths.touch(*record);
            }
            for (place, record) in some.zip(records) {
                let end = self.end_of(at, record)?;
                if end > number {
                    return Ok(Place { number: place, record, share: at..end });
                }
                at = end;
            }
        }
        Err(other_lengths())
    }

    fn after(&mut self, place: &Place) -> Result<Place> {
        let number = place.number + 1;
        if number >= self.stream.records() {
            return Err(other_lengths());
        }
        let record = self.record(number);
        let start = place.share.end;
        Ok(Place { number, record, share: start..self.end_of(start, record)? })
    }
}
