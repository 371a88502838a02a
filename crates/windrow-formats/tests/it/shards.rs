//! Descriptions of shards that are too long to be read each time: read once, kept in the cache as a table. Shards that are
//! written again while they are opened.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use windrow_core::format::{self, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::{Entry, FolderId, Local, Object, Store};
use windrow_core::view::{Tail, View, Windows};
use windrow_core::{Draw, Kind, Piece, Result, Span};
use windrow_formats::FORMATS;

use super::alone::{alone, most_memory};
use super::disk::{both_ways, open, open_with, whole};
use super::folder::{folder_of, names, put};

const N: u64 = 20_000;

/// A scale's offset and length, and what else stands in it.
type Scale = (u64, u64, String);

fn meta(scales: &[Scale], total: u64) -> String {
    let mut text = format!(
        "{{\"num_sequences\": {}, \"dtype\": \"float32\", \"files\": {{\"d-1-of-1.bin\": {total}}},\n\"scales\": [\n",
        scales.len()
    );
    for (i, (offset, length, rest)) in scales.iter().enumerate() {
        let between = if i == 0 { "" } else { ",\n" };
        write!(text, "{between}{{\"offset\": {offset:>20}, \"length\": {length:>12}{rest}}}").unwrap();
    }
    text + "]}"
}

/// Writes them with a shard of nothing but its size.
fn written(scales: &[Scale]) -> tempfile::TempDir {
    let total = scales.iter().map(|(offset, length, _)| offset + length).max().unwrap();
    let folder = folder_of(&[("meta.json", meta(scales, total))]);
    assert!(fs::metadata(folder.path().join("meta.json")).unwrap().len() > 1 << 20);
    fs::File::create(folder.path().join("d-1-of-1.bin")).unwrap().set_len(total * 4).unwrap();
    folder
}

fn joined(lengths: impl Iterator<Item = u64>, rest: impl Fn(u64) -> String) -> Vec<Scale> {
    let mut offset = 7;
    let scale = |(i, length)| {
        offset += length;
        (offset - length, length, rest(i))
    };
    (0..).zip(lengths).map(scale).collect()
}

fn check(source: &SharedSource, scales: &[Scale]) {
    assert_eq!(source.len(), scales.len() as u64);
    let mut all = vec![0; scales.len()];
    source.lengths(0, &mut all).unwrap();
    for (record, (offset, length, _)) in (0..).zip(scales) {
        assert_eq!((source.length(record).unwrap(), all[record as usize]), (*length, *length), "{record}");
        let place = &source.locate(Span { record, start: 0, len: *length }).unwrap();
        let found = place.first().map_or((offset * 4, 0), |place| (place.start, place.size));
        assert_eq!(found, (offset * 4, length * 4), "{record}");
    }
    for (first, n) in [(0, 0), (1, 63), (63, 2), (64, 64), (65, 130), (scales.len() - 1, 1)] {
        let mut some = vec![0; n];
        source.lengths(first as u64, &mut some).unwrap();
        assert_eq!(some, all[first..first + n]);
    }
    let past = scales.len() as u64;
    for (first, n) in [(past, 1), (past - 1, 2), (u64::MAX, 2)] {
        assert_eq!(source.lengths(first, &mut vec![0; n]).unwrap_err().kind(), Kind::OutOfRange);
    }
    assert_eq!(source.extras(past).unwrap_err().kind(), Kind::OutOfRange);
}

fn plain(_: u64) -> String {
    String::new()
}

#[test]
fn long_descriptions_are_read_once_whatever_they_say() {
    alone("shards::long_descriptions_are_read_once_whatever_they_say", |cache| {
        let even = joined((0..N).map(|_| 5), plain);
        let uneven = joined((0..N).map(|i| i * 31 % 17), plain);
        let wide = joined((0..N).map(|i| if i == 70 { 1 << 33 } else { i % 3 }), plain);
        let mut apart = uneven.clone();
        apart.reverse();
        let overlapping: Vec<Scale> = (0..N).map(|i| (i % 9, 4, String::new())).collect();
        for (i, scales) in [even, uneven, wide, apart, overlapping].iter().enumerate() {
            let folder = written(scales);
            for options in both_ways(&Options::default()) {
                check(&open_with(folder.path(), &options).unwrap(), scales);
            }
            assert_eq!(names(cache).len(), i + 1);
        }
    });
}

#[test]
fn what_stands_beside_the_numbers_is_found_again() {
    alone("shards::what_stands_beside_the_numbers_is_found_again", |_| {
        let rest = |i| match i % 3 {
            0 => format!(", \"mean\": {i}, \"std\": 2, \"id\": \"n{i}\""),
            1 => format!(", \"mean\": {i}.5, \"std\": null"),
            _ => String::new(),
        };
        let scales = joined((0..N).map(|i| i % 5), rest);
        let folder = written(&scales);
        for _ in 0..2 {
            let source = open(folder.path()).unwrap();
            for record in [0, 1, 2, 31, 32, 33, 63, 64, N - 2, N - 1] {
                let extras = serde_json::Value::Object(source.extras(record).unwrap().shown());
                let expected = match record % 3 {
                    0 => serde_json::json!({"id": format!("n{record}")}),
                    1 => serde_json::json!({"mean": record as f64 + 0.5}),
                    _ => serde_json::json!({}),
                };
                assert_eq!(extras, expected, "{record}");
            }
        }
    });
}

#[test]
fn an_edit_is_seen_and_a_damaged_table_is_an_error() {
    alone("shards::an_edit_is_seen_and_a_damaged_table_is_an_error", |cache| {
        let scales = joined((0..N).map(|i| i % 5), plain);
        let folder = written(&scales);
        let first = open(folder.path()).unwrap().fingerprint().unwrap();
        assert_eq!(open(folder.path()).unwrap().fingerprint().unwrap(), first);
        let table = cache.join(&names(cache)[0]);

        let bytes = fs::read(&table).unwrap();
        for broken in [&bytes[..bytes.len() - 1], &bytes[..4], &[0xff; 400][..]] {
            fs::remove_file(&table).unwrap();
            fs::write(&table, broken).unwrap();
            let error = open(folder.path()).err().unwrap();
            assert_eq!(error.kind(), Kind::Corrupt);
            assert!(error.place().file.as_deref().unwrap().starts_with(cache.to_str().unwrap()), "{error}");
            assert!(error.hint_text().unwrap().contains("delete"), "{error}");
        }

        let mut other = scales.clone();
        other[41].1 -= 1;
        fs::write(folder.path().join("meta.json"), meta(&other, scales[N as usize - 1].0 + 9)).unwrap();
        fs::File::create(folder.path().join("d-1-of-1.bin")).unwrap().set_len(1 << 20).unwrap();
        let source = open(folder.path()).unwrap();
        assert_ne!(source.fingerprint().unwrap(), first);
        check(&source, &other);
    });
}

#[test]
fn without_a_cache_memory_holds_the_table() {
    alone("shards::without_a_cache_memory_holds_the_table", |cache| {
        fs::remove_dir(cache).unwrap();
        fs::write(cache, b"in the way").unwrap();
        let scales = joined((0..N).map(|i| i % 5), plain);
        check(&open(written(&scales).path()).unwrap(), &scales);
    });
}

/// A description that is read already costs no memory, and windows over it 4.125 bytes a series.
#[test]
fn memory_does_not_grow_with_a_description_that_was_read() {
    alone("shards::memory_does_not_grow_with_a_description_that_was_read", |_| {
        const MANY: u64 = 200_000;
        let folder = written(&joined((0..MANY).map(|i| 4 + i * 31 % 17), plain));
        drop(open(folder.path()).unwrap());
        let ((), memory) = most_memory(|| {
            let source = open(folder.path()).unwrap();
            let windows = Windows::new(source, 4, 2, Tail::Drop).unwrap();
            let mut pieces: Vec<Piece> = Vec::new();
            windows.pieces(windows.len() - 1, Draw::new(0, 0, 0, 0), &mut pieces).unwrap();
            assert!(matches!(pieces[..], [Piece::Read(Span { record, .. })] if record == MANY - 1));
        });
        assert!(memory < 5 * MANY as usize, "{memory}");
    });
}

/// A folder that is written again while its files are opened.
struct Rewritten {
    inner: Local,
    /// A folder that takes the place of another before a file of this name is opened.
    before: &'static str,
    folders: Mutex<Option<(PathBuf, PathBuf)>>,
}

impl Store for Rewritten {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        if key.ends_with(self.before)
            && let Some((new, old)) = self.folders.lock().unwrap().take()
        {
            fs::rename(&old, old.with_extension("old")).unwrap();
            fs::rename(new, old).unwrap();
        }
        self.inner.open(key)
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        self.inner.entry(key)
    }

    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.inner.walk(prefix)
    }

    fn display(&self, key: &str) -> String {
        self.inner.display(key)
    }

    fn folder_id(&self, key: &str) -> Option<FolderId> {
        self.inner.folder_id(key)
    }
}

#[test]
fn shards_of_two_writings_are_never_opened_together() {
    let meta = r#"{"num_sequences": 2, "dtype": "uint8", "files": {"d-1-of-2.bin": 2, "d-2-of-2.bin": 2},
        "scales": [{"offset": 0, "length": 2}, {"offset": 2, "length": 2}]}"#;
    // The whole data set, a member of a folder of them, and one that has other shards after it was written again.
    for (key, before, last) in [
        ("", "d-2-of-2.bin", "d-2-of-2.bin"),
        ("a", "d-2-of-2.bin", "d-2-of-2.bin"),
        ("", "d-1-of-2.bin", "d-2-of-3.bin"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for (name, fill, last) in [("old/a", 1, "d-2-of-2.bin"), ("new/a", 2, last)] {
            put(&folder.path().join(name), "meta.json", meta.replace("d-2-of-2.bin", last).as_bytes());
            put(&folder.path().join(name), "d-1-of-2.bin", &[fill; 2]);
            put(&folder.path().join(name), last, &[fill; 2]);
        }
        let old = folder.path().join("old/a");
        let root = if key.is_empty() { old.clone() } else { folder.path().join("old") };
        let folders = Mutex::new(Some((folder.path().join("new/a"), old.clone())));
        let store = Arc::new(Rewritten { inner: Local::new(root), before, folders });
        let look = Probe::at(FORMATS, store.clone(), if key == "a" { "" } else { key }).unwrap();
        let error = format::open(FORMATS, &look, &Options::default()).err().unwrap();
        assert_eq!(error.kind(), Kind::Stale, "{error}");
        assert_eq!(error.place().file.as_deref(), Some(&*old.display().to_string()), "{error}");
        // Opened again, all of it is new.
        let source =
            format::open(FORMATS, &Probe::at(FORMATS, store, "").unwrap(), &Options::default()).unwrap();
        for record in 0..2 {
            assert_eq!(whole(source.as_ref(), record).unwrap(), [2; 2]);
        }
    }
}
