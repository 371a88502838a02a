//! Files that cannot be joined one by one, as their columns differ, opened together by their format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::format::{self, Options, Probe};
use windrow_core::store::{self, Local, Store, is_url};
use windrow_core::{Error, Kind, Result};

use crate::opening::dataset::Dataset;
use crate::opening::paths::Paths;
use crate::opening::remote::Stores;

/// Whether an error may be that columns differ between the files: types, or one that is not in all of them.
pub(crate) fn may_be_of_columns(error: &Error) -> bool {
    let is_lacking = || {
        error.kind() == Kind::Config && matches!(error.place().field.as_deref(), Some("columns" | "column"))
    };
    error.kind() == Kind::Mismatch || is_lacking()
}

/// These files as one data set, by a format that joins columns; `None` where there are others than files of one store, or their
/// format joins none.
///
/// # Errors
/// As [`format::open`].
pub(crate) fn together(
    paths: &Paths,
    members: &[PathBuf],
    options: &Options,
    stores: &Stores,
) -> Result<Option<Dataset>> {
    let Some((store, keys)) = places(members, options, stores)? else { return Ok(None) };
    let Some(first) = keys.first() else { return Ok(None) };
    // A split was chosen already, and the manifest of one file is not that of all.
    let options_of_format = Options { split: None, ..options.clone() };
    let probe = Probe { manifest: None, ..Probe::at(stores.table, store.clone(), first)? };
    let opened = || format::open_files(stores.table, &probe, &keys, &options_of_format);
    let Some(source) = store::whole(opened)? else { return Ok(None) };
    let opened = Dataset::new(paths.clone(), options.clone(), source, None, store.into());
    opened.map(Some).map_err(|e| e.or_at(paths.to_string()))
}

/// The store that files are in, and their keys.
type Files = (Arc<dyn Store>, Vec<String>);

// Those of paths that are in one store.
fn places(members: &[PathBuf], options: &Options, stores: &Stores) -> Result<Option<Files>> {
    if members.iter().all(is_url) {
        let mut found: Option<Files> = None;
        for path in members {
            let Some(place) = stores.place(path, options)? else { return Ok(None) };
            match &mut found {
                None => found = Some((place.store, vec![place.key])),
                Some((store, keys)) if Arc::ptr_eq(store, &place.store) => keys.push(place.key),
                Some(_) => return Ok(None),
            }
        }
        return Ok(found);
    }
    let folder = members.first().and_then(|path| path.parent());
    let is_above_all = |folder: &&Path| members.iter().all(|path| path.starts_with(folder));
    let Some(folder) = folder.and_then(|folder| folder.ancestors().find(is_above_all)) else {
        return Ok(None);
    };
    let key = |path: &PathBuf| {
        let below = path.strip_prefix(folder).ok().filter(|_| path.is_file())?;
        let names: Option<Vec<&str>> = below.iter().map(|name| name.to_str()).collect();
        Some(names?.join("/"))
    };
    let Some(keys) = members.iter().map(key).collect() else { return Ok(None) };
    let root = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let store = Local::new(root).io(options.io).allow_outside(options.allow_outside);
    Ok(Some((Arc::new(store.cache_limit(options.cache_limit)), keys)))
}
