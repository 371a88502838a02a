//! The threads of loaders that call functions of Python's: which there are, and how they end with the program.

use std::cell::Cell;
use std::ffi::{c_long, c_ulong};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{park, sleep};
use std::time::{Duration, Instant};

use pyo3::exceptions::PySystemExit;
use pyo3::ffi;
use pyo3::prelude::*;
use windrow::dev::threads::{process_id, processor_time, processor_time_of_all};

thread_local! {
    static IS_ONE: Cell<bool> = const { Cell::new(false) };
}

/// The process of each, and the number that Python has for it. Only attached threads take the lock, and they give it back before
/// they wait: at a fork nobody else holds it.
static ALL: Mutex<Vec<(u32, c_long)>> = Mutex::new(Vec::new());

/// Set when Python has ended while calls are under way.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// How long the end of the program waits for calls before it raises `SystemExit` in them.
const PATIENCE: Duration = Duration::from_millis(200);

/// And after that as long as they are at work, but no longer than this.
const AT_WORK: Duration = Duration::from_secs(3);

/// This thread, while it is one of them.
pub(super) struct LoaderThread {
    number: c_long,
}

impl LoaderThread {
    /// Says that this thread is one.
    pub(super) fn begin(py: Python<'_>) -> LoaderThread {
        let number = py.import("threading").and_then(|threading| threading.call_method0("get_ident"));
        let number = number.and_then(|number| number.extract::<c_ulong>()).unwrap_or(0).cast_signed();
        all().push((process_id(), number));
        IS_ONE.set(true);
        LoaderThread { number }
    }
}

impl Drop for LoaderThread {
    fn drop(&mut self) {
        all().retain(|(_, number)| *number != self.number);
    }
}

fn all() -> MutexGuard<'static, Vec<(u32, c_long)>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_this_process() -> Vec<c_long> {
    all().iter().filter(|(process, _)| *process == process_id()).map(|(_, number)| *number).collect()
}

/// Whether this thread is one.
pub(super) fn is_one() -> bool {
    IS_ONE.get()
}

/// Waits for the calls that are under way, once the loaders were told to end: what Python code does in a thread must have ended
/// before Python has. A call that sleeps is left: it is not at work, and its thread waits for the end of the process when it
/// wakes.
pub(crate) fn end(py: Python<'_>) {
    if has_ended_within(py, PATIENCE) {
        return;
    }
    let exit = py.get_type::<PySystemExit>();
    for number in of_this_process() {
        // SAFETY: this thread is attached; the number of a thread that is gone is passed over.
        unsafe { ffi::PyThreadState_SetAsyncExc(number, exit.as_ptr()) };
    }
    let begun = Instant::now();
    let others = || processor_time_of_all().saturating_sub(processor_time());
    while begun.elapsed() < AT_WORK {
        let worked = others();
        if has_ended_within(py, PATIENCE / 2) {
            return;
        }
        if others().saturating_sub(worked) < Duration::from_millis(2) {
            break;
        }
    }
    HAS_ENDED.store(true, Ordering::Relaxed);
}

fn has_ended_within(py: Python<'_>, wait: Duration) -> bool {
    let begun = Instant::now();
    while !of_this_process().is_empty() {
        if begun.elapsed() >= wait {
            return false;
        }
        py.detach(|| sleep(Duration::from_millis(2)));
    }
    true
}

/// Has a thread that comes back from a call wait for the end of the process: Python would end it in the middle of Rust.
pub(super) fn stay_where_python_has_ended() {
    while HAS_ENDED.load(Ordering::Relaxed) && is_one() {
        park();
    }
}
