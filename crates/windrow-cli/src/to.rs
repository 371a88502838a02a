//! What `--to` takes: the formats that are written, as their table says.

use clap::builder::{PossibleValue, PossibleValuesParser};
use windrow::Written;
#[cfg(feature = "dac")]
use windrow::format::Holds;

/// Formats of any records.
pub(crate) fn of_records() -> PossibleValuesParser {
    values(|_| true)
}

/// Formats that `tokenize` writes.
pub(crate) fn of_tokens() -> PossibleValuesParser {
    values(|format| format.is_for_tokenize)
}

/// Formats of audio codes.
#[cfg(feature = "dac")]
pub(crate) fn of_codes() -> PossibleValuesParser {
    values(|format| format.info.holds.contains(&Holds::Codes))
}

fn values(is_one: fn(&Written) -> bool) -> PossibleValuesParser {
    let formats = windrow::written().into_iter().filter(is_one);
    let value = |format: Written| PossibleValue::new(format.to).help(format.info.written_as);
    PossibleValuesParser::new(formats.map(value).collect::<Vec<_>>())
}
