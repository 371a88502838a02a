//! Ids equal those that the Python packages recorded in testdata/golden/tokenizers/ids.json.

use serde::Deserialize;
use windrow_text::Tokenizer;
use xxhash_rust::xxh3::xxh3_64;

use crate::{corpus, ids, special_ids, testdata, tiny4k};

const HARD: &str = include_str!("../../assets/hard_strings.json");

#[derive(Deserialize)]
struct Recorded {
    package: String,
    hard: Vec<Vec<u32>>,
    documents: Vec<(usize, usize, String)>,
}

fn recorded(name: &str) -> Recorded {
    let text = std::fs::read(testdata("golden/tokenizers/ids.json")).unwrap();
    let mut all: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&text).unwrap();
    serde_json::from_value(all.remove(name).unwrap()).unwrap()
}

fn check(tokenizer: &Tokenizer, name: &str) {
    let recorded = recorded(name);
    let hard: Vec<String> = serde_json::from_str(HARD).unwrap();
    assert_eq!(hard.len(), recorded.hard.len(), "run testdata/golden/tokenizers/make.py");
    for (text, want) in hard.iter().zip(&recorded.hard) {
        assert_eq!(&ids(tokenizer, text), want, "{name} on {text:?}, {}", recorded.package);
        assert_eq!(&tokenizer.decode(want).unwrap(), text, "{name}");
    }
    let corpus = corpus();
    for (document, n_ids, hash) in &recorded.documents {
        let got = ids(tokenizer, &corpus[*document]);
        let bytes: Vec<u8> = got.iter().flat_map(|id| id.to_le_bytes()).collect();
        assert_eq!(
            (got.len(), format!("{:016x}", xxh3_64(&bytes))),
            (*n_ids, hash.clone()),
            "{name}, document {document}, {}",
            recorded.package
        );
        assert_eq!(tokenizer.decode(&got).unwrap(), corpus[*document], "{name}, document {document}");
    }
}

#[test]
fn a_tokenizer_json_gives_the_ids_of_the_python_package() {
    let tokenizer = tiny4k();
    assert_eq!(
        (tokenizer.backend(), tokenizer.name(), tokenizer.vocab_size()),
        ("windrow", "tokenizer.json", 4096)
    );
    check(&tokenizer, "tiny4k");
}

#[test]
fn gpt2_gives_the_ids_of_the_python_package() {
    let tokenizer = Tokenizer::load("gpt2").unwrap();
    assert_eq!((tokenizer.backend(), tokenizer.name(), tokenizer.vocab_size()), ("windrow", "gpt2", 50_257));
    assert_eq!(special_ids(&tokenizer, "Hello world<|endoftext|>"), [15496, 995, 50256]);
    check(&tokenizer, "gpt2");
}

#[test]
fn cl100k_base_gives_the_ids_of_the_python_package() {
    let tokenizer = Tokenizer::load("cl100k_base").unwrap();
    assert_eq!((tokenizer.vocab_size(), tokenizer.eos().unwrap()), (100_331, Some(100_257)));
    assert_eq!(tokenizer.id_of("<|user|>"), Some(100_278));
    assert_eq!(special_ids(&tokenizer, "a<|endoftext|>"), [64, 100_257]);
    check(&tokenizer, "cl100k_base");
}

#[test]
fn o200k_base_gives_the_ids_of_the_python_package() {
    let tokenizer = Tokenizer::load("o200k_base").unwrap();
    assert_eq!((tokenizer.vocab_size(), tokenizer.eos().unwrap()), (200_073, Some(199_999)));
    check(&tokenizer, "o200k_base");
}

#[test]
fn deepseek_v3_gives_the_ids_of_the_python_package() {
    let tokenizer = Tokenizer::load("deepseek_v3").unwrap();
    assert_eq!((tokenizer.vocab_size(), tokenizer.eos().unwrap()), (128_954, Some(1)));
    assert_eq!(special_ids(&tokenizer, "<｜end▁of▁sentence｜>"), [1]);
    assert!(!ids(&tokenizer, "<｜end▁of▁sentence｜>").contains(&1));
    check(&tokenizer, "deepseek_v3");
}

#[cfg(feature = "llama3")]
#[test]
fn llama3_gives_the_ids_of_the_python_package() {
    let tokenizer = Tokenizer::load("llama3").unwrap();
    assert_eq!((tokenizer.vocab_size(), tokenizer.eos().unwrap()), (128_354, Some(128_001)));
    assert_eq!(special_ids(&tokenizer, "<|end_of_text|>"), [128_001]);
    check(&tokenizer, "llama3");
}

#[cfg(not(feature = "llama3"))]
#[test]
fn llama3_left_out_says_why_and_what_to_do() {
    let e = Tokenizer::load("llama3").unwrap_err();
    assert_eq!(e.kind(), windrow_core::Kind::Unsupported);
    let text = format!("{e:#}");
    assert!(text.contains("Llama 3.1 Community Licence") && text.contains("`llama3`"), "{text}");
}
