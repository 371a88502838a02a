//! Pre-encoded tracks: codes within their codebook, and what `metadata.json` says of them.

use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::vocabulary::first_outside;
use windrow_core::format::{Format, Options, Probe};
use windrow_core::source::Source;
use windrow_core::{Result, Span};

use super::prompts::METADATA;
use super::{CODEBOOK, Codes, list, tracks};

/// Frames that are looked at at a time.
const PART: u64 = 1 << 16;

impl Verify for Codes {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        match out.read_by(format, probe)? {
            Opened::Before => Ok(()),
            Opened::Read(source) => check(probe, source.as_ref(), out),
            // Opening stops at the first that is wrong; each by itself says what is wrong with it.
            Opened::Not(error) => {
                let before = out.findings.n_problems;
                for key in if probe.is_folder { list(probe).unwrap_or_default() } else { Vec::new() } {
                    self.records(format, &Probe::at(probe.table, probe.store.clone(), &key)?, out)?;
                }
                if out.findings.n_problems == before {
                    out.found(error, &probe.display(), "content")
                } else {
                    Ok(())
                }
            }
        }
    }

    // A checkpoint of a model is called as a track is.
    fn is_described(&self, format: &dyn Format, probe: &Probe) -> bool {
        let _ = format;
        probe.store.entry(&probe.below(METADATA)).is_ok()
    }
}

// What opening leaves unread.
fn check(probe: &Probe, source: &dyn Source, out: &mut Verifier<'_>) -> Result<()> {
    // What metadata.json says and the tensors do not, and tracks that look transposed: opening only warns of it.
    let tracks = match tracks(probe, &Options::default()) {
        Err(e) if e.is_of_the_run() => return Err(e),
        found => found.ok(),
    };
    for wrong in tracks.map(|tracks| tracks.contradictions()).unwrap_or_default() {
        out.findings.problem(&wrong.file, wrong.record, &wrong.what, wrong.expected, wrong.found);
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
                out.findings.problem(
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
        out.step(0)?;
    }
    Ok(())
}
