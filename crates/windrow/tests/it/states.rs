//! Plans and states of earlier versions still load, and go on with the batches that they went on with then.
//!
//! `testdata/states/*.json` were recorded when each view, order and format appeared, and are never written again: a plan's
//! identity is its own, apart from the words that users type.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windrow::dev::collate::Batch;
use windrow::{Recipe, State};

/// A run that was stopped.
#[derive(Deserialize, Serialize)]
pub(crate) struct Recorded {
    /// The plan, its paths relative to the folder of states.
    pub(crate) recipe: Value,
    /// Where it stood.
    pub(crate) state: Value,
    /// Hash of the batch that came next.
    pub(crate) next: String,
}

/// Set to write the cases below that are not recorded yet.
const RECORD: &str = "WINDROW_RECORD_STATES";

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/states")
}

// Names, dtypes, shapes and values of all tensors; records and lists as text.
pub(crate) fn hash_of(batch: &Batch) -> String {
    let mut all = Vec::new();
    for (i, field) in batch.fields().iter().enumerate() {
        all.extend_from_slice(format!("{} {} {:?}", field.name, field.dtype, field.shape).as_bytes());
        all.extend_from_slice(batch.bytes(i));
    }
    for record in batch.records() {
        all.extend_from_slice(record.shown().to_string().as_bytes());
    }
    for list in batch.lists() {
        all.extend_from_slice(format!("{} {:?}", list.name, list.values).as_bytes());
    }
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&all))
}

// The recipe with its paths below the folder of states.
fn recipe_of(recipe: &Value) -> Recipe {
    let mut recipe = recipe.clone();
    for part in recipe["parts"].as_array_mut().unwrap() {
        part["path"] = json!(folder().join(part["path"].as_str().unwrap()));
    }
    Recipe::from_json(&recipe.to_string()).unwrap()
}

fn cases() -> Vec<(&'static str, Value)> {
    let one =
        |path: &str, options: Value, view: Value| json!({"path": path, "options": options, "view": view});
    let plan = |parts: Value| {
        json!({
            "version": 1, "parts": parts, "shuffle": true, "seed": 7, "global_batch_size": 6, "drop_last": false
        })
    };
    let tokens = |view: Value| plan(json!([one("data/tokens.bin", json!({"dtype": "uint16"}), view)]));
    let documents =
        |view: Value| plan(json!([one("data/tokens.bin", json!({"dtype": "uint16", "eos": 7919}), view)]));
    let series =
        |view: Value| plan(json!([one("data/series.jsonl", json!({"format": "series-jsonl"}), view)]));
    let codes = |view: Value| plan(json!([one("data/codes.jsonl", json!({"format": "series-jsonl"}), view)]));
    let mut mixture = plan(json!([
        one("data/tokens.bin", json!({"dtype": "uint16"}), json!({"pack": {"length": 16}})),
        one(
            "data/tokens.bin",
            json!({"dtype": "uint16", "eos": 7919}),
            json!({"pack": {"length": 16, "eos": 3}})
        ),
    ]));
    mixture["names"] = json!(["stream", "documents"]);
    mixture["weights"] = json!([3.0, 1.0]);
    mixture["stop"] = json!("all");
    let rows = |view: Value| plan(json!([one("data/series.jsonl", json!({"format": "jsonl"}), view)]));
    let mut sequential = tokens(json!({"pack": {"length": 16}}));
    sequential["shuffle"] = json!(false);
    sequential["drop_last"] = json!(true);
    let mut blocks = tokens(json!({"pack": {"length": 16}}));
    blocks["shuffle"] = json!({"blocks": {"size": 5, "lanes": 3, "rows": 2, "pool": 2}});
    let mut mixed_blocks = mixture.clone();
    mixed_blocks["shuffle"] = json!({"blocks": [
        {"size": 5, "lanes": 2, "rows": 2, "pool": 2}, {"size": 3, "lanes": 1, "rows": 1, "pool": 4},
    ]});
    vec![
        ("pack", tokens(json!({"pack": {"length": 16}}))),
        ("pack_eos", documents(json!({"pack": {"length": 16, "eos": 3}}))),
        ("pack_shifted", tokens(json!({"pack": {"length": 16, "shifted": true}}))),
        ("pack_same_labels", tokens(json!({"pack": {"length": 16, "labels": "same"}}))),
        ("sequential_drop_last", sequential),
        ("records", documents(json!({"records": {"length": 16}}))),
        ("bins", documents(json!({"bins": {"length": 64}}))),
        ("crop", documents(json!({"crop": {"length": 8, "mode": "random"}}))),
        ("windows", series(json!({"windows": {"context_length": 8, "prediction_length": 4, "stride": 5}}))),
        ("windows_scaled", series(json!({"windows": {"context_length": 8, "scaler": "max"}}))),
        ("segments", series(json!({"segments": {"length": 32, "buckets": [16, 32]}}))),
        ("codes", codes(json!({"codes": {"length": 10, "mode": "random", "layout": {"text_length": 12}}}))),
        ("mixture", mixture),
        ("blocks", blocks),
        ("mixture_blocks", mixed_blocks),
        ("rows", rows(json!({"rows": {}}))),
        ("rows_stacked", rows(json!({"rows": {"columns": ["name"], "stack": true}}))),
    ]
}

#[test]
fn states_of_earlier_versions_go_on_where_they_stood() {
    if std::env::var_os(RECORD).is_some() {
        record();
    }
    let names: Vec<&str> = cases().into_iter().map(|(name, _)| name).collect();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        let recorded: Recorded = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let state = State::from_json(&recorded.state.to_string()).unwrap();
        let mut loader = recipe_of(&recorded.recipe).builder().unwrap().build().unwrap();
        loader.resume(&state).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(hash_of(&loader.next_batch().unwrap().unwrap()), recorded.next, "{name}");
        found.push(name);
    }
    for name in names {
        assert!(
            found.iter().any(|found| found == name),
            "{name} is not recorded: run the test with {RECORD}=1"
        );
    }
}

fn record() {
    for (name, recipe) in cases() {
        let path = folder().join(format!("{name}.json"));
        if path.exists() {
            continue;
        }
        let builder = recipe_of(&recipe).builder().unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut loader = builder.build().unwrap();
        for _ in 0..2 {
            loader.next_batch().unwrap().unwrap();
        }
        let state = serde_json::to_value(loader.state()).unwrap();
        let mut recipe = recipe;
        recipe["plan"] = state["plan"].clone();
        let next = hash_of(&loader.next_batch().unwrap().unwrap());
        let recorded = Recorded { recipe, state, next };
        fs::write(path, serde_json::to_string_pretty(&recorded).unwrap() + "\n").unwrap();
    }
}
