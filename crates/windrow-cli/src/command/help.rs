//! `windrow help`: the help of a command, or of what several commands share.

use clap::builder::{PossibleValue, StringValueParser};
use clap::{Arg, ArgAction, Args, Command};
use serde_json::json;
use windrow::VIEWS;

use super::command;
use crate::args::{Choosing, Cutting, Opening, Ordering, of_view};
use crate::failure::{DONE, Failure};
use crate::help::environment;
use crate::hinted::hinted;
use crate::out::Out;

/// Print the help of a command, or of what several share: views, pack, order, data, environment
#[derive(Args, Debug)]
pub(crate) struct Help {
    /// A command, `prep plan` for example; or views, the name of one, order, data, environment
    #[arg(value_name = "WHAT", value_parser = hinted(StringValueParser::new(), values), hide_possible_values = true)]
    what: Vec<String>,
}

/// The names of commands, for completion.
pub(crate) fn commands() -> Vec<PossibleValue> {
    command().get_subcommands().map(|command| PossibleValue::new(command.get_name().to_string())).collect()
}

/// What can be asked about, for completion.
fn values() -> Vec<PossibleValue> {
    let topics = TOPICS.iter().copied().chain(VIEWS.iter().map(|view| view.name));
    commands().into_iter().chain(topics.map(PossibleValue::new)).collect()
}

const TOPICS: [&str; 4] = ["views", "order", "data", "environment"];

pub(crate) fn run(args: &Help, out: &mut Out) -> Result<i32, Failure> {
    let what: Vec<&str> = args.what.iter().map(String::as_str).collect();
    let shown = match &what[..] {
        [topic] => shown(topic),
        _ => None,
    };
    let mut shown = match shown {
        Some(command) => command,
        None => {
            let mut command = command();
            command.build();
            for word in &what {
                command = command.find_subcommand(word).cloned().ok_or_else(|| Failure::Usage {
                    message: format!("there is no help of {:?}", what.join(" ")),
                    hint: Some("a command, or views, pack, order, data, environment".to_string()),
                })?;
            }
            command
        }
    };
    let help = shown.render_long_help();
    if out.is_json() {
        out.object(json!({ "help": help.to_string() }))?
    } else {
        out.styled(&help)?
    }
    Ok(DONE)
}

/// A topic as a command that has its options.
fn shown(topic: &str) -> Option<Command> {
    let command = |about: &str| {
        Command::new("windrow")
            .about(about.to_string())
            .disable_help_flag(true)
            .help_template("{about-with-newline}\n{all-args}{after-help}")
            // A help without any argument says nothing of headings.
            .arg(Arg::new("help").long("help").action(ArgAction::Help).hide(true))
    };
    match topic {
        "views" => Some(Cutting::augment_args(command(
            "How records are cut into samples: one view, and its options",
        ))),
        "order" => {
            Some(Ordering::augment_args(command("In which order samples come, and how many to a batch")))
        }
        "data" => Some(Choosing::augment_args(Opening::augment_args(command(
            "How data is opened; what is not given is detected",
        )))),
        "environment" => {
            Some(command("What windrow reads beside its command line").after_help(environment::text()))
        }
        view => {
            let view = VIEWS.iter().find(|of| of.name == view)?;
            Some(of_view(command(&format!("The options of --{}", view.name)), view))
        }
    }
}
