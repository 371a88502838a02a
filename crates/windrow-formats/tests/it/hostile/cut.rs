//! Files cut at every byte and with every bit turned: an error, or exactly what was there before.

use std::fs;
use std::path::Path;

use windrow_core::format::Options;
use windrow_core::{DType, Error, Kind, Result};
use windrow_formats::FORMATS;
use windrow_prepare::{Encode, Encoded, IndexOptions, LinePlace, TokenizeOptions, index, tokenize};

use super::read;
use crate::disk::{both_ways, open_with, rows};
use crate::folder::{folder_of, put};
use crate::writing::samples;

/// Every record, or the first error on the way to it.
fn all(path: &Path, options: &Options) -> Result<Vec<Vec<u8>>> {
    let source = open_with(path, options)?;
    (0..source.len()).map(|record| read(source.as_ref(), record)).collect()
}

/// The error is one that a user can act on: it names a file of the data set.
#[track_caller]
fn assert_says_where(error: &Error, what: &str) {
    let kinds =
        [Kind::Corrupt, Kind::Stale, Kind::NotFound, Kind::Unrecognised, Kind::Config, Kind::Unsupported];
    assert!(kinds.contains(&error.kind()) && error.place().file.is_some(), "{what}: {error:?}");
    assert!(!error.message().is_empty(), "{what}");
}

/// Which records may be found, given those before.
type MayGive<'f> = &'f dyn Fn(&[Vec<u8>], &[Vec<u8>]) -> bool;

/// Writes each version of a file in turn; opening must fail, or give the records that `may_give` allows.
#[track_caller]
fn each_version(
    base: &Path,
    name: &str,
    versions: impl Iterator<Item = Vec<u8>>,
    options: &Options,
    may_give: MayGive<'_>,
) -> (u64, u64) {
    let before = all(base, options).unwrap();
    let whole = fs::read(base.join(name)).unwrap();
    let modified = fs::metadata(base.join(name)).unwrap().modified().unwrap();
    let (mut failed, mut read) = (0, 0);
    for (i, version) in versions.enumerate() {
        let what = format!("{name}, version {i} of {} bytes", version.len());
        put(base, name, &version);
        for options in both_ways(options) {
            match all(base, &options) {
                Ok(found) => {
                    assert!(may_give(&before, &found), "{what}: {found:?}");
                    read += 1;
                }
                Err(error) => {
                    assert_says_where(&error, &what);
                    failed += 1;
                }
            }
        }
    }
    put(base, name, &whole);
    fs::File::options().write(true).open(base.join(name)).unwrap().set_modified(modified).unwrap();
    (failed, read)
}

fn cuts(whole: Vec<u8>) -> impl Iterator<Item = Vec<u8>> {
    (0..whole.len()).map(move |end| whole[..end].to_vec())
}

/// Every bit of a small file turned, one at a time; of a larger one a bit of each byte.
fn turned_bits(whole: Vec<u8>) -> impl ExactSizeIterator<Item = Vec<u8>> {
    let step = if whole.len() < 200 { 1 } else { 9 };
    (0..whole.len() * 8).step_by(step).map(move |bit| {
        let mut turned = whole.clone();
        turned[bit / 8] ^= 1 << (bit % 8);
        turned
    })
}

fn same(before: &[Vec<u8>], found: &[Vec<u8>]) -> bool {
    before == found
}

fn a_beginning(before: &[Vec<u8>], found: &[Vec<u8>]) -> bool {
    before.starts_with(found)
}

/// Ids are the bytes of a line.
struct Bytes;

impl Encode for Bytes {
    fn encode(&self, line: &[u8], _: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        out.ids.extend(line.iter().map(|b| i64::from(*b)));
        Ok(())
    }
    fn describe(&self) -> String {
        "bytes".into()
    }
    fn vocab_size(&self) -> Option<u64> {
        Some(256)
    }
}

fn indexed() -> tempfile::TempDir {
    let folder = folder_of(&[("a.jsonl", "1\n[2,3]\n\"x\"\n"), ("b.jsonl", "{\"a\":1}\n")]);
    index(FORMATS, folder.path(), &IndexOptions { fsync: false, ..IndexOptions::default() }, &()).unwrap();
    folder
}

fn tokenized(sample_size: Option<u64>) -> tempfile::TempDir {
    let input = folder_of(&[("a.jsonl", "\"some words\"\n\"and more\"\n"), ("b.jsonl", "\"the rest\"\n")]);
    let out = tempfile::tempdir().unwrap();
    let options =
        TokenizeOptions { sample_size, eos: Some(0), dtype: Some(DType::U16), fsync: false, ..samples() };
    tokenize(FORMATS, &[input.path().into()], out.path(), &Bytes, &options, &()).unwrap();
    out
}

const INDEX: [&str; 3] = ["index/sample_locations.bin", "index/file_location.txt", "index/windrow.json"];

#[test]
fn no_cut_of_what_windrow_prepared_passes_for_the_whole() {
    for (folder, data) in [
        (indexed(), ["a.jsonl", "b.jsonl"]),
        (
            tokenized(Some(5)),
            ["tokenized-samples/a-tokenized-samples.bin", "tokenized-samples/b-tokenized-samples.bin"],
        ),
        (
            tokenized(None),
            ["tokenized-samples/a-tokenized-samples.bin", "tokenized-samples/b-tokenized-samples.bin"],
        ),
    ] {
        let base = folder.path();
        for name in INDEX {
            let whole = fs::read(base.join(name)).unwrap();
            let (failed, read) = each_version(base, name, cuts(whole.clone()), &Options::default(), &same);
            // The line end at the end of a text says nothing.
            let spare = u64::from(name != INDEX[0]) * 2;
            assert_eq!((failed, read), (whole.len() as u64 * 2 - spare, spare), "{name}");
        }
        for name in data {
            let whole = fs::read(base.join(name)).unwrap();
            let (failed, read) = each_version(base, name, cuts(whole.clone()), &Options::default(), &same);
            assert_eq!((failed, read), (whole.len() as u64 * 2, 0), "{name}");
        }
    }
}

#[test]
fn no_bit_that_turns_in_an_index_gives_other_records() {
    for folder in [indexed(), tokenized(Some(5)), tokenized(None)] {
        let base = folder.path();
        for name in INDEX {
            let whole = fs::read(base.join(name)).unwrap();
            let versions = turned_bits(whole);
            let bits = versions.len() as u64 * 2;
            let (failed, read) = each_version(base, name, versions, &Options::default(), &same);
            assert_eq!(failed + read, bits, "{name}");
            match name {
                // What a manifest says of its writer does not change the records.
                "index/windrow.json" => assert!(failed > 0),
                _ => assert_eq!(read, 0, "{name}"),
            }
        }
    }
}

#[test]
fn a_cut_of_another_programs_index_gives_a_beginning_or_an_error() {
    let index = rows(&[[0, 0, 2], [0, 2, 6], [1, 0, 8]]);
    let folder = folder_of(&[
        ("a.jsonl", &b"1\n[2,3]\n"[..]),
        ("b.jsonl", b"{\"a\":1}\n"),
        ("index/file_location.txt", b"a.jsonl\nb.jsonl\n"),
        ("index/sample_locations.bin", &index),
    ]);
    let base = folder.path();
    for name in ["a.jsonl", "b.jsonl", "index/file_location.txt", "index/sample_locations.bin"] {
        let whole = fs::read(base.join(name)).unwrap();
        let size = whole.len() as u64;
        let (failed, read) = each_version(base, name, cuts(whole), &Options::default(), &a_beginning);
        // Whole rows of an index are an index: nothing says that there were more.
        let expected = match name {
            "index/sample_locations.bin" => 3,
            "index/file_location.txt" => 1,
            _ => 0,
        };
        assert_eq!((failed, read), ((size - expected) * 2, expected * 2), "{name}");
    }
}

#[test]
fn a_cut_of_samples_with_tracks_gives_a_beginning_or_an_error() {
    let schema = r#"{"sample_size":2,"arrays":[{"name":"tokens","dtype":"uint16","offset":0},
        {"name":"loss_mask","dtype":"uint8","offset":4}],"total_bytes_per_sample":6}"#;
    let folder = folder_of(&[
        ("a.bin", &b"123456abcdef"[..]),
        ("index/file_location.txt", b"a.bin\n"),
        ("index/sample_locations.bin", &rows(&[[0, 0, 6], [0, 6, 6]])),
        ("index/sample_schema.json", schema.as_bytes()),
    ]);
    let base = folder.path();
    for (name, expected) in [("a.bin", 0), ("index/sample_schema.json", 0), ("index/sample_locations.bin", 2)]
    {
        let whole = fs::read(base.join(name)).unwrap();
        let size = whole.len() as u64;
        let (failed, read) = each_version(base, name, cuts(whole), &Options::default(), &a_beginning);
        assert_eq!((failed, read), ((size - expected) * 2, expected * 2), "{name}");
    }
}

#[test]
fn a_cut_of_raw_ids_is_seen_where_it_does_not_divide() {
    let whole: Vec<u8> = (0..40).collect();
    for (dtype, width) in [(DType::U16, 2), (DType::U32, 4), (DType::I64, 8)] {
        let folder = folder_of(&[("a.bin", &whole)]);
        let options = Options { dtype: Some(dtype), ..Options::default() };
        let begins = |before: &[Vec<u8>], found: &[Vec<u8>]| before[0].starts_with(&found[0]);
        let (failed, read) = each_version(folder.path(), "a.bin", cuts(whole.clone()), &options, &begins);
        let divides = (1..whole.len()).filter(|size| size % width == 0).count() as u64;
        assert_eq!((failed, read), ((whole.len() as u64 - divides) * 2, divides * 2));
    }
}

#[test]
fn a_cut_of_plain_lines_touches_the_last_of_them_only() {
    let whole = b"{\"a\":1}\r\n[2,3]\n\"caf\xc3\xa9\"\n";
    let folder = folder_of(&[("a.jsonl", whole)]);
    let before = all(folder.path(), &Options::default()).unwrap();
    for end in 1..whole.len() {
        put(folder.path(), "a.jsonl", &whole[..end]);
        for options in both_ways(&Options::default()) {
            let source = open_with(folder.path(), &options).unwrap();
            for record in 0..source.len() {
                let found = read(source.as_ref(), record);
                let is_last = record + 1 == source.len();
                match found {
                    Ok(found) => {
                        assert!(found == before[record as usize] || is_last, "cut at {end}: {found:?}")
                    }
                    Err(error) => {
                        assert!(is_last, "cut at {end}: {error}");
                        assert_eq!((error.kind(), error.place().record), (Kind::Corrupt, Some(record)));
                    }
                }
            }
        }
    }
}
