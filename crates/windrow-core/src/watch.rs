//! How far a task is, and who wants to know.

use crate::error::{Error, Kind, Result};
use crate::stop;

/// How far a task has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Input bytes behind it, as they are stored.
    pub done_bytes: u64,
    /// Input bytes in all, as they are stored.
    pub total_bytes: u64,
    /// Records written so far.
    pub records: u64,
}

/// Who watches a task. All are called on the thread that called the task, many times a second.
pub trait Watch: Sync {
    /// Takes note of how far it is.
    fn progress(&self, now: Progress);

    /// Takes note of work that is not counted in bytes: how many of how many are done, and what one is called.
    fn counted(&self, done: u64, total: u64, one: &'static str) {
        let _ = (done, total, one);
    }

    /// Whether to stop; the task then ends with `Interrupted`, and the same call continues it.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl Watch for () {
    fn progress(&self, _now: Progress) {}
}

/// `Interrupted` when the watcher wants to stop.
pub fn check(watch: &dyn Watch) -> Result<()> {
    if watch.cancelled() {
        stop::give_up();
        return Err(Error::new(Kind::Interrupted, "stopped before the end; nothing visible was written")
            .hint("run the same command again to finish it"));
    }
    Ok(())
}
