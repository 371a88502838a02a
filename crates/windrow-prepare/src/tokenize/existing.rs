//! Outputs that are there already: the same, so that nothing has to be done, or others, which are not touched unasked.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use windrow_core::format::write::{CHUNK_BYTES, CHUNK_FILES, CorpusPlace};
use windrow_core::format::{Probe, Table};
use windrow_core::manifest::{Manifest, TokenizerLock};
use windrow_core::output::{self, files};
use windrow_core::store::{Local, Store};
use windrow_core::{Error, Kind, Result};

use super::options::TokenizeOptions;
use super::place::Place;
use super::texts::TEXT_BYTES;
use crate::skipped::Skipped;
use crate::{Report, UNLEARNED};

/// What is there already, when it is what this task would write; `Exists` when it is something else.
pub(super) fn existing(
    table: Table,
    place: &Place,
    options: &TokenizeOptions,
    wanted: &Manifest,
) -> Result<Option<Manifest>> {
    match &place.inside {
        CorpusPlace::Whole => existing_folder(table, &place.out, options, wanted),
        CorpusPlace::Inside { names, leaving, manifest, others } => {
            existing_inside(&place.out, options, wanted, (names, leaving), manifest, others)
        }
    }
}

fn existing_inside(
    out: &Path,
    options: &TokenizeOptions,
    wanted: &Manifest,
    (names, leaving): (&[String], &[String]),
    manifest: &str,
    others: &[String],
) -> Result<Option<Manifest>> {
    let is_there = |name: &&String| files::exists(&out.join(name));
    if let Some(other) = others.iter().find(is_there) {
        // Both in one folder would be read as one of them.
        return Err(Error::new(Kind::Exists, "the folder holds another data set")
            .at(out.join(other))
            .hint("write into a folder of its own"));
    }
    let Some(found) = names.iter().rev().chain(leaving).find(is_there) else { return Ok(None) };
    if options.overwrite {
        return options.to.may_replace(out).map(|()| None);
    }
    match Local::new(out).open(manifest).and_then(|object| Manifest::read(object.as_ref())) {
        Ok(manifest) if is_same(&manifest, wanted) && names.iter().all(|name| is_there(&name)) => {
            Ok(Some(manifest))
        }
        _ => Err(output::differs(&out.join(found))),
    }
}

// The same for a folder that is there as a whole or not at all.
fn existing_folder(
    table: Table,
    out: &Path,
    options: &TokenizeOptions,
    wanted: &Manifest,
) -> Result<Option<Manifest>> {
    // A link to an empty folder stays: what is made would take the place of the link.
    let is_empty = || !out.is_symlink() && files::names(out).is_ok_and(|names| names.is_empty());
    if !files::exists(out) || is_empty() {
        return Ok(None);
    }
    if options.overwrite {
        return if options.to.is_one(out) {
            Ok(None)
        } else {
            Err(Error::new(
                Kind::Exists,
                format!(
                    "the output exists and holds something other than {}; nothing was changed",
                    options.to.name()
                ),
            )
            .at(out)
            .hint("--overwrite replaces a data set of the same format only"))
        };
    }
    let found = Probe::at(table, Arc::new(Local::new(out)), "").ok().filter(|found| found.part_of.is_none());
    let found = found.and_then(|found| found.manifest);
    match found.filter(|manifest| is_same(manifest, wanted)) {
        Some(manifest) => Ok(Some(manifest)),
        None => Err(output::differs(out)),
    }
}

fn is_same(manifest: &Manifest, wanted: &Manifest) -> bool {
    manifest.inputs == wanted.inputs
        && manifest.options == wanted.options
        && TokenizerLock::are_same(manifest.tokenizer.as_ref(), wanted.tokenizer.as_ref())
}

/// The report of a task that had nothing to do.
pub(super) fn unchanged(out: &Path, manifest: &Manifest) -> Report {
    let count = |name: &str| manifest.statistics.get(name).and_then(Value::as_u64).unwrap_or(0);
    // Chunks are counted, not listed.
    let (files, output_bytes) = if manifest.files.is_empty() {
        (count(CHUNK_FILES), count(CHUNK_BYTES))
    } else {
        (manifest.files.len() as u64, manifest.files.iter().map(|f| f.size).sum())
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
        unlearned_documents: count(UNLEARNED),
        skipped: Skipped::read(&manifest.statistics),
        input_bytes: manifest.inputs.iter().map(|f| f.size).sum::<u64>() + count(TEXT_BYTES),
        output_bytes,
        resumed_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::manifest::Golden;

    use super::*;

    #[test]
    fn what_another_version_wrote_with_the_same_tokenizer_is_the_same() {
        let with = |change: fn(&mut TokenizerLock)| {
            let golden = vec![Golden { text: "a".to_string(), ids: vec![1] }];
            let mut lock = TokenizerLock { hash: "0".to_string(), golden, ..TokenizerLock::default() };
            change(&mut lock);
            Manifest { tokenizer: Some(lock), ..Manifest::new("tokens") }
        };
        let wanted = with(|_| {});
        assert!(is_same(&with(|lock| lock.windrow = "0.0.1".to_string()), &wanted));
        let changes: [fn(&mut TokenizerLock); 4] = [
            |lock| lock.hash = "1".to_string(),
            |lock| lock.vocab_size = 2,
            |lock| drop(lock.special.insert("</s>".to_string(), 1.into())),
            |lock| lock.golden[0].ids = vec![2],
        ];
        assert!(changes.into_iter().all(|change| !is_same(&with(change), &wanted)));
        assert!(!is_same(&Manifest::new("tokens"), &wanted));
    }
}
