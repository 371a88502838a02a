//! Stores that seqax and zarr-python wrote.

use std::fs;
use std::path::Path;

use serde_json::Value;
use windrow_core::format::{Confidence, Format, Probe};
use windrow_core::source::conformance;
use windrow_core::store::Local;
use windrow_core::{Kind, Span};
use windrow_zarr::FlatTokens;
use zarrs::array::codec::{BloscCompressionLevel, BloscCompressor, BloscShuffleMode, blosc_compress_bytes};

use crate::stores::{golden, ids, open, read_with_calls, sequences};

fn json(name: &str) -> Value {
    serde_json::from_slice(&fs::read(golden().join(name)).unwrap()).unwrap()
}

fn lists(value: &Value) -> Vec<Vec<i64>> {
    serde_json::from_value(value.clone()).unwrap()
}

fn check(path: &Path, expected: &Value) {
    let wanted = lists(&expected["sequences"]);
    for source in [open(path).unwrap(), read_with_calls(path).unwrap()] {
        assert_eq!(sequences(source.as_ref()).unwrap(), wanted, "{}", path.display());
        let stored = expected.get("stored").unwrap_or(expected);
        assert_eq!(source.schema().vocab_size, stored["max_token_id"].as_u64().map(|id| id + 1));
        conformance::check(source.as_ref()).unwrap();
        let joined = source.joined().unwrap();
        conformance::check(joined.as_ref()).unwrap();
        let all = Span { record: 0, start: 0, len: joined.length(0).unwrap() };
        assert_eq!(ids(joined.as_ref(), all).unwrap(), wanted.concat());
    }
}

#[test]
fn what_seqax_wrote_is_read_equal() {
    let sets = json("datasets.json");
    for (name, splits) in sets.as_object().unwrap() {
        for (split, expected) in splits.as_object().unwrap() {
            check(&golden().join(name).join(split), expected);
        }
    }
}

#[test]
fn what_zarr_python_wrote_is_read_equal() {
    let expected = json("zarr_variants/expected.json");
    let mut seen = 0;
    for entry in fs::read_dir(golden().join("zarr_variants")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check(&path.join("train"), &expected);
            check(&path.join("validation"), &expected);
            seen += 1;
        }
    }
    assert_eq!(seen, 12);
}

#[test]
fn a_chunk_that_is_no_multiple_of_blosc_s_values_is_read() {
    // A writer of version 3 may give blosc any size of values; zarr-python does with `BloscCodec(typesize=8)`.
    let len = 65_537_u64;
    let wanted: Vec<i64> = (0..len as i64).map(|i| i % 9_999).collect();
    let encoded = |(i, id): (usize, &i64)| (2 * *id as u32 + u32::from(i == 0)).to_le_bytes();
    let bytes: Vec<u8> = wanted.iter().enumerate().flat_map(encoded).collect();
    let described = |len: u64, dtype: &str, codec: &str| {
        let grid = format!(r#"{{"name":"regular","configuration":{{"chunk_shape":[{len}]}}}}"#);
        format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":[{len}],"data_type":"{dtype}","chunk_grid":{grid},
            "chunk_key_encoding":{{"name":"default"}},"fill_value":0,"attributes":{{}},
            "codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}}{codec}]}}"#
        )
    };
    for value_size in [3, 7, 8, 16] {
        for (shuffle, mode) in [
            ("noshuffle", BloscShuffleMode::NoShuffle),
            ("shuffle", BloscShuffleMode::Shuffle),
            ("bitshuffle", BloscShuffleMode::BitShuffle),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let array = |name: &str, text: String, chunk: &[u8]| {
                fs::create_dir_all(folder.path().join(name).join("c")).unwrap();
                fs::write(folder.path().join(name).join("zarr.json"), text).unwrap();
                fs::write(folder.path().join(name).join("c/0"), chunk).unwrap();
            };
            let group = r#"{"zarr_format":3,"node_type":"group","attributes":{"max_token_id":9998}}"#;
            fs::write(folder.path().join("zarr.json"), group).unwrap();
            let level = BloscCompressionLevel::try_from(5).unwrap();
            let lz4 = BloscCompressor::LZ4;
            let stored = blosc_compress_bytes(&bytes, level, mode, value_size, lz4, 0, 1).unwrap();
            let codec = format!(
                r#",{{"name":"blosc","configuration":{{"typesize":{value_size},"cname":"lz4","clevel":5,
                "shuffle":"{shuffle}","blocksize":0}}}}"#
            );
            array("encoded_tokens", described(len, "uint32", &codec), &stored);
            array(
                "seq_starts",
                described(2, "uint64", ""),
                &[0_u64.to_le_bytes(), len.to_le_bytes()].concat(),
            );
            let source = open(folder.path()).unwrap();
            let found = ids(source.as_ref(), Span { record: 0, start: 0, len }).unwrap();
            assert!(found == wanted, "{codec}");
            let last = ids(source.as_ref(), Span { record: 0, start: len - 1, len: 1 }).unwrap();
            assert_eq!(last, wanted[wanted.len() - 1..], "{codec}");
        }
    }
}

#[test]
fn a_set_of_splits_names_them() {
    let store = std::sync::Arc::new(Local::new(golden()));
    let look = Probe::at(&[&FlatTokens], store, "doc.zarr").unwrap();
    assert_eq!(FlatTokens.recognise(&look), Confidence::Yes);
    assert_eq!(FlatTokens.parts(&look), ["doc.zarr/train", "doc.zarr/validation"]);
    let error = open(&golden().join("doc.zarr")).err().unwrap();
    assert_eq!(error.kind(), Kind::NotFound);
    assert!(error.hint_text().unwrap().contains(".split(\"train\")"), "{error}");
}
