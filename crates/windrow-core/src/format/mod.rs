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
mod options;
mod pickle;
mod probe;
mod series_json;
mod shards;
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
pub use options::{Axis, Options, Split, Verify};
pub use pickle::Pickle;
pub use probe::Look;
pub use series_json::{SeriesJson, SeriesJsonLines};
pub use shards::Shards;
pub(crate) use shards::{OtherSize, TOLD as SHARDS_TOLD};
pub use tokens::Tokens;
pub use torch::{Saved, SavedTensor};
pub(crate) use vocabulary::first_outside;
pub use yaml::Yaml;

use crate::error::{Error, Kind, Result};
use crate::manifest::{Checked, SIDE_FILE, SideFile};
use crate::source::SharedSource;
use crate::store::{Compression, Object, key};

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
            look.check_files(side)?;
            let source = format.open(look, options)?;
            side.check_records(source.len(), &look.display())?;
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
