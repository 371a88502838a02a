//! How large the cache may become: what whoever opens data says, else the environment, or half of what is free.

use std::path::Path;

use crate::error::{Error, Result};
use crate::store::parse_size;

const VARIABLE: &str = "WINDROW_CACHE_LIMIT";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// By the option `cache_limit`.
    Given(u64),
    /// By the environment.
    Set(u64),
    /// Half of what is free on the disk and what the cache holds.
    HalfOfFree,
}

impl Limit {
    /// The given one, else that of the environment. 0 asks for nothing to be kept of what is fetched, and bounds nothing else.
    ///
    /// # Errors
    /// `Config` when the variable is not a size.
    pub(super) fn of(given: Option<u64>) -> Result<Limit> {
        if let Some(bytes) = given.filter(|bytes| *bytes > 0) {
            return Ok(Limit::Given(bytes));
        }
        match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            None => Ok(Limit::HalfOfFree),
            Some(value) => value.to_str().and_then(parse_size).map(Limit::Set).ok_or_else(|| {
                Error::config(format!("{value:?} is not a size"))
                    .field(VARIABLE)
                    .hint("give bytes, with a unit where that is shorter: 20000000000, 20GB, 1.5TB, 512MiB")
            }),
        }
    }

    /// In bytes, where half of the free space is `half`.
    pub(super) fn bytes(self, half: u64) -> u64 {
        match self {
            Limit::Given(bytes) | Limit::Set(bytes) => bytes,
            Limit::HalfOfFree => half,
        }
    }

    /// The error of what it leaves no space for, with what a user can do about it.
    pub(super) fn refusal(self, message: String) -> Error {
        let error = Error::config(message);
        match self {
            Limit::Given(_) => error.field("cache_limit").hint(
                "allow more with @cache_limit@, which bounds all of the cache, or set WINDROW_CACHE to another folder",
            ),
            Limit::Set(_) => error
                .field(VARIABLE)
                .hint("set WINDROW_CACHE_LIMIT to more, or WINDROW_CACHE to a folder with more space"),
            Limit::HalfOfFree => error.field(VARIABLE).hint(
                "the limit is half of what is free on the cache's disk; set WINDROW_CACHE_LIMIT to another \
                 size, or WINDROW_CACHE to a folder with more space",
            ),
        }
    }
}

/// Half of what is free on the disk of a cache in this folder, and of what it holds.
pub(super) fn half_of_free(folder: &Path, held: u64) -> u64 {
    // The folder is made by the first entry; its disk is that of the one above.
    let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    match rustix::fs::statvfs(there) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize).saturating_add(held) / 2,
        // Nobody knows what is free; a disk that is full says so.
        Err(_) => u64::MAX,
    }
}
