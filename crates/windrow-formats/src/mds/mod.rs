//! MosaicML Streaming (MDS): `index.json`, and shards of samples with named columns. The layout is that of the package
//! mosaicml-streaming 0.13 (`streaming/base/format/mds`).

mod encode;
mod encoding;
mod index;
mod samples;
mod shards;
mod verify;
mod write;

use std::sync::Arc;

use self::index::{INDEX, Index};
use self::samples::{Numbers, Rows, Samples, arrays};
use self::shards::Shards;
use self::write::WriteMds;
use super::numbers::check_number_options;
use windrow_core::format::verify::Verify;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, Takes, WriteOption};
use windrow_core::source::SharedSource;
use windrow_core::store::{key, open_if_there};
use windrow_core::{Error, Result};

/// Shards of MosaicML Streaming.
#[derive(Clone, Copy, Debug)]
pub struct Mds;

static INFO: FormatInfo = FormatInfo {
    name: "mds",
    title: "MosaicML Streaming",
    layout: "a folder of `index.json` and `shard.NNNNN.mds`, also `.zstd` and `.gz`; each split is such a folder",
    records: "a row of the columns; with `column=`, or where the only column is an array, its numbers [T] or [T, C] with the other columns beside them",
    written_by: "`windrow convert --to mds`, `wr.write`, mosaicml-streaming's MDSWriter",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: &[".mds", ".mds.zstd", ".mds.gz"],
    open_options: &["column", "columns"],
    written_as: "index.json and shard.NNNNN.mds: rows, or arrays in a column `tokens`",
    write_options: &[
        WriteOption {
            name: "to_column",
            takes: Takes::Text("NAME"),
            help: "the column of the numbers [default: tokens]",
            of_tokenize: false,
        },
        WriteOption {
            name: "size_limit",
            takes: Takes::Number("BYTES"),
            help: "most bytes of a shard before it is compressed [default: 67108864]",
            of_tokenize: false,
        },
        WriteOption {
            name: "compression",
            takes: Takes::Text("zstd[:LEVEL]"),
            help: "compress the shards",
            of_tokenize: false,
        },
    ],
    ..FormatInfo::NONE
};

impl Format for Mds {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        match index_key(probe).is_some_and(|key| begins_as_index(probe, &key)) {
            true => Confidence::Yes,
            false => Confidence::No,
        }
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteMds::of(options)?)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Mds
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let mut index = read_index(probe)?;
        let shards = Shards::open(probe, &mut index)?;
        let numbers = match (&options.column, &options.columns) {
            (Some(name), _) => Some(index.column(name, "column")?),
            (None, None) if index.columns.len() == 1 && arrays(&index) == 1 => Some(0),
            _ => None,
        };
        if let Some(column) = numbers {
            let source: SharedSource = Arc::new(
                Numbers::new(Samples::new(shards, index), column, options)
                    .map_err(|e| e.or_at(probe.display()))?,
            );
            let manifest = probe.manifest.as_ref().filter(|manifest| manifest.format == self.name());
            check_number_options(source.as_ref(), manifest, options, &probe.display())?;
            return Ok(source);
        }
        options
            .refuse_those_of_ids("the records are rows of columns", "column= chooses the numbers")
            .map_err(|e| e.at(probe.display()))?;
        let columns = match &options.columns {
            None => (0..index.columns.len()).collect(),
            Some(names) => {
                let found = names.iter().map(|name| index.column(name, "columns"));
                let found: Vec<usize> = found.collect::<Result<_>>().map_err(|e| e.at(probe.display()))?;
                if found.is_empty() || (1..found.len()).any(|at| found[..at].contains(&found[at])) {
                    return Err(Error::config(format!(
                        "columns={names:?}: expected each once, and one at least"
                    ))
                    .field("columns"));
                }
                found
            }
        };
        Ok(Arc::new(Rows::new(Samples::new(shards, index), columns)))
    }
}

fn read_index(probe: &Probe) -> Result<Index> {
    let key = index_key(probe).unwrap_or_else(|| probe.below(INDEX));
    let object = probe.store.open(&key)?;
    Index::read(object.as_ref())
}

// The index of a folder, or one that is named itself.
fn index_key(probe: &Probe) -> Option<String> {
    match probe.is_folder {
        true => probe.names().any(|name| name == INDEX).then(|| probe.below(INDEX)),
        false => (key::name_of(&probe.key) == INDEX).then(|| probe.key.clone()),
    }
}

// Other programs call theirs so, too: its first shard has a format and raw data.
fn begins_as_index(probe: &Probe, key: &str) -> bool {
    const LOOKED_AT: u64 = 64 << 10;
    let Ok(Some(object)) = open_if_there(probe.store.as_ref(), key) else { return false };
    let mut scratch = Vec::new();
    object.read(0, object.size().min(LOOKED_AT) as usize, &mut scratch).is_ok_and(|head| {
        [&b"\"shards\""[..], b"\"raw_data\"", b"\"format\""]
            .iter()
            .all(|word| memchr::memmem::find(head, word).is_some())
    })
}
