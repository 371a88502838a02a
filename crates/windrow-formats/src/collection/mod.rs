//! A folder of many series: every file and shard folder below it, each read by its own format, joined.

mod verify;

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_core::format::discover::{natural_order, refuse_copies};
use windrow_core::format::later::{self, OpenFile};
use windrow_core::format::lines::{self, json_kind};
use windrow_core::format::verify::Verify;
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, choose, open_as, splits};
use windrow_core::manifest::MANIFEST_FILE;
use windrow_core::source::{Concat, SharedSource};
use windrow_core::store::key;
use windrow_core::{Error, Kind, Result};

use super::shards::META;
use super::{FORMATS, JsonArray, SeriesJson};
use crate::empty_part::is_empty_part;
use crate::open_options::{AXIS, COLUMN, COLUMNS};
use crate::shards::Shards;

/// A folder of series files and shard folders.
#[derive(Clone, Copy, Debug)]
pub struct Collection;

static INFO: FormatInfo = FormatInfo {
    name: "collection",
    title: "Folder of series",
    layout: "series files and shard folders at any depth below a folder, in natural order",
    records: "those of each file by its own format, joined; numbers of different types leave as float32",
    written_by: "any program",
    holds: &[Holds::Series],
    open_options: &[AXIS, COLUMN, COLUMNS],
    // Beside series there may be what no format takes for any.
    shares_folder: true,
    is_declared: true,
    ..FormatInfo::NONE
};

impl Format for Collection {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        if !probe.is_folder {
            return Confidence::No;
        }
        let units = units(probe);
        // Lines may be series too: the first file of them tells.
        match units
            .iter()
            .find(|name| lines::is_named(name))
            .map(|name| opener(probe, name, &Options::default()))
        {
            Some(Ok(Some(_))) => Confidence::Yes,
            // A folder with files of text or IDs is read as those: their formats are asked before this one.
            _ if units.iter().any(|name| !lines::is_named(name) && may_be_series(probe, name)) => {
                Confidence::Maybe
            }
            _ => Confidence::No,
        }
    }

    fn joins(&self, probe: &Probe) -> Vec<String> {
        let mut names = units(probe);
        // Settings beside the series of a split are none of them.
        if !splits::among(names.iter().map(String::as_str)).is_empty() {
            names.retain(|name| !matches!(opener(probe, name, &Options::default()), Ok(None)));
        }
        names
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Collection
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let options = Options { format: None, index_folder: None, ..options.clone() };
        if let Some(parts) = later::parts(self.name(), probe, &options, open_one(probe, &options)) {
            return Ok(Arc::new(Concat::new(self.name(), parts)?));
        }
        let names = units(probe);
        let n_left_out = named_as_series(probe.names()).len() - names.len();
        if n_left_out > 0 {
            windrow_core::warn!("{}: {n_left_out} tables beside the series are left out", probe.display());
        }
        refuse_copies(names.iter().map(String::as_str), |name| probe.store.display(&probe.below(name)))?;
        let mut parts: Vec<(String, SharedSource)> = Vec::with_capacity(names.len());
        let mut empty = None;
        for name in &names {
            let Some((format, below)) = opener(probe, name, &options)? else {
                let level =
                    if json_kind::is_description(name) { log::Level::Debug } else { log::Level::Warn };
                log::log!(level, "{}: no series, left out of the folder's", probe.below(name));
                continue;
            };
            if options.columns.is_some() && !format.info().takes("columns") {
                let asked = Options { columns: options.columns.clone(), ..Options::default() };
                asked.only_those_of(probe.table, format.info()).map_err(|e| e.at(below.display()))?;
            }
            let part = match open_as(format, &below, &options).map_err(|e| e.or_at(below.display())) {
                Err(e) if is_empty_part(&below) => {
                    empty.get_or_insert(e);
                    continue;
                }
                part => part?,
            };
            log::debug!("{}: {} records of {}", below.display(), part.len(), format.name());
            parts.push((below.key, part));
        }
        // Nothing but parts without a record is no data.
        if let (true, Some(e)) = (parts.is_empty(), empty) {
            return Err(e);
        }
        if parts.is_empty() {
            return Err(Error::not_found(format!(
                "expected series below the folder, found none among {} files",
                probe.entries.len()
            ))
            .at(probe.display())
            .hint(format!("series are shard folders, and files ending in {}", suffixes().join(", "))));
        }
        // What holds nothing has no say in what the records have in common, unless there is nothing else.
        if parts.iter().any(|(_, part)| !part.is_empty()) {
            parts.retain(|(_, part)| !part.is_empty());
        }
        later::note(probe, &options, &parts)?;
        Ok(Arc::new(Concat::new(self.name(), parts.into_iter().map(|(_, part)| part).collect())?))
    }
}

// Opens one of the files below it.
fn open_one(probe: &Probe, options: &Options) -> OpenFile {
    let (table, store, options) = (probe.table, probe.store.clone(), options.clone());
    Box::new(move |key| {
        let folder = Probe::of_names(table, store.clone(), "", Vec::new());
        let (format, below) = opener(&folder, key, &options)?
            .ok_or_else(|| Error::new(Kind::Unrecognised, "no series").at(store.display(key)))?;
        open_as(format, &below, &options).map_err(|e| e.or_at(below.display()))
    })
}

// Each series file and shard folder below it with the format that reads it; `None` where none does.
fn parts_of(
    probe: &Probe,
    options: &Options,
) -> impl Iterator<Item = Result<Option<(&'static dyn Format, Probe)>>> {
    let parts = units(probe).into_iter().map(|name| opener(probe, &name, options));
    let (empty, filled): (Vec<_>, Vec<_>) =
        parts.partition(|part| matches!(part, Ok(Some((_, below))) if is_empty_part(below)));
    if filled.iter().any(|part| matches!(part, Ok(Some(_)))) { filled } else { empty }.into_iter()
}

// What the names of series files end in, over all formats.
fn suffixes() -> Vec<&'static str> {
    FORMATS.iter().flat_map(|format| format.info().series_suffixes).copied().collect()
}

// A name may be that of something else, too: the content tells.
fn may_be_series(probe: &Probe, name: &str) -> bool {
    !matches!(opener(probe, name, &Options::default()), Ok(None))
}

// Series files and shard folders, in natural order of their names; tables only where there is nothing else.
fn units(probe: &Probe) -> Vec<String> {
    let mut names = named_as_series(probe.names());
    let formats = || FORMATS.iter().map(|format| format.info()).filter(|info| info.gives_way);
    let gives_way = |name: &String| formats().any(|info| info.is_series_name(name));
    let has_tables = names.iter().any(gives_way);
    if has_tables && names.iter().any(|name| !gives_way(name) && may_be_series(probe, name)) {
        names.retain(|name| !gives_way(name));
    }
    names
}

// The same by names alone; what is in a shard folder is part of it.
fn named_as_series<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
    let folder = |name: &str| key::folder_of(name).to_string();
    let described: BTreeSet<String> =
        names.clone().filter(|name| key::name_of(name) == META).map(folder).collect();
    let shards: BTreeSet<String> = names
        .clone()
        .filter(|name| name.ends_with(".bin"))
        .map(folder)
        .filter(|folder| described.contains(folder))
        .collect();
    let in_shards = |name: &str| {
        shards.contains("") || name.match_indices('/').any(|(at, _)| shards.contains(&name[..at]))
    };
    let suffixes = suffixes();
    let is_series = |name: &str| {
        let is_side = |name: &str| {
            name == META || name == MANIFEST_FILE || name.ends_with(&format!(".{MANIFEST_FILE}"))
        };
        suffixes.iter().any(|suffix| key::has_suffix(name, suffix)) && !is_side(key::name_of(name))
    };
    let outermost = shards.iter().filter(|folder| folder.is_empty() || !in_shards(folder));
    let files = names.filter(|name| is_series(name) && !in_shards(name)).map(str::to_string);
    let mut found: Vec<String> = outermost.cloned().chain(files).collect();
    found.sort_by(|a, b| natural_order(a, b).then_with(|| a.cmp(b)));
    found
}

// The series format that reads what is called `name`; `None` when another kind of format is surer.
fn opener(probe: &Probe, name: &str, options: &Options) -> Result<Option<(&'static dyn Format, Probe)>> {
    let key = if name.is_empty() { probe.key.clone() } else { probe.below(name) };
    let below = Probe::at(probe.table, probe.store.clone(), &key)?;
    if below.is_folder {
        return Ok(Some((&Shards, below)));
    }
    let format = match choose(FORMATS, &below, None) {
        // Below a folder of series a document is one of them, or says why it is not.
        Ok(format) if format.name() == JsonArray.name() => &SeriesJson,
        Ok(format) => format.meant_by(&below, options).unwrap_or(format),
        Err(e) if e.kind() == Kind::Unrecognised => return Ok(None),
        Err(e) => return Err(e),
    };
    let is_series = !format.info().series_suffixes.is_empty()
        && (options.column.is_some() || !format.is_description(&below));
    Ok(is_series.then_some((format, below)))
}
