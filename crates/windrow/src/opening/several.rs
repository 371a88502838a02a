//! Several paths as one data set: each is opened by itself, and their records follow each other.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::format::lines::{self, JsonKind};
use windrow_core::format::verify::Findings;
use windrow_core::format::{Format, Options, Probe, splits, with_folder_columns};
use windrow_core::manifest::Manifest;
use windrow_core::source::{Concat, Kind as Records, SharedSource};
use windrow_core::store::{Local, Store, StoreSet, is_url};
use windrow_core::{Error, Kind, Result, stop};
use windrow_formats::{Jsonl, is_empty_part};
use windrow_prepare::{VerifyOptions, Watch};

use crate::opening::dataset::Dataset;
use crate::opening::paths::Paths;
use crate::opening::remote::ReadOnce;
use crate::opening::remote::Stores;
use crate::opening::resolve::{Found, resolve};
use crate::opening::together::{may_be_of_columns, together};
use crate::opening::{open_one, verify_one, with_tokenizer_hash};

impl Paths {
    /// Opens what is there as one data set: each path by itself, their records one after the other. A glob gives its files
    /// in natural order; braces and lists keep the order in which they are written.
    ///
    /// # Errors
    /// As [`open_with`](crate::open_with); `Config` for an empty list, for a path that is there twice and for braces that are
    /// not a range; `NotFound` for a glob that matches nothing; `Mismatch` naming two paths whose records cannot be joined.
    pub fn open(&self, options: &Options) -> Result<Dataset> {
        self.open_by(options, &Stores::default())
    }

    /// Opens what is there as one data set, in formats of one's own too.
    pub(crate) fn open_by(&self, options: &Options, stores: &Stores) -> Result<Dataset> {
        refuse_empty(self)?;
        let found = resolve(self, options, stores)?;
        if let ([one], true) = (&found[..], found.iter().all(|found| !found.is_glob)) {
            return open_one(&one.paths[0], options, stores);
        }
        let members = members(&found, options)?;
        refuse_repeated(&members)?;
        if members.iter().all(|path| path.extension().is_some()) {
            stop::expect_named(members.len() as u64);
        }
        let opened = RefCell::default();
        let join = |options: &Options| {
            let one_by_one = open_each(&members, options, stores).and_then(|data| {
                let joined = joined(&data);
                opened.replace(data);
                joined
            });
            match one_by_one {
                Err(e) if may_be_of_columns(&e) => {
                    match together(self, &members, &with_tokenizer_hash(options)?, stores) {
                        Ok(Some(data)) => {
                            let source = data.source().clone();
                            opened.replace(vec![data]);
                            Ok(source)
                        }
                        // It names the column and both types.
                        Err(of_columns) if of_columns.kind() == Kind::Mismatch => Err(of_columns),
                        _ => Err(e),
                    }
                }
                joined => joined,
            }
        };
        // One of them may be a folder that says a column of what is in it.
        let names: Vec<String> = members.iter().map(|path| format!("{}/", path.display())).collect();
        let source = with_folder_columns(
            &base(&found).to_string_lossy(),
            names.iter().map(String::as_str),
            options,
            join,
        )?;
        let opened: Vec<Dataset> = opened.into_inner();
        let manifest = shared_manifest(&opened, options)?;
        let mut stores = StoreSet::default();
        opened.iter().for_each(|data| stores.add_all(data.stores()));
        let hidden = hidden(&found, &opened);
        let opened = Dataset::new(self.clone(), options.clone(), source, manifest, stores);
        Ok(Dataset { hidden, ..opened.map_err(|e| e.or_at(self.to_string()))? })
    }

    /// The files and folders that they stand for, as the inputs of a task: of a pattern those of one split, unless one is named.
    ///
    /// # Errors
    /// As [`Paths::resolved`]; `Config` for a pattern that fits files of several splits.
    pub fn inputs(&self, options: &Options, split: Option<&str>) -> Result<Vec<PathBuf>> {
        let found = resolve(self, options, &Stores::default())?;
        if split.is_none() {
            refuse_splits(&found)?;
        }
        Ok(found.into_iter().flat_map(|found| found.paths).collect())
    }

    /// Checks what is there, one path after the other; see [`verify`](crate::verify()).
    ///
    /// # Errors
    /// As [`verify`](crate::verify()); as [`Paths::open`] for patterns and lists.
    pub fn verify(&self, options: &VerifyOptions, watch: &dyn Watch) -> Result<Findings> {
        self.verify_with(options, &Options::default(), watch)
    }

    /// Checks what is there, where `stores` says how the stores of URLs are asked. It is read once and not kept.
    ///
    /// # Errors
    /// As [`Paths::verify`]; what a store says.
    pub fn verify_with(
        &self,
        options: &VerifyOptions,
        stores: &Options,
        watch: &dyn Watch,
    ) -> Result<Findings> {
        refuse_empty(self)?;
        let members = self.resolved(stores)?;
        let far = ReadOnce::new(stores);
        if let [only] = &members[..] {
            return verify_one(only, options, &far, watch);
        }
        refuse_repeated(&members)?;
        let (mut all, mut looked) = (Findings::default(), HashSet::new());
        for path in &members {
            // The other half of a pair, which was looked at with the first.
            if looked.contains(&absolute(path)) {
                continue;
            }
            // The others are looked at all the same.
            let found = match verify_one(path, options, &far, watch) {
                Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Unrecognised) => {
                    Findings::refused(&path.display().to_string(), &e)
                }
                found => found?,
            };
            // Names are relative to the folder that is checked, and here there are several.
            let folder = if far.is_folder(path) { path } else { path.parent().unwrap_or(Path::new("")) };
            looked.extend(found.files.keys().map(|file| absolute(&folder.join(file))));
            all.take_all(found, &|file| folder.join(file).display().to_string());
        }
        Ok(all)
    }
}

// Their records, one after the other.
fn joined(opened: &[Dataset]) -> Result<SharedSource> {
    refuse_shared(opened)?;
    check_alike(opened)?;
    let sources: Vec<SharedSource> = opened.iter().map(|data| data.source().clone()).collect();
    match &sources[..] {
        [only] => Ok(only.clone()),
        [first, ..] => Ok(Arc::new(Concat::new(first.format(), sources)?)),
        [] => Err(Error::config("the paths stand for nothing")),
    }
}

// The folder that all of them are below: that of a pattern is what it begins with.
fn base(found: &[Found]) -> &Path {
    fn folder(found: &Found) -> Option<&Path> {
        let is_plain =
            |path: &&Path| !found.is_glob || !path.to_string_lossy().contains(['*', '?', '[', '{']);
        found.written.ancestors().skip(1).find(is_plain)
    }
    let mut folders = found.iter().filter_map(folder);
    let first = folders.next().unwrap_or(Path::new(""));
    folders.fold(first, |common, folder| {
        common.ancestors().find(|above| folder.starts_with(above)).unwrap_or(Path::new(""))
    })
}

// What was passed over by the patterns, and in the folders.
fn hidden(found: &[Found], opened: &[Dataset]) -> Vec<String> {
    let mut hidden: Vec<String> = found.iter().flat_map(|found| found.hidden.iter().cloned()).collect();
    for data in opened {
        hidden.extend(data.hidden.iter().map(|name| format!("{}/{name}", data.paths())));
    }
    hidden.sort();
    hidden.dedup();
    hidden
}

fn refuse_empty(paths: &Paths) -> Result<()> {
    match paths.iter().len() {
        0 => Err(Error::config("the list of paths is empty").hint("name a file, a folder or a pattern")),
        _ => Ok(()),
    }
}

// The files and folders to open: where a split is wanted, of files those whose names say it.
fn members(found: &[Found], options: &Options) -> Result<Vec<PathBuf>> {
    let is_split = |path: &Path, split: &str| path.join(split).exists() || path.is_dir();
    let Some(split) = &options.split else {
        refuse_splits(found)?;
        return Ok(found.iter().flat_map(|found| found.paths.iter().cloned()).collect());
    };
    let mut members: Vec<&Path> = found.iter().flat_map(|found| &found.paths).map(PathBuf::as_path).collect();
    let files: Vec<&Path> = members.iter().copied().filter(|path| !is_split(path, split)).collect();
    let names = names(&files);
    let at = found.first().map_or_else(String::new, |found| found.written.display().to_string());
    if !files.is_empty() {
        let mut chosen = splits::chosen(names.iter().map(String::as_str), split, &at)?.into_iter();
        members.retain(|path| is_split(path, split) || chosen.next().unwrap_or_default());
    }
    Ok(members.into_iter().map(Path::to_path_buf).collect())
}

// Files that a pattern fits are those of one split.
fn refuse_splits(found: &[Found]) -> Result<()> {
    found.iter().filter(|found| found.is_glob).try_for_each(|one| {
        let files = one.paths.iter().map(PathBuf::as_path).filter(|path| path.is_file() || is_url(path));
        let names = names(&files.collect::<Vec<_>>());
        splits::refuse_several(names.iter().map(String::as_str), &one.written.display().to_string())
    })
}

// Names of files below the folder that they all are in.
fn names(files: &[&Path]) -> Vec<String> {
    let mut folder = files.first().and_then(|file| file.parent()).unwrap_or(Path::new(""));
    while !files.iter().all(|file| file.starts_with(folder)) {
        folder = folder.parent().unwrap_or(Path::new(""));
    }
    files
        .iter()
        .map(|file| file.strip_prefix(folder).unwrap_or(file).to_string_lossy().into_owned())
        .collect()
}

// Twice the same records are a mistake more often than meant, and a weight says it better.
fn refuse_repeated(members: &[PathBuf]) -> Result<()> {
    let mut seen: HashMap<PathBuf, usize> = HashMap::new();
    for (number, path) in members.iter().enumerate() {
        let whole = absolute(path);
        if let Some(first) = seen.insert(whole, number) {
            return Err(Error::config(format!(
                "the path is there twice, as number {first} and number {number}"
            ))
            .at(path)
            .hint("name it once; for records that come more often, mix two views with weights: @mix@"));
        }
    }
    let above = |path: &Path| {
        let whole = absolute(path);
        whole.ancestors().skip(1).find_map(|folder| seen.get(folder).copied())
    };
    for path in members {
        if let Some(folder) = above(path) {
            return Err(Error::config(format!(
                "the path is in {}, which is there too",
                members[folder].display()
            ))
            .at(path)
            .hint("name the folder, or what is in it"));
        }
    }
    Ok(())
}

// A URL is the same from anywhere.
fn absolute(path: &Path) -> PathBuf {
    if is_url(path) {
        path.to_path_buf()
    } else {
        std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
    }
}

fn open_each(members: &[PathBuf], options: &Options, stores: &Stores) -> Result<Vec<Dataset>> {
    // A tokenizer is loaded once.
    let options = Options { random_split: None, period: None, ..with_tokenizer_hash(options)? };
    let of_file = Options { split: None, ..options.clone() };
    let count = members.len();
    let open = |(number, path): (usize, &PathBuf)| {
        // Of URLs, names alone decide the split here.
        let is_chosen = options.split.is_some() && (path.is_file() || is_url(path));
        let opened = open_one(path, if is_chosen { &of_file } else { &options }, stores);
        opened.map_err(|e| {
            if e.kind() == Kind::NotFound && e.hint_text().is_none() {
                e.hint(format!("it is number {number} of {count} paths, counted from 0"))
            } else {
                e
            }
        })
    };
    let (mut opened, mut empty) = (Vec::with_capacity(count), None);
    for (number, path) in members.iter().enumerate() {
        match open((number, path)) {
            Ok(data) => opened.push(data),
            Err(e) => match odd_part(path, &options, stores) {
                None => return Err(e),
                Some(OddPart::Empty) => empty = Some(empty.unwrap_or(e)),
                Some(OddPart::Line) => {
                    let as_lines =
                        Options { format: Some(Jsonl.name().to_string()), split: None, ..options.clone() };
                    opened.push(Dataset { options: options.clone(), ..open_one(path, &as_lines, stores)? });
                }
            },
        }
    }
    // An empty part has no records, but nothing else than such parts is no data.
    match (opened.is_empty(), empty) {
        (true, Some(e)) => Err(e),
        _ => Ok(opened),
    }
}

/// A file that is no data set by itself, and is a part of one among others.
enum OddPart {
    /// No record is in it.
    Empty,
    /// One object, which is a line.
    Line,
}

// What a folder takes for a part of what is in it; `None` for anything else, and for what cannot be read.
fn odd_part(path: &Path, options: &Options, stores: &Stores) -> Option<OddPart> {
    let name = path.file_name()?.to_str()?;
    let (store, key): (Arc<dyn Store>, String) = match stores.place(path, options).ok()? {
        Some(place) => (place.store, place.key),
        None => (Arc::new(Local::new(path.parent()?)), name.to_string()),
    };
    let probe = Probe::at(stores.table, store, &key).ok()?;
    if is_empty_part(&probe) {
        return Some(OddPart::Empty);
    }
    if options.format.is_some() || !lines::may_hold_records(name) || lines::is_description(name) {
        return None;
    }
    let object = probe.store.open(&key).ok()?;
    let is_line = JsonKind::of(object.as_ref()).ok()? == JsonKind::OneLine;
    (is_line && lines::first_keys(object.as_ref()).ok()?.is_some()).then_some(OddPart::Line)
}

// Halves of a pair, both matched by a glob, each open the whole of it.
fn refuse_shared(opened: &[Dataset]) -> Result<()> {
    let mut seen: HashMap<String, &Dataset> = HashMap::new();
    for data in opened {
        for file in data.source().files() {
            if let Some(other) = seen.insert(file.file, data).filter(|other| !std::ptr::eq(*other, data)) {
                return Err(Error::config(format!("the same records as those of {}", other.paths()))
                    .at(data.paths().to_string())
                    .hint("name one of the two, as with *.bin for pairs of .bin and .idx"));
            }
        }
    }
    Ok(())
}

// What a source of several cannot bridge, or would bridge as nobody means it: IDs of two dtypes as fractions.
fn check_alike(opened: &[Dataset]) -> Result<()> {
    // Where there are no records there are no numbers.
    let has_records = |data: &&Dataset| !data.source().is_empty();
    let Some(first) = opened.iter().find(has_records).or(opened.first()) else { return Ok(()) };
    let differ = |what: &str, a: &str, other: &Dataset, b: &str| {
        Err(Error::mismatch(format!("{what} {a} in {}, {b} here", first.paths()))
            .at(other.paths().to_string())
            .hint("open each by itself, and mix their views: @mix@"))
    };
    for other in opened {
        let (a, b) = (first.source(), other.source());
        if a.format() != b.format() {
            return differ("two formats cannot be one data set:", a.format(), other, b.format());
        }
        let (a, b) = (a.schema(), b.schema());
        let are_numbers = has_records(&other) && a.kind == Records::Numbers && b.kind == Records::Numbers;
        if are_numbers && a.element.dtype != b.element.dtype && !(a.own_dtypes && b.own_dtypes) {
            let (a, b) = (a.element.dtype.name(), b.element.dtype.name());
            return differ("numbers of two dtypes cannot be one data set:", a, other, b);
        }
    }
    Ok(())
}

// What the manifests say together of token IDs, where each member has one and they agree.
fn shared_manifest(opened: &[Dataset], options: &Options) -> Result<Option<Manifest>> {
    let described: Vec<(&Dataset, &Manifest)> =
        opened.iter().filter_map(|data| Some((data, data.manifest()?))).collect();
    let Some(((first, manifest), others)) = described.split_first() else { return Ok(None) };
    let name =
        |manifest: &Manifest| manifest.tokenizer.as_ref().map(|lock| (lock.name.clone(), lock.hash.clone()));
    for (other, of_other) in others {
        if let (Some(a), Some(b)) = (name(manifest), name(of_other))
            && a.1 != b.1
            && !options.trust
        {
            return Err(Error::mismatch(format!(
                "token IDs of two tokenizers: {} in {}, {} here",
                a.0,
                first.paths(),
                b.0
            ))
            .at(other.paths().to_string())
            .hint("IDs of one tokenizer mean nothing to another; trust opens them all the same"));
        }
    }
    let is_shared = described.len() == opened.len()
        && others.iter().all(|(_, other)| name(other) == name(manifest) && other.eos == manifest.eos);
    Ok(is_shared.then(|| {
        let mut shared = Manifest::new(&manifest.format);
        shared.take_ids_of(manifest);
        shared.windrow.clone_from(&manifest.windrow);
        shared.vocab_size = described.iter().map(|(_, manifest)| manifest.vocab_size).max().flatten();
        shared
    }))
}
