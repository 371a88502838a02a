//! Data sets in parts, each made by a task of its own: `windrow.json` says of each part how many records and values it holds.

mod alone;
mod files;
mod layout;
mod lengths;
mod names;
mod source;
mod table;
mod unfinished;
mod verify;

use std::sync::Arc;

use serde_json::Value;
use windrow_core::format::verify::Verify;
use windrow_core::format::write::{self, PartFile};
use windrow_core::format::{Confidence, FileNames, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::manifest::{MANIFEST_FILE, Manifest, PARTS};
use windrow_core::source::SharedSource;
use windrow_core::store::key;
use windrow_core::{Error, Result};

use self::files::Files;
use self::layout::Layout;
use self::names::{FOLDER, TABLE, file_name, task_of};
use self::source::Records;
use self::table::{Stored, Table};
use windrow_core::format::numbers::check_number_options;

/// A data set in parts, or one part.
#[derive(Clone, Copy, Debug)]
pub struct Parts;

static INFO: FormatInfo = FormatInfo {
    name: PARTS,
    title: "Data set in parts",
    layout: "a folder of `windrow.json` and `parts/NNNNNN.bin`, headerless little-endian numbers, with `.len`, `.sums` and `.json` \
             each; or one such `.bin`",
    records: "one document or series of a part, [T] or [T, C]; the parts follow each other in the order of their tasks",
    written_by: "`windrow prep`, `wr.prep`",
    holds: &[Holds::Tokens, Holds::Series, Holds::Codes],
    has_own_checksums: true,
    names: FileNames { may_lack_checksums, bare_checksums, ..FileNames::NONE },
    ..FormatInfo::NONE
};

// The lengths and the table of parts are compared with their hashes whenever they are read; a part's own manifest is read
// where the part is opened alone.
fn may_lack_checksums(name: &str) -> Option<bool> {
    let own = [PartFile::Lengths, PartFile::Manifest];
    (name == TABLE || own.iter().any(|what| task_of(name, *what).is_some())).then_some(true)
}

fn bare_checksums(name: &str) -> Option<String> {
    task_of(name, PartFile::Values).map(|task| file_name(task, PartFile::Sums))
}

impl Format for Parts {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let is_one = if probe.is_folder {
            manifest_of(probe).is_some() || unfinished::unfinished(probe).is_some()
        } else {
            alone::is_one(probe)
        };
        Confidence::yes_if(is_one)
    }

    fn in_parts(&self) -> Option<&'static dyn write::Parts> {
        Some(&Layout)
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Parts
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let manifest = manifest_of(probe);
        let files = files(probe)?;
        let known = manifest.and_then(|manifest| manifest.vocab_size);
        let schema = files.stored.schema(options.vocab_size.or(known));
        if !probe.is_folder {
            // It was asked for by name, so it is compared at once.
            files.values(0)?;
            files.lengths(0)?;
        }
        let source = Records::new(files, schema);
        // IDs are below the vocabulary of what made them; verifying looks.
        let is_narrower = |asked: &u64| known.is_none_or(|known| known > *asked);
        let options = Options { vocab_size: options.vocab_size.filter(is_narrower), ..options.clone() };
        check_number_options(&source, manifest, &options, &probe.display())?;
        Ok(Arc::new(source))
    }
}

// The manifest of all parts.
fn manifest_of(probe: &Probe) -> Option<&Manifest> {
    probe.manifest.as_ref().filter(|manifest| probe.is_folder && manifest.format == PARTS)
}

// Whether the parts hold rows of an index.
fn is_index(manifest: &Manifest) -> bool {
    manifest.options.get("task").and_then(Value::as_str) == Some("index")
}

// The parts of a data set, or the part that was asked for.
fn files(probe: &Probe) -> Result<Files> {
    if !probe.is_folder {
        return alone::open(probe);
    }
    let Some(manifest) = manifest_of(probe) else {
        return Err(unfinished::unfinished(probe).unwrap_or_else(|| {
            Error::not_found(format!("expected a {MANIFEST_FILE} of a data set in parts, found none"))
                .at(probe.display())
        }));
    };
    if is_index(manifest) {
        let job = unfinished::job_name(probe);
        return Err(Error::unsupported("an index in parts: rows of an index, not records")
            .at(probe.display())
            .hint(format!("`windrow prep join {job} --out FOLDER` makes the index of it")));
    }
    let at = probe.store.display(&probe.below(MANIFEST_FILE));
    let stored = Stored::of(manifest.dtype, manifest.channels).map_err(|e| e.at(&at))?;
    let table = Table::new(&table::rows(probe, manifest)?, stored).map_err(|e| e.at(&at))?;
    let folder = key::below(&probe.key, FOLDER);
    Ok(Files::new(probe.store.clone(), folder, 0, table, stored))
}
