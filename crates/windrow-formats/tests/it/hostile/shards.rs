//! Shard folders whose description lies, points outside, or is cut.

use windrow_core::Kind;
use windrow_core::format::Options;
use windrow_core::source::conformance;

use super::refused;
use crate::alone::{alone, most_memory};
use crate::disk::{Wanted, both_ways, open, open_with};
use crate::folder::{folder_of, names};

const META: &str = r#"{"num_sequences": 2, "dtype": "float32", "files": {"d-1-of-2.bin": 3, "d-2-of-2.bin": 2},
"scales": [{"offset": 0, "length": 4, "mean": 1.5, "std": 2, "id": "x"}, {"offset": 4, "length": 1}]}"#;

fn folder(meta: &str) -> tempfile::TempDir {
    folder_of(&[("meta.json", meta.as_bytes()), ("d-1-of-2.bin", &[0; 12]), ("d-2-of-2.bin", &[0; 8])])
}

#[test]
fn the_description_of_these_tests_opens() {
    let folder = folder(META);
    for options in both_ways(&Options::default()) {
        let source = open_with(folder.path(), &options).unwrap();
        assert_eq!((source.len(), source.length(0).unwrap()), (2, 4));
        conformance::check(source.as_ref()).unwrap();
    }
}

#[test]
fn every_cut_of_the_description_names_its_end() {
    for end in 0..META.len() {
        let folder = folder(&META[..end]);
        let before = names(folder.path());
        for options in both_ways(&Options::default()) {
            let error = open_with(folder.path(), &options).err().unwrap_or_else(|| panic!("cut at {end}"));
            assert_eq!(error.kind(), Kind::Corrupt, "cut at {end}: {error}");
            assert!(error.place().file.as_deref().unwrap().ends_with("meta.json"), "{error}");
            assert!(error.place().byte.is_some_and(|byte| byte <= end as u64), "cut at {end}: {error:?}");
        }
        assert_eq!(names(folder.path()), before);
    }
}

#[test]
fn every_bit_of_the_description_may_turn() {
    let mut failed = 0;
    for bit in 0..META.len() * 8 {
        let mut turned = META.as_bytes().to_vec();
        turned[bit / 8] ^= 1 << (bit % 8);
        let folder =
            folder_of(&[("meta.json", &turned[..]), ("d-1-of-2.bin", &[0; 12]), ("d-2-of-2.bin", &[0; 8])]);
        match open(folder.path()) {
            Ok(source) => conformance::check(source.as_ref()).unwrap(),
            Err(error) => {
                assert!(
                    [Kind::Corrupt, Kind::NotFound, Kind::Unsupported].contains(&error.kind()),
                    "{error}"
                );
                assert!(error.place().file.is_some(), "{error}");
                failed += 1;
            }
        }
    }
    assert!(failed > META.len() * 4, "{failed}");
}

#[track_caller]
fn refused_meta(from: &str, to: &str, field: &str, record: Option<u64>, says: &[&str]) {
    let meta = META.replacen(from, to, 1);
    assert_ne!(meta, META);
    let folder = folder(&meta);
    for options in both_ways(&Options::default()) {
        let error = open_with(folder.path(), &options).err().unwrap_or_else(|| panic!("{to} opens"));
        let place = error.place();
        assert_eq!(error.kind(), Kind::Corrupt, "{to}: {error}");
        assert!(place.file.as_deref().unwrap().ends_with("meta.json"), "{to}: {error}");
        assert_eq!(place.record, record, "{to}: {error}");
        if !field.is_empty() {
            assert!(place.field.as_deref().unwrap_or_default().starts_with(field), "{to}: {error}");
        } else {
            assert!(place.byte.is_some(), "{to}: {error:?}");
        }
        for word in says {
            assert!(format!("{error:#}").contains(word), "{to}: {error}: does not say {word:?}");
        }
    }
}

#[test]
fn numbers_that_are_none_are_refused_wherever_they_stand() {
    let wrong = [
        "-1",
        "1.0",
        "0.5",
        "1e3",
        "1e999",
        "-0.5",
        "18446744073709551616",
        "99999999999999999999999999",
        "null",
        "true",
        "\"1\"",
        "[]",
        "{}",
        "NaN",
        "Infinity",
        "-Infinity",
        "01",
        "+1",
        "0x1",
        "",
    ];
    for number in wrong {
        refused_meta(r#""num_sequences": 2"#, &format!(r#""num_sequences": {number}"#), "", None, &[]);
        refused_meta(r#"d-1-of-2.bin": 3"#, &format!(r#"d-1-of-2.bin": {number}"#), "", None, &[]);
        // What is no JSON at all has no place in the list.
        let is_json = serde_json::from_str::<serde_json::Value>(number).is_ok() || number == "1e999";
        let (field, record) = if is_json { ("scales[1]", Some(1)) } else { ("", None) };
        refused_meta(r#""offset": 4"#, &format!(r#""offset": {number}"#), field, record, &[]);
        refused_meta(r#""length": 1"#, &format!(r#""length": {number}"#), field, record, &[]);
    }
    for number in
        ["1e999", "-1e999", "true", "\"1\"", "[]", "{}", "NaN", "Infinity", "-Infinity", "1e39", "-1e39"]
    {
        let is_json = !number.ends_with(['N', 'y']);
        let (field, record) = if is_json { ("scales[0]", Some(0)) } else { ("", None) };
        refused_meta("1.5", number, field, record, &[]);
        refused_meta(r#""std": 2"#, &format!(r#""std": {number}"#), field, record, &[]);
    }
}

#[test]
fn claims_that_do_not_hold_are_refused() {
    let shards = "the shards hold 5 together";
    refused_meta(r#""length": 1"#, r#""length": 2"#, "scales[1]", Some(1), &[shards, "4..4+2"]);
    refused_meta(r#""offset": 4"#, r#""offset": 5"#, "scales[1]", Some(1), &[shards]);
    for huge in ["18446744073709551615", "9223372036854775808"] {
        refused_meta(r#""offset": 4"#, &format!(r#""offset": {huge}"#), "scales[1]", Some(1), &[shards]);
        refused_meta(r#""length": 1"#, &format!(r#""length": {huge}"#), "scales[1]", Some(1), &[shards]);
    }
    refused_meta(
        r#""num_sequences": 2"#,
        r#""num_sequences": 3"#,
        "num_sequences",
        None,
        &["3, but there are 2"],
    );
    refused_meta(r#""num_sequences": 2,"#, "", "num_sequences", None, &[]);
    refused_meta(r#""dtype": "float32","#, "", "dtype", None, &[]);
    refused_meta(r#""files""#, r#""flies""#, "files", None, &[]);
    refused_meta(r#""scales""#, r#""scale""#, "scales", None, &[]);
    refused_meta(r#""offset": 4, "#, "", "scales[1]", Some(1), &["missing field `offset`"]);
    refused_meta(r#", "length": 1"#, "", "scales[1]", Some(1), &["missing field `length`"]);
    refused_meta(r#""offset": 4"#, r#""offset": 4, "offset": 4"#, "scales[1]", Some(1), &["duplicate field"]);
    refused_meta(r#""mean": 1.5"#, r#""mean": 1.5, "mean": 2"#, "scales[0]", Some(0), &["duplicate field"]);
    refused_meta(r#""dtype""#, r#""dtype": "int8", "dtype""#, "", None, &["duplicate field"]);
    refused_meta(r#""num_sequences""#, r#""scales": [], "num_sequences""#, "", None, &["duplicate field"]);
    refused_meta("d-2-of-2.bin", "d-1-of-2.bin", "", None, &["twice"]);
    refused_meta("d-2-of-2.bin", "e-1-of-2.bin", "files", None, &["have one number"]);
    refused_meta("d-2-of-2.bin\": 2", "d-2-of-2.bin\": 18446744073709551615", "files", None, &["64 bits"]);
    refused_meta(
        "{\"offset\": 4, \"length\": 1}",
        "[4, 1]",
        "scales[1]",
        Some(1),
        &["expected an offset and a length"],
    );
    refused_meta("}]}", "}]} x", "", None, &[]);
    let deep = format!("\"id\": {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let folder = folder(&META.replacen("\"id\": \"x\"", &deep, 1));
    let source = open(folder.path()).unwrap();
    assert_eq!(source.extras(0).unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn shards_that_are_short_missing_or_elsewhere_are_refused() {
    let short =
        folder_of(&[("meta.json", META.as_bytes()), ("d-1-of-2.bin", &[0; 11]), ("d-2-of-2.bin", &[0; 8])]);
    let wanted = Wanted {
        kind: Some(Kind::Corrupt),
        file: "d-1-of-2.bin",
        says: &["holds 2 float32 numbers (11 bytes), meta.json promises 3"],
        ..Wanted::default()
    };
    refused(short.path(), "", &Options::default(), &wanted);
    let missing = folder_of(&[("meta.json", META.as_bytes()), ("d-1-of-2.bin", &[0; 12])]);
    let wanted = Wanted {
        kind: Some(Kind::NotFound),
        file: "d-2-of-2.bin",
        says: &["names a shard that is not there"],
        ..Wanted::default()
    };
    refused(missing.path(), "", &Options::default(), &wanted);
    for name in [
        "/etc/d-2-of-2.bin",
        "../d-2-of-2.bin",
        "sub/d-2-of-2.bin",
        "..\\\\d-2-of-2.bin",
        "\\u0000d-2-of-2.bin",
        ".d-2-of-2.bin",
        "d-2.bin",
        "d-2-of-2.bin.gz",
        "d-x-of-2.bin",
        "d--of-2.bin",
        "d-2-of-.bin",
        "",
        "d-99999999999999999999-of-2.bin",
        "d-+2-of-2.bin",
        "meta.json",
        "C:\\\\d-2-of-2.bin",
    ] {
        refused_meta("d-2-of-2.bin", name, "files", None, &["-<i>-of-<n>.bin"]);
    }
    for (dtype, kind) in [
        ("complex64", Kind::Unsupported),
        ("object", Kind::Unsupported),
        ("", Kind::Unsupported),
        ("O", Kind::Unsupported),
        ("f16", Kind::Unsupported),
    ] {
        let folder = folder(&META.replacen("float32", dtype, 1));
        let error = open(folder.path()).err().unwrap();
        assert_eq!((error.kind(), error.place().field.as_deref()), (kind, Some("dtype")), "{dtype}: {error}");
    }
    // Longer than it is said to be, and other files beside it: read all the same.
    let long = folder_of(&[
        ("meta.json", META.as_bytes()),
        ("d-1-of-2.bin", &[0; 100]),
        ("d-2-of-2.bin", &[0; 9]),
        ("stray.bin", &[1]),
    ]);
    assert_eq!(open(long.path()).unwrap().len(), 2);
}

#[test]
fn numbers_of_every_name_are_read() {
    for (name, element, big) in [
        ("<f4", "float32", false),
        (">f4", "float32", true),
        (">float32", "float32", true),
        ("bfloat16", "bfloat16", false),
        ("u2", "uint16", false),
        ("u1", "uint8", false),
        ("|u1", "uint8", false),
        (">i2", "int16", true),
        ("half", "float16", false),
        ("bool", "bool", false),
        ("intc", "int32", false),
        (">i", "int32", true),
        ("ushort", "uint16", false),
        ("f", "float32", false),
        ("?", "bool", false),
    ] {
        let meta = META.replacen("float32", name, 1).replacen("\"std\": 2, ", "", 1);
        let folder = folder(&meta);
        let source = open(folder.path()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let found = source.schema().element;
        assert_eq!((found.dtype.name(), found.big_endian), (element, big), "{name}");
        conformance::check(source.as_ref()).unwrap();
    }
}

#[test]
fn claims_of_many_numbers_take_no_memory() {
    alone("hostile::shards::claims_of_many_numbers_take_no_memory", |_| {
        for (from, to) in [
            ("\"num_sequences\": 2", "\"num_sequences\": 18446744073709551615"),
            ("d-1-of-2.bin\": 3", "d-1-of-2.bin\": 4611686018427387904"),
            ("\"length\": 4", "\"length\": 18446744073709551615"),
        ] {
            let folder = folder(&META.replacen(from, to, 1));
            for options in both_ways(&Options::default()) {
                let (error, memory) = most_memory(|| open_with(folder.path(), &options).err().unwrap());
                assert_eq!(error.kind(), Kind::Corrupt);
                assert!(memory < 1 << 20, "{memory}");
            }
        }
    });
}
