//! Folders of `datasets`: `state.json` names the files, `dataset_dict.json` the splits.
//!
//! Versions before 2.0 kept rows that were chosen or shuffled as a file of their numbers beside the data; later ones write
//! the rows in their new order, and leave such a file unread.

use serde::Deserialize;
use windrow_core::format::Probe;
use windrow_core::store::{key, read_small};
use windrow_core::{Error, Result};

const STATE: &str = "state.json";
/// What names the splits.
pub(super) const DICT: &str = "dataset_dict.json";
/// Bytes of such a file, at most.
const MOST: u64 = 64 << 20;

/// The files of a folder, as keys.
pub(super) struct Saved {
    /// Files with rows, in order.
    pub(super) data: Vec<String>,
    /// Files with the numbers of the rows that are records; none where all are.
    pub(super) indices: Vec<String>,
}

#[derive(Deserialize)]
struct State {
    _data_files: Vec<File>,
    #[serde(default)]
    _indices_data_files: Option<Vec<File>>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
}

#[derive(Deserialize)]
struct Dict {
    splits: Vec<String>,
}

/// Whether `state.json` is there and names files.
pub(super) fn is_saved(probe: &Probe) -> bool {
    let has = probe.is_folder && probe.names().any(|name| name == STATE);
    has && text(probe, STATE).is_ok_and(|text| memchr::memmem::find(&text, b"\"_data_files\"").is_some())
}

fn text(probe: &Probe, name: &str) -> Result<Vec<u8>> {
    read_small(probe.store.open(&probe.below(name))?.as_ref(), MOST)
}

fn parse<T: for<'de> Deserialize<'de>>(probe: &Probe, name: &str) -> Result<T> {
    serde_json::from_slice(&text(probe, name)?).map_err(|cause| {
        Error::corrupt(format!("expected what `datasets` writes, found {cause}"))
            .at(probe.store.display(&probe.below(name)))
            .hint("the copy looks unfinished: fetch it again")
    })
}

/// The names of the splits, each a folder.
///
/// # Errors
/// `Corrupt` when the file cannot be read, or names none or something else than a folder.
pub(super) fn splits(probe: &Probe) -> Result<Vec<String>> {
    let Dict { splits } = parse(probe, DICT)?;
    if splits.iter().all(|split| is_name(split)) && !splits.is_empty() {
        Ok(splits)
    } else {
        Err(Error::corrupt(format!("expected names of folders, found {splits:?}"))
            .at(probe.store.display(&probe.below(DICT))))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\'])
}

impl Saved {
    /// What `state.json` names: files of this folder that are there.
    ///
    /// # Errors
    /// `Corrupt` for a file elsewhere, `NotFound` for one that is not there.
    pub(super) fn read(probe: &Probe) -> Result<Saved> {
        let state: State = parse(probe, STATE)?;
        let keys = |files: Vec<File>| -> Result<Vec<String>> {
            files.into_iter().map(|File { filename }| found(probe, &filename)).collect()
        };
        // None where no rows were saved.
        let data = keys(state._data_files)?;
        Ok(Saved { data, indices: keys(state._indices_data_files.unwrap_or_default())? })
    }
}

fn found(probe: &Probe, name: &str) -> Result<String> {
    if !is_name(name) {
        return Err(Error::corrupt(format!("a file outside the folder: {name:?}"))
            .at(probe.store.display(&probe.below(STATE)))
            .hint("its files are in the folder itself"));
    }
    let key = key::below(&probe.key, name);
    if probe.store.entry(&key).is_ok_and(|entry| !entry.is_folder) {
        Ok(key)
    } else {
        Err(Error::not_found("a file that state.json names is not there")
            .at(probe.store.display(&key))
            .hint("the copy looks unfinished: fetch it again"))
    }
}
