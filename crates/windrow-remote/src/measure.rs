//! How fast stores answer: what an order is chosen by. Nothing of it comes from what is kept, and nothing is kept of it.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use windrow_core::store::{Entry, Store};
use windrow_core::{Error, Result};

use crate::attempt::{Attempts, Deadline, Known, check};
use crate::backend::Backend;
use crate::options::Options;
use crate::stats::{Counters, add};
use crate::store::Remote;
use crate::trouble::Trouble;
use crate::url::Location;
use crate::{listing, net};

/// How many small ranges are read, after one that opens the connection.
const SMALL_RANGES: usize = 21;
const SMALL: u64 = 4096;
/// Ranges as an order by blocks asks for.
const LARGE_RANGES: usize = 3;
const LARGE: u64 = 8 << 20;
/// The golden ratio's fraction: multiples of it lie evenly, however many there are.
const EVENLY: f64 = 0.618_033_988_749_894_8;

/// What was measured of the stores that data lies in, one request after the other.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Measured {
    /// Seconds from asking for 4 KiB until they are here: half of 21 requests, each to another place, took less.
    pub latency_secs: f64,
    /// Bytes a second of one connection once they flow: of 3 ranges of 8 MiB, or of whole files where those are smaller, the middle one.
    pub bandwidth: f64,
    /// Bytes of each of these ranges.
    pub range_bytes: u64,
}

/// Measures the stores that these files lie in, each with its URL and size. `stop` is asked between two requests.
///
/// # Errors
/// `Config` where none of them holds a byte; `Interrupted`; as reading them.
pub fn measure(files: &[(&str, u64)], options: &Options, stop: &dyn Fn() -> bool) -> Result<Measured> {
    let mut files: Vec<(&str, u64)> = files.iter().copied().filter(|file| file.1 > 0).collect();
    if files.is_empty() {
        return Err(Error::config("there is nothing to measure: no file behind a URL holds a byte"));
    }
    let mut stores = Stores { options, opened: HashMap::new() };
    let mut latencies = Vec::with_capacity(SMALL_RANGES);
    for (number, (file, range)) in small_ranges(&files).into_iter().enumerate() {
        let Times { whole, .. } = stores.times(files[file], range, stop)?;
        if number > 0 {
            latencies.push(whole.as_secs_f64());
        }
    }
    files.sort_by_key(|file| std::cmp::Reverse(file.1));
    let mut rates = Vec::with_capacity(LARGE_RANGES);
    let large = large_ranges(&files);
    let range_bytes = large.iter().map(|(_, range)| range.end - range.start).min().unwrap_or(0);
    for (file, range) in large {
        let size = range.end - range.start;
        let Times { first, whole } = stores.times(files[file], range, stop)?;
        // What came with the first byte took no time of its own.
        rates.push(size as f64 / (whole - first).as_secs_f64().max(1e-6));
    }
    Ok(Measured { latency_secs: middle(latencies), bandwidth: middle(rates), range_bytes })
}

// By their bytes, so that a place is as likely to be in a file as a sample is.
fn small_ranges(files: &[(&str, u64)]) -> Vec<(usize, Range<u64>)> {
    let ends: Vec<u64> = files
        .iter()
        .scan(0u64, |sum, file| {
            *sum = sum.saturating_add(file.1);
            Some(*sum)
        })
        .collect();
    let all = ends.last().copied().unwrap_or(0);
    let at = |number: usize| (all as f64 * (number as f64 * EVENLY).fract()) as u64;
    (0..=SMALL_RANGES)
        .map(|number| {
            let place = at(number).min(all - 1);
            let file = ends.partition_point(|end| *end <= place);
            let (size, within) = (files[file].1, place - (ends[file] - files[file].1));
            let start = within.min(size.saturating_sub(SMALL));
            (file, start..(start + SMALL).min(size))
        })
        .collect()
}

// Of the largest files, which come first: in each another part.
fn large_ranges(files: &[(&str, u64)]) -> Vec<(usize, Range<u64>)> {
    let as_large = files.iter().take_while(|file| file.1 >= LARGE.min(files[0].1)).count();
    (0..LARGE_RANGES)
        .map(|number| {
            let file = number % as_large.max(1);
            let size = files[file].1;
            let len = size.min(LARGE);
            let start = ((size - len) as f64 * ((number + 1) as f64 * EVENLY).fract()) as u64;
            (file, start..start + len)
        })
        .collect()
}

fn middle(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

struct Times {
    first: Duration,
    whole: Duration,
}

/// The stores of files by what is before their keys.
struct Stores<'a> {
    options: &'a Options,
    opened: HashMap<(String, String), Remote>,
}

impl Stores<'_> {
    fn times(
        &mut self,
        (url, size): (&str, u64),
        range: Range<u64>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Times> {
        if stop() {
            return Err(Error::new(windrow_core::Kind::Interrupted, "stopped while measuring").at(url));
        }
        let Some(location) = Location::of(url)? else {
            return Err(Error::config("expected a URL: only stores are measured").at(url));
        };
        let name = (location.root.clone(), location.query.clone());
        let store = match self.opened.get(&name) {
            Some(store) => store,
            None => {
                let store = Remote::new(&location, self.options.clone())?;
                self.opened.entry(name).or_insert(store)
            }
        };
        // Without it, a store that lists would be asked for all of its folder.
        let entry = listing::entry(store.place().head(&location.key)?);
        if entry.size == size {
            store.times(&entry, range)
        } else {
            Err(Error::new(
                windrow_core::Kind::Stale,
                format!("expected {size} bytes, as listed, found {}", entry.size),
            )
            .at(url)
            .hint("open the data again"))
        }
    }
}

impl Remote {
    // How long a range takes, until its first byte and until its last.
    fn times(&self, entry: &Entry, range: Range<u64>) -> Result<Times> {
        let place = self.place();
        let (backend, counters) = (place.backend()?, place.counters.get().clone());
        let (entry, url) = (entry.clone(), self.display(&entry.key));
        let deadline = Deadline::within(place.options.timeout);
        net::wait(async move {
            let known = Known { key: &entry.key, url: &url, size: entry.size, tag: entry.tag.as_deref() };
            let mut attempts = Attempts::new(deadline, &counters, "measure how long a range takes", &url);
            loop {
                match attempts.attempt(timed(backend.as_ref(), &known, range.clone(), &counters)).await {
                    Ok(times) => return Ok(times),
                    Err(trouble) => attempts.after(trouble).await?,
                }
            }
        })
    }
}

async fn timed(
    backend: &dyn Backend,
    known: &Known<'_>,
    range: Range<u64>,
    counters: &Counters,
) -> Result<Times, Trouble> {
    let began = Instant::now();
    let expected = range.end - range.start;
    let mut got = backend.get(known.key, range, known.tag).await?;
    check(&got, known)?;
    let (mut first, mut size) = (None, 0);
    while let Some(part) = got.body.next().await {
        size += part?.len() as u64;
        first.get_or_insert_with(|| began.elapsed());
    }
    add(&counters.bytes, size);
    let whole = began.elapsed();
    if size == expected {
        Ok(Times { first: first.unwrap_or(whole), whole })
    } else {
        Err(Trouble::passing(format!("{size} bytes came, {expected} were asked for")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_within_the_files_and_at_other_places() {
        for files in [vec![("a", 1)], vec![("a", 100 << 20)], vec![("a", 9 << 20), ("b", 8 << 20), ("c", 5)]]
        {
            for ranges in [small_ranges(&files), large_ranges(&files)] {
                for (file, range) in &ranges {
                    assert!(range.start < range.end && range.end <= files[*file].1, "{files:?}: {range:?}");
                }
            }
        }
        let one = [("a", 100 << 20)];
        let mut starts: Vec<u64> = small_ranges(&one).iter().map(|(_, range)| range.start / SMALL).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), SMALL_RANGES + 1);
        let starts: Vec<u64> = large_ranges(&one).iter().map(|(_, range)| range.start / LARGE).collect();
        assert!(starts[0] != starts[1] && starts[1] != starts[2] && starts[0] != starts[2], "{starts:?}");
        // Small ones do not stand for large ones.
        let mixed = [("a", 20 << 20), ("b", 9 << 20), ("c", 5)];
        let files: Vec<usize> = large_ranges(&mixed).iter().map(|(file, _)| *file).collect();
        assert_eq!(files, [0, 1, 0]);
    }
}
