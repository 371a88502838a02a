//! What an on-disk layout is to the engine: it recognises itself, checks every claim before it believes it, opens as a
//! source, may write, and may verify.
//!
//! Contracts only, and what all formats rest on; no format is named here.

mod checksum_rules;
mod choice;
pub mod columns;
pub mod data_files;
pub mod discover;
mod folder_columns;
pub mod foreign;
mod index;
mod info;
pub mod lake;
pub mod later;
pub mod lines;
pub mod masks;
pub mod numbers;
mod option;
mod options;
mod probe;
pub mod splits;
pub mod verify;
pub mod vocabulary;
pub mod write;

use std::sync::Arc;

use checksum_rules::FormatRules;
pub use choice::{Choice, MOST_IN_TEXT, Split};
pub use folder_columns::with_folder_columns;
pub use index::LineIndex;
pub use info::{FileNames, FormatInfo, Holds};
pub use masks::{MASK_COLUMNS, learned, learned_of, masks_beside};
pub use option::{COLUMN, COLUMNS, OpenOption, OptionRow, TO_COLUMN, Takes, default_of};
pub use options::{Axis, BorderOfEach, Options, Payload, PeriodOfEach};
pub use probe::{PartOf, Probe};
use write::{OwnOptions, Parts, WriteFormat};

use crate::error::{Error, Kind, Result};
use crate::manifest::{Checked, Manifest, PARTS};
use crate::source::SharedSource;
use crate::store::{Compression, Object, key, or_encoded, some_of};

/// Formats, in the order in which they are asked.
pub type Table = &'static [&'static dyn Format];

/// One on-disk layout.
pub trait Format: Send + Sync {
    /// Its description, and which options it follows.
    fn info(&self) -> &'static FormatInfo;

    /// Its name: what `format=` takes and `inspect` prints.
    fn name(&self) -> &'static str {
        self.info().name
    }

    /// Whether this is it. Looks at names and the first bytes only.
    fn recognise(&self, probe: &Probe) -> Confidence;

    /// Whether the content says that it is this, whatever its files are called. Asked where no name says what it is.
    fn is_content(&self, probe: &Probe) -> bool {
        let _ = probe;
        false
    }

    /// Whether a file that this format would read describes other data instead, where it is in a folder of series.
    fn is_description(&self, probe: &Probe) -> bool {
        let _ = probe;
        false
    }

    /// The files of a folder that it would join, relative to it, where words in their names may tell splits that are kept
    /// apart.
    fn joins(&self, probe: &Probe) -> Vec<String> {
        let _ = probe;
        Vec::new()
    }

    /// Opens files of one store as one data set whose columns may differ, in this order; `probe` looks at the first. `None` where
    /// the format joins no columns.
    fn open_files(&self, probe: &Probe, keys: &[String], options: &Options) -> Option<Result<SharedSource>> {
        let _ = (probe, keys, options);
        None
    }

    /// Whether a folder says itself which of its files are of a split, so that [`Options::split`] names one and words in names
    /// tell nothing.
    fn defines_splits(&self, probe: &Probe) -> bool {
        let _ = probe;
        false
    }

    /// Keys below it that are data sets of their own, where it is one of several: the splits of a corpus.
    fn parts(&self, probe: &Probe) -> Vec<String> {
        let _ = probe;
        Vec::new()
    }

    /// Its manifest, where that lies neither in the folder nor beside the file.
    ///
    /// # Errors
    /// `Corrupt` when the manifest cannot be read; `Io`.
    fn find_manifest(&self, probe: &Probe) -> Result<Option<Manifest>> {
        let _ = probe;
        Ok(None)
    }

    /// How it is written, with the options of its own, which it takes out of `options`; `None` where it is only read.
    ///
    /// # Errors
    /// `Config` for a value that an option cannot have.
    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        let _ = options;
        Ok(None)
    }

    /// How an index of lines beside the data is written; `None` for all other formats.
    fn line_index(&self) -> Option<&'static dyn LineIndex> {
        None
    }

    /// How its files are arranged where it is made in parts.
    fn in_parts(&self) -> Option<&'static dyn Parts> {
        None
    }

    /// The format that these options mean where this one recognised the files.
    fn meant_by(&self, probe: &Probe, options: &Options) -> Option<&'static dyn Format> {
        let _ = (probe, options);
        None
    }

    /// How it is verified.
    fn verifier(&self) -> &dyn verify::Verify {
        &verify::ByReading
    }

    /// Opens it as a source.
    ///
    /// # Errors
    /// `Corrupt` when a claim in the files does not hold; `Stale` when data changed after it was indexed; `Config`.
    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource>;
}

/// How sure a format is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Not this.
    No,
    /// The name fits, nothing contradicts it.
    Maybe,
    /// The content says so.
    Yes,
}

impl Confidence {
    /// [`Confidence::Yes`] where it is, else [`Confidence::No`].
    pub fn yes_if(is_it: bool) -> Confidence {
        if is_it { Confidence::Yes } else { Confidence::No }
    }
}

/// Opens what `probe` sees by the format that `options` names, or by the one in `table` that is surest.
///
/// # Errors
/// `Unrecognised` when none is; `Config` when the named one does not exist; what [`Format::open`] says.
pub fn open(table: &[&dyn Format], probe: &Probe, options: &Options) -> Result<SharedSource> {
    opened(table, probe, options).map_err(|e| or_encoded(e, probe.store.as_ref()))
}

fn opened(table: &[&dyn Format], probe: &Probe, options: &Options) -> Result<SharedSource> {
    let checked = checked(probe, options)?;
    let probe = checked.as_ref().unwrap_or(probe);
    lake::refuse(probe)?;
    let format = choose(table, probe, options.format.as_deref().or(options.chosen(table)))?;
    let format = format.meant_by(probe, options).unwrap_or(format);
    options.only_those_of(table, format.info()).map_err(|e| e.at(probe.display()))?;
    if probe.is_folder {
        splits::refuse_in(probe, format.joins(probe).iter().map(String::as_str))?;
    }
    let open = |options: &Options| open_as(format, probe, options);
    let opened = if probe.is_folder {
        with_folder_columns(&probe.display(), probe.names(), options, open)
    } else {
        open(options)
    };
    let source = opened.map_err(|e| match e.kind() {
        Kind::NotFound => probe.only_hidden().unwrap_or(e),
        _ => e,
    })?;
    learned(source, options).map_err(|e| e.or_at(probe.display()))
}

/// Opens files of one store as one data set whose columns may differ, in this order; `probe` looks at the first. `None` where its
/// format joins no columns.
///
/// # Errors
/// As [`open`].
pub fn open_files(
    table: &[&dyn Format],
    probe: &Probe,
    keys: &[String],
    options: &Options,
) -> Result<Option<SharedSource>> {
    let checked = checked(probe, options)?;
    let probe = checked.as_ref().unwrap_or(probe);
    let format = choose(table, probe, options.format.as_deref().or(options.chosen(table)))?;
    options.only_those_of(table, format.info()).map_err(|e| e.at(probe.display()))?;
    let Some(source) = format.open_files(probe, keys, options) else { return Ok(None) };
    learned(source?, options).map_err(|e| e.or_at(probe.display())).map(Some)
}

// The same place, where every block that is read is verified.
fn checked(probe: &Probe, options: &Options) -> Result<Option<Probe>> {
    if !options.verify_checksums {
        return Ok(None);
    }
    let rules = FormatRules::strict(probe.table, options);
    probe.within(Arc::new(Checked::new(probe.store.clone(), rules))).map(Some)
}

/// The format of `table` that is an index of lines.
///
/// # Errors
/// `Config` when none is.
pub fn line_index(table: &[&dyn Format]) -> Result<&'static dyn LineIndex> {
    let found = table.iter().find_map(|format| format.line_index());
    found.ok_or_else(|| Error::config("none of these formats is an index of lines"))
}

/// The format of `table` whose data sets are made in parts.
///
/// # Errors
/// `Config` when none is.
pub fn in_parts(table: &[&dyn Format]) -> Result<&'static dyn Parts> {
    let found = table.iter().find_map(|format| format.in_parts());
    found.ok_or_else(|| Error::config("none of these formats is made in parts"))
}

/// The file that is one data set together with the file of this name, as a format of `table` says.
pub fn other_half(table: &[&dyn Format], name: &str) -> Option<String> {
    table.iter().find_map(|format| (format.info().names.other_half)(name))
}

/// Files beside the one of this name that are read with it, where they are there, as the formats of `table` say.
pub fn companions(table: &[&dyn Format], name: &str) -> Vec<String> {
    let names = table.iter().map(|format| &format.info().names);
    names.flat_map(|names| (names.companions)(name).into_iter().chain((names.other_half)(name))).collect()
}

/// The manifest in `object`, which is kept beside the file `name` and may have been copied or renamed with it.
///
/// # Errors
/// As [`Manifest::read`]; `Corrupt` where it is one of other files.
pub fn manifest_beside(table: &[&dyn Format], object: &dyn Object, name: &str) -> Result<Manifest> {
    Manifest::read(object)?.of_file(name, other_half(table, name).as_deref(), object.name())
}

/// What opening takes: options of every format, those of some in `table`, each once, and those of stores.
pub fn open_options(table: &[&dyn Format]) -> Vec<&'static OptionRow> {
    let mut all: Vec<&'static OptionRow> = option::READING.iter().collect();
    for option in table.iter().flat_map(|format| format.info().open_options) {
        if all.iter().all(|known| known.name != option.row.name) {
            all.push(&option.row);
        }
    }
    all.extend(option::STORES);
    all
}

/// What `table` says of the format of this name.
pub fn info_of(table: &[&dyn Format], name: &str) -> Option<&'static FormatInfo> {
    table.iter().map(|format| format.info()).find(|info| info.name == name)
}

/// Opens what `probe` sees by this format: all of it, or an error where it was replaced meanwhile.
pub fn open_as(format: &dyn Format, probe: &Probe, options: &Options) -> Result<SharedSource> {
    let opened = open_and_check(format, probe, options);
    probe.replaced().map_or(opened, Err)
}

/// Holds what the manifest says of files and records against them.
fn open_and_check(format: &dyn Format, probe: &Probe, options: &Options) -> Result<SharedSource> {
    if let Some(listing) = probe.listing.as_ref().filter(|_| !options.trust) {
        probe.check_listing(listing)?;
    }
    let described =
        probe.manifest.as_ref().filter(|manifest| manifest.format == format.name() && !options.trust);
    match described.filter(|_| !format.info().checks_manifest) {
        Some(manifest) => {
            probe.check_files(manifest)?;
            let source = format.open(probe, options)?;
            manifest.check_records(source.len(), &probe.display())?;
            Ok(source)
        }
        None => format.open(probe, options),
    }
}

/// The format that is asked for, or the surest one.
///
/// # Errors
/// `Unrecognised`, `Config`; an error met while probing.
pub fn choose<'t>(table: &[&'t dyn Format], probe: &Probe, named: Option<&str>) -> Result<&'t dyn Format> {
    let names = || table.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ");
    if let Some(name) = named {
        return table.iter().copied().find(|f| f.name() == name).ok_or_else(|| {
            Error::config(format!("no format is called {name:?}")).hint(format!("formats: {}", names()))
        });
    }
    recognised(table, probe)?.ok_or_else(|| unrecognised(probe, &names()))
}

// The surest format, if any.
fn recognised<'t>(table: &[&'t dyn Format], probe: &Probe) -> Result<Option<&'t dyn Format>> {
    // Nothing but the manifest was looked at, and each format that looks for files asks the store.
    let in_parts = probe.manifest.as_ref().filter(|manifest| probe.is_folder && manifest.format == PARTS);
    if let Some(format) = in_parts.and_then(|_| table.iter().copied().find(|f| f.in_parts().is_some())) {
        return Ok(Some(format));
    }
    if let Some(format) = declared(table, probe) {
        return Ok(Some(format));
    }
    let surest = || {
        let mut best: Option<(Confidence, &'t dyn Format)> = None;
        for &format in table {
            let certainty = format.recognise(probe);
            if certainty > best.map_or(Confidence::No, |b| b.0) {
                best = Some((certainty, format));
            }
            // No later one can be surer, and some look into files.
            if certainty == Confidence::Yes {
                return best;
            }
        }
        // Bytes say more than a name that fits.
        let by_content = table.iter().copied().find(|format| format.is_content(probe));
        by_content.map(|format| (Confidence::Yes, format)).or(best)
    };
    // A file beside it that nobody could ask for may be what makes it another format.
    let best = match probe.store.noted() {
        Some(noted) => noted.during(surest)?,
        None => surest(),
    };
    // A name alone tells less than the manifest: half of a pair is not a stream of IDs.
    let sure = best.filter(|b| b.0 == Confidence::Yes).map(|b| b.1);
    let is_half = |format: &dyn Format| {
        let other = (format.info().names.other_half)(key::name_of(&probe.key));
        let listed = probe.manifest.iter().flat_map(|manifest| &manifest.files);
        other.is_some_and(|other| listed.into_iter().any(|row| row.name == other))
    };
    let by_manifest = || {
        probe
            .manifest
            .as_ref()
            .and_then(|manifest| table.iter().copied().find(|f| f.name() == manifest.format))
            // A part of a data set need not be one; half of a pair is, and says that the other is gone.
            .filter(|format| {
                probe.part_of.is_none() || is_half(*format) || format.recognise(probe) > Confidence::No
            })
    };
    // Nor is it numbers because any bytes are.
    let are_numbers = |format: &&dyn Format| format.verifier().content() == verify::Content::Unknown;
    let may_be = |format: &&dyn Format| {
        probe.part_of.as_ref().is_none_or(|part_of| part_of.is_bare || !are_numbers(format))
    };
    Ok(sure.or_else(by_manifest).or(best.map(|b| b.1).filter(may_be)))
}

// The format that opened the files of a folder when its manifest was written: to ask each which it is, some look into files.
fn declared<'t>(table: &[&'t dyn Format], probe: &Probe) -> Option<&'t dyn Format> {
    let catalogue = probe.store.catalogue(&probe.key).filter(|_| probe.is_folder)?;
    let name = catalogue.declared.as_ref()?.opened_by()?;
    table.iter().copied().find(|format| format.name() == name)
}

// The error that no format reads it, with what it is where that is known.
fn unrecognised(probe: &Probe, formats: &str) -> Error {
    let kinds = foreign::listed(probe.table);
    let error = |what: String| {
        Error::new(Kind::Unrecognised, format!("no format recognises it: {what}")).at(probe.display())
    };
    if let (Some(part_of), Some(manifest)) = (&probe.part_of, &probe.manifest) {
        return error(format!("it is part of a data set of {}", manifest.format))
            .hint(format!("open all of it: {}", part_of.folder));
    }
    if probe.is_folder {
        if let Some(error) = probe.only_hidden().filter(|_| !is_zarr(probe)) {
            return error;
        }
        if is_zarr(probe) {
            return error("found a zarr array or group without flat tokens in it".to_string()).hint(
                "flat-tokens are `encoded_tokens` and `seq_starts`; @write@ with @to=\"flat-tokens\"@ writes them",
            );
        }
        // Formats whose files lie side by side see none below; each of these folders may be one of theirs.
        let splits = splits::among(probe.names().filter(|name| name.contains('/')));
        return match (foreign::among(kinds, probe.names()), probe.names().next()) {
            (found, _) if splits.len() > 1 && found.is_none_or(|(_, kind)| kind.hint.is_read) => {
                splits::several(&splits, &probe.display())
            }
            (Some((name, kind)), _) => error(format!("found {name:?}: {}", kind.described()))
                .hint(in_a_folder(probe).unwrap_or_else(|| kind.hint.text.to_string())),
            (None, None) => error("found an empty folder".to_string())
                .hint(format!("say which with @format=…@: {formats}")),
            (None, Some(first)) => error(format!(
                "found a folder of {} files, first {first:?}{}",
                probe.entries.len(),
                if probe.hidden.is_empty() {
                    String::new()
                } else {
                    format!("; hidden: {}", some_of(&probe.hidden))
                }
            ))
            .hint(match (in_a_folder(probe), probe.names().any(lines::may_hold_records)) {
                (Some(hint), _) => hint,
                (None, true) => {
                    "its .json files are documents that hold no series; @format=jsonl@ reads an object a file"
                        .to_string()
                }
                (None, false) => format!("say which with @format=…@: {formats}"),
            }),
        };
    }
    let object = probe.store.open(&probe.key).ok();
    let by_content = object.and_then(|object| foreign::of(kinds, object.as_ref()).ok().flatten());
    if let Some(kind) = by_content.or_else(|| foreign::named(kinds, &probe.key)) {
        return error(kind.described()).hint(kind.hint.text);
    }
    let start = String::from_utf8_lossy(&probe.head[..probe.head.len().min(16)]).into_owned();
    error(format!("found a file starting {start:?}")).hint(match Compression::of_head(&probe.head) {
        Some(_) => "expand it first: of compressed files .jsonl, .json, .yaml, .npy, .pkl and .bin are read"
            .to_string(),
        None => format!("say which with @format=…@: {formats}"),
    })
}

// To open the first folder in a folder, where that is of a format whose files lie side by side.
fn in_a_folder(probe: &Probe) -> Option<String> {
    let (name, _) = probe.names().find_map(|name| name.split_once('/'))?;
    let inner = Probe::at(probe.table, probe.store.clone(), &probe.below(name)).ok()?;
    // Not deeper: a folder may hold thousands, one in the other.
    let format = recognised(probe.table, &inner).ok()??;
    Some(format!("the folder {name:?} in it is {}: open that one", format.info().title))
}

// Parts of an array, or of a group, and no names that somebody hid.
fn is_of_zarr(name: &str) -> bool {
    [".zarray", ".zattrs", ".zgroup", ".zmetadata"].contains(&crate::store::key::name_of(name))
}

// A walk leaves out the names of version 2.
fn is_zarr(probe: &Probe) -> bool {
    ["zarr.json", ".zarray", ".zgroup"].iter().any(|name| probe.store.entry(&probe.below(name)).is_ok())
}
