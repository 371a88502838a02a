//! Definitions of many kinds give the ids of the tokenizers library, and the common ones give them fast.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tokenizers::Tokenizer as Library;
use windrow_text::Tokenizer;

use crate::{ids, special_ids, testdata};

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A definition, loaded by windrow and by the library.
struct Loaded {
    ours: Tokenizer,
    text: Library,
    special: Library,
}

impl Loaded {
    fn of(definition: &Value) -> Loaded {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokenizer.json"), definition.to_string()).unwrap();
        let mut text = Library::from_bytes(definition.to_string()).unwrap();
        text.with_truncation(None).unwrap();
        text.with_padding(None);
        let special = text.clone();
        text.set_encode_special_tokens(true);
        Loaded { ours: Tokenizer::load(&folder.path().display().to_string()).unwrap(), text, special }
    }

    #[track_caller]
    fn check(&self, text: &str) {
        let library = |library: &Library| library.encode_fast(text, false).unwrap().get_ids().to_vec();
        assert_eq!(ids(&self.ours, text), library(&self.text), "{text:?}");
        assert_eq!(special_ids(&self.ours, text), library(&self.special), "special, {text:?}");
    }
}

fn tiny4k() -> Value {
    serde_json::from_slice(&std::fs::read(testdata("tokenizer/tiny4k/tokenizer.json")).unwrap()).unwrap()
}

fn with(changes: &[(&str, Value)]) -> Value {
    let mut root = tiny4k();
    for (place, value) in changes {
        *root.pointer_mut(place).unwrap() = value.clone();
    }
    root
}

fn split(expression: &str, behavior: &str, invert: bool) -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": invert},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})
}

// Every combination of the flags but `special`, for texts that cases and normal forms change.
fn added() -> Value {
    let texts = ["FLU-19", "New York", "caf\u{e9}", "e\u{301}", "<tool>", "Ⅷ", "ﬁn", " ab"];
    let token = |i: usize| {
        json!({"id": 5000 + i, "content": format!("{}{}", texts[i % texts.len()], if i < texts.len() { "" } else { "x" }),
            "single_word": i & 1 > 0, "lstrip": i & 2 > 0, "rstrip": i & 4 > 0, "normalized": i & 8 == 0, "special": i % 5 == 4})
    };
    (0..16).map(token).collect()
}

fn normalizers() -> Vec<Value> {
    let by_name =
        ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"].map(|name| json!({"type": name}));
    let bert = json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true});
    let put =
        json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "x"}, {"type": "NFC"}]});
    by_name.into_iter().chain([Value::Null, bert, put]).collect()
}

#[test]
fn added_tokens_are_found_where_the_library_finds_them_behind_any_normalizer() {
    for normalizer in normalizers() {
        let loaded = Loaded::of(&with(&[("/normalizer", normalizer.clone()), ("/added_tokens", added())]));
        assert_eq!(loaded.ours.backend(), "windrow", "{normalizer}");
        for text in [
            "FLU-19 and flu-19 and Flu-19, FLU\u{2010}19",
            "new york, New York, NEW YORK, newyork New Yorkx",
            "caf\u{e9} cafe\u{301} CAF\u{c9} a\u{301} e\u{301}x",
            "\u{ff46}\u{ff4c}\u{ff55}-19 viii Ⅷ ⅷ fin ﬁn <TOOL> <tool>",
            "  ab ab  abx",
            "",
            "flu-19",
        ] {
            loaded.check(text);
        }
    }
}

#[test]
fn added_tokens_that_the_normalizer_makes_the_same_are_refused() {
    let load = |normalizer: &str, tokens: &[(&str, bool)]| {
        let token = |(i, (content, normalized)): (usize, &(&str, bool))| {
            json!({"id": 4096 + i, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": normalized, "special": false})
        };
        let tokens: Value = tokens.iter().enumerate().map(token).collect();
        let folder = tempfile::tempdir().unwrap();
        let root = with(&[("/normalizer", json!({"type": normalizer})), ("/added_tokens", tokens)]);
        std::fs::write(folder.path().join("tokenizer.json"), root.to_string()).unwrap();
        Tokenizer::load(&folder.path().display().to_string()).map(|tokenizer| ids(&tokenizer, "foo"))
    };
    let e = load("Lowercase", &[("Foo", true), ("bar", true), ("foo", true)]).unwrap_err();
    assert_eq!(e.kind(), windrow_core::Kind::Unsupported);
    for says in ["\"Foo\" (4096)", "\"foo\" (4098)", "added_tokens"] {
        assert!(format!("{e:#}").contains(says), "{e}");
    }
    // One of them is found first; the two stay two.
    assert_eq!(load("Lowercase", &[("Foo", true), ("foo", false)]).unwrap(), [4097]);
    assert_eq!(load("NFC", &[("Foo", true), ("foo", true)]).unwrap(), [4097]);
}

#[test]
fn a_long_s_after_an_apostrophe_is_cut_as_the_library_cuts_it() {
    // A merge over the border that the expression puts behind `'ſ`.
    let mut root = with(&[("/pre_tokenizer", split(LLAMA3, "Isolated", false))]);
    let mut next = root["model"]["vocab"].as_object().unwrap().len();
    for (left, right) in [("Å", "¿"), ("Å¿", "e"), ("'", "Å¿")] {
        root["model"]["vocab"].as_object_mut().unwrap().entry(format!("{left}{right}")).or_insert_with(
            || {
                next += 1;
                json!(next)
            },
        );
        let merges = root["model"]["merges"].as_array_mut().unwrap();
        merges.insert(
            0,
            match merges[0] {
                Value::String(_) => json!(format!("{left} {right}")),
                _ => json!([left, right]),
            },
        );
    }
    let loaded = Loaded::of(&root);
    assert_eq!(loaded.ours.backend(), "windrow");
    for text in ["'ſein", "in'ſein", "gut 'ſagen", "it'sa", "'Sa", "''ſe", "1'ſe", "'ſ", "ſe'"] {
        loaded.check(text);
    }
}

#[test]
fn equal_scores_are_decided_by_the_packages_last_bit() {
    // `-` before or behind eight others is the same sum to a reader that rounds to the nearest, and not to the package.
    let scores = [
        ("<unk>", "0.0"),
        ("-", "-11.908200672877685"),
        ("--", "-10.482891396753063"),
        ("---", "-10.043623437922228"),
        ("----", "-5.585582397340136"),
    ];
    let vocab: Vec<String> = scores.iter().map(|(piece, score)| format!("[{piece:?}, {score}]")).collect();
    let definition = format!(
        r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null, "model": {{"type": "Unigram", "unk_id": 0, "vocab": [{}], "byte_fallback": false}}}}"#,
        vocab.join(", ")
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), definition).unwrap();
    let tokenizer = Tokenizer::load(&folder.path().display().to_string()).unwrap();
    // What the Python package 0.23.3 gives.
    for (n, want) in [
        (9, &[1, 4, 4][..]),
        (10, &[2, 4, 4]),
        (13, &[1, 4, 4, 4]),
        (14, &[2, 4, 4, 4]),
        (18, &[2, 4, 4, 4, 4]),
        (21, &[1, 4, 4, 4, 4, 4]),
    ] {
        assert_eq!(ids(&tokenizer, &"-".repeat(n)), want, "{n}");
    }
}

#[test]
fn ordinary_definitions_have_a_fast_way_and_others_say_that_they_have_none() {
    let gpt2 =
        json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true});
    let starcoder = json!({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]});
    let whole =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let meta = json!({"type": "Metaspace", "replacement": "Ġ", "prepend_scheme": "first", "split": true});
    for fast in [
        gpt2,
        starcoder,
        whole,
        meta,
        Value::Null,
        split(LLAMA3, "Removed", true),
        split("[aeiou]|\\s+(?=x)", "Removed", false),
    ] {
        let loaded = Loaded::of(&with(&[("/pre_tokenizer", fast.clone())]));
        assert_eq!(loaded.ours.backend(), "windrow", "{fast}");
        ["It's 1234 o'clock,  x y", "", " ", "中文・かな"].iter().for_each(|text| loaded.check(text));
    }
    let slow = [
        ("/pre_tokenizer", split("in", "MergedWithNext", false)),
        ("/model/end_of_word_suffix", json!("</w>")),
        (
            "/model/vocab",
            tiny4k()["model"]["vocab"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(token, id)| (token.clone(), if token == "Z" { json!(1) } else { id.clone() }))
                .collect(),
        ),
    ];
    for change in &slow {
        assert_eq!(
            Loaded::of(&with(std::slice::from_ref(change))).ours.backend(),
            "tokenizers",
            "{}",
            change.0
        );
    }
}

const PARTS: &[&str] = &[
    "FLU-19",
    "flu-19",
    "New York",
    "NEW",
    " york",
    "café",
    "cafe\u{301}",
    "É",
    "<tool>",
    "<TOOL>",
    "<|endoftext|>",
    "Ⅷ",
    "viii",
    "ﬁn",
    "fin",
    "ſ",
    "'ſ",
    "'s",
    "'S",
    "K",
    "İ",
    "ß",
    "ǅ",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\u{a0}",
    "\u{200d}",
    "\u{301}",
    "a",
    "b",
    "ab",
    "x",
    "E",
    "1",
    "234",
    "½",
    "中",
    "文",
    "か",
    "・",
    "!",
    "-",
    "...",
    "'",
    "’",
    "🙂",
    "\0",
    "\u{ad}",
    "\u{fffd}",
    "\u{1e9e}",
    "\u{390}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_text_gives_the_librarys_ids(parts in vec(select(PARTS), 0..12), any in ".{0,3}") {
        use std::sync::LazyLock;
        static ALL: LazyLock<Vec<Loaded>> = LazyLock::new(|| {
            let cutters = [tiny4k()["pre_tokenizer"].clone(), split(LLAMA3, "Isolated", false)];
            let changed = |n: &Value, p: &Value| {
                Loaded::of(&with(&[("/normalizer", n.clone()), ("/pre_tokenizer", p.clone()), ("/added_tokens", added())]))
            };
            normalizers().iter().flat_map(|n| cutters.iter().map(move |p| changed(n, p))).collect()
        });
        let text = format!("{}{any}", parts.concat());
        ALL.iter().for_each(|loaded| loaded.check(&text));
    }
}
