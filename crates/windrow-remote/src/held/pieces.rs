//! Pieces of objects in memory: as they were fetched, of all objects of a process below one limit.
//!
//! When there are too many, those whose bytes were all read go first, then the oldest. What was put last stays until
//! something else is put, and what somebody is reading stays until it is read, however low the limit is.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use windrow_core::PerProcess;

/// The pieces of one object.
pub(super) struct Pieces {
    own: PerProcess<Arc<Mutex<Own>>>,
    most: u64,
}

#[derive(Default)]
struct Own {
    /// By their first byte; none overlaps another.
    pieces: BTreeMap<u64, Piece>,
    /// Ranges that are being read.
    reads: Vec<(u64, Range<u64>)>,
    next_read: u64,
}

struct Piece {
    bytes: Arc<Vec<u8>>,
    /// Bytes that were read, the same ones more than once.
    read: u64,
    number: u64,
}

/// All pieces of a process, by numbers in the order in which they came.
#[derive(Default)]
struct All {
    bytes: u64,
    next: u64,
    places: BTreeMap<u64, Place>,
    /// Those whose bytes were all read.
    used: VecDeque<u64>,
}

struct Place {
    own: Weak<Mutex<Own>>,
    start: u64,
    size: u64,
}

// Locked before that of an object, never after it.
static ALL: PerProcess<Mutex<All>> = PerProcess::new(Mutex::default);

fn all() -> MutexGuard<'static, All> {
    ALL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock(own: &Mutex<Own>) -> MutexGuard<'_, Own> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pieces {
    pub(super) fn new(most: u64) -> Pieces {
        Pieces { own: PerProcess::new(Arc::default), most }
    }

    /// Bytes that may be here, of all objects.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    fn lock(&self) -> MutexGuard<'_, Own> {
        lock(self.own.get())
    }

    /// Copies a range; whether all of it was here.
    pub(super) fn copy(&self, start: u64, out: &mut [u8]) -> bool {
        if out.is_empty() {
            return true;
        }
        let Some((parts, used)) = self.lock().parts(start..start + out.len() as u64) else { return false };
        if !used.is_empty() {
            all().used.extend(used);
        }
        let mut out = out;
        for (bytes, range) in parts {
            let (part, rest) = out.split_at_mut(range.len());
            part.copy_from_slice(&bytes[range]);
            out = rest;
        }
        true
    }

    /// Adds what of a range is not here.
    pub(super) fn gaps(&self, range: Range<u64>, gaps: &mut Vec<Range<u64>>) {
        self.lock().gaps(range, gaps);
    }

    /// Takes what of these bytes is not here yet.
    pub(super) fn put(&self, start: u64, bytes: Vec<u8>) {
        let own = self.own.get();
        let mut all = all();
        let first = all.next;
        {
            let range = start..start + bytes.len() as u64;
            let mut gaps = Vec::new();
            let mut own_now = lock(own);
            own_now.gaps(range.clone(), &mut gaps);
            let mut bytes = Some(bytes);
            for gap in gaps {
                let part = if gap == range {
                    bytes.take()
                } else {
                    bytes
                        .as_ref()
                        .map(|bytes| bytes[(gap.start - start) as usize..(gap.end - start) as usize].to_vec())
                };
                let number = all.next;
                all.next += 1;
                let size = gap.end - gap.start;
                all.bytes += size;
                all.places.insert(number, Place { own: Arc::downgrade(own), start: gap.start, size });
                let bytes = Arc::new(part.unwrap_or_default());
                own_now.pieces.insert(gap.start, Piece { bytes, read: 0, number });
            }
        }
        all.shrink(self.most, first);
    }

    /// What of a range is here will be read: it stays as if it had just come.
    pub(super) fn want(&self, range: Range<u64>) {
        let own = self.own.get();
        all().want(&mut lock(own), &range);
    }

    /// Has a range stay until what is returned is dropped.
    pub(super) fn reading(&self, range: Range<u64>) -> Reading<'_> {
        let mut own = self.lock();
        let id = own.next_read;
        own.next_read += 1;
        own.reads.push((id, range));
        Reading { pieces: self, id }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let pieces = std::mem::take(&mut self.lock().pieces);
        if pieces.is_empty() {
            return;
        }
        let mut all = all();
        for piece in pieces.values() {
            if let Some(place) = all.places.remove(&piece.number) {
                all.bytes -= place.size;
            }
        }
    }
}

/// A range that is being read.
pub(crate) struct Reading<'a> {
    pieces: &'a Pieces,
    id: u64,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.pieces.lock().reads.retain(|(id, _)| *id != self.id);
    }
}

type Part = (Arc<Vec<u8>>, Range<usize>);

impl Own {
    /// The parts of a range, and the numbers of the pieces that were read to their end by it; `None` where one is missing.
    fn parts(&mut self, range: Range<u64>) -> Option<(Vec<Part>, Vec<u64>)> {
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let (from, piece) = self.pieces.range(..=at).next_back()?;
            let to = (from + piece.bytes.len() as u64).min(range.end);
            if to <= at {
                return None;
            }
            parts.push((*from, at..to));
            at = to;
        }
        let mut used = Vec::new();
        let read = parts.into_iter().filter_map(|(from, range)| {
            let piece = self.pieces.get_mut(&from)?;
            let (size, before) = (piece.bytes.len() as u64, piece.read);
            piece.read += range.end - range.start;
            if before < size && piece.read >= size {
                used.push(piece.number);
            }
            Some((piece.bytes.clone(), (range.start - from) as usize..(range.end - from) as usize))
        });
        let read = read.collect();
        Some((read, used))
    }

    fn gaps(&self, range: Range<u64>, gaps: &mut Vec<Range<u64>>) {
        let place = |(from, piece): (&u64, &Piece)| (*from, from + piece.bytes.len() as u64);
        let mut at = range.start;
        let first = self.pieces.range(..=at).next_back().map(place);
        for (from, to) in first.into_iter().chain(self.pieces.range(at + 1..range.end.max(at + 1)).map(place))
        {
            if from > at {
                gaps.push(at..from);
            }
            at = at.max(to);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
    }
}

impl All {
    /// Pieces that will be read are as new ones: under numbers that are not among the used, behind what is older.
    fn want(&mut self, own: &mut Own, range: &Range<u64>) {
        let first = own.pieces.range(..=range.start).next_back().map_or(range.start, |(from, _)| *from);
        for (from, piece) in own.pieces.range_mut(first..range.end.max(first)) {
            let size = piece.bytes.len() as u64;
            let wanted = range.end.min(from + size).saturating_sub(range.start.max(*from));
            piece.read = piece.read.min(size).saturating_sub(wanted);
            if wanted > 0
                && let Some(place) = self.places.remove(&piece.number)
            {
                piece.number = self.next;
                self.next += 1;
                self.places.insert(piece.number, place);
            }
        }
    }

    /// Drops pieces until no more than `most` bytes are left: those that were read, then the oldest before `first`.
    fn shrink(&mut self, most: u64, first: u64) {
        let mut kept = VecDeque::new();
        while self.bytes > most
            && let Some(number) = self.used.pop_front()
        {
            if self.places.contains_key(&number) && !self.drop_piece(number) {
                kept.push_back(number);
            }
        }
        kept.append(&mut self.used);
        self.used = kept;
        let mut from = 0;
        while self.bytes > most
            && let Some(number) = self.places.range(from..first).next().map(|(number, _)| *number)
        {
            self.drop_piece(number);
            from = number + 1;
        }
    }

    /// `false` where somebody reads it.
    fn drop_piece(&mut self, number: u64) -> bool {
        let Some(Place { own, start, size }) = self.places.get(&number) else { return true };
        let range = *start..*start + *size;
        if let Some(own) = own.upgrade() {
            let mut own = lock(&own);
            if own.reads.iter().any(|(_, read)| read.start < range.end && range.start < read.end) {
                return false;
            }
            if own.pieces.get(&range.start).is_some_and(|piece| piece.number == number) {
                own.pieces.remove(&range.start);
            }
        }
        self.bytes -= range.end - range.start;
        self.places.remove(&number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(all: &mut All, own: &Arc<Mutex<Own>>, start: u64) {
        let number = all.next;
        all.next += 1;
        all.bytes += 10;
        all.places.insert(number, Place { own: Arc::downgrade(own), start, size: 10 });
        let piece = Piece { bytes: Arc::new(vec![0; 10]), read: 0, number };
        lock(own).pieces.insert(start, piece);
    }

    #[test]
    fn pieces_that_were_read_go_first_then_the_oldest_and_none_that_is_being_read() {
        let (mut all, own) = (All::default(), Arc::default());
        for start in (0..80).step_by(10) {
            piece(&mut all, &own, start);
        }
        // All of one, and twice a part of another.
        for range in [30..40, 52..55, 52..59] {
            let (_, used) = lock(&own).parts(range).unwrap();
            all.used.extend(used);
        }
        lock(&own).reads.push((0, 15..16));
        let mut kept = |most: u64, first: u64| {
            all.shrink(most, first);
            assert_eq!(all.bytes, lock(&own).pieces.len() as u64 * 10);
            lock(&own).pieces.keys().copied().collect::<Vec<u64>>()
        };
        assert_eq!(kept(70, 8), [0, 10, 20, 40, 50, 60, 70]);
        assert_eq!(kept(60, 8), [0, 10, 20, 40, 60, 70]);
        assert_eq!(kept(40, 8), [10, 40, 60, 70]);
        // What was put last stays.
        assert_eq!(kept(0, 7), [10, 70]);
        lock(&own).reads.clear();
        assert_eq!(all_gone(&mut all), 0);
    }

    #[test]
    fn what_is_wanted_again_goes_when_it_was_read_again() {
        let (mut all, own) = (All::default(), Arc::default());
        for start in (0..60).step_by(10) {
            piece(&mut all, &own, start);
        }
        let read = |all: &mut All, range: Range<u64>| {
            let (_, used) = lock(&own).parts(range).unwrap();
            all.used.extend(used);
        };
        let kept = |all: &mut All, most: u64| {
            all.shrink(most, u64::MAX);
            lock(&own).pieces.keys().copied().collect::<Vec<u64>>()
        };
        [0..10, 10..20, 20..30].into_iter().for_each(|range| read(&mut all, range));
        // One, and a part of the next.
        all.want(&mut lock(&own), &(0..13));
        assert_eq!(kept(&mut all, 50), [0, 10, 30, 40, 50]);
        read(&mut all, 10..13);
        assert_eq!(kept(&mut all, 40), [0, 30, 40, 50]);
        all.want(&mut lock(&own), &(30..31));
        assert_eq!(kept(&mut all, 20), [0, 30]);
        assert_eq!(kept(&mut all, 10), [30]);
    }

    fn all_gone(all: &mut All) -> u64 {
        all.shrink(0, u64::MAX);
        all.bytes
    }

    #[test]
    fn pieces_that_overlap_are_one_after_the_other() {
        let pieces = Pieces::new(1 << 30);
        let _reading = pieces.reading(0..100);
        for (start, end) in [(10, 20), (30, 35), (5, 50), (0, 3), (12, 14)] {
            pieces.put(start, (start..end).map(|byte| byte as u8).collect());
        }
        let mut gaps = Vec::new();
        pieces.gaps(0..60, &mut gaps);
        assert_eq!(gaps, [3..5, 50..60]);
        let mut out = [0; 45];
        assert!(pieces.copy(5, &mut out) && out.iter().zip(5..).all(|(found, byte)| *found == byte));
        assert!(!pieces.copy(2, &mut out));
        assert_eq!(lock(pieces.own.get()).pieces.values().map(|piece| piece.bytes.len()).sum::<usize>(), 48);
    }
}
