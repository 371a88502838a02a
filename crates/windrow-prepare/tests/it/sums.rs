//! Block checksums: whatever windrow wrote, a byte that changes behind its back is an error where it is read.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use windrow_core::format::{self, Options, Probe};
use windrow_core::source::{Extras, Schema};
use windrow_core::store::Local;
use windrow_core::{DType, Decode, Element, Kind, Result, Span, Values};
use windrow_formats::FORMATS;
use windrow_prepare::{Encode, IndexOptions, TokenizeOptions, VerifyOptions, dummy, index, tokenize, verify};

use crate::encoders::{FailsAt, Ord};
use crate::tree::{folder_of, tree};
use crate::writing::{To, Writing, create, samples};

const BLOCK: usize = 4096;

// Everything that a data set holds: the bytes of each record and what stands beside it.
fn all(folder: &Path, key: &str, options: &Options) -> Result<Vec<(Vec<u8>, Value)>> {
    let look = Probe::at(FORMATS, Arc::new(Local::new(folder)), key)?;
    let source = format::open(FORMATS, &look, options)?;
    let mut scratch = Vec::new();
    (0..source.len())
        .map(|record| {
            let span = Span { record, start: 0, len: source.length(record)? };
            let extras = Value::Object(source.extras(record)?.shown());
            Ok((source.read(span, &mut scratch)?.bytes.to_vec(), extras))
        })
        .collect()
}

fn always() -> Options {
    Options { verify_checksums: true, ..Options::default() }
}

/// The data set at `key` reads as without looking, and a byte changed anywhere in one of `files` is told of, by reading and
/// by `verify`, with the block it lies in.
fn holds(folder: &Path, key: &str, files: &[&str]) {
    let want = all(folder, key, &Options::default()).unwrap();
    assert_eq!(all(folder, key, &always()).unwrap(), want, "{key}");
    let check = || verify(FORMATS, &folder.join(key), &VerifyOptions::default(), &()).unwrap();
    assert_eq!(check().problems, []);
    for name in files {
        let path = folder.join(name);
        let (bytes, time) = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
        let places = [0, bytes.len() / 3, bytes.len() - 1];
        for at in places {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            fs::write(&path, &changed).unwrap();
            fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
            let error = all(folder, key, &always()).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{name} at {at}: {error}");
            let found = check();
            assert!(
                found.problems.iter().any(|p| Path::new(&p.file).file_name() == path.file_name()),
                "{name} at {at}: {found:?}"
            );
            if error.message().contains("not those that were written") {
                assert_eq!(error.place().byte, Some((at / BLOCK * BLOCK) as u64), "{name} at {at}");
                let block = format!("bytes {} to", at / BLOCK * BLOCK);
                assert!(found.problems.iter().any(|p| p.found.contains(&block)), "{found:?}");
            }
        }
        // A file cut short is told of when it is opened.
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        all(folder, key, &always()).unwrap_err();
        fs::write(&path, &bytes).unwrap();
        fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    assert_eq!(all(folder, key, &always()).unwrap(), want);
}

#[test]
fn every_layout_of_records_keeps_them() {
    let numbers: Vec<u8> = (0..3_000u32).flat_map(|i| ((i * 37 % 977) as i16).to_le_bytes()).collect();
    let cases: &[(To, &str, &[&str])] = &[
        (To::Shards, "shards", &["shards/data-1-of-2.bin", "shards/data-2-of-2.bin"]),
        (To::Npy, "a.npy", &["a.npy"]),
        (To::Npz, "a.npz", &["a.npz"]),
        (To::Tokens, "a.bin", &["a.bin"]),
        (
            To::Forager,
            "samples",
            &["samples/samples.bin", "samples/index/sample_locations.bin", "samples/index/file_location.txt"],
        ),
        (To::Megatron, "a.idx", &["a.bin", "a.idx"]),
        (
            To::Codes,
            "codes",
            &["codes/encoded_audio/one.pt", "codes/encoded_audio/two.pt", "codes/metadata.json"],
        ),
    ];
    for (layout, key, files) in cases {
        let folder = tempfile::tempdir().unwrap();
        let channels = (*layout == To::Codes).then_some(2);
        let element = Element::little(DType::I16);
        let schema = Schema { channels, ..Schema::numbers(element) };
        let dtype = (*layout == To::Tokens).then_some(DType::I32);
        let mut options = Writing { dtype, fsync: false, ..Writing::new(*layout) };
        if *layout == To::Shards {
            options.max_shard_bytes = Some(10_000);
        }
        let mut writer = create(&folder.path().join(key), &schema, &options).unwrap();
        for name in ["one", "two"] {
            let values =
                Values { bytes: &numbers, element, channels: channels.unwrap_or(1), decode: Decode::Plain };
            let mut extras = Extras::new();
            if channels.is_some() {
                extras.insert("name".to_string(), json!(name));
            }
            writer.add(&values, &extras).unwrap();
        }
        writer.finish().unwrap();
        let open = if *layout == To::Tokens { "a.bin" } else { key };
        holds(folder.path(), open, files);
    }
}

fn text() -> tempfile::TempDir {
    let lines: String =
        (0..400).map(|i| format!("{{\"text\":\"{}\"}}\n", "abcdefgh".repeat(i % 7 + 1))).collect();
    folder_of(&[("a.jsonl", lines.as_bytes()), ("b/b.jsonl", lines.as_bytes())])
}

#[test]
fn every_layout_of_text_keeps_them() {
    let input = text();
    let cases: &[(To, &[&str])] = &[
        (
            To::Forager,
            &[
                "tokenized-samples/a-tokenized-samples.bin",
                "tokenized-samples/b-tokenized-samples.bin",
                "index/sample_locations.bin",
                "index/file_location.txt",
            ],
        ),
        (To::Tokens, &["tokens.bin"]),
        (To::Megatron, &["tokens.bin", "tokens.idx"]),
        (To::Shards, &["data-1-of-1.bin", "meta.json"]),
    ];
    for (layout, files) in cases {
        let out = tempfile::tempdir().unwrap();
        let folder = out.path().join("out");
        let options = TokenizeOptions {
            to: layout.format(),
            sample_size: (*layout == To::Forager).then_some(16),
            eos: Some(0),
            fsync: false,
            ..samples()
        };
        tokenize(FORMATS, &[input.path().into()], &folder, &Ord, &options, &()).unwrap();
        let names = tree(&folder);
        assert!(names.keys().any(|name| name.ends_with("windrow.sums")), "{layout:?}");
        assert!(files.iter().all(|file| names.contains_key(*file)), "{layout:?}: {:?}", names.keys());
        holds(&folder, "", files);
    }
}

#[test]
fn a_run_that_continues_keeps_the_same() {
    let input = text();
    for layout in [To::Forager, To::Tokens, To::Shards] {
        let options = |checkpoint_bytes| TokenizeOptions {
            to: match layout {
                To::Shards => layout.with(json!({ "max_shard_bytes": 9_000 })),
                _ => layout.format(),
            },
            sample_size: (layout == To::Forager).then_some(16),
            eos: Some(0),
            dtype: Some(DType::U32),
            fsync: false,
            checkpoint_bytes,
            ..samples()
        };
        let folder = tempfile::tempdir().unwrap();
        let [whole, out] = ["whole", "out"].map(|name| folder.path().join(name));
        let run = |out: &Path, encode: &dyn Encode, checkpoint_bytes| {
            tokenize(FORMATS, &[input.path().into()], out, encode, &options(checkpoint_bytes), &())
        };
        run(&whole, &Ord, 64 << 20).unwrap();
        assert!(tree(&whole).iter().any(|(name, sums)| name.ends_with("windrow.sums") && sums.len() > 80));
        for (file, line) in [("a.jsonl", 70), ("a.jsonl", 390), ("b.jsonl", 5), ("b.jsonl", 399)] {
            let fails = FailsAt { file, line, kind: Kind::Interrupted };
            run(&out, &fails, 1_000).unwrap_err();
        }
        assert!(run(&out, &Ord, 1_000).unwrap().resumed_bytes > 0);
        assert!(tree(&out) == tree(&whole), "{layout:?}");
    }
}

#[test]
fn dummy_tokens_and_an_index_with_checksums_keep_them() {
    let folder = tempfile::tempdir().unwrap();
    dummy(&windrow_formats::Tokens, &folder.path().join("d.bin"), 1000, 5000, 1, false).unwrap();
    holds(folder.path(), "d.bin", &["d.bin"]);

    let input = text();
    let options = IndexOptions { fsync: false, ..IndexOptions::default() };
    index(FORMATS, input.path(), &IndexOptions { checksum: true, ..options.clone() }, &()).unwrap();
    holds(
        input.path(),
        "",
        &["a.jsonl", "b/b.jsonl", "index/sample_locations.bin", "index/file_location.txt"],
    );
    // The index itself may be named, too.
    assert_eq!(all(input.path(), "index", &always()).unwrap().len(), 800);

    // Without, the lines cannot be held against anything.
    index(FORMATS, input.path(), &IndexOptions { overwrite: true, ..options }, &()).unwrap();
    let error = all(input.path(), "", &always()).unwrap_err();
    assert_eq!(
        (error.kind(), error.place().field.as_deref()),
        (Kind::Config, Some("verify_checksums")),
        "{error}"
    );
}

#[test]
fn what_others_wrote_has_none() {
    let folder = folder_of(&[("a.jsonl", b"{\"x\":1}\n"), ("raw/t.bin", &[0; 8]), ("s/a.json", b"[1,2]")]);
    for key in ["a.jsonl", "raw/t.bin", "s", "s/a.json"] {
        let options = Options { dtype: (key == "raw/t.bin").then_some(DType::U16), ..always() };
        let error = all(folder.path(), key, &options).unwrap_err();
        assert_eq!(error.place().field.as_deref(), Some("verify_checksums"), "{key}: {error}");
    }
    // Those of another file say nothing of it.
    dummy(&windrow_formats::Tokens, &folder.path().join("raw/d.bin"), 10, 100, 1, false).unwrap();
    let options = Options { dtype: Some(DType::U16), ..always() };
    assert_eq!(all(folder.path(), "raw/t.bin", &options).unwrap_err().kind(), Kind::Config);
}

#[test]
fn sums_of_other_sizes_are_a_problem_and_no_error_of_verify() {
    let folder = tempfile::tempdir().unwrap();
    dummy(&windrow_formats::Tokens, &folder.path().join("d.bin"), 1000, 500_000, 1, false).unwrap();
    let path = folder.path().join("d.bin.windrow.sums");
    // As many sums as there were, those of the file the last of them: it has 489 blocks, and there are none behind.
    let table =
        br#"{"version":1,"block":4096,"files":[{"name":"x","size":1998848},{"name":"d.bin","size":1}]}"#;
    let sums = [&fs::read(&path).unwrap()[..1956], table, &(table.len() as u64).to_le_bytes(), b"WRSUMS01"];
    fs::write(&path, sums.concat()).unwrap();
    let found = verify(FORMATS, &folder.path().join("d.bin"), &VerifyOptions::default(), &()).unwrap();
    let of_sums =
        |p: &&windrow_prepare::Problem| p.file == "d.bin.windrow.sums" && p.what == "block checksums";
    assert!(found.problems.iter().any(|p| of_sums(&p)), "{found:?}");
    assert!(all(folder.path(), "d.bin", &always()).is_err());
}

#[test]
fn damaged_sums_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    dummy(&windrow_formats::Tokens, &folder.path().join("d.bin"), 1000, 5000, 1, false).unwrap();
    let path = folder.path().join("d.bin.windrow.sums");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x20;
        fs::write(&path, changed).unwrap();
        assert!(all(folder.path(), "d.bin", &always()).is_err(), "at {at}");
        let found = verify(FORMATS, &folder.path().join("d.bin"), &VerifyOptions::default(), &()).unwrap();
        assert!(found.n_problems > 0, "at {at}");
        assert!(all(folder.path(), "d.bin", &Options::default()).is_ok());
    }
}
