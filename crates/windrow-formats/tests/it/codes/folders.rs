//! Folders of pre-encoded tracks: the recorded ones, their prompts, shapes and types.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use windrow_core::format::Options;
use windrow_core::source::{Source, conformance};
use windrow_core::{DType, Kind};

use super::{dia, flat, preencoded, recorded};
use crate::disk::{both_ways, bytes_at, open, open_with, whole};
use crate::folder::{folder_of, put};

fn codes(source: &dyn Source, record: u64) -> Vec<i64> {
    let bytes = whole(source, record).unwrap();
    let element = source.schema().element;
    let wide = |code: &[u8]| match element.dtype {
        DType::I16 => i64::from(i16::from_le_bytes(code.try_into().unwrap())),
        DType::I64 => i64::from_le_bytes(code.try_into().unwrap()),
        other => panic!("{other}"),
    };
    bytes.chunks(element.size()).map(wide).collect()
}

fn names(source: &dyn Source) -> Vec<String> {
    (0..source.len())
        .map(|i| source.extras(i).unwrap().shown()["name"].as_str().unwrap().to_string())
        .collect()
}

#[test]
fn tensors_of_every_type_and_layout_give_the_programs_codes_and_prompts() {
    let expected = recorded("preencoded_expected.json");
    let expected = expected["items_by_file"].as_object().unwrap();
    for options in both_ways(&Options::default()) {
        let source = open_with(&dia().join("preencoded"), &options).unwrap();
        assert_eq!(
            names(source.as_ref()),
            ["float", "legacy", "six", "song1", "song2", "song3", "song4", "song5", "strided", "view"]
        );
        assert_eq!(source.len(), expected.len() as u64);
        assert_eq!(source.schema().channels, Some(18));
        let mut scratch = String::new();
        for record in 0..source.len() {
            let extras = source.extras(record).unwrap().shown();
            let name = extras["name"].as_str().unwrap();
            let item = &expected[&format!("{name}.pt")]["ok"];
            assert_eq!(extras["text"], item["text"], "{name}");
            assert_eq!(source.text(record, &mut scratch).unwrap(), item["text"].as_str().unwrap(), "{name}");
            let (frames, channels) = (item["shape"][0].as_u64().unwrap(), item["shape"][1].as_u64().unwrap());
            // The program's items are cut to 128 frames.
            let length = source.length(record).unwrap();
            assert_eq!(length.min(128), frames, "{name}");
            if name == "float" {
                // The program drops the fractions.
                let error = whole(source.as_ref(), record).unwrap_err();
                assert!(format!("{error:#}").contains("expected a code, found 770.75"), "{error}");
                continue;
            }
            let recorded = flat(&item["data"]);
            let mut found = codes(source.as_ref(), record);
            found.truncate(frames as usize * 18);
            let is_mono = channels == 9;
            assert_eq!(extras.get("mono"), is_mono.then_some(&Value::Bool(true)), "{name}");
            if is_mono {
                for (frame, stored) in found.chunks(18).zip(recorded.chunks(9)) {
                    assert_eq!(frame, stored.repeat(2), "{name}");
                }
            } else {
                assert_eq!(found, recorded, "{name}")
            }
        }
        let song1 = names(source.as_ref()).iter().position(|n| n == "song1").unwrap() as u64;
        assert_eq!(source.extras(song1).unwrap().shown()["sr"], json!(44100));
        conformance::check(open_with(preencoded().path(), &options).unwrap().as_ref()).unwrap();
    }
}

#[test]
fn tensors_that_lie_in_order_are_read_where_they_lie() {
    let source = open(&dia().join("preencoded/encoded_audio/song1.pt")).unwrap();
    assert_eq!((source.len(), source.format(), source.schema().channels), (1, "codes", Some(18)));
    conformance::check(source.as_ref()).unwrap();
    conformance::check_located(source.as_ref(), &bytes_at).unwrap();
    let view = open(&dia().join("preencoded/encoded_audio/view.pt")).unwrap();
    conformance::check_located(view.as_ref(), &bytes_at).unwrap();
    let strided = open(&dia().join("preencoded/encoded_audio/strided.pt")).unwrap();
    conformance::check_located(strided.as_ref(), &bytes_at).unwrap();
    // A prompt may lie beside a file of its own.
    let song2 = open(&dia().join("preencoded/encoded_audio/song2.pt")).unwrap();
    let beside = std::fs::read_to_string(dia().join("preencoded/encoded_audio/song2.txt")).unwrap();
    assert_eq!(song2.text(0, &mut String::new()).unwrap(), beside.trim());
}

#[test]
fn flat_folders_count_only_without_the_usual_one_and_null_is_no_prompt() {
    let flat_folder = open(&dia().join("preencoded_flat")).unwrap();
    let expected = recorded("preencoded_fallbacks.json");
    assert_eq!(codes(flat_folder.as_ref(), 0), flat(&expected["preencoded_flat"]["ok"]["data"]));
    assert_eq!(flat_folder.extras(0).unwrap().shown()["text"], "flat");
    let error = open(&dia().join("preencoded_empty_subdir")).err().unwrap();
    assert_eq!(error.kind(), Kind::NotFound, "{error}");
    let null = open(&dia().join("preencoded_null_text")).unwrap();
    assert_eq!(null.text(0, &mut String::new()).unwrap(), "");
    assert_eq!(null.extras(0).unwrap().shown()["text"], "");
}

fn track(frames: u64, channels: u64) -> Vec<u8> {
    let codes: Vec<u8> = (0..frames * channels).flat_map(|code| (code as i16 % 1024).to_le_bytes()).collect();
    windrow_formats::tensor_file("t", DType::I16, [frames, channels], &codes).unwrap()
}

#[test]
fn a_side_file_that_names_tracks_names_all_of_them() {
    let track = track(3, 2);
    let row = |name: &str| json!({"name": format!("encoded_audio/{name}.pt"), "size": track.len()});
    let side = json!({
        "version": 1, "windrow": "", "format": "codes", "records": 2, "files": [row("a"), row("b")],
    });
    let folder = folder_of(&[
        ("encoded_audio/a.pt", &track[..]),
        ("encoded_audio/b.pt", &track[..]),
        ("windrow.json", side.to_string().as_bytes()),
    ]);
    let at = |name: &str| folder.path().join("encoded_audio").join(name);
    let stale = |says: &str, file: &str| {
        let error = open(folder.path()).map(|source| source.len()).unwrap_err();
        assert_eq!(error.kind(), Kind::Stale, "{error}");
        assert!(
            error.message().contains(says) && error.place().file.as_ref().unwrap().ends_with(file),
            "{error}"
        );
    };
    assert_eq!(open(folder.path()).unwrap().len(), 2);
    fs::write(at("c.pt"), &track).unwrap();
    stale("does not name this track", "c.pt");
    fs::remove_file(at("c.pt")).unwrap();
    fs::remove_file(at("b.pt")).unwrap();
    stale("but it is gone", "b.pt");
    let trust = Options { trust: true, ..Options::default() };
    assert_eq!(open_with(folder.path(), &trust).unwrap().len(), 1);
}

#[test]
fn the_order_is_natural_and_prompts_have_their_precedence() {
    let tensor = track(3, 18);
    let folder = folder_of(&[
        ("encoded_audio/a10.pt", tensor.clone()),
        ("encoded_audio/a9.pt", tensor.clone()),
        ("encoded_audio/deeper/a1.pt", tensor.clone()),
        ("encoded_audio/A2.pt", tensor.clone()),
        ("encoded_audio/b.c.pt", tensor.clone()),
        ("root.pt", tensor),
        ("encoded_audio/a9.txt", b"  beside \n".to_vec()),
        ("prompts/a9.txt", b"loses".to_vec()),
        ("prompts/a10_prompt.txt", b"underscore".to_vec()),
        ("prompts/b.c.txt", b"folder".to_vec()),
        ("prompts/b.c_prompt.txt", b"loses".to_vec()),
        ("metadata.json", br#"{"A2.pt": {"text": " kept as it is ", "length": 3, "tempo": 120}}"#.to_vec()),
    ]);
    let source = open(folder.path()).unwrap();
    assert_eq!(names(source.as_ref()), ["A2", "a9", "a10", "b.c"]);
    let texts: Vec<_> = (0..4).map(|i| source.text(i, &mut String::new()).unwrap().to_string()).collect();
    assert_eq!(texts, [" kept as it is ", "beside", "underscore", "folder"]);
    assert_eq!(
        Value::Object(source.extras(0).unwrap().shown()),
        json!({"text": " kept as it is ", "name": "A2", "tempo": 120})
    );
    conformance::check(source.as_ref()).unwrap();
}

#[test]
fn an_edit_of_a_prompt_or_a_track_changes_the_fingerprint() {
    let folder = folder_of(&[
        ("encoded_audio/a.pt", track(3, 18)),
        ("encoded_audio/a.txt", b"one".to_vec()),
        ("metadata.json", b"{}".to_vec()),
    ]);
    let of = |folder: &Path| open(folder).unwrap().fingerprint().unwrap();
    let mut seen = vec![of(folder.path())];
    assert_eq!(of(folder.path()), seen[0]);
    for (name, bytes) in [
        ("encoded_audio/a.txt", b"longer".to_vec()),
        ("metadata.json", br#"{"a.pt": {"text": "told"}}"#.to_vec()),
        ("encoded_audio/a.pt", track(4, 18)),
        ("encoded_audio/b.pt", track(4, 18)),
    ] {
        put(folder.path(), name, &bytes);
        let next = of(folder.path());
        assert!(!seen.contains(&next), "{name}");
        seen.push(next);
    }
    let copy = folder_of::<Vec<u8>>(&[]);
    for name in ["encoded_audio/a.pt", "encoded_audio/a.txt", "encoded_audio/b.pt", "metadata.json"] {
        put(copy.path(), name, &std::fs::read(folder.path().join(name)).unwrap());
    }
    assert_eq!(of(copy.path()), *seen.last().unwrap());
}

#[test]
fn more_tracks_than_stay_open_are_read_and_one_that_changed_is_named() {
    let tensor = track(2, 9);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("encoded_audio")).unwrap();
    for i in 0..4_100 {
        std::fs::write(folder.path().join(format!("encoded_audio/{i}.pt")), &tensor).unwrap();
    }
    let source = open(folder.path()).unwrap();
    assert_eq!((source.len(), source.uniform()), (4_100, Some(2)));
    assert_eq!(codes(source.as_ref(), 4_099), (0..18).collect::<Vec<_>>());
    put(folder.path(), "encoded_audio/7.pt", &track(1, 9));
    let error = whole(source.as_ref(), 7).unwrap_err();
    assert!(error.kind() == Kind::Stale && format!("{error:#}").contains("7.pt"), "{error}");
}
