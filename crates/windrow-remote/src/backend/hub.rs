//! The Hugging Face Hub: a commit of a data set, listed by its API and read through the targets of its redirects.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use reqwest::{Client, Url};
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
    /// Where a file really lies, until that expires: so a range costs no question to the Hub.
    targets: Mutex<HashMap<String, String>>,
}

// A name of a file in a URL: it is the one that is listed, never escaped. A revision is: `refs%2Fconvert%2Fparquet`.
fn literal(name: &str) -> String {
    escaped(&name.replace('%', "%25"))
}

/// A data set of the Hub.
pub(super) fn open(location: &Location, options: &Options) -> Result<Arc<dyn Backend>> {
    let place = location.root.trim_start_matches("hf://datasets/");
    let (repo, revision) = place.split_once('@').unwrap_or((place, "main"));
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let endpoint =
        options.get(&["endpoint_url", "endpoint"]).map(str::to_string).or_else(|| set("HF_ENDPOINT"));
    let token = match options.is_anonymous() {
        true => None,
        false => options.get(&["token"]).map(str::to_string).or_else(|| set("HF_TOKEN")).or_else(saved_token),
    };
    Ok(Arc::new(Hub {
        client: client(options, &location.root, false)?,
        endpoint: endpoint.unwrap_or_else(|| ENDPOINT.to_string()).trim_end_matches('/').to_string(),
        token,
        repo: repo.to_string(),
        revision: revision.to_string(),
        commit: OnceLock::new(),
        targets: Mutex::default(),
    }))
}

// Where `huggingface-cli login` puts it.
fn saved_token() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HF_HOME").or_else(|| Some(set("HOME")?.join(".cache/huggingface")));
    let path = set("HF_TOKEN_PATH").or_else(|| Some(home()?.join("token")))?;
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
    async fn ask(&self, url: &str) -> Result<reqwest::Response, Trouble> {
        let mut request = self.client.get(url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        checked(request.send().await.map_err(unanswered)?).await
    }

    async fn json<T: serde::de::DeserializeOwned>(answer: reqwest::Response) -> Result<T, Trouble> {
        let url = answer.url().to_string();
        let bytes = answer.bytes().await.map_err(unanswered)?;
        serde_json::from_slice(&bytes)
            .map_err(|e| Trouble::new(What::Lasting, format!("{url} is not what the Hub's API gives: {e}")))
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
        let Revision { sha } = Self::json(self.ask(&url).await?).await?;
        Ok(self.commit.get_or_init(|| sha))
    }

    fn targets(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn range(&self, key: &str, range: &Range<u64>) -> Result<Got, Trouble> {
        let known = self.targets().get(key).cloned();
        if let Some(target) = known {
            let answer = get_range(&self.client, &target, range.clone(), None, None).await?;
            // It has expired.
            if !matches!(answer.status().as_u16(), 401 | 403 | 404 | 410) {
                return got(checked(answer).await?, range);
            }
            self.targets().remove(key);
        }
        let commit = self.commit().await?;
        let mut url = format!("{}/datasets/{}/resolve/{commit}/{}", self.endpoint, self.repo, literal(key));
        for _ in 0..5 {
            // The token is for the Hub, not for where it points to.
            let is_hub = url.starts_with(&format!("{}/", self.endpoint));
            let token = self.token.as_deref().filter(|_| is_hub);
            let answer = get_range(&self.client, &url, range.clone(), None, token).await?;
            if !answer.status().is_redirection() {
                let answer = checked(answer).await?;
                if !is_hub {
                    self.targets().insert(key.to_string(), url);
                }
                return got(answer, range);
            }
            let to = answer.headers().get("location").and_then(|to| to.to_str().ok());
            let joined = to.and_then(|to| Url::parse(&url).ok()?.join(to).ok());
            url = joined.ok_or_else(|| Trouble::passing("a redirect to nowhere"))?.to_string();
        }
        Err(Trouble::passing("more than 5 redirects"))
    }
}

impl Backend for Hub {
    fn head<'a>(&'a self, key: &'a str) -> Answer<'a, Meta> {
        Box::pin(async move {
            // The API tells of one path as of a folder; a file is listed with what is beside it.
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
        Box::pin(async move {
            found.clear();
            self.pages(prefix, true, found).await
        })
    }

    fn commit(&self) -> Answer<'_, Option<String>> {
        Box::pin(async move { Hub::commit(self).await.map(|commit| Some(commit.to_string())) })
    }
}

impl Hub {
    async fn pages(&self, folder: &str, recursive: bool, found: &mut Vec<Meta>) -> Result<(), Trouble> {
        let commit = self.commit().await?;
        let below = if folder.is_empty() { String::new() } else { format!("/{}", literal(folder)) };
        let mut next = Some(format!(
            "{}/api/datasets/{}/tree/{commit}{below}?recursive={recursive}&expand=false",
            self.endpoint, self.repo
        ));
        while let Some(url) = next {
            let answer = self.ask(&url).await?;
            next = next_page(&answer)
                .and_then(|page| Some(Url::parse(&url).ok()?.join(&page).ok()?.to_string()));
            let page: Vec<Listed> = Self::json(answer).await?;
            found.extend(page.into_iter().filter(|item| item.kind == "file").map(Listed::meta));
        }
        Ok(())
    }
}

// Link: <url>; rel="next"
fn next_page(answer: &reqwest::Response) -> Option<String> {
    let link = answer.headers().get("link")?.to_str().ok()?;
    let next = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    Some(next.trim().strip_prefix('<')?.split_once('>')?.0.to_string())
}

/// The root with the commit in the revision's place.
pub(crate) fn pinned(root: &str, commit: &str) -> Result<String> {
    let name = root.split_once('@').map_or(root, |(name, _)| name);
    match commit.len() >= 7 && commit.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => Ok(format!("{name}@{commit}")),
        false => Err(Error::corrupt(format!("the Hub names the commit {commit:?}")).at(root)),
    }
}
