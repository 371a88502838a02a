//! TFRecord: frames of a length, its checksum, the bytes of a record and their checksum, as TensorFlow writes them.

mod ends;
mod index;
mod write;

use std::ops::Range;
use std::sync::Arc;

use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{FormatInfo, Holds, Options, Probe, TO_COLUMN};
use windrow_core::source::SharedSource;
use windrow_core::store::{Compression, Object, at_once, expanded, expanded_as, head_as, key, plain_name};
use windrow_core::{Error, Result};

use self::ends::Ends;
use self::write::WriteTfRecord;
use crate::firsts::Firsts;
use crate::in_files::{FileKind, is_named};
use crate::open_options::{COLUMN, COLUMNS, PAYLOAD};
use crate::payload::{self, Blobs};
use windrow_core::format::data_files::DataFiles;

/// Bytes before a record: its length, and the checksum of that.
const BEFORE: u64 = 12;
/// Bytes after it: its checksum.
const AFTER: u64 = 4;

/// Files of TFRecord.
pub(crate) struct TfRecord;

static INFO: FormatInfo = FormatInfo {
    name: "tfrecord",
    title: "TFRecord",
    layout: "`.tfrecord` files, also as shards `.tfrecord-00000-of-00002` and `.gz`; of other names, and with GZIP or ZLIB inside, by their content",
    records: "what `payload=` says: the features of a tf.train.Example, bytes, text or JSON; with `column=` or `dtype=` numbers",
    written_by: "TensorFlow, TFDS, the tfrecord package, `windrow convert --to tfrecord`, `wr.write`",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: &[".tfrecord", ".tfrecords", ".tfrecord.gz"],
    text_is_bytes: true,
    open_options: &[COLUMN, COLUMNS, PAYLOAD],
    written_as: "one .tfrecord of tf.train.Example: rows, or arrays in a feature `tokens`",
    write_options: &[TO_COLUMN],
    ..FormatInfo::NONE
};

impl FileKind for TfRecord {
    const INFO: &'static FormatInfo = &INFO;
    const CHECKSUMS: Option<&'static str> = Some("CRC-32C of records");

    const BY_CONTENT: Option<fn(&dyn Object) -> Result<bool>> =
        Some(|object| Ok(begins(&head_as(object, compression(object)?, BEFORE as usize)?)));

    // `x.tfrecord`, `x.tfrecords`, `x.tfrecord-00000-of-00002`, also compressed.
    fn is_data(_: &Probe, name: &str) -> bool {
        let name = plain_name(key::name_of(name));
        is_named(name, ".tfrecord") || key::has_suffix(name, ".tfrecords")
    }

    fn writer(options: &mut OwnOptions) -> Result<Box<dyn WriteFormat>> {
        Ok(Box::new(WriteTfRecord::of(options)?))
    }

    fn open(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource> {
        let open = |key: &String| {
            if plain_name(key) == key {
                let object = probe.store.open(key)?;
                match compression(object.as_ref())? {
                    None => Ok(object),
                    compressed => expanded_as(object, compressed, options.cache_limit),
                }
            } else {
                expanded(&probe.store, key, options.cache_limit)
            }
        };
        let objects = keys.iter().map(open).collect::<Result<Vec<_>>>()?;
        let files = DataFiles::from_objects(probe.store.clone(), keys.clone(), objects);
        let mut records = Records { ends: Vec::new(), firsts: Firsts::new(), files };
        for (file, key) in keys.iter().enumerate() {
            let find_index = || index::beside(probe.store.as_ref(), key);
            let ends = Ends::of(records.files.object(file)?.clone(), find_index)?;
            records.firsts.push(ends.count());
            records.ends.push(ends);
        }
        payload::open(records, probe, options)
    }
}

// What a file begins with: the length of a record and its checksum.
fn begins(head: &[u8]) -> bool {
    let Some((length, sum)) = head.get(..BEFORE as usize).and_then(|head| head.split_last_chunk::<4>())
    else {
        return false;
    };
    checksum(length) == u32::from_le_bytes(*sum)
}

// How a file is compressed, which TensorFlow does with GZIP and ZLIB and says in no name.
fn compression(object: &dyn Object) -> Result<Option<Compression>> {
    let mut scratch = Vec::new();
    let head = object.read(0, object.size().min(BEFORE) as usize, &mut scratch)?;
    Ok(match Compression::of_head(head) {
        _ if begins(head) => None,
        None if Compression::may_be_zlib(head) => Some(Compression::Zlib),
        compression => compression,
    })
}

/// The records of some files.
struct Records {
    files: DataFiles,
    ends: Vec<Ends>,
    firsts: Firsts,
}

impl Records {
    // The file of a record, and its frame.
    fn frame(&self, record: u64) -> Result<(usize, Range<u64>)> {
        let (file, number) = self.firsts.find(record)?;
        Ok((file, self.ends[file].frame(number)?))
    }
}

impl Blobs for Records {
    const FORMAT: &'static str = INFO.name;

    fn files(&self) -> &DataFiles {
        &self.files
    }

    fn count(&self) -> u64 {
        self.firsts.count()
    }

    fn blob<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let (file, frame) = self.frame(record)?;
        let object = self.files.get(file)?;
        let size = at_once(frame.end - frame.start - BEFORE).map_err(|e| e.record(record))?;
        if let Some(index) = self.ends[file].listed_by() {
            let found = length(object, frame.start).map_err(|e| e.record(record))?;
            if found + AFTER != size as u64 {
                let listed = size as u64 - AFTER;
                return Err(Error::corrupt(format!("a record of {found} bytes, its index says {listed}"))
                    .at(object.name())
                    .record(record)
                    .byte(frame.start)
                    .hint(format!("delete {index}: the file is opened without it, too")));
            }
        }
        let bytes = object.read(frame.start + BEFORE, size, scratch)?;
        let (data, sum) = bytes.split_at(size - AFTER as usize);
        let said = sum.first_chunk::<4>().map_or(0, |sum| u32::from_le_bytes(*sum));
        if checksum(data) == said {
            Ok(data)
        } else {
            Err(Error::corrupt("the record has another checksum than was written")
                .at(object.name())
                .record(record)
                .byte(frame.start + BEFORE)
                .hint("the file is damaged: copy it again"))
        }
    }

    fn size(&self, record: u64) -> Result<u64> {
        self.place(record).map(|(_, place)| place.end - place.start)
    }

    fn place(&self, record: u64) -> Result<(usize, Range<u64>)> {
        let (file, frame) = self.frame(record)?;
        Ok((file, frame.start + BEFORE..frame.end - AFTER))
    }

    fn prefetch(&self, record: u64) {
        if let Ok((file, frame)) = self.frame(record) {
            self.files.prefetch(file, frame.start, frame.end - frame.start);
        }
    }
}

/// The checksum of a frame: CRC-32C, rotated and added to, so that the checksum of bytes that hold one differs from it.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The length of the record whose frame begins at `at`, its checksum compared.
fn length(object: &dyn Object, at: u64) -> Result<u64> {
    let wrong = |what: String| {
        Error::corrupt(what).at(object.name()).byte(at).hint("the copy looks unfinished or damaged")
    };
    if object.size() - at < BEFORE + AFTER {
        return Err(wrong(format!("{} trailing bytes that are not a frame", object.size() - at)));
    }
    let mut scratch = Vec::new();
    let bytes = object.read(at, BEFORE as usize, &mut scratch)?;
    let (length, sum) = bytes.split_at(8);
    let said = sum.first_chunk::<4>().map_or(0, |sum| u32::from_le_bytes(*sum));
    if checksum(length) != said {
        return Err(wrong("the length of a record has another checksum than was written".to_string()));
    }
    let length = length.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
    if length <= object.size() - at - BEFORE - AFTER {
        Ok(length)
    } else {
        Err(wrong(format!("a record of {length} bytes, of which {} are there", object.size() - at - BEFORE)))
    }
}

// An object that others hold too.
type Shared = Arc<dyn Object>;
