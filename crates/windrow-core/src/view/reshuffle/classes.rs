//! Records of nearly equal size: those of a class trade the slots of rows, so that rows keep their shape.

use std::ops::Range;

use crate::error::Result;
use crate::view::allocate::make_room;
use crate::view::fit::NO_BIN;

/// A class takes smaller sizes until it has this number of records.
pub(super) const RECORDS: usize = 128;

/// And none that is shorter than its longest by more than this part of it.
const SHARE: u32 = 64;

/// Records by class, from the longest sizes down.
#[derive(Debug)]
pub(super) struct Classes {
    /// The records of each class, ascending, class by class.
    members: Vec<u32>,
    /// Where each class begins among them, and their end.
    starts: Vec<u32>,
    /// The longest size of each class: that of its slots.
    sizes: Vec<u32>,
    /// Records of a class that takes no smaller size.
    enough: usize,
}

impl Classes {
    /// None yet; one of `enough` records takes no smaller size.
    pub(super) fn new(enough: usize) -> Classes {
        Classes { members: Vec::new(), starts: vec![0], sizes: Vec::new(), enough }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The size of the slots of a class.
    pub(super) fn size(&self, class: usize) -> u32 {
        self.sizes[class]
    }

    /// The records of a class.
    pub(super) fn members(&self, class: usize) -> &[u32] {
        &self.members[self.first(class)..self.first(class + 1)]
    }

    /// The records of the classes before.
    pub(super) fn first(&self, class: usize) -> usize {
        self.starts[class] as usize
    }

    /// The class of the `i`-th record of all of them.
    pub(super) fn of_place(&self, i: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= i) - 1
    }

    /// Of some classes, the one of a size that is in one of them.
    pub(super) fn of_size(&self, classes: Range<usize>, size: u32) -> Option<usize> {
        let before = self.sizes[classes.clone()].partition_point(|longest| *longest >= size);
        before.checked_sub(1).map(|class| classes.start + class)
    }

    /// Makes classes of more records, from number `first` on: their sizes are replaced by their classes, [`NO_BIN`] for those of
    /// size 0. `n` records in all of them.
    ///
    /// # Errors
    /// `Memory`.
    pub(super) fn extend(&mut self, first: u32, sizes: &mut [u32], n: u64) -> Result<()> {
        // Size upside down above the number: ascending is longest first, equal ones by number.
        let mut turns = Vec::new();
        make_room(&mut turns, sizes.len(), sizes.len() as u64)?;
        let sized = sizes.iter().enumerate().filter(|(_, size)| **size > 0);
        turns.extend(sized.map(|(i, size)| u64::from(u32::MAX - size) << 32 | i as u64));
        turns.sort_unstable();
        sizes.fill(NO_BIN);
        make_room(&mut self.members, turns.len(), n)?;

        let (begin, first_class) = (self.members.len(), self.len());
        let (mut longest, mut last) = (None, 0);
        for (at, turn) in turns.iter().enumerate() {
            let (size, i) = (u32::MAX - (turn >> 32) as u32, *turn as u32);
            let has = begin + at - self.starts.last().map_or(0, |start| *start as usize);
            let closes =
                |longest: u32| size < longest - longest / SHARE || (has >= self.enough && size != last);
            if longest.is_none_or(closes) {
                if longest.is_some() {
                    self.starts.push((begin + at) as u32);
                }
                self.sizes.push(size);
                longest = Some(size);
            }
            sizes[i as usize] = (self.sizes.len() - 1) as u32;
            self.members.push(first + i);
            last = size;
        }
        if longest.is_some() {
            self.starts.push(self.members.len() as u32);
        }
        for class in first_class..self.len() {
            let members = self.first(class)..self.first(class + 1);
            self.members[members].sort_unstable();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_runs_of_nearly_equal_sizes() {
        let mut classes = Classes::new(RECORDS);
        let mut sizes = [640, 0, 630, 629, 640, 12, 12, 13];
        classes.extend(0, &mut sizes, 8).unwrap();
        assert_eq!(sizes, [0, NO_BIN, 0, 1, 0, 3, 3, 2]);
        let found: Vec<_> = (0..4).map(|class| (classes.size(class), classes.members(class))).collect();
        assert_eq!(found, [(640, &[0, 2, 4][..]), (629, &[3]), (13, &[7]), (12, &[5, 6])]);
        for (size, class) in [(640, 0), (630, 0), (629, 1), (13, 2), (12, 3)] {
            assert_eq!(classes.of_size(0..4, size), Some(class));
        }
        assert_eq!((classes.of_size(0..4, 641), classes.of_place(3), classes.of_place(5)), (None, 1, 3));
    }

    #[test]
    fn a_class_of_many_takes_no_smaller_size() {
        let mut classes = Classes::new(RECORDS);
        let mut sizes: Vec<u32> = (0..300).map(|i| 6400 - i / 2).collect();
        classes.extend(5, &mut sizes, 300).unwrap();
        // 6,400 - 100 is the least that fits the first one, which is full after 128.
        let of: Vec<_> =
            (0..classes.len()).map(|class| (classes.size(class), classes.members(class).len())).collect();
        assert_eq!(of, [(6400, 128), (6336, 128), (6272, 44)]);
        assert_eq!(classes.members(1)[0], 5 + 128);
    }

    #[test]
    fn more_records_make_classes_of_their_own() {
        let mut classes = Classes::new(RECORDS);
        classes.extend(0, &mut [7, 7], 4).unwrap();
        classes.extend(2, &mut [0], 4).unwrap();
        classes.extend(3, &mut [7], 4).unwrap();
        assert_eq!((classes.members(0), classes.members(1), classes.len()), (&[0, 1][..], &[3][..], 2));
        assert_eq!((classes.of_size(1..2, 7), classes.of_size(1..1, 7)), (Some(1), None));
    }
}
