//! When files were changed, as their file system says, in nanoseconds since 1970.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// When the content was written last.
pub(super) fn modified_ns(meta: &fs::Metadata) -> Option<u64> {
    since_1970(meta.modified().ok()?)
}

/// When the content, the name or the rights were changed last.
pub(super) fn changed_ns(meta: &fs::Metadata) -> Option<u64> {
    let (seconds, ns) = (u64::try_from(meta.ctime()).ok()?, u64::try_from(meta.ctime_nsec()).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Nanoseconds.
pub(super) fn since_1970(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}
