//! The files of a data set in parts: what of them is the format's own.

use std::sync::Arc;

use crate::error::Result;
use crate::manifest::{Manifest, PartRow};
use crate::source::SharedSource;
use crate::store::Store;

/// A file of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartFile {
    /// The values of its records, little-endian, one after the other.
    Values,
    /// The number of values of each record, little-endian `u32`.
    Lengths,
    /// The rows of an index: number of the input, first byte and size, little-endian `u64` each.
    Rows,
    /// The block checksums of its values, as [`crate::manifest::BlockChecksums`] makes them.
    Sums,
    /// What the task says of it ([`crate::manifest::Part`]); it becomes visible last.
    Manifest,
    /// Why the task failed.
    Failure,
    /// Who runs the task, and how far it is; as long as it runs.
    Running,
}

/// A format whose data sets are made by tasks, a part each: `prepare` runs the tasks, the format says what lies where.
pub trait Parts: Sync {
    /// Name of the format that reads it.
    fn name(&self) -> &'static str;

    /// The folder of the parts, below that of the data set.
    fn folder(&self) -> &'static str;

    /// Name of a file of a part, below the folder of the data set.
    fn file(&self, task: u64, what: PartFile) -> String;

    /// Name of the job with this hash, below the folder of the data set.
    fn job(&self, hash: &str) -> String;

    /// The folder of the jobs, below that of the data set.
    fn jobs(&self) -> &'static str;

    /// What makes one data set of all parts: files below its folder in the order in which they become visible, the
    /// manifest last. `manifest` says the rest.
    ///
    /// # Errors
    /// `Config` for more than can be kept.
    fn joined(&self, manifest: Manifest, parts: &[PartRow]) -> Result<Vec<(String, Vec<u8>)>>;

    /// The records of all parts in this store, whether their data set is visible or not.
    ///
    /// # Errors
    /// `Corrupt` for rows that contradict themselves or the manifest.
    fn records(&self, store: Arc<dyn Store>, manifest: &Manifest, parts: &[PartRow]) -> Result<SharedSource>;
}
