//! Samples by number.

use std::fmt;

use windrow_core::collate::{Batch, Labels, ScaledBy};
use windrow_core::plan::{Feed, Pick, records_of};
use windrow_core::view::Coverage;
use windrow_core::{DType, Draw, Error, Pass, Result, store};

use crate::opening::dataset::Dataset;
use crate::opening::own::OpenOptions;
use crate::views::grouping::Grouping;
use crate::views::part::RecipePart;
use crate::views::scaler::Scaler;

/// Samples by number: a data set and the view that cuts it.
#[derive(Clone)]
pub struct Samples {
    pub(crate) feed: Feed,
    pub(crate) data: Dataset,
    pub(crate) recipe: RecipePart,
    pub(crate) by: ScaledBy,
    pub(crate) grouping: Option<Grouping>,
}

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Samples")
            .field("data", &self.data)
            .field("view", &self.recipe.view)
            .field("dtype", &self.recipe.dtype)
            .field("len", &self.feed.len())
            .finish_non_exhaustive()
    }
}

impl Samples {
    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.feed.len()
    }

    /// No samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data set it cuts.
    pub fn dataset(&self) -> &Dataset {
        &self.data
    }

    /// Source, cut and layout.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// What is needed to open the same samples again, elsewhere.
    pub fn recipe(&self) -> &RecipePart {
        &self.recipe
    }

    /// Changes the dtype of their numbers.
    ///
    /// # Errors
    /// `Config` when the dtype cannot hold the values.
    pub fn with_dtype(&self, dtype: DType) -> Result<Samples> {
        self.data.assemble(self.feed.source().clone(), self.recipe.view.clone(), Some(dtype), &self.by)
    }

    /// Changes the labels: the values one later, the inputs themselves, or none. Without values one later a sample of n inputs
    /// reads n values, so the samples are cut again.
    ///
    /// # Errors
    /// `Config` for a view that has no such labels (crop, codes, cursor, shifted rows), and for inputs as labels of an
    /// unsigned dtype where some are not learned.
    ///
    /// ```
    /// use windrow::Labels;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("tokens.bin");
    /// std::fs::write(&path, (0..9u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    /// let view = windrow::open(&path)?.pack(4)?.with_labels(Labels::Same)?;
    /// assert_eq!(view.batch(&[1], 0)?.get::<i64>("labels")?, [4, 5, 6, 7]);
    /// assert_eq!(view.with_labels(Labels::None)?.batch(&[1], 0)?.fields().len(), 1);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn with_labels(&self, labels: Labels) -> Result<Samples> {
        let recipe = self.recipe.view.clone().with_labels(labels)?;
        self.data.assemble(self.feed.source().clone(), recipe, self.recipe.dtype, &self.by)
    }

    /// The record that a sample of a view of rows is, also where its batches are stacked.
    ///
    /// # Errors
    /// `OutOfRange`, `Corrupt`; `Config` for a view of something else.
    pub fn record(&self, sample: u64) -> Result<crate::Value> {
        let pick = Pick { feed: 0, sample, draw: Draw::new(0, 0, 0, sample) };
        let records = records_of(std::slice::from_ref(&self.feed), std::iter::once(pick))?;
        Ok(records.into_iter().next().unwrap_or(crate::Value::Null))
    }

    /// The samples with these numbers as one batch; random crops, and the order of reshuffled documents, are those of `seed`, epoch 0.
    ///
    /// # Errors
    /// `OutOfRange`, `Corrupt`.
    pub fn batch(&self, samples: &[u64], seed: u64) -> Result<Batch> {
        self.feed.batch(samples, seed)
    }

    /// What one epoch sees of the data, in values: of reshuffled documents epoch 0 of seed 0.
    ///
    /// # Errors
    /// `Corrupt` when an index is wrong.
    pub fn coverage(&self) -> Result<Coverage> {
        self.coverage_in(0)
    }

    /// What another epoch sees of it, with seed 0: of documents that are not reshuffled, the same.
    ///
    /// # Errors
    /// As [`Samples::coverage`].
    pub fn coverage_in(&self, epoch: u64) -> Result<Coverage> {
        store::whole(|| self.feed.coverage(Pass { epoch, ..Pass::default() }))
    }

    /// An error where there are none: nothing would be learned, and nobody would say so.
    pub(crate) fn refuse_none(&self) -> Result<()> {
        let Some(why) = self.shortage()? else { return Ok(()) };
        let error =
            Error::config(format!("the view has no samples: {why}")).at(self.data.paths().to_string());
        let has_values = self.coverage().is_ok_and(|coverage| coverage.used + coverage.unseen > 0);
        Err(if has_values {
            error.hint("choose a shorter length; @coverage@ counts what it leaves out")
        } else {
            error
        })
    }

    /// Why there are none: what the data has, and what a sample needs.
    pub(crate) fn shortage(&self) -> Result<Option<String>> {
        if !self.is_empty() {
            return Ok(None);
        }
        if self.data.is_empty() {
            return Ok(Some("there are no records".to_string()));
        }
        let coverage = self.coverage()?;
        let found = format!("all records together have {} values", coverage.used + coverage.unseen);
        Ok(Some(match self.recipe.view.kind().needs() {
            Some(needed) => format!("{found}, and each sample needs {needed}"),
            None => found,
        }))
    }

    /// Leaves out these records, by their numbers in its data set. [`trace_row`](crate::trace_row), `find` and
    /// `coverage` of a plan of it still call each record by that number.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// std::fs::write(&path, "[[1, 2], [3, 4], [5, 6]]").unwrap();
    /// let rows = windrow::open(&path)?.records(1)?.without(&[1])?;
    /// assert_eq!(rows.batch(&[0, 1], 0)?.get::<i64>("labels")?, [2, 6]);
    /// let plan = rows.loader().rank(0, 1).shuffle(false).plan()?;
    /// assert_eq!(windrow::trace_row(&plan, 0, 1, 0)?.reads[0].record, 2);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `OutOfRange` for a record that does not exist; `Config` for a view that leaves out some already, and for values that a
    /// function of the caller's scales.
    pub fn without(&self, records: &[u64]) -> Result<Samples> {
        if records.is_empty() {
            return Ok(self.clone());
        }
        if let Scaler::Custom(custom) = self.recipe.view.scaler() {
            return Err(Error::config(format!("exclude of a view that {:?} scales", custom.name()))
                .field("exclude")
                .hint("a scaler by name, or none, can be computed again without the records"));
        }
        let data = self.data.without(records)?;
        data.view(self.recipe.view.clone(), self.recipe.dtype).map_err(|e| data.numbered(e))
    }
}

impl RecipePart {
    /// Opens the data, and the view of it.
    ///
    /// # Errors
    /// As [`open_with`](crate::open_with) and [`crate::Dataset::view`].
    pub fn open(&self) -> Result<Samples> {
        self.open_by(&OpenOptions::new())
    }

    /// Opens the data, and the view of it, with formats and a store of one's own.
    pub(crate) fn open_by(&self, open: &OpenOptions) -> Result<Samples> {
        open.open_all(&self.path, &self.options)?.view(self.view.clone(), self.dtype)
    }
}
