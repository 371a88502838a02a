//! Data sets in parts: any rows, lengths and values; right hashes, or any; verified too.
#![no_main]

use std::fs;
use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow::prepare::VerifyOptions;
use windrow::verify;
use windrow_core::format::write::PartFile;
use windrow_core::format::{Options, Probe, in_parts, open};
use windrow_core::manifest::{BlockChecksums, FileRow, Manifest, Part, PartRow};
use windrow_core::store::Local;
use windrow_formats::{FORMATS, Parts};
use windrow_fuzz::{Cut, drive, dtype};
use xxhash_rust::xxh3::xxh3_64;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    dtype: u8,
    channels: Option<u8>,
    vocab_size: Option<u16>,
    parts: Vec<One<'a>>,
    /// Rows of a table file, in place of those of the manifest.
    table: Option<&'a [u8]>,
    alone: Option<u8>,
    verify: bool,
    batch_dtype: Option<u8>,
    cuts: [Cut; 2],
}

#[derive(Arbitrary, Debug)]
struct One<'a> {
    lengths: Vec<u32>,
    values: &'a [u8],
    /// What its row says, where that is not what is there.
    said: Option<[u64; 5]>,
    sums: Option<&'a [u8]>,
    manifest: Option<&'a [u8]>,
}

fuzz_target!(|input: Input<'_>| {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    };
    let layout = in_parts(&[&Parts]).expect("a format that is made in parts");
    let dtype_of = dtype(input.dtype);
    let channels = input.channels.map(u64::from);
    let width = dtype_of.size() as u64 * channels.unwrap_or(1).max(1);
    let mut rows = Vec::new();
    for (task, one) in (0..).zip(input.parts.iter().take(5)) {
        let lengths: Vec<u8> = one.lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
        let mut sums = BlockChecksums::default();
        sums.update(one.values);
        let row = match one.said {
            Some([records, values, bytes, xxh3, lengths_xxh3]) => {
                PartRow { records, values, bytes, xxh3, lengths_xxh3 }
            }
            None => PartRow {
                records: one.lengths.len() as u64,
                values: one.values.len() as u64 / width,
                bytes: one.values.len() as u64,
                xxh3: xxh3_64(one.values),
                lengths_xxh3: xxh3_64(&lengths),
            },
        };
        let listed = |what, bytes: &[u8]| FileRow {
            name: layout.file(task, what),
            size: bytes.len() as u64,
            xxh3: Some(format!("{:016x}", xxh3_64(bytes))),
            ..FileRow::default()
        };
        let said = Part {
            version: 1,
            task,
            records: row.records,
            values: row.values,
            dtype: Some(dtype_of),
            channels,
            files: vec![listed(PartFile::Values, one.values), listed(PartFile::Lengths, &lengths)],
            ..Part::default()
        };
        put(&layout.file(task, PartFile::Values), one.values);
        put(&layout.file(task, PartFile::Lengths), &lengths);
        put(&layout.file(task, PartFile::Sums), one.sums.unwrap_or(&sums.finish()));
        put(&layout.file(task, PartFile::Manifest), one.manifest.unwrap_or(said.to_text().as_bytes()));
        rows.push(row);
    }
    let vocab_size = input.vocab_size.map(u64::from);
    let manifest = Manifest { dtype: Some(dtype_of), channels, vocab_size, ..Manifest::new(layout.name()) };
    let Ok(joined) = layout.joined(manifest, &rows) else { return };
    joined.iter().for_each(|(name, bytes)| put(name, bytes));
    if let Some(table) = input.table {
        let read = Manifest::parse(&joined[joined.len() - 1].1, "windrow.json");
        let mut manifest = read.expect("the manifest that was written");
        let xxh3 = Some(format!("{:016x}", xxh3_64(table)));
        let name = "windrow.parts".to_string();
        manifest.index = vec![FileRow { name, size: table.len() as u64, xxh3, ..FileRow::default() }];
        manifest.parts = Vec::new();
        put("windrow.parts", table);
        put("windrow.json", manifest.to_text().as_bytes());
    }
    let key = input.alone.map_or(String::new(), |task| layout.file(u64::from(task) % 5, PartFile::Values));
    let store = Arc::new(Local::new(folder.path()));
    let opened = Probe::at(FORMATS, store, &key).and_then(|probe| {
        open(FORMATS, &probe, &Options { format: Some("parts".into()), ..Options::default() })
    });
    // A part that is not there is an error of its own kind.
    let is_whole = rows.len() * PartRow::SIZE >= input.table.map_or(0, <[u8]>::len);
    if let Ok(source) = opened.as_ref()
        && is_whole
    {
        drive(source, &input.cuts, input.batch_dtype.map(dtype), 0);
        if let Some(stream) = source.joined() {
            drive(&stream, &input.cuts, input.batch_dtype.map(dtype), 0);
        }
    }
    if input.verify {
        verify(&folder.path().join(key), &VerifyOptions::default(), &()).map(drop).unwrap_or_default();
    }
});
