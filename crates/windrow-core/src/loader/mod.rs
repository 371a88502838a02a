//! Runs a plan ahead of time: threads, a bounded queue, order kept, state by counting what was delivered.

mod engine;
mod finish;
mod read_ahead;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::engine::{Engine, Taken};
pub use self::finish::{Finish, Origin};
use crate::collate::{Batch, Pool};
use crate::error::{Error, Result};
use crate::plan::{Cursor, Identity, LastBatch, Plan, State, Step, Steps, Workspace};
use crate::sampler::Shard;
use crate::store::Traffic;
use crate::threads::{self, cores};

/// The most batches ahead: more would need memory that no machine has.
const MOST_AHEAD: usize = 1 << 16;

/// What the batches do not depend on, and what says how many rows each has.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rows of a batch.
    pub batch: BatchSize,
    /// This rank and how many there are.
    pub shard: Shard,
    /// What to do with an epoch's last batch when it is not full.
    pub last: LastBatch,
    /// How many epochs a run has; `None` never ends.
    pub epochs: Option<u64>,
    /// Threads that assemble batches ahead of time, at most 1024; `None` takes the cores there are, at most 8; 0 assembles each when
    /// asked.
    pub num_threads: Option<usize>,
    /// Batches kept ready at most.
    pub prefetch: usize,
    /// In how many batches each rank gets its rows of a step, which [`BatchSize::Global`] counts; 1 for a batch a step.
    pub accumulate: u64,
}

/// Rows of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    /// For each rank.
    PerRank(u64),
    /// For all ranks together, in all batches of a step; each gets its part.
    Global(u64),
}

impl BatchSize {
    /// Rows of a step: of `accumulate` batches of each rank.
    ///
    /// # Errors
    /// `Config` for more than 2^64.
    pub fn over(self, shard: Shard, accumulate: u64) -> Result<u64> {
        match self {
            BatchSize::Global(rows) => Ok(rows),
            BatchSize::PerRank(rows) => rows
                .checked_mul(shard.world_size())
                .and_then(|rows| rows.checked_mul(accumulate.max(1)))
                .ok_or_else(|| Error::config("the batch size over all ranks is larger than 2^64")),
        }
    }
}

/// What a loader did since it was made, and what the stores of its data were asked for since the data was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Batches delivered to this rank.
    pub batches: u64,
    /// Rows delivered to this rank.
    pub samples: u64,
    /// Rows among them that came a second time in their epoch, to fill its last batch.
    pub repeated: u64,
    /// Values in these rows that are read from the data, of those that fill a row's first tensor: tokens, steps of a series; of
    /// audio codes the frames between BOS and EOS, with both.
    pub values: u64,
    /// Values and padding in these rows.
    pub positions: u64,
    /// Bytes of the texts beside audio codes in these rows.
    pub text_values: u64,
    /// Bytes and padding of these texts.
    pub text_positions: u64,
    /// Bytes of the tensors and values delivered to this rank.
    pub bytes: u64,
    /// Seconds that the consumer waited for a batch, or assembled one itself because none was ready.
    pub waited_secs: f64,
    /// Threads that assemble batches; 0 before the first batch, and in a forked child.
    pub threads: usize,
    /// What the stores were asked for, by all that read the same opened data: 0 where it lies on this machine.
    #[serde(flatten)]
    pub stores: Traffic,
}

impl Stats {
    /// The part of all positions of rows that is padding; 0 where nothing was delivered.
    pub fn padding_share(&self) -> f64 {
        share(self.values, self.positions)
    }

    /// The part of all positions of texts beside audio codes that is padding; 0 where there are no texts.
    pub fn text_padding_share(&self) -> f64 {
        share(self.text_values, self.text_positions)
    }
}

// The part of `positions` that `values` do not fill.
fn share(values: u64, positions: u64) -> f64 {
    match positions {
        0 => 0.0,
        positions => 1.0 - values as f64 / positions as f64,
    }
}

/// What a bounded wait for the next batch gives.
#[derive(Debug)]
pub enum Next {
    /// The next batch.
    Batch(Batch),
    /// The next batch, before [`Finish::finish`]: a loader without threads leaves that to the caller, who may hold locks now.
    Unfinished(Batch, Origin),
    /// The run is over.
    End,
    /// Not ready yet: ask again.
    NotYet,
}

/// Gives the batches of a plan in order.
///
/// Batches depend on the plan and the batch size alone: not on `threads`, `prefetch` or the number of ranks. Threads
/// start at the first [`Loader::next_batch`]; in a forked child they are left alone and batches are assembled when asked.
pub struct Loader {
    plan: Arc<Plan>,
    identity: Identity,
    batch: BatchSize,
    steps: Steps,
    threads: usize,
    prefetch: usize,
    pool: Pool,
    cursor: Cursor,
    engine: Option<Engine>,
    // The process that may use `engine`; another one is a forked child.
    pid: u32,
    workspace: Workspace,
    stats: Stats,
    // The last batch was an error: iterating ends there.
    has_failed: bool,
    finish: Option<Arc<dyn Finish>>,
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("plan", &self.plan)
            .field("steps", &self.steps)
            .field("at", &self.cursor)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Loader {
    /// A loader at the first batch of epoch 0. Reads nothing yet.
    ///
    /// # Errors
    /// `Config` when the options would never give a batch, or ask for more than 1024 threads.
    pub fn new(plan: Arc<Plan>, options: &Options) -> Result<Loader> {
        let steps = Steps {
            global_batch_size: options.batch.over(options.shard, options.accumulate)?,
            shard: options.shard,
            last: options.last,
            epochs: options.epochs,
            micro_batches: options.accumulate,
            is_balanced: plan.balance().is_some(),
        };
        steps.check(plan.sampler(), Cursor::default())?;
        threads::check(options.num_threads, 0)?;
        if options.prefetch == 0 || options.prefetch > MOST_AHEAD {
            return Err(Error::config(format!("a prefetch of {} batches", options.prefetch)).hint(
                "prefetch is 1 to 65,536; with 0 threads each batch is assembled when it is asked for",
            ));
        }
        let threads = options.num_threads.unwrap_or_else(|| cores().min(8));
        Ok(Loader {
            identity: plan.identity()?,
            batch: options.batch,
            steps,
            threads,
            prefetch: options.prefetch,
            pool: Pool::new(options.prefetch.saturating_add(threads).saturating_add(2)),
            cursor: Cursor::default(),
            engine: None,
            pid: std::process::id(),
            workspace: Workspace::default(),
            stats: Stats::default(),
            has_failed: false,
            finish: None,
            plan,
        })
    }

    /// Has the batches go through `finish`, in the threads that assemble them.
    #[must_use]
    pub fn finished_by(mut self, finish: Arc<dyn Finish>) -> Loader {
        self.stop();
        self.workspace = Workspace::of_records(true);
        self.finish = Some(finish);
        self
    }

    /// The plan it runs.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The rule from step to step.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// How many samples were delivered to all ranks together.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The epoch that the next batch belongs to; `None` when the run is over.
    pub fn upcoming_epoch(&self) -> Option<u64> {
        self.steps.next(self.plan.sampler(), self.cursor).map(|step| step.epoch)
    }

    /// Continues as another rank, from where it is, or from the beginning of the step that it is in. [`BatchSize::PerRank`] then
    /// makes batches over all ranks of another size.
    ///
    /// # Errors
    /// `Config` when the options would never give a batch; the loader stays as it was.
    pub fn set_shard(&mut self, shard: Shard) -> Result<()> {
        if shard == self.steps.shard {
            return Ok(());
        }
        let global_batch_size = self.batch.over(shard, self.steps.micro_batches)?;
        let steps = Steps { global_batch_size, shard, ..self.steps };
        steps.check(self.plan.sampler(), self.cursor)?;
        self.stop();
        self.steps = steps;
        self.cursor.micro_batches = 0;
        Ok(())
    }

    /// Goes back to a place where this loader was: unlike a state, within a step.
    pub fn back_to(&mut self, cursor: Cursor) {
        self.stop();
        self.cursor = cursor;
    }

    /// What was done so far.
    pub fn stats(&self) -> Stats {
        let threads = self.engine.as_ref().map_or(0, |_| self.threads);
        Stats { threads, stores: self.plan.traffic(), ..self.stats }
    }

    /// Where the run is.
    pub fn state(&self) -> State {
        self.identity.state(&self.plan, self.cursor)
    }

    /// What the plan is called, for states of other places of the run.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Goes to where another run of the same plan was, whatever its number of ranks and its batch size.
    ///
    /// # Errors
    /// `Mismatch` naming what differs; the loader stays where it was.
    pub fn resume(&mut self, state: &State) -> Result<()> {
        let at = Cursor::at(state.epoch, state.samples);
        let identity = self.identity.before(self.plan.sampler(), at);
        let cursor = state.cursor(&identity, self.plan.seed())?;
        if let Some(len) = self.plan.sampler().len(cursor.epoch)
            && cursor.samples > len
        {
            return Err(Error::mismatch(format!(
                "the state is at sample {} of an epoch of {len} samples",
                cursor.samples
            )));
        }
        self.steps.check(self.plan.sampler(), cursor)?;
        self.stop();
        self.cursor = cursor;
        self.has_failed = false;
        Ok(())
    }

    /// The next batch; `None` when the run is over. An error is given once, the next call tries the same batch again.
    pub fn next_batch(&mut self) -> Option<Result<Batch>> {
        loop {
            let before = self.cursor;
            match self.next_within(Duration::from_secs(3600)) {
                Ok(Next::Batch(batch)) => return Some(Ok(batch)),
                Ok(Next::Unfinished(batch, origin)) => {
                    let finish = self.finish.clone()?;
                    let finished = finish.finish(batch, &origin, &|| true);
                    if finished.is_err() {
                        self.cursor = before;
                    }
                    return Some(finished);
                }
                Ok(Next::End) => return None,
                Ok(Next::NotYet) => {}
                Err(e) => return Some(Err(e)),
            }
        }
    }

    /// The next batch if it is ready within `wait`: for callers that must look up between waits, as for Ctrl-C.
    ///
    /// # Errors
    /// What reading the source says. The loader stays where it was.
    pub fn next_within(&mut self, wait: Duration) -> Result<Next> {
        if self.pid != std::process::id() {
            self.leave_to_the_parent();
        }
        if self.threads == 0 {
            return self.assemble_now();
        }
        let engine = match &mut self.engine {
            Some(engine) => engine,
            None => {
                let (cursor, finish) = (self.cursor, self.finish.clone());
                let engine =
                    Engine::start(&self.plan, self.steps, cursor, self.threads, self.prefetch, finish)?;
                self.engine.insert(engine)
            }
        };
        let asked = Instant::now();
        let taken = engine.take(wait, &self.pool, &mut self.workspace);
        self.stats.waited_secs += asked.elapsed().as_secs_f64();
        match taken {
            Taken::NotYet => Ok(Next::NotYet),
            Taken::End => Ok(Next::End),
            Taken::Ready(step, Ok(batch)) => Ok(Next::Batch(self.deliver(&step, batch))),
            Taken::Ready(_, Err(e)) => {
                // What was assembled ahead comes after the failed step: start over from what was delivered.
                self.stop();
                Err(e)
            }
        }
    }

    /// Tells the threads to end, and says whether they have within `wait`: for callers that must look up between waits.
    pub fn stop_within(&mut self, wait: Duration) -> bool {
        if let Some(engine) = self.engine.as_ref().filter(|_| self.pid == std::process::id()) {
            engine.end();
            if !engine.has_ended(wait) {
                return false;
            }
        }
        self.stop();
        true
    }

    /// Tells the threads to end, and leaves those that are in a function of the caller's to themselves. The next batch starts
    /// others.
    pub fn leave(&mut self) {
        match self.engine.take_if(|_| self.pid == std::process::id()) {
            Some(engine) => engine.leave(),
            None => self.stop(),
        }
    }

    /// Ends the threads; the next batch starts them again. A thread that is in a function of the caller's for long ends when
    /// that does.
    pub fn stop(&mut self) {
        if self.pid == std::process::id() {
            self.engine = None;
        } else {
            self.leave_to_the_parent();
        }
    }

    // A forked child has the parent's memory but none of its threads, and locks as they were at the fork: neither may
    // be touched, not even to free them.
    fn leave_to_the_parent(&mut self) {
        std::mem::forget(self.engine.take());
        self.pool = Pool::new(self.prefetch);
        self.threads = 0;
        self.pid = std::process::id();
    }

    fn assemble_now(&mut self) -> Result<Next> {
        let Some(step) = self.steps.next(self.plan.sampler(), self.cursor) else { return Ok(Next::End) };
        let batch = self.plan.batch_of(&step, Some(&self.pool), &mut self.workspace)?;
        let batch = self.deliver(&step, batch);
        if self.finish.is_none() {
            return Ok(Next::Batch(batch));
        }
        let (turns, own) = (self.workspace.turns().to_vec(), self.workspace.own().clone());
        let origin = Origin { plan: self.plan.clone(), steps: self.steps, step, own, turns };
        Ok(Next::Unfinished(batch, origin))
    }

    fn deliver(&mut self, step: &Step, batch: Batch) -> Batch {
        self.cursor = step.after();
        self.has_failed = false;
        self.stats.batches += 1;
        self.stats.samples += batch.rows() as u64;
        self.stats.repeated += self.plan.own_repeated(step);
        self.stats.values += batch.values();
        self.stats.positions += batch.positions();
        self.stats.text_values += batch.text_values();
        self.stats.text_positions += batch.text_positions();
        self.stats.bytes += batch.size() as u64;
        batch
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends after an error, which `for` would meet for ever; [`Loader::next_batch`] tries the same batch again.
impl Iterator for Loader {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.next_batch();
        self.has_failed = matches!(next, Some(Err(_)));
        next
    }
}
