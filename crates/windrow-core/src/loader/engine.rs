//! Threads that assemble batches ahead of time into a bounded queue, in order.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::finish::{Finish, Origin};
use super::read_ahead::{Asked, ReadAhead, Room, disk_waits, exceeds_memory};
use crate::collate::{Batch, Pool};
use crate::error::{Error, Result};
use crate::plan::{Cursor, Plan, Step, Steps, Workspace};
use crate::record::Pass;
use crate::store::ahead::{Between, with_between};
use crate::threads::{at_low_priority, cores, refused};

/// The threads and their queue. Dropping it ends the threads; one that is in a function of the caller's is left to itself
/// where that takes long.
pub(super) struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What waiting for the front of the queue gives.
pub(super) enum Taken {
    Ready(Box<Step>, Result<Batch>),
    End,
    NotYet,
}

/// Batches that take longer to assemble are waited for; assembling a shorter one is quicker than to sleep and be woken.
const SHORT: Duration = Duration::from_micros(500);

/// How long the function of the caller's that a thread is in is waited for, where nobody looks for Ctrl-C meanwhile.
const PATIENCE: Duration = Duration::from_millis(200);

/// Batches in a row that a consumer must find ready before it counts as fed again.
const FED: u32 = 8;

struct Shared {
    queue: Mutex<Queue>,
    // Woken when the front of the queue becomes ready, and when there is room again.
    ready: Condvar,
    room: Condvar,
    // Woken when a thread has ended.
    ended: Condvar,
    plan: Arc<Plan>,
    steps: Steps,
    depth: usize,
    cores: usize,
    // Passes of views begin with work that is done ahead.
    has_preparation: bool,
    finish: Option<Arc<dyn Finish>>,
    // What `stopping` is in the queue, for calls that must not wait for its lock.
    is_wanted: AtomicBool,
}

struct Queue {
    // Where the next thread that asks begins.
    cursor: Cursor,
    // Number of the front slot, counted from the start.
    front: u64,
    slots: VecDeque<Slot>,
    over: bool,
    stopping: bool,
    // Threads that have not ended.
    alive: usize,
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
        finish: Option<Arc<dyn Finish>>,
    ) -> Result<Engine> {
        let queue = Queue {
            cursor,
            front: 0,
            slots: VecDeque::new(),
            over: false,
            stopping: false,
            alive: 0,
            consumer_sleeps: false,
            sleeping_workers: 0,
            telling: false,
            assembling: 0,
            took: None,
            ahead: if plan.is_far() {
                let batches = steps.shard.world_size().saturating_mul(steps.micro_batches).max(1);
                let rows = steps.global_batch_size.div_ceil(batches);
                let room = Room { bytes: plan.room_ahead(), is_kept: plan.is_kept() };
                ReadAhead::of_far(plan.bytes_per_row(), rows, room, n_threads)
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
            ended: Condvar::new(),
            plan: plan.clone(),
            steps,
            depth: prefetch.max(n_threads),
            cores: cores(),
            has_preparation: plan.has_preparation(),
            finish,
            is_wanted: AtomicBool::new(true),
        });
        let mut engine = Engine { shared, threads: Vec::new() };
        for i in 0..n_threads {
            let shared = engine.shared.clone();
            shared.lock().alive += 1;
            let spawned =
                std::thread::Builder::new().name(format!("windrow-{i}")).spawn(move || shared.run());
            // On an error the engine is dropped here, which ends the threads that did start.
            engine.threads.push(spawned.map_err(|error| {
                engine.shared.lock().alive -= 1;
                refused(error)
            })?);
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
                    return Taken::Ready(Box::new(step), batch);
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
            // A function is called in the threads alone: the caller looks for Ctrl-C.
            let assembles_here = room && self.shared.finish.is_none();
            if assembles_here && queue.took.is_some_and(|took| took < SHORT) {
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

impl Engine {
    /// Tells the threads to end: none of them begins another step, or another call of a function.
    pub(super) fn end(&self) {
        self.shared.is_wanted.store(false, Ordering::Relaxed);
        self.shared.lock().stopping = true;
        self.shared.room.notify_all();
    }

    /// Whether all threads have ended within `wait`.
    pub(super) fn has_ended(&self, wait: Duration) -> bool {
        let queue = self.shared.lock();
        let ended = self.shared.ended.wait_timeout_while(queue, wait, |queue| queue.alive > 0);
        ended.unwrap_or_else(PoisonError::into_inner).0.alive == 0
    }

    /// Tells the threads to end, and leaves them to themselves.
    pub(super) fn leave(mut self) {
        self.end();
        self.threads.clear();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end();
        let preparing = std::mem::take(&mut self.shared.lock().preparing);
        if self.shared.finish.is_some() && !self.has_ended(PATIENCE) {
            return;
        }
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

    fn run(self: &Arc<Self>) {
        let _alive = Alive(self);
        match &self.finish {
            Some(finish) => finish.around(&|| self.work()),
            None => self.work(),
        }
    }

    fn work(self: &Arc<Self>) {
        let mut workspace = Workspace::of_records(self.finish.is_some());
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
            let batch = match &self.finish {
                None => batch,
                Some(finish) => {
                    drop(queue);
                    self.room.notify_one();
                    let finished = self.finished(finish.as_ref(), batch, step, &workspace);
                    queue = self.lock();
                    finished
                }
            };
            if queue.put(number, batch) && queue.consumer_sleeps {
                self.ready.notify_one();
            }
        }
    }

    // A source that panics says so when it is read.
    fn tell(&self, asked: Asked, workspace: &mut Workspace) {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let between = if asked.runs.is_empty() { Between::Likely } else { Between::Apart };
            for (number, step) in asked.steps {
                with_between(between, || self.plan.prefetch(&step, number, asked.rows, workspace));
            }
            for (at, run) in asked.runs {
                self.plan.prefetch_run(at, run, workspace);
            }
        }));
    }

    // Whether a thread may assemble another batch. Beside a hungry consumer, which assembles batches too, one core is left to it.
    fn may_begin(&self, queue: &Queue) -> bool {
        let left_alone = queue.hungry == 0 || queue.assembling == 0 || queue.assembling + 1 < self.cores;
        let has_room = queue.assembling < queue.ahead.at_once();
        queue.slots.len() < self.depth && !queue.telling && left_alone && has_room
    }

    // A panic must reach the consumer as an error: a thread that just ends would leave it waiting for ever.
    fn assemble(&self, step: &Step, pool: &Pool, workspace: &mut Workspace) -> Result<Batch> {
        or_panic(|| self.plan.batch_of(step, Some(pool), workspace))
    }

    // What the caller's function makes of a batch that was just assembled in this workspace.
    fn finished(
        &self,
        finish: &dyn Finish,
        batch: Result<Batch>,
        step: Step,
        workspace: &Workspace,
    ) -> Result<Batch> {
        let (turns, own) = (workspace.turns().to_vec(), workspace.own().clone());
        let origin = Origin { plan: self.plan.clone(), steps: self.steps, step, own, turns };
        let is_wanted = || self.is_wanted.load(Ordering::Relaxed);
        batch.and_then(|batch| or_panic(|| finish.finish(batch, &origin, &is_wanted)))
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

// A thread that runs, until it ends in any way.
struct Alive<'a>(&'a Shared);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.lock().alive -= 1;
        self.0.ended.notify_all();
    }
}

fn or_panic(work: impl FnOnce() -> Result<Batch>) -> Result<Batch> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::corrupt(format!("a loader thread panicked: {}", text.unwrap_or_default()))
            .hint("this is a defect of windrow; please report it with the data's format"))
    })
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
