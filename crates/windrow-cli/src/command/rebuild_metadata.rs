//! `windrow rebuild-metadata`: the description of pre-encoded tracks, made again.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::args::{no_stdin, path};
use crate::failure::{DONE, Failure, PARTLY};
use crate::out::Out;
use crate::text;

/// Rebuild metadata.json of a folder of pre-encoded tracks, from the tracks and the files of their prompts
///
/// Prompts: NAME.txt and NAME_prompt.txt in each folder given, NAME.txt beside the track, the same two in prompts/, and what
/// the old metadata.json says. Its other fields are kept.
#[derive(Args, Debug)]
pub(crate) struct RebuildMetadata {
    /// The folder with encoded_audio/*.pt, or with *.pt
    #[arg(value_parser = path())]
    path: PathBuf,
    /// A folder of prompts; may be given again
    #[arg(long, value_name = "DIR", value_parser = path())]
    prompts: Vec<PathBuf>,
    /// Say what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &RebuildMetadata, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.path))?;
    let rebuilt = windrow::rebuild_metadata(&args.path, &args.prompts, args.dry_run)?;
    let would = if args.dry_run { "would be " } else { "" };
    out.line(format_args!(
        "{}: {}, {} with a prompt; {} {would}changed",
        args.path.join("metadata.json").display(),
        text::counted(rebuilt.tracks, "track"),
        text::count(rebuilt.prompts),
        text::count(rebuilt.changed),
    ))?;
    for name in &rebuilt.absent {
        log::warn!("{name} has no file: it is {}left out", if args.dry_run { "to be " } else { "" });
    }
    for (file, error) in &rebuilt.failed {
        log::warn!("not in it: {}: {error}", file.display());
    }
    out.object(json!({ "rebuilt": rebuilt, "dry_run": args.dry_run }))?;
    Ok(if rebuilt.failed.is_empty() { DONE } else { PARTLY })
}
