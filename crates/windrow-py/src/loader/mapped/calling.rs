//! Which functions this thread is in the middle of.

use std::cell::RefCell;
use std::ptr;

use super::Mapped;

thread_local! {
    static CALLS: RefCell<Vec<*const Mapped>> = const { RefCell::new(Vec::new()) };
}

/// A call that this thread is in, until it is dropped.
pub(super) struct Calling;

impl Calling {
    /// Begins one.
    pub(super) fn begin(of: &Mapped) -> Calling {
        CALLS.with_borrow_mut(|calls| calls.push(ptr::from_ref(of)));
        Calling
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        CALLS.with_borrow_mut(Vec::pop);
    }
}

/// Whether this thread is in a call of that function.
pub(super) fn is_here(of: &Mapped) -> bool {
    CALLS.with_borrow(|calls| calls.contains(&ptr::from_ref(of)))
}
