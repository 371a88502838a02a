//! The series of the Monash archive: `.tsf` files, converted once, then read in place.

mod attributes;
mod lines;

use windrow_core::Result;
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::plain_name;

use crate::foreign;

use super::converted;

/// A file of the Monash archive.
#[derive(Clone, Copy, Debug)]
pub struct Tsf;

static INFO: FormatInfo = FormatInfo {
    name: "tsf",
    title: "Monash .tsf",
    layout: "one `.tsf` file, also `.gz` and `.zst`: `@attribute` lines, `@data`, then a series a line",
    records: "numbers [T] with the attributes beside them, dates as ISO 8601, and `start` and `freq`",
    written_by: "the Monash forecasting archive, GluonTS",
    holds: &[Holds::Series],
    series_suffixes: &[".tsf", ".tsf.gz", ".tsf.zst"],
    ..FormatInfo::NONE
};

impl Format for Tsf {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        if !probe.is_folder && plain_name(&probe.file_name()).ends_with(".tsf") {
            Confidence::Maybe
        } else {
            Confidence::No
        }
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        foreign::refuse_as_text(probe.store.open(&probe.key)?.as_ref())?;
        converted::open_by(self.name(), None, probe, options, "", lines::convert)
    }
}
