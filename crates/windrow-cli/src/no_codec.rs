//! What a build without the codec says where the sound of codes is asked for.

use std::path::Path;

use windrow::{Dataset, Error};

use crate::failure::Failure;

pub(crate) fn play(_: &Dataset, _: u64, _: Option<&Path>, _: &Path, _: bool) -> Result<(), Failure> {
    Err(Error::built_without("dac").into())
}
