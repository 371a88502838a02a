//! What a build without the library says of flat-tokens.

use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::{Error, Result};

const FEATURE: &str = "zarr";

pub(crate) fn writer(_: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
    Err(Error::built_without(FEATURE))
}

pub(crate) fn open(probe: &Probe, _: &Options) -> Result<SharedSource> {
    Err(Error::built_without(FEATURE).at(probe.display()))
}
