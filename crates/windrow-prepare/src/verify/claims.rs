//! Sizes, hashes and IDs against what the manifest says of them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use windrow_core::format::{Format, other_half};
use windrow_core::manifest::{BlockChecksums, CHECKSUMS_FILE, Checksums, FileRow, Manifest};
use windrow_core::output::hex;
use windrow_core::store::{Object, Store, expanded, key, open_if_there};
use windrow_core::{Kind, Result};
use xxhash_rust::xxh3::Xxh3;

use super::Work;
use crate::UNLEARNED;
use crate::input::PART;

/// Where block checksums may be.
pub(super) struct SumsAt<'a> {
    /// The folder from which they name files, below the one that is verified.
    pub(super) folder: &'a str,
    /// Their file, from there.
    pub(super) file: &'a str,
    /// Also of files that the manifest does not name.
    pub(super) all: bool,
}

impl Work<'_> {
    /// Every file that the manifest names, and those whose block checksums are in `sums`.
    pub(super) fn claims(&mut self, base: &Path, manifest: &Manifest, sums: &SumsAt<'_>) -> Result<()> {
        let store = self.places.root_by_position(base)?;
        let sums_name = key::below(sums.folder, sums.file);
        let found = open_if_there(store.as_ref(), &sums_name)
            .and_then(|object| object.map(Checksums::open).transpose())
            .and_then(|found| found.map(|found| self.of_its_file(store.as_ref(), found, sums)).transpose());
        let kept = self
            .out
            .findings
            .take(&sums_name, "block checksums", "some that can be understood", found)?
            .flatten();
        // Sizes of what is there: those in the manifest are claims, and their sum may pass 64 bits.
        for entry in manifest.files.iter().filter_map(|f| store.entry(&f.name).ok()) {
            self.out.expect(entry.size);
        }
        self.described.extend(manifest.files.iter().map(|row| base.join(&row.name)));
        for row in &manifest.files {
            let object = self.data_file(&store, &row.name, manifest);
            let Some(object) = self.out.findings.take(&row.name, "file", "to be there", object)? else {
                continue;
            };
            self.out.looks_at(&row.name);
            self.claim(object.as_ref(), row, manifest, kept.as_ref().map(|kept| (kept, sums)))?;
        }
        let described: HashSet<&str> = manifest.files.iter().map(|row| row.name.as_str()).collect();
        let mut others = manifest.index.clone();
        let named = kept.as_ref().filter(|_| sums.all).into_iter().flat_map(Checksums::files);
        let named = named.map(|(name, size)| (key::below(sums.folder, name), size));
        let is_other = |name: &String| {
            !described.contains(name.as_str()) && manifest.index.iter().all(|row| row.name != *name)
        };
        others.extend(named.filter(|(name, _)| is_other(name)).map(|(name, size)| FileRow {
            name,
            size,
            ..FileRow::default()
        }));
        let data = self.out.findings.checked_bytes;
        for row in &others {
            let before = self.out.findings.n_problems;
            self.other(&store, row, manifest, kept.as_ref().map(|kept| (kept, sums)))?;
            let edited = |format: &&dyn Format| (format.info().names.edited)(key::name_of(&row.name));
            if self.out.findings.n_problems > before
                && let Some(hint) = self.table.iter().find_map(edited)
            {
                self.out.note(format!("{} was edited, or is damaged: {hint}", row.name));
            }
        }
        // What describes the data is not counted with it.
        self.out.findings.checked_bytes = data;
        self.note_unlearned(manifest);
        self.note_without_hashes(manifest)
    }

    // Block checksums that are kept beside a file, and may have been copied or renamed with it, as those of that file.
    fn of_its_file(&self, store: &dyn Store, sums: Checksums, at: &SumsAt<'_>) -> Result<Checksums> {
        match at.file.strip_suffix(CHECKSUMS_FILE).and_then(|file| file.strip_suffix('.')) {
            Some(file) => sums.of_file(store, at.folder, file, other_half(self.table, file).as_deref()),
            None => Ok(sums),
        }
    }

    fn note_unlearned(&mut self, manifest: &Manifest) {
        let count = |name: &str| manifest.statistics.get(name).and_then(serde_json::Value::as_u64);
        if let (Some(unlearned), Some(all)) = (count(UNLEARNED), count("documents")) {
            self.out.note(format!(
                "nothing is learned of {unlearned} of {all} documents: their loss mask excludes every token"
            ));
        }
    }

    // A file beside the data that has a hash, or block checksums.
    fn other(
        &mut self,
        store: &Arc<dyn Store>,
        row: &FileRow,
        manifest: &Manifest,
        kept: Option<(&Checksums, &SumsAt<'_>)>,
    ) -> Result<()> {
        let object = self.data_file(store, &row.name, manifest);
        let Some(object) = self.out.findings.take(&row.name, "file", "to be there", object)? else {
            return Ok(());
        };
        self.out.expect(object.size());
        if row.xxh3.is_none() && object.size() != row.size {
            let (expected, found) =
                (format!("those of {} bytes", row.size), format!("{} bytes", object.size()));
            self.out.findings.problem(&row.name, None, "block checksums", expected, found);
            return self.out.step(object.size());
        }
        self.claim(object.as_ref(), row, manifest, kept)
    }

    fn note_without_hashes(&mut self, manifest: &Manifest) -> Result<()> {
        if manifest.files.iter().any(|f| f.xxh3.is_none()) {
            const NOTE: &str = "read, not checked: no hashes were kept, so a change that keeps size and time is not seen (`windrow index --checksum` keeps some)";
            // Once, however many manifests a folder has.
            if !self.out.findings.notes.iter().any(|note| note == NOTE) {
                self.out.note(NOTE.into());
            }
        }
        Ok(())
    }

    fn claim(
        &mut self,
        object: &dyn Object,
        row: &FileRow,
        manifest: &Manifest,
        kept: Option<(&Checksums, &SumsAt<'_>)>,
    ) -> Result<()> {
        let name = &row.name;
        if object.size() != row.size {
            self.out.findings.problem(name, None, "size", row.size.to_string(), object.size().to_string());
            return self.out.step(object.size());
        }
        let kept = kept.and_then(|(kept, at)| {
            let name = name.strip_prefix(at.folder)?.trim_start_matches('/');
            kept.find(name).map(|(start, size)| (kept, start, size, at))
        });
        if let Some((_, _, size, at)) = kept
            && size != row.size
        {
            let (expected, found) =
                (format!("those of {name}, {} bytes", row.size), format!("of {size} bytes"));
            let sums_name = key::below(at.folder, at.file);
            self.out.findings.problem(&sums_name, None, "block checksums", expected, found);
        }
        let kept = kept.filter(|(_, _, size, _)| *size == row.size);
        if row.xxh3.is_none() && kept.is_none() {
            // A store knows no times of its own.
            let is_described = row.modified_ns.is_some() && object.modified_ns().is_some();
            if is_described && row.modified_ns != object.modified_ns() {
                let text = |ns: Option<u64>| ns.map_or("unknown".to_string(), |ns| format!("{ns} ns"));
                let (expected, found) = (text(row.modified_ns), text(object.modified_ns()));
                self.out.findings.problem(name, None, "time of change", expected, found);
            }
            if let (Some(expected), Some(found)) = (&row.etag, object.tag())
                && expected != found
            {
                self.out.findings.problem(name, None, "version", expected.clone(), found.to_string());
            }
            return self.out.step(row.size);
        }
        self.out.covers(name, if row.xxh3.is_some() { "xxh3" } else { "block checksums" });
        // Samples with per-token arrays hold more than token IDs; their rows are checked with the index.
        let ids = self.format(&manifest.format).and_then(|format| format.verifier().ids(manifest));
        let mut hash = Box::new(Xxh3::new());
        let mut sums = BlockChecksums::default();
        let mut scratch = Vec::new();
        let mut at = 0;
        while at < row.size {
            let size = usize::try_from(row.size - at).unwrap_or(PART).min(PART);
            let bytes = object.read(at, size, &mut scratch)?;
            hash.update(bytes);
            sums.update(bytes);
            if let Some((dtype, vocab)) = ids {
                self.out.ids(name, 0, at, bytes, dtype, vocab);
            }
            at += size as u64;
            self.out.step(size as u64)?;
        }
        let found = hex(hash.digest());
        let is_other = row.xxh3.as_ref().is_some_and(|expected| *expected != found);
        let changed =
            kept.map(|(kept, start, _, _)| kept.differ(start, &sums.finish())).transpose()?.flatten();
        let place = changed.as_ref().map(|changed| changed.text(row.size));
        match (&row.xxh3, place, kept) {
            (Some(expected), place, _) if is_other => {
                let place = place.map_or(String::new(), |place| format!(": {place}"));
                self.out.findings.problem(name, None, "xxh3", expected.clone(), format!("{found}{place}"));
            }
            (Some(_), Some(place), Some((_, _, _, at))) => {
                let sums_name = key::below(at.folder, at.file);
                let found = format!("others, though its hash holds: {place}");
                self.out.findings.problem(
                    &sums_name,
                    None,
                    "block checksums",
                    format!("those of {name}"),
                    found,
                );
            }
            (None, Some(place), _) => {
                self.out.findings.problem(
                    name,
                    None,
                    "block checksums",
                    "those that were kept".to_string(),
                    place,
                );
            }
            _ => {}
        }
        Ok(())
    }

    // A file that a manifest names, or what it was compressed to since, expanded.
    fn data_file(&self, store: &Arc<dyn Store>, name: &str, manifest: &Manifest) -> Result<Arc<dyn Object>> {
        let found = store.open(name);
        let is_gone = found.as_ref().is_err_and(|e| e.kind() == Kind::NotFound);
        let was = |compressed: &String| {
            let before = self.format(&manifest.format).map(|format| format.info().names.before);
            before.and_then(|before| before(compressed)) == Some(name)
        };
        let compressed = [".gz", ".zst"].map(|suffix| format!("{name}{suffix}"));
        match compressed.iter().find(|name| is_gone && was(name) && store.entry(name).is_ok()) {
            Some(compressed) => expanded(store, compressed, None),
            None => found,
        }
    }
}
