//! Small data sets in every layout that windrow writes. The commands themselves are asked which there are, so that a new
//! one is among them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use windrow::DType;
use windrow::dev::source::{Extras, Schema};
use windrow::format::WriteOptions;
use windrow::prepare::{Encode, Encoded, LinePlace, TokenizeOptions, Track, Writer, tokenize};
use windrow::{Decode, Element, Values};

use crate::program::Desk;

/// A data set that windrow wrote.
pub(super) struct Dataset {
    pub(super) name: String,
    /// What is opened.
    pub(super) path: PathBuf,
    /// The folder that it is, or that holds it and nothing else.
    pub(super) folder: PathBuf,
    /// What windrow wrote of it, whatever says what it should be included.
    pub(super) files: Vec<PathBuf>,
    /// Whether it can be read with every block looked at.
    pub(super) has_sums: bool,
}

impl Dataset {
    fn at(name: &str, path: PathBuf, folder: PathBuf) -> Dataset {
        let files = files_below(&folder);
        let has_sums = files.iter().any(|file| file.ends_with_name("windrow.sums"));
        assert!(!files.is_empty(), "{name}");
        Dataset { name: name.to_string(), path, folder, files, has_sums }
    }
}

trait Named {
    fn ends_with_name(&self, name: &str) -> bool;
}

impl Named for PathBuf {
    fn ends_with_name(&self, name: &str) -> bool {
        self.file_name().is_some_and(|found| found.to_string_lossy().ends_with(name))
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|item| item.unwrap().path())
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] })
        .collect();
    found.sort();
    found
}

/// Everything.
pub(super) fn everything(desk: &Desk) -> Vec<Dataset> {
    inputs(desk);
    let chunks = [
        "--tokens-chunk-size 60 --seq-starts-chunk-size 8",
        "--zarr-format 3 --tokens-chunk-size 60 --seq-starts-chunk-size 8",
        "--zarr-format 3 --tokens-chunk-size 16 --seq-starts-chunk-size 4 --chunks-per-shard 4",
    ];
    let numbers = ["ragged", "equal", "channels", "fractions"];
    let as_another = ["", "--as-dtype uint16", "--normalize"];
    let mut commands: Vec<(&str, String)> = Vec::new();
    for input in numbers {
        commands
            .extend(as_another.iter().chain(&chunks).map(|o| ("convert", format!("{input}.jsonl OUT {o}"))));
    }
    for options in ["", "--sample-size 16", "--no-block-sums", "--append-eos"].into_iter().chain(chunks) {
        commands.push(("tokenize", format!("text --tokenizer bytes --out OUT {options}")));
    }
    commands.push(("encode", "sound --weights weights.pth --out OUT".to_string()));
    let mut sets = Vec::new();
    let mut written: BTreeMap<String, usize> = BTreeMap::new();
    for (command, line) in &commands {
        for layout in layouts(desk, command) {
            let folder = format!("out/{}", sets.len());
            fs::create_dir_all(desk.path(&folder)).unwrap();
            let out = format!("{folder}/data.{layout}");
            let line = format!("{command} {} --no-fsync --to {layout}", line.replace("OUT", &out));
            let known = written.entry(format!("{command} --to {layout}")).or_default();
            // Not every layout holds everything, nor knows every option.
            if desk.windrow(&line).code == Some(0) {
                *known += 1;
                let (path, folder) = (desk.path(&out), desk.path(&folder));
                let folder = if path.is_dir() { path.clone() } else { folder };
                let name = line.replace(&format!("{out} "), "").replace("--no-fsync ", "");
                sets.push(Dataset::at(&name, path, folder));
            } else {
                fs::remove_dir_all(desk.path(&folder)).unwrap();
            }
        }
    }
    assert!(written.values().all(|n| *n > 0), "{written:?}");
    sets.extend(indices(desk));
    sets.extend(appended(desk));
    sets.push(with_track(desk, Some(16), "out/masked"));
    sets.push(with_track(desk, None, "out/varied"));
    sets
}

/// What `--to` of a command takes.
fn layouts(desk: &Desk, command: &str) -> Vec<String> {
    let refused = desk.windrow(&format!("{command} --to none-such --json")).json();
    let hint = refused["error"]["hint"].as_str().unwrap_or_else(|| panic!("{refused}"));
    hint.trim_start_matches("one of ").split(", ").map(str::to_string).collect()
}

fn inputs(desk: &Desk) {
    let line = |text: &mut String, name: usize, numbers: &str| {
        writeln!(text, "{{\"sequence\": [{numbers}], \"name\": \"n{name}\", \"text\": \"words, {name}\"}}")
            .unwrap();
    };
    let joined = |numbers: Vec<String>| numbers.join(", ");
    let number = |i: usize| (i * 37 + i / 7) % 251;
    for (name, len, is_whole) in
        [("ragged", None, true), ("equal", Some(24), true), ("fractions", None, false)]
    {
        let mut text = String::new();
        for n in 0..9 {
            let numbers = (0..len.unwrap_or(n * 5 + 1)).map(|i| {
                if is_whole { number(n * 50 + i).to_string() } else { format!("{}.5", number(n * 50 + i)) }
            });
            line(&mut text, n, &joined(numbers.collect()));
        }
        desk.write(&format!("{name}.jsonl"), text);
    }
    let mut text = String::new();
    for n in 0..3 {
        let frame =
            |i: usize| format!("[{}]", joined((0..18).map(|c| number(n * 99 + i + c).to_string()).collect()));
        line(&mut text, n, &joined((0..n + 4).map(frame).collect()));
    }
    desk.write("channels.jsonl", text);
    desk.texts("text/a.jsonl", &["one and two", "", "three", "four and some more words"]);
    desk.texts("text/b.jsonl", &["five", "six, which is the last one of them"]);
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    desk.write("weights.pth", fs::read(testdata.join("dac/small.pth")).unwrap());
    desk.write("sound/a.wav", wav(6_000));
    desk.write("sound/b.wav", wav(4_000));
    desk.write("audio_prompts/a.txt", "a tone");
}

/// A tone of 16-bit samples, 44,100 of them a second.
fn wav(samples: u32) -> Vec<u8> {
    let mut wav = Vec::new();
    let numbers =
        |wav: &mut Vec<u8>, numbers: &[u32]| wav.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
    wav.extend(b"RIFF");
    numbers(&mut wav, &[36 + samples * 2]);
    wav.extend(b"WAVEfmt ");
    numbers(&mut wav, &[16, 1 | 1 << 16, 44_100, 88_200, 2 | 16 << 16]);
    wav.extend(b"data");
    numbers(&mut wav, &[samples * 2]);
    wav.extend((0..samples).flat_map(|i| (((i * 500) % 30_000) as i16 - 15_000).to_le_bytes()));
    wav
}

/// An index of lines, and random ids.
fn indices(desk: &Desk) -> Vec<Dataset> {
    let mut sets = Vec::new();
    for options in ["", "--checksum"] {
        let folder = format!("out/lines{options}");
        for file in ["a.jsonl", "deeper/b.jsonl"] {
            desk.write(&format!("{folder}/{file}"), "{\"a\": 1}\n22\n[3, \"three\"]\n444444\n5\n".repeat(3));
        }
        desk.windrow(&format!("index {folder} {options}")).done();
        let mut set = Dataset::at(&format!("index {options}"), desk.path(&folder), desk.path(&folder));
        if options.is_empty() {
            // Of lines that others wrote nothing is known without --checksum.
            set.files.retain(|file| file.parent().unwrap().ends_with("index"));
            assert!(set.files.len() == 3 && !set.has_sums);
        }
        sets.push(set);
    }
    desk.write("out/dummy/none", "");
    fs::remove_file(desk.path("out/dummy/none")).unwrap();
    desk.windrow("dummy --vocab-size 300 --tokens 500 --out out/dummy/d.bin").done();
    sets.push(Dataset::at("dummy", desk.path("out/dummy/d.bin"), desk.path("out/dummy")));
    sets
}

/// Flat-tokens, written sequence by sequence and behind what was there.
fn appended(desk: &Desk) -> Vec<Dataset> {
    let mut sets = Vec::new();
    for (zarr_format, chunks_per_shard) in [(2, None), (3, None), (3, Some(3u64))] {
        let name = format!("flat-tokens v{zarr_format} {chunks_per_shard:?} appended");
        let folder = desk.path(&format!("out/{}.zarr", name.replace(' ', "-")));
        let out = folder.join("train");
        for append in [false, true] {
            let own = json!({
                "zarr_format": zarr_format,
                "chunks_per_shard": chunks_per_shard,
                "tokens_chunk_size": 20,
                "seq_starts_chunk_size": 5,
            });
            let format = windrow::writer("flat-tokens", own.as_object().unwrap()).unwrap();
            let schema = Schema::numbers(Element::little(DType::U32));
            let options = WriteOptions { append, ..WriteOptions::default() };
            let mut writer = Writer::create(&out, &schema, format.as_ref(), &options).unwrap();
            for n in 0..17u32 {
                let ids: Vec<u8> = (0..n % 6).flat_map(|i| (n * 10 + i).to_le_bytes()).collect();
                let values =
                    Values { bytes: &ids, element: schema.element, channels: 1, decode: Decode::Plain };
                writer.add(&values, &Extras::new()).unwrap();
            }
            writer.finish().unwrap();
        }
        sets.push(Dataset::at(&name, out, folder));
    }
    sets
}

/// Samples of tokens with a loss mask beside them, or documents.
fn with_track(desk: &Desk, sample_size: Option<u64>, out: &str) -> Dataset {
    struct Masked;
    impl Encode for Masked {
        fn encode(&self, line: &[u8], _: &LinePlace<'_>, out: &mut Encoded) -> windrow::Result<()> {
            out.ids.extend(line.iter().map(|byte| i64::from(*byte)));
            out.tracks[0].extend(line.iter().map(|byte| byte & 1));
            Ok(())
        }

        fn describe(&self) -> String {
            "bytes with a mask".to_string()
        }
    }
    let options = TokenizeOptions {
        sample_size,
        dtype: Some(DType::U16),
        eos: Some(0),
        tracks: vec![Track { name: "loss_mask".to_string(), ..Track::default() }],
        ..TokenizeOptions::new(windrow::writer("forager", &Default::default()).unwrap())
    };
    let out = desk.path(out);
    tokenize(&[desk.path("text")], &out, &Masked, &options, &()).unwrap();
    Dataset::at("tokenize with a loss mask", out.clone(), out)
}
