//! What happens to the tokens at the end of a preparation that fill no sample.

use windrow::prepare::Remainder;
use windrow::{Error, Result};

/// With `pads` they are filled up with `pad_value`, else with the `eos` that ends a document.
///
/// # Errors
/// `Config` where there is no ID to fill with, and for a `pad_value` that would fill nothing or is not an ID.
pub(crate) fn remainder_of(pads: bool, pad_value: Option<i64>, eos: Option<i64>) -> Result<Remainder> {
    match (pads, pad_value.or(eos), pad_value) {
        (_, _, Some(id)) if id < 0 => {
            Err(Error::config(format!("pad_value {id} is not a token ID")).field("pad_value"))
        }
        (true, Some(id), _) => Ok(Remainder::Pad(id)),
        // Any other ID is a token that nobody wrote.
        (true, None, _) => {
            let error = Error::config("remainder is \"pad\", but no token ends a document");
            Err(error.field("pad_value").hint("pass pad_value=, the token ID to pad with"))
        }
        (false, _, None) => Ok(Remainder::Drop),
        (false, _, Some(_)) => {
            let error = Error::config("pad_value is set, but nothing is padded");
            Err(error.field("pad_value").hint("pass remainder=\"pad\""))
        }
    }
}
