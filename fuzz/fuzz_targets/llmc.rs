//! llm.c's token files: any header before any bytes, one file or two.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::{Cut, drive, dtype};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    magic: bool,
    version: i32,
    count: i32,
    header: u16,
    dtype: Option<u8>,
    batch_dtype: Option<u8>,
    cuts: [Cut; 2],
    data: &'a [u8],
    more: Option<&'a [u8]>,
}

fuzz_target!(|input: Input<'_>| {
    let magic = if input.magic { 20_240_520 } else { 20_240_801 };
    let mut bytes: Vec<u8> =
        [magic, input.version, input.count].iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(1024.min(12 + usize::from(input.header)), 0);
    bytes.extend(input.data);
    let mut store = Memory::new().with("a.bin", bytes);
    if let Some(more) = input.more {
        store = store.with("b.bin", more);
    }
    let options =
        Options { format: Some("llmc".to_string()), dtype: input.dtype.map(dtype), ..Options::default() };
    let Ok(source) =
        Probe::at(FORMATS, Arc::new(store), "").and_then(|probe| open(FORMATS, &probe, &options))
    else {
        return;
    };
    for record in 0..source.len().min(100) {
        source.extras(record).expect("the metadata of a record");
    }
    drive(&source, &input.cuts, input.batch_dtype.map(dtype), 0);
});
