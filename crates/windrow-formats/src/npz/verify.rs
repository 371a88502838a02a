//! Archives of arrays: the CRC-32 that the archive holds of each.

use windrow_core::Result;
use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::{Format, Probe};

use super::Npz;

impl Verify for Npz {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        match out.read_by(format, probe)? {
            Opened::Before => Ok(()),
            Opened::Not(error) => out.found(error, &probe.display(), "content"),
            // Arrays that are read in place are read without a look at their checksums.
            Opened::Read(_) => archive(probe, out),
        }
    }
}

fn archive(probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
    // They were read: nothing is counted twice.
    let counted = out.findings.checked_bytes;
    let damaged = probe.store.open(&probe.key).and_then(|object| {
        out.expect(object.size());
        Npz.damaged(object.as_ref(), &mut |bytes| out.step(bytes))
    });
    out.findings.checked_bytes = counted;
    let damaged = match damaged {
        Ok(damaged) => damaged,
        Err(error) => return out.found(error, &probe.display(), "content"),
    };
    if damaged.is_empty() {
        out.covers(&probe.display(), "CRC-32 of zip");
    }
    for array in damaged {
        let what = format!("bytes {}..{}", array.bytes.start, array.bytes.end);
        let sum = array.crc32.map_or("an array".to_string(), |sum| format!("CRC-32 {sum:08x}"));
        out.findings.problem(&array.name, None, &what, sum, array.cause);
    }
    Ok(())
}
