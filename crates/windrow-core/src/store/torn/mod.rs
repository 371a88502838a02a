//! Maps of files that another program makes shorter: an error in place of the end of the process.
//!
//! Reading a page of a map that lies behind the end of its file raises SIGBUS, and so does a disk that cannot give the
//! page. The handler here puts zeros in the place of what is gone, marks the map as torn and lets the read continue. What
//! was read so may not reach anyone: whoever reads does it inside [`whole`], which sees that a map was torn meanwhile and
//! does the work again; by then the map answers with an error. Firefox, Sapling and systemd's journal meet such files
//! by a handler too.

mod places;
mod signal;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering, fence};

pub(super) use self::places::Watched;
use self::signal::take_signal;
use crate::error::{Error, Kind, Result};

/// Maps that were torn so far, in the whole process.
static TORN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD: Thread = const { Thread { depth: Cell::new(0), begun: Cell::new(0) } };
}

struct Thread {
    /// How many works it is inside of.
    depth: Cell<u32>,
    /// Works it began, in this process.
    begun: Cell<u32>,
}

/// Does work that reads maps and gives away nothing before it is done. Where a map was torn meanwhile, by whichever
/// thread, the work is done again: a torn map answers with `Stale` then, and work that did not read it comes out right.
///
/// It costs some tens of nanoseconds each time, so whole samples and batches are such work, not single reads.
pub fn whole<T>(mut work: impl FnMut() -> T) -> T {
    loop {
        if let (done, false) = watched(&mut work) {
            return done;
        }
    }
}

/// Does work that cannot be done twice, before its result is given away: it fails where a map was torn meanwhile, of
/// whatever data.
///
/// # Errors
/// `Stale`; what the work says.
pub fn whole_at_once<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    match watched(work) {
        (done, false) => done,
        // It says which.
        (Err(error), true) if error.kind() == Kind::Stale => Err(error),
        (_, true) => Err(Error::new(Kind::Stale, "a file became shorter while it was read")
            .hint("put a file in another's place by rename, and try again")),
    }
}

/// What the work gives, and whether a map was torn meanwhile.
fn watched<T>(work: impl FnOnce() -> T) -> (T, bool) {
    /// Others take the signal for themselves when they begin, as torch does in its workers: a thread, and a process
    /// that was forked, looks at each of its first works,
    const FIRST: u32 = 64;
    /// then at one in this number.
    const OFTEN: u32 = 32;
    THREAD.with(|thread| {
        let begun = thread.begun.get();
        thread.begun.set(begun.checked_add(1).unwrap_or(FIRST));
        if begun < FIRST || begun.is_multiple_of(OFTEN) {
            take_signal();
        }
        let before = TORN.load(Ordering::Acquire);
        let done = {
            let _inside = Inside::of(&thread.depth);
            work()
        };
        // What the work read was read before the look at the number.
        fence(Ordering::Acquire);
        (done, TORN.load(Ordering::Acquire) != before)
    })
}

/// A thread is inside of such work, until this is dropped: by a panic too.
struct Inside<'a>(&'a Cell<u32>);

impl Inside<'_> {
    fn of(depth: &Cell<u32>) -> Inside<'_> {
        depth.set(depth.get() + 1);
        Inside(depth)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
