//! Lines of JSON that are meant as series, because a column is named.

use super::{Format, Jsonl, Options, SeriesJsonLines};

/// Whether lines are meant as series: where a column is named.
pub(super) fn is_series_of_lines(format: &dyn Format, options: &Options) -> bool {
    format.name() == Jsonl.name() && options.format.is_none() && options.column.is_some()
}

/// The format of a file that is meant by a column.
pub(super) fn instead<'t>(format: &'t dyn Format, options: &Options) -> &'t dyn Format {
    if is_series_of_lines(format, options) { &SeriesJsonLines } else { format }
}
