//! One version of one object, as this process has it: what is here, what is under way, and how the rest is asked for.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windrow_core::stop::{self, BETWEEN_QUESTIONS};
use windrow_core::store::ahead::Ahead;
use windrow_core::{Error, Kind, Result};

use crate::attempt::{self, Deadline, Known, Pace};
use crate::backend::Backend;
use crate::held::Held;
use crate::queue::{self, Fetch, Fetched};
use crate::ranges::{GAP, HERE, in_parts, joined, overlap, subtract};
use crate::stats::{Counters, add};
use crate::whole::Whole;

/// Objects up to this size are fetched whole.
const SMALL: u64 = 1 << 20;
/// The most that is asked for after a read that continues where the last one ended.
const FURTHEST: u64 = 8 << 20;

pub(crate) struct Copy {
    of: Parts,
    under_way: Mutex<Vec<Range<u64>>>,
    arrived: Condvar,
    whole: Whole,
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
            whole: Whole::default(),
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

    /// Asks once for all that is not here, where there is room for it. What goes again meanwhile comes when it is read.
    ///
    /// # Errors
    /// As [`Copy::bring`].
    pub(crate) fn bring_near(self: &Arc<Self>) -> Result<()> {
        if self.of.held.has_room() && !self.of.held.missing(0, self.of.size).is_empty() {
            self.ask_for(&(0..self.of.size), None, Deadline::of_parts())
        } else {
            Ok(())
        }
    }

    fn wait_for(self: &Arc<Self>, start: u64, size: u64) -> Result<()> {
        let deadline = Deadline::within(self.of.timeout);
        let (now, soon) = self.with_neighbours(start, size);
        let mut soon = Some(soon).filter(|soon| !soon.is_empty());
        loop {
            let missing = self.of.held.missing(now.start, now.end - now.start);
            let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return Ok(()) };
            if self.is_under_way(&missing) {
                self.wait_for_arrivals(&missing);
                stop::go_on()?;
                if deadline.left().is_zero() {
                    return Err(deadline.over(&self.of.url));
                }
                continue;
            }
            // What comes behind it need not be waited for.
            self.ask_for(&(first.start..last.end), soon.take(), deadline)?;
        }
    }

    fn ask_for(
        self: &Arc<Self>,
        now: &Range<u64>,
        soon: Option<Range<u64>>,
        deadline: Deadline,
    ) -> Result<()> {
        let waiters = queue::demand(self.clone(), in_parts(now))?;
        if let Some(soon) = soon {
            queue::ahead(self.clone(), in_parts(&soon))?;
        }
        for waiter in waiters {
            let found = waiter.wait(|| deadline.left().is_zero());
            found.unwrap_or_else(|| Err(Arc::new(deadline.over(&self.of.url)))).map_err(|e| e.again())?;
        }
        Ok(())
    }

    // What is waited for, and what is asked for beside it: of a small object all; after a read that continues where the last
    // one ended, twice as much as the last time.
    fn with_neighbours(&self, start: u64, size: u64) -> (Range<u64>, Range<u64>) {
        let end = start + size;
        let is_next = self.read_to.swap(end, Relaxed) == start && start > 0;
        if self.of.size <= SMALL {
            return (0..self.of.size, 0..0);
        }
        let window = if is_next { (self.window.load(Relaxed) * 2).clamp(256 << 10, FURTHEST) } else { 0 };
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
            log::debug!("not fetched ahead: {e:#}");
        }
    }

    fn is_under_way(&self, missing: &[Range<u64>]) -> bool {
        let under_way = self.under_way();
        let mut rest = Vec::new();
        missing.iter().for_each(|range| subtract(range.clone(), &under_way, &mut rest));
        rest.is_empty()
    }

    // Until something arrived, or could not be had.
    fn wait_for_arrivals(&self, missing: &[Range<u64>]) {
        let under_way = self.under_way();
        let still = |under_way: &Vec<Range<u64>>| {
            missing.iter().any(|range| under_way.iter().any(|other| overlap(other, range)))
        };
        if still(&under_way) {
            // A signal that was missed is not waited for.
            let _ = self.arrived.wait_timeout(under_way, BETWEEN_QUESTIONS);
        }
    }

    async fn fetched(&self, claimed: Vec<Claimed>) -> Result<()> {
        let mut first = Ok(());
        // Of all parts together: whoever asked for them waits for the last.
        let deadline = Deadline::within(self.of.timeout);
        for claimed in claimed {
            match self.part(&claimed.part, deadline).await {
                Err(e) if first.is_ok() => first = Err(e),
                Ok(()) | Err(_) => {}
            }
        }
        first
    }

    async fn part(&self, part: &Range<u64>, deadline: Deadline) -> Result<()> {
        let (backend, counters) = (self.of.backend.as_ref(), &self.of.counters);
        let (key, url, tag) = (&self.of.key, &self.of.url, self.of.tag.as_deref());
        let known = Known { key, url, size: self.of.size, tag };
        match attempt::bytes(backend, &known, part.clone(), deadline, counters, &self.of.pace).await? {
            Some(bytes) => self.of.held.put(part.start, bytes),
            None => self.whole.bring(backend, &known, part, &self.of.held, deadline, counters).await?,
        }
        Ok(())
    }

    fn claim(self: &Arc<Self>, range: &Range<u64>) -> Vec<Claimed> {
        let mut under_way = self.under_way();
        let mut parts = Vec::new();
        for missing in self.of.held.missing(range.start, range.end - range.start) {
            subtract(missing, &under_way, &mut parts);
        }
        // What is here or comes anyway between two parts costs less than a request of its own.
        let parts: Vec<Range<u64>> = joined(parts, HERE).iter().flat_map(in_parts).collect();
        under_way.extend(parts.iter().cloned());
        parts.into_iter().map(|part| Claimed { copy: self.clone(), part }).collect()
    }
}

impl Fetch for Copy {
    fn fetch(self: Arc<Self>, range: Range<u64>) -> Fetched {
        let claimed = self.claim(&range);
        Box::pin(async move { self.fetched(claimed).await })
    }
}

/// A part that one request asks for, until it is over: also where that panics or is never made.
struct Claimed {
    copy: Arc<Copy>,
    part: Range<u64>,
}

impl Drop for Claimed {
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
            log::debug!("not fetched ahead: {e:#}");
        }
    }
}

/// What reading says where the bytes went before they were read: they are fetched again.
pub(crate) fn gone(url: &str) -> Error {
    Error::new(Kind::Memory, "bytes that were fetched had no room until they were read")
        .at(url)
        .hint("raise @read_ahead@, or give the cache more room with @cache_limit@")
}
