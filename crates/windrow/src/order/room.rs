//! Whether what an order by blocks mixes at a time finds room where data is far away.

use windrow_core::plan::Steps;
use windrow_core::sampler::{BlockShape, Order};
use windrow_core::source::FileInfo;
use windrow_core::{Error, Result};

use crate::opening::remote;
use crate::order::ordered::bytes_of;
use crate::views::samples::Samples;

/// A pool is read while the next one is fetched.
const POOLS: u64 = 2;

/// What a rank has of one part at a time.
struct Need {
    /// Bytes of two pools of its lanes, or of all that it reads.
    bytes: u64,
    /// Bytes of one block of each of its lanes.
    block: u64,
    /// Rows of the part in a batch of all ranks.
    rows: f64,
}

/// Checks that two pools of each part fit into the memory of this rank: what does not fit would be fetched again for each batch. The
/// cache is no help: it keeps what came first, unless it takes all of the data.
///
/// # Errors
/// `Config` that names the pool that fits and how well it mixes, and the room that the given one needs.
pub(crate) fn check(orders: &[Order], parts: &[Samples], shares: &[f64], steps: &Steps) -> Result<()> {
    let far = orders.iter().zip(parts).zip(shares).filter_map(|((order, samples), share)| {
        let Order::Blocks(shape) = order else { return None };
        let is_far = samples.feed().source().files().iter().any(FileInfo::is_far);
        is_far.then(|| (shape, samples, steps.global_batch_size as f64 * share))
    });
    let far: Vec<_> = far.collect();
    let all = far.iter().fold(0u64, |all, (_, samples, _)| all.saturating_add(bytes_of(samples)));
    // Parts share the memory, whichever of them asks.
    let mut left = None;
    for (shape, samples, rows) in far {
        let options = samples.dataset().options();
        if all <= remote::room(options) {
            return Ok(());
        }
        let need = need(shape, samples, rows, steps.shard.world_size());
        let room = left.unwrap_or_else(|| remote::memory(options));
        if need.bytes > room {
            return Err(too_much(shape, &need, room).at(samples.dataset().paths().to_string()));
        }
        left = Some(room - need.bytes);
    }
    Ok(())
}

fn need(shape: &BlockShape, samples: &Samples, rows: f64, world_size: u64) -> Need {
    let bytes = bytes_of(samples);
    let of_blocks = |blocks: u64| {
        let samples_of = u128::from(blocks) * u128::from(shape.size) * u128::from(bytes);
        u64::try_from(samples_of / u128::from(samples.len().max(1))).unwrap_or(u64::MAX).min(bytes)
    };
    let lanes = lanes_of_rank(shape, rows, world_size);
    let block = of_blocks(lanes);
    Need { bytes: of_blocks(lanes.saturating_mul(shape.pool).saturating_mul(POOLS)), block, rows }
}

// The lanes that one rank draws from: as many in every batch where batches are whole rounds of the lanes, else all of them in turn.
fn lanes_of_rank(shape: &BlockShape, rows: f64, world_size: u64) -> u64 {
    let (all, own) = (rows.round() as u64, (rows.round() as u64).div_ceil(world_size.max(1)));
    let round = shape.lanes.saturating_mul(shape.rows).max(1);
    if !all.is_multiple_of(round) {
        shape.lanes
    } else if own.is_multiple_of(shape.rows.max(1)) {
        (own / shape.rows.max(1)).clamp(1, shape.lanes)
    } else {
        (own / shape.rows.max(1)).saturating_add(2).min(shape.lanes)
    }
}

fn too_much(shape: &BlockShape, need: &Need, room: u64) -> Error {
    let error = Error::config(format!(
        "{POOLS} pools of its blocks take {}, and the memory of a rank holds {} of data that the cache does not take as a whole",
        mebibytes(need.bytes),
        mebibytes(room)
    ))
    .field("shuffle");
    let enough = mebibytes(need.bytes);
    let more = format!("or give @read_ahead@ {enough}");
    let fits = room / need.block.saturating_mul(POOLS).max(1);
    match fits {
        0 => error.hint(format!("choose smaller blocks (@size@, now {}), {more}", shape.size)),
        pool => {
            let effective = |pool: u64| 1.0 / (1.0 / need.rows.max(1.0) + 1.0 / (shape.lanes * pool) as f64);
            error.hint(format!(
                "@pool={pool}@ fits, with {:.0} effective blocks in a batch rather than {:.0}; {more}",
                effective(pool),
                effective(shape.pool)
            ))
        }
    }
}

// As sizes are typed.
fn mebibytes(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_draws_from_its_lanes_or_from_all() {
        let shape = |lanes, rows| BlockShape { size: 1, lanes, rows, pool: 1 };
        let lanes = |lanes, rows, all: f64, ranks| lanes_of_rank(&shape(lanes, rows), all, ranks);
        assert_eq!(lanes(16, 2, 32.0, 8), 2);
        assert_eq!(lanes(16, 2, 64.0, 8), 4);
        assert_eq!(lanes(16, 2, 32.0, 1), 16);
        assert_eq!(lanes(16, 2, 32.0, 3), 7);
        assert_eq!(lanes(16, 2, 33.0, 8), 16);
        assert_eq!(lanes(1, 1, 0.3, 8), 1);
    }

    #[test]
    fn the_pool_that_fits_is_named() {
        let shape = BlockShape { size: 512, lanes: 64, rows: 4, pool: 16 };
        let need = Need { bytes: 16 << 30, block: 512 << 20, rows: 256.0 };
        let error = format!("{:#}", too_much(&shape, &need, 3 << 30));
        for wanted in [
            "take 16384MiB",
            "holds 3072MiB",
            ".pool(3) fits",
            "110 effective",
            "rather than 205",
            ".read_ahead(…)",
        ] {
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
        assert!(format!("{:#}", too_much(&shape, &need, 700 << 20)).contains("smaller blocks"));
    }
}
