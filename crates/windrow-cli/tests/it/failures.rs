//! Each way to fail: its exit code, its words, its JSON.

use std::fs;

use serde_json::json;

use crate::program::Desk;

#[test]
fn what_is_not_there_exits_1() {
    let desk = Desk::new();
    let err = desk.windrow("inspect nowhere").failed(1);
    assert!(err.starts_with("error: ") && err.contains("\n  at: ") && err.contains("nowhere"), "{err}");
    let ran = desk.windrow("inspect nowhere --json");
    let error = &ran.json()["error"];
    assert_eq!((&error["kind"], &error["exit"]), (&json!("not_found"), &json!(1)));
    assert!(error["path"].as_str().unwrap().ends_with("nowhere"), "{error}");
    desk.windrow("index nowhere").failed(1);
    desk.texts("a.jsonl", &["x"]);
    let err = desk.windrow("tokenize a.jsonl --tokenizer gpt17 --out tok").failed(1);
    assert!(err.contains("gpt17") && err.contains("cl100k_base"), "{err}");
    desk.windrow("index .").done();
    assert!(desk.windrow("peek . --index 1").failed(1).contains("there are 1"));
    desk.windrow("tokenize a.jsonl --tokenizer bytes --out tok").done();
    let err = desk.windrow("tokenize a.jsonl --tokenizer bytes --out tok --append-eos").failed(1);
    assert!(err.contains("--overwrite"), "{err}");
    desk.windrow("tokenize a.jsonl --tokenizer bytes --out tok --append-eos --overwrite").done();
}

#[test]
fn a_command_line_that_makes_no_sense_exits_2() {
    let desk = Desk::new();
    desk.texts("a.jsonl", &["x"]);
    desk.windrow("index .").done();
    desk.windrow("tokenize a.jsonl -t bytes -o tok").done();
    for line in [
        "",
        "frobnicate",
        "inspect",
        "inspect . --frobnicate",
        "peek . -n 2 --index 1",
        "tokenize a.jsonl --tokenizer bytes",
        "tokenize a.jsonl -t bytes -o x --to parquet",
        "tokenize a.jsonl -t bytes -o x --to shards --zarr-format 3",
        "tokenize a.jsonl -t bytes -o x --to tokens --max-shard-bytes 99",
        "tokenize a.jsonl -t bytes -o x --remainder pad",
        "convert tok x --to npy --tokens-chunk-size 8",
        "convert tok x --to npy --normalize",
        "convert tok x --to flat-tokens --as-dtype uint16",
        "tokenize a.jsonl -t bytes -o x --dtype complex64",
        "tokenize a.jsonl -t bytes -o x --sample-size 8 --eos none --remainder pad",
        "trace tok --step 1",
        "trace tok --pack 8",
        "trace tok --pack 8 --crop 8 --step 0",
        "trace tok --pack 8 --step 0 --rank 1",
        "trace tok --windows 1,2 --step 0",
        "trace plan.json --step 0 --seed 3",
        "bench tok --pack 0",
        "bench tok --seconds -1",
        "bench . --pack 8",
        "dummy --vocab-size 0 --tokens 5 --out d.bin",
        "completions tcsh",
    ] {
        let ran = desk.windrow(line);
        assert_eq!(ran.code, Some(2), "{line}: {ran:?}");
        assert!(ran.out.is_empty(), "{line}: {ran:?}");
    }
    let error = desk.windrow("inspect --json").json()["error"].clone();
    assert_eq!((&error["kind"], &error["exit"]), (&json!("usage"), &json!(2)));
    assert_eq!(desk.windrow("inspect --json").json()["command"], "inspect");
    assert!(error["message"].as_str().is_some_and(|m| m.ends_with("<PATH>...")), "{error}");
    let other = desk.windrow("inspect nothing --json").json()["error"].clone();
    let keys = |error: &serde_json::Value| error.as_object().map(|e| e.keys().cloned().collect::<Vec<_>>());
    assert_eq!(keys(&error), keys(&other));
    for (line, said) in [
        ("trace tok --pack 8 --step 0 --seed -1", "invalid value '-1' for '--seed <S>'"),
        ("peek tok -n -1", "invalid value '-1' for '-n <N>'"),
        ("bench tok --seconds -0.5", "--seconds is -0.5; expected a time above 0"),
    ] {
        let err = desk.windrow(line).failed(2);
        assert!(err.contains(said), "{line}: {err}");
    }
    let given = desk.windrow("convert tok x --to shards --chunks-per-shard 8").err;
    assert!(given.contains("chunks_per_shard is not an option of shards"), "{given}");
    assert!(given.contains("it is an option of flat-tokens"), "{given}");
}

#[test]
fn an_option_that_would_change_nothing_is_refused() {
    let desk = Desk::new();
    desk.texts("c/a.jsonl", &["one", "two"]);
    desk.windrow("tokenize c --tokenizer bytes --out tok").done();
    for (line, said) in [
        ("find tok --pack 2 --batch-size 1 --record 0 --row 1", "unexpected argument '--row'"),
        ("trace tok --pack 2 --batch-size 1 --step 0 --part 0", "unexpected argument '--part'"),
        ("find tok --pack 2 --batch-size 1 --record 0 --tokenizer bytes", "find shows none of them"),
        ("trace tok --pack 2 --no-drop-last --last repeat --step 0", "cannot be used with"),
        (
            "tokenize c --tokenizer bytes --out b --sample-size 2 --pad-value 3",
            "--pad-value is set, but nothing is padded",
        ),
        ("peek c --tokenizer bytes", "--tokenizer decodes token IDs"),
        ("peek tok -n 0 --play x.wav", "--play writes the sound of the first record shown, and none is"),
        ("inspect c --columns text --histogram", "--histogram counts records by length"),
        ("prep run job.json --task 0 --steal", "cannot be used with"),
        ("prep run job.json --tasks 0-1 --steal", "cannot be used with"),
        ("prep run job.json --num-threads 0", "--num-threads is 0; expected 1 to 1024"),
        ("bench tok --pack 2 --num-threads 0", "--num-threads is 0; expected 1 to 1024"),
    ] {
        let err = desk.windrow(line).failed(2);
        assert!(err.contains(said), "{line}: {err}");
    }
}

#[test]
fn hints_name_options_of_the_command_line() {
    let desk = Desk::new();
    desk.texts("a.jsonl", &["one", "two"]);
    desk.windrow("tokenize a.jsonl --tokenizer bytes --out tok").done();
    // Fewer samples than a batch has rows.
    let err = desk.windrow("bench tok --pack 2").failed(2);
    assert!(err.contains("or --no-drop-last"), "{err}");
    let err = desk.windrow("bench a.jsonl --pack 2").failed(2);
    assert!(err.contains("read records with `windrow peek`") && !err.contains("ds[i]"), "{err}");
}

#[test]
fn a_plan_is_not_cut_again() {
    let desk = Desk::new();
    desk.write(
        "plan.json",
        r#"{"version": 1, "parts": [{"path": "tok", "options": {}, "view": {"pack": {"length": 2}}}],
            "shuffle": true, "seed": 0, "global_batch_size": 1, "drop_last": true}"#,
    );
    for plan in ["plan.json", "-"] {
        let err = desk.windrow(&format!("trace {plan} --pack 2 --step 0")).failed(2);
        assert!(err.contains("a plan says itself how its data is cut"), "{err}");
    }
}

#[test]
fn stdout_is_no_output() {
    let desk = Desk::new();
    desk.texts("c/a.jsonl", &["one", "two"]);
    desk.windrow("tokenize c --tokenizer bytes --out tok").done();
    for line in [
        "tokenize c --tokenizer bytes --out -",
        "convert tok - --to jsonl",
        "report tok -o -",
        "encode c --out -",
    ] {
        let err = desk.windrow(line).failed(2);
        assert!(err.contains("stdout cannot be written to"), "{line}: {err}");
    }
    for (option, says) in [("--json", "would both write to stdout"), ("--overwrite", "replaces a file")] {
        let err = desk.windrow(&format!("dummy --vocab-size 5 --tokens 3 --out - {option}")).failed(2);
        assert!(err.contains(says), "{err}");
    }
}

#[test]
fn stdin_is_no_data() {
    let desk = Desk::new();
    for line in ["inspect -", "peek -", "bench -", "verify -", "index -", "convert - x --to npz"] {
        let err = desk.windrow(line).failed(2);
        assert!(err.contains("stdin cannot be read here") && err.contains("./-"), "{line}: {err}");
    }
    // But for lines, which are read once: here there are none.
    let err = desk.windrow("tokenize - --tokenizer bytes --out x").failed(1);
    assert!(err.contains("there are no texts"), "{err}");
}

#[test]
fn bad_data_exits_3_and_leaves_nothing() {
    let desk = Desk::new();
    desk.write("a.jsonl", "{\"text\": \"fine\"}\n{\"text\": 7}\n");
    let ran = desk.windrow("tokenize a.jsonl --tokenizer bytes --out tok --json");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let error = &ran.json()["error"];
    assert_eq!(
        (&error["kind"], &error["record"], &error["byte"]),
        (&json!("corrupt"), &json!(1), &json!(17))
    );
    assert!(desk.tree("tok").keys().all(|name| name.starts_with('.')), "{:?}", desk.tree("tok").keys());

    desk.write("odd.bin", [1, 2, 3, 4, 5]);
    assert!(desk.windrow("inspect odd.bin").failed(3).contains('5'));
    desk.write("strange.xyz", "?");
    desk.windrow("inspect strange.xyz").failed(3);
}

#[test]
fn data_that_changed_after_indexing_exits_3() {
    let desk = Desk::new();
    desk.texts("c/a.jsonl", &["one", "two"]);
    desk.windrow("index c").done();
    desk.texts("c/a.jsonl", &["one", "two", "three"]);
    let err = desk.windrow("inspect c").failed(3);
    assert!(err.contains("a.jsonl") && err.contains("windrow index"), "{err}");
    desk.windrow("index c").failed(1);
    desk.windrow("index c --overwrite").done();
    assert_eq!(desk.windrow("inspect c --json").json()["info"]["records"], 3);
}

#[test]
fn another_tokenizer_exits_4() {
    let desk = Desk::new();
    desk.texts("a.jsonl", &["one"]);
    desk.windrow("tokenize a.jsonl --tokenizer bytes --out tok").done();
    let err = desk.windrow("peek tok --tokenizer cl100k_base").failed(4);
    assert!(err.contains("bytes") || err.contains("cl100k_base"), "{err}");
}

#[test]
fn a_plan_that_is_none_names_itself() {
    let desk = Desk::new();
    desk.write("plan.json", "{\"version\": 1}");
    let err = desk.windrow("trace plan.json --step 0").failed(3);
    assert!(err.contains("this is not a plan") && err.contains("plan.json"), "{err}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let desk = Desk::new();
    let mut child = desk.start("completions bash");
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
}

#[test]
fn a_reader_that_leaves_early_does_not_change_the_exit_code() {
    let desk = Desk::new();
    desk.texts("a.jsonl", &["one"]);
    desk.windrow("tokenize a.jsonl -t bytes -o tok").done();
    let data = desk.path("tok/tokenized-samples/a-tokenized-samples.bin");
    let mut bytes = fs::read(&data).unwrap();
    bytes[0] ^= 1;
    fs::write(&data, bytes).unwrap();
    for line in ["verify tok", "verify tok --json"] {
        let mut child = desk.start(line);
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(3), 0), "{line}: {output:?}");
    }
}

#[test]
fn output_without_end_ends_with_its_reader() {
    let desk = Desk::new();
    let mut child = desk.start("dummy --vocab-size 9 --tokens 1000000000000 --out -");
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
}

#[test]
fn a_cache_that_is_not_a_folder_is_named_with_what_to_do() {
    let desk = Desk::new();
    desk.write("s.jsonl", "{\"sequence\": [1, 2.5]}\n");
    let file = desk.path("s.jsonl");
    let err = desk.windrow_with("inspect s.jsonl", &[("WINDROW_CACHE", file.to_str().unwrap())]).failed(1);
    assert!(err.contains("set WINDROW_CACHE to a folder that can be written"), "{err}");
}

#[test]
fn messages_go_to_stderr_and_quiet_leaves_only_errors() {
    let desk = Desk::new();
    desk.write("t.bin", [0u8; 64]);
    let ran = desk.windrow("inspect t.bin");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.starts_with("warning: "), "no dtype was given: {ran:?}");
    let ran = desk.windrow("inspect t.bin -q");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    fs::remove_file(desk.path("t.bin")).unwrap();
    assert!(desk.windrow("inspect t.bin -q").failed(1).starts_with("error: "));
}
