//! What the manifests beside the files of a folder say of their records.

use serde_json::Value as Json;
use windrow_core::format::{Options, Probe, manifest_beside};
use windrow_core::manifest::{MANIFEST_FILE, Manifest};
use windrow_core::{DType, Error, Result};

use super::write::{COLUMN, PAYLOAD};

/// One of the manifests of this format beside the files of a folder; all of them say the same of records. `None` where the folder
/// has its own, where one of its `n_files` files has none, and where the options decide between manifests that differ.
///
/// # Errors
/// `Mismatch` for manifests that differ; `Stale` for a file of another size; `Corrupt`, `Unsupported` for a manifest that cannot
/// be read; `Io`.
pub(super) fn of_each(
    probe: &Probe,
    format: &str,
    n_files: usize,
    options: &Options,
) -> Result<Option<Manifest>> {
    if !probe.is_folder || probe.manifest.is_some() {
        return Ok(None);
    }
    let suffix = format!(".{MANIFEST_FILE}");
    let mut first: Option<(&str, Manifest)> = None;
    let mut n_described = 0;
    for name in probe.names().filter(|name| !name.contains('/')) {
        let Some(data) = name.strip_suffix(&suffix) else { continue };
        let (key, Some(file)) = (probe.below(name), probe.file(&probe.below(data))?) else { continue };
        let manifest = manifest_beside(probe.table, probe.store.open(&key)?.as_ref(), data)?;
        if manifest.format != format {
            continue;
        }
        if let Some(row) = manifest.files.iter().find(|row| row.name == data && !options.trust) {
            row.check_size(Some(file.size), &probe.store.display(&file.key))?;
        }
        n_described += 1;
        match &first {
            None => first = Some((data, manifest)),
            Some((_, known)) if said(known) == said(&manifest) => {}
            Some(_) if options.payload.is_some() || options.dtype.is_some() => return Ok(None),
            Some((other, known)) => {
                let (this, others) = (shown(&manifest), shown(known));
                return Err(Error::mismatch(format!(
                    "the records are {this}, those of {other:?} are {others}"
                ))
                .at(probe.store.display(&file.key))
                .hint("open the files one by one; @payload=bytes@ opens all of them"));
            }
        }
    }
    // What the others hold is not declared.
    Ok(first.filter(|_| n_described == n_files).map(|(_, manifest)| manifest))
}

// What decides how records open.
fn said(manifest: &Manifest) -> (Option<DType>, Option<&Json>, Option<&Json>) {
    (manifest.dtype, manifest.options.get(PAYLOAD), manifest.options.get(COLUMN))
}

fn shown(manifest: &Manifest) -> String {
    let payload = manifest.options.get(PAYLOAD).and_then(Json::as_str).unwrap_or("bytes");
    match manifest.dtype {
        Some(dtype) => format!("{dtype} numbers"),
        None => payload.to_string(),
    }
}
