//! What `verify` finds, and that it finds nothing where nothing is wrong.

use std::fs;
use std::path::Path;

use windrow_core::output::write_whole;
use windrow_core::source::Extras;
use windrow_core::{DType, Kind, Span};
use windrow_formats::FORMATS;
use windrow_prepare::{
    Findings, IndexOptions, Problem, TokenizeOptions, Track, VerifyOptions, dummy, index, tokenize, verify,
};

use crate::disk::open;
use crate::encoders::{FailsAt, Ord, Parts};
use crate::tree::{folder_of, tree};
use crate::writing::{To, Writing, convert, create, samples};

const THREE: &[u8] = b"{\"text\":\"abc\"}\n{\"text\":\"de\"}\n{\"text\":\"f\"}\n";

fn check(path: &Path) -> Findings {
    verify(FORMATS, path, &VerifyOptions::default(), &()).unwrap()
}

/// Something that is wrong: what was looked at, and the words expected and found.
fn only(path: &Path, what: &str, expected: &str, found: &str) {
    let findings = check(path);
    assert_eq!(findings.n_problems, findings.problems.len() as u64);
    let is_it = |p: &Problem| p.what == what && p.expected.contains(expected) && p.found.contains(found);
    assert!(findings.problems.iter().any(is_it), "{findings:?}");
}

fn packed() -> (tempfile::TempDir, tempfile::TempDir) {
    let input = folder_of(&[("a.jsonl", THREE)]);
    let out = tempfile::tempdir().unwrap();
    let options =
        TokenizeOptions { sample_size: Some(2), eos: Some(0), dtype: Some(DType::U32), ..samples() };
    tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
    (input, out)
}

#[test]
fn whole_data_sets_have_no_problems() {
    let (input, out) = packed();
    let findings = check(out.path());
    assert_eq!(
        (findings.n_problems, findings.checked_records, findings.notes.len()),
        (0, 4, 0),
        "{findings:?}"
    );
    assert_eq!(check(&out.path().join("index")), findings);

    index(FORMATS, input.path(), &IndexOptions { checksum: true, ..IndexOptions::default() }, &()).unwrap();
    let findings = check(input.path());
    assert_eq!(
        (findings.n_problems, findings.checked_records, findings.notes.len()),
        (0, 3, 0),
        "{findings:?}"
    );

    let stream = tempfile::tempdir().unwrap();
    let options = TokenizeOptions { to: To::Tokens.format(), eos: Some(0), ..samples() };
    tokenize(FORMATS, &[input.path().join("a.jsonl")], stream.path(), &Ord, &options, &()).unwrap();
    let findings = check(stream.path());
    assert_eq!((findings.n_problems, findings.checked_bytes, findings.notes.len()), (0, 9 * 4, 0));
    assert_eq!(check(&stream.path().join("tokens.bin")), findings);

    let file = stream.path().join("d.bin");
    dummy(&windrow_formats::Tokens, &file, 50, 1000, 1, false).unwrap();
    assert_eq!((check(&file).n_problems, check(&file).checked_bytes), (0, 4000));

    let parts = folder_of(&[("p.jsonl", b"{\"parts\":[{\"type\":\"x\",\"text\":\"abcdef\"}]}\n")]);
    for sample_size in [Some(3), None] {
        let out = tempfile::tempdir().unwrap();
        let options = TokenizeOptions {
            sample_size,
            dtype: Some(DType::U16),
            tracks: vec![Track { name: "loss_mask".to_string(), eos: 0, pad: 1 }],
            ..samples()
        };
        let mask = Parts { masked: Vec::new() };
        tokenize(FORMATS, &[parts.path().into()], out.path(), &mask, &options, &()).unwrap();
        assert_eq!((check(out.path()).n_problems, check(out.path()).notes.len()), (0, 0));
    }
}

#[test]
fn every_flipped_bit_of_hashed_files_is_found() {
    let (_input, out) = packed();
    let path = out.path().join("tokenized-samples/a-tokenized-samples.bin");
    let whole = fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bad = whole.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, bad).unwrap();
        only(out.path(), "xxh3", "", "");
    }
    fs::write(&path, &whole[..5]).unwrap();
    only(out.path(), "size", "32", "5");
    fs::remove_file(&path).unwrap();
    only(out.path(), "file", "to be there", "cannot open");
}

#[test]
fn ids_that_were_compressed_since_are_held_against_what_was_said_of_them() {
    let name = "verify::ids_that_were_compressed_since_are_held_against_what_was_said_of_them";
    crate::alone::alone(name, |_| {
        let input = folder_of(&[("a.jsonl", THREE)]);
        let out = tempfile::tempdir().unwrap();
        let options = TokenizeOptions { to: To::Tokens.format(), eos: Some(0), ..samples() };
        tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
        let [plain, packed] = ["tokens.bin", "tokens.bin.zst"].map(|name| out.path().join(name));
        let mut ids = fs::read(&plain).unwrap();
        fs::remove_file(&plain).unwrap();
        let put = |ids: &[u8]| fs::write(&packed, zstd::bulk::compress(ids, 3).unwrap()).unwrap();
        put(&ids);
        for path in [out.path(), &packed] {
            let findings = check(path);
            let found = (findings.n_problems, findings.checked_files, findings.checked_bytes);
            assert_eq!(found, (0, 1, ids.len() as u64), "{findings:?}");
        }
        ids[1] ^= 1;
        put(&ids);
        for path in [out.path(), &packed] {
            only(path, "xxh3", "", "are changed");
        }
        let whole = fs::read(&packed).unwrap();
        fs::write(&packed, &whole[..whole.len() - 1]).unwrap();
        only(out.path(), "file", "to be there", "cut off");
        // Nothing is said of this one, but that it is a stream to its end.
        let alone = tempfile::tempdir().unwrap();
        let other = alone.path().join("x.bin.zst");
        fs::write(&other, &whole).unwrap();
        assert_eq!(check(&other).n_problems, 0);
        fs::write(&other, &whole[..whole.len() - 1]).unwrap();
        only(&other, "content", "a whole stream", "cut off");
    });
}

#[test]
fn files_that_stand_there_twice_are_a_problem() {
    let folder = folder_of(&[("a.jsonl", THREE), ("a.jsonl.zst", &zstd::bulk::compress(THREE, 3).unwrap())]);
    only(folder.path(), "names", "each file once", "twice");
}

#[test]
fn wrong_rows_are_found() {
    let rows =
        |rows: &[[u64; 3]]| -> Vec<u8> { rows.iter().flatten().flat_map(|n| n.to_le_bytes()).collect() };
    let (_input, out) = packed();
    let path = out.path().join("index/sample_locations.bin");
    let good = [[0, 0, 8], [0, 8, 8], [0, 16, 8], [0, 24, 8]];
    assert_eq!(fs::read(&path).unwrap(), rows(&good));
    let with = |i: usize, row: [u64; 3]| {
        let mut bad = good;
        bad[i] = row;
        rows(&bad)
    };
    for (bytes, what, expected, found) in [
        (with(1, [9, 0, 8]), "row", "file below 1", "file 9"),
        (with(3, [0, 32, 8]), "row", "within the 32 bytes", "bytes 32 + 8"),
        (with(3, [0, u64::MAX, 8]), "row", "within the 32 bytes", "+ 8"),
        (with(2, [0, 0, 8]), "row", "byte 16", "byte 0"),
        (with(3, [0, 24, 4]), "row", "8 bytes", "4 bytes"),
        (rows(&good[..3]), "records", "4", "3"),
        (rows(&good)[..90].to_vec(), "size", "multiple of 24", "90"),
    ] {
        fs::write(&path, bytes).unwrap();
        only(out.path(), what, expected, found);
    }
}

#[test]
fn lines_that_are_no_json_are_found_with_and_without_an_index() {
    let base = folder_of(&[("a.jsonl", b"\xef\xbb\xbf{}\n\n{\"a\":\xff}\n{]\n1 2\n3\n")]);
    for _ in 0..2 {
        let findings = check(base.path());
        let records: Vec<_> = findings.problems.iter().map(|p| p.record.unwrap()).collect();
        assert_eq!(records, [1, 2, 3, 4], "{findings:?}");
        assert_eq!(findings.checked_records, 6);
        index(FORMATS, base.path(), &IndexOptions::default(), &()).unwrap();
    }
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    fs::File::options().append(true).open(base.path().join("a.jsonl")).unwrap().set_modified(later).unwrap();
    only(base.path(), "time of change", "ns", "ns");
}

#[test]
fn what_cannot_be_checked_is_said() {
    let base = folder_of(&[("t.bin", b"abcd"), ("x/y.txt", b"")]);
    let findings = check(&base.path().join("t.bin"));
    assert!(findings.notes[0].contains("no manifest") && findings.problems.is_empty(), "{findings:?}");
    assert_eq!(check(base.path()).notes.len(), 1);
    let error = verify(FORMATS, &base.path().join("none"), &VerifyOptions::default(), &()).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
}

#[test]
fn raw_ids_that_were_cut_short_are_not_good_and_those_of_another_dtype_not_bad() {
    let base = folder_of(&[("u16/a.bin", &[0; 6]), ("odd/train.bin", &[0; 7]), ("odd/val.bin", &[0; 9])]);
    for (name, n_problems) in [("odd/train.bin", 1), ("odd", 2), ("u16/a.bin", 0), ("u16", 0)] {
        let findings = check(&base.path().join(name));
        assert_eq!((findings.n_problems, findings.checked_files), (n_problems, 0), "{name}: {findings:?}");
        let says = |text: &str| findings.notes.iter().any(|note| note.contains(text));
        assert!(says("read and not checked"), "{name}: {findings:?}");
        assert_eq!(says("nothing says its dtype"), n_problems == 0, "{name}: {findings:?}");
        assert_eq!(says("another .dtype"), n_problems > 0, "{name}: {findings:?}");
    }
    only(&base.path().join("odd/train.bin"), "content", "", "1 more than whole uint16 IDs");
}

#[test]
fn lines_of_which_there_is_none_are_not_good() {
    let base = folder_of(&[("one/a.jsonl", b""), ("two/a.jsonl", b""), ("two/b.jsonl", b"{}\n")]);
    for name in ["one", "one/a.jsonl", "two/a.jsonl"] {
        only(&base.path().join(name), "size", "at least one line", "nothing");
    }
    // As opening takes them: the other file has a line.
    assert_eq!(check(&base.path().join("two")).n_problems, 0);
}

#[test]
fn what_is_no_data_is_an_error_and_ids_that_are_none_a_problem() {
    let base = folder_of(&[("text/y.txt", b"yes"), ("y.txt.gz", &[0x1f, 0x8b, 8]), ("none.bin", b"")]);
    fs::create_dir(base.path().join("empty")).unwrap();
    for name in ["text/y.txt", "text", "empty", "y.txt.gz"] {
        let path = base.path().join(name);
        let error = verify(FORMATS, &path, &VerifyOptions::default(), &()).unwrap_err();
        assert_eq!(error.kind(), Kind::Unrecognised, "{name}");
        let hint = if name == "y.txt.gz" { "expand it first" } else { "is the path right?" };
        assert!(error.hint_text().unwrap().contains(hint), "{error:?}");
        // What is to be tidied up need not be data.
        let gc = VerifyOptions { gc: true, ..VerifyOptions::default() };
        assert_eq!(verify(FORMATS, &path, &gc, &()).unwrap().n_problems, 0, "{name}");
    }
    only(&base.path().join("none.bin"), "size", "at least one value", "empty");
}

#[test]
fn leftovers_are_noted_and_tidied_up_when_asked() {
    let input = folder_of(&[("a.jsonl", THREE)]);
    let out = tempfile::tempdir().unwrap();
    let options = TokenizeOptions { sample_size: Some(2), checkpoint_bytes: 10, ..samples() };
    let fails = FailsAt { file: "a.jsonl", line: 2, kind: Kind::Interrupted };
    tokenize(FORMATS, &[input.path().into()], out.path(), &fails, &options, &()).unwrap_err();
    let before = tree(out.path());
    assert!(check(out.path()).notes[0].contains("a stopped run left .tokenize.tmp-*"));
    assert_eq!(tree(out.path()), before);
    let gc = VerifyOptions { gc: true, ..VerifyOptions::default() };
    assert!(verify(FORMATS, out.path(), &gc, &()).unwrap().notes[0].contains("tidied up"));
    assert_eq!(tree(out.path()).len(), 0);
}

#[test]
fn unfinished_files_are_tidied_up_unless_somebody_writes_there() {
    let folder = tempfile::tempdir().unwrap();
    let unfinished = format!(".page.html.tmp-{:016x}", xxhash_rust::xxh3::xxh3_64(b"page.html"));
    let page = folder.path().join("page.html");
    for begun in ["half", "ha"] {
        fs::write(folder.path().join(&unfinished), begun).unwrap();
        assert!(check(folder.path()).notes[0].contains("a stopped run left .page.html.tmp-*"));
        // The next run of the same tidies up, too.
        write_whole(&page, b"whole").unwrap();
        assert_eq!(
            tree(folder.path()).into_iter().collect::<Vec<_>>(),
            [("page.html".into(), b"whole".into())]
        );
    }
    fs::write(folder.path().join(&unfinished), "half").unwrap();
    let lock = fs::File::create(folder.path().join(".page.html.lock")).unwrap();
    lock.lock().unwrap();
    let gc = VerifyOptions { gc: true, ..VerifyOptions::default() };
    assert!(
        verify(FORMATS, &page, &gc, &()).unwrap().notes[0]
            .contains("left alone: another windrow is writing here")
    );
    assert_eq!(write_whole(&page, b"new").unwrap_err().kind(), Kind::Exists);
    drop(lock);
    assert!(verify(FORMATS, &page, &gc, &()).unwrap().notes[0].contains("tidied up"));
    assert_eq!(tree(folder.path()).into_keys().collect::<Vec<_>>(), ["page.html"]);
}

#[test]
fn a_file_beside_it_that_ends_in_tmp_is_not_taken_for_windrows() {
    let folder = folder_of(&[("sound.tmp", b"mine".as_slice())]);
    write_whole(&folder.path().join("sound.wav"), b"sound").unwrap();
    assert_eq!(tree(folder.path())["sound.tmp"], b"mine");
    let error = write_whole(&folder.path().join("no/sound.wav"), b"sound").unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
}

#[test]
fn what_only_has_a_name_like_a_leftover_stays() {
    let (left, mine) = (
        [".tokenize.tmp-0123456789abcdef/tokens.bin", ".a.tmp-b.tmp-0123456789abcdef/x"],
        [
            ".mine.tmp-backup/a",
            ".notes.tmp-1",
            ".notes.tmp-0123456789abcdef",
            ".a.tmp-0123456789ABCDEF/x",
            ".a.tmp-0123456789abcdef0/x",
            ".a.tmp-0123456789abcde/x",
            "a.tmp-0123456789abcdef/x",
        ],
    );
    let files: Vec<(&str, &[u8])> = left.iter().chain(&mine).map(|name| (*name, &b"x"[..])).collect();
    let folder = folder_of(&files);
    std::os::unix::fs::symlink("a.tmp-0123456789abcdef", folder.path().join(".b.tmp-0123456789abcdef"))
        .unwrap();
    let notes = check(folder.path()).notes;
    assert_eq!(notes.iter().filter(|note| note.contains("a stopped run left")).count(), 2, "{notes:?}");
    let gc = VerifyOptions { gc: true, ..VerifyOptions::default() };
    let notes = verify(FORMATS, folder.path(), &gc, &()).unwrap().notes;
    assert_eq!(notes.iter().filter(|note| note.contains("tidied up")).count(), 2, "{notes:?}");
    let mut stays: Vec<&str> = [&mine[..], &[".b.tmp-0123456789abcdef/x"]].concat();
    stays.sort_unstable();
    assert_eq!(tree(folder.path()).into_keys().collect::<Vec<_>>(), stays);
}

#[test]
fn series_are_opened_and_read_to_their_end() {
    let meta = r#"{"num_sequences": 2, "dtype": "int16", "files": {"d-1-of-1.bin": 3},
        "scales": [{"offset": 0, "length": 2}, {"offset": 2, "length": 1, "id": "x"}]}"#;
    let shards = folder_of(&[("meta.json", meta.as_bytes()), ("d-1-of-1.bin", &[0; 6])]);
    let findings = check(shards.path());
    assert_eq!((findings.n_problems, findings.checked_records, findings.checked_bytes), (0, 2, 6));
    assert_eq!(findings.notes, Vec::<String>::new());
    fs::write(shards.path().join("d-1-of-1.bin"), [0; 9]).unwrap();
    let findings = check(shards.path());
    assert_eq!((findings.n_problems, findings.notes.len()), (0, 1));
    assert!(findings.notes[0].contains("3 bytes more than meta.json says"), "{findings:?}");
    fs::write(shards.path().join("d-1-of-1.bin"), [0; 5]).unwrap();
    let findings = check(shards.path());
    assert_eq!(findings.n_problems, 1);
    assert!(findings.problems[0].file.ends_with("d-1-of-1.bin"), "{findings:?}");
    assert!(findings.problems[0].expected.contains("6 bytes, as meta.json says"), "{findings:?}");
    let array = folder_of(&[("a.npy", b"\x93NUMPY\x01\x00".as_slice())]);
    assert_eq!(check(&array.path().join("a.npy")).n_problems, 1);
    assert_eq!(check(array.path()).n_problems, 1);
}

#[test]
fn an_index_is_held_against_its_own_side_file_and_what_lies_beside_it_against_another() {
    let base = folder_of(&[("a.jsonl", THREE)]);
    let layout = To::Tokens;
    let options = TokenizeOptions { to: layout.format(), eos: Some(0), dtype: Some(DType::U32), ..samples() };
    tokenize(FORMATS, &[base.path().join("a.jsonl")], base.path(), &Ord, &options, &()).unwrap();
    index(FORMATS, base.path(), &IndexOptions { checksum: true, ..IndexOptions::default() }, &()).unwrap();
    let findings = check(base.path());
    assert_eq!(
        (findings.n_problems, findings.checked_files, findings.checked_records, findings.notes.len()),
        (0, 2, 3, 0),
        "{findings:?}"
    );
    assert_eq!(check(&base.path().join("index")), findings);
    for (name, byte) in [("tokens.bin", 0), ("a.jsonl", 9)] {
        let path = base.path().join(name);
        let whole = fs::read(&path).unwrap();
        let mut bad = whole.clone();
        bad[byte] ^= 1;
        fs::write(&path, bad).unwrap();
        let findings = check(base.path());
        assert_eq!((findings.n_problems, &*findings.problems[0].what), (1, "xxh3"), "{findings:?}");
        assert_eq!(findings.problems[0].file, name);
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn side_files_of_single_files_are_found_in_their_folder() {
    let folder = folder_of(&[("free.bin", &[0; 8])]);
    for name in ["a.bin", "b/a.bin"] {
        dummy(&windrow_formats::Tokens, &folder.path().join(name), 3, 4, 1, false).unwrap();
    }
    let findings = check(folder.path());
    assert_eq!(
        (findings.n_problems, findings.checked_files, findings.notes.len()),
        (0, 2, 1),
        "{findings:?}"
    );
    for name in ["a.bin", "b/a.bin"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [b'A'; 16]).unwrap();
        let findings = check(folder.path());
        assert!(findings.problems.iter().all(|p| p.file == name), "{findings:?}");
        let found: Vec<&str> = findings.problems.iter().map(|p| &*p.what).collect();
        assert_eq!(found, ["id", "id", "id", "id", "xxh3"]);
        assert_eq!(check(&path).n_problems, 5);
        fs::remove_file(&path).unwrap();
        only(folder.path(), "file", "to be there", "cannot open");
        fs::write(&path, whole).unwrap();
    }
    // Beside no file, and no manifest: somebody else's.
    fs::write(folder.path().join("mine.windrow.json"), b"{}").unwrap();
    assert_eq!(check(folder.path()).n_problems, 0);
    fs::write(folder.path().join("free.bin.windrow.json"), b"{}").unwrap();
    only(folder.path(), "manifest", "understood", "");
}

#[test]
fn both_halves_of_a_pair_are_held_against_its_side_file_by_any_name() {
    let (input, out) = packed();
    let made = tempfile::tempdir().unwrap();
    let layout = To::Megatron;
    let options = TokenizeOptions { to: layout.format(), dtype: Some(DType::U16), ..samples() };
    tokenize(FORMATS, &[input.path().into()], made.path(), &Ord, &options, &()).unwrap();
    let source = open(&out.path().join("tokenized-samples/a-tokenized-samples.bin")).unwrap();
    let converted = tempfile::tempdir().unwrap();
    let options = Writing::new(To::Megatron);
    convert(source.as_ref(), &converted.path().join("tokens"), &options, &()).unwrap();
    // The manifest is that of the folder, or that of the pair.
    for folder in [made.path(), converted.path()] {
        let names = ["", "tokens.bin", "tokens.idx"].map(|name| folder.join(name));
        for name in &names {
            assert_eq!((check(name).n_problems, check(name).notes.len()), (0, 0), "{name:?}");
        }
        let path = folder.join("tokens.bin");
        let mut bytes = fs::read(&path).unwrap();
        bytes[0] ^= 1;
        fs::write(&path, bytes).unwrap();
        for name in &names {
            let findings = check(name);
            assert_eq!((findings.n_problems, &*findings.problems[0].what), (1, "xxh3"), "{findings:?}");
            assert_eq!(findings.problems[0].file, "tokens.bin");
        }
    }
}

#[test]
fn every_changed_byte_of_shards_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    dummy(&windrow_formats::Tokens, &path("a.bin"), 1 << 32, 7, 1, false).unwrap();
    let source = open(&path("a.bin")).unwrap();
    let options = Writing { max_shard_bytes: Some(16), ..Writing::new(To::Shards) };
    convert(source.as_ref(), &path("converted"), &options, &()).unwrap();
    let mut writer = create(&path("written"), source.schema(), &options).unwrap();
    let (span, mut scratch) = (Span { record: 0, start: 0, len: 7 }, Vec::new());
    writer.add(&source.read(span, &mut scratch).unwrap(), &Extras::new()).unwrap();
    writer.finish().unwrap();
    for name in ["converted", "written"] {
        let shards = path(name);
        let findings = check(&shards);
        assert_eq!((findings.n_problems, findings.notes.len()), (0, 0), "{findings:?}");
        for shard in ["data-1-of-2.bin", "data-2-of-2.bin"] {
            let whole = fs::read(shards.join(shard)).unwrap();
            for byte in 0..whole.len() {
                let mut bad = whole.clone();
                bad[byte] ^= 1;
                fs::write(shards.join(shard), bad).unwrap();
                let findings = check(&shards);
                assert_eq!((findings.n_problems, &*findings.problems[0].file), (1, shard), "{findings:?}");
                assert_eq!(findings.problems[0].what, "xxh3");
            }
            // Also where the shards are one of several folders.
            let findings = check(folder.path());
            assert_eq!((findings.n_problems, &*findings.problems[0].what), (1, "xxh3"), "{findings:?}");
            assert_eq!(findings.problems[0].file, format!("{name}/{shard}"));
            fs::write(shards.join(shard), whole).unwrap();
        }
    }
}

#[test]
fn every_changed_byte_of_what_series_are_converted_to_is_found() {
    let folder = folder_of(&[("a.json", b"[[[1, 2]], [[3, 4]]]".as_slice())]);
    let source = open(&folder.path().join("a.json")).unwrap();
    for (layout, out, data) in [
        (To::Npy, "npy/a.npy", "a.npy"),
        (To::Npz, "npz/a.npz", "a.npz"),
        (To::Jsonl, "jsonl/a.jsonl", "a.jsonl"),
        (To::Codes, "codes", "encoded_audio/000001.pt"),
    ] {
        let out = folder.path().join(out);
        convert(source.as_ref(), &out, &Writing::new(layout), &()).unwrap();
        let base = if layout == To::Codes { &out } else { out.parent().unwrap() };
        for path in [base, &out] {
            let findings = check(path);
            assert_eq!((findings.n_problems, findings.notes.len()), (0, 0), "{path:?}: {findings:?}");
        }
        let whole = fs::read(base.join(data)).unwrap();
        for byte in 0..whole.len() {
            let mut bad = whole.clone();
            bad[byte] ^= 1;
            fs::write(base.join(data), bad).unwrap();
            for path in [base, &out] {
                let findings = check(path);
                let is_it = findings.problems.iter().any(|p| p.what == "xxh3" && p.file == data);
                assert!(is_it, "byte {byte} of {path:?}: {findings:?}");
            }
        }
        fs::write(base.join(data), whole).unwrap();
    }
}

#[test]
fn what_is_no_regular_file_is_an_error() {
    let error = verify(FORMATS, Path::new("/dev/null"), &VerifyOptions::default(), &()).unwrap_err();
    assert!(error.place().file.is_some(), "{error}");
}

#[test]
fn a_line_that_reading_refuses_is_a_problem() {
    let deep = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    for (line, is_bad) in [
        (r#"{"text":"x","a":"\ud800"}"#, true),
        (r#"{"text":"x","\ud800":1}"#, true),
        (r#"{"text":"x","a":1e999}"#, true),
        (deep.as_str(), true),
        (&deep[1..deep.len() - 1], false),
        (r#"{"a":[1,-2.5,1e300,18446744073709551615,true,null,"\ud83d\ude00é"],"b":{"c":{}}}"#, false),
    ] {
        let folder = folder_of(&[("a.jsonl", format!("{line}\n").as_bytes())]);
        let read = open(folder.path()).unwrap().text(0, &mut String::new()).map(drop);
        let parsed = windrow_formats::parse_json(line.as_bytes(), &windrow_core::Place::default());
        assert_eq!(
            (check(folder.path()).n_problems == 1, parsed.is_err()),
            (is_bad, is_bad),
            "{line} {read:?}"
        );
    }
}
