//! flat-tokens in a zarr group: the files of a small store, as they lie (`s…`), or metadata and chunks made of arbitrary
//! numbers, compressed as the metadata says and then changed (`m…`).
#![no_main]

use std::fs;
use std::io::Write;
use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use windrow::prepare::VerifyOptions;
use windrow::zarr::FlatTokens;
use windrow_core::format::{Format, Options, Probe};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::{Cut, allow_at_once, drive};

/// What may lie in a store, by number.
const KEYS: [&str; 34] = [
    ".zgroup",
    ".zattrs",
    "zarr.json",
    "encoded_tokens/.zarray",
    "encoded_tokens/zarr.json",
    "encoded_tokens/0",
    "encoded_tokens/1",
    "encoded_tokens/2",
    "encoded_tokens/3",
    "encoded_tokens/4",
    "encoded_tokens/5",
    "encoded_tokens/c/0",
    "encoded_tokens/c/1",
    "encoded_tokens/c/2",
    "encoded_tokens/c/3",
    "encoded_tokens/c/4",
    "encoded_tokens/c/5",
    "seq_starts/.zarray",
    "seq_starts/zarr.json",
    "seq_starts/0",
    "seq_starts/1",
    "seq_starts/2",
    "seq_starts/3",
    "seq_starts/4",
    "seq_starts/c/0",
    "seq_starts/c/1",
    "seq_starts/c/2",
    "seq_starts/c/3",
    "seq_starts/c/4",
    "tokens/.zarray",
    "tokens/zarr.json",
    "tokens/0",
    "tokens/c/0",
    "windrow.json",
];

/// A chunk may decode to 64 MiB whatever its stored size, and a growing buffer takes twice that.
const MOST_DECODED: usize = 192 << 20;

type Files = Vec<(&'static str, Vec<u8>)>;

/// Numbers in zarr, in as many ways as there are.
#[derive(Arbitrary, Debug)]
struct Made<'a> {
    is_v3: bool,
    tokens: Vec<(u16, bool)>,
    starts: Option<Vec<u64>>,
    max_id: Option<u64>,
    chunk: u8,
    starts_chunk: u8,
    codec: u8,
    starts_codec: u8,
    delta: bool,
    big_endian: bool,
    inner: Option<u8>,
    shape: Option<u64>,
    changed: Vec<(u8, u16, u8)>,
    cut: Option<(u8, u16)>,
    raw: Option<(u8, &'a [u8])>,
}

/// How to look at it.
#[derive(Arbitrary, Debug)]
struct How {
    fill_missing: bool,
    vocab_size: Option<u64>,
    verifies: bool,
    cuts: [Cut; 2],
}

// Number of the key, size in two bytes, bytes: again and again.
fn stored(mut data: &[u8]) -> Files {
    let mut files = Vec::new();
    while let [key, low, high, rest @ ..] = data {
        let size = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        files.push((KEYS[usize::from(*key) % KEYS.len()], rest[..size].to_vec()));
        data = &rest[size..];
    }
    files
}

impl Made<'_> {
    fn files(&self) -> Files {
        let mut start = 0u64;
        let mut starts = vec![0];
        let mut encoded = Vec::new();
        for (i, (id, is_first)) in self.tokens.iter().enumerate() {
            let is_first = *is_first || i == 0;
            if is_first && i > 0 {
                starts.push(start);
            }
            start += 1;
            encoded.push(u32::from(*id) << 1 | u32::from(is_first));
        }
        starts.push(start);
        let starts = self.starts.clone().unwrap_or(starts);
        let max_id = self.max_id.unwrap_or(self.tokens.iter().map(|t| u64::from(t.0)).max().unwrap_or(0));
        let mut files = self.group(max_id);
        let bytes = |wide: &[u64], width: usize| -> Vec<u8> {
            wide.iter()
                .flat_map(|n| {
                    if self.big_endian {
                        n.to_be_bytes()[8 - width..].to_vec()
                    } else {
                        n.to_le_bytes()[..width].to_vec()
                    }
                })
                .collect()
        };
        let encoded: Vec<u64> = encoded.into_iter().map(u64::from).collect();
        let shape = self.shape.unwrap_or(encoded.len() as u64);
        let chunk = usize::from(self.chunk).max(1);
        let chunks = encoded.chunks(chunk).map(|part| padded(bytes(part, 4), chunk * 4)).collect();
        files.extend(self.array("encoded_tokens", "u4", shape, chunk, self.codec, false, chunks));
        let chunk = usize::from(self.starts_chunk).max(1);
        let delta = self.delta && !self.is_v3;
        let chunks = starts.chunks(chunk).map(|part| {
            let before = |i: usize| if i > 0 && delta { part[i - 1] } else { 0 };
            let stored: Vec<u64> = part.iter().enumerate().map(|(i, n)| n.wrapping_sub(before(i))).collect();
            padded(bytes(&stored, 8), chunk * 8)
        });
        let (len, chunks) = (starts.len() as u64, chunks.collect());
        files.extend(self.array("seq_starts", "u8", len, chunk, self.starts_codec, delta, chunks));
        files
    }

    fn group(&self, max_id: u64) -> Files {
        let attributes = json!({ "max_token_id": max_id });
        if self.is_v3 {
            let group = json!({"attributes": attributes, "zarr_format": 3, "node_type": "group"});
            vec![("zarr.json", group.to_string().into_bytes())]
        } else {
            vec![(".zattrs", attributes.to_string().into_bytes())]
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what describes an array")]
    fn array(
        &self,
        name: &str,
        dtype: &str,
        shape: u64,
        chunk: usize,
        codec: u8,
        delta: bool,
        chunks: Vec<Vec<u8>>,
    ) -> Files {
        let key = |wanted: String| KEYS.iter().find(|key| **key == wanted).copied();
        let folder = if self.is_v3 { format!("{name}/c") } else { name.to_string() };
        let width = if dtype == "u4" { 4 } else { 8 };
        let metadata = if self.is_v3 {
            self.v3(if width == 4 { "uint32" } else { "uint64" }, shape, chunk, codec)
        } else {
            let order = if self.big_endian { '>' } else { '<' };
            let filters = json!([{"id": "delta", "dtype": "<i8", "astype": "<i8"}]);
            let compressors = [
                Value::Null,
                json!({"id": "zlib", "level": 1}),
                json!({"id": "gzip", "level": 1}),
                json!({"id": "zstd", "level": 1}),
            ];
            json!({
                "zarr_format": 2, "shape": [shape], "chunks": [chunk], "dtype": format!("{order}{dtype}"),
                "compressor": compressors[usize::from(codec) % 4],
                "filters": if delta { filters } else { Value::Null },
                "fill_value": 0, "order": "C", "dimension_separator": "."
            })
        };
        let file = if self.is_v3 { "zarr.json" } else { ".zarray" };
        let mut files: Files = key(format!("{name}/{file}"))
            .into_iter()
            .map(|key| (key, metadata.to_string().into_bytes()))
            .collect();
        for (i, bytes) in chunks.into_iter().enumerate() {
            let Some(key) = key(format!("{folder}/{i}")) else { break };
            let stored = match (self.is_v3, self.inner) {
                (true, Some(n)) if name == "encoded_tokens" => shard(&bytes, usize::from(n % 4) + 1, codec),
                (is_v3, _) => {
                    packed(&bytes, if is_v3 { [0, 2, 3][usize::from(codec) % 3] } else { codec % 4 })
                }
            };
            files.push((key, stored));
        }
        files
    }

    fn v3(&self, dtype: &str, shape: u64, chunk: usize, codec: u8) -> Value {
        let endian = if self.big_endian { "big" } else { "little" };
        let mut codecs = vec![json!({"name": "bytes", "configuration": {"endian": endian}})];
        match codec % 3 {
            1 => codecs.push(json!({"name": "gzip", "configuration": {"level": 1}})),
            2 => codecs.push(json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}})),
            _ => {}
        }
        if let (Some(n), "uint32") = (self.inner, dtype) {
            let inner = (chunk / (usize::from(n % 4) + 1)).max(1);
            codecs = vec![json!({"name": "sharding_indexed", "configuration": {
                "chunk_shape": [inner], "codecs": codecs,
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "index_location": "end"
            }})];
        }
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [shape], "data_type": dtype, "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": codecs, "attributes": {}
        })
    }

    fn changed(&self, mut files: Files) -> Files {
        let n = files.len().max(1);
        for (file, at, byte) in self.changed.iter().take(8) {
            if let Some((_, bytes)) = files.get_mut(usize::from(*file) % n)
                && let Some(place) = bytes.get_mut(usize::from(*at))
            {
                *place = *byte;
            }
        }
        if let Some((file, size)) = self.cut
            && let Some((_, bytes)) = files.get_mut(usize::from(file) % n)
        {
            bytes.truncate(size.into());
        }
        files.extend(self.raw.map(|(key, bytes)| (KEYS[usize::from(key) % KEYS.len()], bytes.to_vec())));
        files
    }
}

fn padded(mut bytes: Vec<u8>, size: usize) -> Vec<u8> {
    bytes.resize(size, 0);
    bytes
}

// As they are, zlib, gzip, zstd.
fn packed(bytes: &[u8], codec: u8) -> Vec<u8> {
    let level = flate2::Compression::fast();
    match codec {
        1 => {
            let mut out = flate2::write::ZlibEncoder::new(Vec::new(), level);
            out.write_all(bytes).and_then(|()| out.finish()).expect("memory")
        }
        2 => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), level);
            out.write_all(bytes).and_then(|()| out.finish()).expect("memory")
        }
        3 => zstd::bulk::compress(bytes, 1).expect("memory"),
        _ => bytes.to_vec(),
    }
}

// Inner chunks one after the other, then the table of them; the last may be left out.
fn shard(bytes: &[u8], n: usize, codec: u8) -> Vec<u8> {
    let (mut out, mut index) = (Vec::new(), Vec::new());
    let inner = (bytes.len() / 4 / n).max(1) * 4;
    for part in bytes.chunks_exact(inner) {
        let stored = packed(part, [0, 2, 3][usize::from(codec) % 3]);
        let place = if part.iter().any(|byte| *byte != 0) {
            [out.len() as u64, stored.len() as u64]
        } else {
            [u64::MAX; 2]
        };
        out.extend(stored);
        index.extend(place.into_iter().flat_map(u64::to_le_bytes));
    }
    out.extend(index);
    out
}

fn look(files: &Files, how: &How) {
    let store = files.iter().fold(Memory::new(), |store, (key, bytes)| store.with(key, bytes.clone()));
    let options =
        Options { fill_missing: how.fill_missing, vocab_size: how.vocab_size, ..Options::default() };
    match Probe::at(FORMATS, Arc::new(store), "").and_then(|look| FlatTokens.open(&look, &options)) {
        Ok(source) => {
            drive(&source, &how.cuts, None, 0);
            if let Some(joined) = source.joined() {
                drive(&joined, &how.cuts, None, 0);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if how.verifies {
        let folder = tempfile::tempdir().expect("a folder");
        for (key, bytes) in files {
            let path = folder.path().join(key);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, bytes).expect("a file");
        }
        if let Err(error) = windrow::verify(folder.path(), &VerifyOptions::default(), &()) {
            assert!(!error.to_string().is_empty());
        }
    }
}

fuzz_target!(|data: &[u8]| {
    allow_at_once(MOST_DECODED);
    match data.split_first() {
        Some((b's', rest)) => {
            let cuts = [Cut::Pack { length: 7, eos: None }, Cut::Records { length: 5 }];
            let verifies = rest.len() % 8 == 0;
            look(&stored(rest), &How { fill_missing: false, vocab_size: None, verifies, cuts });
        }
        Some((_, rest)) => {
            let mut parts = Unstructured::new(rest);
            let Ok(how) = How::arbitrary(&mut parts) else { return };
            let Ok(made) = Made::arbitrary_take_rest(parts) else { return };
            look(&made.changed(made.files()), &how);
        }
        None => {}
    }
});
