//! Where files come from: the store of a URL, what it lists, and how an object is asked for.

use windrow_core::store::{Entry, Store, key, without_secrets};
use windrow_core::{Error, Result};
use windrow_remote::{Location, Remote, Scheme};

use super::digest::Digest;
use super::file::{Listing, RemoteFile};
use super::folder::Record;
use super::hub::Cached;
use crate::format::Options;
use crate::opening::remote::of_store;

/// What a folder is called into which a URL is downloaded: its last name, of a file up to the first dot; of a data set of the Hub without
/// its revision. Empty where that is no name.
///
/// ```
/// use windrow::download::folder_name;
///
/// assert_eq!(folder_name("hf://datasets/owner/name@refs/convert/parquet")?, "name");
/// assert_eq!(folder_name("https://host/data/tokens.tar.gz?sig=1")?, "tokens");
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `Config` for what is not such a URL; `Unsupported` for others.
pub fn folder_name(url: &str) -> Result<String> {
    let Location { scheme, root, key, .. } = location(url)?;
    let last = match key.as_str() {
        "" => key::name_of(&root),
        key => key::name_of(key),
    };
    let ends: &[char] = match (scheme, key.is_empty()) {
        (Scheme::Hf, true) => &['@'],
        (Scheme::Hf, false) => &[],
        (Scheme::Http, _) => &['#', '.'],
        _ => &['.'],
    };
    Ok(last.split(ends).next().unwrap_or_default().to_string())
}

fn location(url: &str) -> Result<Location> {
    let wrong = || {
        Error::config("expected a URL to download from")
            .at(url)
            .hint("such as hf://datasets/owner/name, s3://bucket/prefix or https://host/file")
    };
    Location::of(url)?.ok_or_else(wrong)
}

/// What a URL names: a data set of the Hub, a bucket or a folder in either, or one object.
pub(super) struct Origin {
    location: Location,
    /// `owner/name`, of the Hub.
    repo: Option<String>,
    /// `owner/name` with the folder in it, or the URL.
    pub(super) name: String,
    /// Of the Hub.
    pub(super) revision: Option<String>,
}

impl Origin {
    /// # Errors
    /// `Config` for what is not such a URL; `Unsupported` for others.
    pub(super) fn of(url: &str) -> Result<Origin> {
        let location = location(url)?;
        let Location { scheme: Scheme::Hf, root, key, .. } = &location else {
            return Ok(Origin { name: without_secrets(url), repo: None, revision: None, location });
        };
        let set = root.trim_start_matches("hf://datasets/");
        let (repo, revision) = set.split_once('@').unwrap_or((set, "main"));
        Ok(Origin {
            name: key::below(repo, key).trim_end_matches('/').to_string(),
            repo: Some(repo.to_string()),
            revision: Some(revision.replace("%2F", "/")),
            location,
        })
    }

    /// What the Hub's cache has of it.
    pub(super) fn cached(&self, cache: Option<&std::path::Path>) -> Option<Cached> {
        Some(Cached::of(cache?, self.repo.as_deref()?))
    }

    /// The files that the store lists, and how they are asked for.
    ///
    /// # Errors
    /// `NotFound`; `Io`; `Corrupt` for a listing that makes no sense; `Interrupted`.
    pub(super) fn list(&self, options: &Options) -> Result<(Listing, Objects)> {
        let mut location = self.location.clone();
        let mut store = Remote::new(&location, of_store(options))?;
        let root = store.pinned()?;
        let commit = root.as_ref().and_then(|root| Some(root.split_once('@')?.1.to_string()));
        if let Some(root) = root {
            location.root = root;
            store = Remote::new(&location, of_store(options))?;
        }
        let top = store.entry(&location.key)?;
        let entries = match (top.is_folder, location.scheme) {
            (false, _) => vec![top.clone()],
            // Which lists files by a manifest alone.
            (true, Scheme::Http) => store.walk(&location.key)?,
            (true, _) => store.walk_again(&location.key)?,
        };
        let objects = Objects { store, top, is_hub: self.repo.is_some() };
        let files = entries.into_iter().map(|entry| objects.file(entry)).collect::<Result<Vec<_>>>()?;
        Ok((Listing::new(commit, files)?, objects))
    }

    /// The files that a record names or the Hub's cache holds.
    ///
    /// # Errors
    /// `NotFound` where neither knows of any.
    pub(super) fn list_here(&self, cached: &Cached, record: Option<&Record>) -> Result<Listing> {
        let revision = self.revision.as_deref().unwrap_or_default();
        let fits = |r: &&Record| r.repo == self.name && (r.revision == revision || r.commit == revision);
        let record = record.filter(fits);
        let commit = record.map(|r| r.commit.clone()).or_else(|| cached.commit(revision));
        let Some(commit) = commit else {
            let what = format!("HF_HUB_OFFLINE is set, and nothing of {} at {revision:?} is here", self.name);
            let error = Error::not_found(what).at(cached.folder());
            return Err(error.hint("unset HF_HUB_OFFLINE to download it"));
        };
        let mut files: Vec<RemoteFile> = record.into_iter().flat_map(Record::asked).collect();
        let mut others = cached.files(&commit, &self.location.key);
        others.retain(|file| !files.iter().any(|known| known.path == file.path));
        files.extend(others);
        log::warn!(target: "windrow", "HF_HUB_OFFLINE is set: {} has {} files here, and maybe more at the Hub", self.name, files.len());
        Listing::new(Some(commit), files)
    }
}

/// The objects of a store below a folder, or one.
pub(super) struct Objects {
    store: Remote,
    top: Entry,
    is_hub: bool,
}

impl Objects {
    fn file(&self, entry: Entry) -> Result<RemoteFile> {
        let path = match (self.top.is_folder, self.top.key.as_str()) {
            (false, _) => Some(key::name_of(&entry.key)),
            (true, "") => Some(entry.key.as_str()),
            (true, folder) => entry.key.strip_prefix(folder).and_then(|inside| inside.strip_prefix('/')),
        };
        let elsewhere = || {
            Error::corrupt(format!("the listing names {:?}", entry.key)).at(self.store.display(&self.top.key))
        };
        let path = path.ok_or_else(elsewhere)?.to_string();
        let tag = entry.tag.unwrap_or_default();
        // The Hub's tags are hashes.
        let digest = if self.is_hub {
            Digest::parse(&tag).ok_or_else(|| {
                Error::corrupt(format!("the listing gives {tag:?} as a file's hash")).at(&entry.key)
            })?
        } else {
            Digest::Tag(tag)
        };
        Ok(RemoteFile { path, size: entry.size, digest })
    }

    /// Hands a file over, as [`Remote::stream`] does.
    ///
    /// # Errors
    /// As there.
    pub(super) fn stream(
        &self,
        file: &RemoteFile,
        start: u64,
        take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<Option<String>> {
        let key =
            if self.top.is_folder { key::below(&self.top.key, &file.path) } else { self.top.key.clone() };
        let tag = file.digest.tells().then(|| file.digest.text().to_string());
        self.store.stream(
            &Entry { key, size: file.size, is_folder: false, modified_ns: None, tag },
            start,
            take,
        )
    }
}
