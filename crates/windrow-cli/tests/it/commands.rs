//! Each command on small data: what people see, and what `--json` gives.

use std::fs;

use serde_json::json;

use crate::program::{Desk, npy};

fn tokens() -> Desk {
    let desk = Desk::new();
    desk.texts("in/a.jsonl", &["abcdefgh", "ijklmnopqrst", "uvwxyz"]);
    desk.texts("in/b.jsonl", &["0123456789"]);
    desk.windrow("tokenize in --tokenizer bytes --out tok --append-eos").done();
    desk
}

#[test]
fn index_then_inspect_then_peek_json_lines() {
    let desk = Desk::new();
    desk.write("c/a.jsonl", "{\"id\": 1, \"text\": \"one\"}\n{\"id\": 2, \"text\": \"zwei\\u001b[31m\"}\n");
    let said = desk.windrow("index c").done();
    assert!(said.starts_with("c/index: 2 records in 1 file; "), "{said}");
    assert!(desk.windrow("index c").done().contains("was up to date"));

    let said = desk.windrow("inspect c").done();
    assert!(said.contains("format   forager\nrecords  2\n"), "{said}");
    let info = desk.windrow("inspect c --json").json();
    assert_eq!((&info["command"], &info["info"]["records"]), (&json!("inspect"), &json!(2)));

    let said = desk.windrow("peek c --index -1").done();
    assert!(said.contains("record 1  ") && said.contains("text  \"zwei\\u{1b}[31m\""), "{said}");
    let peeked = desk.windrow("peek c -n 1 --json").json();
    assert_eq!(peeked["records"], json!([{ "record": 0, "value": { "id": 1, "text": "one" } }]));
}

#[test]
fn tokenize_then_peek_gives_the_text_again() {
    let desk = tokens();
    let said = desk.windrow("peek tok -n 1").done();
    assert!(said.contains("97 98 99 100 101 102 103 104 256") && said.contains("| abcdefgh"), "{said}");
    let info = desk.windrow("inspect tok --json --histogram").json();
    assert_eq!((&info["info"]["records"], &info["info"]["values"]), (&json!(4), &json!(40)));
    assert_eq!(
        (&info["side_file"]["tokenizer"]["name"], &info["side_file"]["eos"]),
        (&json!("bytes"), &json!(256))
    );
    assert_eq!(
        info["histogram"],
        json!([{ "from": 4, "to": 7, "records": 1 }, { "from": 8, "to": 15, "records": 3 }])
    );
    let said = desk.windrow("inspect tok --histogram").done();
    let bars = format!("   4..7  1  {}\n  8..15  3  {}\n", "█".repeat(29), "█".repeat(88));
    assert!(said.contains(&bars), "{said}");
}

#[test]
fn tokenize_packs_samples_and_pads_the_rest() {
    let desk = Desk::new();
    desk.texts("a.jsonl", &["abcdefgh", "ij"]);
    let report =
        desk.windrow("tokenize a.jsonl -t bytes -o tok --sample-size 8 --json").json()["report"].clone();
    assert_eq!(
        (&report["records"], &report["tokens"], &report["dropped_tokens"]),
        (&json!(1), &json!(8), &json!(4))
    );
    let report = desk
        .windrow("tokenize a.jsonl -t bytes -o pad --sample-size 8 --remainder pad --json")
        .json()["report"]
        .clone();
    assert_eq!((&report["records"], &report["padded_tokens"]), (&json!(2), &json!(4)));
}

#[test]
fn tokenize_to_tokens_gives_one_stream() {
    let desk = Desk::new();
    desk.texts("a.jsonl", &["ab", "c"]);
    desk.windrow("tokenize a.jsonl --tokenizer bytes --out tok --to tokens").done();
    let ids: Vec<u16> = fs::read(desk.path("tok/tokens.bin"))
        .unwrap()
        .chunks_exact(2)
        .map(|b| u16::from_le_bytes([b[0], b[1]]))
        .collect();
    assert_eq!(ids, [97, 98, 256, 99, 256]);
    assert_eq!(desk.windrow("inspect tok --json").json()["info"]["dtype"], "uint16");
}

#[test]
fn verify_finds_a_changed_byte_and_exits_3() {
    let desk = tokens();
    let said = desk.windrow("verify tok").done();
    assert!(
        said.contains("checked: tokenized-samples/a-tokenized-samples.bin: xxh3\n")
            && said.contains("tok: 2 files checked; "),
        "{said}"
    );
    let data = desk.path("tok/tokenized-samples/a-tokenized-samples.bin");
    let mut bytes = fs::read(&data).unwrap();
    bytes[2] ^= 1;
    fs::write(&data, bytes).unwrap();
    let ran = desk.windrow("verify tok --json");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(ran.json()["state"], "bad");
    let ran = desk.windrow("verify tok");
    assert!(ran.out.contains("a-tokenized-samples.bin") && ran.out.contains("1 problem"), "{ran:?}");
}

#[test]
fn verify_compares_the_sums_of_arrays_that_are_read_in_place() {
    let desk = Desk::new();
    desk.write("s.jsonl", "{\"sequence\": [1.5, 2.5, 3.5]}\n{\"sequence\": [4.5, 5.5]}\n");
    desk.windrow("convert s.jsonl folder/s.npz --to npz").done();
    desk.windrow("verify folder/s.npz").done();
    desk.windrow("verify folder").done();
    let mut bytes = fs::read(desk.path("folder/s.npz")).unwrap();
    let stored = 4.5f32.to_le_bytes();
    let at = bytes.windows(4).position(|found| found == stored).unwrap();
    bytes[at + 1] ^= 1;
    fs::write(desk.path("folder/s.npz"), &bytes).unwrap();

    desk.windrow("inspect folder/s.npz").done();
    for path in ["folder/s.npz", "folder"] {
        let ran = desk.windrow(&format!("verify {path} --json"));
        assert_eq!(ran.code, Some(3), "{ran:?}");
        // The hash of the whole in its manifest, then the array.
        let problems = ran.json()["findings"]["problems"].clone();
        assert_eq!(
            (problems.as_array().unwrap().len(), &problems[0]["what"]),
            (2, &json!("xxh3")),
            "{problems}"
        );
        let problem = &problems[1];
        let file = problem["file"].as_str().unwrap();
        let (_, member) = file.split_once("s.npz#").unwrap();
        assert!(member.ends_with("1.npy"), "{file}");
        let (start, end) =
            problem["what"].as_str().unwrap().trim_start_matches("bytes ").split_once("..").unwrap();
        assert!((start.parse().unwrap()..end.parse().unwrap()).contains(&at), "{problems}");
        assert!(problem["expected"].as_str().unwrap().starts_with("CRC-32 "), "{problems}");
    }
}

#[test]
fn verify_removes_what_a_killed_run_left() {
    let desk = tokens();
    desk.write("tok/.tokenize.tmp-0123456789abcdef/half.bin", "half");
    assert!(desk.windrow("verify tok").done().contains("note: "));
    assert!(desk.path("tok/.tokenize.tmp-0123456789abcdef").exists());
    desk.windrow("verify tok --gc").done();
    assert!(!desk.path("tok/.tokenize.tmp-0123456789abcdef").exists());
}

#[test]
fn dummy_is_the_same_for_the_same_seed() {
    let desk = Desk::new();
    desk.windrow("dummy --vocab-size 1000 --tokens 5000 --out d.bin").done();
    desk.windrow("dummy --vocab-size 1000 --tokens 5000 --out e.bin --json").json();
    desk.windrow("dummy --vocab-size 1000 --tokens 5000 --out f.bin --seed 1").done();
    desk.windrow("dummy --vocab-size 5 --tokens 70000 --out g.bin").done();
    let piped = desk.windrow("dummy --vocab-size 5 --tokens 70000 --out -").done();
    let read = |name| fs::read(desk.path(name)).unwrap();
    assert!(piped.as_bytes() == read("g.bin"), "{} bytes", piped.len());
    assert_eq!(read("d.bin").len(), 20_000);
    assert_eq!(read("d.bin"), read("e.bin"));
    assert_ne!(read("d.bin"), read("f.bin"));
    assert_eq!(desk.windrow("inspect d.bin --json").json()["info"]["values"], 5000);
}

#[test]
fn bench_measures_each_kind_of_view() {
    let desk = tokens();
    for view in [
        "--pack 8",
        "--pack 8 --eos 256",
        "--records 8",
        "--windows 4 --prediction-length 2 --stride 1",
        "--crop 4",
        "--bins 16",
    ] {
        let ran =
            desk.windrow(&format!("bench tok {view} --batch-size 2 --seconds 0.05 --num-threads 1 --json"));
        assert!(ran.json()["per_second"]["samples"].as_f64().unwrap() > 0.0, "{view}: {ran:?}");
    }
    let said = desk.windrow("bench tok --pack 8 --batch-size 2 --seconds 0.05").done();
    assert!(said.contains("memcpy   "), "{said}");
    fs::write(desk.path("a.jsonl"), "{\"text\": \"one\"}\n{\"text\": \"two\"}\n").unwrap();
    let said = desk.windrow("bench a.jsonl --rows --batch-size 2 --seconds 0.05").done();
    assert!(said.contains("records  "), "{said}");
    let traced =
        desk.windrow("trace a.jsonl --rows --stack --batch-size 2 --no-shuffle --step 0 --row 1").done();
    assert!(traced.contains("sample 1 of rows\n  record 1  ") && traced.contains("bytes 16..31"), "{traced}");
}

#[test]
fn blocks_are_an_order_of_bench_and_trace() {
    let desk = Desk::new();
    desk.windrow("dummy --vocab-size 1000 --tokens 4001 --out f.bin").done();
    let order = "--pack 4 --batch-size 8 --shuffle blocks:size=10,pool=3";
    desk.windrow(&format!("bench f.bin {order} --seconds 0.05")).done();
    let traced = desk.windrow(&format!("trace f.bin {order} --epoch 1 --step 7 --json")).json();
    let samples: Vec<u64> =
        traced["rows"].as_array().unwrap().iter().map(|row| row["sample"].as_u64().unwrap()).collect();
    assert_eq!(samples.len(), 8);
    // 8 lanes of one row, each in a pool of 3 blocks.
    let again = desk.windrow("trace f.bin --pack 4 --batch-size 8 --shuffle blocks:size=10,lanes=8,rows=1,pool=3 --epoch 1 --step 7 --json");
    assert_eq!(again.json()["rows"], traced["rows"]);
    let off = desk.windrow("trace f.bin --pack 4 --batch-size 2 --shuffle off --step 1 --json").json();
    assert_eq!((&off["rows"][0]["sample"], &off["rows"][1]["sample"]), (&json!(2), &json!(3)));
    for (given, said) in [
        ("--shuffle blocks:length=3", "size, lanes, rows, pool, bytes"),
        ("--shuffle blocks:size=0", "expected a number of 1 or more"),
        ("--shuffle buffer", "on, off, blocks"),
        ("--shuffle on --no-shuffle", "cannot be used with"),
    ] {
        let failed = desk.windrow(&format!("trace f.bin --pack 4 {given} --step 0")).failed(2);
        assert!(failed.contains(said), "{given}: {failed}");
    }
    let failed =
        desk.windrow("trace f.bin --pack 4 --batch-size 32 --shuffle blocks:lanes=9 --step 0").failed(2);
    assert!(failed.contains("9 lanes for 1 blocks"), "{failed}");
}

#[test]
fn inspect_says_how_well_a_plan_mixes() {
    let desk = Desk::new();
    desk.windrow("dummy --vocab-size 1000 --tokens 40001 --out f.bin").done();
    let recipe = json!({
        "version": 1, "parts": [{"path": desk.path("f.bin"), "view": {"pack": {"length": 4}}}],
        "shuffle": {"blocks": {"size": 10}}, "seed": 0, "global_batch_size": 64, "drop_last": true
    });
    desk.write("plan.json", recipe.to_string());
    let said = desk.windrow("inspect plan.json --mixing").done();
    for line in [
        "shuffle:block-v1(size=10,lanes=64,rows=1,pool=3)",
        "64.0 rows of 1,000 blocks of 10 samples",
        "1,920 samples",
        "0.19 of a global",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let mixing = &desk.windrow("inspect plan.json --mixing --json").json()["mixing"];
    assert_eq!((&mixing[0]["blocks"], &mixing[0]["reach"]), (&json!(1000), &json!(1920)));
    let failed = desk.windrow("inspect f.bin --mixing").failed(1);
    assert!(failed.contains("recipe() of a loader"), "{failed}");
    desk.windrow("inspect plan.json f.bin --mixing").failed(2);
    for option in ["--format tokens", "--dtype uint32", "--trust", "--split train", "--store-option region=x"]
    {
        let failed = desk.windrow(&format!("inspect plan.json --mixing {option}")).failed(2);
        assert!(failed.contains("a plan says itself how its data is opened"), "{option}: {failed}");
    }
}

#[test]
fn views_of_series_take_their_options() {
    let desk = Desk::new();
    desk.write("s.jsonl", "{\"sequence\": [0, 10, 20, NaN, 40, 50]}\n{\"sequence\": [1, 2, 3]}\n");
    let bench = "bench s.jsonl --batch-size 1 --seconds 0.05 --num-threads 1 --json";
    for (view, samples) in [
        ("--windows 3 --prediction-length 1 --stride 2 --scaler zero --nan mask --loss-on prediction", 2),
        ("--windows 3 --prediction-length 1 --stride 2 --tail pad", 3),
        ("--segments 3 --buckets 2,3 --scaler max", 3),
    ] {
        let ran = desk.windrow(&format!("{bench} {view}"));
        assert_eq!(ran.json()["samples"], samples, "{view}: {ran:?}");
    }
    let said = desk.windrow(&format!("{bench} --windows 3 --loss-on prediction")).failed(2);
    assert!(said.contains("give --prediction-length"), "{said}");
    let said = desk.windrow("bench s.jsonl --windows 3 --scaler mean").failed(2);
    assert!(said.contains("One of none, standard, minmax, robust, mean_abs, max, zero"), "{said}");
    let ran = desk.windrow("bench s.jsonl --windows 3 --scaler mean --json");
    assert_eq!(
        ran.json()["error"]["hint"],
        "did you mean `mean_abs`? One of none, standard, minmax, robust, mean_abs, max, zero",
        "{ran:?}"
    );
    let said = desk.windrow("bench s.jsonl --windows 3 --batch-size 1 --seconds 0.05").done();
    assert!(said.contains("\nvalues ") && !said.contains("tokens"), "{said}");
    let said = desk.windrow(&format!("{bench} --segments 3 --buckets 4")).failed(2);
    assert!(said.contains("a bucket of 4 positions, expected 1 to 3"), "{said}");

    let traced = "trace s.jsonl --windows 3 --prediction-length 1 --stride 2 --tail pad --scaler max --no-shuffle --batch-size 1 --step 1 --json";
    let read = &desk.windrow(traced).json()["rows"][0]["reads"][0];
    assert_eq!((&read["record"], &read["start"], &read["len"]), (&json!(0), &json!(2), &json!(4)));
}

#[test]
fn views_of_other_labels_read_no_token_more() {
    let desk = tokens();
    for (view, len) in [("--pack 4", 5), ("--pack 4 --labels next", 5), ("--records 4 --labels none", 4)] {
        let traced = desk.windrow(&format!("trace tok {view} --no-shuffle --batch-size 1 --step 0 --json"));
        let reads = traced.json()["rows"][0]["reads"].clone();
        let read: u64 = reads.as_array().unwrap().iter().map(|read| read["len"].as_u64().unwrap()).sum();
        assert_eq!(read, len, "{view}");
    }
    for view in ["--pack 4", "--records 4", "--windows 4", "--bins 4", "--segments 4"] {
        for labels in ["same", "none"] {
            let bench = format!(
                "bench tok {view} --labels {labels} --batch-size 1 --seconds 0.05 --num-threads 1 --json"
            );
            let said = desk.windrow(&bench).json();
            assert!(said["view"].as_str().unwrap().ends_with(",apart)"), "{view}: {said}");
        }
    }
    let said = desk.windrow("trace tok --crop 4 --labels same --step 0").failed(2);
    assert!(said.contains("--labels is an option of --pack, --records"), "{said}");
    let said = desk.windrow("trace tok --pack 4 --shifted --labels same --batch-size 1 --step 0").failed(2);
    assert!(said.contains("targets"), "{said}");
}

#[test]
fn trace_and_find_agree() {
    let desk = tokens();
    let view = "--pack 4 --batch-size 3 --seed 9";
    let traced = desk.windrow(&format!("trace tok {view} --step 1 --row 2 --json")).json();
    assert_eq!((&traced["epoch"], &traced["batch_rows"]), (&json!(0), &json!(3)));
    let row = &traced["rows"][0];
    assert_eq!((&row["row"], &row["position"]), (&json!(2), &json!(5)));
    let read = &row["reads"][0];
    let found = desk.windrow(&format!("find tok {view} --record {} --json", read["record"])).json();
    let reader = json!({ "step": 1, "row": 2, "position": 5, "sample": row["sample"] });
    assert!(found["read_by"].as_array().unwrap().contains(&reader), "{found} lacks {reader}");

    // The same record by its number in its file: the second file holds one record.
    let found =
        desk.windrow(&format!("find tok {view} --file b-tokenized-samples.bin --record 0 --json")).json();
    assert_eq!(found["record"], 3);
    let said = desk.windrow(&format!("trace tok {view} --step 1 --row 2")).done();
    assert!(said.contains("-tokenized-samples.bin  bytes "), "{said}");
}

#[test]
fn a_trace_names_the_bytes_of_the_batch() {
    let desk = tokens();
    let traced =
        desk.windrow("trace tok --records 4 --batch-size 4 --no-shuffle --step 0 --row 1 --json").json();
    let location = &traced["rows"][0]["reads"][0]["locations"][0];
    let bytes = fs::read(desk.path(location["file"].as_str().unwrap())).unwrap();
    let start = location["start"].as_u64().unwrap() as usize;
    assert_eq!(bytes[start..start + 10], [105, 0, 106, 0, 107, 0, 108, 0, 109, 0]);
    assert_eq!(location["size"], 10);
    assert_eq!(traced["rows"][0]["text"], "ijklm");
}

#[test]
fn steps_run_on_through_epochs_and_ranks_share_the_rows() {
    let desk = tokens();
    // 40 tokens in blocks of 4: 9 samples, 4 steps of 2 in an epoch.
    let view = "trace tok --pack 4 --batch-size 2 --json";
    let whole = desk.windrow(&format!("{view} --step 6")).json();
    assert_eq!(whole["epoch"], 1);
    let same = desk.windrow(&format!("{view} --step 2 --epoch 1")).json();
    assert_eq!(whole["rows"], same["rows"]);
    let view = "trace tok --pack 4 --global-batch-size 2 --json";
    let rank = desk.windrow(&format!("{view} --step 6 --rank 1 --world-size 2")).json();
    let mut second = whole["rows"][1].clone();
    second["rank"] = 1.into();
    assert_eq!(rank["rows"][0], second);
    assert_eq!(rank["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn a_batch_size_is_of_each_rank_as_in_a_loader() {
    let desk = tokens();
    let samples = |line: &str| -> Vec<u64> {
        let traced = desk.windrow(&format!("{line} --json")).json();
        traced["rows"].as_array().unwrap().iter().map(|row| row["sample"].as_u64().unwrap()).collect()
    };
    let view = desk.path("tok").to_str().unwrap().to_string();
    let view = windrow::open(view).unwrap().pack(4).unwrap();
    let mut loader = view.loader().batch_size(2).seed(9).rank(1, 2).build().unwrap();
    let batch = loader.next_batch().unwrap().unwrap();
    let given = "tok --pack 4 --seed 9 --world-size 2";
    let own = samples(&format!("trace {given} --batch-size 2 --step 0 --rank 1"));
    let expected: Vec<i64> = own
        .iter()
        .flat_map(|i| view.batch(&[*i], 0).unwrap().get::<i64>("input_ids").unwrap().to_vec())
        .collect();
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), expected);
    assert_eq!(samples(&format!("trace {given} --global-batch-size 4 --step 0 --rank 1")), own);
    assert_eq!(samples(&format!("trace {given} --batch-size 2 --step 0"))[2..], own);
    for (command, counts) in [("coverage", "--steps 0..1"), ("extract", "--step 0 -o -")] {
        let said = |size: &str| desk.windrow(&format!("{command} {given} {size} {counts}")).done();
        assert_eq!(said("--batch-size 2"), said("--global-batch-size 4"), "{command}");
        assert_ne!(said("--batch-size 2"), said("--global-batch-size 2"), "{command}");
        // Nothing is guessed that decides which rows are named.
        let err = desk.windrow(&format!("{command} {given} {counts}")).failed(2);
        assert!(err.contains("--batch-size N") && err.contains("--global-batch-size N"), "{err}");
    }
    desk.windrow(&format!("trace {given} --step 0")).failed(2);
    desk.windrow(&format!("find {given} --record 0")).failed(2);
    desk.windrow(&format!("trace {given} --batch-size 2 --global-batch-size 4 --step 0")).failed(2);
    desk.windrow(&format!("trace {given} --batch-size {} --step 0", u64::MAX)).failed(2);
    desk.windrow("trace tok --pack 4 --batch-size 2 --world-size 0 --step 0").failed(2);
    // bench names no rows.
    desk.windrow("bench tok --pack 4 --no-drop-last --seconds 0.05").done();
    desk.windrow("bench tok --pack 4 --global-batch-size 2 --seconds 0.05").done();
}

#[test]
fn a_plan_is_read_from_a_file_and_from_stdin() {
    let desk = tokens();
    let plan = json!({
        "version": 1,
        "parts": [{ "path": "tok", "view": { "pack": { "length": 4 } } }],
        "shuffle": true, "seed": 9, "global_batch_size": 3, "drop_last": true,
    });
    desk.write("plan.json", plan.to_string());
    let from_data = desk.windrow("trace tok --pack 4 --batch-size 3 --seed 9 --step 1 --json").json();
    assert_eq!(desk.windrow("trace plan.json --step 1 --json").json(), from_data);
    assert_eq!(desk.windrow_reading("trace - --step 1 --json", "plan.json").json(), from_data);
    // Nobody writes into it.
    assert!(std::process::Command::new("mkfifo").arg(desk.path("pipe.json")).status().unwrap().success());
    for line in [
        "trace pipe.json --step 1",
        "extract pipe.json --step 1 -o x.npz",
        "coverage pipe.json --steps 0..1",
        "diff pipe.json plan.json",
    ] {
        let err = desk.windrow(line).failed(1);
        assert!(err.contains("expected a plan, found a pipe"), "{line}: {err}");
    }
    let mut of_data = plan.clone();
    of_data["plan"] = from_data["plan"].clone();
    desk.write("of-data.json", of_data.to_string());
    assert_eq!(desk.windrow("trace of-data.json --step 1 --json").json(), from_data);
    of_data["plan"] = json!("source=forager:1:0;view=none");
    desk.write("of-other.json", of_data.to_string());
    let err = desk.windrow("trace of-other.json --step 1").failed(4);
    assert!(err.contains("the plan does not fit its data any more"), "{err}");
}

#[test]
fn completions_and_help_are_printed() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(desk.windrow(&format!("completions {shell}")).done().contains("tokenize"));
        let object = desk.windrow(&format!("completions {shell} --json")).json();
        assert!(object["script"].as_str().is_some_and(|script| script.contains("tokenize")), "{object}");
    }
    assert!(desk.windrow("man").done().contains("windrow\\-tokenize(1)"));
    let page = desk.windrow("man prep plan tokenize").done();
    assert!(
        page.contains(".TH windrow-prep-plan-tokenize 1") && page.contains("\\-\\-task\\-bytes"),
        "{page}"
    );
    let pages = desk.windrow("man --json").json()["pages"].clone();
    for name in ["windrow.1", "windrow-tokenize.1", "windrow-prep-plan.1"] {
        assert!(pages[name].as_str().is_some_and(|page| page.contains(".SH NAME")), "{name}");
    }
    assert!(desk.windrow("man prep plant").failed(2).contains("there is no command \"prep plant\""));
    let help = desk.windrow("--help").done();
    for command in
        ["demo", "inspect", "peek", "report", "index", "tokenize", "verify", "trace", "bench", "dummy"]
    {
        assert!(help.contains(&format!("  {command} ")), "{help}");
        desk.windrow(&format!("{command} --help")).done();
    }
    assert!(desk.windrow("--version").done().starts_with("windrow "));
}

#[test]
fn documents_of_a_raw_file_are_looked_at_converted_and_brought_back() {
    let desk = Desk::new();
    let ids: Vec<u8> = [5u16, 6, 0, 0, 7, 0].iter().flat_map(|id| id.to_le_bytes()).collect();
    fs::write(desk.path("a.bin"), &ids).unwrap();
    let opening = "--dtype uint16 --document-eos 0";
    let info = desk.windrow(&format!("inspect a.bin {opening} --json")).json();
    assert_eq!(info["info"]["records"], 3, "{info}");
    assert_eq!(info["info"]["eos"], 0, "{info}");
    desk.windrow(&format!("convert a.bin pair --to megatron {opening}")).done();
    desk.windrow("verify pair.idx").done();
    desk.windrow("convert pair samples --to forager").done();
    desk.windrow("verify samples").done();
    desk.windrow("convert samples b.bin --to tokens").done();
    assert_eq!(fs::read(desk.path("b.bin")).unwrap(), ids);
    let ran = desk.windrow("inspect samples --document-eos 0");
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn a_name_that_turns_text_or_colours_it_is_escaped() {
    let desk = Desk::new();
    let name = "\u{1b}[31m\u{202e}.jsonl";
    desk.write(name, "[1]\n");
    for command in ["verify", "peek --index 9"] {
        let ran = desk.windrow(&format!("{command} {name}"));
        assert!(!format!("{}{}", ran.out, ran.err).contains(['\u{1b}', '\u{202e}']), "{ran:?}");
    }
}

#[test]
fn a_name_in_a_warning_is_escaped() {
    let desk = Desk::new();
    desk.write("d/a\u{1b}[2K\nerror: b\n.yaml", "- {sequence: [1.0], note: .nan}\n");
    let ran = desk.windrow("inspect d");
    assert!(ran.err.contains("a\\u{1b}[2K\\nerror: b\\n.yaml: NaN in the metadata"), "{ran:?}");
    assert!(!ran.err.contains('\u{1b}') && ran.err.lines().count() == 1, "{ran:?}");
}

#[test]
fn tracks_of_codes_are_shown_as_a_grid_with_their_prompt_and_go_into_shards_and_back() {
    let desk = Desk::new();
    let codes: Vec<u8> = (0..40i16).flat_map(i16::to_le_bytes).collect();
    let tensor = windrow::format::tensor_file("a", windrow::DType::I16, [20, 2], &codes).unwrap();
    desk.write("t/encoded_audio/a.pt", tensor);
    desk.write("t/metadata.json", "{\"a.pt\": {\"text\": \"a prompt\"}}");
    let said = desk.windrow("inspect t").done();
    assert!(said.contains("channels  2\n") && said.contains("codes used  20 to 20 different ones"), "{said}");
    assert_eq!(desk.windrow("inspect t --json").json()["codes_used"], json!([20, 20]));
    for path in ["t", "s"] {
        let said = desk.windrow(&format!("peek {path}")).done();
        assert!(said.contains("  channel  1   1  3  5") && said.contains("text  \"a prompt\""), "{said}");
        if path == "t" {
            desk.windrow("convert t s --to shards").done();
        }
    }
    desk.windrow("convert s back --to codes").done();
    let again = desk.windrow("peek back --json").json();
    assert_eq!(again["records"][0]["extras"], json!({ "text": "a prompt", "name": "a" }));
    assert!(desk.windrow("verify back").done().contains("back: 2 files checked; "));
}

#[test]
fn peek_draws_a_series_and_says_what_it_spans() {
    let desk = Desk::new();
    desk.write(
        "s.jsonl",
        "{\"sequence\": [0, 1, 2, 3, 4, 5, 6, 7]}\n{\"sequence\": [5, NaN, 1.5, NaN]}\n{\"sequence\": [2.5, 2.5]}\n",
    );
    let said = desk.windrow("peek s.jsonl").done();
    assert!(said.contains("  min 0  max 7  length 8  NaN 0\n"), "{said}");
    assert!(said.contains("  min 1.5  max 5  length 4  NaN 2\n"), "{said}");
    assert!(said.contains("  ⡰⠁⠀⠀\n") && !said.contains('\u{1b}'), "{said}");
    let peeked = desk.windrow("peek s.jsonl -n 1 --json").json();
    assert_eq!(peeked["records"][0]["values"].as_array().unwrap().len(), 8);
}

#[test]
fn a_manifest_lists_a_folder_and_is_not_believed() {
    let desk = tokens();
    desk.windrow("convert tok m --to mds").done();
    let said = desk.windrow("manifest m").failed(1);
    assert!(said.contains("has a manifest, which was written with it"), "{said}");

    // As another program would have written it.
    for name in ["windrow.json", "windrow.sums"] {
        fs::remove_file(desk.path("m").join(name)).unwrap();
    }
    let plan = "--rows --batch-size 2 --step 0 --json";
    let before = desk.windrow(&format!("trace m {plan}")).json();
    let said = desk.windrow("manifest m").done();
    assert!(said.starts_with("m/windrow.json: 2 files, ") && said.contains("of mds"), "{said}");
    let written: serde_json::Value = serde_json::from_slice(&desk.tree("m")["windrow.json"]).unwrap();
    assert_eq!(written["listing"]["files"][0]["name"], "index.json");
    assert!(!written.to_string().contains(desk.path("").to_str().unwrap()), "{written}");
    assert_eq!(desk.windrow(&format!("trace m {plan}")).json()["rows"], before["rows"]);
    // The hashes of the index: a listing says nothing of what the files hold.
    let said = desk.windrow("verify m").done();
    assert!(
        said.contains("checked: shard.00000.mds: xxh64\n") && said.contains("m: 1 file checked, 1 "),
        "{said}"
    );
    let out = desk.windrow("manifest m -o -").done();
    assert_eq!(out.as_bytes(), desk.tree("m")["windrow.json"]);
    assert_eq!(desk.windrow("manifest m -o other.json --json").json()["files"], 2);

    // A file that grew since is named, until the folder is listed again.
    let index = [&desk.tree("m")["index.json"][..], b" "].concat();
    desk.write("m/index.json", &index);
    let said = desk.windrow("inspect m").failed(3);
    assert!(
        said.contains("m/index.json")
            && said.contains("the manifest says")
            && said.contains("windrow manifest"),
        "{said}"
    );
    assert!(desk.windrow("verify m").out.contains("index.json"));
    desk.windrow("inspect m --trust").done();
    desk.windrow("manifest m").done();
    desk.windrow("inspect m").done();

    let said = desk.windrow("manifest m/index.json").failed(2);
    assert!(said.contains("needs no manifest"), "{said}");
    desk.windrow("manifest nothing").failed(1);
}

#[test]
fn whole_numbers_beyond_float64_are_drawn_and_have_all_their_digits_in_json() {
    let desk = Desk::new();
    desk.write("i.npy", npy("<i8", &bytes_of(&[(1 << 53) + 1, 5])));
    desk.write("u.npy", npy("<u8", &bytes_of(&[u64::MAX, 5])));
    for (name, first, most) in [("i.npy", (1 << 53) + 1, "9.0072e15"), ("u.npy", u64::MAX, "1.84467e19")] {
        let said = desk.windrow(&format!("peek {name}")).done();
        assert!(said.contains(&format!("min 5  max {most}")), "{said}");
        let values = desk.windrow(&format!("peek {name} --json")).json()["records"][0]["values"].clone();
        assert_eq!(values, json!([first, 5]));
        desk.windrow(&format!("report {name} -o {name}.html")).done();
    }
}

// Little-endian, as this machine is.
fn bytes_of(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn peek_says_where_values_are_left_out() {
    let desk = Desk::new();
    desk.write("l.npy", npy("<f4", &[0; 4 * 5_000]));
    desk.write("s.npy", npy("<f4", &[0; 4 * 4_096]));
    let record = |name: &str| desk.windrow(&format!("peek {name} --json")).json()["records"][0].clone();
    let long = record("l.npy");
    assert_eq!((&long["length"], &long["truncated"]), (&json!(5_000), &json!(true)));
    assert_eq!(long["values"].as_array().unwrap().len(), 4_096);
    assert_eq!(record("s.npy").get("truncated"), None);
}

#[test]
fn a_tokenizer_decodes_token_ids_alone() {
    let desk = Desk::new();
    desk.write("f.npy", npy("<f4", &[0; 4 * 8]));
    desk.write("a.jsonl", "{\"a\": 1, \"b\": 2}\n");
    let tensor = windrow::format::tensor_file("a", windrow::DType::I16, [2, 2], &[0; 8]).unwrap();
    desk.write("t/encoded_audio/a.pt", tensor);
    desk.write("t/metadata.json", "{\"a.pt\": {\"text\": \"a prompt\"}}");
    let cut = "--windows 4 --batch-size 1 --step 0";
    for (line, said) in [
        ("peek f.npy".to_string(), "the records are float32"),
        ("peek t".to_string(), "the records are audio codes"),
        ("report f.npy -o r.html".to_string(), "the records are float32"),
        (format!("extract f.npy {cut}"), "the records are float32"),
        (format!("extract f.npy {cut} -o b.npz"), ".npz holds arrays"),
        ("extract a.jsonl --rows --batch-size 1 --step 0".to_string(), "the records are JSON"),
        ("report a.jsonl -o r.html".to_string(), "the records are JSON"),
        ("report a.jsonl --columns a,b -o r.html".to_string(), "the records are rows of columns"),
        ("coverage f.npy --windows 4 --batch-size 1 --steps 0..1".to_string(), "coverage shows none of them"),
    ] {
        // It need not be one.
        for tokenizer in ["bytes", "gpt17"] {
            let err = desk.windrow(&format!("{line} --tokenizer {tokenizer}")).failed(2);
            assert!(
                err.contains("--tokenizer decodes token IDs, and") && err.contains(said),
                "{line}: {err}"
            );
        }
    }
    assert!(!desk.path("r.html").exists() && !desk.path("b.npz").exists());
}

#[test]
fn extract_decodes_the_inputs_and_no_mask() {
    let desk = tokens();
    let said = desk.windrow("extract tok --windows 4 --no-shuffle --batch-size 1 --step 0").done();
    assert_eq!(said, "row 0\nabcd\n");
    // Inputs that are no token IDs any more: nothing is decoded in their place.
    let plan = json!({
        "version": 1,
        "parts": [{
            "path": "tok", "dtype": "float32",
            "view": { "windows": { "context_length": 4, "prediction_length": 0, "tail": "drop" } },
        }],
        "shuffle": false, "seed": 0, "global_batch_size": 1, "drop_last": true,
    });
    desk.write("plan.json", plan.to_string());
    let said = desk.windrow("extract plan.json --step 0").done();
    assert!(said.contains("input_ids: 97 98 99 100\n") && said.contains("loss_masks: 1 1 1 1\n"), "{said}");
}
