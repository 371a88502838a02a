//! LitData: an index with any leaves over a chunk of any bytes, of each way of storing.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use windrow_core::format::Options;
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::opened;

const LEAVES: [&str; 10] = [
    "int",
    "str",
    "bytes",
    "no_header_tensor:16",
    "no_header_numpy:10",
    "tensor",
    "numpy",
    "json",
    "pickle",
    "bool",
];

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    leaves: Vec<u8>,
    items: u8,
    ends: Vec<u8>,
    storage: u8,
    tokens: bool,
    column: Option<u8>,
    data: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut chunk = u32::from(input.items).to_le_bytes().to_vec();
    let first = 4 + 4 * (u32::from(input.items) + 1);
    chunk.extend(
        input
            .ends
            .iter()
            .take(usize::from(input.items) + 1)
            .flat_map(|end| (first + u32::from(*end)).to_le_bytes()),
    );
    chunk.extend(input.data);
    if input.storage % 3 == 2 {
        chunk = [&b"LDFZ01\0\0\x01\0\0\0"[..], &u32::from(input.items).to_le_bytes(), input.data].concat();
    }
    let leaves: Vec<&str> =
        input.leaves.iter().take(6).map(|leaf| LEAVES[usize::from(*leaf) % LEAVES.len()]).collect();
    let keys: Vec<String> = (0..leaves.len()).map(|n| format!("c{n}")).collect();
    let node = json!({ "type": null, "context": null, "children_spec": [] });
    let spec = json!([1, {
        "type": "builtins.dict", "context": json!(keys).to_string(), "children_spec": vec![node; leaves.len()],
    }]);
    let (compression, level) = match input.storage % 3 {
        0 => (None, None),
        1 => (Some("zstd"), Some("sample")),
        _ => (Some("zstd"), Some("batch")),
    };
    let index = json!({
        "chunks": [{ "filename": "c.bin", "chunk_size": input.items, "chunk_bytes": chunk.len(), "dim": null }],
        "config": {
            "compression": compression, "compression_level": level, "data_format": leaves,
            "data_spec": spec.to_string(), "encryption": null,
            "item_loader": if input.tokens { "TokensLoader" } else { "PyTreeLoader" },
        },
    });
    let store = Memory::new().with("index.json", index.to_string().as_bytes()).with("c.bin", chunk);
    let options = Options {
        format: Some("litdata".to_string()),
        column: input.column.map(|column| format!("c{}", column % 6)),
        ..Options::default()
    };
    opened(FORMATS, store, "", &options);
});
