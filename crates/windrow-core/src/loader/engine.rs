//! Threads that assemble batches ahead of time into a bounded queue, in order.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::read_ahead::{Asked, ReadAhead, disk_waits, exceeds_memory};
use crate::collate::{Batch, Pool};
use crate::error::{Error, Result};
use crate::plan::{Cursor, Plan, Step, Steps, Workspace};
use crate::record::Pass;
use crate::threads::{at_low_priority, cores, refused};

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

/// Batches that take longer to assemble are waited for; assembling a shorter one is quicker than to sleep and be woken.
const SHORT: Duration = Duration::from_micros(500);

/// Batches in a row that a consumer must find ready before it counts as fed again.
const FED: u32 = 8;

struct Shared {
    queue: Mutex<Queue>,
    // Woken when the front of the queue becomes ready, and when there is room again.
    ready: Condvar,
    room: Condvar,
    plan: Arc<Plan>,
    steps: Steps,
    depth: usize,
    cores: usize,
    // Passes of views begin with work that is done ahead.
    has_preparation: bool,
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
    // Somebody tells another machine what will be read: whoever began a step before that is over would ask for its rows
    // one by one, and for their bytes twice.
    telling: bool,
    // Threads that are assembling a batch, and how long the last one took.
    assembling: usize,
    took: Option<Duration>,
    ahead: ReadAhead,
    // Above 0 while the consumer outruns the threads and assembles batches too; it counts down with each one found ready.
    hungry: u32,
    preparing: Vec<(Pass, JoinHandle<()>)>,
}

// A step that somebody begins, and where the one behind it begins.
struct Claimed {
    number: u64,
    step: Step,
    after: Cursor,
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
            telling: false,
            assembling: 0,
            took: None,
            ahead: if plan.is_far() {
                let rows = steps.global_batch_size.div_ceil(steps.shard.world_size().max(1));
                ReadAhead::of_far(plan.bytes_per_row(), rows, plan.room_ahead())
            } else {
                ReadAhead::default()
            },
            hungry: 0,
            preparing: Vec::new(),
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            ready: Condvar::new(),
            room: Condvar::new(),
            plan: plan.clone(),
            steps,
            depth: prefetch.max(n_threads),
            cores: cores(),
            has_preparation: plan.has_preparation(),
        });
        let mut engine = Engine { shared, threads: Vec::new() };
        for i in 0..n_threads {
            let shared = engine.shared.clone();
            let spawned =
                std::thread::Builder::new().name(format!("windrow-{i}")).spawn(move || shared.work());
            // On an error the engine is dropped here, which ends the threads that did start.
            engine.threads.push(spawned.map_err(refused)?);
        }
        Ok(engine)
    }

    /// The batch at the front, if it is ready within `wait`. While it is not, batches are short, and nobody has begun
    /// the step after the last one, the caller assembles that step itself: a consumer that outruns the threads is one of
    /// them, and neither side sleeps.
    pub(super) fn take(&mut self, wait: Duration, pool: &Pool, workspace: &mut Workspace) -> Taken {
        let mut until = None;
        let mut queue = self.shared.lock();
        loop {
            match queue.slots.pop_front() {
                Some(Slot { step, batch: Some(batch) }) => {
                    queue.front += 1;
                    queue.hungry = queue.hungry.saturating_sub(1);
                    if queue.sleeping_workers > 0 && self.shared.may_begin(&queue) {
                        self.shared.room.notify_one();
                    }
                    return Taken::Ready(step, batch);
                }
                Some(slot) => queue.slots.push_front(slot),
                None if queue.over => return Taken::End,
                None => {}
            }
            let now = Instant::now();
            let left = until.get_or_insert(now + wait).saturating_duration_since(now);
            if left.is_zero() {
                return Taken::NotYet;
            }
            let room = !queue.over && queue.slots.len() < self.shared.depth;
            if room && queue.took.is_some_and(|took| took < SHORT) {
                queue.hungry = FED;
                // Without a step to claim the run is over, which the next turn of the loop sees.
                if let Some(Claimed { number, step, .. }) = self.shared.claim(&mut queue) {
                    drop(queue);
                    let batch = self.shared.assemble(&step, pool, workspace);
                    queue = self.shared.lock();
                    queue.put(number, batch);
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
        let preparing = std::mem::take(&mut self.shared.lock().preparing);
        let preparing = preparing.into_iter().map(|(_, thread)| thread);
        for thread in self.threads.drain(..).chain(preparing) {
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

    fn work(self: &Arc<Self>) {
        let mut workspace = Workspace::default();
        // A pool of its own: memory that another core wrote last is slow to write.
        let pool = Pool::new(self.depth.saturating_add(1));
        let mut waits = disk_waits();
        let mut queue = self.lock();
        loop {
            while !queue.stopping && !queue.over && !self.may_begin(&queue) {
                queue.sleeping_workers += 1;
                queue = self.room.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.sleeping_workers -= 1;
            }
            let claimed = if queue.stopping { None } else { self.claim(&mut queue) };
            let Some(Claimed { number, step, after }) = claimed else { return };
            let asked = queue.ahead.ask((number, &step), after, &self.steps, &self.plan);
            let is_timely = queue.ahead.is_timely(number);
            queue.assembling += 1;
            queue.telling = queue.ahead.is_far() && !asked.is_empty();
            let is_telling = queue.telling;
            drop(queue);
            self.tell(asked, &mut workspace);
            if is_telling {
                self.lock().telling = false;
                self.room.notify_all();
            }
            let start = Instant::now();
            let batch = self.assemble(&step, &pool, &mut workspace);
            let took = start.elapsed();
            let waited = is_timely && std::mem::replace(&mut waits, disk_waits()) != waits;
            queue = self.lock();
            if queue.ahead.is_asking(waited) {
                drop(queue);
                let is_worth = exceeds_memory(self.plan.bytes());
                queue = self.lock();
                queue.ahead.worth(is_worth);
            }
            queue.assembling -= 1;
            if is_timely {
                queue.ahead.assembled(waited);
            }
            queue.took = Some(took);
            if queue.put(number, batch) && queue.consumer_sleeps {
                self.ready.notify_one();
            }
        }
    }

    // A source that panics says so when it is read.
    fn tell(&self, asked: Asked, workspace: &mut Workspace) {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            for (number, step) in asked.steps {
                self.plan.prefetch(&step, number, workspace);
            }
            for (at, run) in asked.runs {
                self.plan.prefetch_run(at, run, workspace);
            }
        }));
    }

    // Whether a thread may assemble another batch. Beside a hungry consumer, which assembles batches too, one core is left to it.
    fn may_begin(&self, queue: &Queue) -> bool {
        let left_alone = queue.hungry == 0 || queue.assembling == 0 || queue.assembling + 1 < self.cores;
        queue.slots.len() < self.depth && !queue.telling && left_alone
    }

    // A panic must reach the consumer as an error: a thread that just ends would leave it waiting for ever.
    fn assemble(&self, step: &Step, pool: &Pool, workspace: &mut Workspace) -> Result<Batch> {
        let assemble = || self.plan.batch_of(step, Some(pool), workspace);
        catch_unwind(AssertUnwindSafe(assemble)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(Error::corrupt(format!("a loader thread panicked: {}", text.unwrap_or_default()))
                .hint("this is a defect of windrow; please report it with the data's format"))
        })
    }

    // Begins what the next pass of a view waits for, once this one is under way. It competes with nobody for a core; whoever needs it
    // before it is done helps, and where no thread is to be had does it alone.
    fn prepare_next(self: &Arc<Self>, queue: &mut Queue) {
        for pass in self.plan.passes_to_prepare(queue.cursor, self.steps.epochs) {
            if queue.preparing.iter().any(|(begun, _)| *begun == pass) {
                continue;
            }
            let shared = self.clone();
            let work = move || {
                at_low_priority();
                // What cannot be read is an error of the step that reads it.
                let _ = shared.plan.prepare(pass, &|| !shared.lock().stopping);
            };
            let thread = std::thread::Builder::new().name("windrow-ahead".to_string()).spawn(work);
            queue.preparing.retain(|(begun, thread)| begun.view != pass.view || !thread.is_finished());
            queue.preparing.extend(thread.ok().map(|thread| (pass, thread)));
        }
    }

    // The step after the last one that was claimed, and its number; `None` when there is none any more.
    fn claim(self: &Arc<Self>, queue: &mut Queue) -> Option<Claimed> {
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
        if self.has_preparation {
            self.prepare_next(queue);
        }
        let number = queue.front + queue.slots.len() as u64;
        queue.slots.push_back(Slot { step: step.clone(), batch: None });
        Some(Claimed { number, step, after: queue.cursor })
    }
}

impl Queue {
    // Puts a batch into its slot, and says whether that is the front.
    fn put(&mut self, number: u64, batch: Result<Batch>) -> bool {
        // The front only moves past slots that are ready, so this slot is still there.
        let place = (number - self.front) as usize;
        if let Some(slot) = self.slots.get_mut(place) {
            slot.batch = Some(batch);
        }
        place == 0
    }
}
