//! How large the cache may become: what the environment says, or half of what is free.

use std::path::Path;

use crate::error::{Error, Result};

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
            Some(value) => value.to_str().and_then(bytes).map(Limit::Bytes).ok_or_else(|| {
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

/// `20000000000`, `20GB`, `20 GiB`, `1.5T`: units as the commands print them, in any case.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim());
    let unit: f64 = match unit.strip_suffix('b').unwrap_or(unit) {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        "ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    if unit == 1.0 {
        return number.parse().ok();
    }
    let bytes = number.parse::<f64>().ok()? * unit;
    // Below 2^63, where a float holds what it says to less than any block of a disk.
    (bytes < 9.2e18).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_printed() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("20000000000", Some(20_000_000_000)),
            ("18446744073709551615", Some(u64::MAX)),
            ("20GB", Some(20_000_000_000)),
            (" 1.5 tb ", Some(1_500_000_000_000)),
            ("512MiB", Some(512 << 20)),
            ("4Ki", Some(4096)),
            ("7k", Some(7000)),
            ("12 B", Some(12)),
            ("", None),
            ("GB", None),
            ("-1", None),
            ("1.5", None),
            ("1e9", None),
            ("20 apples", None),
            ("99999999TB", None),
            ("1..5GB", None),
        ] {
            assert_eq!(bytes(text), wanted, "{text:?}");
        }
    }
}
