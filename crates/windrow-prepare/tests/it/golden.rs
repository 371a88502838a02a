//! The recorded cases of data-forager 0.2.0, byte for byte.

use std::path::Path;

use serde_json::{Value, json};
use windrow_core::{DType, Kind, Result};
use windrow_formats::FORMATS;
use windrow_prepare::{Encode, IndexOptions, TokenizeOptions, Track, index, tokenize};

use crate::encoders::{Ord, Parts, WordsInt};
use crate::tree::{copy_tree, golden_folder, tree};
use crate::writing::{To, samples};

/// What is below the folder equals what was recorded, but for windrow's own manifest.
fn assert_same(found: &Path, recorded: &Path, case: &str) {
    let mut found = tree(found);
    found.remove("windrow.json");
    assert_eq!(found, tree(recorded), "{case}");
}

#[test]
fn indexes_are_the_recorded_bytes() {
    for case in [
        "01_natural_sort_nested",
        "02_utf8_crlf_no_final_newline",
        "03_blank_lines_and_bom",
        "04_not_json_lines_are_indexed",
        "05_no_files",
    ] {
        let recorded = golden_folder().join(case);
        let base = tempfile::tempdir().unwrap();
        copy_tree(&recorded.join("input"), base.path());
        let options = IndexOptions { allow_empty: true, ..IndexOptions::default() };
        let report = index(FORMATS, base.path(), &options, &()).unwrap();
        assert_same(&base.path().join("index"), &recorded.join("expected_index"), case);
        assert!(!report.unchanged);
        assert!(index(FORMATS, base.path(), &options, &()).unwrap().unchanged, "{case}");
    }
}

fn run(case: &str, out: &Path) -> (Result<()>, Value) {
    let folder = golden_folder().join(case);
    let told: Value = serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap()).unwrap();
    let is_aux = told["call"].as_str().unwrap().contains("aux");
    let args = &told["args"];
    let default = if is_aux { "uint32" } else { "uint16" };
    let mut options = TokenizeOptions {
        sample_size: args["sample_size"].as_u64(),
        eos: told["eos_idx"].as_i64(),
        dtype: Some(DType::parse(args["token_dtype"].as_str().unwrap_or(default)).unwrap()),
        fsync: false,
        ..samples()
    };
    let mut own = json!({ "block_sums": false });
    if let Some(postfix) = args["file_name_postfix"].as_str() {
        own["postfix"] = json!(postfix);
    }
    options.to = To::Forager.with(own);
    let masked: Vec<String> = match &told["masked_types"] {
        Value::Array(types) => types.iter().map(|t| t.as_str().unwrap().to_string()).collect(),
        _ => vec!["system".to_string(), "prompt".to_string()],
    };
    if is_aux {
        let eos = u8::from(told["mask_eos"].as_bool().unwrap());
        options.tracks = vec![Track { name: "loss_mask".to_string(), eos, pad: 1 }];
    }
    let parts = Parts { masked };
    let encode: &dyn Encode = match told["tokenizer"].as_str().unwrap() {
        _ if is_aux => &parts,
        "ord" => &Ord,
        _ => &WordsInt,
    };
    let done = tokenize(FORMATS, &[folder.join("input")], out, encode, &options, &()).map(|_| ());
    (done, told)
}

#[test]
fn tokens_are_the_recorded_bytes() {
    for case in [
        "10_pack_fixed",
        "11_pack_across_files",
        "12_exact_multiple_no_remainder",
        "14_sample_size_1",
        "15_variable_length",
        "16_uint32",
        "22_stem_with_dots",
        "23_wrong_read_dtype",
        "24_odd_read_dtype",
        "30_aux_loss_mask",
        "31_aux_mask_eos_custom_types_u16",
    ] {
        let out = tempfile::tempdir().unwrap();
        run(case, out.path()).0.unwrap();
        let recorded = golden_folder().join(case);
        assert_same(&out.path().join("index"), &recorded.join("expected_index"), case);
        assert_same(&out.path().join("tokenized-samples"), &recorded.join("expected_samples"), case);
        assert!(tree(out.path()).keys().all(|name| !name.starts_with('.')), "{case}");
    }
}

#[test]
fn what_the_original_writes_half_is_an_error_that_leaves_nothing() {
    for (case, kind, line, says) in [
        ("17_uint16_overflow", Kind::Config, Some(1), "70000"),
        ("18_eos_overflow_uint16", Kind::Config, None, "151643"),
        ("19_missing_text_key", Kind::Corrupt, Some(1), "no field \"text\""),
        ("20_blank_line", Kind::Corrupt, Some(1), "blank line"),
        ("25_int_negative_uint16", Kind::Config, Some(0), "-1"),
    ] {
        let out = tempfile::tempdir().unwrap();
        let error = run(case, out.path()).0.unwrap_err();
        assert_eq!(error.kind(), kind, "{case}: {error}");
        assert_eq!(error.place().record, line, "{case}: {error}");
        assert!(error.message().contains(says), "{case}: {error}");
        assert_eq!(tree(out.path()).len(), 0, "{case}");
    }
}

#[test]
fn one_stem_in_two_folders_keeps_the_folder() {
    let out = tempfile::tempdir().unwrap();
    run("21_same_stem_in_two_dirs", out.path()).0.unwrap();
    let names: Vec<_> = tree(&out.path().join("tokenized-samples")).into_keys().collect();
    assert_eq!(names, ["x__a-tokenized-samples.bin", "y__a-tokenized-samples.bin"]);
}
