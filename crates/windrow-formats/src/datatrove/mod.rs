//! datatrove's token files, which nanotron reads too: `.ds` with the token IDs, `.ds.index` with the ends of documents.

mod index;
mod write;

use std::sync::Arc;

use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{FileNames, FormatInfo, Holds, Options, Probe};
use windrow_core::source::{Schema, SharedSource, Track};
use windrow_core::store::{key, read_small};
use windrow_core::{DType, Element, Error, Result};

use self::index::{Documents, Ends};
use self::write::WriteDatatrove;
use crate::foreign;
use crate::in_files::FileKind;
use crate::token_runs::TokenRuns;
use windrow_core::format::data_files::{DataFiles, gone};

const DATA: &str = ".ds";
const INDEX: &str = ".index";
const LOSS: &str = ".loss";
const METADATA: &str = ".metadata";
/// The array of the bytes in a `.loss` file: 1 for a token that is learned.
const LEARNED: &str = "loss";
/// The array of the token IDs, where another one is beside it.
const TOKENS: &str = "input_ids";

/// Token files of datatrove.
pub(crate) struct Datatrove;

static INFO: FormatInfo = FormatInfo {
    name: "datatrove",
    title: "datatrove",
    layout: "`.ds` files of uint16 or uint32 with `.ds.index`, and `.ds.loss` and `.ds.metadata` where they are",
    records: "a document; without an index the token IDs of a file",
    written_by: "datatrove's tokenizer steps, nanotron's preprocessing, `windrow tokenize --to datatrove`, `windrow convert --to datatrove`, `wr.write`",
    holds: &[Holds::Tokens],
    data_suffixes: &[".ds", ".ds.index", ".ds.loss"],
    written_as: "a folder with one `.ds`, its index and metadata",
    names: FileNames { companions, ..FileNames::NONE },
    ..FormatInfo::NONE
};

impl FileKind for Datatrove {
    const INFO: &'static FormatInfo = &INFO;
    const METADATA: Option<&'static str> = Some(METADATA);

    fn is_data(_: &Probe, name: &str) -> bool {
        key::has_suffix(name, DATA)
    }

    fn writer(_: &mut OwnOptions) -> Result<Box<dyn WriteFormat>> {
        Ok(Box::new(WriteDatatrove))
    }

    fn open(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource> {
        let mut files = DataFiles::listed(probe, keys.clone(), gone)?;
        let losses = all_or_none(probe, &keys, LOSS)?;
        let indices = DataFiles::listed(probe, all_or_none(probe, &keys, INDEX)?, gone)?;
        // An index is compared with the size of its file.
        if indices.count() == 0 && !options.trust {
            files = files.checked_by(foreign::refuse_as_ids)?;
            // An error says so, rather than ask for the dtype of another kind of file.
            files.get(0)?;
        }
        let track = if losses.is_empty() { None } else { Some(DataFiles::listed(probe, losses, gone)?) };
        let indices = Arc::new(indices);
        let ends = (0..indices.count()).map(|file| Ends::of(&indices, file)).collect::<Result<Vec<_>>>()?;
        let dtype = dtype(probe, &files, &indices, &ends, options.dtype)?;
        let documents = Documents::open(&files, indices.clone(), &ends, dtype)?;
        if let Some(track) = &track {
            for file in 0..files.count() {
                let (bytes, tokens) = (track.size(file)?, documents.tokens(file));
                if bytes != tokens {
                    return Err(Error::corrupt(format!(
                        "{bytes} bytes beside {tokens} token IDs; expected one each"
                    ))
                    .at(track.name(file))
                    .hint("the copy looks unfinished"));
                }
            }
        }
        let mut schema = Schema::numbers(Element::little(dtype));
        if track.is_some() {
            schema.tracks = vec![Track::stored(LEARNED, Element::little(DType::U8))];
            schema.values_name = TOKENS;
        }
        TokenRuns { files, header: 0, track, indices, runs: documents, schema, format: INFO.name }
            .open(probe, options)
    }
}

fn companions(name: &str) -> Vec<String> {
    if key::has_suffix(name, DATA) {
        [INDEX, LOSS, METADATA].map(|suffix| format!("{name}{suffix}")).to_vec()
    } else {
        Vec::new()
    }
}

// What is beside the files: beside all of them, or beside none.
fn all_or_none(probe: &Probe, keys: &[String], suffix: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for key in keys {
        let name = format!("{key}{suffix}");
        found.extend(probe.file(&name)?.map(|_| name));
    }
    if found.is_empty() || found.len() == keys.len() {
        return Ok(found);
    }
    let without = keys.iter().find(|key| !found.contains(&format!("{key}{suffix}")));
    Err(Error::not_found(format!("the `{suffix}` file is gone, which other files have"))
        .at(probe.store.display(&format!("{}{suffix}", without.map_or("", String::as_str))))
        .hint("the copy looks unfinished"))
}

// What the metadata says, else what the last end and the size of the file say, else what was asked for.
fn dtype(
    probe: &Probe,
    files: &DataFiles,
    indices: &DataFiles,
    ends: &[Ends],
    asked: Option<DType>,
) -> Result<DType> {
    let mut dtype: Option<DType> = None;
    for (file, key) in files.keys().enumerate() {
        let size = files.size(file)?;
        let found = match said(probe, key, size)? {
            Some(width) => Some(width),
            None => match ends.get(file) {
                Some(ends) => index::width(indices, file, ends, size)?,
                None => None,
            },
        };
        match (dtype, found) {
            (Some(first), Some(found)) if first != found => {
                return Err(Error::mismatch(format!("the file holds {found}, those before {first}"))
                    .at(files.name(file))
                    .hint("open the files one by one"));
            }
            (None, found) => dtype = found,
            _ => {}
        }
    }
    match (dtype, asked) {
        (Some(found), Some(asked)) if found != asked => {
            Err(Error::mismatch(format!("dtype {asked} was asked for, the files hold {found}"))
                .at(probe.display())
                .hint("leave @dtype@ out"))
        }
        (Some(dtype), _) | (None, Some(dtype)) => Ok(dtype),
        (None, None) => Err(Error::config("neither metadata nor an index says how wide a token ID is")
            .at(probe.display())
            .hint("@dtype=uint16@ or @dtype=uint32@")),
    }
}

// The dtype that the metadata of a file says: `tokenizer|W`, the number of token IDs, and that in words, a line each.
fn said(probe: &Probe, key: &str, size: u64) -> Result<Option<DType>> {
    const MOST: u64 = 64 << 10;
    let key = format!("{key}{METADATA}");
    let Some(entry) = probe.file(&key)? else { return Ok(None) };
    let object = probe.store.open_listed(&entry)?;
    let wrong = |what: String| Error::corrupt(what).at(object.name());
    let bytes = read_small(object.as_ref(), MOST)?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("metadata that is not UTF-8".to_string()))?;
    let mut lines = text.lines();
    let (first, count) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let width = first.rsplit_once('|').and_then(|(_, width)| width.trim().parse::<u64>().ok());
    let dtype = match width {
        Some(2) => DType::U16,
        Some(4) => DType::U32,
        _ => {
            return Err(wrong(format!("expected `tokenizer|2` or `tokenizer|4`, found {first:?}"))
                .hint("a token ID has 2 or 4 bytes"));
        }
    };
    let count: u64 = count
        .trim()
        .parse()
        .map_err(|_| wrong(format!("expected a number of token IDs, found {count:?}")))?;
    if count.checked_mul(dtype.size() as u64) == Some(size) {
        Ok(Some(dtype))
    } else {
        Err(wrong(format!("it says {count} token IDs of {} bytes, the file has {size} bytes", dtype.size()))
            .hint("the copy looks unfinished"))
    }
}
