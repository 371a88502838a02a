//! A folder: every data set in it and below it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windrow_core::format::verify::IndexAt;
use windrow_core::format::{self, LineIndex, Probe, Table, discover};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::output::files;
use windrow_core::store::{Entry, is_url, key, some_of};
use windrow_core::{Kind, Result};

use super::claims::SumsAt;
use super::{VerifyOptions, Work};
use crate::places::Places;

impl Work<'_> {
    /// Everything that is described below `base`, and every line of JSON; what nothing describes is noted.
    pub(super) fn folder(&mut self, base: &Path, options: &VerifyOptions) -> Result<()> {
        self.leftovers(base, None, options.gc)?;
        let root = self.places.root(base)?;
        let walked = root.walk_all("")?;
        // Those that begin with a dot are no part of any data set.
        let mut hidden: Vec<String> =
            walked.hidden_names("").into_iter().filter(|name| key::name_of(name).starts_with('_')).collect();
        let entries = walked.entries;
        let mut is_described = self.own_manifests(base, &entries)?;
        let folders = folders(&entries);
        if !is_url(base) {
            for folder in without_files(base, &folders)? {
                self.leftovers(&folder, None, options.gc)?;
            }
        }
        // Folders that a format reads as a whole: below them, only what windrow described is a data set of its own.
        let mut whole: BTreeSet<&str> = BTreeSet::new();
        for folder in &folders {
            if is_in(&whole, folder) && !self.is_on_its_own(base, folder, options)? {
                continue;
            }
            if !folder.is_empty() && index_format(self.table, self.places, &base.join(folder)).is_some() {
                // Looked at with what it is the index of.
                whole.insert(folder);
                continue;
            }
            if !folder.is_empty() {
                self.leftovers(&base.join(folder), None, options.gc)?;
            }
            let before = self.out.findings.n_problems;
            let found = self.data_set(base, folder, &entries, options)?;
            is_described |= found != Found::Nothing;
            let sums = base.join(folder).join(CHECKSUMS_FILE);
            if found == Found::Nothing && self.out.findings.n_problems == before && self.places.has(&sums)? {
                // Only windrow writes them, and never alone. What is damaged was reported.
                is_described = true;
                let expected = format!("{} or meta.json beside it", MANIFEST_FILE);
                self.out.findings.problem(
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
        let lines: Vec<&Entry> = format::lines::lines_among(self.table, root.as_ref(), &entries, false)?
            .into_iter()
            .filter(|entry| rest(entry) && !self.out.was_read(&path_of(base, entry)))
            .collect();
        let once = discover::refuse_copies(lines.iter().map(|e| e.key.as_str()), |key| {
            base.join(key).display().to_string()
        });
        self.out.findings.take(&base.display().to_string(), "names", "each file once", once)?;
        lines.iter().for_each(|e| self.out.expect(e.size));
        let before = self.so_far();
        for entry in &lines {
            self.json_lines(&base.join(&entry.key))?;
        }
        if is_described {
            self.note_untold(base, entries.iter().filter(rest));
        } else if lines.is_empty() {
            let has_hidden = !hidden.is_empty();
            self.note_hidden(base, std::mem::take(&mut hidden));
            self.is_data(base, "", options)?;
            if has_hidden && !options.gc && self.recognised(base, "")?.is_none() {
                self.only_hidden(base);
                return Ok(());
            }
            self.each_by_itself(base, &entries)?;
            self.out.note(format!(
                "nothing here says what it should be: no {}, no index, no JSONL, so it was read and not checked",
                MANIFEST_FILE
            ));
        } else {
            self.needs_lines(base, before);
            self.note_untold(base, entries.iter().filter(rest));
        }
        self.note_hidden(base, hidden);
        Ok(())
    }

    // But for what a file of a data set lists, which was looked at.
    fn note_hidden(&mut self, base: &Path, mut hidden: Vec<String>) {
        hidden.retain(|name| !self.out.looked_at(&base.join(name).display().to_string()));
        if !hidden.is_empty() {
            self.out.note(format!("not looked at, as they are hidden: {}", some_of(&hidden)));
        }
    }

    // Nothing there is data but for what is hidden, which a note names.
    fn only_hidden(&mut self, base: &Path) {
        let (base, expected) = (base.display().to_string(), "at least one file of data".to_string());
        self.out.findings.problem(&base, None, "data", expected, "none that is not hidden".to_string());
    }

    // Files of data that nothing spoke of.
    fn note_untold<'e>(&mut self, base: &Path, entries: impl Iterator<Item = &'e Entry>) {
        let suffixes = self.table.iter().flat_map(|format| format.info().data_suffixes);
        let bad: BTreeSet<&str> = self.out.findings.problems.iter().map(|p| p.file.as_str()).collect();
        let is_untold = |entry: &&Entry| {
            let path = path_of(base, entry);
            suffixes.clone().any(|suffix| key::has_suffix(&entry.key, suffix))
                && !bad.contains(path.as_str())
                && !self.out.was_read(&path)
                && !self.out.looked_at(&path)
                && !self.described.contains(&base.join(&entry.key))
        };
        let mut untold = entries.filter(is_untold);
        if let Some(first) = untold.next() {
            let more = match untold.count() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            self.out.note(format!("nothing says what {}{more} should hold: not looked at", first.key));
        }
    }

    /// The index of a folder, and what it speaks of.
    pub(super) fn index(&mut self, base: &Path, options: &VerifyOptions) -> Result<()> {
        self.leftovers(base, None, options.gc)?;
        self.data_set(base, "", &[], options).map(drop)
    }

    // What is at `key` below `base`, if it is a data set. The folder that was asked for is whatever a format takes it
    // for; one below it only what says so itself, as a folder of settings in YAML is not data.
    fn data_set(
        &mut self,
        base: &Path,
        key: &str,
        entries: &[Entry],
        options: &VerifyOptions,
    ) -> Result<Found> {
        let folder = if key.is_empty() { base.to_path_buf() } else { base.join(key) };
        let index = folder.join(&options.index_folder);
        let of_index_folder = index_format(self.table, self.places, &index);
        let [own, of_index] = [&folder, &index].map(|folder| folder.join(MANIFEST_FILE));
        let has_side = self.places.has(&own)? || self.places.has(&of_index)?;
        if !key.is_empty()
            && !has_side
            && of_index_folder.is_none()
            && !self.is_described_inside(base, key, entries)?
        {
            return Ok(Found::Nothing);
        }
        let parts = self.parts(base, key)?;
        if !parts.is_empty() {
            for part in parts {
                self.data_set(base, &part, entries, options)?;
                self.parts.insert(base.join(part));
            }
            return Ok(Found::Whole);
        }
        let before = self.out.findings.n_problems;
        let own = match self.manifest(&own)? {
            // What was wrong with one beside the data is reported. One that only lists files says nothing of what they hold.
            None if self.out.findings.n_problems == before && !self.places.has(&of_index)? => {
                self.told_inside(&folder)?
            }
            own => own,
        };
        // The manifest of its only file was looked at with that file.
        let was_read = |manifest: &Manifest| {
            let mut files = manifest.files.iter().map(|row| folder.join(&row.name));
            !manifest.files.is_empty() && files.all(|file| self.described.contains(&file))
        };
        let own = own.filter(|manifest| !was_read(manifest));
        // An index and another data set may be in one folder: each has a manifest.
        let of_index = self.manifest(&of_index)?;
        let in_index = key::below(&options.index_folder, CHECKSUMS_FILE);
        let both = [(&own, CHECKSUMS_FILE), (&of_index, in_index.as_str())];
        for (manifest, file) in
            both.into_iter().filter_map(|(manifest, file)| Some((manifest.as_ref()?, file)))
        {
            self.claims(base, &as_seen_from(key, manifest), &SumsAt { folder: key, file, all: true })?;
            if let Some(failed) = manifest.statistics.get("failed").and_then(serde_json::Value::as_array) {
                let n = failed.len();
                self.out
                    .note(format!("{n} of the files it was made from could not be read and are not in it"));
            }
        }
        if let Some(format) = of_index_folder {
            if of_index.is_none() && self.places.has(&index.join(CHECKSUMS_FILE))? {
                self.no_manifest(&index);
            }
            let store = self.places.root_by_position(base)?;
            let at =
                IndexAt { store: &store, key, folder: &options.index_folder, manifest: of_index.as_ref() };
            format.verify(&at, &mut self.out)?;
            self.opens(base, key, &options.index_folder, before)?;
            return Ok(Found::Described);
        }
        let found = self.by_format(base, key)?;
        if found.is_some() && !has_side && self.places.has(&folder.join(CHECKSUMS_FILE))? {
            // It may open as something else without the manifest that was there.
            self.opens(base, key, &options.index_folder, before)?;
        }
        Ok(match found {
            Some(format) if !format.info().shares_folder => Found::Whole,
            Some(_) => Found::Described,
            None if has_side || own.is_some() => {
                self.opens(base, key, &options.index_folder, before)?;
                Found::Described
            }
            None => Found::Nothing,
        })
    }

    // Whether windrow described a folder as a data set of its own, which was not looked at with what is around it.
    fn is_on_its_own(&self, base: &Path, key: &str, options: &VerifyOptions) -> Result<bool> {
        let folder = base.join(key);
        if self.parts.contains(&folder) {
            return Ok(false);
        }
        let is_index = index_format(self.table, self.places, &folder.join(&options.index_folder)).is_some();
        Ok(is_index
            || self.places.has(&folder.join(MANIFEST_FILE))?
            || self.places.has(&folder.join(CHECKSUMS_FILE))?)
    }

    // Whether the names below a folder can only be those of a data set.
    fn is_described_inside(&self, base: &Path, key: &str, entries: &[Entry]) -> Result<bool> {
        // A walk sorts by key.
        let prefix = format!("{key}/");
        let first = entries.partition_point(|entry| entry.key < prefix);
        let below =
            entries[first..].iter().take_while(|entry| entry.key.starts_with(&prefix)).cloned().collect();
        let probe = Probe::of_names(self.table, self.places.root(base)?, key, below);
        match format::choose(self.table, &probe, None) {
            Ok(format) => Ok(format.verifier().is_described(format, &probe)),
            Err(e) if e.is_of_the_run() => Err(e),
            Err(_) => Ok(false),
        }
    }

    // What the description of the data itself says, as that of shards does.
    fn told_inside(&mut self, folder: &Path) -> Result<Option<Manifest>> {
        match Probe::at(self.table, self.places.root(folder)?, "") {
            Ok(probe) => Ok(probe.manifest),
            Err(e) if e.kind() == Kind::Corrupt || e.place().field.is_some() => {
                let file = e.place().file.clone().unwrap_or_else(|| folder.display().to_string());
                self.out.findings.take(&file, "manifest", "one that can be understood", Err(e))
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
            if let Some(file) = entry.key.strip_suffix(&format!(".{CHECKSUMS_FILE}")) {
                is_described |= self.lost_its_manifest(&base.join(file))?;
            }
            let Some(file) = entry.key.strip_suffix(&suffix) else { continue };
            let path = base.join(&entry.key);
            let (before, is_there) = (self.out.findings.n_problems, self.places.has(&base.join(file))?);
            let name = key::name_of(file);
            let manifest = if is_there {
                self.manifest_beside(&path, name)?
            } else {
                // Its file is lost, or it is something else of that name.
                let object = self.places.root(&path)?.open("");
                object.and_then(|object| format::manifest_beside(self.table, object.as_ref(), name)).ok()
            };
            let Some(manifest) = manifest else { continue };
            let folder = key::folder_of(file);
            let sums = format!("{name}.{CHECKSUMS_FILE}");
            self.claims(base, &as_seen_from(folder, &manifest), &SumsAt { folder, file: &sums, all: true })?;
            if is_there {
                self.opens(base, file, format::lines::INDEX_FOLDER, before)?;
            }
            is_described = true;
        }
        Ok(is_described)
    }
}

/// What a folder was found to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// Something that speaks of files, beside which others may be.
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

/// The format whose index a folder is, or half of one.
pub(super) fn index_format(
    table: Table,
    places: Places<'_>,
    folder: &Path,
) -> Option<&'static dyn LineIndex> {
    let has = |name: &str| places.has(&folder.join(name)).unwrap_or(false);
    table.iter().filter_map(|format| format.line_index()).find(|format| format.is_index(&has))
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
