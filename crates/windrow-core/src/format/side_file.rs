//! The side file `windrow.json`: what was found or written beside the data, so that nobody has to guess it again.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use super::Look;
use crate::array::DType;
use crate::error::{Error, Kind, Result};
use crate::source::Source;
use crate::store::{entry_if_there, key, open_if_there, read_small};

/// The side file's name.
pub const SIDE_FILE: &str = "windrow.json";

/// A longer one is not read.
pub(crate) const MOST_BYTES: u64 = 256 << 20;

/// What stands in a side file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideFile {
    /// Version of this layout: 1.
    pub version: u32,
    /// Version of the windrow that wrote it.
    pub windrow: String,
    /// Name of the format beside it.
    pub format: String,
    /// Number of records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Values in every record, where all are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_length: Option<u64>,
    /// dtype of a stored number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Ids are below this: checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_size: Option<u64>,
    /// The id that ends a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eos: Option<i64>,
    /// The tokenizer that made the ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerLock>,
    /// The data files, as the side file's folder names them.
    #[serde(default)]
    pub files: Vec<FileRow>,
    /// The files of the index, named from where `files` are: with their hashes, whether block checksums are kept or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index: Vec<FileRow>,
    /// What the data was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<FileRow>,
    /// The options it was made with: a rerun with the same inputs and options has nothing to do.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// Further findings: counts, statistics.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub statistics: Map<String, Value>,
}

/// One file in a side file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    /// Relative path.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, nanoseconds since 1970: kept for files that windrow did not write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ns: Option<u64>,
    /// XXH3-64 of the content, 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xxh3: Option<String>,
}

/// Which tokenizer made the ids; enough to refuse another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenizerLock {
    /// A built-in name, or the file name of a tokenizer.json.
    pub name: String,
    /// XXH3-64 of its definition, 16 hexadecimal digits.
    pub hash: String,
    /// Ids are below this.
    pub vocab_size: u64,
    /// Special tokens and their ids.
    pub special: Map<String, Value>,
    /// Strings and their ids.
    pub golden: Vec<Golden>,
    /// Version of the windrow that locked it.
    pub windrow: String,
}

/// A string and the ids it must give.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Golden {
    /// The text.
    pub text: String,
    /// Its ids.
    pub ids: Vec<u32>,
}

impl FileRow {
    /// The file, called `name`, has the size that is said here; `None` where it is not there.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn check_size(&self, size: Option<u64>, name: &str) -> Result<()> {
        let stale = |what: String| {
            let hint = "the copy looks unfinished; trust=True reads what is there";
            Err(Error::new(Kind::Stale, what).at(name).hint(hint))
        };
        match size {
            Some(size) if size == self.size => Ok(()),
            Some(size) => stale(format!("the file has {size} bytes, the side file says {}", self.size)),
            None => stale(format!("the side file names it with {} bytes, but it is gone", self.size)),
        }
    }
}

/// What a side file of any version says of itself.
#[derive(Deserialize)]
struct Written {
    version: u64,
    #[serde(default)]
    windrow: Value,
}

impl SideFile {
    /// Takes over what another one says of its ids, where this one says nothing: their tokenizer, vocabulary and end.
    pub fn take_ids_of(&mut self, other: &SideFile) {
        self.tokenizer = self.tokenizer.take().or_else(|| other.tokenizer.clone());
        self.vocab_size = self.vocab_size.or(other.vocab_size);
        self.eos = self.eos.or(other.eos);
    }

    /// An empty one for this format, by this windrow.
    pub fn new(format: &str) -> Self {
        SideFile {
            version: 1,
            windrow: env!("CARGO_PKG_VERSION").to_string(),
            format: format.to_string(),
            ..Self::default()
        }
    }

    /// The side file in the folder, in its index folder, or named `<file>.windrow.json` beside the file.
    ///
    /// # Errors
    /// `Corrupt` when it is there but cannot be understood.
    pub fn find(look: &Look) -> Result<Option<SideFile>> {
        let keys = match look.is_folder {
            true => vec![look.below(SIDE_FILE), look.below(&format!("{}/{SIDE_FILE}", super::INDEX_FOLDER))],
            false => {
                let folder =
                    look.key.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
                vec![format!("{}.{SIDE_FILE}", look.key), format!("{folder}{SIDE_FILE}")]
            }
        };
        for (i, key) in keys.iter().enumerate() {
            if let Some(object) = open_if_there(look.store.as_ref(), key)? {
                let side = Self::read(object.as_ref())?;
                let name = key::name_of(&look.key);
                // A folder's side file speaks for a file in it only when it names that file.
                if look.is_folder || i == 0 || side.files.iter().any(|f| f.name == name) {
                    return Ok(Some(side));
                }
            }
        }
        // Shards have no file beside them that other readers would take for data.
        if look.is_folder { super::shards::told(look) } else { Ok(None) }
    }

    /// Reads one.
    ///
    /// # Errors
    /// `Corrupt` when it is not one, or of a later version.
    pub fn read(object: &dyn crate::store::Object) -> Result<SideFile> {
        Self::parse(&read_small(object, MOST_BYTES)?, object.name())
    }

    /// Reads one from its text, which stands in the file called `name`.
    ///
    /// # Errors
    /// As [`SideFile::read`].
    pub(crate) fn parse(bytes: &[u8], name: &str) -> Result<SideFile> {
        let not_one = |e: serde_json::Error| {
            Error::corrupt("the side file cannot be understood")
                .at(name)
                .caused_by(e)
                .hint("delete it and prepare the data again, or read the data with format=… and dtype=…")
        };
        // Another version may differ in everything but these two.
        match serde_json::from_slice(bytes).map_err(not_one)? {
            Written { version: 1, .. } => serde_json::from_slice(bytes).map_err(not_one),
            Written { version, windrow } => Err(Error::unsupported(format!(
                "side file of version {version}; this windrow reads version 1"
            ))
            .at(name)
            .field("version")
            .hint(format!("it was written by windrow {windrow}"))),
        }
    }

    /// The files that it names are there, with the sizes that it says: of a folder all of them, of a file its own.
    ///
    /// # Errors
    /// `Stale` naming the file.
    pub(crate) fn check_files(&self, look: &Look) -> Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let folder = if look.is_folder { look.key.as_str() } else { key::folder_of(&look.key) };
        let seen: HashMap<&str, u64> = look.entries.iter().map(|e| (e.key.as_str(), e.size)).collect();
        for row in &self.files {
            let key = key::below(folder, &row.name);
            if !look.is_folder && key != look.key {
                continue;
            }
            // Of very many files, not all are among those that were seen.
            let size = match seen.get(key.as_str()) {
                Some(size) => Some(*size),
                None => entry_if_there(look.store.as_ref(), &key)?.map(|entry| entry.size),
            };
            row.check_size(size, &look.store.display(&key))?;
        }
        Ok(())
    }

    /// There are as many records as it says.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_records(&self, source: &dyn Source, look: &Look) -> Result<()> {
        match self.records {
            Some(said) if said != source.len() => {
                let what = format!("there are {} records, the side file says {said}", source.len());
                let hint = "the copy looks unfinished, or others changed it; trust=True reads what is there";
                Err(Error::corrupt(what).at(look.display()).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// The text to write: its last entry is the XXH3-64 of the text without that entry.
    pub fn to_text(&self) -> String {
        // Serialising plain structs and string-keyed maps cannot fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        let hash = hash_entry(&text);
        text.truncate(text.len() - END.len());
        text + &hash + END
    }

    /// Its text is the one that was written.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_hash(object: &dyn crate::store::Object) -> Result<()> {
        match Self::is_as_written(&read_small(object, MOST_BYTES)?) {
            true => Ok(()),
            false => Err(Error::corrupt("the side file is not as it was written: its hash is another one")
                .at(object.name())
                .hint("restore it; who changed it on purpose removes its last entry, \"xxh3\"")),
        }
    }

    /// Whether a side file's text is the one that was written. One without a hash, as earlier versions wrote it, may be
    /// any.
    pub(crate) fn is_as_written(text: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Hash {
            #[serde(default)]
            xxh3: Option<Value>,
        }
        // What cannot be parsed is reported by whoever reads it.
        if !serde_json::from_slice::<Hash>(text).is_ok_and(|found| found.xxh3.is_some()) {
            return true;
        }
        let head = text.len().saturating_sub(hash_entry("").len() + END.len());
        let bare = [&text[..head], END.as_bytes()].concat();
        text[head..] == *(hash_entry(std::str::from_utf8(&bare).unwrap_or_default()) + END).as_bytes()
    }
}

/// How the text of a side file ends.
const END: &str = "\n}\n";

// The entry of the hash of a side file's text.
fn hash_entry(text: &str) -> String {
    format!(",\n  \"xxh3\": \"{:016x}\"", xxh3_64(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_of_its_text_is_seen_and_what_is_written_by_hand_is_taken() {
        let side = SideFile { records: Some(7), dtype: Some(DType::U16), ..SideFile::new("tokens") };
        let text = side.to_text();
        assert_eq!(SideFile::parse(text.as_bytes(), "a").unwrap(), side);
        assert!(SideFile::is_as_written(text.as_bytes()));
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone().into_bytes();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let is_seen = !SideFile::is_as_written(&flipped);
            let is_same = SideFile::parse(&flipped, "a").map_or(true, |read| read == side);
            assert!(is_seen || is_same, "bit {bit}");
        }
        // As earlier versions wrote it, and as people do.
        let bare = serde_json::to_string_pretty(&side).unwrap();
        assert!(SideFile::is_as_written(bare.as_bytes()) && SideFile::is_as_written(b"{}"));
        assert!(!SideFile::is_as_written(b"{\"xxh3\": \"0000000000000000\"}"));
    }
}
