//! Every file of every part against its row and against what its task says, and token IDs against the vocabulary.

use windrow_core::format::verify::{Verifier, Verify};
use windrow_core::format::write::{PartFile, Parts as _};
use windrow_core::format::{Format, Probe};
use windrow_core::manifest::{BlockChecksums, Checksums, Part, PartRow, checksums_size};
use windrow_core::output::hex;
use windrow_core::store::Object;
use windrow_core::{Error, Kind, Result};
use xxhash_rust::xxh3::Xxh3;

use super::alone::row_of;
use super::files::Files;
use super::layout::Layout;
use super::lengths::{AGAIN, PartLengths, WIDTH};
use super::names::file_name;
use super::{Parts, alone, files, is_index, manifest_of, table};

/// Bytes that are read at a time: whole values of any dtype.
const AT_ONCE: u64 = 1 << 20;

impl Verify for Parts {
    fn records(&self, _: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        if let Some(manifest) = manifest_of(probe).filter(|manifest| is_index(manifest)) {
            return match table::rows(probe, manifest) {
                Ok(rows) => index(probe, &rows, out),
                Err(error) => out.found(error, &probe.display(), "content"),
            };
        }
        let found = files(probe).and_then(|files| Ok((rows(probe)?, files)));
        let (rows, files) = match found {
            Ok(found) => found,
            Err(error) => return out.found(error, &probe.display(), "content"),
        };
        let vocab = manifest_of(probe).and_then(|manifest| manifest.vocab_size);
        let vocab = vocab.filter(|_| files.stored.dtype.is_integer());
        let looked = Looked { files: &files, vocab };
        rows.iter().for_each(|row| out.expect(row.bytes));
        for (part, row) in rows.iter().enumerate() {
            looked.part(part, row, out)?;
        }
        Ok(())
    }
}

// The rows of an index in parts: their sizes and hashes.
fn index(probe: &Probe, rows: &[PartRow], out: &mut Verifier<'_>) -> Result<()> {
    for (task, row) in (0..).zip(rows) {
        let key = probe.below(&Layout.file(task, PartFile::Rows));
        out.findings.checked_records += row.records;
        out.expect(row.bytes);
        let name = probe.store.display(&key);
        let found = probe.store.open(&key).and_then(|object| hash_of(object.as_ref(), row.bytes));
        if let Some(found) = taken(found, &name, out)? {
            out.looks_at(&name);
            out.covers(&name, "xxh3");
            if found != row.xxh3 {
                out.findings.problem(&name, None, "xxh3", hex(row.xxh3), hex(found));
            }
        }
        out.step(row.bytes)?;
    }
    Ok(())
}

fn hash_of(object: &dyn Object, size: u64) -> Result<u64> {
    if object.size() != size {
        let what = format!("the file has {} bytes, expected {size}", object.size());
        return Err(Error::corrupt(what).at(object.name()).hint(AGAIN));
    }
    let (mut hash, mut scratch, mut at) = (Xxh3::new(), Vec::new(), 0);
    while at < size {
        let part = (size - at).min(AT_ONCE);
        hash.update(object.read(at, part as usize, &mut scratch)?);
        at += part;
    }
    Ok(hash.digest())
}

// The rows of all parts; of a part alone what its task says.
fn rows(probe: &Probe) -> Result<Vec<PartRow>> {
    match manifest_of(probe) {
        Some(manifest) => table::rows(probe, manifest),
        None => alone::row(probe).map(|(row, _)| vec![row]),
    }
}

struct Looked<'f> {
    files: &'f Files,
    /// Token IDs are below this.
    vocab: Option<u64>,
}

impl Looked<'_> {
    fn part(&self, part: usize, row: &PartRow, out: &mut Verifier<'_>) -> Result<()> {
        let name = |what| self.files.name(part, what);
        out.findings.checked_records += row.records;
        let lengths = taken(self.files.read_lengths(part), &name(PartFile::Lengths), out)?;
        let values = self.files.open(part, PartFile::Values, Some(row.bytes));
        if let Some(object) = taken(values, &name(PartFile::Values), out)? {
            out.looks_at(object.name());
            out.covers(object.name(), "xxh3");
            out.reads(object.name().to_string());
            let sums = self.values(part, object.as_ref(), row, lengths.as_ref(), out);
            if let Some(sums) = taken(sums, object.name(), out)? {
                let kept = self.kept(part, row.bytes, &sums);
                taken(kept, &name(PartFile::Sums), out)?;
            }
        }
        let said = self.said(part, row);
        taken(said, &name(PartFile::Manifest), out).map(drop)
    }

    // Reads all values: their hash and IDs are compared, and their block checksums given.
    fn values(
        &self,
        part: usize,
        object: &dyn Object,
        row: &PartRow,
        lengths: Option<&PartLengths>,
        out: &mut Verifier<'_>,
    ) -> Result<Vec<u8>> {
        let (mut hash, mut sums) = (Xxh3::new(), BlockChecksums::default());
        let (mut scratch, mut at, mut outside) = (Vec::new(), 0, None);
        while at < row.bytes {
            let size = (row.bytes - at).min(AT_ONCE);
            let bytes = object.read(at, size as usize, &mut scratch)?;
            hash.update(bytes);
            sums.update(bytes);
            if outside.is_none() {
                outside = self.outside(at, bytes);
            }
            at += size;
            out.step(size)?;
        }
        let found = hash.digest();
        if found != row.xxh3 {
            out.findings.problem(object.name(), None, "xxh3", hex(row.xxh3), hex(found));
        }
        if let (Some((byte, id)), Some(vocab)) = (outside, self.vocab) {
            let value = byte / self.files.stored.width();
            let record = lengths.and_then(|lengths| lengths.record_of(value).ok());
            let record = record.map(|record| self.files.table.records[part] + record);
            let found = format!("{id} at byte {byte}");
            out.findings.problem(object.name(), record, "id", format!("below {vocab}"), found);
        }
        Ok(sums.finish())
    }

    // The first ID outside the vocabulary, and where it is.
    fn outside(&self, at: u64, bytes: &[u8]) -> Option<(u64, u64)> {
        let vocab = self.vocab?;
        let width = self.files.stored.dtype.size();
        let mut ids = bytes.chunks_exact(width).map(|id| {
            let mut wide = [0; 8];
            wide[..width].copy_from_slice(id);
            u64::from_le_bytes(wide)
        });
        let place = ids.position(|id| id >= vocab)?;
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(&bytes[place * width..][..width]);
        Some((at + (place * width) as u64, u64::from_le_bytes(wide)))
    }

    // The block checksums that were kept are these.
    fn kept(&self, part: usize, size: u64, found: &[u8]) -> Result<()> {
        let object = self.files.open(part, PartFile::Sums, Some(checksums_size(size)))?;
        let name = object.name().to_string();
        let of = self.files.name(part, PartFile::Values);
        match Checksums::bare(object, &of, size)?.differ(0, found)? {
            None => Ok(()),
            Some(changed) => {
                let what = format!("the block checksums of {of} are others: {}", changed.text(size));
                Err(Error::corrupt(what).at(name).field("block checksums"))
            }
        }
    }

    // What its task says of the part is what its row says.
    fn said(&self, part: usize, row: &PartRow) -> Result<()> {
        let object = self.files.open(part, PartFile::Manifest, None)?;
        let said = Part::read(object.as_ref())?;
        let stored = self.files.stored;
        let task = self.files.task(part);
        let sizes = [
            (PartFile::Values, row.bytes, row.xxh3),
            (PartFile::Lengths, row.records.saturating_mul(WIDTH), row.lengths_xxh3),
        ];
        let differ = |field: &str, said: String, expected: String| {
            let what = format!("its task says {field} {said}, the table of parts {expected}");
            Err(Error::corrupt(what).at(object.name()).field(field))
        };
        for (field, said, expected) in [
            ("task", said.task, task),
            ("records", said.records, row.records),
            ("values", said.values, row.values),
        ] {
            if said != expected {
                return differ(field, said.to_string(), expected.to_string());
            }
        }
        if (said.dtype, said.channels)
            != (Some(stored.dtype), stored.channels.map(|channels| channels as u64))
        {
            return differ("dtype", format!("{:?}", (said.dtype, said.channels)), format!("{stored:?}"));
        }
        for (what, size, xxh3) in sizes {
            let listed = row_of(&said, what).map(|row| (row.size, row.xxh3.clone().unwrap_or_default()));
            let expected = (size, hex(xxh3));
            if listed.as_ref() != Some(&expected) {
                let name = file_name(task, what);
                return differ("files", format!("{name}: {listed:?}"), format!("{expected:?}"));
            }
        }
        Ok(())
    }
}

// What could be had; what is wrong with the data is a problem of the file, and there is nothing then.
fn taken<T>(result: Result<T>, name: &str, out: &mut Verifier<'_>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let what = if error.kind() == Kind::NotFound { "file" } else { "content" };
            out.found(error, name, what).map(|()| None)
        }
    }
}
