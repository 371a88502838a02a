//! `windrow download`: a data set of the Hugging Face Hub into a folder.

use std::path::PathBuf;

use clap::Args;

#[cfg(feature = "hub")]
mod hub;

#[cfg(feature = "hub")]
pub(crate) use hub::run;

/// Download a data set from the Hugging Face Hub
///
/// Files appear one by one, each after its size and hash were found right; a run that was stopped continues where it ended.
/// HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_TOKEN and HF_HUB_OFFLINE are honoured.
#[derive(Args, Debug)]
pub(crate) struct Download {
    /// owner/name of a data set, or time-300b
    repo: String,
    /// Only files whose path fits; `*` goes over `/` too
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// No files whose path fits
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// With time-300b: these folders of it
    #[arg(long, value_name = "A,B,…", conflicts_with_all = ["include", "partition_set"])]
    partitions: Option<String>,
    /// With time-300b: a set of folders, train or debug [default: train]
    #[arg(long, value_name = "SET", conflicts_with = "include")]
    partition_set: Option<String>,
    /// Branch, tag or commit
    #[arg(long, default_value = "main")]
    revision: String,
    /// The folder to download into [default: the name of the data set, or time300b_selected]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace files that hold something else
    #[arg(long)]
    overwrite: bool,
    /// Files to fetch at the same time
    #[arg(long, value_name = "N", default_value_t = 8)]
    connections: usize,
    /// Only say what would be downloaded
    #[arg(long)]
    dry_run: bool,
}

#[cfg(not(feature = "hub"))]
pub(crate) fn run(_: &Download, _: &mut crate::out::Out) -> Result<i32, crate::failure::Failure> {
    Err(windrow::Error::unsupported("this windrow was built without the hub")
        .hint("build it with `cargo build -p windrow-cli --features hub`")
        .into())
}
