//! Recognises Parquet files, and the folders that the Hub and `datasets` write.

use windrow_core::Result;
use windrow_core::format::verify::Verify;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Options, Probe};
use windrow_core::source::SharedSource;

use crate::layout::{INFO, MAGIC, is_beside_archive, is_named, keys, named};
use crate::opened;

/// Files of Parquet.
#[derive(Clone, Copy, Debug)]
pub struct Parquet;

impl Format for Parquet {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let is = if probe.is_folder {
            named(probe).iter().any(|key| !is_beside_archive(probe, key))
        } else {
            probe.head.starts_with(MAGIC) || is_named(&probe.key)
        };
        Confidence::yes_if(is)
    }

    fn is_content(&self, probe: &Probe) -> bool {
        probe.is_folder && !keys(probe).is_empty()
    }

    fn defines_splits(&self, probe: &Probe) -> bool {
        opened::defines_splits(probe)
    }

    fn joins(&self, probe: &Probe) -> Vec<String> {
        if probe.is_folder && !self.defines_splits(probe) {
            keys(probe).iter().map(|key| probe.name_of(key).to_string()).collect()
        } else {
            Vec::new()
        }
    }

    fn open_files(&self, probe: &Probe, keys: &[String], options: &Options) -> Option<Result<SharedSource>> {
        Some(opened::open_files(probe, keys.to_vec(), options))
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        opened::writer(options)
    }

    fn verifier(&self) -> &'static dyn Verify {
        opened::VERIFIER
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        opened::open(probe, options)
    }
}
