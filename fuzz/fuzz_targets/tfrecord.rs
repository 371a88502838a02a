//! TFRecord: frames with right checksums around any bytes, or any bytes, read as each kind of payload.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::format::{Options, Payload};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::opened;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    records: Vec<&'a [u8]>,
    rest: &'a [u8],
    payload: Option<u8>,
    column: Option<&'a str>,
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fuzz_target!(|input: Input<'_>| {
    let mut bytes = Vec::new();
    for record in &input.records {
        let length = (record.len() as u64).to_le_bytes();
        bytes.extend([&length[..], &checksum(&length), record, &checksum(record)].concat());
    }
    bytes.extend(input.rest);
    let kinds = [Payload::Bytes, Payload::Text, Payload::Json, Payload::Example];
    let options = Options {
        format: Some("tfrecord".to_string()),
        payload: input.payload.map(|kind| kinds[usize::from(kind) % kinds.len()]),
        column: input.column.map(str::to_string),
        ..Options::default()
    };
    let store = Memory::new().with("a.tfrecord", bytes);
    opened(FORMATS, store, "", &options);
});
