//! LitData: `index.json`, and chunks of items that are trees of leaves. The layout is that of the package litdata 0.2.76
//! (`streaming/writer.py`, `item_loader.py`, `serializers.py`).

mod chunks;
mod encode;
mod frames;
mod index;
mod json_leaf;
mod leaf;
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
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, Takes, WriteOption};
use windrow_core::source::SharedSource;
use windrow_core::store::{key, open_if_there};

use self::chunks::Chunks;
use self::index::{INDEX, Index, Storage};
use self::samples::Samples;
use self::write::WriteLitData;
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
    write_options: &[
        WriteOption {
            name: "to_column",
            takes: Takes::Text("NAME"),
            help: "items are dicts with the numbers under this key and their metadata [default: the numbers alone]",
            of_tokenize: false,
        },
        WriteOption {
            name: "chunk_bytes",
            takes: Takes::Bytes,
            help: "most bytes of a chunk [default: 67108864]",
            of_tokenize: false,
        },
    ],
    ..FormatInfo::NONE
};

impl Format for LitData {
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
        Ok(Some(Box::new(WriteLitData::of(options)?)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &LitData
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let key = index_key(probe).unwrap_or_else(|| probe.below(INDEX));
        let index = Index::read(probe.store.open(&key)?.as_ref())?;
        let chunks = Chunks::open(probe, &index)?;
        let may_be = index.storage == Storage::Plain && chunks.files.count() > 0;
        if may_be && rows::is_rows(chunks.files.get(0)?)? {
            return columns::open(rows::open(probe, chunks, options)?, probe, options);
        }
        columns::open(Samples::new(chunks, index), probe, options)
    }
}

// The index of a folder, or one that is named itself.
fn index_key(probe: &Probe) -> Option<String> {
    match probe.is_folder {
        true => probe.names().any(|name| name == INDEX).then(|| probe.below(INDEX)),
        false => (key::name_of(&probe.key) == INDEX).then(|| probe.key.clone()),
    }
}

// Other programs call theirs so, too: this one has chunks, and a config with the kinds of the leaves.
fn begins_as_index(probe: &Probe, key: &str) -> bool {
    const MOST: u64 = 64 << 20;
    let Ok(Some(object)) = open_if_there(probe.store.as_ref(), key) else { return false };
    let mut scratch = Vec::new();
    let size = object.size().min(MOST) as usize;
    object.read(0, size, &mut scratch).is_ok_and(|text| {
        [&b"\"chunks\""[..], b"\"data_format\"", b"\"item_loader\""]
            .iter()
            .all(|word| memchr::memmem::find(text, word).is_some())
    })
}
