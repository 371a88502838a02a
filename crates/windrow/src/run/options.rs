//! What a loader takes, as rows of a table.

use windrow_core::format::{OptionRow, Takes};
use windrow_core::plan::LastBatch;
use windrow_core::{Error, Result};

/// What a loader takes beside what it loads: size · order · ranks · budget · function · fields · delivery. Functions, groups of
/// processes and what else only a program holds is not among them.
pub static LOADER: &[OptionRow] = &[
    OptionRow::new("batch_size", Takes::Number("N"), "Rows of a batch for each rank."),
    OptionRow::new("global_batch_size", Takes::Number("N"), "Or rows of a batch for all ranks together."),
    OptionRow::new(
        "shuffle",
        Takes::Text("ORDER"),
        "`on`, `off`, or `blocks`, which reads neighbours together; with numbers as \
         blocks:size=2048,lanes=64,rows=4,pool=16 or blocks:bytes=8MiB.",
    )
    .or(|| "on".into()),
    OptionRow::new("seed", Takes::Number("S"), "Seed of the shuffle order and random crops.").or(|| 0.into()),
    OptionRow::new("drop_last", Takes::Off, "Keep the last batch of an epoch when it is not full."),
    OptionRow::new(
        "last",
        Takes::Words(&["repeat"]),
        "Fill the last batch of an epoch with the first samples of the epoch.",
    ),
    OptionRow::new("rank", Takes::Number("R"), "This rank."),
    OptionRow::new("world_size", Takes::Number("W"), "Number of ranks."),
    OptionRow::new(
        "epochs",
        Takes::Number("N"),
        "The number of epochs in the run; without it, the run has no end.",
    ),
    OptionRow::new("num_threads", Takes::Number("N"), "Threads that assemble batches ahead, 0 for none."),
    OptionRow::new(
        "map_name",
        Takes::Text("NAME"),
        "Name of the function that rows go through: states of another name are refused.",
    ),
    OptionRow::new("prefetch", Takes::Number("N"), "Batches kept ready.").or(|| 4.into()),
];

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
