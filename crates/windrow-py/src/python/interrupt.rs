//! Ctrl-C, and whatever else ends a program: where it is looked for, and that none of it is taken for an answer.
//!
//! Python hears of a signal in its main thread only, when it runs code or is asked. What it raises then may come out of any
//! call, even of an import, and is raised once: who takes it for an error of that call has lost it.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::ffi;
use pyo3::prelude::*;
use windrow::dev::stop;

/// An attempt whose failure is an answer.
pub(crate) trait Attempt<T> {
    /// `None` where Python raised an error.
    ///
    /// # Errors
    /// What is raised to end the program.
    fn attempt(self, py: Python<'_>) -> PyResult<Option<T>>;
}

impl<T> Attempt<T> for PyResult<T> {
    fn attempt(self, py: Python<'_>) -> PyResult<Option<T>> {
        match self {
            Ok(found) => Ok(Some(found)),
            Err(raised) if ends_program(py, &raised) => Err(raised),
            Err(_) => Ok(None),
        }
    }
}

/// Whether it is meant to end the program, as `KeyboardInterrupt` and `SystemExit` are.
pub(crate) fn ends_program(py: Python<'_>, raised: &PyErr) -> bool {
    !raised.is_instance_of::<PyException>(py)
}

thread_local! {
    // What a signal raised while windrow's own code ran, until it is given to Python.
    static KEPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// Has waits for other machines look for Ctrl-C. A thread of windrow that wanted to ask would wait for one that waits for it.
pub(crate) fn ask_python() {
    // The module is imported there, most often; elsewhere nothing is heard.
    MAIN.get_or_init(|| thread::current().id());
    stop::ask_by(|| is_main() && Python::try_attach(look).unwrap_or(false));
}

fn is_main() -> bool {
    MAIN.get() == Some(&thread::current().id())
}

/// That nothing was raised to end what is done.
///
/// # Errors
/// What a signal raised.
pub(crate) fn check(py: Python<'_>) -> PyResult<()> {
    match kept() {
        Some(raised) => Err(raised),
        None => py.check_signals(),
    }
}

/// Whether a signal has raised something that was not yet given to Python: for code that can stop, but has no place for it.
pub(crate) fn look(py: Python<'_>) -> bool {
    if KEPT.with_borrow(Option::is_some) {
        return true;
    }
    let raised = py.check_signals().err();
    raised.map(|raised| keep(py, raised)).is_some()
}

/// What is kept, to be raised instead of an error.
pub(crate) fn kept() -> Option<PyErr> {
    KEPT.take()
}

/// Keeps what was raised where it has no place, until this thread next gives an answer to Python, or next runs code of it. Of
/// what another than the main thread raises, Ctrl-C is passed on to that one; the rest becomes an exception that nobody can catch.
pub(crate) fn keep(py: Python<'_>, raised: PyErr) {
    if !is_main() {
        let pass_on = || py.import("_thread")?.call_method0("interrupt_main").map(drop);
        let passed = if raised.is_instance_of::<PyKeyboardInterrupt>(py) { pass_on() } else { Err(raised) };
        return passed.unwrap_or_else(|error| error.write_unraisable(py, None));
    }
    KEPT.with_borrow_mut(|kept| {
        kept.get_or_insert(raised);
    });
    // SAFETY: the function takes no argument. Where too many wait already, it is given with the next answer.
    unsafe { ffi::Py_AddPendingCall(Some(raise_kept), ptr::null_mut()) };
}

// Called by the main thread between two instructions of Python's; -1 says that an exception is set.
extern "C" fn raise_kept(_: *mut c_void) -> c_int {
    match kept() {
        Some(raised) => {
            Python::attach(|py| raised.restore(py));
            -1
        }
        None => 0,
    }
}
