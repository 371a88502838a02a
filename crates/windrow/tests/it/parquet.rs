//! Rows of Parquet, decoded into the cache, and what damage does to them.

use std::path::PathBuf;

use windrow::dev::source::conformance;
use windrow::dev::stop;
use windrow::format::{Options, WriteOptions};
use windrow::prepare::convert;
use windrow::{Kind, open};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/6_foreign").join(name)
}

#[test]
fn all_rows_are_decoded_into_the_cache_as_long_as_somebody_waits() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..4000).map(|i| format!("{{\"text\": \"{i}{}\"}}\n", "x".repeat(2000))).collect();
    std::fs::write(folder.path().join("a.jsonl"), text).unwrap();
    let rows = windrow::open_with(
        folder.path(),
        &Options { columns: Some(vec!["text".into()]), ..Options::default() },
    );
    let path = folder.path().join("rows.parquet");
    let to = windrow::writer("parquet", &serde_json::Map::new()).unwrap();
    convert(rows.unwrap().source().as_ref(), &path, to.as_ref(), &WriteOptions::default(), &()).unwrap();
    let samples = open(&path).unwrap().rows(&[]).unwrap();
    // A few rows here and there are decoded by themselves, then all.
    let read = || (0..samples.len()).step_by(60).find_map(|i| samples.record(i).err());
    let given_up = stop::Stop::of_this_thread();
    stop::give_up();
    let found = std::thread::scope(|scope| scope.spawn(|| given_up.hold(read)).join().unwrap());
    assert_eq!(found.unwrap().kind(), Kind::Interrupted);
    assert!(read().is_none());
}

/// Pages of Parquet need no checksum: what one says of its rows moves those behind it, for whoever does not skip it.
#[test]
fn a_damaged_page_without_a_checksum_keeps_the_other_promises() {
    let name = "parquet/tokens_i32_zstd_page_index/tokens.parquet";
    let mut bytes = std::fs::read(golden(name)).unwrap();
    // Among the levels that say where lists begin.
    bytes[1315] = 0;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    std::fs::write(&path, bytes).unwrap();
    let source = open(&path).unwrap().source().clone();
    let error = conformance::check(source.as_ref()).unwrap_err();
    assert!(error.message().contains("a row, in its order"), "{error}");
    conformance::check_damaged(source.as_ref()).unwrap();
}
