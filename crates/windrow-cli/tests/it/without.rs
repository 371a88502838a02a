//! What a program says of a command whose feature it was built without.

use crate::program::Desk;

#[test]
fn a_command_that_is_not_there_names_its_feature() {
    let commands = [
        ("demo --out demo", "text", cfg!(feature = "text")),
        ("encode sounds --out codes --weights w.pth", "dac", cfg!(feature = "dac")),
        ("prep plan encode sounds --out codes --weights w.pth", "dac", cfg!(feature = "dac")),
        ("report data --out page.html", "report", cfg!(feature = "report")),
        ("download some/data", "remote", cfg!(feature = "remote")),
    ];
    for (command, feature, _) in commands.into_iter().filter(|(_, _, is_on)| !is_on) {
        let desk = Desk::new();
        let says = format!("windrow was built without `{feature}`: `cargo add windrow --features {feature}`");
        assert!(desk.windrow(command).failed(1).contains(&says), "{command}");
        let json = desk.windrow(&format!("--json {command}")).json();
        assert_eq!(json["error"]["kind"], "unsupported", "{command}");
        assert_eq!(json["error"]["message"], says, "{command}");
        assert!(desk.tree("").is_empty(), "{command}");
    }
}

#[test]
fn an_option_that_is_not_there_names_its_feature() {
    let desk = Desk::new();
    desk.windrow("dummy --vocab-size 100 --tokens 1000 --out tokens.bin").done();
    if !cfg!(feature = "text") {
        let ran = desk.windrow("peek tokens.bin --tokenizer gpt2");
        assert!(ran.failed(1).contains("windrow was built without `text`"));
        let ran = desk.windrow("tokenize tokens.bin --tokenizer gpt2 --out out");
        assert!(ran.failed(1).contains("windrow was built without `text`"));
    }
}
