//! A file or folder of a data set that is opened by its own name: the manifest of the folder above it, or of where a link leads,
//! which lists it.

use std::collections::HashSet;
use std::sync::Arc;

use super::Probe;
use crate::error::{Kind, Result};
use crate::format::{Table, companions};
use crate::manifest::{FileRow, LISTING, MANIFEST_FILE, Manifest, PARTS};
use crate::store::{Store, key, open_if_there};

/// The data set that a file or folder is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// Its folder, as the store displays it.
    pub folder: String,
    /// Its files are nothing but numbers of the manifest's dtype.
    pub is_bare: bool,
}

/// Folders above that are asked.
const MOST_FOLDERS: usize = 8;

/// A manifest that lists the file, or all that is in the folder, at `probe`, beside which there is none; and what it is part of.
/// Another machine is not asked.
///
/// # Errors
/// `Corrupt` for a manifest that cannot be read.
pub(super) fn find(probe: &Probe) -> Result<Option<(Manifest, PartOf)>> {
    if probe.store.walks_by_manifest() || (probe.is_folder && probe.entries.is_empty()) {
        return Ok(None);
    }
    let whole = |key: &str| probe.store.above(key).unwrap_or_else(|| (probe.store.clone(), key.to_string()));
    let (store, real) = whole(&probe.key);
    if probe.is_folder {
        return above(probe, &store, &real);
    }
    let name = key::name_of(&probe.key);
    let (around, folder) = whole(key::folder_of(&probe.key));
    let here = key::below(&folder, name);
    if let Some(found) = above(probe, &around, &here)? {
        return Ok(Some(found));
    }
    if here == real {
        return Ok(None);
    }
    let there = Probe { is_folder: false, ..Probe::of_names(probe.table, store.clone(), &real, Vec::new()) };
    let folder = store.display(key::folder_of(&real));
    Ok(there.described_by()?.map(|manifest| {
        let part_of = PartOf { folder, is_bare: is_bare(probe.table, &manifest) };
        (renamed(probe.table, manifest, key::name_of(&real), name), part_of)
    }))
}

// The same in the folders above this place.
fn above(probe: &Probe, store: &Arc<dyn Store>, place: &str) -> Result<Option<(Manifest, PartOf)>> {
    let mut at = place;
    for _ in 0..MOST_FOLDERS {
        if at.is_empty() {
            break;
        }
        at = key::folder_of(at);
        let below = place[at.len()..].trim_start_matches('/');
        if let Some(manifest) = of_folder(probe.table, store, at)?
            && let Some(found) = part(probe, manifest, below, &store.display(at))
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

// The manifest of a folder, in it or where its format keeps one: of one that is not made in parts, which describe themselves.
fn of_folder(table: Table, store: &Arc<dyn Store>, folder: &str) -> Result<Option<Manifest>> {
    let own = || {
        let object = open_if_there(store.as_ref(), &key::below(folder, MANIFEST_FILE))?;
        object.map(|object| Manifest::read(object.as_ref())).transpose()
    };
    let by_format = || {
        let probe = Probe::of_names(table, store.clone(), folder, Vec::new());
        table.iter().find_map(|format| format.find_manifest(&probe).transpose()).transpose()
    };
    let found =
        own().and_then(|own| match own.filter(|own| ![LISTING, PARTS].contains(&own.format.as_str())) {
            Some(own) => Ok(Some(own)),
            None => by_format(),
        });
    match found {
        Err(e) if e.is_of_the_run() || e.kind() == Kind::Corrupt => Err(e),
        // Who may not look into a folder above reads no manifest there.
        found => Ok(found.unwrap_or_default()),
    }
}

/// What the manifest of `whole`, a folder, says of what is at `below` in it, where it lists that file, or all that is in that folder.
/// Of one of several files it says only what they have in common.
pub(super) fn part(
    probe: &Probe,
    mut manifest: Manifest,
    below: &str,
    whole: &str,
) -> Option<(Manifest, PartOf)> {
    let part_of = PartOf { folder: whole.to_string(), is_bare: is_bare(probe.table, &manifest) };
    let (folder, name) =
        if probe.is_folder { (below, "") } else { (key::folder_of(below), key::name_of(below)) };
    let n_files = manifest.files.len();
    for rows in [&mut manifest.files, &mut manifest.index] {
        *rows = std::mem::take(rows).into_iter().filter_map(|row| within(row, folder)).collect();
    }
    if probe.is_folder {
        let rows = manifest.files.iter().chain(&manifest.index);
        let listed: HashSet<&str> = rows.map(|row| row.name.as_str()).collect();
        if manifest.files.is_empty() || !probe.names().all(|name| listed.contains(name)) {
            return None;
        }
    } else {
        let companions = companions(probe.table, name);
        manifest.files.retain(|row| row.name == name || companions.contains(&row.name));
        if manifest.files.iter().all(|row| row.name != name) {
            return None;
        }
    }
    if manifest.files.len() < n_files {
        (manifest.records, manifest.values) = (None, None);
        manifest.statistics.clear();
    }
    Some((manifest, part_of))
}

fn is_bare(table: Table, manifest: &Manifest) -> bool {
    let format = table.iter().find(|format| format.name() == manifest.format);
    format.is_some_and(|format| format.verifier().is_bare(manifest))
}

// A row as a folder below names it, where its file is in that.
fn within(row: FileRow, folder: &str) -> Option<FileRow> {
    let name = match folder {
        "" => row.name.as_str(),
        folder => row.name.strip_prefix(folder)?.strip_prefix('/')?,
    };
    Some(FileRow { name: name.to_string(), ..row })
}

// The manifest of a file as that of a link to it, and of what would be read with that.
fn renamed(table: Table, mut manifest: Manifest, file: &str, link: &str) -> Manifest {
    let [of_file, of_link] = [file, link].map(|name| {
        let mut names = companions(table, name);
        names.push(name.to_string());
        names
    });
    for row in &mut manifest.files {
        if let Some((_, name)) = of_file.iter().zip(&of_link).find(|(name, _)| **name == row.name) {
            row.name.clone_from(name);
        }
    }
    manifest
}
