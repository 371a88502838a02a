//! On-disk layouts: each recognises itself, checks every claim before it believes it, and opens as a source.
//!
//! One file per format, reader and writer together; one row in [`FORMATS`]. Recognising, `inspect`, the table in the
//! docs, the conformance suite and the fuzz list walk that table.

mod arrays;
mod codes;
mod collection;
mod converted;
mod data_files;
mod discover;
mod forager;
mod foreign;
mod json_kind;
mod json_lines;
mod jsonl;
mod keyed;
mod lines;
mod megatron;
mod npy;
mod npz;
mod number;
mod numbers;
mod pickle;
mod series_json;
mod shards;
mod side_file;
mod splits;
mod tokens;
mod torch;
mod vocabulary;
mod yaml;

use std::sync::Arc;

pub(crate) use codes::{CODEBOOK, FOLDER as TRACKS_FOLDER, METADATA as TRACKS_METADATA};
pub use codes::{Codes, read_prompt, tensor_file};
pub use collection::Collection;
pub use discover::natural_order;
pub(crate) use discover::{line_files, lines_among, no_line_files, refuse_copies};
pub(crate) use forager::{
    EXPANDED, FILE_LIST, LOCATIONS, SAMPLE_SCHEMA, expanded_inputs, file_list, is_as_it_was, location_row,
};
pub use forager::{Forager, INDEX_FOLDER, Layout, LayoutArray};
pub(crate) use foreign::{encoding, refuse_as_text};
pub use json_lines::parse_json;
pub use jsonl::Jsonl;
pub(crate) use jsonl::is_named as is_named_as_lines;
pub use keyed::reads_axis;
pub(crate) use lines::line_ends;
pub use megatron::Megatron;
pub(crate) use megatron::{DOCUMENT, MAGIC, MODE, VERSION, code};
pub use npy::Npy;
pub(crate) use npz::MOST_MEMBERS;
pub use npz::Npz;
pub use pickle::Pickle;
pub use series_json::{SeriesJson, SeriesJsonLines};
pub use shards::Shards;
pub(crate) use shards::{OtherSize, TOLD as SHARDS_TOLD};
pub(crate) use side_file::MOST_BYTES as MOST_SIDE_BYTES;
pub use side_file::{FileRow, Golden, SIDE_FILE, SideFile, TokenizerLock};
pub use tokens::Tokens;
pub use torch::{Saved, SavedTensor};
pub(crate) use vocabulary::first_outside;
pub use yaml::Yaml;

use crate::array::DType;
use crate::error::{Error, Kind, Result};
use crate::source::SharedSource;
use crate::store::{Checked, Compression, Entry, FolderId, Object, Store, key};

/// Every format of the heart, in the order they are asked.
pub static FORMATS: &[&dyn Format] = &[
    &Forager,
    &Jsonl,
    &Tokens,
    &Megatron,
    &Shards,
    &Npy,
    &Npz,
    &SeriesJson,
    &SeriesJsonLines,
    &Yaml,
    &Pickle,
    &Codes,
    &Collection,
];

/// One on-disk layout.
pub trait Format: Send + Sync {
    /// Its name: what `format=` takes and `inspect` prints.
    fn name(&self) -> &'static str;

    /// One row of the table of formats.
    fn about(&self) -> About;

    /// What the names of its files end in, where they hold series of numbers that a folder may mix with those of other
    /// formats. Empty for a format whose folders are of one kind.
    fn series_suffixes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether this is it. Looks at names and the first bytes only.
    fn recognise(&self, look: &Look) -> Certainty;

    /// Whether a file that this format would read describes other data instead, where it lies in a folder of series.
    fn is_description(&self, look: &Look) -> bool {
        let _ = look;
        false
    }

    /// The files of a folder that it would join, relative to it, where words in their names may tell splits that are kept
    /// apart.
    fn joins(&self, look: &Look) -> Vec<String> {
        let _ = look;
        Vec::new()
    }

    /// Keys below it that are data sets of their own, where it is one of several: the splits of a corpus.
    fn parts(&self, look: &Look) -> Vec<String> {
        let _ = look;
        Vec::new()
    }

    /// Whether [`Format::open`] itself holds the files against their side file: more closely than by size and number of
    /// records, or only the part of them that is opened.
    fn checks_side_file(&self) -> bool {
        false
    }

    /// Opens it as a source.
    ///
    /// # Errors
    /// `Corrupt` when a claim in the files does not hold; `Stale` when data changed after it was indexed; `Config`.
    fn open(&self, look: &Look, options: &Options) -> Result<SharedSource>;
}

/// What the docs and `--help` say of a format.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// What it is called in a sentence.
    pub title: &'static str,
    /// Files and folders that make it up.
    pub layout: &'static str,
    /// What a record is.
    pub records: &'static str,
    /// Which command or function writes it.
    pub written_by: &'static str,
}

/// How sure a format is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Not this.
    No,
    /// The name fits, nothing contradicts it.
    Maybe,
    /// The content says so.
    Yes,
}

/// What a format sees of a path before it says whether it is the one.
pub struct Look {
    /// Where it lies.
    pub store: Arc<dyn Store>,
    /// Its key in the store; `""` is the root.
    pub key: String,
    /// A folder or an object.
    pub is_folder: bool,
    /// All objects below it, by key, as [`Store::walk`] found them once; empty for an object.
    pub entries: Vec<Entry>,
    /// The first bytes, at most 4096; empty for a folder.
    pub head: Vec<u8>,
    /// The side file beside it, where there is one.
    pub side: Option<SideFile>,
    /// Which folder it was; `None` for a file, and where the store cannot tell.
    pub folder_id: Option<FolderId>,
}

impl Look {
    /// Looks at `key`.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `Corrupt` when the side file cannot be read.
    pub fn at(store: Arc<dyn Store>, key: &str) -> Result<Look> {
        let entry = store.entry(key)?;
        // Asked before the folder is listed.
        let folder_id = if entry.is_folder { store.folder_id(key) } else { None };
        let mut look = Look {
            store,
            key: key.to_string(),
            is_folder: entry.is_folder,
            entries: Vec::new(),
            head: Vec::new(),
            side: None,
            folder_id,
        };
        if entry.is_folder {
            look.entries = look.store.walk(key).map_err(|e| look.replaced().unwrap_or(e))?;
        }
        look.read_again()?;
        Ok(look)
    }

    // What was seen, in another store of the same names; what was read of it is read there once more.
    fn within(&self, store: Arc<dyn Store>) -> Result<Look> {
        let mut look = Look {
            store,
            key: self.key.clone(),
            is_folder: self.is_folder,
            entries: self.entries.clone(),
            head: Vec::new(),
            side: None,
            folder_id: self.folder_id,
        };
        look.read_again()?;
        Ok(look)
    }

    // The first bytes of a file, and the side file.
    fn read_again(&mut self) -> Result<()> {
        if !self.is_folder {
            let object = self.store.open(&self.key)?;
            let mut scratch = Vec::new();
            self.head = object.read(0, object.size().min(4096) as usize, &mut scratch)?.to_vec();
        }
        self.side = SideFile::find(self).map_err(|e| self.replaced().unwrap_or(e))?;
        Ok(())
    }

    /// The same, in a store that holds every block it reads against its sum, where one was kept.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn held_against_sums(&self) -> Result<Look> {
        let own = |object: &dyn Object| may_lack_sums(object).map(|_| true);
        self.within(Arc::new(Checked::new(self.store.clone(), INDEX_FOLDER, own)))
    }

    /// The error that another folder lies there by now: whoever writes a data set anew puts a new folder in its place, and
    /// files of both would be no data set.
    fn replaced(&self) -> Option<Error> {
        let then = self.folder_id?;
        (self.store.folder_id(&self.key) != Some(then)).then(|| {
            Error::new(Kind::Stale, "the folder was replaced by another one while it was opened")
                .at(self.display())
                .hint("open it again")
        })
    }

    /// The keys below it, relative to it; sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.iter().map(|entry| self.name_of(&entry.key))
    }

    /// A key below it, relative to it.
    fn name_of<'k>(&self, key: &'k str) -> &'k str {
        &key[if self.key.is_empty() { 0 } else { self.key.len() + 1 }..]
    }

    /// The key of something below this folder.
    pub fn below(&self, name: &str) -> String {
        key::below(&self.key, name)
    }

    /// What a person calls it.
    pub fn display(&self) -> String {
        self.store.display(&self.key)
    }

    // Whether a file is so small that it may describe other data.
    fn is_small(&self) -> bool {
        const MOST: u64 = 64 << 10;
        self.store.entry(&self.key).is_ok_and(|entry| entry.size <= MOST)
    }

    /// Last part of the key in lower case.
    pub fn file_name(&self) -> String {
        key::name_of(&self.display()).to_ascii_lowercase()
    }
}

/// How to open; what is not said is found out.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Name of the format; `None` recognises it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// dtype of a stored number, where the files do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Ids must be below this; checked once over all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocab_size: Option<u64>,
    /// The id that ends each document of raw token files: documents are records then. Found once, kept in the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eos: Option<i64>,
    /// Name of the index folder of the byte-offset format, `index` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_folder: Option<String>,
    /// Hash of the tokenizer that must have made the tokens; the face takes its name or path as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// Accept files that an index names outside its base folder.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_outside: bool,
    /// Accept data whose size or time differs from what the side file says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trust: bool,
    /// Read missing chunks of a chunked array as zeros instead of refusing them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fill_missing: bool,
    /// Bytes that what is expanded or converted once may take in the cache; if not given 1,000 times a compressed file, 16
    /// times a series that is converted, and 64 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_limit: Option<u64>,
    /// Bytes of decoded chunks that an opened chunked array keeps in memory; 256 MiB if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// The split that is meant, `train` or `validation`: the folder of that name below the path, where the face goes, else
    /// the files whose names say it ([`Look::only_split`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// A part of the records, as a split made it; the face takes it out of what a format opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// The key whose values are the series, of records that are objects; `sequence` if not given, else the only key of
    /// numbers that the first record has. The others are extras.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What the first axis of an array is; if not given, `[N, T]` are N series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// How local files are read.
    pub io: crate::store::Io,
    /// When what was written is held against the block sums that were kept of it.
    #[serde(skip_serializing_if = "is_at_opening")]
    pub verify: Verify,
}

/// What the first axis of an array `[T, C]` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Time: the array is one series of C channels.
    Time,
}

/// When damage is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Sizes, headers and indices when the data is opened.
    #[default]
    AtOpening,
    /// Also every block of 4 KiB that is read, each time, against its block sum; data without them is refused.
    Always,
}

fn is_at_opening(verify: &Verify) -> bool {
    *verify == Verify::AtOpening
}

impl Options {
    // Where records are no token ids, the options that speak of them are refused rather than forgotten.
    fn refuse_those_of_ids(&self, why: &str, hint: &str) -> Result<()> {
        let asked = [
            ("dtype", self.dtype.is_some()),
            ("vocab_size", self.vocab_size.is_some()),
            ("tokenizer", self.tokenizer.is_some()),
        ];
        match asked.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => {
                Err(Error::config(format!("{name} was given, but {why}")).field(*name).hint(hint))
            }
        }
    }
}

/// One of the two parts that a seeded split by whole records gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Records of the validation part.
    pub n_validation: u64,
    /// Keys which records these are.
    pub seed: u64,
    /// This is the validation part; else it is all that is left.
    pub is_validation: bool,
}

/// Opens what `look` sees by the format that `options` names, or by the one in `table` that is surest.
///
/// # Errors
/// `Unrecognised` when none is; `Config` when the named one does not exist; what [`Format::open`] says.
pub fn open(table: &[&dyn Format], look: &Look, options: &Options) -> Result<SharedSource> {
    let checked = match options.verify {
        Verify::AtOpening => None,
        Verify::Always => {
            let index_folder = options.index_folder.as_deref().unwrap_or(INDEX_FOLDER);
            Some(look.within(Arc::new(Checked::new(look.store.clone(), index_folder, may_lack_sums)))?)
        }
    };
    let look = checked.as_ref().unwrap_or(look);
    // Who names an index folder means that index, whatever else lies there.
    let by_index = options.index_folder.as_ref().map(|_| Forager.name());
    let format = choose(table, look, options.format.as_deref().or(by_index))?;
    let format = keyed::instead(format, look, options);
    keyed::check(format, look, options)?;
    if options.eos.is_some() && format.name() != Tokens.name() {
        return Err(Error::config(format!("eos was given, but {} has records of its own", format.name()))
            .at(look.display())
            .field("eos")
            .hint("it cuts raw token files into documents; between records, pack(…, eos=…) puts an end id"));
    }
    if look.is_folder {
        splits::refuse_several(format.joins(look).iter().map(String::as_str), &look.display())?;
    }
    open_as(format, look, options)
}

// Side files have a hash of their own. Prompts may come from elsewhere, and earlier versions kept no sums of theirs.
fn may_lack_sums(object: &dyn Object) -> Result<bool> {
    let name = key::name_of(object.name());
    if name.ends_with(SIDE_FILE) {
        SideFile::check_hash(object)?;
    }
    Ok(name.ends_with(SIDE_FILE) || name == TRACKS_METADATA || (name.ends_with(".txt") && name != FILE_LIST))
}

/// Opens what `look` sees by this format: all of it, or an error where it was replaced meanwhile.
fn open_as(format: &dyn Format, look: &Look, options: &Options) -> Result<SharedSource> {
    let opened = open_and_check(format, look, options);
    look.replaced().map_or(opened, Err)
}

/// Holds what the side file says of files and records against them.
fn open_and_check(format: &dyn Format, look: &Look, options: &Options) -> Result<SharedSource> {
    let told = look.side.as_ref().filter(|side| side.format == format.name() && !options.trust);
    match told.filter(|_| !format.checks_side_file()) {
        Some(side) => {
            side.check_files(look)?;
            let source = format.open(look, options)?;
            side.check_records(source.as_ref(), look)?;
            Ok(source)
        }
        None => format.open(look, options),
    }
}

/// The format that is asked for, or the surest one.
///
/// # Errors
/// `Unrecognised`, `Config`.
pub fn choose<'t>(table: &[&'t dyn Format], look: &Look, named: Option<&str>) -> Result<&'t dyn Format> {
    let names = || table.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ");
    if let Some(name) = named {
        return table.iter().copied().find(|f| f.name() == name).ok_or_else(|| {
            Error::config(format!("no format is called {name:?}")).hint(format!("formats: {}", names()))
        });
    }
    let mut best: Option<(Certainty, &'t dyn Format)> = None;
    for &format in table {
        let certainty = format.recognise(look);
        if certainty > best.map_or(Certainty::No, |b| b.0) {
            best = Some((certainty, format));
        }
    }
    // A name alone tells less than the side file: half of a pair is no stream of ids.
    let sure = best.filter(|b| b.0 == Certainty::Yes).map(|b| b.1);
    let told = || look.side.as_ref().and_then(|side| table.iter().copied().find(|f| f.name() == side.format));
    sure.or_else(told).or(best.map(|b| b.1)).ok_or_else(|| unrecognised(look, &names()))
}

// That no format reads it, and what it is where that can be told.
fn unrecognised(look: &Look, formats: &str) -> Error {
    let error = |what: String| {
        Error::new(Kind::Unrecognised, format!("no format recognises it: {what}")).at(look.display())
    };
    if look.is_folder {
        if is_zarr(look) {
            return error("found a zarr array or group without flat tokens in it".to_string()).hint(
                "flat-tokens are `encoded_tokens` and `seq_starts`; wr.write_tokens writes ids of an array",
            );
        }
        // Formats whose files lie side by side see none below; each of these folders may be one of theirs.
        let splits = splits::among(look.names().filter(|name| name.contains('/')));
        return match (foreign::among(look.names()), look.names().next()) {
            (None, _) if splits.len() > 1 => splits::several(&splits, &look.display()),
            (Some((name, kind)), _) => error(format!("found {name:?}: {}", kind.not_read())).hint(kind.hint),
            (None, None) => {
                error("found an empty folder".to_string()).hint(format!("say which with format=…: {formats}"))
            }
            (None, Some(first)) => error(format!(
                "found a folder of {} files, first {first:?}",
                look.entries.len()
            ))
            .hint(match look.names().any(json_kind::may_hold_records) {
                true => "its .json files are documents that hold no series; format=\"jsonl\" reads an object a file".to_string(),
                false => format!("say which with format=…: {formats}"),
            }),
        };
    }
    let object = look.store.open(&look.key).ok();
    let by_content = object.and_then(|object| foreign::of(object.as_ref()).ok().flatten());
    if let Some(kind) = by_content.or_else(|| foreign::named(&look.key)) {
        return error(kind.not_read()).hint(kind.hint);
    }
    let start = String::from_utf8_lossy(&look.head[..look.head.len().min(16)]).into_owned();
    error(format!("found a file starting {start:?}")).hint(match Compression::of_head(&look.head) {
        Some(_) => "expand it first: of compressed files .jsonl, .json, .yaml, .npy, .pkl and .bin are read"
            .to_string(),
        None => format!("say which with format=…: {formats}"),
    })
}

// A walk leaves out the names of version 2.
fn is_zarr(look: &Look) -> bool {
    ["zarr.json", ".zarray", ".zgroup"].iter().any(|name| look.store.entry(&look.below(name)).is_ok())
}
