//! `<prefix>.bin`, all records one after the other, and `<prefix>.idx`, as Megatron reads them, with their manifest.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written, no_ids,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::output::{ChecksumsWriter, Disk, Growing, files};
use windrow_core::store::{Local, Store};
use windrow_core::{DType, Error, Result, row};

use super::{DOCUMENT, MAGIC, MODE, Megatron, VERSION, code};

/// What both names begin with in a folder of their own.
const PAIR: &str = "tokens";
/// Bytes of a part that are handed on at a time: whole numbers.
const AT_ONCE: usize = 256 << 10;

/// dtypes that its index has a code for.
const DTYPES: [DType; 8] =
    [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F64, DType::F32, DType::U16];
/// What the parts of the index are called until they are put together.
const LENGTHS: &str = "lengths";
const BORDERS: &str = "borders";

/// A pair of files.
pub(super) struct WriteMegatron;

impl WriteFormat for WriteMegatron {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            // As Megatron's own programs choose.
            id_dtypes: &[DType::U16, DType::I32, DType::I64, DType::U8, DType::I8, DType::I16],
            ..WriteInfo::of(Megatron.name(), Target::Pair([".idx", ".bin"]))
        }
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        // It has no unsigned type beyond 16 bits; token IDs fit all the same, and are compared.
        Ok(asked.unwrap_or(if given == DType::U32 { DType::I32 } else { given }))
    }

    fn names(&self, name: &str) -> Vec<String> {
        names(name).into()
    }

    fn is_own(&self, name: &str) -> bool {
        let [_, _, index, data] = names(PAIR);
        [data.as_str(), index.as_str(), MANIFEST_FILE, CHECKSUMS_FILE].contains(&name)
    }

    fn is_description(&self, name: &str) -> bool {
        let [_, _, index, _] = names(PAIR);
        name == MANIFEST_FILE || name == index
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        begin.only(&DTYPES, "Megatron's files")?;
        let from: Kept = begin.continued("Megatron's files")?;
        let folder = begin.corpus.is_some().then(|| begin.work.join(begin.name));
        let work = if folder.is_some() {
            begin.work.join(format!("{}.aside", begin.name))
        } else {
            begin.work.to_path_buf()
        };
        for folder in folder.iter().chain([&work]) {
            files::make_folder(folder)?;
        }
        let name = if folder.is_some() { PAIR } else { begin.name };
        let [_, _, _, data] = names(name);
        if let Some(folder) = &folder
            && files::exists(&folder.join(&data))
        {
            // A run that failed at its end had moved it already.
            files::rename(&folder.join(&data), &work.join(&data))?;
        }
        Ok(Box::new(Writer {
            data: Growing::at(work.join(data), from.data_size)?,
            lengths: Part::at(work.join(LENGTHS), from.sequences * 4)?,
            borders: Part::at(work.join(BORDERS), from.borders * 8)?,
            modes: None,
            dtype: begin.dtype,
            // Every dtype above has one.
            code: code(begin.dtype).unwrap_or_default(),
            work,
            folder,
            name: name.to_string(),
            sequences: from.sequences,
            n_borders: from.borders,
            document: None,
            fsync: begin.fsync,
            warned: false,
        }))
    }
}

struct Writer {
    work: PathBuf,
    /// Where the pair goes at its end, where it has a folder of its own.
    folder: Option<PathBuf>,
    name: String,
    data: Growing,
    /// The parts of the index whose size is known at the end.
    lengths: Part,
    borders: Part,
    modes: Option<Part>,
    dtype: DType,
    code: u8,
    sequences: u64,
    n_borders: u64,
    /// `document` of the sequence before.
    document: Option<u64>,
    fsync: bool,
    warned: bool,
}

/// The name of the index.
fn index(prefix: &str) -> String {
    format!("{prefix}.idx")
}

/// What becomes visible, in this order. The token IDs last: without their index they would be a stream of other numbers.
fn names(prefix: &str) -> [String; 4] {
    let index = index(prefix);
    [format!("{index}.{CHECKSUMS_FILE}"), format!("{index}.{MANIFEST_FILE}"), index, format!("{prefix}.bin")]
}

impl Writer {
    // A border before the sequence that begins, where it begins a document.
    fn border(&mut self, record: &Stored<'_>) -> Result<()> {
        let document = record.extras.get(DOCUMENT).and_then(row::Value::as_u64);
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
        let mode =
            record.extras.get(MODE).and_then(row::Value::as_i64).and_then(|mode| i8::try_from(mode).ok());
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

/// How much was written at a checkpoint.
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

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if record.is_first {
            let Ok(length) = i32::try_from(record.len) else {
                return Err(Error::config(format!(
                    "a record of {} values; a sequence of Megatron's holds at most {}",
                    record.len,
                    i32::MAX
                ))
                .record(record.number)
                .hint("a stream of documents opens as records with @document_eos@"));
            };
            if !self.warned && record.extras.names().any(|key| key != DOCUMENT && key != MODE) {
                windrow_core::warn!(
                    "Megatron's files hold token IDs only: the metadata of records is left out"
                );
                self.warned = true;
            }
            self.border(record)?;
            self.mode(record)?;
            self.lengths.file.write(&length.to_le_bytes())?;
            self.sequences += 1;
        }
        self.data.write(record.bytes)
    }

    fn checkpoint(&mut self, disk: &mut Disk) -> Result<Value> {
        for file in [&mut self.data, &mut self.lengths.file, &mut self.borders.file] {
            disk.bring(file.unsynced()?)?;
        }
        let kept = Kept { sequences: self.sequences, borders: self.n_borders, data_size: self.data.size() };
        serde_json::to_value(kept).map_err(|e| Error::io("write it", &self.work, e.into()))
    }

    fn finish(self: Box<Self>, manifest: Manifest) -> Result<Written> {
        let (work, name, fsync, folder) =
            (self.work.clone(), self.name.clone(), self.fsync, self.folder.clone());
        let [of_checksums, of_manifest, _, _] = names(&name);
        let (of_checksums, of_manifest) = match &folder {
            Some(folder) => (folder.join(CHECKSUMS_FILE), folder.join(MANIFEST_FILE)),
            None => (work.join(of_checksums), work.join(of_manifest)),
        };
        let manifest = self.complete(manifest, &of_checksums)?;
        if let Some(folder) = &folder {
            for file in &manifest.files {
                files::rename(&work.join(&file.name), &folder.join(&file.name))?;
            }
        }
        files::write(&of_manifest, manifest.to_text().as_bytes(), fsync)?;
        folder.map_or(Ok(()), |folder| files::sync_folder(&folder, fsync))?;
        let bytes = manifest.files.first().map_or(0, |data| data.size);
        Ok(Written { files: 1, bytes, manifest })
    }
}

impl Writer {
    // Writes the index, and the block checksums of both files to `sums`. The manifest with both files in it.
    fn complete(mut self, mut manifest: Manifest, sums: &Path) -> Result<Manifest> {
        if self.data.size() == 0 {
            return Err(no_ids());
        }
        self.put_border()?;
        let Writer {
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
            fsync,
            ..
        } = self;
        let [_, _, index_name, data_name] = names(&name);
        let mut sums = ChecksumsWriter::at(sums, [])?;
        let row = sums.add(data_name, data.finish(fsync)?)?;
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
        manifest.files = vec![row, sums.add(index_name, index.finish(fsync)?)?];
        sums.finish(&manifest.files, fsync)?;
        Ok(manifest)
    }
}
