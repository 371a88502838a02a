//! Ctrl-C while something is waited for that may never come, as the answer of another machine.
//!
//! A thread that waits so asks [`is_given_up`] many times a second. Threads that work for another one hold its [`Stop`], so that
//! they end with it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::error::{Error, Kind, Result};

/// How long a wait may last between two questions.
pub const BETWEEN_QUESTIONS: Duration = Duration::from_millis(50);

thread_local! {
    static OF_THIS_THREAD: RefCell<Stop> = RefCell::default();
}

static ASK: OnceLock<fn() -> bool> = OnceLock::new();

/// What a thread and those that work for it are stopped by.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// That of this thread, to be given to those that work for it.
    pub fn of_this_thread() -> Stop {
        OF_THIS_THREAD.with_borrow(Stop::clone)
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
    OF_THIS_THREAD.take().0.store(true, Ordering::Relaxed);
}

/// Whether to wait no longer.
pub fn is_given_up() -> bool {
    if OF_THIS_THREAD.with_borrow(|stop| stop.0.load(Ordering::Relaxed)) {
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
        // What comes next starts over.
        assert!(go_on().is_ok());
    }
}
