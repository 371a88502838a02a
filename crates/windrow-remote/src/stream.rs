//! An object as its bytes come, for whoever keeps them: from a byte on to its end, over one connection.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use windrow_core::stop::{self, BETWEEN_QUESTIONS};
use windrow_core::store::Entry;
use windrow_core::{Error, Kind, Result};

use crate::attempt::{Attempts, Deadline, Known, check, first_byte, hint_of_time};
use crate::backend::{Backend, Body, Got};
use crate::checksum::{Checksum, Sum};
use crate::net;
use crate::place::Place;
use crate::store::Remote;
use crate::trouble::{Trouble, What};
use crate::url::Scheme;

/// Why bytes stopped coming.
enum Broken {
    /// In the store, or on the way to it.
    Trouble(Trouble),
    /// What asking again does not mend.
    Error(Error),
}

impl From<Trouble> for Broken {
    fn from(trouble: Trouble) -> Broken {
        Broken::Trouble(trouble)
    }
}

impl From<Error> for Broken {
    fn from(error: Error) -> Broken {
        Broken::Error(error)
    }
}

impl Remote {
    /// Hands an object over from byte `start` to its end: to `take`, each part as it comes with the byte it begins at, which is where
    /// the last one ended. A connection that breaks or is silent continues there; the time that is allowed counts from the last byte that
    /// came. Of a server that gives no ranges they come from byte 0 again, as they do where they were not those that the store has the
    /// checksum of. Nothing is kept here.
    ///
    /// Gives the XXH3-64 that the object's writer left beside it, where the store has one.
    ///
    /// # Errors
    /// `Stale` where the object was replaced since it was listed; `Corrupt` where the Hub sends another number of bytes than it
    /// lists, or bytes have another checksum than the store's each time; `NotFound`; `Io`; `Interrupted`; what `take` says.
    pub fn stream(
        &self,
        entry: &Entry,
        start: u64,
        take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<Option<String>> {
        let place = self.place();
        let (backend, url) = (place.backend()?, place.url(&entry.key));
        let is_hub = place.location().scheme == Scheme::Hf;
        // What the Hub lists is a hash of the content, which no answer names.
        let tag = entry.tag.as_deref().filter(|_| !is_hub);
        let known = Known { key: &entry.key, url: &url, size: entry.size, tag };
        let kind = if is_hub { Kind::Corrupt } else { Kind::Stale };
        net::runtime()?.block_on(async {
            let bytes = pin!(all(place, backend.as_ref(), &known, kind, start, take));
            let stopped = pin!(async {
                loop {
                    tokio::time::sleep(BETWEEN_QUESTIONS).await;
                    if let Err(stopped) = stop::go_on() {
                        return stopped;
                    }
                }
            });
            match select(bytes, stopped).await {
                Either::Left((done, _)) => done,
                Either::Right((stopped, _)) => Err(stopped.at(&url)),
            }
        })
    }
}

async fn all(
    place: &Place,
    backend: &dyn Backend,
    known: &Known<'_>,
    kind: Kind,
    mut at: u64,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Option<String>> {
    let counters = place.counters.get().clone();
    let timeout = place.options.timeout;
    let mut attempts = Attempts::new(Deadline::within(timeout), &counters, "read it", known.url);
    let (mut furthest, mut hash) = (at, None);
    let silence = Duration::from_secs(30).min(timeout / 4);
    // Of the bytes so far, where the first one is among them.
    let mut sum: Option<(Sum, Checksum)> = None;
    loop {
        while at < known.size {
            let asked = first_byte(backend, known, at..known.size, &counters, &place.pace);
            let done = match attempts.attempt(asked).await {
                Ok(got) => {
                    hash = got.hash.clone();
                    if at == 0 {
                        sum = got.checksum.clone().map(|with| (Sum::new(&with), with));
                    }
                    let mut summed = |at: u64, part: &[u8]| {
                        sum.iter_mut().for_each(|(sum, _)| sum.update(part));
                        take(at, part)
                    };
                    match of_this(got, known, kind) {
                        Ok(body) => poured(body, known, (silence, timeout), &mut at, &mut summed).await,
                        Err(broken) => Err(broken),
                    }
                }
                Err(Trouble { what: What::NoRanges, .. }) if at > 0 => {
                    at = 0;
                    continue;
                }
                Err(Trouble { what: What::NoRanges, .. }) => {
                    Err(Broken::Error(other_size(kind, "more", known)))
                }
                Err(trouble) => Err(trouble.into()),
            };
            if at > furthest {
                furthest = at;
                attempts.again_within(timeout);
            }
            match done {
                Ok(()) => {}
                Err(Broken::Error(error)) => return Err(error),
                Err(Broken::Trouble(trouble)) => attempts.after(trouble).await?,
            }
        }
        let Some(Err(damaged)) = sum.take().map(|(sum, with)| sum.check(&with)) else {
            return Ok(hash);
        };
        attempts.after(damaged).await?;
        (at, furthest) = (0, 0);
    }
}

// The body of an answer that is of the size and version that are known.
fn of_this(got: Got, known: &Known<'_>, kind: Kind) -> Result<Body, Broken> {
    match got.total {
        Some(total) if total != known.size => Err(other_size(kind, &total.to_string(), known).into()),
        _ => check(&got, known).map(|()| got.body).map_err(Broken::from),
    }
}

fn other_size(kind: Kind, found: &str, known: &Known<'_>) -> Error {
    Error::new(kind, format!("expected {} bytes, as listed; the server sends {found}", known.size))
        .at(known.url)
        .hint("list it again, which is to run the same again")
}

// All of a body, or up to where it breaks: `at` says how far it came.
async fn poured(
    mut body: Body,
    known: &Known<'_>,
    (silence, timeout): (Duration, Duration),
    at: &mut u64,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<(), Broken> {
    // What only drips is no progress: so much is to come in the time that a read is given.
    const PROGRESS: u64 = 64 << 10;
    let mut since = (Instant::now(), *at);
    loop {
        if *at - since.1 >= PROGRESS {
            since = (Instant::now(), *at);
        }
        if since.0.elapsed() > timeout {
            let said = format!("only {} bytes came in {} s", *at - since.1, timeout.as_secs());
            return Err(Error::new(Kind::Io, said).at(known.url).hint(hint_of_time(known.url)).into());
        }
        let next = tokio::time::timeout(silence, body.next()).await;
        let part = match next.map_err(|_| Trouble::passing("the connection is silent"))? {
            Some(part) => part?,
            None if *at == known.size => return Ok(()),
            None => {
                let said = format!("the body was cut after {at} of {} bytes", known.size);
                return Err(Trouble::passing(said).into());
            }
        };
        if part.len() as u64 > known.size - *at {
            return Err(Error::corrupt(format!("expected {} bytes, the server sends more", known.size))
                .at(known.url)
                .into());
        }
        take(*at, &part)?;
        *at += part.len() as u64;
    }
}
