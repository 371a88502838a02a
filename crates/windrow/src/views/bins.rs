//! Whole records side by side.

use std::sync::Arc;

use windrow_core::Result;
use windrow_core::collate::{Collate, Labels, Segments};
use windrow_core::plan::Balance;
use windrow_core::view::{self, Overlong, Strategy, View};

use crate::opening::dataset::Dataset;
use crate::views::kind::{Cut, ViewKind};
use crate::views::multiple::Multiple;
use crate::views::option::{chosen, view};
use crate::views::scope::Scope;

view! {
    /// Whole records side by side in rows of `length`. See [`Segments`](windrow_core::collate::Segments) for the tensors.
    ///
    /// ```
    /// use windrow::{Bins, Overlong};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # std::fs::write(dir.path().join("series.json"), "[[1, 2, 3, 4, 5, 6], [7, 8]]").unwrap();
    /// let series = windrow::open(dir.path().join("series.json"))?;
    /// let view = series.bins(Bins::new(4).overlong(Overlong::Split))?;
    /// assert_eq!(view.batch(&[0, 1], 0)?.get::<i64>("input_ids")?, [1, 2, 3, 4, 5, 6, 7, 8]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub struct Bins {
        @needs {
            /// Positions of a row.
            length: u64,
        }
        /// Which row takes a record: the one with the least room that is enough, or the first with enough.
        #[kept = true]
        strategy: Strategy,
        /// What to do with records that are longer than a row.
        overlong: Overlong,
        /// Which records may share a row: all, those of a block of 8 MiB, as blocks of an order read them, or N consecutive ones.
        scope: Scope,
        /// Let documents of nearly the same length trade places in each epoch, so that others share a row.
        reshuffle: bool,
        /// Let each record take a multiple of M positions; M divides length.
        multiple: Multiple as u64,
        /// What fills free positions.
        #[kept = true]
        pad_value: i64,
        /// Only these tensors.
        fields: Vec<String> as &[&str],
        /// What labels are: the token after each input, the input itself, or none.
        labels: Labels,
    }
    called "bins", "Whole records side by side in N positions";
}

impl ViewKind for Bins {
    chosen!(labels);

    fn alike(&self, _by: &Balance) -> Option<(&'static str, &'static str)> {
        None
    }

    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)> {
        let collate = |most| -> Result<Arc<dyn Collate>> {
            let segments = Segments::new(data.schema(), self.length, most, data.dtype, self.pad_value)?
                .labels(self.labels)?
                .only(&self.fields)?;
            Ok(match self.multiple.fills() {
                true => Arc::new(segments.filled(data.schema(), self.multiple.0)?),
                false => Arc::new(segments),
            })
        };
        // What cannot be assembled is refused before the lengths are gone through.
        collate(1)?;
        let scope = self.scope.records(&*data.source);
        let (strategy, overlong) = (self.strategy, self.overlong);
        let cut = if self.reshuffle { view::Bins::reshuffled } else { view::Bins::with };
        let row = self.multiple.of_rows(self.length);
        let bins = cut(data.lengths(), row, strategy, overlong, scope, self.reads_next())?;
        let collate = collate(bins.max_segments())?;
        Ok((Arc::new(bins), collate))
    }

    // What is cut is never seen, however many epochs there are.
    fn warn(&self, data: &Dataset, view: &dyn View) {
        let cut = view.overlong();
        if self.overlong == Overlong::Cut && cut > 0 {
            windrow_core::warn!(
                "{}: {cut} of {} records are longer than {} positions and are cut; @coverage@ counts what is never \
                 seen, @overlong=split@ reads all of them",
                data.paths,
                data.len(),
                self.length
            );
        }
    }
}
