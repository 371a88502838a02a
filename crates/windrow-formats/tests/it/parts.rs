//! Data sets in parts: read as one run would have made them, every file compared with what is said of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use windrow_core::format::verify::Findings;
use windrow_core::format::write::PartFile;
use windrow_core::format::{self, Options, Probe};
use windrow_core::manifest::PartRow;
use windrow_core::source::{SharedSource, conformance};
use windrow_core::store::{Entry, Memory, Object, Store};
use windrow_core::{DType, Error, Kind, Result, Span};
use windrow_formats::FORMATS;
use windrow_prepare::{VerifyOptions, verify};

use super::disk::{both_ways, bytes_at, open, open_with, whole};
use super::folder::put;
use super::in_parts::{Files, JOB, Made, layout};

/// Four parts, one of them without a record; documents of 0 to 6 IDs.
fn made() -> Made {
    let document = |i: u16| (0..i * 5 % 7).map(|at| 10 * i + at).collect();
    let parts = [0..40, 40..40, 40..41, 41..99].map(|range| range.map(document).collect());
    Made::tokens(&parts)
}

fn on_disk(files: &Files) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| put(folder.path(), name, bytes));
    folder
}

fn in_memory(files: Files) -> Arc<dyn Store> {
    Arc::new(files.into_iter().fold(Memory::new(), |store, (name, bytes)| store.with(&name, bytes)))
}

fn open_in(store: &Arc<dyn Store>) -> Result<SharedSource> {
    format::open(FORMATS, &Probe::at(FORMATS, store.clone(), "")?, &Options::default())
}

fn error_of<T>(result: Result<T>) -> Error {
    result.err().expect("an error")
}

fn problems(path: &Path) -> Findings {
    verify(FORMATS, path, &VerifyOptions::default(), &()).unwrap()
}

// The first problem, which is in this file and says this.
fn must_find(folder: &Path, file: &str, says: &str) {
    let found = problems(folder);
    let fits = |file_of: &str, text: String| file_of.ends_with(file) && text.contains(says);
    let is_there =
        found.problems.iter().any(|p| fits(&p.file, format!("{} {} {}", p.what, p.expected, p.found)));
    assert!(is_there, "{file}, {says:?}: {:#?}", found.problems);
}

#[test]
fn parts_are_the_records_of_one_run() {
    let made = made();
    let records: Vec<&Vec<u8>> = made.parts.iter().flatten().collect();
    let folder = on_disk(&made.whole());
    for options in both_ways(&Options::default()) {
        let source = open_with(folder.path(), &options).unwrap();
        conformance::check(source.as_ref()).unwrap();
        conformance::check_located(source.as_ref(), &bytes_at).unwrap();
        assert_eq!((source.len(), source.format()), (99, "parts"));
        assert_eq!(source.schema().vocab_size, Some(1000));
        for (record, bytes) in (0..).zip(&records) {
            assert_eq!(whole(source.as_ref(), record).unwrap(), **bytes, "{record}");
        }
        let mut lengths = vec![0; 99];
        source.lengths(0, &mut lengths).unwrap();
        assert!(lengths.iter().zip(&records).all(|(length, bytes)| *length as usize * 2 == bytes.len()));

        let stream = source.joined().unwrap();
        conformance::check(stream.as_ref()).unwrap();
        conformance::check_located(stream.as_ref(), &bytes_at).unwrap();
        assert_eq!(whole(stream.as_ref(), 0).unwrap(), made.parts.concat().concat());
    }
    assert_eq!(problems(folder.path()).problems, []);
    let always = Options { verify_checksums: true, ..Options::default() };
    conformance::check(open_with(folder.path(), &always).unwrap().as_ref()).unwrap();
}

#[test]
fn golden_parts_are_the_recorded_records() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/parts");
    for name in ["tokens", "codes"] {
        let source = open(&golden.join(name)).unwrap();
        assert_eq!(source.format(), "parts");
        conformance::check(source.as_ref()).unwrap();
        let text = fs::read(golden.join(format!("{name}.expected.json"))).unwrap();
        let expected: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let expected = expected["records"].as_array().unwrap();
        assert_eq!(source.len(), expected.len() as u64);
        let width = source.schema().element.dtype.size();
        for (record, expected) in (0..).zip(expected) {
            let bytes = whole(source.as_ref(), record).unwrap();
            let number = |c: &[u8]| c.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
            let numbers: serde_json::Value = bytes.chunks(width).map(number).collect();
            let expected: serde_json::Value = match source.schema().channels {
                None => expected.clone(),
                Some(_) => expected
                    .as_array()
                    .unwrap()
                    .iter()
                    .flat_map(|row| row.as_array().unwrap().clone())
                    .collect(),
            };
            assert_eq!(numbers, expected, "{name} {record}");
        }
        assert_eq!(problems(&golden.join(name)).problems, []);
    }
}

#[test]
fn records_of_channels_are_read_as_such() {
    let frames = |n: u8| (0..n * 3).flat_map(|x| i32::from(x).to_le_bytes()).collect::<Vec<u8>>();
    let parts = vec![vec![frames(4), frames(0)], vec![frames(9)]];
    let made = Made { dtype: DType::I32, channels: Some(3), vocab_size: None, task: "encode", parts };
    let folder = on_disk(&made.whole());
    let source = open(folder.path()).unwrap();
    conformance::check(source.as_ref()).unwrap();
    conformance::check_located(source.as_ref(), &bytes_at).unwrap();
    assert_eq!(source.schema().channels, Some(3));
    assert_eq!((0..3).map(|record| source.length(record).unwrap()).collect::<Vec<_>>(), [4, 0, 9]);
    assert_eq!(problems(folder.path()).problems, []);
    let alone = open(&folder.path().join("parts/000001.bin")).unwrap();
    assert_eq!((alone.schema().channels, alone.length(0).unwrap()), (Some(3), 9));
}

#[test]
fn one_part_opens_by_itself() {
    let made = made();
    let folder = on_disk(&made.whole());
    let path = folder.path().join("parts/000003.bin");
    let part = open(&path).unwrap();
    conformance::check(part.as_ref()).unwrap();
    assert_eq!((part.len(), part.format(), part.schema().element.dtype), (58, "parts", DType::U16));
    assert_eq!(whole(part.as_ref(), 3).unwrap(), made.parts[3][3]);
    assert_eq!(problems(&path).problems, []);
    // A file of that name without what a task says is a stream of IDs.
    put(folder.path(), "else/000003.bin", &[1, 0, 2, 0]);
    let dtype = Some(DType::U16);
    let stream = open_with(&folder.path().join("else/000003.bin"), &Options { dtype, ..Options::default() });
    assert_eq!(stream.unwrap().format(), "tokens");

    fs::write(&path, vec![0; 10]).unwrap();
    let e = error_of(open(&path));
    assert_eq!(e.kind(), Kind::Corrupt, "{e}");
    assert!(e.message().contains("10 bytes, expected") && format!("{e:#}").contains("000003.bin"), "{e}");
    must_find(&path, "000003.bin", "10 bytes, expected");
}

#[test]
fn another_cut_of_the_same_records_has_another_fingerprint() {
    let documents: Vec<Vec<u16>> = (0..20).map(|i| vec![i; 5]).collect();
    let print = |n: usize| {
        let parts: Vec<_> = documents.chunks(n).map(<[_]>::to_vec).collect();
        let source = open_in(&in_memory(Made::tokens(&parts).whole())).unwrap();
        (source.fingerprint().unwrap(), whole(source.joined().unwrap().as_ref(), 0).unwrap())
    };
    assert_eq!(print(4), print(4));
    assert_ne!(print(4).0, print(5).0);
    assert_eq!(print(4).1, print(5).1);
}

#[test]
fn a_preparation_that_is_not_finished_says_how_far_it_is() {
    let made = made();
    let (first, _) = made.part(0);
    let (third, _) = made.part(2);
    let failed = (layout().file(1, PartFile::Failure), b"{}".to_vec());
    let mut files = [vec![made.job()], first, third].concat();
    let job = format!("prep/{JOB}.json");
    let folder = on_disk(&files);
    let e = error_of(open(folder.path()));
    assert_eq!(e.kind(), Kind::Stale);
    assert_eq!(e.message(), "the preparation is not finished: 2 of 4 tasks are done");
    let hint = e.hint_text().unwrap();
    assert!(
        hint.contains("`windrow prep run ") && hint.contains("windrow prep merge") && hint.contains(&job),
        "{hint}"
    );
    must_find(folder.path(), "", "2 of 4 tasks are done");

    files.push(failed);
    let e = error_of(open(on_disk(&files).path()));
    assert!(e.message().contains("2 of 4 tasks are done, 1 failed"), "{e}");
    files.extend([1, 3].into_iter().flat_map(|task| made.part(task).0));
    let e = error_of(open(on_disk(&files).path()));
    let hint = e.hint_text().unwrap();
    assert!(e.message().ends_with("4 of 4 tasks are done") && !hint.contains("prep run"), "{e}");
    // A file in a folder of that name that is no job says nothing.
    let e = error_of(open(on_disk(&vec![("prep/notes.json".to_string(), b"{}".to_vec())]).path()));
    assert_ne!(e.kind(), Kind::Stale, "{e}");
}

#[test]
fn an_index_in_parts_says_what_makes_the_index() {
    let made = Made { task: "index", ..made() };
    let e = error_of(open(on_disk(&made.whole()).path()));
    assert_eq!(e.kind(), Kind::Unsupported);
    let hint = e.hint_text().unwrap();
    assert!(hint.contains("windrow prep join ") && hint.contains(&format!("prep/{JOB}.json")), "{hint}");
    // Verified it is: the rows of each part against their hash. Here they are what would be values.
    let mut files = made.whole();
    for (name, _) in &mut files {
        *name = name.replace(".bin", ".rows");
    }
    let folder = on_disk(&files);
    assert_eq!(problems(folder.path()).problems, []);
    let rows = folder.path().join("parts/000003.rows");
    let mut bytes = fs::read(&rows).unwrap();
    bytes[8] ^= 1;
    fs::write(&rows, &bytes).unwrap();
    must_find(folder.path(), "000003.rows", "xxh3");
    fs::write(&rows, &bytes[1..]).unwrap();
    must_find(folder.path(), "000003.rows", "bytes, expected");
    fs::remove_file(&rows).unwrap();
    must_find(folder.path(), "000003.rows", "");
}

#[test]
fn what_is_missing_cut_changed_or_swapped_is_named() {
    let made = made();
    let files = made.whole();
    type Change = Box<dyn Fn(&Path)>;
    let name = |folder: &Path, name: &str| folder.join("parts").join(name);
    let remove = |file: &'static str| -> Change {
        Box::new(move |folder| fs::remove_file(name(folder, file)).unwrap())
    };
    let cut = |file: &'static str| -> Change {
        Box::new(move |folder| {
            let bytes = fs::read(name(folder, file)).unwrap();
            fs::write(name(folder, file), &bytes[..bytes.len() - 2]).unwrap();
        })
    };
    let flip = |file: &'static str| -> Change {
        Box::new(move |folder| {
            let mut bytes = fs::read(name(folder, file)).unwrap();
            bytes[1] ^= 1;
            fs::write(name(folder, file), bytes).unwrap();
        })
    };
    // The files of part 0 take the place of those of part 3, and the other way round.
    let swap: Change = Box::new(move |folder| {
        for ending in ["bin", "len", "sums", "json"] {
            let [a, b] = ["000000", "000003"].map(|stem| name(folder, &format!("{stem}.{ending}")));
            fs::rename(&a, folder.join("aside")).unwrap();
            fs::rename(&b, &a).unwrap();
            fs::rename(folder.join("aside"), &b).unwrap();
        }
    });
    // The change, what verifying names and says, whether reading must say so too.
    let cases: [(Change, &str, &str, bool); 13] = [
        (remove("000003.bin"), "000003.bin", "part 3 is not there", true),
        (remove("000003.len"), "000003.len", "part 3 is not there", true),
        (remove("000003.sums"), "000003.sums", "part 3 is not there", false),
        (remove("000003.json"), "000003.json", "part 3 is not there", false),
        (cut("000003.bin"), "000003.bin", "bytes, expected", true),
        (cut("000003.len"), "000003.len", "bytes, expected", true),
        (cut("000003.sums"), "000003.sums", "bytes, expected", false),
        (cut("000003.json"), "000003.json", "cannot be understood", false),
        (flip("000003.bin"), "000003.bin", "xxh3", false),
        (flip("000003.len"), "000003.len", "lengths add up to", true),
        (flip("000003.sums"), "000003.sums", "are others", false),
        (flip("000003.json"), "000003.json", "cannot be understood", false),
        (swap, "000000.bin", "bytes, expected", true),
    ];
    for (i, (change, file, says, is_read)) in cases.iter().enumerate() {
        let folder = on_disk(&files);
        change(folder.path());
        must_find(folder.path(), file, says);
        let source = open(folder.path()).unwrap();
        let read = (0..source.len()).try_for_each(|record| whole(source.as_ref(), record).map(drop));
        assert_eq!(read.is_err(), *is_read, "case {i}");
        if let Err(e) = read {
            assert!(e.place().record.is_some() && e.place().file.is_some() && e.hint_text().is_some(), "{e}");
        }
        // Of what the values are compared with, and of the values, each block that is read.
        let always = Options { verify_checksums: true, ..Options::default() };
        let source = open_with(folder.path(), &always).unwrap();
        let read = (0..source.len()).try_for_each(|record| whole(source.as_ref(), record).map(drop));
        assert_eq!(read.is_err(), !file.ends_with(".json"), "case {i}");
    }
}

#[test]
fn parts_of_equal_size_that_were_swapped_are_found() {
    let made = Made::tokens(&[vec![vec![1, 2], vec![3]], vec![vec![4], vec![5, 6]]]);
    let folder = on_disk(&made.whole());
    let [a, b] = ["000000.bin", "000001.bin"].map(|name| folder.path().join("parts").join(name));
    let bytes = fs::read(&a).unwrap();
    fs::copy(&b, &a).unwrap();
    fs::write(&b, bytes).unwrap();
    must_find(folder.path(), "000000.bin", "xxh3");
    must_find(folder.path(), "000001.bin", "xxh3");
    must_find(folder.path(), "000001.sums", "are others");
}

#[test]
fn an_id_outside_the_vocabulary_is_found_with_its_record() {
    let made = Made { vocab_size: Some(900), ..made() };
    let folder = on_disk(&made.whole());
    // Document 92 has IDs from 920 on, and is the first of those that is not empty.
    let first = (90..99).find(|i| i * 5 % 7 > 0).unwrap();
    let found = problems(folder.path()).problems;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].record, found[0].what.as_str()), (Some(first), "id"));
    assert!(found[0].found.starts_with(&format!("{} at byte ", first * 10)), "{found:#?}");
    let asked = Options { vocab_size: Some(500), ..Options::default() };
    assert_eq!(error_of(open_with(folder.path(), &asked)).kind(), Kind::Corrupt);
    open_with(folder.path(), &Options { vocab_size: Some(2000), ..Options::default() }).unwrap();
    assert_eq!(
        error_of(open_with(folder.path(), &Options { dtype: Some(DType::U32), ..Options::default() })).kind(),
        Kind::Mismatch
    );
}

#[test]
fn a_manifest_that_contradicts_itself_is_refused() {
    let made = made();
    let files = made.whole();
    let text =
        String::from_utf8(files.iter().find(|(name, _)| name == "windrow.json").unwrap().1.clone()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let refused = |change: &dyn Fn(&mut serde_json::Value), says: &str| {
        let mut value = value.clone();
        change(&mut value);
        let mut files: BTreeMap<_, _> = files.iter().cloned().collect();
        files.insert("windrow.json".to_string(), value.to_string().into_bytes());
        let e = error_of(open_in(&in_memory(files.into_iter().collect())));
        assert_eq!(e.kind(), Kind::Corrupt, "{e}");
        assert!(format!("{e:#}").contains(says) && format!("{e:#}").contains("windrow.json"), "{says}: {e}");
    };
    refused(&|v| v["records"] = 100.into(), "the parts hold 99 records together, the manifest says 100");
    refused(&|v| v["values"] = 1.into(), "the manifest says 1");
    refused(&|v| drop(v["parts"].as_array_mut().unwrap().pop()), "records together");
    refused(&|v| v["parts"][0]["bytes"] = 3.into(), "parts[0]");
    refused(&|v| v["dtype"] = "uint32".into(), "which take 4 bytes each");
    refused(&|v| v["channels"] = 0.into(), "0 channels");
    refused(&|v| drop(v.as_object_mut().unwrap().remove("dtype")), "expected the dtype");
    refused(&|v| v["parts"][2]["records"] = u64::MAX.into(), "records together");
    refused(
        &|v| {
            let n = v["parts"][0]["records"].as_u64().unwrap();
            v["parts"][1]["records"] = n.into();
            v["parts"][1]["values"] = 7.into();
            v["parts"][1]["bytes"] = 14.into();
            v["parts"][0] = serde_json::json!({ "records": 0, "values": v["parts"][0]["values"].as_u64().unwrap() - 7,
                "bytes": v["parts"][0]["bytes"].as_u64().unwrap() - 14, "xxh3": "00", "lengths_xxh3": "00" });
        },
        "values in no record",
    );
}

#[test]
fn a_manifest_cut_anywhere_is_an_error() {
    let files = made().whole();
    let (name, text) = files.last().unwrap().clone();
    assert_eq!(name, "windrow.json");
    for size in 0..text.len() - 1 {
        let mut files = files.clone();
        files.last_mut().unwrap().1.truncate(size);
        let e = error_of(open_in(&in_memory(files)));
        assert!(format!("{e:#}").contains("windrow.json"), "cut to {size}: {e}");
    }
}

/// A store that counts what it is asked for.
struct Counted {
    inner: Arc<dyn Store>,
    opened: Mutex<Vec<String>>,
    asked: AtomicUsize,
}

impl Store for Counted {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.opened.lock().unwrap().push(key.to_string());
        self.inner.open(key)
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.inner.entry(key)
    }

    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        panic!("{prefix} is listed");
    }

    fn display(&self, key: &str) -> String {
        self.inner.display(key)
    }
}

#[test]
fn twelve_thousand_parts_open_by_their_table() {
    const PARTS: u16 = 12_000;
    let parts: Vec<Vec<Vec<u16>>> =
        (0..PARTS).map(|i| (0..i % 3).map(|n| vec![i % 1000; usize::from(n) + 1]).collect()).collect();
    let made = Made::tokens(&parts);
    let files = made.whole();
    let sizes = |name: &str| files.iter().find(|file| file.0 == name).map(|file| file.1.len());
    assert_eq!(sizes("windrow.parts"), Some(usize::from(PARTS) * PartRow::SIZE));
    assert!(sizes("windrow.json").unwrap() < 2_000);
    let store = Arc::new(Counted {
        inner: in_memory(files.clone()),
        opened: Mutex::default(),
        asked: AtomicUsize::new(0),
    });
    let shared: Arc<dyn Store> = store.clone();
    let source = open_in(&shared).unwrap();
    assert_eq!(source.len(), parts.iter().flatten().count() as u64);
    // What opening and the stream cost does not depend on the number of parts.
    let opened = || {
        let mut opened = std::mem::take(&mut *store.opened.lock().unwrap());
        opened.dedup();
        opened
    };
    assert_eq!(opened(), ["windrow.json", "windrow.parts"]);
    assert!(store.asked.load(Ordering::Relaxed) < 10);
    let stream = source.joined().unwrap();
    let middle = stream.length(0).unwrap() / 2;
    let mut scratch = Vec::new();
    let span = Span { record: 0, start: middle, len: 4 };
    let values = stream.read(span, &mut scratch).unwrap().bytes.to_vec();
    let all: Vec<u8> = made.parts.concat().concat();
    assert_eq!(values, all[middle as usize * 2..][..8]);
    let read = opened();
    assert!((1..=4).contains(&read.len()) && read.iter().all(|key| key.ends_with(".bin")), "{read:?}");
    // A record asks for its own part, and never twice.
    let record = source.len() - 1;
    for _ in 0..2 {
        assert_eq!(whole(source.as_ref(), record).unwrap(), *made.parts.iter().flatten().last().unwrap());
    }
    assert_eq!(opened(), ["parts/011999.len", "parts/011999.bin"]);
    conformance::check(source.as_ref()).unwrap();

    // Another table in its place is refused.
    for change in 0..3 {
        let mut files = files.clone();
        let table = &mut files.iter_mut().find(|file| file.0 == "windrow.parts").unwrap().1;
        match change {
            0 => table[0] ^= 1,
            1 => table.truncate(table.len() - 40),
            _ => table.clear(),
        }
        let e = error_of(open_in(&in_memory(files)));
        assert!(e.kind() == Kind::Corrupt && format!("{e:#}").contains("windrow.parts"), "{e}");
    }
    let without: Files = files.into_iter().filter(|file| file.0 != "windrow.parts").collect();
    assert_eq!(error_of(open_in(&in_memory(without))).kind(), Kind::NotFound);
}

#[test]
fn parts_without_a_value_or_a_record_are_a_data_set() {
    for parts in [vec![], vec![vec![], vec![]], vec![vec![vec![], vec![]]]] {
        let made = Made::tokens(&parts);
        let source = open_in(&in_memory(made.whole())).unwrap();
        conformance::check(source.as_ref()).unwrap();
        assert_eq!(source.len(), parts.iter().flatten().count() as u64);
        assert!((0..source.len()).all(|record| whole(source.as_ref(), record).unwrap().is_empty()));
        assert_eq!(problems(on_disk(&made.whole()).path()).problems, []);
    }
}
