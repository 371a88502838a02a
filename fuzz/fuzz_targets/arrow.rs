//! Arrow: files of all kinds with some of their bytes changed, and cut.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::format::Options;
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::opened;

const FILES: [&[u8]; 5] = [
    include_bytes!("../../testdata/golden/6_foreign/arrow/saved_kinds/data-00000-of-00001.arrow"),
    include_bytes!("../../testdata/golden/6_foreign/arrow/file_plain/t.arrow"),
    include_bytes!("../../testdata/golden/6_foreign/arrow/file_zstd/t.arrow"),
    include_bytes!("../../testdata/golden/6_foreign/arrow/views/t.arrow"),
    include_bytes!("../../testdata/golden/6_foreign/arrow/feather/t.feather"),
];

#[derive(Arbitrary, Debug)]
struct Input {
    file: u8,
    changes: Vec<(u16, u8)>,
    cut: Option<u16>,
    column: Option<u8>,
}

fuzz_target!(|input: Input| {
    let mut bytes = FILES[usize::from(input.file) % FILES.len()].to_vec();
    for (at, byte) in &input.changes {
        let at = usize::from(*at) % bytes.len();
        bytes[at] = *byte;
    }
    if let Some(cut) = input.cut {
        bytes.truncate(usize::from(cut));
    }
    let store = Memory::new().with("t.arrow", bytes);
    let columns = ["input_ids", "x", "seq", "label"];
    let options = Options {
        format: Some("arrow".to_string()),
        column: input.column.map(|column| columns[usize::from(column) % columns.len()].to_string()),
        ..Options::default()
    };
    opened(FORMATS, store, "t.arrow", &options);
});
