//! `windrow man`: the manual pages of the program and its commands.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::failure::{DONE, Failure};
use crate::out::Out;

/// Print the manual page of a command, or of the program: windrow man tokenize | man -l -
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// The page of this command, `prep plan` for example; without one, that of the program
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

/// `line`: the whole command line.
pub(crate) fn run(args: &Man, mut line: clap::Command, out: &mut Out) -> Result<i32, Failure> {
    // Names such as `windrow-prep-plan` are made here.
    line.build();
    let mut command = &line;
    for word in &args.words {
        command = command
            .find_subcommand(word)
            .ok_or_else(|| Failure::usage(format!("there is no command {:?}", args.words.join(" "))))?;
    }
    if out.is_json() {
        let mut pages = Map::new();
        add_pages(command, &mut pages)?;
        out.object(json!({ "pages": pages }))?;
    } else {
        out.raw(&page(command)?)?;
    }
    Ok(DONE)
}

/// The pages of a command and all below it, by the names of their files.
fn add_pages(command: &clap::Command, pages: &mut Map<String, Value>) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    pages.insert(format!("{name}.1"), String::from_utf8_lossy(&page(command)?).into());
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        add_pages(below, pages)?;
    }
    Ok(())
}

fn page(command: &clap::Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text).map_err(Failure::Output)?;
    Ok(text)
}
