//! Codes from one layout into another and back: shards `[T, C]`, tensors, prompts.

use std::path::Path;

use serde_json::Value;
use windrow_core::format::Options;
use windrow_core::source::{Source, conformance};
use windrow_core::{DType, Kind, Span};
use windrow_formats::FORMATS;
use windrow_prepare::verify;

use super::{dia, preencoded};
use crate::disk::{bytes_at, open, open_with, whole};
use crate::folder::{folder_of, put};
use crate::writing::{To, Writing, convert};

fn to(layout: To) -> Writing {
    Writing { fsync: false, ..Writing::new(layout) }
}

fn texts(source: &dyn Source) -> Vec<(String, String)> {
    let extras = (0..source.len()).map(|i| source.extras(i).unwrap().shown());
    let text = |value: &Value| value.as_str().unwrap().to_string();
    extras.map(|e| (text(&e["name"]), text(&e["text"]))).collect()
}

#[track_caller]
fn same_codes(one: &dyn Source, other: &dyn Source) {
    assert_eq!((one.len(), one.schema().channels), (other.len(), other.schema().channels));
    for record in 0..one.len() {
        let narrow = |source: &dyn Source| -> Vec<u8> {
            let width = source.schema().element.size();
            whole(source, record).unwrap().chunks(width).flat_map(|code| code[..2].to_vec()).collect()
        };
        assert_eq!(narrow(one), narrow(other), "record {record}");
    }
}

#[test]
fn a_folder_goes_into_shards_and_back() {
    let out = tempfile::tempdir().unwrap();
    let recorded = preencoded();
    let from = open(recorded.path()).unwrap();
    let shards = out.path().join("shards");
    // Shards of ten frames and a bit: no frame is cut in two.
    let options = Writing { dtype: Some(DType::I16), max_shard_bytes: Some(370), ..to(To::Shards) };
    convert(from.as_ref(), &shards, &options, &()).unwrap();
    let meta: Value = serde_json::from_slice(&std::fs::read(shards.join("meta.json")).unwrap()).unwrap();
    assert_eq!(meta["channels"], 18);
    for count in meta["files"].as_object().unwrap().values() {
        assert_eq!(count.as_u64().unwrap() % 18, 0);
        assert!(count.as_u64().unwrap() <= 180);
    }
    let middle = open(&shards).unwrap();
    assert_eq!((middle.format(), middle.schema().element.dtype), ("shards", DType::I16));
    conformance::check(middle.as_ref()).unwrap();
    conformance::check_located(middle.as_ref(), &bytes_at).unwrap();
    same_codes(from.as_ref(), middle.as_ref());
    assert_eq!(texts(from.as_ref()), texts(middle.as_ref()));
    for record in 0..middle.len() {
        let mut scratch = String::from("left over");
        let text = middle.text(record, &mut scratch).unwrap().to_string();
        assert_eq!(Value::String(text), middle.extras(record).unwrap().shown()["text"]);
    }
    let lengths: Vec<u64> = (0..middle.len()).map(|i| middle.length(i).unwrap()).collect();
    let mut all = vec![0; lengths.len()];
    middle.lengths(0, &mut all).unwrap();
    assert_eq!(all, lengths);

    let back = out.path().join("back");
    convert(middle.as_ref(), &back, &to(To::Codes), &()).unwrap();
    let again = open(&back).unwrap();
    assert_eq!((again.format(), again.schema().element.dtype), ("codes", DType::I16));
    same_codes(from.as_ref(), again.as_ref());
    assert_eq!(texts(from.as_ref()), texts(again.as_ref()));
    conformance::check_located(again.as_ref(), &bytes_at).unwrap();
    let metadata: Value =
        serde_json::from_slice(&std::fs::read(back.join("metadata.json")).unwrap()).unwrap();
    assert_eq!(metadata["song1.pt"]["length"], 12);
    assert_eq!(metadata["song1.pt"]["sr"], 44100);
    let findings = verify(FORMATS, &back, &Default::default(), &()).unwrap();
    assert!(findings.problems.is_empty(), "{findings:?}");
    assert_eq!(findings.checked_records, again.len());
}

#[test]
fn the_same_bytes_are_written_every_time() {
    let out = tempfile::tempdir().unwrap();
    let from = open(&dia().join("preencoded_flat")).unwrap();
    for name in ["a", "b"] {
        convert(from.as_ref(), &out.path().join(name), &to(To::Codes), &()).unwrap();
    }
    let read = |name: &str| std::fs::read(out.path().join(name).join("encoded_audio/only.pt")).unwrap();
    assert_eq!(read("a"), read("b"));
}

#[test]
fn a_number_that_is_no_code_is_refused_and_a_larger_codebook_is_told() {
    let lines = b"{\"sequence\": [[1, 2], [3, 1023]]}\n{\"sequence\": [[4, 5], [6, 7], [8, 2047]]}\n";
    let folder = folder_of(&[("a.jsonl", lines)]);
    let from = open(&folder.path().join("a.jsonl")).unwrap();
    let tracks = folder.path().join("tracks");
    let error = convert(from.as_ref(), &tracks, &to(To::Codes), &()).unwrap_err();
    assert_eq!((error.kind(), error.place().record), (Kind::Config, Some(1)));
    assert!(
        format!("{error:#}").contains("2047 at frame 2, channel 1 is not a code: expected 0 to 1023"),
        "{error}"
    );
    assert!(!tracks.exists());

    let larger = Writing { vocab_size: Some(2048), ..to(To::Codes) };
    convert(from.as_ref(), &tracks, &larger, &()).unwrap();
    let again = open(&tracks).unwrap();
    assert_eq!(again.schema().vocab_size, Some(2048));
    assert!(verify(FORMATS, &tracks, &Default::default(), &()).unwrap().problems.is_empty());
    // What it tells goes along.
    let copy = folder.path().join("copy");
    convert(again.as_ref(), &copy, &to(To::Codes), &()).unwrap();
    assert_eq!(open(&copy).unwrap().schema().vocab_size, Some(2048));
    same_codes(again.as_ref(), open(&copy).unwrap().as_ref());
    let error = open_with(&copy, &Options { vocab_size: Some(1024), ..Options::default() }).err().unwrap();
    assert!(error.kind() == Kind::Corrupt && format!("{error:#}").contains("2047"), "{error}");
}

#[test]
fn what_no_tensor_can_be_is_refused_and_nothing_is_left() {
    let out = tempfile::tempdir().unwrap();
    let from = open(&dia().join("preencoded_flat")).unwrap();
    let options = Writing { dtype: Some(DType::F32), ..to(To::Codes) };
    let error = convert(from.as_ref(), &out.path().join("a"), &options, &()).unwrap_err();
    assert!(error.kind() == Kind::Config && format!("{error:#}").contains("float32"), "{error}");
    for (name, says) in [
        ("../up", "is not the name of a file"),
        ("", "is not the name of a file"),
        ("x", "two records are called"),
    ] {
        let lines = format!(
            "{{\"sequence\": [[1, 2]], \"name\": \"x\"}}\n{{\"sequence\": [[3, 4]], \"name\": {name:?}}}\n"
        );
        let folder = folder_of(&[("a.jsonl", lines)]);
        let options =
            windrow_core::format::Options { format: Some("series-jsonl".into()), ..Default::default() };
        let source = crate::disk::open_with(&folder.path().join("a.jsonl"), &options).unwrap();
        let error = convert(source.as_ref(), &out.path().join("b"), &to(To::Codes), &()).unwrap_err();
        assert!(format!("{error:#}").contains(says) && error.place().record == Some(1), "{error}");
    }
    // What somebody else put there is not replaced.
    let taken = folder_of(&[("mine/encoded_audio/a.pt", b"x"), ("mine/notes.txt", b"y")]);
    let replace = Writing { overwrite: true, ..to(To::Codes) };
    let error = convert(from.as_ref(), &taken.path().join("mine"), &replace, &()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists, "{error}");
    std::fs::remove_file(taken.path().join("mine/notes.txt")).unwrap();
    // Nor are tracks that nothing describes.
    let again = || convert(from.as_ref(), &taken.path().join("mine"), &replace, &());
    let error = again().unwrap_err();
    assert_eq!(error.kind(), Kind::Exists, "{error}");
    assert_eq!(std::fs::read(taken.path().join("mine/encoded_audio/a.pt")).unwrap(), b"x");
    std::fs::write(taken.path().join("mine/metadata.json"), "[]").unwrap();
    again().unwrap();
    assert!(crate::folder::names(out.path()).is_empty());
}

fn shards(folder: &Path, channels: &str, lengths: [u64; 2]) {
    let [a, b] = lengths;
    let meta = format!(
        "{{\"num_sequences\": 2, \"dtype\": \"int16\", {channels} \"files\": {{\"d-1-of-1.bin\": 12}}, \"scales\": [\
         {{\"offset\": 0, \"length\": {a}, \"text\": \"one\"}}, {{\"offset\": {a}, \"length\": {b}, \"text\": null}}]}}"
    );
    put(folder, "meta.json", meta.as_bytes());
    let numbers: Vec<u8> = (0..12i16).flat_map(i16::to_le_bytes).collect();
    put(folder, "d-1-of-1.bin", &numbers);
}

#[test]
fn channels_in_meta_json_make_frames_of_numbers() {
    let folder = tempfile::tempdir().unwrap();
    shards(folder.path(), "", [4, 8]);
    let plain = open(folder.path()).unwrap();
    assert_eq!((plain.schema().channels, plain.length(1).unwrap()), (None, 8));
    shards(folder.path(), "\"channels\": 2,", [4, 8]);
    let source = open(folder.path()).unwrap();
    assert_eq!(
        (source.schema().channels, source.length(0).unwrap(), source.length(1).unwrap()),
        (Some(2), 2, 4)
    );
    assert_ne!(source.fingerprint().unwrap(), plain.fingerprint().unwrap());
    let mut scratch = Vec::new();
    let values = source.read(Span { record: 1, start: 1, len: 2 }, &mut scratch).unwrap();
    assert_eq!((values.bytes, values.channels), (&[6, 0, 7, 0, 8, 0, 9, 0][..], 2));
    let texts: Vec<_> = (0..2).map(|i| source.text(i, &mut String::new()).unwrap().to_string()).collect();
    assert_eq!(texts, ["one", ""]);
    conformance::check(source.as_ref()).unwrap();
    for (channels, lengths, says) in [
        ("\"channels\": 5,", [5, 7], "7 numbers are not whole frames of 5 channels"),
        ("\"channels\": 0,", [4, 8], "0 channels, expected 1 to 65536"),
        ("\"channels\": 70000,", [4, 8], "70000 channels"),
        ("\"channels\": -1,", [4, 8], "cannot be understood"),
    ] {
        shards(folder.path(), channels, lengths);
        let error = open(folder.path()).err().unwrap();
        assert!(error.kind() == Kind::Corrupt && format!("{error:#}").contains(says), "{error}");
    }
}
