//! The wall around the codecs: a panic inside them is an error out here.

use windrow_core::{Error, Result, caught};

/// What `work` gives; `Corrupt` where it panics. What it worked on must not be used again after that.
pub(crate) fn guarded<T>(doing: &str, work: impl FnOnce() -> T) -> Result<T> {
    caught(work).map_err(|panic| {
        let said = (panic.downcast_ref::<&str>().copied())
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        Error::corrupt(format!("the codec gave up while {doing}: {said}"))
            .hint("the bytes contradict their own format; decode the file with another program to see what is left of it")
    })
}
