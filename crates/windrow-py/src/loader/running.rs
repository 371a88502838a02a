//! A loader that many Python threads and forked children may hold: one at a time runs it, and a child gets its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use windrow::dev::loader::Origin;
use windrow::{Error, Loader, LoaderBuilder, Next, Plan, State, Stats};
use windrow_core::Result;
use windrow_core::collate::Batch;
use windrow_core::plan::{Cursor, Identity, Steps};
use windrow_core::sampler::Shard;

use crate::loader::mapped::{Mapped, threads};
use crate::loader::ranks::{Found, Ranks};
use crate::python::error::{OrRaise, raise};
use crate::python::interrupt::check;

/// How long to wait before looking for Ctrl-C again.
const LOOK_UP: Duration = Duration::from_millis(50);

/// How long `close` waits for calls of `map=` that are under way.
const CLOSES: Duration = Duration::from_secs(5);

/// The loader of this process, and how much of it was handed to Python.
///
/// The small locks are taken by attached threads alone, which never wait inside: at a fork nobody else holds them.
/// The loader's own lock is held while waiting for a batch, so a child must not touch it: it builds its own loader.
pub(crate) struct Running {
    // As it was given; what depends on the number of ranks is in `order`.
    builder: LoaderBuilder,
    ranks: Ranks,
    order: Mutex<Order>,
    slot: Mutex<Arc<Slot>>,
    delivered: Mutex<Delivered>,
    mapped: Option<Arc<Mapped>>,
}

/// A batch, and which samples it holds where `map=` is still to be called for them.
pub(crate) struct Taken {
    pub(crate) batch: Batch,
    pub(crate) origin: Option<Origin>,
}

struct Slot {
    pid: u32,
    inner: Mutex<Inner>,
    // Threads that wait for the lock, which whoever waits for a batch would take again before they wake.
    asking: AtomicUsize,
    mapped: Option<Arc<Mapped>>,
}

struct Inner {
    loader: Loader,
    // Counts batches and jumps, so that threads that are overtaken do not turn the cursor back.
    turn: u64,
}

/// The order that the run has: blocks may be chosen for the batch of all ranks.
#[derive(Clone)]
struct Order {
    builder: LoaderBuilder,
    plan: Arc<Plan>,
    identity: Identity,
}

#[derive(Clone, Copy)]
struct Delivered {
    turn: u64,
    cursor: Cursor,
}

impl Running {
    /// At the first batch. Which rank this is need not be known yet.
    pub(crate) fn new(
        py: Python<'_>,
        builder: LoaderBuilder,
        ranks: Ranks,
        mapped: Option<Mapped>,
    ) -> PyResult<Running> {
        let mapped = mapped.map(Arc::new);
        let shard = if builder.order_asks_for_ranks() { ranks.find(py)?.shard } else { ranks.known() };
        let builder = builder.rank(shard.rank(), shard.world_size());
        let (order, loader) = py.detach(|| Order::of(&builder)).or_raise(py)?;
        let cursor = loader.cursor();
        let inner = Mutex::new(Inner { loader: through(loader, mapped.as_ref()), turn: 0 });
        Ok(Running {
            builder,
            ranks,
            order: Mutex::new(order),
            slot: Mutex::new(Slot::live(inner, mapped.clone())),
            delivered: Mutex::new(Delivered { turn: 0, cursor }),
            mapped,
        })
    }

    /// The function that rows go through.
    pub(crate) fn mapped(&self) -> Option<&Mapped> {
        self.mapped.as_deref()
    }

    /// The next batch; `None` at the end of the run, or where the next batch is not one of `epoch`. Ends with
    /// `KeyboardInterrupt` soon after Ctrl-C; nothing is lost then.
    pub(crate) fn next(&self, py: Python<'_>, epoch: Option<u64>) -> PyResult<Option<Taken>> {
        check(py)?;
        self.refuse_its_function(py, "asks that loader for a batch")?;
        let slot = self.settled(py)?;
        loop {
            let (next, turn, cursor) = py.detach(|| {
                let mut inner = slot.lock();
                let next = if epoch.is_some() && inner.loader.upcoming_epoch() != epoch {
                    Ok(Next::End)
                } else {
                    inner.loader.next_within(LOOK_UP)
                };
                inner.turn += u64::from(matches!(next, Ok(Next::Batch(_) | Next::Unfinished(..))));
                (next, inner.turn, inner.loader.cursor())
            });
            // What a signal raised beside a batch is given instead of the next one: this one would be lost.
            let (batch, origin) = match next.or_else(|e| Err(e).or_raise(py))? {
                Next::Batch(batch) => (batch, None),
                Next::Unfinished(batch, origin) => (batch, Some(origin)),
                Next::End => return Ok(None),
                Next::NotYet => {
                    check(py)?;
                    py.detach(|| slot.let_others());
                    continue;
                }
            };
            self.note(Delivered { turn, cursor });
            return Ok(Some(Taken { batch, origin }));
        }
    }

    /// The epoch of the next batch; `None` when the run is over.
    pub(crate) fn upcoming_epoch(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let slot = self.settled(py)?;
        Ok(py.detach(|| slot.lock().loader.upcoming_epoch()))
    }

    /// Goes to the first batch of an epoch.
    pub(crate) fn begin(&self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.fit_order(py)?;
        self.resume(py, &self.state_at(Cursor::at(epoch, 0)))
    }

    /// Where the run is: what Python got.
    pub(crate) fn state(&self) -> State {
        self.state_at(self.cursor())
    }

    /// The state of a run at this place.
    pub(crate) fn state_at(&self, cursor: Cursor) -> State {
        let Order { plan, identity, .. } = held(&self.order).clone();
        identity.state(&plan, cursor)
    }

    /// How many samples of which epoch were delivered to all ranks together.
    pub(crate) fn cursor(&self) -> Cursor {
        held(&self.delivered).cursor
    }

    /// Goes to where another run was.
    pub(crate) fn resume(&self, py: Python<'_>, state: &State) -> PyResult<()> {
        self.fit_order(py)?;
        let slot = self.slot(py)?;
        let (turn, cursor) = py
            .detach(|| -> Result<_> {
                let mut inner = slot.lock();
                inner.loader.resume(state)?;
                inner.turn += 1;
                Ok((inner.turn, inner.loader.cursor()))
            })
            .or_raise(py)?;
        self.note(Delivered { turn, cursor });
        Ok(())
    }

    /// Goes back to a place where this loader was, also within a step.
    pub(crate) fn back_to(&self, py: Python<'_>, cursor: Cursor) -> PyResult<()> {
        let slot = self.slot(py)?;
        let turn = py.detach(|| {
            let mut inner = slot.lock();
            inner.loader.back_to(cursor);
            inner.turn += 1;
            inner.turn
        });
        self.note(Delivered { turn, cursor });
        Ok(())
    }

    /// What was done so far, in this process.
    pub(crate) fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        let slot = self.slot(py)?;
        Ok(py.detach(|| slot.lock().loader.stats()))
    }

    /// Of each view of a mixture by name, the samples of this epoch that were delivered to all ranks, and passes.
    pub(crate) fn part_samples(&self) -> Vec<(String, u64, f64)> {
        let Order { plan, .. } = held(&self.order).clone();
        let samples = {
            let Cursor { epoch, samples, .. } = self.cursor();
            plan.sampler().samples_of_views_in(epoch, samples)
        };
        let views = plan.names().iter().zip(plan.feeds()).zip(samples);
        views.map(|((name, feed), n)| (name.clone(), n, n as f64 / feed.len().max(1) as f64)).collect()
    }

    /// Ends the threads; the next batch would start them again. One that is long in a function of Python's is left to itself.
    pub(crate) fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.refuse_its_function(py, "closes that loader")?;
        let slot = self.slot(py)?;
        if self.mapped.is_none() {
            py.detach(|| slot.lock().loader.stop());
            return Ok(());
        }
        let begun = Instant::now();
        while begun.elapsed() < CLOSES {
            if py.detach(|| slot.lock().loader.stop_within(LOOK_UP)) {
                return Ok(());
            }
            if let Err(raised) = check(py) {
                py.detach(|| slot.lock().loader.leave());
                return Err(raised);
            }
        }
        py.detach(|| slot.lock().loader.leave());
        Ok(())
    }

    // A call would wait for itself.
    fn refuse_its_function(&self, py: Python<'_>, what: &str) -> PyResult<()> {
        if !self.mapped.as_ref().is_some_and(|mapped| mapped.is_calling_here()) {
            return Ok(());
        }
        let error = Error::config(format!("the function map= of a loader {what}"))
            .hint("read single samples of its view, as view[i], or another loader");
        Err(raise(py, &error))
    }

    /// The pure function and its rule from step to step, as this rank would go now.
    pub(crate) fn plan(&self, py: Python<'_>) -> PyResult<(Arc<Plan>, Steps)> {
        let slot = self.as_rank(py, self.ranks.find(py)?.shard)?;
        Ok(py.detach(|| {
            let inner = slot.lock();
            (inner.loader.plan().clone(), *inner.loader.steps())
        }))
    }

    /// Which rank this is, and what says so.
    pub(crate) fn rank(&self, py: Python<'_>) -> PyResult<Found> {
        self.ranks.find(py)
    }

    /// The plan's name.
    pub(crate) fn identity(&self) -> String {
        held(&self.order).identity.to_string()
    }

    /// What it was built from, as the rank that this is now.
    pub(crate) fn builder(&self, py: Python<'_>) -> PyResult<LoaderBuilder> {
        let shard = self.ranks.find(py)?.shard;
        self.as_rank(py, shard)?;
        Ok(held(&self.order).builder.clone().rank(shard.rank(), shard.world_size()))
    }

    /// The names of a mixture's parts.
    pub(crate) fn part_names(&self) -> &[String] {
        self.builder.part_names()
    }

    // This process's loader as the rank that it stays from now on.
    fn settled(&self, py: Python<'_>) -> PyResult<Arc<Slot>> {
        if self.ranks.is_settled() {
            return self.slot(py);
        }
        let found = self.ranks.decide(py)?;
        let slot = self.as_rank(py, found.shard)?;
        self.ranks.settle(py, found)?;
        Ok(slot)
    }

    fn as_rank(&self, py: Python<'_>, shard: Shard) -> PyResult<Arc<Slot>> {
        let slot = self.slot(py)?;
        let order = py.detach(|| -> Result<_> {
            let mut inner = slot.lock();
            let mut chosen = None;
            let is_new = inner.loader.steps().shard.world_size() != shard.world_size();
            // Once a batch or a state was taken, the order is the run's own.
            if is_new && self.builder.order_asks_for_ranks() && inner.turn == 0 {
                let builder = self.builder.clone().rank(shard.rank(), shard.world_size());
                let (order, loader) = Order::of(&builder)?;
                inner.loader = through(loader, self.mapped.as_ref());
                chosen = Some(order);
            }
            inner.loader.set_shard(shard)?;
            Ok(chosen)
        });
        if let Some(order) = order.or_raise(py)? {
            *held(&self.order) = order;
        }
        Ok(slot)
    }

    // Before a state is compared with the order: as the number of ranks is now.
    fn fit_order(&self, py: Python<'_>) -> PyResult<()> {
        if self.builder.order_asks_for_ranks() {
            self.as_rank(py, self.ranks.find(py)?.shard).map(drop)
        } else {
            Ok(())
        }
    }

    fn note(&self, now: Delivered) {
        let mut last = held(&self.delivered);
        if now.turn >= last.turn {
            *last = now;
        }
    }

    // This process's loader. A forked child leaves its parent's where it is: its lock may be held by a thread that is
    // not there, and its threads are not either.
    fn slot(&self, py: Python<'_>) -> PyResult<Arc<Slot>> {
        let slot = held(&self.slot).clone();
        if slot.pid == std::process::id() {
            return Ok(slot);
        }
        std::mem::forget(slot);
        let shard = self.ranks.known();
        let builder = held(&self.order).builder.clone().rank(shard.rank(), shard.world_size());
        let mut loader = builder.num_threads(Some(0)).build().or_raise(py)?;
        let last = *held(&self.delivered);
        loader.resume(&self.state()).or_raise(py)?;
        loader.back_to(last.cursor);
        let loader = through(loader, self.mapped.as_ref());
        let inner = Mutex::new(Inner { loader, turn: last.turn });
        let slot = Slot::live(inner, self.mapped.clone());
        std::mem::forget(std::mem::replace(&mut *held(&self.slot), slot.clone()));
        Ok(slot)
    }
}

impl Order {
    fn of(builder: &LoaderBuilder) -> Result<(Order, Loader)> {
        let builder = builder.with_order_fixed()?;
        let loader = builder.build()?;
        let (plan, identity) = (loader.plan().clone(), loader.identity().clone());
        Ok((Order { plan, identity, builder }, loader))
    }
}

// The loader, with the function that its rows go through.
fn through(loader: Loader, mapped: Option<&Arc<Mapped>>) -> Loader {
    match mapped {
        Some(mapped) => loader.finished_by(mapped.clone()),
        None => loader,
    }
}

/// Of this process, and of those it was forked from.
static LIVE: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

/// Ends the threads of all loaders. Called before Python ends: a thread that calls a function of Python's after that is
/// ended in the middle of it, and the program with it.
#[pyfunction]
pub(crate) fn _stop_all(py: Python<'_>) {
    let all: Vec<Arc<Slot>> = held(&LIVE).iter().filter_map(Weak::upgrade).collect();
    let mut mapped = Vec::new();
    for slot in all {
        if slot.pid != std::process::id() {
            std::mem::forget(slot);
        } else if slot.mapped.is_some() {
            mapped.push(slot);
        } else {
            py.detach(|| slot.lock().loader.stop());
        }
    }
    // All are told before any is waited for.
    mapped.retain(|slot| !py.detach(|| slot.lock().loader.stop_within(Duration::ZERO)));
    threads::end(py);
    for slot in mapped {
        py.detach(|| slot.lock().loader.leave());
    }
}

impl Slot {
    fn live(inner: Mutex<Inner>, mapped: Option<Arc<Mapped>>) -> Arc<Slot> {
        let slot = Arc::new(Slot { pid: std::process::id(), inner, asking: AtomicUsize::new(0), mapped });
        let mut live = held(&LIVE);
        live.retain(|slot| slot.strong_count() > 0);
        live.push(Arc::downgrade(&slot));
        slot
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.asking.fetch_add(1, Ordering::Relaxed);
        // A loader is whole between calls, so a poisoned lock is still a good one.
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.asking.fetch_sub(1, Ordering::Relaxed);
        inner
    }

    // Lets others have the lock, such as a function that asks its own loader how it does: the batch may wait for that.
    fn let_others(&self) {
        const A_WHILE: Duration = Duration::from_micros(200);
        let begun = Instant::now();
        while self.asking.load(Ordering::Relaxed) > 0 && begun.elapsed() < LOOK_UP {
            std::thread::sleep(A_WHILE);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let slot = held(&self.slot).clone();
        if slot.pid != std::process::id() {
            // The count never reaches zero, so the parent's threads and locks stay untouched.
            std::mem::forget(slot);
            return;
        }
        // Ending the threads waits for them, and one of them may be writing to Python's log.
        let stop = || slot.lock().loader.stop();
        Python::try_attach(|py| py.detach(stop)).unwrap_or_else(stop);
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
