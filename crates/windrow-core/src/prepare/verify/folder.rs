//! A folder: every data set in it and below it.

use crate::manifest::MANIFEST_FILE;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::claims::SumsAt;
use super::{VerifyOptions, Work};
use crate::error::{Kind, Result};
use crate::format::{self, Codes, Collection, Confidence, Format, Probe};
use crate::manifest::CHECKSUMS_FILE;
use crate::manifest::Manifest;
use crate::output::files;
use crate::store::{Entry, Local, Store, key};

impl Work<'_> {
    /// Everything that is described below `base`, and every line of JSON; what nothing describes is noted.
    pub(super) fn folder(&mut self, base: &Path, options: &VerifyOptions) -> Result<()> {
        self.leftovers(base, None, options.gc)?;
        let entries = Local::new(base).walk("")?;
        let mut is_described = self.own_manifests(base, &entries)?;
        let folders = folders(&entries);
        for folder in without_files(base, &folders)? {
            self.leftovers(&folder, None, options.gc)?;
        }
        // Folders that a format reads as a whole: nothing below them stands for itself.
        let mut whole: BTreeSet<&str> = BTreeSet::new();
        for folder in &folders {
            if is_in(&whole, folder) {
                continue;
            }
            if !folder.is_empty() && is_index(&base.join(folder)) {
                // Looked at with what it is the index of.
                whole.insert(folder);
                continue;
            }
            if !folder.is_empty() {
                self.leftovers(&base.join(folder), None, options.gc)?;
            }
            let before = self.findings.n_problems;
            let found = self.data_set(base, folder, &entries, options)?;
            is_described |= found != Found::Nothing;
            let sums = base.join(folder).join(CHECKSUMS_FILE);
            if found == Found::Nothing && self.findings.n_problems == before && files::exists(&sums) {
                // Only windrow writes them, and never alone. What is damaged was told.
                is_described = true;
                let expected = format!("{} or meta.json beside it", MANIFEST_FILE);
                self.findings.problem(
                    &sums.display().to_string(),
                    None,
                    "description",
                    expected,
                    "none".to_string(),
                );
            }
            if found == Found::Whole {
                whole.insert(folder);
            }
        }
        let rest = |entry: &&Entry| !is_in(&whole, &entry.key);
        let lines: Vec<&Entry> = format::lines_among(&Local::new(base), &entries, false)?
            .into_iter()
            .filter(|entry| rest(entry) && !self.seen.contains(&path_of(base, entry)))
            .collect();
        let once = format::refuse_copies(lines.iter().map(|e| e.key.as_str()), |key| {
            base.join(key).display().to_string()
        });
        self.findings.take(&base.display().to_string(), "names", "each file once", once)?;
        lines.iter().for_each(|e| self.expect(e.size));
        for entry in &lines {
            self.json_lines(&base.join(&entry.key))?;
        }
        if is_described {
            self.note_untold(base, entries.iter().filter(rest));
        } else if lines.is_empty() {
            self.is_data(base, "", options)?;
            self.note(format!(
                "nothing here says what it should be: no {}, no index, no JSONL",
                MANIFEST_FILE
            ));
        }
        Ok(())
    }

    // Files of data that nothing spoke of.
    fn note_untold<'e>(&mut self, base: &Path, entries: impl Iterator<Item = &'e Entry>) {
        let bad: BTreeSet<&str> = self.findings.problems.iter().map(|p| p.file.as_str()).collect();
        let is_untold = |entry: &&Entry| {
            let path = path_of(base, entry);
            DATA.iter().any(|suffix| entry.key.ends_with(suffix))
                && !bad.contains(path.as_str())
                && !self.seen.contains(&path)
                && !self.told.contains(&base.join(&entry.key))
        };
        let mut untold = entries.filter(is_untold);
        if let Some(first) = untold.next() {
            let more = match untold.count() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            self.note(format!("nothing says what {}{more} should hold: not looked at", first.key));
        }
    }

    /// The index of a folder, and what it speaks of.
    pub(super) fn index(&mut self, base: &Path, options: &VerifyOptions) -> Result<()> {
        self.leftovers(base, None, options.gc)?;
        self.data_set(base, "", &[], options).map(drop)
    }

    // What lies at `key` below `base`, if it is a data set. The folder that was asked for is whatever a format takes it
    // for; one below it only what says so itself, as a folder of settings in YAML is no data.
    fn data_set(
        &mut self,
        base: &Path,
        key: &str,
        entries: &[Entry],
        options: &VerifyOptions,
    ) -> Result<Found> {
        let folder = if key.is_empty() { base.to_path_buf() } else { base.join(key) };
        let index = folder.join(&options.index_folder);
        let is_forager = is_index(&index);
        let [own, of_index] = [&folder, &index].map(|folder| folder.join(MANIFEST_FILE));
        let has_side = files::exists(&own) || files::exists(&of_index);
        if !key.is_empty() && !has_side && !is_forager && !self.is_described_inside(base, key, entries) {
            return Ok(Found::Nothing);
        }
        let parts = self.parts(base, key);
        if !parts.is_empty() {
            for part in parts {
                self.data_set(base, &part, entries, options)?;
            }
            return Ok(Found::Whole);
        }
        let before = self.findings.n_problems;
        let own = match has_side {
            true => self.manifest(&own)?,
            false => self.told_inside(&folder)?,
        };
        // An index and another data set may lie in one folder: each has a manifest.
        let of_index = self.manifest(&of_index)?;
        let in_index = key::below(&options.index_folder, CHECKSUMS_FILE);
        let both = [(&own, CHECKSUMS_FILE), (&of_index, in_index.as_str())];
        for (manifest, file) in
            both.into_iter().filter_map(|(manifest, file)| Some((manifest.as_ref()?, file)))
        {
            self.claims(base, &as_seen_from(key, manifest), &SumsAt { folder: key, file, all: true })?;
            if let Some(failed) = manifest.statistics.get("failed").and_then(serde_json::Value::as_array) {
                let n = failed.len();
                self.note(format!("{n} of the files it was made from could not be read and are not in it"));
            }
        }
        if is_forager {
            // What was expanded is in the index by its expansion.
            let named = of_index.iter().flat_map(|manifest| &manifest.files);
            self.seen.extend(named.map(|row| folder.join(&row.name).display().to_string()));
            self.rows(base, key, &options.index_folder, of_index.as_ref())?;
            self.expanded_from(&folder, of_index.as_ref())?;
            self.opens(base, key, &options.index_folder, before)?;
            return Ok(Found::Described);
        }
        Ok(match self.by_format(base, key)? {
            // Beside series there may be what no format takes for any.
            Some(name) if name == Collection.name() => Found::Described,
            Some(_) => Found::Whole,
            None if has_side => {
                self.opens(base, key, &options.index_folder, before)?;
                Found::Described
            }
            None => Found::Nothing,
        })
    }

    // What an index expanded, beside what it was made of: that may be another one by now.
    fn expanded_from(&mut self, folder: &Path, of_index: Option<&Manifest>) -> Result<()> {
        let store = Local::new(folder);
        for row in of_index.into_iter().flat_map(format::expanded_inputs) {
            match store.open(&row.name) {
                Ok(object) => {
                    if let Err(found) = format::is_as_it_was(object.as_ref(), row, true) {
                        let expected = "as it was when it was indexed".to_string();
                        self.findings.problem(&store.display(&row.name), None, "file", expected, found);
                    }
                }
                // Nobody needs it any more.
                Err(e) if e.kind() == Kind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    // Whether the names below a folder can only be those of a data set.
    fn is_described_inside(&self, base: &Path, key: &str, entries: &[Entry]) -> bool {
        // A walk sorts by key.
        let prefix = format!("{key}/");
        let first = entries.partition_point(|entry| entry.key < prefix);
        let below =
            entries[first..].iter().take_while(|entry| entry.key.starts_with(&prefix)).cloned().collect();
        let probe = Probe {
            table: self.table,
            store: Arc::new(Local::new(base)),
            key: key.to_string(),
            is_folder: true,
            entries: below,
            head: Vec::new(),
            manifest: None,
            folder_id: None,
        };
        let Ok(format) = format::choose(self.table, &probe, None) else { return false };
        match format.name() {
            // A checkpoint is called as a track is.
            name if name == Codes.name() => files::exists(&base.join(probe.below(format::TRACKS_METADATA))),
            name => name != Collection.name() && format.recognise(&probe) == Confidence::Yes,
        }
    }

    // What the description of the data itself says, as that of shards does.
    fn told_inside(&mut self, folder: &Path) -> Result<Option<Manifest>> {
        match Probe::at(self.table, Arc::new(Local::new(folder)), "") {
            Ok(probe) => Ok(probe.manifest),
            Err(e) if e.kind() == Kind::Corrupt || e.place().field.is_some() => {
                let file = e.place().file.clone().unwrap_or_else(|| folder.display().to_string());
                self.findings.take(&file, "manifest", "one that can be understood", Err(e))
            }
            // Nothing that can be looked at; what can be checked without is.
            Err(_) => Ok(None),
        }
    }

    // What manifests of single files, each beside its file, say of these: `a.bin.windrow.json`. Whether there is one.
    fn own_manifests(&mut self, base: &Path, entries: &[Entry]) -> Result<bool> {
        let suffix = format!(".{}", MANIFEST_FILE);
        let mut is_described = false;
        for entry in entries {
            let Some(file) = entry.key.strip_suffix(&suffix) else { continue };
            let path = base.join(&entry.key);
            let (before, is_there) = (self.findings.n_problems, files::exists(&base.join(file)));
            let manifest = match is_there {
                true => self.manifest(&path)?,
                // Its file is lost, or it is something else of that name.
                false => Local::new(&path).open("").and_then(|object| Manifest::read(object.as_ref())).ok(),
            };
            let Some(manifest) = manifest else { continue };
            let folder = key::folder_of(file);
            let sums = format!("{}.{CHECKSUMS_FILE}", key::name_of(file));
            self.claims(base, &as_seen_from(folder, &manifest), &SumsAt { folder, file: &sums, all: true })?;
            if is_there {
                self.opens(base, file, format::INDEX_FOLDER, before)?;
            }
            is_described = true;
        }
        Ok(is_described)
    }
}

/// What names of data end in that a folder of other data may hold beside it.
const DATA: &[&str] = &[".bin", ".idx", ".npy", ".npz", ".npy.gz"];

/// What a folder was found to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// Something that speaks of files, beside which others may lie.
    Described,
    /// A data set to which everything below it belongs.
    Whole,
}

// The folders of these files, an outer one before those in it; the folder itself is one.
fn folders(entries: &[Entry]) -> BTreeSet<&str> {
    let outer = |entry: &'_ Entry| entry.key.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>();
    let below = entries.iter().flat_map(|entry| outer(entry).into_iter().map(|at| &entry.key[..at]));
    below.chain([""]).collect()
}

// The other folders: there a run was stopped before anything could be seen.
fn without_files(base: &Path, folders: &BTreeSet<&str>) -> Result<Vec<PathBuf>> {
    let (mut found, mut below) = (Vec::new(), vec![String::new()]);
    while let Some(folder) = below.pop() {
        for name in files::names(&base.join(&folder))?.into_iter().filter(|name| !name.starts_with('.')) {
            let key = key::below(&folder, &name);
            let path = base.join(&key);
            if path.is_symlink() || !path.is_dir() {
                continue;
            }
            if !folders.contains(key.as_str()) {
                found.push(path);
            }
            below.push(key);
        }
    }
    Ok(found)
}

// Half an index is one too.
fn is_index(folder: &Path) -> bool {
    [format::LOCATIONS, format::FILE_LIST].iter().any(|name| files::exists(&folder.join(name)))
}

// The manifest of a folder, its files named from further out.
fn as_seen_from(folder: &str, manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone();
    manifest
        .files
        .iter_mut()
        .chain(&mut manifest.index)
        .for_each(|row| row.name = key::below(folder, &row.name));
    manifest
}

fn path_of(base: &Path, entry: &Entry) -> String {
    base.join(&entry.key).display().to_string()
}

fn is_in(folders: &BTreeSet<&str>, key: &str) -> bool {
    folders.contains("") || key.match_indices('/').any(|(at, _)| folders.contains(&key[..at]))
}
