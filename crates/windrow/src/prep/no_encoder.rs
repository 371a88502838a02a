//! What a build without tokenizers says of a job that tokenises.

use serde_json::Value;
use windrow_core::{Error, Result};

use super::how::{Encoder, Tokenizing};
use crate::prepare::{Remainder, TokenizeOptions};

impl Tokenizing {
    /// The encoder and the options that it says, of which a build without the feature `text` has none.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn make(&self) -> Result<(Encoder, TokenizeOptions)> {
        Err(Error::built_without("text"))
    }

    pub(super) fn to_json(&self, _remainder: Remainder) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
