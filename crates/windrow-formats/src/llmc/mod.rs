//! llm.c's token files, which modded-nanogpt writes too: a header of 256 int32, then the token IDs.

mod write;

use std::sync::Arc;

use windrow_core::format::verify::{Verifier, Verify};
use windrow_core::format::vocabulary::{check_ids, tokenizer_must_be};
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, splits};
use windrow_core::source::{Schema, SharedSource};
use windrow_core::store::{Object, key};
use windrow_core::{DType, Element, Error, Result};

use self::write::WriteLlmc;
use super::token_runs::{Run, Runs, TokenRuns, verify_each};
use windrow_core::format::data_files::{DataFiles, names_to_join, top_files};

/// Bytes before the first token ID.
const HEADER: u64 = 1024;
/// Magic number, version and dtype of the two kinds that hold token IDs.
const KINDS: [(i32, i32, DType); 2] = [(20_240_520, 1, DType::U16), (20_240_801, 7, DType::U32)];

/// Token files of llm.c.
#[derive(Clone, Copy, Debug)]
pub struct Llmc;

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

impl Verify for Llmc {
    // Files of several splits are no data set together, but each is one.
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        verify_each(format, probe, &keys(probe), out)
    }
}

impl Format for Llmc {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let is_one = |key: &String| {
            probe.store.open(key).is_ok_and(|object| begins(object.as_ref()).is_ok_and(|begins| begins))
        };
        match keys(probe).first().is_some_and(is_one) {
            true => Confidence::Yes,
            false => Confidence::No,
        }
    }

    fn joins(&self, probe: &Probe) -> Vec<String> {
        names_to_join(probe, &keys(probe))
    }

    fn writer(&self, _options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteLlmc)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Llmc
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let keys = keys(probe);
        if probe.is_folder {
            splits::refuse_in(probe, keys.iter().map(|key| probe.name_of(key)))?;
        }
        tokenizer_must_be(probe.manifest.as_ref(), options.tokenizer.as_deref(), &probe.display())?;
        let missing = |key: &str, _| Error::not_found("the file is gone").at(key);
        let files = DataFiles::open(probe.store.clone(), keys, missing)?;
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
        let Some(dtype) = dtype else {
            return Err(Error::not_found("expected `.bin` files, found none").at(probe.display()));
        };
        if let Some(asked) = options.dtype.filter(|asked| *asked != dtype) {
            return Err(Error::mismatch(format!("dtype {asked} was asked for, the header says {dtype}"))
                .at(probe.display())
                .hint("leave dtype= out"));
        }
        let known = probe.manifest.as_ref().and_then(|manifest| manifest.vocab_size);
        let mut schema = Schema::numbers(Element::little(dtype));
        schema.vocab_size = options.vocab_size.or(known);
        let indices = Arc::new(DataFiles::from_objects(probe.store.clone(), Vec::new(), Vec::new()));
        let source = TokenRuns {
            files,
            header: HEADER,
            track: None,
            indices,
            runs: streams,
            schema,
            format: self.name(),
        };
        if let Some(vocab_size) = options.vocab_size.filter(|v| known.is_none_or(|known| known > *v)) {
            check_ids(&source, vocab_size)?;
        }
        Ok(Arc::new(source))
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

// The `.bin` files of a folder, in natural order; a file, whatever it is called.
fn keys(probe: &Probe) -> Vec<String> {
    top_files(probe, |name| !probe.is_folder || key::has_suffix(name, ".bin"))
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
    match expected == Some(size) {
        true => Ok((dtype, (size - HEADER) / width)),
        false => Err(wrong(
            format!(
                "the header says {count} token IDs of {width} bytes, the file has {} bytes for them",
                size - HEADER
            ),
            8,
        )
        .hint("the copy looks unfinished")),
    }
}
