//! Records of numbers into one output, one after the other, in any format that is written.

use std::path::{Path, PathBuf};

use windrow_core::format::vocabulary::first_outside;
use windrow_core::format::write::{
    Begin, RecordWriter, Stored, Target, WriteFormat, WriteOptions, Written, not_an_option, not_json,
};
use windrow_core::manifest::Manifest;
use windrow_core::output::{self, Site, files, hash_of, replaced};
use windrow_core::source::{Extras, Kind, Schema};
use windrow_core::store::plain_name;
use windrow_core::values::copy_values;
use windrow_core::{Buffer, DType, Decode, Element, Error, Result, Row, Values};

use super::mask::Mask;
use super::origin::Origin;
use crate::Report;

/// Values of a record that are written at a time, where the format allows parts.
pub(crate) const PART: u64 = 1 << 20;

/// Writes records one after the other. Dropped before [`Writer::finish`], it leaves nothing behind.
///
/// ```
/// # use windrow_core::format::write;
/// # use windrow_formats::FORMATS;
/// # use windrow_prepare::Writer;
/// # use windrow_core::{DType, Decode, Element, Values};
/// # let dir = tempfile::tempdir().unwrap();
/// let schema = windrow_core::source::Schema::numbers(Element::little(DType::F32));
/// let shards = write::writer(FORMATS, "shards", &Default::default())?;
/// let mut writer = Writer::create(&dir.path().join("shards"), &schema, shards.as_ref(), &Default::default())?;
/// let bytes: Vec<u8> = [1.5f32, 2.5].iter().flat_map(|x| x.to_le_bytes()).collect();
/// let values = Values { bytes: &bytes, element: schema.element, channels: 1, decode: Decode::Plain };
/// writer.add(&values, &Default::default())?;
/// assert_eq!(writer.finish()?.records, 1);
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct Writer {
    site: Site,
    out: PathBuf,
    work: PathBuf,
    /// What becomes visible, in this order.
    targets: Vec<String>,
    /// What describes the old output.
    leaving: Vec<String>,
    overwrite: bool,
    /// What the format's writer is handed.
    dtype: DType,
    channels: Option<usize>,
    eos: Option<i64>,
    vocab_size: Option<u64>,
    records_to: Option<Box<dyn RecordWriter>>,
    manifest: Manifest,
    numbers: Buffer,
    pub(super) mask: Mask,
    pub(super) records: u64,
    pub(super) values: u64,
    holds_ids: bool,
}

impl Writer {
    /// Begins at `out`, which names what [`WriteInfo::target`](windrow_core::format::write::WriteInfo::target) says. `schema` says dtype and channels of the records.
    ///
    /// # Errors
    /// `Exists` when something is there and `overwrite` is not set, or when it is not what this format writes; `Config`
    /// when the format cannot hold such records; `Io`.
    pub fn create(
        out: &Path,
        schema: &Schema,
        format: &dyn WriteFormat,
        options: &WriteOptions,
    ) -> Result<Writer> {
        Self::begin(out, schema, format, options, None, manifest(format, None))
    }

    /// Begins at `out`, for records that were made from others: `manifest` says from which and how, and is found beside them.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn create_from(
        out: &Path,
        schema: &Schema,
        format: &dyn WriteFormat,
        options: &WriteOptions,
        manifest: &Manifest,
    ) -> Result<Writer> {
        let vocab_size = options.vocab_size.or(manifest.vocab_size);
        let mut writer = Self::begin(
            out,
            schema,
            format,
            &WriteOptions { vocab_size, ..options.clone() },
            None,
            manifest.clone(),
        )?;
        writer.manifest = manifest.clone();
        writer.vocab_size = options.vocab_size;
        Ok(writer)
    }

    pub(super) fn convert(
        out: &Path,
        schema: &Schema,
        format: &dyn WriteFormat,
        options: &WriteOptions,
        total_values: u64,
        origin: &Origin,
    ) -> Result<Writer> {
        Self::begin(out, schema, format, options, Some(total_values), manifest(format, Some(origin)))
    }

    fn begin(
        out: &Path,
        schema: &Schema,
        format: &dyn WriteFormat,
        options: &WriteOptions,
        total_values: Option<u64>,
        mut manifest: Manifest,
    ) -> Result<Writer> {
        let info = format.info();
        if schema.kind == Kind::Json && !info.holds_rows {
            return Err(Error::config("the records are JSON texts, not numbers")
                .hint("`windrow tokenize` makes token IDs of them"));
        }
        let are_rows = schema.kind != Kind::Numbers;
        if are_rows && !info.holds_rows {
            return Err(schema.need_numbers().err().unwrap_or_else(|| Error::config("rows")).hint(format!(
                "{} holds numbers: open the data with @column@, which chooses them",
                format.name()
            )));
        }
        check_append(format, options)?;
        let dtype = stored_dtype(schema, format, options)?;
        check_ids(dtype, options)?;
        let path = output::absolute("write to", out)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
            return Err(Error::config("expected the path of a file or folder").at(out));
        };
        if let Target::File(endings) = info.target {
            check_ending(name, endings).map_err(|e| e.at(out))?;
        }
        let name = info.target.stem(name);
        // Before anything is refused: what a killed run began to show becomes whole, and the rest of it goes.
        let site = Site::start_over(parent, name, options.fsync)?;
        let targets = format.names(name);
        let append_to = (options.append && files::exists(&path)).then_some(path.as_path());
        if append_to.is_none() {
            check_free(&path, &targets, format, options.overwrite)?;
        }
        let leaving = targets.last().map_or_else(Vec::new, |data| replaced::describing(parent, data));
        if let (Some(name), false) = (leaving.first(), options.overwrite) {
            return Err(output::exists(&parent.join(name)));
        }
        let numbers = total_values.unwrap_or(0).saturating_mul(schema.channels.unwrap_or(1) as u64);
        let least = info.bytes_per_number.unwrap_or(dtype.size() as u64);
        files::enough_room(parent, numbers.saturating_mul(least))?;
        let work = site.work(&hash_of(name))?;
        site.discard(&work)?;
        files::make_folder(&work)?;
        let mask = Mask::of(schema, format);
        let begin = Begin {
            work: &work,
            name,
            out: &path,
            corpus: None,
            dtype,
            channels: schema.channels,
            are_rows,
            vocab_size: options.vocab_size.or(schema.vocab_size),
            appends_eos: options.eos.is_some(),
            has_mask: mask.is_stored(),
            total_values,
            fsync: options.fsync,
            append_to,
            checkpoint: None,
        };
        let records_to = format.begin(&begin);
        (manifest.dtype, manifest.eos, manifest.vocab_size) =
            (Some(dtype).filter(|_| !are_rows), options.eos, options.vocab_size);
        // Numbers that are not token IDs any more have none of that.
        if let Some(of) = options.of.as_ref().filter(|_| dtype.is_integer()) {
            manifest.take_ids_of(of);
        }
        let opened = match info.target {
            // Half of a pair alone could be taken for something else; its index is opened.
            Target::Pair(_) => targets.get(targets.len().saturating_sub(2)).map(|index| parent.join(index)),
            _ => None,
        };
        let mut writer = Writer {
            site,
            work,
            targets,
            leaving,
            overwrite: options.overwrite || append_to.is_some(),
            dtype: info.handed_dtype.unwrap_or(dtype),
            channels: schema.channels,
            eos: options.eos,
            vocab_size: options.vocab_size,
            records_to: None,
            manifest,
            numbers: Buffer::zeroed(0),
            mask,
            records: 0,
            values: 0,
            // Numbers of the other formats may be anything.
            holds_ids: dtype.is_integer() && info.holds_ids(),
            out: opened.unwrap_or(path),
        };
        // Dropped on an error, it tidies up.
        writer.records_to = Some(records_to?);
        Ok(writer)
    }

    /// Writes the next record. What its numbers are scaled by is applied.
    ///
    /// # Errors
    /// `Config` naming record and value when a number does not fit the dtype or an ID the vocabulary, or when the format
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
        let mask = self.mask.said(values, extras).map_err(|e| e.record(self.records))?;
        let kept = mask.is_some().then(|| self.mask.kept(extras.clone(), mask.as_deref()));
        let extras = kept.as_ref().unwrap_or(extras);
        let width = values.element.size() * values.channels.max(1);
        let len = (values.bytes.len() / width) as u64;
        let size = if self.takes_parts() { PART as usize * width } else { values.bytes.len() };
        let mut start = 0;
        for bytes in values.bytes.chunks(size.max(1)) {
            let end = start + (bytes.len() / width) as u64;
            let mask = mask.as_ref().map(|mask| &mask[start as usize..end as usize]);
            self.add_part(&Values { bytes, ..*values }, start, len, extras, mask)?;
            start = end;
        }
        match len {
            0 => self.add_part(values, 0, 0, extras, mask.as_deref()),
            _ => Ok(()),
        }
    }

    /// Writes the next record, where records are rows.
    ///
    /// # Errors
    /// `Config` naming record and column for what the format cannot hold; `Io`. After an error only dropping is left.
    pub fn add_row(&mut self, row: &Row) -> Result<()> {
        let number = self.records;
        match self.records_to.as_mut() {
            Some(to) => to.add_row(number, row).map_err(|e| e.record(number))?,
            None => return Err(Error::config("the writer ended with an error before")),
        }
        (self.records, self.values) = (self.records + 1, self.values + 1);
        Ok(())
    }

    /// Writes the next record, where records are JSON.
    ///
    /// # Errors
    /// As [`Writer::add_row`]; `Corrupt` naming the record for what is not JSON.
    pub fn add_json(&mut self, text: &[u8]) -> Result<()> {
        let number = self.records;
        let text = std::str::from_utf8(text).map_err(|e| not_json(number).caused_by(e))?;
        match self.records_to.as_mut() {
            Some(to) => to.add_json(number, text).map_err(|e| e.record(number))?,
            None => return Err(Error::config("the writer ended with an error before")),
        }
        (self.records, self.values) = (self.records + 1, self.values + 1);
        Ok(())
    }

    pub(super) fn takes_parts(&self) -> bool {
        self.records_to.as_ref().is_some_and(|to| to.takes_parts())
    }

    // Writes the values from `start` on of a record of `len` values; `mask` has 1 for each of them that is learned.
    pub(super) fn add_part(
        &mut self,
        values: &Values<'_>,
        start: u64,
        len: u64,
        extras: &Extras,
        mask: Option<&[u8]>,
    ) -> Result<()> {
        let count = values.bytes.len() / values.element.size();
        let end = start + (count / values.channels.max(1)) as u64;
        let eos = self.eos.filter(|_| end == len);
        let width = self.dtype.size();
        let size = (count + usize::from(eos.is_some())) * width;
        if !self.numbers.resize_within(size) {
            self.numbers = Buffer::zeroed(size);
        }
        let (numbers, after) = self.numbers.bytes_mut().split_at_mut(count * width);
        copy_part(values, start, numbers, self.dtype, self.records)?;
        if let Some(eos) = eos {
            after.copy_from_slice(&eos.to_le_bytes()[..width]);
        }
        let stored = self.numbers.bytes();
        if let Some(size) = self.vocab_size {
            let numbers = Values {
                bytes: stored,
                element: Element::little(self.dtype),
                channels: 1,
                decode: Decode::Plain,
            };
            if let Some((at, id)) = first_outside(&numbers, size) {
                let at = start + (at / values.channels.max(1)) as u64;
                return Err(Error::config(format!(
                    "id {id} at value {at} is outside the vocabulary of {size} IDs"
                ))
                .record(self.records));
            }
        }
        let mask = self.mask.stored(mask, size / width);
        let tracks = mask.as_deref();
        let record = Stored {
            number: self.records,
            bytes: stored,
            len: len + u64::from(self.eos.is_some()),
            extras,
            input: 0,
            tracks: tracks.as_slice(),
            is_first: start == 0,
            is_last: end == len,
        };
        if let Some(to) = &mut self.records_to {
            to.add(&record)?;
        }
        self.values += end - start;
        self.records += u64::from(end == len);
        Ok(())
    }

    fn n_eos(&self) -> u64 {
        if self.eos.is_some() { self.records } else { 0 }
    }

    /// Completes the files and makes them visible: all of them or none.
    ///
    /// # Errors
    /// `Config` when the format cannot be without records; `Exists` when somebody wrote there meanwhile; `Io`.
    pub fn finish(mut self) -> Result<Report> {
        let Some(to) = self.records_to.take() else { return Ok(Report::default()) };
        let Written { files, bytes, .. } = to.finish(std::mem::take(&mut self.manifest))?;
        let [targets, leaving] =
            [&self.targets, &self.leaving].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        self.site.commit(&self.work, &targets, &leaving, self.overwrite)?;
        Ok(Report {
            output: self.out.clone(),
            files,
            records: self.records,
            tokens: if self.holds_ids { self.values + self.n_eos() } else { 0 },
            output_bytes: bytes,
            ..Report::default()
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.records_to = None;
        // After a commit it is gone already; an error of tidying up would hide the one that led here.
        let _ = self.site.discard(&self.work);
    }
}

/// dtype in which numbers of such records are stored.
///
/// # Errors
/// As [`WriteFormat::stored_dtype`].
pub(crate) fn stored_dtype(
    schema: &Schema,
    format: &dyn WriteFormat,
    options: &WriteOptions,
) -> Result<DType> {
    Ok(match format.stored_dtype(schema.element.dtype, options.dtype)? {
        // Its numbers are 0 and 1 all the same.
        DType::Bool => DType::U8,
        dtype => dtype,
    })
}

/// Copies the values of a record from `start` on into `out`, which they fill.
///
/// # Errors
/// `Config` naming record and value for a number that does not fit.
pub(crate) fn copy_part(
    values: &Values<'_>,
    start: u64,
    out: &mut [u8],
    dtype: DType,
    record: u64,
) -> Result<()> {
    copy_values(values, 0, out, dtype).map_err(|e| misfit(values, start, dtype, record, e))
}

// The error of numbers that do not fit, with the first of them.
fn misfit(values: &Values<'_>, start: u64, dtype: DType, record: u64, error: Error) -> Error {
    let fits = |bytes: &[u8]| {
        let one = Values { bytes, channels: 1, ..*values };
        copy_values(&one, 0, &mut [0; 8][..dtype.size()], dtype).is_ok()
    };
    let width = values.element.size();
    match values.bytes.chunks(values.element.size()).position(|number| !fits(number)) {
        Some(at) if error.kind() == windrow_core::Kind::Corrupt => Error::config(format!(
            "the {} number at value {} does not fit {dtype}: it is {}",
            values.element.dtype,
            start + (at / values.channels.max(1)) as u64,
            shown(&Values { bytes: &values.bytes[at * width..][..width], channels: 1, ..*values })
        ))
        .record(record)
        .hint("choose a wider @as_dtype@"),
        // Not every format has a dtype of fractions to choose.
        _ if dtype.is_integer() && error.kind() == windrow_core::Kind::Config => {
            let hint = "choose @as_dtype=float32@, or another format where this one has no such dtype";
            error.record(record).hint(hint)
        }
        _ => error.record(record),
    }
}

// One number, whole where it is.
fn shown(one: &Values<'_>) -> String {
    let mut bytes = [0; 8];
    if copy_values(one, 0, &mut bytes, DType::I64).is_ok() {
        return i64::from_ne_bytes(bytes).to_string();
    }
    if copy_values(one, 0, &mut bytes, DType::U64).is_ok() {
        return u64::from_ne_bytes(bytes).to_string();
    }
    match copy_values(one, 0, &mut bytes, DType::F64) {
        Ok(()) => f64::from_ne_bytes(bytes).to_string(),
        Err(e) => e.message().to_string(),
    }
}

// The manifest of what is written, without its findings.
fn manifest(format: &dyn WriteFormat, origin: Option<&Origin>) -> Manifest {
    origin.map_or_else(|| Manifest::new(format.name()), |origin| origin.manifest(format.name()))
}

fn check_append(format: &dyn WriteFormat, options: &WriteOptions) -> Result<()> {
    match (options.append, options.overwrite) {
        (true, true) => Err(Error::config("append and overwrite are both set").hint("set one of them")),
        (true, false) if !format.info().appends => Err(not_an_option("append", format.name())),
        _ => Ok(()),
    }
}

// EOS tokens and vocabularies are those of whole numbers.
fn check_ids(dtype: DType, options: &WriteOptions) -> Result<()> {
    if (options.eos.is_some() || options.vocab_size.is_some()) && !dtype.is_integer() {
        return Err(Error::config(format!(
            "{dtype} values are not token IDs: they have no EOS token and no vocabulary"
        )));
    }
    if options.vocab_size == Some(0) {
        return Err(Error::config("a vocabulary of 0 token IDs; expected at least 1").field("vocab_size"));
    }
    match options.eos {
        Some(eos) if !dtype.holds(eos) => {
            Err(Error::config(format!("the EOS token {eos} does not fit {dtype}")).field("eos"))
        }
        _ => Ok(()),
    }
}

// What opens it looks at the end of its name.
fn check_ending(name: &str, endings: &[&str]) -> Result<()> {
    let name = name.to_ascii_lowercase();
    if plain_name(&name) != name {
        return Err(Error::config(
            "what is written is not compressed, and would be taken for that by its name",
        )
        .hint("leave the ending out and compress it afterwards"));
    }
    if endings.iter().any(|end| name.ends_with(end)) {
        Ok(())
    } else {
        Err(Error::config(format!("expected a name that ends in {}", endings[0]))
            .hint("it would not be known by another one when it is opened"))
    }
}

// Nothing is replaced that this format would not have written.
fn check_free(path: &Path, names: &[String], format: &dyn WriteFormat, overwrite: bool) -> Result<()> {
    let target = format.info().target;
    if matches!(target, Target::Pair(_)) {
        let taken = names.iter().map(|name| path.with_file_name(name));
        return match taken.into_iter().find(|path| files::exists(path)) {
            Some(path) if !overwrite || files::size(&path).is_none() => Err(output::exists(&path)),
            _ => Ok(()),
        };
    }
    if !files::exists(path) {
        return Ok(());
    }
    if !overwrite {
        return Err(output::exists(path));
    }
    let foreign = match (target, files::names(path)) {
        (Target::Folder, Ok(_)) if format.is_one(path) => None,
        (Target::Folder, Ok(names)) => {
            // Where all have names of this format, nothing says that they are of it.
            let foreign = names.iter().find(|name| !format.is_own(name)).or(names.first());
            Some(foreign.cloned().unwrap_or_default())
        }
        (Target::Folder, Err(_)) => Some(String::new()),
        // Also one that cannot be listed.
        (_, _) if path.is_dir() => Some(String::new()),
        (_, _) => {
            replaced::file(path)?;
            None
        }
    };
    match foreign {
        None => Ok(()),
        Some(name) => Err(output::exists(&path.join(name)).hint(
            "@overwrite=true@ replaces only a data set of this format, and this is not known to be one",
        )),
    }
}
