//! The tokenizer that made token IDs shows them, wherever its name is kept.

use std::fs;

use serde_json::json;

use crate::program::Desk;

#[test]
fn a_folder_of_one_file_is_described_by_what_is_beside_the_file() {
    let desk = Desk::new();
    desk.texts("t/a.jsonl", &["one two", "three"]);
    desk.windrow("tokenize t -t bytes --out l --to llmc").done();
    let found = desk.windrow("inspect l --json").json();
    assert_eq!(found["side_file"]["tokenizer"]["name"], "bytes", "{found}");
    assert!(desk.windrow("peek l -n 1").done().contains("one two"));
    let err = desk.windrow("peek l -n 1 --tokenizer gpt2").failed(4);
    assert!(err.contains("tokenizer"), "{err}");
    desk.windrow("verify l").done();
    // Beside another file it speaks of its own alone.
    desk.write("l/other.bin", fs::read(desk.path("l/tokens.bin")).unwrap());
    assert!(desk.windrow("inspect l --json").json()["side_file"].is_null());
}

#[test]
fn a_manifest_that_only_lists_files_leaves_the_hashes_in_force() {
    let desk = Desk::new();
    desk.texts("t/a.jsonl", &["one two", "three"]);
    desk.windrow("tokenize t -t bytes --out s --to shards").done();
    // Shards have a manifest of their own, so that one which lists their files has to be named.
    let err = desk.windrow("manifest s").failed(1);
    assert!(err.contains("the data has a manifest"), "{err}");
    desk.windrow("manifest s -o s/windrow.json").done();
    desk.windrow("verify s").done();
    let shard = desk.path("s/data-1-of-1.bin");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[1] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let said = desk.windrow("verify s");
    assert_eq!(said.code, Some(3), "{said:?}");
}

#[test]
fn each_part_of_a_mixture_is_shown_by_the_tokenizer_that_made_it() {
    let desk = Desk::new();
    desk.texts("t/a.jsonl", &["abcdefghijklmnop"; 20]);
    desk.windrow("tokenize t -t gpt2 --out web").done();
    desk.windrow("tokenize t -t bytes --out code").done();
    let part = |path: &str| json!({ "path": path, "view": { "records": { "length": 4 } } });
    let plan = json!({
        "version": 1, "parts": [part("web"), part("code")], "stop": "first", "weights": [1.0, 1.0], "names": ["web", "code"],
        "shuffle": true, "seed": 0, "global_batch_size": 8, "drop_last": true,
    });
    desk.write("mix.json", plan.to_string());
    let traced = desk.windrow("trace mix.json --step 0 --json").json();
    let rows = traced["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert!(row["text"].as_str().unwrap().starts_with("abcd"), "{row}");
    }
    let batch = desk.windrow("extract mix.json --step 0").done();
    assert_eq!(batch.matches("\nabcd").count(), 8, "{batch}");
}
