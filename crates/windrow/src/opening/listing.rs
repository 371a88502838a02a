//! The manifest of data that has none: what lies in a folder, listed once, so that whoever opens it need not list it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::format::{self, Options, Probe, lake};
use windrow_core::manifest::{LISTING, ListedFile, Listing, MANIFEST_FILE, Manifest};
use windrow_core::output::write_whole;
use windrow_core::store::{Entry, Local, Object, Store, Walked, key};
use windrow_core::{Error, Kind, Result};

use crate::opening::declared;
use crate::opening::formats::formats;
use crate::opening::local;
use crate::opening::remote;

/// Lists a folder, on a disk or behind a URL, and says which format it is. Written there as `windrow.json` by
/// [`write_listing`], it is read in place of listing a store again; sizes and versions are compared when files are read, those of
/// a disk when it is opened.
///
/// # Errors
/// `NotFound` where nothing is there; `Config` for a file, which needs no manifest; `Exists` where the folder has a manifest that
/// says more; `Unrecognised`; `Unsupported` for a web server, which lists nothing; `Io`.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # std::fs::write(dir.path().join("a.jsonl"), "{\"n\": 1}\n").unwrap();
/// # let path = dir.path();
/// let manifest = windrow::listing(path, &Default::default())?;
/// windrow::write_listing(path, &Default::default(), &manifest)?;
/// assert_eq!(windrow::open(path)?.len(), 1);
/// # Ok::<(), windrow::Error>(())
/// ```
pub fn listing(path: impl AsRef<Path>, options: &Options) -> Result<Manifest> {
    let path = local(path.as_ref())?;
    let (store, folder, url) = match remote::Stores::default().place(&path, options)? {
        Some(place) => (place.store, place.key, Some(place.url.display().to_string())),
        None if path.is_file() => return Err(not_of_a_file(&path)?),
        None => (Arc::new(Local::new(&*path)) as Arc<dyn Store>, String::new(), None),
    };
    if url.as_deref().is_some_and(|url| url.starts_with("http")) {
        return Err(Error::unsupported("a web server does not list what it has").at(store.display(&folder)).hint(
            "write the manifest where the files lie: `windrow manifest PATH` of the folder that the server shows",
        ));
    }
    let own = key::below(&folder, MANIFEST_FILE);
    let mut entries = store.walk_again(&folder)?;
    if let Some(entry) = entries.iter().find(|entry| entry.key == own) {
        let object = store.open_listed(entry)?;
        if Manifest::read(object.as_ref())?.format != LISTING {
            return Err(written_with_it(object.name()));
        }
    }
    entries.retain(|entry| entry.key != own);
    if entries.is_empty() {
        return Err(Error::not_found("there are no files to list").at(store.display(&folder)));
    }
    let mut walked = Walked::of(&folder, entries.iter().cloned());
    // A store on another machine lists them with the others.
    if url.is_none() {
        walked.hidden.extend(store.walk_all(&folder)?.hidden);
    }
    let hidden = walked.hidden_names(&folder);
    let probe = Probe { hidden, ..Probe::of_names(formats(), store, &folder, walked.entries) };
    lake::refuse(&probe)?;
    let named = options.format.as_deref().or(options.chosen(formats()));
    let format = format::choose(formats(), &probe, named)?;
    let declared = match &url {
        // On a disk nothing tells one version of a file from another for good.
        Some(_) if format.info().is_declared => declared::by(format, &probe, options),
        _ => None,
    };
    let listing = Listing { declared, ..Listing::new(format.name(), url, &probe.key, &entries) };
    Ok(listing.into_manifest())
}

// A file needs no manifest; it may have one, or be listed by that of a folder.
fn not_of_a_file(path: &Path) -> Result<Error> {
    let name = path.file_name().and_then(|name| name.to_str());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = name.map(|name| Probe::at(formats(), Arc::new(Local::new(folder)), name)).transpose()?;
    Ok(match found.and_then(|found| found.manifest) {
        Some(_) => written_with_it(&path.display().to_string()),
        None => Error::config("a file is opened by its name: it needs no manifest that lists it").at(path),
    })
}

fn written_with_it(at: &str) -> Error {
    Error::new(Kind::Exists, "the data has a manifest, which was written with it")
        .at(at)
        .hint("it needs no other one; a web server, which lists nothing, may show one written with -o")
}

// A folder that was listed: what is there is not asked again.
struct Listed {
    store: Arc<dyn Store>,
    entries: BTreeMap<String, Entry>,
}

impl Store for Listed {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.store.open_listed(&self.entry(key)?)
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        let entry = self.entries.get(key).cloned();
        entry.ok_or_else(|| Error::not_found("no such object").at(self.display(key)))
    }

    fn walk(&self, _: &str) -> Result<Vec<Entry>> {
        Ok(self.entries.values().cloned().collect())
    }

    fn display(&self, key: &str) -> String {
        self.store.display(key)
    }

    fn walks_by_manifest(&self) -> bool {
        self.store.walks_by_manifest()
    }

    fn above(&self, key: &str) -> Option<(Arc<dyn Store>, String)> {
        self.store.above(key)
    }
}

fn refuse_described(path: &Path, options: &Options, manifest: &Manifest) -> Result<()> {
    let (store, folder) = match remote::Stores::default().place(path, options)? {
        Some(place) => (place.store, place.key),
        None => (Arc::new(Local::new(path)) as Arc<dyn Store>, String::new()),
    };
    let files = manifest.listing.iter().flat_map(|listing| &listing.files);
    let entry = |file: &ListedFile| {
        let (key, tag) = (key::below(&folder, &file.name), file.tag.clone());
        Entry { key, size: file.size, is_folder: false, modified_ns: None, tag }
    };
    let entries: Vec<Entry> = files.map(entry).collect();
    let listed =
        Arc::new(Listed { store, entries: entries.iter().map(|e| (e.key.clone(), e.clone())).collect() });
    match Probe::of_names(formats(), listed, &folder, entries).described_by()? {
        Some(_) => Err(written_with_it(&path.display().to_string())),
        None => Ok(()),
    }
}

/// Writes a manifest beside the data, in place of one that listed it before; gives its path or URL.
///
/// # Errors
/// `Exists` where the data has its manifest elsewhere, in its index or beside a file;
/// `Unsupported` for a web server and the Hub, which are only read; `Io`.
pub fn write_listing(path: impl AsRef<Path>, options: &Options, manifest: &Manifest) -> Result<PathBuf> {
    let path = local(path.as_ref())?;
    refuse_described(&path, options, manifest)?;
    let to = path.join(MANIFEST_FILE);
    let text = manifest.to_text();
    if !remote::put(&to, options, text.as_bytes())? {
        write_whole(&to, text.as_bytes())?;
    }
    Ok(to)
}
