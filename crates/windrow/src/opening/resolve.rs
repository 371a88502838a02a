//! What paths stand for: globs and braces, each as the files and folders that are there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use windrow_core::format::discover::natural_order;
use windrow_core::format::{Options, lake};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE};
use windrow_core::store::glob::Globbed;
use windrow_core::store::{Entry, Local, Walked, braces, glob, is_url, key, only_hidden, with_near_name};
use windrow_core::{Error, Kind, Result};

use crate::opening::formats::formats;
use crate::opening::local;
use crate::opening::paths::Paths;
use crate::opening::remote::Stores;

/// Braces that stand for more are refused.
const MOST_NAMES: u64 = 10_000_000;

impl Paths {
    /// The files and folders that they stand for, in order. A path that is no pattern is itself, whether it is there or not. Of the
    /// options those of stores matter, for globs in URLs.
    ///
    /// # Errors
    /// As [`Paths::open`] for patterns and lists.
    pub fn resolved(&self, options: &Options) -> Result<Vec<PathBuf>> {
        Ok(resolve(self, options, &Stores::default())?.into_iter().flat_map(|found| found.paths).collect())
    }
}

/// What one name without braces stands for.
pub(crate) struct Found {
    /// The path as it is written, braces and all.
    pub(crate) written: PathBuf,
    pub(crate) paths: Vec<PathBuf>,
    /// What fits too, but for its hidden name.
    pub(crate) hidden: Vec<String>,
    /// Whether they were searched for, so that nobody named each.
    pub(crate) is_glob: bool,
}

/// What the paths stand for, in order.
///
/// # Errors
/// `Config` for braces that cannot be expanded; `NotFound` for a glob without a file; `Io`.
pub(crate) fn resolve(paths: &Paths, options: &Options, stores: &Stores) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for path in paths.iter() {
        resolve_one(path, options, stores, &mut found)?;
    }
    Ok(found)
}

fn resolve_one(written: &Path, options: &Options, stores: &Stores, found: &mut Vec<Found>) -> Result<()> {
    let path = &*local(written)?;
    let itself = |path: &Path| Found {
        written: written.to_path_buf(),
        paths: vec![path.to_path_buf()],
        hidden: Vec::new(),
        is_glob: false,
    };
    if is_url(path) {
        return resolve_url(written, options, stores, found);
    }
    let Some((folder, pattern)) = pattern_of(path) else {
        found.push(itself(path));
        return Ok(());
    };
    check(&pattern).map_err(|e| e.at(written))?;
    braces::expand(&pattern, &mut |name| {
        let path = folder.join(name);
        found.push(match pattern_of(&path).filter(|(_, pattern)| glob::is_glob(pattern)) {
            None => itself(&path),
            Some((folder, pattern)) => {
                let (paths, hidden) = searched(&folder, &pattern, &path)?;
                Found { written: written.to_path_buf(), paths, hidden, is_glob: true }
            }
        });
        Ok(())
    })
}

// A URL, whose braces stand for names, and whose globs for objects and folders that the store lists.
fn resolve_url(written: &Path, options: &Options, stores: &Stores, found: &mut Vec<Found>) -> Result<()> {
    let text = written.to_str().unwrap_or_default();
    let itself = |url: &str| Found {
        written: written.to_path_buf(),
        paths: vec![url.into()],
        hidden: Vec::new(),
        is_glob: false,
    };
    let mut add = |url: &str| {
        found.push(
            if glob::is_glob(pattern_of_url(url)) && !(is_web(url) && is_there(url, options, stores)?) {
                match listed(url, options, stores) {
                    // Where nothing may be listed, an object of that very name may be there.
                    Err(e) if e.kind() == Kind::Io && is_there(url, options, stores)? => {
                        log::debug!("{url} is an object's name: {e:#}");
                        itself(url)
                    }
                    listed => Found { written: written.to_path_buf(), ..listed? },
                }
            } else {
                itself(url)
            },
        );
        Ok(())
    };
    // What has this very name goes before those that the braces stand for.
    if !text.contains('{') || (!has_several_places(text) && is_there(text, options, stores)?) {
        return add(text);
    }
    check(text).map_err(|e| e.at(written))?;
    braces::expand(text, &mut add)
}

// Without a query, which only web servers know: its ? is no pattern.
fn pattern_of_url(url: &str) -> &str {
    if is_web(url) { url.split('?').next().unwrap_or_default() } else { url }
}

// A web server, which lists nothing in which other names could be found.
fn is_web(url: &str) -> bool {
    url.starts_with("http")
}

// Whether its braces stand for buckets, hosts or data sets of the Hub.
fn has_several_places(url: &str) -> bool {
    let names = if url.starts_with("hf:") { 3 } else { 1 };
    let place = url.split_once("://").map_or("", |(_, rest)| rest);
    place.split('/').take(names).any(|name| name.contains('{'))
}

// Whether something is there whose name is this one, as it is written.
fn is_there(url: &str, options: &Options, stores: &Stores) -> Result<bool> {
    let Some(place) = stores.place(Path::new(url), options)? else { return Ok(false) };
    // An error here is reported by the later listing or opening.
    Ok(place.store.entry(&place.key).is_ok())
}

// What a URL with a glob names, in natural order, and what is hidden. What has that very name was not searched for.
fn listed(url: &str, options: &Options, stores: &Stores) -> Result<Found> {
    let found = |paths, hidden, is_glob| Found { written: url.into(), paths, hidden, is_glob };
    let Some(place) = stores.place(Path::new(url), options)? else {
        return Ok(found(Vec::new(), Vec::new(), true));
    };
    let parts: Vec<&str> = place.key.split('/').collect();
    let first = parts.iter().position(|part| glob::is_glob(part));
    let Some(first) = first else {
        return Err(Error::unsupported("a glob in the name of a bucket, a host or a data set")
            .at(url)
            .hint("name each of them: a list, or braces"));
    };
    let (folder, pattern) = (parts[..first].join("/"), parts[first..].join("/"));
    let Walked { mut entries, hidden } = place.store.walk_all(&folder)?;
    // A pattern may begin with what hides a name.
    entries.extend(hidden);
    let start = if folder.is_empty() { 0 } else { folder.len() + 1 };
    let listed = entries.iter().filter_map(|entry| entry.key.get(start..));
    let below = |entry: &'_ Entry| match folder.as_str() {
        "" => Some(entry.key.clone()),
        folder => entry.key.strip_prefix(folder)?.strip_prefix('/').map(str::to_string),
    };
    let objects = entries.iter().filter(|entry| !entry.is_folder && !is_own(Path::new(&entry.key)));
    let keys: Vec<String> = objects.filter_map(below).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let Globbed { found: mut names, mut hidden } = glob::among(&pattern, &keys);
    hidden.extend(names.extract_if(.., |name| is_hidden_by_format(Path::new(name), &pattern)));
    let hidden: Vec<String> =
        hidden.iter().map(|name| place.store.display(&key::below(&folder, name))).collect();
    if names.is_empty() && !hidden.is_empty() {
        return Err(only_hidden(&hidden, url.to_string()));
    }
    if names.is_empty() {
        let some: Vec<&str> = keys.iter().take(3).copied().collect();
        return Err(Error::new(Kind::NotFound, "no object matches the pattern").at(url).hint(format!(
            "{} holds {} objects: {}{}",
            place.store.display(&folder),
            keys.len(),
            some.join(", "),
            if keys.len() > some.len() { " and so on" } else { "" }
        )));
    }
    lake::refuse_among(listed, |root| {
        let is_of_it = names.iter().any(|name| key::is_below(root, name));
        is_of_it.then(|| place.store.display(&key::below(&folder, root)))
    })?;
    lake::refuse_above(place.store.as_ref(), &folder)?;
    names.sort_by(|a, b| natural_order(a, b).then_with(|| a.cmp(b)));
    let paths = names.iter().map(|name| place.store.display(&key::below(&folder, name)).into()).collect();
    Ok(found(paths, hidden, names != [pattern.as_str()]))
}

// The folder that is there and the pattern below it; `None` for a path that has no pattern, or that is there as it is
// written: so are its first names, whatever their characters.
fn pattern_of(path: &Path) -> Option<(PathBuf, String)> {
    let (mut folder, mut names) = (PathBuf::new(), path.components());
    loop {
        let rest = names.as_path();
        let longer = folder.join(names.next()?);
        if longer.symlink_metadata().is_err() {
            let mut pattern = rest.to_str()?.to_string();
            let is_pattern = pattern.contains('{') || glob::is_glob(&pattern);
            if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                pattern.push('/');
            }
            return is_pattern.then_some((folder, pattern));
        }
        folder = longer;
    }
}

fn check(pattern: &str) -> Result<()> {
    braces::check(pattern).map_err(|e| Error::config(e.message().to_string()))?;
    if let Some(range) = braces::not_a_range(pattern) {
        return Err(Error::config(format!("{{{range}}} is not a range")).hint(
            "a range is {first..last} or {first..last..step}, of whole numbers or of letters: {000..127}",
        ));
    }
    match braces::count(pattern) {
        n if n > MOST_NAMES => Err(Error::config(format!("the braces stand for {n} names"))
            .hint(format!("expected at most {MOST_NAMES}; a folder or a glob may hold more"))),
        _ => Ok(()),
    }
}

fn searched(folder: &Path, pattern: &str, path: &Path) -> Result<(Vec<PathBuf>, Vec<String>)> {
    let Globbed { found: mut paths, mut hidden } = glob::glob(folder, pattern)?;
    paths.retain(|path| !is_own(path));
    let is_hidden = |path: &Path| is_hidden_by_format(path.strip_prefix(folder).unwrap_or(path), pattern);
    hidden.extend(paths.extract_if(.., |path| is_hidden(path)));
    let hidden: Vec<String> = hidden.iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() && !hidden.is_empty() {
        return Err(only_hidden(&hidden, path.display().to_string()));
    }
    if paths.is_empty() {
        return Err(no_match(folder, pattern, path));
    }
    refuse_tables(&paths)?;
    let mut named: Vec<(String, PathBuf)> =
        paths.into_iter().map(|path| (path.to_string_lossy().into_owned(), path)).collect();
    named.sort_by(|(a, _), (b, _)| natural_order(a, b).then_with(|| a.cmp(b)));
    Ok((named.into_iter().map(|(_, path)| path).collect(), hidden))
}

// Who walks below a table with a log reads files that are no longer live. A folder is asked when it is opened.
fn refuse_tables(paths: &[PathBuf]) -> Result<()> {
    let folders: HashSet<&Path> =
        paths.iter().filter(|path| path.is_file()).filter_map(|path| path.parent()).collect();
    folders.into_iter().try_for_each(|folder| {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        lake::refuse_above(&Local::new(folder), "file")
    })
}

// Nor is what other programs keep there, a file or what is in such a folder, unless a part of the pattern begins, or ends, as such
// names do. The path is the one below the folder where the pattern begins.
fn is_hidden_by_format(path: &Path, pattern: &str) -> bool {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    let hides = |(start, end): &(&str, &str)| {
        let asks =
            |asked: &str| if start.is_empty() { asked.ends_with(end) } else { asked.starts_with(start) };
        let is_hidden = names.iter().any(|name| name.starts_with(start) && name.ends_with(end));
        is_hidden && !pattern.split('/').any(asks)
    };
    formats().iter().any(|format| format.info().hidden.iter().any(hides))
}

// What windrow keeps beside data is not data.
fn is_own(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    [MANIFEST_FILE, CHECKSUMS_FILE].iter().any(|own| match name.strip_suffix(own) {
        Some(before) => before.is_empty() || before.ends_with('.'),
        None => false,
    })
}

// Which folder was searched, and what is there.
fn no_match(folder: &Path, pattern: &str, path: &Path) -> Error {
    let error = Error::new(Kind::NotFound, "no file matches the pattern").at(path);
    let first = pattern.split('/').next().unwrap_or_default();
    let missing = folder.join(first);
    if first != pattern && !glob::is_glob(first) {
        let error = with_near_name(error, &missing);
        return match error.hint_text() {
            Some(_) => error,
            None => error.hint(format!("there is no folder {}", missing.display())),
        };
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    error.hint(match glob::some_names(folder) {
        Some(names) => format!("{} holds {names}", folder.display()),
        None => format!("{} is empty", folder.display()),
    })
}
