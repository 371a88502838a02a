//! Objects that are opened one behind the other: the part of each that is read first is asked for of those that come next, so that
//! many of them are under way at a time.
//!
//! To open a folder of thousands of files, formats read the first bytes of each, or the last ones, in the order of their names.

use std::ops::Range;
use std::sync::Arc;

use windrow_core::store::key;

use super::next::{End, MOST, Row, suffix_of};
use crate::backend::Meta;
use crate::copy::Copy;
use crate::place::Place;
use crate::queue;

/// Bytes that are asked for ahead at most; of the memory that holds them until they are read, a quarter.
const MOST_BYTES: u64 = 16 << 20;

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
        let mut rows = self.next.rows();
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
