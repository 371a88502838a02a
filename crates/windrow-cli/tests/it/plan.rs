//! `windrow plan`: its file says what the options say, to every command that reads plans.

use std::fs;

use serde_json::{Value, json};

use crate::program::Desk;

/// Two data sets of token IDs, `a` and `b`.
fn tokens() -> Desk {
    let desk = Desk::new();
    for (name, texts) in [("a", ["one two three", "four five six"]), ("b", ["seven eight", "nine"])] {
        desk.texts(&format!("texts-{name}/x.jsonl"), texts.as_slice());
        desk.windrow(&format!("tokenize texts-{name} -t bytes --out {name}")).done();
    }
    desk
}

fn read(desk: &Desk, name: &str) -> Value {
    serde_json::from_slice(&fs::read(desk.path(name)).unwrap()).unwrap()
}

const OPTIONS: &str = "--pack 4 --batch-size 2 --seed 9 --no-drop-last";

#[test]
fn a_plan_reads_as_the_options_that_it_was_made_of() {
    let desk = tokens();
    let said = desk.windrow(&format!("plan a {OPTIONS} -o plan.json")).done();
    assert_eq!(said, "plan.json: 6 samples in 3 steps an epoch\n");
    for (command, of) in [("trace", "--step 1"), ("coverage", "--steps 0..3"), ("extract", "--step 1")] {
        // Names of files are as the data was named.
        let whole = desk.path("a");
        let of_data = desk.windrow(&format!("{command} {} {OPTIONS} {of} --json", whole.display())).json();
        assert_eq!(desk.windrow(&format!("{command} plan.json {of} --json")).json(), of_data, "{command}");
    }
    assert!(desk.windrow("inspect plan.json --mixing").done().contains("effective blocks"));

    desk.windrow("plan a --pack 4 --batch-size 2 --seed 8 --no-drop-last -o other.json").done();
    assert_eq!(desk.windrow("diff plan.json plan.json").done(), "the same batches\n");
    let differs = desk.windrow("diff plan.json other.json");
    assert!(differs.out.contains("seed: 9 in A, 8 in B"), "{differs:?}");
    differs.failed(4);
}

#[test]
fn stdout_holds_the_same_text_as_the_file() {
    let desk = tokens();
    desk.windrow(&format!("plan a {OPTIONS} -o plan.json")).done();
    let text = fs::read_to_string(desk.path("plan.json")).unwrap();
    assert_eq!(desk.windrow(&format!("plan a {OPTIONS}")).done(), text);
    let object = desk.windrow(&format!("plan a {OPTIONS} --json")).json();
    assert_eq!(object["recipe"], read(&desk, "plan.json"));
    assert_eq!((&object["out"], &object["samples"], &object["steps"]), (&Value::Null, &json!(6), &json!(3)));
    assert_eq!(object["plan"], object["recipe"]["plan"]);
}

#[test]
fn ranks_multiply_the_batch_size_and_nothing_else() {
    let desk = tokens();
    let of_ranks = desk.windrow("plan a --pack 4 --batch-size 2 --world-size 3").done();
    assert_eq!(of_ranks, desk.windrow("plan a --pack 4 --global-batch-size 6").done());
    assert!(desk.windrow("plan a --pack 4 -o plan.json").failed(2).contains("no batch size is given"));
    assert!(desk.windrow("plan a --batch-size 2").failed(2).contains("a plan needs a view"));
    assert!(desk.windrow("plan nothing --pack 4 --batch-size 2 -o plan.json").failed(1).contains("nothing"));
    assert!(!desk.path("plan.json").exists());
}

#[test]
fn a_mixture_has_a_part_for_each_mix() {
    let desk = tokens();
    let options = "--pack 4 --batch-size 2 --seed 9";
    desk.windrow(&format!("plan --mix web=a:0.75 --mix code=b:0.25 --stop all {options} -o plan.json"))
        .done();
    let plan = read(&desk, "plan.json");
    assert_eq!(plan["names"], json!(["web", "code"]));
    assert_eq!(plan["weights"], json!([0.75, 0.25]));
    assert_eq!((&plan["stop"], &plan["parts"][1]["path"]), (&json!("all"), &json!(desk.path("b"))));
    let covered = desk.windrow("coverage plan.json --steps 0..2").done();
    assert!(covered.contains("web: ") && covered.contains("code: "), "{covered}");
    for (typed, said) in [
        (format!("plan --mix web=a {options}"), "expected a name, a path and a weight"),
        (format!("plan --mix web=a:x {options}"), "expected a name, a path and a weight"),
        (format!("plan a --mix web=a:1 {options}"), "cannot be used with"),
        (format!("plan a --stop all {options}"), "--stop is an option of --mix"),
        (format!("plan --mix web=a:0 {options}"), "weight"),
        (format!("plan {options}"), "required"),
    ] {
        let err = desk.windrow(&typed).failed(2);
        assert!(err.contains(said), "{typed}: {err}");
    }
}
