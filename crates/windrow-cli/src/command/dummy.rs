//! `windrow dummy`: random tokens to try things with.

use std::path::PathBuf;

use clap::Args;
use windrow::prepare;

use crate::args::output::no_overwrite_of_stdout;
use crate::args::path;
use crate::failure::{DONE, Failure};
use crate::out::Out;
use crate::text;

/// Write random uint32 tokens, the same for the same seed
#[derive(Args, Debug)]
pub(crate) struct Dummy {
    /// Ids are below this
    #[arg(long, value_name = "V")]
    vocab_size: u64,
    /// How many
    #[arg(long, value_name = "N")]
    tokens: u64,
    /// Where to; `-` is stdout, which gets the IDs alone
    #[arg(short, long, value_name = "FILE", value_parser = path())]
    out: PathBuf,
    /// Seed of the random tokens
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Replace the file
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run(args: &Dummy, out: &mut Out) -> Result<i32, Failure> {
    if args.out.as_os_str() == "-" {
        return to_stdout(args, out);
    }
    let report = prepare::dummy(&args.out, args.vocab_size, args.tokens, args.seed, args.overwrite)?;
    let unchanged = if report.unchanged { " (was there already)" } else { "" };
    let size = text::size(report.output_bytes);
    out.line(format_args!(
        "{}: {}, {size}{unchanged}",
        args.out.display(),
        text::counted(report.tokens, "token")
    ))?;
    out.object(serde_json::json!({ "report": report }))?;
    Ok(DONE)
}

fn to_stdout(args: &Dummy, out: &mut Out) -> Result<i32, Failure> {
    if out.is_json() {
        return Err(Failure::usage("--json and --out - would both write to stdout"));
    }
    no_overwrite_of_stdout(args.overwrite)?;
    for block in prepare::dummy_blocks(args.vocab_size, args.tokens, args.seed)? {
        out.raw(&block)?;
        // Nobody takes more, and they would have no end.
        if !out.has_reader() {
            break;
        }
    }
    out.flush()?;
    Ok(DONE)
}
