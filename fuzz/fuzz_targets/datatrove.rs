//! datatrove's files: any ends, metadata and loss bytes beside any token IDs.
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
    ends: Option<Vec<u64>>,
    short: u8,
    metadata: Option<&'a str>,
    loss: Option<&'a [u8]>,
    dtype: Option<u8>,
    batch_dtype: Option<u8>,
    cuts: [Cut; 2],
    data: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut store = Memory::new().with("a.ds", input.data);
    if let Some(ends) = &input.ends {
        let mut bytes: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        bytes.truncate(bytes.len().saturating_sub(usize::from(input.short)));
        store = store.with("a.ds.index", bytes);
    }
    if let Some(text) = input.metadata {
        store = store.with("a.ds.metadata", text.as_bytes());
    }
    if let Some(loss) = input.loss {
        store = store.with("a.ds.loss", loss);
    }
    let options = Options {
        format: Some("datatrove".to_string()),
        dtype: input.dtype.map(dtype),
        ..Options::default()
    };
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
