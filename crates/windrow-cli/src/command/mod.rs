//! What can be typed: the commands, a file for each with its arguments, its work and its words.

#[cfg(not(all(feature = "dac", feature = "remote", feature = "report", feature = "text")))]
mod absent;
mod bench;
mod cache;
mod completions;
mod convert;
mod coverage;
#[cfg(feature = "text")]
mod demo;
mod diff;
#[cfg(feature = "remote")]
mod download;
mod dummy;
#[cfg(feature = "dac")]
pub(crate) mod encode;
mod extract;
mod find;
mod help;
mod index;
mod inspect;
mod man;
mod manifest;
mod peek;
mod plan;
mod prep;
mod rebuild_metadata;
#[cfg(feature = "report")]
mod report;
mod tokenize;
mod trace;
mod verify;

use clap::{CommandFactory, Parser, Subcommand};

#[cfg(not(feature = "text"))]
absent::absent!(demo, Demo, "text");
#[cfg(not(feature = "remote"))]
absent::absent!(download, Download, "remote");
#[cfg(not(feature = "dac"))]
absent::absent!(encode, Encode, "dac");
#[cfg(not(feature = "report"))]
absent::absent!(report, Report, "report");

use crate::colour::Color;
use crate::failure::Failure;
use crate::help::dressed;
use crate::out::Out;

/// Reads training data as it lies on disk and feeds it to a model.
///
/// stdout is data, stderr is messages.
#[derive(Debug, Parser)]
#[command(name = "windrow", version, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print one JSON object instead of lines, errors too
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,
    /// No progress, no warnings
    #[arg(short, long, global = true, display_order = 901)]
    pub(crate) quiet: bool,
    /// Say what is opened, cached and tried again
    #[arg(short, long, global = true, display_order = 902, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Colours
    #[arg(
        long,
        global = true,
        display_order = 903,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: Color,
}

/// The command line. A number below zero is the value of the option before it, which then says what it expects.
pub(crate) fn command() -> clap::Command {
    let takes_numbers = |arg: clap::Arg| {
        if arg.is_positional() || !arg.get_action().takes_values() {
            arg
        } else {
            arg.allow_negative_numbers(true)
        }
    };
    dressed(Cli::command().mut_subcommands(|command| command.mut_args(takes_numbers)))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Inspect(inspect::Inspect),
    Peek(peek::Peek),
    Report(report::Report),
    Index(index::Index),
    Tokenize(tokenize::Tokenize),
    Prep(prep::Prep),
    Convert(convert::Convert),
    Encode(encode::Encode),
    RebuildMetadata(rebuild_metadata::RebuildMetadata),
    Manifest(manifest::Manifest),
    Verify(verify::Verify),
    Plan(Box<plan::Plan>),
    Trace(trace::Trace),
    Find(find::Find),
    Diff(diff::Diff),
    Coverage(coverage::Coverage),
    Extract(extract::Extract),
    Bench(bench::Bench),
    Cache(cache::Cache),
    Download(download::Download),
    Dummy(dummy::Dummy),
    Completions(completions::Completions),
    Man(man::Man),
    Help(help::Help),
}

impl Command {
    /// Its name, as `--json` says it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Command::Demo(_) => "demo",
            Command::Inspect(_) => "inspect",
            Command::Peek(_) => "peek",
            Command::Report(_) => "report",
            Command::Index(_) => "index",
            Command::Tokenize(_) => "tokenize",
            Command::Prep(_) => "prep",
            Command::Convert(_) => "convert",
            Command::Encode(_) => "encode",
            Command::RebuildMetadata(_) => "rebuild-metadata",
            Command::Manifest(_) => "manifest",
            Command::Verify(_) => "verify",
            Command::Plan(_) => "plan",
            Command::Trace(_) => "trace",
            Command::Find(_) => "find",
            Command::Diff(_) => "diff",
            Command::Coverage(_) => "coverage",
            Command::Extract(_) => "extract",
            Command::Bench(_) => "bench",
            Command::Cache(_) => "cache",
            Command::Download(_) => "download",
            Command::Dummy(_) => "dummy",
            Command::Completions(_) => "completions",
            Command::Man(_) => "man",
            Command::Help(_) => "help",
        }
    }
}

/// Runs a command and gives its exit code.
pub(crate) fn run(command: Command, out: &mut Out) -> Result<i32, Failure> {
    match command {
        Command::Demo(args) => demo::run(&args, out),
        Command::Inspect(args) => inspect::run(&args, out),
        Command::Peek(args) => peek::run(&args, out),
        Command::Report(args) => report::run(&args, out),
        Command::Index(args) => index::run(&args, out),
        Command::Tokenize(args) => tokenize::run(&args, out),
        Command::Prep(args) => prep::run(&args, out),
        Command::Convert(args) => convert::run(&args, out),
        Command::Encode(args) => encode::run(&args, out),
        Command::RebuildMetadata(args) => rebuild_metadata::run(&args, out),
        Command::Manifest(args) => manifest::run(&args, out),
        Command::Verify(args) => verify::run(&args, out),
        Command::Plan(args) => plan::run(&args, out),
        Command::Trace(args) => trace::run(&args, out),
        Command::Find(args) => find::run(&args, out),
        Command::Diff(args) => diff::run(&args, out),
        Command::Coverage(args) => coverage::run(&args, out),
        Command::Extract(args) => extract::run(&args, out),
        Command::Bench(args) => bench::run(&args, out),
        Command::Cache(args) => cache::run(&args, out),
        Command::Download(args) => download::run(&args, out),
        Command::Dummy(args) => dummy::run(&args, out),
        Command::Completions(args) => completions::run(&args, &mut self::command(), out),
        Command::Man(args) => man::run(&args, self::command(), out),
        Command::Help(args) => help::run(&args, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
