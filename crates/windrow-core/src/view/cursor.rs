//! Blocks of rows behind a cursor, as oxidizr cuts a stream: kept for parity beside [`Pack`](super::Pack).

use std::ops::Range;
use std::sync::Arc;

use super::lengths::{self, RunningSums};
use super::{Coverage, View};
use crate::error::{Error, Result};
use crate::record::{Draw, Lengths, Pass, Piece, Span};

/// All records end to end, or one rank's part of them, read in batches of `rows` rows.
///
/// A batch is `rows · (length + 1)` values that follow each other, a row each `length + 1`. The next batch begins only
/// `rows · length` values later: its first values are the last of the batch before. What does not fill a batch is left
/// out. In the order of their numbers, and in batches of `rows`, the samples are the original's batches up to where it
/// begins again.
///
/// ```
/// # use std::sync::Arc;
/// use windrow_core::view::{Cursor, View};
///
/// let view = Cursor::new(Arc::new(vec![23]), 2, 4, (0, 1))?;
/// assert_eq!(view.len(), 4); // batches at 0 and 8; one at 16 would end at 26
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct Cursor {
    stream: RunningSums,
    rows: u64,
    length: u64,
    rank: u64,
    world_size: u64,
    /// This rank's part of the stream.
    shard: Range<u64>,
    batches: u64,
}

impl Cursor {
    /// Batches of `rows` rows of `length` positions, over part `rank` of `world_size` equal parts `(rank, world_size)`;
    /// the last part takes what is left over. Costs as [`Pack::new`](super::Pack::new) does.
    ///
    /// # Errors
    /// `Config` when `rows` or `length` is 0 or too large, or `rank` is not a part; `Corrupt` naming how many values there
    /// are and how many are needed, when a part is too short for a batch; what the lengths say.
    pub fn new(
        lengths: Arc<dyn Lengths>,
        rows: u64,
        length: u64,
        (rank, world_size): (u64, u64),
    ) -> Result<Self> {
        lengths::at_least_one("batch_size", rows)?;
        let row = lengths::with_label("length", length, 1)?;
        if rank >= world_size {
            return Err(Error::config(format!("rank {rank} of {world_size}")).field("rank"));
        }
        let needed = rows
            .checked_mul(row)
            .ok_or_else(|| Error::config(format!("a batch of {rows} rows of {row} values")))?;
        let stream = RunningSums::new(&*lengths, Some)?;
        let part = stream.total() / world_size;
        let end = if rank + 1 == world_size { stream.total() } else { (rank + 1) * part };
        let shard = rank * part..end;
        let held = shard.end - shard.start;
        if held < needed {
            return Err(Error::corrupt(format!(
                "the shard holds {held} values, one batch needs {needed} = {rows} x ({length} + 1)"
            ))
            .hint("a smaller batch size, length or world size fits"));
        }
        let batches = (held - needed) / (rows * length) + 1;
        Ok(Cursor { stream, rows, length, rank, world_size, shard, batches })
    }

    /// Values of the stream that some batch reads.
    fn shown(&self) -> Range<u64> {
        let end = (self.batches - 1) * self.rows * self.length + self.rows * (self.length + 1);
        self.shard.start..self.shard.start + end
    }
}

impl View for Cursor {
    fn len(&self) -> u64 {
        self.batches * self.rows
    }

    fn pieces(&self, sample: u64, _draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.len())?;
        let (batch, row) = (sample / self.rows, sample % self.rows);
        let mut at = self.shard.start + batch * self.rows * self.length + row * (self.length + 1);
        let stop = at + self.length + 1;
        while at < stop {
            let record = self.stream.find(at);
            let values = self.stream.range(record)?;
            let end = values.end.min(stop);
            out.push(Piece::Read(Span { record, start: at - values.start, len: end - at }));
            at = end;
        }
        Ok(())
    }

    // Whole batches: rows of two batches that follow each other lie among each other.
    fn samples_of(&self, record: u64, _pass: Pass) -> Result<Range<u64>> {
        let values = self.stream.range(record)?;
        let shown = self.shown();
        let (start, end) = (values.start.max(shown.start), values.end.min(shown.end));
        if start >= end {
            return Ok(0..0);
        }
        let (step, needed) = (self.rows * self.length, self.rows * (self.length + 1));
        let (start, last) = (start - shown.start, end - 1 - shown.start);
        // The first batch that ends after the record begins, and the last that begins before it ends.
        let first = (start + 1).saturating_sub(needed).div_ceil(step);
        let last = (last / step).min(self.batches - 1);
        Ok(first * self.rows..(last + 1) * self.rows)
    }

    fn positions(&self) -> u64 {
        self.length
    }

    fn coverage(&self, _pass: Pass) -> Result<Coverage> {
        let shown = self.shown();
        let used = shown.end - shown.start;
        let (first, last) = (self.stream.find(shown.start), self.stream.find(shown.end - 1));
        let seen = match self.stream {
            RunningSums::Even { .. } => last - first + 1,
            // Records without values lie among them.
            RunningSums::Listed(_) => (first..=last)
                .try_fold(0, |n, record| Result::Ok(n + u64::from(!self.stream.range(record)?.is_empty())))?,
        };
        Ok(Coverage {
            used,
            // A batch begins with the last values of the one before.
            repeated: (self.batches - 1) * self.rows,
            padded: 0,
            unseen: self.stream.total() - used,
            skipped_records: self.stream.records() - seen,
        })
    }

    fn describe(&self) -> String {
        format!(
            "cursor(batch_size={},length={},shard={}/{})",
            self.rows, self.length, self.rank, self.world_size
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::view::lengths::tests::{Same, counts, show, show_inverse};

    fn view(lengths: &[u64], rows: u64, length: u64, shard: (u64, u64)) -> Result<Cursor> {
        Cursor::new(Arc::new(lengths.to_vec()), rows, length, shard)
    }

    #[track_caller]
    fn check(view: &Cursor, n_records: u64, samples: &str, inverse: &str, coverage: [u64; 5]) {
        assert_eq!(show(view), samples);
        assert_eq!(show_inverse(view, n_records), inverse);
        assert_eq!(counts(view), coverage);
    }

    #[test]
    fn a_batch_begins_at_the_last_values_of_the_one_before() {
        let one = view(&[23], 2, 4, (0, 1)).unwrap();
        check(&one, 1, "0[0..5] | 0[5..10] | 0[8..13] | 0[13..18]", "0..4", [18, 2, 0, 5, 0]);
        let exact = view(&[10], 2, 4, (0, 1)).unwrap();
        check(&exact, 1, "0[0..5] | 0[5..10]", "0..2", [10, 0, 0, 0, 0]);
    }

    #[test]
    fn parts_are_equal_and_the_last_takes_the_rest() {
        let first = view(&[23], 1, 4, (0, 2)).unwrap();
        check(&first, 1, "0[0..5] | 0[4..9]", "0..2", [9, 1, 0, 14, 0]);
        let last = view(&[23], 1, 4, (1, 2)).unwrap();
        check(&last, 1, "0[11..16] | 0[15..20]", "0..2", [9, 1, 0, 14, 0]);
    }

    #[test]
    fn records_are_one_stream() {
        let many = view(&[3, 0, 4, 9], 1, 4, (0, 1)).unwrap();
        let samples = "0[0..3] 2[0..2] | 2[1..4] 3[0..2] | 3[1..6]";
        check(&many, 4, samples, "0..1 0..0 0..2 1..3", [13, 2, 0, 3, 1]);
    }

    #[test]
    fn rows_of_two_batches_may_lie_among_each_other() {
        let wide = view(&[16], 4, 1, (0, 1)).unwrap();
        assert_eq!(wide.len(), 12);
        assert_eq!(counts(&wide), [16, 8, 0, 0, 0]);
        assert_eq!(wide.samples_of(0, Pass::default()).unwrap(), 0..12);
    }

    #[test]
    fn numbers_beyond_memory_are_arithmetic() {
        let view = Cursor::new(Arc::new(Same(1_000_000_000, 1 << 20)), 4, 1024, (3, 8)).unwrap();
        assert_eq!(view.len() % 4, 0);
        assert!(view.samples_of(400_000_000, Pass::default()).unwrap().end > 0);
        let view = Cursor::new(Arc::new(Same(1 << 62, 2)), 4, 1024, (1, 8)).unwrap();
        let coverage = view.coverage(Pass::default()).unwrap();
        assert_eq!(coverage.skipped_records, (1 << 62) - coverage.used / 2);
        // What the formula gives is what counting gives.
        for (n, each, part) in [(9, 7, 0), (9, 7, 1), (9, 7, 2), (40, 1, 1), (5, 13, 1)] {
            let even = Cursor::new(Arc::new(Same(n, each)), 2, 3, (part, 3)).unwrap();
            let listed = Cursor::new(Arc::new(vec![each; n as usize]), 2, 3, (part, 3)).unwrap();
            assert_eq!(counts(&even), counts(&listed));
        }
    }

    #[test]
    fn what_gives_no_batch_is_an_error() {
        for (rows, length, shard) in [(0, 4, (0, 1)), (1, 0, (0, 1)), (1, 4, (1, 1)), (1, 4, (0, 0))] {
            assert_eq!(view(&[23], rows, length, shard).err().unwrap().kind(), Kind::Config);
        }
        assert_eq!(view(&[23], u64::MAX, 4, (0, 1)).err().unwrap().kind(), Kind::Config);
        let error = view(&[23], 1, 12, (0, 2)).err().unwrap();
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(error.message().contains("holds 11 values, one batch needs 13 = 1 x (12 + 1)"), "{error}");
    }
}
