//! `windrow completions`: what a shell needs to complete commands and options.

use clap::Args;
use clap_complete::Shell;
use serde_json::json;

use crate::failure::{DONE, Failure};
use crate::out::Out;

/// Print a shell's completion script
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// For this shell
    shell: Shell,
}

/// `line`: the whole command line.
pub(crate) fn run(args: &Completions, line: &mut clap::Command, out: &mut Out) -> Result<i32, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, line, "windrow", &mut script);
    if out.is_json() {
        out.object(json!({ "shell": args.shell.to_string(), "script": String::from_utf8_lossy(&script) }))?
    } else {
        out.raw(&script)?
    }
    Ok(DONE)
}
