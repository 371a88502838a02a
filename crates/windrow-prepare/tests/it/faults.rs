//! Stops, crashes and rivals: nothing half is ever visible, and a rerun gives what an unbroken run gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use windrow_core::format::write::{WriteOptions, writer};
use windrow_core::format::{self, Options, Probe};
use windrow_core::source::Schema;
use windrow_core::store::Local;
use windrow_core::{DType, Kind, Result};
use windrow_formats::FORMATS;
use windrow_prepare::{
    Encode, Encoded, IndexOptions, LinePlace, Progress, TokenizeOptions, Track, Watch, Writer, index,
    tokenize,
};

use crate::encoders::{FailsAt, Ord, Parts};
use crate::tree::{folder_of, tree};
use crate::writing::{To, samples};

const LINES: u64 = 40;

/// Two inputs, the second compressed, one empty between them.
fn inputs() -> tempfile::TempDir {
    let lines = |word: &str| -> Vec<u8> {
        (0..LINES).flat_map(|i| format!("{{\"text\":\"{word} {i}\"}}\n").into_bytes()).collect()
    };
    let zstd = zstd::bulk::compress(&lines("second"), 3).unwrap();
    folder_of(&[("a.jsonl", &lines("first")), ("b.jsonl", b""), ("c.jsonl.zst", &zstd)])
}

fn options(layout: To, sample_size: Option<u64>, threads: usize) -> TokenizeOptions {
    TokenizeOptions {
        to: layout.format(),
        sample_size,
        eos: Some(0),
        dtype: Some(DType::U16),
        fsync: false,
        num_threads: Some(threads),
        checkpoint_bytes: 60,
        ..samples()
    }
}

type Tree = BTreeMap<String, Vec<u8>>;

fn unbroken(input: &tempfile::TempDir, options: &TokenizeOptions) -> Tree {
    let out = tempfile::tempdir().unwrap();
    let whole = TokenizeOptions { checkpoint_bytes: 64 << 20, num_threads: Some(1), ..options.clone() };
    tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &whole, &()).unwrap();
    tree(out.path())
}

fn is_hidden(name: &str) -> bool {
    name.starts_with(".tokenize.tmp-")
}

#[test]
fn every_stop_and_rerun_gives_the_same_bytes() {
    let input = inputs();
    // Each line once, and some of them in every other way.
    for (options, apart) in [
        (options(To::Forager, Some(7), 1), 1),
        (options(To::Forager, Some(7), 3), 9),
        (options(To::Forager, None, 1), 9),
        (options(To::Tokens, None, 2), 9),
    ] {
        let want = unbroken(&input, &options);
        for (file, kind) in
            [("a.jsonl", Kind::Interrupted), ("c.jsonl.zst", Kind::Interrupted), ("c.jsonl.zst", Kind::Io)]
        {
            for line in (0..LINES).step_by(apart) {
                let out = tempfile::tempdir().unwrap();
                let fails = FailsAt { file, line, kind };
                let error =
                    tokenize(FORMATS, &[input.path().into()], out.path(), &fails, &options, &()).unwrap_err();
                assert_eq!((error.kind(), error.place().record), (kind, Some(line)));
                assert!(tree(out.path()).keys().all(|name| is_hidden(name)));
                let report =
                    tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
                assert_eq!(tree(out.path()), want, "{options:?} {file} {line}");
                assert_eq!(report.resumed_bytes > 0, line >= 3 || file != "a.jsonl", "{file} {line}");
            }
        }
    }
}

#[test]
fn what_is_left_out_is_counted_once_whatever_stops_between() {
    let lines = |word: &str| -> Vec<u8> {
        let line = |i: u64| match i % 5 {
            3 => "{\"text\":".to_string(),
            _ => format!("{{\"text\":\"{word} {i}\"}}"),
        };
        (0..LINES).flat_map(|i| (line(i) + "\n").into_bytes()).collect()
    };
    let damaged = b"x\n".repeat(50);
    let zstd = zstd::bulk::compress(&lines("second"), 3).unwrap();
    let input = folder_of(&[("a.jsonl", &lines("first")), ("b.jsonl", &damaged), ("c.jsonl.zst", &zstd)]);
    for (sample_size, threads) in [(Some(7), 1), (None, 3)] {
        let options =
            TokenizeOptions { max_skipped: Some(0.6), ..options(To::Forager, sample_size, threads) };
        let want = unbroken(&input, &options);
        for (file, line) in (0..LINES).step_by(3).flat_map(|line| [("a.jsonl", line), ("c.jsonl.zst", line)])
        {
            let out = tempfile::tempdir().unwrap();
            let run = |encode: &dyn Encode| {
                tokenize(FORMATS, &[input.path().into()], out.path(), encode, &options, &())
            };
            let fails = FailsAt { file, line, kind: Kind::Interrupted };
            assert_eq!(run(&fails).unwrap_err().kind(), Kind::Interrupted);
            let skipped = run(&Ord).unwrap().skipped;
            assert_eq!((skipped.count, skipped.first.len()), (8 + 50 + 8, 20), "{file} {line}");
            assert_eq!([0, 8].map(|at: usize| skipped.first[at].record), [3, 0]);
            assert_eq!(tree(out.path()), want, "{file} {line}");
        }
    }
}

#[test]
fn many_stops_in_one_task_give_the_same_bytes() {
    let input = inputs();
    let options = options(To::Forager, Some(5), 2);
    let out = tempfile::tempdir().unwrap();
    for line in (0..LINES).step_by(3) {
        let fails = FailsAt { file: "c.jsonl.zst", line, kind: Kind::Interrupted };
        tokenize(FORMATS, &[input.path().into()], out.path(), &fails, &options, &()).unwrap_err();
    }
    tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
    assert_eq!(tree(out.path()), unbroken(&input, &options));
}

#[test]
fn what_fails_at_the_very_end_is_continued_from_the_last_checkpoint() {
    let input = inputs();
    let options = options(To::Forager, Some(7), 1);
    let run = |out: &Path| tokenize(FORMATS, &[input.path().into()], out, &Ord, &options, &());
    let out = tempfile::tempdir().unwrap();
    let fails = FailsAt { file: "c.jsonl.zst", line: 20, kind: Kind::Interrupted };
    tokenize(FORMATS, &[input.path().into()], out.path(), &fails, &options, &()).unwrap_err();
    let work =
        fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
    // Something has the place of the marker's draft.
    let taken = work.unwrap().join("commit.tmp");
    fs::create_dir(&taken).unwrap();
    assert_eq!(run(out.path()).unwrap_err().kind(), Kind::Io);
    fs::remove_dir(&taken).unwrap();
    assert!(run(out.path()).unwrap().resumed_bytes > 0);
    assert_eq!(tree(out.path()), unbroken(&input, &options));
}

#[test]
fn tracks_survive_a_stop() {
    let line = |i: u64| {
        format!(
            "{{\"parts\":[{{\"type\":\"system\",\"text\":\"s{i}\"}},{{\"type\":\"x\",\"text\":\"yz\"}}]}}\n"
        )
    };
    let text: String = (0..LINES).map(line).collect();
    let input = folder_of(&[("a.jsonl", text.as_bytes())]);
    let parts = Parts { masked: vec!["system".to_string()] };
    for sample_size in [Some(9), None] {
        let options = TokenizeOptions {
            tracks: vec![Track { name: "loss_mask".to_string(), eos: 0, pad: 1 }],
            ..options(To::Forager, sample_size, 1)
        };
        let whole = tempfile::tempdir().unwrap();
        tokenize(FORMATS, &[input.path().into()], whole.path(), &parts, &options, &()).unwrap();
        for after in 0..20 {
            let out = tempfile::tempdir().unwrap();
            let stops = StopsAfter::new(after);
            if tokenize(FORMATS, &[input.path().into()], out.path(), &parts, &options, &stops).is_err() {
                tokenize(FORMATS, &[input.path().into()], out.path(), &parts, &options, &()).unwrap();
            }
            assert_eq!(tree(out.path()), tree(whole.path()), "{after}");
        }
    }
}

/// Wants to stop after a number of reports of progress.
struct StopsAfter {
    left: AtomicU64,
}

impl StopsAfter {
    fn new(reports: u64) -> Self {
        StopsAfter { left: AtomicU64::new(reports + 1) }
    }
}

impl Watch for StopsAfter {
    fn progress(&self, _: Progress) {
        self.left.store(self.left.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.left.load(Ordering::Relaxed) <= 1
    }
}

/// The texts of [`inputs`], as rows of two files.
fn rows() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let own = serde_json::json!({ "size_limit": 60_000 });
    let format = writer(FORMATS, "webdataset", own.as_object().unwrap()).unwrap();
    let out = folder.path().join("rows");
    let schema = Schema::rows(Vec::new());
    let mut writer = Writer::create(&out, &schema, format.as_ref(), &WriteOptions::default()).unwrap();
    for i in 0..2 * LINES {
        let text = format!("{} {}", if i < LINES { "first" } else { "second" }, i % LINES);
        writer.add_row(&[("text", text)].into_iter().collect()).unwrap();
    }
    assert!(writer.finish().unwrap().files > 1);
    folder
}

#[test]
fn rows_give_the_tokens_of_lines_and_the_same_bytes_after_every_stop() {
    let (lines, rows) = (inputs(), rows());
    let path = rows.path().join("rows");
    for (options, is_one) in [
        (options(To::Forager, Some(7), 1), false),
        (options(To::Forager, None, 3), false),
        (options(To::Tokens, None, 2), true),
    ] {
        let whole = tempfile::tempdir().unwrap();
        tokenize(FORMATS, std::slice::from_ref(&path), whole.path(), &Ord, &options, &()).unwrap();
        let samples = |tree: Tree| -> Vec<u8> {
            tree.into_iter().filter(|(name, _)| name.ends_with(".bin")).flat_map(|(_, bytes)| bytes).collect()
        };
        let of_lines = unbroken(&lines, &options);
        if is_one {
            assert_eq!(samples(tree(whole.path())), samples(of_lines));
        } else {
            let of =
                |tree: Tree| samples(tree.into_iter().filter(|(name, _)| !name.contains("index")).collect());
            assert_eq!(of(tree(whole.path())), of(of_lines));
        }
        let mut n_stopped = 0;
        for after in 0..60 {
            let out = tempfile::tempdir().unwrap();
            let stops = StopsAfter::new(after);
            if tokenize(FORMATS, std::slice::from_ref(&path), out.path(), &Ord, &options, &stops).is_err() {
                n_stopped += 1;
                assert!(tree(out.path()).keys().all(|name| is_hidden(name)));
                let report =
                    tokenize(FORMATS, std::slice::from_ref(&path), out.path(), &Ord, &options, &()).unwrap();
                assert_eq!(report.resumed_bytes > 0, after > 0, "{after}");
            }
            assert_eq!(tree(out.path()), tree(whole.path()), "{after}");
        }
        assert!(n_stopped > 5, "{n_stopped}");
    }
}

#[test]
fn rows_that_changed_begin_again() {
    let rows = rows();
    let (path, out) = (rows.path().join("rows"), tempfile::tempdir().unwrap());
    let options = options(To::Forager, Some(7), 1);
    tokenize(FORMATS, std::slice::from_ref(&path), out.path(), &Ord, &options, &StopsAfter::new(5))
        .unwrap_err();
    let last = path.join("shard-000001.tar");
    let file = fs::File::options().write(true).open(last).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let report = tokenize(FORMATS, &[path], out.path(), &Ord, &options, &()).unwrap();
    assert_eq!((report.resumed_bytes, report.documents), (0, 2 * LINES));
}

#[test]
fn a_watcher_stops_a_slow_encoder_at_once() {
    struct Slow(AtomicU64);
    impl Encode for Slow {
        fn encode(&self, _: &[u8], _: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(5));
            out.ids.push(1);
            Ok(())
        }
        fn describe(&self) -> String {
            "slow".to_string()
        }
    }
    struct Stop;
    impl Watch for Stop {
        fn progress(&self, _: Progress) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let input = folder_of(&[("a.jsonl", &b"x\n".repeat(10_000))]);
    for threads in [1, 4] {
        let out = tempfile::tempdir().unwrap();
        let options = TokenizeOptions { checkpoint_bytes: 1 << 20, ..options(To::Forager, Some(2), threads) };
        let slow = Slow(AtomicU64::new(0));
        let error =
            tokenize(FORMATS, &[input.path().into()], out.path(), &slow, &options, &Stop).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
        let encoded = slow.0.into_inner();
        assert!(encoded < 5_000, "{encoded} of 10,000 documents");
    }
    let error = index(FORMATS, input.path(), &IndexOptions::default(), &Stop).unwrap_err();
    assert_eq!(error.kind(), Kind::Interrupted);
    assert_eq!(tree(input.path()).len(), 1);
}

#[test]
fn changed_inputs_start_over_and_leave_no_old_work() {
    let input = inputs();
    let out = tempfile::tempdir().unwrap();
    let options = options(To::Forager, Some(7), 1);
    let fails = FailsAt { file: "c.jsonl.zst", line: 20, kind: Kind::Interrupted };
    tokenize(FORMATS, &[input.path().into()], out.path(), &fails, &options, &()).unwrap_err();
    fs::write(input.path().join("a.jsonl"), b"{\"text\":\"other\"}\n").unwrap();
    let report = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
    assert_eq!(report.resumed_bytes, 0);
    assert_eq!(tree(out.path()), unbroken(&input, &options));
}

#[test]
fn damaged_restart_points_start_over() {
    let input = inputs();
    let options = options(To::Forager, Some(7), 1);
    let want = unbroken(&input, &options);
    for (part, bytes) in [
        ("progress.json", b"{".as_slice()),
        ("progress.json", b"{\"input\":9}"),
        ("sample_locations.bin", b""),
        ("c-tokenized-samples.bin", b""),
        ("a-tokenized-samples.bin", b"x"),
    ] {
        let out = tempfile::tempdir().unwrap();
        let fails = FailsAt { file: "c.jsonl.zst", line: 20, kind: Kind::Interrupted };
        tokenize(FORMATS, &[input.path().into()], out.path(), &fails, &options, &()).unwrap_err();
        let name = tree(out.path()).into_keys().find(|n| n.ends_with(part)).unwrap();
        fs::write(out.path().join(name), bytes).unwrap();
        tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
        assert_eq!(tree(out.path()), want, "{part}");
    }
}

#[test]
fn what_a_kill_between_the_renames_left_is_finished() {
    let input = inputs();
    let options = options(To::Forager, Some(7), 1);
    let want = unbroken(&input, &options);
    // As a killed run leaves it: k of the two folders are out, the marker says what is to come.
    for moved in 0..=2 {
        let out = tempfile::tempdir().unwrap();
        tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
        let work = out.path().join(".tokenize.tmp-0123456789abcdef");
        fs::create_dir(&work).unwrap();
        let targets = ["tokenized-samples", "index"];
        fs::write(
            work.join("commit.json"),
            serde_json::json!({"targets": targets, "leaving": [], "overwrite": false}).to_string(),
        )
        .unwrap();
        for target in &targets[moved..] {
            fs::rename(out.path().join(target), work.join(target)).unwrap();
        }
        let report = tokenize(FORMATS, &[input.path().into()], out.path(), &Ord, &options, &()).unwrap();
        // What was not begun to be shown is made again: another run decides whether it may replace what is there.
        assert_eq!(report.unchanged, moved > 0, "{moved}");
        let mut found = tree(out.path());
        // A marker of which nothing is left to do is swept with the next task that writes.
        found.retain(|name, _| !name.ends_with("commit.json"));
        assert_eq!(found, want, "{moved}");
    }
}

#[test]
fn a_kill_while_an_old_output_leaves_is_finished() {
    let input = inputs();
    let options = options(To::Tokens, None, 1);
    let run = |out: &Path| tokenize(FORMATS, &[input.path().into()], out, &Ord, &options, &());
    let whole = tempfile::tempdir().unwrap();
    run(whole.path()).unwrap();
    let want = tree(whole.path());
    let targets = ["windrow.sums", "windrow.json", "tokens.bin"];
    let leaving = ["tokens.bin.windrow.sums", "tokens.bin.windrow.json"];
    // As a killed run leaves it: of `moved` moves the old names left first, then the new ones came.
    for moved in 1..=leaving.len() + targets.len() {
        let (left, come) = (moved.min(leaving.len()), moved.saturating_sub(leaving.len()));
        let out = tempfile::tempdir().unwrap();
        run(out.path()).unwrap();
        let work = out.path().join(".tokenize.tmp-0123456789abcdef");
        fs::create_dir(&work).unwrap();
        let marker = serde_json::json!({"targets": targets, "leaving": leaving, "overwrite": true});
        fs::write(work.join("commit.json"), marker.to_string()).unwrap();
        for (i, name) in leaving.iter().enumerate() {
            let old = if i < left { work.join(format!("old-{name}")) } else { out.path().join(name) };
            fs::write(old, "of the old output").unwrap();
        }
        for target in &targets[come..] {
            fs::rename(out.path().join(target), work.join(target)).unwrap();
        }
        assert!(run(out.path()).unwrap().unchanged, "{moved}");
        let mut found = tree(out.path());
        found.retain(|name, _| !is_hidden(name));
        assert_eq!(found, want, "{moved}");
    }
}

#[test]
fn two_runs_at_once_end_in_one_output_and_one_error() {
    struct Waits {
        begun: Mutex<Sender<()>>,
        go_on: Mutex<std::sync::mpsc::Receiver<()>>,
    }
    impl Encode for Waits {
        fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
            if place.line == 0 && place.file.ends_with("a.jsonl") {
                self.begun.lock().unwrap().send(()).unwrap();
                self.go_on.lock().unwrap().recv().unwrap();
            }
            Ord.encode(line, place, out)
        }
        fn describe(&self) -> String {
            Ord.describe()
        }
        fn vocab_size(&self) -> Option<u64> {
            Ord.vocab_size()
        }
    }
    let input = inputs();
    let out = tempfile::tempdir().unwrap();
    let options = options(To::Forager, Some(7), 1);
    let (begun, has_begun) = channel();
    let (go, go_on) = channel();
    let first = Waits { begun: Mutex::new(begun), go_on: Mutex::new(go_on) };
    let paths: [PathBuf; 1] = [input.path().into()];
    std::thread::scope(|scope| {
        let running = scope.spawn(|| tokenize(FORMATS, &paths, out.path(), &first, &options, &()));
        has_begun.recv().unwrap();
        let error = tokenize(FORMATS, &paths, out.path(), &Ord, &options, &()).unwrap_err();
        assert_eq!(error.kind(), Kind::Exists);
        assert!(error.message().contains("another windrow"), "{error}");
        go.send(()).unwrap();
        running.join().unwrap().unwrap();
    });
    assert_eq!(tree(out.path()), unbroken(&input, &options));
}

#[test]
fn an_index_begun_by_a_killed_run_is_swept() {
    let half = ".index.tmp-0123456789abcdef/index/sample_locations.bin";
    let base = folder_of(&[("a.jsonl", b"1\n2\n"), (half, b"half"), (".index.tmp-backup/a", b"mine")]);
    let whole = IndexOptions { fsync: false, ..IndexOptions::default() };
    assert_eq!(index(FORMATS, base.path(), &whole, &()).unwrap().records, 2);
    let names: Vec<_> = tree(base.path()).into_keys().collect();
    assert_eq!(
        names,
        [
            ".index.tmp-backup/a",
            "a.jsonl",
            "index/file_location.txt",
            "index/sample_locations.bin",
            "index/windrow.json"
        ]
    );
}

#[test]
fn a_reader_of_an_index_that_is_replaced_sees_the_old_or_the_new_one() {
    let base = folder_of(&[("a.jsonl", b"1\n")]);
    // Files of other lengths stand below other names, so that the data beside an index never changes under it.
    let rewrite = |generation: usize| {
        let name = format!("g{generation}");
        fs::create_dir_all(base.path().join(&name)).unwrap();
        fs::write(base.path().join(&name).join("b.jsonl"), "1\n".repeat(generation)).unwrap();
        let options = IndexOptions { overwrite: true, fsync: false, ..IndexOptions::default() };
        index(FORMATS, base.path(), &options, &()).unwrap();
    };
    rewrite(1);
    let counts: Vec<u64> = (1..40)
        .scan(1u64, |sum, n| {
            *sum += n;
            Some(*sum)
        })
        .collect();
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0u64;
            while done.load(Ordering::Relaxed) == 0 {
                let store = Arc::new(Local::new(base.path()));
                let look = Probe::at(FORMATS, store, "").expect("an index is there at every moment");
                let source = format::open(FORMATS, &look, &Options::default()).unwrap();
                assert_eq!(source.format(), "forager");
                assert!(counts.contains(&source.len()), "{} records", source.len());
                for record in 0..source.len() {
                    assert_eq!(source.length(record).unwrap(), 1);
                }
                seen += 1;
            }
            seen
        });
        (2..40).for_each(rewrite);
        done.store(1, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}
