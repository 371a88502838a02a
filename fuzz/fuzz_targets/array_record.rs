//! ArrayRecord: chunks with right hashes around any records and any bytes, and a footer of any numbers.
#![no_main]

use highway::{HighwayHash, HighwayHasher, Key};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::DType;
use windrow_core::format::Options;
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::opened;

const BLOCK: usize = 1 << 16;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    chunks: Vec<Chunk<'a>>,
    /// What the footer says of each instead of what is true.
    footer: Vec<Option<(u64, u64, u64)>>,
    counts: Option<(u64, u64)>,
    numbers: bool,
    flips: Vec<(u32, u8)>,
}

#[derive(Arbitrary, Debug)]
enum Chunk<'a> {
    Records(Vec<&'a [u8]>),
    /// Data of any kind, with the number of records and the bytes of them that its header says.
    Any(&'a [u8], u8, u8, u32),
}

fn hash(bytes: &[u8]) -> u64 {
    let key = [0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572, 0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572];
    HighwayHasher::new(Key(key)).hash64(bytes)
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

fn message(numbers: [u64; 3]) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, number) in (1..).zip(numbers) {
        varint(field << 3, &mut out);
        varint(number, &mut out);
    }
    out
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        if out.len() % BLOCK == 0 {
            out.extend(hash(&[0; 16]).to_le_bytes());
            out.extend([0; 16]);
        }
        out.push(*byte);
    }
}

fn put_chunk(kind: u8, data: &[u8], records: u64, decoded: u64, out: &mut Vec<u8>) {
    let mut header = Vec::new();
    header.extend((data.len() as u64).to_le_bytes());
    header.extend(hash(data).to_le_bytes());
    header.extend((records << 8 | u64::from(kind)).to_le_bytes());
    header.extend(decoded.to_le_bytes());
    put(&hash(&header).to_le_bytes(), out);
    put(&header, out);
    put(data, out);
}

fn put_records(records: &[Vec<u8>], out: &mut Vec<u8>) -> u64 {
    let (mut sizes, mut data) = (Vec::new(), vec![0]);
    records.iter().for_each(|record| varint(record.len() as u64, &mut sizes));
    varint(sizes.len() as u64, &mut data);
    let values = records.concat();
    data.extend([sizes, values.clone()].concat());
    put_chunk(b'r', &data, records.len() as u64, values.len() as u64, out);
    values.len() as u64
}

fuzz_target!(|input: Input<'_>| {
    let mut bytes = Vec::new();
    put(&[0; 40], &mut bytes);
    let (mut footer, mut total) = (Vec::new(), 0);
    for (number, chunk) in input.chunks.iter().enumerate() {
        let start = bytes.len() as u64;
        let (records, decoded) = match chunk {
            Chunk::Records(records) => {
                let records: Vec<Vec<u8>> = records.iter().map(|record| record.to_vec()).collect();
                (records.len() as u64, put_records(&records, &mut bytes))
            }
            Chunk::Any(data, kind, records, decoded) => {
                put_chunk(*kind, data, u64::from(*records), u64::from(*decoded), &mut bytes);
                (u64::from(*records), u64::from(*decoded))
            }
        };
        total += records;
        // Empty chunks of many records are padded.
        put(&vec![0; records as usize], &mut bytes);
        let said = input.footer.get(number).copied().flatten();
        footer.push(said.map_or([start, decoded, records], |(a, b, c)| [a, b, c]));
    }
    let (chunks, records) = input.counts.unwrap_or((footer.len() as u64, total));
    let metadata = message([1, chunks, records]);
    let mut first = vec![10];
    varint(metadata.len() as u64, &mut first);
    first.extend(metadata);
    let rows: Vec<Vec<u8>> = [first].into_iter().chain(footer.into_iter().map(message)).collect();
    let at = bytes.len() as u64;
    put_records(&rows, &mut bytes);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    let postscript = message([at, 0x7193_0e70_4fda_e05e, 0]);
    put_records(&vec![postscript; 3], &mut bytes);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    for (at, bits) in input.flips {
        let at = at as usize % bytes.len();
        bytes[at] ^= bits;
    }
    let options = Options {
        format: Some("array_record".to_string()),
        dtype: input.numbers.then_some(DType::U16),
        ..Options::default()
    };
    let store = Memory::new().with("a.array_record", bytes);
    opened(FORMATS, store, "", &options);
});
