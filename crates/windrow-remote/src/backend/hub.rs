//! The Hugging Face Hub: a commit of a data set, listed by its API and read through the targets of its redirects.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use reqwest::{Client, Response, Url};
use serde::Deserialize;
use windrow_core::{Error, Result};

use super::http::{checked, client, escaped, get_range, got, unanswered};
use super::{Answer, Backend, Got, Meta};
use crate::options::Options;
use crate::trouble::{Trouble, What};
use crate::url::Location;

const ENDPOINT: &str = "https://huggingface.co";

struct Hub {
    client: Client,
    endpoint: String,
    token: Option<String>,
    /// `owner/name`.
    repo: String,
    revision: String,
    /// What the revision was when it was first asked for.
    commit: OnceLock<String>,
    /// Where a file is stored, until that expires: so a range costs no request to the Hub.
    targets: Mutex<HashMap<String, String>>,
    /// Where the last listing, by its first page and the number of its files, continues.
    next: Mutex<Option<(String, usize, String)>>,
}

// A name of a file in a URL: it is the one that is listed, never escaped. A revision is: `refs%2Fconvert%2Fparquet`.
fn literal(name: &str) -> String {
    escaped(&name.replace('%', "%25"))
}

/// A data set of the Hub.
pub(super) fn open(location: &Location, options: &Options) -> Result<Arc<dyn Backend>> {
    let place = location.root.trim_start_matches("hf://datasets/");
    let (repo, revision) = place.split_once('@').unwrap_or((place, "main"));
    let endpoint =
        options.get(&["endpoint_url", "endpoint"]).map(str::to_string).or_else(|| set("HF_ENDPOINT"));
    let endpoint = endpoint.unwrap_or_else(|| ENDPOINT.to_string()).trim_end_matches('/').to_string();
    let is_address = |url: &Url| matches!(url.scheme(), "http" | "https") && url.username().is_empty();
    if !Url::parse(&endpoint).is_ok_and(|url| is_address(&url)) {
        return Err(Error::config(format!(
            "the Hub's endpoint {endpoint:?} is not an http or https address"
        ))
        .at(location.root.as_str())
        .hint("HF_ENDPOINT is like https://huggingface.co"));
    }
    // The first is today's name, the others are those of older clients and pages.
    let names = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN"];
    let token = if options.is_anonymous() {
        None
    } else {
        options
            .get(&["token"])
            .map(str::to_string)
            .or_else(|| names.into_iter().find_map(set))
            .or_else(saved_token)
    };
    Ok(Arc::new(Hub {
        client: client(options, &location.root, false)?,
        endpoint,
        token,
        repo: repo.to_string(),
        revision: revision.to_string(),
        // A commit in full is itself.
        commit: if revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit()) {
            OnceLock::from(revision.to_string())
        } else {
            OnceLock::new()
        },
        targets: Mutex::default(),
        next: Mutex::default(),
    }))
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_string()).filter(|value| !value.is_empty())
}

/// Where the Hub's own clients keep the token and their cache; `None` where not even a home folder is known.
pub fn hub_home() -> Option<PathBuf> {
    let path = |name: &str| set(name).map(PathBuf::from);
    let caches = || path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")));
    path("HF_HOME").or_else(|| Some(caches()?.join("huggingface")))
}

// Where `huggingface-cli login` puts it.
fn saved_token() -> Option<String> {
    let path = set("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| Some(hub_home()?.join("token")))?;
    let token = std::fs::read_to_string(path).ok()?.trim().to_string();
    (!token.is_empty()).then_some(token)
}

/// A file as the API lists it.
#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    oid: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    oid: String,
    size: u64,
}

impl Listed {
    fn meta(self) -> Meta {
        let (size, tag) = match self.lfs {
            Some(lfs) => (lfs.size, Some(lfs.oid)),
            None => (self.size, self.oid),
        };
        Meta { key: self.path, size, tag, hash: None }
    }
}

impl Hub {
    fn is_own(&self, url: &str) -> bool {
        url.strip_prefix(&self.endpoint).is_some_and(|rest| rest.starts_with('/'))
    }

    // The answer of whoever redirects lead to, and its address. The token is for the Hub, not for where it points to.
    async fn follow(&self, url: String, range: Option<&Range<u64>>) -> Result<(Response, String), Trouble> {
        const MOST: usize = 10;
        let mut url = url;
        for _ in 0..=MOST {
            let token = self.token.as_deref().filter(|_| self.is_own(&url));
            let mut request = self.client.get(&url);
            if let Some(range) = range {
                let last = range.end.saturating_sub(1);
                request = request.header("range", format!("bytes={}-{last}", range.start));
            }
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            let answer = request.send().await.map_err(unanswered)?;
            if !answer.status().is_redirection() {
                return Ok((checked(answer).await?, url));
            }
            let to = answer.headers().get("location").and_then(|to| to.to_str().ok());
            let joined = to.and_then(|to| Url::parse(&url).ok()?.join(to).ok());
            let to = joined.ok_or_else(|| Trouble::passing("a redirect to nowhere"))?.to_string();
            if url.starts_with("https:") && !to.starts_with("https:") {
                let said = "a redirect from an encrypted connection to a plain one, which is not followed";
                return Err(Trouble::new(What::Lasting, said));
            }
            url = to;
        }
        Err(Trouble::new(What::Lasting, format!("more than {MOST} redirects")))
    }

    async fn json<T: serde::de::DeserializeOwned>(answer: Response) -> Result<T, Trouble> {
        let url = answer.url().to_string();
        let bytes = answer.bytes().await.map_err(unanswered)?;
        let senseless =
            |e| Trouble::new(What::Senseless, format!("{url} is not what the Hub's API gives: {e}"));
        serde_json::from_slice(&bytes).map_err(senseless)
    }

    async fn commit(&self) -> Result<&str, Trouble> {
        #[derive(Deserialize)]
        struct Revision {
            sha: String,
        }
        if let Some(commit) = self.commit.get() {
            return Ok(commit);
        }
        let url =
            format!("{}/api/datasets/{}/revision/{}", self.endpoint, self.repo, escaped(&self.revision));
        let (answer, _) = self.follow(url, None).await.map_err(|trouble| match trouble.what {
            What::NotFound => {
                let revision = self.revision.replace("%2F", "/");
                let said = format!("the Hub has no data set {} with a revision {revision:?}", self.repo);
                Trouble { said, ..trouble }
            }
            _ => trouble,
        })?;
        let Revision { sha } = Self::json(answer).await?;
        Ok(self.commit.get_or_init(|| sha))
    }

    fn targets(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn range(&self, key: &str, range: &Range<u64>) -> Result<Got, Trouble> {
        let known = self.targets().get(key).cloned();
        if let Some(target) = known {
            let answer = get_range(&self.client, &target, range.clone(), None).await?;
            // It has expired.
            if !matches!(answer.status().as_u16(), 401 | 403 | 404 | 410) {
                return got(checked(answer).await?, range);
            }
            self.targets().remove(key);
        }
        let commit = self.commit().await?;
        let url = format!("{}/datasets/{}/resolve/{commit}/{}", self.endpoint, self.repo, literal(key));
        let (answer, url) = self.follow(url, Some(range)).await?;
        if !self.is_own(&url) {
            self.targets().insert(key.to_string(), url);
        }
        got(answer, range)
    }
}

impl Backend for Hub {
    fn head<'a>(&'a self, key: &'a str) -> Answer<'a, Meta> {
        Box::pin(async move {
            // The API describes one path as a folder; a file is listed with what is beside it.
            let mut found = Vec::new();
            let folder = windrow_core::store::key::folder_of(key);
            self.pages(folder, false, &mut found).await?;
            found
                .into_iter()
                .find(|meta| meta.key == key)
                .ok_or_else(|| Trouble::new(What::NotFound, "no such file in the data set"))
        })
    }

    fn get<'a>(&'a self, key: &'a str, range: Range<u64>, _tag: Option<&'a str>) -> Answer<'a, Got> {
        // A commit never changes, so neither does a file of it.
        Box::pin(async move { Ok(Got { tag: None, ..self.range(key, &range).await? }) })
    }

    fn list<'a>(&'a self, prefix: &'a str, found: &'a mut Vec<Meta>) -> Answer<'a, ()> {
        Box::pin(self.pages(prefix, true, found))
    }

    fn commit(&self) -> Answer<'_, Option<String>> {
        Box::pin(async move { Hub::commit(self).await.map(|commit| Some(commit.to_string())) })
    }
}

impl Hub {
    async fn pages(&self, folder: &str, recursive: bool, found: &mut Vec<Meta>) -> Result<(), Trouble> {
        let commit = self.commit().await?;
        let below = if folder.is_empty() { String::new() } else { format!("/{}", literal(folder)) };
        let first = format!(
            "{}/api/datasets/{}/tree/{commit}{below}?recursive={recursive}&expand=false",
            self.endpoint, self.repo
        );
        let known = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut next = match known {
            Some((of, size, next)) if of == first && size == found.len() => Some(next),
            _ => {
                found.clear();
                Some(first.clone())
            }
        };
        let mut pages = HashSet::new();
        while let Some(url) = next {
            let (answer, _) = self.follow(url.clone(), None).await?;
            next = next_page(&answer)
                .and_then(|page| Some(Url::parse(&url).ok()?.join(&page).ok()?.to_string()));
            // The token goes where the listing continues, so that must be the Hub.
            if !pages.insert(url) || next.as_ref().is_some_and(|next| !self.is_own(next)) {
                return Err(Trouble::new(What::Senseless, "the listing continues elsewhere or in a circle"));
            }
            let page: Vec<Listed> = Self::json(answer).await?;
            found.extend(page.into_iter().filter(|item| item.kind == "file").map(Listed::meta));
            // A listing that breaks off continues from here.
            *self.next.lock().unwrap_or_else(PoisonError::into_inner) =
                next.clone().map(|next| (first.clone(), found.len(), next));
        }
        Ok(())
    }
}

// Link: <url>; rel="next"
fn next_page(answer: &Response) -> Option<String> {
    let link = answer.headers().get("link")?.to_str().ok()?;
    let next = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    Some(next.trim().strip_prefix('<')?.split_once('>')?.0.to_string())
}

/// The root with the commit in the revision's place.
pub(crate) fn pinned(root: &str, commit: &str) -> Result<String> {
    let name = root.split_once('@').map_or(root, |(name, _)| name);
    if commit.len() >= 7 && commit.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(format!("{name}@{commit}"))
    } else {
        Err(Error::corrupt(format!("the Hub names the commit {commit:?}")).at(root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address() {
        let location = Location::of("hf://datasets/o/n").unwrap().unwrap();
        let kind = |endpoint: &str| {
            let store = [("endpoint_url".to_string(), endpoint.to_string())].into();
            open(&location, &Options { store, ..Options::default() }).err().map(|e| e.kind())
        };
        for bad in ["", "huggingface.co", "ftp://a", "file:///etc", "http://user@host"] {
            assert_eq!(kind(bad), Some(windrow_core::Kind::Config), "{bad:?}");
        }
    }
}
