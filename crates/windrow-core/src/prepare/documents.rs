//! The layouts that hold a record per document, as [`super::tokenize`] writes them: with restart points, into a folder that
//! becomes visible at its end.

use std::path::Path;

use serde_json::{Map, Value};

use crate::array::DType;
use crate::error::Result;
use crate::manifest::Manifest;
use crate::output::WorkFolder;

/// Statistics of a manifest that lists no data files because there may be very many: how many there are, and their bytes.
pub const CHUNK_FILES: &str = "chunk_files";
/// See [`CHUNK_FILES`].
pub const CHUNK_BYTES: &str = "chunk_bytes";

/// A layout with a record per document.
pub trait DocumentLayout: Sync {
    /// Name of the format that reads it.
    fn format(&self) -> &'static str;

    /// dtypes of an id that it can store; the first one that holds the vocabulary is the usual one.
    fn dtypes(&self) -> &[DType];

    /// The largest id that it can store, where that is less than the dtype can.
    fn largest_id(&self) -> Option<i64> {
        None
    }

    /// Its options that decide what is written.
    fn describe(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Checks its options, before anything is written.
    ///
    /// # Errors
    /// `Config`.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Begins, or goes on from what [`DocumentWriter::keep`] gave.
    ///
    /// # Errors
    /// `Io`; any, when what is there cannot be gone on with.
    fn begin(&self, at: &DocumentPlace<'_>, kept: Option<&Value>) -> Result<Box<dyn DocumentWriter>>;

    /// Whether the folder holds such a data set and nothing else, so that it may be replaced.
    fn is_one(&self, out: &Path) -> bool;

    /// Writes what stands around the data set at `out`, before that becomes visible.
    ///
    /// # Errors
    /// `Io`.
    fn surround(&self, out: &Path) -> Result<()> {
        let _ = out;
        Ok(())
    }
}

/// A data set that grows by documents.
pub trait DocumentWriter: Send {
    /// Writes the next document: its ids, little-endian. It may be empty.
    ///
    /// # Errors
    /// `Config` for what the layout cannot hold; `Io`.
    fn add(&mut self, ids: &[u8]) -> Result<()>;

    /// Brings everything to files and says how to go on behind it, whatever is written to them later.
    ///
    /// # Errors
    /// `Io`.
    fn keep(&mut self) -> Result<Value>;

    /// Completes the files, the manifest among them or its text in one of them.
    ///
    /// # Errors
    /// `Config` when the layout cannot be without values; `Io`.
    fn finish(self: Box<Self>, manifest: Manifest) -> Result<Manifest>;
}

/// Where a layout writes, and what.
pub struct DocumentPlace<'a> {
    pub(super) work: &'a Path,
    pub(super) name: &'a str,
    pub(super) dtype: DType,
    pub(super) durable: bool,
}

impl DocumentPlace<'_> {
    /// dtype of an id.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The folder that becomes visible; its files get block checksums with [`WorkFolder::finish_checksums`].
    ///
    /// # Errors
    /// `Io`.
    pub fn data(&self) -> Result<WorkFolder> {
        WorkFolder::with_checksums_at(self.work.join(self.name), self.durable)
    }

    /// A folder for what is needed on the way only.
    ///
    /// # Errors
    /// `Io`.
    pub fn aside(&self) -> Result<WorkFolder> {
        WorkFolder::at(self.work.join("aside"), self.durable)
    }
}
