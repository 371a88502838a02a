//! Raw tokens: any bytes are token IDs, so only a manifest says more.

use windrow_core::format::verify::{Content, Verifier, Verify};
use windrow_core::format::{Format, Options, Probe};
use windrow_core::manifest::Manifest;
use windrow_core::{DType, Result};

use super::{Tokens, guess};

/// The narrowest dtype that such files usually have.
const NARROW: DType = DType::U16;

impl Verify for Tokens {
    fn content(&self) -> Content {
        Content::Unknown
    }

    // Nothing says the dtype here. What is not whole in the narrowest one was cut short; what is whole in it alone may be,
    // or is of that dtype.
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        let file = probe.display();
        match format.open(probe, &Options { dtype: Some(NARROW), ..Options::default() }) {
            Ok(source) => {
                let n_bytes = source.length(0)? * NARROW.size() as u64;
                if !n_bytes.is_multiple_of(guess::GUESSED.size() as u64) {
                    out.note(format!(
                        "{file}: nothing says its dtype, and it is not whole {} IDs: it was cut short unless they are narrower",
                        guess::GUESSED
                    ));
                }
                Ok(())
            }
            Err(error) => {
                let hint = error.hint_text().map(|hint| format!("{file}: {hint}"));
                hint.into_iter().for_each(|hint| out.note(hint));
                out.found(error, &file, "content")
            }
        }
    }

    fn ids(&self, manifest: &Manifest) -> Option<(DType, u64)> {
        manifest.dtype.zip(manifest.vocab_size)
    }
}
