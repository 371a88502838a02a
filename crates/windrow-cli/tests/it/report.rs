//! `report`: where its page goes, its exit codes, and the options that are refused. What pages say is tested with them.

use std::fs;
use std::path::Path;

use serde_json::json;
use windrow::DType;
use windrow::format::tensor_file;

use crate::program::Desk;

fn series(desk: &Desk) {
    desk.write(
        "s.jsonl",
        "{\"sequence\": [0, 1, 2, 3, 4, 5, 6, 7]}\n{\"sequence\": [5, NaN, 1.5, NaN]}\n{\"sequence\": [2.5, 2.5]}\n",
    );
}

fn track(desk: &Desk) {
    let codes = 1i16.to_le_bytes().repeat(2 * 100);
    desk.write("t/encoded_audio/song.pt", tensor_file("a", DType::I16, [100, 2], &codes).unwrap());
}

fn sound(desk: &Desk, name: &str) {
    let clip = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/audio/cards_001.wav");
    desk.write(name, fs::read(clip).unwrap());
}

fn page(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.path(name)).unwrap()
}

#[test]
fn a_page_is_written_and_its_numbers_are_printed() {
    let desk = Desk::new();
    series(&desk);
    let said = desk.windrow("report s.jsonl -o r.html --windows 2 --prediction-length 1 --stride 2").done();
    assert!(said.starts_with("r.html: ") && said.ends_with("from all of 3 records\n"), "{said}");
    let html = page(&desk, "r.html");
    assert!(html.contains("windows(width=3,stride=2,tail=drop)"), "{html}");
    let printed = desk
        .windrow("report s.jsonl -o r.html --overwrite --windows 2 --prediction-length 1 --stride 2 --json")
        .json();
    assert_eq!(
        printed,
        json!({
            "version": 1, "command": "report", "out": "r.html", "records": 3, "records_read": 3, "bytes": html.len(),
        })
    );
}

#[test]
fn a_page_about_codes_takes_their_options() {
    let desk = Desk::new();
    track(&desk);
    let printed = desk
        .windrow("report t -o r.html --json --hop 320 --rate 16000 --codebook-size 8 --epochs 2 --seed 3");
    let codes = &printed.json()["codes"];
    assert_eq!(codes["durations"]["seconds"].as_f64(), Some(2.0));
    assert_eq!((&codes["codebooks"]["size"], &codes["crops"]["seed"]), (&json!(8), &json!(3)));
    assert_eq!(codes["crops"]["tracks"][0]["epochs"], json!([[[0, 100]], [[0, 100]]]));
    assert!(page(&desk, "r.html").contains("320 samples of sound at 16,000 Hz, as --hop and --rate say."));
    let crops = &desk.windrow("report t -o r.html --overwrite --json --length 50").json()["codes"]["crops"];
    assert_eq!(crops["epochs"], 4);
}

#[test]
fn sound_files_that_cannot_be_read_end_with_bad_data_and_a_page() {
    let desk = Desk::new();
    sound(&desk, "a/good.wav");
    desk.windrow("report a -o r.html").done();
    desk.write("a/empty.wav", "");
    let ran = desk.windrow("report a -o r.html --overwrite");
    assert!(ran.out.ends_with(", from 2 sound files; 1 cannot be read\n"), "{ran:?}");
    ran.failed(3);
    assert!(page(&desk, "r.html").contains("<td>empty.wav</td>"));
    let ran = desk.windrow("report a -o r.html --overwrite --json");
    assert_eq!(ran.json()["sound"]["unreadable"][0]["kind"], "corrupt");
}

#[test]
fn sound_is_looked_at_beside_records_when_it_is_asked_for() {
    let desk = Desk::new();
    desk.write("both/a.jsonl", "{\"id\": 1}\n");
    sound(&desk, "both/a.wav");
    desk.windrow("report both -o r.html").done();
    assert!(page(&desk, "r.html").contains("<h2>Keys</h2>"));
    desk.windrow("report both -o r.html --overwrite --sound").done();
    assert!(page(&desk, "r.html").contains("<h2>Loudness</h2>"));
    desk.write("none/a.txt", "text");
    desk.windrow("report none -o none.html").failed(3);
    let e = desk.windrow("report none -o none.html --sound").failed(1);
    assert!(e.contains("the folder has no sound files"), "{e}");
    assert!(!desk.path("none.html").exists());
}

#[test]
fn a_page_replaces_nothing_unasked_and_never_its_data() {
    let desk = Desk::new();
    series(&desk);
    desk.write("r.html", "mine");
    desk.windrow("report s.jsonl -o r.html").failed(1);
    assert_eq!(page(&desk, "r.html"), "mine");
    desk.windrow("report s.jsonl -o r.html --overwrite").done();
    assert!(page(&desk, "r.html").contains("Missing data"));
    let before = fs::read(desk.path("s.jsonl")).unwrap();
    desk.windrow("report s.jsonl -o s.jsonl --overwrite").failed(2);
    assert_eq!(fs::read(desk.path("s.jsonl")).unwrap(), before);
    sound(&desk, "a/a.wav");
    let before = fs::read(desk.path("a/a.wav")).unwrap();
    desk.windrow("report a -o a/a.wav --overwrite").failed(2);
    assert_eq!(fs::read(desk.path("a/a.wav")).unwrap(), before);
    desk.windrow("report s.jsonl -o nowhere/r.html").failed(1);
    assert!(desk.tree(".").keys().all(|name| !name.contains(".tmp-")));
}

#[test]
fn options_of_something_else_are_refused_and_leave_no_page() {
    let desk = Desk::new();
    series(&desk);
    track(&desk);
    sound(&desk, "a/a.wav");
    desk.write("a.jsonl", "{\"id\": 1}\n");
    for (options, said) in [
        ("a.jsonl --pack 8", ""),
        ("s.jsonl --hop 512", "--hop is an option of audio codes"),
        ("t --crop 20 --length 20", "--length is that of crops, and another view was named"),
        ("t --epochs 0", "0 is not in 1..=64"),
        ("t --rate 0", "0 is not in 1.."),
        ("a --crop 8", "sound files are not cut into samples"),
        ("a --tokenizer bytes", "nor decoded by a tokenizer"),
        ("a --epochs 2", "--epochs is an option of audio codes"),
    ] {
        let e = desk.windrow(&format!("report -o r.html {options}")).failed(2);
        assert!(e.contains(said), "{e}");
    }
    assert!(!desk.path("r.html").exists());
}

#[test]
fn bad_records_leave_no_page() {
    let desk = Desk::new();
    track(&desk);
    let whole = fs::read(desk.path("t/encoded_audio/song.pt")).unwrap();
    desk.write("t/encoded_audio/song.pt", &whole[..whole.len() / 2]);
    let e = desk.windrow("report t -o r.html").failed(3);
    assert!(e.contains("song.pt"), "{e}");
    let codes = 5i16.to_le_bytes().repeat(2 * 60_000);
    desk.write("u/a.pt", tensor_file("a", DType::I16, [2, 60_000], &codes).unwrap());
    let e = desk.windrow("report u -o r.html").failed(1);
    assert!(e.contains("transpose"), "{e}");
    assert!(!desk.path("r.html").exists());
}
