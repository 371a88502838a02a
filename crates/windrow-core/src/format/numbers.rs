//! Options that speak of numbers, where the files themselves say which numbers they hold.

use crate::error::{Error, Result};
use crate::format::Options;
use crate::format::vocabulary::{check_ids, tokenizer_must_be};
use crate::manifest::Manifest;
use crate::source::Source;

/// The dtype that was asked for must be the stored one; IDs must be below the vocabulary that was given; a tokenizer is
/// known where a manifest says it. `at` is what a person calls the data.
///
/// # Errors
/// `Mismatch`; `Corrupt` for an ID outside the vocabulary; `Config` where values are not IDs.
pub fn check_number_options(
    source: &dyn Source,
    manifest: Option<&Manifest>,
    options: &Options,
    at: &str,
) -> Result<()> {
    tokenizer_must_be(manifest, options.tokenizer.as_deref(), at)?;
    let stored = source.schema().element.dtype;
    if let Some(asked) = options.dtype.filter(|asked| *asked != stored) {
        return Err(Error::mismatch(format!("dtype {asked} was asked for, the file holds {stored}"))
            .at(at)
            .hint("leave @dtype@ out"));
    }
    match options.vocab_size {
        Some(vocab_size) => check_ids(source, vocab_size),
        None => Ok(()),
    }
}
