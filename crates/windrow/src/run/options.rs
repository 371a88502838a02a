//! What a loader takes, as rows of a table.

use windrow_core::format::{OptionRow, Takes};
use windrow_core::plan::LastBatch;
use windrow_core::{Error, Result, option_rows};

/// What a loader takes beside what it loads: size · order · ranks · budget · function · fields · delivery. Functions, groups of
/// processes and what else only a program holds is not among them.
pub static LOADER: &[OptionRow] = option_rows! {
    /// Rows of a batch for each rank.
    batch_size: Takes::Number("N");
    /// Or rows of a batch for all ranks together.
    global_batch_size: Takes::Number("N");
    /// Or a budget: rows of a batch for all ranks together, times the longest of them, at most.
    max_tokens: Takes::Number("N");
    /// With max_tokens: rows of a batch are a multiple of this.
    multiple: Takes::Number("D"), or 1, flag "batch_multiple";
    /// With max_tokens: rows that are sorted by length together, by default those of about 50 batches.
    pool: Takes::Number("Q");
    /// With max_tokens or balance, of a view of rows: the column that says how long each record is.
    lengths: Takes::Text("COLUMN");
    /// `on`, `off`, or `blocks`, which reads neighbours together; with numbers as blocks:size=2048,lanes=64,rows=4,pool=16 or
    /// blocks:bytes=8MiB.
    shuffle: Takes::Text("ORDER"), or "on";
    /// Seed of the shuffle order and random crops.
    seed: Takes::Number("S"), or 0;
    /// Keep the last batch of an epoch when it is not full.
    drop_last: Takes::Off;
    /// Fill the last batch of an epoch with the first samples of the epoch.
    last: Takes::Words(&["repeat"]);
    /// This rank.
    rank: Takes::Number("R");
    /// Number of ranks.
    world_size: Takes::Number("W");
    /// Rank R of a context group of S ranks, which share each row: only its part of the rows.
    context: Takes::Text("R/S");
    /// The number of epochs in the run; without it, the run has no end.
    epochs: Takes::Number("N");
    /// Give each rank rows that cost about the same: by their tokens; by attention within documents, A·L + L² for each document of L
    /// tokens, where A is 6 times the hidden size, or `attention` for 24576.
    balance: Takes::WordsOr(&["tokens", "attention"], "A");
    /// Batches of a rank that make an optimiser's step: batch_size counts rows of one, global_batch_size of all of them.
    accumulate: Takes::Number("M"), or 1;
    /// Threads that assemble batches ahead, 0 for none.
    num_threads: Takes::Number("N");
    /// Name of the function that rows go through: states of another name are refused.
    map_name: Takes::Text("NAME");
    /// What fields of a batch are called, by what the view calls them.
    names: Takes::Pairs;
    /// The dtypes of fields, by what the view calls them.
    dtypes: Takes::Pairs;
    /// Batches kept ready.
    prefetch: Takes::Number("N"), or 4;
};

/// What to do with an epoch's last batch when it is not full, by the options of these names.
///
/// ```
/// use windrow::{LastBatch, last_batch};
///
/// assert_eq!(last_batch(true, Some("repeat"))?, LastBatch::Repeat);
/// assert!(last_batch(false, Some("repeat")).is_err());
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `Config` for a word that `last` does not take, and for a batch that is to be kept as it is and filled.
pub fn last_batch(drop_last: bool, last: Option<&str>) -> Result<LastBatch> {
    match (drop_last, last) {
        (true, None) => Ok(LastBatch::Drop),
        (false, None) => Ok(LastBatch::Keep),
        (true, Some("repeat")) => Ok(LastBatch::Repeat),
        (false, Some("repeat")) => Err(Error::config("@drop_last=false@ and @last=repeat@ were given")
            .field("last")
            .hint("keep the last batch as it is, or fill it: give one of them")),
        (_, Some(other)) => Err(Error::config(format!("@last={other:?}@"))
            .field("last")
            .hint("@last=repeat@, or leave it out")),
    }
}
