//! Recognises and opens Parquet files, and the folders that the Hub and `datasets` write.

use windrow_core::format::columns::{self, Samples as _};
use windrow_core::format::data_files::DataFiles;
use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{
    Confidence, Format, FormatInfo, Holds, Options, Probe, Takes, WriteOption, discover, splits,
};
use windrow_core::source::SharedSource;
use windrow_core::store::key;
use windrow_core::{Error, Kind, Result};
use windrow_ipc::Joined;

use crate::file::File;
use crate::hub::Listed;
use crate::samples::Samples;
use crate::set::Files;
use crate::write::WriteParquet;

/// How the names of its files end.
const SUFFIXES: &[&str] = &[".parquet", ".pq"];
const MAGIC: &[u8] = b"PAR1";

/// Files of Parquet.
#[derive(Clone, Copy, Debug)]
pub struct Parquet;

static INFO: FormatInfo = FormatInfo {
    name: "parquet",
    title: "Parquet",
    layout: "`.parquet` files, alone or in a folder, also as the Hub names them: `data/train-00000-of-00002.parquet`",
    records: "a row of the columns; with `column=`, or where the only column holds lists of numbers, its numbers [T] or [T, C] with the other columns beside them",
    written_by: "`windrow convert --to parquet`, `wr.write`, pyarrow, pandas, polars, DuckDB, Spark, `datasets`, the Hub",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: SUFFIXES,
    open_options: &["column", "columns"],
    written_as: "one `.parquet` file: rows, or numbers in a column `tokens` with their metadata beside it",
    write_options: &[
        WriteOption {
            name: "to_column",
            takes: Takes::Text("NAME"),
            help: "the column of the numbers [default: tokens]",
            of_tokenize: false,
        },
        WriteOption {
            name: "compression",
            takes: Takes::Text("CODEC"),
            help: "zstd, zstd:LEVEL, snappy or none [default: zstd]",
            of_tokenize: false,
        },
    ],
    ..FormatInfo::NONE
};

impl Verify for Parquet {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        match out.read_by(format, probe)? {
            Opened::Before | Opened::Read(_) => Ok(()),
            Opened::Not(error) if !probe.is_folder || error.kind() != Kind::Config => {
                out.found(error, &probe.display(), "content")
            }
            // Without a split that is named, none is opened.
            Opened::Not(_) => {
                let keys = keys(probe);
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

impl Format for Parquet {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let is = match probe.is_folder {
            true => keys(probe).iter().any(|key| !is_beside_archive(probe, key)),
            false => probe.head.starts_with(MAGIC) || is_named(&probe.key),
        };
        if is { Confidence::Yes } else { Confidence::No }
    }

    fn defines_splits(&self, probe: &Probe) -> bool {
        // What is wrong with it is said when it is opened.
        !matches!(Listed::of(probe, &keys(probe)), Ok(None))
    }

    fn joins(&self, probe: &Probe) -> Vec<String> {
        match probe.is_folder && !self.defines_splits(probe) {
            true => keys(probe).iter().map(|key| probe.name_of(key).to_string()).collect(),
            false => Vec::new(),
        }
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteParquet::of(options, INFO.name, SUFFIXES)?)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Parquet
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let keys = keys(probe);
        if keys.is_empty() {
            return Err(Error::not_found("expected `.parquet` files, found none").at(probe.display()));
        }
        let listed = Listed::of(probe, &keys)?;
        let keys = match &listed {
            Some(listed) => listed.chosen(options.part.as_deref(), probe)?,
            None => keys,
        };
        if probe.is_folder && listed.is_none() {
            splits::refuse_several(keys.iter().map(|key| probe.name_of(key)), &probe.display())?;
        }
        open_files(probe, keys, options)
    }
}

// These files as one data set.
fn open_files(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource> {
    if probe.is_folder {
        discover::refuse_missing_shards(keys.iter().map(String::as_str), |key| probe.store.display(key))?;
    }
    let objects = keys.iter().map(|key| probe.store.open(key)).collect::<Result<Vec<_>>>()?;
    let files = objects.iter().map(|object| File::open(object.clone())).collect::<Result<Vec<_>>>()?;
    let schemas = files.iter().map(File::schema).collect::<Result<Vec<_>>>()?;
    let all_names: Vec<String> = schemas
        .first()
        .map(|table| table.columns().iter().map(|column| column.name.clone()).collect())
        .unwrap_or_default();
    let data = DataFiles::from_objects(probe.store.clone(), keys, objects);
    // Compares the columns of the files.
    let empty = DataFiles::from_objects(probe.store.clone(), Vec::new(), Vec::new());
    let columns = Joined::new(INFO.name, empty, schemas)?.columns().to_vec();
    let mut firsts = vec![0u64];
    for file in &files {
        let end = firsts[firsts.len() - 1].checked_add(file.rows());
        firsts.push(end.ok_or_else(|| {
            Error::corrupt("more rows together than 64 bits count").at(file.object().name())
        })?);
    }
    let files = Files { store: probe.store.clone(), files, firsts, limit: options.cache_limit };
    columns::open(Samples::new(INFO.name, files, data, columns, &all_names, options), probe, options)
}

fn is_named(key: &str) -> bool {
    let name = key::name_of(key).to_ascii_lowercase();
    SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

// What img2dataset says of the samples in the archive of the same name.
fn is_beside_archive(probe: &Probe, key: &str) -> bool {
    let archive = key.strip_suffix(".parquet").map(|stem| format!("{stem}.tar"));
    archive.is_some_and(|archive| {
        probe.entries.binary_search_by(|entry| entry.key.as_str().cmp(&archive)).is_ok()
    })
}

// The file, or those of a folder at any depth, in natural order.
fn keys(probe: &Probe) -> Vec<String> {
    match probe.is_folder {
        false => vec![probe.key.clone()],
        true => {
            discover::among(&probe.entries, SUFFIXES).into_iter().map(|entry| entry.key.clone()).collect()
        }
    }
}
