//! How a job converts: what a worker opens the records by and what is written, as the job keeps it.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windrow_core::format::Options;
use windrow_core::format::write::{WriteFormat, WriteOptions};
use windrow_core::{DType, Result};
use windrow_prepare::prep::Conversion;

use crate::opening::dataset::Dataset;

/// How to convert, in words that a file can hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Converting {
    /// The format of the files that [`Prep::join`](super::Prep::join) writes.
    pub to: String,
    /// Options of its own.
    pub own: Map<String, Value>,
    /// dtype of a stored number; by default what the format makes of that of the data.
    pub dtype: Option<DType>,
    /// How the data is opened.
    pub opening: Options,
}

impl Converting {
    /// The data at `path` and how it is written; `stores` says how stores are asked.
    ///
    /// # Errors
    /// As [`open_with`](crate::open_with); `Config` for a format that is not written.
    pub(super) fn make(&self, path: &Path, stores: &Options) -> Result<Made> {
        let opening = Options {
            store_options: stores.store_options.clone(),
            timeout: stores.timeout,
            cache: stores.cache.clone(),
            ..self.opening.clone()
        };
        let format = crate::prepare::write::writer(&self.to, &self.own)?;
        let data = crate::opening::open_with(path, &opening)?;
        let of = data.manifest().cloned().map(Arc::new);
        let (dtype, allow_empty) = (self.dtype, self.opening.allow_empty);
        Ok(Made { data, format, options: WriteOptions { dtype, of, allow_empty, ..WriteOptions::default() } })
    }

    // Without keys and tokens of stores, and folders of this machine: every worker has its own.
    pub(super) fn to_json(&self) -> Value {
        let mut kept = self.clone();
        kept.opening.store_options.clear();
        (kept.opening.cache, kept.opening.timeout) = (None, None);
        serde_json::to_value(kept).unwrap_or_default()
    }
}

/// The data of a job, opened, and how it is written.
pub(super) struct Made {
    data: Dataset,
    pub(super) format: Arc<dyn WriteFormat>,
    pub(super) options: WriteOptions,
}

impl Made {
    pub(super) fn conversion(&self) -> Conversion<'_> {
        Conversion {
            source: self.data.source().as_ref(),
            format: self.format.as_ref(),
            options: &self.options,
        }
    }
}
