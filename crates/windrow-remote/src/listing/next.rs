//! Which end of objects is read first, and how many of those that come next to ask for.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use windrow_core::PerProcess;
use windrow_core::store::key;

/// Reads of an object that are looked at: some formats look at its first bytes, and then at its last ones.
pub(crate) const FIRST_READS: usize = 2;
/// Objects in a row of which the same end is read first: after that many, others are expected.
const IN_A_ROW: u32 = 2;
/// Objects that are asked for ahead, at first and at most.
const FEWEST: usize = 4;
pub(super) const MOST: usize = 256;

/// What of objects is read first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Head,
    Tail,
}

/// Which objects were read last, of one store: by their first read, and by the one after it.
#[derive(Default)]
pub(crate) struct Next(PerProcess<Mutex<[Row; FIRST_READS]>>);

impl Next {
    pub(super) fn rows(&self) -> MutexGuard<'_, [Row; FIRST_READS]> {
        self.0.get().lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(super) struct Row {
    end: Option<End>,
    /// What the names of all of them end with.
    pub(super) suffix: String,
    in_a_row: u32,
    /// Asked for, and not read yet.
    pub(super) asked: HashSet<String>,
    window: usize,
}

impl Row {
    /// How many to ask for, now that this end of an object was read as its first: `most` at a time.
    pub(super) fn read(&mut self, key: &str, end: End, most: usize) -> usize {
        let was_asked = self.asked.remove(key);
        let suffix = suffix_of(key);
        if self.end != Some(end) || self.suffix != suffix {
            // What was asked for may still be read; it is not counted on.
            *self = Row { end: Some(end), suffix: suffix.to_string(), ..Row::default() };
            return 0;
        }
        self.in_a_row += 1;
        if self.in_a_row < IN_A_ROW || self.asked.len() > self.window / 2 {
            return 0;
        }
        // What was asked for in vain is no reason to ask for more.
        self.window =
            if was_asked || self.window == 0 { (2 * self.window).clamp(FEWEST, MOST) } else { FEWEST };
        self.window = self.window.min(most);
        self.window.saturating_sub(self.asked.len())
    }
}

pub(super) fn suffix_of(key: &str) -> &str {
    let name = key::name_of(key);
    name.rfind('.').map_or("", |dot| &name[dot..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_asked_for_as_objects_follow_each_other_and_little_where_they_do_not() {
        let mut row = Row::default();
        let key = |i: usize| format!("d/{i}.bin");
        let mut asked = Vec::new();
        let mut next = 0;
        for i in 0..200 {
            let count = row.read(&key(i), End::Head, MOST);
            next = next.max(i + 1);
            row.asked.extend((next..next + count).map(key));
            next += count;
            asked.push(count);
        }
        assert_eq!(asked[..8], [0, 0, 4, 0, 6, 0, 0, 0]);
        assert!(row.asked.len() >= 32 && asked.iter().max() <= Some(&MOST));
        // Another part, or other names: from the beginning.
        assert_eq!(row.read(&key(200), End::Tail, MOST), 0);
        assert_eq!([0, 1].map(|i| row.read(&key(i), End::Tail, MOST)), [0, 4]);
        assert_eq!(row.read("d/x.json", End::Tail, MOST), 0);
        // What was asked for is not read.
        let mut row = Row::default();
        for i in 0..100 {
            let count = row.read(&key(100 - i), End::Head, MOST);
            assert!(count <= FEWEST);
            row.asked.extend((0..count).map(|n| format!("{i} {n}")));
        }
        assert!(row.asked.len() <= FEWEST);
    }
}
