//! What a data set holds at a revision: every file's path, size and hash, as the hub's tree says it.

use std::collections::HashSet;

use serde::Deserialize;
use windrow_core::{Error, Kind, Result};

use crate::digest::Digest;
use crate::http::{self, Answer, Http, Part};
use crate::remote_file::{RemoteFile, checked_path};
use crate::repo::RepoName;
use crate::retry::{self, Trouble};

/// No page of a listing is longer: a thousand files a page are a few hundred kilobytes.
const MOST_PAGE_BYTES: u64 = 64 << 20;

/// The files of a data set at one commit, in the order of their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The commit that the revision stands for.
    pub commit: String,
    /// The files.
    pub files: Vec<RemoteFile>,
}

#[derive(Deserialize)]
struct Info {
    sha: String,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    oid: String,
    #[serde(default)]
    size: u64,
    lfs: Option<Large>,
}

#[derive(Deserialize)]
struct Large {
    oid: String,
    size: u64,
}

impl Listing {
    /// The size of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Sorts the files; two of one path are refused.
    pub(crate) fn new(commit: String, mut files: Vec<RemoteFile>) -> Result<Listing> {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        match files.windows(2).find(|pair| pair[0].path == pair[1].path) {
            Some(pair) => Err(Error::corrupt("the listing names a file twice").at(&pair[0].path)),
            None => Ok(Listing { commit, files }),
        }
    }
}

pub(crate) fn list(
    http: &Http,
    repo: &RepoName,
    revision: &str,
    stopped: &dyn Fn() -> bool,
) -> Result<Listing> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
    if revision.is_empty() || revision.contains("..") || !revision.bytes().all(is_plain) {
        return Err(Error::config(format!("{revision:?} is not a revision"))
            .hint("it is the name of a branch or a tag, or a commit"));
    }
    let url = http.url(&format!("api/{}", repo.at(revision).api_url()));
    let (info, _): (Info, _) = json(http, &url, stopped).map_err(|e| not_there(e, repo, revision))?;
    if Digest::parse(&info.sha).is_none() {
        return Err(Error::corrupt(format!("the hub calls {:?} a commit", info.sha)).at(url));
    }
    let mut next =
        Some(http.url(&format!("api/datasets/{}/tree/{}?recursive=true", repo.as_str(), info.sha)));
    let mut pages = HashSet::new();
    let mut files = Vec::new();
    while let Some(url) = next {
        let (entries, following): (Vec<Entry>, _) = json(http, &url, stopped)?;
        files.extend(entries.into_iter().filter(|e| e.kind == "file").map(file).collect::<Result<Vec<_>>>()?);
        next = following;
        // The token goes where the listing continues, so that must be the hub.
        let leaves = next.as_ref().is_some_and(|next| !http.is_own(next));
        if !pages.insert(url) || leaves {
            return Err(Error::corrupt(format!(
                "the hub's listing of {} continues elsewhere or in a circle",
                repo.as_str()
            )));
        }
    }
    Listing::new(info.sha, files)
}

fn file(entry: Entry) -> Result<RemoteFile> {
    let (oid, size) = entry.lfs.map_or((entry.oid, entry.size), |large| (large.oid, large.size));
    let digest = Digest::parse(&oid).ok_or_else(|| {
        Error::corrupt(format!("the listing gives {oid:?} as a file's hash")).at(&entry.path)
    })?;
    checked_path(&entry.path)?;
    Ok(RemoteFile { path: entry.path, size, digest })
}

// The answer, and the address of the next page.
fn json<T: for<'de> Deserialize<'de>>(
    http: &Http,
    url: &str,
    stopped: &dyn Fn() -> bool,
) -> Result<(T, Option<String>)> {
    let ask = |_: &mut u64| -> Result<(Vec<u8>, Option<String>), Trouble> {
        let answer: Answer = http.get(url, &Part::default())?;
        let next = http::text(&answer.headers, "link").and_then(next_page);
        Ok((answer.into_bytes(MOST_PAGE_BYTES)?, next))
    };
    let (bytes, next) = retry::trying(&http.patience, stopped, ask).map_err(Trouble::into_error)?;
    let value = serde_json::from_slice(&bytes).map_err(|e| {
        let error = Error::corrupt("the answer is not what the hub's API gives").at(url).caused_by(e);
        error.hint("is HF_ENDPOINT a hub?")
    })?;
    Ok((value, next))
}

// `<https://…>; rel="next"`
fn next_page(link: &str) -> Option<String> {
    link.split(',').find_map(|link| {
        let (url, of) = link.trim().strip_prefix('<')?.split_once('>')?;
        of.contains("rel=\"next\"").then(|| url.to_string())
    })
}

fn not_there(error: Error, repo: &RepoName, revision: &str) -> Error {
    if error.kind() != Kind::NotFound {
        return error;
    }
    let what = format!("the hub has no data set {} with a revision {revision:?}", repo.as_str());
    let place = error.place().file.clone().unwrap_or_default();
    Error::not_found(what)
        .at(place)
        .hint("is the name right? A private one needs HF_TOKEN; models are not data sets")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_stands_in_the_link() {
        assert_eq!(next_page("<http://a/b?c=1>; rel=\"next\"").as_deref(), Some("http://a/b?c=1"));
        assert_eq!(next_page("<x>; rel=\"prev\", <y>; rel=\"next\"").as_deref(), Some("y"));
        assert_eq!(next_page("<x>; rel=\"prev\""), None);
    }
}
