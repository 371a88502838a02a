//! Columns beside token IDs that say which are learned, through the facade.

use std::path::PathBuf;
use std::sync::Arc;

use windrow::dev::source::{Extras, HeldBytes, InMemory};
use windrow::format::{Options, WriteOptions};
use windrow::prepare::convert;
use windrow::{DType, Element, Kind, Labels, Owner, Recipe, Value, open_with};

fn rows(lines: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, lines).unwrap();
    (folder, path)
}

fn options(mask_column: Option<&[&str]>) -> Options {
    let mask_column = mask_column.map(|names| names.iter().map(ToString::to_string).collect());
    Options { column: Some("ids".into()), mask_column, ..Options::default() }
}

const ROWS: &str = "{\"ids\": [5, 6, 7], \"labels\": [-100, 6, 7], \"keep\": [1, 1, 0]}\n";

#[test]
fn the_option_chooses_what_says_which_tokens_are_learned() {
    let (_folder, path) = rows(ROWS);
    for (asked, found, labels) in [
        (None, &["labels"][..], [-100, 6, 7]),
        (Some(&["keep"][..]), &["keep"], [5, 6, -100]),
        (Some(&["labels", "keep"]), &["labels", "keep"], [-100, 6, -100]),
        (Some(&[]), &[], [5, 6, 7]),
    ] {
        let data = open_with(&path, &options(asked)).unwrap();
        assert_eq!(data.info().unwrap().mask_columns, found);
        let samples = data.records(3).unwrap().with_labels(Labels::Same).unwrap();
        let batch = samples.loader().rank(0, 1).build().unwrap().next().unwrap().unwrap();
        assert_eq!(batch.get::<i64>("labels").unwrap(), labels, "{asked:?}");
    }
    let error = open_with(&path, &options(Some(&["none"]))).err().unwrap();
    assert_eq!((error.kind(), error.hint_text().unwrap()), (Kind::Config, "columns: labels, keep"));
}

#[test]
fn a_recipe_keeps_the_option_and_one_without_it_is_as_it_was() {
    let (_folder, path) = rows(ROWS);
    for asked in [None, Some(&["keep"][..]), Some(&[])] {
        let data = open_with(&path, &options(asked)).unwrap();
        let recipe = data.records(3).unwrap().loader().rank(0, 1).recipe().unwrap();
        let text = recipe.to_json();
        assert_eq!(text.contains("mask_column"), asked.is_some());
        assert_eq!(Recipe::from_json(&text).unwrap().parts[0].options, options(asked));
    }
}

// Records in memory, with a mask beside the tokens.
fn in_memory(mask: Value, asked: Option<&[&str]>) -> windrow::Result<windrow::Dataset> {
    let ids: HeldBytes = Arc::new([5u16, 6, 7].iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>());
    let beside: Extras = [("loss_mask", mask)].into_iter().collect();
    let source = InMemory::new("ids", Element::little(DType::U16), None, vec![(ids, beside)])?;
    windrow::Dataset::in_memory(Arc::new(source), Owner::new(()), &options(asked))
}

#[test]
fn records_in_memory_have_their_masks_and_bytes_are_one() {
    let list = Value::List(vec![Value::I64(0), Value::I64(1), Value::I64(1)]);
    for mask in [list.clone(), Value::Bytes(vec![0, 1, 1])] {
        let data = in_memory(mask, None).unwrap();
        assert_eq!(data.info().unwrap().mask_columns, ["loss_mask"]);
        let samples = data.records(3).unwrap().with_labels(Labels::Same).unwrap();
        let batch = samples.loader().rank(0, 1).build().unwrap().next().unwrap().unwrap();
        assert_eq!(batch.get::<i64>("labels").unwrap(), [-100, 6, 7]);
    }
    assert!(in_memory(list.clone(), Some(&[])).unwrap().info().unwrap().mask_columns.is_empty());
    assert_eq!(in_memory(list, Some(&["other"])).err().unwrap().kind(), Kind::Config);
    let samples = in_memory(Value::Bytes(vec![0, 1]), None).unwrap().records(3).unwrap();
    let error = samples.loader().rank(0, 1).build().unwrap().next().unwrap().err().unwrap();
    assert!(error.message().contains("\"loss_mask\" holds 2 values beside 3 tokens"), "{error}");
}

#[test]
fn a_format_that_stores_a_mask_is_written_with_it() {
    let (folder, path) = rows(ROWS);
    let data = open_with(&path, &options(None)).unwrap();
    for to in ["forager", "datatrove", "shards"] {
        let out = folder.path().join(to);
        let format = windrow::writer(to, &Default::default()).unwrap();
        let written = WriteOptions { dtype: Some(DType::U16), ..WriteOptions::default() };
        convert(data.source().as_ref(), &out, format.as_ref(), &written, &()).unwrap();
        let samples = windrow::open(&out).unwrap().records(3).unwrap().with_labels(Labels::Same).unwrap();
        let batch = samples.loader().rank(0, 1).build().unwrap().next().unwrap().unwrap();
        assert_eq!(batch.get::<i64>("labels").unwrap(), [-100, 6, 7], "{to}");
    }
}
