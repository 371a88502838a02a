//! How large the cache may become: what the environment says, or half of what is free.

use std::path::Path;

use crate::error::{Error, Result};
use crate::store::parse_size;

pub(super) const VARIABLE: &str = "WINDROW_CACHE_LIMIT";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Bytes(u64),
    /// Half of what is free on the disk and what the cache holds.
    HalfOfFree,
}

impl Limit {
    /// # Errors
    /// `Config` when the variable is not a size.
    pub(super) fn of_environment() -> Result<Limit> {
        match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            None => Ok(Limit::HalfOfFree),
            Some(value) => value.to_str().and_then(parse_size).map(Limit::Bytes).ok_or_else(|| {
                Error::config(format!("{value:?} is not a size"))
                    .field(VARIABLE)
                    .hint("give bytes, with a unit where that is shorter: 20000000000, 20GB, 1.5TB, 512MiB")
            }),
        }
    }

    /// In bytes, for a cache in this folder that holds so many.
    pub(super) fn bytes(self, folder: &Path, held: u64) -> u64 {
        match self {
            Limit::Bytes(bytes) => bytes,
            Limit::HalfOfFree => match rustix::fs::statvfs(folder) {
                Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize).saturating_add(held) / 2,
                // Nobody knows what is free; a disk that is full says so.
                Err(_) => u64::MAX,
            },
        }
    }

    /// What a user can do about it.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Limit::Bytes(_) => {
                "set WINDROW_CACHE_LIMIT to more, or WINDROW_CACHE to a folder with more space"
            }
            Limit::HalfOfFree => {
                "the limit is half of what is free on the cache's disk; set WINDROW_CACHE_LIMIT to another \
                 size, or WINDROW_CACHE to a folder with more space"
            }
        }
    }
}
