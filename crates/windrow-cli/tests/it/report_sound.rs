//! The page of `report` about sound files: what they are, how loud, what cannot be read, what is seen and heard.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windrow::audio::{Options, decode};

use crate::program::Desk;
use crate::report::{page, stands_alone};

fn clip(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/audio").join(name)
}

fn lay(desk: &Desk, clips: &[&str]) {
    for name in clips {
        desk.write(&format!("a/{name}"), fs::read(clip(name)).unwrap());
    }
}

/// A `.wav` of 16 bits and one channel at 8 kHz.
fn wav(samples: &[i16]) -> Vec<u8> {
    let size = samples.len() as u32 * 2;
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + size).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data");
    wav.extend(size.to_le_bytes());
    wav.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    wav
}

fn of<'a>(list: &'a Value, file: &str) -> &'a Value {
    list.as_array()
        .unwrap()
        .iter()
        .find(|one| one["file"] == file)
        .unwrap_or_else(|| panic!("{file} in {list}"))
}

#[test]
fn every_kind_is_measured_as_it_decodes() {
    let desk = Desk::new();
    let clips = [
        "cards_001.wav",
        "cards_002.flac",
        "cards_003.mp3",
        "cards_004.m4a",
        "cards_005.ogg",
        "chan3_48k.ogg",
    ];
    lay(&desk, &clips);
    desk.write("a/notes.txt", "not sound");
    let ran = desk.windrow("report a -o r.html --json");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sound = &ran.json()["sound"];
    assert_eq!((&sound["files"], &sound["others"], &sound["unreadable"]), (&json!(6), &json!(1), &json!([])));
    for name in clips {
        let own = Options { sample_rate_hz: None, ..Options::default() };
        let whole = decode(clip(name), &own).unwrap();
        let samples = || whole.channels.iter().flatten().map(|x| f64::from(*x));
        let peak = samples().fold(0.0, |peak: f64, x| peak.max(x.abs()));
        let rms = (samples().map(|x| x * x).sum::<f64>() / samples().count() as f64).sqrt();
        let row = of(&sound["loudness"]["each"], name);
        let near = |field: &str, expected: f64| (row[field].as_f64().unwrap() - expected).abs() < 1e-6;
        assert!(near("seconds", whole.seconds()) && near("decoded_seconds", whole.seconds()), "{row}");
        assert!(near("peak_dbfs", 20.0 * peak.log10()) && near("rms_dbfs", 20.0 * rms.log10()), "{row}");
    }
    let html = page(&desk, "r.html");
    stands_alone(&html);
    for part in [
        "All of 6 files were read to the end; nothing is wrong with them.",
        "other files, not looked at",
        "<td>ogg</td><td>vorbis</td><td>48,000 Hz</td>",
        "the spectrogram, 0 to ",
    ] {
        assert!(html.contains(part), "{part} is missing");
    }
    assert_eq!(html.matches("<audio controls").count(), 4);
    assert_eq!(html.matches("src=\"data:audio/wav;base64,UklGR").count(), 4);
    assert_eq!(html.matches("src=\"data:image/png;base64,").count(), 4);
}

#[test]
fn files_that_cannot_be_read_are_listed_and_the_others_shown() {
    let desk = Desk::new();
    lay(&desk, &["cards_001.wav", "cards_001_opus.ogg"]);
    let whole = fs::read(clip("cards_002.flac")).unwrap();
    desk.write("a/cut.flac", &whole[..whole.len() / 2]);
    desk.write("a/empty.wav", "");
    desk.write("a/<script>.mp3", "no sound at all");
    let ran = desk.windrow("report a -o r.html --json");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let sound = &ran.json()["sound"];
    assert_eq!(sound["unreadable"].as_array().unwrap().len(), 4, "{sound}");
    assert_eq!(of(&sound["unreadable"], "cut.flac")["kind"], "corrupt");
    assert_eq!(of(&sound["unreadable"], "cards_001_opus.ogg")["kind"], "unsupported");
    assert_eq!((&sound["durations"]["files"], &sound["loudness"]["files"]), (&json!(1), &json!(1)));
    let html = page(&desk, "r.html");
    stands_alone(&html);
    for part in [
        "Of 5 files, 4 cannot be read; the others were read to the end.",
        "<td>cut.flac</td>",
        "&lt;script&gt;.mp3",
        "Opus in ogg is not read",
    ] {
        assert!(html.contains(part), "{part} is missing");
    }
    let said = desk.windrow("report a -o r.html --overwrite");
    assert!(said.out.ends_with(", from 5 sound files; 4 cannot be read\n"), "{said:?}");
}

#[test]
fn a_folder_without_a_good_file_still_has_a_page() {
    let desk = Desk::new();
    desk.write("a/x.wav", "RIFF");
    let ran = desk.windrow("report a -o r.html");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(page(&desk, "r.html").contains("No file was decoded."));
}

#[test]
fn silence_full_scale_and_the_shortest_sounds_are_told_apart() {
    let desk = Desk::new();
    desk.write("a/silent.wav", wav(&[0; 800]));
    desk.write("a/square.wav", wav(&[i16::MIN; 800]));
    desk.write("a/clipped.wav", wav(&[i16::MAX; 800]));
    desk.write("a/one.wav", wav(&[16_384]));
    let ran = desk.windrow("report a -o r.html --json").json();
    let loudness = &ran["sound"]["loudness"];
    assert_eq!((&loudness["at_full_scale"], &loudness["silent"]), (&json!(2), &json!(1)));
    let levels = |file| {
        (of(&loudness["each"], file)["peak_dbfs"].as_f64(), of(&loudness["each"], file)["rms_dbfs"].as_f64())
    };
    assert_eq!(levels("silent.wav"), (None, None));
    assert_eq!(levels("square.wav"), (Some(0.0), Some(0.0)));
    assert!((levels("one.wav").0.unwrap() + 6.0206).abs() < 1e-3);
    let html = page(&desk, "r.html");
    assert!(
        html.contains("4 files decoded: 2 at or beyond full scale, 1 silent.")
            && html.contains("<td>silent</td>")
    );
}

#[test]
fn a_long_file_is_played_from_its_beginning_only() {
    let desk = Desk::new();
    desk.write("long.wav", wav(&(0..8_000 * 20).map(|i| ((i % 100) * 100) as i16).collect::<Vec<_>>()));
    let ran = desk.windrow("report long.wav -o r.html --json").json();
    let played = &ran["sound"]["samples"][0];
    assert_eq!((played["seconds"].as_f64(), played["seconds_played"].as_f64()), (Some(20.0), Some(15.0)));
    let html = page(&desk, "r.html");
    assert!(html.contains("<p>15.00 s of 20.00 s</p>"), "{html}");
    // 15 seconds of 16 bits at 8 kHz, four characters for three bytes.
    let audio = html.split("src=\"data:audio/wav;base64,").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(audio.len(), (44 + 15 * 16_000usize).div_ceil(3) * 4);
}

#[test]
fn sound_is_known_by_name_by_content_or_because_it_is_said() {
    let desk = Desk::new();
    desk.write("nameless", wav(&[1, 2, 3]));
    desk.windrow("report nameless -o r.html").done();
    assert!(page(&desk, "r.html").contains("pcm_s16le"));
    // Beside records the records are the data, unless sound is asked for.
    desk.write("both/a.jsonl", "{\"id\": 1}\n");
    desk.write("both/a.wav", wav(&[1, 2, 3]));
    desk.windrow("report both -o r.html --overwrite").done();
    assert!(page(&desk, "r.html").contains("<h2>Keys</h2>"));
    desk.windrow("report both -o r.html --overwrite --sound").done();
    assert!(page(&desk, "r.html").contains("<h2>Loudness</h2>"));
    // Notes beside sounds are no data set, and broken tracks are no notes.
    desk.write("notes/a.wav", wav(&[1, 2, 3]));
    desk.write("notes/metadata.json", "{\"a.wav\": {\"text\": \"a prompt\"}}");
    desk.windrow("report notes -o r.html --overwrite").done();
    assert!(page(&desk, "r.html").contains("<h2>Loudness</h2>"));
    desk.write("broken/encoded_audio/a.pt", "no tensor");
    desk.write("broken/a.wav", wav(&[1, 2, 3]));
    let e = desk.windrow("report broken -o broken.html").failed(3);
    assert!(e.contains("a.pt") && !desk.path("broken.html").exists(), "{e}");
    desk.write("none/a.txt", "text");
    desk.windrow("report none -o none.html").failed(3);
    let e = desk.windrow("report none -o none.html --sound").failed(1);
    assert!(e.contains("no sound file lies in the folder"), "{e}");
    assert!(!desk.path("none.html").exists());
}

#[test]
fn what_is_no_question_of_sound_is_refused_and_a_page_never_replaces_it() {
    let desk = Desk::new();
    desk.write("a/a.wav", wav(&[1, 2, 3]));
    for (options, said) in [
        ("--crop 8", "sound files are not cut into samples"),
        ("--tokenizer bytes", "nor decoded by a tokenizer"),
        ("--epochs 2", "--epochs is an option of audio codes"),
    ] {
        let e = desk.windrow(&format!("report a -o r.html {options}")).failed(2);
        assert!(e.contains(said), "{e}");
    }
    assert!(!desk.path("r.html").exists());
    let before = fs::read(desk.path("a/a.wav")).unwrap();
    desk.windrow("report a -o a/a.wav --overwrite").failed(2);
    assert_eq!(fs::read(desk.path("a/a.wav")).unwrap(), before);
}
