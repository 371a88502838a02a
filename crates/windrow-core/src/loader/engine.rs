//! Threads that lay batches ahead of time into a bounded queue, in order.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::collate::{Batch, Pool};
use crate::error::{Error, Kind, Result};
use crate::plan::{Cursor, Plan, Step, Steps, Workspace};

/// The threads and their queue. Dropping it ends the threads.
pub(super) struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What waiting for the front of the queue gives.
pub(super) enum Taken {
    Ready(Step, Result<Batch>),
    End,
    NotYet,
}

struct Shared {
    queue: Mutex<Queue>,
    // Woken when the front of the queue becomes ready, and when there is room again.
    ready: Condvar,
    room: Condvar,
    plan: Arc<Plan>,
    steps: Steps,
    depth: usize,
}

struct Queue {
    // Where the next thread that asks begins.
    cursor: Cursor,
    // Number of the front slot, counted from the start.
    front: u64,
    slots: VecDeque<Slot>,
    over: bool,
    stopping: bool,
    // Waking nobody costs a system call, so both sides say when they sleep.
    consumer_sleeps: bool,
    sleeping_workers: usize,
}

struct Slot {
    step: Step,
    batch: Option<Result<Batch>>,
}

impl Engine {
    pub(super) fn start(
        plan: &Arc<Plan>,
        steps: Steps,
        cursor: Cursor,
        n_threads: usize,
        prefetch: usize,
    ) -> Result<Engine> {
        let queue = Queue {
            cursor,
            front: 0,
            slots: VecDeque::new(),
            over: false,
            stopping: false,
            consumer_sleeps: false,
            sleeping_workers: 0,
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            ready: Condvar::new(),
            room: Condvar::new(),
            plan: plan.clone(),
            steps,
            depth: prefetch.max(n_threads),
        });
        let mut engine = Engine { shared, threads: Vec::new() };
        for i in 0..n_threads {
            let shared = engine.shared.clone();
            let spawned =
                std::thread::Builder::new().name(format!("windrow-{i}")).spawn(move || shared.work());
            // On an error the engine is dropped here, which ends the threads that did start.
            engine.threads.push(
                spawned.map_err(|e| Error::new(Kind::Io, "cannot start a loader thread").caused_by(e))?,
            );
        }
        Ok(engine)
    }

    /// The batch at the front, if it is ready within `wait`. While it is not, and nobody has begun the step after the
    /// last one, the caller lays that step itself: a consumer that outruns the threads is one more of them, and neither
    /// side sleeps.
    pub(super) fn take(&mut self, wait: Duration, pool: &Pool, workspace: &mut Workspace) -> Taken {
        let until = Instant::now() + wait;
        let mut queue = self.shared.lock();
        loop {
            match queue.slots.pop_front() {
                Some(Slot { step, batch: Some(batch) }) => {
                    queue.front += 1;
                    if queue.sleeping_workers > 0 {
                        self.shared.room.notify_one();
                    }
                    return Taken::Ready(step, batch);
                }
                Some(slot) => queue.slots.push_front(slot),
                None if queue.over => return Taken::End,
                None => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Taken::NotYet;
            }
            if !queue.over && queue.slots.len() < self.shared.depth {
                // Without a step to claim the run is over, which the next turn of the loop sees.
                if let Some((number, step)) = self.shared.claim(&mut queue) {
                    drop(queue);
                    self.shared.finish(number, self.shared.lay(&step, pool, workspace));
                    queue = self.shared.lock();
                }
                continue;
            }
            queue.consumer_sleeps = true;
            queue = self.shared.ready.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
            queue.consumer_sleeps = false;
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.room.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has already put its error into the queue.
            let _ = thread.join();
        }
    }
}

impl Shared {
    // The queue is plain data that is whole between statements, so a poisoned lock is still a good one.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut workspace = Workspace::default();
        // A pool of its own: memory that another core wrote last is slow to write.
        let pool = Pool::new(self.depth + 1);
        while let Some((number, step)) = self.begin() {
            self.finish(number, self.lay(&step, &pool, &mut workspace));
        }
    }

    // A panic must reach the consumer as an error: a thread that just ends would leave it waiting for ever.
    fn lay(&self, step: &Step, pool: &Pool, workspace: &mut Workspace) -> Result<Batch> {
        let lay = || self.plan.batch(step.epoch, step.own.clone(), Some(pool), workspace);
        catch_unwind(AssertUnwindSafe(lay)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(Error::corrupt(format!("a loader thread panicked: {}", text.unwrap_or_default()))
                .hint("this is a defect of windrow; please report it with the data's format"))
        })
    }

    // Waits for room and claims the next step.
    fn begin(&self) -> Option<(u64, Step)> {
        let mut queue = self.lock();
        while !queue.stopping && !queue.over && queue.slots.len() >= self.depth {
            queue.sleeping_workers += 1;
            queue = self.room.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.sleeping_workers -= 1;
        }
        if queue.stopping { None } else { self.claim(&mut queue) }
    }

    // The step after the last one that was claimed, and its number; `None` when there is none any more.
    fn claim(&self, queue: &mut Queue) -> Option<(u64, Step)> {
        if queue.over {
            return None;
        }
        let Some(step) = self.steps.next(self.plan.sampler(), queue.cursor) else {
            queue.over = true;
            self.ready.notify_one();
            self.room.notify_all();
            return None;
        };
        queue.cursor = step.after();
        let number = queue.front + queue.slots.len() as u64;
        queue.slots.push_back(Slot { step: step.clone(), batch: None });
        Some((number, step))
    }

    fn finish(&self, number: u64, batch: Result<Batch>) {
        let mut queue = self.lock();
        // The front only moves past slots that are ready, so this slot is still there.
        let place = (number - queue.front) as usize;
        if let Some(slot) = queue.slots.get_mut(place) {
            slot.batch = Some(batch);
        }
        let wake = place == 0 && queue.consumer_sleeps;
        drop(queue);
        if wake {
            self.ready.notify_one();
        }
    }
}
