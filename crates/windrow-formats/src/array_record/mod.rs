//! ArrayRecord: chunks of Riegeli, which a footer lists, as Google's array_record, Grain and TFDS write them.

mod blocks;
mod chunk;
mod footer;
mod glimpse;
mod kept;
mod simple;
mod write;

use std::ops::Range;

use windrow_core::Result;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{FormatInfo, Holds, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::Object;

use self::chunk::Chunk;
use self::footer::Footer;
use self::glimpse::Glimpse;
use self::kept::Kept;
use self::simple::Records;
use self::write::WriteArrayRecord;
use crate::firsts::Firsts;
use crate::in_files::{FileKind, is_named};
use crate::open_options::{COLUMN, COLUMNS, PAYLOAD};
use crate::payload::{self, Blobs};
use windrow_core::format::data_files::{DataFiles, gone};

/// Files of ArrayRecord.
pub(crate) struct ArrayRecord;

static INFO: FormatInfo = FormatInfo {
    name: "array_record",
    title: "ArrayRecord",
    layout: "`.array_record` files, also as shards `.array_record-00000-of-00002`",
    records: "what `payload=` says: the features of a tf.train.Example, bytes, text or JSON; with `column=` or `dtype=` numbers",
    written_by: "array_record, TFDS, `windrow convert --to array_record`, `wr.write`",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: &[".array_record", ".arrayrecord"],
    text_is_bytes: true,
    may_be_empty: true,
    open_options: &[COLUMN, COLUMNS, PAYLOAD],
    written_as: "one .array_record of a chunk for every record, uncompressed: rows as tf.train.Example, arrays as their bytes",
    ..FormatInfo::NONE
};

impl FileKind for ArrayRecord {
    const INFO: &'static FormatInfo = &INFO;
    const CHECKSUMS: Option<&'static str> = Some("HighwayHash of chunks");

    fn is_data(_: &Probe, name: &str) -> bool {
        is_named(name, ".array_record") || is_named(name, ".arrayrecord")
    }

    fn writer(_: &mut OwnOptions) -> Result<Box<dyn WriteFormat>> {
        Ok(Box::new(WriteArrayRecord))
    }

    fn open(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource> {
        let files = DataFiles::listed(probe, keys, gone)?;
        let mut shards = Shards {
            files,
            footers: Vec::new(),
            firsts: Firsts::new(),
            records: Kept::default(),
            sizes: Kept::default(),
        };
        let mut has_bytes = false;
        for file in 0..shards.files.count() {
            has_bytes = has_bytes || Glimpse::of(&shards.files, file)?.size() > 0;
        }
        for file in 0..shards.files.count() {
            let glimpse = Glimpse::of(&shards.files, file)?;
            // A part of no byte has no records, unless there are no others.
            let footer =
                if glimpse.size() == 0 && has_bytes { Footer::default() } else { Footer::of(&glimpse)? };
            shards.firsts.push(footer.records());
            shards.footers.push(footer);
        }
        payload::open(shards, probe, options)
    }
}

/// The records of some files.
struct Shards {
    files: DataFiles,
    footers: Vec<Footer>,
    firsts: Firsts,
    records: Kept<Records>,
    /// Of chunks whose records were not asked for.
    sizes: Kept<Vec<u64>>,
}

/// Where a record is.
struct Found<'a> {
    file: usize,
    footer: &'a Footer,
    chunk: usize,
    /// Its number in the chunk, and how many records that has.
    number: usize,
    of: u64,
}

impl Found<'_> {
    fn place(&self) -> Range<u64> {
        self.footer.place(self.chunk)
    }
}

impl Shards {
    fn find(&self, record: u64) -> Result<Found<'_>> {
        let (file, record) = self.firsts.find(record)?;
        let footer = &self.footers[file];
        let (chunk, records) = footer.chunk_of(record);
        let number = (record - records.start) as usize;
        Ok(Found { file, footer, chunk, number, of: records.end - records.start })
    }

    // The chunk of a record, its header compared with the footer.
    fn chunk(&self, found: &Found<'_>) -> Result<Chunk<'_>> {
        let chunk = Chunk::at(self.files.get(found.file)?, found.place())?;
        found.footer.check(found.chunk, &chunk, found.of)?;
        Ok(chunk)
    }

    fn one<'a>(&'a self, found: &Found<'_>, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let chunk = self.chunk(found)?;
        if found.of > 1 {
            let make = || {
                let mut scratch = Vec::new();
                let parts = chunk.parts(&mut scratch)?;
                Records::of(&parts).map_err(|e| chunk.placed(e))
            };
            let records = self.records.get((found.file, found.chunk), Records::size, make)?;
            let record = records.get(found.number).unwrap_or_default();
            scratch.clear();
            scratch.extend_from_slice(record);
            return Ok(scratch);
        }
        if chunk.is_plain() {
            let parts = chunk.parts(scratch)?;
            let values = parts.sizes().and_then(|_| parts.plain_values()).map_err(|e| chunk.placed(e))?;
            return values.ok_or_else(|| chunk.wrong("a chunk that changed while it was read".to_string()));
        }
        let mut data = Vec::new();
        let parts = chunk.parts(&mut data)?;
        parts.sizes().and_then(|_| parts.values_into(scratch)).map_err(|e| chunk.placed(e))?;
        Ok(scratch)
    }
}

impl Blobs for Shards {
    const FORMAT: &'static str = INFO.name;

    fn files(&self) -> &DataFiles {
        &self.files
    }

    fn count(&self) -> u64 {
        self.firsts.count()
    }

    fn blob<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let found = self.find(record)?;
        self.one(&found, scratch).map_err(|e| e.record(record))
    }

    fn size(&self, record: u64) -> Result<u64> {
        let found = self.find(record)?;
        if found.of == 1 {
            return Ok(found.footer.decoded(found.chunk));
        }
        let make = || self.chunk(&found)?.sizes();
        let sizes = self.sizes.get((found.file, found.chunk), |sizes| sizes.len() * 8, make);
        let sizes = sizes.map_err(|e| e.record(record))?;
        Ok(sizes.get(found.number).copied().unwrap_or_default())
    }

    fn place(&self, record: u64) -> Result<(usize, Range<u64>)> {
        let found = self.find(record)?;
        Ok((found.file, found.place()))
    }
}
