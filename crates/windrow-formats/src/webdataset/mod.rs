//! WebDataset: archives (tar) whose members make up samples, by the part of their names before the first dot.

mod energon;
mod names;
mod samples;
mod table;
mod tar;
mod values;
mod verify;
mod write;

use windrow_core::format::verify::Verify;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, Takes, discover, splits};
use windrow_core::manifest::Manifest;
use windrow_core::option_rows;
use windrow_core::source::SharedSource;
use windrow_core::store::{expanded, key};
use windrow_core::{Error, Result};

use self::energon::{Chosen, Splits};
use self::samples::Samples;
use self::write::WriteWebDataset;
use windrow_core::format::columns;
use windrow_core::format::data_files::{DataFiles, names_to_join, top_files};

use crate::open_options::{COLUMN, COLUMNS};

const SUFFIXES: &[&str] = &[".tar", ".tar.gz", ".tgz", ".tar.zst"];
/// The suffix of the numbers that windrow writes.
const NUMBERS: &str = "npy";
/// How files end that are kept beside archives and are not their data.
const BESIDE: &[&str] = &[".json", ".yaml", ".yml", ".md", ".txt", ".idx"];

/// Archives of samples.
#[derive(Clone, Copy, Debug)]
pub struct WebDataset;

static INFO: FormatInfo = FormatInfo {
    name: "webdataset",
    title: "WebDataset",
    layout: "`.tar` files whose members `KEY.SUFFIX` make up samples, also `.tar.gz`; with the splits of Megatron-Energon in `.nv-meta`",
    records: "a row of `__key__` and the members by suffix: text, numbers, JSON and arrays decoded, the rest bytes; with `column=` the numbers of one",
    written_by: "`windrow convert --to webdataset`, `wr.write`, webdataset, Megatron-Energon, tar",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: SUFFIXES,
    open_options: &[COLUMN, COLUMNS],
    written_as: "shard-NNNNNN.tar: rows, a member for each column, or arrays in members `npy`",
    write_options: option_rows! {
        /// most bytes of a shard [default: 1073741824]
        size_limit: Takes::Bytes;
    },
    checks_manifest: true,
    ..FormatInfo::NONE
};

impl Format for WebDataset {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let keys = keys(probe);
        if !probe.is_folder && !keys.is_empty() {
            return Confidence::Yes;
        }
        if keys.is_empty() {
            let is_below = probe.is_folder && probe.names().any(is_archive);
            return Confidence::yes_if(is_below && self.defines_splits(probe));
        }
        // An archive may also lie beside other data: it was unpacked there, or is not about it.
        let stems: Vec<&str> = keys.iter().map(|key| stem(probe.name_of(key))).collect();
        let is_beside = |name: &str| {
            is_archive(name)
                || name.contains('/')
                || BESIDE.iter().any(|suffix| name.ends_with(suffix))
                || stems.iter().any(|stem| name.starts_with(stem))
        };
        if probe.names().all(is_beside) { Confidence::Yes } else { Confidence::Maybe }
    }

    fn joins(&self, probe: &Probe) -> Vec<String> {
        if self.defines_splits(probe) { Vec::new() } else { names_to_join(probe, &keys(probe)) }
    }

    fn defines_splits(&self, probe: &Probe) -> bool {
        // A file that cannot be read says so when it is opened.
        Splits::of(probe).map_or(true, |splits| splits.is_some())
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteWebDataset::of(options)?)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &WebDataset
    }

    fn open_files(&self, probe: &Probe, keys: &[String], options: &Options) -> Option<Result<SharedSource>> {
        let chosen = keys.iter().map(|key| Chosen { key: key.clone(), excluded: Vec::new() });
        Some(Archives(chosen.collect()).open(probe, options))
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let written = manifest(probe).filter(|_| !options.trust);
        written.map_or(Ok(()), |written| probe.check_files(written))?;
        probe.refuse_checksums_alone()?;
        if let Some(splits) = Splits::of(probe)? {
            return Archives(splits.chosen(options.split.as_deref(), probe)?).open(probe, options);
        }
        let archives = Archives::all(probe)?;
        if !probe.is_folder {
            return archives.open(probe, options);
        }
        let names = archives.0.iter().map(|archive| probe.name_of(&archive.key));
        splits::refuse_in(probe, names)?;
        let source = archives.open(probe, options)?;
        written.map_or(Ok(()), |written| written.check_records(source.len(), &probe.display()))?;
        Ok(source)
    }
}

/// Archives that are opened together.
struct Archives(Vec<Chosen>);

impl Archives {
    // Those of a folder, or the one that is named; in natural order.
    fn all(probe: &Probe) -> Result<Archives> {
        let mut keys = keys(probe);
        if keys.is_empty() && Splits::of(probe)?.is_some() {
            let names = probe.names().filter(|name| is_archive(name));
            keys = names.map(|name| probe.below(name)).collect();
            keys.sort_by(|a, b| discover::natural_order(a, b));
        }
        if keys.is_empty() {
            return Err(Error::not_found("expected `.tar` files, found none").at(probe.display()));
        }
        discover::refuse_copies(keys.iter().map(String::as_str), |key| probe.store.display(key))?;
        Ok(Archives(keys.into_iter().map(|key| Chosen { key, excluded: Vec::new() }).collect()))
    }

    fn open(self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let (keys, excluded): (Vec<_>, Vec<_>) =
            self.0.into_iter().map(|archive| (archive.key, archive.excluded)).unzip();
        // Compressed archives are known by their first bytes, as the original knows them.
        let open = |key: &String| expanded(&probe.store, key, options.cache_limit);
        let objects = keys.iter().map(open).collect::<Result<Vec<_>>>()?;
        let files = DataFiles::from_objects(probe.store.clone(), keys, objects);
        let mut options = options.clone();
        // What was written as numbers is read as such.
        let are_numbers = manifest(probe).is_some_and(|written| written.dtype.is_some());
        if are_numbers && options.columns.is_none() {
            options.column.get_or_insert_with(|| NUMBERS.to_string());
        }
        let samples = Samples::open(files, excluded, &options)?;
        if columns::Samples::count(&samples) == 0 {
            // Of no samples any member may be asked for.
            (options.column, options.columns) = (None, None);
        }
        columns::open(samples, probe, &options)
    }
}

// What windrow declared when it wrote them.
fn manifest(probe: &Probe) -> Option<&Manifest> {
    probe.manifest.as_ref().filter(|manifest| manifest.format == WebDataset.name())
}

// The archives directly in a folder, in natural order.
fn keys(probe: &Probe) -> Vec<String> {
    top_files(probe, is_archive)
}

fn is_archive(name: &str) -> bool {
    let name = key::name_of(name).to_ascii_lowercase();
    SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

// A name without what says that it is an archive.
fn stem(name: &str) -> &str {
    let end = SUFFIXES.iter().filter(|suffix| name.to_ascii_lowercase().ends_with(**suffix));
    let longest = end.map(|suffix| suffix.len()).max().unwrap_or(0);
    &name[..name.len() - longest]
}
