//! What paths stand for: globs and braces, each as the files and folders that are there.

use std::path::{Path, PathBuf};

use windrow_core::format::Options;
use windrow_core::format::discover::natural_order;
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE};
use windrow_core::store::{Entry, braces, glob, is_url, key, with_near_name};
use windrow_core::{Error, Kind, Result};

use crate::open::local;
use crate::paths::Paths;
use crate::remote::Stores;

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
                let paths = searched(&folder, &pattern, &path)?;
                Found { written: written.to_path_buf(), paths, is_glob: true }
            }
        });
        Ok(())
    })
}

// A URL, whose braces stand for names, and whose globs for objects and folders that the store lists.
fn resolve_url(written: &Path, options: &Options, stores: &Stores, found: &mut Vec<Found>) -> Result<()> {
    let text = written.to_str().unwrap_or_default();
    let mut add = |url: &str| {
        let is_glob = glob::is_glob(pattern_of_url(url));
        let paths = if is_glob { listed(url, options, stores)? } else { vec![url.into()] };
        found.push(Found { written: written.to_path_buf(), paths, is_glob });
        Ok(())
    };
    if !text.contains('{') {
        return add(text);
    }
    check(text).map_err(|e| e.at(written))?;
    braces::expand(text, &mut add)
}

// Without a query, which only web servers know: its ? is no pattern.
fn pattern_of_url(url: &str) -> &str {
    match url.starts_with("http") {
        true => url.split('?').next().unwrap_or_default(),
        false => url,
    }
}

// What a URL with a glob names, in natural order.
fn listed(url: &str, options: &Options, stores: &Stores) -> Result<Vec<PathBuf>> {
    let Some(place) = stores.place(Path::new(url), options)? else { return Ok(Vec::new()) };
    let parts: Vec<&str> = place.key.split('/').collect();
    let first = parts.iter().position(|part| glob::is_glob(part));
    let Some(first) = first else {
        return Err(Error::unsupported("a glob in the name of a bucket, a host or a data set")
            .at(url)
            .hint("name each of them: a list, or braces"));
    };
    let (folder, pattern) = (parts[..first].join("/"), parts[first..].join("/"));
    let entries = place.store.walk(&folder)?;
    let below = |entry: &'_ Entry| match folder.as_str() {
        "" => Some(entry.key.clone()),
        folder => entry.key.strip_prefix(folder)?.strip_prefix('/').map(str::to_string),
    };
    let objects = entries.iter().filter(|entry| !entry.is_folder && !is_own(Path::new(&entry.key)));
    let keys: Vec<String> = objects.filter_map(below).collect();
    let mut names = glob::among(&pattern, keys.iter().map(String::as_str));
    if names.is_empty() {
        let some: Vec<&str> = keys.iter().take(3).map(String::as_str).collect();
        return Err(Error::new(Kind::NotFound, "no object matches the pattern").at(url).hint(format!(
            "{} holds {} objects: {}{}",
            place.store.display(&folder),
            keys.len(),
            some.join(", "),
            if keys.len() > some.len() { " and so on" } else { "" }
        )));
    }
    names.sort_by(|a, b| natural_order(a, b).then_with(|| a.cmp(b)));
    Ok(names.iter().map(|name| place.store.display(&key::below(&folder, name)).into()).collect())
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

fn searched(folder: &Path, pattern: &str, path: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = glob::glob(folder, pattern)?;
    paths.retain(|path| !is_own(path));
    if paths.is_empty() {
        return Err(no_match(folder, pattern, path));
    }
    let mut named: Vec<(String, PathBuf)> =
        paths.into_iter().map(|path| (path.to_string_lossy().into_owned(), path)).collect();
    named.sort_by(|(a, _), (b, _)| natural_order(a, b).then_with(|| a.cmp(b)));
    Ok(named.into_iter().map(|(_, path)| path).collect())
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
