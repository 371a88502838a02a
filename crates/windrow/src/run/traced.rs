//! What a row of a batch was read from, as `windrow trace` prints it and Python's `trace` returns it.

use serde::Serialize;
use windrow_core::plan::{Plan, Step};
use windrow_core::source::Location;
use windrow_core::store::without_secrets;
use windrow_core::{Error, Result, Span};

/// A row of a batch: which sample it is, and the bytes of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TracedRow {
    /// Its number in the batch, over all ranks.
    pub row: u64,
    /// The rank that gets it, where ranks share the batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// Its position in the epoch.
    pub position: u64,
    /// Which part of a mixture it is from, by number.
    pub part: usize,
    /// The name of that part, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_name: Option<String>,
    /// The view of that part.
    pub view: String,
    /// The sample of that view.
    pub sample: u64,
    /// How often the part was gone through before, within the epoch.
    pub pass: u64,
    /// What it was read from, in the order of the row.
    pub reads: Vec<TracedRead>,
}

/// A span of a record, and where its bytes are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TracedRead {
    /// The record, by number.
    pub record: u64,
    /// Which channel of it, of a view that has each apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<u64>,
    /// Its first value that was read.
    pub start: u64,
    /// How many values were read.
    pub len: u64,
    /// The files, of URLs without a query or a password, and the bytes in them.
    pub locations: Vec<Location>,
}

/// A row of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOfStep {
    /// Its number in the batch, over all ranks.
    pub row: u64,
    /// The rank that gets it, where ranks share the batch.
    pub rank: Option<u64>,
    /// Its position in the epoch.
    pub position: u64,
}

impl RowOfStep {
    /// What it is read from.
    ///
    /// # Errors
    /// As [`trace_row`].
    pub fn trace(&self, plan: &Plan, epoch: u64) -> Result<TracedRow> {
        let traced = trace_row(plan, epoch, self.position, self.row)?;
        Ok(TracedRow { rank: self.rank, ..traced })
    }
}

/// The rows of a step that its rank gets; `only` one of them, counted within these. `n_ranks`: those that share the step.
///
/// # Errors
/// `OutOfRange` where there is no such row; what reading an index says.
pub fn rows_of_step(plan: &Plan, step: &Step, only: Option<u64>, n_ranks: u64) -> Result<Vec<RowOfStep>> {
    let own: Vec<u64> = plan.own(step)?.positions().map(|position| position - step.all.start).collect();
    let rows = match only {
        None => own,
        Some(row) => {
            let found = usize::try_from(row).ok().and_then(|row| own.get(row));
            vec![*found.ok_or_else(|| Error::out_of_range("row", row, own.len() as u64))?]
        }
    };
    let ranks = if n_ranks > 1 { plan.ranks(step, n_ranks)? } else { Vec::new() };
    let of_row = |row: u64| RowOfStep {
        row,
        rank: ranks.get(row as usize).copied(),
        position: step.position(plan.sampler(), row),
    };
    Ok(rows.into_iter().map(of_row).collect())
}

/// What the row at a position of an epoch is read from.
///
/// # Errors
/// Those of [`Plan::trace`] and of the source's `locate`.
pub fn trace_row(plan: &Plan, epoch: u64, position: u64, row: u64) -> Result<TracedRow> {
    let traced = plan.trace(epoch, position)?;
    let feed = &plan.feeds()[traced.feed];
    let read = |span: &Span| {
        let mut locations = feed.source().locate(*span)?;
        locations.iter_mut().for_each(|location| location.file = without_secrets(&location.file));
        let (record, channel) = (feed.number_of(span.record), feed.channel_of(span.record));
        Ok(TracedRead { record, channel, start: span.start, len: span.len, locations })
    };
    Ok(TracedRow {
        row,
        rank: None,
        position,
        part: traced.feed,
        part_name: plan.names().get(traced.feed).cloned(),
        view: feed.view().describe(),
        sample: traced.sample,
        pass: traced.pass,
        reads: traced.spans.iter().map(read).collect::<Result<_>>()?,
    })
}
