//! Tables whose own log says which of their files are live: read as a folder, deleted rows would come with the others.

use super::Probe;
use crate::error::{Error, Result};
use crate::store::{Store, Walked, entry_if_there, key};

/// One kind of table.
struct Lake {
    name: &'static str,
    /// The folder of its log.
    log: &'static str,
    /// Whether a file of this name there describes it; `None` where the name of the folder is enough.
    describes: Option<fn(&str) -> bool>,
    /// What gives its live files.
    listed_by: &'static str,
}

static LAKES: &[Lake] = &[
    Lake {
        name: "Delta Lake",
        log: "_delta_log",
        describes: None,
        listed_by: "DeltaTable(path).file_uris()",
    },
    Lake {
        name: "Apache Iceberg",
        log: "metadata",
        describes: Some(is_iceberg),
        listed_by: "[task.file.file_path for task in table.scan().plan_files()]",
    },
    Lake {
        name: "Apache Hudi",
        log: ".hoodie",
        describes: None,
        listed_by: "df.inputFiles() of a snapshot query",
    },
];

// `v3.metadata.json`, `00003-<uuid>.metadata.json`; of a compressed one with `.gz` before or after.
fn is_iceberg(name: &str) -> bool {
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    let Some(version) = plain.strip_suffix(".metadata.json") else { return false };
    let version = version.strip_suffix(".gz").unwrap_or(version);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_uuid = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    match version.strip_prefix('v') {
        Some(number) => is_number(number),
        None => version.split_once('-').is_some_and(|(number, uuid)| is_number(number) && is_uuid(uuid)),
    }
}

/// Refuses a folder that is such a table, holds one, or is a part of one.
///
/// # Errors
/// `Unsupported` naming the table; what a store says.
pub fn refuse(probe: &Probe) -> Result<()> {
    if !probe.is_folder {
        return Ok(());
    }
    let names = probe.hidden.iter().map(String::as_str).chain(probe.names());
    refuse_among(names, |root| Some(probe.store.display(&probe.below(root))))?;
    refuse_above(probe.store.as_ref(), &probe.key)
}

/// Refuses the root of a store that is such a table, or holds one in what was found below it.
///
/// # Errors
/// As [`refuse`].
pub fn refuse_walked(store: &dyn Store, walked: &Walked) -> Result<()> {
    let hidden = walked.hidden_names("");
    let names = hidden.iter().chain(walked.entries.iter().map(|entry| &entry.key)).map(String::as_str);
    refuse_among(names, |root| Some(store.display(root)))?;
    refuse_above(store, "")
}

/// Refuses names below a folder, as a listing has them, that belong to a table for which `display` has a name.
///
/// # Errors
/// `Unsupported` naming the table.
pub fn refuse_among<'n>(
    names: impl Iterator<Item = &'n str>,
    display: impl Fn(&str) -> Option<String>,
) -> Result<()> {
    for name in names {
        let found = LAKES.iter().find_map(|lake| Some((lake, display(lake.root_of(name)?)?)));
        if let Some((lake, at)) = found {
            return Err(lake.error(at));
        }
    }
    Ok(())
}

/// Refuses a folder below the log of such a table. On this machine all folders above are asked; a store of another one, which
/// each question takes a while, only where the name is one of a table's own folders: a partition, `data`.
///
/// # Errors
/// As [`refuse`].
pub fn refuse_above(store: &dyn Store, folder: &str) -> Result<()> {
    let is_far = store.traffic().is_some();
    let mut at = folder;
    while !at.is_empty() {
        let name = key::name_of(at);
        if is_far && !name.contains('=') && name != "data" {
            return Ok(());
        }
        at = key::folder_of(at);
        for lake in LAKES {
            match lake.is_at(store, at) {
                Ok(true) => return Err(lake.error(store.display(at))),
                Err(e) if e.is_of_the_run() => return Err(e),
                // Who may not look into a folder above reads no table there.
                Ok(false) | Err(_) => {}
            }
        }
    }
    match store.above("") {
        Some((store, folder)) => refuse_above(store.as_ref(), &folder),
        None => Ok(()),
    }
}

impl Lake {
    // The folder of the table that this name, of its log or in it, belongs to.
    fn root_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let mut before = 0;
        for part in name.split('/') {
            let after = before + part.len();
            let rest = &name[(after + 1).min(name.len())..];
            if part == self.log && self.describes.is_none_or(|describes| describes(rest)) {
                return Some(name[..before].trim_end_matches('/'));
            }
            before = after + 1;
        }
        None
    }

    fn is_at(&self, store: &dyn Store, folder: &str) -> Result<bool> {
        let log = key::below(folder, self.log);
        let is_there = entry_if_there(store, &log)?.is_some_and(|entry| entry.is_folder);
        Ok(match self.describes.filter(|_| is_there) {
            Some(describes) => store
                .walk(&log)?
                .iter()
                .any(|entry| key::folder_of(&entry.key) == log && describes(key::name_of(&entry.key))),
            None => is_there,
        })
    }

    fn error(&self, at: String) -> Error {
        let what = format!("a table of {}: its log says which of its files are live", self.name);
        Error::unsupported(what)
            .at(at.trim_end_matches('/'))
            .hint(format!("a list of live files, as {} gives it, opens", self.listed_by))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::Memory;

    #[test]
    fn a_table_is_found_in_a_folder_and_above_it() {
        let refused = |names: &[&str], folder: &str| {
            let store = names.iter().fold(Memory::new(), |store, name| store.with(name, *b"x"));
            let probe = Probe::at(&[], Arc::new(store), folder).unwrap();
            refuse(&probe).err().map(|e| e.to_string())
        };
        for (names, folder) in [
            (&["t/a.parquet", "t/_delta_log/0.json"][..], "t"),
            (&["t/a.parquet", "t/_delta_log/0.json"], ""),
            (&["t/d=1/a.parquet", "t/_delta_log/0.json"], "t/d=1"),
            (&["t/data/a.parquet", "t/metadata/v1.metadata.json"], "t/data"),
            (&["t/data/a.parquet", "t/metadata/v1.metadata.json"], "t"),
            (&["t/data/a.parquet", "t/metadata/v1.metadata.json.gz"], "t/data"),
            (&["t/data/a.parquet", "t/metadata/00001-9c12d441-03fe.gz.metadata.json"], "t"),
            (&["2020/01/a.parquet", ".hoodie/hoodie.properties"], "2020/01"),
        ] {
            assert!(refused(names, folder).is_some_and(|e| e.contains("table of")), "{names:?} {folder}");
        }
        for (names, folder) in [
            (&["t/a.parquet", "u/_delta_log/0.json"][..], "t"),
            (&["metadata/v1.json", "a.parquet"], ""),
            (&["metadata/x/v1.metadata.json", "a.parquet"], ""),
            (&["metadata/song.metadata.json", "data/a.parquet"], ""),
            (&["metadata/song.metadata.json", "data/a.parquet"], "data"),
            (&["delta_log/0.json", "a.parquet"], ""),
        ] {
            assert_eq!(refused(names, folder), None, "{names:?} {folder}");
        }
    }
}
