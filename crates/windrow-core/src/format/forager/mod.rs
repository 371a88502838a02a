//! Byte-offset index: JSONL files or token samples, found by `index/file_location.txt` and
//! `index/sample_locations.bin`. The layout of data-forager 0.2.0.

mod rows;
mod samples;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::rows::LocationRows;
use self::samples::TokenSamples;
use super::data_files::DataFiles;
use super::json_lines::JsonLines;
use super::jsonl::refuse_number_options;
use super::vocabulary::{check_ids, tokenizer_must_be};
use super::{About, Certainty, Format, Look, Options, SIDE_FILE, SideFile};
use crate::array::{DType, Element};
use crate::error::{Error, Kind, Result};
use crate::source::{Schema, SharedSource};
use crate::store::{Object, Store, read_small};

/// The folder that holds the index, below the base folder.
pub const INDEX_FOLDER: &str = "index";
/// One path per line, relative to the base folder.
pub(crate) const FILE_LIST: &str = "file_location.txt";
/// Rows of three little-endian u64: file number, first byte, size.
pub(crate) const LOCATIONS: &str = "sample_locations.bin";
/// Which arrays a sample is made of, when there is more than its tokens.
pub(crate) const SAMPLE_SCHEMA: &str = "sample_schema.json";

const MOST_LIST_BYTES: u64 = 1 << 30;
const MOST_SCHEMA_BYTES: u64 = 1 << 20;

/// The byte-offset index format.
#[derive(Clone, Copy, Debug)]
pub struct Forager;

/// One row of `sample_locations.bin`.
pub(crate) fn location_row(file: u64, byte: u64, size: u64) -> [u8; 24] {
    let mut row = [0; 24];
    row[..8].copy_from_slice(&file.to_le_bytes());
    row[8..16].copy_from_slice(&byte.to_le_bytes());
    row[16..].copy_from_slice(&size.to_le_bytes());
    row
}

/// The text of `file_location.txt`.
///
/// # Errors
/// `Unsupported` when a path holds a line break: the format cannot say it.
pub(crate) fn file_list(paths: &[String]) -> Result<String> {
    if let Some(bad) = paths.iter().find(|p| p.contains(['\n', '\r'])) {
        return Err(Error::unsupported("the index cannot hold a path with a line break").at(bad));
    }
    Ok(paths.iter().map(|p| format!("{p}\n")).collect())
}

/// `sample_schema.json`: the arrays that follow each other in a sample of `sample_size` tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Tokens per sample.
    pub sample_size: u64,
    /// The tokens first, then the others by name.
    pub arrays: Vec<LayoutArray>,
    /// Bytes per sample.
    pub total_bytes_per_sample: u64,
}

/// One array of a [`Layout`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutArray {
    /// `tokens`, `loss_mask`, …
    pub name: String,
    /// numpy's name of its dtype.
    pub dtype: DType,
    /// First byte within the sample.
    pub offset: u64,
}

impl Format for Forager {
    fn name(&self) -> &'static str {
        "forager"
    }

    fn about(&self) -> About {
        About {
            title: "Byte-offset index",
            layout: "`index/file_location.txt` and `index/sample_locations.bin` beside JSONL or token files",
            records: "one JSON value, or one sample of tokens with arrays beside it",
            written_by: "`windrow index`, `windrow tokenize`, data-forager",
        }
    }

    fn recognise(&self, look: &Look) -> Certainty {
        match look.is_folder && base_of(look, INDEX_FOLDER).is_some() {
            true => Certainty::Yes,
            false => Certainty::No,
        }
    }

    fn open(&self, look: &Look, options: &Options) -> Result<SharedSource> {
        let folder = options.index_folder.as_deref().unwrap_or(INDEX_FOLDER);
        let Some(base) = base_of(look, folder) else {
            return Err(Error::not_found(format!("expected {folder}/{FILE_LIST} and {folder}/{LOCATIONS}"))
                .at(look.display())
                .hint("`windrow index` makes them for JSONL files"));
        };
        let key = |name: &str| join(&base.index, name);
        let side = match look.store.entry(&key(SIDE_FILE)) {
            Ok(entry) if !entry.is_folder => {
                Some(SideFile::read(look.store.open(&key(SIDE_FILE))?.as_ref())?)
            }
            _ => None,
        };
        let listed = listed_files(look.store.open(&key(FILE_LIST))?.as_ref())?;
        let keys: Vec<String> = listed.iter().map(|name| join(&base.folder, name)).collect();
        let files = DataFiles::open(look.store.clone(), keys, |key, line| {
            Error::not_found(format!("line {} of {FILE_LIST} names a file that is not there", line + 1))
                .at(key)
                .hint("was it moved? `windrow index --overwrite` makes the index again")
        })?;
        let rows = LocationRows::new(look.store.open(&key(LOCATIONS))?)?;
        let layout = layout(look.store.as_ref(), &key(SAMPLE_SCHEMA))?;
        let tokens = layout.is_some()
            || options.dtype.is_some()
            || side.as_ref().is_some_and(|s| s.dtype.is_some())
            || (!listed.is_empty() && listed.iter().all(|name| name.ends_with(".bin")));
        if let Some(side) = &side
            && !options.trust
        {
            check_unchanged(side, &base, look, !tokens)?;
        }
        rows.check_all(&files)?;
        if !tokens {
            refuse_number_options(options)?;
            return Ok(Arc::new(JsonLines::new(self.name(), rows, files)));
        }
        tokenizer_must_be(side.as_ref(), options.tokenizer.as_deref(), &look.display())?;
        let written = layout.as_ref().and_then(Layout::token_dtype).or(side.as_ref().and_then(|s| s.dtype));
        let dtype = match (written, options.dtype) {
            (Some(written), Some(asked)) if written != asked => {
                return Err(Error::mismatch(format!(
                    "dtype {asked} was asked for, the samples hold {written}"
                ))
                .at(look.display())
                .hint("leave dtype= out"));
            }
            (Some(dtype), _) | (None, Some(dtype)) => dtype,
            (None, None) => {
                return Err(Error::config("the index does not say which dtype its samples have")
                    .at(look.display())
                    .hint("say it with dtype=; data-forager writes uint16 unless told otherwise"));
            }
        };
        let mut schema = Schema::numbers(Element::little(dtype));
        let known = side.as_ref().and_then(|s| s.vocab_size);
        schema.vocab_size = options.vocab_size.or(known);
        let source: SharedSource = match &layout {
            Some(layout) => Arc::new(TokenSamples::laid_out(
                rows,
                files,
                schema,
                layout,
                &look.store.display(&key(SAMPLE_SCHEMA)),
            )?),
            None => {
                let uniform = side.as_ref().and_then(|s| s.record_length);
                Arc::new(TokenSamples::plain(rows, files, schema, uniform)?)
            }
        };
        if let Some(vocab_size) = options.vocab_size.filter(|v| known.is_none_or(|known| known > *v)) {
            check_ids(source.as_ref(), vocab_size)?;
        }
        Ok(source)
    }
}

impl Layout {
    fn token_dtype(&self) -> Option<DType> {
        self.arrays.iter().find(|a| a.name == "tokens").map(|a| a.dtype)
    }
}

/// Where an index lies, and the folder that its file names start from.
struct Base {
    folder: String,
    index: String,
}

// The base folder of an index below it, or the index folder itself.
fn base_of(look: &Look, folder: &str) -> Option<Base> {
    let has = |index: &str| {
        [FILE_LIST, LOCATIONS]
            .iter()
            .all(|name| look.store.entry(&join(index, name)).is_ok_and(|e| !e.is_folder))
    };
    let below = join(&look.key, folder);
    if has(&below) {
        return Some(Base { folder: look.key.clone(), index: below });
    }
    // Opened at the index folder itself, its base is the folder above, which the store may not reach.
    let (above, name) = look.key.rsplit_once('/').unwrap_or(("", &look.key));
    (name == folder && has(&look.key)).then(|| Base { folder: above.to_string(), index: look.key.clone() })
}

fn join(folder: &str, name: &str) -> String {
    match (folder, name.starts_with('/')) {
        ("", _) | (_, true) => name.to_string(),
        (folder, false) => format!("{folder}/{name}"),
    }
}

fn listed_files(object: &dyn Object) -> Result<Vec<String>> {
    let bytes = read_small(object, MOST_LIST_BYTES)?;
    let text = String::from_utf8(bytes).map_err(|e| {
        Error::corrupt("the list of files is not UTF-8")
            .at(object.name())
            .byte(e.utf8_error().valid_up_to() as u64)
    })?;
    Ok(text.lines().map(str::to_string).collect())
}

fn layout(store: &dyn Store, key: &str) -> Result<Option<Layout>> {
    if !store.entry(key).is_ok_and(|e| !e.is_folder) {
        return Ok(None);
    }
    let object = store.open(key)?;
    let bytes = read_small(object.as_ref(), MOST_SCHEMA_BYTES)?;
    let layout = serde_json::from_slice(&bytes).map_err(|e| {
        Error::corrupt("the sample schema cannot be understood")
            .at(object.name())
            .caused_by(e)
            .hint("tokenise the data again")
    })?;
    Ok(Some(layout))
}

// Sizes of all files the side file names; for JSON records, which others wrote and may edit, the time of change as well.
fn check_unchanged(side: &SideFile, base: &Base, look: &Look, with_time: bool) -> Result<()> {
    for row in &side.files {
        let key = join(&base.folder, &row.name);
        let stale = |what: String| {
            Error::new(Kind::Stale, what)
                .at(look.store.display(&key))
                .hint("`windrow index --overwrite` (or `tokenize --overwrite`) makes it anew; trust=True reads it as it is")
        };
        let object = match look.store.open(&key) {
            Ok(object) => object,
            Err(e) if e.kind() == Kind::NotFound => {
                return Err(stale("the file is gone since it was indexed".to_string()));
            }
            Err(e) => return Err(e),
        };
        if object.size() != row.size {
            return Err(stale(format!(
                "the file has {} bytes, it had {} when it was indexed",
                object.size(),
                row.size
            )));
        }
        if let (true, Some(then), Some(now)) = (with_time, row.modified_ns, object.modified_ns())
            && then != now
        {
            return Err(stale(
                "the file was changed after it was indexed: its time of change differs".to_string(),
            ));
        }
    }
    Ok(())
}
