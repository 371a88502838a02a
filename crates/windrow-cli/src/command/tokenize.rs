//! `windrow tokenize`: text to token IDs on disk.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::{Map, Value, json};
use windrow::Paths;
use windrow::prep::{TOKENIZING, Tokenizing};
use windrow::prepare::{self, CHECKPOINT_BYTES, Skipped, TokenizeOptions};

use crate::args::{Stores, no_stdout, path};
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::options::{bytes, of_rows};
use crate::out::Out;
use crate::own_options::OwnOptions;
use crate::progress::Progress;
use crate::{text, to};

/// Turn text into token IDs: that of JSONL files, or of a column of Parquet, Arrow, WebDataset and others
///
/// The output appears complete or not at all. A run that was stopped continues where it was when the same command is run
/// again, and ends in the same files.
#[derive(Args, Debug)]
pub(crate) struct Tokenize {
    /// JSONL files, or folders that hold some; .gz and .zst too. Or files and folders of rows, as `inspect` reads them; also
    /// patterns in quotes: 'text/*.jsonl.gz'. `-` is stdin, which is read once as any pipe
    #[arg(required = true, value_name = "IN", value_parser = path())]
    inputs: Vec<PathBuf>,
    /// Folder to write, or its URL: s3://, gs://, az://
    #[arg(short, long, value_name = "DIR", value_parser = path())]
    out: PathBuf,
    #[command(flatten)]
    how: How,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Inputs without any text give an empty output
    #[arg(long)]
    allow_empty: bool,
    /// Encoding threads; by default as many as there are cores
    #[arg(long, value_name = "N")]
    num_threads: Option<usize>,
    /// Input bytes after which a run that is stopped can continue
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value_t = CHECKPOINT_BYTES)]
    checkpoint_bytes: u64,
    /// Do not wait for the disk
    #[arg(long)]
    no_fsync: bool,
    #[command(flatten)]
    stores: Stores,
}

/// What decides the token IDs, and the files that hold them.
#[derive(Args, Debug)]
pub(crate) struct How {
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    own: OwnOptions<true>,
}

#[derive(Clone, Debug)]
struct Given(Map<String, Value>);

of_rows!(Given, None, TOKENIZING.iter(), |arg| match arg.get_id().as_str() {
    "tokenizer" => arg.short('t').required(true),
    "to" => arg.value_parser(to::of_tokens()),
    _ => arg,
});

impl How {
    /// The options as a job keeps them.
    ///
    /// # Errors
    /// For options that make no sense together.
    pub(crate) fn tokenizing(&self) -> Result<Tokenizing, Failure> {
        Ok(Tokenizing::of(self.given.0.clone().into_iter().chain(self.own.given().clone()).collect())?)
    }
}

// `-` is the standard input, as any pipe.
fn piped(input: &Path) -> &Path {
    if input.as_os_str() == "-" { Path::new("/dev/stdin") } else { input }
}

/// How many damaged records were left out of how many.
pub(crate) fn left_out(skipped: &Skipped, documents: u64) -> String {
    let all = documents + skipped.count;
    let share = 100.0 * skipped.count as f64 / all as f64;
    let first = skipped.first.first().map_or_else(String::new, |first| format!("; the first: {first}"));
    format!(
        "{} of {all} were damaged and left out, {share:.3} %{first}",
        text::counted(skipped.count, "record")
    )
}

pub(crate) fn run(args: &Tokenize, out: &mut Out) -> Result<i32, Failure> {
    no_stdout(&args.out)?;
    let how = args.how.tokenizing()?;
    let (encoder, options) = how.make()?;
    let options = TokenizeOptions {
        overwrite: args.overwrite,
        fsync: !args.no_fsync,
        num_threads: args.num_threads,
        allow_empty: args.allow_empty,
        checkpoint_bytes: args.checkpoint_bytes,
        ..options
    };
    let interrupt = Interrupt::listen();
    let started = Instant::now();
    let watch = Progress::new("tokenize", out.quiet(), &interrupt);
    let stores = args.stores.options()?;
    let inputs =
        Paths::list(args.inputs.iter().map(|input| piped(input))).inputs(&stores, how.split.as_deref())?;
    let report = prepare::tokenize_with(&inputs, &args.out, encoder.as_ref(), &options, &stores, &watch)?;
    drop(watch);
    let seconds = started.elapsed().as_secs_f64();

    let (tokens, documents) =
        (text::counted(report.tokens, "token"), text::counted(report.documents, "document"));
    let speed = text::rate(report.input_bytes as f64 / seconds.max(1e-9), "B");
    let how = if report.unchanged {
        "was there already".to_string()
    } else {
        format!("{} in {seconds:.1} s, {speed}", text::size(report.output_bytes))
    };
    let what = if report.unchanged {
        text::counted(report.records, "record")
    } else {
        format!("{tokens} of {documents} in {}", text::counted(report.records, "record"))
    };
    out.line(format_args!("{}: {what}; {how}", args.out.display()))?;
    if report.dropped_tokens > 0 {
        let dropped = text::counted(report.dropped_tokens, "token");
        out.line(format_args!(
            "  {dropped} at the end filled no sample and were left out (--remainder pad keeps them)"
        ))?;
    }
    if report.unlearned_documents > 0 {
        let unlearned = text::counted(report.unlearned_documents, "document");
        out.line(format_args!("  nothing is learned of {unlearned}: their loss mask excludes every token"))?;
    }
    if report.skipped.count > 0 {
        out.line(format_args!("  {}", left_out(&report.skipped, report.documents)))?;
    }
    if report.resumed_bytes > 0 {
        out.line(format_args!("  went on after {} of an earlier run", text::size(report.resumed_bytes)))?;
    }
    out.object(json!({ "report": report, "seconds": seconds }))?;
    Ok(DONE)
}
