//! What is written to a store is what is written to a folder, and nobody ever sees a part of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Map;
use windrow::format::{Options, WriteOptions};
use windrow::prepare::{Report, TokenizeOptions, convert, convert_with, tokenize, tokenize_with};
use windrow::text::Tokenizer;
use windrow::{DType, Error, Kind, TextEncoder, open_with};

use crate::ids::records;
use crate::s3::S3;

/// A bucket, a cache, and a folder of texts.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) s3: S3,
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        for name in ["root/bucket", "cache", "texts", "here"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for name in ["a", "b"] {
            let lines = (0..200).map(|i| format!("{{\"text\": \"{name} {}\"}}\n", "word ".repeat(i % 40)));
            fs::write(folder.path().join(format!("texts/{name}.jsonl")), lines.collect::<String>()).unwrap();
        }
        Place { s3: S3::serve(&folder.path().join("root")), folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn options(&self) -> Options {
        let (cache, timeout) = (Some(self.path("cache")), Some(Duration::from_secs(20)));
        Options { cache, timeout, ..self.s3.options() }
    }

    /// Nothing is left to be sent.
    fn is_all_sent(&self) -> bool {
        fs::read_dir(self.path("cache/sending")).map_or(true, |mut found| found.next().is_none())
    }

    fn tokenize(&self, out: &str, options: &TokenizeOptions) -> Result<Report, Error> {
        let encoder = TextEncoder::new(Tokenizer::load("bytes").unwrap(), "text", "auto").unwrap();
        let inputs = [self.path("texts")];
        if out.contains("://") {
            tokenize_with(&inputs, Path::new(out), &encoder, options, &self.options(), &())
        } else {
            tokenize(&inputs, &self.path(out), &encoder, options, &())
        }
    }
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut below) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(path) = below.pop() {
        for item in fs::read_dir(&path).into_iter().flatten() {
            let path = item.unwrap().path();
            if path.is_dir() {
                below.push(path)
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn to(name: &str) -> TokenizeOptions {
    let to = windrow::writer(name, &Map::new()).unwrap();
    TokenizeOptions { eos: Some(256), fsync: false, ..TokenizeOptions::new(to) }
}

fn corpora() -> Vec<&'static str> {
    let written = windrow::written().into_iter().filter(|written| written.is_for_tokenize);
    written.map(|written| written.to).filter(|to| *to != "flat-tokens").collect()
}

#[test]
fn a_corpus_in_a_store_is_that_of_a_folder() {
    let place = Place::new();
    assert!(corpora().len() > 4);
    for name in corpora() {
        let (url, here) = (format!("s3://bucket/x/{name}"), format!("here/{name}"));
        let options = to(name);
        let (there, local) = (place.tokenize(&url, &options), place.tokenize(&here, &options).unwrap());
        let there = there.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(there.output, Path::new(&url), "{name}");
        assert_eq!(Report { output: local.output.clone(), ..there }, local, "{name}");
        let bucket = place.path(&format!("root/bucket/x/{name}"));
        assert_eq!(files(&bucket), files(&place.path(&here)), "{name}");
        let read = |path: &str, options: &Options| records(&open_with(path, options).unwrap());
        let forced = Options { document_eos: (name == "tokens").then_some(256), ..place.options() };
        assert_eq!(read(&url, &forced), read(place.path(&here).to_str().unwrap(), &forced), "{name}");
        assert!(place.is_all_sent(), "{name}");
        // Once more: nothing to do. Of other options: an error before anything is read.
        let again = place.tokenize(&url, &options).unwrap();
        assert!(again.unchanged && again.output == Path::new(&url), "{name}");
        let other = TokenizeOptions { append_eos: true, dtype: Some(DType::U32), ..options.clone() };
        let Ok(_) = place.tokenize(&format!("here/{name}-other"), &other) else { continue };
        let e = place.tokenize(&url, &other).unwrap_err();
        assert_eq!(e.kind(), Kind::Exists, "{name}: {e}");
        assert!(e.place().file.as_deref().unwrap().starts_with(&url), "{name}: {e}");
        place.tokenize(&url, &TokenizeOptions { overwrite: true, ..other }).unwrap();
        assert_eq!(files(&bucket), files(&place.path(&format!("here/{name}-other"))), "{name}");
        assert!(place.is_all_sent(), "{name}");
    }
    // Of another format whose data file has the same name: nothing of the old one stays.
    for name in ["tokens", "llmc", "tokens"] {
        place.tokenize("s3://bucket/y", &TokenizeOptions { overwrite: true, ..to(name) }).unwrap();
        let here = files(&place.path(&format!("here/{name}")));
        assert_eq!(files(&place.path("root/bucket/y")), here, "{name}");
    }
}

#[test]
fn records_in_a_store_are_those_of_a_path() {
    let place = Place::new();
    let tokens = place.path("tokens.bin");
    windrow::prepare::dummy(&tokens, 1000, 5000, 1, false).unwrap();
    let numbers = windrow::open(&tokens).unwrap();
    let rows = windrow::open(place.path("texts/a.jsonl")).unwrap();
    let mut n_written = 0;
    for written in windrow::written() {
        let to = windrow::writer(written.to, &Map::new()).unwrap();
        let options = WriteOptions { fsync: false, ..WriteOptions::default() };
        for (kind, data) in [("numbers", &numbers), ("rows", &rows)] {
            let ending = match to.info().target {
                windrow::dev::format::write::Target::File(endings) => endings[0],
                _ => "",
            };
            let (name, source) = (format!("{}-{kind}{ending}", written.to), data.source().as_ref());
            let here = place.path(&format!("here/{name}"));
            let Ok(local) = convert(source, &here, to.as_ref(), &options, &()) else { continue };
            let url = format!("s3://bucket/{name}");
            let far = |options: &WriteOptions| {
                convert_with(source, Path::new(&url), to.as_ref(), options, &place.options(), &())
            };
            if written.to == "flat-tokens" {
                assert_eq!(far(&options).unwrap_err().kind(), Kind::Unsupported);
                fs::remove_dir_all(&here).unwrap();
                continue;
            }
            let there = far(&options).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(
                (there.records, there.files, there.output_bytes),
                (local.records, local.files, local.output_bytes)
            );
            let e = far(&options).unwrap_err();
            assert!(
                e.kind() == Kind::Exists && e.place().file.as_deref().unwrap().starts_with("s3://bucket/"),
                "{name}: {e}"
            );
            assert!(e.hint_text().unwrap().contains("overwrite"), "{e}");
            far(&WriteOptions { overwrite: true, ..options.clone() })
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(place.is_all_sent(), "{name}");
            n_written += 1;
        }
    }
    assert!(n_written > 15, "{n_written}");
    assert_eq!(files(&place.path("root/bucket")), files(&place.path("here")));
}

/// Requests that change something.
const CHANGES: &str = "^(PUT|POST|DELETE) ";

#[test]
fn nobody_sees_a_part_and_who_was_stopped_continues() {
    for name in corpora() {
        let place = Place::new();
        let url = format!("s3://bucket/{name}");
        let options = to(name);
        let encoder = TextEncoder::new(Tokenizer::load("bytes").unwrap(), "text", "auto").unwrap();
        let inputs = [place.path("texts")];
        let local = |out: &str, options: &TokenizeOptions| {
            place.tokenize(&format!("here/{out}"), options).unwrap();
            files(&place.path(&format!("here/{out}")))
        };
        let first = local("first", &options);
        // What there is to be seen: all of one output, or that it is not finished.
        let check = |outputs: &[&str]| match open_with(&url, &place.options()) {
            Ok(data) => {
                let is_one = |out: &&str| {
                    let local = windrow::open(place.path(&format!("here/{out}"))).unwrap();
                    records(&local) == records(&data)
                };
                assert!(outputs.iter().any(is_one), "{name}");
            }
            Err(e) if e.kind() == Kind::Stale => assert!(e.message().contains("not finished"), "{name}: {e}"),
            Err(e) => assert!(matches!(e.kind(), Kind::Unrecognised | Kind::NotFound), "{name}: {e}"),
        };
        // Stopped behind each request, and going on from there; at last it is whole.
        let mut n = 0;
        loop {
            place.s3.deny(CHANGES, 1);
            let done = tokenize_with(&inputs, Path::new(&url), &encoder, &options, &place.options(), &());
            let denied = place.s3.allow();
            check(&["first"]);
            if done.is_ok() {
                break;
            }
            assert!(denied > 0, "{name}");
            n += 1;
            assert!(n < 100, "{name}: {}", done.unwrap_err());
        }
        // The sign and each file once, and the manifest or the sign's end.
        assert!(n > 1 && n <= first.len() + 1, "{name}: {n} runs for {} files", first.len());
        assert_eq!(files(&place.path(&format!("root/bucket/{name}"))), first, "{name}");
        assert!(place.is_all_sent());
        // Replaced: the old one or none, and at last the new one.
        let other = TokenizeOptions { dtype: Some(DType::U32), overwrite: true, ..options.clone() };
        let Ok(_) = place.tokenize("here/second", &other) else { continue };
        let second = files(&place.path("here/second"));
        for n in 0.. {
            place.s3.deny(CHANGES, n);
            let done = tokenize_with(&inputs, Path::new(&url), &encoder, &other, &place.options(), &());
            place.s3.allow();
            check(&["first", "second"]);
            if done.is_ok() {
                assert!(n > 2, "{name}");
                break;
            }
        }
        assert_eq!(files(&place.path(&format!("root/bucket/{name}"))), second, "{name}");
    }
}

#[test]
fn a_data_set_of_many_files_is_seen_whole_or_not_at_all() {
    let place = Place::new();
    let numbers = [1, 2].map(|seed| {
        let tokens = place.path(&format!("tokens-{seed}.bin"));
        windrow::prepare::dummy(&tokens, 1000, 3000, seed, false).unwrap();
        open_with(&tokens, &Options { document_eos: Some(7), ..Options::default() }).unwrap()
    });
    let rows = ["texts", "texts/b.jsonl"].map(|name| windrow::open(place.path(name)).unwrap());
    for (name, option, size, data) in [
        ("shards", "max_shard_bytes", 3000, &numbers),
        ("mds", "size_limit", 5000, &rows),
        ("litdata", "chunk_bytes", 5000, &rows),
        ("webdataset", "size_limit", 80_000, &rows),
    ] {
        let own = Map::from_iter([(option.to_string(), size.into())]);
        let to = windrow::writer(name, &own).unwrap_or_else(|e| panic!("{e}"));
        let options = WriteOptions { fsync: false, overwrite: true, ..WriteOptions::default() };
        let (url, here) = (format!("s3://bucket/{name}"), place.path(&format!("here/{name}")));
        // First where nothing is, then in the place of what is there.
        let mut before = 0;
        for data in data {
            let source = data.source().as_ref();
            convert(source, &here, to.as_ref(), &options, &()).unwrap();
            let n_files = files(&here).len();
            assert!(n_files > 3, "{name}: {n_files}");
            let mut n = 0;
            loop {
                place.s3.deny(CHANGES, 1);
                let (out, stores) = (Path::new(&url), place.options());
                let done = convert_with(source, out, to.as_ref(), &options, &stores, &());
                place.s3.allow();
                match open_with(&url, &place.options()) {
                    Ok(there) => assert!([before, data.len()].contains(&there.len()), "{name} after {n}"),
                    Err(e) => assert_eq!(e.kind(), Kind::Stale, "{name} after {n}: {e}"),
                }
                match done {
                    Ok(_) => break,
                    Err(e) => assert!(n < 3 * n_files, "{name}: {e}"),
                }
                n += 1;
            }
            assert!(n > 2, "{name}");
            before = data.len();
            assert_eq!(files(&place.path(&format!("root/bucket/{name}"))), files(&here), "{name}");
            assert!(place.is_all_sent());
        }
    }
}
