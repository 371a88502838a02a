//! An allocator that ends the process at one large request: a claimed size must not become memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Inputs stay below 1 MiB, so nothing they justify is as large as this.
pub const MOST_BYTES: usize = 64 << 20;

static MOST: AtomicUsize = AtomicUsize::new(MOST_BYTES);

/// Lets a target whose format promises another bound have that one.
pub fn allow_at_once(bytes: usize) {
    MOST.store(bytes, Ordering::Relaxed);
}

/// The system's allocator, up to [`MOST_BYTES`] at a time, or what [`allow_at_once`] says.
pub struct Refusing;

impl Refusing {
    fn check(size: usize) {
        if size > MOST.load(Ordering::Relaxed) {
            // No formatting here: it would allocate.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"one allocation of more than is allowed\n",
            );
            std::process::abort();
        }
    }
}

// SAFETY: every call is the system allocator's own; a refused one does not return.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::check(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::check(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::check(size);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }
}
