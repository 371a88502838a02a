//! Series in CSV and TSV: a file is one series, or one of each ID, its columns of numbers the channels; converted once, then read in
//! place.

mod cells;
mod counter;
mod distinct;
mod long;
mod names;
mod table;
mod times;

use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::plain_name;
use windrow_core::{Error, Result};

use self::table::Asked;
use super::converted;

use crate::foreign;
use crate::open_options::{COLUMN, COLUMNS};

/// A table of text.
#[derive(Clone, Copy, Debug)]
pub struct Csv;

static INFO: FormatInfo = FormatInfo {
    name: "csv",
    title: "Series in CSV or TSV",
    layout: "one `.csv` or `.tsv` file, also `.gz` and `.zst`, with names in its first line",
    records: "one series of numbers [T, C], the columns that hold nothing else, or one of each ID; with `column=` [T]; `columns`, `item_id`, `start` and `freq` beside it",
    written_by: "any program",
    holds: &[Holds::Series],
    series_suffixes: &[".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst"],
    gives_way: true,
    open_options: &[COLUMN, COLUMNS],
    ..FormatInfo::NONE
};

impl Format for Csv {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        if !probe.is_folder && delimiter(probe).is_some() { Confidence::Maybe } else { Confidence::No }
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        foreign::refuse_as_text(probe.store.open(&probe.key)?.as_ref())?;
        let delimiter = delimiter(probe).unwrap_or(b',');
        let asked = match (&options.column, &options.columns) {
            (Some(column), _) => Asked::One(column.clone()),
            (None, Some(columns)) if columns.is_empty() => {
                return Err(Error::config("@columns=[]@ names no column").field("columns"));
            }
            (None, Some(columns)) => Asked::Several(columns.clone()),
            (None, None) => Asked::Numbers,
        };
        let how = format!(" {:?} {asked:?}", char::from(delimiter));
        converted::open_by(self.name(), Some("item_id"), probe, options, &how, |object, draft, limit| {
            table::convert(object, draft, limit, delimiter, &asked)
        })
    }
}

// What is between two cells, by the name.
fn delimiter(probe: &Probe) -> Option<u8> {
    let name = probe.file_name();
    let plain = plain_name(&name);
    [(".csv", b','), (".tsv", b'\t')]
        .into_iter()
        .find(|(suffix, _)| plain.ends_with(suffix))
        .map(|found| found.1)
}
