//! `windrow prep plan encode`: a job of sound files.

use std::path::PathBuf;

use clap::Args;
use windrow::prep;

use super::{Planning, planned};
use crate::args::{Stores, no_stdin, path};
use crate::command::encode::How;
use crate::failure::Failure;
use crate::out::Out;

/// Plan to encode sound files into audio codes
#[derive(Args, Debug)]
pub(super) struct Encode {
    /// As of `windrow encode`: the folder of sound files, which every machine sees under this name; or one of them
    #[arg(value_parser = path())]
    audio_dir: PathBuf,
    #[command(flatten)]
    planning: Planning,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    stores: Stores,
}

pub(super) fn run(args: &Encode, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.audio_dir))?;
    let how = args.how.encoding()?;
    planned(&args.planning, &args.stores.options()?, out, |to, task_bytes, stores| {
        prep::plan_encode(&args.audio_dir, to, &how, task_bytes, stores)
    })
}
