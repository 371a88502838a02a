//! LitData: `index.json`, and chunks of items that are trees of leaves. The layout is that of the package litdata 0.2.76
//! (`streaming/writer.py`, `item_loader.py`, `serializers.py`).

mod chunks;
mod dicts;
mod encode;
mod frames;
mod index;
mod json_leaf;
mod leaf;
mod mixed;
mod pickled;
mod rows;
mod samples;
mod temporal;
mod tree;
mod verify;
mod write;

use windrow_core::Result;
use windrow_core::format::verify::Verify;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, Takes};
use windrow_core::option_rows;
use windrow_core::source::SharedSource;

use self::chunks::Chunks;
use self::index::{Index, Storage};
use self::mixed::Mixed;
use self::samples::Samples;
use self::write::WriteLitData;
use crate::index_json;
use windrow_core::format::columns;

use crate::open_options::{COLUMN, COLUMNS};

/// Chunks of LitData.
#[derive(Clone, Copy, Debug)]
pub struct LitData;

static INFO: FormatInfo = FormatInfo {
    name: "litdata",
    title: "LitData",
    layout: "a folder of `index.json` and `chunk-*.bin`, items, frames or chunks of them also compressed; each split is such a folder",
    records: "an item: a row of its keys, a list or a value; with `column=`, or where the item is an array, its numbers [T] or [T, C]",
    written_by: "`windrow convert --to litdata`, `wr.write`, litdata's optimize",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: &[".bin"],
    open_options: &[COLUMN, COLUMNS],
    written_as: "index.json and chunk-0-N.bin: tokens for its TokensLoader, or items that are dicts",
    write_options: option_rows! {
        /// items are dicts with the numbers under this key and their metadata [default: the numbers alone]
        to_column: Takes::Text("NAME");
        /// most bytes of a chunk [default: 67108864]
        chunk_bytes: Takes::Bytes;
    },
    ..FormatInfo::NONE
};

impl Format for LitData {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        // It has chunks, and a config with the kinds of the leaves.
        index_json::recognise(probe, 64 << 20, [b"\"chunks\"", b"\"data_format\"", b"\"item_loader\""])
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteLitData::of(options)?)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &LitData
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let index = Index::read(index_json::open(probe)?.as_ref())?;
        let chunks = Chunks::open(probe, &index)?;
        let may_be = index.storage == Storage::Plain && chunks.files.count() > 0;
        if may_be && rows::is_rows(chunks.files.get(0)?)? {
            let are_rows = (0..chunks.files.count()).map(|chunk| rows::are_rows(&chunks, chunk));
            let are_rows = are_rows.collect::<Result<Vec<bool>>>()?;
            if are_rows.iter().all(|are_rows| *are_rows) {
                return columns::open(rows::open(probe, chunks, options)?, probe, options);
            }
            let (rows, first_rows) = rows::some(probe, &chunks, &are_rows, options)?;
            let mixed = Mixed::new(rows, Samples::new(chunks, index), first_rows);
            return columns::open(mixed, probe, options);
        }
        columns::open(Samples::new(chunks, index), probe, options)
    }
}
