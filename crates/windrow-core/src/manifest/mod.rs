//! The manifest `windrow.json`: what was found or written beside the data, so that nobody has to guess it again.

mod checked;
mod checksums;
mod file_row;
mod listing;
mod part;
mod renamed;
mod tokenizer_lock;
mod unfinished;

pub use checked::{Checked, ChecksumRules};
pub use checksums::{BlockChecksums, CHECKSUMS_FILE, Checksums, checksums_size, end as checksums_table};
pub use file_row::FileRow;
pub use listing::{LISTING, ListedFile, Listing};
pub use part::{PARTS, Part, PartRow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
pub use tokenizer_lock::{Golden, TokenizerLock};
pub use unfinished::{unfinished, unfinished_by};
use xxhash_rust::xxh3::xxh3_64;

use crate::array::DType;
use crate::error::{Error, Result};
use crate::store::{Object, read_small};

/// The manifest's name.
pub const MANIFEST_FILE: &str = "windrow.json";

/// A longer one is not read.
pub const MOST_BYTES: u64 = 256 << 20;

/// What is in a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this layout: 1.
    pub version: u32,
    /// Version of the windrow that wrote it.
    pub windrow: String,
    /// Name of the format beside it.
    pub format: String,
    /// Number of records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Values of all records, of a data set in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<u64>,
    /// Numbers per value, of a data set in parts whose records are `[T, C]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u64>,
    /// Values in every record, where all are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_length: Option<u64>,
    /// dtype of a stored number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Ids are below this: checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_size: Option<u64>,
    /// The ID that ends a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eos: Option<i64>,
    /// The tokenizer that made the IDs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerLock>,
    /// The data files, as the manifest's folder names them.
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
    /// What was listed, where nothing else is known: [`LISTING`] is the format then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<Listing>,
    /// The parts of a data set in parts, in the order of their tasks; where there are very many, a file of the index holds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartRow>,
}

/// What a manifest of any version says of itself.
#[derive(Deserialize)]
struct Written {
    version: u64,
    #[serde(default)]
    windrow: Value,
}

impl Manifest {
    /// Takes over what another one says of its IDs, where this one says nothing: their tokenizer, vocabulary and end.
    pub fn take_ids_of(&mut self, other: &Manifest) {
        self.tokenizer = self.tokenizer.take().or_else(|| other.tokenizer.clone());
        self.vocab_size = self.vocab_size.or(other.vocab_size);
        self.eos = self.eos.or(other.eos);
    }

    /// An empty one for this format, by this windrow.
    pub fn new(format: &str) -> Self {
        Manifest {
            version: 1,
            windrow: env!("CARGO_PKG_VERSION").to_string(),
            format: format.to_string(),
            ..Self::default()
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// `Corrupt` when it is not one, or of a later version; `Stale` while the data set is being written.
    pub fn read(object: &dyn Object) -> Result<Manifest> {
        Self::parse(&read_small(object, MOST_BYTES)?, object.name())
    }

    /// Reads one from its text, which is in the file called `name`.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn parse(bytes: &[u8], name: &str) -> Result<Manifest> {
        let not_one = |e: serde_json::Error| {
            Error::corrupt("the manifest cannot be understood")
                .at(name)
                .caused_by(e)
                .hint("delete it and prepare the data again, or read the data with @format=…@ and @dtype=…@")
        };
        unfinished::refuse(bytes, name)?;
        // Another version may differ in everything but these two.
        match serde_json::from_slice(bytes).map_err(not_one)? {
            Written { version: 1, .. } => serde_json::from_slice(bytes).map_err(not_one),
            Written { version, windrow } => Err(Error::unsupported(format!(
                "manifest of version {version}; this windrow reads version 1"
            ))
            .at(name)
            .field("version")
            .hint(format!("it was written by windrow {windrow}"))),
        }
    }

    /// Takes it as kept beside the file `name`, at `at`, with which it may have been copied or renamed: its only file is that one,
    /// and two files are that one and `other`, which are one data set.
    ///
    /// # Errors
    /// `Corrupt` where it is a manifest of other files.
    pub fn of_file(mut self, name: &str, other: Option<&str>, at: &str) -> Result<Manifest> {
        let names: Vec<&str> = self.files.iter().map(|row| row.name.as_str()).collect();
        let Some(now) = renamed::now(&names, name, other) else {
            let names: Vec<String> = names.iter().take(3).map(|name| format!("{name:?}")).collect();
            let more = if self.files.len() > names.len() { ", …" } else { "" };
            return Err(Error::corrupt(format!(
                "the manifest is of other files: {}{more}",
                names.join(", ")
            ))
            .at(at)
            .hint(format!("it lies beside {name:?}: put it beside its own files, or delete it")));
        };
        let now: Vec<String> = now.into_iter().map(str::to_string).collect();
        self.files.iter_mut().zip(now).for_each(|(row, name)| row.name = name);
        Ok(self)
    }

    /// Whether the first bytes of a manifest name this format: what it lists may be long.
    ///
    /// ```
    /// use windrow_core::manifest::Manifest;
    ///
    /// let text = Manifest::new("tokens").to_text();
    /// assert!(Manifest::begins_as("tokens", &text.as_bytes()[..80]));
    /// assert!(!Manifest::begins_as("token", text.as_bytes()));
    /// ```
    pub fn begins_as(format: &str, head: &[u8]) -> bool {
        let head = String::from_utf8_lossy(&head[..head.len().min(4096)]);
        let mut words = head.split('"').skip(1).step_by(2);
        words.any(|word| word == "format") && words.next() == Some(format)
    }

    /// There are the same number of records as it says.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn check_records(&self, found: u64, at: &str) -> Result<()> {
        match self.records {
            Some(said) if said != found => {
                let what = format!("there are {found} records, the manifest says {said}");
                let hint =
                    "the copy looks unfinished, or others changed it; @trust=true@ reads what is there";
                Err(Error::corrupt(what).at(at).hint(hint))
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
    pub fn check_hash(object: &dyn Object) -> Result<()> {
        if Self::is_as_written(&read_small(object, MOST_BYTES)?) {
            Ok(())
        } else {
            Err(Error::corrupt("the manifest is not as it was written: its hash is another one")
                .at(object.name())
                .hint("restore it; who changed it on purpose removes its last entry, \"xxh3\""))
        }
    }

    /// Whether a manifest's text is the one that was written. One without a hash, as earlier versions wrote it, may be
    /// any.
    pub fn is_as_written(text: &[u8]) -> bool {
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

/// How the text of a manifest ends.
const END: &str = "\n}\n";

// The entry of the hash of a manifest's text.
fn hash_entry(text: &str) -> String {
    format!(",\n  \"xxh3\": \"{:016x}\"", xxh3_64(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_told_by_the_first_bytes_of_a_manifest() {
        let listing = Listing::new("tokens", None, "", &[]).into_manifest().to_text();
        assert!(Manifest::begins_as(LISTING, listing.as_bytes()));
        let written = Manifest::new("tokens").to_text();
        for other in [written.as_str(), "{}", "", "{\"format\": \"", "{\"listing\": \"format\"}"] {
            assert!(!Manifest::begins_as(LISTING, other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn a_flipped_bit_of_its_text_is_seen_and_what_is_written_by_hand_is_taken() {
        let manifest = Manifest { records: Some(7), dtype: Some(DType::U16), ..Manifest::new("tokens") };
        let text = manifest.to_text();
        assert_eq!(Manifest::parse(text.as_bytes(), "a").unwrap(), manifest);
        assert!(Manifest::is_as_written(text.as_bytes()));
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone().into_bytes();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let is_seen = !Manifest::is_as_written(&flipped);
            let is_same = Manifest::parse(&flipped, "a").map_or(true, |read| read == manifest);
            assert!(is_seen || is_same, "bit {bit}");
        }
        // As earlier versions wrote it, and as people do.
        let bare = serde_json::to_string_pretty(&manifest).unwrap();
        assert!(Manifest::is_as_written(bare.as_bytes()) && Manifest::is_as_written(b"{}"));
        assert!(!Manifest::is_as_written(b"{\"xxh3\": \"0000000000000000\"}"));
    }
}
