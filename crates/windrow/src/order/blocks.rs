//! The numbers of an order by blocks: those that are given, and what the data and the batch say of the others.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use windrow_core::sampler::BlockShape;
use windrow_core::store::parse_size;
use windrow_core::{Error, Result};

use crate::views::scope::BLOCK_BYTES;

/// Most lanes that are chosen.
const MOST_LANES: u64 = 256;

/// A shuffle that reads neighbours together, for data in a slow store; what is not given is chosen for the data and the batch.
///
/// Blocks of `size` samples are dealt to `lanes` lanes, the same in every epoch; a lane mixes `pool` blocks at a time, and
/// lanes take turns of `rows` rows. All four are part of the plan: [`LoaderBuilder::recipe`](crate::LoaderBuilder::recipe) and
/// the state name them, and a run that changes its batch size passes the old ones.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("tokens.bin");
/// # windrow::prepare::dummy(&path, 1000, 100_000, 0, false)?;
/// use windrow::Blocks;
///
/// let view = windrow::open(&path)?.pack(100)?;
/// let loader = view.loader().shuffle(Blocks::new().size(10)).global_batch_size(32).rank(0, 1);
/// let order = loader.plan()?.sampler().describe();
/// assert_eq!(order, "shuffle:block-v1(size=10,lanes=8,rows=4,pool=3)");
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// Samples of a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u64>,
    /// Rows of a lane in each of its turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Blocks that a lane mixes at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<u64>,
    /// Bytes of a block, where its size is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl Blocks {
    /// Bytes of a block, unless others are given: one connection to an object store is busy for most of the time it takes.
    pub const BYTES: u64 = BLOCK_BYTES;

    /// Every number chosen.
    pub fn new() -> Self {
        Blocks::default()
    }

    /// Samples of a block. If not given, those that fit in [`Blocks::bytes`], by the mean size of a sample.
    #[must_use]
    pub fn size(mut self, samples: u64) -> Self {
        self.size = Some(samples);
        self
    }

    /// Lanes, at most the number of blocks. Else the largest power of two up to 256 that divides the global batch and leaves
    /// each lane 8 blocks; 1 if none.
    #[must_use]
    pub fn lanes(mut self, lanes: u64) -> Self {
        self.lanes = Some(lanes);
        self
    }

    /// Rows of a lane in each of its turns. Else the global batch over the lanes.
    #[must_use]
    pub fn rows(mut self, rows: u64) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Blocks that a lane mixes at a time. Else the number with which all lanes mix four times the global batch, at most a
    /// quarter of a lane's blocks, at least 2.
    #[must_use]
    pub fn pool(mut self, blocks: u64) -> Self {
        self.pool = Some(blocks);
        self
    }

    /// Bytes of a block where its size is not given; 8 MiB if this is not given either.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// All four numbers, for `n` samples of `bytes` bytes and a global batch of `rows` rows.
    pub(crate) fn shape(&self, n: u64, bytes: u64, global_batch: u64) -> BlockShape {
        let size = self.size.unwrap_or_else(|| {
            let of_block = u128::from(self.bytes.unwrap_or(Self::BYTES)) * u128::from(n);
            let samples = of_block / u128::from(bytes.max(1));
            u64::try_from(samples).unwrap_or(u64::MAX).clamp(1, n.max(1))
        });
        let n_blocks = n.div_ceil(size.max(1));
        let lanes = self.lanes.unwrap_or_else(|| {
            let fits = |lanes: &u64| {
                let round = lanes.saturating_mul(self.rows.unwrap_or(1).max(1));
                global_batch.is_multiple_of(round) && n_blocks >= 8 * lanes
            };
            std::iter::successors(Some(MOST_LANES), |lanes| Some(lanes / 2))
                .take_while(|lanes| *lanes > 1)
                .find(fits)
                .unwrap_or(1)
        });
        let each = lanes.max(1);
        let rows = self.rows.unwrap_or((global_batch / each).max(1));
        let pool = self.pool.unwrap_or_else(|| {
            let wanted = global_batch.saturating_mul(4).div_ceil(each);
            wanted.min(n_blocks / each.saturating_mul(4)).max(2)
        });
        BlockShape { size, lanes, rows, pool }
    }

    /// Whether the batch of all ranks decides one of the four.
    pub(crate) fn asks_for_batch(&self) -> bool {
        self.lanes.is_none() || self.rows.is_none() || self.pool.is_none()
    }
}

/// `size=2048,lanes=64`: what is given, in words that are read back.
impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Blocks { size, lanes, rows, pool, bytes } = self;
        let all = [("size", size), ("lanes", lanes), ("rows", rows), ("pool", pool), ("bytes", bytes)];
        let given = all.iter().filter_map(|(name, number)| number.map(|n| format!("{name}={n}")));
        f.write_str(&given.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Blocks {
    type Err = Error;

    fn from_str(text: &str) -> Result<Blocks> {
        let mut blocks = Blocks::new();
        for given in text.split(',').filter(|given| !given.trim().is_empty()) {
            let (name, value) = given.split_once('=').unwrap_or((given, ""));
            let place = match name.trim() {
                "size" => &mut blocks.size,
                "lanes" => &mut blocks.lanes,
                "rows" => &mut blocks.rows,
                "pool" => &mut blocks.pool,
                "bytes" => &mut blocks.bytes,
                _ => {
                    return Err(Error::config(format!("blocks have no {:?}", name.trim()))
                        .hint("size, lanes, rows, pool, bytes; as blocks:size=2048,pool=16"));
                }
            };
            let number = match name.trim() {
                "bytes" => parse_size(value),
                _ => value.trim().parse().ok(),
            };
            let Some(number) = number.filter(|number| *number > 0) else {
                return Err(Error::config(format!("{}: expected a number of 1 or more", given.trim()))
                    .hint("as blocks:size=2048,pool=16 or blocks:bytes=4MiB"));
            };
            *place = Some(number);
        }
        Ok(blocks)
    }
}

impl From<BlockShape> for Blocks {
    fn from(BlockShape { size, lanes, rows, pool }: BlockShape) -> Blocks {
        Blocks::new().size(size).lanes(lanes).rows(rows).pool(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(blocks: Blocks, n: u64, bytes: u64, global_batch: u64) -> [u64; 4] {
        let BlockShape { size, lanes, rows, pool } = blocks.shape(n, bytes, global_batch);
        [size, lanes, rows, pool]
    }

    #[test]
    fn what_is_not_given_is_chosen_for_the_data_and_the_batch() {
        let all = Blocks::new();
        // 10^12 tokens of 4 bytes in samples of 4,096, 64 ranks of 16 rows: 512 samples a block, 476,837 blocks.
        assert_eq!(chosen(all, 244_140_625, 4_000_000_000_000, 1024), [512, 256, 4, 16]);
        // 200 MB: 24 blocks have 3 lanes of 8 at most, a power of two.
        assert_eq!(chosen(all, 50_000, 200_000_000, 32), [2097, 2, 16, 3]);
        // Fewer than 16 blocks: one lane.
        assert_eq!(chosen(all, 10_000, 40_000_000, 32), [2097, 1, 32, 2]);
        // An odd batch has no even lane.
        assert_eq!(chosen(all, 244_140_625, 4_000_000_000_000, 1023), [512, 1, 1023, 4092]);
        assert_eq!(chosen(all, 244_140_625, 4_000_000_000_000, 24), [512, 8, 3, 12]);
        // All of it is less than a block; samples larger than a block; no sample.
        assert_eq!(chosen(all, 100, 5_000, 8), [100, 1, 8, 2]);
        assert_eq!(chosen(all, 64, 64 << 30, 8), [1, 8, 1, 2]);
        assert_eq!(chosen(all, 0, 0, 8), [1, 1, 8, 2]);
    }

    #[test]
    fn words_are_read_and_wrong_ones_named() {
        let all = Blocks::new().size(1).lanes(2).rows(3).pool(4);
        for (text, blocks) in [
            ("", Blocks::new()),
            ("size=1,lanes=2,rows=3,pool=4", all),
            (" pool=4, rows = 3 ", Blocks::new().rows(3).pool(4)),
            ("bytes=4MiB", Blocks::new().bytes(4 << 20)),
        ] {
            assert_eq!(text.parse::<Blocks>().unwrap(), blocks, "{text}");
            assert_eq!(blocks.to_string().parse::<Blocks>().unwrap(), blocks);
        }
        for text in ["length=3", "size", "size=0", "size=4MiB", "bytes=x", "pool=-1"] {
            let error = format!("{:#}", text.parse::<Blocks>().unwrap_err());
            assert!(error.contains(text.split('=').next().unwrap()) && error.contains("hint"), "{error}");
        }
    }

    #[test]
    fn what_is_given_stays_and_decides_the_rest() {
        let (n, bytes) = (1_000_000, 4_000_000_000);
        assert_eq!(chosen(Blocks::new().bytes(1 << 20), n, bytes, 256), [262, 256, 1, 3]);
        assert_eq!(chosen(Blocks::new().size(1000).bytes(1), n, bytes, 256), [1000, 64, 4, 3]);
        assert_eq!(chosen(Blocks::new().size(100).lanes(12), n, bytes, 256), [100, 12, 21, 86]);
        assert_eq!(chosen(Blocks::new().size(100).rows(4), n, bytes, 256), [100, 64, 4, 16]);
        let shape = BlockShape { size: 1, lanes: 2, rows: 3, pool: 4 };
        assert_eq!(Blocks::from(shape).shape(n, bytes, 999), shape);
        assert!(!Blocks::from(shape).asks_for_batch() && Blocks::new().size(3).asks_for_batch());
    }
}
