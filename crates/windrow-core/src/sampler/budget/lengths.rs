//! How long the row of each sample is, of one view or of several one after the other.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};

/// The length of the row of each sample, in the order of sample numbers: 4 bytes each.
#[derive(Clone, Debug, Default)]
pub struct RowLengths {
    /// Of each view; of rows that are padded to buckets the bucket.
    views: Vec<Arc<[u32]>>,
    /// The first sample of each view, and their number.
    starts: Vec<u64>,
    /// The sum before rows are padded to buckets.
    total: u64,
    buckets: Vec<u64>,
    given: Option<u64>,
}

impl RowLengths {
    /// Of views one after the other. A row without a value counts as one of one value. With `buckets`, ascending, a row is as long
    /// as the smallest of them that holds it.
    ///
    /// # Errors
    /// `Config` for a row longer than the last bucket, and where all rows are 2^64 long together or more.
    pub fn new(views: Vec<Vec<u32>>, buckets: &[u64]) -> Result<RowLengths> {
        let mut found = RowLengths { starts: vec![0], buckets: buckets.to_vec(), ..RowLengths::default() };
        for mut lengths in views {
            let first = found.len();
            for (sample, length) in (first..).zip(&mut lengths) {
                *length = (*length).max(1);
                found.total = found
                    .total
                    .checked_add(u64::from(*length))
                    .ok_or_else(|| Error::config("all rows together are 2^64 long or more"))?;
                if let Some(last) = buckets.last() {
                    let bucket = buckets.partition_point(|bucket| *bucket < u64::from(*length));
                    let bucket = buckets.get(bucket).and_then(|bucket| u32::try_from(*bucket).ok());
                    *length = bucket.ok_or_else(|| {
                        Error::config(format!("a row of {length}, and the largest of pad is {last}"))
                            .field("pad")
                            .record(sample)
                    })?;
                }
            }
            found.starts.push(first + lengths.len() as u64);
            found.views.push(lengths.into());
        }
        Ok(found)
    }

    /// Lengths that a caller gave, which a plan names by their hash.
    ///
    /// # Errors
    /// As [`RowLengths::new`].
    pub fn given(views: Vec<Vec<u32>>) -> Result<RowLengths> {
        let mut hash = Xxh3::new();
        views.iter().flatten().for_each(|length| hash.update(&u64::from(*length).to_le_bytes()));
        Ok(RowLengths { given: Some(hash.digest()), ..RowLengths::new(views, &[])? })
    }

    /// Samples of all views.
    pub fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// No samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sum of all lengths, before rows are padded to buckets.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of views.
    pub(super) fn n_views(&self) -> usize {
        self.views.len()
    }

    /// Which view a sample is of.
    pub(super) fn view_of(&self, sample: u64) -> usize {
        match self.views.len() {
            1 => 0,
            _ => self.starts.partition_point(|start| *start <= sample).saturating_sub(1),
        }
    }

    /// How long the row of a sample is.
    #[inline]
    pub fn of(&self, sample: u64) -> u32 {
        let view = self.view_of(sample);
        let at = self.views.get(view).and_then(|view_of| {
            usize::try_from(sample - self.starts[view]).ok().and_then(|sample| view_of.get(sample))
        });
        at.copied().unwrap_or(1)
    }

    /// The first of the longest rows: its sample, and its length.
    pub fn longest(&self) -> Option<(u64, u32)> {
        let all = self.views.iter().flat_map(|view| view.iter()).zip(0u64..);
        all.max_by_key(|(length, sample)| (**length, !sample)).map(|(length, sample)| (sample, *length))
    }

    /// What of it decides an order beside the view, in words.
    pub(super) fn words(&self) -> String {
        let mut words = String::new();
        if !self.buckets.is_empty() {
            let buckets: Vec<String> = self.buckets.iter().map(u64::to_string).collect();
            words += &format!(",pad={}", buckets.join("/"));
        }
        if let Some(hash) = self.given {
            words += &format!(",lengths={hash:016x}");
        }
        words
    }
}
