//! What a build without the library says of Parquet.

use windrow_core::format::verify::{ByReading, Verify};
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::{Error, Result};

use crate::layout::INFO;

pub(crate) const VERIFIER: &dyn Verify = &ByReading;

/// A split that is asked for is looked for by nobody: the feature is what is missing.
pub(crate) fn defines_splits(_: &Probe) -> bool {
    true
}

pub(crate) fn writer(_: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
    Err(Error::built_without(INFO.name))
}

pub(crate) fn open(probe: &Probe, _: &Options) -> Result<SharedSource> {
    Err(Error::built_without(INFO.name).at(probe.display()))
}

pub(crate) fn open_files(probe: &Probe, _: Vec<String>, options: &Options) -> Result<SharedSource> {
    open(probe, options)
}
