//! One question to a store, asked until it is answered: what may fix itself is tried again, until the time is over.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use windrow_core::store::{text_without_secrets, without_secrets};
use windrow_core::{Error, Kind, Result};

use crate::backend::{Backend, Got};
use crate::stats::{Counters, add};
use crate::trouble::{Trouble, What};

/// The first wait; doubled with each attempt, and drawn at random from 0 to that: attempts of many ranks spread.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Until when attempts go on.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    given: Duration,
}

impl Deadline {
    pub(crate) fn within(given: Duration) -> Deadline {
        Deadline { at: Instant::now() + given, given }
    }

    fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// The attempts at one thing: each is given the time that is left, and between two is a wait.
pub(crate) struct Attempts<'a> {
    deadline: Deadline,
    counters: &'a Counters,
    doing: &'a str,
    url: &'a str,
    done: u32,
    /// Whether a message said that it takes long.
    reported: bool,
}

/// After this time a message says what is waited for.
const LONG: Duration = Duration::from_secs(10);

impl<'a> Attempts<'a> {
    pub(crate) fn new(
        deadline: Deadline,
        counters: &'a Counters,
        doing: &'a str,
        url: &'a str,
    ) -> Attempts<'a> {
        Attempts { deadline, counters, doing, url, done: 0, reported: false }
    }

    /// Counts from 0 again: something came.
    pub(crate) fn again_within(&mut self, given: Duration) {
        (self.deadline, self.done) = (Deadline::within(given), 0);
    }

    /// One attempt.
    pub(crate) async fn attempt<T>(
        &mut self,
        asked: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        self.done += 1;
        add(&self.counters.requests, 1);
        log::debug!("{}: asked to {}", without_secrets(self.url), self.doing);
        match tokio::time::timeout(self.deadline.left(), asked).await {
            Ok(answer) => answer,
            Err(_) => Err(Trouble::passing("no answer in time")),
        }
    }

    /// Waits until it is time for the next one.
    ///
    /// # Errors
    /// What the trouble is, where it does not pass or the time is over.
    pub(crate) async fn after(&mut self, trouble: Trouble) -> Result<()> {
        let What::Passing(asked) = trouble.what else { return Err(trouble.into_error(self.doing, self.url)) };
        let backoff =
            FIRST_WAIT.saturating_mul(1 << self.done.min(16)).min(LONGEST_WAIT).mul_f64(fastrand::f64());
        let wait = asked.unwrap_or(backoff);
        if wait >= self.deadline.left() {
            return Err(given_up(trouble, self.doing, self.url, self.done, self.deadline.given));
        }
        let waited = self.deadline.given.saturating_sub(self.deadline.left());
        if waited + wait > LONG && !self.reported {
            self.reported = true;
            windrow_core::warn!(
                "{}: no answer for {} s, trying for {} s: {}",
                without_secrets(self.url),
                (waited + wait).as_secs(),
                self.deadline.given.as_secs(),
                text_without_secrets(&trouble.said)
            );
        }
        let (url, said) = (without_secrets(self.url), text_without_secrets(&trouble.said));
        log::debug!("{url}: asked again in {} ms, after attempt {}: {said}", wait.as_millis(), self.done);
        add(&self.counters.retries, 1);
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

fn given_up(trouble: Trouble, doing: &str, url: &str, attempts: u32, given: Duration) -> Error {
    let last = trouble.into_error(doing, url);
    Error::new(
        Kind::Io,
        format!("{}; gave up after {attempts} attempts in {} s", last.message(), given.as_secs()),
    )
    .at(url)
    .hint(if url.starts_with("hf://") {
        "the Hub or the network is failing: is HF_ENDPOINT right? A longer @timeout@ waits longer"
    } else {
        "the store or the network is failing; a longer @timeout@ waits longer"
    })
}

/// What is known of the object that is read.
pub(crate) struct Known<'a> {
    pub(crate) key: &'a str,
    pub(crate) url: &'a str,
    pub(crate) size: u64,
    pub(crate) tag: Option<&'a str>,
}

/// The bytes of a range. A body that is cut continues where it ended.
pub(crate) async fn bytes(
    backend: &dyn Backend,
    known: &Known<'_>,
    range: Range<u64>,
    deadline: Deadline,
    counters: &Counters,
    pace: &Pace,
) -> Result<Vec<u8>> {
    let size = usize::try_from(range.end - range.start)
        .map_err(|_| Error::unsupported("a range that this machine cannot hold").at(known.url))?;
    let mut bytes = Vec::new();
    // Sizes come from requests of ours, which stay below those of the object.
    bytes.try_reserve_exact(size).map_err(|_| Error::memory(format!("{size} bytes of {}", known.url)))?;
    let doing = format!("read bytes {} to {}", range.start, range.end);
    let mut attempts = Attempts::new(deadline, counters, &doing, known.url);
    loop {
        let asked = more_bytes(backend, known, range.clone(), &mut bytes, counters, pace);
        match attempts.attempt(asked).await {
            Ok(()) => return Ok(bytes),
            Err(trouble) => attempts.after(trouble).await?,
        }
    }
}

// Those of a range that are not there yet.
async fn more_bytes(
    backend: &dyn Backend,
    known: &Known<'_>,
    range: Range<u64>,
    bytes: &mut Vec<u8>,
    counters: &Counters,
    pace: &Pace,
) -> Result<(), Trouble> {
    let size = (range.end - range.start) as usize;
    let left = range.start + bytes.len() as u64..range.end;
    let got = first_byte(backend, known, left, counters, pace).await;
    let got = got.map_err(|trouble| or_packed(trouble, backend, known))?;
    check(&got, known).map_err(|trouble| or_packed(trouble, backend, known))?;
    let mut body = got.body;
    while let Some(part) = body.next().await {
        let part = part?;
        add(&counters.bytes, part.len() as u64);
        if bytes.len() + part.len() > size {
            bytes.clear();
            return Err(Trouble::passing("more bytes came than were asked for"));
        }
        bytes.extend_from_slice(&part);
    }
    if bytes.len() == size {
        Ok(())
    } else {
        Err(Trouble::passing(format!("the body was cut after {} of {size} bytes", bytes.len())))
    }
}

// Whether the answer is of the version that is known.
pub(crate) fn check(got: &Got, known: &Known<'_>) -> Result<(), Trouble> {
    if let (Some(found), Some(expected)) = (&got.tag, known.tag)
        && found != expected
    {
        return Err(Trouble::new(What::Changed, format!("expected version {expected}, found {found}")));
    }
    match got.total {
        Some(total) if total != known.size => {
            Err(Trouble::new(What::Changed, format!("expected {} bytes, found {total}", known.size)))
        }
        _ => Ok(()),
    }
}

// A server that packs what it sends, and says how large it is unpacked.
fn or_packed(trouble: Trouble, backend: &dyn Backend, known: &Known<'_>) -> Trouble {
    match (trouble.what, backend.encoding(known.key)) {
        (What::Changed | What::NoRanges, Some(encoding)) => Trouble::new(What::Encoded, encoding),
        _ => trouble,
    }
}

/// How long first bytes take, to tell a slow one.
#[derive(Default)]
pub(crate) struct Pace(Mutex<Times>);

#[derive(Default)]
struct Times {
    last: VecDeque<Duration>,
    asked: u64,
    hedged: u64,
}

impl Pace {
    const KEPT: usize = 100;
    /// One request in this number may be sent twice.
    const SHARE: u64 = 50;

    // After so long the answer is late: 8 times what is usual, and a second at least.
    fn late(&self) -> Option<Duration> {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.asked += 1;
        if times.last.len() < 10 {
            return None;
        }
        let mut sorted: Vec<Duration> = times.last.iter().copied().collect();
        sorted.sort_unstable();
        Some((sorted[sorted.len() / 2] * 8).max(Duration::from_secs(1)))
    }

    fn may_hedge(&self) -> bool {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let may = (times.hedged + 1) * Pace::SHARE <= times.asked.max(Pace::SHARE);
        times.hedged += u64::from(may);
        may
    }

    fn took(&self, time: Duration) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.last.push_back(time);
        if times.last.len() > Pace::KEPT {
            times.last.pop_front();
        }
    }
}

// The answer to a range; where it is late, the one to a second request that runs beside the first may come before it.
pub(crate) async fn first_byte(
    backend: &dyn Backend,
    known: &Known<'_>,
    range: Range<u64>,
    counters: &Counters,
    pace: &Pace,
) -> Result<Got, Trouble> {
    let start = Instant::now();
    let ask = || backend.get(known.key, range.clone(), known.tag);
    let mut first = ask();
    let answer = match pace.late() {
        None => first.await,
        Some(late) => match tokio::time::timeout(late, &mut first).await {
            Ok(answer) => answer,
            Err(_) if !pace.may_hedge() => first.await,
            Err(_) => {
                add(&counters.requests, 1);
                add(&counters.hedged, 1);
                match futures_util::future::select(first, ask()).await {
                    futures_util::future::Either::Left((Ok(answer), _)) => Ok(answer),
                    futures_util::future::Either::Left((Err(_), other)) => other.await,
                    futures_util::future::Either::Right((Ok(answer), _)) => Ok(answer),
                    futures_util::future::Either::Right((Err(_), other)) => other.await,
                }
            }
        },
    };
    if answer.is_ok() {
        pace.took(start.elapsed());
    }
    answer
}
