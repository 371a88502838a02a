//! How a copy on disk is divided: granules with a checksum each, and in each 64 sectors that are here or not. What was read one by
//! one is kept as it came, without what is between.

use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Bytes of a granule's mark in the file of checksums.
pub(super) const MARK: u64 = 16;
const SECTORS: u64 = 64;
/// A page of the disk, and what a file takes of it at least.
pub(super) const PAGE: u64 = 4096;
/// Objects up to this size have granules of a page; the bits that say which granules are here stay below 32 MiB of memory.
const FINE: u64 = 1 << 40;

/// The granules of an object of one size.
#[derive(Clone, Copy)]
pub(super) struct Grain {
    size: u64,
    granule: u64,
}

impl Grain {
    pub(super) fn of(size: u64) -> Grain {
        Grain { size, granule: if size <= FINE { PAGE } else { 16 * PAGE } }
    }

    /// Bytes of a granule.
    pub(super) fn granule(self) -> u64 {
        self.granule
    }

    /// Bytes of a sector.
    pub(super) fn sector(self) -> u64 {
        self.granule / SECTORS
    }

    pub(super) fn count(self) -> u64 {
        self.size.div_ceil(self.granule)
    }

    /// The granules that have a byte of a range.
    pub(super) fn granules(self, range: &Range<u64>) -> Range<u64> {
        range.start / self.granule..range.end.div_ceil(self.granule)
    }

    /// Bytes of the disk that granules take at most, with what their marks take.
    pub(super) fn most_price(self, granules: &Range<u64>) -> u64 {
        let marks = granules.start * MARK / PAGE..(granules.end * MARK).div_ceil(PAGE);
        (granules.end - granules.start) * self.granule + (marks.end - marks.start) * PAGE
    }

    /// The bytes of a granule.
    pub(super) fn bytes(self, granule: u64) -> Range<u64> {
        let start = granule * self.granule;
        start..self.size.min(start + self.granule)
    }

    /// The sectors of a granule that have a byte of a range, as bits.
    pub(super) fn touched(self, granule: u64, range: &Range<u64>) -> u64 {
        let Range { start, end } = self.bytes(granule);
        let (from, to) = (range.start.clamp(start, end) - start, range.end.clamp(start, end) - start);
        if from < to { bits(from / self.sector()..to.div_ceil(self.sector())) } else { 0 }
    }

    /// All sectors of a granule: the last one of the object has fewer.
    pub(super) fn all(self, granule: u64) -> u64 {
        self.touched(granule, &self.bytes(granule))
    }

    /// The bytes of sectors of a granule, in order.
    pub(super) fn runs(self, granule: u64, mut sectors: u64) -> impl Iterator<Item = Range<u64>> {
        let (Range { start, end }, sector) = (self.bytes(granule), self.sector());
        std::iter::from_fn(move || {
            let first = sectors.trailing_zeros();
            let count = sectors.checked_shr(first)?.trailing_ones();
            sectors &= !bits(first.into()..u64::from(first + count));
            let run = start + u64::from(first) * sector..start + u64::from(first + count) * sector;
            Some(run.start..run.end.min(end))
        })
    }

    /// The checksum of sectors of a granule, whose bytes are these. Other sectors of the same bytes have another one.
    pub(super) fn sum(self, granule: u64, sectors: u64, bytes: &[u8]) -> u64 {
        if sectors == self.all(granule) {
            return xxh3_64_with_seed(bytes, sectors);
        }
        let mut sum = Xxh3::with_seed(sectors);
        let start = self.bytes(granule).start;
        for run in self.runs(granule, sectors) {
            // Within a granule, so it fits.
            sum.update(&bytes[(run.start - start) as usize..(run.end - start) as usize]);
        }
        sum.digest()
    }
}

fn bits(range: Range<u64>) -> u64 {
    let up_to = |end: u64| if end >= SECTORS { u64::MAX } else { (1 << end) - 1 };
    up_to(range.end) & !up_to(range.start)
}

/// What is here of a granule: its sectors, and the checksum of their bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) sectors: u64,
    pub(super) sum: u64,
}

impl Mark {
    /// As it is in the file: a hole there says that nothing is here.
    pub(super) fn of(bytes: [u8; MARK as usize]) -> Mark {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Mark { sectors: number(0), sum: number(8) }
    }

    pub(super) fn to_bytes(self) -> [u8; MARK as usize] {
        let [sectors, sum] = [self.sectors, self.sum].map(u64::to_le_bytes);
        std::array::from_fn(|i| if i < 8 { sectors[i] } else { sum[i - 8] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_those_that_have_a_byte_and_runs_give_them_back() {
        let grain = Grain::of(3 * PAGE + 100);
        assert_eq!((grain.count(), grain.sector(), grain.granules(&(5..PAGE + 1))), (4, 64, 0..2));
        assert_eq!(
            [grain.touched(0, &(0..1)), grain.touched(0, &(63..65)), grain.touched(1, &(0..PAGE))],
            [1, 3, 0]
        );
        // A hundred bytes are two sectors.
        assert_eq!((grain.all(2), grain.all(3)), (u64::MAX, 3));
        let runs = |granule, sectors| {
            let ends = grain.runs(granule, sectors).map(|run| (run.start, run.end));
            ends.collect::<Vec<_>>()
        };
        assert_eq!(runs(3, 3), [(3 * PAGE, 3 * PAGE + 100)]);
        assert_eq!(runs(0, 0b1011 | 1 << 63), [(0, 128), (192, 256), (PAGE - 64, PAGE)]);
        assert_eq!((runs(2, u64::MAX), runs(1, 0)), (vec![(2 * PAGE, 3 * PAGE)], vec![]));
    }

    #[test]
    fn a_sum_is_of_these_bytes_of_these_sectors() {
        let grain = Grain::of(PAGE);
        let bytes: Vec<u8> = (0..PAGE).map(|at| (at % 251) as u8).collect();
        let mut sums: Vec<u64> =
            [u64::MAX, 1, 2, 3, 1 << 63].map(|sectors| grain.sum(0, sectors, &bytes)).into();
        // What is outside of the sectors does not matter, and each bit of theirs does.
        let mut other = bytes.clone();
        other[64] ^= 1;
        assert_eq!(grain.sum(0, 1, &other), sums[1]);
        sums.extend([u64::MAX, 2, 3].map(|sectors| grain.sum(0, sectors, &other)));
        sums.sort_unstable();
        sums.dedup();
        assert_eq!(sums.len(), 8);
        let mark = Mark { sectors: 0x8000_0000_0000_0001, sum: 7 };
        assert!(Mark::of(mark.to_bytes()) == mark && Mark::of([0; 16]).sectors == 0);
    }
}
