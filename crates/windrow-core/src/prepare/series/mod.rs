//! Numbers into files, record by record: shards, `.npy`, `.npz`, `.jsonl`, and ids in the layouts of tokens. What is
//! written becomes visible at once.

mod codes;
mod forager;
mod jsonl;
mod megatron;
mod npy;
mod npz;
mod shards;
mod tokens;

pub(super) use megatron::MegatronDocuments;
pub(super) use shards::ShardDocuments;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::atomic;
use super::site::{self, Site};
use super::{Progress, Report, Watch, check};
use crate::array::{Buffer, DType, Element};
use crate::collate::copy_values;
use crate::error::{Error, Result};
use crate::format::{FileRow, SIDE_FILE, SideFile, TRACKS_FOLDER, TRACKS_METADATA, first_outside};
use crate::record::{Decode, Span, Values};
use crate::source::{Extras, Kind, Schema, Source};

/// Values of a record that are written at a time, where the layout allows parts.
const PART: u64 = 1 << 20;

/// A layout that records of numbers can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesLayout {
    /// A folder of `data-<i>-of-<n>.bin` and `meta.json`, as Time-MoE's converter writes it; of records `[T, C]`
    /// `meta.json` says `channels`.
    Shards,
    /// One array, `[N, T]` or `[N, T, C]`: all records must be of one length. Extras are left out.
    Npy,
    /// An archive of an array per record. Extras are left out.
    Npz,
    /// A line per record: `{"sequence": […], …extras}`.
    Jsonl,
    /// All records one after the other, without a header; their borders and extras are left out.
    Tokens,
    /// A folder of all records one after the other and the byte-offset index of them. Extras are left out.
    Forager,
    /// `<prefix>.bin` and `<prefix>.idx`: a sequence per record. Records that follow each other with one `document`
    /// among their extras are one document, any other record is a document of its own; `mode` is kept; other extras
    /// are left out.
    Megatron,
    /// A folder of `encoded_audio/<name>.pt` and `metadata.json`: a torch tensor `[T, C]` per record, int16 unless another
    /// dtype is asked for. `name` among the extras names the file.
    Codes,
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
    /// An id put after every record.
    pub eos: Option<i64>,
    /// Ids must be below this; the side file says so then, and they are not checked again.
    pub vocab_size: Option<u64>,
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
            eos: None,
            vocab_size: None,
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
    eos: Option<i64>,
    vocab_size: Option<u64>,
    body: Option<Box<dyn Body>>,
    numbers: Buffer,
    records: u64,
    values: u64,
}

/// One record as it is stored, or a part of it.
struct Stored<'a> {
    number: u64,
    /// Little-endian, of the writer's dtype.
    bytes: &'a [u8],
    /// Values `T` of `[T]` or `[T, C]`, of the whole record.
    len: u64,
    extras: &'a Extras,
    /// It begins here.
    is_first: bool,
    /// Nothing of it follows.
    is_last: bool,
}

/// A layout that is being written.
trait Body: Send {
    /// Whether records may come in parts.
    fn takes_parts(&self) -> bool {
        true
    }

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
    /// What the records come from, where that is known.
    origin: Option<&'a Origin>,
    /// What is to be told of the whole, in place of that.
    told: Option<&'a SideFile>,
}

impl Begin<'_> {
    /// That the numbers are ids which a layout can hold.
    fn only(&self, dtypes: &[DType], what: &str) -> Result<()> {
        if self.channels.is_none() && dtypes.contains(&self.dtype) {
            return Ok(());
        }
        let channels = self.channels.map_or(String::new(), |c| format!(" of {c} channels"));
        let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
        Err(Error::config(format!("{what} hold no {} values{channels}", self.dtype))
            .hint(format!("records [T] of {}: choose dtype", names.join(", "))))
    }

    /// A side file that says what was asked for and where the records come from.
    fn side_file(&self, format: &str) -> SideFile {
        let mut side = self.origin.map_or_else(|| SideFile::new(format), |origin| origin.side_file(format));
        (side.dtype, side.eos, side.vocab_size) =
            (Some(self.dtype), self.options.eos, self.options.vocab_size);
        side
    }
}

/// A side file of what a source is converted into: `format`, and what it came from.
///
/// # Errors
/// What the source says of its fingerprint.
pub fn side_file_of(source: &dyn Source, format: &str) -> Result<SideFile> {
    Ok(Origin::of(source)?.side_file(format))
}

/// What the records of a conversion come from.
struct Origin {
    format: &'static str,
    fingerprint: u64,
    /// The first of them, where there are very many.
    files: Vec<FileRow>,
}

impl Origin {
    const MOST_FILES: usize = 10_000;

    fn of(source: &dyn Source) -> Result<Origin> {
        let files = source.files().into_iter().take(Self::MOST_FILES);
        Ok(Origin {
            format: source.format(),
            fingerprint: source.fingerprint()?,
            files: files.map(|f| FileRow { name: f.file, size: f.size, ..FileRow::default() }).collect(),
        })
    }

    fn side_file(&self, format: &str) -> SideFile {
        SideFile { inputs: self.files.clone(), options: self.told(), ..SideFile::new(format) }
    }

    /// So, with the files.
    fn told_with_files(&self) -> Map<String, Value> {
        let mut told = self.told();
        told.insert("inputs".to_string(), json!(self.files));
        told
    }

    /// Its format and fingerprint, in words of a side file.
    fn told(&self) -> Map<String, Value> {
        Map::from_iter([
            ("task".to_string(), json!("convert")),
            ("from_format".to_string(), json!(self.format)),
            ("from_fingerprint".to_string(), json!(atomic::hex(self.fingerprint))),
        ])
    }
}

impl SeriesWriter {
    /// Begins at `out`: a folder for shards, a file for the others. `schema` says dtype and channels of the records.
    ///
    /// # Errors
    /// `Exists` when something is there and `overwrite` is not set, or when it is not what this layout writes; `Config`
    /// when the layout cannot hold such records; `Io`.
    pub fn create(out: &Path, schema: &Schema, options: &SeriesOptions) -> Result<SeriesWriter> {
        Self::begin(out, schema, options, None, None, None)
    }

    /// The same for records that were made from others: `told` says from which and how, and [`SideFile::find`] finds it there.
    ///
    /// # Errors
    /// As [`SeriesWriter::create`]; `Config` for other layouts than shards and codes.
    pub fn create_from(
        out: &Path,
        schema: &Schema,
        options: &SeriesOptions,
        told: &SideFile,
    ) -> Result<SeriesWriter> {
        match options.layout {
            SeriesLayout::Shards | SeriesLayout::Codes => {
                Self::begin(out, schema, options, None, None, Some(told))
            }
            _ => Err(Error::config("only shards and codes tell what they were made from")),
        }
    }

    fn begin(
        out: &Path,
        schema: &Schema,
        options: &SeriesOptions,
        total_values: Option<u64>,
        origin: Option<&Origin>,
        told: Option<&SideFile>,
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
        // Megatron has no unsigned type beyond 16 bits; ids fit all the same, and are compared.
        let dtype = match (options.layout, dtype) {
            (SeriesLayout::Megatron, DType::U32) if options.dtype.is_none() => DType::I32,
            (SeriesLayout::Codes, _) if options.dtype.is_none() => DType::I16,
            (_, dtype) => dtype,
        };
        check_ids(dtype, options)?;
        let path = std::path::absolute(out).map_err(|e| Error::io("find it", out, e))?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
            return Err(Error::config("expected the path of a file or folder").at(out));
        };
        let name = match options.layout {
            SeriesLayout::Megatron => megatron::prefix(name),
            _ => name,
        };
        // Before anything is refused: what a killed run began to show becomes whole, and the rest of it goes.
        let site = Site::enter_anew(parent, name, options.durable)?;
        check_free(&path, name, options)?;
        let work = site.work(&atomic::hash_of(name))?;
        atomic::remove(&work)?;
        atomic::make_folder(&work)?;
        let begin = Begin {
            work: &work,
            name,
            dtype,
            channels: schema.channels,
            options,
            total_values,
            origin,
            told,
        };
        let body: Result<Box<dyn Body>> = match options.layout {
            SeriesLayout::Shards => shards::Shards::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Npy => npy::Npy::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Npz => npz::Npz::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Jsonl => jsonl::Jsonl::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Tokens => tokens::Tokens::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Forager => forager::Forager::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Megatron => megatron::Megatron::begin(&begin).map(|b| Box::new(b) as _),
            SeriesLayout::Codes => codes::Codes::begin(&begin).map(|b| Box::new(b) as _),
        };
        let opened = match options.layout {
            SeriesLayout::Megatron => parent.join(megatron::index(name)),
            _ => path.clone(),
        };
        let mut writer = SeriesWriter {
            site,
            work,
            overwrite: options.overwrite,
            dtype,
            channels: schema.channels,
            eos: options.eos,
            vocab_size: options.vocab_size,
            body: None,
            numbers: Buffer::zeroed(0),
            records: 0,
            values: 0,
            out: opened,
        };
        // Dropped on an error, it tidies up.
        writer.body = Some(body?);
        Ok(writer)
    }

    /// Writes the next record. What its numbers are scaled by is applied.
    ///
    /// # Errors
    /// `Config` naming record and value when a number does not fit the dtype or an id the vocabulary, or when the layout
    /// cannot hold the record; `Io`. After an error only dropping is left.
    pub fn add(&mut self, values: &Values<'_>, extras: &Extras) -> Result<()> {
        if values.channels != self.channels.unwrap_or(1) {
            return Err(Error::mismatch(format!(
                "a record of {} channels among records of {}",
                values.channels,
                self.channels.unwrap_or(1)
            ))
            .record(self.records));
        }
        let width = values.element.size() * values.channels.max(1);
        let len = (values.bytes.len() / width) as u64;
        let size = if self.takes_parts() { PART as usize * width } else { values.bytes.len() };
        let mut start = 0;
        for bytes in values.bytes.chunks(size.max(1)) {
            self.add_part(&Values { bytes, ..*values }, start, len, extras)?;
            start += (bytes.len() / width) as u64;
        }
        match len {
            0 => self.add_part(values, 0, 0, extras),
            _ => Ok(()),
        }
    }

    fn takes_parts(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.takes_parts())
    }

    // Writes the values from `start` on of a record of `len` values.
    fn add_part(&mut self, values: &Values<'_>, start: u64, len: u64, extras: &Extras) -> Result<()> {
        let count = values.bytes.len() / values.element.size();
        let end = start + (count / values.channels.max(1)) as u64;
        let eos = self.eos.filter(|_| end == len);
        let width = self.dtype.size();
        let size = (count + usize::from(eos.is_some())) * width;
        if !self.numbers.resize_within(size) {
            self.numbers = Buffer::zeroed(size);
        }
        let (numbers, after) = self.numbers.bytes_mut().split_at_mut(count * width);
        let copied = copy_values(values, 0, numbers, self.dtype);
        if let Some(eos) = eos {
            after.copy_from_slice(&eos.to_le_bytes()[..width]);
        }
        copied.map_err(|e| self.misfit(values, start, e))?;
        let stored = self.numbers.bytes();
        if let Some(size) = self.vocab_size {
            let numbers =
                Values { bytes: stored, element: element(self.dtype), channels: 1, decode: Decode::Plain };
            if let Some((at, id)) = first_outside(&numbers, size) {
                let at = start + (at / values.channels.max(1)) as u64;
                return Err(Error::config(format!(
                    "id {id} at value {at} is outside the vocabulary of {size} ids"
                ))
                .record(self.records));
            }
        }
        let record = Stored {
            number: self.records,
            bytes: stored,
            len: len + u64::from(self.eos.is_some()),
            extras,
            is_first: start == 0,
            is_last: end == len,
        };
        if let Some(body) = &mut self.body {
            body.add(&record)?;
        }
        self.values += end - start;
        self.records += u64::from(end == len);
        Ok(())
    }

    // The error of numbers that do not fit, with the first of them.
    fn misfit(&self, values: &Values<'_>, start: u64, error: Error) -> Error {
        let width = values.element.size();
        let fits = |bytes: &[u8]| {
            let one = Values { bytes, channels: 1, ..*values };
            copy_values(&one, 0, &mut [0; 8][..self.dtype.size()], self.dtype).is_ok()
        };
        match values.bytes.chunks(width).position(|number| !fits(number)) {
            Some(at) if error.kind() == crate::Kind::Corrupt => Error::config(format!(
                "the {} number at value {} does not fit {}",
                values.element.dtype,
                start + (at / values.channels.max(1)) as u64,
                self.dtype
            ))
            .record(self.records)
            .hint("choose a wider dtype"),
            _ => error.record(self.records),
        }
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

// End ids and vocabularies are those of whole numbers.
fn check_ids(dtype: DType, options: &SeriesOptions) -> Result<()> {
    if (options.eos.is_some() || options.vocab_size.is_some()) && !dtype.is_integer() {
        return Err(Error::config(format!(
            "{dtype} values are no ids: they have no end id and no vocabulary"
        )));
    }
    if options.vocab_size == Some(0) {
        return Err(Error::config("a vocabulary of 0 ids; expected at least 1").field("vocab_size"));
    }
    match options.eos {
        Some(eos) if !dtype.holds(eos) => {
            Err(Error::config(format!("the end id {eos} is no {dtype}")).field("eos"))
        }
        _ => Ok(()),
    }
}

// Nothing is replaced that this layout would not have written.
fn check_free(path: &Path, name: &str, options: &SeriesOptions) -> Result<()> {
    if options.layout == SeriesLayout::Megatron {
        let taken = megatron::names(name).into_iter().map(|name| path.with_file_name(name));
        return match taken.into_iter().find(|path| atomic::exists(path)) {
            Some(path) if !options.overwrite || atomic::size(&path).is_none() => Err(site::exists(&path)),
            _ => Ok(()),
        };
    }
    if !atomic::exists(path) {
        return Ok(());
    }
    if !options.overwrite {
        return Err(site::exists(path));
    }
    let names = atomic::names(path);
    let foreign = match (options.layout, names) {
        (SeriesLayout::Shards, Ok(names)) => names.into_iter().find(|name| !shards::is_own(name)),
        (SeriesLayout::Forager, Ok(names)) => {
            names.into_iter().find(|n| !forager::NAMES.contains(&n.as_str()))
        }
        (SeriesLayout::Codes, Ok(names)) => {
            names.into_iter().find(|n| ![TRACKS_FOLDER, TRACKS_METADATA, SIDE_FILE].contains(&n.as_str()))
        }
        (SeriesLayout::Shards | SeriesLayout::Forager | SeriesLayout::Codes, Err(_)) => Some(String::new()),
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
    let lengths = sum_of_lengths(source)?;
    let origin = Origin::of(source)?;
    let mut writer = SeriesWriter::begin(out, source.schema(), options, Some(lengths), Some(&origin), None)?;
    if !source.schema().tracks.is_empty() {
        log::warn!("only the values are written: the arrays that run beside them are left out");
    }
    let width = source.schema().element.size() as u64 * source.schema().channels.unwrap_or(1) as u64;
    let total_bytes = lengths.saturating_mul(width);
    let mut scratch = Vec::new();
    for record in 0..source.len() {
        let extras = source.extras(record)?;
        let len = source.length(record)?;
        let most = if writer.takes_parts() { PART } else { len };
        let mut start = 0;
        // A record without values is one part, too.
        while start < len || start == 0 {
            check(watch)?;
            let span = Span { record, start, len: most.min(len - start) };
            let values = source.read(span, &mut scratch)?;
            writer.add_part(&values, start, len, &extras)?;
            watch.progress(Progress {
                done_bytes: writer.values * width,
                total_bytes,
                records: writer.records,
            });
            start += span.len.max(1);
        }
    }
    Ok(Report { input_bytes: total_bytes, ..writer.finish()? })
}

fn sum_of_lengths(source: &dyn Source) -> Result<u64> {
    if let Some(length) = source.uniform() {
        return Ok(source.len().saturating_mul(length));
    }
    const AT_ONCE: u64 = 1 << 12;
    let mut sum = 0u64;
    let mut lengths = Vec::new();
    for first in (0..source.len()).step_by(AT_ONCE as usize) {
        lengths.resize((source.len() - first).min(AT_ONCE) as usize, 0);
        source.lengths(first, &mut lengths)?;
        sum = lengths.iter().fold(sum, |sum, length| sum.saturating_add(*length));
    }
    Ok(sum)
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
