//! What a waveform becomes.

use windrow_core::{Error, Result};

/// Codes `[frames][codebooks]`, the codebook changing first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codes {
    values: Vec<u16>,
    codebooks: usize,
}

impl Codes {
    /// Codes in rows of one per codebook.
    ///
    /// # Errors
    /// `Config` when the values are not whole number of rows.
    pub fn new(values: Vec<u16>, codebooks: usize) -> Result<Self> {
        if codebooks == 0 || !values.len().is_multiple_of(codebooks) {
            return Err(Error::config(format!("{} codes in rows of {codebooks}", values.len()))
                .hint("codes are one row per frame, with a code of each codebook"));
        }
        Ok(Codes { values, codebooks })
    }

    /// How many frames: a frame has `hop_length` samples.
    pub fn frames(&self) -> usize {
        self.values.len() / self.codebooks.max(1)
    }

    /// Codes of a frame.
    pub fn codebooks(&self) -> usize {
        self.codebooks
    }

    /// All codes, frame by frame.
    pub fn values(&self) -> &[u16] {
        &self.values
    }

    /// All codes, frame by frame.
    pub fn into_values(self) -> Vec<u16> {
        self.values
    }

    /// Adds the frames of `more`, which are of as many codebooks.
    pub(crate) fn append(&mut self, more: Codes) {
        self.values.extend(more.values);
    }
}
