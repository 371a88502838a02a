//! What is the Hub's own: names of data sets, and its cache on this machine, which its other clients fill.

use std::fs;
use std::path::{Path, PathBuf};

use windrow_core::{Error, Result};

use super::digest::Digest;
use super::file::{RemoteFile, checked_path};

/// The URL of a data set of the Hub, which is called `owner/name`, at a branch, a tag or a commit.
///
/// ```
/// let url = windrow::download::hub_url("Maple728/Time-300B", "main")?;
/// assert_eq!(url, "hf://datasets/Maple728/Time-300B@main");
/// assert!(windrow::download::hub_url("Time-300B", "main").is_err());
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `Config` for what is not such a name, or not a revision.
pub fn hub_url(repo: &str, revision: &str) -> Result<String> {
    let is_word = |word: &str| {
        let fits = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        fits && !word.is_empty() && !word.starts_with('.') && word.len() <= 96
    };
    if !repo.split_once('/').is_some_and(|(owner, name)| is_word(owner) && is_word(name)) {
        return Err(Error::config(format!("{repo:?} is not a data set of the Hub"))
            .hint("it is called owner/name, as in the address of its page"));
    }
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
    if revision.is_empty() || revision.contains("..") || !revision.bytes().all(is_plain) {
        return Err(Error::config(format!("{revision:?} is not a revision"))
            .hint("it is the name of a branch or a tag, or a commit"));
    }
    Ok(format!("hf://datasets/{repo}@{}", revision.replace('/', "%2F")))
}

/// The folder of the Hub's cache; `None` where not even a home folder is known.
pub(super) fn cache_folder() -> Option<PathBuf> {
    let named = std::env::var("HF_HUB_CACHE").ok().filter(|path| !path.trim().is_empty());
    named.map(PathBuf::from).or_else(|| Some(windrow_remote::hub_home()?.join("hub")))
}

/// Whether the environment says that no connection is to be opened.
pub(super) fn is_offline() -> bool {
    let is_true = |v: String| ["1", "on", "yes", "true"].contains(&v.trim().to_ascii_lowercase().as_str());
    std::env::var("HF_HUB_OFFLINE").is_ok_and(is_true)
}

/// What the Hub's cache has of one data set.
pub(super) struct Cached(PathBuf);

impl Cached {
    /// Of `owner/name`, in this cache.
    pub(super) fn of(cache: &Path, repo: &str) -> Cached {
        Cached(cache.join(format!("datasets--{}", repo.replace('/', "--"))))
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Where the content of this hash is, if it is there.
    pub(super) fn blob(&self, digest: &Digest) -> PathBuf {
        self.0.join("blobs").join(digest.text())
    }

    /// The commit that a revision was when it was last asked for.
    pub(super) fn commit(&self, revision: &str) -> Option<String> {
        let named = fs::read_to_string(self.0.join("refs").join(revision)).ok();
        let commit = named.map_or_else(|| revision.to_string(), |text| text.trim().to_string());
        (Digest::parse(&commit).is_some() && self.0.join("snapshots").join(&commit).is_dir())
            .then_some(commit)
    }

    /// Files of a commit below a folder.
    pub(super) fn files(&self, commit: &str, folder: &str) -> Vec<RemoteFile> {
        let mut files = Vec::new();
        walk(&self.0.join("snapshots").join(commit).join(folder), "", &mut files);
        files
    }
}

// A cached file is a link to a blob, whose name is its hash. What is anything else cannot be checked and is left out.
fn walk(folder: &Path, below: &str, files: &mut Vec<RemoteFile>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str() else { continue };
        let name = format!("{below}{name}");
        match fs::read_link(&path) {
            Ok(blob) => {
                let digest = blob.file_name().and_then(|hex| Digest::parse(hex.to_str()?));
                let size = fs::metadata(&path).ok().filter(fs::Metadata::is_file).map(|m| m.len());
                if let (Some(digest), Some(size), Ok(())) = (digest, size, checked_path(&name)) {
                    files.push(RemoteFile { path: name, size, digest });
                }
            }
            Err(_) if path.is_dir() => walk(&path, &format!("{name}/"), files),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_is_owner_and_name_at_a_revision() {
        assert_eq!(hub_url("a/b", "feature/x").unwrap(), "hf://datasets/a/b@feature%2Fx");
        for bad in ["", "name", "a/b/c", "a/", "/b", "../b", "a/..", "a/b?x", "a b/c", "https://x/a/b"] {
            assert!(hub_url(bad, "main").is_err(), "{bad:?}");
        }
        for bad in ["", "../../x", "a b", "a?b"] {
            assert!(hub_url("a/b", bad).is_err(), "{bad:?}");
        }
    }
}
