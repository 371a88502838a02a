//! Byte-offset indexes that lie: rows outside the files, lists of files elsewhere, data that changed.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use windrow_core::format::Options;
use windrow_core::{DType, Kind};
use windrow_formats::FORMATS;
use windrow_prepare::{IndexOptions, index};

use super::{read, refused, unreadable};
use crate::disk::{Wanted, assert_error, both_ways, open_with, rows, whole};
use crate::folder::{folder_of, put};

const LINES: &[u8] = b"1\n22\n333\n";
const SIZE: u64 = LINES.len() as u64;
const GOOD: [[u64; 3]; 3] = [[0, 0, 2], [0, 2, 3], [0, 5, 4]];
const LOCATIONS: &str = "index/sample_locations.bin";
const LIST: &str = "index/file_location.txt";

/// A base folder without a manifest, as another program leaves it.
fn foreign(list: &str, index: &[[u64; 3]]) -> tempfile::TempDir {
    folder_of(&[("a.jsonl", LINES), (LIST, list.as_bytes()), (LOCATIONS, &rows(index))])
}

/// A base folder that windrow indexed.
fn indexed() -> tempfile::TempDir {
    let folder = folder_of(&[("a.jsonl", LINES), ("b.jsonl", b"4\n")]);
    index(FORMATS, folder.path(), &IndexOptions::default(), &()).unwrap();
    folder
}

fn corrupt<'a>(file: &'a str, says: &'a [&'a str]) -> Wanted<'a> {
    Wanted { kind: Some(Kind::Corrupt), file, says, ..Wanted::default() }
}

/// Values at which a size check can be wrong.
fn boundaries() -> Vec<u64> {
    let mut found = vec![0, 1, 2, SIZE - 1, SIZE, SIZE + 1, 1 << 20, u64::MAX - SIZE, u64::MAX - 1, u64::MAX];
    for bit in [31, 32, 63] {
        found.extend([(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    }
    found
}

#[test]
fn every_value_at_a_boundary_of_a_row_is_refused_or_read_right() {
    let mut bad_rows: Vec<[u64; 3]> = Vec::new();
    for field in 0..3 {
        for value in boundaries() {
            let mut row = GOOD[1];
            row[field] = value;
            bad_rows.push(row);
        }
    }
    for start in boundaries() {
        bad_rows.extend(boundaries().into_iter().map(|size| [0, start, size]));
    }
    let mut refused_rows = 0;
    for row in bad_rows {
        let folder = foreign("a.jsonl\n", &[GOOD[0], row, GOOD[2]]);
        let inside = row[0] == 0 && u128::from(row[1]) + u128::from(row[2]) <= u128::from(SIZE);
        if inside {
            reads_the_bytes(folder.path(), row);
            continue;
        }
        refused_rows += 1;
        let (one, two) = (row[1].to_string(), row[2].to_string());
        let says = match row[0] {
            0 => vec!["the row names bytes", &one, &two, "a.jsonl", "ends at byte 9"],
            _ => vec!["names file", "lists 1"],
        };
        let wanted = Wanted { record: Some(1), byte: Some(24), ..corrupt(LOCATIONS, &says) };
        refused(folder.path(), "", &Options::default(), &wanted);
    }
    assert!(refused_rows > 250, "{refused_rows}");
}

// What a row inside the file names is what is read, or it is no JSON and says so.
fn reads_the_bytes(base: &Path, row: [u64; 3]) {
    let bytes = &LINES[row[1] as usize..(row[1] + row[2]) as usize];
    let wanted = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    for options in both_ways(&Options::default()) {
        let source = open_with(base, &options).unwrap();
        assert_eq!(source.length(1).unwrap(), wanted.len() as u64);
        match read(source.as_ref(), 1) {
            Ok(found) => assert_eq!(found, wanted),
            Err(e) => assert_eq!((e.kind(), e.place().record), (Kind::Corrupt, Some(1)), "{e}"),
        }
        assert_eq!(read(source.as_ref(), 2).unwrap(), b"333");
    }
}

#[test]
fn an_index_of_another_size_than_whole_rows_is_refused() {
    for over in 1..24 {
        let folder = foreign("a.jsonl\n", &GOOD);
        fs::write(folder.path().join(LOCATIONS), &rows(&GOOD)[..48 + over]).unwrap();
        let found = format!("{} bytes: {over} more", 48 + over);
        let says = [found.as_str(), "rows of 24 bytes"];
        let wanted = Wanted { byte: Some(48), ..corrupt(LOCATIONS, &says) };
        refused(folder.path(), "", &Options::default(), &wanted);
    }
}

#[test]
fn rows_of_a_large_index_are_checked_when_they_are_read() {
    const N: u64 = 1_000_001;
    let folder = foreign("a.jsonl\n", &GOOD);
    let mut bytes = rows(&[GOOD[1]]).repeat(N as usize);
    let last = bytes.len() - 24;
    bytes[last..].copy_from_slice(&rows(&[[0, 8, 2]]));
    fs::write(folder.path().join(LOCATIONS), bytes).unwrap();
    let says = ["bytes 8+2", "ends at byte 9"];
    let wanted = Wanted { record: Some(N - 1), byte: Some(24 * (N - 1)), ..corrupt(LOCATIONS, &says) };
    unreadable(folder.path(), "", &Options::default(), N - 1, &wanted);
    for options in both_ways(&Options::default()) {
        let source = open_with(folder.path(), &options).unwrap();
        assert_eq!(source.len(), N);
        assert_eq!(whole(source.as_ref(), N - 2).unwrap(), b"22");
        assert_error(&source.length(N - 1).unwrap_err(), &wanted);
    }
}

#[test]
fn of_many_files_a_missing_one_is_named_when_it_is_read() {
    const N: u64 = 4_097;
    let names: String = (0..N).map(|i| format!("d/{i}.jsonl\n")).collect();
    let folder = tempfile::tempdir().unwrap();
    for i in (0..N).filter(|i| *i != 4_000) {
        put(folder.path(), &format!("d/{i}.jsonl"), b"1\n");
    }
    put(folder.path(), LIST, names.as_bytes());
    let index: Vec<[u64; 3]> = (0..N).map(|i| [i, 0, 2]).collect();
    put(folder.path(), LOCATIONS, &rows(&index));
    let source = open_with(folder.path(), &Options::default()).unwrap();
    assert_eq!(whole(source.as_ref(), N - 1).unwrap(), b"1");
    let error = whole(source.as_ref(), 4_000).unwrap_err();
    let says = ["line 4001 of file_location.txt names a file that is not there"];
    let wanted =
        Wanted { kind: Some(Kind::NotFound), file: "d/4000.jsonl", says: &says, ..Wanted::default() };
    assert_error(&error, &wanted);
}

#[test]
fn a_missing_data_file_names_its_line_of_the_list() {
    let folder = foreign("a.jsonl\nb.jsonl\n", &GOOD);
    let says = ["line 2 of file_location.txt", "not there", "windrow index --overwrite"];
    let wanted = Wanted { kind: Some(Kind::NotFound), file: "b.jsonl", says: &says, ..Wanted::default() };
    refused(folder.path(), "", &Options::default(), &wanted);
}

#[test]
fn half_an_index_says_which_half_is_missing() {
    for (gone, other) in [(LIST, LOCATIONS), (LOCATIONS, LIST)] {
        let folder = foreign("a.jsonl\n", &GOOD);
        fs::remove_file(folder.path().join(gone)).unwrap();
        let says = ["half an index", other];
        let wanted = Wanted { kind: Some(Kind::NotFound), file: gone, says: &says, ..Wanted::default() };
        refused(folder.path(), "", &Options::default(), &wanted);
    }
    let folder = folder_of(&[("a.jsonl", LINES)]);
    for options in [
        Options { format: Some("forager".into()), ..Options::default() },
        Options { index_folder: Some("idx".into()), ..Options::default() },
    ] {
        let wanted = Wanted {
            kind: Some(Kind::NotFound),
            says: &["expected", "file_location.txt", "sample_locations.bin"],
            ..Wanted::default()
        };
        refused(folder.path(), "", &options, &wanted);
    }
}

#[test]
fn a_list_that_is_not_utf8_names_the_byte() {
    let folder = foreign("", &GOOD);
    fs::write(folder.path().join(LIST), b"a.jsonl\nb\xff.jsonl\n").unwrap();
    let wanted = Wanted { byte: Some(9), ..corrupt(LIST, &["not UTF-8"]) };
    refused(folder.path(), "", &Options::default(), &wanted);
}

#[test]
fn samples_without_a_dtype_ask_for_it() {
    let folder =
        folder_of(&[("a.bin", &b"12345678"[..]), (LIST, b"a.bin\n"), (LOCATIONS, &rows(&[[0, 0, 8]]))]);
    let says = ["which dtype", ".dtype(…)", "uint16"];
    let wanted = Wanted { kind: Some(Kind::Config), says: &says, ..Wanted::default() };
    refused(folder.path(), "", &Options::default(), &wanted);
    for (dtype, says) in [(DType::U64, &["no multiple"][..]), (DType::U16, &[])] {
        let odd = foreign("a.bin\n", &[[0, 0, 8], [0, 1, 6]]);
        put(odd.path(), "a.bin", b"12345678");
        let options = Options { dtype: Some(dtype), ..Options::default() };
        if says.is_empty() {
            assert_eq!(open_with(odd.path(), &options).unwrap().length(1).unwrap(), 3);
            continue;
        }
        let wanted = Wanted { record: Some(1), byte: Some(1), ..corrupt("a.bin", says) };
        refused(odd.path(), "", &options, &wanted);
    }
}

/// A change after indexing, what of it is said, and whether it can be read all the same.
fn stale(change: impl Fn(&Path), file: &str, says: &[&str], readable: bool) {
    let folder = indexed();
    change(folder.path());
    let wanted = Wanted { kind: Some(Kind::Stale), file, says, ..Wanted::default() };
    refused(folder.path(), "", &Options::default(), &wanted);
    let trusted = open_with(folder.path(), &Options { trust: true, ..Options::default() });
    assert_eq!(trusted.is_ok_and(|source| read(source.as_ref(), 3).is_ok()), readable);
}

#[test]
fn data_that_changed_after_indexing_is_stale() {
    let append = |base: &Path| fs::write(base.join("a.jsonl"), [LINES, b"5\n"].concat()).unwrap();
    stale(append, "a.jsonl", &["has 11 bytes, it had 9", "windrow index --overwrite"], true);
    let cut = |base: &Path| fs::write(base.join("b.jsonl"), b"4").unwrap();
    stale(cut, "b.jsonl", &["has 1 bytes, it had 2"], false);
    let touch = |base: &Path| {
        let file = fs::File::options().write(true).open(base.join("b.jsonl")).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    };
    stale(touch, "b.jsonl", &["changed after it was indexed", "time of change"], true);
}

#[test]
fn a_data_file_that_is_gone_is_named_with_its_line() {
    let folder = indexed();
    fs::remove_file(folder.path().join("b.jsonl")).unwrap();
    let says = ["line 2 of file_location.txt"];
    let wanted = Wanted { kind: Some(Kind::NotFound), file: "b.jsonl", says: &says, ..Wanted::default() };
    refused(folder.path(), "", &Options::default(), &wanted);
}

#[test]
fn parts_of_an_index_that_do_not_belong_together_are_refused() {
    let short = indexed();
    fs::write(short.path().join(LOCATIONS), rows(&GOOD)).unwrap();
    refused(short.path(), "", &Options::default(), &corrupt(LOCATIONS, &["has 3 rows", "says 4"]));
    let long = indexed();
    fs::write(long.path().join(LOCATIONS), rows(&[GOOD[0]; 5])).unwrap();
    refused(long.path(), "", &Options::default(), &corrupt(LOCATIONS, &["has 5 rows", "says 4"]));
    let other = indexed();
    put(other.path(), "c.jsonl", b"4\n");
    fs::write(other.path().join(LIST), "a.jsonl\nc.jsonl\n").unwrap();
    refused(
        other.path(),
        "",
        &Options::default(),
        &corrupt(LIST, &["\"c.jsonl\" is listed", "does not name it"]),
    );
    let fewer = indexed();
    fs::write(fewer.path().join(LIST), "a.jsonl\n").unwrap();
    refused(fewer.path(), "", &Options::default(), &corrupt(LIST, &["\"b.jsonl\" is not listed"]));
}
