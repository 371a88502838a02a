//! One row per record.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windrow_core::Result;
use windrow_core::collate::{Collate, Labels};
use windrow_core::format::Takes;
use windrow_core::plan::Balance;
use windrow_core::view::{self, View};

use crate::views::kind::{Cut, ViewKind};
use crate::views::option::{Taken, chosen, view};

view! {
    /// One row per record, from its first `length + 1` values. `input_ids`, `labels`, `loss_masks`: `[length]`.
    ///
    /// ```
    /// use windrow::{Pad, Records};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # std::fs::write(dir.path().join("series.json"), "[[1, 2, 3, 4], [5, 6], [7, 8, 9]]").unwrap();
    /// let rows = windrow::open(dir.path().join("series.json"))?.records(Records::new(512).pad(Pad::Longest))?;
    /// assert_eq!(rows.batch(&[1, 2], 0)?.fields()[0].shape, [2]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub struct Records {
        @needs {
            /// Inputs of a row.
            length: u64,
        }
        /// What fills free positions.
        #[kept = true]
        pad_value: i64,
        /// How long rows are: length, as long as the longest of their batch, or as the smallest of these lengths that holds it.
        pad: Pad,
        /// How many rows of about the same length come together.
        group: Option<u64> as u64,
        /// What labels are: the token after each input, the input itself, or none.
        labels: Labels,
    }
    called "records", "One row of N inputs per record";
}

/// How long the rows of a batch are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Pad {
    /// As long as was asked for.
    #[default]
    Length,
    /// As long as the longest of them that this rank has.
    Longest,
    /// As long as the smallest of these lengths, which ascend, that holds the longest of them over all ranks.
    #[serde(untagged)]
    Buckets(Vec<u64>),
}

impl Taken for Pad {
    const TAKES: Takes = Takes::WordsOrNumbers(&["length", "longest"], "N");
}

impl ViewKind for Records {
    chosen!(labels);

    fn group(&self) -> Option<(u64, u64)> {
        self.group.map(|rows| (self.length, rows))
    }

    fn alike(&self, _by: &Balance) -> Option<(&'static str, &'static str)> {
        None
    }

    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)> {
        let collate = data.next_token(self.length, true, self.pad_value)?.labels(self.labels)?;
        let collate = match &self.pad {
            Pad::Length => collate,
            Pad::Longest => collate.to_longest(),
            Pad::Buckets(buckets) => collate.to_buckets(data.schema(), buckets)?,
        };
        let cut = if self.reads_next() { view::Records::new } else { view::Records::apart };
        Ok((Arc::new(cut(data.lengths(), self.length)?), Arc::new(collate)))
    }
}
