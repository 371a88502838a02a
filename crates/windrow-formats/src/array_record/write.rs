//! One file of a chunk for every record, uncompressed, as ArrayRecordWriter writes it with `group_size:1,uncompressed`.

use windrow_core::format::Payload;
use windrow_core::format::write::{Begin, RecordWriter, Target, WriteFormat, WriteInfo};
use windrow_core::output::Growing;
use windrow_core::{Error, Result};

use super::INFO;
use super::blocks::{self, BLOCK, end_of, hash};
use super::chunk;
use super::footer::{MAGIC, VERSION};
use crate::payload::{self, Layout};
use crate::protobuf::{put_bytes, put_number, put_varint};

/// What the first chunk is, and chunks that only fill a block.
const SIGNATURE: u8 = b's';
const PADDING: u8 = b'p';
/// How the package calls these settings.
const OPTIONS: &str =
    "group_size:1,transpose:false,pad_to_block_boundary:false,uncompressed,max_parallelism:1";

/// A file of records.
pub(super) struct WriteArrayRecord;

impl WriteFormat for WriteArrayRecord {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            holds_rows: true,
            ..WriteInfo::of(INFO.name, Target::File(&[".array_record", ".arrayrecord"]))
        }
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        payload::begin(begin, "ArrayRecord", Payload::Example, None, Chunks { rows: Vec::new() })
    }
}

struct Chunks {
    /// Where each chunk begins, and the bytes of its record: in memory, as the footer comes last.
    rows: Vec<(u64, u64)>,
}

impl Layout for Chunks {
    fn put(&mut self, record: &[u8], file: &mut Growing) -> Result<()> {
        if file.size() == 0 {
            put_chunk(SIGNATURE, &[], 0, 0, file)?;
        }
        self.rows.push((file.size(), record.len() as u64));
        put_records(&[record], file)
    }

    fn end(&mut self, file: &mut Growing) -> Result<()> {
        let mut metadata = Vec::new();
        let count = self.rows.len() as u64;
        for (field, number) in [(1, VERSION), (2, count), (3, count)] {
            put_number(field, number, &mut metadata);
        }
        put_bytes(4, OPTIONS.as_bytes(), &mut metadata);
        let (mut rows, mut ends) = (Vec::new(), Vec::new());
        put_bytes(1, &metadata, &mut rows);
        ends.push(rows.len());
        for (start, size) in self.rows.drain(..) {
            for (field, number) in [(1, start), (2, size), (3, 1)] {
                put_number(field, number, &mut rows);
            }
            ends.push(rows.len());
        }
        let footer = file.size();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let records: Vec<&[u8]> = starts.zip(&ends).map(|(start, end)| &rows[start..*end]).collect();
        put_records(&records, file)?;
        fill_block(file)?;
        let mut postscript = Vec::new();
        put_number(1, footer, &mut postscript);
        put_number(2, MAGIC, &mut postscript);
        put_records(&[postscript.as_slice(); 3], file)?;
        fill_block(file)
    }
}

// A chunk of records.
fn put_records(records: &[&[u8]], file: &mut Growing) -> Result<()> {
    let mut sizes = Vec::new();
    records.iter().for_each(|record| put_varint(record.len() as u64, &mut sizes));
    // The codec: none.
    let mut data = vec![0];
    put_varint(sizes.len() as u64, &mut data);
    data.append(&mut sizes);
    let before = data.len();
    records.iter().for_each(|record| data.extend_from_slice(record));
    let decoded = (data.len() - before) as u64;
    put_chunk(chunk::SIMPLE, &data, records.len() as u64, decoded, file)
}

// Nothing up to the next multiple of a block.
fn fill_block(file: &mut Growing) -> Result<()> {
    let start = file.size();
    let room = match start.next_multiple_of(BLOCK) - start {
        0 => return Ok(()),
        // The next block is filled, too.
        room if room < chunk::HEADER => room + BLOCK - blocks::HEADER,
        room => room,
    };
    put_chunk(PADDING, &vec![0; (room - chunk::HEADER) as usize], 0, 0, file)
}

fn put_chunk(kind: u8, data: &[u8], records: u64, decoded: u64, file: &mut Growing) -> Result<()> {
    let start = file.size();
    let end = end_of(start, chunk::HEADER + data.len() as u64)
        .ok_or_else(|| Error::config("more bytes than a file can hold"))?;
    let mut header = Vec::new();
    header.extend((data.len() as u64).to_le_bytes());
    header.extend(hash(data).to_le_bytes());
    header.extend((records << 8 | u64::from(kind)).to_le_bytes());
    header.extend(decoded.to_le_bytes());
    for mut bytes in [&hash(&header).to_le_bytes()[..], &header, data] {
        while !bytes.is_empty() {
            let at = file.size();
            if at.is_multiple_of(BLOCK) {
                let places = [(at - start).to_le_bytes(), (end - at).to_le_bytes()].concat();
                file.write(&hash(&places).to_le_bytes())?;
                file.write(&places)?;
            }
            let room = (BLOCK - file.size() % BLOCK) as usize;
            let (part, rest) = bytes.split_at(room.min(bytes.len()));
            file.write(part)?;
            bytes = rest;
        }
    }
    Ok(())
}
