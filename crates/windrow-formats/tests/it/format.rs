//! Reading what other programs wrote: the recorded cases, and every format through the conformance suite.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windrow_core::format::Options;
use windrow_core::source::{Kind as Records, SharedSource, Source, conformance};
use windrow_core::view::{Cursor, View};
use windrow_core::{DType, Draw, Error, Kind, Piece, Place, Result, Span};
use windrow_formats::parse_json;

use super::disk::{both_ways, bytes_at, open, open_with, whole};
use super::folder::{folder_of, put};

fn golden(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(folder)
}

fn json_at(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    for path in super::folder::names(from).iter().filter(|path| path.is_file()) {
        put(to, path.strip_prefix(from).unwrap().to_str().unwrap(), &fs::read(path).unwrap());
    }
}

/// A base folder as data-forager left it: the inputs or the samples, and the index.
fn forager_case(name: &str) -> (tempfile::TempDir, Value) {
    let case = golden("3_forager").join(name);
    let base = tempfile::tempdir().unwrap();
    copy_folder(&case.join("expected_index"), &base.path().join("index"));
    if case.join("expected_samples").is_dir() {
        copy_folder(&case.join("expected_samples"), &base.path().join("tokenized-samples"))
    } else {
        copy_folder(&case.join("input"), base.path())
    }
    (base, json_at(&case.join("case.json")))
}

fn numbers(bytes: &[u8], dtype: DType) -> Value {
    let number = |c: &[u8]| c.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
    bytes.chunks_exact(dtype.size()).map(number).collect::<Vec<_>>().into()
}

/// A record as data-forager hands it out.
fn sample(source: &dyn Source, record: u64) -> Result<Value> {
    let schema = source.schema();
    let bytes = whole(source, record)?;
    if schema.kind == Records::Json {
        return parse_json(&bytes, &Place::default());
    }
    let tokens = numbers(&bytes, schema.element.dtype);
    if schema.tracks.is_empty() {
        return Ok(tokens);
    }
    let mut arrays = json!({ "tokens": tokens });
    let span = Span { record, start: 0, len: source.length(record)? };
    for (i, track) in schema.tracks.iter().enumerate() {
        let mut scratch = Vec::new();
        let values = source.read_track(i, span, &mut scratch)?;
        arrays[&track.name] = numbers(values.bytes, track.element.dtype);
    }
    Ok(arrays)
}

fn conforms(source: &SharedSource, case: &str) {
    let checked = conformance::check(source.as_ref())
        .and_then(|()| conformance::check_located(source.as_ref(), &bytes_at));
    checked.unwrap_or_else(|e| panic!("{case}: {e}"));
}

#[test]
fn samples_are_the_recorded_ones() {
    let mut seen = 0;
    for entry in fs::read_dir(golden("3_forager")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (base, told) = forager_case(&name);
        let expected = &told["expected"]["read"];
        let dtype = told["read_dtype"].as_str().map(|name| DType::parse(name).unwrap());
        for options in both_ways(&Options { dtype, ..Options::default() }) {
            let source = open_with(base.path(), &options);
            if expected.get("error").is_some() {
                let error = source.err().unwrap_or_else(|| panic!("{name} opens"));
                assert_eq!(error.kind(), Kind::Corrupt, "{name}: {error}");
                assert_eq!(error.place().record, Some(0), "{name}: {error}");
                continue;
            }
            let source = source.unwrap();
            conforms(&source, &name);
            let expected = expected["ok"]["samples"].as_array().unwrap();
            assert_eq!(source.len(), expected.len() as u64, "{name}");
            for (record, expected) in (0..).zip(expected) {
                let found = sample(source.as_ref(), record);
                check_sample(&name, record, found, expected);
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 22);
}

fn check_sample(case: &str, record: u64, found: Result<Value>, expected: &Value) {
    // The original stumbles over a byte order mark at the start of a file; here it is no part of the record.
    if (case, record) == ("03_blank_lines_and_bom", 0) {
        assert_eq!(found.unwrap(), json!({"text": "bom"}));
    } else if expected.get("error").is_some() {
        assert_eq!(found.unwrap_err().kind(), Kind::Corrupt, "{case} {record}");
    } else {
        assert_eq!(found.unwrap(), *expected.get("ok").unwrap_or(expected), "{case} {record}");
    }
}

#[test]
fn lines_without_their_index_are_the_same_records() {
    for name in ["01_natural_sort_nested", "02_utf8_crlf_no_final_newline", "04_not_json_lines_are_indexed"] {
        let (base, _) = forager_case(name);
        let indexed = open(base.path()).unwrap();
        fs::remove_dir_all(base.path().join("index")).unwrap();
        let plain = open(base.path()).unwrap();
        assert_eq!((indexed.format(), plain.format()), ("forager", "jsonl"));
        conforms(&plain, name);
        assert_eq!(indexed.len(), plain.len(), "{name}");
        for record in 0..plain.len() {
            assert_eq!(whole(indexed.as_ref(), record).unwrap(), whole(plain.as_ref(), record).unwrap());
        }
    }
}

#[test]
fn streams_give_the_recorded_batches() {
    let mut seen = 0;
    for case in json_at(&golden("1_oxidizr/cases.json")).as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let path = golden("1_oxidizr").join(case["file"].as_str().unwrap());
        let dtype = Some(DType::U32);
        for options in both_ways(&Options { dtype, ..Options::default() }) {
            let source = open_with(&path, &options);
            match stream_error(name) {
                Some((kind, says)) => {
                    let error = source.err().unwrap_or_else(|| panic!("{name} opens"));
                    assert_eq!(error.kind(), kind, "{name}: {error}");
                    assert!(format!("{error:#}").contains(says), "{name}: {error}");
                }
                None => check_batches(name, &source.unwrap(), case),
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 17);
}

fn stream_error(name: &str) -> Option<(Kind, &'static str)> {
    match name {
        "missing_file" => Some((Kind::NotFound, "nope.bin")),
        "size_not_multiple_of_4" => Some((Kind::Corrupt, "82 bytes: 2 more")),
        "empty_file" => Some((Kind::Corrupt, "empty")),
        _ => None,
    }
}

// The recorded batches, by the view that cuts as the recorded loader does.
fn check_batches(name: &str, source: &SharedSource, case: &Value) {
    conforms(source, name);
    let number = |key: &str| case[key].as_u64();
    let (rows, length) = (number("batch_size").unwrap(), number("seq_len").unwrap());
    let shard = (number("rank").unwrap(), number("world_size").unwrap_or(1));
    assert_eq!(Some(source.length(0).unwrap()), case["expected"]["dataset_size"].as_u64(), "{name}");
    let batches = case["expected"]["batches"].as_array().unwrap();
    let view = match Cursor::new(source.clone(), rows, length, shard) {
        Ok(view) => view,
        Err(error) => {
            // Where the original panics, or reads another rank's part.
            let refused = ["panics", "reads_outside_shard"].iter().any(|word| name.contains(word));
            assert!(refused || batches[0].get("inputs").is_none(), "{name}: {error}");
            return assert!(error.message().contains("one batch needs"), "{name}: {error}");
        }
    };
    let row = |sample, skip: usize| {
        let mut pieces = Vec::new();
        view.pieces(sample, Draw::new(0, 0, 0, sample), &mut pieces).unwrap();
        let Piece::Read(span) = pieces[0] else { panic!("{name}: {pieces:?}") };
        let mut scratch = Vec::new();
        let bytes = source.read(span, &mut scratch).unwrap().bytes;
        numbers(&bytes[4 * skip..4 * (skip + length as usize)], DType::U32)
    };
    for (batch, expected) in (0..).zip(batches) {
        // It begins again where no whole batch is left.
        let first = batch * rows % view.len();
        let block = |skip| Value::from((first..first + rows).map(|r| row(r, skip)).collect::<Vec<_>>());
        assert_eq!((block(0), block(1)), (expected["inputs"].clone(), expected["targets"].clone()), "{name}");
    }
}

/// Bytes of ids, as many as `width` says for each.
fn ids(width: usize, n: u64) -> Vec<u8> {
    (0..n).flat_map(|i| (i % 100).to_le_bytes()[..width].to_vec()).collect()
}

#[test]
fn every_layout_keeps_every_promise_of_a_source() {
    for (dtype, width) in [(DType::U8, 1), (DType::U16, 2), (DType::U32, 4), (DType::I32, 4), (DType::I64, 8)]
    {
        let folder = folder_of(&[("b.bin", ids(width, 3)), ("a.bin", ids(width, 70_000))]);
        for options in both_ways(&Options { dtype: Some(dtype), vocab_size: Some(100), ..Options::default() })
        {
            let streams = open_with(folder.path(), &options).unwrap();
            assert_eq!((streams.len(), streams.format(), streams.uniform()), (2, "tokens", None));
            conforms(&streams, dtype.name());
        }
    }
}

#[test]
fn lines_in_compressed_files_are_records_too() {
    super::alone::alone("format::lines_in_compressed_files_are_records_too", |_| {
        let lines: String = (0..5_000).map(|i| format!("{{\"n\": {i}}}\r\n")).collect();
        let gzip = gzip(lines.as_bytes());
        let zstd = zstd::bulk::compress(lines.as_bytes(), 3).unwrap();
        let folder = folder_of(&[
            ("x/plain.jsonl", lines.as_bytes()),
            ("x/two.ndjson", b"1\n\n2"),
            ("z.jsonl.zst", &zstd),
            ("a.jsonl.gz", &gzip),
        ]);
        for options in both_ways(&Options::default()) {
            let source = open_with(folder.path(), &options).unwrap();
            assert_eq!(source.len(), 15_003);
            conformance::check(source.as_ref()).unwrap();
            assert_eq!(whole(source.as_ref(), 0).unwrap(), b"{\"n\": 0}");
            assert_eq!(whole(source.as_ref(), 9_999).unwrap(), b"{\"n\": 4999}");
            assert_eq!(whole(source.as_ref(), 10_000).unwrap(), b"1");
        }
    });
}

#[test]
fn ids_in_compressed_files_are_those_that_were_compressed() {
    super::alone::alone("format::ids_in_compressed_files_are_those_that_were_compressed", |_| {
        let plain = ids(2, 70_000);
        let (gzip, zstd) = (gzip(&plain), zstd::bulk::compress(&plain, 3).unwrap());
        let side = |size: usize| {
            let files = json!([{ "name": "a.bin", "size": size }]);
            let side = json!({ "version": 1, "windrow": "0.1.0", "format": "tokens", "dtype": "uint16", "vocab_size": 100, "files": files });
            side.to_string().into_bytes()
        };
        let folder = folder_of(&[
            ("a.bin", &plain),
            ("two/a.bin.gz", &gzip),
            ("two/b.bin.zst", &zstd),
            ("beside/a.bin.gz", &gzip),
            ("beside/a.bin.windrow.json", &side(plain.len())),
            ("around/a.bin.zst", &zstd),
            ("around/windrow.json", &side(plain.len())),
            ("other/a.bin.gz", &gzip),
            ("other/windrow.json", &side(plain.len() - 2)),
            ("pair/a.bin.gz", &gzip),
            ("pair/a.idx", &vec![1]),
        ]);
        let at = |path: &str| folder.path().join(path);
        for eos in [None, Some(99)] {
            let said = Options { dtype: Some(DType::U16), document_eos: eos, ..Options::default() };
            for (said, untold) in
                both_ways(&said).iter().zip(both_ways(&Options { document_eos: eos, ..Options::default() }))
            {
                let want = open_with(&at("a.bin"), said).unwrap();
                let two = open_with(&at("two"), said).unwrap();
                conformance::check(two.as_ref()).unwrap();
                assert_eq!(two.len(), 2 * want.len());
                // What stood beside a file, or in its folder, still says what it holds.
                let told = ["beside", "beside/a.bin.gz", "around", "around/a.bin.zst"];
                let told = told.map(|path| open_with(&at(path), &untold).unwrap());
                for record in 0..want.len() {
                    let bytes = whole(want.as_ref(), record).unwrap();
                    assert_eq!(whole(two.as_ref(), record).unwrap(), bytes);
                    assert_eq!(whole(two.as_ref(), want.len() + record).unwrap(), bytes);
                    told.iter().for_each(|told| assert_eq!(whole(told.as_ref(), record).unwrap(), bytes));
                }
                assert!(told.iter().all(|told| told.schema().vocab_size == Some(100)));
            }
        }
        for path in ["other", "other/a.bin.gz"] {
            assert_eq!(open(&at(path)).err().unwrap().kind(), Kind::Stale, "{path}");
        }
        // Which ids a compressed half of a pair holds, its index says.
        assert_eq!(open(&at("pair/a.bin.gz")).err().unwrap().kind(), Kind::Unrecognised);
    });
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn a_copy_has_the_same_fingerprint_and_an_edit_another() {
    let (base, _) = forager_case("10_pack_fixed");
    let (copy, _) = forager_case("10_pack_fixed");
    let print = |path: &Path| -> Result<u64, Error> {
        open_with(path, &Options { dtype: Some(DType::U16), ..Options::default() })?.fingerprint()
    };
    let before = print(base.path()).unwrap();
    assert_eq!(print(copy.path()).unwrap(), before);
    let data = copy.path().join("tokenized-samples/a-tokenized-samples.bin");
    let mut bytes = fs::read(&data).unwrap();
    bytes[50] ^= 1;
    fs::write(&data, &bytes).unwrap();
    assert_ne!(print(copy.path()).unwrap(), before);
}
