//! One question to a store, asked until it is answered: what may fix itself is tried again, until the time is over.

use std::ops::Range;
use std::time::{Duration, Instant};

use windrow_core::store::{text_without_secrets, without_secrets};
use windrow_core::{Error, Kind, Result};

use crate::backend::Backend;
pub(crate) use crate::known::{Known, check, or_packed};
use crate::pace::{Came, more_bytes};
pub(crate) use crate::pace::{Pace, first_byte};
use crate::stats::{Counters, add};
use crate::trouble::{Trouble, What};

/// The first wait; doubled with each attempt, and drawn at random from 0 to that: attempts of many ranks spread.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Bytes that come with another checksum than the store's are asked for so often: what is damaged in the store stays so.
const DAMAGED: u32 = 4;

/// With less time than this left, nothing is asked again.
const TOO_SHORT: Duration = Duration::from_millis(50);

/// Until when attempts go on.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    began: Instant,
    given: Duration,
}

impl Deadline {
    pub(crate) fn within(given: Duration) -> Deadline {
        Deadline { began: Instant::now(), given }
    }

    /// Of a call that brings so much that each part has a time of its own.
    pub(crate) fn of_parts() -> Deadline {
        Deadline::within(Duration::MAX)
    }

    pub(crate) fn left(&self) -> Duration {
        self.given.saturating_sub(self.began.elapsed())
    }

    /// The error of whoever waited until then for bytes that others were asked for.
    pub(crate) fn over(&self, url: &str) -> Error {
        let said = format!("the bytes did not come in {}", secs(self.began.elapsed()));
        Error::new(Kind::Io, said).at(url).hint(hint_of_time(url))
    }
}

// As a person counts them.
fn secs(time: Duration) -> String {
    match time.as_secs_f64() {
        secs if secs < 9.95 => format!("{secs:.1} s"),
        secs => format!("{secs:.0} s"),
    }
}

/// The attempts at one thing: each is given the time that is left, and between two is a wait.
pub(crate) struct Attempts<'a> {
    deadline: Deadline,
    counters: &'a Counters,
    doing: &'a str,
    url: &'a str,
    done: u32,
    damaged: u32,
    /// What was said of the attempt before.
    said: Option<String>,
    /// Somebody was told that it takes long.
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
        Attempts { deadline, counters, doing, url, done: 0, damaged: 0, said: None, reported: false }
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
            Err(_) => Err(Trouble::passing(match self.said.take() {
                Some(before) => format!("no answer in time; to the attempt before: {before}"),
                None => "no answer in time".to_string(),
            })),
        }
    }

    /// Waits until it is time for the next one.
    ///
    /// # Errors
    /// What the trouble is, where it does not pass or the time is over.
    pub(crate) async fn after(&mut self, trouble: Trouble) -> Result<()> {
        self.damaged += u32::from(trouble.what == What::Damaged);
        let asked = match trouble.what {
            What::Passing(asked) => asked,
            What::Damaged if self.damaged < DAMAGED && self.deadline.left() >= TOO_SHORT => None,
            _ => return Err(trouble.into_error(self.doing, self.url)),
        };
        let backoff =
            FIRST_WAIT.saturating_mul(1 << self.done.min(16)).min(LONGEST_WAIT).mul_f64(fastrand::f64());
        let left = self.deadline.left();
        if left < TOO_SHORT || asked.is_some_and(|asked| asked >= left) {
            return Err(self.given_up(trouble, asked));
        }
        // All of the time is used: the last waits are shorter.
        let wait = asked.unwrap_or_else(|| backoff.min(left.mul_f64(0.75)));
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
        self.said = Some(trouble.said);
        tokio::time::sleep(wait).await;
        Ok(())
    }

    // `asked` is the wait that the store asks for.
    fn given_up(&self, trouble: Trouble, asked: Option<Duration>) -> Error {
        let last = trouble.into_error(self.doing, self.url);
        let attempts =
            if self.done == 1 { "1 attempt".to_string() } else { format!("{} attempts", self.done) };
        let passed = secs(self.deadline.began.elapsed());
        let why = asked.map_or_else(String::new, |wait| {
            format!(
                ": the store asks to wait for {} (Retry-After), {} are left",
                secs(wait),
                secs(self.deadline.left())
            )
        });
        Error::new(Kind::Io, format!("{}; gave up after {attempts} in {passed}{why}", last.message()))
            .at(self.url)
            .hint(hint_of_time(self.url))
    }
}

/// What helps where a store is too slow, or does not answer.
pub(crate) fn hint_of_time(url: &str) -> &'static str {
    if url.starts_with("hf://") {
        "the Hub or the network is failing: is HF_ENDPOINT right? A longer @timeout@ waits longer"
    } else {
        "the store or the network is failing; a longer @timeout@ waits longer"
    }
}

/// The bytes of a range; `None` of a store that gives no ranges. A body that is cut continues where it ended.
pub(crate) async fn bytes(
    backend: &dyn Backend,
    known: &Known<'_>,
    range: Range<u64>,
    deadline: Deadline,
    counters: &Counters,
    pace: &Pace,
) -> Result<Option<Vec<u8>>> {
    let size = usize::try_from(range.end - range.start)
        .map_err(|_| Error::unsupported("a range that this machine cannot hold").at(known.url))?;
    let mut came = Came::default();
    // Sizes come from requests of ours, which stay below those of the object.
    came.bytes
        .try_reserve_exact(size)
        .map_err(|_| Error::memory(format!("{size} bytes of {}", known.url)))?;
    let doing = format!("read bytes {} to {}", range.start, range.end);
    let mut attempts = Attempts::new(deadline, counters, &doing, known.url);
    loop {
        let asked = more_bytes(backend, known, range.clone(), &mut came, counters, pace);
        match attempts.attempt(asked).await.map_err(|trouble| or_packed(trouble, backend, known)) {
            Ok(()) => match came.checksum.as_ref().map_or(Ok(()), |checksum| checksum.check(&came.bytes)) {
                Ok(()) => return Ok(Some(came.bytes)),
                Err(damaged) => {
                    came.bytes.clear();
                    attempts.after(damaged).await?;
                }
            },
            Err(Trouble { what: What::NoRanges, .. }) => return Ok(None),
            Err(trouble) => attempts.after(trouble).await?,
        }
    }
}
