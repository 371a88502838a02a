//! `windrow convert`: records of numbers from any layout into another.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::json;
use windrow::DType;
use windrow::prepare::{self, SeriesLayout, SeriesOptions};
use windrow::zarr::{self, WriteOptions};

use crate::args::{Opening, dtype, no_stdin, no_stdout};
use crate::chunking::Chunking;
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::text;

/// Write records of numbers in another layout
///
/// Reads whatever `inspect` can read, one record at a time. The output appears complete or not at all.
#[derive(Args, Debug)]
pub(crate) struct Convert {
    /// What to read
    input: PathBuf,
    /// Where to: a folder for shards, forager and codes, what both names begin with for megatron, else a file
    output: PathBuf,
    /// The layout to write
    #[arg(long, value_enum)]
    to: To,
    /// dtype of a written number; by default that of the input, int32 for uint32 with --to megatron, int16 with --to codes
    #[arg(long, value_name = "DTYPE", value_parser = dtype)]
    as_dtype: Option<DType>,
    /// With --to shards: most bytes of a shard
    #[arg(long, value_name = "BYTES", default_value_t = 5 << 30)]
    max_shard_bytes: u64,
    /// With --to shards: store (x - mean) / std as float32, and mean and std of each record beside it
    #[arg(long)]
    normalize: bool,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Do not wait for the disk
    #[arg(long)]
    no_durable: bool,
    #[command(flatten)]
    chunking: Chunking,
    #[command(flatten)]
    opening: Opening,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum To {
    /// meta.json and data-<i>-of-<n>.bin
    Shards,
    /// One array; all records of one length
    Npy,
    /// An archive of an array per record
    Npz,
    /// A line per record: {"sequence": […]}
    Jsonl,
    /// One headerless row of token ids
    Tokens,
    /// A folder of token samples with a byte-offset index
    Forager,
    /// OUTPUT.bin and OUTPUT.idx, a sequence per record
    Megatron,
    /// A folder of encoded_audio/NAME.pt, torch tensors [T, C], and metadata.json with their prompts
    Codes,
    /// A zarr group of token ids: encoded_tokens, seq_starts
    FlatTokens,
}

pub(crate) fn run(args: &Convert, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.input))?;
    no_stdout(&args.output)?;
    let layout = match args.to {
        To::Shards => Some(SeriesLayout::Shards),
        To::Npy => Some(SeriesLayout::Npy),
        To::Npz => Some(SeriesLayout::Npz),
        To::Jsonl => Some(SeriesLayout::Jsonl),
        To::Tokens => Some(SeriesLayout::Tokens),
        To::Forager => Some(SeriesLayout::Forager),
        To::Megatron => Some(SeriesLayout::Megatron),
        To::Codes => Some(SeriesLayout::Codes),
        To::FlatTokens => None,
    };
    let chunking = args.chunking.options(layout.is_none())?;
    let data = windrow::open_with(&args.input, &args.opening.options())?;
    let interrupt = Interrupt::listen();
    let started = Instant::now();
    let progress = Progress::new("convert", out.quiet(), &interrupt);
    let source = data.source().as_ref();
    let (overwrite, durable, of) = (args.overwrite, !args.no_durable, data.manifest().cloned().map(Arc::new));
    let report = match layout {
        Some(layout) => {
            let options = SeriesOptions {
                dtype: args.as_dtype,
                max_shard_bytes: args.max_shard_bytes,
                normalize: args.normalize,
                of,
                overwrite,
                durable,
                ..SeriesOptions::new(layout)
            };
            prepare::convert(source, &args.output, &options, &progress)?
        }
        None => {
            let unused = [
                ("--as-dtype", args.as_dtype.is_some()),
                ("--normalize", args.normalize),
                (
                    "--max-shard-bytes",
                    args.max_shard_bytes != SeriesOptions::new(SeriesLayout::Shards).max_shard_bytes,
                ),
            ];
            if let Some((option, _)) = unused.into_iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::usage(format!("{option} is no option of --to flat-tokens")));
            }
            let options = WriteOptions { of, overwrite, durable, ..chunking };
            zarr::convert(source, &args.output, &options, &progress)?
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    out.line(format_args!(
        "{}: {}, {} in {seconds:.1} s",
        args.output.display(),
        text::counted(report.records, "record"),
        text::size(report.output_bytes)
    ))?;
    out.object(json!({ "report": report, "seconds": seconds }))?;
    Ok(DONE)
}
