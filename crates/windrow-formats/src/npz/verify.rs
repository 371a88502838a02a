//! Archives of arrays: the CRC-32 that the archive holds of each.

use windrow_core::Result;
use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::{Format, Probe};
use windrow_core::store::{Io, Local};

use super::Npz;

impl Verify for Npz {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        match out.read_by(format, probe)? {
            Opened::Before => Ok(()),
            Opened::Not(error) => out.found(error, &probe.display(), "content"),
            // Arrays that are read in place are read without a look at their checksums.
            Opened::Read(source) => {
                source.files().iter().try_for_each(|info| archive(&info.file, info.size, out))
            }
        }
    }

    fn has_own_checksums(&self) -> bool {
        true
    }
}

fn archive(file: &str, size: u64, out: &mut Verifier<'_>) -> Result<()> {
    use windrow_core::store::Store;
    out.expect(size);
    let object = Local::new(file).io(Io::Pread).open("");
    let damaged = object.and_then(|object| Npz.damaged(object.as_ref(), &mut |bytes| out.step(bytes)));
    let damaged = match damaged {
        Ok(damaged) => damaged,
        Err(error) => return out.found(error, file, "content"),
    };
    for array in damaged {
        let what = format!("bytes {}..{}", array.bytes.start, array.bytes.end);
        let sum = array.crc32.map_or("an array".to_string(), |sum| format!("CRC-32 {sum:08x}"));
        out.findings.problem(&array.name, None, &what, sum, array.cause);
    }
    Ok(())
}
