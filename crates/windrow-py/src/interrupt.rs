//! Ctrl-C, and whatever else ends a program: where it is looked for, and that none of it is taken for an answer.
//!
//! Python hears of a signal in its main thread only, when it runs code or is asked. What it raises then may come out of any
//! call, even of an import, and is raised once: who takes it for an error of that call has lost it.

use std::cell::RefCell;

use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

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
    // What a signal raised while windrow's own code ran.
    static KEPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Whether a signal has raised something that was not yet given to Python: for code that can stop, but has no place for it.
pub(crate) fn look(py: Python<'_>) -> bool {
    if KEPT.with_borrow(Option::is_some) {
        return true;
    }
    let raised = py.check_signals().err();
    let is_raised = raised.is_some();
    KEPT.set(raised);
    is_raised
}

/// What [`look`] saw, to be raised instead of an error.
pub(crate) fn kept() -> Option<PyErr> {
    KEPT.take()
}

/// Has what [`look`] saw raised after a call that succeeds all the same.
pub(crate) fn put_off_kept(py: Python<'_>) {
    if let Some(raised) = kept() {
        put_off(py, raised);
    }
}

/// Ctrl-C is raised where signals are looked for next; anything else becomes an exception that nobody can catch.
pub(crate) fn put_off(py: Python<'_>, raised: PyErr) {
    let again = || py.import("_thread")?.call_method0("interrupt_main").map(drop);
    let told = match raised.is_instance_of::<PyKeyboardInterrupt>(py) {
        true => again(),
        false => Err(raised),
    };
    if let Err(error) = told {
        error.write_unraisable(py, None);
    }
}
