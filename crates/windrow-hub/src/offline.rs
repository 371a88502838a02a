//! What is known of a data set without asking: the record of an earlier download, and the hub's cache on this machine.

use std::fs;
use std::path::Path;

use windrow_core::{Error, Result};

use crate::digest::Digest;
use crate::folder::Record;
use crate::hub::Hub;
use crate::listing::Listing;
use crate::remote_file::{RemoteFile, checked_path};
use crate::repo::RepoName;

/// The files that `record` names or the cache holds.
pub(crate) fn list(hub: &Hub, repo: &RepoName, revision: &str, record: Option<&Record>) -> Result<Listing> {
    let fits = |r: &&Record| r.repo == repo.as_str() && (r.revision == revision || r.commit == revision);
    let record = record.filter(fits);
    let commit = record.map(|r| r.commit.clone()).or_else(|| cached_commit(hub, repo, revision));
    let Some(commit) = commit else {
        return Err(Error::not_found(format!(
            "HF_HUB_OFFLINE is set, and nothing of {} at {revision:?} is here",
            repo.as_str()
        ))
        .at(hub.cache.path().join(repo.at(revision).folder_name()))
        .hint("unset HF_HUB_OFFLINE to download it"));
    };
    let mut files: Vec<RemoteFile> = record.into_iter().flat_map(Record::asked).collect();
    let mut cached = Vec::new();
    let snapshot = hub.cache.repo(repo.at(&commit)).pointer_path(&commit);
    walk(&snapshot, "", &mut cached);
    cached.retain(|file| !files.iter().any(|known| known.path == file.path));
    files.extend(cached);
    log::warn!(target: "windrow", "HF_HUB_OFFLINE is set: {} has {} files here, and maybe more at the hub", repo.as_str(), files.len());
    Listing::new(commit, files)
}

fn cached_commit(hub: &Hub, repo: &RepoName, revision: &str) -> Option<String> {
    let folder = hub.cache.path().join(repo.at(revision).folder_name());
    let is_commit = |text: &str| Digest::parse(text).is_some();
    let named =
        fs::read_to_string(folder.join("refs").join(revision)).ok().map(|text| text.trim().to_string());
    let commit = named.unwrap_or_else(|| revision.to_string());
    (is_commit(&commit) && folder.join("snapshots").join(&commit).is_dir()).then_some(commit)
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
