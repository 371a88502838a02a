//! One file per command: its arguments, its work, its words.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod download;
pub(crate) mod dummy;
pub(crate) mod encode;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod peek;
pub(crate) mod rebuild_metadata;
pub(crate) mod report;
pub(crate) mod tokenize;
pub(crate) mod trace;
pub(crate) mod verify;

use crate::args::Command;
use crate::failure::Failure;
use crate::out::Out;

/// Runs a command and gives its exit code.
pub(crate) fn run(command: Command, out: &mut Out) -> Result<i32, Failure> {
    match command {
        Command::Demo(args) => demo::run(&args, out),
        Command::Inspect(args) => inspect::run(&args, out),
        Command::Peek(args) => peek::run(&args, out),
        Command::Report(args) => report::run(&args, out),
        Command::Index(args) => index::run(&args, out),
        Command::Tokenize(args) => tokenize::run(&args, out),
        Command::Convert(args) => convert::run(&args, out),
        Command::Encode(args) => encode::run(&args, out),
        Command::RebuildMetadata(args) => rebuild_metadata::run(&args, out),
        Command::Verify(args) => verify::run(&args, out),
        Command::Trace(args) => trace::run(&args, out),
        Command::Bench(args) => bench::run(&args, out),
        Command::Download(args) => download::run(&args, out),
        Command::Dummy(args) => dummy::run(&args, out),
        Command::Completions(args) => completions::run(&args, out),
    }
}
