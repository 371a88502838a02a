//! Opens flat-tokens, and says how they are written.

use std::sync::Arc;

use windrow_core::Result;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Options, Probe};
use windrow_core::source::SharedSource;

use crate::group::Group;
use crate::source::Sequences;
use crate::write::WriteFlatTokens;

pub(crate) fn writer(options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
    Ok(Some(Box::new(WriteFlatTokens::of(options)?)))
}

pub(crate) fn open(probe: &Probe, options: &Options) -> Result<SharedSource> {
    let vocab_size = probe.manifest.as_ref().and_then(|manifest| manifest.vocab_size);
    Ok(Arc::new(Sequences::new(Group::open(probe, options)?, vocab_size)))
}
