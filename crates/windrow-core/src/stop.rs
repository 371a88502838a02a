//! Ctrl-C while something is waited for that may never come, as the answer of another machine.
//!
//! A thread that waits so asks [`is_given_up`] many times a second. Threads that work for another one hold its [`Stop`], so that
//! they end with it; there they count the objects that they look at while data is opened, too.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::error::{Error, Kind, Result};

/// How long a wait may last between two questions.
pub const BETWEEN_QUESTIONS: Duration = Duration::from_millis(50);

thread_local! {
    static OF_THIS_THREAD: RefCell<Stop> = RefCell::default();
}

static ASK: OnceLock<fn() -> bool> = OnceLock::new();

/// What a thread and those that work for it are stopped by, and what they count.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_given_up: AtomicBool,
    /// Objects that were looked at, those that were named, and those of folders that were listed.
    looked_at: AtomicU64,
    named: AtomicU64,
    listed: AtomicU64,
    is_watched: AtomicBool,
}

impl Stop {
    /// That of this thread, to be given to those that work for it.
    pub fn of_this_thread() -> Stop {
        OF_THIS_THREAD.with_borrow(Stop::clone)
    }

    /// For work that somebody watches, who asks for [`Stop::opened`].
    pub fn watched() -> Stop {
        let stop = Stop::default();
        stop.0.is_watched.store(true, Ordering::Relaxed);
        stop
    }

    /// How many objects were looked at to open data, and how many there are; 0 where that is unknown.
    pub fn opened(&self) -> (u64, u64) {
        let [looked_at, named, listed] =
            [&self.0.looked_at, &self.0.named, &self.0.listed].map(|count| count.load(Ordering::Relaxed));
        // Of a folder that was listed, those that were named may be some.
        match if named > 0 { named } else { listed } {
            0 => (looked_at, 0),
            // What is beside the data is looked at as well.
            objects => (looked_at.min(objects), objects),
        }
    }

    /// Ends the waits of those that have it.
    pub fn give_up(&self) {
        self.0.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Works for whoever has it.
    pub fn hold<T>(self, work: impl FnOnce() -> T) -> T {
        let before = OF_THIS_THREAD.replace(self);
        let done = work();
        OF_THIS_THREAD.set(before);
        done
    }
}

/// Has [`is_given_up`] ask here, too: whether the user wants this thread to stop. The first one that is given stays.
pub fn ask_by(ask: fn() -> bool) {
    // Another one says the same.
    let _ = ASK.set(ask);
}

/// Ends the waits of those that work for this thread; what it does next is not concerned.
pub fn give_up() {
    OF_THIS_THREAD.take().give_up();
}

/// Data is opened that is in this number of objects.
pub fn expect_named(count: u64) {
    OF_THIS_THREAD.with_borrow(|stop| stop.0.named.store(count, Ordering::Relaxed));
}

/// Data is opened that is in a folder of this number of objects.
pub fn expect_listed(count: u64) {
    OF_THIS_THREAD.with_borrow(|stop| stop.0.listed.fetch_add(count, Ordering::Relaxed));
}

/// An object was looked at.
pub fn looked_at_object() {
    OF_THIS_THREAD.with_borrow(|stop| stop.0.looked_at.fetch_add(1, Ordering::Relaxed));
}

/// Whether somebody watches, who need not be warned that it takes its time.
pub fn is_watched() -> bool {
    OF_THIS_THREAD.with_borrow(|stop| stop.0.is_watched.load(Ordering::Relaxed))
}

/// Whether to wait no longer.
pub fn is_given_up() -> bool {
    if OF_THIS_THREAD.with_borrow(|stop| stop.0.is_given_up.load(Ordering::Relaxed)) {
        return true;
    }
    let is_asked = ASK.get().is_some_and(|ask| ask());
    if is_asked {
        give_up();
    }
    is_asked
}

/// Whether a wait may continue.
///
/// # Errors
/// `Interrupted`.
pub fn go_on() -> Result<()> {
    if is_given_up() {
        Err(Error::new(Kind::Interrupted, "stopped while it waited for an answer")
            .hint("run the same again to finish it"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_work_for_a_thread_end_with_it_and_nobody_else() {
        let waits = || while go_on().is_ok() {};
        std::thread::scope(|scope| {
            let ours = Stop::of_this_thread();
            let worker = scope.spawn(|| ours.hold(waits));
            let other = scope.spawn(|| {
                Stop::default().hold(|| {
                    (0..100).all(|_| {
                        std::thread::sleep(Duration::from_millis(1));
                        go_on().is_ok()
                    })
                })
            });
            give_up();
            worker.join().unwrap();
            assert!(other.join().unwrap());
        });
        // What was counted is that of all of them, and stops with none of the others.
        let stop = Stop::watched();
        stop.clone().hold(|| {
            expect_listed(7);
            assert_eq!(Stop::of_this_thread().opened(), (0, 7));
            expect_named(2);
            let ours = Stop::of_this_thread();
            std::thread::spawn(|| ours.hold(looked_at_object)).join().unwrap();
            assert!(is_watched());
        });
        assert_eq!((stop.opened(), is_watched()), ((1, 2), false));
        // What comes next starts over.
        assert!(go_on().is_ok());
    }
}
