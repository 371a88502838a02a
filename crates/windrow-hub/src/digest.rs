//! What a file of the hub must hash to: SHA-256 of its content, or git's SHA-1 of a small one.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha1_smol::Sha1;
use sha2::{Digest as _, Sha256};
use windrow_core::{Error, Result};

/// A file's hash, as lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Digest {
    /// SHA-256 of the content: large files.
    Sha256(String),
    /// SHA-1 of `blob <size>\0` and the content, as git names it: small files.
    Git(String),
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

    /// The digits.
    pub fn hex(&self) -> &str {
        match self {
            Digest::Sha256(hex) | Digest::Git(hex) => hex,
        }
    }

    /// What the file hashes to, in the same way; stops early, with `None`, when `stopped`.
    pub(crate) fn of_file(
        &self,
        path: &Path,
        size: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Digest>> {
        let hex = match self {
            Digest::Sha256(_) => {
                let mut hash = Sha256::new();
                let is_read = read(path, stopped, |bytes| hash.update(bytes))?;
                is_read.then(|| hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            }
            Digest::Git(_) => {
                let mut hash = Sha1::from(format!("blob {size}\0"));
                let is_read = read(path, stopped, |bytes| hash.update(bytes))?;
                is_read.then(|| hash.digest().to_string())
            }
        };
        Ok(hex.and_then(|hex| Digest::parse(&hex)))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Digest::Sha256(hex) => write!(f, "sha256 {hex}"),
            Digest::Git(hex) => write!(f, "git sha1 {hex}"),
        }
    }
}

// Gives all of a file to `take`; false when it was stopped.
fn read(path: &Path, stopped: &dyn Fn() -> bool, mut take: impl FnMut(&[u8])) -> Result<bool> {
    let mut file = File::open(path).map_err(|e| Error::io("open the file", path, e))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        if stopped() {
            return Ok(false);
        }
        match file.read(&mut buffer).map_err(|e| Error::io("read the file", path, e))? {
            0 => return Ok(true),
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
            assert_eq!(digest.of_file(path.path(), 6, &|| false).unwrap(), Some(digest.clone()));
            assert_eq!(digest.of_file(path.path(), 6, &|| true).unwrap(), None);
        }
        assert_eq!(Digest::parse("CE013625030ba8dba906f756967f9e9ca394464a"), None);
        assert_eq!(Digest::parse("abc"), None);
    }
}
