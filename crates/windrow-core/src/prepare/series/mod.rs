//! Numbers into files, record by record: shards, `.npy`, `.npz`, `.jsonl`, `.bin`. What is written becomes visible at once.

mod jsonl;
mod npy;
mod npz;
mod shards;
mod tokens;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic;
use super::site::{self, Site};
use super::{Progress, Report, Watch, check};
use crate::array::{Buffer, DType, Element};
use crate::collate::copy_values;
use crate::error::{Error, Result};
use crate::record::{Decode, Values};
use crate::source::{Extras, Kind, Schema, Source};

/// A layout that records of numbers can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesLayout {
    /// A folder of `data-<i>-of-<n>.bin` and `meta.json`, as Time-MoE's converter writes it; `[T]` only.
    Shards,
    /// One array, `[N, T]` or `[N, T, C]`: all records must be of one length. Extras are left out.
    Npy,
    /// An archive of an array per record. Extras are left out.
    Npz,
    /// A line per record: `{"sequence": […], …extras}`.
    Jsonl,
    /// All records one after the other, without a header; their borders and extras are left out.
    Tokens,
}

/// How to write records of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOptions {
    /// The layout.
    pub layout: SeriesLayout,
    /// dtype of a stored number; `None` takes that of the source, float32 where its numbers are scaled.
    pub dtype: Option<DType>,
    /// Most bytes of a shard.
    pub max_shard_bytes: u64,
    /// Shards store `(x - mean) / std` as float32, and mean and standard deviation of each record beside it.
    pub normalize: bool,
    /// Replace what is there.
    pub overwrite: bool,
    /// Bring everything to the disk before it becomes visible.
    pub durable: bool,
}

impl SeriesOptions {
    /// The usual ones: shards of at most 5 GiB.
    pub fn new(layout: SeriesLayout) -> Self {
        SeriesOptions {
            layout,
            dtype: None,
            max_shard_bytes: 5 << 30,
            normalize: false,
            overwrite: false,
            durable: true,
        }
    }
}

/// Writes records one after the other. Dropped before [`SeriesWriter::finish`], it leaves nothing behind.
///
/// ```
/// # use windrow_core::prepare::{SeriesLayout, SeriesOptions, SeriesWriter};
/// # use windrow_core::{DType, Decode, Element, Values};
/// # let dir = tempfile::tempdir().unwrap();
/// let schema = windrow_core::source::Schema::numbers(Element::little(DType::F32));
/// let mut writer = SeriesWriter::create(&dir.path().join("shards"), &schema, &SeriesOptions::new(SeriesLayout::Shards))?;
/// let bytes: Vec<u8> = [1.5f32, 2.5].iter().flat_map(|x| x.to_le_bytes()).collect();
/// let values = Values { bytes: &bytes, element: schema.element, channels: 1, decode: Decode::Plain };
/// writer.add(&values, &Default::default())?;
/// assert_eq!(writer.finish()?.records, 1);
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct SeriesWriter {
    site: Site,
    out: PathBuf,
    work: PathBuf,
    overwrite: bool,
    dtype: DType,
    channels: Option<usize>,
    body: Option<Box<dyn Body>>,
    numbers: Buffer,
    records: u64,
    values: u64,
}

/// One record as it is stored.
struct Stored<'a> {
    number: u64,
    /// Little-endian, of the writer's dtype.
    bytes: &'a [u8],
    /// Values `T` of `[T]` or `[T, C]`.
    len: u64,
    extras: &'a Extras,
}

/// A layout that is being written.
trait Body: Send {
    fn add(&mut self, record: &Stored<'_>) -> Result<()>;

    /// Completes the files.
    fn finish(self: Box<Self>) -> Result<Written>;
}

/// What a layout wrote.
struct Written {
    /// Names below the work folder that become visible, the last one last.
    targets: Vec<String>,
    /// Data files.
    files: u64,
    /// Their bytes.
    bytes: u64,
}

/// What all layouts are told when they begin.
struct Begin<'a> {
    work: &'a Path,
    name: &'a str,
    dtype: DType,
    channels: Option<usize>,
    options: &'a SeriesOptions,
    total_values: Option<u64>,
}

impl SeriesWriter {
    /// Begins at `out`: a folder for shards, a file for the others. `schema` says dtype and channels of the records.
    ///
    /// # Errors
    /// `Exists` when something is there and `overwrite` is not set, or when it is not what this layout writes; `Config`
    /// when the layout cannot hold such records; `Io`.
    pub fn create(out: &Path, schema: &Schema, options: &SeriesOptions) -> Result<SeriesWriter> {
        Self::begin(out, schema, options, None)
    }

    fn begin(
        out: &Path,
        schema: &Schema,
        options: &SeriesOptions,
        total_values: Option<u64>,
    ) -> Result<SeriesWriter> {
        if schema.kind == Kind::Json {
            return Err(Error::config("the records are JSON texts, not numbers")
                .hint("`windrow tokenize` makes token ids of them"));
        }
        let dtype = match (options.normalize, options.dtype.unwrap_or(schema.element.dtype)) {
            (false, dtype) => dtype,
            (true, DType::F32) => DType::F32,
            (true, _) if options.dtype.is_none() => DType::F32,
            (true, dtype) => {
                return Err(Error::config(format!("normalised values are float32, not {dtype}")));
            }
        };
        // Its numbers are 0 and 1 all the same.
        let dtype = if dtype == DType::Bool { DType::U8 } else { dtype };
        let path = std::path::absolute(out).map_err(|e| Error::io("find it", out, e))?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
            return Err(Error::config("expected the path of a file or folder").at(out));
        };
        check_free(&path, options)?;
        let site = Site::enter(parent, name, options.durable)?;
        let work = site.work(&atomic::hash_of(name))?;
        atomic::remove(&work)?;
        atomic::make_folder(&work)?;
        let begin = Begin { work: &work, name, dtype, channels: schema.channels, options, total_values };
        let body: Result<Box<dyn Body>> = match options.layout {
            SeriesLayout::Shards => shards::Shards::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Npy => npy::Npy::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Npz => npz::Npz::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Jsonl => jsonl::Jsonl::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Tokens => tokens::Tokens::begin(&begin).map(|b| Box::new(b) as _),
        };
        let mut writer = SeriesWriter {
            site,
            work,
            overwrite: options.overwrite,
            dtype,
            channels: schema.channels,
            body: None,
            numbers: Buffer::zeroed(0),
            records: 0,
            values: 0,
            out: path,
        };
        // Dropped on an error, it tidies up.
        writer.body = Some(body?);
        Ok(writer)
    }

    /// Writes the next record. What its numbers are scaled by is applied.
    ///
    /// # Errors
    /// `Config` when a number does not fit the dtype, or the layout cannot hold the record; `Io`. After an error only
    /// dropping is left.
    pub fn add(&mut self, values: &Values<'_>, extras: &Extras) -> Result<()> {
        if values.channels != self.channels.unwrap_or(1) {
            return Err(Error::mismatch(format!(
                "a record of {} channels among records of {}",
                values.channels,
                self.channels.unwrap_or(1)
            ))
            .record(self.records));
        }
        let count = values.bytes.len() / values.element.size();
        let size = count * self.dtype.size();
        if !self.numbers.resize_within(size) {
            self.numbers = Buffer::zeroed(size);
        }
        copy_values(values, 0, self.numbers.bytes_mut(), self.dtype).map_err(|e| e.record(self.records))?;
        let len = (count / values.channels.max(1)) as u64;
        let record = Stored { number: self.records, bytes: self.numbers.bytes(), len, extras };
        if let Some(body) = &mut self.body {
            body.add(&record)?;
        }
        self.records += 1;
        self.values += len;
        Ok(())
    }

    /// Completes the files and makes them visible in one rename.
    ///
    /// # Errors
    /// `Config` when the layout cannot be without records; `Exists` when somebody wrote there meanwhile; `Io`.
    pub fn finish(mut self) -> Result<Report> {
        let Some(body) = self.body.take() else { return Ok(Report::default()) };
        let Written { targets, files, bytes } = body.finish()?;
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        self.site.commit(&self.work, &targets, self.overwrite)?;
        Ok(Report {
            output: self.out.clone(),
            files,
            records: self.records,
            output_bytes: bytes,
            ..Report::default()
        })
    }
}

impl Drop for SeriesWriter {
    fn drop(&mut self) {
        self.body = None;
        // After a commit it is gone already; an error of tidying up would hide the one that led here.
        let _ = atomic::remove(&self.work);
    }
}

// Nothing is replaced that this layout would not have written.
fn check_free(path: &Path, options: &SeriesOptions) -> Result<()> {
    if !atomic::exists(path) {
        return Ok(());
    }
    if !options.overwrite {
        return Err(site::exists(path));
    }
    let names = atomic::names(path);
    let foreign = match (options.layout, names) {
        (SeriesLayout::Shards, Ok(names)) => {
            names.into_iter().find(|n| n != shards::META && !(n.starts_with("data-") && n.ends_with(".bin")))
        }
        (SeriesLayout::Shards, Err(_)) => Some(String::new()),
        (_, Ok(_)) => Some(String::new()),
        (_, Err(_)) => None,
    };
    match foreign {
        None => Ok(()),
        Some(name) => {
            Err(site::exists(&path.join(name))
                .hint("it is none of this layout's files: --overwrite leaves it"))
        }
    }
}

/// Writes all records of a source in another layout.
///
/// # Errors
/// As [`SeriesWriter`]; what reading the source says; `Interrupted`. After an error nothing visible has changed.
pub fn convert(
    source: &dyn Source,
    out: &Path,
    options: &SeriesOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let mut lengths = 0u64;
    for record in 0..source.len() {
        lengths = lengths.saturating_add(source.length(record)?);
    }
    let mut writer = SeriesWriter::begin(out, source.schema(), options, Some(lengths))?;
    let width = source.schema().element.size() as u64 * source.schema().channels.unwrap_or(1) as u64;
    let total_bytes = lengths.saturating_mul(width);
    let mut scratch = Vec::new();
    for record in 0..source.len() {
        check(watch)?;
        let extras = source.extras(record)?;
        writer.add(&source.read_whole(record, &mut scratch)?, &extras)?;
        watch.progress(Progress { done_bytes: writer.values * width, total_bytes, records: record + 1 });
    }
    Ok(Report { input_bytes: total_bytes, ..writer.finish()? })
}

// The type of numbers on disk: little-endian always.
fn element(dtype: DType) -> Element {
    Element::little(dtype)
}

// Stored numbers as float64, one after the other.
fn each_number(bytes: &[u8], dtype: DType) -> Result<Vec<f64>> {
    let mut out = Buffer::zeroed(bytes.len() / dtype.size() * 8);
    let values = Values { bytes, element: element(dtype), channels: 1, decode: Decode::Plain };
    copy_values(&values, 0, out.bytes_mut(), DType::F64)?;
    Ok(bytemuck::cast_slice(out.bytes()).to_vec())
}
