//! Ids from every layout of tokens into every other: byte for byte where the layouts allow it.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::Value;
use windrow_core::format::Options;
use windrow_core::manifest::Manifest;
use windrow_core::source::{Schema, Source};
use windrow_core::store::{Local, Store};
use windrow_core::{DType, Decode, Element, Kind, Result};
use windrow_formats::FORMATS;
use windrow_prepare::{VerifyOptions, verify};

use crate::disk::{open, open_with, whole};
use crate::folder::put;
use crate::toy::Toy;
use crate::tree::tree;
use crate::writing::{To, Writing, convert, create};

const EOS: i64 = 0;

fn cut() -> Options {
    Options { document_eos: Some(EOS), ..Options::default() }
}

/// Documents of ids below 100, an empty one among them, each with its end id.
fn stream(dtype: DType) -> Vec<u8> {
    let documents: [&[i64]; 5] = [&[5, 6, 7], &[], &[8], &[1; 3000], &[99, 98]];
    let ids = documents.iter().flat_map(|document| document.iter().chain(&[EOS]));
    ids.flat_map(|id| id.to_le_bytes()[..dtype.size()].to_vec()).collect()
}

fn to(layout: To) -> Writing {
    Writing { fsync: false, ..Writing::new(layout) }
}

fn records(source: &dyn Source) -> Vec<Vec<u8>> {
    (0..source.len()).map(|record| whole(source, record).unwrap()).collect()
}

fn manifest(path: &Path) -> Manifest {
    Manifest::read(Local::new(path).open("").unwrap().as_ref()).unwrap()
}

#[test]
fn documents_go_through_every_layout_and_come_back_byte_for_byte() {
    for dtype in [DType::U8, DType::U16, DType::I32, DType::I64] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        put(folder.path(), "a.bin", &stream(dtype));
        let options = Options { dtype: Some(dtype), ..cut() };
        let first = open_with(&at("a.bin"), &options).unwrap();
        let expected = records(first.as_ref());
        assert_eq!(expected.len(), 5);
        let mut from = first;
        for (layout, name) in [
            (To::Forager, "f"),
            (To::Megatron, "m"),
            (To::Shards, "s"),
            (To::Megatron, "m2.idx"),
            (To::Npz, "n.npz"),
            (To::Forager, "f2"),
        ] {
            let report = convert(from.as_ref(), &at(name), &to(layout), &()).unwrap();
            assert_eq!(report.records, 5);
            from = open(&report.output).unwrap();
            assert_eq!(from.schema().element.dtype, dtype, "{layout:?}");
            assert_eq!(records(from.as_ref()), expected, "{layout:?}");
            let findings = verify(FORMATS, &report.output, &VerifyOptions::default(), &()).unwrap();
            assert_eq!(findings.n_problems, 0, "{layout:?}: {findings:?}");
        }
        convert(from.as_ref(), &at("b.bin"), &to(To::Tokens), &()).unwrap();
        assert_eq!(fs::read(at("b.bin")).unwrap(), stream(dtype));
        assert_eq!(records(open_with(&at("b.bin"), &cut()).unwrap().as_ref()), expected);
        // The same data whatever way it took: the pairs are equal byte for byte.
        for suffix in ["bin", "idx"] {
            assert_eq!(
                fs::read(at(&format!("m.{suffix}"))).unwrap(),
                fs::read(at(&format!("m2.{suffix}"))).unwrap()
            );
        }
    }
}

#[test]
fn what_is_written_says_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    put(folder.path(), "a.bin", &stream(DType::U16));
    let source = open_with(&at("a.bin"), &Options { dtype: Some(DType::U16), ..cut() }).unwrap();
    let fingerprint = format!("{:016x}", source.fingerprint().unwrap());
    let sides = [
        (To::Tokens, "t.bin", "t.bin.windrow.json"),
        (To::Forager, "f", "f/index/windrow.json"),
        (To::Megatron, "m", "m.idx.windrow.json"),
        (To::Npz, "n.npz", "n.npz.windrow.json"),
        (To::Jsonl, "l.jsonl", "l.jsonl.windrow.json"),
    ];
    for (layout, name, side) in sides {
        convert(source.as_ref(), &at(name), &to(layout), &()).unwrap();
        let side = manifest(&at(side));
        assert_eq!((&side.inputs[0].name, side.inputs[0].size), (&at("a.bin").display().to_string(), 6022));
        assert_eq!(side.options["from_format"], "tokens");
        assert_eq!(side.options["from_fingerprint"], fingerprint.as_str());
    }
    convert(source.as_ref(), &at("s"), &to(To::Shards), &()).unwrap();
    let meta: Value = serde_json::from_slice(&fs::read(at("s/meta.json")).unwrap()).unwrap();
    assert_eq!(meta["windrow"]["options"]["from_fingerprint"], fingerprint.as_str());
    assert_eq!(meta["windrow"]["inputs"][0]["size"], 6022);
}

#[test]
fn what_is_written_is_refused_once_a_file_has_another_size() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    put(folder.path(), "a.bin", &stream(DType::U16));
    let source = open_with(&at("a.bin"), &Options { dtype: Some(DType::U16), ..cut() }).unwrap();
    for (layout, name, file, more) in [
        (To::Megatron, "m.idx", "m.bin", &b"12"[..]),
        (To::Jsonl, "l.jsonl", "l.jsonl", b"[1]\n"),
        (To::Shards, "s", "s/data-1-of-1.bin", b"12"),
    ] {
        convert(source.as_ref(), &at(name.trim_end_matches(".idx")), &to(layout), &()).unwrap();
        let n = open(&at(name)).unwrap().len();
        let whole = fs::metadata(at(file)).unwrap().len();
        fs::File::options().append(true).open(at(file)).unwrap().write_all(more).unwrap();
        let error = open(&at(name)).map(|source| source.len()).unwrap_err();
        assert_eq!(error.kind(), Kind::Stale, "{error}");
        assert!(error.place().file.as_ref().unwrap().ends_with(file), "{error}");
        // Also as one of a folder of series.
        let all = Options { format: Some("collection".into()), ..Options::default() };
        let of_all = |options: &Options| open_with(folder.path(), options).map(|all| all.len());
        if layout != To::Megatron {
            assert_eq!(of_all(&all).unwrap_err().kind(), Kind::Stale);
        }
        let trust = Options { trust: true, ..Options::default() };
        assert!(open_with(&at(name), &trust).unwrap().len() >= n);
        fs::File::options().write(true).open(at(file)).unwrap().set_len(whole).unwrap();
    }
}

#[test]
fn ids_of_32_bits_without_a_sign_become_those_with_one_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    put(folder.path(), "a.bin", &stream(DType::U32));
    let source = open_with(&at("a.bin"), &cut()).unwrap();
    convert(source.as_ref(), &at("m"), &to(To::Megatron), &()).unwrap();
    let pair = open(&at("m.idx")).unwrap();
    assert_eq!(pair.schema().element.dtype, DType::I32);
    let options = Writing { dtype: Some(DType::U32), ..to(To::Tokens) };
    convert(pair.as_ref(), &at("b.bin"), &options, &()).unwrap();
    assert_eq!(fs::read(at("b.bin")).unwrap(), stream(DType::U32));
    put(folder.path(), "large.bin", &u32::MAX.to_le_bytes());
    let large = open(&at("large.bin")).unwrap();
    let error = convert(large.as_ref(), &at("l"), &to(To::Megatron), &()).unwrap_err();
    assert_eq!((error.kind(), error.place().record), (Kind::Config, Some(0)));
    assert!(error.message().contains("uint32 number at value 0 does not fit int32"), "{error}");
    assert!(!at("l.bin").exists() && !at("l.idx").exists());
}

#[test]
fn a_long_record_is_never_held_whole() {
    crate::alone::alone("conversions::a_long_record_is_never_held_whole", |_| {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        put(folder.path(), "a.bin", &vec![7; 64 << 20]);
        let options = Options { dtype: Some(DType::U16), ..Options::default() };
        let source = open_with(&at("a.bin"), &options).unwrap();
        for (layout, name, data) in [
            (To::Tokens, "t.bin", "t.bin"),
            (To::Forager, "f", "f/samples.bin"),
            (To::Megatron, "m", "m.bin"),
            (To::Shards, "s", "s/data-1-of-1.bin"),
        ] {
            let convert = || convert(source.as_ref(), &at(name), &to(layout), &());
            let (report, most) = crate::alone::most_memory(convert);
            report.unwrap();
            assert!(most < 16 << 20, "{layout:?}: {most} bytes");
            assert_eq!(fs::metadata(at(data)).unwrap().len(), 64 << 20);
        }
    });
}

#[test]
fn documents_of_several_sequences_and_modes_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let lines = "{\"sequence\": [1, 2], \"document\": 0, \"mode\": 1}\n{\"sequence\": [3], \"document\": 0, \"mode\": 0}\n\
                 {\"sequence\": [], \"document\": 1, \"mode\": -1}\n{\"sequence\": [4], \"document\": 2, \"mode\": 1}\n";
    put(folder.path(), "a.jsonl", lines.as_bytes());
    let options = Options { format: Some("series-jsonl".into()), ..Options::default() };
    let source = open_with(&at("a.jsonl"), &options).unwrap();
    convert(source.as_ref(), &at("m"), &to(To::Megatron), &()).unwrap();
    let pair = open(&at("m.bin")).unwrap();
    for record in 0..4 {
        assert_eq!(pair.extras(record).unwrap().shown(), source.extras(record).unwrap().shown());
    }
    convert(pair.as_ref(), &at("again"), &to(To::Megatron), &()).unwrap();
    assert_eq!(fs::read(at("again.idx")).unwrap(), fs::read(at("m.idx")).unwrap());
    convert(pair.as_ref(), &at("b.jsonl"), &to(To::Jsonl), &()).unwrap();
    assert_eq!(fs::read_to_string(at("b.jsonl")).unwrap(), lines);
}

#[test]
fn what_a_layout_cannot_hold_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let refused = |source: &dyn Source, layout, says: &str| -> Result<()> {
        let before = fs::read_dir(folder.path()).unwrap().count();
        let error = convert(source, &at("out"), &to(layout), &()).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        assert!(format!("{error:#}").contains(says), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before);
        Ok(())
    };
    put(folder.path(), "half.json", b"[[0.5, 1.5]]");
    put(folder.path(), "wide.json", b"[[[1, 2], [3, 4]]]");
    put(folder.path(), "some.jsonl", b"{\"sequence\": [1], \"mode\": 1}\n{\"sequence\": [1]}\n");
    let (half, wide) = (open(&at("half.json")).unwrap(), open(&at("wide.json")).unwrap());
    refused(half.as_ref(), To::Forager, "token samples hold no float32 values").unwrap();
    refused(wide.as_ref(), To::Megatron, "Megatron's files hold records [T], and these are [T, 2]").unwrap();
    let some = open(&at("some.jsonl")).unwrap();
    refused(some.as_ref(), To::Megatron, "a record with no mode after records with one").unwrap();
    // Each of the three files stands in the way.
    for name in ["out.bin", "out.idx", "out.idx.windrow.json"] {
        put(folder.path(), name, b"mine");
        let error = convert(half.as_ref(), &at("out"), &to(To::Megatron), &()).unwrap_err();
        assert_eq!(error.kind(), Kind::Exists);
        fs::remove_file(at(name)).unwrap();
    }
    let overwrite = Writing { overwrite: true, ..to(To::Megatron) };
    for _ in 0..2 {
        convert(half.as_ref(), &at("out"), &overwrite, &()).unwrap();
        assert_eq!(
            records(open(&at("out.bin")).unwrap().as_ref()),
            [[0.5f32, 1.5].map(f32::to_le_bytes).concat()]
        );
    }
    put(folder.path(), "kept/notes.txt", b"mine");
    let options = Writing { overwrite: true, dtype: Some(DType::U8), ..to(To::Forager) };
    let error = convert(some.as_ref(), &at("kept"), &options, &()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    // Of samples, an index that lists them says that they may go.
    put(folder.path(), "own/samples.bin", b"mine");
    put(folder.path(), "own/index/sample_locations.bin", b"");
    let again = || convert(some.as_ref(), &at("own"), &options, &());
    assert_eq!(again().unwrap_err().kind(), Kind::Exists);
    put(folder.path(), "own/index/file_location.txt", b"samples.bin\n");
    put(folder.path(), "own/index/thesis.txt", b"mine");
    assert_eq!(again().unwrap_err().kind(), Kind::Exists);
    fs::remove_file(at("own/index/thesis.txt")).unwrap();
    again().unwrap();
}

#[test]
fn no_output_takes_the_place_of_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    put(folder.path(), "a.jsonl", b"{\"sequence\": [1, 2]}\n");
    std::os::unix::fs::symlink("a.jsonl", at("link.jsonl")).unwrap();
    let a = open(&at("a.jsonl")).unwrap();
    convert(a.as_ref(), &at("in"), &to(To::Shards), &()).unwrap();
    convert(a.as_ref(), &at("pair"), &to(To::Megatron), &()).unwrap();
    let before = tree(folder.path());
    for (input, out, format) in [
        ("a.jsonl", "a.jsonl", To::Jsonl),
        ("a.jsonl", "link.jsonl", To::Jsonl),
        ("link.jsonl", "a.jsonl", To::Jsonl),
        ("in", "in", To::Shards),
        ("pair.bin", "pair", To::Megatron),
        ("pair.bin", "pair.idx", To::Megatron),
    ] {
        let source = open(&at(input)).unwrap();
        for overwrite in [false, true] {
            let options = Writing { overwrite, ..to(format) };
            let error = convert(source.as_ref(), &at(out), &options, &()).unwrap_err();
            assert_eq!(error.kind(), Kind::Config, "{input} {out}: {error}");
            assert!(error.message().contains("replace what it is made from"), "{input} {out}: {error}");
            assert_eq!(tree(folder.path()), before, "{input} {out}");
        }
    }
    // Beside it, and of another one.
    let overwrite = Writing { overwrite: true, ..to(To::Jsonl) };
    for _ in 0..2 {
        convert(a.as_ref(), &at("b.jsonl"), &overwrite, &()).unwrap();
    }
}

#[test]
fn a_float_that_does_not_hold_a_number_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let numbers = |numbers: Vec<Vec<u8>>, dtype| {
        Toy::stored(Element::little(dtype), vec![(numbers.concat(), Decode::Plain)])
    };
    let ids = |all: &[u32]| numbers(all.iter().map(|n| n.to_le_bytes().to_vec()).collect(), DType::U32);
    let floats = |all: &[f64]| numbers(all.iter().map(|n| n.to_le_bytes().to_vec()).collect(), DType::F64);
    let signed = |all: &[i64]| numbers(all.iter().map(|n| n.to_le_bytes().to_vec()).collect(), DType::I64);
    for (source, dtype, refused) in [
        (ids(&[1, 2048, 2050, 65_504, 65_520]), DType::F16, Some("value 4")),
        (ids(&[1, 2049]), DType::F16, Some("value 1")),
        (ids(&[0, 16_777_216, 16_777_217]), DType::F32, Some("value 2")),
        (ids(&[0, 16_777_217, u32::MAX]), DType::F64, None),
        (signed(&[i64::MIN, -(1 << 53) - 1]), DType::F64, Some("value 1")),
        // Rounded as any float is, but not to infinity.
        (floats(&[0.1, f64::INFINITY, f64::NAN, 1e39]), DType::F32, Some("value 3")),
        (floats(&[0.1, f64::INFINITY, f64::NAN, 1e38]), DType::F32, None),
        (floats(&[65_505.0, 1e6]), DType::F16, Some("value 1")),
    ] {
        let options = Writing { dtype: Some(dtype), overwrite: true, ..to(To::Npy) };
        let done = convert(&source, &at("out.npy"), &options, &());
        match refused {
            None => drop(done.unwrap()),
            Some(place) => {
                let error = done.unwrap_err();
                assert!(error.message().contains(place) && error.kind() == Kind::Config, "{error}");
            }
        }
    }
    let many = Toy::tokens(&vec![1; 65_537]);
    let error = convert(&many, &at("many.npz"), &to(To::Npz), &()).unwrap_err();
    assert_eq!(error.place().record, Some(65_536));
    assert!(!at("many.npz").exists());
}

#[test]
fn what_the_disk_has_no_room_for_is_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Nothing but a hole: it takes no room itself.
    fs::File::create(at("a.bin")).unwrap().set_len(1 << 43).unwrap();
    let options = Options { dtype: Some(DType::U8), ..Options::default() };
    let source = open_with(&at("a.bin"), &options).unwrap();
    // 64 TiB of it, which hardly a machine has free.
    for layout in [To::Tokens, To::Shards] {
        let options = Writing { dtype: Some(DType::I64), ..to(layout) };
        let error = convert(source.as_ref(), &at("out"), &options, &()).unwrap_err();
        assert_eq!(error.kind(), Kind::Io);
        assert!(error.message().contains("the disk has room for"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn no_records_are_no_output_that_nobody_can_open() {
    let folder = tempfile::tempdir().unwrap();
    for (layout, name) in [(To::Npz, "a.npz"), (To::Jsonl, "a.jsonl"), (To::Codes, "a")] {
        let element = Element::little(if layout == To::Codes { DType::I16 } else { DType::F32 });
        let out = folder.path().join(name);
        let writer = create(&out, &Schema::numbers(element), &to(layout)).unwrap();
        let error = writer.finish().unwrap_err();
        assert!(error.message().contains("no record to write"), "{error}");
        assert!(!out.exists());
    }
}
