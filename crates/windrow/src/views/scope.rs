//! Which records may share a row of bins.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use windrow_core::format::Takes;
use windrow_core::source::Source;
use windrow_core::{Error, Result};

use crate::views::option::Taken;

/// Bytes of a block, as the orders by blocks read it.
pub(crate) const BLOCK_BYTES: u64 = 8 << 20;

/// Bytes of documents that change places: a block of an order reads those that begin and end within it, so a quarter more than itself.
const DOCUMENTS_BYTES: u64 = 2 << 20;

/// Documents that change places, at least: among fewer, neighbours stay neighbours too often.
const LEAST_DOCUMENTS: u64 = 256;

/// Which records may share a row of bins, or change places in a pack: with a scope, rows that are neighbours hold neighbours, which blocks of
/// [`Blocks`](crate::Blocks) read together.
///
/// ```
/// use windrow::Scope;
///
/// assert_eq!("block".parse::<Scope>()?, Scope::Block);
/// assert_eq!("4096".parse::<Scope>()?, Scope::Records(4096));
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scope {
    /// All of them.
    #[default]
    All,
    /// The number of consecutive ones that 8 MiB hold, by the mean size of a record in the files; for a pack 2 MiB, and at least 256.
    Block,
    /// This number of consecutive ones.
    #[serde(untagged)]
    Records(u64),
}

impl Taken for Scope {
    const TAKES: Takes = Takes::WordsOr(&["all", "block"], "RECORDS");
}

impl Scope {
    /// How many consecutive records share rows of bins; `None` for all.
    pub(crate) fn records(self, source: &dyn Source) -> Option<u64> {
        self.of_block(source, BLOCK_BYTES, 1)
    }

    /// How many consecutive documents of a pack change places; `None` for all.
    pub(crate) fn documents(self, source: &dyn Source) -> Option<u64> {
        self.of_block(source, DOCUMENTS_BYTES, LEAST_DOCUMENTS)
    }

    fn of_block(self, source: &dyn Source, block: u64, least: u64) -> Option<u64> {
        match self {
            Scope::All => None,
            Scope::Records(records) => Some(records),
            Scope::Block => {
                let bytes: u128 = source.files().iter().map(|file| u128::from(file.size)).sum();
                let records = u128::from(block) * u128::from(source.len()) / bytes.max(1);
                let records = u64::try_from(records).unwrap_or(u64::MAX);
                Some(records.max(least).clamp(1, source.len().max(1)))
            }
        }
    }
}

/// As it is read back.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::All => f.write_str("all"),
            Scope::Block => f.write_str("block"),
            Scope::Records(records) => write!(f, "{records}"),
        }
    }
}

impl FromStr for Scope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Scope> {
        match text.trim().to_lowercase().as_str() {
            "all" => Ok(Scope::All),
            "block" => Ok(Scope::Block),
            number => match number.parse() {
                Ok(records) if records > 0 => Ok(Scope::Records(records)),
                _ => Err(Error::config(format!("@scope={text:?}@"))
                    .field("scope")
                    .hint("\"all\", \"block\", or a number of consecutive records")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_read_as_they_are_written() {
        for (scope, text, json) in [
            (Scope::All, "all", "\"all\""),
            (Scope::Block, "block", "\"block\""),
            (Scope::Records(7), "7", "7"),
        ] {
            assert_eq!((scope.to_string(), text.parse::<Scope>().unwrap()), (text.to_string(), scope));
            assert_eq!(serde_json::to_string(&scope).unwrap(), json);
            assert_eq!(serde_json::from_str::<Scope>(json).unwrap(), scope);
        }
        for text in ["", "0", "-1", "blocks", "1.5"] {
            let error = text.parse::<Scope>().unwrap_err();
            assert!(error.hint_text().unwrap().contains("consecutive records"), "{text}");
        }
    }
}
