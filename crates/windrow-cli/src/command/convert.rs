//! `windrow convert`: records from any layout into another.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use windrow::DType;
use windrow::format::{Options, WriteOptions};
use windrow::prepare;

use crate::args::{Choosing, Opening, no_stdin, no_stdout, path};
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::options::dtype;
use crate::out::Out;
use crate::own_options::OwnOptions;
use crate::progress::Progress;
use crate::{text, to};

/// Write records in another layout
///
/// Reads whatever `inspect` can read, one record at a time. The output appears complete or not at all.
#[derive(Args, Debug)]
pub(crate) struct Convert {
    /// What to read: a file or folder, or a pattern in quotes
    #[arg(value_parser = path())]
    input: PathBuf,
    /// Where to: a folder for shards, forager and codes, what both names begin with for megatron, else a file; also a URL
    #[arg(required_unless_present = "out", conflicts_with = "out", value_parser = path())]
    output: Option<PathBuf>,
    /// Another way to give OUTPUT
    #[arg(short, long, value_name = "OUTPUT", value_parser = path())]
    out: Option<PathBuf>,
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = to::of_records())]
    to: String,
    /// dtype of a written number; by default that of the input, int32 for uint32 with --to megatron, int16 with --to codes
    #[arg(long, value_name = "DTYPE", value_parser = dtype)]
    as_dtype: Option<DType>,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Data without any record gives an empty output
    #[arg(long)]
    allow_empty: bool,
    /// Do not wait for the disk
    #[arg(long)]
    no_fsync: bool,
    #[command(flatten)]
    own: OwnOptions<false>,
    #[command(flatten)]
    opening: Opening,
    #[command(flatten)]
    choosing: Choosing,
}

pub(crate) fn run(args: &Convert, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.input))?;
    let Some(output) = args.output.as_ref().or(args.out.as_ref()) else {
        return Err(Failure::usage("name an output"));
    };
    no_stdout(output)?;
    let format = windrow::writer(&args.to, args.own.given())?;
    let opening = Options { allow_empty: args.allow_empty, ..args.opening.options()? };
    let data = args.choosing.of(windrow::open_with(&args.input, &opening)?)?;
    let interrupt = Interrupt::listen();
    let started = Instant::now();
    let progress = Progress::new("convert", out.quiet(), &interrupt);
    let source = data.source().as_ref();
    let options = WriteOptions {
        dtype: args.as_dtype,
        of: data.manifest().cloned().map(Arc::new),
        overwrite: args.overwrite,
        allow_empty: args.allow_empty,
        fsync: !args.no_fsync,
        ..WriteOptions::default()
    };
    let report = prepare::convert_with(source, output, format.as_ref(), &options, &opening, &progress);
    let report = report.map_err(|e| data.numbered(e))?;
    let seconds = started.elapsed().as_secs_f64();
    out.line(format_args!(
        "{}: {}, {} in {seconds:.1} s",
        output.display(),
        text::counted(report.records, "record"),
        text::size(report.output_bytes)
    ))?;
    out.object(json!({ "report": report, "seconds": seconds }))?;
    Ok(DONE)
}
