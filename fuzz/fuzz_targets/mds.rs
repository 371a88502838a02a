//! MDS: an index with any columns and sizes over a shard of any bytes, read as rows and as numbers of a column.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use windrow_core::format::Options;
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::opened;

const ENCODINGS: [&str; 12] = [
    "int",
    "uint8",
    "float16",
    "str",
    "bytes",
    "json",
    "str_int",
    "ndarray",
    "ndarray:int32",
    "ndarray:uint8:2,1",
    "list[png]",
    "pkl",
];

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    columns: Vec<(u8, Option<i8>)>,
    samples: u8,
    offsets: Vec<u8>,
    column: Option<u8>,
    data: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut shard = u32::from(input.samples).to_le_bytes().to_vec();
    shard.extend(input.offsets.iter().flat_map(|offset| u32::from(*offset).to_le_bytes()));
    shard.extend(input.data);
    let columns = &input.columns[..input.columns.len().min(8)];
    let names: Vec<String> = (0..columns.len()).map(|n| format!("c{n}")).collect();
    let encodings: Vec<&str> =
        columns.iter().map(|(e, _)| ENCODINGS[usize::from(*e) % ENCODINGS.len()]).collect();
    let sizes: Vec<Option<i8>> = columns.iter().map(|(_, size)| *size).collect();
    let index = json!({ "version": 2, "shards": [{
        "version": 2, "format": "mds", "column_names": names, "column_encodings": encodings, "column_sizes": sizes,
        "compression": null, "hashes": [], "raw_data": { "basename": "s", "bytes": shard.len(), "hashes": {} },
        "samples": input.samples, "size_limit": 1, "zip_data": null,
    }]});
    let store = Memory::new().with("index.json", index.to_string().as_bytes()).with("s", shard);
    let options = Options {
        format: Some("mds".to_string()),
        column: input.column.map(|column| format!("c{}", column % 8)),
        ..Options::default()
    };
    opened(FORMATS, store, "", &options);
});
