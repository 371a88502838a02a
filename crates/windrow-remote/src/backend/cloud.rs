//! S3, Google Cloud Storage and Azure through `object_store`, which knows how each signs, lists and names its errors.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, ClientOptions, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore,
    RetryConfig,
};
use windrow_core::store::key;
use windrow_core::{Error, Kind};

use super::answered::{in_words, noted};
use super::encoding::Encodings;
use super::kept_hash::hash_among;
use super::{Answer, Backend, Got, Meta, Sink};
use crate::checksum::Checksum;
use crate::options::Options;
use crate::trouble::{Trouble, What};

pub(super) struct Cloud {
    client: Mutex<Arc<Client>>,
    /// Makes another one; `None` where that would be the same.
    again: Option<Again>,
    mending: tokio::sync::Mutex<()>,
    /// The store refuses what objects are without their bytes: size and version come with the first one.
    refuses_heads: AtomicBool,
    /// What it refuses without saying why it refused when it was to say why.
    has_denied: AtomicBool,
    encodings: Encodings,
}

/// What asks a store, with the credentials and the region that it had when it was made.
pub(super) struct Client {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Gives objects as a whole, with their checksums; `None` where `store` does.
    checked: Option<Arc<dyn ObjectStore>>,
    /// The client again, for uploads in parts.
    pub(super) parts: Arc<dyn MultipartStore>,
    /// The client again, for listings that begin in the middle of a name.
    pages: Arc<dyn PaginatedListStore>,
    /// Of two clients with the same credentials the same.
    credentials: u64,
    region: Option<String>,
}

impl Client {
    pub(super) fn new(store: impl ObjectStore + MultipartStore + PaginatedListStore) -> Client {
        let store = Arc::new(store);
        Client {
            store: store.clone(),
            checked: None,
            parts: store.clone(),
            pages: store,
            credentials: 0,
            region: None,
        }
    }

    pub(super) fn with(self, credentials: u64, region: Option<String>) -> Client {
        Client { credentials, region, ..self }
    }

    /// With a store that is asked for objects as a whole.
    pub(super) fn checked_by(self, store: Option<impl ObjectStore>) -> Client {
        Client { checked: store.map(|store| Arc::new(store) as _), ..self }
    }

    fn store_for(&self, options: &GetOptions) -> &Arc<dyn ObjectStore> {
        let is_whole = options.range.is_none() && !options.head;
        self.checked.as_ref().filter(|_| is_whole).unwrap_or(&self.store)
    }
}

/// Makes a client, of another region than the settings name where one is given: what says the credentials is read again.
pub(super) type Again = Arc<dyn Fn(Option<&str>) -> windrow_core::Result<Client> + Send + Sync>;

impl Cloud {
    pub(super) fn new(client: Client) -> Cloud {
        Cloud {
            client: Mutex::new(Arc::new(client)),
            again: None,
            mending: tokio::sync::Mutex::default(),
            refuses_heads: AtomicBool::new(false),
            has_denied: AtomicBool::new(false),
            encodings: Encodings::default(),
        }
    }

    /// One whose clients are made again where that may help.
    pub(super) fn renewed_by(again: Again) -> windrow_core::Result<Cloud> {
        let client = again(None)?;
        Ok(Cloud { again: Some(again), ..Cloud::new(client) })
    }

    fn client(&self) -> Arc<Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks; once more, by another client, where the store says that the bucket is in another region or that credentials have
    /// expired which are others by now.
    pub(super) async fn asked<T, F>(&self, ask: impl Fn(Arc<Client>) -> F) -> Result<T, Trouble>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let client = self.client();
        match noted(ask(client.clone())).await {
            Err(trouble) => match self.mended(&client, &trouble).await {
                Some(other) => noted(ask(other)).await,
                None => Err(trouble),
            },
            found => found,
        }
    }

    // Another client than the one that had this trouble; `None` where none would do better.
    async fn mended(&self, client: &Arc<Client>, trouble: &Trouble) -> Option<Arc<Client>> {
        let again = self.again.as_ref()?;
        let is_refused = matches!(trouble.what, What::Elsewhere | What::Lasting | What::Denied);
        if trouble.what != What::Expired && !(is_refused && trouble.region.is_some()) {
            return None;
        }
        let _one_at_a_time = self.mending.lock().await;
        let now = self.client();
        if !Arc::ptr_eq(&now, client) {
            return Some(now);
        }
        let region = match trouble.what {
            What::Expired => now.region.clone(),
            _ => Some(trouble.region.clone().filter(|region| Some(region) != now.region.as_ref())?),
        };
        let (again, in_region) = (again.clone(), region.clone());
        // It reads files, and may ask other programs.
        let made = tokio::task::spawn_blocking(move || again(in_region.as_deref())).await.ok()?;
        let made = made.inspect_err(|e| log::debug!("no other credentials: {e:#}")).ok()?;
        match trouble.what {
            What::Expired if made.credentials == now.credentials => return None,
            What::Expired => log::info!("the credentials had expired, and were read again"),
            _ => {
                let region = region.as_deref().unwrap_or_default();
                windrow_core::warn!(
                    "the bucket is in the region {region}, and is asked there: AWS_REGION={region} or @store_options={{\"region\": \"{region}\"}}@ \
                     spares the detour"
                );
            }
        }
        let made = Arc::new(made);
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = made.clone();
        Some(made)
    }

    async fn get_opts(&self, key: &str, options: &GetOptions) -> Result<GetResult, Trouble> {
        let path = path(key)?;
        let ask = |client: Arc<Client>| {
            let (path, options) = (path.clone(), options.clone());
            async move { client.store_for(&options).get_opts(&path, options).await }
        };
        self.asked(ask).await
    }

    async fn got(&self, key: &str, range: Option<GetRange>, tag: Option<&str>) -> Result<Got, Trouble> {
        let options = GetOptions { range, if_match: tag.map(str::to_string), ..GetOptions::default() };
        let found = self.get_opts(key, &options).await?;
        let encoding = found.attributes.get(&Attribute::ContentEncoding);
        self.encodings.note(key, encoding.map(|encoding| encoding.as_ref()))?;
        let (total, tag) = (Some(found.meta.size), found.meta.e_tag.clone().map(quoted));
        let hash = hash_among(&found.attributes);
        let checksum =
            found.extensions.get::<Checksum>().filter(|_| found.range == (0..found.meta.size)).cloned();
        let body = found.into_stream().map_err(|e| Trouble::passing(in_words(&e)));
        Ok(Got { total, tag, hash, checksum, body: Box::pin(body) })
    }

    // The answer to a HEAD has no body that could say why. To the same question with one the store says it, or it says what was
    // asked for: rights may be to the bytes alone.
    async fn head_by_get(&self, key: &str, of_head: Trouble) -> Result<Meta, Trouble> {
        let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        match self.get_opts(key, &options).await {
            Ok(found) => {
                self.refuses_heads.store(true, Relaxed);
                Ok(meta(found.meta, &found.attributes))
            }
            // An empty object has no first byte.
            Err(Trouble { what: What::Passing(_) | What::NoRanges | What::Changed, .. }) => Err(of_head),
            Err(trouble) => {
                self.has_denied.fetch_or(trouble.what == What::Denied, Relaxed);
                Err(trouble)
            }
        }
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

pub(super) fn path(key: &str) -> Result<Path, Trouble> {
    Path::parse(key).map_err(|e| Trouble::new(What::Lasting, format!("a key that cannot be asked for: {e}")))
}

// Whether it may be the question without a body that is refused, and not the object.
fn is_of_the_head(what: What) -> bool {
    matches!(what, What::Denied | What::Lasting | What::Elsewhere | What::NotImplemented)
}

fn meta(found: ObjectMeta, attributes: &Attributes) -> Meta {
    let hash = hash_among(attributes);
    Meta { key: found.location.to_string(), size: found.size, tag: found.e_tag.map(quoted), hash }
}

/// A tag as headers have it: listings of Azure leave the quotes out.
fn quoted(tag: String) -> String {
    if tag.starts_with('"') || tag.starts_with("W/") { tag } else { format!("\"{tag}\"") }
}

// What is listed below a folder, from where the listing broke off before.
async fn pages(client: &Client, prefix: &str, found: &mut Vec<Meta>) -> Result<(), Trouble> {
    let folder = path(prefix)?;
    let folder = (!prefix.is_empty()).then_some(&folder);
    let mut pages = match found.last() {
        Some(last) => client.store.list_with_offset(folder, &path(&last.key)?),
        None => client.store.list(folder),
    };
    while let Some(next) = noted(pages.try_next()).await? {
        let next = meta(next, &Attributes::new());
        if next.key != prefix && key::is_below(prefix, &next.key) {
            found.push(next);
        }
    }
    Ok(())
}

impl Backend for Cloud {
    fn head<'a>(&'a self, key: &'a str) -> Answer<'a, Meta> {
        Box::pin(async move {
            let options = GetOptions { head: true, ..GetOptions::default() };
            if self.refuses_heads.load(Relaxed) {
                return self.head_by_get(key, Trouble::passing("no answer to a question for one byte")).await;
            }
            match self.get_opts(key, &options).await {
                Ok(found) => Ok(meta(found.meta, &found.attributes)),
                Err(trouble) if trouble.what == What::Denied && self.has_denied.load(Relaxed) => Err(trouble),
                Err(trouble) if is_of_the_head(trouble.what) => self.head_by_get(key, trouble).await,
                Err(trouble) => Err(trouble),
            }
        })
    }

    fn get<'a>(&'a self, key: &'a str, range: Range<u64>, tag: Option<&'a str>) -> Answer<'a, Got> {
        Box::pin(async move { self.got(key, Some(GetRange::Bounded(range)), tag).await })
    }

    // S3 says the checksum of an object only to those who ask for no range.
    fn all<'a>(&'a self, key: &'a str, size: u64, tag: Option<&'a str>) -> Answer<'a, Got> {
        let range = self.client().checked.is_none().then_some(GetRange::Bounded(0..size));
        Box::pin(self.got(key, range, tag))
    }

    fn whole<'a>(&'a self, key: &'a str, tag: Option<&'a str>) -> Answer<'a, Got> {
        Box::pin(self.got(key, None, tag))
    }

    fn list<'a>(&'a self, prefix: &'a str, found: &'a mut Vec<Meta>) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut client = self.client();
            loop {
                let Err(trouble) = pages(&client, prefix, found).await else { return Ok(()) };
                client = self.mended(&client, &trouble).await.ok_or(trouble)?;
            }
        })
    }

    fn names<'a>(&'a self, start: &'a str) -> Answer<'a, Option<Vec<Meta>>> {
        Box::pin(async move {
            let ask = |client: Arc<Client>| async move {
                client.pages.list_paginated(Some(start), PaginatedListOptions::default()).await
            };
            let page = self.asked(ask).await?;
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
