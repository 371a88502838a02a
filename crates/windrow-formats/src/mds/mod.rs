//! MosaicML Streaming (MDS): `index.json`, and shards of samples with named columns. The layout is that of the package
//! mosaicml-streaming 0.13 (`streaming/base/format/mds`).

mod encode;
mod encoding;
mod index;
mod samples;
mod shards;
mod verify;
mod write;

use windrow_core::Result;
use windrow_core::format::verify::Verify;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, Takes, WriteOption};
use windrow_core::source::SharedSource;
use windrow_core::store::{key, open_if_there};

use self::index::{INDEX, Index};
use self::samples::Samples;
use self::shards::Shards;
use self::write::WriteMds;
use windrow_core::format::columns;

use crate::open_options::{COLUMN, COLUMNS};

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
    open_options: &[COLUMN, COLUMNS],
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
            takes: Takes::Bytes,
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
        columns::open(Samples::new(shards, index), probe, options)
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
