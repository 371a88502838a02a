//! JSON Lines of any bytes, in one file or several; and compressed streams of any bytes.
#![no_main]

use std::io::{self, Write};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::{Compression, Memory, Store, expand_to};
use windrow_core::{DType, Error};
use windrow_formats::FORMATS;
use windrow_fuzz::{Cut, drive, is_compressed, is_no_text, values};

// The first byte tells what the rest is; it is a letter so that seeds can be read.
fuzz_target!(|data: &[u8]| {
    let Some((&how, rest)) = data.split_first() else { return };
    match how {
        b'g' => expand(rest, Some(Compression::Gzip)),
        b'z' => expand(rest, Some(Compression::Zstd)),
        b'c' => expand(rest, None),
        b's' => several(rest),
        _ => lines(&[rest]),
    }
});

/// Takes 4 MiB, then is full: a bomb must not cost seconds here.
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        if self.0 > 4 << 20 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn expand(bytes: &[u8], compression: Option<Compression>) {
    let object = Memory::new().with("x", bytes).open("x").expect("an object that was put there");
    let Ok(found) = Compression::of(object.as_ref()) else { return };
    let Some(compression) = compression.or(found) else { return };
    let mut sink = Sink(0);
    match expand_to(object.as_ref(), compression, &mut sink) {
        Ok(size) => assert_eq!(size, sink.0),
        Err(error) => assert!(error.place().file.is_some(), "{error}"),
    }
}

fn several(bytes: &[u8]) {
    let parts: Vec<&[u8]> = bytes.split(|b| *b == 0).take(20).collect();
    lines(&parts);
}

fn lines(parts: &[&[u8]]) {
    // A compressed file goes through the cache on disk; its expansion is looked at alone.
    if let Some(compressed) = parts.iter().find(|part| is_compressed(part)) {
        return expand(compressed, None);
    }
    let name = |i: usize| format!("{}{i:02}.jsonl", ["", "b/", "b/c."][i % 3]);
    let store = parts.iter().enumerate().fold(Memory::new(), |store, (i, part)| store.with(&name(i), *part));
    let store: Arc<dyn Store> = Arc::new(store);
    let key = if parts.len() == 1 { "00.jsonl" } else { "" };
    // Lines of numbers would be taken for series: `series_json` looks at those.
    let options = Options { format: Some("jsonl".to_string()), ..Options::default() };
    let opened = Probe::at(FORMATS, store, key).and_then(|look| open(FORMATS, &look, &options));
    let source = match opened {
        Ok(source) => source,
        Err(error) => return check_nothing(parts, &error),
    };
    let mut naive = Vec::new();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    // Texts before digits compare as wholes: "" < "b/" < "b/c.".
    order.sort_by_key(|i| (i % 3, *i));
    for part in order.iter().map(|i| parts[*i]) {
        for (n, line) in part.split_inclusive(|b| *b == b'\n').enumerate() {
            let line = if n == 0 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
            let line = line.strip_suffix(b"\n").map_or(line, |l| l.strip_suffix(b"\r").unwrap_or(l));
            naive.push(line);
        }
    }
    assert_eq!(source.len(), naive.len() as u64);
    for (record, line) in (0..).zip(naive).take(1_000) {
        assert_eq!(source.length(record).expect("a line's length"), line.len() as u64);
        match values(&source, record) {
            Ok(bytes) => assert_eq!(bytes, line),
            Err(_) => assert!(std::str::from_utf8(line).is_err() || line.iter().all(u8::is_ascii_whitespace)),
        }
    }
    let cuts = [
        Cut::Pack { length: 7, eos: Some(1) },
        Cut::Bins { length: 64, first_fit: false },
        Cut::Windows { width: 5, stride: 3, pad: true },
    ];
    drive(&source, &cuts, Some(DType::I64), 0);
}

fn check_nothing(parts: &[&[u8]], error: &Error) {
    assert!(is_no_text(error, parts) || parts.iter().all(|part| part.is_empty()), "{error}");
}
