//! A store of objects far away, as windrow reads any store.

use std::sync::Arc;

use windrow_core::store::{Catalogue, Entry, Object, Store, Traffic, Walked, key};
use windrow_core::{Error, Kind, Result};

use crate::backend;
use crate::listing::{entry, folder, is_own};
use crate::object::RemoteObject;
use crate::options::Options;
use crate::place::Place;
use crate::put::{self, Put};
use crate::url::{Location, Scheme};

/// A bucket, a web server or a data set of the Hub: objects by their keys.
///
/// ```no_run
/// use windrow_core::store::Store;
/// use windrow_remote::{Location, Options, Remote};
///
/// # fn main() -> windrow_core::Result<()> {
/// let location = Location::of("s3://corpus/tokens")?.expect("a URL");
/// let store = Remote::new(&location, Options::default())?;
/// for entry in store.walk(&location.key)? {
///     println!("{}: {} bytes", store.display(&entry.key), entry.size);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Remote(Arc<Place>);

impl Remote {
    /// The store that a URL names. Nothing is asked yet.
    ///
    /// # Errors
    /// `Config` for options that the store does not have, or where something that it needs is not set; `Unsupported`.
    pub fn new(location: &Location, options: Options) -> Result<Remote> {
        let place = Place::new(location, options);
        place.backend()?;
        Ok(Remote(Arc::new(place)))
    }

    /// Puts an object there. Where `replace` is not set, only if none is there: one with the same bytes counts as put. Up to
    /// 16 MiB in one request, which stores make on the condition that nothing is there; larger ones in parts, for which stores
    /// make no condition: there it is asked before the first part and before the last request.
    ///
    /// ```no_run
    /// use windrow_core::store::{Local, Store};
    /// use windrow_remote::{Location, Options, Remote};
    ///
    /// # fn main() -> windrow_core::Result<()> {
    /// let location = Location::of("s3://corpus/tokens/train.bin")?.expect("a URL");
    /// let store = Remote::new(&location, Options::default())?;
    /// store.put(&location.key, Local::new("train.bin").open("")?, false)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unsupported` for web servers and the Hub; `Exists` naming the URL where another object is; `Io`; what reading
    /// `object` says.
    pub fn put(&self, key: &str, object: Arc<dyn Object>, replace: bool) -> Result<Put> {
        put::put(&self.0, key, object, replace)
    }

    /// Whether an object is there with the bytes of `object`: by its hash, where it was put there with one, else by its bytes.
    ///
    /// # Errors
    /// As [`Remote::put`].
    pub fn is_same(&self, key: &str, object: Arc<dyn Object>) -> Result<bool> {
        put::is_there(&self.0, key, object)
    }

    /// Forgets what was listed and asked for: the next question goes to the store again.
    pub fn forget(&self) {
        self.0.forget();
    }

    /// Removes an object; nothing there is fine.
    ///
    /// # Errors
    /// `Unsupported` for web servers and the Hub; `Io`.
    pub fn remove(&self, key: &str) -> Result<()> {
        put::remove(&self.0, key)
    }

    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.0
    }

    /// The root with the commit that its revision points to now; `None` of stores without commits.
    ///
    /// # Errors
    /// What the Hub says.
    pub fn pinned(&self) -> Result<Option<String>> {
        if self.0.location().scheme != Scheme::Hf {
            return Ok(None);
        }
        let root = self.0.location().root.clone();
        let commit = self.0.ask("find the revision", "", |backend| backend.commit())?;
        commit.map(|commit| backend::pinned(&root, &commit)).transpose()
    }
}

impl Store for Remote {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        let entry = self.entry(key)?;
        if entry.is_folder {
            Err(Error::unsupported("expected an object, found a folder").at(self.display(key)))
        } else {
            self.open_listed(&entry)
        }
    }

    fn open_listed(&self, entry: &Entry) -> Result<Arc<dyn Object>> {
        Ok(Arc::new(RemoteObject::new(self.0.clone(), entry)))
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        match key {
            "" => Ok(folder(key)),
            key => self.ask_for(key).map_err(|e| self.0.perhaps_absent(key, e)),
        }
    }

    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        Ok(self.walk_all(prefix)?.entries)
    }

    fn walk_all(&self, prefix: &str) -> Result<Walked> {
        let listed = self.0.list(prefix)?;
        if listed.is_empty() {
            return Err(Error::not_found("nothing is there: no object of this name, and none below it")
                .at(self.display(prefix))
                .hint("a prefix is a whole name between slashes"));
        }
        // Hidden ones are there for those that ask for them by name.
        Ok(Walked::of(prefix, listed.entries()))
    }

    fn walk_again(&self, prefix: &str) -> Result<Vec<Entry>> {
        Ok(self.0.list_again(prefix)?.entries().collect())
    }

    fn walks_by_manifest(&self) -> bool {
        true
    }

    fn catalogue(&self, folder: &str) -> Option<Arc<Catalogue>> {
        let listed = self.0.listed();
        let found = listed.iter().find(|listed| listed.folder == folder)?;
        found.objects.declared.is_some().then(|| found.objects.clone())
    }

    fn display(&self, key: &str) -> String {
        self.0.url(key)
    }

    fn encoding(&self, name: &str) -> Option<String> {
        let Location { root, query, .. } = self.0.location();
        let key = name.strip_prefix(root.as_str())?.strip_prefix('/')?;
        self.0.backend().ok()?.encoding(key.strip_suffix(query.as_str())?)
    }

    fn room_ahead(&self) -> Option<u64> {
        Some(self.0.options.read_ahead)
    }

    fn keeps(&self, bytes: u64) -> bool {
        bytes <= self.0.options.room()
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.0.counters.get().now())
    }
}

impl Remote {
    // What is at a key. One of two questions tells; the one that is likely to is asked first.
    fn ask_for(&self, key: &str) -> Result<Entry> {
        let missing = || Error::not_found("cannot find it").at(self.display(key));
        if let Some(known) = self.0.known(key) {
            return known.ok_or_else(missing);
        }
        let is_folder = || match self.0.list(key) {
            Ok(found) => Ok(!found.is_empty()),
            Err(e) if e.kind() == Kind::NotFound || self.0.refusals.has_listing() => Ok(false),
            Err(e) => Err(e),
        };
        let looks_like_a_file = key::name_of(key).contains('.');
        if !looks_like_a_file && is_folder()? {
            return Ok(folder(key));
        }
        if looks_like_a_file && let Some(known) = self.0.by_name(key)? {
            return known.ok_or_else(missing);
        }
        match self.0.head(key) {
            Ok(meta) => Ok(entry(meta)),
            Err(e) => self.not_an_object(key, looks_like_a_file, e),
        }
    }

    // What is at a key where no object is, or where that is refused.
    fn not_an_object(&self, key: &str, looks_like_a_file: bool, error: Error) -> Result<Entry> {
        let is_refused = self.0.is_refused(key);
        if !is_refused && error.kind() != Kind::NotFound {
            return Err(error);
        }
        let scheme = self.0.location().scheme;
        match scheme {
            Scheme::Http if looks_like_a_file || is_refused => Err(error),
            Scheme::Http => Err(error.hint(
                "a web server lists no folders: name a file, or a folder whose windrow.json lists the files: `windrow manifest` writes one",
            )),
            // It was listed before.
            _ if !looks_like_a_file || (is_refused && is_own(key)) => Err(error),
            _ => match self.0.list(key) {
                Ok(found) if !found.is_empty() => Ok(folder(key)),
                _ if is_refused || self.0.refusals.has_listing() => Err(error),
                // The listing of a bucket is found, whatever is in it: it says that there is no bucket.
                Err(e) if e.kind() != Kind::NotFound || scheme != Scheme::Hf => Err(e),
                Ok(_) | Err(_) => Err(error),
            },
        }
    }
}
