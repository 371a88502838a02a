//! Ids from any layout into any other: equal in all of them, and byte for byte what they were when they come back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, json};
use windrow::format::Options;
use windrow::format::WriteOptions;
use windrow::prepare::{VerifyOptions, convert};
use windrow::{DType, Dataset, open_with};

use crate::ids::records;

const EOS: i64 = 0;
const FLAT_TOKENS: &str = "flat-tokens";
const LAYOUTS: [&str; 5] = ["tokens", "forager", "megatron", "shards", FLAT_TOKENS];

/// Documents that end with [`EOS`], one of them nothing else, and one longer than a part that is read at a time.
fn documents(most: i64) -> Vec<Vec<i64>> {
    let long = (0..1_100_000).map(|i| 1 + i % most).collect();
    let documents = [vec![5, 6, 7], vec![], vec![most], long, vec![99, 98]];
    documents.into_iter().map(|ids: Vec<i64>| [ids, vec![EOS]].concat()).collect()
}

fn open(path: &Path, layout: &str) -> Dataset {
    // Only a stream does not say where documents end.
    let eos = (layout == "tokens").then_some(EOS);
    open_with(path, &Options { document_eos: eos, format: Some(layout.to_string()), ..Options::default() })
        .unwrap()
}

fn write(from: &Dataset, to: &str, path: &Path, dtype: Option<DType>) {
    let mut own = Map::new();
    if to == FLAT_TOKENS {
        own.insert("tokens_chunk_size".to_string(), json!(1 << 16));
    }
    let dtype = dtype.filter(|_| to != FLAT_TOKENS);
    let options = WriteOptions { dtype, fsync: false, ..WriteOptions::default() };
    let format = windrow::writer(to, &own).unwrap();
    let report = convert(from.source().as_ref(), path, format.as_ref(), &options, &());
    assert_eq!(report.unwrap().records, 5, "{to}");
}

/// The data files, without what says where they come from.
fn data_files(folder: &Path, name: &str) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut below) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(path) = below.pop() {
        for item in fs::read_dir(&path).unwrap() {
            let path = item.unwrap().path();
            let file = path.strip_prefix(folder).unwrap().display().to_string();
            let own = file.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(['.', '/']));
            if path.is_dir() {
                below.push(path);
            } else if let Some(rest) =
                own.filter(|_| !file.ends_with("windrow.json") && !file.ends_with("windrow.sums"))
            {
                let bytes = fs::read(&path).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                let bytes = match text.split_once("\"windrow\": ") {
                    Some((before, _)) if file.ends_with("meta.json") => before.as_bytes().to_vec(),
                    _ => bytes,
                };
                found.insert(rest.to_string(), bytes);
            }
        }
    }
    found
}

#[test]
fn every_layout_becomes_every_other_and_comes_back() {
    // 31 bits are what all of them hold; Megatron has int32 where the others have uint32.
    for (dtype, most) in [(DType::U16, 60_000), (DType::U32, 200_000), (DType::I32, (1 << 31) - 1)] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let expected = documents(most);
        let bytes = expected.concat().into_iter().flat_map(|id| id.to_le_bytes()[..dtype.size()].to_vec());
        fs::write(root.join("first.bin"), bytes.collect::<Vec<u8>>()).unwrap();
        let options = Options { dtype: Some(dtype), document_eos: Some(EOS), ..Options::default() };
        let first = open_with(root.join("first.bin"), &options).unwrap();
        for to in LAYOUTS {
            let dtype = Some(dtype).filter(|_| to == "megatron" && dtype == DType::U32).map(|_| DType::I32);
            write(&first, to, &root.join(to), dtype);
        }
        for from in LAYOUTS {
            let source = open(&root.join(from), from);
            assert_eq!(records(&source), expected, "{}", from);
            let findings =
                windrow::verify(source.paths().only().unwrap(), &VerifyOptions::default(), &()).unwrap();
            assert_eq!(findings.problems, [], "{}", from);
            for to in LAYOUTS {
                let folder = tempfile::tempdir().unwrap();
                let stored = open(&root.join(to), to).source().schema().element.dtype;
                // What it was in that layout: flat-tokens forget all but the ids.
                write(&source, to, &folder.path().join(to), Some(stored));
                let back = data_files(folder.path(), to);
                assert!(!back.is_empty());
                assert!(back == data_files(root, to), "{dtype}: {} to {}", from, to);
            }
        }
    }
}
