//! Where the machine's limits end: a disk without room, a line of a gigabyte, a folder that cannot be written.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::program::{Desk, Ran};

// Runs `windrow` so that every file ends after `blocks` × 512 bytes: the system then refuses to write, as on a full disk.
fn with_little_room(desk: &Desk, blocks: u32, line: &str) -> Ran {
    limited(desk, &format!("ulimit -f {blocks}"), line)
}

fn limited(desk: &Desk, limit: &str, line: &str) -> Ran {
    let script = format!("{limit}; exec {} {line}", env!("CARGO_BIN_EXE_windrow"));
    let mut command = Command::new("bash");
    command.arg("-c").arg(script).current_dir(desk.path("")).stdin(Stdio::null());
    command.output().unwrap().into()
}

fn visible(desk: &Desk, folder: &str) -> Vec<String> {
    desk.tree(folder).into_keys().filter(|name| !name.starts_with('.')).collect()
}

fn corpus(desk: &Desk) {
    let texts: Vec<String> = (0..3_000).map(|i| format!("document {i} {}", "word ".repeat(40))).collect();
    desk.texts("c/a.jsonl", &texts.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file_and_a_rerun_with_room_succeeds() {
    let desk = Desk::new();
    corpus(&desk);
    for (line, folder, blocks) in [
        ("index c -q", "c", 16),
        ("tokenize c --tokenizer bytes --out tok --sample-size 64 -q", "tok", 64),
        ("tokenize c --tokenizer bytes --out flat --to tokens -q", "flat", 64),
        ("dummy --vocab-size 9 --tokens 100000 --out d.bin -q", "d.bin", 16),
    ] {
        let before = visible(&desk, folder);
        let err = with_little_room(&desk, blocks, line).failed(1);
        assert!(err.contains("cannot write") && err.contains("at: "), "{line}: {err}");
        assert_eq!(visible(&desk, folder), before, "{line}");
        assert!(!desk.path("d.bin").exists());
        desk.windrow(line).done();
    }
    desk.windrow("verify tok").done();
    assert_eq!(desk.windrow("inspect c --json").json()["info"]["records"], 3_000);
}

#[test]
fn a_line_of_a_gigabyte_is_one_record() {
    let desk = Desk::new();
    desk.write("c/big.jsonl", "");
    // A hole: a gigabyte to read, nothing on the disk.
    File::options().write(true).open(desk.path("c/big.jsonl")).unwrap().set_len(1 << 30).unwrap();
    desk.windrow("index c -q").done();
    let rows = &desk.tree("c/index")["sample_locations.bin"];
    let numbers: Vec<u64> = rows.chunks(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(numbers, [0, 0, 1 << 30]);
    let ran = desk.windrow("peek c --index 0 --json");
    assert_eq!(ran.code, Some(3));
    assert_eq!((&ran.json()["error"]["record"], &ran.json()["error"]["byte"]), (&json!(0), &json!(0)));
}

#[test]
fn a_deep_line_and_a_line_that_is_not_utf8_name_their_bytes() {
    let desk = Desk::new();
    let deep = format!("{{\"text\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    desk.write("c/deep.jsonl", format!("{{\"text\": \"fine\"}}\n{deep}\n"));
    desk.write("d/raw.jsonl", b"{\"text\": \"fine\"}\n{\"text\": \"\xff\"}\n");
    for (folder, byte) in [("c", 17..400), ("d", 27..28)] {
        let ran = desk.windrow(&format!("tokenize {folder} --tokenizer bytes --out tok --json -q"));
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let error = &ran.json()["error"];
        assert_eq!(error["record"], 1);
        assert!(byte.contains(&error["byte"].as_u64().unwrap()), "{error}");
        assert_eq!(visible(&desk, "tok"), Vec::<String>::new());
    }
}

#[test]
fn an_output_below_a_file_is_an_error_that_names_it() {
    let desk = Desk::new();
    corpus(&desk);
    fs::write(desk.path("file"), "in the way").unwrap();
    let ran = desk.windrow("tokenize c --tokenizer bytes --out file/tok -q");
    assert_ne!(ran.code, Some(0));
    assert!(ran.err.contains("file"), "{ran:?}");
    assert_eq!(fs::read_to_string(desk.path("file")).unwrap(), "in the way");
}

#[test]
fn an_index_of_more_files_than_may_be_open_at_a_time_is_verified() {
    const FILES: usize = 100;
    let desk = Desk::new();
    (0..FILES).for_each(|i| desk.texts(&format!("c/{i}.jsonl"), &["a", "b", "c"]));
    desk.windrow("index c -q").done();
    assert!(limited(&desk, "ulimit -n 48", "verify c").done().contains("c: 100 files read; "));
    // The first line of every file, then the second one of each, as another program may write it.
    fs::remove_file(desk.path("c/index/windrow.json")).unwrap();
    let path = desk.path("c/index/sample_locations.bin");
    let rows = fs::read(&path).unwrap();
    let rows: Vec<&[u8]> = rows.chunks(24).collect();
    let by_line: Vec<&[u8]> = (0..3).flat_map(|line| rows.iter().skip(line).step_by(3)).copied().collect();
    fs::write(&path, by_line.concat()).unwrap();
    assert!(limited(&desk, "ulimit -n 48", "verify c").done().contains("c: 100 files read; "));
    // Bad rows of the last file are found all the same.
    desk.write("c/99.jsonl", "{\"text\": \"a\"}\n");
    assert_eq!(limited(&desk, "ulimit -n 48", "verify c").code, Some(3));
}

#[test]
fn a_folder_whose_name_is_no_text_is_read() {
    let desk = Desk::new();
    let folder = desk.path("").join(OsStr::from_bytes(b"d\xff"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.jsonl"), "{\"a\":1}\n").unwrap();
    for act in ["inspect", "index", "peek"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
        let ran: Ran =
            command.arg(act).arg(&folder).arg("--json").stdin(Stdio::null()).output().unwrap().into();
        assert_eq!(ran.code, Some(0), "{act}: {}", ran.err);
        assert!(ran.out.contains("d\u{fffd}"), "{act}: {}", ran.out);
    }
}
