//! Which positions of a step a batch of a rank has: those that follow each other, or those that were dealt to it by what they cost.

use std::collections::VecDeque;
use std::iter;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Balance, Plan, Step};
use crate::error::Result;
use crate::per_process::PerProcess;
use crate::sampler::{RowLengths, Shard, balanced, micro_batches};
use crate::source::whole;

/// Positions of an epoch, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
    /// That follow each other.
    Run(Range<u64>),
    /// By list.
    Dealt(Arc<[u64]>),
}

impl Default for Own {
    fn default() -> Own {
        Own::Run(0..0)
    }
}

impl Own {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Own::Run(run) => usize::try_from(run.end.saturating_sub(run.start)).unwrap_or(usize::MAX),
            Own::Dealt(positions) => positions.len(),
        }
    }

    /// None.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One by one.
    pub fn positions(&self) -> impl Iterator<Item = u64> {
        self.runs().flatten()
    }

    /// Those that follow each other together.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> {
        let (run, dealt) = match self {
            Own::Run(run) => (Some(run.clone()), &[][..]),
            Own::Dealt(positions) => (None, &positions[..]),
        };
        let dealt = dealt.chunk_by(|one, next| one + 1 == *next);
        run.into_iter().chain(dealt.map(|run| run[0]..run[0] + run.len() as u64))
    }

    /// The first `most` of them.
    #[must_use]
    pub fn first(self, most: u64) -> Own {
        match self {
            Own::Run(run) => Own::Run(run.start..run.end.min(run.start.saturating_add(most))),
            Own::Dealt(positions) if positions.len() as u64 <= most => Own::Dealt(positions),
            Own::Dealt(positions) => Own::Dealt(positions.iter().copied().take(most as usize).collect()),
        }
    }
}

/// Deals the rows of steps to ranks. The steps that are at work are kept: each is asked for more than once, and a function may say what
/// rows cost.
pub(super) struct Dealer {
    by: Balance,
    /// How long rows are, where that was given.
    given: Option<Arc<RowLengths>>,
    /// Of a child of a fork another one: its parent may have held the lock.
    kept: PerProcess<Mutex<VecDeque<Kept>>>,
}

/// What a rank got of a step, or gets: whoever comes first works it out, the others wait.
struct Kept {
    of: Dealing,
    batches: Arc<Mutex<Option<Batches>>>,
}

/// The positions of each batch.
type Batches = Arc<[Arc<[u64]>]>;

/// Which step, and for which rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dealing {
    epoch: u64,
    all: Range<u64>,
    n_repeated: u64,
    shard: Shard,
    micro_batches: u64,
}

/// Steps that are kept: those that are asked for ahead of time at most, and some that are at work.
const KEPT: usize = 320;

impl Dealer {
    fn new(by: Balance, given: Option<Arc<RowLengths>>) -> Dealer {
        Dealer { by, given, kept: PerProcess::default() }
    }

    fn batches(&self, plan: &Plan, step: &Step) -> Result<Batches> {
        let Step { epoch, all, n_repeated, shard, micro_batches, .. } = step.clone();
        let of = Dealing { epoch, all, n_repeated, shard, micro_batches };
        let place = {
            let mut kept = held(self.kept.get());
            match kept.iter().find(|kept| kept.of == of) {
                Some(kept) => kept.batches.clone(),
                None => {
                    kept.truncate(KEPT - 1);
                    kept.push_front(Kept { of, batches: Arc::default() });
                    kept[0].batches.clone()
                }
            }
        };
        let mut batches = held(&place);
        if let Some(batches) = &*batches {
            return Ok(batches.clone());
        }
        // What cannot be read or fails is asked for again by the next one.
        let dealt = plan.dealt(step, &self.by)?;
        Ok(batches.insert(dealt).clone())
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Plan {
    /// Deals the rows of each step to ranks so that all cost about the same, by the lengths of their documents or by those that are
    /// given. It decides which rank gets a row, not which rows there are: the identity stays.
    #[must_use]
    pub fn balanced(self, by: Option<Balance>, given: Option<Arc<RowLengths>>) -> Plan {
        Plan { dealer: by.map(|by| Dealer::new(by, given)), ..self }
    }

    /// What rows cost their ranks, where they are dealt by it.
    pub fn balance(&self) -> Option<&Balance> {
        self.dealer.as_ref().map(|dealer| &dealer.by)
    }

    /// Whether the rows of the step are dealt by what they cost: one rank gets them as they come.
    pub(super) fn is_dealt(&self, step: &Step) -> bool {
        self.dealer.is_some() && (step.shard.world_size() > 1 || step.micro_batches > 1)
    }

    /// The positions of a batch of a step.
    ///
    /// # Errors
    /// What reading an index says, and what says how much rows cost.
    pub fn own(&self, step: &Step) -> Result<Own> {
        match &self.dealer {
            Some(dealer) if self.is_dealt(step) => {
                let batches = dealer.batches(self, step)?;
                let batch = usize::try_from(step.micro_batch).ok().and_then(|at| batches.get(at));
                Ok(batch.map_or_else(Own::default, |batch| Own::Dealt(batch.clone())))
            }
            _ => Ok(Own::Run(step.in_order())),
        }
    }

    /// How many rows of a batch of a step repeat the epoch's first samples.
    pub fn own_repeated(&self, step: &Step) -> u64 {
        if step.n_repeated == 0 {
            return 0;
        }
        // Whoever asks has the batch, so which rows it has is known.
        let own = self.own(step).unwrap_or_default();
        own.runs().map(|run| run.end.saturating_sub(run.start.max(step.end()))).sum()
    }

    /// The rank of each row of a step, in order, where this number of ranks shares it.
    ///
    /// # Errors
    /// As [`Plan::own`]; `Config` where that many ranks cannot.
    pub fn ranks(&self, step: &Step, ranks: u64) -> Result<Vec<u64>> {
        let n = step.all.end - step.all.start;
        let Some(by) = self.balance().filter(|_| ranks > 1) else {
            let ranks = (0..ranks).map(|rank| Shard::new(rank, ranks));
            let rows = ranks.map(|shard| shard.map(|shard| (shard.rank(), shard.rows(n))));
            let each = rows
                .map(|rows| rows.map(|(rank, rows)| iter::repeat_n(rank, (rows.end - rows.start) as usize)));
            return Ok(each.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect());
        };
        let costs = self.costs_by(step, by)?;
        let mut found = vec![0; costs.len()];
        for (rank, rows) in (0..).zip(balanced(&costs, usize::try_from(ranks).unwrap_or(usize::MAX))?) {
            rows.into_iter().for_each(|row| found[row] = rank);
        }
        Ok(found)
    }

    // The positions of each batch that the rank of a step gets of it.
    fn dealt(&self, step: &Step, by: &Balance) -> Result<Batches> {
        let costs = self.costs_by(step, by)?;
        let as_size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let ranks = balanced(&costs, as_size(step.shard.world_size()))?;
        let rows = ranks.get(as_size(step.shard.rank())).map_or(&[][..], Vec::as_slice);
        let position = |row: usize| step.all.start + row as u64;
        let batches = match step.micro_batches {
            0 | 1 => vec![rows.to_vec()],
            n => micro_batches(&costs, rows, as_size(n)),
        };
        Ok(batches.into_iter().map(|rows| rows.into_iter().map(position).collect()).collect())
    }

    /// What each row of a step costs; `None` where rows are not dealt by it.
    ///
    /// # Errors
    /// As [`Plan::own`].
    pub fn costs(&self, step: &Step) -> Result<Option<Vec<u128>>> {
        self.balance().map(|by| self.costs_by(step, by)).transpose()
    }

    fn costs_by(&self, step: &Step, by: &Balance) -> Result<Vec<u128>> {
        let lengths = whole(|| self.lengths(step))?;
        by.costs(&lengths)
    }

    // The lengths of the documents in each row of a step.
    fn lengths(&self, step: &Step) -> Result<Vec<Vec<u64>>> {
        let (mut turns, mut pieces) = (Vec::new(), Vec::new());
        self.turns((step.epoch, step.end()), &Own::Run(step.all.clone()), &mut turns)?;
        if let Some(given) = self.dealer.as_ref().and_then(|dealer| dealer.given.as_ref()) {
            return Ok(turns.iter().map(|turn| vec![given.of(turn.sample).into()]).collect());
        }
        let lengths = turns.iter().map(|turn| {
            let (number, sample) = self.feed_of(turn.sample);
            let feed = &self.feeds()[number];
            pieces.clear();
            let draw = self.draw(step.epoch, *turn, number);
            feed.view().pieces(sample, draw, &mut pieces).map_err(|e| feed.numbered(e))?;
            let mut lengths = Vec::new();
            feed.view().documents(&pieces, &mut lengths);
            Ok(lengths)
        });
        lengths.collect()
    }
}
