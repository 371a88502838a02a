//! Which end of objects is read first, and how many of those that come next to ask for.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windrow_core::PerProcess;
use windrow_core::format::discover::natural_order;
use windrow_core::store::key;

/// Reads of an object that are looked at: some formats look at its first bytes, and then at its last ones.
pub(crate) const FIRST_READS: usize = 2;
/// Objects in a row of which the same end is read first: after that many, others are expected.
const IN_A_ROW: u32 = 2;
/// Objects that are asked for ahead, at first and at most.
const FEWEST: usize = 4;
pub(super) const MOST: usize = 256;
/// Between two words about how far it is.
const BETWEEN_WORDS: Duration = Duration::from_secs(10);

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
    /// The object that was read last.
    last: String,
    /// They are read in natural order, where that is another one than that of their keys: `part-9` before `part-10`.
    pub(super) is_natural: bool,
    /// How many were read that were asked for, and when something was last told of them.
    n_read: u64,
    told: Option<Instant>,
    /// Asked for, and not read yet.
    pub(super) asked: HashSet<String>,
    window: usize,
}

impl Row {
    /// How many to ask for, now that this end of an object was read as its first: `most` at a time.
    pub(super) fn read(&mut self, key: &str, end: End, most: usize) -> usize {
        // It is opened once more.
        if self.last == key && self.end == Some(end) {
            return 0;
        }
        let was_asked = self.asked.remove(key);
        self.n_read += u64::from(was_asked);
        let suffix = suffix_of(key);
        let last = std::mem::replace(&mut self.last, key.to_string());
        if self.end != Some(end) || self.suffix != suffix {
            // What was asked for may still be read; it is not counted on.
            let last = std::mem::take(&mut self.last);
            *self = Row { end: Some(end), suffix: suffix.to_string(), last, ..Row::default() };
            return 0;
        }
        let order = natural_order(&last, key);
        let is_natural = if last.as_str() < key {
            order == Ordering::Less && self.is_natural
        } else {
            order == Ordering::Less
        };
        if is_natural != self.is_natural {
            self.is_natural = is_natural;
            self.asked.clear();
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

    /// How many were read so far of those that follow each other, where it is time to say it.
    pub(super) fn news(&mut self) -> Option<u64> {
        let told = self.told.get_or_insert_with(Instant::now);
        if told.elapsed() < BETWEEN_WORDS {
            return None;
        }
        *told = Instant::now();
        Some(self.n_read)
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
        // Opened twice, it counts once.
        assert_eq!([1, 1, 2, 2].map(|i| row.read(&key(i), End::Head, MOST)), [0, 0, 0, 0]);
        assert_eq!([3, 3].map(|i| row.read(&key(i), End::Head, MOST)), [4, 0]);
        // What was asked for is not read.
        let mut row = Row::default();
        for i in 0..100 {
            let count = row.read(&key(100 - i), End::Head, MOST);
            assert!(count <= FEWEST);
            row.asked.extend((0..count).map(|n| format!("{i} {n}")));
        }
        assert!(row.asked.len() <= FEWEST);
    }

    #[test]
    fn the_order_of_numbers_in_names_is_seen() {
        let mut row = Row::default();
        for i in 0..10 {
            row.read(&format!("d/{i}.bin"), End::Head, MOST);
        }
        row.asked.insert("d/100.bin".to_string());
        assert!(!row.is_natural);
        row.read("d/10.bin", End::Head, MOST);
        assert!(row.is_natural && row.asked.is_empty());
        row.read("d/11.bin", End::Head, MOST);
        assert!(row.is_natural);
        row.read("d/110.bin", End::Head, MOST);
        row.read("d/12.bin", End::Head, MOST);
        assert!(!row.is_natural);
    }
}
