//! `windrow tokenize`: text to token IDs on disk.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::json;
use windrow::prep::{Chatting, Tokenizing};
use windrow::prepare::{self, CHECKPOINT_BYTES, Remainder, TokenizeOptions};
use windrow::{DType, Paths};

use crate::args::{Stores, dtype, no_stdin, no_stdout};
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
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
    /// patterns in quotes: 'text/*.jsonl.gz'
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// Folder to write, or its URL: s3://, gs://, az://
    #[arg(short, long, value_name = "DIR")]
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
    threads: Option<usize>,
    /// Input bytes after which a run that is stopped can continue
    #[arg(long, value_name = "BYTES", default_value_t = CHECKPOINT_BYTES)]
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
    /// A tokenizer.json, or bytes, cl100k_base, deepseek_v3, gpt2, llama3, o200k_base
    #[arg(short, long, value_name = "T")]
    tokenizer: String,
    /// What to write
    #[arg(long, value_name = "FORMAT", default_value = windrow::TOKENIZE_TO, value_parser = to::of_tokens())]
    to: String,
    /// Pack documents into samples of N tokens; without it, each document is a record
    #[arg(long, value_name = "N")]
    sample_size: Option<u64>,
    /// What ends a document: the tokenizer's own token, an ID, a token's name, or none; append is auto with --append-eos
    #[arg(long, value_name = "auto|append|ID|none", default_value = "auto")]
    eos: String,
    /// End documents with it where each is a record, too
    #[arg(long)]
    append_eos: bool,
    /// Key of the text, or its column: meta.text is the key text in the column meta; of WebDataset a suffix, as txt
    #[arg(long, value_name = "KEY", default_value = "text")]
    text_field: String,
    /// Key of a loss mask beside the text, or its column: a list with 1 for each token that is learned, else 0. The text may be a list
    /// of token IDs then
    #[arg(long, value_name = "KEY")]
    mask_field: Option<String>,
    /// Of folders that hold several splits, the one to read; of files those whose names say it; all joins them
    #[arg(long, value_name = "SPLIT")]
    pub(crate) split: Option<String>,
    /// Special tokens that are in the text become their IDs; by default text is text
    #[arg(long)]
    special_tokens: bool,
    /// Each record is a conversation: the chat template makes its text, and what the assistant says is learned
    #[arg(long)]
    chat: bool,
    /// With --chat: key of the messages; by default messages, else conversations
    #[arg(long, value_name = "KEY", requires = "chat")]
    messages_field: Option<String>,
    /// With --chat: a file with a Jinja template, or chatml, gemma, llama3, zephyr; by default the tokenizer's own
    #[arg(long, value_name = "FILE|NAME", requires = "chat")]
    chat_template: Option<String>,
    /// With --chat: the day for templates that ask for it; by default today
    #[arg(long, value_name = "YYYY-MM-DD", requires = "chat")]
    chat_date: Option<String>,
    /// dtype of a stored id; by default the smaller of uint16 and uint32 that holds the vocabulary (int32 for Megatron;
    /// flat-tokens are uint32)
    #[arg(long, value_parser = dtype)]
    dtype: Option<DType>,
    /// With --sample-size: what becomes of the tokens at the end that fill no sample
    #[arg(long, value_enum, default_value_t = Rest::Drop)]
    remainder: Rest,
    /// With --remainder pad: the ID to fill with, by default the one that ends a document
    #[arg(long, value_name = "ID")]
    pad_value: Option<i64>,
    #[command(flatten)]
    own: OwnOptions<true>,
}

impl How {
    /// The same in words that a job keeps.
    ///
    /// # Errors
    /// For options that make no sense together; `NotFound` without the tokenizer.
    pub(crate) fn tokenizing(&self) -> Result<Tokenizing, Failure> {
        let (eos, append_eos) = match self.eos.as_str() {
            "append" => ("auto", true),
            eos => (eos, self.append_eos),
        };
        let how = Tokenizing {
            tokenizer: self.tokenizer.clone(),
            text_field: self.text_field.clone(),
            mask_field: self.mask_field.clone(),
            special_tokens: self.special_tokens,
            eos: eos.to_string(),
            append_eos,
            to: self.to.clone(),
            own: self.own.given().clone(),
            sample_size: self.sample_size,
            dtype: self.dtype,
            remainder: Remainder::Drop,
            split: self.split.clone(),
            allow_empty: false,
            chat: self.chat.then(|| Chatting {
                messages_field: self.messages_field.clone(),
                template: self.chat_template.clone(),
                date: self.chat_date.clone(),
            }),
        };
        if self.pad_value.is_some() && self.remainder != Rest::Pad {
            return Err(Failure::usage("--pad-value is an option of --remainder pad"));
        }
        let remainder = match (self.remainder, self.pad_value) {
            (Rest::Drop, _) => Remainder::Drop,
            (Rest::Pad, Some(id)) => Remainder::Pad(id),
            (Rest::Pad, None) => match how.make()?.0.eos() {
                Some(id) => Remainder::Pad(id),
                None => {
                    return Err(Failure::usage(
                        "--remainder pad needs --pad-value, as no token ends a document",
                    ));
                }
            },
        };
        Ok(Tokenizing { remainder, ..how })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rest {
    /// They are left out and counted
    Drop,
    /// They are filled up
    Pad,
}

pub(crate) fn run(args: &Tokenize, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(&args.inputs)?;
    no_stdout(&args.out)?;
    let (encoder, options) = args.how.tokenizing()?.make()?;
    let options = TokenizeOptions {
        overwrite: args.overwrite,
        durable: !args.no_fsync,
        threads: args.threads,
        allow_empty: args.allow_empty,
        checkpoint_bytes: args.checkpoint_bytes,
        ..options
    };
    let interrupt = Interrupt::listen();
    let started = Instant::now();
    let watch = Progress::new("tokenize", out.quiet(), &interrupt);
    let stores = args.stores.options();
    let inputs = Paths::list(&args.inputs).inputs(&stores, args.how.split.as_deref())?;
    let report = prepare::tokenize_with(&inputs, &args.out, encoder.as_ref(), &options, &stores, &watch)?;
    drop(watch);
    let seconds = started.elapsed().as_secs_f64();

    let (tokens, documents) =
        (text::counted(report.tokens, "token"), text::counted(report.documents, "document"));
    let speed = text::rate(report.input_bytes as f64 / seconds.max(1e-9), "B");
    let how = match report.unchanged {
        true => "was there already".to_string(),
        false => format!("{} in {seconds:.1} s, {speed}", text::size(report.output_bytes)),
    };
    let what = match report.unchanged {
        true => text::counted(report.records, "record"),
        false => format!("{tokens} of {documents} in {}", text::counted(report.records, "record")),
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
    if report.resumed_bytes > 0 {
        out.line(format_args!("  went on after {} of an earlier run", text::size(report.resumed_bytes)))?;
    }
    out.object(json!({ "report": report, "seconds": seconds }))?;
    Ok(DONE)
}
