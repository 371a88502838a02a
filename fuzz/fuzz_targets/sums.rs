//! Block checksums of any bytes beside a token file: what is read with them is what is there, or an error.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::DType;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::{Cut, drive, values};
use xxhash_rust::xxh3::xxh3_64;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// Bytes of the table's length that are something else.
    length: u64,
    name: u8,
    size: Option<u64>,
    block: Option<u64>,
    /// Place and value of bytes of the sums that are something else.
    changed: Option<(u16, u8)>,
    /// In place of all that.
    raw: Option<&'a [u8]>,
    repeated: u8,
    cuts: [Cut; 2],
    data: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let data = input.data.repeat(usize::from(input.repeated) + 1);
    let sums = input.raw.map_or_else(|| made(&input, &data), <[u8]>::to_vec);
    let store = Memory::new().with("a.bin", data.clone()).with("a.bin.windrow.sums", sums);
    let options = Options { dtype: Some(DType::U8), verify_checksums: true, ..Options::default() };
    let Ok(look) = Probe::at(FORMATS, Arc::new(store), "a.bin") else { return };
    let Ok(source) = open(FORMATS, &look, &options) else { return };
    if let Ok(found) = values(&source, 0) {
        assert_eq!(found, data);
        drive(&source, &input.cuts, None, 0);
    }
});

fn made(input: &Input<'_>, data: &[u8]) -> Vec<u8> {
    let mut sums: Vec<u8> =
        data.chunks(4096).flat_map(|block| (xxh3_64(block) as u32).to_le_bytes()).collect();
    if let Some((at, byte)) = input.changed
        && let Some(place) = sums.get_mut(usize::from(at))
    {
        *place = byte;
    }
    let name = ["a.bin", "b.bin", "", "x/a.bin"][usize::from(input.name) % 4];
    let size = input.size.unwrap_or(data.len() as u64);
    let block = input.block.unwrap_or(4096);
    let table =
        format!("{{\"version\":1,\"block\":{block},\"files\":[{{\"name\":\"{name}\",\"size\":{size}}}]}}");
    sums.extend_from_slice(table.as_bytes());
    sums.extend_from_slice(&(table.len() as u64 ^ input.length).to_le_bytes());
    sums.extend_from_slice(b"WRSUMS01");
    sums
}
