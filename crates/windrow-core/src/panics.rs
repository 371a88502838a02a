//! Panics of libraries about the bytes of a file: caught, and not printed.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives; what it panicked with, of which nothing is printed. What it worked on must not be used again after that.
///
/// # Errors
/// What [`catch_unwind`] gives.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    static HOOK: Once = Once::new();
    // The hook prints before anything is caught. Panics of all other threads are printed as before.
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                before(info);
            }
        }));
    });
    let was = IS_CAUGHT.replace(true);
    let found = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(was);
    found
}
