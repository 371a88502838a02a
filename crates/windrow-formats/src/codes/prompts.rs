//! What is beside pre-encoded tracks: prompts in their order of precedence, and the fields of `metadata.json`.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use windrow_core::source::Extras;
use windrow_core::store::{Entry, Object, Store, at_once, key, read_small};
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::json_value::error_byte;

/// What describes the tracks of a folder.
pub(crate) const METADATA: &str = "metadata.json";
/// A prompt of more bytes is not a prompt.
const MOST_PROMPT: u64 = 1 << 20;
/// A byte order mark.
const MARK: char = '\u{feff}';
/// What the tensor itself says, and what windrow adds.
const OWN: [&str; 5] = ["text", "name", "length", "channels", "mono"];

/// Where the prompt of a track is.
enum Prompt {
    /// In `metadata.json`.
    Told(String),
    /// In a file, read when it is first asked for.
    File { key: String, text: OnceLock<String> },
    /// Nowhere: an empty one.
    None,
}

/// The prompts and other fields of all tracks.
pub(super) struct Prompts {
    store: Arc<dyn Store>,
    metadata: Option<Arc<dyn Object>>,
    prompts: Vec<Prompt>,
    /// Fields of `metadata.json` but for those that are given elsewhere.
    fields: Vec<Map<String, Value>>,
    /// Names in `metadata.json` without a file.
    pub(super) absent: Vec<String>,
    /// `length` and `channels` as `metadata.json` says them.
    pub(super) said: Vec<[Option<u64>; 2]>,
    hash: u64,
}

impl Prompts {
    /// The prompts of tracks: `folder` is where `metadata.json` and `prompts/` are, `tracks` the key and stem of each file,
    /// `found` all that is below the folder.
    ///
    /// # Errors
    /// `Corrupt` naming file and field when `metadata.json` is not what it must be.
    pub(super) fn of(
        store: &Arc<dyn Store>,
        folder: &str,
        tracks: &[(String, String)],
        found: &[Entry],
    ) -> Result<Prompts> {
        let below = |name: &str| key::below(folder, name);
        let texts: HashMap<&str, u64> =
            found.iter().filter(|e| e.key.ends_with(".txt")).map(|e| (e.key.as_str(), e.size)).collect();
        let key = below(METADATA);
        let metadata =
            if found.iter().any(|entry| entry.key == key) { Some(store.open(&key)?) } else { None };
        let (mut told, content) = match &metadata {
            Some(object) => read_metadata(object.as_ref())?,
            None => (Map::new(), 0),
        };
        let at = metadata.as_ref().map_or_else(String::new, |object| object.name().to_string());
        let mut hash = Xxh3::new();
        hash.update(&content.to_le_bytes());
        let (mut prompts, mut fields, mut said) = (Vec::new(), Vec::new(), Vec::new());
        for (track, stem) in tracks {
            let name = key::name_of(track);
            let mut own = match told.remove(name) {
                None => Map::new(),
                Some(Value::Object(own)) => own,
                Some(other) => return Err(not_told(&at, name, "an object of fields", &other)),
            };
            let count = |value: Option<&Value>| value.and_then(Value::as_u64);
            said.push([count(own.get("length")), count(own.get("channels"))]);
            let beside = track.strip_suffix(name).unwrap_or_default();
            let candidates = [
                format!("{beside}{stem}.txt"),
                below(&format!("prompts/{stem}.txt")),
                below(&format!("prompts/{stem}_prompt.txt")),
            ];
            let prompt = match own.remove("text") {
                Some(Value::String(text)) => Prompt::Told(without_mark(text)),
                Some(Value::Null) => Prompt::None,
                Some(other) => return Err(not_told(&at, &format!("{name}.text"), "a text or null", &other)),
                None => match candidates.into_iter().find(|key| texts.contains_key(key.as_str())) {
                    Some(key) => Prompt::File { key, text: OnceLock::new() },
                    None => Prompt::None,
                },
            };
            own.retain(|field, _| !OWN.contains(&field.as_str()));
            if let Prompt::File { key, .. } = &prompt {
                // Relative to the folder, wherever that is.
                hash.update(key[folder.len()..].trim_start_matches('/').as_bytes());
                hash.update(&texts.get(key.as_str()).copied().unwrap_or(0).to_le_bytes());
            }
            hash.update(name.as_bytes());
            prompts.push(prompt);
            fields.push(own);
        }
        let absent: BTreeSet<String> = told.into_iter().map(|(name, _)| name).collect();
        if let Some(first) = absent.first() {
            windrow_core::warn!("{at}: {} names without a file, first {:?}", absent.len(), first);
        }
        let absent = absent.into_iter().collect();
        Ok(Prompts { store: store.clone(), metadata, prompts, fields, absent, said, hash: hash.digest() })
    }

    /// The prompt of a track; empty where there is none.
    ///
    /// # Errors
    /// `Corrupt` naming the file when it is no text; `Io`.
    pub(super) fn text(&self, track: usize) -> Result<&str> {
        match self.prompts.get(track) {
            Some(Prompt::Told(text)) => Ok(text),
            Some(Prompt::File { key, text }) => {
                if let Some(text) = text.get() {
                    return Ok(text);
                }
                let read = read_prompt(self.store.open(key)?.as_ref())?;
                Ok(text.get_or_init(|| read))
            }
            Some(Prompt::None) | None => Ok(""),
        }
    }

    /// All that is beside a track: `text`, `name` and the fields of `metadata.json`.
    ///
    /// # Errors
    /// As [`Prompts::text`].
    pub(super) fn extras(&self, track: usize, name: &str) -> Result<Extras> {
        let mut extras = Extras::new();
        extras.insert("text", self.text(track)?);
        extras.insert("name", name);
        extras.extend(self.fields.get(track).cloned().unwrap_or_default());
        Ok(extras)
    }

    /// The description of the folder, where there is one.
    pub(super) fn metadata(&self) -> Option<&dyn Object> {
        self.metadata.as_deref()
    }

    /// A hash of the descriptions of all tracks: of prompts in files, their names and sizes.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }
}

fn not_told(file: &str, field: &str, expected: &str, found: &Value) -> Error {
    let found: String = found.to_string().chars().take(80).collect();
    Error::corrupt(format!("expected {expected}, found {found}"))
        .at(file)
        .field(field)
        .hint("metadata.json is {\"song.pt\": {\"text\": \"a prompt\", …}, …}")
}

// The entries by file name, and a hash of the text.
pub(super) fn read_metadata(object: &dyn Object) -> Result<(Map<String, Value>, u64)> {
    let mut scratch = Vec::new();
    let size = at_once(object.size()).map_err(|e| e.at(object.name()))?;
    let text = object.read(0, size, &mut scratch)?;
    let mut mark = [0; MARK.len_utf8()];
    let json = text.strip_prefix(MARK.encode_utf8(&mut mark).as_bytes()).unwrap_or(text);
    let told = serde_json::from_slice(json).map_err(|cause| {
        Error::corrupt("the description of the tracks cannot be understood")
            .at(object.name())
            .byte((text.len() - json.len() + error_byte(json, &cause)) as u64)
            .caused_by(cause)
            .hint("metadata.json is {\"song.pt\": {\"text\": \"a prompt\", …}, …}; without the file, prompts come from .txt files")
    })?;
    Ok((told, xxh3_64(text)))
}

// A text without the byte order mark that editors put before it, which may come after white space.
fn without_mark(text: String) -> String {
    match text.trim_start().strip_prefix(MARK) {
        Some(rest) => rest.to_string(),
        None => text,
    }
}

/// The text of a prompt's file, without a byte order mark and the white space around it.
///
/// # Errors
/// `Corrupt` naming the file when it is not text, or larger than any prompt; `Io`.
pub fn read_prompt(object: &dyn Object) -> Result<String> {
    let bytes = read_small(object, MOST_PROMPT)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.trim().trim_start_matches(MARK).trim().to_string()),
        Err(cause) => Err(Error::corrupt("expected a prompt in UTF-8")
            .at(object.name())
            .byte(cause.utf8_error().valid_up_to() as u64)
            .hint("save it as UTF-8 text")),
    }
}
