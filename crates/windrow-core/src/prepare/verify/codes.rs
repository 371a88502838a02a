//! Pre-encoded tracks: codes within their codebook, sums of the archives, and what `metadata.json` says of them.

use super::Work;
use crate::error::Result;
use crate::format::{CODEBOOK, Codes, Probe, first_outside};
use crate::record::Span;
use crate::source::Source;

/// Frames that are looked at at a time.
const PART: u64 = 1 << 16;

impl Work<'_> {
    /// Checks what opening a folder of tracks leaves unread.
    ///
    /// # Errors
    /// `Interrupted`.
    pub(super) fn tracks(&mut self, probe: &Probe, source: &dyn Source) -> Result<()> {
        for wrong in Codes.contradictions(probe).unwrap_or_default() {
            self.findings.problem(&wrong.file, wrong.record, &wrong.what, wrong.expected, wrong.found);
        }
        let mut scratch = Vec::new();
        let codebook = source.schema().vocab_size.unwrap_or(CODEBOOK).max(1);
        for record in 0..source.len() {
            let length = source.length(record)?;
            let mut start = 0;
            while start < length {
                let span = Span { record, start, len: PART.min(length - start) };
                // What cannot be read was found before.
                let Ok(values) = source.read(span, &mut scratch) else { break };
                if let Some((at, code)) = first_outside(&values, codebook) {
                    let (frame, channel) = (start + (at / values.channels) as u64, at % values.channels);
                    let file = source.locate(span)?.into_iter().next().map_or_else(String::new, |l| l.file);
                    self.findings.problem(
                        &file,
                        Some(record),
                        &format!("code at frame {frame}, channel {channel}"),
                        format!("0 to {}", codebook - 1),
                        code.to_string(),
                    );
                    break;
                }
                start += span.len;
            }
            self.step(0)?;
        }
        Ok(())
    }
}
