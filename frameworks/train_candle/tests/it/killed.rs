//! Runs that are killed go on to the losses of the run that was not, bit for bit.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::desk::{Desk, STEPS, Step, step};

fn line(more: &str) -> String {
    format!("-f small.yaml -d tokens --max-steps {STEPS} {more}")
}

/// Ends it by force, which it must not have ended before.
#[track_caller]
fn kill(mut child: Child) {
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9), "the run was over before it could be killed");
}

/// Steps of the unbroken run, whose checkpoints are gone again.
fn unbroken(desk: &Desk) -> Vec<Step> {
    let steps = desk.steps(&line(""));
    assert_eq!(steps.iter().map(|step| step.0).collect::<Vec<_>>(), (1..=STEPS).collect::<Vec<_>>());
    desk.forget();
    steps
}

#[test]
fn a_killed_run_continues_to_the_losses_of_the_unbroken_one() {
    let desk = Desk::new();
    let unbroken = unbroken(&desk);

    // Without an end of its own, so that it is killed in the middle. Where it is quicker than whoever kills it, once more.
    for attempt in 0.. {
        desk.forget();
        let mut child = desk.start("-f small.yaml -d tokens");
        let mut log = BufReader::new(child.stdout.take().unwrap()).lines();
        let before: Vec<Step> = log.by_ref().take(8).map(|text| step(&text.unwrap())).collect();
        kill(child);
        assert_eq!(before, unbroken[..8]);
        if newest(&desk) < STEPS {
            break;
        }
        assert!(attempt < 20, "every run got beyond step {STEPS} before it was killed");
    }

    let after = desk.steps(&line("--resume auto"));
    let first = after[0].0 as usize;
    assert!(first > 1 && (first - 1).is_multiple_of(5), "continues after a checkpoint, not at step {first}");
    assert_eq!(after, unbroken[first - 1..]);
}

#[test]
fn a_run_killed_while_it_writes_a_checkpoint_continues_from_the_one_before() {
    let desk = Desk::new();
    // Checkpoints of megabytes after every step: most of the time one is being written.
    let large = [("hidden_size", "128"), ("intermediate_size", "512"), ("save_interval", "1")];
    desk.configure("large.yaml", &large);
    let end = "-f large.yaml -d tokens --seq-len 8 --max-steps 6";
    let unbroken = desk.steps(end);
    desk.forget();

    let mut caught = 0;
    for _ in 0..20 {
        desk.forget();
        let child = desk.start("-f large.yaml -d tokens --seq-len 8 --max-steps 1000");
        let asked = Instant::now();
        while !(desk.checkpoints().len() >= 2 && is_writing(&desk)) {
            assert!(asked.elapsed() < Duration::from_secs(60), "no checkpoint is written");
        }
        kill(child);
        let newest = newest(&desk) as usize;
        let was_caught = is_writing(&desk);
        let after = desk.steps(&format!("{end} --resume auto"));
        assert_eq!(after, unbroken[newest.min(6)..], "after {newest} steps");
        assert!(!is_writing(&desk), "what was left unfinished is still there");
        caught += usize::from(was_caught && newest < 6);
        if caught == 2 {
            return;
        }
    }
    panic!("{caught} of 20 kills came while a checkpoint was being written");
}

/// Steps behind the newest whole checkpoint.
#[track_caller]
fn newest(desk: &Desk) -> u64 {
    let names = desk.checkpoints();
    let steps = names.iter().filter_map(|name| name.strip_prefix("step-")?.strip_suffix(".safetensors"));
    steps.map(|step| step.parse().unwrap()).max().expect("a whole checkpoint")
}

fn is_writing(desk: &Desk) -> bool {
    desk.checkpoints().iter().any(|name| name.ends_with(".unfinished"))
}

#[test]
fn the_number_of_threads_changes_no_loss() {
    let desk = Desk::new();
    let logs = [1, 2, 3].map(|threads| {
        desk.forget();
        let output = desk.run_on(threads, "-f small.yaml -d tokens --seq-len 128 --max-steps 3");
        crate::desk::steps(&String::from_utf8(output.stdout).unwrap())
    });
    assert_eq!(logs[0].len(), 3);
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[0], logs[2]);
}
