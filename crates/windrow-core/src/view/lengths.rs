//! What every cut needs of the lengths: checked sizes, running sums, and what one record's share adds up to.

use std::ops::Range;

use super::Coverage;
use super::ends::{BLOCK, Ends};
use crate::error::{Error, Result};
use crate::record::Lengths;

/// The values that `length` positions and their labels take: `length + label`, where `label` is 1 for labels one value
/// later, 0 for none that is not an input too.
///
/// # Errors
/// `Config` when `length` is 0 or the largest number there is.
pub(super) fn with_label(name: &str, length: u64, label: u64) -> Result<u64> {
    let values = length.checked_add(label).filter(|_| length < u64::MAX).ok_or_else(|| {
        Error::config(format!("{name} is {length}, expected less"))
            .hint(format!("give the positions of one sample as {name}"))
    })?;
    at_least_one(name, length)?;
    Ok(values)
}

/// What tells a cut without an additional value for the last label from one with it.
pub(super) fn apart(label: u64) -> &'static str {
    if label == 0 { ",apart" } else { "" }
}

/// # Errors
/// `Config` when `number` is 0.
pub(super) fn at_least_one(name: &str, number: u64) -> Result<()> {
    match number {
        0 => Err(Error::config(format!("{name} is 0, expected at least 1"))
            .hint(format!("give a {name} of 1 or more"))),
        _ => Ok(()),
    }
}

/// # Errors
/// `OutOfRange` when there is no such sample.
pub(super) fn check_sample(sample: u64, len: u64) -> Result<()> {
    if sample < len { Ok(()) } else { Err(Error::out_of_range("sample", sample, len)) }
}

/// # Errors
/// `OutOfRange` when there is no such record.
pub(super) fn check_record(record: u64, len: u64) -> Result<()> {
    if record < len { Ok(()) } else { Err(Error::out_of_range("record", record, len)) }
}

/// The length of every record where it is known without a pass: no record, one record, or all known to be equal.
pub(super) fn uniform(lengths: &dyn Lengths) -> Result<Option<u64>> {
    match lengths.len() {
        0 => Ok(Some(0)),
        1 => lengths.length(0).map(Some),
        _ => Ok(lengths.uniform()),
    }
}

/// What all records add up to, given what a record of some length does (`None`: past 64 bits).
///
/// # Errors
/// `Corrupt` where a sum passes 64 bits.
pub(super) fn sum(lengths: &dyn Lengths, each: impl Fn(u64) -> Option<Coverage>) -> Result<Coverage> {
    let n = lengths.len();
    if let Some(length) = uniform(lengths)? {
        return each(length).and_then(|c| scale(c, n)).ok_or_else(|| too_many(n));
    }
    let mut all = Coverage::default();
    each_length(lengths, |record, length| {
        all = each(length).and_then(|c| add(all, c)).ok_or_else(|| too_many(n).record(record))?;
        Ok(())
    })?;
    Ok(all)
}

fn each_length(lengths: &dyn Lengths, mut take: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
    each_few(lengths, |first, some| {
        (first..).zip(some).try_for_each(|(record, length)| take(record, *length))
    })
}

/// One pass over all lengths, a few thousand at a time: the first one's record, and the lengths.
///
/// # Errors
/// What the lengths say, and `take`.
pub(super) fn each_few(
    lengths: &dyn Lengths,
    mut take: impl FnMut(u64, &mut [u64]) -> Result<()>,
) -> Result<()> {
    let mut some = [0; 64 * BLOCK];
    let mut first = 0;
    while first < lengths.len() {
        let n = (lengths.len() - first).min(some.len() as u64);
        let some = &mut some[..n as usize];
        lengths.lengths(first, some)?;
        take(first, some)?;
        first += n;
    }
    Ok(())
}

/// Where each record's share of a long line of numbers begins and ends.
pub(super) enum RunningSums {
    /// All shares are equal.
    Even {
        /// Numbers per record.
        each: u64,
        /// How many records.
        records: u64,
    },
    /// The end of every share.
    Listed(Ends),
}

impl RunningSums {
    /// One pass over the lengths, or none where they are uniform. `share` gives how many numbers a record of this
    /// length gets (`None`: past 64 bits).
    ///
    /// # Errors
    /// `Corrupt` when the sum passes 64 bits; what the lengths say.
    pub(super) fn new(lengths: &dyn Lengths, share: impl Fn(u64) -> Option<u64>) -> Result<Self> {
        let n = lengths.len();
        if let Some(length) = uniform(lengths)? {
            let each = share(length).filter(|each| each.checked_mul(n).is_some());
            return Ok(RunningSums::Even { each: each.ok_or_else(|| too_many(n))?, records: n });
        }
        let mut ends = Ends::new();
        each_few(lengths, |first, shares| {
            for (record, number) in (first..).zip(shares.iter_mut()) {
                *number = share(*number).ok_or_else(|| too_many(n).record(record))?;
            }
            ends.extend(shares, n, |at| too_many(n).record(first + at as u64))
        })?;
        Ok(RunningSums::Listed(ends))
    }

    /// How many records.
    pub(super) fn records(&self) -> u64 {
        match self {
            RunningSums::Even { records, .. } => *records,
            RunningSums::Listed(ends) => ends.len() as u64,
        }
    }

    /// The end of the last share.
    pub(super) fn total(&self) -> u64 {
        match self {
            RunningSums::Even { each, records } => each * records,
            RunningSums::Listed(ends) => ends.last(),
        }
    }

    /// A record's share.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub(super) fn range(&self, record: u64) -> Result<Range<u64>> {
        check_record(record, self.records())?;
        Ok(match self {
            RunningSums::Even { each, .. } => record * each..(record + 1) * each,
            RunningSums::Listed(ends) => ends.range(record as usize),
        })
    }

    /// The record in whose share `number < total()` lies.
    pub(super) fn find(&self, number: u64) -> u64 {
        match self {
            RunningSums::Even { each, .. } => number / (*each).max(1),
            RunningSums::Listed(ends) => ends.find(number) as u64,
        }
    }

    /// Asks the processor for what [`RunningSums::find`] reads.
    pub(super) fn touch(&self, number: u64) {
        if let RunningSums::Listed(ends) = self {
            ends.touch(number);
        }
    }
}

fn add(a: Coverage, b: Coverage) -> Option<Coverage> {
    Some(Coverage {
        used: a.used.checked_add(b.used)?,
        repeated: a.repeated.checked_add(b.repeated)?,
        padded: a.padded.checked_add(b.padded)?,
        unseen: a.unseen.checked_add(b.unseen)?,
        skipped_records: a.skipped_records.checked_add(b.skipped_records)?,
    })
}

fn scale(c: Coverage, n: u64) -> Option<Coverage> {
    // Both sums must fit, so must their sum: it is the number of values.
    c.used.checked_add(c.unseen)?.checked_mul(n)?;
    Some(Coverage {
        used: c.used.checked_mul(n)?,
        repeated: c.repeated.checked_mul(n)?,
        padded: c.padded.checked_mul(n)?,
        unseen: c.unseen.checked_mul(n)?,
        skipped_records: c.skipped_records.checked_mul(n)?,
    })
}

pub(super) fn too_many(n_records: u64) -> Error {
    Error::corrupt(format!("the lengths of {n_records} records add up past 64 bits, expected fewer values"))
        .hint("the index of the source looks damaged: `windrow verify` checks it")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::{Draw, Pass, Piece};
    use crate::view::View;

    /// Samples as text: `0[2..5]` is record 0, values 2 to 4; `=7` is a value that is in no record, `+3` positions without one.
    pub(crate) fn show(view: &dyn View) -> String {
        let samples = (0..view.len()).map(|i| {
            let mut pieces = Vec::new();
            view.pieces(i, Draw::new(1, 2, 3, i), &mut pieces).unwrap();
            let words = pieces.iter().map(|piece| match piece {
                Piece::Read(s) => format!("{}[{}..{}]", s.record, s.start, s.start + s.len),
                Piece::Value(id) => format!("={id}"),
                Piece::Fill(s) => format!("+{}", s.len),
            });
            words.collect::<Vec<_>>().join(" ")
        });
        samples.collect::<Vec<_>>().join(" | ")
    }

    /// The samples of each record as text: `0..2 2..2`.
    pub(crate) fn show_inverse(view: &dyn View, n_records: u64) -> String {
        let ranges = (0..n_records).map(|r| format!("{:?}", view.samples_of(r, Pass::default()).unwrap()));
        ranges.collect::<Vec<_>>().join(" ")
    }

    /// `used, repeated, padded, unseen, skipped_records`.
    pub(crate) fn counts(view: &dyn View) -> [u64; 5] {
        let c = view.coverage(Pass::default()).unwrap();
        [c.used, c.repeated, c.padded, c.unseen, c.skipped_records]
    }

    /// Records that are all equal, without a list.
    pub(crate) struct Same(pub u64, pub u64);

    impl Lengths for Same {
        fn len(&self) -> u64 {
            self.0
        }
        fn length(&self, record: u64) -> Result<u64> {
            check_record(record, self.0).map(|()| self.1)
        }
        fn uniform(&self) -> Option<u64> {
            Some(self.1)
        }
    }

    #[test]
    fn even_and_listed_sums_agree() {
        let even = RunningSums::new(&Same(3, 4), Some).unwrap();
        let listed = RunningSums::new(&vec![4, 4, 4], Some).unwrap();
        assert!(matches!(even, RunningSums::Even { .. }) && matches!(listed, RunningSums::Listed(_)));
        assert_eq!((even.total(), listed.total()), (12, 12));
        for number in 0..12 {
            assert_eq!(even.find(number), listed.find(number));
        }
        for record in 0..3 {
            assert_eq!(even.range(record).unwrap(), listed.range(record).unwrap());
        }
        assert!(even.range(3).is_err() && listed.range(3).is_err());
    }

    #[test]
    fn a_share_of_nothing_is_never_found() {
        let sums = RunningSums::new(&vec![0, 2, 0, 0, 1, 0], Some).unwrap();
        assert_eq!([0, 1, 2].map(|n| sums.find(n)), [1, 1, 4]);
    }

    #[test]
    fn sums_past_64_bits_are_an_error_with_the_record() {
        let listed = RunningSums::new(&vec![1, u64::MAX, 1], Some).err().unwrap();
        assert_eq!(listed.place().record, Some(1));
        assert!(RunningSums::new(&Same(2, u64::MAX), Some).is_err());
    }
}
