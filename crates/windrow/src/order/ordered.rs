//! The order of each view of a loader: what was chosen, with its numbers, and the log about them.

use std::sync::{Mutex, TryLockError};

use windrow_core::plan::Steps;
use windrow_core::sampler::{BlockShape, Order};
use windrow_core::spelling::spelt;
use windrow_core::{Error, Result};

use crate::order::blocks::Blocks;
use crate::order::shuffle::Shuffle;
use crate::views::bins::Bins;
use crate::views::pack::Pack;
use crate::views::recipe::ViewRecipe;
use crate::views::samples::Samples;
use crate::views::scope::Scope;

/// How far a part's share of a batch may be from a whole number of rows and still count as whole.
const WHOLE: f64 = 1e-9;

/// The order of each view, for batches of `rows` rows over all ranks.
///
/// # Errors
/// `Config` where blocks do not fit a view, or are not given for every part.
pub(crate) fn orders(
    shuffle: &Shuffle,
    parts: &[Samples],
    (names, shares): (&[String], &[f64]),
    global_batch: u64,
) -> Result<Vec<Order>> {
    let (blocks, are_own): (Vec<Blocks>, bool) = match shuffle {
        Shuffle::Off => return Ok(vec![Order::Sequential; parts.len()]),
        Shuffle::On => return Ok(vec![Order::Shuffle; parts.len()]),
        Shuffle::Blocks(blocks) => (vec![*blocks; parts.len()], parts.len() == 1),
        Shuffle::Parts(blocks) => (blocks.clone(), true),
    };
    if blocks.len() != parts.len() {
        return Err(Error::config(format!("blocks for {} parts of {}", blocks.len(), parts.len()))
            .field("shuffle")
            .hint("give them for each part, or once for all"));
    }
    let mut found = Vec::with_capacity(parts.len());
    for (number, ((samples, mut blocks), share)) in parts.iter().zip(blocks).zip(shares).enumerate() {
        refuse(samples)?;
        let rows = global_batch as f64 * share;
        if !are_own && !keeps_lanes(&blocks, rows) {
            once(
                log::Level::Info,
                format!(
                    "{:?} has one lane: its share of a batch of {global_batch} rows is {rows:.2}, not a multiple of lanes",
                    names.get(number).map_or("", String::as_str)
                ),
            );
            blocks = blocks.lanes(1);
        }
        found.push(Order::Blocks(blocks.shape(
            samples.len(),
            bytes_of(samples),
            (rows.round() as u64).max(1),
        )));
    }
    Ok(found)
}

// Bins and reshuffled packs without a scope, and rows of segments, are made of records from everywhere.
fn refuse(samples: &Samples) -> Result<()> {
    let (view, hint) = match samples.recipe().view {
        ViewRecipe::Bins(Bins { scope: Scope::All, .. }) => {
            ("a view of bins", "bins with @scope=block@ put neighbours together; else choose @shuffle=true@")
        }
        ViewRecipe::Pack(Pack { reshuffle: true, scope: None | Some(Scope::All), .. }) => (
            "a pack with @reshuffle=true@",
            "@scope=block@ reshuffles neighbours among themselves; else choose @shuffle=true@",
        ),
        ViewRecipe::Segments(_) => (
            "a view of segments",
            "choose @shuffle=true@, or a view whose samples are neighbours: pack, records, windows, or bins with a scope",
        ),
        _ => return Ok(()),
    };
    Err(Error::config(format!(
        "a shuffle by blocks of {view}: records from everywhere share a row, so no block is read whole"
    ))
    .at(samples.dataset().paths().to_string())
    .field("shuffle")
    .hint(hint))
}

// A rank has the same lanes of a part in every batch where they divide the part's rows.
fn keeps_lanes(blocks: &Blocks, rows: f64) -> bool {
    let whole = rows.round();
    let is_whole = whole >= 1.0 && (rows - whole).abs() <= WHOLE * rows;
    is_whole && blocks.lanes.is_none_or(|lanes| (whole as u64).is_multiple_of(lanes.max(1)))
}

/// Bytes of the files that samples are read from.
pub(crate) fn bytes_of(samples: &Samples) -> u64 {
    samples.feed().source().files().iter().fold(0, |sum, file| sum.saturating_add(file.size))
}

/// What was logged already: a loader is built again in a forked child, and a plan beside it.
static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

// Neither waits for the lock nor holds it while it logs: Python's logging takes the interpreter's lock, which whoever waits
// here may hold, and in a child of a fork nobody may be left to release it. Said twice then.
pub(crate) fn once(level: log::Level, text: String) {
    let text = spelt(text);
    let logged = match LOGGED.try_lock() {
        Ok(logged) => Some(logged),
        Err(TryLockError::Poisoned(logged)) => Some(logged.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    if let Some(mut logged) = logged {
        if logged.contains(&text) {
            return;
        }
        logged.push(text.clone());
    }
    log::log!(level, "{text}");
}

/// Tells the numbers of blocks, once, and where nodes share lanes.
pub(crate) fn tell(orders: &[Order], parts: &[Samples], names: &[String], steps: &Steps, nodes: u64) {
    for (number, (order, samples)) in orders.iter().zip(parts).enumerate() {
        let Order::Blocks(BlockShape { size, lanes, rows, pool }) = order else { continue };
        let of = names.get(number).map_or(String::new(), |name| format!("{name:?}: "));
        once(log::Level::Info, format!("{of}@blocks=size={size},lanes={lanes},rows={rows},pool={pool}@"));
        if names.is_empty() && *lanes < nodes {
            let fits = if nodes <= 256 && samples.len().div_ceil(*size) >= 8 * nodes {
                let rows = steps.global_batch_size.next_multiple_of(nodes.next_power_of_two());
                format!("a global batch of {rows} rows has a lane for each")
            } else {
                "@lanes@ gives more, smaller blocks (@size@) make room for them".to_string()
            };
            once(
                log::Level::Warn,
                format!(
                    "blocks in {lanes} lanes for {nodes} nodes: several nodes read the same blocks; {fits}"
                ),
            );
        }
    }
}
