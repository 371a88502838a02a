//! Wrongs of the past, one test each: bytes or numbers that once gave a panic, a wrong value, or a claim that did not hold.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windrow_core::collate::NextToken;
use windrow_core::format::{Options, Probe, open};
use windrow_core::manifest::Manifest;
use windrow_core::plan::Feed;
use windrow_core::source::conformance;
use windrow_core::store::{Entry, Memory, Object, Store};
use windrow_core::view::Pack;
use windrow_core::{DType, Kind, Place, Result};
use windrow_formats::{FORMATS, parse_json};
use windrow_prepare::{VerifyOptions, verify};

/// A number was off by its last bit when it was read, so that a manifest changed each time it was written.
#[test]
fn r0001_a_float_is_read_as_it_was_written() {
    for text in ["0.10006499999999999", "1e-24", "2.2250738585072014e-308", "5e-324", "9007199254740993.0"] {
        let found = parse_json(text.as_bytes(), &Place::default()).unwrap();
        assert_eq!(found.as_f64().map(f64::to_bits), text.parse().ok().map(f64::to_bits), "{text}");
    }
    let read = |text: &str| {
        let object = Memory::new().with("windrow.json", text.as_bytes()).open("windrow.json").unwrap();
        Manifest::read(object.as_ref()).unwrap()
    };
    let text =
        r#"{"version":1,"windrow":"0.1.0","format":"tokens","statistics":{"std":1.0000000000000001e-24}}"#;
    let side = read(text);
    assert_eq!(read(&side.to_text()), side);
}

/// The claimed sizes were added up before they were held against the files.
#[test]
fn r0002_claimed_sizes_past_64_bits_are_problems_of_their_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.bin"), [1, 0, 2, 0]).unwrap();
    let files = format!(r#"[{{"name":"a.bin","size":{0}}},{{"name":"b.bin","size":{0}}}]"#, u64::MAX);
    let side = format!(r#"{{"version":1,"windrow":"0.1.0","format":"tokens","files":{files}}}"#);
    fs::write(folder.path().join("windrow.json"), side).unwrap();
    let found = verify(FORMATS, folder.path(), &VerifyOptions::default(), &()).unwrap();
    let what: Vec<(&str, &str)> = found.problems.iter().map(|p| (&*p.file, &*p.what)).collect();
    assert_eq!(what, [("a.bin", "size"), ("b.bin", "file")]);
    assert_eq!(found.checked_bytes, 4);
}

/// An EOS token that the batch's dtype cannot hold was written as its low bits: another token.
#[test]
fn r0003_an_end_id_that_does_not_fit_the_batch_is_an_error() {
    let store = Memory::new().with("a.bin", [1u8, 0, 2, 0]).with("b.bin", [3u8, 0]);
    let look = Probe::at(FORMATS, Arc::new(store), "").unwrap();
    let options = Options { dtype: Some(DType::U16), ..Options::default() };
    let source = open(FORMATS, &look, &options).unwrap();
    for (eos, dtype, fits) in [(255, DType::U8, true), (256, DType::U8, false), (256, DType::U16, true)] {
        let view = Arc::new(Pack::new(source.clone(), 4, Some(eos)).unwrap());
        let collate = NextToken::new(source.schema(), 4, Some(dtype), false, 0).unwrap();
        let batch = Feed::new(source.clone(), view, Arc::new(collate)).batch(&[0], 0);
        assert_eq!(batch.is_ok(), fits, "{eos} as {dtype}");
        assert!(batch.is_ok() || batch.unwrap_err().kind() == Kind::Config);
    }
}

/// Of a folder of more than 100,000 token files, those beyond were left out without a word.
#[test]
fn r0004_every_file_of_a_large_folder_is_read() {
    let many = 100_001;
    let store = (0..many).fold(Memory::new(), |store, i| store.with(&format!("{i}.bin"), [1u8, 0]));
    let look = Probe::at(FORMATS, Arc::new(store), "").unwrap();
    let options = Options { dtype: Some(DType::U16), ..Options::default() };
    assert_eq!(open(FORMATS, &look, &options).unwrap().len(), many);
}

/// The listing of a large tree was asked for again by each caller.
#[test]
fn r0005_a_folder_is_walked_through_once() {
    for (name, bytes) in [("a.jsonl", &b"1\n"[..]), ("a.npy", &npy(3)), ("a.bin", &[1, 0, 2, 0])] {
        let store = Arc::new(Counting { inner: Memory::new().with(name, bytes), walks: AtomicUsize::new(0) });
        let look = Probe::at(FORMATS, store.clone(), "").unwrap();
        let options = Options { dtype: name.ends_with(".bin").then_some(DType::U16), ..Options::default() };
        open(FORMATS, &look, &options).unwrap();
        assert_eq!(store.walks.load(Ordering::Relaxed), 1, "{name}");
    }
}

struct Counting {
    inner: Memory,
    walks: AtomicUsize,
}

impl Store for Counting {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.inner.open(key)
    }
    fn entry(&self, key: &str) -> Result<Entry> {
        self.inner.entry(key)
    }
    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.walks.fetch_add(1, Ordering::Relaxed);
        self.inner.walk(prefix)
    }
    fn display(&self, key: &str) -> String {
        self.inner.display(key)
    }
}

/// An array of this number of bytes.
fn npy(n: usize) -> Vec<u8> {
    let mut header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({n},), }}").into_bytes();
    header.resize(118 - 1, b' ');
    header.push(b'\n');
    [&b"\x93NUMPY\x01\x00"[..], &118u16.to_le_bytes(), &header, &vec![0; n]].concat()
}

/// Such a file was taken as text, and all other series of its folder were left out.
#[test]
fn r0006_a_series_is_known_behind_long_keys_and_empty_series() {
    let long = format!("{{\"about\": \"{}\", \"sequence\": [1, 2]}}\n", "x".repeat(5000));
    let empty = "{\"sequence\": []}\n{\"sequence\": [1.5, 2.5]}\n";
    let folder = crate::folder::folder_of(&[
        ("a.jsonl", long.as_str()),
        ("b.jsonl", empty),
        ("c.json", "[[1.5, 2.0]]"),
    ]);
    let found = crate::disk::open(folder.path()).unwrap();
    assert_eq!((found.format(), found.len()), ("collection", 4));
}

/// An item of LitData whose place leaves the chunk was an error that named no record.
#[test]
fn r0007_an_item_outside_its_chunk_names_its_record() {
    let index = r#"{"chunks": [{"filename": "c.bin", "chunk_size": 2, "chunk_bytes": 24, "dim": null}],
        "config": {"data_format": ["no_header_tensor:16"], "compression": null, "encryption": null, "item_loader": "PyTreeLoader",
        "data_spec": "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]"}}"#;
    // Two items; the first ends behind the file.
    let words = [2u32, 16, 99, 24, 0, 0];
    let chunk: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let store = Memory::new().with("index.json", index.as_bytes()).with("c.bin", chunk);
    let probe = Probe::at(FORMATS, Arc::new(store), "").unwrap();
    // The first item says what records are.
    let error = open(FORMATS, &probe, &Options::default()).err().unwrap();
    assert_eq!((error.kind(), error.place().record), (Kind::Corrupt, Some(0)), "{error}");
    assert!(error.place().file.as_deref().is_some_and(|file| file.ends_with("c.bin")), "{error}");
}

/// Lists of a type that is not read were taken for metadata, so that the numbers beside them had none; and what a source promises of
/// unreadable records forbade the error that says so.
#[test]
fn r0008_a_column_of_an_unread_type_says_so_and_is_left_out_elsewhere() {
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/golden/6_foreign/arrow/saved_kinds/data-00000-of-00001.arrow"
    );
    const INTERVAL: u8 = 11;
    for (at, holds) in [(1247, "interval"), (1471, "list of interval")] {
        let mut bytes = fs::read(golden).unwrap();
        bytes[at] = INTERVAL;
        let probe = Probe::at(FORMATS, Arc::new(Memory::new().with("t.arrow", bytes)), "t.arrow").unwrap();
        let rows = open(FORMATS, &probe, &Options::default()).unwrap();
        let columns = &rows.schema().columns;
        let (of_type, others): (Vec<_>, Vec<_>) = columns.iter().partition(|column| column.holds == holds);
        assert_eq!(of_type.len(), 1, "{holds}: {columns:?}");
        conformance::check(rows.as_ref()).unwrap();
        let error = rows.row(0).unwrap_err();
        assert_eq!((error.kind(), error.place().record), (Kind::Unsupported, Some(0)), "{error}");
        assert!(
            error.place().file.is_some() && format!("{error:#}").contains(".columns(…) leaves"),
            "{error}"
        );
        let columns = others.iter().map(|column| column.name.clone()).collect();
        let options = Options { columns: Some(columns), ..Options::default() };
        open(FORMATS, &probe, &options).unwrap().row(0).unwrap();
        let options = Options { column: Some("seq".to_string()), ..Options::default() };
        let numbers = open(FORMATS, &probe, &options).unwrap();
        assert!(numbers.extras(0).unwrap().get(&of_type[0].name).is_none(), "{holds}");
    }
}
