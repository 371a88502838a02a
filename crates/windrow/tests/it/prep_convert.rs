//! Conversion in tasks: joined, the parts are the files of one conversion, of every layout that is written from numbers.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, json};
use windrow::Kind;
use windrow::dev::format::write::Target;
use windrow::format::{Options, WriteOptions};
use windrow::prep::{Converting, Prep, plan_convert};
use windrow::prepare::{Report, VerifyOptions, convert};
use windrow::verify;

use crate::ids::records;
use crate::written::files;

/// Records of several kinds, and how they are opened: token IDs that end with 0, series with what is beside them, `[T, C]`.
fn inputs(folder: &Path) -> Vec<(PathBuf, Options)> {
    let ids = (0..5_000u16).flat_map(|i| (if i % 37 == 0 { 0 } else { i % 999 + 1 }).to_le_bytes());
    fs::write(folder.join("ids.bin"), ids.collect::<Vec<u8>>()).unwrap();
    let mut series = String::new();
    let mut channels = String::new();
    for i in 0..40 {
        let values: Vec<f64> = (0..i * 7 % 50 + 1).map(|t| f64::from(t) / 8.0 - f64::from(i)).collect();
        let pairs: Vec<_> = values.iter().map(|value| [*value, -value]).collect();
        writeln!(series, "{}", json!({ "sequence": values, "name": format!("series {i}"), "sr": i }))
            .unwrap();
        writeln!(channels, "{}", json!({ "sequence": pairs })).unwrap();
    }
    fs::write(folder.join("series.jsonl"), series).unwrap();
    fs::write(folder.join("channels.jsonl"), channels).unwrap();
    fs::write(folder.join("none.bin"), [7, 0, 8, 0]).unwrap();
    let documents = Options { dtype: Some(windrow::DType::U16), document_eos: Some(0), ..Options::default() };
    let column = || Options { column: Some("sequence".to_string()), ..Options::default() };
    vec![
        (folder.join("ids.bin"), Options { format: Some("tokens".to_string()), ..documents.clone() }),
        (folder.join("series.jsonl"), column()),
        (folder.join("channels.jsonl"), column()),
        (folder.join("none.bin"), Options { format: Some("tokens".to_string()), ..documents }),
    ]
}

// One conversion, below a folder of its own.
fn at_once(input: &Path, how: &Converting, folder: &Path) -> windrow::Result<Report> {
    let data = windrow::open_with(input, &how.opening)?;
    let options = WriteOptions {
        dtype: how.dtype,
        of: data.manifest().cloned().map(std::sync::Arc::new),
        ..WriteOptions::default()
    };
    let to = windrow::writer(&how.to, &how.own)?;
    convert(data.source().as_ref(), &out(folder, how), to.as_ref(), &options, &())
}

fn out(folder: &Path, how: &Converting) -> PathBuf {
    let ending = match windrow::writer(&how.to, &how.own).unwrap().info().target {
        Target::File(endings) => endings[0],
        Target::Folder | Target::Pair(_) => "",
    };
    fs::create_dir_all(folder).unwrap();
    folder.join(format!("out{ending}"))
}

fn prepared(input: &Path, out: &Path, how: &Converting, task_bytes: u64) -> windrow::Result<Prep> {
    let stores = Options::default();
    let prep = Prep::open_with(&plan_convert(input, out, how, task_bytes, &stores)?, None, false, &stores)?;
    for task in prep.tasks_of(0, 1, false).into_iter().rev() {
        assert!(prep.run(task, None, &())?);
        assert!(!prep.run(task, None, &())?);
    }
    Ok(prep)
}

// The same job, whose data is found through a link.
fn elsewhere(prep: &Prep, parts: &Path, input: &Path, link: &Path) -> Prep {
    if !link.exists() {
        std::os::unix::fs::symlink(input.parent().unwrap(), link).unwrap();
    }
    let job = parts.join(format!("prep/{}.json", prep.job().hash));
    let path = |path: &Path| format!("\"path\": {}", json!(path.to_str()));
    let text = fs::read_to_string(&job).unwrap();
    let moved = text.replace(&path(input), &path(&link.join(input.file_name().unwrap())));
    assert_ne!(moved, text);
    fs::write(&job, moved).unwrap();
    Prep::open(&job, &Options::default()).unwrap()
}

#[test]
fn every_layout_comes_out_of_parts_as_out_of_one_conversion() {
    let dir = tempfile::tempdir().unwrap();
    let (mut written, mut n) = (0, 0);
    for (input, opening) in inputs(dir.path()) {
        for to in windrow::written().iter().map(|written| written.to) {
            let how = Converting { to: to.to_string(), opening: opening.clone(), ..Converting::default() };
            n += 1;
            let folder = dir.path().join(format!("{n}"));
            let one = at_once(&input, &how, &folder.join("one"));
            for task_bytes in [u64::MAX, 900] {
                let parts = folder.join(format!("parts-{task_bytes}"));
                let prep = prepared(&input, &parts, &how, task_bytes);
                let name = format!("{} to {to} in tasks of {task_bytes}", input.display());
                let joined = folder.join(format!("joined-{task_bytes}"));
                let join = |prep: Prep| prep.join(&out(&joined, &how), false, &());
                match &one {
                    // What cannot be converted can nowhere be.
                    Err(e) => {
                        let refused = prep.and_then(join).err().unwrap_or_else(|| panic!("{name}: {e}"));
                        assert_eq!(refused.kind(), e.kind(), "{name}: {refused}");
                    }
                    Ok(report) => {
                        written += 1;
                        let prep = prep.unwrap_or_else(|e| panic!("{name}: {e}"));
                        assert!(prep.job().tasks > 3 || task_bytes > 900 || input.ends_with("none.bin"));
                        // Where it is joined another path may lead to the data.
                        let moved = elsewhere(&prep, &parts, &input, &folder.join("link"));
                        let found = join(moved).unwrap_or_else(|e| panic!("{name}: {e}"));
                        let (found, want) =
                            (Report { output: report.output.clone(), ..found }, report.clone());
                        assert_eq!(found, want, "{name}");
                        assert_eq!(files(&joined), files(&folder.join("one")), "{name}");
                    }
                }
            }
        }
    }
    assert!(written > 60, "{written}");
}

#[test]
fn parts_are_records_of_the_data_and_merge_says_their_channels() {
    let dir = tempfile::tempdir().unwrap();
    for (input, opening) in inputs(dir.path()) {
        let name = input.file_stem().unwrap().to_str().unwrap();
        let data = windrow::open_with(&input, &opening).unwrap();
        let how = Converting { to: "shards".to_string(), opening, ..Converting::default() };
        let parts = dir.path().join(name);
        let prep = prepared(&input, &parts, &how, 900).unwrap();
        assert_eq!(prep.merge(&()).unwrap().records, data.len());
        let found = windrow::open(&parts).unwrap();
        let schema = data.source().schema();
        assert_eq!(found.source().schema().channels, schema.channels, "{name}");
        assert_eq!(found.source().schema().element.dtype, schema.element.dtype, "{name}");
        assert_eq!(found.manifest().unwrap().channels, schema.channels.map(|c| c as u64), "{name}");
        for record in 0..data.len() {
            assert_eq!(found.source().length(record).unwrap(), data.source().length(record).unwrap());
        }
        if schema.element.dtype.is_integer() {
            assert_eq!(records(&found), records(&data));
        }
        let findings = verify(&parts, &VerifyOptions::default(), &()).unwrap();
        assert_eq!(findings.problems, [], "{name}");
    }
}

#[test]
fn what_cannot_be_converted_in_tasks_is_refused_and_what_changed_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Options::default();
    let to = |to: &str| Converting { to: to.to_string(), ..Converting::default() };
    let plan = |input: &Path, out: &str, how: &Converting| {
        plan_convert(input, &dir.path().join(out), how, 900, &stores)
    };
    // Texts.
    let text = dir.path().join("text.jsonl");
    fs::write(&text, "{\"text\": \"a\"}\n").unwrap();
    let e = plan(&text, "texts", &to("npz")).unwrap_err();
    assert!(e.kind() == Kind::Config && format!("{e:#}").contains("prep plan tokenize"), "{e}");
    // A loss mask beside the tokens.
    let corpus = dir.path().join("corpus");
    masked(&corpus);
    let e = plan(&corpus, "masks", &to("npz")).unwrap_err();
    assert!(e.kind() == Kind::Config && e.message().contains("loss_mask"), "{e}");
    // Other data at that place.
    let [(input, opening), ..] = &inputs(dir.path())[..] else { panic!() };
    let how = Converting { opening: opening.clone(), ..to("npz") };
    let prep = Prep::open(&plan(input, "stale", &how).unwrap(), &stores).unwrap();
    prep.run(0, None, &()).unwrap();
    assert_eq!(prep.join(&dir.path().join("early.npz"), false, &()).unwrap_err().kind(), Kind::Stale);
    fs::write(input, [1; 9_000]).unwrap();
    let changed = Prep::open(&dir.path().join(format!("stale/prep/{}.json", prep.job().hash)), &stores);
    let e = changed.unwrap().run(1, None, &()).unwrap_err();
    assert!(e.kind() == Kind::Stale && e.message().contains("from_fingerprint"), "{e}");
    // A number that does not fit is named.
    let [_, (input, opening), ..] = &inputs(dir.path())[..] else { panic!() };
    let how = Converting { dtype: Some(windrow::DType::I16), opening: opening.clone(), ..to("npz") };
    let prep = Prep::open(&plan(input, "narrow", &how).unwrap(), &stores).unwrap();
    let one = at_once(input, &how, &dir.path().join("one")).unwrap_err();
    let e = prep.run(0, None, &()).unwrap_err();
    assert_eq!((e.kind(), e.message(), e.place().record), (one.kind(), one.message(), one.place().record));
}

// Samples with a loss mask.
fn masked(folder: &Path) {
    use windrow::prepare::{Encode, Encoded, LinePlace, TokenizeOptions, Track, tokenize};

    struct Masked;
    impl Encode for Masked {
        fn encode(&self, line: &[u8], _: &LinePlace<'_>, out: &mut Encoded) -> windrow::Result<()> {
            line.iter().for_each(|byte| out.ids.push(i64::from(*byte)));
            out.tracks[0].resize(line.len(), 1);
            Ok(())
        }

        fn describe(&self) -> String {
            "masked".to_string()
        }

        fn vocab_size(&self) -> Option<u64> {
            Some(256)
        }
    }
    let text = folder.with_extension("jsonl");
    fs::write(&text, "some text\nand more of it\n").unwrap();
    let to = windrow::writer("forager", &Map::new()).unwrap();
    let tracks = vec![Track { name: "loss_mask".to_string(), ..Track::default() }];
    let options = TokenizeOptions { sample_size: Some(4), eos: Some(0), tracks, ..TokenizeOptions::new(to) };
    tokenize(&[text], folder, &Masked, &options, &()).unwrap();
}
