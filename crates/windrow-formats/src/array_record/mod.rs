//! ArrayRecord: chunks of Riegeli, which a footer lists, as Google's array_record, Grain and TFDS write them.

mod blocks;
mod chunk;
mod footer;
mod glimpse;
mod kept;
mod simple;
mod write;

use std::ops::Range;

use windrow_core::format::verify::{Verifier, Verify};
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::{FileInfo, SharedSource};
use windrow_core::store::Object;
use windrow_core::{Error, Result};

use self::chunk::Chunk;
use self::footer::Footer;
use self::glimpse::Glimpse;
use self::kept::Kept;
use self::simple::Records;
use self::write::WriteArrayRecord;
use crate::open_options::{COLUMN, COLUMNS, PAYLOAD};
use crate::payload::{self, Blobs};
use crate::shard_names::{is_named, must_be_whole, verify_shards};
use windrow_core::format::data_files::{DataFiles, names_to_join, top_files};

/// Files of ArrayRecord.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRecord;

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

impl Verify for ArrayRecord {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        let keys = keys(probe);
        // Compared whenever a record is read.
        keys.iter().for_each(|key| out.covers(&probe.store.display(key), "HighwayHash of chunks"));
        verify_shards(format, probe, &keys, out)
    }
}

impl Format for ArrayRecord {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        match keys(probe).is_empty() {
            true => Confidence::No,
            false => Confidence::Yes,
        }
    }

    fn joins(&self, probe: &Probe) -> Vec<String> {
        names_to_join(probe, &keys(probe))
    }

    fn writer(&self, _options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteArrayRecord)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &ArrayRecord
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let keys = keys(probe);
        if keys.is_empty() {
            return Err(Error::not_found("expected `.array_record` files, found none").at(probe.display()));
        }
        must_be_whole(probe, &keys)?;
        let missing = |key: &str, _| Error::not_found("the file is gone").at(key);
        let files = DataFiles::listed(probe, keys, missing)?;
        let mut shards = Shards {
            files,
            footers: Vec::new(),
            firsts: vec![0],
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
            let footer = match glimpse.size() == 0 && has_bytes {
                true => Footer::default(),
                false => Footer::of(&glimpse)?,
            };
            let first = shards.firsts[file];
            shards.firsts.push(first + footer.records());
            shards.footers.push(footer);
        }
        payload::open(shards, probe, options)
    }
}

// The files with records, in natural order.
fn keys(probe: &Probe) -> Vec<String> {
    top_files(probe, |name| is_named(name, ".array_record") || is_named(name, ".arrayrecord"))
}

/// The records of some files.
struct Shards {
    files: DataFiles,
    footers: Vec<Footer>,
    /// The number of the first record of each file, and of all records at the end.
    firsts: Vec<u64>,
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
        if record >= self.count() {
            return Err(Error::out_of_range("record", record, self.count()));
        }
        let file = self.firsts.partition_point(|first| *first <= record) - 1;
        let footer = &self.footers[file];
        let record = record - self.firsts[file];
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
    fn format(&self) -> &'static str {
        ArrayRecord.name()
    }

    fn count(&self) -> u64 {
        self.firsts[self.firsts.len() - 1]
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

    fn prefetch(&self, record: u64) {
        if let Ok(found) = self.find(record)
            && let Ok(object) = self.files.get(found.file)
        {
            let place = found.place();
            object.prefetch(place.start, place.end - place.start);
        }
    }

    fn name(&self, file: usize) -> String {
        self.files.name(file)
    }

    fn files(&self) -> Vec<FileInfo> {
        self.files.infos()
    }

    fn fingerprint(&self, of: &str) -> Result<u64> {
        self.files.fingerprint(&[ArrayRecord.name().as_bytes(), of.as_bytes()])
    }
}
