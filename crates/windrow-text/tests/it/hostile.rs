//! A tokenizer.json that lies gives an error, or a tokenizer; never a panic and never a huge allocation.

use windrow_core::Kind;
use windrow_text::Tokenizer;

use crate::testdata;

fn load(content: &[u8]) -> windrow_text::Result<Tokenizer> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, content).unwrap();
    Tokenizer::load(&path.display().to_string())
}

fn tiny4k() -> Vec<u8> {
    std::fs::read(testdata("tokenizer/tiny4k/tokenizer.json")).unwrap()
}

#[test]
fn a_broken_file_is_corrupt_and_named() {
    let good = tiny4k();
    let deep = "[".repeat(100_000);
    let deep_model = format!(r#"{{"model":{{"type":"BPE","vocab":{{"a":0}},"merges":{deep}"#);
    let huge = r#"{"model":{"type":"BPE","vocab":{"a":4294967295},"merges":[]}}"#;
    let list =
        format!(r#"{{"model":{{"type":"BPE","vocab":{{"a":0}},"merges":{deep}{}}}}}"#, "]".repeat(100_000));
    for bad in [
        b"".as_slice(),
        &good[..good.len() / 2],
        &good[..good.len() - 1],
        b"{}",
        b"[1,2,3]",
        b"\xff\xfe\x00",
        br#"{"model":7}"#,
        br#"{"model":{"type":"BPE","vocab":[],"merges":3}}"#,
        br#"{"model":{"type":"Nonsense","vocab":{"a":0}}}"#,
        br#"{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}"#,
        huge.as_bytes(),
        deep.as_bytes(),
        deep_model.as_bytes(),
        list.as_bytes(),
    ] {
        let e = load(bad).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt, "{e}");
        assert!(format!("{e:#}").contains("tokenizer.json"), "{e}");
    }
}

#[test]
fn a_changed_definition_gives_an_error_or_a_tokenizer() {
    let good: serde_json::Value = serde_json::from_slice(&tiny4k()).unwrap();
    let changes = [
        ("/model/dropout", serde_json::json!(0.5)),
        ("/model/unk_token", serde_json::json!("no such token")),
        ("/model/continuing_subword_prefix", serde_json::json!("a very long prefix é that no token has")),
        ("/model/end_of_word_suffix", serde_json::json!("é")),
        ("/model/byte_fallback", serde_json::json!(true)),
        ("/model/ignore_merges", serde_json::json!(true)),
        ("/model/vocab", serde_json::json!({})),
        ("/model/type", serde_json::json!("Unigram")),
        ("/model/type", serde_json::json!("WordPiece")),
        ("/model/type", serde_json::json!("WordLevel")),
        ("/added_tokens/0/content", serde_json::json!("")),
        ("/added_tokens/0/id", serde_json::json!(4095)),
        ("/added_tokens/0/special", serde_json::json!(false)),
        ("/normalizer", serde_json::json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"})),
        ("/normalizer", serde_json::json!({"type": "Replace", "pattern": {"Regex": "("}, "content": "x"})),
        ("/normalizer", serde_json::json!({"type": "Replace", "pattern": {"String": ""}, "content": "x"})),
        (
            "/pre_tokenizer",
            serde_json::json!({"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": false}),
        ),
        ("/pre_tokenizer", serde_json::json!({"type": "FixedLength", "length": 0})),
        ("/pre_tokenizer", serde_json::Value::Null),
        (
            "/decoder",
            serde_json::json!({"type": "Strip", "content": "x", "start": 4_000_000_000_u32, "stop": 3}),
        ),
        ("/decoder", serde_json::json!({"type": "Replace", "pattern": {"String": ""}, "content": ""})),
        (
            "/post_processor",
            serde_json::json!({"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}}),
        ),
    ];
    for (place, value) in changes {
        let mut changed = good.clone();
        *changed.pointer_mut(place).unwrap() = value.clone();
        match load(changed.to_string().as_bytes()) {
            Ok(tokenizer) => {
                let mut ids = Vec::new();
                let encoded = tokenizer.encode("Hello <|endoftext|> é 世界\r\n", &mut ids);
                let decoded = tokenizer.decode(&ids);
                println!("{place} {value}: {} {encoded:?} {decoded:?}", tokenizer.backend());
            }
            Err(e) => println!("{place} {value}: {e}"),
        }
    }
    let mut random = good;
    random["model"]["dropout"] = serde_json::json!(0.5);
    assert_eq!(load(random.to_string().as_bytes()).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn a_definition_the_fast_engine_reads_otherwise_is_encoded_by_the_reference() {
    // Pieces of a fixed length: a step that one engine knows and the other does not.
    let mut root: serde_json::Value = serde_json::from_slice(&tiny4k()).unwrap();
    root["pre_tokenizer"] = serde_json::json!({"type": "Sequence", "pretokenizers": [
        {"type": "FixedLength", "length": 5},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]});
    let tokenizer = load(root.to_string().as_bytes()).unwrap();
    assert_eq!(tokenizer.backend(), "tokenizers");
    for tokenizer in [tokenizer.clone(), tokenizer] {
        let (mut plain, mut special) = (Vec::new(), Vec::new());
        tokenizer.encode("Hello<|endoftext|>", &mut plain).unwrap();
        tokenizer.encode_special("Hello<|endoftext|>", &mut special).unwrap();
        assert!(!plain.contains(&0));
        assert_eq!(special.last(), Some(&0));
        assert_eq!(tokenizer.decode(&plain).unwrap(), "Hello<|endoftext|>");
        assert_eq!(tokenizer.decode(&special).unwrap(), "Hello<|endoftext|>");
    }
}
