//! Stores that seqax and zarr-python wrote.

use std::fs;
use std::path::Path;

use serde_json::Value;
use windrow_core::format::{Confidence, Format, Probe};
use windrow_core::source::conformance;
use windrow_core::store::Local;
use windrow_core::{Kind, Span};
use windrow_zarr::FlatTokens;

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
fn a_set_of_splits_names_them() {
    let store = std::sync::Arc::new(Local::new(golden()));
    let look = Probe::at(&[&FlatTokens], store, "doc.zarr").unwrap();
    assert_eq!(FlatTokens.recognise(&look), Confidence::Yes);
    assert_eq!(FlatTokens.parts(&look), ["doc.zarr/train", "doc.zarr/validation"]);
    let error = open(&golden().join("doc.zarr")).err().unwrap();
    assert_eq!(error.kind(), Kind::NotFound);
    assert!(error.hint_text().unwrap().contains("split=\"train\""), "{error}");
}
