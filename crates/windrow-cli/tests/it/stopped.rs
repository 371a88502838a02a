//! Runs that are stopped: by Ctrl-C and by force. Nothing partial is ever seen, and a rerun ends in the same files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::program::{Desk, corpus};

/// How many runs are killed; `WINDROW_KILLS` in the environment makes it more.
const KILLS: u32 = 40;

fn kills() -> u32 {
    std::env::var("WINDROW_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS)
}

/// A few megabytes in three files.
fn desk() -> Desk {
    let desk = Desk::new();
    let corpus = corpus();
    for name in ["in/a.jsonl", "in/b/c.jsonl", "in/d.jsonl"] {
        desk.write(name, &corpus);
    }
    desk
}

fn visible(desk: &Desk, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let mut tree = desk.tree(folder);
    tree.retain(|name, _| !name.split('/').any(|part| part.starts_with('.')));
    tree
}

/// Kills `command` at times spread over its run; `fresh` removes its output, `shows` is what it makes visible.
fn survives_kills(desk: &Desk, command: &str, folder: &str, fresh: impl Fn(), reader: &str) {
    // The quickest of some runs, so that most kills come before the end of a run that nothing else slows down.
    let run = |_| {
        fresh();
        let started = Instant::now();
        desk.windrow(command).done();
        started.elapsed()
    };
    let took = (0..5).map(run).min().unwrap_or_default();
    let whole = visible(desk, folder);
    let read = desk.windrow(reader).done();
    let n = kills();
    let mut unfinished = 0;
    for i in 0..n {
        fresh();
        let mut child = desk.start(command);
        thread::sleep(took * i / n);
        // It may have ended by itself: then this kills nothing.
        let _ = child.kill();
        child.wait().unwrap();
        let seen = desk.windrow(reader);
        match seen.code {
            Some(0) => assert_eq!(seen.out, read, "kill {i}: a reader saw a part"),
            _ => unfinished += 1,
        }
        desk.windrow(command).done();
        let again = visible(desk, folder);
        let names = || whole.keys().chain(again.keys());
        let others: Vec<_> = names().filter(|name| whole.get(*name) != again.get(*name)).collect();
        assert!(others.is_empty(), "kill {i} at {:?}: after the rerun {others:?} are others", took * i / n);
    }
    assert!(unfinished > 0, "none of {n} kills came before the end");
}

#[test]
fn killed_indexing_shows_nothing_and_a_rerun_ends_the_same() {
    let desk = desk();
    let fresh = || std::fs::remove_dir_all(desk.path("in/index")).unwrap_or_default();
    survives_kills(&desk, "index in -q", "in", fresh, "inspect in --format forager");
}

#[test]
fn killed_tokenizing_shows_nothing_and_a_rerun_ends_the_same() {
    let desk = desk();
    let fresh = || std::fs::remove_dir_all(desk.path("tok")).unwrap_or_default();
    // Restart points are close together, so that most kills come after one.
    let command = "tokenize in -q --tokenizer bytes --out tok --sample-size 128 --checkpoint-bytes 300000";
    survives_kills(&desk, command, "tok", fresh, "inspect tok");
}

#[test]
fn killed_tokenizing_into_a_group_shows_nothing_and_a_rerun_ends_the_same() {
    let desk = desk();
    let fresh = || std::fs::remove_dir_all(desk.path("z/train")).unwrap_or_default();
    let command = "tokenize in -q --tokenizer bytes --out z/train --to flat-tokens --tokens-chunk-size 100000 \
                   --checkpoint-bytes 300000";
    survives_kills(&desk, command, "z/train", fresh, "inspect z/train");
}

// While somebody writes and renames there.
fn bytes_below(folder: &Path) -> u64 {
    let Ok(items) = std::fs::read_dir(folder) else { return 0 };
    let size = |item: std::fs::DirEntry| match item.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&item.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    items.flatten().map(size).sum()
}

#[test]
fn ctrl_c_exits_130_and_the_same_command_finishes() {
    let desk = Desk::new();
    // Much more than is done before the signal comes, however busy the machine is.
    desk.write("in/a.jsonl", corpus().repeat(60));
    let command = "tokenize in --tokenizer cl100k_base --num-threads 1 --out tok --checkpoint-bytes 1000000";
    let child = desk.start(command);
    let started = Instant::now();
    // Behind the first restart point.
    while bytes_below(&desk.path("tok")) < 2_000_000 {
        assert!(started.elapsed() < Duration::from_secs(60), "nothing was begun");
        thread::sleep(Duration::from_millis(10));
    }
    let pressed = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(pressed.elapsed() < Duration::from_secs(60), "it took {:?}", pressed.elapsed());
    assert!(err.contains("error: ") && err.contains("run the same command again"), "{err}");
    assert!(visible(&desk, "tok").is_empty(), "{:?}", visible(&desk, "tok").keys());
    let err = desk.windrow("inspect tok").failed(1);
    assert!(err.contains("only hidden names are there"), "{err}");

    desk.windrow(command).done();
    let resumed = visible(&desk, "tok");
    std::fs::remove_dir_all(desk.path("tok")).unwrap();
    desk.windrow(command).done();
    assert!(resumed == visible(&desk, "tok"), "other files after the interruption");
}
