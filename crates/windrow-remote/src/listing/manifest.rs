//! What a manifest says lies in a folder: one request instead of a listing.

use futures_util::StreamExt;
use serde::Deserialize;
use windrow_core::manifest::{self, FileRow, LISTING, ListedFile, Listing, MANIFEST_FILE, MOST_BYTES, PARTS};
use windrow_core::store::{Declared, key};
use windrow_core::{Error, Result};

use super::entries::Lacks;
use crate::attempt::{self, Attempts, Deadline, Known};
use crate::backend::{Backend, Meta};
use crate::net;
use crate::place::Place;
use crate::stats::{Counters, add};
use crate::trouble::{Trouble, What};
use crate::url::Scheme;
use crate::whole::no_ranges;

/// So much of a manifest comes first: one that lists nothing may be long.
const FIRST: u64 = 1 << 20;

/// A manifest's beginning, and what its store says of it.
struct Beginning {
    bytes: Vec<u8>,
    size: u64,
    tag: Option<String>,
}

/// What a manifest lists.
pub(crate) struct Objects {
    pub(crate) objects: Vec<Meta>,
    /// What may be there beside them.
    pub(crate) lacks: Lacks,
    /// What was found in them.
    pub(crate) declared: Option<Declared>,
}

/// What this asks a manifest for.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    format: String,
    #[serde(default)]
    files: Vec<FileRow>,
    #[serde(default)]
    index: Vec<FileRow>,
    #[serde(default)]
    listing: Option<Listing>,
}

/// The objects below a folder, by the manifest in it; `None` where there is none that lists them.
///
/// # Errors
/// `Corrupt` for one that cannot be understood; `Io`.
pub(crate) fn objects(place: &Place, folder: &str) -> Result<Option<Objects>> {
    match place.location().scheme {
        // A commit is listed with one request for each 1,000 files, and cannot name itself.
        Scheme::Hf => Ok(None),
        Scheme::Http => found(place, folder, true),
        Scheme::S3 | Scheme::Gs | Scheme::Az => found(place, folder, false),
    }
}

/// The objects below a folder of a store that refuses to list: what the manifest names as the files of the data is all that is known.
///
/// # Errors
/// As [`objects`]; that the manifest is refused, too.
pub(crate) fn objects_of_data(place: &Place, folder: &str) -> Result<Option<Objects>> {
    found(place, folder, true)
}

fn found(place: &Place, folder: &str, is_web: bool) -> Result<Option<Objects>> {
    let key = key::below(folder, MANIFEST_FILE);
    let Some(Beginning { mut bytes, size, tag }) = beginning(place, &key, is_web)? else { return Ok(None) };
    // It says by numbers where the parts lie, and each is asked for when it is first read.
    if manifest::Manifest::begins_as(PARTS, &bytes) {
        let objects = vec![Meta { key, size, tag, hash: None }];
        return Ok(Some(Objects { objects, lacks: Lacks::Most, declared: None }));
    }
    if !is_web && !manifest::Manifest::begins_as(LISTING, &bytes) {
        return Ok(None);
    }
    let url = place.url(&key);
    if size > MOST_BYTES {
        return Err(
            Error::corrupt(format!("a manifest of {size} bytes, expected at most {MOST_BYTES}")).at(url)
        );
    }
    if size > bytes.len() as u64 {
        bytes.extend(rest(place, &key, bytes.len() as u64, size, tag.clone())?);
    }
    let not_one = |e| {
        Error::corrupt("the manifest cannot be understood")
            .at(&url)
            .caused_by(e)
            .hint("delete it, or write it again with `windrow manifest`")
    };
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(not_one)?;
    let mut found = Vec::new();
    if let Some(listing) = manifest.listing {
        // A folder on a disk was listed without hidden files.
        let lacks = if listing.url.is_none() { Lacks::Hidden } else { Lacks::Nothing };
        let is_of_here = listing.url.as_deref() == Some(place.url(folder).as_str());
        for file in listing.files {
            let name = file.checked_name().map_err(|e| e.at(&url))?;
            let key = key::below(folder, name);
            found.push(Meta { key, size: file.size, tag: file.tag.filter(|_| is_of_here), hash: None });
        }
        // What was found in another place, or is not told from other versions, is looked at again.
        let declared = listing.declared.filter(|_| is_of_here).map(|text| Declared::of(&listing.of, text));
        // It says nothing else.
        return Ok(Some(Objects { objects: found, lacks, declared }));
    }
    if !is_web {
        return Ok(None);
    }
    for FileRow { name, size, .. } in manifest.files.into_iter().chain(manifest.index) {
        let file = ListedFile { name, size, tag: None };
        let key = key::below(folder, file.checked_name().map_err(|e| e.at(&url))?);
        found.push(Meta { key, size, tag: None, hash: None });
    }
    if found.is_empty() {
        let format = manifest.format;
        return Err(Error::unsupported(format!(
            "the manifest, of format {format:?}, does not list the files, and a web server lists nothing"
        ))
        .at(url)
        .hint("copy the folder to a disk or a store"));
    }
    found.push(Meta { key, size, tag, hash: None });
    Ok(Some(Objects { objects: found, lacks: Lacks::Nothing, declared: None }))
}

// The first bytes of what may be there. Without the right to read it the store may still be listed; else listing says so.
fn beginning(place: &Place, key: &str, is_web: bool) -> Result<Option<Beginning>> {
    let (backend, url, counters) = (place.backend()?, place.url(key), place.counters.get().clone());
    let deadline = Deadline::within(place.options.timeout);
    let key = key.to_string();
    net::wait(async move {
        let mut attempts = Attempts::new(deadline, &counters, "look for a manifest", &url);
        loop {
            match attempts.attempt(first(backend.as_ref(), &key, &counters)).await {
                Ok(found) => return Ok(Some(found)),
                Err(Trouble { what: What::NotFound, .. }) => return Ok(None),
                Err(Trouble { what: What::Denied | What::NoRanges, .. }) if !is_web => return Ok(None),
                Err(trouble) => attempts.after(trouble).await?,
            }
        }
    })
}

async fn first(backend: &dyn Backend, key: &str, counters: &Counters) -> Result<Beginning, Trouble> {
    let mut got = backend.get(key, 0..FIRST, None).await?;
    let mut bytes = Vec::new();
    while let Some(part) = got.body.next().await {
        let part = part?;
        add(&counters.bytes, part.len() as u64);
        bytes.extend_from_slice(&part);
        if bytes.len() as u64 > FIRST {
            return Err(Trouble::passing("more bytes came than were asked for"));
        }
    }
    let size = got.total.unwrap_or(bytes.len() as u64);
    if bytes.len() as u64 == size.min(FIRST) {
        Ok(Beginning { bytes, size, tag: got.tag })
    } else {
        Err(Trouble::passing(format!("the body was cut after {} of {size} bytes", bytes.len())))
    }
}

fn rest(place: &Place, key: &str, start: u64, size: u64, tag: Option<String>) -> Result<Vec<u8>> {
    let (backend, url, counters) = (place.backend()?, place.url(key), place.counters.get().clone());
    let (deadline, pace) = (Deadline::within(place.options.timeout), place.pace.clone());
    let key = key.to_string();
    net::wait(async move {
        let known = Known { key: &key, url: &url, size, tag: tag.as_deref() };
        let found = attempt::bytes(backend.as_ref(), &known, start..size, deadline, &counters, &pace).await?;
        found.ok_or_else(|| no_ranges(&url))
    })
}
