//! Preparation in tasks: the same bytes whatever the tasks and whoever runs them, and the files of one run out of the parts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use windrow::Kind;
use windrow::format::Options;
use windrow::prep::{Prep, Tokenizing, plan, plan_index};
use windrow::prepare::IndexOptions;
use windrow::prepare::{Remainder, index, tokenize};

fn bytes() -> Tokenizing {
    Tokenizing { tokenizer: "bytes".to_string(), ..Tokenizing::default() }
}

/// CRLF, no last line feed, a long line, an empty document, an empty file, a byte order mark, a compressed file, three names alike.
fn corpus(folder: &Path) -> PathBuf {
    let dir = folder.join("in");
    fs::create_dir_all(dir.join("a")).unwrap();
    let line = |i: usize| format!("{{\"id\": {i}, \"text\": \"Straße {}\"}}", "数据 🌾 ".repeat(i * i % 23));
    let lines = |n: usize, end: &str| (0..n).map(line).collect::<Vec<_>>().join(end);
    fs::write(dir.join("f0.jsonl"), lines(300, "\n")).unwrap();
    let odd = format!("{{\"text\": \"\"}}\n{{\"text\": \"{}\"}}\n{}\n", "x".repeat(60_000), lines(9, "\n"));
    fs::write(dir.join("f1.jsonl"), odd).unwrap();
    fs::write(dir.join("f2.jsonl"), format!("\u{feff}{}\r\n", lines(120, "\r\n"))).unwrap();
    fs::write(dir.join("f9.jsonl"), "").unwrap();
    fs::write(dir.join("a/f0.jsonl"), lines(7, "\n")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, lines(50, "\n").as_bytes()).unwrap();
    fs::write(dir.join("z.jsonl.gz"), gz.finish().unwrap()).unwrap();
    dir
}

fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, at: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found)
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

fn prepared(inputs: &[PathBuf], out: &Path, how: &Tokenizing, task_bytes: u64) -> Prep {
    let job = plan(inputs, out, how, task_bytes, &Options::default()).unwrap();
    let prep = Prep::open_with(&job, None, false, &Options::default()).unwrap();
    // Backwards: workers finish in any order.
    for task in prep.tasks_of(0, 1, false).into_iter().rev() {
        assert!(prep.run(task, Some(2), &()).unwrap());
        assert!(!prep.run(task, Some(1), &()).unwrap());
    }
    prep.merge(&()).unwrap();
    prep
}

#[test]
fn the_files_of_one_run_come_out_of_parts_of_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [corpus(dir.path())];
    let samples = Tokenizing { sample_size: Some(512), ..bytes() };
    let layouts = [
        ("documents", bytes()),
        ("ends", Tokenizing { append_eos: true, dtype: Some(windrow::DType::U32), ..bytes() }),
        ("samples", samples.clone()),
        ("padded", Tokenizing { remainder: Remainder::Pad(3), ..samples.clone() }),
        ("tokens", Tokenizing { to: "tokens".to_string(), ..bytes() }),
        ("megatron", Tokenizing { to: "megatron".to_string(), ..bytes() }),
        (
            "shards",
            Tokenizing {
                to: "shards".to_string(),
                own: serde_json::from_str(r#"{"max_shard_bytes": 30000}"#).unwrap(),
                ..bytes()
            },
        ),
        #[cfg(feature = "zarr")]
        ("flat", Tokenizing { to: "flat-tokens".to_string(), ..bytes() }),
    ];
    for (name, how) in layouts {
        let one = dir.path().join(format!("{name}-one"));
        let (encoder, options) = how.make().unwrap();
        tokenize(&inputs, &one, encoder.as_ref(), &options, &()).unwrap();
        let want = tree(&one);
        for task_bytes in [1 << 40, 20_000, 1_009] {
            let out = dir.path().join(format!("{name}-{task_bytes}"));
            let prep = prepared(&inputs, &out, &how, task_bytes);
            let joined = dir.path().join(format!("{name}-{task_bytes}-joined"));
            let report = prep.join(&joined, false, &()).unwrap();
            let found = tree(&joined);
            assert_eq!(found.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>(), "{name}");
            for (file, bytes) in &want {
                assert!(found[file] == *bytes, "{name} in tasks of {task_bytes}: {file}");
            }
            assert!(!report.unchanged && prep.join(&joined, false, &()).unwrap().unchanged);
            // What one run would do is done.
            assert!(tokenize(&inputs, &joined, encoder.as_ref(), &options, &()).unwrap().unchanged, "{name}");
        }
    }
}

#[test]
fn parts_read_as_what_one_run_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [corpus(dir.path())];
    let (encoder, options) = bytes().make().unwrap();
    tokenize(&inputs, &dir.path().join("one"), encoder.as_ref(), &options, &()).unwrap();
    let one = windrow::open(dir.path().join("one")).unwrap();
    let out = dir.path().join("parts");
    let prep = prepared(&inputs, &out, &bytes(), 5_003);
    assert!(prep.job().tasks > 20);
    let parts = windrow::open(&out).unwrap();
    assert_eq!(parts.len(), one.len());
    let rows = |data: &windrow::Dataset| {
        let mut loader = data.pack(64).unwrap().loader().batch_size(8).seed(3).build().unwrap();
        (0..40)
            .flat_map(|_| loader.next_batch().unwrap().unwrap().get::<i64>("input_ids").unwrap().to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(rows(&parts), rows(&one));
    // The same again is the same job, and merged again the same bytes.
    let before = tree(&out);
    let again = plan(&inputs, &out, &bytes(), 5_003, &Options::default()).unwrap();
    assert_eq!(again.file_stem().unwrap().to_str(), Some(prep.job().hash.as_str()));
    prep.merge(&()).unwrap();
    assert!(tree(&out) == before);
}

#[test]
fn rows_are_split_by_their_number() {
    let dir = tempfile::tempdir().unwrap();
    let lines: String =
        (0..200).map(|i| format!("{{\"text\": \"row {i} {}\"}}\n", "y".repeat(i % 17))).collect();
    let (text, tar) = (dir.path().join("rows.jsonl"), dir.path().join("rows.tar"));
    fs::write(&text, lines).unwrap();
    let data = windrow::open(&text).unwrap();
    let to = windrow::writer("webdataset", &Default::default()).unwrap();
    windrow::prepare::convert(data.source().as_ref(), &tar, to.as_ref(), &Default::default(), &()).unwrap();
    let inputs = [tar];
    let how = Tokenizing { text_field: "text".to_string(), ..bytes() };
    let (encoder, options) = how.make().unwrap();
    let one = dir.path().join("one");
    tokenize(&inputs, &one, encoder.as_ref(), &options, &()).unwrap();
    let prep = prepared(&inputs, &dir.path().join("parts"), &how, 20_000);
    assert!(prep.job().tasks > 3);
    let joined = dir.path().join("joined");
    prep.join(&joined, false, &()).unwrap();
    assert!(tree(&joined) == tree(&one));
}

#[test]
fn what_does_not_fit_the_job_is_an_error_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [corpus(dir.path())];
    let out = dir.path().join("out");
    let stores = Options::default();
    let job = plan(&inputs, &out, &bytes(), 20_000, &stores).unwrap();
    let prep = Prep::open(&job, &stores).unwrap();
    // Another job, another data set.
    let other = Tokenizing { append_eos: true, ..bytes() };
    let e = plan(&inputs, &out, &other, 20_000, &stores).unwrap_err();
    assert!(e.kind() == Kind::Exists && e.message().contains("another job"), "{e}");
    assert_eq!(plan(&inputs, &inputs[0], &bytes(), 20_000, &stores).unwrap_err().kind(), Kind::Exists);
    // Not finished.
    prep.run(0, None, &()).unwrap();
    let e = prep.merge(&()).unwrap_err();
    assert!(e.kind() == Kind::Stale && e.message().contains(&format!("1 of {}", prep.job().tasks)), "{e}");
    assert_eq!(windrow::open(&out).err().unwrap().kind(), Kind::Stale);
    assert_eq!(prep.join(&dir.path().join("j"), false, &()).unwrap_err().kind(), Kind::Stale);
    // A task that there is not.
    assert_eq!(prep.run(prep.job().tasks, None, &()).unwrap_err().kind(), Kind::Config);
    // A changed input: the task fails, is written down, and is no harm to others.
    let input = inputs[0].join("f0.jsonl");
    let (text, task) = (fs::read(&input).unwrap(), prep.job().inputs[1].first_task);
    assert!(prep.job().inputs[1].path.ends_with("in/f0.jsonl"), "{:?}", prep.job().inputs[1].path);
    fs::write(&input, &text[1..]).unwrap();
    let e = prep.run(task, None, &()).unwrap_err();
    assert!(e.kind() == Kind::Stale && format!("{e:#}").contains("f0.jsonl"), "{e}");
    let status = prep.status(&()).unwrap();
    assert_eq!((status.done, status.failed.len(), status.failed[0].task), (1, 1, task));
    // A bad line is named by its number in the file, in whichever task it is.
    let changed =
        Prep::open(&plan(&inputs, &dir.path().join("new"), &bytes(), 1_000, &stores).unwrap(), &stores)
            .unwrap();
    drop(changed);
    let bad = dir.path().join("bad.jsonl");
    fs::write(&bad, format!("{}nonsense\n", "{\"text\": \"a\"}\n".repeat(50))).unwrap();
    let job = plan(&[bad], &dir.path().join("bad"), &bytes(), 100, &stores).unwrap();
    let bad = Prep::open(&job, &stores).unwrap();
    let errors: Vec<_> =
        bad.tasks_of(0, 1, false).into_iter().filter_map(|task| bad.run(task, None, &()).err()).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].place().record, errors[0].place().byte), (Some(50), Some(701)), "{}", errors[0]);
    // A worker with another tokenizer.
    let text = fs::read_to_string(&job).unwrap();
    fs::write(&job, text.replace("\"tokenizer\": \"bytes\"", "\"tokenizer\": \"gpt2\"")).unwrap();
    let other = Prep::open(&job, &stores).unwrap();
    for e in [other.check().unwrap_err(), other.run(other.job().tasks - 1, None, &()).unwrap_err()] {
        assert!(e.kind() == Kind::Mismatch && e.message().contains("gpt2"), "{e}");
    }
    fs::write(&job, text).unwrap();
    // A job that somebody changed.
    let text = fs::read_to_string(&job).unwrap().replace("\"task_bytes\": 100", "\"task_bytes\": 101");
    fs::write(&job, text).unwrap();
    assert_eq!(Prep::open(&job, &stores).err().unwrap().kind(), Kind::Corrupt);
}

#[test]
fn a_worker_that_gives_other_bytes_is_found_and_a_damaged_part_too() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [corpus(dir.path())];
    let out = dir.path().join("out");
    let prep = prepared(&inputs, &out, &bytes(), 20_000);
    let part = out.join("parts/000002.bin");
    let (manifest, whole) = (out.join("parts/000002.json"), fs::read(&part).unwrap());
    let mut other = whole.clone();
    other[0] ^= 1;
    fs::write(&part, &other).unwrap();
    // Its size is right: who copies it finds out.
    let e = prep.join(&dir.path().join("joined"), false, &()).unwrap_err();
    assert!(e.kind() == Kind::Corrupt && format!("{e:#}").contains("000002.bin"), "{e}");
    // As if another worker had written it, and were still at it.
    let text = fs::read(&manifest).unwrap();
    fs::remove_file(&manifest).unwrap();
    let e = prep.run(2, None, &()).unwrap_err();
    assert!(e.kind() == Kind::Mismatch && e.message().contains("two runs of task 2"), "{e}");
    let said = format!("{e:#}");
    assert!(said.matches("000002.bin").count() == 1 && !said.contains("\\n"), "{said}");
    assert!(said.contains("this run made"), "{said}");
    fs::write(&part, &whole).unwrap();
    assert!(prep.run(2, None, &()).unwrap());
    assert!(fs::read(&manifest).unwrap() == text);
    // A part in another one's place.
    fs::copy(out.join("parts/000001.json"), &manifest).unwrap();
    assert_eq!(prep.merge(&()).unwrap_err().kind(), Kind::Stale);
}

#[test]
fn every_worker_ends_with_all_tasks_when_it_steals() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [corpus(dir.path())];
    let job = plan(&inputs, &dir.path().join("out"), &bytes(), 5_000, &Options::default()).unwrap();
    let prep = Prep::open(&job, &Options::default()).unwrap();
    let tasks = prep.job().tasks;
    let mut seen: Vec<u64> = (0..3).flat_map(|rank| prep.tasks_of(rank, 3, false)).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..tasks).collect::<Vec<_>>());
    for rank in 0..3 {
        let mut all = prep.tasks_of(rank, 3, true);
        assert!(all.starts_with(&prep.tasks_of(rank, 3, false)));
        all.sort_unstable();
        assert_eq!(all, (0..tasks).collect::<Vec<_>>());
    }
    // Three at once, each of which does all.
    std::thread::scope(|scope| {
        for rank in 0..3 {
            let job = &job;
            scope.spawn(move || {
                let prep = Prep::open_with(job, None, false, &Options::default()).unwrap();
                prep.tasks_of(rank, 3, true).into_iter().for_each(|task| {
                    prep.run(task, Some(1), &()).unwrap();
                });
            });
        }
    });
    assert_eq!(prep.merge(&()).unwrap().files, tasks);
    assert_eq!(prep.clean().unwrap(), 0);
    let left = dir.path().join("out/parts/.000000.bin.0123456789abcdef");
    fs::write(&left, "half").unwrap();
    assert_eq!((prep.clean().unwrap(), left.exists()), (1, false));
}

#[test]
fn an_index_out_of_parts_is_that_of_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let base = corpus(dir.path());
    let stores = Options::default();
    // One run expands what is compressed, tasks refuse it.
    let out = dir.path().join("refused");
    assert_eq!(
        plan_index(&base, &out, &IndexOptions::default(), 1000, &stores).unwrap_err().kind(),
        Kind::Unsupported
    );
    fs::remove_file(base.join("z.jsonl.gz")).unwrap();
    for task_bytes in [1 << 40, 5_000, 101] {
        let out = dir.path().join(format!("parts-{task_bytes}"));
        let job = plan_index(&base, &out, &IndexOptions::default(), task_bytes, &stores).unwrap();
        let prep = Prep::open_with(&job, None, false, &stores).unwrap();
        for task in prep.tasks_of(0, 1, true).into_iter().rev() {
            prep.run(task, None, &()).unwrap();
        }
        prep.merge(&()).unwrap();
        let e = windrow::open(&out).err().unwrap();
        assert!(format!("{e:#}").contains("prep join"), "{e}");
        prep.join(&base, true, &()).unwrap();
        let joined = tree(&base.join("index"));
        fs::remove_dir_all(base.join("index")).unwrap();
        index(&base, &Default::default(), &()).unwrap();
        assert!(joined == tree(&base.join("index")), "{task_bytes}");
        assert!(prep.join(&base, false, &()).unwrap().unchanged);
        fs::remove_dir_all(base.join("index")).unwrap();
        // Rows that somebody changed.
        let rows = out.join("parts/000001.rows");
        let mut bytes = fs::read(&rows).unwrap();
        if let Some(byte) = bytes.get_mut(8) {
            *byte ^= 1;
            fs::write(&rows, bytes).unwrap();
            assert_eq!(prep.join(&base, false, &()).unwrap_err().kind(), Kind::Corrupt);
        }
    }
}

/// Stops a task once it has done this much.
struct StopAt(u64, std::sync::atomic::AtomicBool);

impl windrow::prepare::Watch for StopAt {
    fn progress(&self, now: windrow::prepare::Progress) {
        let _ = now;
    }

    fn counted(&self, done: u64, _total: u64, _one: &'static str) {
        self.1.fetch_or(done >= self.0, std::sync::atomic::Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.1.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[test]
fn a_join_that_is_stopped_continues_after_any_part() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [corpus(dir.path())];
    let how = Tokenizing { sample_size: Some(300), ..bytes() };
    stopped_anywhere(dir.path(), &prepared(&inputs, &dir.path().join("parts"), &how, 9_001));
}

#[test]
fn what_parts_left_out_is_summed_once_wherever_a_join_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [corpus(dir.path())];
    // Parts that hold no record among those that hold some, also at the end of an input.
    let lines = |n: usize| format!("{{\"text\": \"{}\"}}\n", "y".repeat(700)).repeat(n);
    let damaged = format!("{}{}{}{}", lines(20), "x\n".repeat(9_000), lines(20), "\n".repeat(9_000));
    fs::write(inputs[0].join("f3.jsonl"), damaged).unwrap();
    for how in [Tokenizing { sample_size: Some(300), ..bytes() }, bytes()] {
        let how = Tokenizing { max_skipped: Some(0.99), ..how };
        let options = how.options().unwrap();
        let out = dir.path().join("one");
        let (encoder, _) = how.make().unwrap();
        let options = windrow::prepare::TokenizeOptions { eos: Some(256), ..options };
        let report = tokenize(&inputs, &out, encoder.as_ref(), &options, &()).unwrap();
        assert_eq!((report.skipped.count, report.skipped.first[0].record), (18_000, 20));
        let parts = dir.path().join("parts");
        let prep = prepared(&inputs, &parts, &how, 9_001);
        assert_eq!(prep.merge(&()).unwrap().skipped, report.skipped);
        let joined = stopped_anywhere(dir.path(), &prep);
        assert!(joined == tree(&out));
        for folder in [out, parts, dir.path().join("whole")] {
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

// Joins parts, also with a stop after each of them; the files.
fn stopped_anywhere(dir: &Path, prep: &Prep) -> BTreeMap<String, Vec<u8>> {
    prep.join(&dir.join("whole"), false, &()).unwrap();
    let want = tree(&dir.join("whole"));
    let mut continued = 0;
    for task in 1..prep.job().tasks {
        let out = dir.join("stopped");
        let e = prep.join(&out, false, &StopAt(task, Default::default())).unwrap_err();
        assert_eq!(e.kind(), Kind::Interrupted);
        let report = prep.join(&out, false, &()).unwrap();
        continued += u64::from(report.resumed_bytes > 0);
        assert!(tree(&out) == want, "stopped after part {task}");
        fs::remove_dir_all(&out).unwrap();
    }
    assert!(continued > 3, "{continued}");
    want
}
