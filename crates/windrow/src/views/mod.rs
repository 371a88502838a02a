//! The views of a data set by name: how its records are cut into samples.

pub(crate) mod covariates;
pub(crate) mod cut;
pub(crate) mod cut_warnings;
pub(crate) mod grouping;
pub(crate) mod recipe;
pub(crate) mod samples;
pub(crate) mod scope;
pub(crate) mod windowing;

use windrow_core::Result;
use windrow_core::collate::{CodesLayout, DocumentsLayout, Labels};
use windrow_core::source::{Nan, Per};
use windrow_core::view::{Mode, Overlong, Strategy};

use crate::opening::dataset::Dataset;
use crate::views::recipe::{Pad, ViewRecipe};
use crate::views::samples::Samples;
use crate::views::scope::Scope;
use crate::views::windowing::{Scaler, Windowing};

impl Dataset {
    /// Blocks of `length` inputs over the joined records: every token but the first is a target exactly once.
    /// `input_ids`, `labels`: `[length]`.
    ///
    /// # Errors
    /// `Config` for JSON records or a length of 0.
    pub fn pack(&self, length: u64) -> Result<Samples> {
        self.view(ViewRecipe::pack(length), None)
    }

    /// The same blocks, with what keeps their documents apart: see [`Documents`](windrow_core::collate::Documents) for the tensors. `eos` stands after every
    /// record, and ends a document wherever it is.
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for records that are not IDs.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("tokens.bin");
    /// std::fs::write(&path, [5u32, 6, 0, 7, 8, 9, 0, 5, 6].map(u32::to_le_bytes).concat()).unwrap();
    /// let batch = windrow::open(&path)?.pack_documents(4, Some(0), Default::default())?.batch(&[0], 0)?;
    /// assert_eq!(batch.get::<i32>("segment_ids")?, [0, 0, 0, 1]);
    /// assert_eq!(batch.get::<i64>("labels")?, [6, 0, -100, 8]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn pack_documents(&self, length: u64, eos: Option<i64>, layout: DocumentsLayout) -> Result<Samples> {
        let (labels, documents) = (Labels::default(), Some(layout));
        self.view(
            ViewRecipe::Pack { length, eos, shifted: false, documents, fields: Vec::new(), labels },
            None,
        )
    }

    /// Blocks of `length` values over the joined records, none of them shared: every value is a target, its input the
    /// value before, or 0 where the row or a record begins. See [`Shifted`](windrow_core::collate::Shifted) for the tensors.
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for records that are not IDs.
    pub fn pack_shifted(&self, length: u64) -> Result<Samples> {
        let (documents, fields, labels) = (None, Vec::new(), Labels::default());
        self.view(ViewRecipe::Pack { length, eos: None, shifted: true, documents, fields, labels }, None)
    }

    /// One row per record, from its first `length + 1` values. `input_ids`, `labels`, `loss_masks`: `[length]`.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    pub fn records(&self, length: u64) -> Result<Samples> {
        self.view(records(length, Pad::Length), None)
    }

    /// The same rows, those of a batch as long as the longest of them, `length` at most.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # std::fs::write(dir.path().join("series.json"), "[[1, 2, 3, 4], [5, 6], [7, 8, 9]]").unwrap();
    /// let rows = windrow::open(dir.path().join("series.json"))?.records_to_longest(512)?;
    /// let batch = rows.batch(&[1, 2], 0)?;
    /// assert_eq!(batch.fields()[0].shape, [2]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn records_to_longest(&self, length: u64) -> Result<Samples> {
        self.view(records(length, Pad::Longest), None)
    }

    /// Sliding windows: `input_ids`, `labels`, `loss_masks`. With a scaler the values are float32 unless another dtype is
    /// asked for; its statistics are computed here, once, and kept in the cache folder.
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for a stride of 0, or learning of a prediction where there is none.
    pub fn windows(&self, windowing: &Windowing) -> Result<Samples> {
        self.cut(windowing.recipe(), windowing.asked_dtype(), windowing.custom(), &|| false)
    }

    /// Records one after the other in rows of `length`, split where a row is full; with `buckets`, rows of those
    /// lengths. See [`Pairs`](windrow_core::collate::Pairs) for the tensors.
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for a bucket of 0 or above `length`.
    pub fn segments(&self, length: u64, buckets: &[u64], scaler: &Scaler, nan: Nan) -> Result<Samples> {
        let recipe = ViewRecipe::Segments {
            length,
            buckets: buckets.to_vec(),
            scaler: scaler.name(),
            nan,
            fit: None,
            per: Per::default(),
            fields: Vec::new(),
            labels: Labels::default(),
        };
        self.cut(recipe, None, scaler.custom(), &|| false)
    }

    /// Up to `length` values of each record, from a random place or from its start. `values`, `lengths`.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    pub fn crop(&self, length: u64, mode: Mode) -> Result<Samples> {
        self.view(ViewRecipe::Crop { length, mode }, None)
    }

    /// Up to `length` frames of each track of codes `[T, C]`, from a random place or from its start, with its text. See
    /// [`Codes`](windrow_core::collate::Codes) for the tensors.
    ///
    /// # Errors
    /// `Config` for records that are not codes, or a layout that does not fit them; see [`Codes::new`](windrow_core::collate::Codes::new).
    ///
    /// ```
    /// use windrow::{Mode, dev::collate::{CodesLayout, Masks}};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # std::fs::write(dir.path().join("a.jsonl"), "{\"sequence\": [[1, 2], [3, 4]], \"text\": \"hi\"}\n").unwrap();
    /// # let options = windrow::format::Options { format: Some("series-jsonl".into()), ..Default::default() };
    /// # let tracks = windrow::open_with(dir.path().join("a.jsonl"), &options)?;
    /// let layout = CodesLayout { text_length: 4, masks: Masks::Lengths, ..CodesLayout::default() };
    /// let view = tracks.codes(600, Mode::Random, &layout)?;
    /// let batch = view.batch(&[0], 0)?;
    /// assert_eq!(batch.get::<i64>("src_tokens")?, [104, 105, 0, 0]);
    /// assert_eq!(batch.get::<i64>("tgt_tokens")?, [1026, 1026, 1, 1026, 3, 2, 1024, 1024]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn codes(&self, length: u64, mode: Mode, layout: &CodesLayout) -> Result<Samples> {
        self.view(ViewRecipe::Codes { length, mode, layout: Box::new(layout.clone()) }, None)
    }

    /// Whole records side by side in rows of `length`; longer ones are cut. See [`Segments`](windrow_core::collate::Segments) for the tensors.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    pub fn bins(&self, length: u64, strategy: Strategy) -> Result<Samples> {
        self.bins_with(length, strategy, Overlong::Cut, Scope::All)
    }

    /// The same rows, with this for records that are longer than one, and of neighbours alone where the scope is not all.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    ///
    /// ```
    /// use windrow::{Overlong, Scope, Strategy};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # std::fs::write(dir.path().join("series.json"), "[[1, 2, 3, 4, 5, 6], [7, 8]]").unwrap();
    /// let series = windrow::open(dir.path().join("series.json"))?;
    /// let view = series.bins_with(4, Strategy::BestFit, Overlong::Split, Scope::All)?;
    /// assert_eq!(view.batch(&[0, 1], 0)?.get::<i64>("input_ids")?, [1, 2, 3, 4, 5, 6, 7, 8]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn bins_with(
        &self,
        length: u64,
        strategy: Strategy,
        overlong: Overlong,
        scope: Scope,
    ) -> Result<Samples> {
        let (fields, labels) = (Vec::new(), Labels::default());
        self.view(ViewRecipe::Bins { length, strategy, overlong, scope, pad_value: 0, fields, labels }, None)
    }

    /// Records whole, as they are: rows of columns, or JSON. With `columns` only those, in that order; without any, all.
    ///
    /// A batch holds a [`Value`](crate::Value) for each of its rows, in [`Batch::records`](crate::Batch::records).
    ///
    /// # Errors
    /// `Config` for records of numbers, and for columns that are not there.
    ///
    /// ```
    /// use windrow::Value;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("pages.jsonl");
    /// std::fs::write(&path, "{\"text\": \"one\", \"label\": 1}\n{\"text\": \"two\", \"label\": 2}\n").unwrap();
    /// let pages = windrow::open(&path)?;
    /// let mut loader = pages.rows(&["text"])?.loader().batch_size(2).shuffle(false).rank(0, 1).build()?;
    /// let batch = loader.next_batch().expect("it never ends")?;
    /// for record in batch.records() {
    ///     let Value::Struct(row) = record else { panic!("a row") };
    ///     println!("{}", row.get("text").and_then(Value::as_text).expect("a text"));
    /// }
    /// # assert_eq!(batch.records().len(), 2);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn rows(&self, columns: &[&str]) -> Result<Samples> {
        self.view(rows(columns, false), None)
    }

    /// The same records, column by column: a column of numbers, or of arrays of one shape, is a tensor `[rows, …]` of a batch,
    /// any other a list of values in [`Batch::list`](crate::Batch::list).
    ///
    /// # Errors
    /// As [`Dataset::rows`]; when a batch is assembled `Mismatch`, where numbers of a column differ in shape or dtype.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("pages.jsonl");
    /// # std::fs::write(&path, "{\"text\": \"one\", \"label\": 1}\n{\"text\": \"two\", \"label\": 2}\n").unwrap();
    /// let batch = windrow::open(&path)?.rows_stacked(&[])?.batch(&[1, 0], 0)?;
    /// assert_eq!(batch.get::<i64>("label")?, [2, 1]);
    /// assert_eq!(batch.list("text")?, [windrow::Value::from("two"), "one".into()]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn rows_stacked(&self, columns: &[&str]) -> Result<Samples> {
        self.view(rows(columns, true), None)
    }

    /// Rows behind a cursor: oxidizr's batches, where a loader of `batch_size` rows takes them without a shuffle.
    /// `input_ids`, `labels`: `[length]`.
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for a batch size of 0; `Corrupt` when there are too few values for one batch.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("data.bin");
    /// let ids: Vec<u8> = (0..23u32).flat_map(u32::to_le_bytes).collect();
    /// std::fs::write(&path, ids).unwrap();
    /// let view = windrow::open(&path)?.cursor(2, 4)?.with_dtype(windrow::DType::U32)?;
    /// let mut loader = view.loader().batch_size(2).shuffle(false).rank(0, 1).build()?;
    /// let starts = (0..3).map(|_| loader.next_batch().unwrap().unwrap().get::<u32>("input_ids").unwrap()[0]);
    /// assert_eq!(starts.collect::<Vec<_>>(), [0, 8, 0]); // begins again, as a whole batch at 16 does not fit
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn cursor(&self, batch_size: u64, length: u64) -> Result<Samples> {
        self.view(ViewRecipe::Cursor { batch_size, length, rank: 0, world_size: 1 }, None)
    }
}

fn records(length: u64, pad: Pad) -> ViewRecipe {
    ViewRecipe::Records { length, pad_value: 0, pad, group: None, labels: Labels::default() }
}

fn rows(columns: &[&str], stack: bool) -> ViewRecipe {
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_string()).collect();
    ViewRecipe::Rows { columns: (!columns.is_empty()).then_some(columns), stack }
}
