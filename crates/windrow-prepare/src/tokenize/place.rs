//! Where a task works, and what becomes visible there.

use std::path::{Path, PathBuf};

use windrow_core::format::write::{CorpusPlace, WriteFormat};
use windrow_core::{Error, Result};

/// The name of a task that writes into a folder which may hold other things.
const TASK: &str = "tokenize";

/// Where a task works.
pub(super) struct Place {
    /// The output's path, absolute.
    pub(super) out: PathBuf,
    /// Holds the lock and the work folder.
    pub(super) folder: PathBuf,
    pub(super) task: String,
    /// What becomes visible, in this order.
    pub(super) targets: Vec<String>,
    pub(super) inside: CorpusPlace,
}

impl Place {
    pub(super) fn of(given: &Path, to: &dyn WriteFormat) -> Result<Place> {
        let out = windrow_core::output::absolute("write to", given)?;
        let inside = to.corpus_place();
        let (folder, task, targets) = match (&inside, out.parent(), out.file_name().and_then(|n| n.to_str()))
        {
            (CorpusPlace::Inside { names, .. }, ..) => (given.to_path_buf(), TASK.to_string(), names.clone()),
            (CorpusPlace::Whole, Some(parent), Some(name)) => {
                (parent.to_path_buf(), name.to_string(), vec![name.to_string()])
            }
            _ => return Err(Error::config("expected the path of a folder").at(given)),
        };
        Ok(Place { out, folder, task, targets, inside })
    }

    /// What must not be there beside it.
    pub(super) fn leaving(&self) -> &[String] {
        match &self.inside {
            CorpusPlace::Inside { leaving, .. } => leaving,
            CorpusPlace::Whole => &[],
        }
    }
}
