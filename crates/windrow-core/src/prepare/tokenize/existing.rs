//! Outputs that are there already: the same, so that nothing has to be done, or others, which are not touched unasked.

use crate::manifest::SIDE_FILE;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::options::{TokenLayout, TokenizeOptions};
use crate::error::{Error, Kind, Result};
use crate::format::{self, Look};
use crate::manifest::SideFile;
use crate::output::{self, files};
use crate::prepare::documents::{CHUNK_BYTES, CHUNK_FILES, DocumentLayout};
use crate::prepare::{Report, replaced};
use crate::store::{Local, Store};

/// What is there already, when it is what this task would write; `Exists` when it is something else.
pub(super) fn existing(
    out: &Path,
    targets: &[String],
    options: &TokenizeOptions,
    wanted: &SideFile,
) -> Result<Option<Report>> {
    let other = match options.layout {
        TokenLayout::Forager => SIDE_FILE.to_string(),
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
        TokenLayout::Forager => format!("{}/{}", options.index_folder, SIDE_FILE),
        _ => SIDE_FILE.to_string(),
    };
    match Local::new(out).open(&key).and_then(|object| SideFile::read(object.as_ref())) {
        Ok(side) if is_same(&side, wanted) && targets.iter().all(|t| files::exists(&out.join(t))) => {
            Ok(Some(unchanged(out, &side)))
        }
        _ => Err(output::differs(&out.join(found))),
    }
}

/// The same for a folder of documents, which is there as a whole or not at all.
pub(super) fn existing_documents(
    out: &Path,
    options: &TokenizeOptions,
    wanted: &SideFile,
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
    let side = Look::at(Arc::new(Local::new(out)), "").ok().and_then(|look| look.side);
    match side.filter(|side| is_same(side, wanted)) {
        Some(side) => Ok(Some(unchanged(out, &side))),
        None => Err(output::differs(out)),
    }
}

fn is_same(side: &SideFile, wanted: &SideFile) -> bool {
    side.inputs == wanted.inputs && side.options == wanted.options && side.tokenizer == wanted.tokenizer
}

/// The report of a task that had nothing to do.
pub(super) fn unchanged(out: &Path, side: &SideFile) -> Report {
    let count = |name: &str| side.statistics.get(name).and_then(Value::as_u64).unwrap_or(0);
    // Chunks are counted, not listed.
    let (files, output_bytes) = match side.files.is_empty() {
        true => (count(CHUNK_FILES), count(CHUNK_BYTES)),
        false => (side.files.len() as u64, side.files.iter().map(|f| f.size).sum()),
    };
    Report {
        unchanged: true,
        output: out.to_path_buf(),
        files,
        records: side.records.unwrap_or(0),
        documents: count("documents"),
        tokens: count("tokens"),
        dropped_tokens: count("dropped_tokens"),
        padded_tokens: count("padded_tokens"),
        input_bytes: side.inputs.iter().map(|f| f.size).sum(),
        output_bytes,
        resumed_bytes: 0,
    }
}
