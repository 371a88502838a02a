//! Python pickles as data: lists, dicts, numbers, text, times, numpy arrays and torch tensors, of protocols 0 to 5; converted
//! once, then read in place.

mod tell;

use windrow_core::Result;
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::plain_name;
use windrow_pickle::{Budget, Machine};

use super::converted::{self, Parse, Shapes};

use crate::open_options::{AXIS, COLUMN};

/// Series in a Python pickle.
#[derive(Clone, Copy, Debug)]
pub struct Pickle;

static INFO: FormatInfo = FormatInfo {
    name: "pickle",
    title: "Series in a pickle",
    layout: "one `.pkl` or `.pickle` file, also `.gz` and `.zst`: a list of series, an array, or several pickles",
    records: "numbers [T] or [T, C]: a list, array or tensor, or the `sequence` of a dict with extras beside it",
    written_by: "Python's pickle.dump",
    holds: &[Holds::Series],
    series_suffixes: &[".pkl", ".pkl.gz", ".pkl.zst", ".pickle", ".pickle.gz", ".pickle.zst"],
    open_options: &[COLUMN, AXIS],
    ..FormatInfo::NONE
};

impl Format for Pickle {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let name = probe.file_name();
        let plain = plain_name(&name);
        if !probe.is_folder && (plain.ends_with(".pkl") || plain.ends_with(".pickle")) {
            Confidence::Maybe
        } else {
            Confidence::No
        }
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        converted::open(self.name(), probe, options, Parse::Whole(parse))
    }
}

fn parse(bytes: &[u8], shapes: &mut Shapes<'_>) -> Result<()> {
    parse_from(bytes, 0, shapes)
}

/// Reads the pickles that begin at byte `start`.
///
/// # Errors
/// As [`Format::open`] of a file of pickles.
pub(super) fn parse_from(bytes: &[u8], start: usize, shapes: &mut Shapes<'_>) -> Result<()> {
    let file = shapes.file().to_string();
    let mut budget = Budget::of(bytes.len() as u64);
    let mut at = start;
    while at < bytes.len() {
        let mut machine = Machine::new(bytes, at, &mut budget);
        let value = machine.run().map_err(|e| e.or_at(&file))?;
        let end = machine.at();
        // Several pickles in one file are a record each; one pickle holds all records.
        if at == start && end < bytes.len() {
            shapes.each_is_a_record();
        }
        tell::value(&machine.arena, value, shapes)?;
        at = end;
    }
    Ok(())
}
