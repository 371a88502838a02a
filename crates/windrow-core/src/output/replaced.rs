//! What `--overwrite` replaces: what windrow writes itself, and nothing else.

use std::path::Path;

use super::checksums::names_beside;
use super::files;
use crate::error::{Error, Kind, Result};
use crate::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use crate::store::{Local, Store};

/// That what is at `path` is a folder of nothing but names that are windrow's own, or nothing.
///
/// # Errors
/// `Exists` naming what is something else.
pub fn folder(path: &Path, is_own: impl Fn(&str) -> bool) -> Result<()> {
    if !files::exists(path) {
        return Ok(());
    }
    match files::names(path) {
        Ok(names) => {
            names.iter().find(|name| !is_own(name)).map_or(Ok(()), |name| Err(left(&path.join(name))))
        }
        Err(_) => Err(left(path)),
    }
}

/// That what is at `path` is a file, or a link to one, or nothing.
///
/// # Errors
/// `Exists` for a folder, and for a device, pipe or socket, which others use by its name.
pub fn file(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Err(left(path));
    }
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        Err(Error::new(Kind::Exists, "a device, a pipe or a socket is where the output goes")
            .at(path)
            .hint("write to another path: only files are replaced"))
    } else {
        Ok(())
    }
}

/// That the stream called `data`, and what describes it, is all that would be replaced in the folder. A stream that nothing
/// describes may be somebody's own.
///
/// # Errors
/// `Exists` naming what is something else; why a manifest cannot be read.
pub fn stream(folder: &Path, data: &str) -> Result<()> {
    let beside = names_beside(data);
    let [_, _, of_it] = beside.each_ref().map(|name| folder.join(name));
    let names = beside.iter().map(String::as_str).chain([MANIFEST_FILE, CHECKSUMS_FILE]);
    names.map(|name| folder.join(name)).try_for_each(|path| file(&path))?;
    let [manifest, checksums] = [MANIFEST_FILE, CHECKSUMS_FILE].map(|name| folder.join(name));
    match read(folder) {
        Ok(found) if is_of(&found, data) => Ok(()),
        // It is being written, or damaged.
        Err(e) if e.kind() == Kind::Stale => Ok(()),
        Err(e) if e.kind() == Kind::Corrupt && files::exists(&folder.join(data)) => Ok(()),
        Err(e) if e.kind() == Kind::NotFound => {
            let data = folder.join(data);
            let is_bare = files::exists(&data) && !files::exists(&of_it);
            if files::exists(&checksums) {
                Err(left(&checksums))
            } else if is_bare {
                Err(left(&data))
            } else {
                Ok(())
            }
        }
        Err(e) if e.kind() != Kind::Corrupt => Err(e),
        _ => Err(left(&manifest)),
    }
}

/// The names of what describes the file `data` as all that there is in the folder: they go with it.
pub fn describing(folder: &Path, data: &str) -> Vec<String> {
    let mut names = vec![MANIFEST_FILE.to_string(), CHECKSUMS_FILE.to_string()];
    let is_described = read(folder).is_ok_and(|found| is_of(&found, data));
    names.retain(|name| is_described && files::exists(&folder.join(name)));
    names
}

fn read(folder: &Path) -> Result<Manifest> {
    Manifest::read(Local::new(folder).open(MANIFEST_FILE)?.as_ref())
}

// Whether a manifest is of this file, with what is beside it, and of no other.
fn is_of(manifest: &Manifest, data: &str) -> bool {
    let listed = manifest.listing.iter().flat_map(|listing| &listing.files).map(|file| &file.name);
    let names: Vec<&String> = manifest.files.iter().map(|row| &row.name).chain(listed).collect();
    let beside = names_beside(data);
    names.iter().any(|name| *name == data) && names.iter().all(|name| beside.contains(name))
}

fn left(path: &Path) -> Error {
    Error::new(Kind::Exists, "something else is where the output goes")
        .at(path)
        .hint("in a folder, @overwrite=true@ replaces only what windrow wrote: write elsewhere, or remove it")
}
