//! What a manifest says against the index beside it and the data files below: a cut copy must not pass for a whole one.

use std::collections::HashSet;

use windrow_core::manifest::{FileRow, Manifest};
use windrow_core::store::{Object, Store, plain_name};
use windrow_core::{Error, Kind, Result};

use super::super::json_lines::Rows;
use super::rows::LocationRows;
use super::{FILE_LIST, LOCATIONS, Layout, SAMPLE_SCHEMA, join};

/// The index holds as many rows, the list the files, and the schema the tokens that the manifest says.
///
/// # Errors
/// `Corrupt` naming the part of the index that is not as it was written; `at` says what a person calls it.
pub(super) fn check_claims(
    manifest: &Manifest,
    listed: &[String],
    rows: &LocationRows,
    layout: Option<&Layout>,
    at: &dyn Fn(&'static str) -> String,
) -> Result<()> {
    let wrong = |name, what: String| {
        Err(Error::corrupt(what)
            .at(at(name))
            .hint("the copy looks unfinished; prepared again with @overwrite=true@ it is whole"))
    };
    if let Some(records) = manifest.records.filter(|n| *n != rows.count()) {
        return wrong(LOCATIONS, format!("the index has {} rows, the manifest says {records}", rows.count()));
    }
    let named: HashSet<&str> = manifest.files.iter().map(|f| f.name.as_str()).collect();
    if let Some(name) = listed.iter().find(|name| !named.contains(name.as_str())) {
        return wrong(FILE_LIST, format!("{name:?} is listed, but the manifest does not name it"));
    }
    let listed: HashSet<&str> = listed.iter().map(String::as_str).collect();
    // Files that hold no sample are written, but not listed.
    if let Some(file) = manifest.files.iter().find(|f| f.size > 0 && !listed.contains(f.name.as_str())) {
        return wrong(FILE_LIST, format!("{:?} is not listed, but the manifest names it", file.name));
    }
    let Some(layout) = layout else { return Ok(()) };
    match (manifest.dtype, layout.tokens().ok().map(|tokens| tokens.dtype)) {
        (Some(said), Some(found)) if said != found => {
            return wrong(SAMPLE_SCHEMA, format!("the tokens are {found}, the manifest says {said}"));
        }
        _ => {}
    }
    match manifest.record_length {
        Some(said) if Some(said) != layout.sample_size => {
            let found = layout.sample_size.map_or("a varying number of".to_string(), |n| n.to_string());
            wrong(SAMPLE_SCHEMA, format!("samples of {found} tokens, the manifest says {said}"))
        }
        _ => Ok(()),
    }
}

/// Sizes of all files the manifest names; for JSON records, which others wrote and may edit, the time of change as well.
///
/// # Errors
/// `Stale` naming the file.
pub(super) fn check_unchanged(
    manifest: &Manifest,
    base: &str,
    store: &dyn Store,
    with_time: bool,
) -> Result<()> {
    for row in &manifest.files {
        let key = join(base, &row.name);
        let object = match store.open(&key) {
            Ok(object) => object,
            Err(e) if e.kind() == Kind::NotFound => {
                return Err(stale("the file is gone since it was indexed".to_string(), store, &key));
            }
            Err(e) => return Err(e),
        };
        is_as_it_was(object.as_ref(), row, with_time).map_err(|what| stale(what, store, &key))?;
    }
    for row in expanded_inputs(manifest) {
        let key = join(base, &row.name);
        match store.open(&key) {
            Ok(object) => {
                is_as_it_was(object.as_ref(), row, true).map_err(|what| stale(what, store, &key))?;
            }
            Err(e) if e.is_of_the_run() => return Err(e),
            Err(_) => {}
        }
    }
    Ok(())
}

/// What an index of records expanded, as it is stored. Gone, it leaves the index whole; another one in its place does not.
pub(crate) fn expanded_inputs(manifest: &Manifest) -> impl Iterator<Item = &FileRow> {
    let is_index = manifest.options.get("task").is_some_and(|task| task == "index");
    manifest.inputs.iter().filter(move |row| is_index && plain_name(&row.name) != row.name)
}

fn stale(what: String, store: &dyn Store, key: &str) -> Error {
    Error::new(Kind::Stale, what).at(store.display(key)).hint(
        "`windrow index --overwrite` (or `windrow tokenize --overwrite`) makes it again; @trust=true@ reads it as it is",
    )
}

/// What differs, where something does.
pub(crate) fn is_as_it_was(now: &dyn Object, then: &FileRow, with_time: bool) -> Result<(), String> {
    if now.size() != then.size {
        return Err(format!("the file has {} bytes, it had {} when it was indexed", now.size(), then.size));
    }
    match (then.modified_ns, now.modified_ns()) {
        (Some(then), Some(now)) if with_time && then != now => {
            Err("the file was changed after it was indexed: its time of change differs".to_string())
        }
        _ => Ok(()),
    }
}
