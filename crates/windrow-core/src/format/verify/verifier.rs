//! What verifying reports to: findings, progress, and what was read before.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::Findings;
use crate::array::DType;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::format::{Format, Options, Probe};
use crate::record::Span;
use crate::source::{Kind, SharedSource, Source};
use crate::spelling::spelt;
use crate::watch::{Progress, Watch, check};

/// Bytes between two reports of progress.
const PART: u64 = 1 << 20;

/// Problems of records after which no more of a data set's are looked for.
const MOST_PROBLEMS: u64 = 10_000;

/// What verifying reports to.
pub struct Verifier<'a> {
    /// What was found so far.
    pub findings: Findings,
    /// Data files that were read record by record.
    seen: BTreeSet<String>,
    /// Files are named from it in the report.
    folder: String,
    /// Data files that are in the report.
    looked: BTreeSet<String>,
    /// Files that a checksum covers, and which.
    covered: BTreeMap<String, &'static str>,
    /// Files of another size than was listed.
    pub(super) cut: BTreeSet<String>,
    /// What was opened by a format, or could not be.
    tried: BTreeSet<String>,
    now: Progress,
    watch: &'a dyn Watch,
}

impl<'a> Verifier<'a> {
    /// Nothing was looked at.
    pub fn new(watch: &'a dyn Watch) -> Verifier<'a> {
        Verifier {
            findings: Findings::default(),
            seen: BTreeSet::new(),
            folder: String::new(),
            looked: BTreeSet::new(),
            covered: BTreeMap::new(),
            cut: BTreeSet::new(),
            tried: BTreeSet::new(),
            now: Progress::default(),
            watch,
        }
    }

    /// Opens what is at `probe` by `format`, and reads every record. The source, where it could be opened and was not
    /// read before.
    ///
    /// # Errors
    /// `Interrupted`; `Io`.
    pub fn read_by(&mut self, format: &dyn Format, probe: &Probe) -> Result<Opened> {
        self.read_with(format, probe, &Options::default())
    }

    /// Opens what is at `probe` by `format` with these options, and reads every record.
    ///
    /// # Errors
    /// As [`Verifier::read_by`].
    pub fn read_with(&mut self, format: &dyn Format, probe: &Probe, options: &Options) -> Result<Opened> {
        if !self.tried.insert(probe.display()) {
            return Ok(Opened::Before);
        }
        let source = match format.open(probe, options) {
            Ok(source) => source,
            Err(error) if error.is_of_the_run() => return Err(error),
            Err(error) => return Ok(Opened::Not(error)),
        };
        // Read before, as part of a folder around it.
        if self.is_seen(source.as_ref()) {
            return Ok(Opened::Before);
        }
        self.count(probe, format.name(), source.as_ref());
        self.every_record(source.as_ref())?;
        Ok(Opened::Read(source))
    }

    /// Reads every record as [`Verifier::read_by`] does; data that cannot be opened is a finding.
    ///
    /// # Errors
    /// As [`Verifier::read_by`].
    pub fn read(&mut self, format: &dyn Format, probe: &Probe) -> Result<()> {
        match self.read_by(format, probe)? {
            Opened::Not(error) => self.found(error, &probe.display(), "content"),
            Opened::Before | Opened::Read(_) => Ok(()),
        }
    }

    /// Reads the files of each split by themselves, and opens those of a split together: several splits are not one data set,
    /// but each is one. `open` opens the files with these keys.
    ///
    /// # Errors
    /// As [`Verifier::read_by`]; `NotFound` for a file that is gone.
    pub fn read_splits(
        &mut self,
        format: &dyn Format,
        probe: &Probe,
        splits: &[Vec<String>],
        open: &dyn Fn(&[String]) -> Result<SharedSource>,
    ) -> Result<()> {
        // A file may be in several splits, as those of several configs: what is wrong with it is reported once.
        let mut reported = BTreeSet::new();
        for keys in splits {
            let before = self.findings.n_problems;
            for key in keys {
                self.read(format, &Probe::at(probe.table, probe.store.clone(), key)?)?;
            }
            match open(keys) {
                // Each of them is what it says: a reader names the columns that all have in one type.
                Err(e) if e.kind() == ErrorKind::Mismatch => {
                    let file = e.place().file.clone().unwrap_or_default();
                    let note = format!("{file}: {}; the files were read one by one", e.message());
                    if reported.insert(note.clone()) {
                        self.note(note);
                    }
                }
                // What is wrong with one file was reported; a missing shard was not.
                Err(e)
                    if (self.findings.n_problems == before || e.kind() == ErrorKind::NotFound)
                        && reported.insert(format!("{e:#}")) =>
                {
                    self.found(e, &probe.display(), "content")?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether all files of a source were read before.
    fn is_seen(&self, source: &dyn Source) -> bool {
        let files = source.files();
        !files.is_empty() && files.iter().all(|info| self.was_read(&info.file))
    }

    /// Whether this file was read record by record.
    pub fn was_read(&self, file: &str) -> bool {
        self.seen.contains(file)
    }

    /// This file is read record by record.
    pub fn reads(&mut self, file: String) {
        self.seen.insert(file);
    }

    /// This data file is in the report: as one that was read, unless more becomes known of it.
    pub fn looks_at(&mut self, file: &str) {
        self.looked.insert(name_below(&self.folder, file));
    }

    /// All of this file was compared with a checksum: with `by`.
    pub fn covers(&mut self, file: &str, by: &'static str) {
        self.covered.entry(name_below(&self.folder, file)).or_insert(by);
    }

    /// This file has another size than was listed, which was reported: what follows from it is not.
    pub fn is_cut(&mut self, file: String) {
        self.cut.insert(file);
    }

    /// Whether this file is in the report.
    pub fn looked_at(&self, file: &str) -> bool {
        self.looked.contains(&name_below(&self.folder, file))
    }

    /// Whether all of this file was compared with a checksum.
    pub fn is_covered(&self, file: &str) -> bool {
        self.covered.contains_key(&name_below(&self.folder, file))
    }

    /// Files are named from `folder` in the report, as [`Store::display`] says it.
    ///
    /// [`Store::display`]: crate::store::Store::display
    #[must_use]
    pub fn below(mut self, folder: &str) -> Self {
        self.folder = folder.trim_end_matches('/').to_string();
        self
    }

    /// What was found, with what is known of each file.
    pub fn finish(self) -> Findings {
        let mut findings = self.findings;
        findings.settle(&self.looked, &self.covered, &|file| name_below(&self.folder, file));
        findings
    }

    // The number of records that the manifest of this format says.
    fn count(&mut self, probe: &Probe, format: &str, source: &dyn Source) {
        let manifest = probe.manifest.as_ref().filter(|manifest| manifest.format == format);
        if let Some(said) = manifest.and_then(|manifest| manifest.records)
            && said != source.len()
        {
            let found = source.len().to_string();
            self.findings.problem(&probe.display(), None, "records", said.to_string(), found);
        }
    }

    fn every_record(&mut self, source: &dyn Source) -> Result<()> {
        let files = source.files();
        // Bytes that were compared with a hash before are counted once.
        let counted = self.findings.checked_bytes;
        let is_counted = !files.is_empty() && files.iter().all(|info| self.looked_at(&info.file));
        files.iter().for_each(|info| self.looks_at(&info.file));
        let at = files.first().map_or_else(String::new, |info| info.file.clone());
        files.iter().for_each(|info| self.expect(info.size));
        self.seen.extend(files.iter().map(|info| info.file.clone()));
        // What a row is of all bytes, on average.
        let of_row = files.iter().fold(0u64, |sum, info| sum.saturating_add(info.size)) / source.len().max(1);
        let (mut scratch, mut done) = (Vec::new(), 0);
        let before = self.findings.n_problems;
        for record in 0..source.len() {
            // An index may name any number of records that are not there, and each of them is a problem.
            if self.findings.n_problems - before >= MOST_PROBLEMS {
                self.note(format!(
                    "{at}: {MOST_PROBLEMS} problems in its first {record} records; the others were not read"
                ));
                break;
            }
            self.findings.checked_records += 1;
            let length = match source.length(record).and_then(|len| source.extras(record).map(|_| len)) {
                Ok(length) => length,
                Err(error) => {
                    self.found_in_record(error, &at, "record")?;
                    continue;
                }
            };
            if source.schema().kind == Kind::Rows {
                if let Err(error) = source.row(record) {
                    self.found_in_record(error, &at, "row")?;
                }
                done += of_row;
                if done >= PART {
                    self.step(std::mem::take(&mut done))?;
                }
                continue;
            }
            let mut start = 0;
            while start < length {
                let span = Span { record, start, len: PART.min(length - start) };
                match source.read(span, &mut scratch) {
                    Ok(values) => done += values.bytes.len() as u64,
                    Err(error) => {
                        self.found_in_record(error, &at, "values")?;
                        break;
                    }
                }
                for (track, _) in source.schema().stored_tracks() {
                    if let Err(error) = source.read_track(track, span, &mut scratch) {
                        self.found_in_record(error, &at, "values")?;
                    }
                }
                start += span.len;
                if done >= PART {
                    self.step(std::mem::take(&mut done))?;
                }
            }
        }
        self.step(done)?;
        if is_counted {
            self.findings.checked_bytes = counted;
        }
        Ok(())
    }

    // Bad records bring no bytes that would be reported as progress, and a stop is asked for there.
    fn found_in_record(&mut self, error: Error, at: &str, what: &str) -> Result<()> {
        self.found(error, at, what)?;
        self.step(0)
    }

    /// Every token ID below the vocabulary; `byte` is where `bytes` begin in the file.
    pub fn ids(&mut self, name: &str, record: u64, byte: u64, bytes: &[u8], dtype: DType, vocab: u64) {
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

    /// An error about the data is a problem at the place that it names, else of `what` at `at`.
    ///
    /// # Errors
    /// One that is about the run and not about the data.
    pub fn found(&mut self, error: Error, at: &str, what: &str) -> Result<()> {
        if error.is_of_the_run() {
            return Err(error);
        }
        let place = error.place().clone();
        let file = place.file.as_deref().unwrap_or(at);
        let what = place.field.as_deref().unwrap_or(what);
        if self.cut.contains(file) {
            return Ok(());
        }
        // It may be intact: another program may read it.
        let expected = match error.kind() {
            ErrorKind::Unsupported => "what this build reads",
            _ => "what the format promises",
        };
        let (expected, found) = (expected.to_string(), error.message().to_string());
        self.findings.problem(file, place.record, what, expected, found);
        Ok(())
    }

    /// Takes note of what is not a problem, or could not be checked.
    pub fn note(&mut self, text: String) {
        self.findings.notes.push(spelt(text));
    }

    /// Adds bytes that will be read. Saturating: an index may name one large, sparse file any number of times.
    pub fn expect(&mut self, bytes: u64) {
        self.now.total_bytes = self.now.total_bytes.saturating_add(bytes);
    }

    /// Adds bytes that were read.
    ///
    /// # Errors
    /// `Interrupted` when the watcher wants to stop.
    pub fn step(&mut self, bytes: u64) -> Result<()> {
        self.now.done_bytes = self.now.done_bytes.saturating_add(bytes);
        self.findings.checked_bytes = self.findings.checked_bytes.saturating_add(bytes);
        self.now.records = self.findings.checked_records;
        self.watch.progress(self.now);
        check(self.watch)
    }
}

// What a file is called in a folder; one elsewhere keeps its name.
fn name_below(folder: &str, file: &str) -> String {
    let rest = file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    rest.filter(|rest| !rest.is_empty() && !folder.is_empty()).unwrap_or(file).to_string()
}

/// What became of opening something.
pub enum Opened {
    /// It was opened and read, or tried, before.
    Before,
    /// It was opened, and every record was read.
    Read(SharedSource),
    /// Opening refuses it.
    Not(Error),
}
