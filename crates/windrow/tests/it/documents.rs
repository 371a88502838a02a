//! Documents of text into layouts with a record each: the ids of the stream, cut where documents end; the same bytes after
//! every stop; the tokenizer locked beside them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use windrow::dev::manifest::Manifest;
use windrow::dev::source::{Extras, Schema};
use windrow::format::Options;
use windrow::format::{WriteFormat, WriteOptions};
use windrow::prepare::{
    Encode, Encoded, LinePlace, Report, TokenizeOptions, VerifyOptions, Writer, text_of, tokenize,
};
use windrow::text::Tokenizer;
use windrow::{DType, Error, Kind, Result, TextEncoder, open, open_with};
use windrow::{Decode, Element, Values};

use crate::ids;

const LINES: u64 = 40;
const EOS: i64 = 9;

/// A format of documents, by the name its folder gets here.
#[derive(Clone, Debug)]
struct To(Arc<dyn WriteFormat>);

fn to(name: &str, own: &Value) -> To {
    To(windrow::writer(name, own.as_object().unwrap()).unwrap())
}

fn layouts() -> [(&'static str, To); 5] {
    let zarr = |zarr_format: u64, chunks_per_shard: Option<u64>| {
        to(
            "flat-tokens",
            &json!({
                "zarr_format": zarr_format,
                "tokens_chunk_size": 50,
                "seq_starts_chunk_size": 20,
                "chunks_per_shard": chunks_per_shard,
            }),
        )
    };
    [
        ("megatron", to("megatron", &json!({}))),
        // Several shards, of few bytes.
        ("shards", to("shards", &json!({ "max_shard_bytes": 90 }))),
        ("train", zarr(2, None)),
        ("v3", zarr(3, None)),
        ("sharded", zarr(3, Some(2))),
    ]
}

impl To {
    fn run(
        &self,
        input: &Path,
        out: &Path,
        encode: &dyn Encode,
        options: &TokenizeOptions,
    ) -> Result<Report> {
        let options = TokenizeOptions { to: self.0.clone(), ..options.clone() };
        tokenize(&[input.to_path_buf()], out, encode, &options, &())
    }
}

fn options() -> TokenizeOptions {
    TokenizeOptions {
        eos: Some(EOS),
        append_eos: true,
        fsync: false,
        num_threads: Some(1),
        checkpoint_bytes: 60,
        ..TokenizeOptions::new(to("forager", &json!({})).0)
    }
}

/// One id per character; may fail at a line.
struct Characters(Option<(&'static str, u64, Kind)>);

impl Encode for Characters {
    fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        if let Some((_, _, kind)) = self.0.filter(|at| place.file.ends_with(at.0) && place.line == at.1) {
            return Err(Error::new(kind, "the encoder fails here"));
        }
        out.ids.extend(text_of(line, "text", place, &mut out.room)?.chars().map(|c| i64::from(u32::from(c))));
        Ok(())
    }

    fn describe(&self) -> String {
        "characters".to_string()
    }

    fn vocab_size(&self) -> Option<u64> {
        Some(0x2000)
    }
}

/// Two inputs, the second compressed; some documents are empty.
fn input() -> (TempDir, Vec<Vec<i64>>) {
    let folder = tempfile::tempdir().unwrap();
    let mut documents = Vec::new();
    for (name, first) in [("a.jsonl", 0), ("b.jsonl.zst", LINES)] {
        let mut text = String::new();
        for i in first..first + LINES {
            let document = "wörd ".repeat((i % 5) as usize);
            text += &format!("{{\"text\":\"{document}\"}}\n");
            documents.push(document.chars().map(|c| i64::from(u32::from(c))).collect());
        }
        let bytes =
            if first == 0 { text.into_bytes() } else { zstd::bulk::compress(text.as_bytes(), 3).unwrap() };
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    (folder, documents)
}

/// Every file below a folder, hidden ones too.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut below) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(path) = below.pop() {
        for item in fs::read_dir(&path).unwrap() {
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

fn records(path: &Path) -> Vec<Vec<i64>> {
    ids::records(&open(path).unwrap())
}

#[test]
fn every_layout_holds_the_documents_and_the_stream_of_the_tokens_layout() {
    let (input, documents) = input();
    let folder = tempfile::tempdir().unwrap();
    let stream = TokenizeOptions { to: to("tokens", &json!({})).0, ..options() };
    let inputs = [input.path().to_path_buf()];
    tokenize(&inputs, &folder.path().join("stream"), &Characters(None), &stream, &()).unwrap();
    let stream = records(&folder.path().join("stream")).concat();
    for (name, to) in layouts() {
        let out = folder.path().join(name);
        let report = to.run(input.path(), &out, &Characters(None), &options()).unwrap();
        assert_eq!(
            (report.documents, report.records, report.tokens),
            (80, 80, stream.len() as u64),
            "{name}"
        );
        let found = records(&out);
        assert_eq!(found.concat(), stream, "{name}");
        let ended: Vec<Vec<i64>> = documents.iter().map(|ids| [&ids[..], &[EOS]].concat()).collect();
        assert_eq!(found, ended, "{name}");
        let plain = TokenizeOptions { append_eos: false, overwrite: true, ..options() };
        to.run(input.path(), &out, &Characters(None), &plain).unwrap();
        assert_eq!(records(&out), documents, "{name}");
        let findings = windrow::verify(&out, &VerifyOptions::default(), &()).unwrap();
        assert_eq!(findings.problems, [], "{name}");
        let info = open(&out).unwrap().info().unwrap();
        assert_eq!((info.records, info.eos, info.vocab_size.is_some()), (80, Some(EOS), true), "{name}");
    }
}

#[test]
fn every_stop_and_rerun_gives_the_same_bytes() {
    let (input, _) = input();
    for (name, to) in layouts() {
        let unbroken = tempfile::tempdir().unwrap();
        let once = TokenizeOptions { checkpoint_bytes: 64 << 20, ..options() };
        to.run(input.path(), &unbroken.path().join(name), &Characters(None), &once).unwrap();
        let want = tree(unbroken.path());
        for (file, kind) in
            [("a.jsonl", Kind::Interrupted), ("b.jsonl.zst", Kind::Interrupted), ("b.jsonl.zst", Kind::Io)]
        {
            for line in (0..LINES).step_by(6) {
                let folder = tempfile::tempdir().unwrap();
                let out = folder.path().join(name);
                let fails = Characters(Some((file, line, kind)));
                let error = to.run(input.path(), &out, &fails, &options()).unwrap_err();
                assert_eq!((error.kind(), error.place().record), (kind, Some(line)));
                assert!(!out.exists(), "{name}: something is to be seen");
                let report = to.run(input.path(), &out, &Characters(None), &options()).unwrap();
                assert!(report.resumed_bytes > 0 || (line < 12 && file == "a.jsonl"), "{name} {file} {line}");
                assert!(tree(folder.path()) == want, "{name} {file} {line}");
            }
        }
        // Stopped again and again.
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join(name);
        for line in (0..LINES).step_by(5) {
            let fails = Characters(Some(("b.jsonl.zst", line, Kind::Interrupted)));
            to.run(input.path(), &out, &fails, &options()).unwrap_err();
        }
        to.run(input.path(), &out, &Characters(None), &options()).unwrap();
        assert!(tree(folder.path()) == want, "{name}");
    }
}

#[test]
fn damaged_restart_points_start_over() {
    let (input, _) = input();
    for (name, to) in layouts() {
        let unbroken = tempfile::tempdir().unwrap();
        to.run(input.path(), &unbroken.path().join(name), &Characters(None), &options()).unwrap();
        let want = tree(unbroken.path());
        let stopped = || {
            let folder = tempfile::tempdir().unwrap();
            let fails = Characters(Some(("b.jsonl.zst", 20, Kind::Interrupted)));
            to.run(input.path(), &folder.path().join(name), &fails, &options()).unwrap_err();
            folder
        };
        for left in tree(stopped().path()).into_keys() {
            for cut in [false, true] {
                let folder = stopped();
                let path = folder.path().join(&left);
                if cut {
                    fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap()
                } else {
                    fs::remove_file(&path).unwrap()
                }
                // A chunk that was emptied is not looked at again until it is read: only losing it is seen.
                if cut && (left.contains("encoded_tokens/") || left.contains("seq_starts/")) {
                    continue;
                }
                to.run(input.path(), &folder.path().join(name), &Characters(None), &options()).unwrap();
                assert!(tree(folder.path()) == want, "{name}: {left} {cut}");
            }
        }
    }
}

#[test]
fn the_same_again_has_nothing_to_do_and_anything_else_is_refused() {
    let (input, _) = input();
    for (name, to) in layouts() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join(name);
        // An empty folder does not count.
        fs::create_dir(&out).unwrap();
        let first = to.run(input.path(), &out, &Characters(None), &options()).unwrap();
        let before = tree(folder.path());
        let again = to.run(input.path(), &out, &Characters(None), &options()).unwrap();
        assert_eq!((again.unchanged, again.tokens, again.records), (true, first.tokens, first.records));
        let other = TokenizeOptions { append_eos: false, ..options() };
        let error = to.run(input.path(), &out, &Characters(None), &other).unwrap_err();
        assert_eq!(error.kind(), Kind::Exists, "{name}");
        assert!(tree(folder.path()) == before, "{name}");
        let overwrite = TokenizeOptions { overwrite: true, ..other };
        to.run(input.path(), &out, &Characters(None), &overwrite).unwrap();
        assert!(tree(folder.path()) != before, "{name}");
        let foreign = folder.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("a.txt"), "mine").unwrap();
        let error = to.run(input.path(), &foreign, &Characters(None), &overwrite).unwrap_err();
        assert_eq!(error.kind(), Kind::Exists, "{name}");
        assert_eq!(fs::read(foreign.join("a.txt")).unwrap(), b"mine");
    }
}

#[test]
fn the_tokenizer_is_locked_beside_the_ids() {
    let (input, _) = input();
    let encoder = |name: &str| TextEncoder::new(Tokenizer::load(name).unwrap(), "text", "auto").unwrap();
    let [bytes, other] = ["bytes", "gpt2"].map(encoder);
    for (name, to) in layouts() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join(name);
        to.run(input.path(), &out, &bytes, &options()).unwrap();
        let with = |tokenizer: &str| {
            open_with(&out, &Options { tokenizer: Some(tokenizer.to_string()), ..Options::default() })
        };
        assert_eq!(with("bytes").unwrap().info().unwrap().tokenizer.as_deref(), Some("bytes"), "{name}");
        assert_eq!(with("gpt2").err().unwrap().kind(), Kind::Mismatch, "{name}");
        let error = to.run(input.path(), &out, &other, &options()).unwrap_err();
        assert_eq!(error.kind(), Kind::Exists, "{name}");
    }
}

#[test]
fn ids_that_a_layout_cannot_hold_are_refused_before_anything_is_seen() {
    struct Large;
    impl Encode for Large {
        fn encode(&self, _: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
            out.ids.push(if place.line == 1 { 1 << 31 } else { (1 << 31) - 1 });
            Ok(())
        }

        fn describe(&self) -> String {
            "large".to_string()
        }
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.jsonl"), "{}\n{}\n").unwrap();
    let options = TokenizeOptions { eos: None, append_eos: false, ..options() };
    for (name, to) in layouts() {
        let dtype = if name == "megatron" { DType::I32 } else { DType::U32 };
        let options = TokenizeOptions { dtype: Some(dtype), ..options.clone() };
        let out = folder.path().join(name);
        let ran = to.run(&folder.path().join("a.jsonl"), &out, &Large, &options);
        if name == "shards" {
            assert_eq!(records(&out), [[(1 << 31) - 1], [1 << 31]]);
            continue;
        }
        let error = ran.unwrap_err();
        assert_eq!((error.kind(), error.place().record), (Kind::Config, Some(1)), "{name}: {error}");
        assert!(!out.exists());
        let wrong = TokenizeOptions { dtype: Some(DType::U64), ..options };
        let error = to.run(&folder.path().join("a.jsonl"), &out, &Large, &wrong).unwrap_err();
        assert_eq!(error.place().field.as_deref(), Some("dtype"), "{name}: {error}");
    }
}

#[test]
fn documents_are_packed_into_samples_of_any_format() {
    let (input, _) = input();
    let folder = tempfile::tempdir().unwrap();
    let run = |to: &To, name: &str, sample_size| {
        let out = folder.path().join(name);
        let sampled = TokenizeOptions { sample_size, ..options() };
        to.run(input.path(), &out, &Characters(None), &sampled).unwrap();
        records(&out)
    };
    let samples = run(&to("forager", &json!({})), "samples", Some(8));
    assert!(samples.len() > 10 && samples.iter().all(|sample| sample.len() == 8));
    for (name, to) in layouts() {
        assert_eq!(run(&to, name, Some(8)), samples, "{name}");
    }
    let stream = to("tokens", &json!({}));
    let sampled = TokenizeOptions { sample_size: Some(8), ..options() };
    let error = stream.run(input.path(), &folder.path().join("s"), &Characters(None), &sampled).unwrap_err();
    assert_eq!(error.place().field.as_deref(), Some("sample_size"), "{error}");
}

#[test]
fn a_later_append_leaves_no_claim_about_what_it_added() {
    let (input, documents) = input();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("train");
    layouts()[2].1.run(input.path(), &out, &Characters(None), &options()).unwrap();
    let side: Manifest = serde_json::from_slice(&fs::read(out.join("windrow.json")).unwrap()).unwrap();
    assert_eq!((side.format.as_str(), side.records), ("flat-tokens", Some(80)));
    assert!(folder.path().join(".zgroup").exists(), "the group of the splits");
    let append = WriteOptions { append: true, ..WriteOptions::default() };
    let schema = Schema::numbers(Element::little(DType::U32));
    let format = to("flat-tokens", &json!({})).0;
    let mut writer = Writer::create(&out, &schema, format.as_ref(), &append).unwrap();
    let bytes = [1, 0, 0, 0, 2, 0, 0, 0];
    let values = Values { bytes: &bytes, element: schema.element, channels: 1, decode: Decode::Plain };
    writer.add(&values, &Extras::new()).unwrap();
    writer.finish().unwrap();
    let side: Manifest = serde_json::from_slice(&fs::read(out.join("windrow.json")).unwrap()).unwrap();
    assert_eq!((side.records, side.tokenizer, side.eos, side.inputs.len()), (Some(81), None, None, 0));
    assert_eq!(open(&out).unwrap().len(), documents.len() as u64 + 1);
    assert_eq!(windrow::verify(&out, &VerifyOptions::default(), &()).unwrap().problems, []);
}
