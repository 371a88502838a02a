//! S3, Google Cloud Storage and Azure through `object_store`, which knows how each signs, lists and names its errors.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, RetryConfig,
};
use windrow_core::store::key;
use windrow_core::{Error, Kind};

use super::encoding::Encodings;
use super::kept_hash::hash_among;
use super::{Answer, Backend, Got, Meta, Sink};
use crate::options::Options;
use crate::trouble::{Trouble, What};

pub(super) struct Cloud {
    pub(super) store: Arc<dyn ObjectStore>,
    /// The client again, for uploads in parts.
    pub(super) parts: Arc<dyn MultipartStore>,
    /// The client again, for listings that begin in the middle of a name.
    pages: Arc<dyn PaginatedListStore>,
    encodings: Encodings,
}

impl Cloud {
    pub(super) fn new(store: impl ObjectStore + MultipartStore + PaginatedListStore) -> Cloud {
        let store = Arc::new(store);
        Cloud { store: store.clone(), parts: store.clone(), pages: store, encodings: Encodings::default() }
    }
}

/// Once: attempts and waits are counted above, where the deadline of the read is known.
pub(super) fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The client of a store: no time limit on a body that flows, one on silence.
pub(super) fn client_options(options: &Options, endpoint: Option<&str>) -> ClientOptions {
    let silence = Duration::from_secs(30).min(options.timeout);
    ClientOptions::new()
        .with_timeout_disabled()
        .with_connect_timeout(Duration::from_secs(5).min(options.timeout))
        .with_read_timeout(silence)
        .with_pool_max_idle_per_host(crate::net::MOST_REQUESTS)
        .with_http1_only()
        .with_allow_http(endpoint.is_some_and(|url| url.starts_with("http://")))
}

/// What `object_store` says of options that it cannot use.
pub(super) fn refused(error: object_store::Error, url: &str) -> Error {
    Error::config("the store cannot be opened with these options").at(url).caused_by(error)
}

tokio::task_local! {
    /// The status of the last answer to this request, and the wait that it asks for.
    static ANSWERED: Cell<(Option<u16>, Option<Duration>)>;
}

/// Notes what each answer says before `object_store` turns it into an error.
#[derive(Debug, Default)]
pub(super) struct Noting(ReqwestConnector);

impl HttpConnector for Noting {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Noted(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct Noted(HttpClient);

#[async_trait::async_trait]
impl HttpService for Noted {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = self.0.execute(request).await?;
        let header = |name| answer.headers().get(name)?.to_str().ok();
        let noted = (Some(answer.status().as_u16()), super::http::wait_asked(header("retry-after"), None));
        // Outside of a request of ours, which credentials may be fetched in, nobody asks.
        let _ = ANSWERED.try_with(|answered| answered.set(noted));
        Ok(answer)
    }
}

pub(super) async fn noted<T>(asked: impl Future<Output = object_store::Result<T>>) -> Result<T, Trouble> {
    ANSWERED
        .scope(Cell::default(), async { asked.await.map_err(|e| trouble(&e, ANSWERED.with(Cell::get))) })
        .await
}

fn trouble(error: &object_store::Error, (status, wait): (Option<u16>, Option<Duration>)) -> Trouble {
    use object_store::Error as Of;
    let said = in_words(error);
    let what = match error {
        Of::NotFound { .. } => What::NotFound,
        Of::AlreadyExists { .. } => What::Exists,
        Of::Precondition { .. } => What::Changed,
        Of::PermissionDenied { .. } | Of::Unauthenticated { .. } => What::Denied,
        Of::NotSupported { .. } => What::NoRanges,
        _ => match status {
            Some(status) if status >= 300 => return Trouble::of_status(status, said, wait),
            _ if super::http::is_of_a_certificate(&said) => What::Lasting,
            // A wrong region is answered by a redirect to nowhere.
            _ if said.contains("redirect") => What::Denied,
            _ => What::Passing(wait),
        },
    };
    Trouble::new(what, said)
}

// The innermost cause says most; what is around it repeats it.
fn in_words(error: &object_store::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    let mut causes = vec![inner.to_string()];
    while let Some(cause) = inner.source() {
        inner = cause;
        causes.push(inner.to_string());
    }
    let mut said: Vec<String> = Vec::new();
    for cause in causes.into_iter().rev() {
        if !said.iter().any(|known| cause.contains(known.as_str()) || known.contains(&cause)) {
            said.push(cause);
        }
    }
    said.reverse();
    said.join(": ")
}

pub(super) fn path(key: &str) -> Result<Path, Trouble> {
    Path::parse(key).map_err(|e| Trouble::new(What::Lasting, format!("a key that cannot be asked for: {e}")))
}

fn meta(found: ObjectMeta, attributes: &Attributes) -> Meta {
    let hash = hash_among(attributes);
    Meta { key: found.location.to_string(), size: found.size, tag: found.e_tag.map(quoted), hash }
}

/// A tag as headers have it: listings of Azure leave the quotes out.
fn quoted(tag: String) -> String {
    if tag.starts_with('"') || tag.starts_with("W/") { tag } else { format!("\"{tag}\"") }
}

impl Backend for Cloud {
    fn head<'a>(&'a self, key: &'a str) -> Answer<'a, Meta> {
        Box::pin(async move {
            let (path, options) = (path(key)?, GetOptions { head: true, ..GetOptions::default() });
            let found = noted(self.store.get_opts(&path, options)).await?;
            let attributes = found.attributes.clone();
            Ok(meta(found.meta, &attributes))
        })
    }

    fn get<'a>(&'a self, key: &'a str, range: Range<u64>, tag: Option<&'a str>) -> Answer<'a, Got> {
        Box::pin(async move {
            let options = GetOptions {
                range: Some(GetRange::Bounded(range)),
                if_match: tag.map(str::to_string),
                ..GetOptions::default()
            };
            let path = path(key)?;
            let found = noted(self.store.get_opts(&path, options)).await?;
            let encoding = found.attributes.get(&Attribute::ContentEncoding);
            self.encodings.note(key, encoding.map(|encoding| encoding.as_ref()))?;
            let (total, tag) = (Some(found.meta.size), found.meta.e_tag.clone().map(quoted));
            let hash = hash_among(&found.attributes);
            let body = found.into_stream().map_err(|e| Trouble::passing(in_words(&e)));
            Ok(Got { total, tag, hash, body: Box::pin(body) })
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, found: &'a mut Vec<Meta>) -> Answer<'a, ()> {
        Box::pin(async move {
            let folder = path(prefix)?;
            let folder = (!prefix.is_empty()).then_some(&folder);
            let mut pages = match found.last() {
                Some(last) => self.store.list_with_offset(folder, &path(&last.key)?),
                None => self.store.list(folder),
            };
            while let Some(next) = noted(pages.try_next()).await? {
                let next = meta(next, &Attributes::new());
                if next.key != prefix && key::is_below(prefix, &next.key) {
                    found.push(next);
                }
            }
            Ok(())
        })
    }

    fn names<'a>(&'a self, start: &'a str) -> Answer<'a, Option<Vec<Meta>>> {
        Box::pin(async move {
            let page = noted(self.pages.list_paginated(Some(start), PaginatedListOptions::default())).await?;
            let objects = page.result.objects.into_iter().map(|found| meta(found, &Attributes::new()));
            Ok(page.page_token.is_none().then(|| objects.collect()))
        })
    }

    fn encoding(&self, key: &str) -> Option<String> {
        self.encodings.of(key)
    }

    fn sink(&self) -> Option<&dyn Sink> {
        Some(self)
    }
}

/// A setting that is missing.
pub(super) fn missing(what: &str, url: &str, hint: &str) -> Error {
    Error::new(Kind::Config, what.to_string()).at(url).hint(hint)
}
