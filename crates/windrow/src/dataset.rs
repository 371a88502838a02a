//! An opened data set, and the samples cut from it.

use std::sync::Arc;

use serde_json::Value;
use windrow_core::collate::{
    self, Batch, Beside, BesideField, Codes, CodesLayout, Collate, Documents, DocumentsLayout, Labels,
    NextToken, Pairs, Raw, ScaledBy, Segments, Shifted,
};
use windrow_core::format::Options;
use windrow_core::manifest::Manifest;
use windrow_core::plan::{Feed, Pick, records_of};
use windrow_core::source::{
    Custom, Extras, FileInfo, Fit, Kind, Nan, Per, Runs, SampleScale, Scaled, Scaling, SharedSource,
    Transformed,
};
use windrow_core::store::{StoreSet, Traffic};
use windrow_core::values::copy_values;
use windrow_core::view::{
    self, Bins, Coverage, Crop, Cursor, Mode, Overlong, Pack, Records, Strategy, View, Windows,
};
use windrow_core::{Buffer, DType, Decode, Draw, Error, Lengths, Place, Result, Row, Span, store};
use windrow_formats::{key_rows, parse_json};

use crate::formats::format_info;
use crate::part::{of_period, of_split};
use crate::paths::Paths;
use crate::recipe::RecipePart;
use crate::view_recipe::{LossOn, Pad, ScalerName, ViewRecipe};
use crate::windowing::{Scaler, Windowing, check_scaler, scaling_of};

/// Records on disk, by number.
#[derive(Clone)]
pub struct Dataset {
    paths: Paths,
    options: Options,
    /// Whole records, where those of `source` are parts of them in time.
    whole: SharedSource,
    source: SharedSource,
    manifest: Option<Manifest>,
    stores: StoreSet,
}

/// What a data set is, as `inspect` prints it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Info {
    /// Name of the format.
    pub format: String,
    /// Number of records.
    pub records: u64,
    /// Values in all records; `None` when counting them would read an index of more than ten million rows.
    pub values: Option<u64>,
    /// dtype of a stored number; `None` for text.
    pub dtype: Option<String>,
    /// Numbers per value, for `[T, C]` records.
    pub channels: Option<usize>,
    /// Shortest record.
    pub length_min: Option<u64>,
    /// Mean length.
    pub length_mean: Option<f64>,
    /// Longest record.
    pub length_max: Option<u64>,
    /// Bytes of all files.
    pub bytes: u64,
    /// The files.
    pub files: Vec<FileInfo>,
    /// Names of what is beside the values of record 0.
    pub extras: Vec<String>,
    /// The columns of records that are rows, and what each holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<(String, String)>,
    /// Names of the arrays that run beside the values.
    pub tracks: Vec<String>,
    /// Ids are below this, where it is known.
    pub vocab_size: Option<u64>,
    /// The ID that ends a document: what it was opened with, else what the manifest says.
    pub eos: Option<i64>,
    /// Name of the tokenizer that made the IDs, where the manifest says it.
    pub tokenizer: Option<String>,
}

const MOST_COUNTED: u64 = 10_000_000;

impl Dataset {
    /// What was found there, and the part of it that the options name.
    ///
    /// # Errors
    /// `Config` or `Mismatch` for a part that these records do not have.
    pub(crate) fn new(
        paths: Paths,
        options: Options,
        found: SharedSource,
        manifest: Option<Manifest>,
        stores: StoreSet,
    ) -> Result<Dataset> {
        let whole = of_split(found, options.split)?;
        let source = of_period(whole.clone(), options.period)?;
        Ok(Dataset { paths, options, whole, source, manifest, stores })
    }

    /// The part that the options name, of a data set of whole records.
    pub(crate) fn parted(&self, options: Options) -> Result<Dataset> {
        // What this data set is a part of is a part already.
        let split = options.split.filter(|_| self.options.split.is_none());
        let whole = of_split(self.whole.clone(), split)?;
        let source = of_period(whole.clone(), options.period)?;
        Ok(Dataset { options, whole, source, ..self.clone() })
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// No records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where it lies, as it was asked for.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// How it was opened.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The manifest beside it, where there is one.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// The records.
    pub fn source(&self) -> &SharedSource {
        &self.source
    }

    pub(crate) fn stores(&self) -> &StoreSet {
        &self.stores
    }

    /// What the stores that it lies in were asked for since it was opened, by all that read it in this process: 0 where it
    /// lies on this machine.
    pub fn traffic(&self) -> Traffic {
        self.stores.traffic()
    }

    /// Whether a record is JSON text instead of numbers.
    pub fn is_json(&self) -> bool {
        self.source.schema().kind == Kind::Json
    }

    /// Whether a record is a row of named columns, which [`Dataset::row`] gives.
    pub fn is_rows(&self) -> bool {
        self.source.schema().kind == Kind::Rows
    }

    /// The columns of a record that is a row.
    ///
    /// # Errors
    /// `OutOfRange`, `Corrupt`; `Config` where records are not rows.
    pub fn row(&self, record: u64) -> Result<Row> {
        self.check(record)?;
        store::whole(|| self.source.row(record))
    }

    /// The bytes of a record as they lie on disk, in their dtype and byte order (little-endian but for big-endian
    /// files): what [`Dataset::json`] parses, or the numbers.
    ///
    /// # Errors
    /// `OutOfRange`, `Corrupt`.
    pub fn bytes(&self, record: u64) -> Result<Vec<u8>> {
        self.check(record)?;
        store::whole(|| {
            let mut scratch = Vec::new();
            let values = self.source.read_whole(record, &mut scratch)?;
            if values.decode != Decode::Literal {
                return Ok(values.bytes.to_vec());
            }
            // Kept wider than they are read.
            let dtype = self.source.schema().element.dtype;
            let mut read = Buffer::zeroed(values.bytes.len() / values.element.size() * dtype.size());
            copy_values(&values, 0, read.bytes_mut(), dtype)?;
            Ok(read.bytes().to_vec())
        })
    }

    /// Values in a record.
    ///
    /// # Errors
    /// `OutOfRange`, `Corrupt`.
    pub fn length(&self, record: u64) -> Result<u64> {
        self.check(record)?;
        store::whole(|| self.source.length(record))
    }

    fn check(&self, record: u64) -> Result<()> {
        match record < self.len() {
            true => Ok(()),
            false => Err(Error::out_of_range("record", record, self.len()).or_at(self.paths.to_string())),
        }
    }

    /// A JSON record, parsed.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` with file, record and byte when it is not JSON.
    pub fn json(&self, record: u64) -> Result<Value> {
        if !self.is_json() {
            let what = if self.is_rows() { "rows of columns" } else { "numbers" };
            return Err(
                Error::config(format!("the records are {what}, not JSON")).or_at(self.paths.to_string())
            );
        }
        self.check(record)?;
        store::whole(|| self.parsed(record))
    }

    fn parsed(&self, record: u64) -> Result<Value> {
        let mut scratch = Vec::new();
        let values = self.source.read_whole(record, &mut scratch)?;
        let parsed = parse_json(values.bytes, &Place::default());
        if parsed.is_ok() {
            return parsed;
        }
        // Where it lies is looked up only to say it.
        let span = Span { record, start: 0, len: values.bytes.len() as u64 };
        let found = self.source.locate(span)?.into_iter().next();
        let place = Place {
            record: Some(record),
            byte: found.as_ref().map(|at| at.start),
            file: found.map(|at| at.file),
            field: None,
        };
        parse_json(values.bytes, &place)
    }

    /// What is beside the numbers of a record; empty when nothing does.
    ///
    /// # Errors
    /// `OutOfRange`, `Corrupt`.
    pub fn extras(&self, record: u64) -> Result<Extras> {
        self.check(record)?;
        store::whole(|| self.source.extras(record))
    }

    /// Format, counts, lengths, files.
    ///
    /// # Errors
    /// `Corrupt` when an index is wrong.
    pub fn info(&self) -> Result<Info> {
        store::whole(|| self.counted())
    }

    fn counted(&self) -> Result<Info> {
        let schema = self.source.schema();
        let files = self.source.files();
        let (mut min, mut max, mut sum) = (None, None, None);
        if let Some(length) = self.source.uniform().filter(|_| !self.is_empty()) {
            (min, max, sum) = (Some(length), Some(length), length.checked_mul(self.len()));
        } else if self.len() <= MOST_COUNTED {
            let mut total = 0u64;
            for record in 0..self.len() {
                let length = self.source.length(record)?;
                min = Some(min.map_or(length, |m: u64| m.min(length)));
                max = Some(max.map_or(length, |m: u64| m.max(length)));
                total = total.saturating_add(length);
            }
            sum = Some(total);
        }
        Ok(Info {
            format: self.source.format().to_string(),
            records: self.len(),
            values: sum,
            dtype: (schema.kind == Kind::Numbers).then(|| schema.element.dtype.name().to_string()),
            channels: schema.channels,
            length_min: min,
            length_mean: sum.filter(|_| !self.is_empty()).map(|s| s as f64 / self.len() as f64),
            length_max: max,
            bytes: files.iter().map(|f| f.size).sum(),
            files,
            extras: match self.is_empty() {
                true => Vec::new(),
                false => self.source.extras(0)?.names().map(str::to_string).collect(),
            },
            columns: match schema.is_value() {
                true => Vec::new(),
                false => schema.columns.iter().map(|c| (c.name.clone(), c.holds.clone())).collect(),
            },
            tracks: schema.tracks.iter().map(|t| t.name.clone()).collect(),
            vocab_size: schema.vocab_size,
            eos: self.options.eos.or(self.manifest.as_ref().and_then(|s| s.eos)),
            tokenizer: self.manifest.as_ref().and_then(|s| s.tokenizer.as_ref()).map(|t| t.name.clone()),
        })
    }

    /// Blocks of `length` inputs over the joined records: every token but the first is a target exactly once.
    /// `input_ids`, `labels`: `[length]`.
    ///
    /// # Errors
    /// `Config` for JSON records or a length of 0.
    pub fn pack(&self, length: u64) -> Result<Samples> {
        self.view(ViewRecipe::pack(length), None)
    }

    /// The same blocks, with what keeps their documents apart: see [`Documents`] for the tensors. `eos` stands after every
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
    /// value before, or 0 where the row or a record begins. See [`Shifted`] for the tensors.
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
    /// lengths. See [`Pairs`] for the tensors.
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
    /// [`Codes`] for the tensors.
    ///
    /// # Errors
    /// `Config` for records that are not codes, or a layout that does not fit them; see [`Codes::new`].
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

    /// Whole records side by side in rows of `length`; longer ones are cut. See [`Segments`] for the tensors.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    pub fn bins(&self, length: u64, strategy: Strategy) -> Result<Samples> {
        self.bins_with(length, strategy, Overlong::Cut)
    }

    /// The same rows, with this for records that are longer than one.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    ///
    /// ```
    /// use windrow::{Overlong, Strategy};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # std::fs::write(dir.path().join("series.json"), "[[1, 2, 3, 4, 5, 6], [7, 8]]").unwrap();
    /// let view = windrow::open(dir.path().join("series.json"))?.bins_with(4, Strategy::BestFit, Overlong::Split)?;
    /// assert_eq!(view.batch(&[0, 1], 0)?.get::<i64>("input_ids")?, [1, 2, 3, 4, 5, 6, 7, 8]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn bins_with(&self, length: u64, strategy: Strategy, overlong: Overlong) -> Result<Samples> {
        let (fields, labels) = (Vec::new(), Labels::default());
        self.view(ViewRecipe::Bins { length, strategy, overlong, pad_value: 0, fields, labels }, None)
    }

    /// Records whole, as they are: rows of columns, or JSON. With `columns` only those, in that order; without any, all.
    ///
    /// A batch holds a [`Value`](crate::Value) for each of its rows, in [`Batch::records`].
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
    /// any other a list of values in [`Batch::list`].
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

    /// The view that a recipe describes, its numbers as `dtype`.
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for a recipe that names a function of the caller's.
    pub fn view(&self, recipe: ViewRecipe, dtype: Option<DType>) -> Result<Samples> {
        self.cut(recipe, dtype, None, &|| false)
    }

    /// The same, with the function that the recipe names. `stop` is asked while statistics are computed, and ends that.
    ///
    /// # Errors
    /// As [`Dataset::view`]; `Interrupted` when asked to stop.
    pub fn cut(
        &self,
        recipe: ViewRecipe,
        dtype: Option<DType>,
        custom: Option<&Custom>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Samples> {
        check_scaler(&recipe)?;
        // What cannot be laid is refused before the data is read for its statistics.
        let (source, by): (SharedSource, ScaledBy) = match (recipe.scaler(), custom) {
            (ScalerName::None, _) => (self.source.clone(), ScaledBy::Nothing),
            (ScalerName::Custom(name), Some(custom)) if name == custom.name() => {
                self.lay(self.source.clone(), recipe.clone(), dtype, &ScaledBy::Nothing)?;
                (Arc::new(Transformed::new(self.source.clone(), custom.clone())?), ScaledBy::Nothing)
            }
            _ => {
                let scaling = scaling_of(&recipe)?;
                let laid_by = |by| self.lay(self.source.clone(), recipe.clone(), dtype, &by);
                match scaling {
                    None => (self.source.clone(), ScaledBy::Nothing),
                    Some(scaling) if scaling.per == Per::Window => {
                        let given = recipe.context_length().unwrap_or(u64::MAX);
                        (self.source.clone(), ScaledBy::Sample(SampleScale::new(scaling, given)))
                    }
                    Some(scaling) => {
                        laid_by(ScaledBy::Unmeasured)?;
                        let scaled = Arc::new(self.measured(scaling, stop)?);
                        (of_period(scaled.clone(), self.options.period)?, ScaledBy::Record(scaled))
                    }
                }
            }
        };
        let samples = self.lay(source, recipe, dtype, &by)?;
        self.warn_of_padding(&samples);
        self.warn_of_one_document(&samples);
        self.warn_of_cut_records(&samples);
        Ok(samples)
    }

    // What is cut is never seen, however many epochs there are.
    fn warn_of_cut_records(&self, samples: &Samples) {
        let ViewRecipe::Bins { length, overlong: Overlong::Cut, .. } = samples.recipe.view else { return };
        let cut = samples.feed.view().overlong();
        if cut > 0 {
            log::warn!(
                "{}: {cut} of {} records are longer than {length} positions and are cut; coverage() counts what is never \
                 seen, overlong=\"split\" reads all of them",
                self.paths,
                self.len()
            );
        }
    }

    // Tokens of many documents in one file are one record, and nothing would be kept apart.
    fn warn_of_one_document(&self, samples: &Samples) {
        let ViewRecipe::Pack { documents: Some(_), eos: None, .. } = samples.recipe.view else { return };
        if self.len() == 1 && self.source.joined().is_none() {
            log::warn!(
                "{}: documents are records, and this is one record of {} tokens; say with eos= which token ends a document",
                self.paths,
                self.source.length(0).unwrap_or_default()
            );
        }
    }

    // Parts in time are scaled by what the first of them knows.
    fn measured(&self, scaling: Scaling, stop: &dyn Fn() -> bool) -> Result<Scaled> {
        let fit = match (scaling.fit, self.options.period) {
            (None, Some(period)) => Some(Fit::Fraction(0.0, period.fit)),
            (fit, _) => fit,
        };
        Scaled::new(self.whole.clone(), Scaling { fit, ..scaling }, stop)
    }

    // An array [T, C] that is read as T series of C values gives padded windows only, and a model that learns nothing.
    fn warn_of_padding(&self, samples: &Samples) {
        let view = samples.feed.view();
        let (short, all) = (view.short(), view.len());
        if all < 2 || short < all - all / 10 {
            return;
        }
        let info = format_info(self.source.format());
        let reads_axis =
            info.is_some_and(|info| info.takes("axis")) && self.source.schema().channels.is_none();
        let hint = match reads_axis && self.options.axis.is_none() {
            true => {
                "if an array [T, C] is one series, open it with wr.open(x, axis=\"time\"); else segments packs short series"
            }
            false => "segments packs short series without padding",
        };
        log::warn!(
            "{}: {short} of {all} windows are padded, as their series have fewer than the {} values of a window; {hint}",
            self.paths,
            view.positions() + 1
        );
    }

    // `source`: these records, scaled or not.
    fn lay(
        &self,
        source: SharedSource,
        recipe: ViewRecipe,
        dtype: Option<DType>,
        by: &ScaledBy,
    ) -> Result<Samples> {
        store::whole(|| self.laid(source.clone(), recipe.clone(), dtype, by))
    }

    fn laid(
        &self,
        source: SharedSource,
        recipe: ViewRecipe,
        dtype: Option<DType>,
        by: &ScaledBy,
    ) -> Result<Samples> {
        let source = match recipe {
            ViewRecipe::Pack { eos: None, .. } => source.joined().unwrap_or(source),
            // Keys of objects are columns once they are named.
            ViewRecipe::Rows { columns: Some(ref names), .. }
                if source.schema().kind == Kind::Json || source.schema().is_value() =>
            {
                key_rows(source, names)?
            }
            _ => source,
        };
        let schema = source.schema();
        let is_scaled = *recipe.scaler() != ScalerName::None;
        let mask_nan = recipe.nan() == Nan::Mask;
        let laid_as = match dtype {
            None if is_scaled => Some(DType::F32),
            Some(dtype) if is_scaled && dtype.is_integer() => {
                return Err(Error::config(format!("scaled values are fractions, which {dtype} cannot hold"))
                    .hint("choose dtype=\"float32\""));
            }
            dtype => dtype,
        };
        let lengths: Arc<dyn Lengths> = source.clone();
        // Before the view counts lengths: text has none that a view could use.
        let next_token = |length, short, pad| NextToken::new(schema, length, laid_as, short, pad);
        // Without labels one value later a sample reads none that is only a label.
        let is_next = recipe.labels() == Some(Labels::Next);
        let (view, collate): (Arc<dyn View>, Arc<dyn Collate>) = match &recipe {
            ViewRecipe::Pack { length, eos, shifted, documents, fields, labels } => {
                if *shifted && documents.is_some() {
                    return Err(Error::config("rows with shifted inputs keep documents apart already")
                        .hint("leave shifted out, or documents"));
                }
                if *shifted && *labels != Labels::Next {
                    return Err(Error::config("rows with shifted inputs have targets, which are not labels")
                        .hint("leave shifted out, or labels"));
                }
                let collate: Arc<dyn Collate> = match (shifted, documents, &fields[..]) {
                    (true, _, []) => Arc::new(Shifted::new(schema, *length, laid_as)?),
                    (true, _, fields) => Arc::new(Shifted::new(schema, *length, laid_as)?.only(fields)?),
                    (false, Some(layout), fields) => {
                        let documents = Documents::new(schema, *length, laid_as, *eos, layout.clone())?;
                        let documents = documents.labels(*labels)?;
                        Arc::new(if fields.is_empty() { documents } else { documents.only(fields)? })
                    }
                    (false, None, []) => Arc::new(next_token(*length, false, 0)?.labels(*labels)?),
                    (false, None, _) => {
                        return Err(Error::config(
                            "fields are chosen of rows with documents or shifted inputs",
                        )
                        .hint("add documents or shifted, or leave them out"));
                    }
                };
                if let Some(eos) = eos.filter(|eos| !schema.element.dtype.holds(*eos)) {
                    return Err(Error::config(format!("eos {eos} does not fit {}", schema.element.dtype)));
                }
                let cut = if is_next { Pack::new } else { Pack::apart };
                let view = cut(lengths, *length, *eos)?;
                (Arc::new(if documents.is_some() { view.telling_record() } else { view }), collate)
            }
            ViewRecipe::Records { length, pad_value, pad, labels } => {
                let collate = next_token(*length, true, *pad_value)?.labels(*labels)?;
                let collate = if *pad == Pad::Longest { collate.to_longest() } else { collate };
                let cut = if is_next { Records::new } else { Records::apart };
                (Arc::new(cut(lengths, *length)?), Arc::new(collate))
            }
            ViewRecipe::Windows {
                context_length,
                prediction_length,
                stride,
                tail,
                starts,
                per,
                loss_on,
                labels,
                fields,
                ..
            } => {
                let width = context_length
                    .checked_add(*prediction_length)
                    .ok_or_else(|| Error::config("context_length + prediction_length is larger than 2^64"))?;
                let mut collate = next_token(width, true, 0)?;
                if mask_nan {
                    collate = collate.mask_nan();
                }
                if *loss_on == LossOn::Prediction {
                    if *prediction_length == 0 {
                        return Err(Error::config("loss_on=\"prediction\" with a prediction_length of 0")
                            .hint("give a prediction_length, or learn all labels"));
                    }
                    collate = collate.learn_from(*context_length);
                }
                if let ScaledBy::Sample(own) = by {
                    collate = collate.scaled_by_sample(own.clone());
                }
                let collate = collate.labels(*labels)?;
                let beside: Vec<BesideField> =
                    fields.iter().map(|name| BesideField::of(name)).collect::<Result<_>>()?;
                let channels = schema.channels.filter(|_| *per != Per::Series);
                let collate: Arc<dyn Collate> = match beside.is_empty() {
                    true => Arc::new(collate),
                    false => Arc::new(Beside::new(collate, &beside, by.clone(), channels)?),
                };
                let stride = stride.unwrap_or(width);
                let view = Windows::starting(lengths, width, stride, *tail, *starts, is_next)?;
                (Arc::new(view), collate)
            }
            ViewRecipe::Crop { length, mode } => {
                let collate = Raw::new(schema, *length, laid_as)?;
                (Arc::new(Crop::new(lengths, *length, *mode)?), Arc::new(collate))
            }
            ViewRecipe::Codes { length, mode, layout } => {
                let collate = Codes::new(schema, *length, layout, laid_as)?;
                (Arc::new(Crop::new(lengths, *length, *mode)?.keep_empty()), Arc::new(collate))
            }
            ViewRecipe::Bins { length, strategy, overlong, pad_value, fields, labels } => {
                let collate = |most| {
                    Segments::new(schema, *length, most, laid_as, *pad_value)?.labels(*labels)?.only(fields)
                };
                // What cannot be laid is refused before the lengths are gone through.
                collate(1)?;
                let bins = Bins::with(lengths, *length, *strategy, *overlong, is_next)?;
                let collate = collate(bins.max_segments())?;
                (Arc::new(bins), Arc::new(collate))
            }
            ViewRecipe::Cursor { batch_size, length, rank, world_size } => {
                let collate = next_token(*length, false, 0)?;
                let cursor = Cursor::new(lengths, *batch_size, *length, (*rank, *world_size));
                (Arc::new(cursor.map_err(|e| e.or_at(self.paths.to_string()))?), Arc::new(collate))
            }
            ViewRecipe::Rows { columns, stack } => {
                let collate = collate::Rows::new(schema, columns.as_deref(), *stack)?;
                if let Some(dtype) = dtype {
                    return Err(Error::config(format!(
                        "rows as {dtype}: they keep the dtypes that are stored"
                    ))
                    .field("dtype")
                    .hint("leave dtype out; collate= may convert what it gets"));
                }
                (Arc::new(view::Rows::new(source.len())), Arc::new(collate))
            }
            ViewRecipe::Segments { length, buckets, fields, labels, .. } => {
                let mut collate = Pairs::new(schema, *length, buckets, laid_as)?.labels(*labels)?;
                if mask_nan {
                    collate = collate.mask_nan();
                }
                let collate = collate.only(fields)?;
                let cut = if is_next { view::Segments::new } else { view::Segments::apart };
                (Arc::new(cut(lengths, *length, buckets)?), Arc::new(collate))
            }
        };
        let mut feed = Feed::new(source.clone(), view, collate).lying_in(self.stores.clone());
        // Rows with documents or shifted inputs ask where records begin.
        if let ViewRecipe::Pack { length, eos: None, shifted: false, documents: None, .. } = recipe
            && let Some(runs) = Runs::of(&source)
        {
            let runs = Arc::new(runs);
            let cut = if is_next { Pack::new } else { Pack::apart };
            let view = cut(runs.clone(), length, None)?;
            feed = feed.read_in_runs(runs, Arc::new(view));
        }
        let recipe =
            RecipePart { path: self.paths.clone(), options: self.options.clone(), view: recipe, dtype };
        Ok(Samples { feed, data: self.clone(), recipe, by: by.clone() })
    }
}

fn records(length: u64, pad: Pad) -> ViewRecipe {
    ViewRecipe::Records { length, pad_value: 0, pad, labels: Labels::default() }
}

fn rows(columns: &[&str], stack: bool) -> ViewRecipe {
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_string()).collect();
    ViewRecipe::Rows { columns: (!columns.is_empty()).then_some(columns), stack }
}

/// Samples by number: a data set and the view that cuts it.
#[derive(Clone)]
pub struct Samples {
    feed: Feed,
    data: Dataset,
    recipe: RecipePart,
    by: ScaledBy,
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

    /// The same samples, their numbers as `dtype`.
    ///
    /// # Errors
    /// `Config` when the dtype cannot hold the values.
    pub fn with_dtype(&self, dtype: DType) -> Result<Samples> {
        self.data.lay(self.feed.source().clone(), self.recipe.view.clone(), Some(dtype), &self.by)
    }

    /// The same kind of view with other labels: the values one later, the inputs themselves, or none. Without values one later
    /// a sample of n inputs reads n values, so the samples are cut anew.
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
        self.data.lay(self.feed.source().clone(), recipe, self.recipe.dtype, &self.by)
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

    /// The samples with these numbers as one batch; random crops are those of `seed`, epoch 0.
    ///
    /// # Errors
    /// `OutOfRange`, `Corrupt`.
    pub fn batch(&self, samples: &[u64], seed: u64) -> Result<Batch> {
        self.feed.batch(samples, seed)
    }

    /// What one epoch sees of the data, in values.
    ///
    /// # Errors
    /// `Corrupt` when an index is wrong.
    pub fn coverage(&self) -> Result<Coverage> {
        store::whole(|| self.feed.coverage())
    }
}
