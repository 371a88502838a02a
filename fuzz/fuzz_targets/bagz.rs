//! Bagz: any ends behind or beside any bytes, compressed or not.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::DType;
use windrow_core::format::Options;
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::opened;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    data: &'a [u8],
    frames: bool,
    ends: Vec<u16>,
    apart: bool,
    compressed: bool,
    numbers: bool,
}

fuzz_target!(|input: Input<'_>| {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    if input.frames {
        for part in input.data.chunks(7) {
            bytes.extend(zstd::bulk::compress(part, 1).expect("memory takes all"));
            ends.extend((bytes.len() as u64).to_le_bytes());
        }
    } else {
        bytes.extend(input.data);
        ends.extend(input.ends.iter().flat_map(|end| u64::from(*end).to_le_bytes()));
    }
    let name = if input.compressed { "a.bagz" } else { "a.bag" };
    let store = if input.apart {
        Memory::new().with(&format!("limits.{name}"), ends).with(name, bytes)
    } else {
        Memory::new().with(name, [bytes, ends].concat())
    };
    let options = Options {
        format: Some("bagz".to_string()),
        dtype: input.numbers.then_some(DType::U16),
        ..Options::default()
    };
    opened(FORMATS, store, "", &options);
});
