//! The protocols of stores: one object or listing asked for once. Attempts, deadlines and queues are above.

mod answered;
mod aws;
mod aws_profile;
mod azure;
mod cloud;
mod credentials;
mod encoding;
mod gcs;
mod http;
mod hub;
mod kept_hash;
mod near;
mod sink;

pub use credentials::{Source, credentials_by};
pub use hub::hub_home;
pub(crate) use hub::pinned;

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use windrow_core::Result;

use crate::checksum::Checksum;
use crate::options::Options;
use crate::trouble::{Trouble, What};
use crate::url::{Location, Scheme};

/// How the tag of an object begins whose server says of a version only when it was last changed.
pub(crate) const MODIFIED: &str = "modified ";

/// What a store says of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) key: String,
    pub(crate) size: u64,
    pub(crate) tag: Option<String>,
    /// XXH3-64 of its bytes in hexadecimal digits, where its writer left it.
    pub(crate) hash: Option<String>,
}

/// Bytes as they come.
pub(crate) type Body = Pin<Box<dyn Stream<Item = Result<Bytes, Trouble>> + Send>>;

pub(crate) use bytes::Bytes;

/// What an answer to a range holds.
pub(crate) struct Got {
    /// Size of the whole object, where the answer gave it.
    pub(crate) total: Option<u64>,
    pub(crate) tag: Option<String>,
    /// As [`Meta::hash`].
    pub(crate) hash: Option<String>,
    /// Of all bytes of the object, where the answer has all of them.
    pub(crate) checksum: Option<Checksum>,
    pub(crate) body: Body,
}

pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send + 'a>>;

/// A store, asked.
pub(crate) trait Backend: Send + Sync {
    /// Size and version of an object.
    fn head<'a>(&'a self, key: &'a str) -> Answer<'a, Meta>;

    /// Bytes of an object, if its version is still `tag`.
    fn get<'a>(&'a self, key: &'a str, range: Range<u64>, tag: Option<&'a str>) -> Answer<'a, Got>;

    /// All bytes of an object of this size, if its version is still `tag`; with their checksum, where the store keeps one.
    fn all<'a>(&'a self, key: &'a str, size: u64, tag: Option<&'a str>) -> Answer<'a, Got> {
        self.get(key, 0..size, tag)
    }

    /// All bytes of an object, if its version is still `tag`: of stores that may answer so whatever range is asked for.
    fn whole<'a>(&'a self, key: &'a str, tag: Option<&'a str>) -> Answer<'a, Got> {
        let _ = (key, tag);
        Box::pin(async { Err(Trouble::new(What::NoRanges, "the store gives ranges alone")) })
    }

    /// All objects below a folder. What was found before a listing broke off is in `found`, and stays there.
    fn list<'a>(&'a self, prefix: &'a str, found: &'a mut Vec<Meta>) -> Answer<'a, ()>;

    /// All objects whose keys begin so, where one request lists them; `None` where the store has no such request, or there are
    /// more.
    fn names<'a>(&'a self, start: &'a str) -> Answer<'a, Option<Vec<Meta>>> {
        let _ = start;
        Box::pin(async { Ok(None) })
    }

    /// The commit that a moving name points to, where the store has such.
    fn commit(&self) -> Answer<'_, Option<String>> {
        Box::pin(async { Ok(None) })
    }

    /// With what an object's bytes are packed though its name does not show it, as an earlier answer said.
    fn encoding(&self, key: &str) -> Option<String> {
        let _ = key;
        None
    }

    /// How objects are put there; `None` where they are only read.
    fn sink(&self) -> Option<&dyn Sink> {
        None
    }
}

/// What a store calls an object whose parts come one by one.
pub(crate) struct Upload(String);

/// A store that takes objects. `hash` is kept beside the bytes where the store can do that.
pub(crate) trait Sink: Send + Sync {
    /// Puts an object there at once; where `create` is set, only if none is there.
    fn put<'a>(&'a self, key: &'a str, bytes: Bytes, hash: &'a str, create: bool) -> Answer<'a, ()>;

    /// Begins an object that comes in parts.
    fn begin<'a>(&'a self, key: &'a str, hash: &'a str) -> Answer<'a, Upload>;

    /// Puts the part of this number, from 0; gives its name.
    fn part<'a>(
        &'a self,
        key: &'a str,
        upload: &'a Upload,
        number: usize,
        bytes: Bytes,
    ) -> Answer<'a, String>;

    /// Makes one object of all parts, in the place of what is there.
    fn complete<'a>(&'a self, key: &'a str, upload: &'a Upload, parts: Vec<String>) -> Answer<'a, ()>;

    /// Drops the parts.
    fn abort<'a>(&'a self, key: &'a str, upload: &'a Upload) -> Answer<'a, ()>;

    /// Removes an object; nothing there is fine.
    fn remove<'a>(&'a self, key: &'a str) -> Answer<'a, ()>;
}

/// The store of a location, to be asked from within the runtime.
pub(crate) fn of(location: &Location, options: &Options) -> Result<Arc<dyn Backend>> {
    match location.scheme {
        Scheme::S3 => aws::open(location, options),
        Scheme::Gs => gcs::open(location, options),
        Scheme::Az => azure::open(location, options),
        Scheme::Http => http::open(location, options),
        Scheme::Hf => hub::open(location, options),
    }
}
