//! `windrow manifest`: what lies in a folder, listed once.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::args::output::no_overwrite_of_stdout;
use crate::args::{Opening, no_stdin, path};
use crate::failure::{DONE, Failure};
use crate::out::Out;
use crate::text;

/// Write the manifest of data that has none: windrow.json, which lists its files
///
/// A folder in a store is listed each time it is opened, with a request for each 1,000 objects; with the manifest it is opened by one or
/// two. Sizes and versions are compared with the objects when they are read. Files that come later are not in it: run it again.
#[derive(Args, Debug)]
pub(crate) struct Manifest {
    /// A folder, or its URL
    #[arg(value_parser = path())]
    path: PathBuf,
    /// Write it there instead of beside the data; `-` is stdout
    #[arg(short, long, value_name = "FILE", value_parser = path())]
    out: Option<PathBuf>,
    /// With -o: replace an existing file
    #[arg(long, requires = "out")]
    overwrite: bool,
    #[command(flatten)]
    opening: Opening,
}

pub(crate) fn run(args: &Manifest, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.path))?;
    let is_stdout = args.out.as_deref() == Some(Path::new("-"));
    if is_stdout {
        no_overwrite_of_stdout(args.overwrite)?;
        if out.is_json() {
            return Err(Failure::usage("--json and --out - would both write to stdout"));
        }
    }
    let options = args.opening.options()?;
    if is_stdout {
        out.raw(windrow::listing(&args.path, &options)?.to_text().as_bytes())?;
        return Ok(DONE);
    }
    let listed = windrow::write_manifest(&args.path, &options, args.out.as_deref(), args.overwrite)?;
    out.line(format_args!(
        "{}: {}, {}, of {}",
        listed.out.display(),
        text::counted(listed.files, "file"),
        text::size(listed.bytes),
        listed.format,
    ))?;
    out.object(json!(listed))?;
    Ok(DONE)
}
