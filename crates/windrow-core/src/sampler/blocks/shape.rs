//! The numbers of an order by blocks.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What decides an order by blocks besides the seed; each number is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockShape {
    /// Samples of a block: neighbours that are read together.
    pub size: u64,
    /// Lanes that the blocks are dealt to, at most the number of blocks.
    pub lanes: u64,
    /// Rows of one lane before the next one has its rows.
    pub rows: u64,
    /// Blocks that a lane mixes at a time.
    pub pool: u64,
}

impl BlockShape {
    /// The order's words: the same for the same order.
    pub fn describe(&self) -> String {
        let BlockShape { size, lanes, rows, pool } = self;
        format!("shuffle:block-v1(size={size},lanes={lanes},rows={rows},pool={pool})")
    }

    /// The numbers in the order's words, if they are those of an order by blocks.
    pub fn described(words: &str) -> Option<BlockShape> {
        let numbers = words.strip_prefix("shuffle:block-v1(")?.strip_suffix(')')?;
        let mut numbers = numbers.split(',');
        let mut number = |name: &str| numbers.next()?.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
        let shape = BlockShape {
            size: number("size")?,
            lanes: number("lanes")?,
            rows: number("rows")?,
            pool: number("pool")?,
        };
        numbers.next().is_none().then_some(shape)
    }

    pub(super) fn check(&self) -> Result<()> {
        let BlockShape { size, lanes, rows, pool } = *self;
        for (name, number) in [("size", size), ("lanes", lanes), ("rows", rows), ("pool", pool)] {
            if number == 0 {
                return Err(Error::config(format!("blocks with @{name}=0@: expected 1 or more")).field(name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_version_1_stay_and_are_read_back() {
        let shape = BlockShape { size: 2048, lanes: 64, rows: 16, pool: 32 };
        assert_eq!(shape.describe(), "shuffle:block-v1(size=2048,lanes=64,rows=16,pool=32)");
        assert_eq!(BlockShape::described(&shape.describe()), Some(shape));
        let most = BlockShape { size: u64::MAX, lanes: u64::MAX, rows: u64::MAX, pool: u64::MAX };
        // Longer words are shown as their hash in a state.
        assert!(most.describe().len() <= 160);
        for words in [
            "shuffle:feistel-v1",
            "shuffle:block-v1(size=1,lanes=1,rows=1)",
            "shuffle:block-v1(size=1,lanes=1,rows=1,pool=1,more=1)",
            "shuffle:block-v1(size=1,lanes=1,rows=1,pool=x)",
        ] {
            assert_eq!(BlockShape::described(words), None, "{words}");
        }
    }
}
