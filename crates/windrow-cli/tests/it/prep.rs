//! `windrow prep`: workers that are killed, and two at once, end in the same bytes.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use crate::program::{Desk, corpus};

/// How many workers are killed.
const KILLS: u32 = 50;

fn desk() -> Desk {
    let desk = Desk::new();
    let corpus = corpus();
    for name in ["in/a.jsonl", "in/b.jsonl"] {
        desk.write(name, &corpus);
    }
    desk
}

fn parts(desk: &Desk, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let mut tree = desk.tree(folder);
    // A job says where it is.
    tree.retain(|name, _| !name.contains("prep/") && !name.split('/').any(|part| part.starts_with('.')));
    tree
}

fn plan(desk: &Desk, out: &str) -> String {
    desk.windrow(&format!("prep plan tokenize in --tokenizer bytes --out {out} --task-bytes 150kB -q"))
        .done()
        .trim()
        .to_string()
}

#[test]
fn killed_workers_leave_nothing_that_is_wrong() {
    let desk = desk();
    let job = plan(&desk, "whole");
    let started = Instant::now();
    desk.windrow(&format!("prep run {job} -q")).done();
    let took = started.elapsed().max(Duration::from_millis(20));
    desk.windrow(&format!("prep merge {job}")).done();
    let want = parts(&desk, "whole");
    assert!(want.len() > 20, "{}", want.len());
    let job = plan(&desk, "killed");
    for i in 0..KILLS {
        // Two at once, both killed, each with another order of tasks.
        let mut workers: Vec<_> = (0..2)
            .map(|rank| desk.start(&format!("prep run {job} --rank {rank} --of 2 --steal -q")))
            .collect();
        thread::sleep(took * (i * 7 % KILLS) / KILLS / 4);
        for worker in &mut workers {
            let _ = worker.kill();
            worker.wait().unwrap();
        }
        let seen = parts(&desk, "killed");
        assert!(seen.iter().all(|(name, bytes)| want.get(name) == Some(bytes)), "kill {i}");
    }
    desk.windrow(&format!("prep run {job} -q")).done();
    desk.windrow(&format!("prep merge {job}")).done();
    desk.windrow(&format!("prep clean {job}")).done();
    assert!(parts(&desk, "killed") == want);
    let hidden = desk.tree("killed").keys().filter(|name| name.contains("/.")).count();
    assert_eq!(hidden, 0);
}

#[test]
fn a_task_that_fails_is_written_down_and_the_others_go_on() {
    let desk = desk();
    desk.write("in/b.jsonl", b"{\"text\": \"a\"}\nnonsense\n");
    let job = plan(&desk, "out");
    let run = desk.windrow(&format!("prep run {job} -q"));
    assert_eq!(run.code, Some(5), "{}", run.err);
    assert!(run.err.contains("b.jsonl") && run.err.contains("record 1"), "{}", run.err);
    let status = desk.windrow(&format!("prep status {job}")).done();
    assert!(status.contains("failed") && status.contains("left: "), "{status}");
    // Nothing is bad: some is left.
    for what in ["merge".to_string(), "join --out joined".to_string()] {
        let ran = desk.windrow(&format!("prep {what} {job} --json"));
        assert_eq!((ran.code, &ran.json()["error"]["exit"]), (Some(5), &serde_json::json!(5)), "{ran:?}");
        assert!(ran.err.contains("the preparation is not finished"), "{ran:?}");
    }
    // One that is asked for alone ends with its own error.
    let last = status.split("left: ").nth(1).unwrap().trim();
    assert_eq!(desk.windrow(&format!("prep run {job} --task {last} -q")).code, Some(3));
    assert_eq!(desk.windrow(&format!("prep run {job} --tasks 0-99 -q")).code, Some(2));
    assert_eq!(desk.windrow(&format!("prep run {job} --rank 3 --of 3 -q")).code, Some(2));
    assert_eq!(desk.windrow(&format!("prep run {job} --of 0 -q")).code, Some(2));
    assert_eq!(desk.windrow("prep run in/a.jsonl").code, Some(3));
}

#[test]
fn killed_workers_that_encode_leave_the_files_of_one_run() {
    let desk = Desk::new();
    let testdata = |name: &str| {
        std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name))
            .unwrap()
    };
    for clip in ["cards_001.wav", "cards_003.mp3", "cards_004.m4a", "cards_005.ogg"] {
        desk.write(&format!("sound/{clip}"), testdata(&format!("audio/{clip}")));
    }
    desk.write("sound/cards_002.ogg", &testdata("audio/cards_005.ogg")[..5_000]);
    desk.write("weights.pth", testdata("dac/small.pth"));
    let options = "--weights weights.pth --prompt-from-name";
    let one = desk.windrow(&format!("encode sound --out one {options}"));
    assert_eq!(one.code, Some(5), "{}", one.err);
    let planned = desk.windrow(&format!("prep plan encode sound --out parts --task-bytes 5kB {options} -q"));
    let job = planned.done().trim().to_string();
    for i in 0..4 {
        let mut workers: Vec<_> = (0..2)
            .map(|rank| desk.start(&format!("prep run {job} --rank {rank} --of 2 --steal -q")))
            .collect();
        thread::sleep(Duration::from_millis(15 * i));
        for worker in &mut workers {
            let _ = worker.kill();
            worker.wait().unwrap();
        }
    }
    desk.windrow(&format!("prep run {job} -q")).done();
    let merged = desk.windrow(&format!("prep merge {job}"));
    assert!(merged.err.contains("cards_002.ogg"), "{}", merged.err);
    assert!(merged.done().contains("parts: 4 records in "));
    desk.windrow(&format!("prep join {job} --out joined")).done();
    let (mut found, mut want) = (desk.tree("joined"), desk.tree("one"));
    // One names the file that failed as it was typed.
    for tree in [&mut found, &mut want] {
        assert!(tree.remove("windrow.json").is_some());
    }
    assert!(want.len() > 4 && found == want, "{:?}", found.keys());
    // Other weights, of the same model.
    desk.write("weights.pth", testdata("dac/small.safetensors"));
    let error = desk.windrow(&format!("prep run {job} -q")).failed(4);
    assert!(error.contains("option weights"), "{error}");
}
