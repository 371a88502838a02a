//! `encode`, `rebuild-metadata` and `peek --play`, on real clips and a codec of random weights.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::program::Desk;

fn testdata(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)).unwrap()
}

/// Two clips, one prompt, and the weights.
fn desk() -> Desk {
    let desk = Desk::new();
    for clip in ["cards_002.flac", "cards_003.mp3"] {
        desk.write(&format!("sound/{clip}"), testdata(&format!("audio/{clip}")));
    }
    desk.write("audio_prompts/cards_002_prompt.txt", "four queen of clubs\n");
    desk.write("weights.pth", testdata("dac/small.pth"));
    desk
}

const ENCODE: &str = "encode sound --out out --weights weights.pth";

#[test]
fn sound_becomes_tracks_and_tracks_become_sound() {
    let desk = desk();
    let said = desk.windrow(ENCODE).done();
    assert!(said.starts_with("out: 2 tracks, ") && said.contains(" s of sound; "), "{said}");
    assert!(said.ends_with("\n  1 track without a prompt\n"), "{said}");
    assert!(desk.windrow(ENCODE).done().ends_with("was up to date\n"));
    let info = desk.windrow("inspect out --json").json();
    assert_eq!((&info["info"]["format"], &info["info"]["records"]), (&json!("codes"), &json!(2)));
    desk.windrow("verify out").done();

    desk.windrow("peek out --index 0 --play a.wav --weights weights.pth").done();
    let sound = fs::read(desk.path("a.wav")).unwrap();
    assert!(sound.starts_with(b"RIFF") && sound.len() > 100_000);
    let error = desk.windrow("peek out --play a.wav --weights weights.pth").failed(1);
    assert!(error.contains("--overwrite"), "{error}");
    // What was written is sound, too: encoded again, it has as many frames.
    desk.windrow("encode a.wav --out again --weights weights.pth --to shards").done();
    let frames = |path: &str| {
        let info = desk.windrow(&format!("peek {path} --index 0 --json")).json();
        info["records"][0]["length"].as_u64().unwrap()
    };
    assert_eq!(frames("again"), frames("out"));
}

#[test]
fn what_cannot_be_encoded_is_listed_and_the_rest_is_there() {
    let desk = desk();
    desk.write("sound/broken.ogg", &testdata("audio/cards_005.ogg")[..5000]);
    desk.write("sound/none.wav", b"");
    let ran = desk.windrow(&format!("{ENCODE} --json"));
    let (code, done) = (ran.code, ran.json());
    assert_eq!((code, &done["report"]["records"]), (Some(5), &json!(2)));
    let failed: Vec<&str> =
        done["failed"].as_array().unwrap().iter().map(|row| row["file"].as_str().unwrap()).collect();
    assert_eq!(failed, ["sound/broken.ogg", "sound/none.wav"]);
    assert!(ran.err.contains("not in it: sound/broken.ogg"), "{}", ran.err);
    let said = desk.windrow("inspect out").done();
    assert!(said.contains("left out  2 files that could not be read, first sound/broken.ogg"), "{said}");
    assert!(desk.windrow("verify out").done().contains("2 of the files it was made from"));
    // A rerun says the same; mended, they are taken up.
    assert_eq!(desk.windrow(ENCODE).code, Some(5));
    desk.write("sound/broken.ogg", testdata("audio/cards_005.ogg"));
    fs::remove_file(desk.path("sound/none.wav")).unwrap();
    assert!(desk.windrow(ENCODE).failed(1).contains("--overwrite"));
    assert!(desk.windrow(&format!("{ENCODE} --overwrite")).done().starts_with("out: 3 tracks"));
}

#[test]
fn every_sound_file_is_encoded_or_named() {
    let desk = desk();
    let read = [
        ("adts.aac", "cards_004_adts.aac"),
        ("movie.mp4", "cards_004.m4a"),
        ("book.M4B", "cards_004.m4a"),
        ("vorbis.oga", "cards_005.ogg"),
        ("long.wave", "cards_001.wav"),
        ("radio.bwf", "cards_001.wav"),
        // By name a kind that is not read, by content one that is.
        ("misnamed.opus", "cards_005.ogg"),
    ];
    for (name, clip) in read {
        desk.write(&format!("sound/{name}"), testdata(&format!("audio/{clip}")));
    }
    let opus = testdata("audio/cards_001_opus.ogg");
    let not_read: [(&str, &[u8]); 8] = [
        ("a.opus", &opus),
        // Beside a file of the same name: that is the one that becomes a track.
        ("cards_002.opus", &opus),
        ("b.aiff", b"FORM\0\0\0\x10AIFF"),
        ("c.caf", b"caff\0\x01\0\0desc"),
        ("d.wma", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"),
        ("e.webm", b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81"),
        ("f.wv", b"wvpk\0\0\0\0"),
        ("g.amr", b"#!AMR\n"),
    ];
    for (name, bytes) in not_read {
        desk.write(&format!("sound/{name}"), bytes);
    }
    desk.write("sound/notes.txt", "no sound");
    desk.write("sound/below/deep/h.wav", testdata("audio/cards_001.wav"));
    desk.write("sound/below/i.opus", &opus);

    let ran = desk.windrow(&format!("{ENCODE} --json"));
    let (code, done) = (ran.code, ran.json());
    assert_eq!((code, &done["report"]["records"]), (Some(5), &json!(2 + read.len())), "{ran:?}");
    for (name, _) in read {
        let stem = name.rsplit_once('.').unwrap().0;
        assert!(desk.path(&format!("out/encoded_audio/{stem}.pt")).exists(), "{name}");
    }
    let failed = done["failed"].as_array().unwrap();
    let files: Vec<&str> = failed.iter().map(|row| row["file"].as_str().unwrap()).collect();
    let mut named: Vec<String> = not_read.iter().map(|(name, _)| format!("sound/{name}")).collect();
    named.sort();
    named.extend(["sound/below/deep/h.wav".to_string(), "sound/below/i.opus".to_string()]);
    assert_eq!(files, named);
    for (row, file) in failed.iter().zip(files) {
        let error = row["error"].as_str().unwrap();
        assert!(
            error.contains(file) && (error.contains("not read") || error.contains("folder below")),
            "{error}"
        );
        assert!(ran.err.contains(&format!("not in it: {file}: ")), "{}", ran.err);
    }
    // A second run tells of them again.
    assert_eq!(desk.windrow(ENCODE).code, Some(5));

    // Two that can be read, and would be one track.
    desk.write("sound/adts.opus", testdata("audio/cards_005.ogg"));
    let error = desk.windrow(ENCODE).failed(2);
    assert!(error.contains("adts.aac") && error.contains("adts.opus"), "{error}");
    // Folders of sound only.
    let error = desk.windrow("encode sound/below --out other --weights weights.pth").failed(1);
    assert!(error.contains("none of 2 files could be encoded"), "{error}");
    fs::remove_file(desk.path("sound/below/i.opus")).unwrap();
    let error = desk.windrow("encode sound/below --out other --weights weights.pth").failed(1);
    assert!(error.contains("1 in folders below, first deep/h.wav"), "{error}");
}

#[test]
fn weights_and_folders_that_do_not_fit_are_refused() {
    let desk = desk();
    let error = desk.windrow("encode sound --out out").failed(2);
    assert!(error.contains("--weights") && error.contains("weights.pth` of release 0.0.1"), "{error}");
    let error = desk.windrow("encode sound --out out --weights none.pth").failed(1);
    assert!(error.contains("release 0.0.1"), "{error}");
    desk.windrow("encode sound --out out --weights sound/cards_003.mp3").failed(3);
    desk.write("sound/cards_003.wav", b"");
    let error = desk.windrow(ENCODE).failed(2);
    assert!(error.contains("cards_003.mp3") && error.contains("cards_003.wav"), "{error}");
    desk.write("empty/readme.txt", "no sound");
    desk.windrow("encode empty --out out --weights weights.pth").failed(1);
    assert!(!desk.path("out").exists());
    desk.texts("a.jsonl", &["text"]);
    desk.windrow("tokenize a.jsonl --tokenizer bytes --out tok").done();
    let error = desk.windrow("peek tok --play b.wav --weights weights.pth").failed(2);
    assert!(error.contains("not audio codes"), "{error}");
}

#[test]
fn a_description_is_made_again() {
    let desk = desk();
    desk.windrow(ENCODE).done();
    desk.write("out/metadata.json", "{ broken");
    desk.windrow("inspect out").failed(3);
    let said = desk.windrow("rebuild-metadata out --prompts audio_prompts --dry-run").done();
    assert_eq!(said, "out/metadata.json: 2 tracks, 1 with a prompt; 2 would be changed\n");
    desk.windrow("inspect out").failed(3);
    let done = desk.windrow("rebuild-metadata out --prompts audio_prompts --json").json();
    assert_eq!(done["rebuilt"]["tracks"], 2);
    assert!(desk.windrow("peek out --index 0").done().contains("four queen of clubs"));
    desk.windrow("verify out").done();
    // A prompt that is edited by hand is read, and is not what was written until that is said.
    let told =
        fs::read_to_string(desk.path("out/metadata.json")).unwrap().replace("four queen", "five queens");
    desk.write("out/metadata.json", told);
    assert!(desk.windrow("peek out --index 0").done().contains("five queens of clubs"));
    let said = desk.windrow("verify out");
    assert!(said.code == Some(3) && said.out.contains("rebuild-metadata"), "{said:?}");
    desk.windrow("rebuild-metadata out").done();
    assert!(desk.windrow("peek out --index 0 --verify-checksums").done().contains("five queens of clubs"));
    desk.windrow("verify out").done();
    desk.write("out/encoded_audio/bad.pt", "no tensor");
    let ran = desk.windrow("rebuild-metadata out");
    assert!(ran.code == Some(5) && ran.err.contains("bad.pt"), "{ran:?}");
}
