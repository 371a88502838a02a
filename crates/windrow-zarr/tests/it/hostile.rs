//! Stores that are broken or made to harm: an error that names the place, never a panic, never a wrong number.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::format::{self, Options, Probe};
use windrow_core::source::conformance;
use windrow_core::store::Local;
use windrow_core::{Error, Kind, Span};
use windrow_zarr::FlatTokens;

use crate::stores::{golden, ids, open, open_with, sequences};
use crate::writing::{FlatTokensWriter, WriteOptions};

const STORES: [&str; 5] = [
    "med.zarr/train",
    "zarr_variants/v2_none.zarr/train",
    "zarr_variants/v2_zlib.zarr/train",
    "zarr_variants/v3_gzip_crc32c.zarr/train",
    "zarr_variants/v3_sharded.zarr/train",
];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to)
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

fn chunks(store: &Path, array: &str) -> Vec<PathBuf> {
    let folder = store.join(array);
    let folder = if folder.join("c").is_dir() { folder.join("c") } else { folder };
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.retain(|p| p.file_name().unwrap().to_str().unwrap().parse::<u32>().is_ok());
    found.sort();
    assert!(!found.is_empty());
    found
}

// Runs `change` on a copy, and gives the error of opening it and reading all of it.
fn broken(store: &str, change: impl FnOnce(&Path)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train");
    copy(&golden().join(store), &path);
    change(&path);
    match open(&path).and_then(|source| sequences(source.as_ref())) {
        Ok(_) => panic!("{store}: nothing was found"),
        Err(e) => e,
    }
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

// A group of version 2, and the folders of its arrays, of which nothing is said yet.
fn without_arrays() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (tokens, starts) = (folder.path().join("encoded_tokens"), folder.path().join("seq_starts"));
    fs::create_dir(&tokens).unwrap();
    fs::create_dir(&starts).unwrap();
    fs::write(folder.path().join(".zgroup"), r#"{"zarr_format":2}"#).unwrap();
    fs::write(folder.path().join(".zattrs"), r#"{"max_token_id":9}"#).unwrap();
    (folder, tokens, starts)
}

#[test]
fn every_chunk_is_missed() {
    for store in STORES {
        for array in ["encoded_tokens", "seq_starts"] {
            let n = chunks(&golden().join(store), array).len();
            for i in 0..n {
                let error = broken(store, |path| fs::remove_file(&chunks(path, array)[i]).unwrap());
                assert_eq!(error.kind(), Kind::Corrupt);
                assert!(error.message().contains(&format!("chunk {i} of {n} is missing")), "{error}");
                assert!(error.place().file.as_ref().unwrap().contains(array), "{error}");
            }
        }
    }
}

#[test]
fn missing_chunks_are_zeros_for_who_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train");
    copy(&golden().join("doc.zarr/train"), &path);
    fs::remove_file(path.join("encoded_tokens/1")).unwrap();
    let source = open_with(&path, &Options { fill_missing: true, ..Options::default() }).unwrap();
    let joined = source.joined().unwrap();
    let span = windrow_core::Span { record: 0, start: 0, len: 8 };
    assert_eq!(ids(joined.as_ref(), span).unwrap(), [6, 7, 8, 3, 0, 0, 0, 0]);
    // What is made up lies in no file.
    let places = joined.locate(span).unwrap();
    assert_eq!(places.len(), 1);
    assert!(joined.files().iter().any(|info| info.file == places[0].file));
}

#[test]
fn a_sequence_that_begins_in_a_missing_chunk_is_read_with_zeros_for_its_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train");
    copy(&golden().join("doc.zarr/train"), &path);
    let options = Options { fill_missing: true, ..Options::default() };
    fs::remove_file(path.join("encoded_tokens/1")).unwrap();
    let source = open_with(&path, &options).unwrap();
    // The first sequence lies in the chunk that is there, the last begins in the other.
    assert_eq!(sequences(source.as_ref()).unwrap(), [[6, 7, 8].as_slice(), &[3, 0, 0], &[0, 0]]);
    assert_eq!(source.locate(Span { record: 2, start: 0, len: 2 }).unwrap(), []);
    conformance::check(source.as_ref()).unwrap();
}

#[test]
fn what_is_said_of_missing_chunks_takes_nothing() {
    let (folder, tokens, starts) = without_arrays();
    let describe = |len: u64| {
        let text = |len: u64, chunk: u64, dtype: &str| {
            format!(
                r#"{{"zarr_format":2,"shape":[{len}],"chunks":[{chunk}],"dtype":"{dtype}","compressor":null,
                "fill_value":0,"filters":null,"order":"C"}}"#
            )
        };
        fs::write(tokens.join(".zarray"), text(len, 1, "<u4")).unwrap();
        fs::write(starts.join(".zarray"), text(2, 2, "<u8")).unwrap();
        fs::write(starts.join("0"), [0u64.to_le_bytes(), len.to_le_bytes()].concat()).unwrap();
    };
    let (len, there) = (1u64 << 24, 12_345_678);
    for name in [there.to_string(), format!("0{}", there + 1), len.to_string()] {
        fs::write(tokens.join(name), 14u32.to_le_bytes()).unwrap();
    }
    let filled = Options { fill_missing: true, ..Options::default() };
    describe(len);
    let source = open_with(folder.path(), &filled).unwrap();
    assert_eq!(ids(source.as_ref(), Span { record: 0, start: there - 1, len: 3 }).unwrap(), [0, 7, 0]);
    assert_eq!(source.locate(Span { record: 0, start: there - 1, len: 3 }).unwrap().len(), 1);
    assert_eq!(source.files().iter().filter(|info| info.file.contains("encoded_tokens")).count(), 2);

    describe(len + 2);
    let error = open_with(folder.path(), &filled).err().unwrap();
    assert!(error.message().contains("chunk 0 of 16777218 is missing"), "{error}");
}

#[test]
fn a_chunk_cut_anywhere_is_found() {
    for store in STORES {
        for array in ["encoded_tokens", "seq_starts"] {
            let size = fs::metadata(&chunks(&golden().join(store), array)[0]).unwrap().len();
            for size in (0..size).step_by(7) {
                let error = broken(store, |path| {
                    let chunk = &chunks(path, array)[0];
                    fs::File::options().write(true).open(chunk).unwrap().set_len(size).unwrap();
                });
                assert_eq!(error.kind(), Kind::Corrupt, "{store} {size}: {error}");
                assert!(error.place().file.as_ref().unwrap().contains(array), "{error}");
            }
        }
    }
}

#[test]
fn any_byte_may_change_and_nothing_panics() {
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train");
        copy(&golden().join(store), &path);
        for array in ["encoded_tokens", "seq_starts"] {
            let chunk = &chunks(&path, array)[0];
            let whole = fs::read(chunk).unwrap();
            for at in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (at % 8);
                fs::write(chunk, &bytes).unwrap();
                if let Err(e) = open(&path).and_then(|source| sequences(source.as_ref())) {
                    assert_eq!(e.kind(), Kind::Corrupt, "{store} {at}: {e}");
                }
            }
            fs::write(chunk, &whole).unwrap();
        }
    }
}

#[test]
fn a_blosc_stream_of_any_bytes_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train");
    let mut writer = FlatTokensWriter::create(&path, &WriteOptions::default()).unwrap();
    (0..2000u32).for_each(|i| writer.add(&[i % 7, i / 3, i]).unwrap());
    writer.finish().unwrap();
    let chunk = path.join("encoded_tokens/0");
    let whole = fs::read(&chunk).unwrap();
    let mut state = 1u64;
    let mut draw = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    for _ in 0..200 {
        let mut bytes = whole.clone();
        // The block size and the table of blocks too, but not the sizes that are checked.
        for _ in 0..=draw(8) {
            let at = [2, 3, 8 + draw(4), 16 + draw(64), 16 + draw(bytes.len() - 16)][draw(5)];
            bytes[at] = draw(256) as u8;
        }
        fs::write(&chunk, bytes).unwrap();
        if let Err(e) = open(&path).and_then(|source| sequences(source.as_ref())) {
            assert_eq!(e.kind(), Kind::Corrupt, "{e}");
        }
    }
}

#[test]
fn chunks_in_each_others_place_are_found() {
    let error = broken("med.zarr/train", |path| {
        let found = chunks(path, "encoded_tokens");
        let other = path.join("other");
        fs::rename(&found[0], &other).unwrap();
        fs::rename(&found[1], &found[0]).unwrap();
        fs::rename(&other, &found[1]).unwrap();
    });
    assert!(error.message().contains("against seq_starts"), "{error}");
    assert!(error.place().record.is_some() && error.place().file.is_some(), "{error}");
}

#[test]
fn starts_that_fall_or_end_elsewhere_are_found() {
    let written = |starts: &[u64]| {
        let error = broken("zarr_variants/v2_none.zarr/train", |path| {
            fs::remove_dir_all(path).unwrap();
            let mut writer =
                FlatTokensWriter::create(path, &WriteOptions { zarr_format: 3, ..WriteOptions::default() })
                    .unwrap();
            writer.add(&[1, 2]).unwrap();
            writer.add(&[3]).unwrap();
            writer.finish().unwrap();
            // The same array without a codec, and other numbers in it.
            edit(&path.join("seq_starts/zarr.json"), "1048576", "3");
            let text = fs::read_to_string(path.join("seq_starts/zarr.json")).unwrap();
            let mut said: serde_json::Value = serde_json::from_str(&text).unwrap();
            said["codecs"].as_array_mut().unwrap().truncate(1);
            fs::write(path.join("seq_starts/zarr.json"), said.to_string()).unwrap();
            let bytes: Vec<u8> = starts.iter().flat_map(|n| n.to_le_bytes()).collect();
            fs::write(path.join("seq_starts/c/0"), bytes).unwrap();
        });
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(error.place().file.as_ref().unwrap().contains("seq_starts"), "{error}");
        error.message().to_string()
    };
    assert!(written(&[1, 2, 3]).contains("from 1 to 3"));
    assert!(written(&[0, 2, 4]).contains("the 3 tokens"));
    assert!(written(&[0, 2, 2]).contains("the 3 tokens"));
    assert!(written(&[0, 5, 3]).contains("goes to 5"));
    assert!(written(&[0, u64::MAX, 3]).contains("tokens"));
}

#[test]
fn starts_and_flags_that_disagree_are_found() {
    let error = broken("zarr_variants/v2_none.zarr/train", |path| {
        let chunk = &chunks(path, "encoded_tokens")[0];
        let mut bytes = fs::read(chunk).unwrap();
        bytes[40] ^= 1;
        fs::write(chunk, bytes).unwrap();
    });
    assert!(error.message().contains("against seq_starts"), "{error}");
    assert_eq!(error.place().byte, Some(40), "{error}");
}

#[test]
fn an_id_above_the_largest_is_found() {
    let error = broken("zarr_variants/v2_none.zarr/train", |path| {
        edit(&path.join(".zattrs"), "2996", "2990");
    });
    assert!(error.message().contains("max_token_id is 2990"), "{error}");
    assert!(error.place().file.as_ref().unwrap().contains("encoded_tokens") && error.place().byte.is_some());
}

#[test]
fn what_the_metadata_says_is_checked() {
    let v2 = "zarr_variants/v2_none.zarr/train";
    let v3 = "zarr_variants/v3_default.zarr/train";
    let tokens = "encoded_tokens/.zarray";
    let expect = |store: &str, file: &str, from: &str, to: &str, kind, word: &str| {
        let error = broken(store, |path| edit(&path.join(file), from, to));
        assert_eq!(error.kind(), kind, "{error}");
        assert!(format!("{error:#}").contains(word), "{word}: {error}");
        assert!(error.place().file.is_some(), "{error}");
    };
    expect(v2, tokens, "<u4", "<u2", Kind::Corrupt, "expected uint32");
    expect(v2, tokens, "<u4", "<i4", Kind::Corrupt, "expected uint32");
    expect(v2, tokens, "515", "515, 1", Kind::Corrupt, "one dimension");
    expect(v2, tokens, "515", "99999999999999999", Kind::Corrupt, "missing");
    expect(v2, tokens, "100", "1000000000000000", Kind::Unsupported, "chunks of");
    expect(v2, tokens, "100", "101", Kind::Corrupt, "expected 404");
    expect(v2, tokens, "{", "", Kind::Corrupt, "metadata");
    expect(v3, "encoded_tokens/zarr.json", "\"zstd\"", "\"nosuch\"", Kind::Unsupported, "nosuch");
    expect(v3, "encoded_tokens/zarr.json", "uint32", "uint64", Kind::Corrupt, "expected uint32");
    expect(v3, "zarr.json", "max_token_id", "other", Kind::Corrupt, "max_token_id");
    expect(v2, ".zattrs", "2996", "-1", Kind::Corrupt, "whole number");
    expect(v2, ".zattrs", "2996", "2147483648", Kind::Corrupt, "whole number");
    expect(v2, ".zgroup", "2", "4", Kind::Unsupported, "no group of zarr");
    expect(
        v3,
        "zarr.json",
        "\"zarr_format\": 3",
        "\"zarr_format\": 4",
        Kind::Unsupported,
        "no group of zarr",
    );
    expect(v3, "encoded_tokens/zarr.json", "\"little\"", "null", Kind::Corrupt, "the order of their bytes");
    let seqax = "doc.zarr/validation";
    let starts = "seq_starts/.zarray";
    expect(
        seqax,
        starts,
        "\"astype\": \"<i8\"",
        "\"astype\": \">i8\"",
        Kind::Unsupported,
        "differences of >i8",
    );
    expect(
        seqax,
        starts,
        "\"dtype\": \"<i8\"",
        "\"dtype\": \"<i4\"",
        Kind::Unsupported,
        "differences of <i4",
    );
    let error = broken(v2, |path| fs::remove_file(path.join(".zattrs")).unwrap());
    assert!(format!("{error:#}").contains("max_token_id"), "{error}");
    let error = broken(v2, |path| fs::remove_dir_all(path.join("seq_starts")).unwrap());
    assert!(format!("{error:#}").contains("seq_starts"), "{error}");
    // A hundred megabytes of it are not read.
    let error = broken(v2, |path| {
        fs::File::options().write(true).open(path.join(tokens)).unwrap().set_len(100 << 20).unwrap();
    });
    assert!(error.message().contains("104857600 bytes"), "{error}");
}

#[test]
fn sequences_are_as_many_as_the_side_file_says() {
    let folder = tempfile::tempdir().unwrap();
    copy(&golden().join("doc.zarr/validation"), folder.path());
    let side = r#"{"version": 1, "windrow": "", "format": "flat-tokens", "records": 1}"#;
    fs::write(folder.path().join("windrow.json"), side).unwrap();
    let look = Probe::at(&[&FlatTokens], Arc::new(Local::new(folder.path())), "").unwrap();
    let opened = |trust| format::open(&[&FlatTokens], &look, &Options { trust, ..Options::default() });
    let error = opened(false).map(|source| source.len()).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.message().contains("the manifest says 1"), "{error}");
    assert!(opened(true).unwrap().len() > 1);
}

#[test]
fn a_chunk_that_claims_gigabytes_takes_none() {
    // The header of a blosc stream says what it decodes to, and in which blocks.
    for at in [4, 8] {
        let error = broken("med.zarr/train", |path| {
            let chunk = &chunks(path, "encoded_tokens")[0];
            let mut bytes = fs::read(chunk).unwrap();
            bytes[at..at + 4].copy_from_slice(&0x7fff_0000u32.to_le_bytes());
            fs::write(chunk, bytes).unwrap();
        });
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    }
    // A chunk of a gigabyte in the metadata, and a few bytes of it.
    for store in ["med.zarr/train", "zarr_variants/v2_zlib.zarr/train"] {
        let error = broken(store, |path| {
            let file = path.join("encoded_tokens/.zarray");
            let mut said: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            said["chunks"] = serde_json::json!([1 << 28]);
            fs::write(file, said.to_string()).unwrap();
        });
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    }
}

#[test]
fn shards_that_point_outside_are_found() {
    let error = broken("zarr_variants/v3_sharded.zarr/train", |path| {
        let file = path.join("encoded_tokens/zarr.json");
        let mut said: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        // Without its checksum the index can be changed.
        said["codecs"][0]["configuration"]["index_codecs"].as_array_mut().unwrap().truncate(1);
        fs::write(file, said.to_string()).unwrap();
        let chunk = &chunks(path, "encoded_tokens")[0];
        let mut bytes = fs::read(chunk).unwrap();
        bytes.truncate(bytes.len() - 4);
        let at = bytes.len() - 64;
        bytes[at..at + 8].copy_from_slice(&(1u64 << 60).to_le_bytes());
        fs::write(chunk, bytes).unwrap();
    });
    assert!(error.message().contains("inner chunk 0"), "{error}");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let path = golden().join("med.zarr/train");
    let kind = |options: Options| open_with(&path, &options).err().map(|e| e.kind());
    assert_eq!(kind(Options { vocab_size: Some(50), ..Options::default() }), None);
    assert_eq!(kind(Options { vocab_size: Some(49), ..Options::default() }), Some(Kind::Corrupt));
    let dtype = Some(windrow_core::DType::U16);
    assert_eq!(kind(Options { dtype, ..Options::default() }), Some(Kind::Mismatch));
    let tokenizer = Some("0123456789abcdef".to_string());
    assert_eq!(kind(Options { tokenizer, ..Options::default() }), Some(Kind::Config));
    let source = open(&path).unwrap();
    assert_eq!(source.length(source.len()).unwrap_err().kind(), Kind::OutOfRange);
}

#[test]
fn a_sequence_that_claims_terabytes_takes_none() {
    let (folder, tokens, starts) = without_arrays();
    let describe = |folder: &Path, len: u64, chunk: u64, dtype: &str, compressor: &str| {
        let text = format!(
            r#"{{"zarr_format":2,"shape":[{len}],"chunks":[{chunk}],"dtype":"{dtype}","compressor":{compressor},
            "fill_value":null,"filters":null,"order":"C"}}"#
        );
        fs::write(folder.join(".zarray"), text).unwrap();
    };
    let blosc = r#"{"id":"blosc","cname":"lz4","clevel":5,"shuffle":2,"blocksize":0}"#;
    let (len, chunk) = (1u64 << 40, 1u64 << 29);
    describe(&tokens, len, chunk, "<u4", blosc);
    describe(&starts, 2, 2, "<u8", "null");
    fs::write(starts.join("0"), [0u64.to_le_bytes(), len.to_le_bytes()].concat()).unwrap();
    for i in 0..len / chunk {
        fs::write(tokens.join(i.to_string()), [2; 40]).unwrap();
    }
    let source = open(folder.path()).unwrap();
    let error = source.read(Span { record: 0, start: 0, len }, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    assert!(error.place().file.as_deref().is_some_and(|file| file.ends_with("encoded_tokens/0")), "{error}");
    source.decode_ahead(&mut [Span { record: 0, start: 0, len }].into_iter());
}
