//! Holds every claim of a manifest and of an index against the bytes.

mod claims;
mod folder;
mod lines;
mod opened;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windrow_core::format::verify::{Content, Findings, Verifier};
use windrow_core::format::{self, Probe, Table};
use windrow_core::manifest::{CHECKSUMS_FILE, FileRow, LISTING, Listing, MANIFEST_FILE, Manifest};
use windrow_core::output::Site;
use windrow_core::store::{Compression, entry_if_there, expanded, is_url, without_secrets};
use windrow_core::{Error, Kind, Result, Watch};

use self::claims::SumsAt;
use crate::places::{NoStores, Places, Stores};

/// How to verify.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerifyOptions {
    /// Name of the index folder.
    pub index_folder: String,
    /// Finishes or removes what stopped runs left behind, unless somebody is writing there.
    pub gc: bool,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        VerifyOptions { index_folder: format::lines::INDEX_FOLDER.to_string(), gc: false }
    }
}

/// Checks the file at `path`, or every data set in and below the folder, by the formats of `table`: sizes, hashes
/// and counts against the manifest, every row of an index against the data files, every ID against the vocabulary, every JSON record for being JSON.
///
/// What is wrong with the data is in [`Findings::problems`]; what cannot be checked, such as values of raw tokens
/// without a manifest, in [`Findings::notes`].
///
/// # Errors
/// `NotFound` when nothing is there; `Unrecognised` when what is there is no data; `Interrupted`; `Io`. Bad data is
/// no error.
pub fn verify(table: Table, path: &Path, options: &VerifyOptions, watch: &dyn Watch) -> Result<Findings> {
    verify_from(table, &NoStores, path, options, watch)
}

/// Checks as [`verify`] does, also what is at a URL, which leads to `stores`.
///
/// # Errors
/// As [`verify`]; what a store says; `Unsupported` for a URL with a query.
pub fn verify_from(
    table: Table,
    stores: &dyn Stores,
    path: &Path,
    options: &VerifyOptions,
    watch: &dyn Watch,
) -> Result<Findings> {
    let places = Places(stores);
    let path = if !is_url(path) {
        std::path::absolute(path).map_err(|e| Error::io("find it", path, e))?
    } else if without_secrets(&path.to_string_lossy()).len() < path.as_os_str().len() {
        // What is beside it could not be asked for.
        return Err(Error::unsupported("a URL with a query or a password is not verified")
            .at(path)
            .hint("copy the data to a path, or give what the server asks for as headers"));
    } else {
        path.to_path_buf()
    };
    let root = places.root(&path)?;
    let is_folder = root.entry("")?.is_folder;
    let mut work =
        Work { table, places, described: BTreeSet::new(), parts: BTreeSet::new(), out: Verifier::new(watch) };
    if !is_folder {
        // What is not a regular file is not data.
        root.open("")?;
        work.out = work.out.below(&path.parent().unwrap_or(&path).display().to_string());
        work.file(&path, options)?;
        return Ok(work.out.finish());
    }
    let is_index = folder::index_format(table, places, &path).is_some();
    match (path.parent(), path.file_name().and_then(|n| n.to_str())) {
        (Some(base), Some(name)) if is_index => {
            let options = VerifyOptions { index_folder: name.to_string(), ..options.clone() };
            work.out = work.out.below(&base.display().to_string());
            work.index(base, &options)?;
        }
        _ => {
            work.out = work.out.below(&path.display().to_string());
            work.folder(&path, options)?;
        }
    }
    Ok(work.out.finish())
}

struct Work<'a> {
    table: Table,
    places: Places<'a>,
    /// Files that a manifest names.
    described: BTreeSet<PathBuf>,
    /// Folders that were looked at as parts of a data set.
    parts: BTreeSet<PathBuf>,
    out: Verifier<'a>,
}

impl Work<'_> {
    fn file(&mut self, path: &Path, options: &VerifyOptions) -> Result<()> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
            return Err(Error::config("expected the path of a file").at(path));
        };
        self.leftovers(folder, Some(name), options.gc)?;
        let before = self.out.findings.n_problems;
        // What is beside raw IDs that were compressed since speaks of them as they were.
        let before_name = self.table.iter().find_map(|format| (format.info().names.before)(name));
        let plain = before_name.filter(|plain| !self.places.has(&folder.join(plain)).unwrap_or(false));
        let data = plain.unwrap_or(name);
        let own = folder.join(format!("{data}.{}", MANIFEST_FILE));
        if self.places.has(&own)? {
            let manifest = self.manifest_beside(&own, data)?;
            let sums = SumsAt { folder: "", file: &format!("{data}.{CHECKSUMS_FILE}"), all: true };
            manifest.map_or(Ok(()), |manifest| self.claims(folder, &manifest, &sums))?;
            // Checksums of its own say which part of it is another one.
            let found = self.recognised(folder, name)?;
            if found.is_some_and(|(_, format)| format.info().has_own_checksums) {
                self.by_format(folder, name)?;
            }
            return self.opens(folder, name, format::lines::INDEX_FOLDER, before);
        }
        let is_described = self.described_in(folder, data)?;
        if self.lost_its_manifest(&folder.join(data))? {
            return Ok(());
        }
        // As with a manifest of its own: what all was compared with its hash is opened, and not read once more.
        if is_described && self.out.is_covered(name) {
            if self.recognised(folder, name)?.is_some_and(|(_, format)| format.info().has_own_checksums) {
                self.by_format(folder, name)?;
            }
            return self.opens(folder, name, format::lines::INDEX_FOLDER, before);
        }
        if self.by_format(folder, name)?.is_some() {
            return Ok(());
        }
        if is_described {
            self.opens(folder, name, format::lines::INDEX_FOLDER, before)?;
        }
        if format::lines::is_named(name) || self.is_lines(folder, name)? {
            self.out.expect(self.places.size(path).unwrap_or(0));
            let before = self.so_far();
            self.json_lines(path)?;
            if !is_described {
                self.needs_lines(path, before);
            }
            return Ok(());
        }
        if is_described {
            return Ok(());
        }
        self.is_data(folder, name, options)?;
        let mut size = self.places.size(path);
        if before_name.is_some() {
            let store = self.places.root(folder)?;
            let whole = expanded(&store, name, None);
            let whole = self.out.findings.take(name, "content", "to be a whole stream", whole)?;
            size = whole.map(|object| object.size());
        }
        if size == Some(0) {
            let (expected, found) = ("at least one value", "an empty file");
            self.out.findings.problem(
                &path.display().to_string(),
                None,
                "size",
                expected.into(),
                found.into(),
            );
            return Ok(());
        }
        if size.is_some() {
            self.out.looks_at(name);
            self.by_itself(folder, name)?;
        }
        self.out.note(format!(
            "{name} has no manifest: nothing says which size, values or hash it should have, so it was read and not checked"
        ));
        Ok(())
    }

    // Whether the block checksums of a file are there without its manifest, which is a problem then.
    fn lost_its_manifest(&mut self, file: &Path) -> Result<bool> {
        let beside = |of: &str| {
            file.with_file_name(format!("{}.{of}", file.file_name().unwrap_or_default().to_string_lossy()))
        };
        let is_lost = self.places.has(file)?
            && self.places.has(&beside(CHECKSUMS_FILE))?
            && !self.places.has(&beside(MANIFEST_FILE))?;
        if is_lost {
            self.no_manifest(file);
        }
        Ok(is_lost)
    }

    fn no_manifest(&mut self, of: &Path) {
        let (of, expected) = (of.display().to_string(), "one beside its block checksums".to_string());
        self.out.findings.problem(&of, None, "manifest", expected, "none".to_string());
    }

    // Whether a file of another name holds lines of JSON.
    fn is_lines(&self, folder: &Path, name: &str) -> Result<bool> {
        let found = self.recognised(folder, name)?;
        Ok(found.is_some_and(|(_, format)| format.verifier().content() == Content::Lines))
    }

    // An error where nothing was found and no format takes it for data: a mistyped path would be reported as "good". What is
    // to be tidied up need not be data.
    fn is_data(&self, root: &Path, key: &str, options: &VerifyOptions) -> Result<()> {
        let found = &self.out.findings;
        if options.gc || found.n_problems > 0 || !found.notes.is_empty() {
            return Ok(());
        }
        let probe = Probe::at(self.table, self.places.root(root)?, key)?;
        let is_compressed = !probe.is_folder && Compression::of_head(&probe.head).is_some();
        format::choose(self.table, &probe, None)
            .map(drop)
            .map_err(|e| if is_compressed { e } else { e.hint("nothing was checked: is the path right?") })
    }

    // What the manifest of the pair that the file is half of, or that of its folder, says of it and of its other half.
    // Whether one does.
    fn described_in(&mut self, folder: &Path, name: &str) -> Result<bool> {
        let (other, companions) =
            (format::other_half(self.table, name), format::companions(self.table, name));
        let of_pair = other.as_ref().map(|other| format!("{other}.{}", MANIFEST_FILE));
        for side_name in of_pair.iter().map(String::as_str).chain([MANIFEST_FILE]) {
            let side = folder.join(side_name);
            let manifest = match &other {
                Some(other) if side_name != MANIFEST_FILE => self.manifest_beside(&side, other)?,
                _ => self.manifest(&side)?,
            };
            if let Some(mut manifest) =
                manifest.filter(|manifest| manifest.files.iter().any(|f| f.name == name))
            {
                manifest.files.retain(|f| f.name == name || companions.contains(&f.name));
                let sums = side_name.replace(MANIFEST_FILE, CHECKSUMS_FILE);
                self.claims(folder, &manifest, &SumsAt { folder: "", file: &sums, all: false })?;
                return Ok(true);
            }
        }
        self.told_above(folder, name)
    }

    // The same of a manifest in a folder above, or where a link leads to.
    fn told_above(&mut self, folder: &Path, name: &str) -> Result<bool> {
        let found = Probe::at(self.table, self.places.root(folder)?, name);
        let manifest = match found {
            Ok(found) => found.manifest.filter(|_| found.part_of.is_some()),
            Err(e) if e.is_of_the_run() => return Err(e),
            // Opening it says what is wrong with it.
            Err(_) => None,
        };
        let Some(manifest) = manifest else { return Ok(false) };
        self.claims(folder, &manifest, &SumsAt { folder: "", file: CHECKSUMS_FILE, all: false })?;
        Ok(true)
    }

    // The manifest at this path, where there is one that can be understood.
    fn manifest(&mut self, path: &Path) -> Result<Option<Manifest>> {
        if !self.places.has(path)? {
            return Ok(None);
        }
        let name = path.display().to_string();
        let object = self.places.root(path)?.open("");
        let manifest = object.and_then(|object| Ok((Manifest::read(object.as_ref())?, object)));
        let Some((manifest, object)) =
            self.out.findings.take(&name, "manifest", "one that can be understood", manifest)?
        else {
            return Ok(None);
        };
        self.out.findings.take(&name, "xxh3", "that of its text", Manifest::check_hash(object.as_ref()))?;
        match manifest.listing {
            Some(listing) if manifest.format == LISTING => {
                let folder = path.parent().unwrap_or(Path::new(""));
                self.listing(folder, &listing).map(|()| None)
            }
            _ => Ok(Some(manifest)),
        }
    }

    // The same of one that is kept beside this file, and may have been copied or renamed with it.
    fn manifest_beside(&mut self, path: &Path, file: &str) -> Result<Option<Manifest>> {
        let Some(manifest) = self.manifest(path)? else { return Ok(None) };
        let name = path.display().to_string();
        let other = format::other_half(self.table, file);
        let manifest = manifest.of_file(file, other.as_deref(), &name);
        self.out.findings.take(&name, "manifest", &format!("that of {file}"), manifest)
    }

    // The files of a folder that were listed are there, with their sizes.
    fn listing(&mut self, folder: &Path, listing: &Listing) -> Result<()> {
        let store = self.places.root(folder)?;
        for file in &listing.files {
            let row = FileRow { name: file.name.clone(), size: file.size, ..FileRow::default() };
            let size = entry_if_there(store.as_ref(), file.checked_name()?)?.map(|entry| entry.size);
            let name = store.display(&file.name);
            let expected = format!("{} bytes", file.size);
            if self.out.findings.take(&name, "size", &expected, row.check_size(size, &name))?.is_none() {
                self.out.is_cut(name);
            }
        }
        Ok(())
    }

    // Work folders that stopped runs left in this folder; of one task, or of all.
    fn leftovers(&mut self, folder: &Path, of: Option<&str>, gc: bool) -> Result<()> {
        // Nothing works in a store.
        if is_url(folder) {
            return Ok(());
        }
        let mut tasks: Vec<String> = Site::left_in(folder)?.into_iter().map(|(task, _)| task).collect();
        tasks.retain(|task| of.is_none_or(|of| of == task));
        tasks.sort();
        tasks.dedup();
        for task in &tasks {
            if !gc {
                self.out.note(format!(
                    "a stopped run left .{task}.tmp-* in {}: run it again to finish it, or remove it with `windrow verify --gc`",
                    folder.display()
                ));
                continue;
            }
            match Site::start_over(folder, task, true) {
                Ok(_) => {
                    self.out.note(format!("tidied up what a stopped run left: .{task}.tmp-*"));
                }
                Err(e) if e.kind() == Kind::Exists => {
                    self.out.note(format!(".{task}.tmp-* is left alone: {}", e.message()));
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
