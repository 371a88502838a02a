//! Token files of the wrong size, dtype, vocabulary or tokenizer, and folders from which files vanished.

use std::fs;

use serde_json::json;
use windrow_core::format::Options;
use windrow_core::{DType, Kind};

use super::refused;
use crate::disk::{Wanted, both_ways, open, open_with, rows, whole};
use crate::folder::{folder_of, put};

const DTYPES: [(DType, usize); 5] =
    [(DType::U8, 1), (DType::U16, 2), (DType::U32, 4), (DType::I32, 4), (DType::I64, 8)];

fn of(dtype: DType) -> Options {
    Options { dtype: Some(dtype), ..Options::default() }
}

fn corrupt<'a>(file: &'a str, says: &'a [&'a str]) -> Wanted<'a> {
    Wanted { kind: Some(Kind::Corrupt), file, says, ..Wanted::default() }
}

#[test]
fn sizes_that_do_not_divide_name_what_is_left_over() {
    for (dtype, width) in DTYPES {
        for size in 1..=3 * width {
            let folder = folder_of(&[("x.bin", vec![0; size])]);
            let over = size % width;
            if over == 0 {
                assert_eq!(
                    open_with(folder.path(), &of(dtype)).unwrap().length(0).unwrap(),
                    (size / width) as u64
                );
                continue;
            }
            let says = [format!("{size} bytes: {over} more"), format!("{dtype} IDs of {width} bytes")];
            let says: Vec<&str> = says.iter().map(String::as_str).collect();
            let wanted = Wanted { byte: Some((size - over) as u64), ..corrupt("x.bin", &says) };
            for path in ["x.bin", ""] {
                refused(folder.path(), path, &of(dtype), &wanted);
            }
        }
    }
}

#[test]
fn empty_token_files_are_refused() {
    let folder = folder_of(&[("x.bin", "")]);
    for (dtype, width) in DTYPES {
        let says = ["the file is empty".into(), format!("at least one {dtype} of {width} bytes")];
        let says: Vec<&str> = says.iter().map(String::as_str).collect();
        for path in ["x.bin", ""] {
            refused(folder.path(), path, &of(dtype), &corrupt("x.bin", &says));
        }
    }
}

#[test]
fn types_that_are_no_ids_are_refused() {
    let folder = folder_of(&[("x.bin", [0; 16])]);
    for dtype in [DType::F16, DType::Bf16, DType::F32, DType::F64, DType::Bool, DType::U64] {
        let says = [format!("token files do not hold {dtype}"), "uint8, uint16".into()];
        let says: Vec<&str> = says.iter().map(String::as_str).collect();
        let wanted = Wanted { kind: Some(Kind::Config), file: "x.bin", says: &says, ..Wanted::default() };
        refused(folder.path(), "x.bin", &of(dtype), &wanted);
    }
}

/// `ids` as a stream, and as samples of two; the id at `bad` is outside.
fn outside(dtype: DType, ids: &[i64], vocab_size: u64, bad: usize) {
    let width = dtype.size();
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()[..width].to_vec()).collect();
    let index: Vec<[u64; 3]> =
        (0..ids.len() as u64 / 2).map(|i| [0, 2 * i * width as u64, 2 * width as u64]).collect();
    let folder = folder_of(&[
        ("x.bin", bytes.as_slice()),
        ("s/x.bin", &bytes),
        ("s/index/file_location.txt", b"x.bin\n"),
        ("s/index/sample_locations.bin", &rows(&index)),
    ]);
    for (path, record, value) in [("x.bin", 0, bad), ("s", bad / 2, bad % 2)] {
        let says = [
            format!("id {} at value {value} is outside the vocabulary of {vocab_size} IDs", ids[bad]),
            "another tokenizer".into(),
        ];
        let says: Vec<&str> = says.iter().map(String::as_str).collect();
        let wanted = Wanted {
            record: Some(record as u64),
            byte: Some((bad * width) as u64),
            ..corrupt("x.bin", &says)
        };
        refused(folder.path(), path, &Options { vocab_size: Some(vocab_size), ..of(dtype) }, &wanted);
        let enough = Options { vocab_size: Some(1 << 40), ..of(dtype) };
        assert_eq!(open_with(&folder.path().join(path), &enough).is_ok(), ids.iter().all(|id| *id >= 0));
    }
}

#[test]
fn ids_outside_the_vocabulary_name_file_record_and_byte() {
    for (dtype, _) in DTYPES {
        outside(dtype, &[1, 2, 3, 100, 99, 100], 100, 3);
        outside(dtype, &[100, 2], 100, 0);
        outside(dtype, &[0, 1], 1, 1);
    }
    outside(DType::I32, &[5, 4, -1, 3], 1000, 2);
    outside(DType::I64, &[5, 4, 0, i64::MIN], u64::MAX, 3);
}

#[test]
fn a_vocabulary_of_nothing_is_refused() {
    let folder = folder_of(&[("x.bin", [0; 4])]);
    let error = open_with(folder.path(), &Options { vocab_size: Some(0), ..of(DType::U8) }).err().unwrap();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.message().contains("a vocabulary of 0 token IDs"), "{error}");
}

/// A manifest for token files of these names and sizes.
fn side(dtype: &str, files: &[(&str, u64)]) -> Vec<u8> {
    let files: Vec<_> = files.iter().map(|(name, size)| json!({"name": name, "size": size})).collect();
    json!({"version": 1, "windrow": "0.1.0", "format": "tokens", "dtype": dtype, "vocab_size": 50, "files": files})
        .to_string()
        .into_bytes()
}

/// Two files that their folder's manifest speaks for.
fn two() -> tempfile::TempDir {
    folder_of(&[
        ("a.bin", vec![1; 8]),
        ("b.bin", vec![2; 12]),
        ("windrow.json", side("uint16", &[("a.bin", 8), ("b.bin", 12)])),
    ])
}

#[test]
fn the_side_file_knows_the_dtype() {
    let folder = two();
    for path in ["", "a.bin", "b.bin"] {
        assert_eq!(open(&folder.path().join(path)).unwrap().schema().element.dtype, DType::U16);
        let says = ["dtype uint32 was asked for, the manifest says uint16"];
        let wanted = Wanted { kind: Some(Kind::Mismatch), says: &says, ..Wanted::default() };
        refused(folder.path(), path, &of(DType::U32), &wanted);
    }
}

fn stale<'a>(file: &'a str, says: &'a [&'a str]) -> Wanted<'a> {
    Wanted { kind: Some(Kind::Stale), file, says, ..Wanted::default() }
}

#[test]
fn files_that_vanished_changed_or_came_are_stale() {
    let gone = two();
    fs::remove_file(gone.path().join("b.bin")).unwrap();
    refused(gone.path(), "", &Options::default(), &stale("b.bin", &["names it with 12 bytes", "it is gone"]));
    let added = two();
    put(added.path(), "c.bin", &[0; 4]);
    refused(added.path(), "", &Options::default(), &stale("c.bin", &["does not name this file"]));
    let trust = Options { trust: true, ..Options::default() };
    assert_eq!(open_with(gone.path(), &trust).unwrap().len(), 1);
    assert_eq!(open_with(added.path(), &trust).unwrap().len(), 3);
    // Every cut of a file is seen, also one that leaves whole ids.
    for size in (0..12).chain([13, 14]) {
        let cut = two();
        put(cut.path(), "b.bin", &vec![2; size]);
        let found = format!("has {size} bytes");
        for path in ["", "b.bin"] {
            let says = [found.as_str(), "the manifest says 12"];
            refused(cut.path(), path, &Options::default(), &stale("b.bin", &says));
        }
    }
}

#[test]
fn side_files_beside_single_files_are_believed_in_their_folder() {
    let folder = folder_of(&[
        ("a.bin", vec![1; 8]),
        ("b.bin", vec![2; 12]),
        ("a.bin.windrow.json", side("uint16", &[("a.bin", 8)])),
        ("b.bin.windrow.json", side("uint16", &[("b.bin", 12)])),
    ]);
    for options in both_ways(&Options::default()) {
        let source = open_with(folder.path(), &options).unwrap();
        assert_eq!((source.length(0).unwrap(), source.length(1).unwrap()), (4, 6));
        assert_eq!(source.schema().vocab_size, Some(50));
    }
    put(folder.path(), "b.bin", &[2; 10]);
    let says = ["has 10 bytes", "says 12"];
    let wanted = Wanted { kind: Some(Kind::Stale), file: "b.bin", says: &says, ..Wanted::default() };
    refused(folder.path(), "", &Options::default(), &wanted);
    put(folder.path(), "b.bin.windrow.json", &side("uint32", &[("b.bin", 10)]));
    let says = ["the token IDs are uint32", "before are uint16"];
    let wanted =
        Wanted { kind: Some(Kind::Mismatch), file: "b.bin.windrow.json", says: &says, ..Wanted::default() };
    refused(folder.path(), "", &Options::default(), &wanted);
}

#[test]
fn a_checked_vocabulary_is_not_checked_again_and_a_smaller_one_is() {
    let folder = two();
    let with = |vocab_size| Options { vocab_size: Some(vocab_size), ..Options::default() };
    // The manifest says that all ids are below 50; that they are 257 and 514 is its lie.
    open_with(folder.path(), &with(50)).unwrap();
    let wanted = Wanted {
        record: Some(0),
        byte: Some(0),
        ..corrupt("a.bin", &["id 257 at value 0 is outside the vocabulary of 49 IDs"])
    };
    refused(folder.path(), "", &with(49), &wanted);
}

#[test]
fn another_tokenizer_is_refused() {
    let folder = two();
    let options = Options { tokenizer: Some("abcd".into()), ..Options::default() };
    for path in ["", "a.bin"] {
        let says = ["hash abcd", "nothing says which tokenizer made the tokens"];
        let wanted = Wanted { kind: Some(Kind::Mismatch), says: &says, ..Wanted::default() };
        refused(folder.path(), path, &options, &wanted);
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_open_is_stale() {
    let folder = folder_of(&[("x.bin", vec![7; 1000])]);
    let path = folder.path().join("x.bin");
    let [_, pread] = both_ways(&of(DType::U8));
    let source = open_with(&path, &pread).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
    let error = whole(source.as_ref(), 0).unwrap_err();
    let wanted = Wanted {
        kind: Some(Kind::Stale),
        file: "x.bin",
        byte: Some(0),
        says: &["became shorter while it was read"],
        ..Wanted::default()
    };
    super::assert_error(&error, &wanted);
}
