//! What a format sees of a path before it says whether it is the one: names, the first bytes, the manifest.

mod above;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub use self::above::PartOf;
use super::checksum_rules::FormatRules;
use super::{Confidence, Format, Table, manifest_beside};
use crate::error::{Error, Kind, Result};
use crate::manifest::{CHECKSUMS_FILE, Checked, FileRow, LISTING, Listing, MANIFEST_FILE, Manifest, PARTS};
use crate::store::{
    Entry, FolderId, Noting, Store, entry_if_there, is_hidden, key, only_hidden, open_if_there,
    without_secrets,
};

/// What a format sees of a path before it says whether it is the one.
pub struct Probe {
    /// The formats that are asked where a manifest lies.
    pub table: Table,
    /// Where it lies.
    pub store: Arc<dyn Store>,
    /// Its key in the store; `""` is the root.
    pub key: String,
    /// A folder or an object.
    pub is_folder: bool,
    /// All objects below it, by key, as [`Store::walk`] found them once; empty for an object, and for a data set in parts, whose
    /// manifest says where they lie.
    pub entries: Vec<Entry>,
    /// Names below it that were passed over, as they are hidden; of a hidden folder its own.
    pub hidden: Vec<String>,
    /// Its splits were asked for as one data set.
    pub joins_splits: bool,
    /// The first bytes, at most 4096; empty for a folder.
    pub head: Vec<u8>,
    /// The manifest beside it, where there is one.
    pub manifest: Option<Manifest>,
    /// What was listed of it before, where that is all that is known.
    pub listing: Option<Listing>,
    /// The data set that this file or folder is part of, where the manifest is that one's.
    pub part_of: Option<PartOf>,
    /// Which folder it was; `None` for a file, and where the store cannot tell.
    pub folder_id: Option<FolderId>,
}

impl Probe {
    /// Looks at `key`, as the formats of `table` are asked to.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `Corrupt` when the manifest cannot be read.
    pub fn at(table: Table, store: Arc<dyn Store>, key: &str) -> Result<Probe> {
        let entry = store.entry(key)?;
        // Asked before the folder is listed.
        let folder_id = if entry.is_folder { store.folder_id(key) } else { None };
        let mut probe =
            Probe { is_folder: entry.is_folder, folder_id, ..Probe::of_names(table, store, key, Vec::new()) };
        if entry.is_folder && !probe.is_in_parts() {
            let walked = probe.store.walk_all(key).map_err(|e| probe.replaced().unwrap_or(e))?;
            probe.hidden = walked.hidden_names(key);
            probe.entries = walked.entries;
            probe.hide_of_formats();
        }
        probe.read_again()?;
        probe.bring_back()?;
        probe.hidden.retain(|name| !super::is_of_zarr(name));
        Ok(probe)
    }

    // What other programs keep beside data of some format.
    fn hide_of_formats(&mut self) {
        let start = if self.key.is_empty() { 0 } else { self.key.len() + 1 };
        let hides = |name: &str| self.table.iter().any(|format| format.info().hides(name));
        let is_hidden = |entry: &Entry| entry.key[start..].split('/').any(hides);
        let (hidden, entries) =
            std::mem::take(&mut self.entries).into_iter().partition(|entry| is_hidden(entry));
        let hidden: Vec<Entry> = hidden;
        self.entries = entries;
        self.hidden.extend(hidden.iter().map(|entry| entry.key[start..].to_string()));
        self.hidden.sort();
    }

    // What the manifest lists is no less data for its name.
    fn bring_back(&mut self) -> Result<()> {
        let Some(manifest) = self.manifest.as_ref().filter(|_| !self.hidden.is_empty()) else {
            return Ok(());
        };
        let is_hidden =
            |name: &str| self.hidden.iter().any(|hidden| hidden == name || key::is_below(hidden, name));
        let listed = manifest.files.iter().filter(|row| is_hidden(&row.name));
        let listed: Vec<String> = listed.map(|row| row.name.clone()).collect();
        for name in &listed {
            self.entries.extend(
                entry_if_there(self.store.as_ref(), &self.below(name))?.filter(|entry| !entry.is_folder),
            );
        }
        self.entries.sort_by(|a, b| a.key.cmp(&b.key));
        self.hidden.retain(|hidden| !listed.iter().any(|name| name == hidden));
        Ok(())
    }

    /// The error that all below the folder is hidden; `None` where it is not.
    pub fn only_hidden(&self) -> Option<Error> {
        let is = self.is_folder && self.entries.is_empty() && !self.hidden.is_empty();
        is.then(|| only_hidden(&self.hidden, self.display()))
    }

    /// A folder of which no more is seen than the names below it.
    pub fn of_names(table: Table, store: Arc<dyn Store>, key: &str, entries: Vec<Entry>) -> Probe {
        Probe {
            table,
            store: Noting::around(store),
            key: key.to_string(),
            is_folder: true,
            entries,
            hidden: Vec::new(),
            joins_splits: false,
            head: Vec::new(),
            manifest: None,
            listing: None,
            part_of: None,
            folder_id: None,
        }
    }

    // Whether the manifest of a folder says where all below it lies. An error here is reported by the later read.
    fn is_in_parts(&self) -> bool {
        if self.store.walks_by_manifest() {
            return false;
        }
        let found = open_if_there(self.store.as_ref(), &self.below(MANIFEST_FILE));
        found.ok().flatten().is_some_and(|object| {
            let mut head = vec![0; object.size().min(4096) as usize];
            object.read_into(0, &mut head).is_ok() && Manifest::begins_as(PARTS, &head)
        })
    }

    // What was seen, in another store of the same names; what was read of it is read there once more.
    pub(crate) fn within(&self, store: Arc<dyn Store>) -> Result<Probe> {
        let mut probe = Probe {
            is_folder: self.is_folder,
            folder_id: self.folder_id,
            hidden: self.hidden.clone(),
            joins_splits: self.joins_splits,
            ..Probe::of_names(self.table, store, &self.key, self.entries.clone())
        };
        probe.read_again()?;
        Ok(probe)
    }

    // The first bytes of a file, and the manifest.
    fn read_again(&mut self) -> Result<()> {
        if !self.is_folder {
            let object = self.store.open(&self.key)?;
            let mut scratch = Vec::new();
            self.head = object.read(0, object.size().min(4096) as usize, &mut scratch)?.to_vec();
        }
        let found = find_manifest(self).map_err(|e| self.replaced().unwrap_or(e))?;
        (self.manifest, self.listing, self.part_of) = (found.manifest, found.listing, found.part_of);
        Ok(())
    }

    /// Probes again in a store that verifies each block it reads against its checksum, where there is one.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn verified(&self) -> Result<Probe> {
        self.within(Arc::new(Checked::new(self.store.clone(), FormatRules::where_kept(self.table))))
    }

    /// Refuses a folder with block checksums and nothing that describes its files: they would open as something else.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn refuse_checksums_alone(&self) -> Result<()> {
        if self.is_folder && self.manifest.is_none() && self.names().any(|name| name == CHECKSUMS_FILE) {
            Err(Error::corrupt(format!(
                "{CHECKSUMS_FILE} is there without what describes the files: no {MANIFEST_FILE}, no meta.json"
            ))
            .at(self.display())
            .hint(
                "bring it back, or write the data again; a file named alone is read as what it seems to be",
            ))
        } else {
            Ok(())
        }
    }

    /// The error that another folder is there by now: a data set that is written again is a new folder in its place, and
    /// files of both are not one data set.
    pub fn replaced(&self) -> Option<Error> {
        let then = self.folder_id?;
        (self.store.folder_id(&self.key) != Some(then)).then(|| {
            Error::new(Kind::Stale, "the folder was replaced by another one while it was opened")
                .at(self.display())
                .hint("open it again")
        })
    }

    /// What the listing of this folder says of a file: its size, and the time by which another one in its place is noticed.
    /// `None` for what it does not list, which may be there all the same: below a hidden name, or under a second name of a
    /// folder.
    pub fn listed(&self, key: &str) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.key.as_str().cmp(key)).ok()?;
        // A link that leads nowhere is listed without either.
        self.entries.get(at).filter(|entry| entry.modified_ns.is_some() || entry.tag.is_some())
    }

    /// What the listing, or else the store, says of a file; `None` where there is none.
    ///
    /// # Errors
    /// What [`Store::entry`] says, but for `NotFound`.
    pub fn file(&self, key: &str) -> Result<Option<Entry>> {
        let at = self.entries.binary_search_by(|entry| entry.key.as_str().cmp(key));
        let found = match self.listed(key) {
            Some(entry) => Some(entry.clone()),
            None if at.is_err() && self.lists_folder_of(key) => None,
            None => entry_if_there(self.store.as_ref(), key)?,
        };
        Ok(found.filter(|entry| !entry.is_folder))
    }

    // Whether a file with this key would be among the entries: others of its folder are, and its name is one that is listed.
    fn lists_folder_of(&self, key: &str) -> bool {
        let (folder, name) = (key::folder_of(key), key::name_of(key));
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let first = self.entries.partition_point(|entry| entry.key < start);
        let is_inside =
            self.key.is_empty() || start.strip_prefix(&self.key).is_some_and(|rest| rest.starts_with('/'));
        is_inside
            && !name.is_empty()
            && !is_hidden(name)
            && !self.table.iter().any(|format| format.info().hides(name))
            && self.entries.get(first).is_some_and(|entry| entry.key.starts_with(&start))
    }

    /// The keys below it, relative to it; sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.iter().map(|entry| self.name_of(&entry.key))
    }

    /// A key below it, relative to it.
    pub fn name_of<'k>(&self, key: &'k str) -> &'k str {
        &key[if self.key.is_empty() { 0 } else { self.key.len() + 1 }..]
    }

    /// The key of something below this folder.
    pub fn below(&self, name: &str) -> String {
        key::below(&self.key, name)
    }

    /// What a person calls it.
    pub fn display(&self) -> String {
        self.store.display(&self.key)
    }

    /// Whether a file is so small that it may describe other data.
    pub fn is_small(&self) -> bool {
        const MOST: u64 = 64 << 10;
        self.store.entry(&self.key).is_ok_and(|entry| entry.size <= MOST)
    }

    /// Last part of the key in lower case; of a URL without its query.
    pub fn file_name(&self) -> String {
        key::name_of(&without_secrets(&self.display())).to_ascii_lowercase()
    }

    /// The manifest that describes it, as far as names and the store show. A listing does not count as one.
    ///
    /// # Errors
    /// `Corrupt` when it cannot be read; `Io`.
    pub fn described_by(&self) -> Result<Option<Manifest>> {
        Ok(find_manifest(self)?.manifest)
    }

    /// The files that the manifest lists are there, with the sizes that it says: of a folder all of them, of a file those that are read
    /// with it.
    ///
    /// # Errors
    /// `Stale` naming the file.
    pub fn check_files(&self, manifest: &Manifest) -> Result<()> {
        self.check_rows(manifest.files.iter())
    }

    /// Checks that files that were listed before are there, with the sizes of the listing.
    pub(super) fn check_listing(&self, listing: &Listing) -> Result<()> {
        let rows = listing.files.iter().map(|file| {
            let name = file.checked_name().map_err(|e| e.or_at(self.display()))?.to_string();
            Ok(FileRow { name, size: file.size, ..FileRow::default() })
        });
        let rows: Vec<FileRow> = rows.collect::<Result<_>>()?;
        self.check_rows(rows.iter())
            .map_err(|e| {
                e.hint(
                    "the copy looks unfinished: fetch it again. If the data was changed on purpose, `windrow manifest` lists it \
                     again; @trust=true@ reads what is there",
                )
            })
    }

    fn check_rows<'r>(&self, rows: impl Iterator<Item = &'r FileRow>) -> Result<()> {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let folder = if self.is_folder { self.key.as_str() } else { key::folder_of(&self.key) };
        let seen: HashMap<&str, u64> = self.entries.iter().map(|e| (e.key.as_str(), e.size)).collect();
        for row in rows {
            let key = key::below(folder, &row.name);
            // Of very many files, not all are among those that were seen.
            let size = match seen.get(key.as_str()) {
                Some(size) => Some(*size),
                None => entry_if_there(self.store.as_ref(), &key)?.map(|entry| entry.size),
            };
            row.check_size(size, &self.store.display(&key))?;
        }
        Ok(())
    }
}

/// What is known of it besides its own bytes.
#[derive(Default)]
struct Described {
    manifest: Option<Manifest>,
    listing: Option<Listing>,
    part_of: Option<PartOf>,
}

impl Described {
    fn by(manifest: Manifest) -> Described {
        Described { manifest: Some(manifest), ..Described::default() }
    }
}

// The manifest in the folder, or named `<file>.windrow.json` beside the file, or where its format keeps one, or that of a folder
// above. One that only lists the files says nothing of what they are.
fn find_manifest(probe: &Probe) -> Result<Described> {
    let mut listing = None;
    let (folder, name) = (key::folder_of(&probe.key), key::name_of(&probe.key));
    // Each with the file that it is beside; that of a folder is beside none.
    let places = if probe.is_folder {
        vec![(probe.below(MANIFEST_FILE), None)]
    } else {
        let halves = probe.table.iter().filter_map(|format| (format.info().names.other_half)(name));
        let files = [name.to_string()].into_iter().chain(halves);
        let beside = files.map(|file| (key::below(folder, &format!("{file}.{MANIFEST_FILE}")), Some(file)));
        beside.chain([(key::below(folder, MANIFEST_FILE), None)]).collect()
    };
    for (key, file) in &places {
        if let Some(object) = open_if_there(probe.store.as_ref(), key)? {
            let manifest = match file {
                Some(file) => manifest_beside(probe.table, object.as_ref(), file)?,
                None => Manifest::read(object.as_ref())?,
            };
            if manifest.format == LISTING {
                listing = manifest.listing;
                continue;
            }
            let is_own = probe.is_folder || file.as_deref() == Some(name);
            // The manifest of a folder, or of the other file of a pair, speaks for a file only when it names that file.
            if is_own || (file.is_some() && manifest.files.iter().any(|f| f.name == name)) {
                return Ok(Described::by(manifest));
            }
            let whole = probe.store.display(folder);
            let part = if file.is_none() { above::part(probe, manifest, name, &whole) } else { None };
            if let Some((manifest, part_of)) = part {
                return Ok(Described { part_of: Some(part_of), ..Described::by(manifest) });
            }
        }
    }
    for format in probe.table {
        if let Some(manifest) = format.find_manifest(probe)? {
            return Ok(Described { listing, ..Described::by(manifest) });
        }
    }
    not_lost(probe)?;
    if let Some(manifest) = of_files(probe)? {
        return Ok(Described { listing, ..Described::by(manifest) });
    }
    let (manifest, part_of) = above::find(probe)?.unzip();
    Ok(Described { manifest, listing, part_of })
}

// What the manifests beside the files of a folder say of it. Where all data in it is of one, that is the manifest of the folder
// too; where it is of several that name the same tokenizer, what they say of the IDs.
fn of_files(probe: &Probe) -> Result<Option<Manifest>> {
    let suffix = format!(".{MANIFEST_FILE}");
    // Asked for where it was seen beside its file: a store answers each question late.
    let of_file = |name: &'_ str| name.strip_suffix(&suffix).map(str::to_string);
    let files: BTreeSet<String> = probe.names().filter_map(of_file).collect();
    let files: Vec<&str> = probe.names().filter(|name| files.contains(*name)).collect();
    let (mut described, mut named) = (Vec::new(), BTreeSet::new());
    for file in files {
        let object = probe.store.open(&probe.below(&format!("{file}{suffix}")));
        let name = key::name_of(file);
        let manifest = match object.and_then(|object| manifest_beside(probe.table, object.as_ref(), name)) {
            Ok(manifest) => manifest,
            Err(e) if e.is_of_the_run() => return Err(e),
            // Opening its file says what is wrong with it.
            Err(_) => return Ok(None),
        };
        let folder = key::folder_of(file);
        named.extend(manifest.files.iter().map(|row| key::below(folder, &row.name)));
        described.push((folder, manifest));
    }
    let of = |manifest: &Manifest| {
        super::info_of(probe.table, &manifest.format).map_or(&[][..], |info| info.data_suffixes)
    };
    let suffixes: Vec<&str> = described.iter().flat_map(|(_, manifest)| of(manifest)).copied().collect();
    let is_data = |name: &str| suffixes.iter().any(|suffix| key::has_suffix(name, suffix));
    if probe.names().any(|name| is_data(name) && !named.contains(name)) {
        return Ok(None);
    }
    let Some(((folder, first), others)) = described.split_first() else { return Ok(None) };
    if others.is_empty() {
        // It says what the folder is, where that may be a folder.
        let is_folder =
            |format: &&&dyn Format| format.name() == first.format && format.recognise(probe) > Confidence::No;
        return Ok((folder.is_empty() && probe.table.iter().any(|f| is_folder(&f))).then(|| first.clone()));
    }
    let of_all = |of: &Manifest| {
        let tokenizer = of.tokenizer.as_ref().map(|lock| lock.hash.clone());
        (of.format.clone(), of.dtype, of.record_length, tokenizer, of.eos)
    };
    if first.tokenizer.is_none() || others.iter().any(|(_, other)| of_all(other) != of_all(first)) {
        return Ok(None);
    }
    let mut shared = Manifest::new(&first.format);
    shared.take_ids_of(first);
    (shared.dtype, shared.record_length) = (first.dtype, first.record_length);
    shared.vocab_size = described.iter().map(|(_, manifest)| manifest.vocab_size).max().flatten();
    shared.records = described.iter().try_fold(0u64, |sum, (_, manifest)| sum.checked_add(manifest.records?));
    for (folder, manifest) in &described {
        let named = |row: &FileRow| FileRow { name: key::below(folder, &row.name), ..row.clone() };
        shared.files.extend(manifest.files.iter().map(named));
    }
    Ok(Some(shared))
}

// Whoever wrote block checksums beside a file wrote a manifest there, too, which says what the file is: without it, it would open
// as something else. Another machine is not asked.
fn not_lost(probe: &Probe) -> Result<()> {
    let sums = format!("{}.{CHECKSUMS_FILE}", probe.key);
    if probe.is_folder
        || probe.store.walks_by_manifest()
        || open_if_there(probe.store.as_ref(), &sums)?.is_none()
    {
        return Ok(());
    }
    let name = key::name_of(&probe.key);
    Err(Error::corrupt(format!("its manifest {name}.{MANIFEST_FILE} is gone: its block checksums are there"))
        .at(probe.store.display(&probe.key))
        .hint("bring the manifest back or write the data again; without the checksums it opens as what it seems to be"))
}
