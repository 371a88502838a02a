//! What is to be fetched, in the order in which it is needed; so many requests at a time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use windrow_core::{Error, Result};

use crate::net::{self, MOST_REQUESTS};
use crate::per_process::PerProcess;

/// Something whose ranges can be fetched.
pub(crate) trait Fetch: Send + Sync {
    /// Fetches what of a range is neither here nor under way.
    fn fetch(self: Arc<Self>, range: Range<u64>) -> Pin<Box<dyn Future<Output = Result<()>> + Send>>;
}

/// A range that is wanted.
struct Wanted {
    of: Arc<dyn Fetch>,
    range: Range<u64>,
    waiter: Option<Arc<Waiter>>,
}

/// Somebody who cannot go on without a range.
#[derive(Default)]
pub(crate) struct Waiter {
    done: Mutex<Option<Result<(), Arc<Error>>>>,
    changed: Condvar,
}

impl Waiter {
    fn tell(&self, result: Result<()>) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(result.map_err(Arc::new));
        self.changed.notify_all();
    }

    pub(crate) fn wait(&self) -> Result<(), Arc<Error>> {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match done.take() {
                Some(result) => return result,
                None => done = self.changed.wait(done).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

#[derive(Default)]
struct Queue {
    // Ranges that somebody waits for come first, then those of steps to come.
    waiting: BTreeMap<(u8, u64), Wanted>,
    next: u64,
    /// Workers, and those of them that wait for an answer.
    running: usize,
    asking: usize,
}

static QUEUE: PerProcess<Mutex<Queue>> = PerProcess::new(Mutex::default);

fn lock() -> MutexGuard<'static, Queue> {
    QUEUE.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wants a range now.
pub(crate) fn demand(of: Arc<dyn Fetch>, range: Range<u64>) -> Result<Arc<Waiter>> {
    let waiter = Arc::new(Waiter::default());
    push(0, [Wanted { of: of.clone(), range, waiter: Some(waiter.clone()) }])?;
    Ok(waiter)
}

/// Wants ranges soon, in this order.
pub(crate) fn ahead(of: Arc<dyn Fetch>, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<()> {
    push(1, ranges.into_iter().map(|range| Wanted { of: of.clone(), range, waiter: None }))
}

fn push(class: u8, wanted: impl IntoIterator<Item = Wanted>) -> Result<()> {
    let runtime = net::runtime()?;
    let mut queue = lock();
    for one in wanted {
        let number = queue.next;
        queue.next += 1;
        queue.waiting.insert((class, number), one);
    }
    // One for each range that none of those that run is about to take.
    while queue.running < MOST_REQUESTS && queue.running - queue.asking < queue.waiting.len() {
        queue.running += 1;
        runtime.spawn(work());
    }
    Ok(())
}

async fn work() {
    let mut worker = Worker { is_asking: false, is_over: false };
    while let Some(Wanted { of, range, waiter }) = worker.next() {
        let waiter = Told(waiter);
        let result = of.fetch(range).await;
        waiter.tell(result);
    }
}

/// Counted among those that run and those that ask, also where a request panics: the next one takes its turn.
struct Worker {
    is_asking: bool,
    is_over: bool,
}

impl Worker {
    /// What comes next; `None` ends it, so that whoever wants something from then on starts another.
    fn next(&mut self) -> Option<Wanted> {
        let mut queue = lock();
        queue.asking -= usize::from(self.is_asking);
        let next = queue.waiting.pop_first();
        self.is_asking = next.is_some();
        self.is_over = next.is_none();
        queue.asking += usize::from(self.is_asking);
        queue.running -= usize::from(self.is_over);
        next.map(|(_, wanted)| wanted)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut queue = lock();
        queue.asking -= usize::from(self.is_asking);
        queue.running -= 1;
        drop(queue);
        // Nobody else may be left for what waits.
        let _ = push(1, []);
    }
}

/// A waiter that is told in any case.
struct Told(Option<Arc<Waiter>>);

impl Told {
    fn tell(mut self, result: Result<()>) {
        match (self.0.take(), result) {
            (Some(waiter), result) => waiter.tell(result),
            // Whoever reads it asks again, and says what is wrong.
            (None, Err(e)) => log::debug!("not fetched ahead: {e}"),
            (None, Ok(())) => {}
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(waiter) = self.0.take() {
            waiter.tell(Err(Error::new(windrow_core::Kind::Interrupted, "the request was given up")));
        }
    }
}
