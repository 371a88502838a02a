//! How fast the stores answer that data lies in, and how much of it finds room here: what an order is chosen by.

use serde::Serialize;
use windrow_core::format::Options;
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;

/// What was measured of the stores that a data set lies in, and what this machine has for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Seconds from asking for 4 KiB until they are here: half of 21 requests, each to another place, took less.
    pub latency_secs: f64,
    /// Bytes a second of one connection once they flow: the middle one of 3 ranges.
    pub bandwidth: f64,
    /// Bytes of each of these ranges: 8 MiB, or of a whole file where all are smaller.
    pub range_bytes: u64,
    /// Requests that a process has under way at a time.
    pub connections: u64,
    /// Bytes of what is fetched that this process can hold: its part of the cache's limit, and memory.
    pub room_bytes: u64,
    /// Bytes of it in memory alone.
    pub memory_bytes: u64,
}

impl Dataset {
    /// Measures the stores that it lies in by 25 ranges, one after the other. The cache is neither asked nor filled. `stop` is
    /// asked between two ranges.
    ///
    /// # Errors
    /// `Config` for data on this machine; `Interrupted` once `stop` says so; what the store says.
    ///
    /// ```no_run
    /// let data = windrow::open("s3://corpus/tokens")?;
    /// let measured = data.measure(&|| false)?;
    /// println!("{:.0} ms, {:.0} MB/s", measured.latency_secs * 1e3, measured.bandwidth / 1e6);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn measure(&self, stop: &dyn Fn() -> bool) -> Result<Measured> {
        let files = self.source().files();
        let far: Vec<(&str, u64)> =
            files.iter().filter(|file| file.is_far()).map(|file| (file.file.as_str(), file.size)).collect();
        if far.is_empty() {
            return Err(Error::config("the data lies on this machine: no store is asked for it")
                .at(self.paths().to_string()));
        }
        of_stores(&far, self.options(), stop)
    }
}

// Of these files, each with its size.
#[cfg(feature = "remote")]
fn of_stores(files: &[(&str, u64)], options: &Options, stop: &dyn Fn() -> bool) -> Result<Measured> {
    let options = crate::opening::remote::of_store(options);
    let windrow_remote::Measured { latency_secs, bandwidth, range_bytes } =
        windrow_remote::measure(files, &options, stop)?;
    let connections = windrow_remote::MOST_REQUESTS as u64;
    let (room_bytes, memory_bytes) = (options.room(), options.read_ahead);
    Ok(Measured { latency_secs, bandwidth, range_bytes, connections, room_bytes, memory_bytes })
}

// This build asks no stores.
#[cfg(not(feature = "remote"))]
fn of_stores(_: &[(&str, u64)], _: &Options, _: &dyn Fn() -> bool) -> Result<Measured> {
    Err(Error::built_without("remote"))
}
