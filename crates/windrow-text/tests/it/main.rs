//! Tokenizers against the Python packages on real text, and against definitions that lie.

#![cfg(test)]

mod definitions;
mod golden;
mod hostile;
mod text;

use std::path::PathBuf;

use windrow_text::Tokenizer;

/// A file below the repository's `testdata`.
fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn tiny4k() -> Tokenizer {
    Tokenizer::load(&testdata("tokenizer/tiny4k").display().to_string()).unwrap()
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    tokenizer.encode(text, &mut ids).unwrap();
    ids
}

fn special_ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    tokenizer.encode_special(text, &mut ids).unwrap();
    ids
}

fn corpus() -> Vec<String> {
    let lines = std::fs::read_to_string(testdata("text/corpus.jsonl")).unwrap();
    lines
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().to_string()
        })
        .collect()
}
