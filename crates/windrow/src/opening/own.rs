//! Data in a format, or in a store, of one's own.

use std::path::Path;
use std::sync::Arc;

use windrow_core::format::{Format, Options, Probe, Table};
use windrow_core::store::Store;
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;
use crate::opening::formats::formats;
use crate::opening::open_probed;
use crate::opening::paths::Paths;
use crate::opening::remote::Stores;

/// How to open, with formats and a store of one's own beside those that are known.
///
/// What is opened so is as any other data set: views, loaders, recipes, traces, and a manifest beside it. A recipe names the
/// path and the options; [`Recipe::builder_by`](crate::Recipe::builder_by) opens it again with the same formats and store.
///
/// ```
/// use windrow::OpenOptions;
/// use windrow::dev::store::Memory;
///
/// let tokens: Vec<u8> = (0..20u16).flat_map(u16::to_le_bytes).collect();
/// let open = OpenOptions::new().store(Memory::new().with("a.npy.bin", tokens)).options(windrow::format::Options {
///     format: Some("tokens".to_string()),
///     dtype: Some(windrow::DType::U16),
///     ..Default::default()
/// });
/// let samples = open.open("a.npy.bin")?.pack(4)?;
/// assert_eq!(samples.batch(&[1], 0)?.get::<i64>("input_ids")?, [4, 5, 6, 7]);
///
/// let recipe = samples.loader().batch_size(2).recipe()?;
/// assert_eq!(recipe.builder_by(&open)?.plan()?.identity()?.to_string(), recipe.plan.clone().unwrap_or_default());
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone)]
pub struct OpenOptions {
    options: Options,
    table: Table,
    store: Option<Arc<dyn Store>>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { options: Options::default(), table: formats(), store: None }
    }
}

impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions").field("options", &self.options).finish_non_exhaustive()
    }
}

impl OpenOptions {
    /// Every known format, and paths and URLs.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Adds a format, which is asked before the known ones. It is kept for as long as the program runs.
    #[must_use]
    pub fn format(mut self, format: impl Format + 'static) -> OpenOptions {
        let own: &'static dyn Format = Box::leak(Box::new(format));
        let all: Vec<&'static dyn Format> = std::iter::once(own).chain(self.table.iter().copied()).collect();
        self.table = all.leak();
        self
    }

    /// Opens keys of this store instead of paths and URLs.
    #[must_use]
    pub fn store(mut self, store: impl Store + 'static) -> OpenOptions {
        self.store = Some(Arc::new(store));
        self
    }

    /// With these options.
    #[must_use]
    pub fn options(mut self, options: Options) -> OpenOptions {
        self.options = options;
        self
    }

    /// Opens a path, a URL or a pattern, or with a store of one's own a key.
    ///
    /// # Errors
    /// As [`open_with`](crate::open_with).
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Dataset> {
        self.open_all(&Paths::from(path.as_ref()), &self.options)
    }

    pub(crate) fn open_all(&self, paths: &Paths, options: &Options) -> Result<Dataset> {
        let Some(store) = &self.store else { return paths.open_by(options, &Stores::of(self.table)) };
        let path = paths.only().ok_or_else(|| {
            Error::unsupported("several keys of a store of one's own")
                .hint("open the folder that they are in")
        })?;
        let key = path.to_str().ok_or_else(|| Error::unsupported("a key that is not UTF-8").at(path))?;
        open_probed(Probe::at(self.table, store.clone(), key)?, path, options)
    }
}
