//! What a caller relies on: text stays text, documents end as asked, another tokenizer is refused.

use std::fmt::Write as _;

use windrow_core::Kind;
use windrow_core::manifest::TokenizerLock;
use windrow_text::{NAMES, Tokenizer};

use crate::{corpus, ids, special_ids, testdata, tiny4k};

fn all() -> Vec<Tokenizer> {
    let built_in = NAMES.iter().filter(|&&name| name != "llama3" || cfg!(feature = "llama3"));
    built_in.map(|name| Tokenizer::load(name).unwrap()).chain([tiny4k()]).collect()
}

#[test]
fn a_special_token_in_the_text_stays_text_unless_asked() {
    for tokenizer in all() {
        assert!(!tokenizer.special().is_empty(), "{}", tokenizer.name());
        for (token, id) in tokenizer.special() {
            let text = format!("a{token} b{token}");
            let plain = ids(&tokenizer, &text);
            assert!(!plain.contains(id), "{}: {token} became {id}", tokenizer.name());
            assert_eq!(tokenizer.decode(&plain).unwrap(), text);
            let special = special_ids(&tokenizer, &text);
            assert_eq!(special.iter().filter(|i| *i == id).count(), 2, "{}: {token}", tokenizer.name());
            assert_eq!(tokenizer.decode(&special).unwrap(), text);
            assert_eq!(tokenizer.id_of(token), Some(*id));
            assert!(u64::from(*id) < tokenizer.vocab_size());
        }
    }
}

#[test]
fn encoding_adds_to_what_is_there_and_no_template() {
    for tokenizer in all() {
        let mut out = vec![7];
        tokenizer.encode("ab", &mut out).unwrap();
        assert_eq!(out[1..], ids(&tokenizer, "ab"));
        tokenizer.encode("", &mut out).unwrap();
        assert_eq!(out.len(), 1 + ids(&tokenizer, "ab").len());
    }
}

#[test]
fn a_cut_character_decodes_to_the_replacement_character_and_an_unknown_id_to_an_error() {
    for tokenizer in all() {
        let wolf = ids(&tokenizer, "\u{10348}");
        assert!(wolf.len() > 1, "{}", tokenizer.name());
        assert!(tokenizer.decode(&wolf[..wolf.len() - 1]).unwrap().starts_with('\u{fffd}'));
        let e = tokenizer.decode(&[3_000_000_000]).unwrap_err();
        assert_eq!(e.kind(), Kind::OutOfRange, "{}: {e}", tokenizer.name());
    }
}

#[test]
fn eos_is_found_by_name_or_id() {
    let t = tiny4k();
    assert_eq!(t.resolve_eos("auto").unwrap(), Some(0));
    assert_eq!(t.resolve_eos("none").unwrap(), None);
    assert_eq!(t.resolve_eos("4095").unwrap(), Some(4095));
    assert_eq!(t.resolve_eos("<|endoftext|>").unwrap(), Some(0));
    for wrong in ["4096", "99999999999999", "<eos>", "", "-1"] {
        let e = t.resolve_eos(wrong).unwrap_err();
        assert_eq!(e.kind(), Kind::Config);
        assert!(format!("{e:#}").contains("<|endoftext|> = 0"), "{e}");
    }
    assert_eq!(Tokenizer::load("bytes").unwrap().resolve_eos("auto").unwrap(), Some(256));
}

#[test]
fn a_word_that_is_a_token_does_not_end_documents_by_its_name() {
    let t = tiny4k();
    let id = t.id_of("the").unwrap();
    let e = t.resolve_eos("the").unwrap_err();
    assert_eq!(e.message(), format!("\"the\" is a token of {}, but not a special one", t.name()));
    assert!(e.hint_text().unwrap().contains(&format!("its ID, {id}")), "{e}");
    assert_eq!(t.resolve_eos(&id.to_string()).unwrap(), Some(id));
}

// tiny4k with `</s>` as a second special token, and files beside it.
fn beside(files: &[(&str, &str)]) -> windrow_core::Result<Tokenizer> {
    let folder = tempfile::tempdir().unwrap();
    let content = std::fs::read(testdata("tokenizer/tiny4k/tokenizer.json")).unwrap();
    let mut root: serde_json::Value = serde_json::from_slice(&content).unwrap();
    let mut second = root["added_tokens"][0].clone();
    (second["id"], second["content"]) = (4096.into(), "</s>".into());
    root["added_tokens"].as_array_mut().unwrap().push(second);
    std::fs::write(folder.path().join("tokenizer.json"), root.to_string()).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    Tokenizer::load(&folder.path().display().to_string())
}

#[test]
fn the_end_is_the_one_that_lies_beside_the_definition() {
    let (config, map) = ("tokenizer_config.json", "special_tokens_map.json");
    let (end, flagged) =
        (r#"{"eos_token": "</s>"}"#, r#"{"eos_token": {"content": "</s>", "special": true}}"#);
    let other = r#"{"eos_token": "<|endoftext|>"}"#;
    for (files, want) in [
        (vec![], 0),
        (vec![(config, end)], 4096),
        (vec![(config, flagged)], 4096),
        (vec![(map, flagged)], 4096),
        (vec![(config, end), (map, other)], 4096),
        (vec![(config, "{}"), (map, end)], 4096),
        // Nothing that can be known: the well-known names.
        (vec![(config, r#"{"eos_token": null}"#), (map, r#"{"eos_token": [1]}"#)], 0),
    ] {
        let tokenizer = beside(&files).unwrap();
        assert_eq!(tokenizer.eos().unwrap(), Some(want), "{files:?}");
        assert_eq!(tokenizer.resolve_eos("auto").unwrap(), Some(want));
        assert_eq!(tokenizer.lock(), beside(&[]).unwrap().lock());
    }
    // Another token in its place would be a guess.
    let lacking = r#"{"eos_token": "<none>"}"#;
    for (files, name) in [(vec![(config, lacking), (map, end)], config), (vec![(map, lacking)], map)] {
        let tokenizer = beside(&files).unwrap();
        for e in [tokenizer.eos().unwrap_err(), tokenizer.resolve_eos("auto").unwrap_err()] {
            assert_eq!(e.kind(), Kind::Config);
            assert!(
                e.message().contains("\"<none>\"") && e.place().file.as_ref().unwrap().ends_with(name),
                "{e:#}"
            );
        }
        assert_eq!(tokenizer.resolve_eos("none").unwrap(), None);
        assert_eq!(tokenizer.resolve_eos("</s>").unwrap(), Some(4096));
    }
    for (name, text) in [(config, "{\"eos_token\": "), (config, "[]"), (map, "\0")] {
        let e = beside(&[(name, text)]).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt);
        assert!(format!("{e:#}").contains(name), "{e}");
    }
}

#[test]
fn a_folder_with_a_tokenizer_of_another_kind_says_which_and_how_to_make_one() {
    for name in
        ["merges.txt", "vocab.json", "vocab.txt", "tokenizer.model", "tekken.json", "sentencepiece.bpe.model"]
    {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), "").unwrap();
        for path in [folder.path().to_path_buf(), folder.path().join(name)] {
            let e = Tokenizer::load(&path.display().to_string()).unwrap_err();
            assert_eq!(e.kind(), Kind::Unsupported);
            assert!(e.message().contains(name) && e.hint_text().unwrap().contains("save_pretrained"), "{e}");
        }
    }
}

#[test]
fn a_lock_accepts_its_own_tokenizer_and_no_other() {
    let all = all();
    for (i, one) in all.iter().enumerate() {
        let text = serde_json::to_string(&one.lock()).unwrap();
        let lock: TokenizerLock = serde_json::from_str(&text).unwrap();
        assert_eq!(lock.golden.len(), 10);
        assert_eq!(lock.hash.len(), 16);
        for (j, other) in all.iter().enumerate() {
            match other.check_lock(&lock) {
                Ok(()) => assert_eq!(i, j, "{} accepted {}", other.name(), one.name()),
                Err(e) => {
                    assert_ne!(i, j, "{e}");
                    assert_eq!(e.kind(), Kind::Mismatch);
                }
            }
        }
    }
}

#[test]
fn a_refused_lock_names_what_differs() {
    let t = tiny4k();
    let check = |change: &dyn Fn(&mut TokenizerLock), says: &str| {
        let mut lock = t.lock();
        change(&mut lock);
        let e = format!("{:#}", t.check_lock(&lock).unwrap_err());
        assert!(e.contains(says), "{e}");
    };
    check(&|lock| lock.golden[3].ids[0] += 1, "I'm sure");
    check(&|lock| lock.vocab_size += 1, "it has 4096 IDs, there were 4097");
    check(&|lock| lock.special.clear(), "<|endoftext|> is 0, it was not special");
    check(&|lock| drop(lock.special.insert("<x>".into(), 5.into())), "1 special tokens, there were 2");
    check(&|lock| lock.hash = "0".repeat(16), "it was 0000000000000000");
    let mut renamed = t.lock();
    renamed.name = "other.json".to_string();
    t.check_lock(&renamed).unwrap();
}

#[test]
fn an_unknown_name_lists_the_names() {
    let e = Tokenizer::load("gpt5").unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    for name in NAMES {
        assert!(format!("{e:#}").contains(name), "{e}");
    }
    let hint = |name: &str| Tokenizer::load(name).unwrap_err().hint_text().unwrap().to_string();
    assert!(hint("gpt-2").starts_with("did you mean gpt2?"));
    assert!(hint("mistralai/Mistral-7B-v0.3").contains("windrow download https://huggingface.co/mistralai/"));
    let e = Tokenizer::load(&testdata("text").display().to_string()).unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    assert!(format!("{e:#}").contains("tokenizer.json"), "{e}");
}

#[test]
fn a_saved_truncation_cuts_nothing_and_other_added_tokens_are_matched() {
    let mut root: serde_json::Value =
        serde_json::from_slice(&std::fs::read(testdata("tokenizer/tiny4k/tokenizer.json")).unwrap()).unwrap();
    root["truncation"] =
        serde_json::json!({"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0});
    root["padding"] = serde_json::json!({"strategy": {"Fixed": 4096}, "direction": "Right", "pad_to_multiple_of": null,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "<|endoftext|>"});
    let added = root["added_tokens"].as_array_mut().unwrap();
    added.push(serde_json::json!({"id": 4096, "content": "<tool>", "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false, "special": false}));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), root.to_string()).unwrap();
    let changed = Tokenizer::load(&folder.path().display().to_string()).unwrap();
    assert_eq!(changed.vocab_size(), 4097);
    assert_eq!(changed.backend(), "windrow");
    assert_eq!(changed.special(), [("<|endoftext|>".to_string(), 0)]);
    let document = &corpus()[0];
    assert_eq!(ids(&changed, document), ids(&tiny4k(), document));
    let mixed = ids(&changed, "<tool><|endoftext|>");
    assert_eq!(mixed[0], 4096);
    assert_eq!(mixed[1..], ids(&tiny4k(), "<|endoftext|>"));
    assert_eq!(special_ids(&changed, "<tool><|endoftext|>"), [4096, 0]);
}

#[test]
fn a_space_put_before_the_first_word_is_not_put_before_nothing() {
    let mut root: serde_json::Value =
        serde_json::from_slice(&std::fs::read(testdata("tokenizer/tiny4k/tokenizer.json")).unwrap()).unwrap();
    root["pre_tokenizer"]["add_prefix_space"] = true.into();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), root.to_string()).unwrap();
    let spaced = Tokenizer::load(&folder.path().display().to_string()).unwrap();
    assert_eq!(spaced.backend(), "windrow");
    assert_eq!(ids(&spaced, "the"), ids(&tiny4k(), " the"));
    assert!(ids(&spaced, "").is_empty() && special_ids(&spaced, "").is_empty());
}

#[test]
fn many_threads_give_the_ids_of_one() {
    let corpus: Vec<String> = corpus().into_iter().step_by(12).collect();
    for tokenizer in all() {
        let want: Vec<Vec<u32>> = corpus.iter().map(|text| ids(&tokenizer, text)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    assert!(corpus.iter().zip(&want).all(|(text, want)| &ids(&tokenizer, text) == want))
                });
            }
        });
    }
}

#[test]
fn a_clone_is_the_same_tokenizer() {
    let corpus: Vec<String> = corpus().into_iter().step_by(50).collect();
    for tokenizer in all() {
        let clone = tokenizer.clone();
        assert_eq!(clone.backend(), tokenizer.backend());
        assert_eq!(clone.lock(), tokenizer.lock());
        for text in &corpus {
            let text = format!("{text}<|endoftext|>");
            assert_eq!(ids(&clone, &text), ids(&tokenizer, &text));
            assert_eq!(special_ids(&clone, &text), special_ids(&tokenizer, &text));
        }
    }
}

#[test]
fn a_line_of_debug_says_which_it_is() {
    let mut text = String::new();
    write!(text, "{:?}", tiny4k()).unwrap();
    assert!(text.contains("tokenizer.json") && text.contains("4096"), "{text}");
}

#[test]
fn the_places_of_ids_cover_the_text_and_the_ids_are_those_with_special_tokens() {
    for tokenizer in all() {
        let (token, _) = &tokenizer.special()[0];
        let text = format!("a b{token} \u{10348}é\n\n  x");
        let (mut got, mut places) = (Vec::new(), Vec::new());
        tokenizer.encode_places(&text, &mut got, &mut places).unwrap();
        assert_eq!(got, special_ids(&tokenizer, &text), "{}", tokenizer.name());
        assert_eq!(places.len(), got.len());
        let special = places.iter().zip(&got).find(|(_, id)| **id == tokenizer.special()[0].1).unwrap().0;
        assert_eq!(&text[special.clone()], token, "{}", tokenizer.name());
        let mut covered = vec![false; text.len()];
        places.iter().for_each(|place| covered[place.clone()].fill(true));
        let missing: String = text.char_indices().filter(|(at, _)| !covered[*at]).map(|(_, c)| c).collect();
        assert_eq!(missing.trim(), "", "{}", tokenizer.name());
    }
}
