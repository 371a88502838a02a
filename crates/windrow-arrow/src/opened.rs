//! Opens Parquet files, and checks them.

use windrow_core::format::columns;
use windrow_core::format::data_files::DataFiles;
use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Format, Options, Probe, discover, splits};
use windrow_core::source::SharedSource;
use windrow_core::{Error, Kind, Result};
use windrow_ipc::Columns;

use crate::file::File;
use crate::hub::Listed;
use crate::layout::{INFO, SUFFIXES, keys};
use crate::pages::{self, BadPage};
use crate::samples::Samples;
use crate::set::Files;
use crate::write::WriteParquet;

pub(crate) const VERIFIER: &dyn Verify = &BySplit;

/// What CRC-32 of pages does not cover.
const UNCOVERED: &str = "CRC-32 of pages covers the values of Parquet; the footer, with names and types, and the headers of pages have no \
                         checksum: they were read, not checked";

/// Reads all records, split by split.
struct BySplit;

impl Verify for BySplit {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        let keys = keys(probe);
        let before = out.findings.n_problems;
        keys.iter().try_for_each(|key| compare_pages(probe, key, out))?;
        if out.findings.n_problems > before {
            // Each of the others by itself.
            return keys
                .iter()
                .try_for_each(|key| out.read(format, &Probe::at(probe.table, probe.store.clone(), key)?));
        }
        match out.read_by(format, probe)? {
            Opened::Before | Opened::Read(_) => Ok(()),
            Opened::Not(error)
                if !probe.is_folder || !matches!(error.kind(), Kind::Config | Kind::Mismatch) =>
            {
                out.found(error, &probe.display(), "content")
            }
            // Without a split that is named, none is opened; files whose columns differ are not read together.
            Opened::Not(_) => {
                let splits = match Listed::each(probe, &keys)? {
                    Some(listed) => listed,
                    None => splits::grouped(&keys, |key| probe.name_of(key)),
                };
                out.read_splits(format, probe, &splits, &|keys| {
                    open_files(probe, keys.to_vec(), &Options::default())
                })
            }
        }
    }
}

// Pages that have a checksum are compared with it; a file with a bad one is reported once, and not record by record. What
// cannot be opened is found by reading.
fn compare_pages(probe: &Probe, key: &str, out: &mut Verifier<'_>) -> Result<()> {
    let name = probe.store.display(key);
    if out.was_read(&name) {
        return Ok(());
    }
    let file = match probe.store.open(key).and_then(File::open) {
        Ok(file) => file,
        Err(error) if error.is_of_the_run() => return Err(error),
        Err(_) => return Ok(()),
    };
    let (mut all, before) = (true, out.findings.n_problems);
    for chunk in file.chunks() {
        all &= pages::compare(file.object().as_ref(), chunk, &mut |bad| {
            if let Some(BadPage { byte, said, found }) = bad {
                let (what, said) = (format!("page at byte {byte}"), format!("CRC-32 {said:08x}"));
                out.findings.problem(&name, None, &what, said, format!("CRC-32 {found:08x}"));
            }
            out.step(0)
        })?;
    }
    if out.findings.n_problems > before {
        out.reads(name);
    } else if all {
        out.covers(&name, "CRC-32 of pages");
        // Once, however many files there are.
        if !out.findings.notes.iter().any(|note| note == UNCOVERED) {
            out.note(UNCOVERED.to_string());
        }
    }
    Ok(())
}

/// Whether a README lists the splits of a folder.
pub(crate) fn defines_splits(probe: &Probe) -> bool {
    // What is wrong with it is reported when it is opened.
    !matches!(Listed::of(probe, &keys(probe)), Ok(None))
}

pub(crate) fn writer(options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
    Ok(Some(Box::new(WriteParquet::of(options, INFO.name, SUFFIXES)?)))
}

/// Opens a file, or those of a folder.
///
/// # Errors
/// As [`Format::open`].
pub(crate) fn open(probe: &Probe, options: &Options) -> Result<SharedSource> {
    let keys = keys(probe);
    if keys.is_empty() {
        return Err(Error::not_found("expected `.parquet` files, found none").at(probe.display()));
    }
    let listed = Listed::of(probe, &keys)?;
    let keys = match &listed {
        Some(listed) => listed.chosen(options.split.as_deref(), probe)?,
        None => keys,
    };
    if probe.is_folder && listed.is_none() {
        splits::refuse_in(probe, keys.iter().map(|key| probe.name_of(key)))?;
    }
    open_files(probe, keys, options)
}

/// These files as one data set.
///
/// # Errors
/// As [`Format::open`].
pub(crate) fn open_files(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource> {
    if probe.is_folder {
        discover::refuse_missing_shards(keys.iter().map(String::as_str), |key| probe.store.display(key))?;
    }
    let objects = keys.iter().map(|key| probe.store.open(key)).collect::<Result<Vec<_>>>()?;
    let files = objects.iter().map(|object| File::open(object.clone())).collect::<Result<Vec<_>>>()?;
    let schemas = files.iter().map(File::schema).collect::<Result<Vec<_>>>()?;
    let all = Columns::of(&schemas, &|name| columns::is_asked(options, name))?;
    if let Some(column) = &options.column {
        all.refuse_lacking(column, &schemas, &mut files.iter().map(File::rows))?;
    }
    let data = DataFiles::from_objects(probe.store.clone(), keys, objects);
    let mut firsts = vec![0u64];
    for file in &files {
        let end = firsts[firsts.len() - 1].checked_add(file.rows());
        firsts.push(end.ok_or_else(|| {
            Error::corrupt("more rows together than 64 bits count").at(file.object().name())
        })?);
    }
    let files = Files { store: probe.store.clone(), files, firsts, limit: options.cache_limit };
    columns::open(Samples::new(INFO.name, files, data, &all, options), probe, options)
}
