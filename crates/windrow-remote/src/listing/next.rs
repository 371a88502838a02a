//! Objects that are opened one behind the other: the part of each that is read first is asked for of those that come next, so that
//! many of them are under way at a time.
//!
//! To open a folder of thousands of files, formats read the first bytes of each, or the last ones, in the order of their names.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use windrow_core::PerProcess;
use windrow_core::store::key;

use crate::backend::Meta;
use crate::copy::Copy;
use crate::place::Place;
use crate::queue;

/// Reads of an object that are looked at: some formats look at its first bytes, and then at its last ones.
pub(crate) const FIRST_READS: usize = 2;
/// Objects in a row of which the same end is read first: after that many, others are expected.
const IN_A_ROW: u32 = 2;
/// Objects that are asked for ahead, at first and at most.
const FEWEST: usize = 4;
const MOST: usize = 256;
/// Bytes that are asked for ahead at most; of the memory that holds them until they are read, a quarter.
const MOST_BYTES: u64 = 16 << 20;

/// What of objects is read first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Head,
    Tail,
}

/// Which objects were read last, of one store: by their first read, and by the one after it.
#[derive(Default)]
pub(crate) struct Next(PerProcess<Mutex<[Row; FIRST_READS]>>);

#[derive(Default)]
struct Row {
    end: Option<End>,
    /// What the names of all of them end with.
    suffix: String,
    in_a_row: u32,
    /// Asked for, and not read yet.
    asked: HashSet<String>,
    window: usize,
}

impl Row {
    /// How many to ask for, now that this end of an object was read as its first: `most` at a time.
    fn read(&mut self, key: &str, end: End, most: usize) -> usize {
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

fn suffix_of(key: &str) -> &str {
    let name = key::name_of(key);
    name.rfind('.').map_or("", |dot| &name[dot..])
}

impl Place {
    /// A range of an object is read: its first read in this process is number 0.
    pub(crate) fn reads_first(&self, number: usize, key: &str, copy: &Copy, size: u64, range: &Range<u64>) {
        let end = match range {
            Range { start: 0, .. } => End::Head,
            range if range.end == size => End::Tail,
            _ => return,
        };
        let around = copy.around(range);
        let most = MOST_BYTES.min(self.options.read_ahead / 4) / (around.end - around.start).max(1);
        let mut rows = self.next.0.get().lock().unwrap_or_else(PoisonError::into_inner);
        let Some(row) = rows.get_mut(number) else { return };
        let count = row.read(key, end, usize::try_from(most).unwrap_or(MOST));
        if count == 0 {
            return;
        }
        let length = range.end - range.start;
        for meta in self.behind(key, row, count) {
            let Ok(copy) = self.copy_of(&meta.key, meta.size, meta.tag.as_deref()) else { return };
            let first = match end {
                End::Head => 0..length.min(meta.size),
                End::Tail => meta.size.saturating_sub(length)..meta.size,
            };
            let around = copy.around(&first);
            let missing = copy.held().missing(around.start, around.end - around.start);
            if !missing.is_empty() && queue::ahead(copy.clone(), missing).is_ok() {
                row.asked.insert(meta.key.clone());
            }
            // Also one of which the other end is here by now.
            self.copies.expect(&meta.key, copy);
        }
    }

    // Objects that come behind one in its listing and are called as it is, and were not asked for.
    fn behind(&self, key: &str, row: &Row, count: usize) -> Vec<Meta> {
        let objects: Option<Arc<Vec<Meta>>> = {
            let listed = self.listed();
            let of = listed.iter().find(|listed| key::is_below(&listed.folder, key));
            of.map(|listed| listed.objects.clone())
        };
        let Some(objects) = objects else { return Vec::new() };
        let at = objects.partition_point(|meta| meta.key.as_str() <= key);
        let is_next = |meta: &&Meta| {
            meta.size > 0
                && meta.tag.is_some()
                && suffix_of(&meta.key) == row.suffix
                && !row.asked.contains(&meta.key)
        };
        objects[at..].iter().filter(is_next).take(count).cloned().collect()
    }
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
