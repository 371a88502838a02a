//! Shards of series: whether each file has the size that `meta.json` says.

use windrow_core::Result;
use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::{Format, Probe};
use windrow_core::manifest::Manifest;

use super::{OtherSize, Shards};

impl Verify for Shards {
    fn is_bare(&self, manifest: &Manifest) -> bool {
        manifest.dtype.is_some()
    }

    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        let opened = out.read_by(format, probe)?;
        let before = out.findings.n_problems;
        // What cannot be read was found before.
        for OtherSize { file, said, found } in self.other_sizes(probe).unwrap_or_default() {
            match found.map(|found| (found, found.checked_sub(said))) {
                Some((_, Some(surplus))) => out.note(format!(
                    "{file} holds {surplus} bytes more than meta.json says: they are never read"
                )),
                other if matches!(opened, Opened::Not(_)) => {
                    let expected = format!("{said} bytes, as meta.json says");
                    let (what, found) = match other {
                        None => ("file", "none".to_string()),
                        Some((found, _)) => ("size", format!("{found} bytes")),
                    };
                    out.findings.problem(&file, None, what, expected, found);
                }
                _ => {}
            }
        }
        match opened {
            Opened::Not(error) if out.findings.n_problems == before => {
                out.found(error, &probe.display(), "content")
            }
            _ => Ok(()),
        }
    }
}
