//! Small files indexed on disk: every record read through the index is the line that a naive search finds.
#![no_main]

use std::fs;
use std::io::Write;
use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow::prepare::{IndexOptions, VerifyOptions, index};
use windrow::verify;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::{Io, Local};
use windrow_formats::FORMATS;
use windrow_fuzz::{Cut, drive, is_compressed, is_no_text, values};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    checksum: bool,
    pread: bool,
    /// Compressed or not, and the content.
    files: Vec<(Packing, &'a [u8])>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
    /// The bytes as they are, under a name that promises a compression.
    Promised,
}

// In natural order: text before a number is compared as a whole, numbers as numbers.
const NAMES: [&str; 5] = ["a2.jsonl", "a10.jsonl", "a.b.JSONL", "b/c/d.jsonl", "c 1.jsonl"];

fuzz_target!(|input: Input<'_>| {
    let folder = tempfile::tempdir().expect("a folder");
    let mut may_be_damaged = false;
    let mut parts = Vec::new();
    for (name, (packing, bytes)) in NAMES.iter().zip(&input.files) {
        let magic = is_compressed(bytes);
        let (name, stored) = match packing {
            Packing::Plain => (name.to_string(), bytes.to_vec()),
            Packing::Gzip => (format!("{name}.gz"), gzip(bytes)),
            Packing::Zstd => (format!("{name}.zst"), zstd::bulk::compress(bytes, 1).expect("compressed")),
            Packing::Promised => (format!("{name}.zst"), bytes.to_vec()),
        };
        may_be_damaged |=
            matches!(packing, Packing::Promised) || (matches!(packing, Packing::Plain) && magic);
        parts.push(*bytes);
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, stored).expect("a file");
    }
    let options = IndexOptions { checksum: input.checksum, fsync: false, ..IndexOptions::default() };
    let report = match index(folder.path(), &options, &()) {
        Ok(report) => report,
        Err(error) => {
            assert!(may_be_damaged || parts.is_empty() || is_no_text(&error, &parts), "{error}");
            let left = fs::read_dir(folder.path()).expect("a listing").flatten();
            let seen: Vec<_> = left.map(|e| e.file_name()).filter(|n| n == "index").collect();
            assert!(seen.is_empty(), "an error left something visible: {seen:?}");
            return;
        }
    };
    assert!(index(folder.path(), &options, &()).expect("a second run").unchanged);
    let store = Local::new(folder.path()).io(if input.pread { Io::Pread } else { Io::Mmap });
    let look = Probe::at(FORMATS, Arc::new(store), "").expect("the folder");
    let source = open(FORMATS, &look, &Options::default()).expect("the index that was just written");
    assert_eq!((source.format(), source.len()), ("forager", report.records));
    if !may_be_damaged {
        compare(&parts, &source);
        let found = verify(folder.path(), &VerifyOptions::default(), &()).expect("a folder to verify");
        let bad = found.problems.iter().filter(|p| p.what != "JSON").count();
        assert_eq!(bad, 0, "{:?}", found.problems);
    }
    drive(&source, &[Cut::Bins { length: 100, first_fit: true }], None, 0);
});

fn compare(parts: &[&[u8]], source: &windrow_core::source::SharedSource) {
    let mut record = 0;
    for part in parts {
        for (n, line) in part.split_inclusive(|b| *b == b'\n').enumerate() {
            let line = if n == 0 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
            let line = line.strip_suffix(b"\n").map_or(line, |l| l.strip_suffix(b"\r").unwrap_or(l));
            assert_eq!(source.length(record).expect("a line's length"), line.len() as u64);
            if let Ok(bytes) = values(source, record) {
                assert_eq!(bytes, line);
            }
            record += 1;
        }
    }
    assert_eq!(record, source.len());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}
