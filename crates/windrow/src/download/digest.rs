//! What a file must hash to: the Hub lists SHA-256 of the content, or git's SHA-1 of a small one. Other stores name a version.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha1_smol::Sha1;
use sha2::{Digest as _, Sha256};
use windrow_core::{Error, Result, stop};

/// A file's hash, as lower-case hexadecimal digits, or what its store calls its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Digest {
    /// SHA-256 of the content: large files.
    Sha256(String),
    /// SHA-1 of `blob <size>\0` and the content, as git names it: small files.
    Git(String),
    /// A name of the version, which the content does not give; empty where the store names none.
    Tag(String),
}

impl Digest {
    /// The kind of hash that has as many digits; `None` where no kind has.
    pub fn parse(hex: &str) -> Option<Digest> {
        let is_hex = hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match (hex.len(), is_hex) {
            (64, true) => Some(Digest::Sha256(hex.to_string())),
            (40, true) => Some(Digest::Git(hex.to_string())),
            _ => None,
        }
    }

    /// The digits, or the name.
    pub fn text(&self) -> &str {
        match self {
            Digest::Sha256(text) | Digest::Git(text) | Digest::Tag(text) => text,
        }
    }

    /// Whether two files of this digest have the same content.
    pub(super) fn tells(&self) -> bool {
        !self.text().is_empty()
    }

    /// What the content of a file gives in the same way; `None` where it gives nothing.
    ///
    /// # Errors
    /// `Io`; `Interrupted`.
    pub(super) fn of_file(&self, path: &Path, size: u64) -> Result<Option<Digest>> {
        Ok(match self {
            Digest::Sha256(_) => {
                let mut hash = Sha256::new();
                read(path, |bytes| hash.update(bytes))?;
                Some(Digest::Sha256(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
            }
            Digest::Git(_) => {
                let mut hash = Sha1::from(format!("blob {size}\0"));
                read(path, |bytes| hash.update(bytes))?;
                Some(Digest::Git(hash.digest().to_string()))
            }
            Digest::Tag(_) => None,
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Digest::Sha256(hex) => write!(f, "sha256 {hex}"),
            Digest::Git(hex) => write!(f, "git sha1 {hex}"),
            Digest::Tag(name) => write!(f, "version {name}"),
        }
    }
}

// Gives all of a file to `take`.
fn read(path: &Path, mut take: impl FnMut(&[u8])) -> Result<()> {
    let mut file = File::open(path).map_err(|e| Error::io("open the file", path, e))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        stop::go_on()?;
        match file.read(&mut buffer).map_err(|e| Error::io("read the file", path, e))? {
            0 => return Ok(()),
            n => take(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_sha256sum_and_of_git() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&path, "hello\n").unwrap();
        // `printf 'hello\n' | sha256sum` and `printf 'hello\n' | git hash-object --stdin`
        for hex in [
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
            "ce013625030ba8dba906f756967f9e9ca394464a",
        ] {
            let digest = Digest::parse(hex).unwrap();
            assert_eq!(digest.of_file(path.path(), 6).unwrap(), Some(digest.clone()));
        }
        assert_eq!(Digest::parse("CE013625030ba8dba906f756967f9e9ca394464a"), None);
        assert_eq!(Digest::parse("abc"), None);
    }
}
