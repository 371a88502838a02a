//! Records of numbers, written one after the other.

use crate::output::hash_of;
use std::path::{Path, PathBuf};

use super::body::{Begin, Body, Stored, Written, element};
use super::options::{SeriesLayout, SeriesOptions};
use super::origin::Origin;
use super::{codes, forager, jsonl, megatron, npy, npz, shards, tokens};
use crate::array::{Buffer, DType};
use crate::error::{Error, Result};
use crate::format::{TRACKS_FOLDER, TRACKS_METADATA, first_outside};
use crate::manifest::CHECKSUMS_FILE;
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::output::files;
use crate::output::{self, Site};
use crate::prepare::Report;
use crate::record::{Decode, Values};
use crate::source::{Extras, Kind, Schema};
use crate::store::plain_name;
use crate::values::copy_values;

/// Values of a record that are written at a time, where the layout allows parts.
pub(super) const PART: u64 = 1 << 20;

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
    /// What the body is given.
    dtype: DType,
    channels: Option<usize>,
    eos: Option<i64>,
    vocab_size: Option<u64>,
    body: Option<Box<dyn Body>>,
    numbers: Buffer,
    pub(super) records: u64,
    pub(super) values: u64,
    holds_tokens: bool,
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

    /// The same for records that were made from others: `told` says from which and how, and [`Manifest::find`] finds it there.
    ///
    /// # Errors
    /// As [`SeriesWriter::create`]; `Config` for other layouts than shards and codes.
    pub fn create_from(
        out: &Path,
        schema: &Schema,
        options: &SeriesOptions,
        told: &Manifest,
    ) -> Result<SeriesWriter> {
        match options.layout {
            SeriesLayout::Shards | SeriesLayout::Codes => {
                Self::begin(out, schema, options, None, None, Some(told))
            }
            _ => Err(Error::config("only shards and codes tell what they were made from")),
        }
    }

    pub(super) fn begin(
        out: &Path,
        schema: &Schema,
        options: &SeriesOptions,
        total_values: Option<u64>,
        origin: Option<&Origin>,
        told: Option<&Manifest>,
    ) -> Result<SeriesWriter> {
        if schema.kind == Kind::Json {
            return Err(Error::config("the records are JSON texts, not numbers")
                .hint("`windrow tokenize` makes token ids of them"));
        }
        options.check()?;
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
        check_ending(name, options.layout).map_err(|e| e.at(out))?;
        let name = match options.layout {
            SeriesLayout::Megatron => megatron::prefix(name),
            _ => name,
        };
        // Before anything is refused: what a killed run began to show becomes whole, and the rest of it goes.
        let site = Site::enter_anew(parent, name, options.durable)?;
        check_free(&path, name, options)?;
        // A number of JSON takes a digit, a comma and a space.
        let width = if options.layout == SeriesLayout::Jsonl { 3 } else { dtype.size() as u64 };
        let numbers = total_values.unwrap_or(0).saturating_mul(schema.channels.unwrap_or(1) as u64);
        files::enough_room(parent, numbers.saturating_mul(width))?;
        let work = site.work(&hash_of(name))?;
        files::remove(&work)?;
        files::make_folder(&work)?;
        let begin = Begin {
            work: &work,
            name,
            dtype,
            channels: schema.channels,
            vocab_size: options.vocab_size.or(told.and_then(|told| told.vocab_size)).or(schema.vocab_size),
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
            // What is normalised keeps its digits until it is.
            dtype: if options.normalize { DType::F64 } else { dtype },
            channels: schema.channels,
            eos: options.eos,
            vocab_size: options.vocab_size,
            body: None,
            numbers: Buffer::zeroed(0),
            records: 0,
            values: 0,
            // Numbers of the other layouts may be anything.
            holds_tokens: dtype.is_integer()
                && matches!(
                    options.layout,
                    SeriesLayout::Tokens | SeriesLayout::Forager | SeriesLayout::Megatron
                ),
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

    pub(super) fn takes_parts(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.takes_parts())
    }

    // Writes the values from `start` on of a record of `len` values.
    pub(super) fn add_part(
        &mut self,
        values: &Values<'_>,
        start: u64,
        len: u64,
        extras: &Extras,
    ) -> Result<()> {
        let count = values.bytes.len() / values.element.size();
        let end = start + (count / values.channels.max(1)) as u64;
        let eos = self.eos.filter(|_| end == len);
        let values = &match values.decode {
            Decode::Literal if self.dtype == DType::F64 => Values { decode: Decode::Plain, ..*values },
            _ => *values,
        };
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

    fn n_eos(&self) -> u64 {
        if self.eos.is_some() { self.records } else { 0 }
    }

    // The error of numbers that do not fit, with the first of them.
    fn misfit(&self, values: &Values<'_>, start: u64, error: Error) -> Error {
        let width = values.element.size();
        let fits = |bytes: &[u8]| {
            let one = Values { bytes, channels: 1, ..*values };
            copy_values(&one, 0, &mut [0; 8][..self.dtype.size()], self.dtype).is_ok()
        };
        match values.bytes.chunks(width).position(|number| !fits(number)) {
            Some(at) if error.kind() == crate::Kind::Corrupt => self.does_not_fit(values, start, at),
            _ => error.record(self.records),
        }
    }

    fn does_not_fit(&self, values: &Values<'_>, start: u64, at: usize) -> Error {
        Error::config(format!(
            "the {} number at value {} does not fit {}",
            values.element.dtype,
            start + (at / values.channels.max(1)) as u64,
            self.dtype
        ))
        .record(self.records)
        .hint("choose a wider dtype")
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
            tokens: if self.holds_tokens { self.values + self.n_eos() } else { 0 },
            output_bytes: bytes,
            ..Report::default()
        })
    }
}

impl Drop for SeriesWriter {
    fn drop(&mut self) {
        self.body = None;
        // After a commit it is gone already; an error of tidying up would hide the one that led here.
        let _ = files::remove(&self.work);
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
// What opens it looks at the end of its name.
fn check_ending(name: &str, layout: SeriesLayout) -> Result<()> {
    let name = name.to_ascii_lowercase();
    let known: &[&str] = match layout {
        SeriesLayout::Npz => &[".npz"],
        SeriesLayout::Jsonl => &[".jsonl", ".ndjson"],
        SeriesLayout::Npy | SeriesLayout::Tokens => &[""],
        _ => return Ok(()),
    };
    if plain_name(&name) != name {
        return Err(Error::config(
            "what is written is not compressed, and would be taken for that by its name",
        )
        .hint("leave the ending out and compress it afterwards"));
    }
    match known.iter().any(|end| name.ends_with(end)) {
        true => Ok(()),
        false => Err(Error::config(format!("expected a name that ends in {}", known[0]))
            .hint("it would not be known by another one when it is opened")),
    }
}

fn check_free(path: &Path, name: &str, options: &SeriesOptions) -> Result<()> {
    if options.layout == SeriesLayout::Megatron {
        let taken = megatron::names(name).into_iter().map(|name| path.with_file_name(name));
        return match taken.into_iter().find(|path| files::exists(path)) {
            Some(path) if !options.overwrite || files::size(&path).is_none() => Err(output::exists(&path)),
            _ => Ok(()),
        };
    }
    if !files::exists(path) {
        return Ok(());
    }
    if !options.overwrite {
        return Err(output::exists(path));
    }
    let names = files::names(path);
    let foreign = match (options.layout, names) {
        (SeriesLayout::Shards, Ok(names)) => names.into_iter().find(|name| !shards::is_own(name)),
        (SeriesLayout::Forager, Ok(names)) => {
            names.into_iter().find(|n| !forager::NAMES.contains(&n.as_str()))
        }
        (SeriesLayout::Codes, Ok(names)) => names
            .into_iter()
            .find(|n| ![TRACKS_FOLDER, TRACKS_METADATA, MANIFEST_FILE, CHECKSUMS_FILE].contains(&n.as_str())),
        (SeriesLayout::Shards | SeriesLayout::Forager | SeriesLayout::Codes, Err(_)) => Some(String::new()),
        (_, Ok(_)) => Some(String::new()),
        (_, Err(_)) => None,
    };
    match foreign {
        None => Ok(()),
        Some(name) => {
            Err(output::exists(&path.join(name))
                .hint("it is none of this layout's files: --overwrite leaves it"))
        }
    }
}
