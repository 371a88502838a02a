//! What a row of a batch was read from, as `windrow trace` prints it and Python's `trace` returns it.

use serde::Serialize;
use windrow_core::plan::Plan;
use windrow_core::source::Location;
use windrow_core::store::without_secrets;
use windrow_core::{Result, Span};

/// A row of a batch: which sample it is, and the bytes of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TracedRow {
    /// Its number in the batch, over all ranks.
    pub row: u64,
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
        position,
        part: traced.feed,
        part_name: plan.names().get(traced.feed).cloned(),
        view: feed.view().describe(),
        sample: traced.sample,
        pass: traced.pass,
        reads: traced.spans.iter().map(read).collect::<Result<_>>()?,
    })
}
