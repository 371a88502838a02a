//! One version of one object, as this process has it: what is here, what is under way, and how the rest is asked for.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windrow_core::stop::{self, BETWEEN_QUESTIONS};
use windrow_core::store::ahead::{Ahead, Between};
use windrow_core::store::without_secrets;
use windrow_core::{Error, Kind, Result};

use crate::attempt::{self, Deadline, Known, Pace};
use crate::backend::Backend;
use crate::held::{Held, Turn};
use crate::queue::{self, Fetch, Fetched};
use crate::ranges::{GAP, Gaps, HERE, in_parts, joined, overlap, subtract};
use crate::seen::Seen;
use crate::stats::{Counters, add};
use crate::trouble::{Trouble, What};
use crate::whole::Whole;

/// Objects up to this size are fetched whole, where all is kept.
const SMALL: u64 = 1 << 20;
/// A read that was not announced is rounded to multiples of this, where all is kept: what is around it will be read, too. Objects up
/// to this size are fetched whole in any case.
const AROUND: u64 = 64 << 10;
/// And where not all is kept: several small reads in one place are one request.
const PAGE: u64 = 4096;
/// What comes with the last bytes of an object, so that what they point to needs no second request.
const FOOTER: u64 = 16 << 10;
/// Reads in a row that continue where the last one ended and were not announced, of an object whose reads are: after that many,
/// somebody reads it from front to end.
const IN_A_ROW: u64 = 8;
/// How long another process of this machine is waited for that fetches the same bytes: it may have been stopped.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long an object is not waited for again that was waited for in vain: whoever opens data looks at it as one format after the other.
const IN_VAIN: Duration = Duration::from_secs(1);
/// The most that is asked for after a read that continues where the last one ended.
const FURTHEST: u64 = 8 << 20;

pub(crate) struct Copy {
    of: Parts,
    under_way: Mutex<Vec<Range<u64>>>,
    arrived: Condvar,
    whole: Whole,
    /// Where the server names no version, what tells one from another.
    seen: Option<Seen>,
    /// Where the last read ended, of reads that go on where the last one ended, how much is asked for behind them, and up to
    /// where that was.
    read_to: AtomicU64,
    in_a_row: AtomicU64,
    window: AtomicU64,
    asked_to: AtomicU64,
    /// When it was last waited for in vain, and what was said.
    in_vain: Mutex<Option<(Instant, Error)>>,
    /// A loader says what is read soon: nothing else of the object is guessed.
    is_announced: AtomicBool,
    was_read: AtomicBool,
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
        let seen = of.tag.is_none().then(Seen::default);
        Copy {
            of,
            seen,
            under_way: Mutex::default(),
            arrived: Condvar::new(),
            whole: Whole::default(),
            read_to: AtomicU64::new(u64::MAX),
            in_a_row: AtomicU64::new(0),
            window: AtomicU64::new(0),
            asked_to: AtomicU64::new(0),
            in_vain: Mutex::default(),
            is_announced: AtomicBool::new(false),
            was_read: AtomicBool::new(false),
        }
    }

    /// Whether nobody has asked this before: one that is opened twice counts once.
    pub(crate) fn is_first_read(&self) -> bool {
        !self.was_read.swap(true, Relaxed)
    }

    /// Whether it is of this object, in this version.
    pub(crate) fn is_of(&self, key: &str, size: u64, tag: Option<&str>) -> bool {
        self.of.key == key && self.of.size == size && self.of.tag.as_deref() == tag
    }

    /// What of the object is here.
    pub(crate) fn held(&self) -> &Held {
        &self.of.held
    }

    /// Whether somebody says what of it is read soon.
    pub(crate) fn is_announced(&self) -> bool {
        self.is_announced.load(Relaxed)
    }

    /// Counts a read that found its bytes.
    pub(crate) fn hit(&self) {
        add(&self.of.counters.hits, 1);
    }

    /// Counts bytes that a read gave.
    pub(crate) fn gave(&self, bytes: usize) {
        add(&self.of.counters.read, bytes as u64);
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
        let found = match self.was_in_vain() {
            Some(error) => Err(error),
            None => self.wait_for(start, size),
        };
        if let Err(e) = &found
            && e.kind() == Kind::Io
            && began.elapsed() >= self.of.timeout / 2
        {
            *self.in_vain.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), e.again()));
        }
        add(&self.of.counters.waited_ns, began.elapsed().as_nanos() as u64);
        found
    }

    fn was_in_vain(&self) -> Option<Error> {
        let in_vain = self.in_vain.lock().unwrap_or_else(PoisonError::into_inner);
        in_vain.as_ref().filter(|(ended, _)| ended.elapsed() < IN_VAIN).map(|(_, error)| error.again())
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
        let (mut now, mut soon) = (Some(now), Some(soon).filter(|soon| !soon.is_empty()));
        loop {
            let missing = self.of.held.missing(start, size);
            if missing.is_empty() {
                return Ok(());
            }
            if self.is_under_way(&missing) {
                self.wait_for_arrivals(&missing);
                stop::go_on()?;
                if deadline.left().is_zero() {
                    return Err(deadline.over(&self.of.url));
                }
                continue;
            }
            // What is around it is asked for once: it may go before the rest is here. Where reads of a larger object are announced,
            // what is around it may be in a range that is wanted later, which would be waited for.
            let missing = match now.take() {
                Some(now) if !self.is_announced() || now == (0..self.of.size) => {
                    self.of.held.missing(now.start, now.end - now.start)
                }
                _ => missing,
            };
            if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
                // What comes behind it need not be waited for.
                self.ask_for(&(first.start..last.end), soon.take(), deadline)?;
            }
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
        let in_a_row = if is_next { self.in_a_row.load(Relaxed) + 1 } else { 0 };
        self.in_a_row.store(in_a_row, Relaxed);
        let now = self.around(&(start..end));
        if now == (0..self.of.size) {
            return (now, 0..0);
        }
        let least = if self.is_announced() { IN_A_ROW } else { 1 };
        let window =
            if in_a_row >= least { (self.window.load(Relaxed) * 2).clamp(256 << 10, FURTHEST) } else { 0 };
        self.window.store(window, Relaxed);
        let further = end.saturating_add(window).min(self.of.size);
        self.asked_to.store(further.max(now.end), Relaxed);
        let behind = now.end..further.max(now.end);
        (now, behind)
    }

    /// What a read asks for that was not announced: of a small object all, else what is around it.
    pub(crate) fn around(&self, range: &Range<u64>) -> Range<u64> {
        let keeps_all = self.of.held.keeps_all();
        if self.of.size <= if keeps_all { SMALL } else { AROUND } {
            return 0..self.of.size;
        }
        let is_tail = range.end == self.of.size;
        match (keeps_all, self.is_announced()) {
            // A file's last bytes say where what is before them begins.
            (true, false) if is_tail => range.start.min(self.of.size - AROUND)..range.end,
            (false, false) if is_tail => range.start.min(self.of.size - FOOTER)..range.end,
            (true, _) => self.rounded(range, AROUND),
            (false, false) => self.rounded(range, PAGE),
            (false, true) => range.clone(),
        }
    }

    // Outwards, within the object.
    fn rounded(&self, range: &Range<u64>, unit: u64) -> Range<u64> {
        let end = range.end.checked_next_multiple_of(unit).unwrap_or(self.of.size);
        range.start / unit * unit..end.min(self.of.size)
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
            let (parts, _turn) = self.left_to_fetch(&claimed.part).await;
            for part in parts {
                match self.part(&part, deadline).await {
                    Err(e) if first.is_ok() => first = Err(e),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        first
    }

    async fn part(&self, part: &Range<u64>, deadline: Deadline) -> Result<()> {
        let (backend, counters) = (self.of.backend.as_ref(), &self.of.counters);
        let (key, url, tag) = (&self.of.key, &self.of.url, self.of.tag.as_deref());
        let known = Known { key, url, size: self.of.size, tag };
        match attempt::bytes(backend, &known, part.clone(), deadline, counters, &self.of.pace).await? {
            Some(bytes) => {
                self.check_seen(part.start, &bytes)?;
                self.of.held.put(part.start, bytes);
                self.tell_of_too_much();
            }
            None => self.whole.bring(backend, &known, part, &self.of.held, deadline, counters).await?,
        }
        Ok(())
    }

    // Whether bytes are those that were there before, where no version says so.
    fn check_seen(&self, start: u64, bytes: &[u8]) -> Result<()> {
        match self.seen.as_ref().and_then(|seen| seen.differs(start, bytes)) {
            Some(at) => {
                let said = format!("other bytes from byte {at} on than when they were fetched first");
                Err(Trouble::new(What::Changed, said).into_error("read it", &self.of.url))
            }
            None => Ok(()),
        }
    }

    // What of a part this process has to fetch, in its turn: not what another one of this machine fetches meanwhile, as long as that
    // takes no longer than anybody waits.
    async fn left_to_fetch(&self, part: &Range<u64>) -> (Vec<Range<u64>>, Turn) {
        let until = Instant::now() + PATIENCE.min(self.of.timeout / 2);
        let mut pause = Duration::from_millis(1);
        let turn = loop {
            let turn = self.of.held.turn(part);
            if !matches!(turn, Turn::Other) || Instant::now() >= until {
                break turn;
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(BETWEEN_QUESTIONS);
            if self.of.held.missing(part.start, part.end - part.start).is_empty() {
                return (Vec::new(), turn);
            }
        };
        match turn {
            // It may have come between the look and the turn.
            Turn::Own { .. } => {
                (self.to_ask_for(self.of.held.missing(part.start, part.end - part.start)), turn)
            }
            Turn::Other | Turn::Unknown => (vec![part.clone()], turn),
        }
    }

    // What is here or comes anyway between two parts costs less than a request of its own.
    fn to_ask_for(&self, missing: Vec<Range<u64>>) -> Vec<Range<u64>> {
        let gaps = if self.of.held.keeps_all() { Gaps::UpTo(HERE) } else { Gaps::Few };
        joined(missing, gaps).iter().flat_map(in_parts).collect()
    }

    // What is fetched beside samples and kept is read later; where it is not, somebody pays for it.
    fn tell_of_too_much(&self) {
        if !self.is_announced() || self.of.held.keeps_all() {
            return;
        }
        if let Some((received, read)) = self.of.counters.too_much(self.of.held.memory()) {
            windrow_core::warn!(
                "{}: {received} bytes were received for {read} bytes that were read, and not all of the data is kept\n  \
                 hint: give @cache_limit@ and @read_ahead@ more room than the data takes, or read in another order: @shuffle=blocks@",
                without_secrets(&self.of.url)
            );
        }
    }

    fn claim(self: &Arc<Self>, range: &Range<u64>) -> Vec<Claimed> {
        let mut under_way = self.under_way();
        let mut parts = Vec::new();
        for missing in self.of.held.missing(range.start, range.end - range.start) {
            subtract(missing, &under_way, &mut parts);
        }
        let parts = self.to_ask_for(parts);
        under_way.extend(parts.iter().cloned());
        parts.into_iter().map(|part| Claimed { copy: self.clone(), part }).collect()
    }
}

impl Fetch for Copy {
    fn fetch(self: Arc<Self>, range: Range<u64>) -> Fetched {
        let claimed = self.claim(&range);
        Box::pin(async move { self.fetched(claimed).await })
    }

    fn is_coming(&self, range: &Range<u64>) -> bool {
        self.is_under_way(&self.of.held.missing(range.start, range.end - range.start))
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
    fn ahead(&self, ranges: &[(u64, u64)], between: Between) {
        let copy = &self.0;
        copy.is_announced.store(true, Relaxed);
        // Where not all is kept, what comes beside what is wanted comes in vain.
        let is_kept = between == Between::Likely && copy.of.held.keeps_all();
        let mut missing: Vec<Range<u64>> = Vec::new();
        for &(start, size) in ranges {
            let range = start..start.saturating_add(size).min(copy.of.size);
            if range.is_empty() {
                continue;
            }
            copy.of.held.want(range.start, range.end - range.start);
            let range = if is_kept { copy.rounded(&range, AROUND) } else { range };
            missing.extend(copy.of.held.missing(range.start, range.end - range.start));
        }
        let gaps = if is_kept { Gaps::UpTo(GAP) } else { Gaps::Few };
        let asked = queue::ahead(copy.clone(), joined(missing, gaps).iter().flat_map(in_parts));
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
