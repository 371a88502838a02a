//! Bagz: records one after the other, then the end of each; zstd frames in `.bagz`, plain bytes in `.bag`.

mod write;

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{FormatInfo, Holds, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::{Object, at_once, key};
use windrow_core::{Error, Result};

use self::write::WriteBagz;
use crate::firsts::Firsts;
use crate::in_files::FileKind;
use crate::open_options::{COLUMN, COLUMNS, PAYLOAD};
use crate::payload::{self, Blobs};
use windrow_core::format::data_files::{DataFiles, gone};

/// What the name of the file with the ends begins with, where they are not at the end of the records.
const LIMITS: &str = "limits.";
/// Bytes of an end.
const WIDTH: u64 = 8;
/// A frame may expand to this much, or to [`MOST_RATIO`] times its size; more is refused.
const MOST_EXPANDED: u64 = 1 << 20;
const MOST_RATIO: u64 = 1000;

fn most_expanded(packed: u64) -> u64 {
    MOST_EXPANDED.max(packed.saturating_mul(MOST_RATIO))
}

/// Files of Bagz.
pub(crate) struct Bagz;

static INFO: FormatInfo = FormatInfo {
    name: "bagz",
    title: "Bagz",
    layout: "`.bagz` files of zstd frames and `.bag` files of plain records, also as shards; ends in the file or in `limits.<name>`",
    records: "what `payload=` says: bytes, text, JSON, or the features of a tf.train.Example; with `column=` or `dtype=` numbers",
    written_by: "bagz, `windrow convert --to bagz`, `wr.write`",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: &[".bagz", ".bag"],
    text_is_bytes: true,
    open_options: &[COLUMN, COLUMNS, PAYLOAD],
    written_as: "one .bagz of zstd frames or .bag: rows as JSON, arrays as their bytes",
    ..FormatInfo::NONE
};

impl FileKind for Bagz {
    const INFO: &'static FormatInfo = &INFO;
    const EXPECTED: &'static str = ".bagz` or `.bag";

    fn is_data(_: &Probe, name: &str) -> bool {
        let name = key::name_of(name);
        (key::has_suffix(name, ".bagz") || key::has_suffix(name, ".bag")) && !name.starts_with(LIMITS)
    }

    fn writer(_: &mut OwnOptions) -> Result<Box<dyn WriteFormat>> {
        Ok(Box::new(WriteBagz))
    }

    fn open(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource> {
        let files = DataFiles::listed(probe, keys.clone(), gone)?;
        let mut records = Records { files, shards: Vec::new(), firsts: Firsts::new() };
        for (file, name) in keys.iter().enumerate() {
            let limits = key::below(key::folder_of(name), &format!("{LIMITS}{}", key::name_of(name)));
            let limits = probe.file(&limits)?.map(|entry| probe.store.open_listed(&entry)).transpose()?;
            records.add(file, limits, key::has_suffix(name, ".bagz"))?;
        }
        payload::open(records, probe, options)
    }
}

/// A file, with where its ends are.
struct Shard {
    /// The file with the ends, where they are not at the end of the records.
    limits: Option<Arc<dyn Object>>,
    /// The first byte of the ends.
    start: u64,
    /// Bytes of all records.
    size: u64,
    is_compressed: bool,
}

/// The records of some files.
struct Records {
    files: DataFiles,
    shards: Vec<Shard>,
    firsts: Firsts,
}

impl Records {
    // The next file, its table of ends compared with its size.
    fn add(&mut self, file: usize, limits: Option<Arc<dyn Object>>, is_compressed: bool) -> Result<()> {
        let name = || limits.as_ref().map_or_else(|| self.files.name(file), |it| it.name().to_string());
        let wrong = |what: String, byte: u64| {
            Error::corrupt(what).at(name()).byte(byte).hint("the copy looks unfinished")
        };
        let bytes = self.files.size(file)?;
        // The last end is where the records end, and in one file with them where the ends begin.
        let (start, size, table_end, last) = match &limits {
            Some(limits) => {
                let last = limits.size().checked_sub(WIDTH).map(|at| word(limits.as_ref(), at));
                (0, bytes, limits.size(), last.transpose()?.unwrap_or(0))
            }
            None if bytes == 0 => (0, 0, 0, 0),
            None => {
                let at = bytes.checked_sub(WIDTH);
                let at = at.ok_or_else(|| wrong(format!("a file of {bytes} bytes"), 0))?;
                let mut last = [0; WIDTH as usize];
                self.files.peek(file, at, &mut last)?;
                let start = u64::from_le_bytes(last);
                if start > at {
                    return Err(wrong(format!("the ends begin at byte {start} of {bytes}"), at));
                }
                (start, start, bytes, start)
            }
        };
        let table = table_end - start;
        if !table.is_multiple_of(WIDTH) {
            return Err(wrong(format!("{table} bytes are not whole ends of {WIDTH} bytes"), start));
        }
        if last != size {
            return Err(wrong(
                format!("the last record ends at byte {last}, the records at {size}"),
                table_end.saturating_sub(WIDTH),
            ));
        }
        self.firsts.push(table / WIDTH);
        self.shards.push(Shard { limits, start, size, is_compressed });
        Ok(())
    }
}

fn word(object: &dyn Object, at: u64) -> Result<u64> {
    let mut scratch = Vec::new();
    let bytes = object.read(at, WIDTH as usize, &mut scratch)?;
    let word =
        bytes.first_chunk::<8>().ok_or_else(|| Error::corrupt("an end is cut short").at(object.name()))?;
    Ok(u64::from_le_bytes(*word))
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
        let (file, place) = self.place(record)?;
        let object = self.files.get(file)?;
        let stored = place.end - place.start;
        let size = at_once(stored).map_err(|e| e.record(record))?;
        // An empty record is no frame.
        if !self.shards[file].is_compressed || size == 0 {
            return object.read(place.start, size, scratch);
        }
        let mut frame = Vec::new();
        let frame = object.read(place.start, size, &mut frame)?;
        let most = most_expanded(stored);
        let wrong = |what: &str| {
            Error::corrupt(what)
                .at(object.name())
                .record(record)
                .byte(place.start)
                .hint("the copy looks damaged")
        };
        scratch.clear();
        let decoder = zstd::stream::read::Decoder::with_buffer(frame);
        let read = decoder.and_then(|decoder| decoder.take(most + 1).read_to_end(scratch));
        match read {
            Ok(found) if found as u64 <= most => Ok(scratch.as_slice()),
            Ok(_) => Err(wrong(&format!("{stored} bytes that expand to more than {most}"))),
            Err(cause) => Err(wrong("a record that is not a zstd frame").caused_by(cause)),
        }
    }

    fn size(&self, record: u64) -> Result<u64> {
        let (file, place) = self.place(record)?;
        if self.shards[file].is_compressed {
            Ok(self.blob(record, &mut Vec::new())?.len() as u64)
        } else {
            Ok(place.end - place.start)
        }
    }

    fn place(&self, record: u64) -> Result<(usize, Range<u64>)> {
        let (file, number) = self.firsts.find(record)?;
        let shard = &self.shards[file];
        let at = shard.start + number * WIDTH;
        let ends = match &shard.limits {
            Some(limits) => limits.as_ref(),
            None => self.files.get(file)?,
        };
        let start = if number == 0 { 0 } else { word(ends, at - WIDTH)? };
        let end = word(ends, at)?;
        if start <= end && end <= shard.size {
            Ok((file, start..end))
        } else {
            Err(Error::corrupt(format!("a record from byte {start} to {end} of {}", shard.size))
                .at(ends.name())
                .record(record)
                .byte(at)
                .hint("the copy looks damaged"))
        }
    }
}
