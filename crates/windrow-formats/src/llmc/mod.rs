//! llm.c's token files, which modded-nanogpt writes too: a header of 256 int32, then the token IDs.

mod write;

use std::sync::Arc;

use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{FormatInfo, Holds, Options, Probe};
use windrow_core::source::{Schema, SharedSource};
use windrow_core::store::{Object, key};
use windrow_core::{DType, Element, Error, Result};

use self::write::WriteLlmc;
use crate::in_files::FileKind;
use crate::token_runs::{Run, Runs, TokenRuns};
use windrow_core::format::data_files::{DataFiles, gone};

/// Bytes before the first token ID.
const HEADER: u64 = 1024;
/// Magic number, version and dtype of the two kinds that hold token IDs.
const KINDS: [(i32, i32, DType); 2] = [(20_240_520, 1, DType::U16), (20_240_801, 7, DType::U32)];

/// Token files of llm.c.
pub(crate) struct Llmc;

static INFO: FormatInfo = FormatInfo {
    name: "llmc",
    title: "llm.c",
    layout: "`.bin` files with a header of 256 int32 (magic number, version, count), then uint16 or uint32",
    records: "the token IDs of a file",
    written_by: "llm.c, modded-nanogpt, `windrow tokenize --to llmc`, `windrow convert --to llmc`, `wr.write`",
    holds: &[Holds::Tokens],
    data_suffixes: &[".bin"],
    written_as: "one `.bin` with llm.c's header",
    ..FormatInfo::NONE
};

impl FileKind for Llmc {
    const INFO: &'static FormatInfo = &INFO;
    const BEGINS: Option<fn(&dyn Object) -> Result<bool>> = Some(begins);

    // A file may have any name.
    fn is_data(probe: &Probe, name: &str) -> bool {
        !probe.is_folder || key::has_suffix(name, ".bin")
    }

    fn writer(_: &mut OwnOptions) -> Result<Box<dyn WriteFormat>> {
        Ok(Box::new(WriteLlmc))
    }

    fn open(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource> {
        let files = DataFiles::open(probe.store.clone(), keys, gone)?;
        let mut streams = Streams { lengths: Vec::with_capacity(files.count()) };
        let mut dtype = None;
        for file in 0..files.count() {
            let (found, count) = header(files.get(file)?)?;
            if let Some(first) = dtype.filter(|first| *first != found) {
                return Err(Error::mismatch(format!("the file holds {found}, those before {first}"))
                    .at(files.name(file))
                    .hint("open the files one by one"));
            }
            dtype = Some(found);
            streams.lengths.push(count);
        }
        // There is one file at least.
        let dtype = dtype.unwrap_or(KINDS[0].2);
        if let Some(asked) = options.dtype.filter(|asked| *asked != dtype) {
            return Err(Error::mismatch(format!("dtype {asked} was asked for, the header says {dtype}"))
                .at(probe.display())
                .hint("leave @dtype@ out"));
        }
        let schema = Schema::numbers(Element::little(dtype));
        let indices = Arc::new(DataFiles::from_objects(probe.store.clone(), Vec::new(), Vec::new()));
        TokenRuns { files, header: HEADER, track: None, indices, runs: streams, schema, format: INFO.name }
            .open(probe, options)
    }
}

/// A file is a record.
struct Streams {
    lengths: Vec<u64>,
}

impl Runs for Streams {
    fn count(&self) -> u64 {
        self.lengths.len() as u64
    }

    fn run(&self, record: u64) -> Result<Run> {
        let file = usize::try_from(record).unwrap_or(usize::MAX);
        let len = self.lengths.get(file).copied();
        len.map(|len| Run { file, start: 0, len })
            .ok_or_else(|| Error::out_of_range("record", record, self.count()))
    }
}

// Whether a file begins as one with token IDs: magic number and version, then zeros behind the count, or a count that fits the
// size. Raw token IDs may begin with the magic number, too.
fn begins(object: &dyn Object) -> Result<bool> {
    const VERSIONS: std::ops::RangeInclusive<i32> = 1..=16;
    let mut scratch = Vec::new();
    let head = object.read(0, object.size().min(HEADER) as usize, &mut scratch)?;
    let words: Vec<i32> = head.as_chunks::<4>().0.iter().map(|word| i32::from_le_bytes(*word)).collect();
    let (Some(magic), Some(version), Some(count)) = (words.first(), words.get(1), words.get(2)) else {
        return Ok(false);
    };
    let Some(kind) = KINDS.iter().find(|kind| kind.0 == *magic).filter(|_| VERSIONS.contains(version)) else {
        return Ok(false);
    };
    let size = u64::try_from(*count)
        .ok()
        .and_then(|count| count.checked_mul(kind.2.size() as u64)?.checked_add(HEADER));
    Ok(words[3..].iter().all(|word| *word == 0) || size == Some(object.size()))
}

// What the header says, compared with the size of the file: the dtype and the number of token IDs.
fn header(object: &dyn Object) -> Result<(DType, u64)> {
    let wrong = |what: String, byte: u64| Error::corrupt(what).at(object.name()).byte(byte);
    let size = object.size();
    if size < HEADER {
        return Err(wrong(format!("a file of {size} bytes; the header alone has {HEADER}"), size)
            .hint("the copy looks unfinished"));
    }
    let mut scratch = Vec::new();
    let bytes = object.read(0, 12, &mut scratch)?;
    let words: Vec<i32> = bytes.as_chunks::<4>().0.iter().map(|word| i32::from_le_bytes(*word)).collect();
    let &[magic, version, count] = words.as_slice() else {
        return Err(wrong("the header is cut short".to_string(), 0));
    };
    let kind = KINDS.iter().find(|kind| (kind.0, kind.1) == (magic, version));
    let Some(&(_, _, dtype)) = kind else {
        return Err(match KINDS.iter().find(|kind| kind.0 == magic) {
            Some(kind) => wrong(format!("version {version} of {magic}; expected {}", kind.1), 4),
            None => wrong(format!("the magic number {magic}; expected {} or {}", KINDS[0].0, KINDS[1].0), 0),
        });
    };
    let width = dtype.size() as u64;
    let expected = u64::try_from(count).ok().and_then(|count| count.checked_mul(width)?.checked_add(HEADER));
    if expected == Some(size) {
        Ok((dtype, (size - HEADER) / width))
    } else {
        Err(wrong(
            format!(
                "the header says {count} token IDs of {width} bytes, the file has {} bytes for them",
                size - HEADER
            ),
            8,
        )
        .hint("the copy looks unfinished"))
    }
}
