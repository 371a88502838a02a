//! Lines that are no JSON, and files that look odd but are not.

use std::fs;

use windrow_core::Kind;
use windrow_core::format::Options;
use windrow_formats::FORMATS;
use windrow_prepare::{IndexOptions, index};

use super::{read, refused, unreadable};
use crate::disk::{Wanted, both_ways, open_with};
use crate::folder::folder_of;

const BEFORE: &[u8] = b"{\"ok\":1}\n";
const AFTER: &[u8] = b"\n{\"ok\":2}\n";

/// A line between two good ones, with and without an index: record 1 is `Corrupt` at byte `at` of the line, its
/// neighbours can be read.
#[track_caller]
fn bad_line(line: &[u8], at: u64, says: &[&str]) {
    let wanted = Wanted {
        kind: Some(Kind::Corrupt),
        file: "a.jsonl",
        record: Some(1),
        byte: Some(BEFORE.len() as u64 + at),
        says,
    };
    let folder = folder_of(&[("a.jsonl", [BEFORE, line, AFTER].concat())]);
    for path in ["a.jsonl", ""] {
        unreadable(folder.path(), path, &Options::default(), 1, &wanted);
    }
    index(FORMATS, folder.path(), &IndexOptions::default(), &()).unwrap();
    unreadable(folder.path(), "", &Options::default(), 1, &wanted);
    for options in both_ways(&Options::default()) {
        let source = open_with(folder.path(), &options).unwrap();
        assert_eq!((source.format(), source.len()), ("forager", 3));
        assert_eq!(read(source.as_ref(), 0).unwrap(), b"{\"ok\":1}");
        assert_eq!(read(source.as_ref(), 2).unwrap(), b"{\"ok\":2}");
    }
}

#[test]
fn a_line_that_is_not_json_names_the_byte() {
    bad_line(b"hello", 0, &["expected JSON", "\"hello\""]);
    bad_line(b"{\"a\":1} x", 8, &["found \"x\""]);
    bad_line(b"{\"a\":1,}", 7, &["found \"}\""]);
    bad_line(b"{\"a\":", 5, &["found the end of the line"]);
    bad_line(b"{'a':1}", 1, &["found \"'a':1}\""]);
    bad_line(b"[1 2]", 3, &["found \"2]\""]);
    bad_line(b"\"a\0b\"", 2, &["expected JSON"]);
    bad_line(b"[-1e999]", 1, &["number out of range", "found \"-1e999]\""]);
    bad_line(b"\"\\ud800\"", 7, &["expected JSON"]);
    bad_line(b"\xef\xbb\xbf{}", 0, &["expected JSON"]);
}

#[test]
fn nan_and_infinity_are_named_as_what_they_are() {
    for (line, at) in [("NaN", 0), ("[1, NaN]", 4), ("{\"x\": -Infinity}", 6), ("[Infinity]", 1)] {
        bad_line(line.as_bytes(), at, &["JSON has no NaN or Infinity", "null"]);
    }
}

#[test]
fn bytes_that_are_not_utf8_are_named_before_anything_else() {
    for (line, at, found) in [
        (&b"{\"a\":\"\xff\"}"[..], 6, "0xff"),
        (b"\"caf\xe9\"", 4, "0xe9"),
        (b"\"\xed\xa0\x80\"", 1, "0xed"),
        (b"\"\xc0\xaf\"", 1, "0xc0"),
        (b"\"ab\xf0\x9f\"", 3, "0xf0"),
        (b"\xfe\xff\0{", 0, "0xfe"),
    ] {
        bad_line(line, at, &["expected UTF-8", found]);
    }
}

#[test]
fn blank_lines_are_records_that_hold_nothing() {
    for line in [&b""[..], b"  ", b"\t", b"\r", b" \x0c\r"] {
        let size = line.strip_suffix(b"\r").unwrap_or(line).len();
        bad_line(line, 0, &["expected JSON", &format!("a blank line of {size} bytes")]);
    }
}

#[test]
fn nesting_ends_at_its_limit_however_deep_it_goes() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [128, 100_000] {
            let line = open.repeat(depth) + "1" + &close.repeat(depth);
            let at = open.len() * 128 - (open.len() - 1);
            bad_line(line.as_bytes(), at as u64 - 1, &["expected JSON", "values may nest 127 deep"]);
        }
        let line = open.repeat(127) + "1" + &close.repeat(127) + "\n";
        let folder = folder_of(&[("a.jsonl", &line)]);
        let source = open_with(&folder.path().join("a.jsonl"), &Options::default()).unwrap();
        assert_eq!(read(source.as_ref(), 0).unwrap(), line.trim_end().as_bytes());
    }
}

#[test]
fn marks_and_line_ends_are_no_part_of_a_record() {
    let long = format!("\"{}\"", "x".repeat(3 << 20));
    for (text, wanted) in [
        ("\u{feff}{\"a\":1}\n2\n", vec!["{\"a\":1}", "2"]),
        ("\u{feff}1", vec!["1"]),
        ("1\r\n\"a\rb\u{2028}\"\r\n3", vec!["1", "\"a\rb\u{2028}\"", "3"]),
        ("1\r\r\n2\n", vec!["1\r", "2"]),
        ("{\"a\":1,\"a\":2}", vec!["{\"a\":1,\"a\":2}"]),
        (&format!("1\n{long}\n2"), vec!["1", &long, "2"]),
    ] {
        let folder = folder_of(&[("a.jsonl", text)]);
        for with_index in [false, true] {
            if with_index {
                index(FORMATS, folder.path(), &IndexOptions::default(), &()).unwrap();
            }
            for options in both_ways(&Options::default()) {
                let source = open_with(folder.path(), &options).unwrap();
                assert_eq!(source.len(), wanted.len() as u64, "{text:.20}");
                for (record, wanted) in (0..).zip(&wanted) {
                    let found = super::whole(source.as_ref(), record).unwrap();
                    assert!(found == wanted.as_bytes(), "{text:.20}");
                }
            }
        }
    }
}

#[test]
fn a_mark_alone_is_a_blank_line() {
    let folder = folder_of(&[("a.jsonl", "\u{feff}\n1\n")]);
    let wanted = Wanted {
        kind: Some(Kind::Corrupt),
        file: "a.jsonl",
        record: Some(0),
        byte: Some(3),
        says: &["a blank line of 0 bytes"],
    };
    unreadable(folder.path(), "a.jsonl", &Options::default(), 0, &wanted);
}

#[test]
fn files_without_a_line_are_refused() {
    let corrupt = |file, says| Wanted { kind: Some(Kind::Corrupt), file, says, ..Wanted::default() };
    let folder = folder_of(&[("x/a.jsonl", ""), ("x/b.jsonl", "")]);
    let says = ["expected lines, found 0 bytes in 1 file"];
    refused(folder.path(), "x/a.jsonl", &Options::default(), &corrupt("a.jsonl", &says));
    let says = ["expected lines, found 0 bytes in 2 files"];
    refused(folder.path(), "x", &Options::default(), &corrupt("x", &says));
    // Among others an empty file is one that holds no line.
    fs::write(folder.path().join("x/c.jsonl"), "1\n").unwrap();
    assert_eq!(open_with(&folder.path().join("x"), &Options::default()).unwrap().len(), 1);
}

#[test]
fn options_that_speak_of_numbers_are_refused() {
    let folder = folder_of(&[("a.jsonl", "1\n")]);
    for with_index in [false, true] {
        if with_index {
            index(FORMATS, folder.path(), &IndexOptions::default(), &()).unwrap();
        }
        for (options, name) in [
            (Options { dtype: Some(windrow_core::DType::U8), ..Options::default() }, "dtype"),
            (Options { vocab_size: Some(9), ..Options::default() }, "vocab_size"),
            (Options { tokenizer: Some("0123".into()), ..Options::default() }, "tokenizer"),
        ] {
            let error = open_with(folder.path(), &options).err().unwrap();
            assert_eq!((error.kind(), error.place().field.as_deref()), (Kind::Config, Some(name)), "{error}");
        }
    }
}
