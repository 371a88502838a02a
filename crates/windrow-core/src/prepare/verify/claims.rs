//! Sizes, hashes and ids against what the side file says of them.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use super::Work;
use crate::array::DType;
use crate::error::Result;
use crate::format::{FileRow, SideFile};
use crate::prepare::atomic;
use crate::prepare::input::PART;
use crate::store::{Io, Local, Object, Store};

impl Work<'_> {
    /// Every file that the side file names.
    pub(super) fn claims(&mut self, base: &Path, side: &SideFile) -> Result<()> {
        let store = Local::new(base).io(Io::Pread);
        // Sizes of what is there: those in the side file are claims, and their sum may pass 64 bits.
        for entry in side.files.iter().filter_map(|f| store.entry(&f.name).ok()) {
            self.expect(entry.size);
        }
        self.told.extend(side.files.iter().map(|row| base.join(&row.name)));
        for row in &side.files {
            let object = store.open(&row.name);
            let Some(object) = self.findings.take(&row.name, "file", "to be there", object)? else {
                continue;
            };
            self.findings.checked_files += 1;
            self.claim(object.as_ref(), row, side)?;
        }
        if side.files.iter().any(|f| f.xxh3.is_none()) {
            const NOTE: &str =
                "no hashes were kept: a change that keeps size and time is not seen (index with --checksum)";
            // Once, however many side files a folder has.
            if !self.findings.notes.iter().any(|note| note == NOTE) {
                self.note(NOTE.into());
            }
        }
        Ok(())
    }

    fn claim(&mut self, object: &dyn Object, row: &FileRow, side: &SideFile) -> Result<()> {
        let name = &row.name;
        if object.size() != row.size {
            self.findings.problem(name, None, "size", row.size.to_string(), object.size().to_string());
            return self.step(object.size());
        }
        let Some(expected) = &row.xxh3 else {
            if row.modified_ns.is_some() && row.modified_ns != object.modified_ns() {
                let text = |ns: Option<u64>| ns.map_or("unknown".to_string(), |ns| format!("{ns} ns"));
                let (expected, found) = (text(row.modified_ns), text(object.modified_ns()));
                self.findings.problem(name, None, "time of change", expected, found);
            }
            return self.step(row.size);
        };
        // Samples with tracks hold more than ids; their rows are checked with the index.
        let ids = (side.format == "tokens").then_some(side.dtype.zip(side.vocab_size)).flatten();
        let mut hash = Box::new(Xxh3::new());
        let mut scratch = Vec::new();
        let mut at = 0;
        while at < row.size {
            let size = usize::try_from(row.size - at).unwrap_or(PART).min(PART);
            let bytes = object.read(at, size, &mut scratch)?;
            hash.update(bytes);
            if let Some((dtype, vocab)) = ids {
                self.ids(name, 0, at, bytes, dtype, vocab);
            }
            at += size as u64;
            self.step(size as u64)?;
        }
        let found = atomic::hex(hash.digest());
        if found != *expected {
            self.findings.problem(name, None, "xxh3", expected.clone(), found);
        }
        Ok(())
    }

    /// Every id below the vocabulary; `byte` is where `bytes` begin in the file.
    pub(super) fn ids(&mut self, name: &str, record: u64, byte: u64, bytes: &[u8], dtype: DType, vocab: u64) {
        for (i, id) in bytes.chunks_exact(dtype.size()).enumerate() {
            let mut wide = [0; 8];
            wide[..id.len()].copy_from_slice(id);
            let id = u64::from_le_bytes(wide);
            if id >= vocab {
                let at = byte + (i * dtype.size()) as u64;
                let expected = format!("below {vocab}");
                self.findings.problem(name, Some(record), "id", expected, format!("{id} at byte {at}"));
            }
        }
    }
}
