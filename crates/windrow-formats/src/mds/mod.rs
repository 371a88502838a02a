//! MosaicML Streaming (MDS): `index.json`, and shards of samples with named columns. The layout is that of the package
//! mosaicml-streaming 0.13 (`streaming/base/format/mds`).

mod codec;
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
use windrow_core::format::{
    Confidence, Format, FormatInfo, Holds, OptionRow, Options, Probe, TO_COLUMN, Takes,
};
use windrow_core::source::SharedSource;

use self::index::Index;
use self::samples::Samples;
use self::shards::Shards;
use self::write::WriteMds;
use crate::index_json;
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
        TO_COLUMN,
        OptionRow::new(
            "size_limit",
            Takes::Bytes,
            "most bytes of a shard before it is compressed [default: 67108864]",
        ),
        OptionRow::new("compression", Takes::Text("zstd[:LEVEL]"), "compress the shards"),
    ],
    has_own_checksums: true,
    ..FormatInfo::NONE
};

impl Format for Mds {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        // Its first shard has a format and raw data.
        index_json::recognise(probe, 64 << 10, [b"\"shards\"", b"\"raw_data\"", b"\"format\""])
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
    Index::read(index_json::open(probe)?.as_ref())
}
