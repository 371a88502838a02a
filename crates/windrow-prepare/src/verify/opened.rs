//! Data sets as their formats see them: which format it is, and what that finds.

use std::path::Path;

use windrow_core::format::lines::INDEX_FOLDER;
use windrow_core::format::verify::Content;
use windrow_core::format::{Format, Options, Probe, choose, open};
use windrow_core::store::{Entry, key, plain_name};
use windrow_core::{Kind, Result};

use super::Work;

impl Work<'_> {
    /// Checks what is at `key` below `root` by the format that recognises it, which is given; `None` when no format does,
    /// or its content is checked elsewhere.
    pub(super) fn by_format(&mut self, root: &Path, key: &str) -> Result<Option<&'static dyn Format>> {
        let Some((probe, format)) = self.recognised(root, key)? else { return Ok(None) };
        let verifier = format.verifier();
        if verifier.content() != Content::Records {
            return Ok(None);
        }
        let looked = verifier.records(format, &probe, &mut self.out);
        self.out.findings.take(&probe.display(), "content", "data that can be opened", looked)?;
        Ok(Some(format))
    }

    /// Parts of what is at `key` below `root` that are data sets of their own, as the splits of a corpus.
    pub(super) fn parts(&self, root: &Path, key: &str) -> Result<Vec<String>> {
        let found = self.recognised(root, key)?;
        Ok(found.map_or_else(Vec::new, |(probe, format)| format.parts(&probe)))
    }

    /// What is at `key` below `root` and the format that reads it; `None` where none does.
    pub(super) fn recognised(&self, root: &Path, key: &str) -> Result<Option<(Probe, &'static dyn Format)>> {
        let found = Probe::at(self.table, self.places.root(root)?, key)
            .and_then(|probe| choose(self.table, &probe, None).map(|format| (probe, format)));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(e) if e.is_of_the_run() => Err(e),
            Err(_) => Ok(None),
        }
    }

    /// Opens what is at `key` below `root`, where nothing is known to be wrong with it: what opening refuses is not good.
    pub(super) fn opens(&mut self, root: &Path, key: &str, index_folder: &str, before: u64) -> Result<()> {
        if self.out.findings.n_problems > before {
            return Ok(());
        }
        let options = Options { index_folder: Some(index_folder.to_string()), ..Options::default() };
        let options = if index_folder == INDEX_FOLDER { Options::default() } else { options };
        let store = self.places.root(root)?;
        let opened =
            Probe::at(self.table, store.clone(), key).and_then(|probe| open(self.table, &probe, &options));
        match opened {
            Ok(_) => Ok(()),
            // What is not declared is not damage, the dtype of samples for one; nor is what the system refuses.
            Err(e) if matches!(e.kind(), Kind::Config | Kind::Unrecognised | Kind::Io | Kind::Memory) => {
                Ok(())
            }
            Err(e) => self.out.found(e, &store.display(key), "content"),
        }
    }

    /// Checks the file at `key` below `root`, of which nothing says what it should hold, as far as its format can tell.
    pub(super) fn by_itself(&mut self, root: &Path, key: &str) -> Result<()> {
        match self.recognised(root, key)? {
            Some((probe, format)) if format.verifier().content() == Content::Unknown => {
                format.verifier().records(format, &probe, &mut self.out)
            }
            _ => Ok(()),
        }
    }

    /// Checks each of the files of a folder that are its records.
    pub(super) fn each_by_itself(&mut self, root: &Path, entries: &[Entry]) -> Result<()> {
        let Some((_, format)) = self.recognised(root, "")? else { return Ok(()) };
        if format.verifier().content() != Content::Unknown {
            return Ok(());
        }
        let is_record = |entry: &&Entry| {
            let ends = |suffix: &&str| key::has_suffix(plain_name(&entry.key), suffix);
            !entry.key.contains('/') && format.info().data_suffixes.iter().any(ends)
        };
        entries.iter().filter(is_record).try_for_each(|entry| {
            self.out.looks_at(&entry.key);
            self.by_itself(root, &entry.key)
        })
    }

    /// The format of this name.
    pub(super) fn format(&self, name: &str) -> Option<&'static dyn Format> {
        self.table.iter().copied().find(|format| format.name() == name)
    }
}
