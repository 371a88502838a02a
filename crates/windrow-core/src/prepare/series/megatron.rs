//! `<prefix>.bin`, all records one after the other, and `<prefix>.idx`, as Megatron reads them, with their side file.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Begin, Body, SIDE_FILE, Stored, Written};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::format::{DOCUMENT, FileRow, MAGIC, MODE, SideFile, VERSION, code};
use crate::prepare::atomic::{self, Growing};
use crate::store::{Local, Store};

/// Bytes of a part that are handed on at a time: whole numbers.
const AT_ONCE: usize = 256 << 10;

pub(super) struct Megatron {
    work: PathBuf,
    name: String,
    data: Growing,
    /// The parts of the index whose size is known at the end.
    lengths: Part,
    borders: Part,
    modes: Option<Part>,
    side: SideFile,
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

/// What becomes visible, in this order: without the index there is no data set.
pub(super) fn names(prefix: &str) -> [String; 3] {
    [format!("{prefix}.bin"), format!("{}.{SIDE_FILE}", index(prefix)), index(prefix)]
}

impl Megatron {
    pub(super) fn begin(begin: &Begin<'_>) -> Result<Megatron> {
        let dtypes =
            [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F64, DType::F32, DType::U16];
        begin.only(&dtypes, "Megatron's files")?;
        let [data, _, _] = names(begin.name);
        Ok(Megatron {
            data: Growing::create(begin.work.join(data))?,
            lengths: Part::create(begin.work.join("lengths"))?,
            borders: Part::create(begin.work.join("borders"))?,
            modes: None,
            side: begin.side_file("megatron"),
            dtype: begin.dtype,
            // Every dtype above has one.
            code: code(begin.dtype).unwrap_or_default(),
            work: begin.work.to_path_buf(),
            name: begin.name.to_string(),
            sequences: 0,
            n_borders: 0,
            document: None,
            durable: begin.options.durable,
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

/// A part of the index that is written beside the data until the number of sequences is known.
struct Part {
    path: PathBuf,
    file: Growing,
}

impl Part {
    fn create(path: PathBuf) -> Result<Part> {
        Ok(Part { file: Growing::create(&path)?, path })
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
        if self.data.size() == 0 {
            return Err(Error::config("no id to write: an empty file is no data"));
        }
        self.put_border()?;
        let Megatron {
            work,
            name,
            data,
            lengths,
            borders,
            modes,
            mut side,
            dtype,
            code,
            sequences,
            n_borders,
            durable,
            ..
        } = *self;
        let [data_name, side_name, index_name] = names(&name);
        let size = data.size();
        let row = data.finish(durable)?;
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
        let index_row = index.finish(durable)?;
        side.records = Some(sequences);
        side.files = vec![
            FileRow { name: data_name.clone(), modified_ns: None, ..row },
            FileRow { name: index_name.clone(), modified_ns: None, ..index_row },
        ];
        atomic::write(&work.join(&side_name), side.to_text().as_bytes(), durable)?;
        Ok(Written { targets: vec![data_name, side_name, index_name], files: 1, bytes: size })
    }
}
