//! The pure function: (plan, seed, epoch, positions) → batch. Its identity, and its inverse.

mod alike;
mod balance;
mod budget;
mod compared;
mod covered;
mod cursor;
mod feed;
mod filling;
mod identity;
mod own;
mod passes;
mod state;
mod step;
mod trace;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use balance::{Balance, Cost};
pub use budget::row_lengths;
pub use compared::{OtherStep, Run, first_difference};
pub use covered::{Covered, CoveredFile, CoveredPart};
pub(crate) use cursor::in_run;
pub use cursor::{Cursor, is_skipped};
pub use feed::{Feed, Pick, batch_of, records_of};
use filling::Filling;
pub use identity::Identity;
use own::Dealer;
pub use own::Own;
pub use state::{STATE_VERSION, State};
pub use step::{LastBatch, Step, Steps};
pub use trace::{Found, Traced};

use crate::array::reserve;
use crate::collate::{Batch, Context, OutputOptions, Pool};
use crate::error::{Error, Result};
use crate::sampler::{Sampler, Skipping, Turn};
use crate::source::{StoreSet, Traffic, whole};

/// By how many samples the processor is asked ahead for what says where they lie.
const AHEAD: usize = 4;

/// Everything that decides the batch of all ranks, and nothing that does not: no threads, no prefetch, no rank. What deals its rows to
/// ranks is here, too, and no part of its identity.
pub struct Plan {
    feeds: Vec<Feed>,
    // First sample number of each feed, and the number of all samples.
    starts: Vec<u64>,
    sampler: Arc<dyn Sampler>,
    seed: u64,
    names: Vec<String>,
    map_name: Option<String>,
    dealer: Option<Dealer>,
}

/// Memory that one thread uses again for every batch.
#[derive(Debug, Default)]
pub struct Workspace {
    turns: Vec<Turn>,
    own: Own,
    feed: feed::Workspace,
}

impl Workspace {
    /// One for batches whose rows are looked at one by one: rows of columns are not stacked.
    pub fn of_records(is_by_row: bool) -> Workspace {
        Workspace { feed: feed::Workspace::of_records(is_by_row), ..Workspace::default() }
    }

    /// The samples of the batch that was assembled last.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The positions of the step that was assembled last.
    pub fn own(&self) -> &Own {
        &self.own
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let views: Vec<String> = self.feeds.iter().map(|feed| feed.view().describe()).collect();
        f.debug_struct("Plan")
            .field("views", &views)
            .field("names", &self.names)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// One view, or several under a sampler whose sample numbers run through them in order.
    ///
    /// # Errors
    /// `Config` when there is no feed, or no sample; `Mismatch` when feeds have different tensors that a batch takes rows of, or
    /// [in batches of their own](Sampler::views_of_batches), tensors of different names or dtypes.
    pub fn new(feeds: Vec<Feed>, sampler: Arc<dyn Sampler>, seed: u64) -> Result<Plan> {
        let mut starts = vec![0u64];
        for feed in &feeds {
            let end = starts.last().copied().unwrap_or(0).checked_add(feed.len());
            starts.push(end.ok_or_else(|| Error::config("more samples than 2^64"))?);
        }
        if feeds.is_empty() {
            return Err(Error::config("a plan without a view"));
        }
        let of_batches = sampler.views_of_batches();
        alike::check(&feeds, &of_batches)?;
        let feeds = if of_batches.is_empty() { feeds } else { Feed::told_apart(feeds)? };
        Ok(Plan { feeds, starts, sampler, seed, names: Vec::new(), map_name: None, dealer: None })
    }

    /// Names the views. A name decides nothing.
    #[must_use]
    pub fn named(self, names: Vec<String>) -> Plan {
        Plan { names, ..self }
    }

    /// The names of the views, in their order; none where they have none.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Names the function that its rows go through, so that states of another name are refused.
    ///
    /// # Errors
    /// `Config` for a name that an identity cannot hold.
    pub fn mapped(self, name: Option<&str>) -> Result<Plan> {
        let refused =
            |name: &&str| name.is_empty() || name.len() > 80 || name.contains([';', '\n', '\r', '\t']);
        if let Some(name) = name.filter(refused) {
            return Err(Error::config(format!("map_name is {name:?}"))
                .field("map_name")
                .hint("1 to 80 bytes without `;` and without tabs and line ends, as \"crop-2\""));
        }
        Ok(Plan { map_name: name.map(str::to_string), ..self })
    }

    /// The name of the function that its rows go through, where it has one.
    pub fn map_name(&self) -> Option<&str> {
        self.map_name.as_deref()
    }

    /// Gives of each row the part that a rank of a context group holds. It decides nothing: the plan is called the same, and a run continues
    /// with another size.
    ///
    /// # Errors
    /// `Config` for rows that are not divided, or not into equal chunks.
    pub fn in_context(self, context: Context) -> Result<Plan> {
        if context.is_alone() {
            return Ok(self);
        }
        let feeds: Result<Vec<Feed>> = self.feeds.into_iter().map(|feed| feed.in_context(context)).collect();
        Ok(Plan { feeds: feeds?, ..self })
    }

    /// Gives the fields of batches other names and dtypes. It decides nothing: the plan is called the same, and a run continues with others.
    ///
    /// # Errors
    /// `Config` for views of rows, for names that no field has, that two fields would have, and dtypes that fields cannot have.
    pub fn with_outputs(self, options: &OutputOptions) -> Result<Plan> {
        if options.is_empty() {
            return Ok(self);
        }
        let feeds: Result<Vec<Feed>> =
            self.feeds.into_iter().map(|feed| feed.with_outputs(options)).collect();
        Ok(Plan { feeds: feeds?, ..self })
    }

    /// Leaves out some positions of the run; see [`Skipping`].
    ///
    /// # Errors
    /// `Config` for a range without a position.
    pub fn skipping(self, skips: &[(u64, u64)]) -> Result<Plan> {
        if skips.is_empty() {
            return Ok(self);
        }
        let sampler: Arc<dyn Sampler> = Arc::new(Skipping::new(self.sampler, skips)?);
        Ok(Plan { sampler, ..self })
    }

    /// The views, in the order of their sample numbers.
    pub fn feeds(&self) -> &[Feed] {
        &self.feeds
    }

    /// The order.
    pub fn sampler(&self) -> &dyn Sampler {
        self.sampler.as_ref()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Assembles the samples at these positions of an epoch into one batch, in order.
    ///
    /// # Errors
    /// `OutOfRange` for positions past the epoch's end; what reading the source says.
    pub fn batch(
        &self,
        epoch: u64,
        positions: Range<u64>,
        pool: Option<&Pool>,
        workspace: &mut Workspace,
    ) -> Result<Batch> {
        if let Some(len) = self.sampler.len(epoch)
            && positions.end > len
        {
            return Err(Error::out_of_range("position", positions.end.saturating_sub(1), len));
        }
        workspace.own = Own::Run(positions);
        self.assemble((epoch, u64::MAX), None, pool, workspace)
    }

    /// Assembles this rank's part of a step into one batch.
    ///
    /// # Errors
    /// What reading the source says, and what says how much rows cost.
    pub fn batch_of(&self, step: &Step, pool: Option<&Pool>, workspace: &mut Workspace) -> Result<Batch> {
        let longest = whole(|| self.longest_of(step, &mut workspace.turns))?;
        workspace.own = self.own(step)?;
        self.assemble((step.epoch, step.end()), longest, pool, workspace)
    }

    /// Whether a batch is as long as its longest row, so that a row is longer beside others than by itself.
    pub fn pads(&self) -> bool {
        self.feeds.iter().any(|feed| feed.collate().row_length(1).is_some())
    }

    /// The row of a turn in a batch of its own, as a view gives it.
    ///
    /// # Errors
    /// What reading the source says.
    pub fn row_alone(&self, epoch: u64, turn: Turn, workspace: &mut Workspace) -> Result<Batch> {
        let (number, sample) = self.feed_of(turn.sample);
        let draw = self.draw(epoch, turn, number);
        let add = &mut |feed: &mut feed::Workspace| feed.add(&self.feeds[number], number, sample, draw);
        workspace.feed.batch(&self.feeds, None, add)
    }

    /// Bytes of all files that the plan reads.
    pub fn bytes(&self) -> u64 {
        let files = self.feeds.iter().flat_map(|feed| feed.source().files());
        files.fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// What the stores of all sources were asked for, each store once.
    pub fn traffic(&self) -> Traffic {
        self.stores().traffic()
    }

    /// Bytes of announced reads that the stores hold in memory until they are read; `None` where all data is near.
    pub fn room_ahead(&self) -> Option<u64> {
        self.stores().room_ahead()
    }

    /// Whether all data that is fetched stays on this machine until it is read again.
    pub fn is_kept(&self) -> bool {
        self.stores().keeps(self.bytes())
    }

    fn stores(&self) -> StoreSet {
        let mut stores = StoreSet::default();
        self.feeds.iter().for_each(|feed| stores.add_all(feed.stores()));
        stores
    }

    /// Says to the sources what this rank's rows of a step read, the first `most` of them, `number` steps after the loader's first. A
    /// hint: what cannot be found is an error of the step's own turn.
    pub fn prefetch(&self, step: &Step, number: u64, most: u64, workspace: &mut Workspace) {
        let Workspace { turns, feed, .. } = workspace;
        let Ok(own) = self.own(step).map(|own| own.first(most)) else { return };
        feed.clear();
        if whole(|| self.add((step.epoch, step.end()), &own, turns, feed)).is_ok() {
            feed.prefetch(&self.feeds, number);
        }
    }

    /// Whether reads may ask another machine, so that they are worth telling ahead always.
    pub fn is_far(&self) -> bool {
        self.feeds.iter().any(Feed::is_far)
    }

    /// The runs of samples, by their numbers over all views, that this rank's rows of a step are drawn from, where the order
    /// has such blocks; as [`Sampler::blocks`]. Where rows are dealt by cost, a rank draws from the blocks of all.
    pub fn blocks(&self, step: &Step, out: &mut Vec<Range<u64>>) -> bool {
        let len = self.sampler.len(step.epoch).unwrap_or(u64::MAX);
        let from = if self.is_dealt(step) { step.all.clone() } else { step.in_order() };
        self.sampler.blocks(step.epoch, from.start..from.end.min(step.end()).min(len), out)
    }

    /// Says to the sources that a run of samples is read soon, all of it, as it is at a place of the run of the plan.
    pub fn prefetch_run(&self, at: Cursor, run: Range<u64>, workspace: &mut Workspace) {
        let feed = &mut workspace.feed;
        feed.clear();
        let passes = self.passes_at(at);
        let all = || {
            run.clone().try_for_each(|sample| {
                let (number, sample) = self.feed_of(sample);
                feed.add(&self.feeds[number], number, sample, passes[number].draw(sample))
            })
        };
        if whole(all).is_ok() {
            feed.prefetch(&self.feeds, 0);
        }
    }

    /// Bytes that one row of a batch reads, on average.
    pub fn bytes_per_row(&self) -> u64 {
        let samples = self.starts.last().copied().unwrap_or(0).max(1);
        (self.bytes() / samples).max(1)
    }

    fn assemble(
        &self,
        (epoch, end): (u64, u64),
        longest: Option<u64>,
        pool: Option<&Pool>,
        workspace: &mut Workspace,
    ) -> Result<Batch> {
        let Workspace { turns, own, feed } = workspace;
        feed.batch(&self.feeds, pool, &mut |feed| {
            self.add((epoch, end), own, turns, feed)?;
            feed.beside(longest);
            Ok(())
        })
    }

    // Whose turn it is at these positions. Those past the end stand for the epoch's first samples again, those that are not skipped.
    fn turns(&self, (epoch, end): (u64, u64), own: &Own, turns: &mut Vec<Turn>) -> Result<()> {
        turns.clear();
        // Asked for here, memory that is not there is an error; where the list grows, it would end the process.
        reserve(turns, own.len()).map_err(|_| too_large(own))?;
        let end = self.sampler.len(epoch).unwrap_or(u64::MAX).min(end);
        for positions in own.runs() {
            self.sampler.turns(epoch, positions.start.min(end)..positions.end.min(end), turns);
            if positions.end > end {
                let filling = Filling::new(self.sampler(), epoch, end);
                for run in filling.runs(positions.start.max(end)..positions.end) {
                    self.sampler.turns(epoch, run, turns);
                }
            }
        }
        Ok(())
    }

    // What the samples at these positions are made of.
    fn add(
        &self,
        (epoch, end): (u64, u64),
        own: &Own,
        turns: &mut Vec<Turn>,
        workspace: &mut feed::Workspace,
    ) -> Result<()> {
        self.turns((epoch, end), own, turns)?;
        workspace.reserve(own.len()).map_err(|_| too_large(own))?;
        for (i, turn) in turns.iter().enumerate() {
            // What says where a later sample lies comes from memory meanwhile.
            if let Some(later) = turns.get(i + AHEAD) {
                let (number, sample) = self.feed_of(later.sample);
                workspace.touch(&self.feeds[number], sample);
            }
            let (number, sample) = self.feed_of(turn.sample);
            workspace.add(&self.feeds[number], number, sample, self.draw(epoch, *turn, number))?;
        }
        Ok(())
    }

    // Which feed a sample number belongs to, and its number there.
    fn feed_of(&self, sample: u64) -> (usize, u64) {
        let feed = match self.feeds.len() {
            1 => 0,
            _ => self
                .starts
                .partition_point(|start| *start <= sample)
                .saturating_sub(1)
                .min(self.feeds.len() - 1),
        };
        (feed, sample - self.starts[feed])
    }
}

fn too_large(own: &Own) -> Error {
    Error::memory(format!("a batch of {} rows", own.len())).hint("choose a smaller batch size")
}
