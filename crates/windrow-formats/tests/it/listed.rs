//! Files that the listing of their folder tells of: compared with what is said of them when they are opened, and opened when they
//! are first read.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use windrow_core::format::{self, Options, Probe};
use windrow_core::source::{Kind as Records, SharedSource, Source};
use windrow_core::store::{Entry, Local, Object, Store};
use windrow_core::{Kind, Result, Span};
use windrow_formats::FORMATS;

use crate::disk::{Wanted, assert_error, both_ways, open, open_with, whole};
use crate::folder::{folder_of, put};

const SHARDS: usize = 5;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A folder of five shards with as many records each, and the names of the shards.
fn sharded(format: &str) -> (tempfile::TempDir, Vec<String>) {
    let folder = folder_of::<&str>(&[]);
    let mut rows = Vec::new();
    let mut names = Vec::new();
    for number in 0..SHARDS {
        let (name, bytes) = match format {
            "mds" => (format!("shard.{number}.mds"), words(&[1, 12, 20, 7, 0])),
            "litdata" => (format!("chunk-0-{number}.bin"), words(&[1, 12, 20, 7, 8])),
            "datatrove" => (format!("{number}.ds"), vec![1, 0, 2, 0]),
            "bagz" => (format!("{number}.bag"), [&b"text"[..], &4u64.to_le_bytes()].concat()),
            "array_record" => {
                let one = "../../testdata/golden/6_foreign/records/ar_uncompressed_json/data.array_record";
                (format!("x.array_record-0000{number}-of-00005"), fs::read(one).unwrap())
            }
            other => panic!("{other}"),
        };
        rows.push(match format {
            "mds" => format!(
                r#"{{"column_encodings": ["int"], "column_names": ["a"], "column_sizes": [8], "compression": null, "format": "mds",
                "hashes": [], "raw_data": {{"basename": "{name}", "bytes": 20, "hashes": {{}}}}, "samples": 1, "size_limit": null,
                "version": 2, "zip_data": null}}"#
            ),
            _ => format!(r#"{{"filename": "{name}", "chunk_size": 1, "chunk_bytes": 20, "dim": 1}}"#),
        });
        put(folder.path(), &name, &bytes);
        if format == "datatrove" {
            put(folder.path(), &format!("{name}.index"), &2u64.to_le_bytes());
        }
        names.push(name);
    }
    let rows = rows.join(", ");
    match format {
        "mds" => {
            put(folder.path(), "index.json", format!(r#"{{"version": 2, "shards": [{rows}]}}"#).as_bytes())
        }
        "litdata" => {
            let config = r#"{"data_format": ["no_header_tensor:3"], "compression": null, "encryption": null, "item_loader": "TokensLoader",
                "data_spec": "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]"}"#;
            put(
                folder.path(),
                "index.json",
                format!(r#"{{"chunks": [{rows}], "config": {config}}}"#).as_bytes(),
            );
        }
        _ => {}
    }
    (folder, names)
}

const FORMS: [&str; 5] = ["mds", "litdata", "datatrove", "bagz", "array_record"];

fn read(source: &dyn Source, record: u64) -> Result<()> {
    match source.schema().kind {
        Records::Numbers => whole(source, record).map(drop),
        _ => source.row(record).map(drop),
    }
}

fn last(source: &SharedSource) -> u64 {
    source.len() - 1
}

/// Counts the objects that are opened to stay open.
struct Counting {
    inner: Local,
    opened: AtomicUsize,
}

impl Store for Counting {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.inner.open(key)
    }
    fn open_listed(&self, entry: &Entry) -> Result<Arc<dyn Object>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.inner.open_listed(entry)
    }
    fn read_listed(&self, entry: &Entry, start: u64, out: &mut [u8]) -> Result<()> {
        self.inner.read_listed(entry, start, out)
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
}

#[test]
fn a_file_that_was_listed_is_opened_when_it_is_first_read() {
    for format in FORMS {
        let (folder, _) = sharded(format);
        let store = Arc::new(Counting { inner: Local::new(folder.path()), opened: AtomicUsize::new(0) });
        let opened = || store.opened.swap(0, Ordering::Relaxed);
        let probe = Probe::at(FORMATS, store.clone(), "").unwrap();
        let source = format::open(FORMATS, &probe, &Options::default()).unwrap();
        assert_eq!((source.format(), source.len() % SHARDS as u64), (format, 0));
        // The index and, where it says what the records are, the first of them.
        opened();
        for record in (0..source.len()).step_by(source.len() as usize / SHARDS).skip(1) {
            read(source.as_ref(), record).unwrap();
            assert!(opened() >= 1, "{format}");
            read(source.as_ref(), record).unwrap();
            assert_eq!(opened(), 0, "{format}");
        }
    }
}

#[test]
fn a_file_that_became_another_one_is_stale_when_it_is_first_read() {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let other_time =
        |path: &Path| File::options().append(true).open(path).unwrap().set_modified(old).unwrap();
    let longer = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, [&bytes[..], &bytes].concat()).unwrap();
    };
    for format in FORMS {
        for options in both_ways(&Options::default()) {
            for (change, says) in
                [(&other_time as &dyn Fn(&Path), "1000000000000000000 ns"), (&longer, "bytes")]
            {
                let (folder, names) = sharded(format);
                let source = open_with(folder.path(), &options).unwrap();
                change(&folder.path().join(&names[SHARDS - 1]));
                // Asked for ahead of time it is no error yet.
                source.touch(Span { record: last(&source), start: 0, len: 1 });
                let error = read(source.as_ref(), last(&source)).unwrap_err();
                assert_eq!(error.kind(), Kind::Stale, "{format}: {error}");
                assert!(
                    error.place().file.as_deref().is_some_and(|file| file.ends_with(&names[SHARDS - 1])),
                    "{error}"
                );
                assert!(
                    format!("{error:#}").contains(says) && error.hint_text().is_some(),
                    "{format}: {error}"
                );
                // The others are what they were.
                read(source.as_ref(), 1).unwrap();
            }
        }
    }
}

#[test]
fn a_file_that_is_gone_says_so_when_it_is_first_read() {
    for format in FORMS {
        let (folder, names) = sharded(format);
        let source = open(folder.path()).unwrap();
        fs::remove_file(folder.path().join(&names[SHARDS - 1])).unwrap();
        source.prefetch(&mut std::iter::once((Span { record: last(&source), start: 0, len: 1 }, 1)));
        let error = read(source.as_ref(), last(&source)).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound, "{format}: {error}");
        assert!(
            error.place().file.as_deref().is_some_and(|file| file.ends_with(&names[SHARDS - 1])),
            "{error}"
        );
    }
}

#[test]
fn what_an_index_says_is_compared_with_every_file_at_opening() {
    for format in FORMS {
        for number in 0..SHARDS {
            let (folder, names) = sharded(format);
            let path = folder.path().join(&names[number]);
            fs::write(&path, &fs::read(&path).unwrap()[..3]).unwrap();
            let error = open(folder.path()).err().unwrap_or_else(|| panic!("{format} opens"));
            assert_eq!(error.kind(), Kind::Corrupt, "{format}: {error}");
            // datatrove compares the index with its file, and names the index.
            let file = error.place().file.clone().unwrap_or_default();
            assert!(file.contains(&names[number]), "{format}: {error}");
        }
    }
    for format in ["mds", "litdata"] {
        for number in 0..SHARDS {
            let (folder, names) = sharded(format);
            let path = folder.path().join(&names[number]);
            fs::remove_file(&path).unwrap();
            let wanted = Wanted { kind: Some(Kind::NotFound), file: &names[number], ..Wanted::default() };
            assert_error(&open(folder.path()).err().unwrap(), &wanted);
            // A link that leads nowhere is listed.
            std::os::unix::fs::symlink("nowhere", &path).unwrap();
            assert_error(&open(folder.path()).err().unwrap(), &wanted);
        }
    }
}

#[test]
fn what_no_listing_tells_of_is_asked_for() {
    let names = ["x", "a/x", "a/b/x", "a/b/.x", "a/b/c/x", "a/b/.d/x", "a/b/real/x", "a/bc/x"];
    let folder = folder_of(&names.map(|name| (name, "1")));
    std::os::unix::fs::symlink("real", folder.path().join("a/b/second")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("a/b/dangling")).unwrap();
    let probe = Probe::at(FORMATS, Arc::new(Local::new(folder.path())), "a/b").unwrap();
    let is_there = |key: &str| probe.file(key).unwrap().is_some();
    for key in names.iter().chain(&["a/b/second/x"]) {
        assert!(is_there(key), "{key}");
        assert!(!is_there(&format!("{key}y")), "{key}y");
    }
    for folder_or_nothing in ["a", "a/b", "a/b/c", "a/b/dangling", "y", "a/y", "a/b/y", "a/b/c/y"] {
        assert!(!is_there(folder_or_nothing), "{folder_or_nothing}");
    }
    // One that came after the listing does not belong to the data set that was listed.
    put(folder.path(), "a/b/new", b"1");
    assert!(!is_there("a/b/new"));
}

#[test]
fn threads_that_read_a_file_first_at_the_same_time_read_the_same() {
    for format in FORMS {
        let (folder, _) = sharded(format);
        let source = open(folder.path()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| (0..source.len()).for_each(|record| read(source.as_ref(), record).unwrap()));
            }
        });
    }
}
