//! Objects that are opened one behind the other: the part of each that is read first is asked for of those that come next, so that
//! many of them are under way at a time.
//!
//! To open a folder of thousands of files, formats read the first bytes of each, or the last ones, in the order of their names.

use std::ops::Range;

use windrow_core::stop;
use windrow_core::store::{Entry, key, without_secrets};

use super::entries::in_natural_order;
use super::next::{End, MOST, Row, suffix_of};
use crate::copy::Copy;
use crate::place::Place;
use crate::queue;

/// Bytes that are asked for ahead at most; of the memory that holds them until they are read, a quarter.
const MOST_BYTES: u64 = 16 << 20;

impl Place {
    /// A range of an object is read: its first read in this process is number 0.
    pub(crate) fn reads_first(&self, number: usize, key: &str, copy: &Copy, size: u64, range: &Range<u64>) {
        if copy.is_first_read() {
            self.count_look(key);
        }
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
        if let Some(n_read) = row.news().filter(|_| !stop::is_watched()) {
            self.tell_how_far(key, n_read);
        }
        if count == 0 {
            return;
        }
        let length = range.end - range.start;
        for next in self.behind(key, row, count) {
            let Ok(copy) = self.copy_to_come(&next.key, next.size, next.tag.as_deref()) else { return };
            let first = match end {
                End::Head => 0..length.min(next.size),
                End::Tail => next.size.saturating_sub(length)..next.size,
            };
            let around = copy.around(&first);
            let missing = copy.held().missing(around.start, around.end - around.start);
            if !missing.is_empty() && queue::ahead(copy.clone(), missing).is_ok() {
                row.asked.insert(next.key.clone());
            }
        }
    }

    // Objects that come behind one in its listing and are called as it is, and were not asked for.
    fn behind(&self, key: &str, row: &Row, count: usize) -> Vec<Entry> {
        let (objects, natural) = {
            let listed = self.listed();
            let of = listed.iter().find(|listed| key::is_below(&listed.folder, key));
            let Some(listed) = of else { return Vec::new() };
            (listed.objects.clone(), row.is_natural.then(|| listed.in_natural_order()))
        };
        let is_next = |at: &usize| {
            let next = objects.key(*at);
            next != key && objects.size(*at) > 0 && suffix_of(next) == row.suffix && !row.asked.contains(next)
        };
        let behind: Box<dyn Iterator<Item = usize>> = match &natural {
            None => Box::new(objects.from(key)..objects.len()),
            Some(order) => {
                let before = |at: &u32| in_natural_order(objects.key(*at as usize), key).is_lt();
                Box::new(order[order.partition_point(before)..].iter().map(|at| *at as usize))
            }
        };
        let next = behind.filter(is_next).map(|at| objects.entry(at));
        next.filter(|entry| entry.tag.is_some()).take(count).collect()
    }

    // For whoever watches.
    fn count_look(&self, key: &str) {
        let listed = self.listed();
        let of = listed.iter().find(|listed| key::is_below(&listed.folder, key));
        if let Some(of) = of.filter(|listed| listed.is_first_look()) {
            stop::expect_listed(of.objects.len() as u64);
        }
        stop::looked_at_object();
    }

    // Opening many objects takes its time.
    fn tell_how_far(&self, key: &str, n_read: u64) {
        let listed = self.listed();
        let Some(of) = listed.iter().find(|listed| key::is_below(&listed.folder, key)) else { return };
        let (url, count) = (without_secrets(&self.url(&of.folder)), of.objects.len());
        windrow_core::warn!("{url}: {n_read} of {count} objects were looked at");
    }
}
