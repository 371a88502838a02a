//! Long work that only reads, done by a thread of its own, so that Ctrl-C ends the wait for it at once.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use pyo3::prelude::*;
use windrow::Result;
use windrow::dev::stop::Stop;

use crate::python::error::OrRaise;
use crate::python::interrupt::check;

const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// What the work gives. After Ctrl-C nobody waits for its end any more: it continues unseen, and what it gives is dropped.
pub(crate) fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    wait_while(py, move |_| work())
}

/// What work gives that asks whether anybody waits for it, and ends where nobody does.
pub(crate) fn wait_while<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let wanted = Waiting(Arc::new(AtomicBool::new(true)));
    let is_wanted = wanted.0.clone();
    wait(py, move || work(&|| is_wanted.load(Ordering::Relaxed)), || check(py))
}

/// What opening data gives. Whoever watches hears in between how many objects were looked at, and of how many. After Ctrl-C it
/// ends where it next waits for a store.
pub(crate) fn wait_watched<T: Send + 'static>(
    py: Python<'_>,
    mut watch: Option<impl FnMut(u64, u64) -> PyResult<()>>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let stop = if watch.is_some() { Stop::watched() } else { Stop::default() };
    let theirs = stop.clone();
    let mut tell = || {
        check(py)?;
        let (looked_at, objects) = stop.opened();
        watch.as_mut().map_or(Ok(()), |watch| watch(looked_at, objects))
    };
    // The end is heard, too.
    let found = wait(py, move || theirs.hold(work), &mut tell).and_then(|found| tell().map(|()| found));
    if found.is_err() {
        stop.give_up();
    }
    found
}

// What work gives that another thread does; `meanwhile` is called many times a second, and ends the wait with its error.
fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
    mut meanwhile: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
    let work = Arc::new(Mutex::new(Some(work)));
    let (sender, receiver) = sync_channel(1);
    let theirs = work.clone();
    let spawned = Builder::new().name("windrow-wait".to_string()).spawn(move || {
        if let Some(work) = taken(&theirs) {
            // Nobody listens after Ctrl-C.
            let _ = sender.send(work());
        }
    });
    let thread = match spawned {
        Ok(thread) => thread,
        // Where no thread is to be had it is done here.
        Err(error) => return taken(&work).map_or(Err(error.into()), |work| py.detach(work).or_raise(py)),
    };
    // Nobody else takes it; the lock is what lets it be used while Python is let go.
    let receiver = Mutex::new(receiver);
    let look = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(BETWEEN_LOOKS);
    loop {
        match py.detach(look) {
            Ok(found) => return found.or_raise(py),
            Err(RecvTimeoutError::Timeout) => meanwhile()?,
            Err(RecvTimeoutError::Disconnected) => match py.detach(|| thread.join()) {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return Err(pyo3::exceptions::PyRuntimeError::new_err("a thread ended early")),
            },
        }
    }
}

// Whoever waits; gone, nothing is wanted.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn taken<F>(work: &Mutex<Option<F>>) -> Option<F> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}
