//! Audio codes: the recordings of Dia's program, folders of tensors, crops, batches.

mod batches;
mod folders;
mod golden;
mod written;

use std::path::PathBuf;

use serde_json::Value;

use crate::format::copy_folder;

fn dia() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/4_dia"))
}

fn recorded(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(dia().join(name)).unwrap()).unwrap()
}

// The recorded folder without the tensor of fractions, which are no codes here; the original drops them.
fn preencoded() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(&dia().join("preencoded"), copy.path());
    std::fs::remove_file(copy.path().join("encoded_audio/float.pt")).unwrap();
    copy
}

// Numbers of nested lists, one after the other.
fn flat(value: &Value) -> Vec<i64> {
    match value {
        Value::Array(values) => values.iter().flat_map(flat).collect(),
        Value::Number(number) => vec![number.as_i64().unwrap()],
        other => panic!("{other}"),
    }
}
