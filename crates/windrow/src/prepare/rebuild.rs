//! The description of a pre-encoded folder, made again from its tracks and the prompts' files.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use windrow_core::format::{Format, Options, Probe, discover};
use windrow_core::output::write_whole_and_checksums;
use windrow_core::store::{Local, Store, Walked, key, read_small};
use windrow_core::{Error, Kind, Result};
use windrow_formats::{Codes, FORMATS};

use crate::opening::unread::unread;

const METADATA: &str = "metadata.json";
const FOLDER: &str = "encoded_audio";
/// A longer description is not a description.
const MOST_TOLD: u64 = 1 << 30;

/// What was found in a pre-encoded folder, and written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Rebuilt {
    /// Tracks in the description.
    pub tracks: u64,
    /// Those with a prompt.
    pub prompts: u64,
    /// Those whose entry is another one than before.
    pub changed: u64,
    /// Names of the old description without a file, which are not in the new one.
    pub absent: Vec<String>,
    /// Files that cannot be read, and why. Of a track nothing is in the description then; where only its prompt cannot be read,
    /// what the old description said.
    pub failed: Vec<(PathBuf, String)>,
}

/// Rebuilds `metadata.json` of a pre-encoded folder: `text`, `length` and `channels` of every track.
///
/// The prompt of `song.pt` is the first of `song.txt` and `song_prompt.txt` in each of the `prompts` folders, `song.txt` beside
/// it, `song.txt` and `song_prompt.txt` in `prompts/` of the folder, and what the old description said; else it is empty.
/// Other fields of the old description are kept. Block checksums of the folder, where there are some, are then those of the new
/// description: one that was edited by hand is good again. With `dry_run` nothing is written.
///
/// ```
/// # use windrow::{DType, format::tensor_file};
/// # let dir = tempfile::tempdir().unwrap();
/// # let tracks = dir.path();
/// std::fs::write(tracks.join("song.pt"), tensor_file("song", DType::I16, [2, 2], &[0; 8])?).unwrap();
/// std::fs::write(tracks.join("song.txt"), "a prompt\n").unwrap();
/// let rebuilt = windrow::rebuild_metadata(tracks, &[], false)?;
/// assert_eq!((rebuilt.tracks, rebuilt.prompts), (1, 1));
/// assert!(std::fs::read_to_string(tracks.join("metadata.json")).unwrap().contains("a prompt"));
/// # Ok::<(), windrow_core::Error>(())
/// ```
///
/// # Errors
/// `NotFound` without a `.pt` file; `Io`.
pub fn rebuild_metadata(folder: &Path, prompts: &[PathBuf], dry_run: bool) -> Result<Rebuilt> {
    let store = std::sync::Arc::new(Local::new(folder));
    let mut old = old(store.as_ref())?;
    let (below, files) = tracks(store.as_ref(), &old)?;
    let mut places: Vec<(Local, &[&str])> =
        prompts.iter().map(|p| (Local::new(p), &[".txt", "_prompt.txt"][..])).collect();
    for ((place, _), path) in places.iter().zip(prompts) {
        if !place.entry("")?.is_folder {
            return Err(Error::config("expected a folder of prompts, found a file").at(path));
        }
    }
    places.push((Local::new(folder.join(below)), &[".txt"]));
    places.push((Local::new(folder.join("prompts")), &[".txt", "_prompt.txt"]));
    let mut new = Map::new();
    let mut rebuilt = Rebuilt::default();
    for file in files {
        let key = key::below(below, &file);
        let opened =
            Probe::at(FORMATS, store.clone(), &key).and_then(|probe| Codes.open(&probe, &Options::default()));
        let shape = opened.and_then(|source| {
            source.length(0).map(|length| (length, source.schema().channels.unwrap_or(1)))
        });
        let (length, channels) = match shape {
            Ok(shape) => shape,
            Err(e) => {
                rebuilt.failed.push((folder.join(&key), format!("{e:#}")));
                continue;
            }
        };
        let before = old.shift_remove(&file);
        let mut entry = match &before {
            Some(Value::Object(fields)) => fields.clone(),
            _ => Map::new(),
        };
        let prompt = match prompt(&places, file.trim_end_matches(".pt")) {
            Err(e) if e.is_of_the_run() => return Err(e),
            Err(e) => {
                rebuilt.failed.push((folder.join(&key), unread(&e)));
                None
            }
            Ok(prompt) => prompt,
        };
        let before_it = || entry.get("text").and_then(Value::as_str).unwrap_or_default().to_string();
        let text = prompt.unwrap_or_else(before_it);
        rebuilt.prompts += u64::from(!text.is_empty());
        entry.insert("text".to_string(), json!(text));
        entry.insert("channels".to_string(), json!(channels));
        entry.insert("length".to_string(), json!(length));
        let entry = Value::Object(entry);
        rebuilt.changed += u64::from(before.as_ref() != Some(&entry));
        rebuilt.tracks += 1;
        new.insert(file, entry);
    }
    rebuilt.absent = old.into_iter().map(|(name, _)| name).collect();
    if !dry_run {
        let text = serde_json::to_string_pretty(&Value::Object(new))
            .map_err(|e| Error::io("write it", folder, e.into()))?;
        write_whole_and_checksums(folder, METADATA, (text + "\n").as_bytes())?;
    }
    Ok(rebuilt)
}

// Where the tracks are, below the folder, and their files in natural order.
fn tracks(store: &Local, old: &Map<String, Value>) -> Result<(&'static str, Vec<String>)> {
    let below = match store.entry(FOLDER) {
        Ok(entry) if entry.is_folder => FOLDER,
        _ => "",
    };
    let Walked { entries, hidden } = store.walk_all(below)?;
    let name = |key: &str| {
        let name = key.strip_prefix(below).unwrap_or(key);
        name.strip_prefix('/').unwrap_or(name).to_string()
    };
    let names = entries.iter().filter(|e| !e.is_folder).map(|e| name(&e.key));
    // A track of a hidden name is one where it was described.
    let described = hidden.iter().map(|e| name(&e.key)).filter(|name| old.contains_key(name));
    let mut files: Vec<String> =
        names.chain(described).filter(|n| n.ends_with(".pt") && !n.contains('/')).collect();
    files.sort_by(|a, b| discover::natural_order(a, b).then(a.cmp(b)));
    if files.is_empty() {
        Err(Error::not_found("no .pt file to describe")
            .at(store.display(below))
            .hint("tracks are encoded_audio/*.pt, or *.pt where there is no encoded_audio"))
    } else {
        Ok((below, files))
    }
}

// What the old description says; nothing of one that cannot be understood, which is why it is made again.
fn old(store: &Local) -> Result<Map<String, Value>> {
    let object = match store.open(METADATA) {
        Ok(object) => object,
        Err(e) if e.kind() == Kind::NotFound => return Ok(Map::new()),
        Err(e) => return Err(e),
    };
    let text = read_small(object.as_ref(), MOST_TOLD)?;
    Ok(serde_json::from_slice(&text).unwrap_or_else(|e| {
        windrow_core::warn!("{}: nothing of it is kept: {e:#}", object.name());
        Map::new()
    }))
}

fn prompt(places: &[(Local, &[&str])], name: &str) -> Result<Option<String>> {
    for (store, endings) in places {
        for ending in *endings {
            match store.open(&format!("{name}{ending}")) {
                Ok(object) => return windrow_formats::read_prompt(object.as_ref()).map(Some),
                Err(e) if e.kind() == Kind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(None)
}
