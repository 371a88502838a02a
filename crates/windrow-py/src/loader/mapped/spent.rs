//! What calls of a function took, over all threads of a process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::dev::threads::processor_time;

/// Calls, and nanoseconds of them.
#[derive(Default)]
pub(crate) struct Spent {
    calls: AtomicU64,
    inside: AtomicU64,
    processor: AtomicU64,
    waited: AtomicU64,
}

impl Spent {
    /// Measures one call, before which the thread waited so long for the interpreter lock.
    pub(super) fn time<T>(&self, waited: Duration, call: impl FnOnce() -> T) -> T {
        let (begun, worked) = (Instant::now(), processor_time());
        let made = call();
        self.calls.fetch_add(1, Ordering::Relaxed);
        let worked = processor_time().saturating_sub(worked);
        for (sum, time) in
            [(&self.inside, begun.elapsed()), (&self.processor, worked), (&self.waited, waited)]
        {
            sum.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        made
    }

    /// Adds what `stats()` says of it.
    pub(crate) fn say(&self, stats: &Bound<'_, PyAny>) -> PyResult<()> {
        let stats = stats.cast::<PyDict>()?;
        stats.set_item("map_calls", self.calls.load(Ordering::Relaxed))?;
        for (name, sum) in
            [("map_secs", &self.inside), ("map_cpu_secs", &self.processor), ("map_lock_secs", &self.waited)]
        {
            stats.set_item(name, Duration::from_nanos(sum.load(Ordering::Relaxed)).as_secs_f64())?;
        }
        Ok(())
    }
}
