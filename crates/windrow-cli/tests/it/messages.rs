//! What is printed on stderr: one style for all messages, colours where they are wanted, and more where it is asked for.

use crate::program::Desk;

const RED: &str = "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m ";

#[test]
fn colours_follow_the_option_then_the_environment() {
    let desk = Desk::new();
    let check = |line: &str, variables: &[(&str, &str)], has_colours: bool| {
        let ran = desk.windrow_with(line, variables);
        assert_eq!(ran.err.contains('\u{1b}'), has_colours, "{line} {variables:?}: {ran:?}");
        assert_eq!(ran.err.starts_with(RED), has_colours, "{line} {variables:?}: {ran:?}");
        let plain = ran.err.replace("\u{1b}[1m", "").replace("\u{1b}[31m", "").replace("\u{1b}[36m", "");
        assert!(plain.replace("\u{1b}[0m", "").starts_with("error: "), "{ran:?}");
    };
    for line in ["inspect nosuch.bin", "inspect", "nosuch", "inspect x --nosuch"] {
        check(line, &[], false);
        check(line, &[("CLICOLOR_FORCE", "1")], true);
        check(line, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false);
        check(&format!("{line} --color always"), &[("NO_COLOR", "1")], true);
        check(&format!("{line} --color=never"), &[("CLICOLOR_FORCE", "1")], false);
    }
    assert!(desk.windrow("inspect x --color red").failed(2).contains("one of auto, always, never"));
    for help in ["--help", "-h", "trace -h", "help pack"] {
        assert!(!desk.windrow(help).done().contains('\u{1b}'), "{help}");
        assert!(desk.windrow(&format!("{help} --color always")).done().contains('\u{1b}'), "{help}");
    }
    assert!(!desk.windrow("inspect nosuch --json --color always").out.contains('\u{1b}'));
}

#[test]
fn every_message_has_one_style() {
    let desk = Desk::new();
    desk.write("odd.bin", [0; 7]);
    desk.texts("a.jsonl", &["one"]);
    for line in [
        "inspect",
        "inspect a.jsonl --histgram",
        "inspect a.jsonl --histogram --mixing",
        "tokenize a.jsonl --out t",
        "tokenize a.jsonl --out t --tokenizer bytes --to fragger",
        "dummy --vocab-size x --tokens 1 --out y",
        "inspct",
        "ls",
        "bench a.jsonl --pack 4 --bins 4",
        "inspect odd.bin",
    ] {
        let ran = desk.windrow(line);
        let lines: Vec<&str> = ran.err.lines().collect();
        let (first, rest) = lines.split_first().unwrap();
        assert!(first.starts_with("error: ") || first.starts_with("warning: "), "{line}: {ran:?}");
        for below in rest {
            let begins =
                ["error: ", "warning: ", "  at: ", "  hint: "].iter().any(|label| below.starts_with(label));
            assert!(begins, "{line}: {ran:?}");
        }
        assert!(ran.err.contains("  hint: "), "{line}: {ran:?}");
        let object = desk.windrow(&format!("{line} --json")).json();
        assert!(object["error"]["hint"].is_string(), "{line}: {object}");
    }
    // Without a command the list of them is shown.
    assert!(desk.windrow("").failed(2).contains("Look at data:"));
}

#[test]
fn more_is_said_of_what_is_opened_and_cached_where_it_is_asked_for() {
    let desk = Desk::new();
    let lines = b"{\"text\": \"one\"}\n{\"text\": \"two\"}\n";
    desk.write("a.jsonl.zst", zstd::encode_all(&lines[..], 1).unwrap());
    assert_eq!(desk.windrow("peek a.jsonl.zst").err, "");
    std::fs::remove_dir_all(desk.path("cache")).unwrap();
    let first = desk.windrow("peek a.jsonl.zst --verbose");
    let again = desk.windrow("-v peek a.jsonl.zst");
    assert_eq!(first.out, again.out);
    for (ran, said) in [(&first, "expanding"), (&again, "from the cache")] {
        assert!(ran.err.lines().all(|line| line.starts_with("info: ")), "{ran:?}");
        for said in ["reading", "a.jsonl.zst", said, "opened a.jsonl.zst as jsonl: 2 records", "took"] {
            assert!(ran.err.contains(said), "{said} is missing: {ran:?}");
        }
    }
    assert!(!again.err.contains("expanding"), "{again:?}");
    assert!(desk.windrow("inspect x -q -v").failed(2).contains("cannot be used with"));
    let object = desk.windrow("peek a.jsonl.zst -v --json").json();
    assert_eq!(object["records_in_all"], 2);
}

#[test]
fn a_histogram_is_as_wide_as_the_terminal_and_one_long_record_is_a_row() {
    let desk = Desk::new();
    let lines = (0..200).map(|i| 90 + i / 10).chain([45_525]);
    let lines = lines.map(|length| format!("{{\"t\": \"{}\"}}\n", "x".repeat(length - 9)));
    desk.write("a.jsonl", lines.collect::<String>());
    for columns in [40, 80, 120] {
        let out =
            desk.windrow_with("inspect a.jsonl --histogram", &[("COLUMNS", &columns.to_string())]).done();
        let rows: Vec<&str> = out.split("records by length in bytes\n").nth(1).unwrap().lines().collect();
        assert!(rows.len() >= 7, "{out}");
        assert_eq!(rows.iter().map(|row| row.chars().count()).max(), Some(columns), "{out}");
        assert_eq!(rows.iter().filter(|row| row.contains("  0")).count(), 1, "{out}");
    }
    let bars = desk.windrow("inspect a.jsonl --histogram --json").json()["histogram"].clone();
    let bars = bars.as_array().unwrap().clone();
    assert_eq!(bars.iter().map(|bar| bar["records"].as_u64().unwrap()).sum::<u64>(), 201);
    assert!(
        bars.windows(2).all(|two| two[0]["to"].as_u64().unwrap() + 1 == two[1]["from"].as_u64().unwrap())
    );
}
