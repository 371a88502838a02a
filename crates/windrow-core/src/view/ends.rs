//! Where consecutive shares of a long line of numbers end, in few bytes for each.

use std::ops::Range;

use super::allocate::make_room;
use crate::error::{Error, Result};
use crate::touch;

/// Shares between two ends that are kept in full.
pub(super) const BLOCK: usize = 64;

/// The ends of consecutive shares: 4.125 bytes for each while 64 shares together stay below 2^32, then 8.
pub(super) enum Ends {
    Narrow {
        /// Where each block of shares begins.
        starts: Vec<u64>,
        /// Where each share ends, counted from where its block begins.
        within: Vec<u32>,
    },
    Wide(Vec<u64>),
}

impl Ends {
    /// The ends of no shares yet.
    pub(super) fn new() -> Ends {
        Ends::Narrow { starts: Vec::new(), within: Vec::new() }
    }

    /// More shares of `n` in all, each as long as the list says.
    ///
    /// # Errors
    /// `too_many` of the share whose end passes 64 bits; `Memory` when there is not so much.
    pub(super) fn extend(&mut self, shares: &[u64], n: u64, too_many: impl Fn(usize) -> Error) -> Result<()> {
        // A block of shares below this stays below 2^32.
        const SMALL: u64 = (1 << 32) / BLOCK as u64;
        for (block, shares) in shares.chunks(BLOCK).enumerate() {
            let last = self.last();
            match self {
                Ends::Narrow { starts, within }
                    if within.len().is_multiple_of(BLOCK)
                        && shares.iter().fold(0, |all, share| all | share) < SMALL
                        && last.checked_add(1 << 32).is_some() =>
                {
                    make_room(starts, 1, n.div_ceil(BLOCK as u64))?;
                    starts.push(last);
                    make_room(within, shares.len(), n)?;
                    let mut end = 0;
                    within.extend(shares.iter().map(|share| {
                        end += *share as u32;
                        end
                    }));
                }
                _ => {
                    for (i, share) in shares.iter().enumerate() {
                        let end = self.last().checked_add(*share);
                        self.push(end.ok_or_else(|| too_many(block * BLOCK + i))?, n)?;
                    }
                }
            }
        }
        Ok(())
    }

    // One more share, which ends at `end`, not before the last one.
    fn push(&mut self, end: u64, n: u64) -> Result<()> {
        let last = self.last();
        match self {
            Ends::Wide(ends) => {
                make_room(ends, 1, n)?;
                ends.push(end);
            }
            Ends::Narrow { starts, within } => {
                if within.len().is_multiple_of(BLOCK) {
                    make_room(starts, 1, n.div_ceil(BLOCK as u64))?;
                    starts.push(last);
                }
                match u32::try_from(end - starts[starts.len() - 1]) {
                    Ok(near) => {
                        make_room(within, 1, n)?;
                        within.push(near);
                    }
                    Err(_) => {
                        let mut ends = Vec::new();
                        make_room(&mut ends, within.len() + 1, n)?;
                        ends.extend((0..within.len()).map(|i| self.get(i)));
                        ends.push(end);
                        *self = Ends::Wide(ends);
                    }
                }
            }
        }
        Ok(())
    }

    /// How many shares.
    pub(super) fn len(&self) -> usize {
        match self {
            Ends::Narrow { within, .. } => within.len(),
            Ends::Wide(ends) => ends.len(),
        }
    }

    /// The end of the last share; 0 of none.
    pub(super) fn last(&self) -> u64 {
        self.len().checked_sub(1).map_or(0, |last| self.get(last))
    }

    /// Share `i`, which is there.
    pub(super) fn range(&self, i: usize) -> Range<u64> {
        let start = if i == 0 { 0 } else { self.get(i - 1) };
        start..self.get(i)
    }

    /// The share in which `number < last()` lies.
    pub(super) fn find(&self, number: u64) -> usize {
        match self {
            Ends::Wide(ends) => ends.partition_point(|&end| end <= number),
            Ends::Narrow { starts, within } => {
                // The last block that begins at or before it: an empty one begins where the next one does.
                let block = last_from(starts.len(), |i| starts[i], number, self.last());
                let first = block * BLOCK;
                let ends = ends_of(within, block);
                // Counted: all of them side by side take less than a search, which waits for one comparison after the other.
                let within = u32::try_from(number - starts[block]).unwrap_or(u32::MAX);
                first + ends.iter().map(|&end| u32::from(end <= within)).sum::<u32>() as usize
            }
        }
    }

    /// Asks the processor for what [`Ends::find`] reads.
    pub(super) fn touch(&self, number: u64) {
        if let Ends::Narrow { starts, within } = self
            && number < self.last()
        {
            let block = last_from(starts.len(), |i| starts[i], number, self.last());
            touch(bytemuck::cast_slice(ends_of(within, block)));
        }
    }

    fn get(&self, i: usize) -> u64 {
        match self {
            Ends::Narrow { starts, within } => starts[i / BLOCK] + u64::from(within[i]),
            Ends::Wide(ends) => ends[i],
        }
    }
}

// The ends of a block.
fn ends_of(within: &[u32], block: usize) -> &[u32] {
    let first = block * BLOCK;
    &within[first..within.len().min(first + BLOCK)]
}

/// The last of `n` starts, the first of which is 0, that is not above `number < end`: blocks of records are about equally long, so it
/// is searched from where it would be if they were.
pub(super) fn last_from(n: usize, start: impl Fn(usize) -> u64, number: u64, end: u64) -> usize {
    let guess = (number as f64 / end as f64 * n as f64) as usize;
    let guess = guess.min(n - 1);
    let (mut step, is_below) = (1, start(guess) <= number);
    // Twice as far each time, until it lies between.
    let mut between = if is_below {
        while guess + step < n && start(guess + step) <= number {
            step *= 2;
        }
        guess + step / 2..n.min(guess + step)
    } else {
        while step < guess && start(guess - step) > number {
            step *= 2;
        }
        guess.saturating_sub(step)..guess - step / 2
    };
    // The first of them is not above the number, the one after them is.
    while between.len() > 1 {
        let middle = between.start + between.len() / 2;
        match start(middle) <= number {
            true => between.start = middle,
            false => between.end = middle,
        }
    }
    between.start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shares: &[u64]) -> Ends {
        let mut ends = Ends::new();
        let too_many = |i| panic!("{i}");
        // However they come.
        let (some, others) = shares.split_at(shares.len() / 3);
        ends.extend(some, shares.len() as u64, too_many).unwrap();
        ends.extend(others, shares.len() as u64, too_many).unwrap();
        let mut all = Vec::new();
        let mut last = 0;
        for share in shares {
            all.push(last..last + share);
            last += share;
        }
        assert_eq!((ends.len(), ends.last()), (shares.len(), last));
        for (i, share) in all.iter().enumerate() {
            assert_eq!(ends.range(i), *share);
            for number in [share.start, share.start + (share.end - share.start) / 2] {
                let expected = all.iter().position(|s| s.contains(&number));
                assert!(number == last || Some(ends.find(number)) == expected, "{i} {number}");
            }
        }
        ends
    }

    #[test]
    fn blocks_of_any_filling_are_found() {
        for n in [0, 1, 63, 64, 65, 128, 500] {
            check(&(0..n).map(|i| (i * 7) % 5).collect::<Vec<_>>());
            check(&vec![0; n as usize]);
        }
        let gap: Vec<u64> = (0..300).map(|i| u64::from(!(60..200).contains(&i))).collect();
        assert!(matches!(check(&gap), Ends::Narrow { .. }));
    }

    #[test]
    fn shares_that_are_nowhere_near_equal_are_found() {
        let mut shares = vec![1; 640];
        shares.extend([100_000; 320]);
        check(&shares);
        shares.reverse();
        check(&shares);
        shares.splice(300..300, [0; 200]);
        check(&shares);
    }

    #[test]
    fn shares_past_32_bits_are_kept_in_full() {
        let mut shares = vec![5; 100];
        shares[70] = 1 << 32;
        assert!(matches!(check(&shares), Ends::Wide(_)));
        let even = vec![u64::from(u32::MAX) / 64; 200];
        assert!(matches!(check(&even), Ends::Narrow { .. }));
        shares.truncate(71);
        shares[0] = u64::from(u32::MAX);
        shares[1] = 0;
        assert!(matches!(check(&shares), Ends::Wide(_)));
    }
}
