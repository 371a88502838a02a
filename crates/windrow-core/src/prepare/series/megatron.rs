//! `<prefix>.bin`, all records one after the other, and `<prefix>.idx`, as Megatron reads them, with their manifest.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::{Begin, Body, Stored, Written};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::format::{DOCUMENT, MAGIC, MODE, VERSION, code};
use crate::manifest::CHECKSUMS_FILE;
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::output::ChecksumsWriter;
use crate::output::{Growing, files};
use crate::prepare::documents::{DocumentLayout, DocumentPlace, DocumentWriter};
use crate::prepare::no_ids;
use crate::source::Extras;
use crate::store::{Local, Store};

/// Name of the format.
const FORMAT: &str = "megatron";
/// Bytes of a part that are handed on at a time: whole numbers.
const AT_ONCE: usize = 256 << 10;

/// dtypes that its index has a code for.
const DTYPES: [DType; 8] =
    [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F64, DType::F32, DType::U16];
/// What the parts of the index are called until they are put together.
const LENGTHS: &str = "lengths";
const BORDERS: &str = "borders";

pub(super) struct Megatron {
    work: PathBuf,
    name: String,
    data: Growing,
    /// The parts of the index whose size is known at the end.
    lengths: Part,
    borders: Part,
    modes: Option<Part>,
    manifest: Manifest,
    dtype: DType,
    code: u8,
    sequences: u64,
    n_borders: u64,
    /// `document` of the sequence before.
    document: Option<u64>,
    durable: bool,
    warned: bool,
}

/// The name without what it ends in: `corpus` of `corpus.bin` and `corpus.idx`.
pub(super) fn prefix(name: &str) -> &str {
    let stem = name.strip_suffix(".idx").or_else(|| name.strip_suffix(".bin"));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// The name of the index.
pub(super) fn index(prefix: &str) -> String {
    format!("{prefix}.idx")
}

/// What becomes visible, in this order. The ids last: without their index they would be a stream of other numbers.
pub(super) fn names(prefix: &str) -> [String; 4] {
    let index = index(prefix);
    [format!("{index}.{CHECKSUMS_FILE}"), format!("{index}.{MANIFEST_FILE}"), index, format!("{prefix}.bin")]
}

impl Megatron {
    pub(super) fn begin(begin: &Begin<'_>) -> Result<Megatron> {
        begin.only(&DTYPES, "Megatron's files")?;
        let mut new =
            Megatron::at(begin.work, begin.name, begin.dtype, begin.options.durable, Kept::default())?;
        new.manifest = begin.manifest(FORMAT);
        Ok(new)
    }

    // Empty, or behind what was kept.
    fn at(work: &Path, name: &str, dtype: DType, durable: bool, from: Kept) -> Result<Megatron> {
        let [_, _, _, data] = names(name);
        Ok(Megatron {
            data: Growing::at(work.join(data), from.data_size)?,
            lengths: Part::at(work.join(LENGTHS), from.sequences * 4)?,
            borders: Part::at(work.join(BORDERS), from.borders * 8)?,
            modes: None,
            manifest: Manifest::new(FORMAT),
            dtype,
            // Every dtype above has one.
            code: code(dtype).unwrap_or_default(),
            work: work.to_path_buf(),
            name: name.to_string(),
            sequences: from.sequences,
            n_borders: from.borders,
            document: None,
            durable,
            warned: false,
        })
    }

    // A border before the sequence that begins, where it begins a document.
    fn border(&mut self, record: &Stored<'_>) -> Result<()> {
        let document = record.extras.get(DOCUMENT).and_then(Value::as_u64);
        if document.is_none() || document != self.document {
            self.put_border()?;
        }
        self.document = document;
        Ok(())
    }

    fn put_border(&mut self) -> Result<()> {
        self.n_borders += 1;
        self.borders.file.write(&self.sequences.to_le_bytes())
    }

    // Either all sequences have a mode, or none.
    fn mode(&mut self, record: &Stored<'_>) -> Result<()> {
        let mode = record.extras.get(MODE).and_then(Value::as_i64).and_then(|mode| i8::try_from(mode).ok());
        if record.number == 0 && mode.is_some() {
            self.modes = Some(Part::create(self.work.join("modes"))?);
        }
        match (&mut self.modes, mode) {
            (None, None) => Ok(()),
            (Some(modes), Some(mode)) => modes.file.write(&mode.to_le_bytes()),
            (_, mode) => {
                let found = if mode.is_some() { "a mode" } else { "no mode" };
                let before = if mode.is_some() { "without one" } else { "with one" };
                Err(Error::config(format!("a record with {found} after records {before}"))
                    .record(record.number)
                    .field(MODE))
            }
        }
    }
}

/// How much was written at a restart point.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    sequences: u64,
    borders: u64,
    data_size: u64,
}

/// A part of the index that is written beside the data until the number of sequences is known.
struct Part {
    path: PathBuf,
    file: Growing,
}

impl Part {
    fn create(path: PathBuf) -> Result<Part> {
        Self::at(path, 0)
    }

    fn at(path: PathBuf, size: u64) -> Result<Part> {
        Ok(Part { file: Growing::at(&path, size)?, path })
    }

    /// Hands on all of it, in pieces of whole numbers.
    fn finish(self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.file.finish(false)?;
        each(&self.path, take)
    }
}

fn each(path: &Path, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let object = Local::new(path).open("")?;
    let mut scratch = Vec::new();
    for start in (0..object.size()).step_by(AT_ONCE) {
        let size = (object.size() - start).min(AT_ONCE as u64) as usize;
        take(object.read(start, size, &mut scratch)?)?;
    }
    Ok(())
}

impl Body for Megatron {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if record.is_first {
            let Ok(length) = i32::try_from(record.len) else {
                return Err(Error::config(format!(
                    "a record of {} values; a sequence of Megatron's holds at most {}",
                    record.len,
                    i32::MAX
                ))
                .record(record.number)
                .hint("a stream of documents opens as records with eos="));
            };
            if !self.warned && record.extras.keys().any(|key| key != DOCUMENT && key != MODE) {
                log::warn!("Megatron's files hold ids only: what stands beside them is left out");
                self.warned = true;
            }
            self.border(record)?;
            self.mode(record)?;
            self.lengths.file.write(&length.to_le_bytes())?;
            self.sequences += 1;
        }
        self.data.write(record.bytes)
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        let manifest = std::mem::take(&mut self.manifest);
        let (work, name, durable) = (self.work.clone(), self.name.clone(), self.durable);
        let targets = names(&name);
        let [sums_name, side_name, _, _] = &targets;
        let manifest = self.complete(manifest, &work.join(sums_name))?;
        files::write(&work.join(side_name), manifest.to_text().as_bytes(), durable)?;
        let bytes = manifest.files.first().map_or(0, |data| data.size);
        Ok(Written { targets: targets.into(), files: 1, bytes })
    }
}

impl Megatron {
    // Writes the index, and the block checksums of both files to `sums`. The manifest with both files in it.
    fn complete(mut self, mut manifest: Manifest, sums: &Path) -> Result<Manifest> {
        if self.data.size() == 0 {
            return Err(no_ids());
        }
        self.put_border()?;
        let Megatron {
            work,
            name,
            data,
            lengths,
            borders,
            modes,
            dtype,
            code,
            sequences,
            n_borders,
            durable,
            ..
        } = self;
        let [_, _, index_name, data_name] = names(&name);
        let mut sums = ChecksumsWriter::at(sums, [])?;
        let row = sums.add(data_name, data.finish(durable)?)?;
        let mut index = Growing::create(work.join(&index_name))?;
        index.write(&MAGIC)?;
        index.write(&VERSION.to_le_bytes())?;
        index.write(&[code])?;
        index.write(&sequences.to_le_bytes())?;
        index.write(&n_borders.to_le_bytes())?;
        let lengths_at = lengths.path.clone();
        lengths.finish(&mut |bytes| index.write(bytes))?;
        let (mut start, width) = (0u64, dtype.size() as u64);
        let mut starts = Vec::new();
        each(&lengths_at, &mut |bytes| {
            starts.clear();
            for length in bytes.as_chunks::<4>().0 {
                starts.extend_from_slice(&start.to_le_bytes());
                start += u64::from(u32::from_le_bytes(*length)) * width;
            }
            index.write(&starts)
        })?;
        borders.finish(&mut |bytes| index.write(bytes))?;
        if let Some(modes) = modes {
            modes.finish(&mut |bytes| index.write(bytes))?;
        }
        manifest.records = Some(sequences);
        manifest.files = vec![row, sums.add(index_name, index.finish(durable)?)?];
        sums.finish(&manifest.files, durable)?;
        Ok(manifest)
    }
}

/// `tokens.bin` and `tokens.idx` in a folder, and its manifest: a sequence and a document per document.
pub(in crate::prepare) struct MegatronDocuments;

const PAIR: &str = "tokens";

impl DocumentLayout for MegatronDocuments {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn dtypes(&self) -> &[DType] {
        // As Megatron's own programs choose.
        &[DType::U16, DType::I32, DType::I64, DType::U8, DType::I8, DType::I16]
    }

    fn begin(&self, at: &DocumentPlace<'_>, kept: Option<&Value>) -> Result<Box<dyn DocumentWriter>> {
        let from = match kept {
            None => Kept::default(),
            Some(kept) => serde_json::from_value(kept.clone())
                .map_err(|e| Error::corrupt("no restart point of Megatron's files").caused_by(e))?,
        };
        let folder = at.work.join(at.name);
        let aside = at.work.join("aside");
        files::make_folder(&folder)?;
        files::make_folder(&aside)?;
        let writer = Megatron::at(&aside, PAIR, at.dtype, at.durable, from)?;
        Ok(Box::new(Documents { writer, folder }))
    }

    fn is_one(&self, out: &Path) -> bool {
        let [_, _, index, data] = names(PAIR);
        let own = [data.as_str(), index.as_str(), MANIFEST_FILE, CHECKSUMS_FILE];
        files::names(out).is_ok_and(|names| names.iter().all(|name| own.contains(&name.as_str())))
    }
}

struct Documents {
    writer: Megatron,
    folder: PathBuf,
}

impl DocumentWriter for Documents {
    fn add(&mut self, ids: &[u8]) -> Result<()> {
        let len = (ids.len() / self.writer.dtype.size()) as u64;
        let number = self.writer.sequences;
        let extras = Extras::new();
        self.writer.add(&Stored { number, bytes: ids, len, extras: &extras, is_first: true, is_last: true })
    }

    fn keep(&mut self) -> Result<Value> {
        let writer = &mut self.writer;
        for file in [&mut writer.data, &mut writer.lengths.file, &mut writer.borders.file] {
            file.sync(writer.durable)?;
        }
        let kept =
            Kept { sequences: writer.sequences, borders: writer.n_borders, data_size: writer.data.size() };
        serde_json::to_value(kept).map_err(|e| Error::io("write it", &writer.work, e.into()))
    }

    fn finish(self: Box<Self>, manifest: Manifest) -> Result<Manifest> {
        let (aside, durable) = (self.writer.work.clone(), self.writer.durable);
        let manifest = self.writer.complete(manifest, &self.folder.join(CHECKSUMS_FILE))?;
        for file in &manifest.files {
            files::rename(&aside.join(&file.name), &self.folder.join(&file.name))?;
        }
        files::write(&self.folder.join(MANIFEST_FILE), manifest.to_text().as_bytes(), durable)?;
        files::sync_folder(&self.folder, durable)?;
        Ok(manifest)
    }
}
