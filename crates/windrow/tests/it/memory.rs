//! What an opened set of many objects takes of memory.

use serde_json::{Value, json};
use windrow::format::Options;
use windrow::{DType, listing, open_with, write_listing};

use crate::alone::{alone, memory_of};
use crate::bucket::{Bucket, Objects, tag};

/// Bytes of memory that an object takes at most, its name and its version with it.
const MOST: usize = 200;
/// Enough that what a connection and a store take beside them does not count.
const N: u64 = 50_000;
/// Objects that were looked at; what is declared of the others is what was found in these.
const LOOKED_AT: u64 = 12;

fn ids(number: u64) -> Vec<u8> {
    (0..100).flat_map(|i| (number * 7 + i).to_le_bytes()).collect()
}

fn npy(number: u64) -> Vec<u8> {
    let length = 50 + number % 3;
    let head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({length},), }}");
    let head = format!("{head:<117}\n");
    let values = (0..length).flat_map(|i| ((number + i) as f32).to_le_bytes());
    [b"\x93NUMPY\x01\x00v\x00", head.as_bytes()].concat().into_iter().chain(values).collect()
}

fn lines(number: u64) -> Vec<u8> {
    format!("{{\"n\": {number}}}\n").into_bytes()
}

type Kind = (fn(u64) -> String, fn(u64) -> Vec<u8>);

const KINDS: [Kind; 3] = [
    (|number| format!("tokens-part-{number:05}-of-50000.bin"), ids),
    (|number| format!("series-part-{number:05}-of-50000.npy"), npy),
    (|number| format!("lines-part-{number:05}-of-50000.jsonl"), lines),
];

// Of the manifest of the first objects that of all of them.
fn of_all(manifest: &[u8], (name, content): Kind) -> Vec<u8> {
    let mut manifest: Value = serde_json::from_slice(manifest).unwrap();
    // It is of the text that was written.
    manifest.as_object_mut().unwrap().remove("xxh3");
    let listing = &mut manifest["listing"];
    let files = (0..N).map(|number| {
        let (name, content) = (name(number), content(number));
        json!({"name": name, "size": content.len(), "tag": tag(&name, &content)})
    });
    listing["files"] = files.collect();
    if let Some(found) = listing["declared"]["parts"].as_array().cloned() {
        let of = |number: u64| {
            let found = found[(number % LOOKED_AT) as usize].as_str().unwrap();
            format!("{number} {}", found.split_once(' ').unwrap().1)
        };
        listing["declared"]["parts"] = (0..N).map(of).collect();
    }
    serde_json::to_vec(&manifest).unwrap()
}

// The memory that an object takes, opened by a manifest.
fn of_each(kind: Kind) -> usize {
    let ((name, content), url) = (kind, "s3://b/many");
    let dtype = |options| Options { dtype: name(0).ends_with(".bin").then_some(DType::I64), ..options };
    let few = Bucket::serve(Objects { count: LOOKED_AT, name, content, index: None });
    let options = dtype(few.options());
    write_listing(url, &options, &listing(url, &options).unwrap()).unwrap();
    let many = Bucket::serve(Objects { count: N, name, content, index: None });
    *many.manifest.lock().unwrap() = Some(of_all(few.manifest.lock().unwrap().as_ref().unwrap(), kind));
    let options = dtype(many.options());
    let (data, held) = memory_of(|| open_with(url, &options).unwrap());
    assert!(data.len() >= N && many.asked().values().sum::<u64>() <= 2);
    held / N as usize
}

#[test]
fn an_object_of_an_opened_set_takes_little_memory() {
    alone("memory::an_object_of_an_opened_set_takes_little_memory", |_| {
        for kind in KINDS {
            let each = of_each(kind);
            println!("{}: {each} bytes", kind.0(0));
            assert!(each <= MOST, "{}: {each} bytes", kind.0(0));
        }
    });
}
