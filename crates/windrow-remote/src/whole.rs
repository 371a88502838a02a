//! An object of a store that gives no ranges: all of it comes once, for whoever asks for a part.

use std::ops::Range;

use futures_util::StreamExt;
use windrow_core::store::without_secrets;
use windrow_core::{Error, Result};

use crate::attempt::{Attempts, Deadline, Known, check, or_packed};
use crate::backend::Backend;
use crate::held::Held;
use crate::stats::{Counters, add};
use crate::trouble::{Trouble, What};

/// What came is kept by parts of this size.
const PART: usize = 1 << 20;

/// One that asks for all of an object, while others wait for it.
#[derive(Default)]
pub(crate) struct Whole(tokio::sync::Mutex<bool>);

impl Whole {
    /// Has a range here, and all else of the object.
    ///
    /// # Errors
    /// `Unsupported` where there is no room for all of it; what the store says.
    pub(crate) async fn bring(
        &self,
        backend: &dyn Backend,
        known: &Known<'_>,
        range: &Range<u64>,
        held: &Held,
        deadline: Deadline,
        counters: &Counters,
    ) -> Result<()> {
        let is_here = || held.missing(range.start, range.end - range.start).is_empty();
        let mut was_told = self.0.lock().await;
        if is_here() {
            return Ok(());
        }
        if !held.takes_all() {
            return Err(no_ranges(known.url));
        }
        if !std::mem::replace(&mut was_told, true) {
            let url = without_secrets(known.url);
            log::info!("{url}: the server answers ranges with the whole object, which is fetched once");
        }
        let mut attempts = Attempts::new(deadline, counters, "read all of it", known.url);
        while let Err(trouble) = attempts.attempt(all(backend, known, held, counters)).await {
            attempts.after(or_packed(trouble, backend, known)).await?;
        }
        if is_here() { Ok(()) } else { Err(no_ranges(known.url)) }
    }
}

async fn all(
    backend: &dyn Backend,
    known: &Known<'_>,
    held: &Held,
    counters: &Counters,
) -> Result<(), Trouble> {
    let got = backend.whole(known.key, known.tag).await?;
    check(&got, known)?;
    let (mut body, mut at, mut bytes) = (got.body, 0, Vec::new());
    while let Some(part) = body.next().await {
        let part = part?;
        add(&counters.bytes, part.len() as u64);
        bytes.extend_from_slice(&part);
        if at + bytes.len() as u64 > known.size {
            return Err(Trouble::new(What::Changed, format!("expected {} bytes, found more", known.size)));
        }
        while bytes.len() >= PART {
            let rest = bytes.split_off(PART);
            held.put(at, std::mem::replace(&mut bytes, rest));
            at += PART as u64;
        }
    }
    let came = at + bytes.len() as u64;
    if came != known.size {
        return Err(Trouble::passing(format!("the body was cut after {came} of {} bytes", known.size)));
    }
    if !bytes.is_empty() {
        held.put(at, bytes);
    }
    Ok(())
}

/// The error of one whose parts nobody gives.
pub(crate) fn no_ranges(url: &str) -> Error {
    Trouble::new(What::NoRanges, "").into_error("read it", url)
}
