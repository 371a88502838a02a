//! When files were changed, as their file system says, in nanoseconds since 1970.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Both of a file that is open.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) modified_ns: Option<u64>,
    pub(super) changed_ns: Option<u64>,
}

impl Times {
    pub(super) fn of(meta: &fs::Metadata) -> Times {
        Times { modified_ns: modified_ns(meta), changed_ns: changed_ns(meta) }
    }
}

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
