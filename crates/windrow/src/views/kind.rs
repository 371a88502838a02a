//! What each kind of view says of itself.

use std::sync::Arc;

use windrow_core::collate::{Collate, Labels, NextToken, ScaledBy};
use windrow_core::plan::{Balance, Feed};
use windrow_core::source::{Schema, SharedSource};
use windrow_core::view::View;
use windrow_core::{DType, Lengths, Result};

use crate::opening::dataset::Dataset;
use crate::views::scaler::{Scaler, Statistics};

/// What a view slices.
pub(crate) struct Cut<'a> {
    pub(crate) data: &'a Dataset,
    /// Its records, scaled or not.
    pub(crate) source: SharedSource,
    /// What numbers are assembled as; `None` for the view's own.
    pub(crate) dtype: Option<DType>,
    pub(crate) by: &'a ScaledBy,
}

impl Cut<'_> {
    pub(crate) fn schema(&self) -> &Schema {
        self.source.schema()
    }

    pub(crate) fn lengths(&self) -> Arc<dyn Lengths> {
        self.source.clone()
    }

    /// Inputs and labels of `length`; `short`: of records that may have fewer, which `pad` fills.
    pub(crate) fn next_token(&self, length: u64, short: bool, pad: i64) -> Result<NextToken> {
        NextToken::new(self.schema(), length, self.dtype, short, pad)
    }
}

/// One way of slicing records into samples.
pub(crate) trait ViewKind {
    /// The view and the layout of its batches. What cannot be assembled is refused before lengths are gone through.
    ///
    /// # Errors
    /// `Config` for options that do not fit each other or the data.
    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)>;

    /// The records as this view reads them.
    ///
    /// # Errors
    /// `Config` for columns that are not there.
    fn source(&self, source: SharedSource) -> Result<SharedSource> {
        Ok(source)
    }

    /// The feed as this view reads it.
    ///
    /// # Errors
    /// What the view says of its options.
    fn feed(&self, feed: Feed, _source: &SharedSource) -> Result<Feed> {
        Ok(feed)
    }

    /// What scales records, and what measures that.
    fn statistics(&self) -> Statistics<'_> {
        Statistics::NONE
    }

    /// Why ranks cannot be balanced by this, and what to do; `None` where rows cost this and that.
    fn alike(&self, _by: &Balance) -> Option<(&'static str, &'static str)> {
        Some(("all of its rows cost the same", "leave @balance@ out"))
    }

    /// Whether each channel of a record is a record of its own.
    fn is_apart(&self) -> bool {
        false
    }

    /// Where the scaler is chosen.
    fn scaler_mut(&mut self) -> Option<&mut Scaler> {
        None
    }

    /// Whether a sample is another one each time it is drawn: where it starts, or what is made of its text.
    fn is_random(&self) -> bool {
        false
    }

    /// What `labels` are; `None` for views that have their own kind of tensors.
    fn labels(&self) -> Option<Labels> {
        None
    }

    /// Where they are chosen.
    fn labels_mut(&mut self) -> Option<&mut Labels> {
        None
    }

    /// Whether a sample reads one value more than it has inputs, which is only a label.
    fn reads_next(&self) -> bool {
        self.labels() == Some(Labels::Next)
    }

    /// Values that a sample cannot be without, where that is why there are none.
    fn needs(&self) -> Option<u64> {
        None
    }

    /// The length that rows are cut to, and how many of about the same length come together.
    fn group(&self) -> Option<(u64, u64)> {
        None
    }

    /// Warns of samples that are not what their user means, most likely.
    fn warn(&self, _data: &Dataset, _view: &dyn View) {}
}
