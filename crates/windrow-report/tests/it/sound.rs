//! Pages about sound files: what they are, how loud, what cannot be read, what is seen and heard.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windrow::audio::{Options, decode};
use windrow::{Kind, format};
use windrow_report::{Asked, Report, Subject};

use crate::desk::Desk;
use crate::html::stands_alone;

fn clip(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/audio").join(name)
}

fn put(desk: &Desk, clips: &[&str]) {
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
    put(&desk, &clips);
    desk.write("a/notes.txt", "not sound");
    let Report { html, json, from, unread } = desk.report("a", &Asked::default());
    assert_eq!((from.as_str(), unread), ("6 sound files", 0));
    let sound = &json["sound"];
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
    put(&desk, &["cards_001.wav", "cards_001_opus.ogg"]);
    let whole = fs::read(clip("cards_002.flac")).unwrap();
    desk.write("a/cut.flac", &whole[..whole.len() / 2]);
    desk.write("a/empty.wav", "");
    desk.write("a/<script>.mp3", "no sound at all");
    let Report { html, json, from, unread } = desk.report("a", &Asked::default());
    assert_eq!((from.as_str(), unread), ("5 sound files; 4 cannot be read", 4));
    let sound = &json["sound"];
    assert_eq!(sound["unreadable"].as_array().unwrap().len(), 4, "{sound}");
    assert_eq!(of(&sound["unreadable"], "cut.flac")["kind"], "corrupt");
    assert_eq!(of(&sound["unreadable"], "cards_001_opus.ogg")["kind"], "unsupported");
    assert_eq!((&sound["durations"]["files"], &sound["loudness"]["files"]), (&json!(1), &json!(1)));
    stands_alone(&html);
    for part in [
        "Of 5 files, 4 cannot be read; the others were read to the end.",
        "<td>cut.flac</td>",
        "&lt;script&gt;.mp3",
        "Opus in ogg is not read",
    ] {
        assert!(html.contains(part), "{part} is missing");
    }
}

#[test]
fn a_folder_without_a_good_file_still_has_a_page() {
    let desk = Desk::new();
    desk.write("a/x.wav", "RIFF");
    let report = desk.report("a", &Asked::default());
    assert!(report.unread == 1 && report.html.contains("No file was decoded."), "{report:?}");
}

#[test]
fn silence_full_scale_and_the_shortest_sounds_are_told_apart() {
    let desk = Desk::new();
    desk.write("a/silent.wav", wav(&[0; 800]));
    desk.write("a/square.wav", wav(&[i16::MIN; 800]));
    desk.write("a/clipped.wav", wav(&[i16::MAX; 800]));
    desk.write("a/one.wav", wav(&[16_384]));
    let Report { html, json, .. } = desk.report("a", &Asked::default());
    let loudness = &json["sound"]["loudness"];
    assert_eq!((&loudness["at_full_scale"], &loudness["silent"]), (&json!(2), &json!(1)));
    let levels = |file| {
        (of(&loudness["each"], file)["peak_dbfs"].as_f64(), of(&loudness["each"], file)["rms_dbfs"].as_f64())
    };
    assert_eq!(levels("silent.wav"), (None, None));
    assert_eq!(levels("square.wav"), (Some(0.0), Some(0.0)));
    assert!((levels("one.wav").0.unwrap() + 6.0206).abs() < 1e-3);
    assert!(
        html.contains("4 files decoded: 2 at or beyond full scale, 1 silent.")
            && html.contains("<td>silent</td>")
    );
}

#[test]
fn a_long_file_is_played_from_its_beginning_only() {
    let desk = Desk::new();
    desk.write("long.wav", wav(&(0..8_000 * 20).map(|i| ((i % 100) * 100) as i16).collect::<Vec<_>>()));
    let Report { html, json, .. } = desk.report("long.wav", &Asked::default());
    let played = &json["sound"]["samples"][0];
    assert_eq!((played["seconds"].as_f64(), played["seconds_played"].as_f64()), (Some(20.0), Some(15.0)));
    assert!(html.contains("<p>15.00 s of 20.00 s</p>"), "{html}");
    // 15 seconds of 16 bits at 8 kHz, four characters for three bytes.
    let audio = html.split("src=\"data:audio/wav;base64,").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(audio.len(), (44 + 15 * 16_000usize).div_ceil(3) * 4);
}

#[test]
fn sound_is_known_by_name_by_content_or_because_it_is_said() {
    let desk = Desk::new();
    let html = |name| desk.report(name, &Asked::default()).html;
    desk.write("nameless", wav(&[1, 2, 3]));
    assert!(html("nameless").contains("pcm_s16le"));
    // Beside records the records are the data, unless sound is asked for.
    desk.write("both/a.jsonl", "{\"id\": 1}\n");
    desk.write("both/a.wav", wav(&[1, 2, 3]));
    assert!(html("both").contains("<h2>Keys</h2>"));
    let asked = |name, sound| Subject::open(&desk.path(name).into(), &format::Options::default(), sound);
    assert!(matches!(asked("both", true), Ok(Subject::Sound(_))));
    // Notes beside sounds are no data set, and broken tracks are no notes.
    desk.write("notes/a.wav", wav(&[1, 2, 3]));
    desk.write("notes/metadata.json", "{\"a.wav\": {\"text\": \"a prompt\"}}");
    assert!(html("notes").contains("<h2>Loudness</h2>"));
    desk.write("broken/encoded_audio/a.pt", "no tensor");
    desk.write("broken/a.wav", wav(&[1, 2, 3]));
    let e = desk.try_report("broken", &Asked::default()).unwrap_err();
    assert!(format!("{e:#}").contains("a.pt"), "{e}");
    desk.write("none/a.txt", "text");
    assert_eq!(asked("none", false).err().map(|e| e.kind()), Some(Kind::Unrecognised));
    let e = asked("none", true).err().unwrap();
    assert!(e.kind() == Kind::NotFound && format!("{e:#}").contains("the folder has no sound files"), "{e}");
}
