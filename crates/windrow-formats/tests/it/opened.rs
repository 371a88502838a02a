//! What a path is taken for, and what of a folder is found: links, `.json` files of lines, other programs' files, splits,
//! and descriptions that lie beside data.

use std::fs;
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::format::{self, Options, Probe};
use windrow_core::source::{Source, conformance};
use windrow_core::store::{Local, Store};
use windrow_core::{DType, Error, Kind, Result};
use windrow_formats::FORMATS;
use windrow_prepare::{
    Encode, Encoded, IndexOptions, LinePlace, TokenizeOptions, VerifyOptions, index, text_of, tokenize,
    verify,
};

use super::alone::alone;
use super::disk::{Wanted, assert_error, both_ways, open, open_with, whole};
use super::folder::{folder_of, put};
use crate::writing::samples;

/// A token for every byte.
struct Bytes;

impl Encode for Bytes {
    fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        out.ids.extend(text_of(line, "text", place, &mut out.room)?.bytes().map(i64::from));
        Ok(())
    }

    fn describe(&self) -> String {
        "bytes".to_string()
    }

    fn vocab_size(&self) -> Option<u64> {
        Some(256)
    }
}

fn texts(source: &dyn Source) -> Vec<String> {
    (0..source.len()).map(|r| String::from_utf8(whole(source, r).unwrap()).unwrap()).collect()
}

fn tokenized(inputs: &[PathBuf]) -> Result<u64> {
    let out = tempfile::tempdir().unwrap();
    let options =
        TokenizeOptions { dtype: Some(DType::U32), fsync: false, num_threads: Some(1), ..samples() };
    tokenize(FORMATS, inputs, out.path(), &Bytes, &options, &()).map(|report| report.documents)
}

fn indexed(folder: &Path) -> Result<u64> {
    index(FORMATS, folder, &IndexOptions { fsync: false, ..IndexOptions::default() }, &())
        .map(|report| report.records)
}

#[track_caller]
fn error(path: &Path, options: &Options) -> Error {
    open_with(path, options).err().unwrap_or_else(|| panic!("{} opens", path.display()))
}

const LINE: &str = "{\"text\": \"a\"}\n";

#[test]
fn links_to_folders_are_followed_and_each_folder_is_read_once() {
    let folder = folder_of(&[
        ("top/part1/x.jsonl", "{\"text\": \"1\"}\n"),
        ("far/x.jsonl", "{\"text\": \"2\"}\n"),
        ("far/deeper/x.jsonl", "{\"text\": \"3\"}\n"),
    ]);
    let top = folder.path().join("top");
    symlink("../far", top.join("part2")).unwrap();
    // A link to a link, to what is there already, back and forth, upwards, and to itself.
    symlink("part2", top.join("part3")).unwrap();
    symlink("part1", top.join("again")).unwrap();
    symlink("../../far", top.join("part1/to_far")).unwrap();
    symlink(&top, folder.path().join("far/back")).unwrap();
    symlink("..", top.join("up")).unwrap();
    symlink(".", top.join("here")).unwrap();
    symlink("/", top.join("part1/root")).unwrap();
    let entries = Local::new(&top).walk("").unwrap();
    let keys: Vec<&str> = entries.iter().map(|e| e.key.as_str()).collect();
    assert_eq!(keys.len(), 3, "{keys:?}");
    for options in both_ways(&Options::default()) {
        let source = open_with(&top, &options).unwrap();
        let mut found = texts(source.as_ref());
        found.sort();
        assert_eq!(found, ["{\"text\": \"1\"}", "{\"text\": \"2\"}", "{\"text\": \"3\"}"]);
    }
    assert_eq!(tokenized(std::slice::from_ref(&top)).unwrap(), 3);
    assert_eq!(indexed(&top).unwrap(), 3);
    assert_eq!(open(&top).unwrap().len(), 3);
}

#[test]
fn a_folder_of_links_alone_is_what_they_lead_to() {
    let folder = folder_of(&[("a/x.jsonl", LINE), ("b/x.jsonl", LINE), ("links/c/x.jsonl", LINE)]);
    let links = folder.path().join("links");
    symlink("../a", links.join("a")).unwrap();
    symlink("../b", links.join("b")).unwrap();
    assert_eq!(open(&links).unwrap().len(), 3);
    // A link that leads nowhere is no folder, and nothing where it is not asked for.
    symlink("../gone", links.join("d")).unwrap();
    assert_eq!(open(&links).unwrap().len(), 3);
}

#[test]
fn a_name_that_is_no_text_harms_nobody_who_does_not_want_the_file() {
    let folder = folder_of(&[("a.jsonl", LINE)]);
    let name = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
    fs::write(name(b"f\xfcr.txt"), "x").unwrap();
    assert_eq!(open(folder.path()).unwrap().len(), 1);
    assert_eq!(tokenized(&[folder.path().into()]).unwrap(), 1);
    fs::write(name(b"f\xfcr.jsonl"), LINE).unwrap();
    for error in [open(folder.path()).err().unwrap(), tokenized(&[folder.path().into()]).unwrap_err()] {
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
        assert!(error.message().contains("not UTF-8") && error.hint_text().is_some(), "{error}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn json_files_of_lines_are_lines() {
    alone("opened::json_files_of_lines_are_lines", |_| {
        let lines = LINE.repeat(3).into_bytes();
        let zstd = zstd::bulk::compress(&lines, 3).unwrap();
        let folder = folder_of(&[
            ("c4/c4-train.00000-of-00003.json.gz", gzip(&lines)),
            ("c4/c4-train.00001-of-00003.json.zst", zstd),
            // The last one may hold a single line.
            ("c4/c4-train.00002-of-00003.json", LINE.into()),
            ("c4/dataset_info.json", b"{\"description\": \"\"}".to_vec()),
            ("mixed/a.jsonl", lines.clone()),
            ("mixed/b.json", lines.clone()),
            ("mixed/config.json", b"{\n  \"a\": 1\n}\n".to_vec()),
            ("one/a.json", LINE.into()),
            ("one/b.json", LINE.into()),
            ("series/a.json", b"[[1, 2], [3]]".to_vec()),
            ("series/b.json", b"[4, 5]\n{\"sequence\": [6]}\n[7]\n".to_vec()),
        ]);
        let at = |path: &str| folder.path().join(path);
        let jsonl = Options { format: Some("jsonl".to_string()), ..Options::default() };
        for (path, n) in [
            ("c4", 7),
            ("c4/c4-train.00000-of-00003.json.gz", 3),
            ("c4/c4-train.00001-of-00003.json.zst", 3),
            ("mixed", 6),
            ("mixed/b.json", 3),
        ] {
            for options in [Options::default(), jsonl.clone()] {
                let source = open_with(&at(path), &options).unwrap();
                assert_eq!((source.format(), source.len()), ("jsonl", n), "{path}");
            }
            assert_eq!(tokenized(&[at(path)]).unwrap(), n, "{path}");
        }
        for (path, n) in [("c4", 7), ("mixed", 6)] {
            assert_eq!(indexed(&at(path)).unwrap(), n);
        }
        // An index of such files is one of JSON whatever dtype is said, and verify reads every line.
        let dtype = Options { dtype: Some(DType::U16), ..Options::default() };
        assert!(error(&at("c4"), &dtype).message().contains("JSON"));
        for path in ["c4", "mixed/b.json"] {
            let found = verify(FORMATS, &at(path), &VerifyOptions::default(), &()).unwrap();
            assert_eq!((found.n_problems, found.checked_records > 0), (0, true), "{path}: {found:?}");
        }
        put(folder.path(), "mixed/c.json", b"{\"text\": 1}\n{\"text\": nothing}\n");
        let found = verify(FORMATS, &at("mixed/c.json"), &VerifyOptions::default(), &()).unwrap();
        assert_eq!(found.problems[0].record, Some(1), "{found:?}");
        // An object alone is a line where lines are asked for.
        assert_eq!(open_with(&at("one"), &jsonl).unwrap().len(), 2);
        assert_eq!(open_with(&at("one/a.json"), &jsonl).unwrap().len(), 1);
        let refused = error(&at("one/a.json"), &Options::default());
        assert!(refused.hint_text().is_some_and(|hint| hint.contains(".format(\"jsonl\")")), "{refused}");
        // Lines may be series, too.
        let series = open(&at("series/b.json")).unwrap();
        assert_eq!((series.format(), series.len()), ("series-jsonl", 3));
        let series = open(&at("series")).unwrap();
        assert_eq!((series.format(), series.len()), ("collection", 5));
    });
}

#[test]
fn records_with_columns_of_folders_keep_every_promise() {
    alone("opened::records_with_columns_of_folders_keep_every_promise", |_| {
        let folder = folder_of(&[
            ("t/k=1/a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\", \"k\": 7}\r\n{}\n".as_bytes()),
            ("t/k=x%20y/a.jsonl", "{\"n\": 1}\n[1, 2]\n".as_bytes()),
        ]);
        let source = open(&folder.path().join("t")).unwrap();
        conformance::check(source.as_ref()).unwrap();
        let text = |record: u64| {
            let mut scratch = Vec::new();
            let bytes = source.read_whole(record, &mut scratch).unwrap().bytes;
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let texts: Vec<String> = (0..source.len()).map(text).collect();
        let wanted = [
            "{\"text\": \"a\", \"k\": \"1\"}",
            "{\"text\": \"b\", \"k\": 7}",
            "{\"k\": \"1\"}",
            "{\"n\": 1, \"k\": \"x y\"}",
            "[1, 2]",
        ];
        assert_eq!(texts, wanted);
        let columns =
            Options { columns: Some(vec!["k".to_string(), "text".to_string()]), ..Options::default() };
        let lines = folder.path().join("t/k=1");
        assert!(open_with(&lines, &columns).is_ok(), "its own key");
        fs::remove_file(folder.path().join("t/k=x%20y/a.jsonl")).unwrap();
        let rows = open_with(&folder.path().join("t"), &columns).unwrap();
        conformance::check(rows.as_ref()).unwrap();
        assert_eq!(rows.row(1).unwrap().names().collect::<Vec<_>>(), ["k", "text"]);
    });
}

/// An array of pairs.
fn npy(n: usize) -> Vec<u8> {
    let head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, 2), }}");
    let head = format!("{head:<117}\n");
    [&b"\x93NUMPY\x01\0\x76\0"[..], head.as_bytes(), &vec![0; n * 8]].concat()
}

fn llmc(magic: i32, version: i32, count: i32, width: usize, ids: usize) -> Vec<u8> {
    let mut header = [0i32; 256];
    header[..3].copy_from_slice(&[magic, version, count]);
    let header = header.iter().flat_map(|number| number.to_le_bytes());
    header.chain((0..ids * width).map(|i| i as u8)).collect()
}

/// Files of other programs, as they begin and end, with a word of their name.
fn others() -> Vec<(&'static str, Vec<u8>)> {
    let with = |head: &[u8], tail: &[u8]| [head, &[7; 4096], tail].concat();
    let safetensors = {
        let text = b"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
        [&(text.len() as u64).to_le_bytes()[..], text, &[0; 4]].concat()
    };
    // Two items of one byte each, and a table of their places; of MDS a text stands between.
    let table = |between: &[u8]| {
        let first = 16 + between.len() as u32;
        let places = [2, first, first + 1, first + 2];
        [&places.iter().flat_map(|n: &u32| n.to_le_bytes()).collect::<Vec<u8>>()[..], between, b"ab"].concat()
    };
    let tar = {
        let mut header = vec![0; 512];
        header[..5].copy_from_slice(b"a.txt");
        header[124..135].copy_from_slice(b"00000000001");
        header[257..263].copy_from_slice(b"ustar\0");
        header
    };
    vec![
        ("llm.c", llmc(20_240_520, 1, 100, 2, 100)),
        ("llm.c", llmc(20_240_801, 7, 100, 4, 100)),
        // Cut short, it has a header all the same.
        ("llm.c", llmc(20_240_520, 1, 100, 2, 50)),
        ("evaluation", llmc(20_240_522, 1, 9, 2, 100)),
        ("a model", llmc(20_240_326, 3, 1024, 4, 100)),
        ("Git LFS", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4 \n".to_vec()),
        ("HTML", b"<!DOCTYPE html><html><body>404: there is no such file</body></html> ".to_vec()),
        ("bzip2", with(b"BZh9\x31\x41\x59\x26\x53\x59", b"")),
        ("xz", with(b"\xfd7zXZ\0\0\x04", b"")),
        ("lz4", with(b"\x04\x22\x4d\x18\x64\x40\xa7\0", b"")),
        (".gz stream", [gzip(&[5; 1000]), vec![0; 3]].concat()),
        (".zst stream", {
            let mut frame = zstd::bulk::compress(&[5; 1000], 3).unwrap();
            frame.resize(frame.len().next_multiple_of(4), 0);
            frame
        }),
        ("Parquet", with(b"PAR1", b"PAR1")),
        ("Arrow", with(b"ARROW1\0\0", b"")),
        ("Arrow", {
            // A stream has no name of its format at its beginning.
            let golden = "/../../testdata/golden/6_foreign/arrow/saved_kinds/data-00000-of-00001.arrow";
            std::fs::read([env!("CARGO_MANIFEST_DIR"), golden].concat()).unwrap()
        }),
        ("HDF5", with(b"\x89HDF\r\n\x1a\n", b"")),
        ("safetensors", safetensors),
        ("GGUF", with(b"GGUF\x03\0\0\0", b"")),
        ("GGML", with(b"lmgg\x99\xca\0\0", b"")),
        ("fastText", with(b"\xba\x16\x4f\x2f\x0c\0\0\0", b"")),
        ("zip", [&b"PK\x03\x04\x14\0"[..], &[0; 20], b"\x10\0\0\0archive/data.pkl", &[7; 4096]].concat()),
        ("pickle", [&b"\x80\x04\x95\x0a\0\0\0\0\0\0\0]\x94(K\x01K\x02K\x03e."[..], b""].concat()),
        ("pickle", with(b"\x80\x02]q\0(", b"e.")),
        ("numpy", npy(3)),
        ("Megatron", with(b"MMIDIDX\0\0\x01\0\0\0\0\0\0\0", b"")),
        ("LitData", table(b"")),
        ("LitData", with(b"LDFZ01\0\0", b"")),
        ("MDS", table(b"{}  ")),
        // As TensorFlow wrote it: a record of 6 bytes.
        ("TFRecord", [&b"\x06\0\0\0\0\0\0\0\x73\x69\xd5\x37"[..], &[0; 40]].concat()),
        ("ArrayRecord", with(b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0", b"")),
        ("tar", tar),
        ("SQLite", with(b"SQLite format 3\0", b"")),
        ("sound", with(b"RIFF\x24\x10\0\0WAVEfmt ", b"")),
    ]
}

#[test]
fn other_programs_files_are_never_read_as_ids() {
    alone("opened::other_programs_files_are_never_read_as_ids", |_| {
        for (word, bytes) in others() {
            let folder = folder_of(&[("a.bin", [1; 64].to_vec()), ("x.bin", bytes.clone())]);
            for dtype in [DType::U8, DType::U16, DType::U32] {
                for format in [None, Some("tokens".to_string())] {
                    let options =
                        Options { dtype: Some(dtype), format: format.clone(), ..Options::default() };
                    for path in ["x.bin", ""] {
                        // Of one file alone the content says what it is.
                        if ["numpy", "llm.c", "TFRecord"].contains(&word)
                            && format.is_none()
                            && path == "x.bin"
                        {
                            continue;
                        }
                        let path = folder.path().join(path);
                        let error = error(&path, &options);
                        assert!(error.message().contains(word), "{word}: {error}");
                        assert!(error.hint_text().is_some(), "{error}");
                        assert!(
                            error.place().file.as_deref().is_some_and(|file| file.ends_with("x.bin")),
                            "{error}"
                        );
                    }
                    if bytes.len().is_multiple_of(dtype.size()) {
                        let trust = Options { format: Some("tokens".to_string()), trust: true, ..options };
                        let source = open_with(&folder.path().join("x.bin"), &trust).unwrap();
                        assert_eq!(whole(source.as_ref(), 0).unwrap(), bytes, "{word}");
                    }
                }
            }
        }
    });
}

#[test]
fn ids_that_only_begin_like_another_file_are_ids() {
    // Counted, so that no frame, table or text follows by chance.
    let numbers: Vec<u8> =
        (0..2048u32).flat_map(|i| (i * 7919 % 50_257).to_le_bytes()[..2].to_vec()).collect();
    for head in [
        &b"PAR1"[..],
        b"PK\x03\x04",
        b"GGUF",
        b"BZh9",
        b"\x1f\x8b\x08\0",
        b"\x28\xb5\x2f\xfd",
        b"\x80\x04\x95\0",
        b"RIFF",
        b"fLaC",
        b"OggS",
        b"Obj\x01",
        b"ORC\0",
        &20_240_520i32.to_le_bytes(),
        &793_712_314i32.to_le_bytes(),
        &4u32.to_le_bytes(),
        b"\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\x10\0\0\0\x08\0\0\0",
        b"\0\0\0\0",
    ] {
        let bytes = [head, &numbers].concat();
        let folder = folder_of(&[("a.bin", &bytes)]);
        let options = Options { dtype: Some(DType::U16), ..Options::default() };
        let source = open_with(&folder.path().join("a.bin"), &options).unwrap();
        assert_eq!(whole(source.as_ref(), 0).unwrap(), bytes, "{head:?}");
    }
}

#[test]
fn text_of_another_kind_is_named() {
    alone("opened::text_of_another_kind_is_named", |_| {
        let utf16: Vec<u8> = LINE.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = [&b"\xff\xfe"[..], &utf16].concat();
        let big: Vec<u8> = LINE.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let utf32 = |bytes: fn(u32) -> [u8; 4]| -> Vec<u8> {
            iter::once('\u{feff}').chain(LINE.chars()).flat_map(|c| bytes(c.into())).collect()
        };
        let mut cases: Vec<(&str, Vec<u8>)> = vec![("UTF-16", utf16), ("UTF-16", marked), ("UTF-16", big)];
        cases.extend([("UTF-32", utf32(u32::to_le_bytes)), ("UTF-32", utf32(u32::to_be_bytes))]);
        cases.extend(others().into_iter().filter(|(word, _)| !word.ends_with("stream")));
        for (word, bytes) in cases {
            let folder = folder_of(&[("x.jsonl", &bytes)]);
            let file = folder.path().join("x.jsonl");
            let jsonl = Options { format: Some("jsonl".to_string()), ..Options::default() };
            for error in [
                error(&file, &jsonl),
                tokenized(std::slice::from_ref(&file)).unwrap_err(),
                tokenized(&[folder.path().into()]).unwrap_err(),
                indexed(folder.path()).unwrap_err(),
            ] {
                assert!(error.message().contains(word), "{word}: {error}");
                assert!(error.hint_text().is_some(), "{error}");
                assert!(
                    error.place().file.as_deref().is_some_and(|file| file.ends_with("x.jsonl")),
                    "{error}"
                );
            }
        }
        let latin = folder_of(&[("x.jsonl", b"{\"text\": \"caf\xe9\"}\n")]);
        let error = tokenized(&[latin.path().into()]).unwrap_err();
        let wanted = Wanted {
            kind: Some(Kind::Corrupt),
            file: "x.jsonl",
            record: Some(0),
            byte: Some(13),
            says: &["invalid UTF-8", "iconv"],
        };
        assert_error(&error, &wanted);
    });
}

#[test]
fn what_is_not_read_is_named_where_there_is_nothing_else() {
    for (files, says) in [
        (&[("data/train.parquet", &b"PAR1"[..]), ("dataset_infos.json", b"{}")][..], "Parquet"),
        (&[("zarr.json", b"{\"zarr_format\": 3}"), ("c/0", b"1")], "zarr"),
        (&[(".zarray", b"{}"), ("0", b"1")], "zarr"),
        (&[("shard.00000.mds", b"1"), ("index.json", b"{\"version\": 2}")], "MDS"),
        (&[("a.jsonl.bz2", b"BZh9")], "bzip2"),
        (&[("config.json", b"{\"a\": 1}")], ".json files are documents"),
    ] {
        let folder = folder_of(files);
        let error = error(folder.path(), &Options::default());
        assert_eq!(error.kind(), Kind::Unrecognised, "{error}");
        assert!(format!("{error:#}").contains(says), "{says}: {error}");
        let error = tokenized(&[folder.path().into()]).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
    }
}

#[test]
fn descriptions_beside_series_are_passed_over() {
    alone("opened::descriptions_beside_series_are_passed_over", |_| {
        for (name, text) in [
            ("config.json", "{\"freq\": \"H\"}"),
            ("notes.json", "{\n  \"a\": [1, 2]\n}"),
            ("labels.json", "[\"a\", \"b\"]"),
            ("rows.json", "[{\"id\": 1}, {\"id\": 2}]"),
            ("config.yaml", "# settings\nfreq: H\n"),
            ("config.yml", "model:\n  - a\n"),
        ] {
            let folder = folder_of(&[("data.npy", npy(3)), (name, text.as_bytes().to_vec())]);
            let source = open(folder.path()).unwrap();
            assert_eq!((source.format(), source.len()), ("collection", 3), "{name}");
        }
        for (name, text, n) in [
            ("more.json", "[[1.5, 2], [3, 4]]", 2),
            ("more.json", "[{\"sequence\": [1, 2]}]", 1),
            ("more.json", "[]\n", 0),
            ("more.yaml", "- [1.5, 2]\n", 1),
        ] {
            let folder = folder_of(&[("data.npy", npy(3)), (name, text.as_bytes().to_vec())]);
            assert_eq!(open(folder.path()).unwrap().len(), 3 + n, "{text}");
        }
        // What is as large as data is not passed over in silence.
        let large = format!("{{\"T1\": [{}1]}}", "1, ".repeat(40_000));
        let folder = folder_of(&[("data.npy", npy(3)), ("more.json", large.into_bytes())]);
        assert!(
            error(folder.path(), &Options::default()).place().file.as_deref().unwrap().ends_with("more.json")
        );
    });
}

#[test]
fn folders_of_shards_side_by_side_are_named_with_how_to_open_them() {
    alone("opened::folders_of_shards_side_by_side_are_named_with_how_to_open_them", |_| {
        let index = b"{\"shards\": [{\"raw_data\": {}, \"format\": \"mds\"}], \"version\": 2}";
        let shards: [&[(&str, &[u8])]; 2] =
            [&[("index.json", index), ("shard.00000.mds", b"1")], &[("a.bagz", b"1")]];
        for files in shards {
            let below = |folders: &[&str]| {
                let names: Vec<(String, &[u8])> = folders
                    .iter()
                    .flat_map(|folder| {
                        files.iter().map(move |(name, bytes)| (format!("{folder}/{name}"), *bytes))
                    })
                    .collect();
                let all: Vec<(&str, &[u8])> = names.iter().map(|(name, bytes)| (&**name, *bytes)).collect();
                folder_of(&all)
            };
            let splits = below(&["train", "val"]);
            let refused = error(splits.path(), &Options::default());
            assert_eq!(
                (refused.kind(), refused.place().field.as_deref()),
                (Kind::Config, Some("split")),
                "{refused}"
            );
            assert!(refused.message().contains("several splits: train (train/"), "{refused}");
            let refused = tokenized(&[splits.path().into()]).unwrap_err();
            assert!(refused.message().contains("several splits: train (train/"), "{refused}");
            for folders in [&["one"][..], &["one", "two"]] {
                let refused = error(below(folders).path(), &Options::default());
                assert_eq!(refused.kind(), Kind::Unrecognised, "{refused}");
                assert!(!format!("{refused:#}").contains("does not read"), "{refused}");
                let hint = refused.hint_text().unwrap_or_default();
                assert!(hint.starts_with("the folder \"one\" in it is "), "{refused}");
            }
        }
    });
}

#[test]
fn splits_in_one_folder_are_kept_apart() {
    alone("opened::splits_in_one_folder_are_kept_apart", |_| {
        let line = |n: usize| LINE.repeat(n).into_bytes();
        let ids = |n: usize| vec![1; 2 * n];
        let folder = folder_of(&[
            ("nano/train.bin", ids(3)),
            ("nano/val.bin", ids(1)),
            ("nano/meta.pkl", b"\x80\x04}.".to_vec()),
            ("fine/fineweb_train_000001.bin", ids(3)),
            ("fine/fineweb_train_000002.bin", ids(3)),
            ("fine/fineweb_val_000000.bin", ids(1)),
            ("c4/c4-train.00000-of-00001.json.gz", gzip(&line(3))),
            ("c4/c4-validation.00000-of-00001.json.gz", gzip(&line(2))),
            ("lines/train.jsonl", line(3)),
            ("lines/dev.jsonl", line(2)),
            ("lines/test.jsonl", line(2)),
            ("series/train.json", b"[[1, 2], [3]]".to_vec()),
            ("series/test.json", b"[[4]]".to_vec()),
        ]);
        let dtype = |path: &str| ["nano", "fine"].contains(&path).then_some(DType::U16);
        for (path, splits, train) in [
            ("nano", ["train", "val"], 1),
            ("fine", ["train", "val"], 2),
            ("c4", ["train", "valid"], 3),
            ("lines", ["train", "dev"], 3),
            ("series", ["train", "test"], 2),
        ] {
            let options = Options { dtype: dtype(path), ..Options::default() };
            let at = folder.path().join(path);
            let refused = error(&at, &options);
            assert_eq!(
                (refused.kind(), refused.place().field.as_deref()),
                (Kind::Config, Some("split")),
                "{refused}"
            );
            assert!(refused.message().contains("train"), "{refused}");
            assert!(refused.hint_text().is_some_and(|hint| hint.contains(".split(\"train\")")), "{refused}");
            let only = |split: &str| {
                let look = Probe::at(FORMATS, Arc::new(Local::new(&at)), "")?.only_split(split)?;
                format::open(FORMATS, &look, &options)
            };
            assert_eq!(only(splits[0]).unwrap().len(), train, "{path}");
            let other = only(splits[1]).unwrap();
            assert!(other.files().iter().all(|info| !info.file.contains("train")), "{path}");
            assert_eq!(only("nothing").err().unwrap().kind(), Kind::NotFound);
        }
        // One split, or words that are parts of others, are no reason.
        for names in [["train_0.bin", "train_1.bin"], ["trainer.bin", "contest.bin"], ["a.bin", "train.bin"]]
        {
            let one = folder_of(&[(names[0], [1; 4]), (names[1], [1; 4])]);
            assert_eq!(open(one.path()).unwrap().len(), 2);
        }
        put(folder.path(), "rest/a.bin", &ids(1));
        put(folder.path(), "rest/val.bin", &ids(2));
        let look = |split: &str| {
            Probe::at(FORMATS, Arc::new(Local::new(folder.path().join("rest"))), "")
                .unwrap()
                .only_split(split)
                .unwrap()
        };
        for (split, name) in [("train", "a.bin"), ("validation", "val.bin")] {
            assert_eq!(look(split).names().collect::<Vec<_>>(), [name]);
        }
        let refused = error(&folder.path().join("rest"), &Options::default());
        assert_eq!(
            (refused.kind(), refused.place().field.as_deref()),
            (Kind::Config, Some("split")),
            "{refused}"
        );
        assert!(refused.message().ends_with("validation (val.bin), and files of none: a.bin"), "{refused}");
    });
}

#[test]
fn folders_of_several_splits_are_kept_apart() {
    alone("opened::folders_of_several_splits_are_kept_apart", |_| {
        let line = |n: usize| b"{\"text\": \"a\"}\n".repeat(n);
        let series = |n: u8| format!("[[{n}, 0.5]]").into_bytes();
        let folder = folder_of(&[
            ("lines/train/a.jsonl", line(3)),
            ("lines/train/b/c.jsonl", line(1)),
            ("lines/validation/a.jsonl", line(2)),
            ("deep/en/training/a.json", line(4)),
            ("deep/en/dev-clean/1/a.json", line(2)),
            ("deep/README.md", b"read me".to_vec()),
            ("ids/train/0.bin", vec![0; 16]),
            ("ids/train/1.bin", vec![0; 16]),
            ("ids/test/test_0.bin", vec![0; 16]),
            ("series/train/a.json", series(1)),
            ("series/train/b.yaml", series(2)),
            ("series/val/a.json", series(3)),
            ("rest/part-0.jsonl", line(5)),
            ("rest/eval/part-0.jsonl", line(1)),
        ]);
        for (path, splits) in [
            ("lines", [("train", 4), ("valid", 2)]),
            ("deep", [("train", 4), ("dev", 2)]),
            ("ids", [("train", 2), ("test", 1)]),
            ("series", [("train", 2), ("validation", 1)]),
            ("rest", [("train", 5), ("eval", 1)]),
        ] {
            let at = folder.path().join(path);
            let refused = error(&at, &Options::default());
            assert_eq!(
                (refused.kind(), refused.place().field.as_deref()),
                (Kind::Config, Some("split")),
                "{refused}"
            );
            assert!(refused.hint_text().is_some_and(|hint| hint.contains(".split(\"train\")")), "{refused}");
            for (split, n) in splits {
                let look =
                    Probe::at(FORMATS, Arc::new(Local::new(&at)), "").unwrap().only_split(split).unwrap();
                assert_eq!(
                    format::open(FORMATS, &look, &Options::default()).unwrap().len(),
                    n,
                    "{path} {split}"
                );
            }
        }
        // Folders without such a word, or of one split alone, are one data set; so is what lies beside a split's settings.
        let one = folder_of(&[
            ("c4/en/a.json", line(3)),
            ("c4/de/a.json", line(2)),
            ("one/train/a.jsonl", line(4)),
            ("one/extra/a.jsonl", line(1)),
            ("told/test/a.json", series(1)),
            ("told/settings.json", b"{\"freq\": \"H\"}".to_vec()),
        ]);
        for (path, n) in [("c4", 5), ("one", 5), ("told", 1)] {
            assert_eq!(open(&one.path().join(path)).unwrap().len(), n, "{path}");
        }
    });
}
