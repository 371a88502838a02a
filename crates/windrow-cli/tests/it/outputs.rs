//! A file that a command writes replaces nothing unasked, and an input never.

use std::fs;

use crate::program::{Desk, npy};

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("mine.txt", "mine");
    desk.write("d/s.jsonl", "{\"sequence\": [0, 1.5, 2, 3]}\n{\"sequence\": [5, 1.5, 1, 1]}\n");
    desk
}

/// A command that ends in the name of its output: it is refused where another file is there, replaces that with `--overwrite`, and
/// is done where the same file is there.
fn replaces_when_asked(desk: &Desk, command: &str, name: &str) {
    desk.write(name, "mine");
    let err = desk.windrow(&format!("{command} {name}")).failed(1);
    assert!(err.contains("the file is there already") && err.contains("--overwrite"), "{command}: {err}");
    assert_eq!(fs::read(desk.path(name)).unwrap(), b"mine", "{command}");
    desk.windrow(&format!("{command} {name} --overwrite")).done();
    let written = fs::read(desk.path(name)).unwrap();
    assert_ne!(written, b"mine", "{command}");
    desk.windrow(&format!("{command} {name}")).done();
    assert_eq!(fs::read(desk.path(name)).unwrap(), written, "{command}");
}

/// The output is an input, which stays.
fn keeps_input(desk: &Desk, command: &str, name: &str) {
    let before = fs::read(desk.path(name)).unwrap();
    for overwrite in ["", " --overwrite"] {
        let err = desk.windrow(&format!("{command} {name}{overwrite}")).failed(2);
        assert!(err.contains("would replace its own input"), "{command}: {err}");
        assert_eq!(fs::read(desk.path(name)).unwrap(), before, "{command}");
    }
}

#[test]
fn extract_replaces_nothing_unasked_and_never_its_data() {
    let desk = desk();
    let batch = "extract d/s.jsonl --windows 2 --batch-size 2 --step 0 -o";
    replaces_when_asked(&desk, batch, "batch.npz");
    replaces_when_asked(&desk, batch, "batch.txt");
    desk.windrow("convert d/s.jsonl own.npz --to npz").done();
    keeps_input(&desk, "extract own.npz --windows 2 --batch-size 2 --step 0 -o", "own.npz");
    let err = desk.windrow(&format!("{batch} - --overwrite")).failed(2);
    assert!(err.contains("--overwrite replaces a file"), "{err}");
}

#[test]
fn an_output_is_named_by_its_place_or_by_out() {
    let desk = desk();
    desk.windrow("convert d/s.jsonl one.npz --to npz").done();
    desk.windrow("convert d/s.jsonl -o two.npz --to npz").done();
    assert_eq!(fs::read(desk.path("one.npz")).unwrap(), fs::read(desk.path("two.npz")).unwrap());
    assert!(
        desk.windrow("convert d/s.jsonl three.npz -o four.npz --to npz")
            .failed(2)
            .contains("cannot be used with")
    );
    assert!(desk.windrow("convert d/s.jsonl --to npz").failed(2).contains("<OUTPUT>"));
    let job = desk.windrow("prep plan convert d/s.jsonl --to npz -o parts -q").done();
    desk.windrow(&format!("prep run {job}")).done();
    desk.windrow(&format!("prep merge {job}")).done();
    desk.windrow(&format!("prep join {job} -o joined.npz")).done();
    assert!(desk.path("joined.npz").is_file());
}

#[test]
fn a_plan_replaces_nothing_unasked_and_never_its_data() {
    let desk = desk();
    let plan = "plan d/s.jsonl --windows 2 --batch-size 2 -o";
    replaces_when_asked(&desk, plan, "plan.json");
    keeps_input(&desk, plan, "d/s.jsonl");
    let err = desk.windrow("plan d/s.jsonl --windows 2 --batch-size 2 --overwrite").failed(2);
    assert!(err.contains("--overwrite replaces a file"), "{err}");
    let err = desk.windrow("plan plan.json --windows 2 --batch-size 2").failed(2);
    assert!(err.contains("a plan says itself"), "{err}");
}

#[test]
fn what_describes_the_data_is_not_replaced_and_a_page_beside_it_is() {
    let desk = desk();
    desk.texts("t/a.jsonl", &["one two", "three"]);
    desk.windrow("index t").done();
    desk.windrow("tokenize t -t bytes --out tok --to tokens").done();
    let batch = "extract t/tok --pack 4 --batch-size 1 --step 0";
    desk.windrow("tokenize t -t bytes --out t/tok").done();
    keeps_input(&desk, &format!("{batch} -o"), "t/tok/index/file_location.txt");
    for name in ["tok/windrow.json", "tok/windrow.sums", "tok/tokens.bin"] {
        let before = fs::read(desk.path(name)).unwrap();
        for data in ["tok", "tok/tokens.bin"] {
            let err = desk.windrow(&format!("report {data} -o {name} --overwrite")).failed(2);
            assert!(err.contains("would replace its own input"), "{data}: {err}");
        }
        assert_eq!(fs::read(desk.path(name)).unwrap(), before);
    }
    desk.windrow("report tok -o tok/page.html").done();
    desk.windrow("report tok -o tok/page.html --overwrite").done();
    desk.windrow("verify tok").done();
}

#[test]
fn only_files_are_replaced() {
    let desk = desk();
    desk.texts("t/a.jsonl", &["one two", "three"]);
    desk.windrow("tokenize t -t bytes --out tok --to tokens").done();
    let made = std::process::Command::new("mkfifo").arg(desk.path("pipe.txt")).status().unwrap();
    assert!(made.success());
    for command in [
        "extract tok --pack 4 --batch-size 1 --step 0 -o pipe.txt",
        "report tok -o pipe.txt",
        "manifest d -o pipe.txt",
        "dummy --vocab-size 9 --tokens 9 --out pipe.txt",
        "convert tok pipe.txt --to tokens",
        "prep plan convert d/s.jsonl --to shards --out parts -q --job pipe.txt",
    ] {
        let err = desk.windrow(&format!("{command} --overwrite")).failed(1);
        assert!(err.contains("a pipe or a socket is where the output goes"), "{command}: {err}");
        let kept = std::os::unix::fs::FileTypeExt::is_fifo(
            &fs::symlink_metadata(desk.path("pipe.txt")).unwrap().file_type(),
        );
        assert!(kept, "{command}");
    }
}

#[test]
fn no_folder_is_called_dash() {
    let desk = desk();
    for command in ["demo --out -", "download owner/name --out -"] {
        let err = desk.windrow(command).failed(2);
        assert!(err.contains("stdout cannot be written to"), "{command}: {err}");
        assert!(!desk.path("-").exists(), "{command}");
    }
}

#[test]
fn a_manifest_elsewhere_replaces_nothing_unasked_and_never_what_it_lists() {
    let desk = desk();
    replaces_when_asked(&desk, "manifest d -o", "other.json");
    keeps_input(&desk, "manifest d -o", "d/s.jsonl");
    for line in ["manifest d -o d/windrow.json", "manifest d -o d/windrow.json --overwrite"] {
        desk.windrow(line).done();
    }
    let err = desk.windrow("manifest d --overwrite").failed(2);
    assert!(err.contains("--out"), "{err}");
    for (option, said) in [("--json", "would both write to stdout"), ("--overwrite", "replaces a file")] {
        let err = desk.windrow(&format!("manifest d -o - {option}")).failed(2);
        assert!(err.contains(said), "{err}");
    }
    // The one beside the data is replaced as ever.
    desk.windrow("manifest d").done();
    desk.windrow("manifest d").done();
}

#[test]
fn a_copy_of_a_job_replaces_nothing_unasked_and_never_an_input() {
    let desk = desk();
    let plan = "prep plan convert d/s.jsonl --to shards --out parts -q --job";
    replaces_when_asked(&desk, plan, "job.json");
    keeps_input(&desk, plan, "d/s.jsonl");
    desk.write("x/a.npy", npy("<f4", &[0; 16]));
    keeps_input(&desk, "prep plan convert x --to shards --out of-folder -q --job", "x/a.npy");
    desk.texts("t/a.jsonl", &["one"]);
    keeps_input(&desk, "prep plan tokenize t -t bytes --out of-texts -q --job", "t/a.jsonl");
    let err = desk.windrow(&format!("{plan} -")).failed(2);
    assert!(err.contains("stdout cannot be written to"), "{err}");
    assert!(!desk.path("-").exists());
}

#[test]
fn the_demo_leaves_files_of_others_alone() {
    for name in ["corpus/corpus.jsonl", "corpus/NOTICE", "plan.json"] {
        let desk = Desk::new();
        desk.write(&format!("d/{name}"), "mine");
        let err = desk.windrow("demo --out d -q").failed(1);
        assert!(err.contains(name) && err.contains("--out"), "{err}");
        assert_eq!(fs::read(desk.path("d").join(name)).unwrap(), b"mine");
    }
}
