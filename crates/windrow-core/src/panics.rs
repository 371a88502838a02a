//! Panics of libraries about the bytes of a file: caught, and not printed where the program says so.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives; what it panicked with. What it worked on must not be used again after that.
///
/// # Errors
/// What [`catch_unwind`] gives.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    let was = IS_CAUGHT.replace(true);
    let found = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(was);
    found
}

/// Keeps panics that are [`caught`] off the screen, from now on in all of this process: for a program whose users know nothing of them.
/// Those of all other work are printed as before. The hook of the process is the program's own, so no library sets it.
pub fn hide_caught_panics() {
    static HOOK: Once = Once::new();
    // The hook prints before anything is caught.
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                before(info);
            }
        }));
    });
}
