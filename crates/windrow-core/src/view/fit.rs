//! Which bin has room: sizes in, bins out. Small numbers in flat tables, nothing else.

use serde::{Deserialize, Serialize};

use super::allocate::make_room;
use crate::error::Result;

/// Which bin a record goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strategy {
    /// The longest record first (equal ones in record order), each to the fullest bin that still has room for it; of
    /// several such, to the one filled last. Packs tightest.
    #[default]
    BestFit,
    /// In record order, each to the first bin that still has room for it. Neighbours stay near each other.
    FirstFit,
}

/// Stands for the bin of a record that is in none.
pub(super) const NO_BIN: u32 = u32::MAX;

/// Longest first, each to the fullest bin that has room. Replaces each record's size (0 to `capacity`) by its bin;
/// answers how many bins there are. One sort, then O(log capacity) per record.
pub(super) fn best_fit(slots: &mut [u32], capacity: u32) -> Result<u32> {
    // Size upside down above the record number: ascending is longest first, ties in record order.
    let mut turns = Vec::new();
    make_room(&mut turns, slots.len(), slots.len() as u64)?;
    let sized = slots.iter().enumerate().filter(|(_, size)| **size > 0);
    turns.extend(sized.map(|(record, size)| u64::from(u32::MAX - size) << 32 | record as u64));
    turns.sort_unstable();
    slots.fill(NO_BIN);

    let mut free = FreeRoom::new(capacity);
    for turn in turns {
        let size = u32::MAX - (turn >> 32) as u32;
        slots[(turn & u64::from(u32::MAX)) as usize] = free.take(size);
    }
    Ok(free.below.len() as u32)
}

/// In record order, each to the first bin that has room. Replaces and answers as [`best_fit`], given the sum of all
/// sizes. O(log bins) per record.
pub(super) fn first_fit(slots: &mut [u32], capacity: u32, volume: u64) -> u32 {
    // Two bins of first fit always hold more than one bin's capacity, so there are at most this many.
    let most = 2 * (volume / u64::from(capacity.max(1))) + 2;
    let leaves = most.min(slots.len() as u64).next_power_of_two() as usize;
    // A tree in an array: node i has the larger free size of nodes 2i and 2i + 1; the bins are the leaves.
    let mut free = vec![capacity; 2 * leaves];
    let mut bins = 0;
    for slot in slots {
        let size = std::mem::replace(slot, NO_BIN);
        if size == 0 {
            continue;
        }
        let mut node = 1;
        while node < leaves {
            node = 2 * node + usize::from(free[2 * node] < size);
        }
        *slot = (node - leaves) as u32;
        bins = bins.max(*slot + 1);
        free[node] -= size;
        while node > 1 {
            node /= 2;
            free[node] = free[2 * node].max(free[2 * node + 1]);
        }
    }
    bins
}

/// Bins by what is free in them: a stack per free size, and a set of the sizes whose stack is not empty.
pub(super) struct FreeRoom {
    capacity: u32,
    sizes: SizeSet,
    /// The top bin of each stack, plus 1.
    top: Vec<u32>,
    /// The bin below each bin in its stack, plus 1.
    below: Vec<u32>,
}

impl FreeRoom {
    /// No bins yet, of `capacity` each.
    pub(super) fn new(capacity: u32) -> Self {
        let places = capacity as usize + 1;
        FreeRoom { capacity, sizes: SizeSet::new(places), top: vec![0; places], below: Vec::new() }
    }

    /// Takes `size` from the fullest bin that has it, or from a new one.
    pub(super) fn take(&mut self, size: u32) -> u32 {
        let (bin, left) = match self.sizes.at_least(size as usize) {
            Some(left) => {
                let bin = self.top[left] - 1;
                self.top[left] = self.below[bin as usize];
                if self.top[left] == 0 {
                    self.sizes.remove(left);
                }
                (bin, left - size as usize)
            }
            None => {
                self.below.push(0);
                (self.below.len() as u32 - 1, (self.capacity - size) as usize)
            }
        };
        if left > 0 {
            self.below[bin as usize] = self.top[left];
            self.top[left] = bin + 1;
            self.sizes.insert(left);
        }
        bin
    }
}

/// A set of small numbers, as bits under bits: the next member is found in one step per 64-fold.
struct SizeSet(Vec<Vec<u64>>);

impl SizeSet {
    fn new(places: usize) -> Self {
        let mut levels = vec![vec![0; places.div_ceil(64)]];
        while let Some(words) = levels.last().map(Vec::len).filter(|words| *words > 1) {
            levels.push(vec![0; words.div_ceil(64)]);
        }
        SizeSet(levels)
    }

    fn insert(&mut self, mut number: usize) {
        for words in &mut self.0 {
            words[number / 64] |= 1 << (number % 64);
            number /= 64;
        }
    }

    fn remove(&mut self, mut number: usize) {
        for words in &mut self.0 {
            words[number / 64] &= !(1 << (number % 64));
            if words[number / 64] != 0 {
                return;
            }
            number /= 64;
        }
    }

    /// The smallest member that is not below `number`.
    fn at_least(&self, mut number: usize) -> Option<usize> {
        for (level, words) in self.0.iter().enumerate() {
            let word = words.get(number / 64)? & (u64::MAX << (number % 64));
            if word != 0 {
                let found = number / 64 * 64 + word.trailing_zeros() as usize;
                let down = self.0[..level].iter().rev();
                return Some(down.fold(found, |at, words| at * 64 + words[at].trailing_zeros() as usize));
            }
            number = number / 64 + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_set_finds_the_next_member() {
        let mut set = SizeSet::new(300_000);
        for number in [5, 64, 4_096, 299_999] {
            set.insert(number);
        }
        set.remove(64);
        let next = [0, 5, 6, 63, 4_096, 4_097, 299_999].map(|number| set.at_least(number));
        let [a, b, c] = [Some(5), Some(4_096), Some(299_999)];
        assert_eq!(next, [a, a, b, b, b, c, c]);
        assert_eq!(set.at_least(300_000), None);
    }
}
