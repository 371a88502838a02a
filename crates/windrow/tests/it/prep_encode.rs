//! Sound in tasks: joined, the parts are the files of one `encode`; what is not as it was planned is refused.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windrow::format::Options;
use windrow::prep::{Encoding, Prep, plan_encode};
use windrow::prepare::VerifyOptions;
use windrow::sound::{encode, sound_files};
use windrow::{DType, Kind};

use crate::written::files;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// Clips of several kinds, one of which is cut off and one in a folder below; a prompt; weights.
fn sound(folder: &Path) -> (PathBuf, Encoding) {
    let sound = folder.join("sound");
    fs::create_dir_all(sound.join("below")).unwrap();
    for clip in ["cards_001.wav", "cards_003.mp3", "cards_004.m4a", "chan3_48k.ogg"] {
        fs::copy(testdata("audio").join(clip), sound.join(clip)).unwrap();
    }
    let cut = &fs::read(testdata("audio/cards_005.ogg")).unwrap()[..5_000];
    fs::write(sound.join("cards_002.ogg"), cut).unwrap();
    fs::write(sound.join("below/cards_006.wav"), cut).unwrap();
    fs::create_dir(folder.join("audio_prompts")).unwrap();
    fs::write(folder.join("audio_prompts/cards_003_prompt.txt"), "three of clubs\n").unwrap();
    let weights = folder.join("weights.pth");
    fs::copy(testdata("dac/small.pth"), &weights).unwrap();
    (sound, Encoding { weights, ..Encoding::default() })
}

fn open(job: &Path) -> Prep {
    Prep::open_with(job, None, false, &Options::default()).unwrap()
}

fn planned(sound: &Path, out: &Path, how: &Encoding, task_bytes: u64) -> PathBuf {
    plan_encode(sound, out, how, task_bytes, &Options::default()).unwrap()
}

#[test]
fn joined_parts_are_the_files_of_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let (sound, usual) = sound(dir.path());
    for (to, dtype) in [("codes", DType::I16), ("shards", DType::I64)] {
        let how = Encoding { to: to.to_string(), dtype, ..usual.clone() };
        let one = dir.path().join(format!("one-{to}"));
        let listed = sound_files(&sound, &how.folder()).unwrap();
        let codec = how.codec(1).unwrap();
        let done = encode(&listed, &codec, &one, &how.options().unwrap(), &()).unwrap();
        assert_eq!((done.report.records, done.failed.len()), (4, 2));
        for task_bytes in [u64::MAX, 9_000] {
            let parts = dir.path().join(format!("parts-{to}-{task_bytes}"));
            let prep = open(&planned(&sound, &parts, &how, task_bytes));
            let tasks = prep.tasks_of(0, 1, false);
            assert!(task_bytes > 9_000 || tasks.len() > 6, "{tasks:?}");
            prep.check().unwrap();
            let early = prep.join(&dir.path().join("early"), false, &()).unwrap_err();
            assert_eq!(early.kind(), Kind::Stale, "{early}");
            for (task, threads) in tasks.into_iter().rev().zip([1, 3].into_iter().cycle()) {
                assert!(prep.run(task, Some(threads), &()).unwrap());
                assert!(!prep.run(task, None, &()).unwrap());
            }
            assert_eq!(prep.merge(&()).unwrap().records, 4);
            let (found, want) = (windrow::open(&parts).unwrap(), windrow::open(&one).unwrap());
            let kind = |data: &windrow::Dataset| {
                let schema = data.source().schema();
                (data.len(), schema.channels, schema.element.dtype)
            };
            assert_eq!(kind(&found), (4, Some(2 * codec.codebooks()), dtype));
            assert_eq!(kind(&want), kind(&found));
            let (mut scratch, mut other) = (Vec::new(), Vec::new());
            for record in 0..4 {
                let found = found.source().read_whole(record, &mut scratch).unwrap().bytes;
                assert_eq!(found, want.source().read_whole(record, &mut other).unwrap().bytes);
            }
            let manifest = found.manifest().unwrap();
            assert_eq!(manifest.options["device"], json!(codec.device()));
            assert_eq!(manifest.statistics["failed"][0]["file"], json!("cards_002.ogg"));
            assert_eq!(manifest.statistics["failed"][1]["file"], json!("below/cards_006.wav"));
            let findings = windrow::verify(&parts, &VerifyOptions::default(), &()).unwrap();
            assert_eq!(findings.problems, []);
            // One part by itself.
            assert!(!windrow::open(parts.join("parts/000000.bin")).unwrap().is_empty());
            let joined = dir.path().join(format!("joined-{to}-{task_bytes}"));
            assert_eq!(prep.join(&joined, false, &()).unwrap().records, 4);
            assert_eq!(files(&joined), files(&one), "{to} in tasks of {task_bytes}");
            assert!(prep.join(&joined, false, &()).unwrap().unchanged);
        }
    }
}

#[test]
fn what_is_not_as_planned_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (sound, how) = sound(dir.path());
    let parts = dir.path().join("parts");
    let job = planned(&sound, &parts, &how, 9_000);
    let last = open(&job).job().tasks - 1;
    open(&job).run(0, None, &()).unwrap();

    // A device that is not there, as a worker of another build finds it.
    let text = fs::read_to_string(&job).unwrap();
    let mut changed: Value = serde_json::from_str(&text).unwrap();
    changed["settings"]["device"] = json!("cuda");
    fs::write(&job, changed.to_string()).unwrap();
    let e = open(&job).check().unwrap_err();
    assert!(e.kind() == Kind::Mismatch && e.message().contains("device \"cuda\""), "{e}");
    fs::write(&job, &text).unwrap();

    // Other weights.
    fs::copy(testdata("dac/small.safetensors"), &how.weights).unwrap();
    for e in [open(&job).check().unwrap_err(), open(&job).run(1, None, &()).unwrap_err()] {
        assert!(e.kind() == Kind::Mismatch && e.message().contains("option weights"), "{e}");
    }
    fs::remove_file(&how.weights).unwrap();
    assert_eq!(open(&job).check().unwrap_err().kind(), Kind::NotFound);
    fs::copy(testdata("dac/small.pth"), &how.weights).unwrap();

    // Another run made other bytes.
    let other = parts.join("parts/000001.bin");
    fs::write(&other, [1; 16]).unwrap();
    let e = open(&job).run(1, None, &()).unwrap_err();
    assert!(e.kind() == Kind::Mismatch && e.place().file.as_deref() == other.to_str(), "{e}");
    assert_eq!(open(&job).status(&()).unwrap().failed.len(), 1);
    fs::remove_file(&other).unwrap();
    for task in 0..=last {
        open(&job).run(task, None, &()).unwrap();
    }

    // Other prompts are other files of one run, and other sound other codes.
    let prompt = dir.path().join("audio_prompts/cards_003_prompt.txt");
    fs::write(&prompt, "another one").unwrap();
    let e = open(&job).join(&dir.path().join("joined"), false, &()).unwrap_err();
    assert!(e.kind() == Kind::Stale && e.message().contains("prompts"), "{e}");
    fs::write(&prompt, "three of clubs").unwrap();
    open(&job).join(&dir.path().join("joined"), false, &()).unwrap();
    fs::write(sound.join("cards_000.wav"), "").unwrap();
    let e = open(&job).join(&dir.path().join("more"), false, &()).unwrap_err();
    assert!(e.kind() == Kind::Stale && e.message().contains("cards_000.wav"), "{e}");
    let again = plan_encode(&sound, &parts, &how, 9_000, &Options::default()).unwrap_err();
    assert_eq!(again.kind(), Kind::Exists, "{again}");
    // The last one is that of the folder below.
    fs::remove_file(parts.join(format!("parts/{:06}.json", last - 1))).unwrap();
    fs::write(sound.join("chan3_48k.ogg"), "changed").unwrap();
    let e = open(&job).run(last - 1, None, &()).unwrap_err();
    assert!(e.kind() == Kind::Stale && e.message().contains("chan3_48k.ogg"), "{e}");
}

#[test]
fn what_cannot_be_planned_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (sound, how) = sound(dir.path());
    let plan = |sound: &Path, how: &Encoding, task_bytes| {
        plan_encode(sound, &dir.path().join("out"), how, task_bytes, &Options::default()).unwrap_err()
    };
    let changed = |change: fn(&mut Encoding)| {
        let mut how = how.clone();
        change(&mut how);
        plan(&sound, &how, 1)
    };
    for (error, kind, said) in [
        (plan(Path::new("s3://bucket/sound"), &how, 1), Kind::Unsupported, "not from URLs"),
        (plan(&dir.path().join("audio_prompts"), &how, 1), Kind::NotFound, "no sound file"),
        (plan(&sound, &how, 0), Kind::Config, "task_bytes is 0"),
        (changed(|how| how.dtype = DType::F32), Kind::Config, "int16 or int64"),
        (changed(|how| how.quality = "best".to_string()), Kind::Config, "quality is \"best\""),
        (changed(|how| how.device = "tpu".to_string()), Kind::Config, "device is \"tpu\""),
        (changed(|how| how.to = "mp3".to_string()), Kind::Config, "mp3"),
    ] {
        assert!(error.kind() == kind && format!("{error:#}").contains(said), "{said}: {error}");
    }
    assert!(!dir.path().join("out").exists());
}
