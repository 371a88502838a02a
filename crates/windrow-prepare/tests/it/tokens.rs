//! What the options of `tokenize` and `index` do.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use windrow_core::format::Options;
use windrow_core::format::write::{WriteFormat, writer};
use windrow_core::manifest::{FileRow, Listing, Manifest};
use windrow_core::store::{Local, Store};
use windrow_core::{DType, Kind};
use windrow_formats::FORMATS;
use windrow_prepare::{
    IndexOptions, Remainder, TokenizeOptions, VerifyOptions, dummy, index, tokenize, verify,
};

use crate::disk::{open, open_with};
use crate::encoders::{Ord, WordsInt};
use crate::tree::{folder_of, tree};
use crate::writing::{self, To, Writing, samples};

const ABC: &[u8] = b"{\"text\":\"abc\"}\n{\"text\":\"de\"}";

fn packed(size: u64) -> TokenizeOptions {
    TokenizeOptions {
        sample_size: Some(size),
        eos: Some(0),
        dtype: Some(DType::U8),
        fsync: false,
        ..samples()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

#[test]
fn the_last_sample_can_be_filled() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    for (remainder, want, dropped, padded) in
        [(Remainder::Drop, b"abc\0".as_slice(), 3, 0), (Remainder::Pad(7), b"abc\0de\0\x07", 0, 1)]
    {
        let out = tempfile::tempdir().unwrap();
        let options = TokenizeOptions { remainder, ..packed(4) };
        let report = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
        assert_eq!(tree(out.path())["tokenized-samples/a-tokenized-samples.bin"], want);
        assert_eq!((report.dropped_tokens, report.padded_tokens), (dropped, padded));
        assert_eq!((report.documents, report.files), (2, 1));
        assert_eq!(report.tokens, want.len() as u64);
    }
}

#[test]
fn documents_of_their_own_length_end_as_asked() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    for (append_eos, want) in [(false, b"abcde".as_slice()), (true, b"abc\0de\0")] {
        let out = tempfile::tempdir().unwrap();
        let options = TokenizeOptions { sample_size: None, append_eos, ..packed(1) };
        let report = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
        assert_eq!(tree(out.path())["tokenized-samples/a-tokenized-samples.bin"], want);
        assert_eq!(report.records, 2);
    }
}

#[test]
fn a_stream_is_one_file_of_all_documents() {
    let input = folder_of(&[("a.jsonl", ABC), ("b.jsonl", ABC), ("c.jsonl", b"")]);
    let out = tempfile::tempdir().unwrap();
    let options = TokenizeOptions { to: To::Tokens.format(), sample_size: None, ..packed(1) };
    tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
    let found = tree(out.path());
    assert_eq!(found["tokens.bin"], b"abc\0de\0abc\0de\0");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["tokens.bin", "windrow.json", "windrow.sums"]);
    let side: serde_json::Value = serde_json::from_slice(&found["windrow.json"]).unwrap();
    assert_eq!((&side["format"], &side["files"][0]["size"]), (&"tokens".into(), &14.into()));
}

#[test]
fn an_option_that_would_change_nothing_is_refused() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    let out = tempfile::tempdir().unwrap();
    for (to, option, value) in [
        (To::Tokens, "samples_folder", json!("other")),
        (To::Tokens, "postfix", json!("other")),
        (To::Shards, "index_folder", json!("other")),
        (To::Megatron, "block_sums", json!(false)),
        (To::Forager, "max_shard_bytes", json!(1 << 20)),
    ] {
        let own = Map::from_iter([(option.to_string(), value)]);
        let error = writer(FORMATS, to.name(), &own).err().unwrap();
        assert_eq!((error.kind(), error.place().field.as_deref()), (Kind::Config, Some(option)));
    }
    let stream = TokenizeOptions { to: To::Tokens.format(), sample_size: None, ..packed(1) };
    let options = TokenizeOptions { remainder: Remainder::Pad(0), ..stream };
    let error = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap_err();
    assert_eq!((error.kind(), error.place().field.as_deref()), (Kind::Config, Some("remainder")));
    assert!(tree(out.path()).is_empty());
}

#[test]
fn token_ids_are_not_normalised() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    let out = tempfile::tempdir().unwrap();
    let to = To::Shards.with(json!({ "normalize": true }));
    let options = TokenizeOptions { to, sample_size: None, ..packed(1) };
    let error = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.message().contains("normalised"), "{error}");
    assert!(tree(out.path()).is_empty());
}

#[test]
fn the_dtype_follows_the_vocabulary() {
    let input = folder_of(&[("a.jsonl", b"{\"text\":\"1 2\"}")]);
    let out = tempfile::tempdir().unwrap();
    let options = TokenizeOptions { dtype: None, ..packed(1) };
    let error = tokenize(FORMATS, &[input.path().into()], out.path(), &WordsInt, &options, &()).unwrap_err();
    assert_eq!((error.kind(), error.place().field.as_deref()), (Kind::Config, Some("dtype")));
    // Unicode needs more than 16 bits.
    tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
    assert_eq!(tree(out.path())["tokenized-samples/a-tokenized-samples.bin"].len(), 4 * 4);
}

#[test]
fn compressed_inputs_give_the_same_tokens() {
    let plain = folder_of(&[("a.jsonl", ABC), ("b.jsonl", ABC)]);
    let two_members = [gzip(&ABC[..5]), gzip(&ABC[5..])].concat();
    let zstd = zstd::bulk::compress(ABC, 3).unwrap();
    let packed_in = folder_of(&[("a.jsonl.gz", &two_members), ("b.jsonl.zst", &zstd)]);
    let mut found = Vec::new();
    for input in [&plain, &packed_in] {
        let out = tempfile::tempdir().unwrap();
        tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &packed(2), &()).unwrap();
        let mut files = tree(out.path());
        files.remove("index/windrow.json");
        found.push(files);
    }
    assert_eq!(found[0], found[1]);
}

#[test]
fn a_cut_compressed_input_is_an_error_naming_it() {
    let zstd = zstd::bulk::compress(&ABC.repeat(100), 3).unwrap();
    let gz = gzip(&ABC.repeat(100));
    for (name, bytes) in [
        ("a.jsonl.gz", &gz[..gz.len() - 5]),
        ("a.jsonl.zst", &zstd[..zstd.len() - 5]),
        ("a.jsonl.gz", b"not gzip"),
        ("a.jsonl.gz", b""),
    ] {
        let input = folder_of(&[(name, bytes)]);
        let out = tempfile::tempdir().unwrap();
        let error = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &packed(2), &()).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(error.place().file.as_ref().unwrap().ends_with(name));
        assert_eq!(tree(out.path()).len(), 0);
        assert_eq!(
            index(FORMATS, input.path(), &IndexOptions::default(), &()).unwrap_err().kind(),
            Kind::Corrupt
        );
        assert_eq!(tree(input.path()).len(), 1);
    }
}

#[test]
fn an_index_expands_compressed_inputs_once() {
    let base = folder_of(&[("x/a.jsonl.gz", &gzip(ABC)), ("b.jsonl", b"1\n"), ("c.jsonl", b"")]);
    let options = IndexOptions { checksum: true, ..IndexOptions::default() };
    let report = index(FORMATS, base.path(), &options, &()).unwrap();
    assert_eq!((report.files, report.records), (2, 3));
    let found = tree(base.path());
    assert_eq!(found["index/file_location.txt"], b"b.jsonl\nindex/expanded/x/a.jsonl\n");
    assert_eq!(found["index/expanded/x/a.jsonl"], ABC);
    let side: serde_json::Value = serde_json::from_slice(&found["index/windrow.json"]).unwrap();
    assert_eq!(side["files"][1]["name"], "index/expanded/x/a.jsonl");
    assert_eq!(side["files"][0]["xxh3"].as_str().unwrap().len(), 16);
    assert_eq!(side["inputs"].as_array().unwrap().len(), 3);
    assert!(index(FORMATS, base.path(), &options, &()).unwrap().unchanged);
}

#[test]
fn a_second_run_finds_nothing_to_do_or_refuses() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    let out = tempfile::tempdir().unwrap();
    let inputs = [PathBuf::from(input.path())];
    let first = tokenize(FORMATS, &inputs, out.path(), &Ord, &packed(2), &()).unwrap();
    let before = tree(out.path());
    let again = TokenizeOptions { num_threads: Some(1), ..packed(2) };
    let second = tokenize(FORMATS, &inputs, out.path(), &Ord, &again, &()).unwrap();
    assert!(second.unchanged);
    assert_eq!((second.tokens, second.records), (first.tokens, first.records));

    let error = tokenize(FORMATS, &inputs, out.path(), &Ord, &packed(3), &()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    assert!(error.hint_text().unwrap().contains(".overwrite(true)"));
    assert_eq!(tree(out.path()), before);

    let overwrite = TokenizeOptions { overwrite: true, ..packed(3) };
    assert!(!tokenize(FORMATS, &inputs, out.path(), &Ord, &overwrite, &()).unwrap().unchanged);
    assert_eq!(tree(out.path())["tokenized-samples/a-tokenized-samples.bin"], b"abc\0de");

    fs::write(input.path().join("b.jsonl"), ABC).unwrap();
    assert_eq!(
        tokenize(FORMATS, &inputs, out.path(), &Ord, &packed(3), &()).unwrap_err().kind(),
        Kind::Exists
    );
}

#[test]
fn an_index_of_other_inputs_is_replaced_only_when_asked() {
    let base = folder_of(&[("a.jsonl", ABC)]);
    let keep = IndexOptions::default();
    let overwrite = IndexOptions { overwrite: true, ..IndexOptions::default() };
    index(FORMATS, base.path(), &keep, &()).unwrap();
    fs::write(base.path().join("a.jsonl"), b"{}\n{}\n{}\n").unwrap();
    let before = tree(base.path());
    assert_eq!(index(FORMATS, base.path(), &keep, &()).unwrap_err().kind(), Kind::Exists);
    assert_eq!(tree(base.path()), before);
    assert_eq!(index(FORMATS, base.path(), &overwrite, &()).unwrap().records, 3);
    assert_eq!(tree(base.path()).len(), 4);

    // A folder of that name that is no index stays, whatever is asked.
    let base = folder_of(&[("a.jsonl", ABC), ("index/thesis.txt", b"years of work")]);
    assert_eq!(index(FORMATS, base.path(), &overwrite, &()).unwrap_err().kind(), Kind::Exists);
    assert_eq!(tree(base.path()).len(), 2);
}

#[test]
fn nothing_of_an_output_that_is_replaced_stays_beside_the_new_one() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    let layouts = [
        ("tokens", json!({})),
        ("tokens", json!({"block_sums": false})),
        ("llmc", json!({})),
        ("megatron", json!({})),
    ];
    let make = |(to, own): &(&str, Value), out: &Path, overwrite| {
        let to = Arc::from(writer(FORMATS, to, own.as_object().unwrap()).unwrap());
        let options =
            TokenizeOptions { to, dtype: Some(DType::U16), sample_size: None, overwrite, ..packed(1) };
        tokenize(FORMATS, &[input.path().into()], out, &Ord, &options, &())
    };
    for old in &layouts {
        for new in &layouts[..3] {
            let [alone, out] = [(); 2].map(|()| tempfile::tempdir().unwrap());
            make(new, alone.path(), false).unwrap();
            make(old, out.path(), false).unwrap();
            let before = tree(out.path());
            if old != new {
                assert_eq!(make(new, out.path(), false).unwrap_err().kind(), Kind::Exists);
                assert_eq!(tree(out.path()), before);
            }
            if old.0 == "megatron" {
                // Its index says more than the stream that would take its data's place.
                assert_eq!(make(new, out.path(), true).unwrap_err().kind(), Kind::Exists);
                assert_eq!(tree(out.path()), before);
                continue;
            }
            make(new, out.path(), true).unwrap();
            assert_eq!(tree(out.path()), tree(alone.path()), "{old:?}, then {new:?}");
        }
    }
    // Files that describe a stream which is gone, and another data set's manifest.
    let out = folder_of(&[("tokens.bin.windrow.sums", b"of old")]);
    assert_eq!(make(&layouts[0], out.path(), false).unwrap_err().kind(), Kind::Exists);
    make(&layouts[0], out.path(), true).unwrap();
    assert!(!out.path().join("tokens.bin.windrow.sums").exists());
    let mut other = Manifest::new("mds");
    other.files.push(FileRow { name: "shard.00000.mds".to_string(), ..FileRow::default() });
    let later = other.to_text().replace("\"version\": 1", "\"version\": 2");
    for (name, text) in [
        ("windrow.json", other.to_text().as_str()),
        ("windrow.json", later.as_str()),
        ("windrow.json", "{"),
        // Shards have no manifest.
        ("windrow.sums", "of shards"),
        ("tokens.idx", "of a pair"),
    ] {
        let out = folder_of(&[(name, text.as_bytes())]);
        let before = tree(out.path());
        for layout in &layouts[..3] {
            let error = make(layout, out.path(), true).unwrap_err();
            assert!(matches!(error.kind(), Kind::Exists | Kind::Unsupported), "{name}: {layout:?}: {error}");
            assert_eq!(tree(out.path()), before);
        }
    }
}

#[test]
fn what_describes_a_stream_goes_with_it() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    let options = TokenizeOptions { to: To::Tokens.format(), sample_size: None, ..packed(1) };
    let overwrite = Writing { overwrite: true, ..Writing::new(To::Tokens) };
    let is_sound = |out: &Path| {
        let report = verify(FORMATS, out, &VerifyOptions::default(), &()).unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
    };
    // As `tokenize` leaves it, and as somebody listed it.
    for is_listed in [false, true] {
        let out = tempfile::tempdir().unwrap();
        tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
        let stream = out.path().join("tokens.bin");
        if is_listed {
            let names = ["windrow.json", "windrow.sums"];
            names.iter().for_each(|name| fs::remove_file(out.path().join(name)).unwrap());
            let entries = Local::new(out.path()).walk("").unwrap();
            let listing = Listing::new("tokens", None, "", &entries).into_manifest();
            fs::write(out.path().join("windrow.json"), listing.to_text()).unwrap();
        }
        let other = folder_of(&[("other.bin", b"\x01\x00\x02\x00")]);
        let as_ids = Options { dtype: Some(DType::U16), ..Options::default() };
        let source = open_with(&other.path().join("other.bin"), &as_ids).unwrap();
        writing::convert(source.as_ref(), &stream, &overwrite, &()).unwrap();
        assert!(!out.path().join("windrow.json").exists());
        is_sound(&stream);
        // And the other way round.
        let again = TokenizeOptions { overwrite: true, ..options.clone() };
        tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &again, &()).unwrap();
        let names: Vec<_> = tree(out.path()).into_keys().collect();
        assert_eq!(names, ["tokens.bin", "windrow.json", "windrow.sums"]);
        is_sound(out.path());
        dummy(&windrow_formats::Tokens, &stream, 9, 9, 0, true).unwrap();
        is_sound(&stream);
        assert!(!out.path().join("windrow.json").exists());
    }
}

#[test]
fn an_output_may_be_called_as_a_file_of_a_writer_is() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    for name in ["aside", "out.aside", "old-out"] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join(name);
        let to = To::Megatron.format();
        let options = TokenizeOptions { to, sample_size: None, ..packed(1) };
        for overwrite in [false, true] {
            let options = TokenizeOptions { overwrite, ..options.clone() };
            tokenize(FORMATS, &[input.path().into()], &out, &Ord, &options, &()).unwrap();
            assert_eq!(open(&out).unwrap().len(), 2, "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{name}");
    }
}

#[test]
fn what_windrow_did_not_write_is_not_replaced() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    let overwrite = |layout: To| TokenizeOptions {
        overwrite: true,
        to: layout.format(),
        sample_size: (layout == To::Forager).then_some(2),
        ..packed(2)
    };
    for (name, layout) in [
        ("tokenized-samples/notes.txt", To::Forager),
        // Named as the files of the format are; nothing says that they are of it.
        ("tokenized-samples/corpus.bin", To::Forager),
        ("tokens.bin", To::Tokens),
        ("tokens.bin", To::Megatron),
        ("index/thesis.html", To::Forager),
        ("tokens.bin/thesis.txt", To::Tokens),
        ("windrow.json/thesis.txt", To::Tokens),
        // Another data set, which would be read instead.
        ("windrow.json", To::Forager),
        ("index/sample_locations.bin", To::Tokens),
    ] {
        let out = folder_of(&[(name, b"years of work")]);
        let options = overwrite(layout);
        let error = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap_err();
        assert_eq!(error.kind(), Kind::Exists, "{name}");
        assert_eq!(tree(out.path()).into_keys().collect::<Vec<_>>(), [name]);
    }
    let llmc: Arc<dyn WriteFormat> = Arc::from(writer(FORMATS, "llmc", &Map::new()).unwrap());
    let out = folder_of(&[("tokens.bin", b"years of work")]);
    let options = TokenizeOptions { to: llmc, dtype: Some(DType::U16), ..overwrite(To::Tokens) };
    let error = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists, "{error}");
    // Beside samples that windrow wrote, too; one that data-forager wrote has a list, and files that hold no sample.
    let out = tempfile::tempdir().unwrap();
    let again = || tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &overwrite(To::Forager), &());
    again().unwrap();
    fs::remove_file(out.path().join("index/windrow.json")).unwrap();
    fs::write(out.path().join("tokenized-samples/empty.bin"), b"").unwrap();
    again().unwrap();
    assert!(!out.path().join("tokenized-samples/empty.bin").exists());
    fs::write(out.path().join("tokenized-samples/corpus.bin"), b"years of work").unwrap();
    assert_eq!(again().unwrap_err().kind(), Kind::Exists);
    assert!(out.path().join("tokenized-samples/corpus.bin").exists());
    let out = folder_of(&[("d.bin/thesis.txt", b"years of work")]);
    let error = dummy(&windrow_formats::Tokens, &out.path().join("d.bin"), 9, 9, 0, true).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    assert_eq!(tree(out.path()).len(), 1);
}

#[test]
fn what_an_index_expanded_is_not_read_beside_what_is_compressed() {
    let base = folder_of(&[("code/c.jsonl", ABC), ("web/w.jsonl.gz", &gzip(ABC)), ("index/d.jsonl", ABC)]);
    let named = |index_folder: &str| IndexOptions { index_folder: index_folder.into(), ..Default::default() };
    assert_eq!(index(FORMATS, &base.path().join("web"), &named("index"), &()).unwrap().records, 2);
    // Whatever the index is called and wherever it is; a folder called index that is not an index is read.
    for name in ["lines", "again"] {
        assert_eq!(index(FORMATS, base.path(), &named(name), &()).unwrap().records, 6);
    }
    let read = || {
        let out = tempfile::tempdir().unwrap();
        let report = tokenize(FORMATS, &[base.path().into()], out.path(), &Ord, &packed(2), &()).unwrap();
        assert_eq!((report.documents, report.files), (6, 3));
    };
    read();
    // Also when nothing but the copies is left of an index, and when it is made again in their place.
    for folder in ["web/index", "lines", "again"] {
        for name in ["file_location.txt", "sample_locations.bin", "windrow.json"] {
            fs::remove_file(base.path().join(folder).join(name)).unwrap();
        }
    }
    read();
    let again = IndexOptions { overwrite: true, ..named("lines") };
    assert_eq!(index(FORMATS, base.path(), &again, &()).unwrap().records, 6);
    let listed = fs::read_to_string(base.path().join("lines/file_location.txt")).unwrap();
    assert_eq!(listed, "code/c.jsonl\nindex/d.jsonl\nlines/expanded/web/w.jsonl\n");
    // Without what it was expanded from, an old copy is not an input of the index that takes its place.
    fs::write(base.path().join("lines/expanded/old.jsonl"), ABC).unwrap();
    fs::remove_file(base.path().join("lines/sample_locations.bin")).unwrap();
    assert_eq!(index(FORMATS, base.path(), &again, &()).unwrap().records, 6);
}

#[test]
fn impossible_options_are_refused_before_anything_is_read() {
    let input = folder_of(&[("a.jsonl", ABC)]);
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("new");
    let refuse = |options: TokenizeOptions| {
        let error = tokenize(FORMATS, &[input.path().into()], &out, &Ord, &options, &()).unwrap_err();
        assert_eq!(error.kind(), Kind::Config, "{error}");
        assert!(!out.exists());
    };
    refuse(packed(0));
    refuse(packed(u64::MAX));
    refuse(TokenizeOptions { num_threads: Some(0), ..packed(2) });
    refuse(TokenizeOptions { num_threads: Some(usize::MAX), ..packed(2) });
    refuse(TokenizeOptions { eos: Some(256), ..packed(2) });
    refuse(TokenizeOptions { dtype: Some(DType::F32), ..packed(2) });
    refuse(TokenizeOptions { remainder: Remainder::Pad(-1), ..packed(2) });
    for own in [json!({ "index_folder": "../x" }), json!({ "index_folder": "a", "samples_folder": "a" })] {
        let error = writer(FORMATS, To::Forager.name(), own.as_object().unwrap()).err().unwrap();
        assert_eq!(error.kind(), Kind::Config, "{error}");
    }
    refuse(TokenizeOptions { to: To::Tokens.format(), ..packed(2) });
    refuse(TokenizeOptions { sample_size: None, append_eos: true, eos: None, ..packed(2) });
}

#[test]
fn nothing_to_read_is_an_error() {
    let empty = folder_of(&[("x.txt", b"x"), (".hidden.jsonl", b"{}")]);
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("new");
    for input in [empty.path().to_path_buf(), empty.path().join("missing.jsonl")] {
        let error = tokenize(FORMATS, std::slice::from_ref(&input), &out, &Ord, &packed(2), &()).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound, "{error}");
        assert_eq!(index(FORMATS, &input, &IndexOptions::default(), &()).unwrap_err().kind(), Kind::NotFound);
        assert!(!out.exists());
    }
    let options = TokenizeOptions { allow_empty: true, ..packed(2) };
    assert_eq!(tokenize(FORMATS, &[empty.path().into()], &out, &Ord, &options, &()).unwrap().records, 0);
}

#[test]
fn a_layout_that_cannot_be_opened_without_ids_is_refused() {
    let input = folder_of(&[("a.jsonl", b"")]);
    for layout in [To::Tokens, To::Shards, To::Megatron] {
        let out = tempfile::tempdir().unwrap();
        let options =
            TokenizeOptions { to: layout.format(), sample_size: None, allow_empty: true, ..packed(2) };
        let error = tokenize(FORMATS, &[input.path().into()], &out.path().join("out"), &Ord, &options, &())
            .unwrap_err();
        assert!(error.message().contains("no token ID to write"), "{error}");
        assert_eq!(tree(out.path()).len(), 0);
    }
}

#[test]
fn every_name_of_json_lines_is_read() {
    let input =
        folder_of(&[("a.jsonl", ABC), ("b.ndjson", ABC), ("c.JSONL", ABC), ("d.ndjson.gz", &gzip(ABC))]);
    let out = tempfile::tempdir().unwrap();
    let report = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &packed(1), &()).unwrap();
    assert_eq!((report.documents, report.records), (8, 4 * (3 + 2 + 2)));
    assert_eq!(index(FORMATS, input.path(), &IndexOptions::default(), &()).unwrap().records, 8);
}

#[test]
fn one_file_by_two_ways_is_refused_and_no_output_is_hidden() {
    let folder = folder_of(&[("d/a.jsonl", ABC), ("e/b.jsonl", ABC)]);
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(at("d"), at("link")).unwrap();
    for (one, other) in
        [("d", "d/a.jsonl"), ("d", "link"), ("link/a.jsonl", "d/a.jsonl"), ("d", "e/../d"), (".", "d")]
    {
        let out = tempfile::tempdir().unwrap();
        let error = tokenize(FORMATS, &[at(one), at(other)], out.path(), &Ord, &packed(1), &()).unwrap_err();
        assert!(
            error.kind() == Kind::Config && error.hint_text().is_some_and(|h| h.contains("give it once")),
            "{error}"
        );
        assert_eq!(tree(out.path()).len(), 0);
    }
    fs::copy(at("d/a.jsonl"), at("e/a.jsonl")).unwrap();
    let out = tempfile::tempdir().unwrap();
    let inputs = [at("e/../d/a.jsonl"), at("d/../e/a.jsonl"), at("e/b.jsonl")];
    tokenize(FORMATS, &inputs, out.path(), &Ord, &packed(1), &()).unwrap();
    let names: Vec<String> =
        tree(out.path()).into_keys().filter(|name| name.ends_with("samples.bin")).collect();
    assert!(names.iter().all(|name| !name.contains("/.")), "{names:?}");
    assert_eq!(names.len(), 3);
}

#[test]
fn an_index_of_a_compressed_file_that_was_replaced_is_stale() {
    let input = folder_of(&[("a.jsonl.gz", &gzip(ABC)), ("b.jsonl", ABC)]);
    index(FORMATS, input.path(), &IndexOptions::default(), &()).unwrap();
    assert_eq!(open(input.path()).unwrap().len(), 4);
    fs::write(input.path().join("a.jsonl.gz"), gzip(b"{\"text\":\"another\"}\n")).unwrap();
    let error = open(input.path()).map(drop).unwrap_err();
    assert_eq!(
        (error.kind(), error.place().file.as_deref().map(|f| f.ends_with("a.jsonl.gz"))),
        (Kind::Stale, Some(true))
    );
    let findings = verify(FORMATS, input.path(), &VerifyOptions::default(), &()).unwrap();
    assert!(findings.problems.iter().any(|p| p.file.ends_with("a.jsonl.gz")), "{findings:?}");
    // Its copy is all that is read.
    fs::remove_file(input.path().join("a.jsonl.gz")).unwrap();
    assert_eq!(open(input.path()).unwrap().len(), 4);
}
