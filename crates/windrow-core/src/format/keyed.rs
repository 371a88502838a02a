//! Which formats take `column` and `axis`: where the series of a file are named by a key, or an array may be one of them.

use super::{Format, Jsonl, Options, Probe, SeriesJsonLines};
use crate::error::{Error, Result};

/// Whether lines are meant as series: where a column is named.
pub(super) fn is_series_of_lines(format: &dyn Format, options: &Options) -> bool {
    format.name() == Jsonl.name() && options.format.is_none() && options.column.is_some()
}

/// The format of a file that is meant by a column.
pub(super) fn instead<'t>(format: &'t dyn Format, options: &Options) -> &'t dyn Format {
    if is_series_of_lines(format, options) { &SeriesJsonLines } else { format }
}

/// Refuses options that the format would not follow.
///
/// # Errors
/// `Config`.
pub(super) fn check(format: &dyn Format, probe: &Probe, options: &Options) -> Result<()> {
    let refused = |option: &str, why: &str, hint: &str| {
        Err(Error::config(format!("{option} was given, but {} {why}", format.name()))
            .at(probe.display())
            .field(option)
            .hint(hint))
    };
    if options.column.is_some() && !format.takes_column() {
        return refused("column", "has no columns", "it names the key of a series in JSON, YAML and pickles");
    }
    if options.axis.is_some() && !format.takes_axis() {
        return refused(
            "axis",
            "says itself what is a series",
            "it is for arrays [T, C] that are one series",
        );
    }
    Ok(())
}
