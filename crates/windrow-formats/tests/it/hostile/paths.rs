//! Paths that lead elsewhere, and things that are no files: nothing outside the base folder is opened, nothing hangs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use windrow_core::format::{self, Options, Probe};
use windrow_core::store::{Entry, Local, Memory, Object, Store};
use windrow_core::{DType, Error, Kind, Result};
use windrow_formats::FORMATS;

use super::{read, refused};
use crate::disk::{Wanted, assert_error, both_ways, open_with, rows};
use crate::folder::{folder_of, put};

const LIST: &str = "index/file_location.txt";

/// A store that notes every key it is asked for.
struct Spy {
    inner: Local,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Spy {
    fn note(&self, key: &str) {
        self.asked.lock().unwrap().push(key.to_string());
    }
}

impl Store for Spy {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.note(key);
        self.inner.open(key)
    }
    fn entry(&self, key: &str) -> Result<Entry> {
        self.note(key);
        self.inner.entry(key)
    }
    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.note(prefix);
        self.inner.walk(prefix)
    }
    fn display(&self, key: &str) -> String {
        self.inner.display(key)
    }
}

/// A folder with a secret beside the base folder, whose index lists `name`.
fn base_listing(name: &str, ids: bool) -> tempfile::TempDir {
    let row = if ids { [0, 0, 4] } else { [0, 0, 2] };
    let folder = folder_of(&[("secret.jsonl", "1\n"), ("secret.bin", "1234"), ("base/a/b.jsonl", "2\n")]);
    put(folder.path(), "base/index/sample_locations.bin", &rows(&[row]));
    put(folder.path(), "base/index/file_location.txt", format!("{name}\n").as_bytes());
    folder
}

fn is_inside(key: &str) -> bool {
    !key.starts_with('/') && !key.split('/').any(|part| part == "..")
}

#[test]
fn paths_in_the_list_never_lead_outside() {
    let secret = folder_of(&[("secret.jsonl", "1\n")]);
    let absolute = secret.path().join("secret.jsonl").display().to_string();
    let long = "x".repeat(5_000);
    let deep = "../".repeat(2_000) + "etc/passwd";
    for (name, kind) in [
        ("../secret.jsonl", Kind::Config),
        ("../secret.bin", Kind::Config),
        ("a/../../secret.jsonl", Kind::Config),
        ("a/../b.jsonl", Kind::Config),
        ("./../secret.jsonl", Kind::Config),
        ("a//../../secret.jsonl", Kind::Config),
        ("..", Kind::Config),
        ("/etc/passwd", Kind::Config),
        ("//etc/passwd", Kind::Config),
        ("/", Kind::Config),
        (&absolute, Kind::Config),
        (&deep, Kind::Config),
        ("", Kind::Corrupt),
        ("a/b.jsonl\n\n", Kind::Corrupt),
        ("a/b\0.jsonl", Kind::Corrupt),
        ("../secret.jsonl\0", Kind::Corrupt),
        ("C:\\secret.jsonl", Kind::NotFound),
        ("..\\secret.jsonl", Kind::NotFound),
        ("\\\\host\\secret.jsonl", Kind::NotFound),
        ("file:///etc/passwd", Kind::NotFound),
        ("~/secret.jsonl", Kind::NotFound),
        ("$HOME/secret.jsonl", Kind::NotFound),
        ("%2e%2e/secret.jsonl", Kind::NotFound),
        ("a/b.jsonl/c", Kind::NotFound),
        ("a/b.jsonl ", Kind::NotFound),
        ("a", Kind::Unsupported),
        (".", Kind::Unsupported),
        (&long, Kind::Io),
    ] {
        for ids in [false, true] {
            let folder = base_listing(name, ids);
            let dtype = ids.then_some(DType::U16);
            for options in both_ways(&Options { dtype, ..Options::default() }) {
                let asked = Arc::new(Mutex::new(Vec::new()));
                let inner = Local::new(folder.path().join("base")).io(options.io);
                let spy = Spy { inner, asked: asked.clone() };
                let opened = Probe::at(FORMATS, Arc::new(spy), "")
                    .and_then(|look| format::open(FORMATS, &look, &options));
                let error = opened.err().unwrap_or_else(|| panic!("{name:?} opens"));
                assert_eq!(error.kind(), kind, "{name:?}: {error}");
                assert!(error.to_string().len() < 9_000, "{name:.20?}");
                if matches!(kind, Kind::Config | Kind::Corrupt) {
                    assert_error(
                        &error,
                        &Wanted { file: LIST, says: &["expected", "found", "line "], ..Wanted::default() },
                    );
                }
                let asked = asked.lock().unwrap();
                assert!(asked.iter().all(|key| is_inside(key)), "{name:?}: {asked:?}");
            }
        }
    }
}

#[test]
fn paths_outside_open_where_they_are_allowed() {
    let secret = folder_of(&[("secret.jsonl", "1\n")]);
    let absolute = secret.path().join("secret.jsonl").display().to_string();
    let outside = Options { allow_outside: true, ..Options::default() };
    for name in ["../secret.jsonl", "a/../../secret.jsonl", &absolute] {
        let folder = base_listing(name, false);
        for options in both_ways(&outside) {
            let source = open_with(&folder.path().join("base"), &options).unwrap();
            assert_eq!(read(source.as_ref(), 0).unwrap(), b"1");
        }
    }
}

#[test]
fn an_index_folder_outside_is_not_looked_at() {
    let folder = base_listing("a/b.jsonl", false);
    fs::rename(folder.path().join("base/index"), folder.path().join("index")).unwrap();
    for name in ["../index", "/index", "a/../../index"] {
        let options = Options { index_folder: Some(name.into()), ..Options::default() };
        let wanted = Wanted { kind: Some(Kind::NotFound), file: "base", ..Wanted::default() };
        refused(folder.path(), "base", &options, &wanted);
    }
}

#[test]
fn stores_refuse_keys_that_lead_outside() {
    let folder = base_listing("a/b.jsonl", false);
    let store = Local::new(folder.path().join("base"));
    for key in ["../secret.jsonl", "/etc/passwd", "a/../../secret.jsonl", "a/\0"] {
        for error in [store.open(key).err(), store.entry(key).err(), store.walk(key).err()] {
            let error = error.unwrap_or_else(|| panic!("{key:?} opens"));
            assert_eq!(error.kind(), Kind::Config, "{key:?}: {error}");
        }
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) {
    assert!(Command::new(program).args(arguments).arg(path).status().unwrap().success());
}

/// A pipe, a device and a folder where a file is expected.
fn no_files(folder: &Path, name: &str) {
    run("mkfifo", &[], &folder.join("pipe").join(name));
    symlink("/dev/zero", folder.join("device").join(name)).unwrap();
    fs::create_dir(folder.join("folder").join(name)).unwrap();
}

#[test]
fn what_is_no_file_is_refused_and_nothing_waits_for_it() {
    for (name, side) in [("x.jsonl", None), ("x.bin", None), ("a/b.jsonl", Some("a/b.jsonl\n"))] {
        for kind in ["pipe", "device", "folder"] {
            let folder = folder_of(&[("pipe/a/x", ""), ("device/a/x", ""), ("folder/a/x", "")]);
            no_files(folder.path(), name);
            let mut path = format!("{kind}/{name}");
            if let Some(list) = side {
                put(folder.path(), &format!("{kind}/{LIST}"), list.as_bytes());
                put(folder.path(), &format!("{kind}/index/sample_locations.bin"), &rows(&[[0, 0, 2]]));
                path = kind.to_string();
            }
            let found = if kind == "folder" { "found a folder" } else { "found not a regular file" };
            let wanted = Wanted {
                kind: Some(Kind::Unsupported),
                file: name,
                says: &["expected a file", found],
                ..Wanted::default()
            };
            match (kind, side) {
                // A folder that is called like a file is a folder: an empty one.
                ("folder", None) => {
                    let wanted =
                        Wanted { kind: Some(Kind::Unrecognised), says: &["an empty folder"], ..wanted };
                    refused(folder.path(), &path, &Options::default(), &wanted);
                }
                _ => refused(folder.path(), &path, &Options::default(), &wanted),
            }
        }
    }
}

#[test]
fn parts_of_an_index_that_are_no_files_are_refused() {
    for name in ["file_location.txt", "sample_locations.bin", "windrow.json", "sample_schema.json"] {
        for with in ["pipe", "device"] {
            let folder = base_listing("a/b.jsonl", false);
            let path = folder.path().join("base/index").join(name);
            let _ = fs::remove_file(&path);
            match with {
                "pipe" => run("mkfifo", &[], &path),
                _ => symlink("/dev/zero", &path).unwrap(),
            }
            let wanted = Wanted {
                kind: Some(Kind::Unsupported),
                file: name,
                says: &["expected a file, found not a regular file"],
                ..Wanted::default()
            };
            refused(folder.path(), "base", &Options::default(), &wanted);
        }
    }
}

#[test]
fn what_is_not_there_or_is_nothing_is_named() {
    let folder = folder_of(&[("empty/x", ""), ("notes.txt", "some notes\n"), ("d/notes.txt", "")]);
    fs::remove_file(folder.path().join("empty/x")).unwrap();
    let no = |kind, file, says| Wanted { kind: Some(kind), file, says, ..Wanted::default() };
    let refused = |path: &str, wanted| refused(folder.path(), path, &Options::default(), &wanted);
    refused("gone.jsonl", no(Kind::NotFound, "gone.jsonl", &["cannot find it"]));
    refused("gone/deeper", no(Kind::NotFound, "gone/deeper", &[]));
    refused("notes.txt/below", no(Kind::NotFound, "notes.txt/below", &[]));
    refused("empty", no(Kind::Unrecognised, "empty", &["found an empty folder", ".format(…)", "jsonl"]));
    refused("notes.txt", no(Kind::Unrecognised, "notes.txt", &["a file starting \"some notes"]));
    refused("d", no(Kind::Unrecognised, "d", &["a folder of 1 files, first \"notes.txt\""]));
    symlink("nowhere", folder.path().join("d/a.jsonl")).unwrap();
    refused("d", no(Kind::NotFound, "d/a.jsonl", &[]));
}

/// A store in memory of which one object cannot be read.
struct Failing {
    inner: Memory,
    key: &'static str,
}

impl Failing {
    fn check(&self, key: &str) -> Result<()> {
        if key == self.key {
            Err(Error::io("read it", key, std::io::ErrorKind::PermissionDenied.into()))
        } else {
            Ok(())
        }
    }
}

impl Store for Failing {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.check(key).and_then(|()| self.inner.open(key))
    }
    fn entry(&self, key: &str) -> Result<Entry> {
        self.check(key).and_then(|()| self.inner.entry(key))
    }
    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.inner.walk(prefix)
    }
    fn display(&self, key: &str) -> String {
        self.inner.display(key)
    }
}

#[test]
fn what_may_not_be_read_is_not_taken_for_absent() {
    let index = rows(&[[0, 0, 2]]);
    for key in [
        "a.jsonl",
        "index/sample_locations.bin",
        LIST,
        "index/windrow.json",
        "index/sample_schema.json",
        "windrow.json",
    ] {
        let inner = Memory::new()
            .with("a.jsonl", *b"1\n")
            .with(LIST, *b"a.jsonl\n")
            .with("index/sample_locations.bin", index.clone());
        let look = Probe::at(FORMATS, Arc::new(Failing { inner, key }), "");
        let error = look.and_then(|look| format::open(FORMATS, &look, &Options::default())).err();
        let error = error.unwrap_or_else(|| panic!("{key} is passed over"));
        assert_error(&error, &Wanted { kind: Some(Kind::Io), file: key, ..Wanted::default() });
    }
}
