//! What a format finds in the files of a folder when they are listed: written into the manifest, it need not be asked for again.

use std::sync::Arc;

use windrow_core::format::{Format, Options, Probe, open_as};
use windrow_core::store::{Catalogue, Declared, DeclaredText, Entry, Object, Store, Walked, whole};
use windrow_core::{DType, Error, Kind, Result};

/// What opening the files finds; `None` where they do not open so, as the folder can be listed all the same.
pub(super) fn by(format: &dyn Format, probe: &Probe, options: &Options) -> Option<DeclaredText> {
    let catalogue = Arc::new(Catalogue::new(probe.entries.clone(), Some(Declared::to_note())));
    let store = Arc::new(Noted {
        store: probe.store.clone(),
        folder: probe.key.clone(),
        catalogue: catalogue.clone(),
    });
    let listed = Probe {
        hidden: probe.hidden.clone(),
        ..Probe::of_names(probe.table, store, &probe.key, probe.entries.clone())
    };
    match whole(|| note(format, &listed, options)) {
        Ok(()) => catalogue.declared.as_ref().map(Declared::text),
        Err(e) => {
            log::info!("the manifest only lists the files, as they do not open: {e:#}");
            None
        }
    }
}

// Headerless IDs are opened with the dtype that somebody says, which is not known yet.
fn note(format: &dyn Format, listed: &Probe, options: &Options) -> Result<()> {
    let open = |options: &Options| open_as(format, listed, options)?.fingerprint();
    if options.dtype.is_some() || !format.info().is_for_tokens() {
        return open(options).map(drop);
    }
    let mut found = Err(Error::new(Kind::Corrupt, "no dtype fits the sizes of the files"));
    for dtype in [DType::U8, DType::U16, DType::U32, DType::I32, DType::I64] {
        match open(&Options { dtype: Some(dtype), ..options.clone() }) {
            Ok(_) => found = Ok(()),
            Err(e) if e.kind() != Kind::Corrupt => return Err(e),
            // Not whole numbers of it.
            Err(e) => found = found.or(Err(e)),
        }
    }
    found
}

/// A store of which one folder was listed: what is found of it is noted.
struct Noted {
    store: Arc<dyn Store>,
    folder: String,
    catalogue: Arc<Catalogue>,
}

impl Store for Noted {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.store.open_listed(&self.entry(key)?)
    }

    fn open_listed(&self, entry: &Entry) -> Result<Arc<dyn Object>> {
        self.store.open_listed(entry)
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        match self.catalogue.find(key) {
            Some(at) => Ok(self.catalogue.entry(at)),
            None => Err(Error::not_found("no such object").at(self.display(key))),
        }
    }

    fn walk(&self, folder: &str) -> Result<Vec<Entry>> {
        self.store.walk(folder)
    }

    fn walk_all(&self, folder: &str) -> Result<Walked> {
        self.store.walk_all(folder)
    }

    fn catalogue(&self, folder: &str) -> Option<Arc<Catalogue>> {
        (folder == self.folder).then(|| self.catalogue.clone())
    }

    fn display(&self, key: &str) -> String {
        self.store.display(key)
    }

    fn walks_by_manifest(&self) -> bool {
        self.store.walks_by_manifest()
    }
}
