//! Parquet: files of all kinds with some of their bytes changed, and cut.
#![no_main]

use std::panic::{PanicHookInfo, set_hook};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_arrow::FORMATS;
use windrow_core::format::Options;
use windrow_core::store::Memory;
use windrow_fuzz::opened;

const FILES: [&[u8]; 4] = [
    include_bytes!("../../testdata/golden/6_foreign/parquet/kinds/kinds.parquet"),
    include_bytes!("../../testdata/golden/6_foreign/parquet/encodings/e.parquet"),
    include_bytes!("../../testdata/golden/6_foreign/parquet/tokens_i32_zstd_page_index/tokens.parquet"),
    include_bytes!("../../testdata/golden/6_foreign/parquet/channels/c.parquet"),
];

#[derive(Arbitrary, Debug)]
struct Input {
    file: u8,
    changes: Vec<(u16, u8)>,
    cut: Option<u16>,
    column: Option<u8>,
}

// The crate parquet panics about some damaged pages, which windrow makes an error of; a panic that it does not catch still ends
// the run, and says why.
fn report(panic: &PanicHookInfo<'_>) {
    if panic.location().is_none_or(|at| !at.file().contains("/registry/")) {
        eprintln!("{panic}");
    }
}

fuzz_target!(init: set_hook(Box::new(report)), |input: Input| {
    let mut bytes = FILES[usize::from(input.file) % FILES.len()].to_vec();
    for (at, byte) in &input.changes {
        let at = usize::from(*at) % bytes.len();
        bytes[at] = *byte;
    }
    if let Some(cut) = input.cut {
        bytes.truncate(usize::from(cut));
    }
    let store = Memory::new().with("t.parquet", bytes);
    let columns = ["input_ids", "x", "seq", "label"];
    let options = Options {
        format: Some("parquet".to_string()),
        column: input.column.map(|column| columns[usize::from(column) % columns.len()].to_string()),
        ..Options::default()
    };
    opened(FORMATS, store, "t.parquet", &options);
});
