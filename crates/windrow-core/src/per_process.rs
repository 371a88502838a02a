//! Values that belong to one process.
//!
//! After a fork the child has the parent's memory and none of its threads: a lock that one of them held stays locked for ever,
//! and a socket is shared with the parent. So the child makes its own, and the parent's is never touched again.

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::threads::process_id;

/// A value made at its first use in each process.
pub struct PerProcess<T> {
    at: AtomicPtr<Of<T>>,
    make: fn() -> T,
}

struct Of<T> {
    process: u32,
    value: T,
    /// Of the process before: kept, for somebody may still borrow it.
    _before: *mut Of<T>,
}

// SAFETY: the pointers lead to values that only change hands through the atomic above and are dropped with the whole.
unsafe impl<T: Send + Sync> Send for PerProcess<T> {}
// SAFETY: as above; a shared value is borrowed, so it must be `Sync`, and whichever thread drops it got it by `Send`.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess::new(T::default)
    }
}

impl<T> PerProcess<T> {
    /// One that `make` makes.
    pub const fn new(make: fn() -> T) -> PerProcess<T> {
        PerProcess { at: AtomicPtr::new(std::ptr::null_mut()), make }
    }

    /// That of this process.
    pub fn get(&self) -> &T {
        let process = process_id();
        loop {
            let found = self.at.load(Ordering::Acquire);
            // SAFETY: what was stored came from a box, and is dropped with `self` alone, which is borrowed here.
            if let Some(of) = unsafe { found.as_ref() }
                && of.process == process
            {
                return &of.value;
            }
            let made = Box::into_raw(Box::new(Of { process, value: (self.make)(), _before: found }));
            if self.at.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: it was made above and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let last = *self.at.get_mut();
        // SAFETY: as in `get`; nobody borrows it any more.
        if let Some(of) = unsafe { last.as_ref() }
            && of.process == process_id()
        {
            // SAFETY: it came from a box. One of another process stays as it is: its locks may be held for ever.
            drop(unsafe { Box::from_raw(last) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn threads_share_one_and_it_is_dropped_once() {
        static MADE: AtomicU32 = AtomicU32::new(0);
        struct Counted(Mutex<u32>);
        impl Drop for Counted {
            fn drop(&mut self) {
                MADE.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let own = PerProcess::new(|| {
            MADE.fetch_add(1, Ordering::Relaxed);
            Counted(Mutex::new(0))
        });
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| *own.get().0.lock().unwrap() += 1);
            }
        });
        assert_eq!(*own.get().0.lock().unwrap(), 8);
        assert_eq!(MADE.load(Ordering::Relaxed), 1);
        drop(own);
        assert_eq!(MADE.load(Ordering::Relaxed), 0);
    }
}
