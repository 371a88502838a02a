//! What a loader takes, as rows of a table.

use windrow_core::format::{OptionRow, Takes};

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
    OptionRow::new("drop_last", Takes::Off, "Keep the last batch of an epoch when it is not full.")
        .flag("keep_last"),
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
    OptionRow::new("prefetch", Takes::Number("N"), "Batches kept ready.").or(|| 4.into()),
];
