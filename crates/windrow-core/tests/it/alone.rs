//! A test in a process of its own, with its own cache folder and its own count of memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

const CACHE: &str = "WINDROW_CACHE";
const IS_ALONE: &str = "WINDROW_TEST_IS_ALONE";

/// Runs the body of the test called `name` in another process, whose cache is the empty folder that it is given.
#[track_caller]
pub(crate) fn alone(name: &str, body: impl FnOnce(&Path)) {
    if std::env::var_os(IS_ALONE).is_some() {
        return body(&PathBuf::from(std::env::var_os(CACHE).unwrap()));
    }
    let cache = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--test-threads=1", "--nocapture"])
        .env(IS_ALONE, "1")
        .env(CACHE, cache.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{name}:\n{said}\n{complained}");
}

/// Counts what is asked for and hands it on to the system.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST_HELD: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static MEMORY: Counting = Counting;

fn took(size: usize) {
    let held = HELD.fetch_add(size, Ordering::Relaxed) + size;
    MOST_HELD.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call is handed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps the contract of this very function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both stand side by side while the content moves.
        took(size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The most bytes of memory that were held at once while `work` ran, beyond what was held before. Means something only in a
/// test that is [`alone`].
pub(crate) fn most_memory<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Ordering::Relaxed);
    MOST_HELD.store(before, Ordering::Relaxed);
    let done = work();
    (done, MOST_HELD.load(Ordering::Relaxed).saturating_sub(before))
}

/// How many more bytes of memory are held after `work` than before. Means something only in a test that is [`alone`].
pub(crate) fn memory_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Ordering::Relaxed);
    let done = work();
    (done, HELD.load(Ordering::Relaxed).saturating_sub(before))
}
