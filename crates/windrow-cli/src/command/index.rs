//! `windrow index`: the byte-offset index of the JSONL files below a folder.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use windrow::dev::format::lines::INDEX_FOLDER;
use windrow::prepare::{self, IndexOptions};

use crate::args::{Stores, no_stdin, path};
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::text;

/// Index the lines of the JSONL files below a folder, so that any of them is found at once
///
/// Takes *.jsonl, *.JSONL and *.ndjson at any depth, also .gz and .zst. The index appears complete or not at all; a run that was
/// stopped can be run again.
#[derive(Args, Debug)]
pub(crate) struct Index {
    /// The folder, or its URL: s3://, gs://, az://
    #[arg(value_parser = path())]
    path: PathBuf,
    /// Name of the index folder in it
    #[arg(long, value_name = "NAME", default_value = INDEX_FOLDER)]
    index_folder: String,
    /// Replace an index of other data
    #[arg(long)]
    overwrite: bool,
    /// Keep a hash of every file, so that `verify` finds changes that keep size and time
    #[arg(long)]
    checksum: bool,
    /// A folder without any line gives an empty index
    #[arg(long)]
    allow_empty: bool,
    /// Do not wait for the disk
    #[arg(long)]
    no_fsync: bool,
    #[command(flatten)]
    stores: Stores,
}

pub(crate) fn run(args: &Index, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.path))?;
    let options = IndexOptions {
        index_folder: args.index_folder.clone(),
        overwrite: args.overwrite,
        checksum: args.checksum,
        allow_empty: args.allow_empty,
        fsync: !args.no_fsync,
    };
    let interrupt = Interrupt::listen();
    let started = Instant::now();
    let (stores, watch) = (args.stores.options()?, Progress::new("index", out.quiet(), &interrupt));
    let report = prepare::index_with(&args.path, &options, &stores, &watch)?;
    drop(watch);
    let seconds = started.elapsed().as_secs_f64();
    let (records, files) = (text::counted(report.records, "record"), text::counted(report.files, "file"));
    let how = if report.unchanged {
        "was up to date".to_string()
    } else {
        format!("{} in {seconds:.1} s", text::size(report.input_bytes))
    };
    let index = args.path.join(&args.index_folder);
    out.line(format_args!("{}: {records} in {files}; {how}", index.display()))?;
    out.object(json!({ "report": report, "seconds": seconds }))?;
    Ok(DONE)
}
