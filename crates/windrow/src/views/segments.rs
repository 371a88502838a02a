//! Records one after the other, split where a row is full.

use std::sync::Arc;

use windrow_core::Result;
use windrow_core::collate::{Collate, Labels, Pairs};
use windrow_core::plan::Balance;
use windrow_core::source::{Fit, Nan, Per};
use windrow_core::view::{self, View};

use crate::views::kind::{Cut, ViewKind};
use crate::views::option::{chosen, view};
use crate::views::scaler::{Scaler, Statistics};

view! {
    /// Records one after the other in rows of `length`, split where a row is full; with `buckets`, rows of those lengths.
    /// See [`Pairs`](windrow_core::collate::Pairs) for the tensors.
    pub struct Segments {
        @needs {
            /// Positions of the longest row.
            length: u64,
        }
        /// Lengths that a row may have instead.
        buckets: Vec<u64>,
        /// What each whole record is scaled by.
        scaler: Scaler,
        /// What NaN and infinity do.
        nan: Nan,
        /// The part of each record that statistics come from; all of it where none is given.
        fit: Option<Fit> as Fit,
        /// What shares statistics: a series, each channel of it, or each window by its context.
        per: Per,
        /// Only these tensors.
        fields: Vec<String> as &[&str],
        /// What labels are: the token after each input, the input itself, or none.
        labels: Labels,
    }
    called "segments", "Records one after the other in N positions, split where a row is full";
}

impl ViewKind for Segments {
    fn statistics(&self) -> Statistics<'_> {
        Statistics { scaler: &self.scaler, nan: self.nan, fit: self.fit, per: self.per, context: None }
    }

    chosen!(scaler);

    chosen!(labels);

    fn alike(&self, _by: &Balance) -> Option<(&'static str, &'static str)> {
        None
    }

    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)> {
        let mut collate =
            Pairs::new(data.schema(), self.length, &self.buckets, data.dtype)?.labels(self.labels)?;
        if self.nan == Nan::Mask {
            collate = collate.mask_nan();
        }
        let collate = collate.only(&self.fields)?;
        let cut = if self.reads_next() { view::Segments::new } else { view::Segments::apart };
        Ok((Arc::new(cut(data.lengths(), self.length, &self.buckets)?), Arc::new(collate)))
    }
}
