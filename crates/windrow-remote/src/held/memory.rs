//! Pieces of objects in memory: as they were fetched, of all objects of a process below one limit.
//!
//! A piece whose bytes were all read goes first, then the oldest. The last piece of each object stays until the next one
//! comes, so that whoever fetched it can read it, however low the limit is.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::per_process::PerProcess;

/// What is fetched is rounded to multiples of so many bytes: pages of a disk, and of memory.
const UNIT: u64 = 4096;

/// The pieces of one object.
pub(super) struct Pieces {
    own: Arc<Mutex<BTreeMap<u64, Piece>>>,
    most: u64,
}

struct Piece {
    bytes: Arc<Vec<u8>>,
    /// Bytes that were read, the same ones more than once.
    read: AtomicU64,
    number: u64,
}

/// Where a piece is: its object, its first byte, its size.
type Place = (Weak<Mutex<BTreeMap<u64, Piece>>>, u64, u64);

/// All pieces of a process, in the order in which they came.
#[derive(Default)]
struct All {
    bytes: u64,
    next: u64,
    order: BTreeMap<u64, Place>,
}

static ALL: PerProcess<Mutex<All>> = PerProcess::new(Mutex::default);

fn all() -> MutexGuard<'static, All> {
    ALL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pieces {
    pub(super) fn new(most: u64) -> Pieces {
        Pieces { own: Arc::default(), most }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Piece>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn copy(&self, start: u64, out: &mut [u8]) -> bool {
        let mut parts = Vec::new();
        {
            let pieces = self.lock();
            let end = start + out.len() as u64;
            let mut at = start;
            while at < end {
                let Some((from, piece)) = pieces.range(..=at).next_back() else { return false };
                let to = (from + piece.bytes.len() as u64).min(end);
                if to <= at {
                    return false;
                }
                piece.read.fetch_add(to - at, Relaxed);
                parts.push((piece.bytes.clone(), (at - from) as usize..(to - from) as usize));
                at = to;
            }
        }
        let mut done = 0;
        for (bytes, range) in parts {
            let size = range.len();
            out[done..done + size].copy_from_slice(&bytes[range]);
            done += size;
        }
        true
    }

    pub(super) fn missing(&self, start: u64, end: u64, size: u64) -> Vec<Range<u64>> {
        if start >= end {
            return Vec::new();
        }
        let mut missing: Vec<Range<u64>> = Vec::new();
        let mut at = start;
        {
            let pieces = self.lock();
            let place = |(from, piece): (&u64, &Piece)| (*from, from + piece.bytes.len() as u64);
            let first = pieces.range(..=start).next_back().map(place);
            for (from, to) in first.into_iter().chain(pieces.range(start + 1..end).map(place)) {
                if from > at {
                    missing.push(at..from);
                }
                at = at.max(to);
            }
        }
        if at < end {
            missing.push(at..end);
        }
        rounded(missing, size)
    }

    pub(super) fn put(&self, start: u64, bytes: Vec<u8>) {
        let end = start + bytes.len() as u64;
        let mut all = all();
        let mut own = self.lock();
        // Some of it may be here already: a request asks for what lies between two parts that are missing, too.
        let reach = |(from, piece): (&u64, &Piece)| (*from, from + piece.bytes.len() as u64);
        let within: Vec<u64> =
            own.range(start..end).map(reach).filter(|(_, to)| *to <= end).map(|(from, _)| from).collect();
        for from in within {
            if let Some(piece) = own.remove(&from) {
                all.order.remove(&piece.number);
                all.bytes -= piece.bytes.len() as u64;
            }
        }
        let before = own.range(..start).next_back().map_or(start, |found| reach(found).1);
        let behind = own.range(start..).next().map_or(end, |(from, _)| *from);
        let (from, to) = (before.max(start), behind.min(end));
        if from >= to {
            return;
        }
        let bytes = match to - from == end - start {
            true => bytes,
            false => bytes[(from - start) as usize..(to - start) as usize].to_vec(),
        };
        let number = all.next;
        all.next += 1;
        all.bytes += to - from;
        all.order.insert(number, (Arc::downgrade(&self.own), from, to - from));
        own.insert(from, Piece { bytes: Arc::new(bytes), read: AtomicU64::new(0), number });
        drop(own);
        if all.bytes > self.most {
            all.shrink(self.most, number);
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        // In the child of a fork these may be the parent's, whose lock may be held for ever.
        let Ok(pieces) = self.own.try_lock() else { return };
        let known: Vec<(u64, u64)> =
            pieces.values().map(|piece| (piece.number, piece.bytes.len() as u64)).collect();
        drop(pieces);
        let mut all = all();
        for (number, size) in known {
            if all.order.remove(&number).is_some() {
                all.bytes -= size;
            }
        }
    }
}

impl All {
    // Pieces that were read to their end go first, then the oldest; the one with this number stays.
    fn shrink(&mut self, most: u64, stays: u64) {
        for only_read in [true, false] {
            let numbers: Vec<u64> = self.order.keys().copied().filter(|number| *number != stays).collect();
            for number in numbers {
                // Room for some more, so that not every piece that comes looks through all.
                if self.bytes <= most - most / 8 {
                    return;
                }
                self.drop_piece(number, only_read);
            }
            if self.bytes <= most {
                return;
            }
        }
    }

    fn drop_piece(&mut self, number: u64, only_read: bool) {
        let Some((object, start, size)) = self.order.get(&number) else { return };
        let (size, start) = (*size, *start);
        if let Some(object) = object.upgrade() {
            let mut pieces = object.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(piece) = pieces.get(&start).filter(|piece| piece.number == number) else { return };
            if only_read && piece.read.load(Relaxed) < size {
                return;
            }
            pieces.remove(&start);
        }
        self.order.remove(&number);
        self.bytes -= size;
    }
}

/// Rounded outwards to units, and joined where they meet then.
fn rounded(ranges: Vec<Range<u64>>, size: u64) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        let range = range.start / UNIT * UNIT..range.end.next_multiple_of(UNIT).min(size);
        match found.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => found.push(range),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_rounded_and_what_is_here_is_copied() {
        const SIZE: u64 = 10 * UNIT + 7;
        let content: Vec<u8> = (0..SIZE).map(|i| (i * 7 / 3) as u8).collect();
        let pieces = Pieces::new(1 << 30);
        let put = |range: Range<u64>| {
            pieces.put(range.start, content[range.start as usize..range.end as usize].to_vec());
        };
        let mut random = fastrand::Rng::with_seed(1);
        assert_eq!(pieces.missing(UNIT + 1, UNIT + 2, SIZE), vec![UNIT..2 * UNIT]);
        assert_eq!(pieces.missing(SIZE - 1, SIZE, SIZE), vec![10 * UNIT..SIZE]);
        assert!(pieces.missing(5, 5, SIZE).is_empty());
        for _ in 0..200 {
            let start = random.u64(0..SIZE);
            let end = random.u64(start..=SIZE);
            let missing = pieces.missing(start, end, SIZE);
            let mut out = vec![0; (end - start) as usize];
            assert_eq!(pieces.copy(start, &mut out), missing.is_empty());
            for range in missing {
                // Also what lies around it.
                let units = random.u64(0..3) * UNIT;
                if random.bool() {
                    put(range.start.saturating_sub(units)..(range.end + units).min(SIZE));
                }
            }
            if pieces.missing(start, end, SIZE).is_empty() {
                assert!(pieces.copy(start, &mut out));
                assert_eq!(out, content[start as usize..end as usize]);
            }
        }
    }

    #[test]
    fn pieces_that_were_read_go_first_and_the_last_one_stays() {
        // The limit is of all objects of the process: other tests have theirs.
        let pieces = Pieces::new(0);
        pieces.put(0, vec![1; 4096]);
        let mut out = [0; 4096];
        assert!(pieces.copy(0, &mut out) && out == [1; 4096]);
        pieces.put(8192, vec![2; 4096]);
        assert!(!pieces.copy(0, &mut out));
        assert!(pieces.copy(8192, &mut out) && out == [2; 4096]);
    }
}
