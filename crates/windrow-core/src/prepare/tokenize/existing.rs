//! Outputs that are there already: the same, so that nothing has to be done, or others, which are not touched unasked.

use crate::manifest::MANIFEST_FILE;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::options::{TokenLayout, TokenizeOptions};
use crate::error::{Error, Kind, Result};
use crate::format::{self, Probe};
use crate::manifest::Manifest;
use crate::output::{self, files};
use crate::prepare::documents::{CHUNK_BYTES, CHUNK_FILES, DocumentLayout};
use crate::prepare::{Report, replaced};
use crate::store::{Local, Store};

/// What is there already, when it is what this task would write; `Exists` when it is something else.
pub(super) fn existing(
    out: &Path,
    targets: &[String],
    options: &TokenizeOptions,
    wanted: &Manifest,
) -> Result<Option<Report>> {
    let other = match options.layout {
        TokenLayout::Forager => MANIFEST_FILE.to_string(),
        _ => format!("{}/{}", options.index_folder, format::LOCATIONS),
    };
    if files::exists(&out.join(&other)) {
        // Both in one folder would be read as one of them.
        return Err(Error::new(Kind::Exists, "the folder holds another data set")
            .at(out.join(other))
            .hint("write into a folder of its own"));
    }
    let Some(found) = targets.iter().rev().find(|t| files::exists(&out.join(t))) else { return Ok(None) };
    if options.overwrite {
        match options.layout {
            TokenLayout::Forager => {
                replaced::folder(&out.join(&options.samples_folder), |name| name.ends_with(".bin"))?;
                replaced::folder(&out.join(&options.index_folder), replaced::is_of_index)?;
            }
            _ => targets.iter().try_for_each(|target| replaced::file(&out.join(target)))?,
        }
        return Ok(None);
    }
    let key = match options.layout {
        TokenLayout::Forager => format!("{}/{}", options.index_folder, MANIFEST_FILE),
        _ => MANIFEST_FILE.to_string(),
    };
    match Local::new(out).open(&key).and_then(|object| Manifest::read(object.as_ref())) {
        Ok(manifest) if is_same(&manifest, wanted) && targets.iter().all(|t| files::exists(&out.join(t))) => {
            Ok(Some(unchanged(out, &manifest)))
        }
        _ => Err(output::differs(&out.join(found))),
    }
}

/// The same for a folder of documents, which is there as a whole or not at all.
pub(super) fn existing_documents(
    out: &Path,
    options: &TokenizeOptions,
    wanted: &Manifest,
    layout: &dyn DocumentLayout,
) -> Result<Option<Report>> {
    if !files::exists(out) || files::names(out).is_ok_and(|names| names.is_empty()) {
        return Ok(None);
    }
    if options.overwrite {
        return match layout.is_one(out) {
            true => Ok(None),
            false => {
                Err(Error::new(Kind::Exists, format!("what is there is no {}: it is left", layout.format()))
                    .at(out)
                    .hint("--overwrite replaces a data set of the same layout only"))
            }
        };
    }
    let manifest = Probe::at(Arc::new(Local::new(out)), "").ok().and_then(|probe| probe.manifest);
    match manifest.filter(|manifest| is_same(manifest, wanted)) {
        Some(manifest) => Ok(Some(unchanged(out, &manifest))),
        None => Err(output::differs(out)),
    }
}

fn is_same(manifest: &Manifest, wanted: &Manifest) -> bool {
    manifest.inputs == wanted.inputs
        && manifest.options == wanted.options
        && manifest.tokenizer == wanted.tokenizer
}

/// The report of a task that had nothing to do.
pub(super) fn unchanged(out: &Path, manifest: &Manifest) -> Report {
    let count = |name: &str| manifest.statistics.get(name).and_then(Value::as_u64).unwrap_or(0);
    // Chunks are counted, not listed.
    let (files, output_bytes) = match manifest.files.is_empty() {
        true => (count(CHUNK_FILES), count(CHUNK_BYTES)),
        false => (manifest.files.len() as u64, manifest.files.iter().map(|f| f.size).sum()),
    };
    Report {
        unchanged: true,
        output: out.to_path_buf(),
        files,
        records: manifest.records.unwrap_or(0),
        documents: count("documents"),
        tokens: count("tokens"),
        dropped_tokens: count("dropped_tokens"),
        padded_tokens: count("padded_tokens"),
        input_bytes: manifest.inputs.iter().map(|f| f.size).sum(),
        output_bytes,
        resumed_bytes: 0,
    }
}
