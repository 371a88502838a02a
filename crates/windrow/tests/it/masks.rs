//! Columns beside token IDs that say which are learned, through the facade.

use std::path::PathBuf;

use windrow::format::Options;
use windrow::{Kind, Labels, Recipe, open_with};

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
