//! Every sample is read, and every shard that the index has a hash of is compared with it.

use windrow_core::Result;
use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::{Format, Probe};
use windrow_core::store::Object;

use super::shards::{Shards, check_hashes, known_hash};
use super::{Mds, read_index};
use crate::index_json::index_key;

impl Verify for Mds {
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        // Nothing says what the index should be; it is read.
        if let Some(index) = index_key(probe) {
            out.looks_at(&probe.store.display(&index));
        }
        match out.read_by(format, probe)? {
            Opened::Before => Ok(()),
            Opened::Not(error) => out.found(error, &probe.display(), "content"),
            Opened::Read(_) => hashes(probe, out),
        }
    }
}

fn hashes(probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
    let mut index = read_index(probe)?;
    let shards = Shards::open(probe, &mut index)?;
    let mut unknown = 0u64;
    for (number, part) in shards.stored() {
        unknown += u64::from(!part.hashes.is_empty() && known_hash(part).is_none());
        let object: &dyn Object = shards.files.get(number)?;
        match (check_hashes(object, part), known_hash(part)) {
            (Err(error), _) => out.found(error, object.name(), "hash")?,
            (Ok(()), Some(name)) => out.covers(object.name(), name),
            (Ok(()), None) => {}
        }
        out.step(0)?;
    }
    if unknown > 0 {
        out.note(format!(
            "{unknown} shards have hashes of kinds that are not known here (sha1, xxh64 and xxh3_64 are)"
        ));
    }
    Ok(())
}
