//! The demo does what it says, twice, and the commands that it names work.

use crate::program::Desk;

#[test]
fn the_demo_runs_twice_and_what_it_names_works() {
    let desk = Desk::new();
    let said = desk.windrow("demo --out d").done();
    assert!(said.contains("123 steps left, all 123 the same, byte for byte"), "{said}");
    assert!(said.contains("those bytes are the row's input_ids"), "{said}");
    let next: Vec<&str> = said.lines().rev().take_while(|l| *l != "try next").collect();
    assert_eq!(next.len(), 3, "{said}");
    for line in next {
        let line = line.trim().strip_prefix("windrow ").unwrap();
        let quick = if line.starts_with("bench") { " --seconds 0.1" } else { "" };
        desk.windrow(&format!("{line}{quick}")).done();
    }

    let before = desk.tree("d");
    let json = desk.windrow("demo --out d --json").json();
    assert_eq!(json["prepare"]["tokenize"]["unchanged"], true);
    assert_eq!(json["next"].as_array().unwrap().len(), 3);
    assert!(json["resumed_steps"].as_u64().unwrap() > 0 && json["compared_bytes"].as_u64().unwrap() > 0);
    assert_eq!(desk.tree("d"), before);
}
