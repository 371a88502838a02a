//! Which records are looked at: all of a few, of many a sample that is the same each time.

use windrow::Span;
use windrow::preview::text;

/// Records looked at most.
pub(crate) const MOST_RECORDS: u64 = 1_000;
/// Numbers, or bytes of text, that are read at most, over all records.
pub(crate) const MOST_VALUES: u64 = 4_000_000;

/// Records by number, ascending.
pub(crate) struct Sample {
    pub(crate) records: Vec<u64>,
    of: u64,
}

impl Sample {
    /// One record from each of `most` equal parts of `0..of`.
    pub(crate) fn of(of: u64, most: u64) -> Sample {
        let n = of.min(most);
        let bound = |i: u64| (u128::from(i) * u128::from(of) / u128::from(n.max(1))) as u64;
        let records = (0..n).map(|i| bound(i) + below(bound(i + 1) - bound(i), i)).collect();
        Sample { records, of }
    }

    /// `all 12 records`, `a sample of 1,000 of 2,000,000 records`.
    pub(crate) fn said(&self) -> String {
        self.said_of("record")
    }

    /// Names the sample by what it is of: `all 12 tracks`.
    pub(crate) fn said_of(&self, one: &str) -> String {
        let (n, of) = (self.records.len() as u64, text::counted(self.of, one));
        if self.is_all() {
            format!("all of {of}")
        } else {
            format!("a sample of {} of {of} (the same at every run)", text::count(n))
        }
    }

    /// Whether nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.records.len() as u64 == self.of
    }

    /// How many values of a record are read at most, so that there is room for all.
    pub(crate) fn room(&self, numbers_per_value: u64) -> u64 {
        (MOST_VALUES / (self.records.len() as u64).max(1) / numbers_per_value.max(1)).max(1)
    }
}

/// The whole record, or `room` values of it from a random place.
pub(crate) fn part(record: u64, length: u64, room: u64) -> Span {
    let start = if length > room { below(length - room + 1, record) } else { 0 };
    Span { record, start, len: length.min(room) }
}

// A number below `n`, spread by `key`: the finaliser of splitmix64.
fn below(n: u64, key: u64) -> u64 {
    let mut z = key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_all_taken_and_many_are_spread() {
        assert_eq!(Sample::of(3, 10).records, [0, 1, 2]);
        assert_eq!(Sample::of(3, 10).said(), "all of 3 records");
        let many = Sample::of(2_000_000, 1_000);
        assert!(many.records.iter().enumerate().all(|(i, r)| r / 2_000 == i as u64));
        assert!(many.said().starts_with("a sample of 1,000 of 2,000,000 records"));
        assert_eq!(many.records, Sample::of(2_000_000, 1_000).records);
        assert_eq!(Sample::of(u64::MAX, 2).records.len(), 2);
        assert!(Sample::of(0, 5).records.is_empty());
    }

    #[test]
    fn a_long_record_is_read_in_part() {
        assert_eq!(part(7, 5, 10), Span { record: 7, start: 0, len: 5 });
        let long = part(7, 1_000, 10);
        assert!(long.len == 10 && long.start <= 990);
    }
}
