//! What a build says of data whose feature it lacks: which feature that is, never that nobody knows the data.

use std::path::{Path, PathBuf};

use windrow::format::Options;
use windrow::prep::{self, Tokenizing};
use windrow::{Error, Kind, open, open_with};

fn foreign(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/6_foreign").join(name)
}

// Nothing where the feature is on: then other tests read the data.
fn is_named(feature: &str, is_on: bool, found: impl FnOnce() -> Option<Error>) {
    if is_on {
        return;
    }
    let error = found().unwrap_or_else(|| panic!("no error names {feature}"));
    assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    let says = format!("windrow was built without `{feature}`: `cargo add windrow --features {feature}`");
    assert_eq!(error.message(), says);
}

#[test]
fn a_file_of_parquet() {
    let is_on = cfg!(feature = "parquet");
    is_named("parquet", is_on, || open(foreign("parquet/tokens_i32_zstd_page_index/tokens.parquet")).err());
    is_named("parquet", is_on, || open(foreign("parquet/kinds")).err());
    let split = Options { split: Some("train".to_string()), ..Options::default() };
    is_named("parquet", is_on, || open_with(foreign("parquet/kinds"), &split).err());
    let forced = Options { format: Some("parquet".to_string()), ..Options::default() };
    is_named("parquet", is_on, || open_with(foreign("mds/encodings"), &forced).err());
    let column = Options { columns: Some(vec!["text".to_string()]), ..Options::default() };
    is_named("parquet", is_on, || open_with(foreign("parquet/kinds"), &column).err());
    is_named("parquet", is_on, || windrow::writer("parquet", &serde_json::Map::new()).err());
}

#[test]
fn a_group_of_zarr() {
    let folder = tempfile::tempdir().unwrap();
    for array in ["encoded_tokens", "seq_starts"] {
        std::fs::create_dir_all(folder.path().join("train").join(array)).unwrap();
        std::fs::write(folder.path().join("train").join(array).join(".zarray"), "{}").unwrap();
    }
    let is_on = cfg!(feature = "zarr");
    is_named("zarr", is_on, || open(folder.path().join("train")).err());
    let split = Options { split: Some("train".to_string()), ..Options::default() };
    is_named("zarr", is_on, || open_with(folder.path(), &split).err());
    is_named("zarr", is_on, || windrow::writer("flat-tokens", &serde_json::Map::new()).err());
}

#[test]
fn series_in_yaml_and_the_splits_of_energon() {
    let folder = tempfile::tempdir().unwrap();
    let series = folder.path().join("series.yaml");
    std::fs::write(&series, "- [1.0, 2.0]\n").unwrap();
    is_named("yaml", cfg!(feature = "yaml"), || open(&series).err());
    is_named("yaml", cfg!(feature = "yaml"), || open(folder.path()).err());
    let split = Options { split: Some("train".to_string()), ..Options::default() };
    is_named("yaml", cfg!(feature = "yaml"), || open_with(foreign("webdataset/energon"), &split).err());
}

#[test]
fn a_url() {
    is_named("remote", cfg!(feature = "remote"), || open("s3://bucket/tokens").err());
    is_named("remote", cfg!(feature = "remote"), || open("https://example.com/a.npy").err());
}

#[test]
fn a_tokenizer() {
    let is_on = cfg!(feature = "text");
    let named = Options { tokenizer: Some("gpt2".to_string()), ..Options::default() };
    is_named("text", is_on, || open_with(foreign("mds/encodings"), &named).err());
    is_named("text", is_on, || windrow::preview::tokens::tokenizer(Some("gpt2"), None).err());
    let folder = tempfile::tempdir().unwrap();
    let how = Tokenizing { tokenizer: "bytes".to_string(), ..Tokenizing::default() };
    let (text, out) = (folder.path().join("a.jsonl"), folder.path().join("out"));
    std::fs::write(&text, "{\"text\": \"one\"}\n").unwrap();
    is_named("text", is_on, || prep::plan(&[text], &out, &how, 16, &Options::default()).err());
}
