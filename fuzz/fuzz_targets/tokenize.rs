//! Small files tokenised on disk: the stored ids are those of the lines in order, or nothing is left to see.
#![no_main]

use std::fs;
use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use windrow::prepare::{
    Encode, Encoded, LinePlace, Remainder, TokenizeOptions, Track, VerifyOptions, text_of, tokenize,
};
use windrow::verify;
use windrow_core::format::write::writer;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::Local;
use windrow_core::{DType, Result};
use windrow_formats::FORMATS;
use windrow_fuzz::{Cut, drive, values};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    as_stream: bool,
    sample_size: Option<u8>,
    eos: Option<u8>,
    append_eos: bool,
    pad: Option<u8>,
    track: bool,
    threads: u8,
    checkpoint: u8,
    files: Vec<Vec<Line<'a>>>,
}

#[derive(Arbitrary, Debug)]
enum Line<'a> {
    Text(&'a str),
    More(&'a str),
    Raw(&'a [u8]),
}

/// One id per byte of the text, and a 1 beside every `a`.
struct Bytes {
    track: bool,
}

impl Encode for Bytes {
    fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        let text = text_of(line, "text", place, &mut out.room)?;
        out.ids.extend(text.bytes().map(i64::from));
        if self.track {
            out.tracks[0].extend(text.bytes().map(|b| u8::from(b == b'a')));
        }
        Ok(())
    }

    fn describe(&self) -> String {
        "bytes".to_string()
    }

    fn vocab_size(&self) -> Option<u64> {
        Some(256)
    }
}

fuzz_target!(|input: Input<'_>| {
    let folder = tempfile::tempdir().expect("a folder");
    let mut documents = Vec::new();
    let mut paths = Vec::new();
    for (number, lines) in input.files.iter().take(4).enumerate() {
        let text: Vec<Vec<u8>> = lines.iter().take(200).map(bytes).collect();
        let text = text.join(&b'\n');
        for (n, line) in text.split_inclusive(|b| *b == b'\n').enumerate() {
            let line = line.strip_suffix(b"\n").map_or(line, |l| l.strip_suffix(b"\r").unwrap_or(l));
            documents.push(document(line, n as u64));
        }
        paths.push(folder.path().join(format!("{number}.jsonl")));
        fs::write(&paths[number], text).expect("a file");
    }
    let out = folder.path().join("out");
    let to = if input.as_stream { "tokens" } else { "forager" };
    let to = writer(FORMATS, to, &Default::default()).expect("a format that is written");
    let options = TokenizeOptions {
        sample_size: input.sample_size.map(u64::from),
        eos: input.eos.map(i64::from),
        append_eos: input.append_eos,
        dtype: Some(DType::U16),
        remainder: input.pad.map_or(Remainder::Drop, |id| Remainder::Pad(id.into())),
        tracks: if input.track {
            vec![Track { name: "loss_mask".into(), eos: 0, pad: 1 }]
        } else {
            Vec::new()
        },
        fsync: false,
        num_threads: Some(usize::from(input.threads % 3 + 1)),
        checkpoint_bytes: u64::from(input.checkpoint) + 1,
        ..TokenizeOptions::new(Arc::from(to))
    };
    let report = match tokenize(&paths, &out, &Bytes { track: input.track }, &options, &()) {
        Ok(report) => report,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let seen = fs::read_dir(&out).into_iter().flatten().flatten().map(|e| e.file_name());
            let seen: Vec<_> = seen.filter(|n| !n.to_string_lossy().starts_with('.')).collect();
            assert!(seen.is_empty(), "an error left something visible: {seen:?}");
            return;
        }
    };
    assert!(documents.iter().all(Option::is_some), "a line without text was taken");
    let found = verify(&out, &VerifyOptions::default(), &()).expect("a folder to verify");
    assert_eq!(found.problems.len(), 0, "{:?}", found.problems);
    let look = Probe::at(FORMATS, Arc::new(Local::new(&out)), "").expect("the output");
    let source = match open(FORMATS, &look, &Options::default()) {
        Ok(source) => source,
        // A stream of nothing is refused when it is opened.
        Err(error) => return assert!(report.tokens == 0, "{error}"),
    };
    let mut stored = Vec::new();
    for record in 0..source.len() {
        let bytes = values(&source, record).expect("a record that was just written");
        stored.extend(bytes.chunks_exact(2).map(|id| i64::from(id[0]) | i64::from(id[1]) << 8));
    }
    assert_eq!(stored, expected(&input, &documents), "{report:?}");
    drive(&source, &[Cut::Pack { length: 9, eos: None }, Cut::Bins { length: 20, first_fit: true }], None, 0);
});

fn bytes(line: &Line<'_>) -> Vec<u8> {
    match line {
        Line::Text(text) => json!({ "text": text }).to_string().into_bytes(),
        Line::More(text) => json!({ "a": [text, 1.5, null], "text": text, "z": {} }).to_string().into_bytes(),
        Line::Raw(bytes) => bytes.to_vec(),
    }
}

// The text of a line by another way: the whole value first. Stricter about fields that are skipped.
fn document(line: &[u8], number: u64) -> Option<String> {
    let place = LinePlace { file: "x", line: number, byte: 0 };
    let found = text_of(line, "text", &place, &mut Vec::new()).ok().map(|text| text.into_owned());
    let unmarked = if number == 0 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
    if let Ok(Value::Object(map)) = serde_json::from_slice(unmarked) {
        assert_eq!(map.get("text").and_then(Value::as_str), found.as_deref());
    }
    found
}

fn expected(input: &Input<'_>, documents: &[Option<String>]) -> Vec<i64> {
    let eos = input.eos.filter(|_| input.sample_size.is_some() || input.as_stream || input.append_eos);
    let mut ids = Vec::new();
    for text in documents.iter().flatten() {
        ids.extend(text.bytes().map(i64::from));
        ids.extend(eos.map(i64::from));
    }
    if let Some(size) = input.sample_size.map(usize::from) {
        let rest = ids.len() % size;
        match input.pad {
            Some(pad) if rest > 0 => ids.resize(ids.len() + size - rest, pad.into()),
            _ => ids.truncate(ids.len() - rest),
        }
    }
    ids
}
