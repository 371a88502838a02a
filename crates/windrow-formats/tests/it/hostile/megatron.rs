//! Megatron's indexes that are cut, changed, or belong to other data.

use std::fs;

use windrow_core::format::Options;
use windrow_core::source::conformance;
use windrow_core::{DType, Kind};

use super::{refused, unreadable};
use crate::disk::{Wanted, both_ways, bytes_at, open, open_with, whole};
use crate::folder::{folder_of, put};

/// An index as Megatron writes it: lengths, places, borders, modes.
fn index(code: u8, lengths: &[i32], places: &[i64], borders: &[i64], modes: &[i8]) -> Vec<u8> {
    let mut bytes = b"MMIDIDX\0\0".to_vec();
    bytes.extend(1u64.to_le_bytes());
    bytes.push(code);
    bytes.extend((lengths.len() as u64).to_le_bytes());
    bytes.extend((borders.len() as u64).to_le_bytes());
    bytes.extend(lengths.iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend(places.iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend(borders.iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend(modes.iter().flat_map(|n| n.to_le_bytes()));
    bytes
}

/// Three sequences of uint16 in two documents.
fn pair() -> tempfile::TempDir {
    let index = index(8, &[2, 0, 3], &[0, 4, 4], &[0, 2, 3], &[]);
    folder_of(&[("x.idx", index), ("x.bin", (0..10).collect())])
}

fn corrupt<'a>(says: &'a [&'a str], byte: Option<u64>) -> Wanted<'a> {
    Wanted { kind: Some(Kind::Corrupt), file: "x.idx", byte, says, ..Wanted::default() }
}

#[test]
fn a_pair_opens_by_either_name_and_by_its_folder() {
    let folder = pair();
    for path in ["x.idx", "x.bin", ""] {
        for options in both_ways(&Options::default()) {
            let source = open_with(&folder.path().join(path), &options).unwrap();
            assert_eq!(
                (source.len(), source.format(), source.schema().element.dtype),
                (3, "megatron", DType::U16)
            );
            conformance::check(source.as_ref()).unwrap();
            conformance::check_located(source.as_ref(), &bytes_at).unwrap();
            assert_eq!(whole(source.as_ref(), 2).unwrap(), [4, 5, 6, 7, 8, 9]);
            let document = |record| source.extras(record).unwrap().shown()["document"].as_u64().unwrap();
            assert_eq!([0, 1, 2].map(document), [0, 0, 1]);
        }
    }
    // Raw ids, when that is asked for.
    let raw = Options { format: Some("tokens".into()), dtype: Some(DType::U16), ..Options::default() };
    assert_eq!(open_with(&folder.path().join("x.bin"), &raw).unwrap().length(0).unwrap(), 5);
}

#[test]
fn every_dtype_is_read_and_places_may_lie_anywhere() {
    let dtypes = [
        (1, DType::U8),
        (2, DType::I8),
        (3, DType::I16),
        (4, DType::I32),
        (5, DType::I64),
        (6, DType::F64),
        (7, DType::F32),
        (8, DType::U16),
    ];
    for (code, dtype) in dtypes {
        let width = dtype.size() as i64;
        let index = index(code, &[1, 2, 1], &[width, 0, width], &[0, 1, 2, 3], &[]);
        let data: Vec<u8> = (0..2 * width as u8).collect();
        let folder = folder_of(&[("x.idx", index), ("x.bin", data.clone())]);
        let source = open(folder.path()).unwrap();
        conformance::check(source.as_ref()).unwrap();
        assert_eq!(source.schema().element.dtype, dtype);
        assert_eq!(whole(source.as_ref(), 1).unwrap(), data);
        assert!(source.extras(1).unwrap().is_empty());
    }
}

#[test]
fn every_cut_of_an_index_is_refused() {
    let folder = pair();
    let whole = fs::read(folder.path().join("x.idx")).unwrap();
    for size in 9..whole.len() {
        // A byte per sequence more would be modes.
        put(folder.path(), "x.idx", &whole[..size]);
        let says = [if size < 34 { "expected at least 34" } else { "does not fit 3 sequences" }];
        refused(folder.path(), "x.idx", &Options::default(), &corrupt(&says, None));
        let longer = [whole.as_slice(), &vec![0; size]].concat();
        put(folder.path(), "x.idx", &longer);
        refused(folder.path(), "x.bin", &Options::default(), &corrupt(&["does not fit 3 sequences"], None));
    }
}

#[test]
fn every_cut_of_the_data_is_refused() {
    for size in 0..10 {
        let folder = pair();
        put(folder.path(), "x.bin", &vec![0; size]);
        let record = if size < 4 { 0 } else { 2 };
        let ends = format!("ends at byte {size}");
        let says = ["index and data do not belong together", ends.as_str()];
        let byte = Some(34 + 12 + 8 * record);
        let wanted = Wanted { record: Some(record), ..corrupt(&says, byte) };
        refused(folder.path(), "x.idx", &Options::default(), &wanted);
    }
    let folder = pair();
    fs::remove_file(folder.path().join("x.bin")).unwrap();
    let says = ["half a data set"];
    let wanted = Wanted { kind: Some(Kind::NotFound), file: "x.bin", says: &says, ..Wanted::default() };
    refused(folder.path(), "x.idx", &Options::default(), &wanted);
}

#[test]
fn lies_in_the_header_are_refused() {
    let folder = pair();
    let whole = fs::read(folder.path().join("x.idx")).unwrap();
    let changed = |at: usize, bytes: &[u8]| {
        let mut index = whole.clone();
        index[at..at + bytes.len()].copy_from_slice(bytes);
        put(folder.path(), "x.idx", &index);
    };
    let forced = Options { format: Some("megatron".into()), ..Options::default() };
    changed(0, b"TNTIDX\0\0");
    // Without its index a pair is not taken for a stream of ids either.
    for path in ["x.idx", "x.bin", ""] {
        let wanted = corrupt(&["expected an index that starts \"MMIDIDX\""], Some(0));
        refused(folder.path(), path, &Options::default(), &wanted);
    }
    changed(9, &[2]);
    let says = ["version 2"];
    let wanted = Wanted {
        kind: Some(Kind::Unsupported),
        file: "x.idx",
        byte: Some(9),
        says: &says,
        ..Wanted::default()
    };
    refused(folder.path(), "x.idx", &forced, &wanted);
    for code in [0, 9, 255] {
        changed(17, &[code]);
        refused(folder.path(), "x.idx", &forced, &corrupt(&["expected 1 to 8"], Some(17)));
    }
    for at in [18, 26] {
        for count in [0, 1, u64::MAX, u64::MAX / 12, 1 << 61] {
            changed(at, &count.to_le_bytes());
            refused(folder.path(), "x.idx", &forced, &corrupt(&["does not fit"], None));
        }
    }
}

#[test]
fn what_the_side_file_says_of_a_pair_is_held_against_it() {
    let folder = pair();
    let size = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    let side = serde_json::json!({
        "version": 1, "windrow": "", "format": "megatron", "records": 3, "dtype": "uint16",
        "files": [{"name": "x.bin", "size": size("x.bin")}, {"name": "x.idx", "size": size("x.idx")}],
    });
    let tell = |field: &str, value: serde_json::Value| {
        let mut side = side.clone();
        side[field] = value;
        put(folder.path(), "windrow.json", side.to_string().as_bytes());
    };
    let trust = Options { trust: true, ..Options::default() };
    for (field, value, says) in [
        ("records", 4.into(), "3 sequences, the manifest says 4"),
        ("dtype", "int16".into(), "the index says uint16, the manifest int16"),
    ] {
        tell(field, value);
        refused(folder.path(), "", &Options::default(), &corrupt(&[says], None));
        assert_eq!(open_with(folder.path(), &trust).unwrap().len(), 3);
    }
    tell("records", 3.into());
    assert_eq!(open(folder.path()).unwrap().len(), 3);
    put(folder.path(), "x.bin", &[0; 12]);
    let says = ["the file has 12 bytes, the manifest says 10"];
    let wanted = Wanted { kind: Some(Kind::Stale), file: "x.bin", says: &says, ..Wanted::default() };
    refused(folder.path(), "", &Options::default(), &wanted);
    // The manifest says what it was, where the other half is gone.
    fs::remove_file(folder.path().join("x.idx")).unwrap();
    let wanted = |says| Wanted { kind: Some(Kind::NotFound), file: "", says, ..Wanted::default() };
    refused(folder.path(), "", &Options::default(), &wanted(&["expected <prefix>.idx"]));
    refused(folder.path(), "x.bin", &Options::default(), &wanted(&["half a data set"]));
}

#[test]
fn lies_in_the_rows_name_the_row() {
    let at = |lengths: &[i32], places: &[i64], borders: &[i64], wanted: &Wanted<'_>| {
        let folder = folder_of(&[("x.idx", index(1, lengths, places, borders, &[])), ("x.bin", vec![0; 4])]);
        refused(folder.path(), "x.idx", &Options::default(), wanted);
    };
    let row = |record, byte, says| Wanted { record: Some(record), ..corrupt(says, Some(byte)) };
    at(&[1, -1], &[0, 1], &[0, 2], &row(1, 38, &["a sequence of -1 numbers"]));
    at(&[1, i32::MIN], &[0, 1], &[0, 2], &row(1, 38, &["a sequence of -2147483648 numbers"]));
    at(&[1, 1], &[0, -1], &[0, 2], &row(1, 50, &["from byte -1"]));
    at(&[1, 4], &[0, 1], &[0, 2], &row(1, 50, &["4 uint8 numbers from byte 1, but the file ends at byte 4"]));
    at(&[1, 1], &[i64::MAX, 0], &[0, 2], &row(0, 42, &["the file ends at byte 4"]));
    at(&[1, 1], &[0, 1], &[1, 2], &corrupt(&["border 0", "sequence 1, expected 0"], Some(58)));
    at(&[1, 1], &[0, 1], &[0, 3], &corrupt(&["border 1", "sequence 3, expected 2"], Some(66)));
    at(&[1, 1], &[0, 1], &[0, 2, 1, 2], &corrupt(&["border 2", "sequence 1, expected 2 to 2"], Some(74)));
    at(&[1, 1], &[0, 1], &[0, -1, 2], &corrupt(&["border 1"], Some(66)));
    at(&[1, 1], &[0, 1], &[], &corrupt(&["2 sequences, but no borders"], None));
    let folder = folder_of(&[("x.idx", index(1, &[1], &[0], &[7], &[])), ("x.bin", vec![0; 4])]);
    let trust = Options { trust: true, ..Options::default() };
    assert_eq!(open_with(folder.path(), &trust).unwrap().len(), 1);
}

#[test]
fn rows_of_a_large_index_are_checked_when_they_are_read() {
    let n = 1_000_001;
    let mut lengths = vec![1; n];
    let mut places: Vec<i64> = (0..n as i64).collect();
    (lengths[700_000], places[800_000]) = (-5, n as i64);
    let index = index(1, &lengths, &places, &(0..=n as i64).collect::<Vec<_>>(), &[]);
    let folder = folder_of(&[("x.idx", index), ("x.bin", vec![0; n])]);
    let source = open(folder.path()).unwrap();
    conformance::check(source.as_ref()).unwrap();
    let byte = |record: u64| 34 + 4 * record;
    let wanted = Wanted { record: Some(700_000), ..corrupt(&["a sequence of -5"], Some(byte(700_000))) };
    unreadable(folder.path(), "x.idx", &Options::default(), 700_000, &wanted);
    let place = 34 + 4 * n as u64 + 8 * 800_000;
    let wanted = Wanted { record: Some(800_000), ..corrupt(&["ends at byte 1000001"], Some(place)) };
    unreadable(folder.path(), "x.idx", &Options::default(), 800_000, &wanted);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = pair();
    let dtype = Options { dtype: Some(DType::I32), ..Options::default() };
    let says = ["dtype int32 was asked for, the index says uint16"];
    let wanted = Wanted { kind: Some(Kind::Mismatch), file: "x.idx", says: &says, ..Wanted::default() };
    refused(folder.path(), "x.idx", &dtype, &wanted);
    let eos = Options { document_eos: Some(1), ..Options::default() };
    let says = ["megatron has records of its own"];
    let wanted = Wanted { kind: Some(Kind::Config), file: "x.idx", says: &says, ..Wanted::default() };
    refused(folder.path(), "x.idx", &eos, &wanted);
    let vocabulary = Options { vocab_size: Some(0x0706), ..Options::default() };
    let wanted = Wanted {
        kind: Some(Kind::Corrupt),
        file: "x.bin",
        record: Some(2),
        byte: Some(6),
        says: &["id 1798 at value 1 is outside the vocabulary of 1798 IDs"],
    };
    refused(folder.path(), "x.idx", &vocabulary, &wanted);
}

#[test]
fn several_pairs_are_one_data_set_when_they_are_of_one_dtype() {
    let folder = pair();
    put(folder.path(), "x10.idx", &index(8, &[1], &[0], &[0, 1], &[]));
    put(folder.path(), "x10.bin", &[9, 0]);
    put(folder.path(), "x2.idx", &index(8, &[1], &[0], &[0, 1], &[3]));
    put(folder.path(), "x2.bin", &[2, 0]);
    let source = open(folder.path()).unwrap();
    conformance::check(source.as_ref()).unwrap();
    assert_eq!((source.len(), source.format()), (5, "megatron"));
    assert_eq!(
        (whole(source.as_ref(), 3).unwrap(), whole(source.as_ref(), 4).unwrap()),
        (vec![2, 0], vec![9, 0])
    );
    assert_eq!(source.extras(3).unwrap().shown()["mode"], 3);
    put(folder.path(), "x10.idx", &index(4, &[1], &[0], &[0, 1], &[]));
    put(folder.path(), "x10.bin", &[9, 0, 0, 0]);
    let says = ["numbers are int32, those of the files before are uint16"];
    let wanted = Wanted { kind: Some(Kind::Mismatch), file: "x10.idx", says: &says, ..Wanted::default() };
    refused(folder.path(), "", &Options::default(), &wanted);
}
