//! OLMo's files: any lines of documents, plain or compressed, beside any token IDs.
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
    lines: Option<&'a str>,
    plain: bool,
    dtype: Option<u8>,
    batch_dtype: Option<u8>,
    cuts: [Cut; 2],
    data: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut store = Memory::new().with("a.npy", input.data);
    if let Some(lines) = input.lines {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let packed =
            std::io::Write::write_all(&mut encoder, lines.as_bytes()).and_then(|()| encoder.finish());
        let packed = packed.expect("memory takes all");
        store = store.with("a.csv.gz", if input.plain { lines.as_bytes().to_vec() } else { packed });
    }
    let options =
        Options { format: Some("olmo".to_string()), dtype: input.dtype.map(dtype), ..Options::default() };
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
