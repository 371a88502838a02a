//! Help and manual pages: short where asked for shortly, with examples, variables and exit codes where all is asked for.

use crate::program::Desk;

/// Every command, `prep plan convert` among them, by its manual page.
fn commands(desk: &Desk) -> Vec<String> {
    let pages = desk.windrow("man --json").json()["pages"].clone();
    let names = pages.as_object().unwrap().keys().map(|name| {
        let name = name.trim_start_matches("windrow").trim_start_matches('-').trim_end_matches(".1");
        if name == "rebuild-metadata" { name.to_string() } else { name.replace('-', " ") }
    });
    let names: Vec<String> = names.collect();
    assert!(names.len() > 30, "{names:?}");
    names
}

#[test]
fn a_short_help_fits_a_screen_and_a_long_one_has_two_examples() {
    let desk = Desk::new();
    for command in commands(&desk) {
        let short = desk.windrow(&format!("{command} -h")).done();
        let lines = short.lines().count();
        assert!(lines <= 45, "{command} -h: {lines} lines\n{short}");
        let long = desk.windrow(&format!("{command} --help")).done();
        // A column of a table of options is never narrower than that.
        let narrow = desk.windrow_with(&format!("{command} -h"), &[("COLUMNS", "80")]).done();
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{command}: {narrow}");
        assert!(!long.contains("[default: 268435456]") && !long.contains("With skip_corrupt"), "{long}");
        if command.is_empty() {
            assert!(long.contains("WINDROW_CACHE_LIMIT") && long.contains("  130\n"), "{long}");
        } else if !["prep", "prep plan"].contains(&command.as_str()) {
            let examples = long.split("Examples:\n").nth(1).unwrap_or_default();
            let typed = examples.lines().filter(|line| line.starts_with(&format!("  windrow {command}")));
            assert_eq!(typed.count(), 2, "{command}: {long}");
        }
    }
}

#[test]
fn options_of_a_command_stand_before_those_that_it_shares() {
    let desk = Desk::new();
    let place = |help: &str, word: &str| help.find(word).unwrap_or_else(|| panic!("{word}: {help}"));
    for (command, own) in [
        ("trace", "--step <K>"),
        ("coverage", "--steps <A..B>"),
        ("extract", "--out <FILE>"),
        ("plan", "--out <FILE>"),
    ] {
        let long = desk.windrow(&format!("{command} --help")).done();
        for shared in ["How to cut:", "How to order:", "How to open:"] {
            assert!(place(&long, own) < place(&long, shared), "{command}: {shared}");
        }
        let short = desk.windrow(&format!("{command} -h")).done();
        assert!(short.contains(own) && short.contains("windrow help views"), "{short}");
        assert!(!short.contains("--documents") && long.contains("--documents"), "{short}");
    }
}

#[test]
fn help_tells_of_commands_and_of_what_they_share() {
    let desk = Desk::new();
    assert_eq!(desk.windrow("help prep run").done(), desk.windrow("prep run --help").done());
    assert_eq!(desk.windrow("help").done(), desk.windrow("--help").done());
    for (topic, said) in [
        ("views", "--segments <N>"),
        ("pack", "--shifted"),
        ("bins", "--strategy <STRATEGY>"),
        ("order", "--no-drop-last"),
        ("data", "--mask-column"),
        ("environment", "WINDROW_STORE_OPTIONS"),
    ] {
        let help = desk.windrow(&format!("help {topic}")).done();
        assert!(help.contains(said), "{help}");
        assert_eq!(
            desk.windrow(&format!("help {topic} --json")).json()["help"].as_str(),
            Some(help.as_str())
        );
    }
    assert!(!desk.windrow("help pack").done().contains("--strategy"));
    assert!(desk.windrow("help pakc").failed(2).contains("there is no help of \"pakc\""));
}

#[test]
fn a_manual_page_has_examples_variables_and_exit_codes() {
    let desk = Desk::new();
    for (command, example) in [
        ("trace", "windrow trace plan.json"),
        ("rebuild-metadata", "windrow rebuild"),
        ("prep run", "windrow prep run"),
    ] {
        let page = desk.windrow(&format!("man {command}")).done().replace('\\', "");
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        let last = ["EXAMPLES", "ENVIRONMENT", "\"EXIT STATUS\"", "VERSION"];
        assert_eq!(sections[sections.len() - 4..], last, "{page}");
        assert!(
            page.contains(example) && page.contains("WINDROW_CACHE") && !page.contains(".SH EXTRA"),
            "{page}"
        );
    }
}

#[test]
fn words_of_other_programs_lead_to_a_command() {
    let desk = Desk::new();
    for (typed, command) in [
        ("ls", "inspect"),
        ("info", "inspect"),
        ("stats", "inspect --histogram"),
        ("head", "peek"),
        ("cat", "peek"),
        ("view", "peek"),
    ] {
        let err = desk.windrow(&format!("{typed} tokens/")).failed(2);
        assert!(err.contains(&format!("`windrow {command}`")), "{typed}: {err}");
        let object = desk.windrow(&format!("{typed} tokens/ --json")).json();
        assert!(object["error"]["hint"].as_str().is_some_and(|hint| hint.contains(command)), "{object}");
    }
    assert!(desk.windrow("inspct x").failed(2).contains("inspect"));
}

#[test]
fn names_that_options_had_lead_to_those_that_they_have() {
    let desk = Desk::new();
    for (typed, option) in [
        ("bench x --keep-last", "--no-drop-last"),
        ("inspect x --eos 3", "--document-eos"),
        ("trace x --step 1 --record 3", "windrow find"),
        ("index x --no-durable", "--no-fsync"),
    ] {
        let err = desk.windrow(typed).failed(2);
        assert!(
            err.contains(&format!("hint: {option}")) || err.contains(&format!("hint: `{option}")),
            "{typed}: {err}"
        );
        let object = desk.windrow(&format!("{typed} --json")).json();
        assert!(object["error"]["hint"].as_str().is_some_and(|hint| hint.contains(option)), "{object}");
    }
    for (typed, option) in
        [("bench x --threads 2", "--num-threads"), ("peek x --verify", "--verify-checksums")]
    {
        let err = desk.windrow(typed).failed(2);
        assert!(err.contains(&format!("did you mean `{option}`?")), "{typed}: {err}");
    }
}

#[test]
fn values_of_options_are_completed() {
    let desk = Desk::new();
    let script = desk.windrow("completions bash").done();
    let offered = |option: &str, words: &[&str]| {
        // Each option of each command has a case, with what completes its value.
        let cases: Vec<&str> = script
            .split(&format!("{option})\n"))
            .skip(1)
            .filter_map(|rest| rest.split(";;").next())
            .collect();
        assert!(!cases.is_empty(), "{option}");
        for case in cases {
            assert!(words.iter().all(|word| case.contains(word)), "{option}: {case}");
        }
    };
    offered("--tokenizer", &["cl100k_base", "bytes"]);
    offered("--format", &["parquet", "forager"]);
    offered("--dtype", &["int16"]);
    offered("--as-dtype", &["uint16", "bfloat16"]);
    offered("--shuffle", &["on off blocks"]);
    // They are offered, and others are taken.
    let err = desk.windrow("inspect x --dtype uint17").failed(2);
    assert!(err.contains("uint17") && !err.contains("possible values"), "{err}");
    desk.texts("a.jsonl", &["one"]);
    let err = desk.windrow("tokenize a.jsonl --tokenizer ./mine.json --out t").failed(1);
    assert!(err.contains("mine.json"), "{err}");
}
