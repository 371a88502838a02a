//! Measures records for a scaler: once, on all cores, two numbers for what shares statistics.

use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::border::Border;
use super::channels::Channels;
use super::scaling::Scaling;
use super::{Source, floats};
use crate::error::{Error, Kind, Result};
use crate::record::Span;
use crate::store;
use crate::threads::{beside, cores};

/// Numbers taken in at a time, at most: they stay in the processor's cache.
const PART: u64 = 1 << 15;
/// Rows of statistics that are held until they are written.
const BLOCK: u64 = 1 << 15;
/// Records that a thread takes at a time.
const TAKE: usize = 64;

/// What is measured.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) scaling: &'a Scaling,
    /// Where the part of each record ends that is measured, where `fit` does not decide it.
    pub(super) until: Option<&'a Border>,
}

/// Writes what each record is scaled by: subtrahend and divisor, float64.
///
/// # Errors
/// What reading the records says; `Config` for a record without a value to fit; `Interrupted`.
pub(super) fn measure_all(of: Measured<'_>, stop: &dyn Fn() -> bool, out: &mut dyn Write) -> Result<()> {
    let Measured { source, scaling, .. } = of;
    log::info!("measuring {} records for the scaler {}", source.len(), scaling.scale.name());
    let unknown = AtomicU64::new(0);
    let mut rows = Vec::new();
    let mut start = 0;
    let width = scaling.rows_of(source.schema());
    while start < source.len() {
        let n = (BLOCK / width as u64).max(1).min(source.len() - start);
        rows.clear();
        rows.resize(n as usize * width, [0.0; 2]);
        measure_block(of, stop, start, &mut rows, &unknown)?;
        let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x: &f64| x.to_le_bytes()).collect();
        out.write_all(&bytes)
            .map_err(|e| Error::new(Kind::Io, "cannot write the statistics of the records").caused_by(e))?;
        start += n;
    }
    match unknown.into_inner() {
        0 => {}
        n => crate::warn!(
            "{n} of {} records have no finite value to be scaled by: nothing of them is learned",
            source.len()
        ),
    }
    Ok(())
}

// Each row is one record's, whoever computes it: the threads change nothing but the time.
fn measure_block(
    of: Measured<'_>,
    stop: &dyn Fn() -> bool,
    start: u64,
    rows: &mut [[f64; 2]],
    unknown: &AtomicU64,
) -> Result<()> {
    let Measured { source, scaling, until } = of;
    let width = scaling.rows_of(source.schema());
    let threads = cores().min(rows.len().div_ceil(TAKE * width));
    let parts = Mutex::new((start..).step_by(TAKE).zip(rows.chunks_mut(TAKE * width)));
    let ended = AtomicBool::new(false);
    let work = |stop: &dyn Fn() -> bool| -> Result<()> {
        let channels = Channels::new(scaling);
        let mut measure = Measure { source, until, channels, scratch: Vec::new(), values: Vec::new() };
        loop {
            // An iterator is whole between calls, so a poisoned lock is still a good one.
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((first, part)) = next else { return Ok(()) };
            for (rows, record) in part.chunks_mut(width).zip(first..) {
                let done = measure.record(record, rows, &|| ended.load(Ordering::Relaxed) || stop());
                match done {
                    Ok(known) => {
                        unknown.fetch_add(u64::from(!known), Ordering::Relaxed);
                    }
                    Err(error) => {
                        ended.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        }
    };
    let mut done = beside(threads, || work(stop), || work(&|| false));
    // Those that were ended because of another's error come after it.
    done.sort_by_key(|done| done.as_ref().err().is_none_or(|e| e.kind() == Kind::Interrupted));
    done.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}

struct Measure<'a> {
    source: &'a dyn Source,
    until: Option<&'a Border>,
    channels: Channels<'a>,
    scratch: Vec<u8>,
    values: Vec<f64>,
}

impl Measure<'_> {
    fn record(&mut self, record: u64, rows: &mut [[f64; 2]], stop: &dyn Fn() -> bool) -> Result<bool> {
        store::whole(|| self.measured(record, rows, stop))
    }

    fn part(&self, record: u64, length: u64) -> Result<Range<u64>> {
        let fit = self.channels.scaling().fit;
        let part = match (fit, self.until) {
            (Some(fit), _) => fit.of(length),
            (None, Some(border)) => 0..border.of(record, length),
            (None, None) => 0..length,
        };
        if !part.is_empty() || length == 0 {
            return Ok(part);
        }
        let values = if length == 1 { "value" } else { "values" };
        Err(match (fit, self.until) {
            (None, Some(border)) => Error::config(format!(
                "the first part of a split by time, up to {border}, holds no value of a record of {length} {values}"
            ))
            .record(record)
            .hint("split later, or leave out the records of which it holds nothing: a scaler measures the first part"),
            (fit, _) => {
                let fit = fit.map_or_else(String::new, |fit| fit.to_string());
                Error::config(format!("@fit={fit}@ holds no value of a record of {length} {values}"))
                    .record(record)
                    .field("fit")
                    .hint("fit a longer part, or leave out the records that are too short for it")
            }
        })
    }

    // False where there are values, but none that counts.
    fn measured(&mut self, record: u64, rows: &mut [[f64; 2]], stop: &dyn Fn() -> bool) -> Result<bool> {
        let precision = self.channels.scaling().precision;
        let length = self.source.length(record)?;
        let part = self.part(record, length)?;
        let most = (PART / self.source.schema().channels.unwrap_or(1) as u64).max(1);
        self.channels.begin(rows.len());
        let mut start = part.start;
        while start < part.end {
            if stop() {
                return Err(Error::new(Kind::Interrupted, "stopped while measuring the records"));
            }
            let len = most.min(part.end - start);
            let values = self.source.read(Span { record, start, len }, &mut self.scratch)?;
            floats::check(&values, record)?;
            self.values.clear();
            floats::append(&values, precision, &mut self.values);
            self.channels.add(&self.values);
            start += len;
        }
        Ok(self.channels.rows(rows))
    }
}
