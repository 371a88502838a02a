//! Every sample is read, and so is the index, which nothing says anything of.

use windrow_core::Result;
use windrow_core::format::verify::{Verifier, Verify};
use windrow_core::format::{Format, Probe};

use super::LitData;
use crate::index_json::index_key;

impl Verify for LitData {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        if let Some(index) = index_key(probe) {
            out.looks_at(&probe.store.display(&index));
        }
        out.read(format, probe)
    }
}
