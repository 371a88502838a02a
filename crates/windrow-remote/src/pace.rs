//! How fast a store answers, and a second request beside a late one: one whose first byte, or whose bytes, come far later than usual.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{Either, select};

use crate::backend::{Backend, Body, Bytes, Got};
use crate::checksum::Checksum;
use crate::known::{Known, check};
use crate::stats::{Counters, add};
use crate::trouble::Trouble;

/// How long answers take and how fast bytes come, as this store answered last.
#[derive(Default)]
pub(crate) struct Pace(Mutex<Times>);

#[derive(Default)]
struct Times {
    first_bytes: VecDeque<f64>,
    /// Bytes a second, from the question on.
    rates: VecDeque<f64>,
    asked: u64,
    hedged: u64,
}

/// What is late is looked at so often.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// An answer is late after this time, where too few have come to say what is usual.
const UNKNOWN: Duration = Duration::from_secs(5);
/// Late is what takes this many times as long as is usual.
const LATE: f64 = 8.0;
/// Nothing is late before this time.
const SOONEST: Duration = Duration::from_secs(1);

impl Pace {
    const KEPT: usize = 100;
    /// Answers that say what is usual, at least.
    const ENOUGH: usize = 4;
    /// Of this number of requests one may be sent twice.
    const SHARE: u64 = 50;

    fn times<T>(&self, look: impl FnOnce(&mut Times) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    // After this time an answer is late.
    fn late(&self) -> Duration {
        let usual = self.times(|times| middle(&times.first_bytes));
        usual.map_or(UNKNOWN, |secs| Duration::from_secs_f64(secs * LATE).max(SOONEST))
    }

    // Bytes a second below which a body is late; `None` where too few have come.
    fn least_rate(&self) -> Option<f64> {
        self.times(|times| middle(&times.rates)).map(|usual| usual / LATE)
    }

    fn may_hedge(&self) -> bool {
        self.times(|times| {
            let may = (times.hedged + 1) * Pace::SHARE <= times.asked.max(Pace::SHARE);
            times.hedged += u64::from(may);
            may
        })
    }

    fn answered(&self, time: Duration) {
        self.times(|times| keep(&mut times.first_bytes, time.as_secs_f64()));
    }

    fn brought(&self, bytes: u64, time: Duration) {
        let rate = bytes as f64 / time.as_secs_f64().max(1e-6);
        self.times(|times| keep(&mut times.rates, rate));
    }
}

fn keep(last: &mut VecDeque<f64>, one: f64) {
    last.push_back(one);
    if last.len() > Pace::KEPT {
        last.pop_front();
    }
}

fn middle(of: &VecDeque<f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = of.iter().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    (sorted.len() >= Pace::ENOUGH).then(|| sorted[sorted.len() / 2])
}

/// The answer to a range; where it is late, the one to a second request that runs beside the first may come before it.
pub(crate) async fn first_byte(
    backend: &dyn Backend,
    known: &Known<'_>,
    range: Range<u64>,
    counters: &Counters,
    pace: &Pace,
) -> Result<Got, Trouble> {
    let start = Instant::now();
    pace.times(|times| times.asked += 1);
    let ask = || match range {
        Range { start: 0, end } if end == known.size => backend.all(known.key, end, known.tag),
        _ => backend.get(known.key, range.clone(), known.tag),
    };
    let mut first = ask();
    let answer = loop {
        // What is usual may become known while this one waits.
        let left = pace.late().saturating_sub(start.elapsed());
        if let Ok(answer) = tokio::time::timeout(left.min(BETWEEN_LOOKS), &mut first).await {
            break answer;
        }
        if start.elapsed() < pace.late() {
            continue;
        }
        if !pace.may_hedge() {
            break first.await;
        }
        add(&counters.requests, 1);
        add(&counters.hedged, 1);
        break either(first, ask()).await;
    };
    if answer.is_ok() {
        pace.answered(start.elapsed());
    }
    answer
}

// The first answer of two that is no trouble.
async fn either<T>(
    one: impl Future<Output = Result<T, Trouble>>,
    other: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    match select(pin!(one), pin!(other)).await {
        Either::Left((Ok(answer), _)) | Either::Right((Ok(answer), _)) => Ok(answer),
        Either::Left((Err(_), other)) => other.await,
        Either::Right((Err(_), one)) => one.await,
    }
}

/// What of a range is here.
#[derive(Default)]
pub(crate) struct Came {
    pub(crate) bytes: Vec<u8>,
    /// Of all bytes of the object, where these will be all.
    pub(crate) checksum: Option<Checksum>,
}

/// The bytes of a range behind those that are here. Where they come far slower than usual, those of a second request, which begins
/// where the first is, may come before the rest of it.
pub(crate) async fn more_bytes(
    backend: &dyn Backend,
    known: &Known<'_>,
    range: Range<u64>,
    Came { bytes, checksum }: &mut Came,
    counters: &Counters,
    pace: &Pace,
) -> Result<(), Trouble> {
    let (size, before) = ((range.end - range.start) as usize, bytes.len());
    let start = Instant::now();
    let got = first_byte(backend, known, range.start + before as u64..range.end, counters, pace).await?;
    check(&got, known)?;
    if got.checksum.is_some() {
        *checksum = got.checksum;
    }
    let mut body = got.body;
    let flowing = Instant::now();
    loop {
        let came = (bytes.len() - before) as u64;
        match part_in_time(&mut body, came, flowing, pace).await {
            // One that promised more than was asked for is believed in nothing: there is no rest to ask for.
            InTime::Part(Err(trouble)) if bytes.len() == size => {
                bytes.clear();
                return Err(trouble);
            }
            InTime::Part(part) => {
                let part = part?;
                add(&counters.bytes, part.len() as u64);
                if bytes.len() + part.len() > size {
                    bytes.clear();
                    return Err(too_much());
                }
                bytes.extend_from_slice(&part);
            }
            InTime::End => break,
            InTime::Late => {
                let from = range.start + bytes.len() as u64;
                add(&counters.requests, 1);
                add(&counters.hedged, 1);
                let other = async {
                    let got = backend.get(known.key, from..range.end, known.tag).await?;
                    check(&got, known)?;
                    rest(got.body, range.end - from, counters).await
                };
                bytes.extend(either(rest(body, range.end - from, counters), other).await?);
                break;
            }
        }
    }
    if bytes.len() != size {
        return Err(cut(bytes.len(), size));
    }
    pace.brought((size - before) as u64, start.elapsed());
    Ok(())
}

fn too_much() -> Trouble {
    Trouble::passing("more bytes came than were asked for")
}

fn cut(found: usize, size: usize) -> Trouble {
    Trouble::passing(format!("the body was cut after {found} of {size} bytes"))
}

// All of a body of this size.
async fn rest(mut body: Body, size: u64, counters: &Counters) -> Result<Vec<u8>, Trouble> {
    let size = size as usize;
    let mut bytes = Vec::new();
    while let Some(part) = body.next().await {
        let part = part?;
        add(&counters.bytes, part.len() as u64);
        bytes.extend_from_slice(&part);
        if bytes.len() > size {
            return Err(too_much());
        }
    }
    if bytes.len() == size { Ok(bytes) } else { Err(cut(bytes.len(), size)) }
}

/// What a body gives next.
enum InTime {
    Part(Result<Bytes, Trouble>),
    End,
    /// Too little has come since it began to flow, and a second request may be made.
    Late,
}

async fn part_in_time(body: &mut Body, came: u64, flowing: Instant, pace: &Pace) -> InTime {
    // How long from now until too little has come.
    let left = || {
        let usual = Duration::from_secs_f64(came as f64 / pace.least_rate()?.max(1.0));
        Some((SOONEST + usual).saturating_sub(flowing.elapsed()))
    };
    loop {
        let is_late = left().is_some_and(|left| left.is_zero());
        if is_late && pace.may_hedge() {
            return InTime::Late;
        }
        let wait = if is_late {
            SOONEST
        } else {
            left().unwrap_or(BETWEEN_LOOKS).clamp(Duration::from_millis(1), BETWEEN_LOOKS)
        };
        match tokio::time::timeout(wait, body.next()).await {
            Ok(Some(part)) => return InTime::Part(part),
            Ok(None) => return InTime::End,
            Err(_) => {}
        }
    }
}
