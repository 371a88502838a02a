//! What is to be fetched, in the order in which it is needed, with a bounded number of requests at a time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Runtime;
use windrow_core::stop::{self, BETWEEN_QUESTIONS};
use windrow_core::{Error, PerProcess, Result};

use crate::net::{self, MOST_REQUESTS};
use crate::ranges::{overlap, subtract};

/// Something whose ranges can be fetched.
pub(crate) trait Fetch: Send + Sync {
    /// Takes what of a range is neither here nor under way, at once, and fetches that as it is waited for. Called with the queue
    /// locked: a range is in the queue or under way, and nobody asks for it in between.
    fn fetch(self: Arc<Self>, range: Range<u64>) -> Fetched;

    /// Whether all of a range is here or under way, with the queue locked.
    fn is_coming(&self, range: &Range<u64>) -> bool;
}

pub(crate) type Fetched = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

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

    /// What came of it; `None` where it `is_over` before.
    pub(crate) fn wait(&self, is_over: impl Fn() -> bool) -> Option<Result<(), Arc<Error>>> {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match done.take() {
                Some(result) => return Some(result),
                None if is_over() => return None,
                None => {
                    let waited = self.changed.wait_timeout(done, BETWEEN_QUESTIONS);
                    done = waited.unwrap_or_else(PoisonError::into_inner).0;
                    if done.is_none()
                        && let Err(stopped) = stop::go_on()
                    {
                        return Some(Err(Arc::new(stopped)));
                    }
                }
            }
        }
    }
}

#[derive(Default)]
struct Queue {
    /// By class, and then as they came.
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

// Ranges that somebody waits for, and those of steps to come.
const NOW: u8 = 0;
const SOON: u8 = 1;

/// Wants ranges now. What is wanted soon and has some of them goes before all others then, and brings that part: bytes come
/// once. The rest are requests of their own.
pub(crate) fn demand(
    of: Arc<dyn Fetch>,
    ranges: impl IntoIterator<Item = Range<u64>>,
) -> Result<Vec<Arc<Waiter>>> {
    let runtime = net::runtime()?;
    let mut queue = lock();
    let mut wanted = Vec::new();
    for range in ranges {
        // It may have been claimed since it was looked at: then nothing larger that has it too is asked for first.
        if of.is_coming(&range) {
            continue;
        }
        let (mut now, rest) = queue.take(&of, range);
        now.extend(rest.into_iter().map(|range| Wanted { of: of.clone(), range, waiter: None }));
        wanted.append(&mut now);
    }
    let waiters: Vec<Arc<Waiter>> = wanted.iter().map(|_| Arc::default()).collect();
    for (one, waiter) in wanted.iter_mut().zip(&waiters) {
        one.waiter = Some(waiter.clone());
    }
    queue.push(NOW, wanted, &runtime);
    Ok(waiters)
}

/// Wants ranges soon, in this order.
pub(crate) fn ahead(of: Arc<dyn Fetch>, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<()> {
    let runtime = net::runtime()?;
    let wanted = ranges.into_iter().map(|range| Wanted { of: of.clone(), range, waiter: None });
    lock().push(SOON, wanted, &runtime);
    Ok(())
}

impl Queue {
    fn push(&mut self, class: u8, wanted: impl IntoIterator<Item = Wanted>, runtime: &Runtime) {
        for one in wanted {
            self.waiting.insert((class, self.next), one);
            self.next += 1;
        }
        // One for each range that none of those that run is about to take.
        while self.running < MOST_REQUESTS && self.running - self.asking < self.waiting.len() {
            self.running += 1;
            runtime.spawn(work());
        }
    }

    /// Takes out what is wanted soon and has some of a range; the rest of the range is in none of them.
    fn take(&mut self, of: &Arc<dyn Fetch>, range: Range<u64>) -> (Vec<Wanted>, Vec<Range<u64>>) {
        let (mut places, mut rest) = (Vec::new(), vec![range]);
        for (place, wanted) in self.waiting.range((SOON, 0)..) {
            if rest.is_empty() {
                break;
            }
            if Arc::ptr_eq(&wanted.of, of) && rest.iter().any(|range| overlap(range, &wanted.range)) {
                places.push(*place);
                let mut left = Vec::new();
                rest.into_iter()
                    .for_each(|range| subtract(range, std::slice::from_ref(&wanted.range), &mut left));
                rest = left;
            }
        }
        (places.iter().filter_map(|place| self.waiting.remove(place)).collect(), rest)
    }
}

async fn work() {
    let mut worker = Worker { is_asking: false, is_over: false };
    while let Some((fetched, waiter)) = worker.next() {
        waiter.tell(fetched.await);
    }
}

/// Counted among those that run and those that ask, also where a request panics: the next one takes its turn.
struct Worker {
    is_asking: bool,
    is_over: bool,
}

impl Worker {
    /// What comes next; `None` ends it, so that whoever wants something from then on starts another.
    fn next(&mut self) -> Option<(Fetched, Told)> {
        let mut queue = lock();
        queue.asking -= usize::from(self.is_asking);
        let next = queue.waiting.pop_first();
        self.is_asking = next.is_some();
        self.is_over = next.is_none();
        queue.asking += usize::from(self.is_asking);
        queue.running -= usize::from(self.is_over);
        next.map(|(_, Wanted { of, range, waiter })| {
            let waiter = Told(waiter);
            (of.fetch(range), waiter)
        })
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
        // Nobody else may be left for what waits.
        if let Ok(runtime) = net::runtime() {
            queue.push(SOON, [], &runtime);
        }
    }
}

/// A waiter that gets a result in any case.
struct Told(Option<Arc<Waiter>>);

impl Told {
    fn tell(mut self, result: Result<()>) {
        match (self.0.take(), result) {
            (Some(waiter), result) => waiter.tell(result),
            // Whoever reads it asks again, and says what is wrong.
            (None, Err(e)) => log::debug!("not fetched ahead: {e:#}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Fetch for Nothing {
        fn fetch(self: Arc<Self>, _: Range<u64>) -> Fetched {
            Box::pin(async { Ok(()) })
        }

        fn is_coming(&self, _: &Range<u64>) -> bool {
            false
        }
    }

    #[test]
    fn what_is_wanted_soon_is_taken_out_once_and_the_rest_is_left() {
        let (of, other): (Arc<dyn Fetch>, Arc<dyn Fetch>) = (Arc::new(Nothing), Arc::new(Nothing));
        let mut queue = Queue::default();
        let waiting = [
            (NOW, &of, 0..9),
            (SOON, &other, 0..9),
            (SOON, &of, 2..5),
            (SOON, &of, 1..9),
            (SOON, &of, 9..12),
        ];
        for (number, (class, of, range)) in waiting.into_iter().enumerate() {
            queue.waiting.insert((class, number as u64), Wanted { of: of.clone(), range, waiter: None });
        }
        let ends = |range: Range<u64>| (range.start, range.end);
        let mut take = |range: Range<u64>| {
            let (taken, rest) = queue.take(&of, range);
            let taken = taken.into_iter().map(|wanted| ends(wanted.range));
            (taken.collect::<Vec<_>>(), rest.into_iter().map(ends).collect::<Vec<_>>())
        };
        assert_eq!(take(3..4), (vec![(2, 5)], vec![]));
        assert_eq!(take(3..4), (vec![(1, 9)], vec![]));
        assert_eq!(take(3..14), (vec![(9, 12)], vec![(3, 9), (12, 14)]));
        assert_eq!(queue.waiting.keys().copied().collect::<Vec<_>>(), [(NOW, 0), (SOON, 1)]);
    }
}
