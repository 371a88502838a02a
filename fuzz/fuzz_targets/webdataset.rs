//! WebDataset: archives of any headers and members, and splits of any text beside them.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::DType;
use windrow_core::format::Options;
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::opened;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    members: Vec<Member<'a>>,
    /// Instead of the members.
    raw: Option<&'a [u8]>,
    has_end: bool,
    splits: Option<&'a str>,
    column: Option<u8>,
    numbers: bool,
}

#[derive(Arbitrary, Debug)]
struct Member<'a> {
    key: u8,
    suffix: u8,
    /// Instead of the two.
    name: Option<&'a [u8]>,
    /// The kind of the header; a regular file where it is not given.
    kind: Option<u8>,
    /// Instead of the size of the data.
    size: Option<u16>,
    data: &'a [u8],
}

const SUFFIXES: [&str; 10] = ["txt", "cls", "json", "npy", "npz", "jpg", "npy.gz", "json.gz", "", "a.id"];

fn archive(members: &[Member<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for member in members {
        let name = match member.name {
            Some(name) => name.to_vec(),
            None => {
                let suffix = SUFFIXES[usize::from(member.suffix) % SUFFIXES.len()];
                format!("{}.{suffix}", member.key % 4).into_bytes()
            }
        };
        let mut block = vec![0u8; 512];
        let size = name.len().min(100);
        block[..size].copy_from_slice(&name[..size]);
        let size = member.size.map_or(member.data.len(), usize::from);
        block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        block[156] = member.kind.unwrap_or(b'0');
        block[257..263].copy_from_slice(b"ustar\0");
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(block);
        bytes.extend(member.data);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes
}

fuzz_target!(|input: Input<'_>| {
    let mut bytes = input.raw.map_or_else(|| archive(&input.members), <[u8]>::to_vec);
    if input.has_end {
        bytes.resize(bytes.len() + 1024, 0);
    }
    let mut store = Memory::new().with("a-0.tar", bytes.clone()).with("a-1.tar", bytes);
    if let Some(splits) = input.splits {
        let text = format!(
            "split_parts: {{train: ['a-{{0..1}}.tar', '{splits}'], val: []}}\nexclude: [a-0.tar/0]\n"
        );
        store = store.with(".nv-meta/split.yaml", text.into_bytes());
    }
    let column = input.column.map(|at| SUFFIXES[usize::from(at) % SUFFIXES.len()].to_string());
    let options = Options {
        format: Some("webdataset".to_string()),
        dtype: (input.numbers && column.is_some()).then_some(DType::U16),
        column,
        ..Options::default()
    };
    opened(FORMATS, store, "", &options);
});
