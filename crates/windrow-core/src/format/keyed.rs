//! Which formats take `column` and `axis`: where the series of a file are named by a key, or an array may be one of them.

use super::{Collection, Format, Jsonl, Npy, Npz, Options, Pickle, Probe, SeriesJson, SeriesJsonLines, Yaml};
use crate::error::{Error, Result};

/// Whether files of this format may hold one series `[T, C]` as they hold N of `[N, T]`.
pub fn reads_axis(format: &str) -> bool {
    let arrays: [&dyn Format; 6] = [&Npy, &Npz, &SeriesJson, &Yaml, &Pickle, &Collection];
    arrays.iter().any(|known| known.name() == format)
}

/// The format that is meant by a column: lines are series where one is named.
pub(super) fn instead<'t>(format: &'t dyn Format, probe: &Probe, options: &Options) -> &'t dyn Format {
    let is_lines = format.name() == Jsonl.name() && options.format.is_none() && options.column.is_some();
    match (is_lines, probe.is_folder) {
        (true, true) => &Collection,
        (true, false) => &SeriesJsonLines,
        (false, _) => format,
    }
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
    let keyed: [&dyn Format; 5] = [&SeriesJson, &SeriesJsonLines, &Yaml, &Pickle, &Collection];
    if options.column.is_some() && !keyed.iter().any(|known| known.name() == format.name()) {
        return refused("column", "has no columns", "it names the key of a series in JSON, YAML and pickles");
    }
    if options.axis.is_some() && !reads_axis(format.name()) {
        return refused(
            "axis",
            "says itself what is a series",
            "it is for arrays [T, C] that are one series",
        );
    }
    Ok(())
}
