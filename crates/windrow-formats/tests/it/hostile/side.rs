//! Manifests and sample schemas that lie: wrong JSON, wrong types, numbers that overflow, versions to come.

use std::fs;

use serde_json::json;
use windrow_core::format::Options;
use windrow_core::{DType, Kind};

use super::{read, refused, unreadable};
use crate::disk::{Wanted, open, open_with, rows};
use crate::folder::{folder_of, put};

const SCHEMA: &str = "index/sample_schema.json";

/// Where manifests stand: what is opened, and the manifest that is looked at.
const PLACES: [(&str, &str); 4] = [
    ("json", "json/index/windrow.json"),
    ("samples", "samples/index/windrow.json"),
    ("tokens", "tokens/windrow.json"),
    ("tokens/a.bin", "tokens/a.bin.windrow.json"),
];

/// A data set of each kind, without a manifest.
fn data() -> tempfile::TempDir {
    folder_of(&[
        ("json/a.jsonl", &b"1\n"[..]),
        ("json/index/file_location.txt", b"a.jsonl\n"),
        ("json/index/sample_locations.bin", &rows(&[[0, 0, 2]])),
        ("samples/a.bin", b"12345678"),
        ("samples/index/file_location.txt", b"a.bin\n"),
        ("samples/index/sample_locations.bin", &rows(&[[0, 0, 4], [0, 4, 4]])),
        ("tokens/a.bin", b"12345678"),
    ])
}

/// This manifest is refused wherever it stands.
#[track_caller]
fn refused_everywhere(text: &[u8], kind: Kind, says: &[&str]) {
    for (path, side) in PLACES {
        let folder = data();
        put(folder.path(), side, text);
        let wanted = Wanted { kind: Some(kind), file: side, says, ..Wanted::default() };
        refused(folder.path(), path, &Options { trust: true, ..Options::default() }, &wanted);
    }
}

const NOT_ONE: &[&str] = &["the manifest cannot be understood", "hint"];

#[test]
fn side_files_that_are_no_json_are_refused() {
    let deep =
        |text: &str| format!("{{\"version\":1,\"options\":{}1{}}}", text.repeat(100_000), "]".repeat(9));
    for text in [
        "",
        " ",
        "{",
        "}",
        "null",
        "1",
        "[]",
        "\"\"",
        "{}",
        "{\"version\":}",
        "{\"version\":1} {}",
        "{\"version\":1",
        &deep("["),
        &deep("{\"a\":"),
        "\0",
        "{\"version\":NaN}",
    ] {
        refused_everywhere(text.as_bytes(), Kind::Corrupt, NOT_ONE);
    }
    refused_everywhere(b"{\"version\":1,\"windrow\":\"\xff\"}", Kind::Corrupt, NOT_ONE);
}

#[test]
fn side_files_with_wrong_values_are_refused() {
    let whole = json!({"version": 1, "windrow": "0.1.0", "format": "forager", "files": []});
    let row = |name, size| json!([{"name": name, "size": size}]);
    for (field, value) in [
        ("version", json!(-1)),
        ("version", json!(1.0)),
        ("version", json!(1e40)),
        ("version", json!("1")),
        ("version", json!([1])),
        ("windrow", json!(1)),
        ("format", json!(null)),
        ("records", json!(-1)),
        ("records", json!(1.5)),
        ("records", json!(1e300)),
        ("records", json!("3")),
        ("records", json!(true)),
        ("record_length", json!(-4)),
        ("record_length", json!({})),
        ("dtype", json!("complex64")),
        ("dtype", json!(4)),
        ("vocab_size", json!(-1)),
        ("eos", json!(0.5)),
        ("eos", json!(u64::MAX)),
        ("files", json!({})),
        ("files", json!("a.bin")),
        ("files", json!([1])),
        ("files", json!([{"name": "a.bin"}])),
        ("files", row(json!(1), json!(1))),
        ("files", row(json!("a.bin"), json!(-1))),
        ("files", row(json!("a.bin"), json!(1e30))),
        ("files", row(json!("a.bin"), json!("8"))),
        ("tokenizer", json!("gpt2")),
        ("tokenizer", json!({"name": "x"})),
        ("options", json!([])),
        ("statistics", json!(1)),
    ] {
        let mut side = whole.clone();
        side[field] = value;
        refused_everywhere(side.to_string().as_bytes(), Kind::Corrupt, NOT_ONE);
    }
    let twice = br#"{"version":1,"windrow":"","format":"tokens","dtype":"uint8","dtype":"uint16"}"#;
    refused_everywhere(twice, Kind::Corrupt, &["duplicate field `dtype`"]);
}

#[test]
fn side_files_of_another_version_say_so_whatever_else_they_hold() {
    for version in [0, 2, 7, u64::MAX] {
        for rest in [json!({}), json!({"files": {"a.bin": 8}, "dtype": ["u", 2], "windrow": "9.1"})] {
            let mut side = rest.clone();
            side["version"] = json!(version);
            for (path, at) in PLACES {
                let folder = data();
                put(folder.path(), at, side.to_string().as_bytes());
                let says = format!("manifest of version {version}; this windrow reads version 1");
                let error = open(&folder.path().join(path)).err().unwrap();
                assert_eq!(error.kind(), Kind::Unsupported, "{error}");
                assert_eq!(error.message(), says);
                assert_eq!(error.place().field.as_deref(), Some("version"));
                assert!(error.place().file.as_deref().unwrap().ends_with(at), "{error}");
            }
        }
    }
}

#[test]
fn a_side_file_of_gigabytes_is_not_read() {
    for (path, side) in PLACES {
        let folder = data();
        put(folder.path(), side, b"");
        fs::File::options().write(true).open(folder.path().join(side)).unwrap().set_len(4 << 30).unwrap();
        let wanted = Wanted {
            kind: Some(Kind::Corrupt),
            file: side,
            says: &["4294967296 bytes where at most 268435456 are expected"],
            ..Wanted::default()
        };
        refused(folder.path(), path, &Options::default(), &wanted);
    }
}

/// Claims about the samples; opening them is refused.
fn samples_claim(claim: serde_json::Value, options: &Options, wanted: &Wanted<'_>) {
    let folder = data();
    let mut side = json!({"version": 1, "windrow": "", "format": "forager", "dtype": "uint16",
        "files": [{"name": "a.bin", "size": 8}]});
    side.as_object_mut().unwrap().extend(claim.as_object().unwrap().clone());
    put(folder.path(), "samples/index/windrow.json", side.to_string().as_bytes());
    refused(folder.path(), "samples", options, wanted);
}

#[test]
fn claims_that_the_samples_do_not_keep_are_refused() {
    let plain = Options::default();
    let corrupt = |file, says| Wanted { kind: Some(Kind::Corrupt), file, says, ..Wanted::default() };
    let locations = "index/sample_locations.bin";
    samples_claim(json!({"records": 3}), &plain, &corrupt(locations, &["has 2 rows", "says 3"]));
    samples_claim(json!({"records": 0}), &plain, &corrupt(locations, &["has 2 rows", "says 0"]));
    samples_claim(json!({"records": u64::MAX}), &plain, &corrupt(locations, &["has 2 rows"]));
    let in_row = |says| Wanted { record: Some(0), byte: Some(0), ..corrupt("a.bin", says) };
    samples_claim(json!({"record_length": 3}), &plain, &in_row(&["has 4 bytes", "has 6"]));
    samples_claim(json!({"record_length": 0}), &plain, &in_row(&["has 4 bytes", "has 0"]));
    samples_claim(json!({"dtype": "uint64"}), &plain, &in_row(&["has 4 bytes, no multiple of a uint64"]));
    for length in [u64::MAX, 1 << 63] {
        let wanted = corrupt("index/windrow.json", &["records of"]);
        samples_claim(json!({"record_length": length}), &plain, &wanted);
    }
    let gone = json!({"files": [{"name": "a.bin", "size": 8}, {"name": "../b.bin", "size": 8}]});
    samples_claim(gone, &plain, &corrupt("file_location.txt", &["\"../b.bin\" is not listed"]));
    let asked = Options { dtype: Some(DType::U32), ..plain.clone() };
    let wanted = Wanted {
        kind: Some(Kind::Mismatch),
        file: "samples",
        says: &["dtype uint32 was asked for, the samples hold uint16"],
        ..Wanted::default()
    };
    samples_claim(json!({}), &asked, &wanted);
    let lock =
        json!({"name": "gpt2", "hash": "00", "vocab_size": 5, "special": {}, "golden": [], "windrow": ""});
    let asked = Options { tokenizer: Some("11".into()), ..plain };
    for (claim, found) in
        [(json!({"tokenizer": lock}), "made by gpt2 (00)"), (json!({}), "nothing says which")]
    {
        let says = ["hash 11", found];
        let wanted = Wanted { kind: Some(Kind::Mismatch), file: "samples", says: &says, ..Wanted::default() };
        samples_claim(claim, &asked, &wanted);
    }
}

#[test]
fn a_sample_of_another_size_is_named_where_the_index_is_too_large_to_check() {
    const N: u64 = 1_000_001;
    let folder = data();
    let mut index = rows(&[[0, 0, 4]]).repeat(N as usize);
    let last = index.len() - 24;
    index[last..].copy_from_slice(&rows(&[[0, 2, 6]]));
    put(folder.path(), "samples/index/sample_locations.bin", &index);
    let side = json!({"version": 1, "windrow": "", "format": "forager", "dtype": "uint16", "records": N,
        "record_length": 2, "files": [{"name": "a.bin", "size": 8}]});
    put(folder.path(), "samples/index/windrow.json", side.to_string().as_bytes());
    let wanted = Wanted {
        kind: Some(Kind::Corrupt),
        file: "a.bin",
        record: Some(N - 1),
        byte: Some(2),
        says: &["has 6 bytes", "has 4"],
    };
    unreadable(folder.path(), "samples", &Options::default(), N - 1, &wanted);
    let source = open(&folder.path().join("samples")).unwrap();
    assert_eq!(source.uniform(), Some(2));
    assert_eq!(read(source.as_ref(), N - 2).unwrap(), b"1234");
}

/// A schema for two samples of 4 bytes, refused.
#[track_caller]
fn bad_schema(text: &str, says: &[&str]) {
    let folder = data();
    put(folder.path(), "samples/index/sample_schema.json", text.as_bytes());
    let wanted = Wanted { kind: Some(Kind::Corrupt), file: SCHEMA, says, ..Wanted::default() };
    let before = super::names(folder.path());
    let error = open(&folder.path().join("samples")).err().unwrap_or_else(|| panic!("{text} opens"));
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    assert!(error.place().file.as_deref().unwrap().ends_with(wanted.file), "{error}");
    assert!(says.iter().all(|word| format!("{error:#}").contains(word)), "{error}: {says:?}");
    assert_eq!(super::names(folder.path()), before);
}

/// The text of a schema; its numbers are written as they are given.
fn schema(n: &str, arrays: &[(&str, &str, &str)], total: &str) -> String {
    let arrays: Vec<String> = arrays
        .iter()
        .map(|(name, dtype, offset)| format!(r#"{{"name":"{name}","dtype":"{dtype}","offset":{offset}}}"#))
        .collect();
    format!(r#"{{"sample_size":{n},"arrays":[{}],"total_bytes_per_sample":{total}}}"#, arrays.join(","))
}

#[test]
fn schemas_that_lie_about_their_arrays_are_refused() {
    let tokens = ("tokens", "uint8", "0");
    let max = u64::MAX.to_string();
    let half = (1u64 << 63).to_string();
    bad_schema(
        &schema("2", &[tokens, ("m", "uint8", "3")], "4"),
        &["\"m\" takes 2 uint8 from byte 3", "of 4 bytes"],
    );
    bad_schema(&schema("2", &[tokens, ("m", "uint8", &max)], "4"), &["from byte 18446744073709551615"]);
    bad_schema(&schema(&max, &[("tokens", "uint16", "0")], &max), &["takes 18446744073709551615 uint16"]);
    bad_schema(&schema(&half, &[("tokens", "uint16", "0")], "4"), &["takes 9223372036854775808 uint16"]);
    bad_schema(&schema(&max, &[("tokens", "uint8", "1")], &max), &["from byte 1"]);
    bad_schema(&schema("5", &[tokens], "4"), &["takes 5 uint8", "of 4 bytes"]);
    bad_schema(&schema("2", &[], "4"), &["expected an array \"tokens\" among 0 arrays"]);
    bad_schema(
        &schema("2", &[("Tokens", "uint8", "0")], "4"),
        &["expected an array \"tokens\" among 1 arrays"],
    );
    bad_schema(
        &schema("2", &[tokens, ("m", "uint8", "1")], "4"),
        &["\"m\" begins at byte 1", "\"tokens\", which ends at byte 2"],
    );
    bad_schema(&schema("2", &[("m", "uint8", "0"), ("tokens", "uint8", "0")], "4"), &["begins at byte 0"]);
    bad_schema(&schema("2", &[tokens, ("tokens", "uint8", "2")], "4"), &["two arrays are called \"tokens\""]);
    bad_schema(
        &schema("1", &[tokens, ("m", "uint8", "1"), ("m", "uint8", "2")], "4"),
        &["two arrays are called \"m\""],
    );
}

#[test]
fn schemas_that_are_none_are_refused() {
    let tokens = ("tokens", "uint8", "0");
    let not_one = &["the sample schema cannot be understood"];
    for wrong in ["-1", "1.5", "2.0", "1e3", "1e400", "null", "\"2\"", "true", "[]", "18446744073709551616"] {
        // Samples of any length are said by null.
        if wrong != "null" {
            bad_schema(&schema(wrong, &[tokens], "4"), not_one);
        }
        bad_schema(&schema("2", &[tokens], wrong), not_one);
        bad_schema(&schema("2", &[("tokens", "uint8", wrong)], "4"), not_one);
    }
    bad_schema(&schema("2", &[("tokens", "complex64", "0")], "4"), &["unknown dtype"]);
    for text in [
        "",
        "{",
        "null",
        "[]",
        "{}",
        "{\"sample_size\":2}",
        "{\"arrays\":[{\"name\":\"tokens\",\"dtype\":\"uint8\",\"offset\":0}],\"total_bytes_per_sample\":4}",
        "{\"sample_size\":2,\"arrays\":{},\"total_bytes_per_sample\":4}",
    ] {
        bad_schema(text, not_one);
    }
    bad_schema(&"[".repeat(100_000), not_one);
    bad_schema(&format!("{{\"sample_size\":2,\"x\":{}", "[".repeat(100_000)), not_one);
}

#[test]
fn samples_of_any_length_are_whole_tokens_with_what_is_beside_them() {
    let (tokens, mask) = (("tokens", "uint16", "0"), ("m", "uint8", "2"));
    let folder = data();
    let text = schema("null", &[tokens, mask], "3");
    put(folder.path(), "samples/index/sample_schema.json", text.as_bytes());
    let says = &["the sample has 4 bytes", "each of its tokens takes 3"];
    let wanted = Wanted { kind: Some(Kind::Corrupt), file: "a.bin", record: Some(0), byte: Some(0), says };
    refused(folder.path(), "samples", &Options::default(), &wanted);
    bad_schema(&schema("null", &[tokens, mask], "2"), &["\"m\" takes 1 uint8 from byte 2", "of 2 bytes"]);
    bad_schema(&schema("null", &[], "0"), &["expected an array \"tokens\" among 0 arrays"]);
}

#[test]
fn samples_of_another_size_than_the_schema_says_are_refused() {
    let folder = data();
    put(
        folder.path(),
        "samples/index/sample_schema.json",
        schema("1", &[("tokens", "uint16", "0")], "3").as_bytes(),
    );
    let wanted = Wanted {
        kind: Some(Kind::Corrupt),
        file: "a.bin",
        record: Some(0),
        byte: Some(0),
        says: &["the sample has 4 bytes", "has 3"],
    };
    refused(folder.path(), "samples", &Options::default(), &wanted);
}

#[test]
fn a_schema_and_a_side_file_that_differ_are_refused() {
    let of_two = schema("2", &[("tokens", "uint16", "0")], "4");
    for (claim, says) in [
        (json!({"dtype": "uint32"}), ["the tokens are uint16", "says uint32"]),
        (json!({"record_length": 3}), ["samples of 2 tokens", "says 3"]),
    ] {
        let folder = data();
        put(folder.path(), "samples/index/sample_schema.json", of_two.as_bytes());
        let mut side = json!({"version": 1, "windrow": "", "format": "forager", "files": [{"name": "a.bin", "size": 8}]});
        side.as_object_mut().unwrap().extend(claim.as_object().unwrap().clone());
        put(folder.path(), "samples/index/windrow.json", side.to_string().as_bytes());
        let wanted = Wanted { kind: Some(Kind::Corrupt), file: SCHEMA, says: &says, ..Wanted::default() };
        refused(folder.path(), "samples", &Options::default(), &wanted);
    }
    // The dtype in the schema is enough, and one that is asked for must be it.
    let folder = data();
    put(folder.path(), "samples/index/sample_schema.json", of_two.as_bytes());
    assert_eq!(open(&folder.path().join("samples")).unwrap().length(1).unwrap(), 2);
    let asked = Options { dtype: Some(DType::U8), ..Options::default() };
    assert_eq!(open_with(&folder.path().join("samples"), &asked).err().unwrap().kind(), Kind::Mismatch);
}
