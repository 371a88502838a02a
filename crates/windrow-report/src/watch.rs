//! A page ends early when its caller wants to stop.

use windrow::prepare::Watch;
use windrow::{Error, Kind, Result};

/// `Interrupted` once the caller wants to stop.
pub(crate) fn check(watch: &dyn Watch) -> Result<()> {
    if watch.cancelled() {
        Err(Error::new(Kind::Interrupted, "interrupted").hint("it can be run again"))
    } else {
        Ok(())
    }
}
