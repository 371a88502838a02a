//! Arrow IPC streams and files, Feather 2 among them, and the folders that `datasets` saves them in.

mod saved;
mod write;

use std::sync::Arc;

use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{
    Confidence, Format, FormatInfo, Holds, Options, Probe, TO_COLUMN, discover, splits,
};
use windrow_core::source::SharedSource;
use windrow_core::store::{Object, key};
use windrow_core::{Error, Kind, Result};
use windrow_ipc::{Columns, Joined, Table};

use self::saved::{DICT, Saved};
use self::write::WriteArrow;
use windrow_core::format::columns;
use windrow_core::format::data_files::DataFiles;

use crate::open_options::{COLUMN, COLUMNS};

/// How the names of its files end.
const SUFFIXES: &[&str] = &[".arrow", ".feather", ".ipc"];
const MAGIC: &[u8] = b"ARROW1\0\0";
/// What a file of Feather 1 begins with, which is another format.
const FEATHER_1: &[u8] = b"FEA1";

/// Files of Arrow.
#[derive(Clone, Copy, Debug)]
pub struct Arrow;

static INFO: FormatInfo = FormatInfo {
    name: "arrow",
    title: "Arrow",
    layout: "`.arrow`, `.feather` and `.ipc` files, alone or in a folder; a folder of `datasets`' save_to_disk, each split one",
    records: "a row of the columns; with `column=`, or where the only column holds lists of numbers, its numbers [T] or [T, C] with the other columns beside them",
    written_by: "`windrow convert --to arrow`, `wr.write`, `datasets` (save_to_disk, its cache), pyarrow, pandas' to_feather",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: SUFFIXES,
    // Results of map and filter, indices among them, and a folder that is not finished.
    hidden: &[("cache-", ".arrow"), ("", ".incomplete")],
    open_options: &[COLUMN, COLUMNS],
    written_as: "one `.arrow` stream: rows, or numbers in a column `tokens` with their metadata beside it",
    write_options: &[TO_COLUMN],
    ..FormatInfo::NONE
};

impl Verify for Arrow {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        match out.read_by(format, probe)? {
            Opened::Before | Opened::Read(_) => Ok(()),
            Opened::Not(error)
                if !probe.is_folder || !matches!(error.kind(), Kind::Config | Kind::Mismatch) =>
            {
                out.found(error, &probe.display(), "content")
            }
            // Without a split that is named, none is opened; files whose columns differ are not read together.
            Opened::Not(error) if saved::is_saved(probe) => out.found(error, &probe.display(), "content"),
            Opened::Not(_) if probe.names().any(|name| name == DICT) => {
                for split in saved::splits(probe)? {
                    match Probe::at(probe.table, probe.store.clone(), &probe.below(&split)) {
                        Ok(split) => self.records(format, &split, out)?,
                        Err(error) => out.found(error, &probe.below(&split), "split")?,
                    }
                }
                Ok(())
            }
            Opened::Not(_) => {
                let splits = splits::grouped(&joined(probe), |key| probe.name_of(key));
                out.read_splits(format, probe, &splits, &|keys| {
                    let options = Options::default();
                    columns::open(open_files(probe, keys, &options)?, probe, &options)
                })
            }
        }
    }
}

impl Format for Arrow {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let is = if probe.is_folder {
            probe.names().any(|name| name == DICT) || saved::is_saved(probe) || !joined(probe).is_empty()
        } else {
            probe.head.starts_with(MAGIC) || is_named(&probe.key)
        };
        Confidence::yes_if(is)
    }

    fn joins(&self, probe: &Probe) -> Vec<String> {
        if probe.is_folder && !saved::is_saved(probe) {
            joined(probe).iter().map(|key| probe.name_of(key).to_string()).collect()
        } else {
            Vec::new()
        }
    }

    fn open_files(&self, probe: &Probe, keys: &[String], options: &Options) -> Option<Result<SharedSource>> {
        let samples = open_files(probe, keys, options);
        Some(samples.and_then(|samples| columns::open(samples, probe, options)))
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteArrow::of(options)?)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Arrow
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let samples = if !probe.is_folder {
            open_files(probe, std::slice::from_ref(&probe.key), options)?
        } else if saved::is_saved(probe) {
            let saved = Saved::read(probe)?;
            let samples = open_files(probe, &saved.data, options)?;
            if saved.indices.is_empty() {
                samples
            } else {
                samples.choose(tables(probe, &saved.indices, options)?.1)?
            }
        } else if probe.names().any(|name| name == DICT) {
            let names = saved::splits(probe)?;
            return match names.as_slice() {
                [only] => {
                    let inner = Probe::at(probe.table, probe.store.clone(), &probe.below(only))?;
                    self.open(&inner, options)
                }
                _ => Err(Error::config(format!("the folder holds several splits: {}", names.join(", ")))
                    .at(probe.display())
                    .field("split")
                    .hint("open one of them with @split@")),
            };
        } else {
            let keys = joined(probe);
            splits::refuse_in(probe, keys.iter().map(|key| probe.name_of(key)))?;
            if keys.is_empty() {
                return Err(Error::not_found("expected `.arrow` files, found none").at(probe.display()));
            }
            open_files(probe, &keys, options)?
        };
        columns::open(samples, probe, options)
    }
}

fn is_named(key: &str) -> bool {
    let name = key::name_of(key).to_ascii_lowercase();
    SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

// The files of a folder at any depth, in natural order; none where folders of `datasets` are below it.
fn joined(probe: &Probe) -> Vec<String> {
    if probe.names().any(|name| name.ends_with("/state.json")) {
        return Vec::new();
    }
    discover::among(&probe.entries, SUFFIXES).into_iter().map(|entry| entry.key.clone()).collect()
}

fn open_files(probe: &Probe, keys: &[String], options: &Options) -> Result<Joined> {
    let (files, tables) = tables(probe, keys, options)?;
    let columns = Columns::of(&tables, &|name| columns::is_asked(options, name))?;
    if let Some(column) = &options.column {
        columns.refuse_lacking(column, &tables, &mut tables.iter().map(Table::rows))?;
    }
    Joined::new(Arrow.name(), files, tables, &columns)
}

fn tables(probe: &Probe, keys: &[String], options: &Options) -> Result<(DataFiles, Vec<Table>)> {
    let objects = keys.iter().map(|key| probe.store.open(key)).collect::<Result<Vec<_>>>()?;
    let open = |object: &Arc<dyn Object>| {
        refuse_feather_1(object.as_ref())?;
        let usual = object.size().saturating_mul(1000).saturating_add(64 << 20);
        Table::open(object.clone(), options.cache_limit.unwrap_or(usual))
    };
    let tables = objects.iter().map(open).collect::<Result<Vec<_>>>()?;
    Ok((DataFiles::from_objects(probe.store.clone(), keys.to_vec(), objects), tables))
}

fn refuse_feather_1(object: &dyn Object) -> Result<()> {
    let mut head = [0; FEATHER_1.len()];
    if object.size() >= FEATHER_1.len() as u64 {
        object.read_into(0, &mut head)?;
    }
    if head == *FEATHER_1 {
        Err(Error::unsupported("a file of Feather 1")
            .at(object.name())
            .hint("write it as Feather 2: pandas.read_feather(OLD).to_feather(NEW)"))
    } else {
        Ok(())
    }
}
