//! `windrow man`: the manual pages of the program and its commands.

use std::io;

use clap::Args;
use clap::builder::StringValueParser;
use clap_mangen::roff::{Roff, bold, line_break, roman};
use serde_json::{Map, Value, json};

use super::help::commands;
use crate::failure::{DONE, Failure};
use crate::help::environment::{EXITS, VARIABLES};
use crate::help::examples;
use crate::hinted::hinted;
use crate::out::Out;

/// Print the manual page of a command, or of the program: windrow man tokenize | man -l -
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// The page of this command, `prep plan` for example; without one, that of the program
    #[arg(value_name = "COMMAND", value_parser = hinted(StringValueParser::new(), commands), hide_possible_values = true)]
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
    // The `help` of commands within others is clap's own.
    let is_own = |below: &clap::Command| below.get_name() != "help" || command.get_name() == "windrow";
    for below in command.get_subcommands().filter(|below| is_own(below)) {
        add_pages(below, pages)?;
    }
    Ok(())
}

fn page(command: &clap::Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    render(command, &mut text).map_err(Failure::Output)?;
    Ok(text)
}

fn render(command: &clap::Command, text: &mut Vec<u8>) -> io::Result<()> {
    // What the help has behind its options are sections here.
    let page = clap_mangen::Man::new(command.clone());
    page.render_title(text)?;
    page.render_name_section(text)?;
    page.render_synopsis_section(text)?;
    page.render_description_section(text)?;
    page.render_options_section(text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(text)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = name.strip_prefix("windrow-").unwrap_or_default().replace('-', " ");
    let path = if path == "rebuild metadata" { "rebuild-metadata".to_string() } else { path };
    let mut sections = Roff::new();
    let examples = examples::of(&path);
    if !examples.is_empty() {
        sections.control("SH", ["EXAMPLES"]);
        sections.control("nf", []);
        sections.text(examples.iter().flat_map(|line| [roman(*line), line_break()]).collect::<Vec<_>>());
        sections.control("fi", []);
    }
    for (heading, rows) in [("ENVIRONMENT", VARIABLES), ("EXIT STATUS", EXITS)] {
        sections.control("SH", [heading]);
        for (name, says) in rows {
            sections.control("TP", []);
            sections.text([bold(*name)]);
            sections.text([roman(*says)]);
        }
    }
    sections.to_writer(text)?;
    page.render_version_section(text)
}
