//! Every data set below a folder is verified, and what only looks like one is not.

use std::fs;
use std::path::Path;

use windrow_core::{DType, Kind};
use windrow_formats::FORMATS;
use windrow_prepare::{
    Findings, IndexOptions, TokenizeOptions, VerifyOptions, dummy, index, tokenize, verify,
};

use crate::disk::open;
use crate::encoders::Ord;
use crate::tree::folder_of;
use crate::writing::{To, samples};

const LINES: &[u8] = b"{\"text\":\"abc\"}\n{\"text\":\"de\"}\n";
const META: &[u8] = br#"{"num_sequences": 1, "dtype": "int16", "files": {"d-1-of-1.bin": 3},
    "scales": [{"offset": 0, "length": 3}]}"#;

fn check(path: &Path) -> Findings {
    verify(FORMATS, path, &VerifyOptions::default(), &()).unwrap()
}

fn tokens(base: &Path, layout: To, out: &str) {
    let out = base.join(out);
    fs::create_dir_all(&out).unwrap();
    let dtype = Some(DType::U32);
    let options = TokenizeOptions { to: layout.format(), eos: Some(0), dtype, ..samples() };
    tokenize(FORMATS, &[base.join("raw/a.jsonl")], &out, &Ord, &options, &()).unwrap();
}

#[test]
fn data_sets_beside_and_below_each_other_are_all_held_against_what_describes_them() {
    let folder = folder_of(&[
        ("raw/a.jsonl", LINES),
        ("shards/meta.json", META),
        ("shards/d-1-of-1.bin", &[0; 6]),
        // Neither is data: nothing says so.
        ("run/settings.yaml", b"rate: 0.1\n"),
        ("run/checkpoint.pt", b"PK\x03\x04"),
        ("run/config.json", b"{\"width\": 8}"),
    ]);
    let base = folder.path();
    index(FORMATS, &base.join("raw"), &IndexOptions { checksum: true, ..IndexOptions::default() }, &())
        .unwrap();
    tokens(base, To::Forager, "train");
    tokens(base, To::Forager, "more/valid");
    tokens(base, To::Tokens, "stream");
    dummy(&windrow_formats::Tokens, &base.join("more/d.bin"), 50, 100, 1, false).unwrap();
    let findings = check(base);
    assert_eq!((findings.n_problems, findings.notes.as_slice()), (0, [].as_slice()), "{findings:?}");
    let file = |name: &str| base.join(name).display().to_string();
    for name in [
        "raw/a.jsonl",
        "train/tokenized-samples/a-tokenized-samples.bin",
        "more/valid/tokenized-samples/a-tokenized-samples.bin",
        "stream/tokens.bin",
        "more/d.bin",
    ] {
        let (whole, time) =
            (fs::read(file(name)).unwrap(), fs::metadata(file(name)).unwrap().modified().unwrap());
        let mut bad = whole.clone();
        bad[9] ^= 1;
        fs::write(file(name), bad).unwrap();
        let findings = check(base);
        let told: Vec<_> = findings.problems.iter().map(|p| (&*p.what, &*p.file)).collect();
        assert!(told.contains(&("xxh3", name)), "{name}: {findings:?}");
        fs::write(file(name), whole).unwrap();
        let set =
            |time| fs::File::options().append(true).open(file(name)).unwrap().set_modified(time).unwrap();
        // Opening refuses lines of another time than their index has, whatever they hold: so they are not good.
        set(time + std::time::Duration::from_secs(1));
        let is_stale =
            |findings: &Findings| findings.problems.iter().any(|p| p.found.contains("time of change"));
        assert_eq!(is_stale(&check(base)), name == "raw/a.jsonl");
        set(time);
        assert_eq!(check(base).n_problems, 0);
    }
    fs::write(file("shards/d-1-of-1.bin"), [0; 5]).unwrap();
    let findings = check(base);
    assert_eq!(findings.n_problems, 1, "{findings:?}");
    assert!(findings.problems[0].expected.contains("6 bytes, as meta.json says"), "{findings:?}");
    fs::write(file("shards/d-1-of-1.bin"), [0; 6]).unwrap();

    // A row is named, and a line beside an index that is no JSON.
    fs::write(file("raw/b.jsonl"), b"{]\n").unwrap();
    fs::write(file("train/index/sample_locations.bin"), [9; 24]).unwrap();
    let whats: Vec<_> = check(base).problems.into_iter().map(|p| p.what).collect();
    assert!(["row", "JSON"].iter().all(|what| whats.iter().any(|w| w == what)), "{whats:?}");
}

#[test]
fn what_is_described_within_a_data_set_is_held_against_its_description() {
    let folder = folder_of(&[("raw/a.jsonl", LINES), ("meta.json", META), ("d-1-of-1.bin", &[0; 6])]);
    let base = folder.path();
    tokens(base, To::Forager, "train");
    tokens(base, To::Tokens, "deep/er/stream");
    let findings = check(base);
    assert_eq!(findings.n_problems, 0, "{findings:?}");
    for name in ["train/tokenized-samples/a-tokenized-samples.bin", "deep/er/stream/tokens.bin"] {
        let path = base.join(name);
        let whole = fs::read(&path).unwrap();
        let mut bad = whole.clone();
        bad[9] ^= 1;
        fs::write(&path, bad).unwrap();
        let findings = check(base);
        let told: Vec<_> = findings.problems.iter().map(|p| (&*p.what, &*p.file)).collect();
        assert!(told.contains(&("xxh3", name)), "{name}: {findings:?}");
        fs::write(&path, whole).unwrap();
    }
    // What describes it went: it is not a data set of the shards either.
    fs::remove_file(base.join("deep/er/stream/windrow.json")).unwrap();
    assert!(check(base).n_problems > 0);
}

#[test]
fn half_an_index_is_bad() {
    let folder = folder_of(&[("raw/a.jsonl", LINES)]);
    index(FORMATS, &folder.path().join("raw"), &IndexOptions::default(), &()).unwrap();
    for side in ["windrow.json", "sample_locations.bin"] {
        fs::remove_file(folder.path().join("raw/index").join(side)).unwrap();
    }
    for path in [folder.path().to_path_buf(), folder.path().join("raw")] {
        let findings = check(&path);
        assert_eq!((findings.n_problems, &*findings.problems[0].what), (1, "index"), "{findings:?}");
    }
}

#[test]
fn every_part_that_is_bad_is_told_not_the_first_alone() {
    let meta = br#"{"num_sequences": 1, "dtype": "int16", "scales": [{"offset": 0, "length": 9}],
        "files": {"d-1-of-3.bin": 3, "d-2-of-3.bin": 3, "d-3-of-3.bin": 3}}"#;
    let array = npy();
    let folder = folder_of(&[
        ("series/a.npy", &array[..70]),
        ("series/b.npy", &array),
        ("series/c.npy", &array[..69]),
        ("series/s/meta.json", meta),
        ("series/s/d-1-of-3.bin", &[0; 5]),
        ("series/s/d-3-of-3.bin", &[0; 4]),
        ("tracks/encoded_audio/x.pt", b"PK\x03\x04"),
        ("tracks/encoded_audio/y.pt", b"PK\x03\x04"),
    ]);
    for (below, expected) in [
        ("series", ["a.npy", "c.npy", "d-1-of-3.bin", "d-2-of-3.bin", "d-3-of-3.bin"].as_slice()),
        ("tracks", &["x.pt", "y.pt"]),
    ] {
        let findings = check(&folder.path().join(below));
        let mut bad: Vec<_> = findings.problems.iter().map(|p| p.file.rsplit('/').next().unwrap()).collect();
        bad.sort_unstable();
        assert_eq!(bad, expected, "{findings:?}");
    }
    // Parts of which each is whole, and which do not fit each other.
    let folder = folder_of(&[
        ("one/meta.json", META),
        ("one/d-1-of-1.bin", &[0; 6]),
        ("two/a.jsonl", b"{\"sequence\": [[1, 2], [3, 4]]}\n"),
    ]);
    let findings = check(folder.path());
    assert_eq!(findings.n_problems, 1, "{findings:?}");
}

fn npy() -> Vec<u8> {
    let header = b"\x93NUMPY\x01\x00\x37\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
    [header.as_slice(), &[0; 8]].concat()
}

#[test]
fn series_are_read_once_and_what_nothing_describes_is_noted() {
    let array = npy();
    let folder =
        folder_of(&[("shards/meta.json", META), ("shards/d-1-of-1.bin", &[0; 6]), ("a.npy", &array)]);
    let findings = check(folder.path());
    assert_eq!(
        (findings.n_problems, findings.read_files, findings.checked_records, findings.notes.len()),
        (0, 3, 2, 0),
        "{findings:?}"
    );
    // Text beside them makes it another folder: the shards still speak for themselves, the array does not.
    fs::create_dir(folder.path().join("raw")).unwrap();
    fs::write(folder.path().join("raw/a.jsonl"), LINES).unwrap();
    fs::write(folder.path().join("t.bin"), [0; 4]).unwrap();
    let findings = check(folder.path());
    assert_eq!((findings.n_problems, findings.checked_records), (0, 3), "{findings:?}");
    assert_eq!(findings.notes, ["nothing says what a.npy and 1 more should hold: not looked at"]);
}

#[test]
fn a_folder_that_lost_what_describes_it_is_neither_good_nor_read_as_other_numbers() {
    let folder = folder_of(&[("raw/a.jsonl", LINES)]);
    let base = folder.path();
    for (layout, description) in [(To::Shards, "meta.json"), (To::Tokens, "windrow.json")] {
        let out = base.join(description.replace('.', "-"));
        let options = TokenizeOptions { to: layout.format(), eos: Some(0), ..samples() };
        tokenize(FORMATS, &[base.join("raw/a.jsonl")], &out, &Ord, &options, &()).unwrap();
        assert_eq!(check(&out).n_problems, 0);
        fs::remove_file(out.join(description)).unwrap();
        for place in [&out, base] {
            let findings = check(place);
            let problem = findings.problems.iter().find(|p| p.what == "description");
            assert!(problem.is_some_and(|p| p.file.contains(&out.display().to_string())), "{findings:?}");
        }
        let error = open(&out).map(drop).unwrap_err();
        assert!(error.kind() == Kind::Corrupt && error.message().contains("describes"), "{error}");
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn what_a_stopped_run_left_is_found_where_nothing_else_lies() {
    let folder = folder_of(&[("raw/a.jsonl", LINES)]);
    let left = folder.path().join("sub/out/.tokenize.tmp-0123456789abcdef");
    for gc in [false, true] {
        fs::create_dir_all(&left).unwrap();
        let options = VerifyOptions { gc, ..VerifyOptions::default() };
        let findings = verify(FORMATS, folder.path(), &options, &()).unwrap();
        assert!(findings.notes.iter().any(|note| note.contains(".tokenize.tmp-*")), "{findings:?}");
        assert_eq!(left.exists(), !gc);
    }
}
