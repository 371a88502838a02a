//! The command line: parse, call the facade, print. One file per command.
//!
//! stdout is data, stderr is messages and progress. `--json` gives one versioned object, errors too.
//!
//! | exit | means |
//! |---|---|
//! | 0 | done |
//! | 1 | failed |
//! | 2 | the command line makes no sense |
//! | 3 | the data is bad |
//! | 4 | a state, plan or tokenizer does not fit the data |
//! | 5 | partly done: what is there is whole |
//! | 130 | interrupted, and can be run again |
//!
//! # Modules
//!
//! * `command`: the commands, a file each; `mod.rs` lists them;
//! * `args`: option groups that several commands share: what to read, how to slice and order it;
//! * `help`: what help and manual pages say: groups, examples, variables, topics, near commands;
//! * `hinted`: values that shells complete;
//! * `options`: rows of an option table as arguments;
//! * `own_options`: options of a format that is written;
//! * `to`: what `--to` takes;
//! * `plan`: a plan as it is typed: JSON, or data and options;
//! * `histogram`: records by length;
//! * `mixing`: `windrow inspect --mixing`;
//! * `codes`: audio codes as a grid;
//! * `play`: the sound of a record of codes;
//! * `no_codec`: replaces `play` in a build without the codec;
//! * `plot`: a series as a drawing of dots;
//! * `text`: terminal width, paths as a shell takes them;
//! * `colour`: whether there are colours;
//! * `out`: stdout: lines for people, or one JSON object;
//! * `stderr`: messages, and the line below them;
//! * `progress`: how far a task is;
//! * `warnings`: warnings, and what the library does;
//! * `failure`: how a command fails: message, exit code, JSON;
//! * `usage`: what the parser of arguments says, as such a failure;
//! * `interrupt`: Ctrl-C;
//! * `spelling`: option names in messages, as arguments.

mod args;
mod codes;
mod colour;
mod command;
mod failure;
mod help;
mod hinted;
mod histogram;
mod interrupt;
mod mixing;
mod options;
mod out;
mod own_options;
mod plan;
#[cfg_attr(not(feature = "dac"), path = "no_codec.rs")]
mod play;
mod plot;
mod progress;
mod spelling;
mod stderr;
mod text;
mod to;
mod usage;
mod warnings;

use std::ffi::OsString;
use std::io;
use std::time::Instant;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use log::LevelFilter;

use windrow::dev::hide_caught_panics;

use crate::command::Cli;
use crate::failure::{DONE, Failure, USAGE};
use crate::help::near;
use crate::out::Out;
use crate::stderr::{Message, say};

pub use warnings::took;

/// Runs the program on these arguments, the first of which is its name, and gives its exit code.
///
/// ```
/// assert_eq!(windrow_cli::main_from(["windrow", "inspect", "/nothing/here", "-q"].map(Into::into)), 1);
/// ```
pub fn main_from(args: impl IntoIterator<Item = OsString>) -> i32 {
    let began = Instant::now();
    let args: Vec<OsString> = args.into_iter().collect();
    let _spoken = spelling::of_command(command::command, &args);
    colour::choose(colour::typed(&args));
    let cli = match command::command()
        .try_get_matches_from(&args)
        .and_then(|typed| Cli::from_arg_matches(&typed))
    {
        Ok(cli) => cli,
        Err(e) => return not_parsed(&near::with_nearest(e), &args),
    };
    colour::choose(cli.color);
    let _listening = warnings::listen(match (cli.quiet, cli.verbose) {
        (true, _) => LevelFilter::Off,
        (false, true) => LevelFilter::Debug,
        (false, false) => LevelFilter::Warn,
    });
    hide_caught_panics();
    interrupt::limits_are_errors();
    let mut out = Out::new(cli.json, cli.quiet, cli.command.name());
    let done = command::run(cli.command, &mut out).and_then(|exit| Ok(out.flush().map(|()| exit)?));
    log::info!("took {:.2} s", began.elapsed().as_secs_f64());
    match done {
        Ok(exit) => exit,
        Err(failure) => {
            report(&failure, &mut out);
            failure.exit()
        }
    }
}

fn not_parsed(error: &clap::Error, args: &[OsString]) -> i32 {
    let is_answer = !error.use_stderr();
    let is_json = args.iter().any(|arg| arg == "--json");
    let mut out = Out::new(is_json, true, command_named(args).unwrap_or_default());
    if is_answer {
        // Nobody reads it when the terminal is gone.
        let _ = out.styled(&error.render()).and_then(|()| out.flush());
        return DONE;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !is_json {
        stderr::print(colour::shown(&error.render(), &io::stderr()).trim_end());
    } else {
        report(&usage::failure(error, args), &mut out);
    }
    USAGE
}

/// The command that was typed, where it is one.
fn command_named(args: &[OsString]) -> Option<String> {
    let typed = args.iter().skip(1).find(|arg| !arg.to_string_lossy().starts_with('-'))?;
    let cli = Cli::command();
    let command = cli.get_subcommands().find(|command| *typed == *command.get_name())?;
    Some(command.get_name().to_string())
}

fn report(failure: &Failure, out: &mut Out) {
    say(Message::Error, &failure.to_string());
    let _ = out.error(failure.to_json());
}
