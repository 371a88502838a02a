//! Byte-offset index: JSONL files or token samples, found by `index/file_location.txt` and
//! `index/sample_locations.bin`. The layout of data-forager 0.2.0.

mod claims;
mod line_index;
pub(super) mod names;
mod rows;
mod samples;
mod verify;
mod write;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windrow_core::format::lines::{INDEX_FOLDER, SUFFIXES, json_kind};
use windrow_core::format::verify::Verify;
use windrow_core::format::vocabulary::{check_asked, tokenizer_must_be};
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{
    Confidence, FileNames, Format, FormatInfo, Holds, LineIndex, Options, Probe, Takes,
};
use windrow_core::manifest::{MANIFEST_FILE, Manifest};
use windrow_core::option_rows;
use windrow_core::source::{Schema, SharedSource};
use windrow_core::store::{Object, Store, key, open_if_there, read_small};
use windrow_core::{DType, Element, Error, Kind, Result};

use self::claims::{check_claims, check_unchanged};
use self::line_index::Index;
use self::names::{FILE_LIST, LOCATIONS, SAMPLE_SCHEMA};
use self::rows::{LocationRows, Order};
use self::samples::TokenSamples;
use self::write::WriteForager;
use super::json_lines::{JsonLines, Rows, refuse_number_options};
use super::key_rows::KeyRows;
use windrow_core::format::data_files::DataFiles;

use crate::open_options::{self, COLUMNS};

/// The array of a layout that holds the IDs.
const TOKENS: &str = "tokens";

const MOST_LIST_BYTES: u64 = 1 << 30;
const MOST_SCHEMA_BYTES: u64 = 1 << 20;

/// The byte-offset index format.
#[derive(Clone, Copy, Debug)]
pub struct Forager;

/// One row of `sample_locations.bin`.
fn location_row(file: u64, byte: u64, size: u64) -> [u8; 24] {
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
fn file_list(paths: &[String]) -> Result<String> {
    if let Some(bad) = paths.iter().find(|p| p.contains(['\n', '\r'])) {
        return Err(Error::unsupported("the index cannot hold a path with a line break").at(bad));
    }
    Ok(paths.iter().map(|p| format!("{p}\n")).collect())
}

/// `sample_schema.json`: the arrays that follow each other in a sample.
///
/// Without a `sample_size`, samples differ in length; bytes are then given for one token, and are those of a sample times its
/// tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Tokens in every sample; `None` where samples differ, which is written as null.
    #[serde(deserialize_with = "Option::deserialize")]
    pub sample_size: Option<u64>,
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

static INFO: FormatInfo = FormatInfo {
    name: "forager",
    title: "Byte-offset index",
    layout: "`index/file_location.txt` and `index/sample_locations.bin` beside JSONL or token files",
    records: "one JSON value, or one sample of tokens with arrays beside it",
    written_by: "`windrow index`, `windrow tokenize`, `windrow convert --to forager`, `wr.write`, data-forager",
    holds: &[Holds::Rows, Holds::Tokens],
    open_options: &[COLUMNS, open_options::INDEX_FOLDER],
    chosen_by: Some("index_folder"),
    written_as: "a folder of token samples with a byte-offset index",
    tokenize_options: option_rows! {
        /// folder of the samples [default: tokenized-samples]
        samples_folder: Takes::Text("NAME");
        /// what follows the name of an input in that of its samples [default: tokenized-samples]
        postfix: Takes::Text("NAME");
        /// folder of the index [default: index]
        index_folder: Takes::Text("NAME");
        /// keep no block checksums
        block_sums: Takes::Off;
    },
    checks_manifest: true,
    names: FileNames {
        may_lack_checksums: |name| (name == FILE_LIST).then_some(false),
        checksums_folder: Some(INDEX_FOLDER),
        ..FileNames::NONE
    },
    ..FormatInfo::NONE
};

impl Format for Forager {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        // Half an index is one too: opening it says what is missing, rather than another format reading past it.
        Confidence::yes_if(probe.is_folder && base_of(probe, INDEX_FOLDER).is_some())
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteForager::of(options)?)))
    }

    fn line_index(&self) -> Option<&'static dyn LineIndex> {
        Some(&Index)
    }

    fn find_manifest(&self, probe: &Probe) -> Result<Option<Manifest>> {
        if !probe.is_folder {
            return Ok(None);
        }
        let key = probe.below(&format!("{INDEX_FOLDER}/{MANIFEST_FILE}"));
        let object = open_if_there(probe.store.as_ref(), &key)?;
        object.map(|object| Manifest::read(object.as_ref())).transpose()
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Forager
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let folder = options.index_folder.as_deref().unwrap_or(INDEX_FOLDER);
        let Some(base) = base_of(probe, folder) else {
            return Err(Error::not_found(format!("expected {folder}/{FILE_LIST} and {folder}/{LOCATIONS}"))
                .at(probe.display())
                .hint("`windrow index` makes them for JSONL files"));
        };
        // An index may be replaced while its parts are opened; the manifest tells, and the parts are opened again.
        const MOST_TRIES: usize = 16;
        for _ in 0..MOST_TRIES {
            let before = generation(probe, &base)?;
            let opened = self.open_parts(probe, options, folder, &base);
            if generation(probe, &base)? == before {
                return opened;
            }
        }
        Err(Error::new(Kind::Stale, format!("the index was replaced {MOST_TRIES} times while it was opened"))
            .at(probe.store.display(&base.index))
            .hint("open it when nothing rewrites it"))
    }
}

// Size and time of the manifest: another one for every index that is written.
fn generation(probe: &Probe, base: &Base) -> Result<Option<(u64, Option<u64>)>> {
    let manifest = open_if_there(probe.store.as_ref(), &join(&base.index, MANIFEST_FILE))?;
    Ok(manifest.map(|object| (object.size(), object.modified_ns())))
}

impl Forager {
    fn open_parts(
        &self,
        probe: &Probe,
        options: &Options,
        folder: &str,
        base: &Base,
    ) -> Result<SharedSource> {
        let key = |name: &str| join(&base.index, name);
        let store = probe.store.as_ref();
        let manifest = match open_if_there(store, &key(MANIFEST_FILE))? {
            Some(object) => Some(Manifest::read(object.as_ref())?),
            None => None,
        };
        let listed = listed_files(part(probe, folder, &key(FILE_LIST))?.as_ref(), options.allow_outside)?;
        let keys: Vec<String> = listed.iter().map(|name| join(&base.folder, name)).collect();
        let files = DataFiles::open(probe.store.clone(), keys, |key, line| {
            Error::not_found(format!("line {} of {FILE_LIST} names a file that is not there", line + 1))
                .at(key)
                .hint("was it moved? `windrow index --overwrite` makes the index again")
        })?;
        let rows =
            LocationRows::new(part(probe, folder, &key(LOCATIONS))?, order(manifest.as_ref(), options))?;
        let layout = layout(store, &key(SAMPLE_SCHEMA))?;
        let all_end = |suffixes: &[&str]| {
            !listed.is_empty() && listed.iter().all(|name| suffixes.iter().any(|s| name.ends_with(s)))
        };
        let tokens = layout.is_some()
            || manifest.as_ref().is_some_and(|s| s.dtype.is_some())
            || all_end(&[".bin"])
            || (options.dtype.is_some() && !all_end(&[SUFFIXES, json_kind::SUFFIXES].concat()));
        if let Some(manifest) = &manifest {
            let at = |name| store.display(&key(name));
            check_claims(manifest, &listed, &rows, layout.as_ref(), &at)?;
            if !options.trust {
                check_unchanged(manifest, &base.folder, store, !tokens)?;
            }
        }
        if !tokens {
            refuse_number_options(options)?;
            rows.check_all(&files, |record| rows.row(record, &files).map(drop))?;
            let lines = Arc::new(JsonLines::new(self.name(), rows, files));
            return Ok(match &options.columns {
                Some(columns) => Arc::new(KeyRows::new(lines, columns)?),
                None => lines,
            });
        }
        if options.columns.is_some() {
            return Err(Error::config("columns was given, but the records are token samples")
                .at(probe.display())
                .field("columns"));
        }
        tokenizer_must_be(manifest.as_ref(), options.tokenizer.as_deref(), &probe.display())?;
        let ids = layout.as_ref().map(Layout::tokens).transpose();
        let ids = ids.map_err(|e| e.at(store.display(&key(SAMPLE_SCHEMA))))?;
        let written = ids.map(|ids| ids.dtype).or(manifest.as_ref().and_then(|s| s.dtype));
        let dtype = match (written, options.dtype) {
            (Some(written), Some(asked)) if written != asked => {
                return Err(Error::mismatch(format!(
                    "dtype {asked} was asked for, the samples hold {written}"
                ))
                .at(probe.display())
                .hint("leave @dtype@ out"));
            }
            (Some(dtype), _) | (None, Some(dtype)) => dtype,
            (None, None) => {
                return Err(Error::config("the index does not say which dtype its samples have")
                    .at(probe.display())
                    .hint("say it with @dtype@; data-forager writes uint16 by default"));
            }
        };
        let mut schema = Schema::numbers(Element::little(dtype));
        let known = manifest.as_ref().and_then(|s| s.vocab_size);
        schema.vocab_size = options.vocab_size.or(known);
        let source = match &layout {
            Some(layout) => {
                TokenSamples::arranged(rows, files, schema, layout, &store.display(&key(SAMPLE_SCHEMA)))?
            }
            None => {
                let uniform = manifest.as_ref().and_then(|s| s.record_length);
                TokenSamples::plain(rows, files, schema, uniform)
                    .map_err(|e| e.or_at(store.display(&key(MANIFEST_FILE))))?
            }
        };
        source.check_all()?;
        check_asked(&source, options.vocab_size, known)?;
        Ok(Arc::new(source))
    }
}

impl Layout {
    /// Bytes of every sample, where all are equal.
    fn record_size(&self) -> Option<u64> {
        self.sample_size.map(|_| self.total_bytes_per_sample)
    }

    /// The array of IDs.
    fn tokens(&self) -> Result<&LayoutArray> {
        self.arrays.iter().find(|a| a.name == TOKENS).ok_or_else(|| {
            Error::corrupt(format!("expected an array {TOKENS:?} among {} arrays", self.arrays.len()))
                .field("arrays")
                .hint("tokenise the data again")
        })
    }
}

/// Where an index lies, and the folder that its file names start from.
struct Base {
    folder: String,
    index: String,
}

// The base folder of an index below it, or the index folder itself. One part of an index is enough to see it.
fn base_of(probe: &Probe, folder: &str) -> Option<Base> {
    let has = |index: &str| {
        let is_there = |name| probe.store.entry(&join(index, name)).is_ok_and(|e| !e.is_folder);
        [FILE_LIST, LOCATIONS].into_iter().any(is_there)
    };
    let below = join(&probe.key, folder);
    if has(&below) {
        return Some(Base { folder: probe.key.clone(), index: below });
    }
    // Opened at the index folder itself, its base is the folder above, which the store may not reach.
    let (above, name) = (key::folder_of(&probe.key), key::name_of(&probe.key));
    (name == folder && has(&probe.key)).then(|| Base { folder: above.to_string(), index: probe.key.clone() })
}

// One of the two files that an index cannot do without.
fn part(probe: &Probe, folder: &str, key: &str) -> Result<Arc<dyn Object>> {
    let object = probe.store.open(key).map_err(|e| match e.kind() {
        Kind::NotFound => {
            Error::not_found(format!("half an index: expected {folder}/{FILE_LIST} and {folder}/{LOCATIONS}"))
                .at(probe.store.display(key))
                .hint("the copy looks unfinished; `windrow index --overwrite` makes the index again")
        }
        _ => e,
    })?;
    // Rows are asked for at random from now on.
    object.bring_near()?;
    Ok(object)
}

fn join(folder: &str, name: &str) -> String {
    if name.starts_with('/') { name.to_string() } else { key::below(folder, name) }
}

// `windrow index` and `windrow tokenize` write rows that follow each other; what others write may leave gaps or repeat.
fn order(manifest: Option<&Manifest>, options: &Options) -> Order {
    let task = manifest.and_then(|s| s.options.get("task")).and_then(|task| task.as_str());
    match task {
        Some("index" | "tokenize") if options.trust => Order::Follows,
        Some("index" | "tokenize") => Order::FollowsToTheEnd,
        _ => Order::Any,
    }
}

fn listed_files(object: &dyn Object, allow_outside: bool) -> Result<Vec<String>> {
    let bytes = read_small(object, MOST_LIST_BYTES)?;
    let text = String::from_utf8(bytes).map_err(|e| {
        Error::corrupt("the list of files is not UTF-8")
            .at(object.name())
            .byte(e.utf8_error().valid_up_to() as u64)
    })?;
    let mut names = Vec::new();
    for (i, name) in text.lines().enumerate() {
        let refuse = |error: Error| Err(error.at(object.name()).field(format!("line {}", i + 1)));
        if name.is_empty() || name.contains('\0') {
            return refuse(Error::corrupt(format!("expected the path of a data file, found {name:?}")));
        }
        if !allow_outside && (name.starts_with('/') || name.split('/').any(|part| part == "..")) {
            return refuse(
                Error::config(format!("expected a path inside the base folder, found {name:?}"))
                    .hint("@allow_outside=true@ opens it, if you trust who wrote the index"),
            );
        }
        names.push(name.to_string());
    }
    Ok(names)
}

fn layout(store: &dyn Store, key: &str) -> Result<Option<Layout>> {
    let Some(object) = open_if_there(store, key)? else { return Ok(None) };
    let bytes = read_small(object.as_ref(), MOST_SCHEMA_BYTES)?;
    let layout = serde_json::from_slice(&bytes).map_err(|e| {
        Error::corrupt("the sample schema cannot be understood")
            .at(object.name())
            .caused_by(e)
            .hint("tokenise the data again")
    })?;
    Ok(Some(layout))
}
