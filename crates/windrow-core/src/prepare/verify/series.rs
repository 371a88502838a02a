//! Formats that check their own claims when they are opened, such as series: opened, and read from beginning to end.

use std::path::Path;
use std::sync::Arc;

use super::{Findings, Work, is_of_the_run};
use crate::error::{Error, Kind, Result};
use crate::format::{
    Codes, Collection, Forager, Format, INDEX_FOLDER, Jsonl, Npz, Options, OtherSize, Probe, Shards, Tokens,
    choose, open,
};
use crate::record::Span;
use crate::source::Source;
use crate::store::{Io, Local, Store};

/// Values that are read at a time, and bytes between two looks at whether to stop.
const PART: u64 = 1 << 20;

impl Work<'_> {
    /// Checks what lies at `key` below `root` by the format that recognises it, whose name is given; `None` when that is
    /// none, or one whose claims are checked elsewhere.
    pub(super) fn by_format(&mut self, root: &Path, key: &str) -> Result<Option<&'static str>> {
        let Ok(probe) = Probe::at(self.table, Arc::new(Local::new(root)), key) else { return Ok(None) };
        let Ok(format) = choose(self.table, &probe, None) else { return Ok(None) };
        if [Forager.name(), Jsonl.name(), Tokens.name()].contains(&format.name()) {
            return Ok(None);
        }
        self.read_by(format, &probe)?;
        Ok(Some(format.name()))
    }

    /// Parts of what lies at `key` below `root` that are data sets of their own, as the splits of a corpus.
    pub(super) fn parts(&self, root: &Path, key: &str) -> Vec<String> {
        let Ok(probe) = Probe::at(self.table, Arc::new(Local::new(root)), key) else { return Vec::new() };
        choose(self.table, &probe, None).map_or_else(|_| Vec::new(), |format| format.parts(&probe))
    }

    /// Opens what lies at `key` below `root`, where nothing is known to be wrong with it: what opening refuses is not good.
    pub(super) fn opens(&mut self, root: &Path, key: &str, index_folder: &str, before: u64) -> Result<()> {
        if self.findings.n_problems > before {
            return Ok(());
        }
        let options = Options { index_folder: Some(index_folder.to_string()), ..Options::default() };
        let options = if index_folder == INDEX_FOLDER { Options::default() } else { options };
        let store = Arc::new(Local::new(root));
        let opened =
            Probe::at(self.table, store.clone(), key).and_then(|probe| open(self.table, &probe, &options));
        match opened {
            Ok(_) => Ok(()),
            // What nobody said is no damage, the dtype of samples for one; nor is what the system refuses.
            Err(e) if matches!(e.kind(), Kind::Config | Kind::Unrecognised | Kind::Io | Kind::Memory) => {
                Ok(())
            }
            Err(e) => self.found(e, &store.display(key), "content"),
        }
    }

    // What a format reads there, from beginning to end.
    fn read_by(&mut self, format: &dyn Format, probe: &Probe) -> Result<()> {
        if !self.tried.insert(probe.display()) {
            return Ok(());
        }
        match format.open(probe, &Options::default()) {
            // Read before, as part of a folder around it.
            Ok(source) if self.is_seen(source.as_ref()) => {}
            Ok(source) => {
                self.count(probe, format.name(), source.as_ref());
                self.every_record(source.as_ref())?;
                self.archives(source.as_ref())?;
                if format.name() == Codes.name() {
                    self.tracks(probe, source.as_ref())?;
                }
            }
            Err(error) => self.not_opened(error, format, probe)?,
        }
        if format.name() == Shards.name() {
            // What cannot be read was found before.
            for OtherSize { file, said, found } in Shards.other_sizes(probe).unwrap_or_default() {
                if let Some(surplus) = found.and_then(|found| found.checked_sub(said)) {
                    self.note(format!(
                        "{file} holds {surplus} bytes more than meta.json says: they are never read"
                    ));
                }
            }
        }
        Ok(())
    }

    // Opening stops at the first thing that is wrong; each part by itself says what is wrong with it.
    fn not_opened(&mut self, error: Error, format: &dyn Format, probe: &Probe) -> Result<()> {
        if is_of_the_run(&error) {
            return Err(error);
        }
        let before = self.findings.n_problems;
        let name = format.name();
        if name == Shards.name() {
            for OtherSize { file, said, found } in Shards.other_sizes(probe).unwrap_or_default() {
                let expected = format!("{said} bytes, as meta.json says");
                match found {
                    None => self.findings.problem(&file, None, "file", expected, "none".to_string()),
                    Some(found) if found < said => {
                        self.findings.problem(&file, None, "size", expected, format!("{found} bytes"));
                    }
                    Some(_) => {}
                }
            }
        } else if name == Collection.name() {
            for part in Collection.parts_of(probe, &Options::default()) {
                match part {
                    Ok(Some((format, below))) => self.read_by(format, &below)?,
                    Ok(None) => {}
                    Err(error) => self.found(error, &probe.display(), "content")?,
                }
            }
        } else if name == Codes.name() && probe.is_folder {
            for key in Codes.keys(probe).unwrap_or_default() {
                self.read_by(format, &Probe::at(self.table, probe.store.clone(), &key)?)?;
            }
        }
        // Where nothing is wrong with any of them, they do not fit each other.
        if self.findings.n_problems == before {
            self.found(error, &probe.display(), "content")?;
        }
        Ok(())
    }

    fn is_seen(&self, source: &dyn Source) -> bool {
        let files = source.files();
        !files.is_empty() && files.iter().all(|info| self.seen.contains(&info.file))
    }

    // The number of records that the manifest of this format says.
    fn count(&mut self, probe: &Probe, format: &str, source: &dyn Source) {
        let said = probe
            .manifest
            .as_ref()
            .filter(|manifest| manifest.format == format)
            .map(|manifest| manifest.records);
        if let Some(Some(said)) = said
            && said != source.len()
        {
            let found = source.len().to_string();
            self.findings.problem(&probe.display(), None, "records", said.to_string(), found);
        }
    }

    fn every_record(&mut self, source: &dyn Source) -> Result<()> {
        let files = source.files();
        self.findings.checked_files += files.len() as u64;
        let at = files.first().map_or_else(String::new, |info| info.file.clone());
        files.iter().for_each(|info| self.expect(info.size));
        self.seen.extend(files.iter().map(|info| info.file.clone()));
        let (mut scratch, mut done) = (Vec::new(), 0);
        for record in 0..source.len() {
            self.findings.checked_records += 1;
            let length = match source.length(record).and_then(|len| source.extras(record).map(|_| len)) {
                Ok(length) => length,
                Err(error) => {
                    self.found(error, &at, "record")?;
                    continue;
                }
            };
            let mut start = 0;
            while start < length {
                let span = Span { record, start, len: PART.min(length - start) };
                match source.read(span, &mut scratch) {
                    Ok(values) => done += values.bytes.len() as u64,
                    Err(error) => {
                        self.found(error, &at, "values")?;
                        break;
                    }
                }
                start += span.len;
                if done >= PART {
                    self.step(std::mem::take(&mut done))?;
                }
            }
        }
        self.step(done)
    }

    // Arrays that are read in place are read without a look at their sums.
    fn archives(&mut self, source: &dyn Source) -> Result<()> {
        for info in source.files().iter().filter(|info| Npz::is_named(&info.file)) {
            self.expect(info.size);
            let object = Local::new(&info.file).io(Io::Pread).open("");
            let damaged =
                object.and_then(|object| Npz.damaged(object.as_ref(), &mut |bytes| self.step(bytes)));
            let damaged = match damaged {
                Ok(damaged) => damaged,
                Err(error) => {
                    self.found(error, &info.file, "content")?;
                    continue;
                }
            };
            for array in damaged {
                let what = format!("bytes {}..{}", array.bytes.start, array.bytes.end);
                let sum = array.crc32.map_or("an array".to_string(), |sum| format!("CRC-32 {sum:08x}"));
                self.findings.problem(&array.name, None, &what, sum, array.cause);
            }
        }
        Ok(())
    }

    // An error about the data is a finding, at the place that it names.
    fn found(&mut self, error: Error, at: &str, what: &str) -> Result<()> {
        if is_of_the_run(&error) {
            return Err(error);
        }
        let place = error.place().clone();
        let file = place.file.as_deref().unwrap_or(at);
        let what = place.field.as_deref().unwrap_or(what);
        Findings::problem(
            &mut self.findings,
            file,
            place.record,
            what,
            "what the format promises".to_string(),
            error.message().to_string(),
        );
        Ok(())
    }
}
