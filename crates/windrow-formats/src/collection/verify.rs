//! A folder of series: each part by its own format, and whether they fit each other.

use windrow_core::Result;
use windrow_core::format::verify::{Verifier, Verify};
use windrow_core::format::{Format, Options, Probe};

use super::{Collection, parts_of};

impl Verify for Collection {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        let before = out.findings.n_problems;
        for part in parts_of(probe, &Options::default()) {
            match part {
                Ok(Some((format, below))) => format.verifier().records(format, &below, out)?,
                Ok(None) => {}
                Err(error) => out.found(error, &probe.display(), "content")?,
            }
        }
        // Where nothing is wrong with any of them, they do not fit each other.
        match format.open(probe, &Options::default()) {
            Err(error) if out.findings.n_problems == before => out.found(error, &probe.display(), "content"),
            _ => Ok(()),
        }
    }

    fn is_described(&self, format: &dyn Format, probe: &Probe) -> bool {
        let _ = (format, probe);
        false
    }
}
