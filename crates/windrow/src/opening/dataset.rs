//! An opened data set: its records by number, and what it is.

use std::fmt;

use serde_json::Value;
use windrow_core::collate::mask_columns;
use windrow_core::format::Options;
use windrow_core::manifest::Manifest;
use windrow_core::source::{Extras, FileInfo, Kind, Numbering, SharedSource};
use windrow_core::store::{StoreSet, Traffic};
use windrow_core::values::copy_values;
use windrow_core::{Buffer, Decode, Error, Place, Result, Row, Span, store};
use windrow_formats::parse_json;

use crate::opening::owner::Owner;
use crate::opening::part::{left_out, of_exclude};
use crate::opening::paths::Paths;
use crate::opening::records::Records;
use crate::opening::time_part::{TimePart, of_period};

/// Records on disk, by number.
#[derive(Clone)]
pub struct Dataset {
    pub(crate) paths: Paths,
    pub(crate) options: Options,
    /// Those that the options choose, in their split.
    pub(crate) records: Records,
    /// What they are called, without those that the options leave out.
    pub(crate) numbering: Numbering,
    /// Whole records, where those of `source` are parts of them in time.
    pub(crate) whole: SharedSource,
    /// Which parts.
    pub(crate) period: Option<TimePart>,
    pub(crate) source: SharedSource,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) stores: StoreSet,
    /// Names that were passed over where it was looked for.
    pub(crate) hidden: Vec<String>,
    /// What holds its records, where they are in no file.
    pub(crate) owner: Option<Owner>,
}

/// What a data set is, as `inspect` prints it.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
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
    /// Names of files and folders that were passed over, as they begin with `_` or `.`, or are another program's cache; below
    /// the folder that was opened, of several paths as they are found.
    pub hidden: Vec<String>,
    /// Names of what is beside the values of record 0.
    pub extras: Vec<String>,
    /// The columns of records that are rows, and what each holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<(String, String)>,
    /// Names of the arrays that run beside the values.
    pub tracks: Vec<String>,
    /// The columns, or the array that the format stores, that say which tokens are learned: [`Options::mask_column`].
    pub mask_columns: Vec<String>,
    /// Documents of which nothing is learned, where windrow made them with a loss mask and there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlearned_documents: Option<u64>,
    /// Ids are below this, where it is known.
    pub vocab_size: Option<u64>,
    /// The ID that ends a document: what it was opened with, else what the manifest says.
    pub eos: Option<i64>,
    /// Name of the tokenizer that made the IDs, where the manifest says it.
    pub tokenizer: Option<String>,
}

const MOST_COUNTED: u64 = 10_000_000;

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = self.source.format();
        f.debug_struct("Dataset")
            .field("paths", &format_args!("{}", self.paths))
            .field("format", &format)
            .field("records", &self.source.len())
            .finish_non_exhaustive()
    }
}

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
        let mut records = Records::all(found);
        for choice in &options.select {
            records = records.after(choice, &|| false)?;
        }
        if let Some(split) = options.random_split {
            records = records.split(split)?;
        }
        let (whole, numbering) = without(&records, &options)?;
        let period = TimePart::of(options.period.as_ref(), &whole).map_err(|e| numbering.numbered(e))?;
        let source = of_period(whole.clone(), period.as_ref())?;
        Ok(Dataset {
            paths,
            options,
            records,
            numbering,
            whole,
            period,
            source,
            manifest,
            stores,
            hidden: Vec::new(),
            owner: None,
        })
    }

    /// The part that the options name, of a data set of whole records.
    pub(crate) fn parted(&self, options: Options) -> Result<Dataset> {
        // What this data set is a part of is a part already.
        let records = match options.random_split.filter(|_| self.options.random_split.is_none()) {
            Some(split) => self.records.split(split)?,
            None => self.records.clone(),
        };
        self.of_records(records, options)
    }

    /// This data set with other records, which these options choose.
    pub(crate) fn of_records(&self, records: Records, options: Options) -> Result<Dataset> {
        let (whole, numbering) = without(&records, &options)?;
        let period = TimePart::of(options.period.as_ref(), &whole);
        let period = period.map_err(|e| numbering.numbered(e).or_at(self.paths.to_string()))?;
        let source = of_period(whole.clone(), period.as_ref())?;
        Ok(Dataset { options, records, numbering, whole, period, source, ..self.clone() })
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
        store::whole(|| self.source.row(record)).map_err(|e| self.numbered(e))
    }

    /// The bytes of a record as they lie on disk, in their dtype and byte order (little-endian but for big-endian
    /// files): what [`Dataset::json`] parses, or the numbers.
    ///
    /// # Errors
    /// `OutOfRange`, `Corrupt`.
    pub fn bytes(&self, record: u64) -> Result<Vec<u8>> {
        self.check(record)?;
        let read = store::whole(|| {
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
        });
        read.map_err(|e| self.numbered(e))
    }

    /// Values in a record.
    ///
    /// # Errors
    /// `OutOfRange`, `Corrupt`.
    pub fn length(&self, record: u64) -> Result<u64> {
        self.check(record)?;
        store::whole(|| self.source.length(record)).map_err(|e| self.numbered(e))
    }

    fn check(&self, record: u64) -> Result<()> {
        if record < self.len() {
            Ok(())
        } else {
            Err(Error::out_of_range("record", record, self.len()).or_at(self.paths.to_string()))
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
        store::whole(|| self.parsed(record)).map_err(|e| self.numbered(e))
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
        store::whole(|| self.source.extras(record)).map_err(|e| self.numbered(e))
    }

    /// Format, counts, lengths, files.
    ///
    /// # Errors
    /// `Corrupt` when an index is wrong.
    pub fn info(&self) -> Result<Info> {
        store::whole(|| self.counted()).map_err(|e| self.numbered(e))
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
            hidden: self.hidden.clone(),
            extras: if self.is_empty() {
                Vec::new()
            } else {
                self.source.extras(0)?.names().map(str::to_string).collect()
            },
            columns: if schema.is_value() {
                Vec::new()
            } else {
                schema.columns.iter().map(|c| (c.name.clone(), c.holds.clone())).collect()
            },
            tracks: schema.stored_tracks().map(|(_, track)| track.name.clone()).collect(),
            mask_columns: mask_columns(&schema.tracks),
            unlearned_documents: self.manifest.as_ref().and_then(|manifest| {
                manifest.statistics.get(windrow_prepare::UNLEARNED).and_then(Value::as_u64)
            }),
            vocab_size: schema.vocab_size,
            eos: self.options.document_eos.or(self.manifest.as_ref().and_then(|s| s.eos)),
            tokenizer: self.manifest.as_ref().and_then(|s| s.tokenizer.as_ref()).map(|t| t.name.clone()),
        })
    }
}

// Records without those that the options leave out, and what they are called.
fn without(records: &Records, options: &Options) -> Result<(SharedSource, Numbering)> {
    let (all, chosen) = (records.source(), records.chosen());
    let left_out = left_out(&options.exclude, all.len(), chosen.map(AsRef::as_ref))?;
    Ok((of_exclude(all, &left_out)?, Numbering::new(chosen.cloned(), left_out)))
}
