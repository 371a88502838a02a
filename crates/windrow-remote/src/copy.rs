//! One version of one object, as this process has it: what is here, what is under way, and how the rest is asked for.

use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windrow_core::store::ahead::Ahead;
use windrow_core::{Error, Kind, Result};

use crate::attempt::{self, Deadline, Known, Pace};
use crate::backend::Backend;
use crate::held::Held;
use crate::queue::{self, Fetch};
use crate::stats::{Counters, add};

/// Ranges with a smaller gap between them are one request: at 30 ms and 85 MB/s a gap of 2.5 MB takes as long as a request.
const GAP: u64 = 1 << 20;
/// What is here between two parts that are not comes once more with them, up to this size.
const HERE: u64 = 64 << 10;
/// No request asks for more, but for a rest of up to [`HERE`], which is not worth one of its own.
const LARGEST: u64 = 16 << 20;
/// Objects up to this size are fetched whole.
const SMALL: u64 = 1 << 20;
/// What is asked for behind a read that goes on where the last one ended, at most.
const FURTHEST: u64 = 8 << 20;

pub(crate) struct Copy {
    of: Parts,
    under_way: Mutex<Vec<Range<u64>>>,
    arrived: Condvar,
    /// Where the last read ended, of reads that go on where the last one ended, how much is asked for behind them, and up to
    /// where that was.
    read_to: AtomicU64,
    window: AtomicU64,
    asked_to: AtomicU64,
}

/// Which object it is, how it is asked for, and what is here of it.
pub(crate) struct Parts {
    pub(crate) key: String,
    pub(crate) url: String,
    pub(crate) size: u64,
    pub(crate) tag: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) pace: Arc<Pace>,
    pub(crate) held: Held,
}

impl Copy {
    pub(crate) fn new(of: Parts) -> Copy {
        Copy {
            of,
            under_way: Mutex::default(),
            arrived: Condvar::new(),
            read_to: AtomicU64::new(u64::MAX),
            window: AtomicU64::new(0),
            asked_to: AtomicU64::new(0),
        }
    }

    /// Whether it is of this object, in this version.
    pub(crate) fn is_of(&self, key: &str, size: u64, tag: Option<&str>) -> bool {
        self.of.key == key && self.of.size == size && self.of.tag.as_deref() == tag
    }

    /// What of the object is here.
    pub(crate) fn held(&self) -> &Held {
        &self.of.held
    }

    /// Counts a read that found its bytes.
    pub(crate) fn hit(&self) {
        add(&self.of.counters.hits, 1);
    }

    fn under_way(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a range here; waits for it where it must be fetched.
    ///
    /// # Errors
    /// What the store says.
    pub(crate) fn bring(self: &Arc<Self>, start: u64, size: u64) -> Result<()> {
        if self.of.held.missing(start, size).is_empty() {
            add(&self.of.counters.hits, 1);
            self.go_on(start, start + size);
            return Ok(());
        }
        let began = Instant::now();
        add(&self.of.counters.misses, 1);
        let found = self.wait_for(start, size);
        add(&self.of.counters.waited_ns, began.elapsed().as_nanos() as u64);
        found
    }

    fn wait_for(self: &Arc<Self>, start: u64, size: u64) -> Result<()> {
        let (now, soon) = self.with_neighbours(start, size);
        let mut soon = Some(soon).filter(|soon| !soon.is_empty());
        loop {
            let missing = self.of.held.missing(now.start, now.end - now.start);
            let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return Ok(()) };
            if self.is_under_way(&missing) {
                self.wait_for_arrivals(&missing);
                continue;
            }
            // What comes behind it need not be waited for.
            self.ask_for(&(first.start..last.end), soon.take())?;
        }
    }

    fn ask_for(self: &Arc<Self>, now: &Range<u64>, soon: Option<Range<u64>>) -> Result<()> {
        let waiters: Vec<_> =
            in_parts(now).map(|part| queue::demand(self.clone(), part)).collect::<Result<_>>()?;
        if let Some(soon) = soon {
            queue::ahead(self.clone(), in_parts(&soon))?;
        }
        for waiter in waiters {
            waiter.wait().map_err(|e| copy_of(&e))?;
        }
        Ok(())
    }

    // What is waited for, and what is asked for beside it: of a small object all; behind a read that goes on where the last
    // one ended, twice as much as the last time.
    fn with_neighbours(&self, start: u64, size: u64) -> (Range<u64>, Range<u64>) {
        let end = start + size;
        let is_next = self.read_to.swap(end, Relaxed) == start && start > 0;
        if self.of.size <= SMALL {
            return (0..self.of.size, 0..0);
        }
        let window = match is_next {
            true => (self.window.load(Relaxed) * 2).clamp(256 << 10, FURTHEST),
            false => 0,
        };
        self.window.store(window, Relaxed);
        let further = end.saturating_add(window).min(self.of.size);
        self.asked_to.store(further, Relaxed);
        (start..end, end..further)
    }

    // A read that found its bytes, of those that go on where the last one ended: asks for more in time. Where reads go here and
    // there nothing is written, which threads side by side would feel.
    fn go_on(self: &Arc<Self>, start: u64, end: u64) {
        let window = self.window.load(Relaxed);
        if window == 0 || self.read_to.load(Relaxed) != start {
            return;
        }
        self.read_to.store(end, Relaxed);
        let asked = self.asked_to.load(Relaxed);
        if end.saturating_add(window / 2) < asked || asked >= self.of.size {
            return;
        }
        let window = (window * 2).min(FURTHEST);
        self.window.store(window, Relaxed);
        let further = asked.saturating_add(window).min(self.of.size);
        self.asked_to.store(further, Relaxed);
        if let Err(e) = queue::ahead(self.clone(), in_parts(&(asked..further))) {
            log::debug!("not fetched ahead: {e}");
        }
    }

    fn is_under_way(&self, missing: &[Range<u64>]) -> bool {
        let under_way = self.under_way();
        missing
            .iter()
            .all(|range| under_way.iter().any(|other| other.start <= range.start && range.end <= other.end))
    }

    // Until something arrived, or could not be had.
    fn wait_for_arrivals(&self, missing: &[Range<u64>]) {
        let under_way = self.under_way();
        let still = |under_way: &Vec<Range<u64>>| {
            missing.iter().any(|range| under_way.iter().any(|other| overlap(other, range)))
        };
        if still(&under_way) {
            // A signal that was missed is not waited for.
            let _ = self.arrived.wait_timeout(under_way, Duration::from_millis(500));
        }
    }

    async fn fetched(&self, range: Range<u64>) -> Result<()> {
        let mut first = Ok(());
        for part in self.claim(&range) {
            // Also where the request panics or is dropped.
            let claimed = Claimed { copy: self, part: part.clone() };
            let known = Known {
                key: &self.of.key,
                url: &self.of.url,
                size: self.of.size,
                tag: self.of.tag.as_deref(),
            };
            let deadline = Deadline::within(self.of.timeout);
            let bytes = attempt::bytes(
                self.of.backend.as_ref(),
                &known,
                part.clone(),
                deadline,
                &self.of.counters,
                &self.of.pace,
            )
            .await;
            match bytes {
                Ok(bytes) => self.of.held.put(part.start, bytes),
                Err(e) if first.is_ok() => first = Err(e),
                Err(_) => {}
            }
            drop(claimed);
        }
        first
    }

    fn claim(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut under_way = self.under_way();
        let mut parts = Vec::new();
        for missing in self.of.held.missing(range.start, range.end - range.start) {
            subtract(missing, &under_way, &mut parts);
        }
        // What is here or comes anyway between two parts costs less than a request of its own.
        let parts: Vec<Range<u64>> = joined(parts, HERE).iter().flat_map(in_parts).collect();
        under_way.extend(parts.iter().cloned());
        parts
    }
}

impl Fetch for Copy {
    fn fetch(self: Arc<Self>, range: Range<u64>) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> {
        Box::pin(async move { self.fetched(range).await })
    }
}

/// A part that one request asks for.
struct Claimed<'a> {
    copy: &'a Copy,
    part: Range<u64>,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.copy.under_way().retain(|other| *other != self.part);
        self.copy.arrived.notify_all();
    }
}

/// Ranges of steps to come, joined where they are near each other.
pub(crate) struct ToCome(pub(crate) Arc<Copy>);

impl Ahead for ToCome {
    fn ahead(&self, ranges: &[(u64, u64)]) {
        let copy = &self.0;
        let mut missing: Vec<Range<u64>> = Vec::new();
        for &(start, size) in ranges {
            let end = start.saturating_add(size).min(copy.of.size);
            if start < end {
                copy.of.held.want(start, end - start);
                missing.extend(copy.of.held.missing(start, end - start));
            }
        }
        let asked = queue::ahead(copy.clone(), joined(missing, GAP).iter().flat_map(in_parts));
        if let Err(e) = asked {
            log::debug!("not fetched ahead: {e}");
        }
    }
}

/// Ranges in order, joined where they meet, and over gaps up to `gap` while they stay below [`LARGEST`].
fn joined(mut ranges: Vec<Range<u64>>, gap: u64) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if range.start <= last.end
                    || range.start <= last.end.saturating_add(gap)
                        && range.end.max(last.end) - last.start <= LARGEST =>
            {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// A range in parts that one request may ask for.
fn in_parts(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let (start, end) = (range.start, range.end);
    // At least one part of what there is.
    let cut = (end - start).saturating_sub(HERE).max(u64::from(start < end));
    (0..cut.div_ceil(LARGEST)).map(move |part| {
        let at = start + part * LARGEST;
        at..if at + LARGEST + HERE >= end { end } else { at + LARGEST }
    })
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

// What of a range lies outside of all others.
fn subtract(range: Range<u64>, others: &[Range<u64>], out: &mut Vec<Range<u64>>) {
    let mut within: Vec<&Range<u64>> = others.iter().filter(|other| overlap(other, &range)).collect();
    within.sort_unstable_by_key(|other| other.start);
    let mut at = range.start;
    for other in within {
        if at < other.start {
            out.push(at..other.start);
        }
        at = at.max(other.end);
    }
    if at < range.end {
        out.push(at..range.end);
    }
}

// The same error for each that waited.
fn copy_of(error: &Error) -> Error {
    let mut copy = Error::new(error.kind(), error.message());
    if let Some(file) = &error.place().file {
        copy = copy.at(file);
    }
    if let Some(field) = &error.place().field {
        copy = copy.field(field.clone());
    }
    match error.hint_text() {
        Some(hint) => copy.hint(hint),
        None => copy,
    }
}

/// What reading says where the bytes went before they were read: they are fetched again.
pub(crate) fn gone(url: &str) -> Error {
    Error::new(Kind::Memory, "bytes that were fetched had no room until they were read")
        .at(url)
        .hint("raise read_ahead=, or give the cache more room with cache_limit=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_one_request() {
        assert_eq!(joined(vec![5..6, 0..1, 3 << 20..4 << 20], GAP), [0..6, 3 << 20..4 << 20]);
        assert_eq!(joined(vec![0..GAP, 2 * GAP..3 * GAP], GAP), vec![0..3 * GAP]);
        let far: Vec<Range<u64>> = (0..20).map(|i| i * GAP..i * GAP + 1).collect();
        assert_eq!(joined(far, GAP), [0..15 * GAP + 1, 16 * GAP..19 * GAP + 1]);
        let long: Vec<Range<u64>> = (0..40).map(|i| i * GAP..(i + 1) * GAP + 4).collect();
        assert_eq!(joined(long, GAP), vec![0..40 * GAP + 4]);
    }

    #[test]
    fn a_rest_is_no_request_of_its_own() {
        let parts = |range: Range<u64>| in_parts(&range).collect::<Vec<_>>();
        assert_eq!(parts(5..5), []);
        for end in [6, LARGEST + 5, LARGEST + HERE + 5] {
            assert_eq!(parts(5..end), vec![5..end]);
        }
        assert_eq!(parts(0..LARGEST + HERE + 1), [0..LARGEST, LARGEST..LARGEST + HERE + 1]);
        assert_eq!(
            parts(0..3 * LARGEST + 7),
            [0..LARGEST, LARGEST..2 * LARGEST, 2 * LARGEST..3 * LARGEST + 7]
        );
    }

    #[test]
    fn what_is_under_way_is_not_asked_for_again() {
        let mut out = Vec::new();
        subtract(0..10, &[2..3, 5..20, 30..40], &mut out);
        assert_eq!(out, [0..2, 3..5]);
    }
}
