//! How many maps and open files windrow holds at a time: the system has an end of both, and the rest of the program needs some.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maps of files. Where all that the system allows are taken, no memory can be had and no thread started either.
pub(super) static MAPS: Allowance = Allowance::new(most_maps);
/// Files that stay open to be read by position.
pub(super) static OPEN_FILES: Allowance = Allowance::new(most_open_files);

/// A number of things that may be held at a time, over the whole process.
pub(super) struct Allowance {
    taken: AtomicUsize,
    most: OnceLock<usize>,
    ask: fn() -> usize,
}

impl Allowance {
    const fn new(ask: fn() -> usize) -> Allowance {
        Allowance { taken: AtomicUsize::new(0), most: OnceLock::new(), ask }
    }

    /// Takes one, until what is given back is dropped; `None` when all are taken.
    pub(super) fn take(&'static self) -> Option<Taken> {
        let most = *self.most.get_or_init(self.ask);
        let more = |taken: usize| (taken < most).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Taken(self))
    }
}

/// One of an allowance, taken.
pub(super) struct Taken(&'static Allowance);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Half of what Linux says, or of what it says by default.
fn most_maps() -> usize {
    const USUAL: usize = 65_530;
    let said = fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|n| n.trim().parse().ok());
    said.unwrap_or(USUAL) / 2
}

/// Half of the limit of this process.
fn most_open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_taken_again() {
        static TWO: Allowance = Allowance::new(|| 2);
        let first = TWO.take();
        let second = TWO.take();
        assert!(first.is_some() && second.is_some() && TWO.take().is_none());
        drop(first);
        assert!(TWO.take().is_some());
    }
}
