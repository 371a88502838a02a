//! Which objects a data set is, below the URL that names it.

use windrow_core::format::write::{CorpusPlace, Target, WriteFormat};
use windrow_core::manifest::MANIFEST_FILE;
use windrow_core::store::key;
use windrow_core::{Error, Result};
use windrow_remote::Location;

/// Which objects belong to a data set. Names are those below the folder that holds what the URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All below the URL.
    Folder { name: String },
    /// What is below it under these names, and the manifest there; what else is below the URL is somebody else's.
    Inside { name: String, names: Vec<String>, manifest: String },
    /// What has these names, beside each other; `given` is the one in the URL.
    Beside { given: String, names: Vec<String> },
}

impl Shape {
    pub(super) fn of(to: &dyn WriteFormat, is_corpus: bool, location: &Location) -> Result<Shape> {
        let name = match key::name_of(&location.key) {
            // A bucket as a whole.
            "" => location.root.rsplit('/').next().unwrap_or_default(),
            name => name,
        };
        Ok(match (is_corpus, to.corpus_place(), to.target()) {
            (true, CorpusPlace::Inside { names, manifest, .. }, _) => {
                Shape::Inside { name: name.to_string(), names, manifest }
            }
            (true, CorpusPlace::Whole, _) | (false, _, Target::Folder) => {
                Shape::Folder { name: name.to_string() }
            }
            (false, _, Target::File(_) | Target::Pair) if location.key.is_empty() => {
                return Err(Error::config("the URL names no file").at(location.root.as_str()));
            }
            (false, _, Target::File(_) | Target::Pair) => {
                Shape::Beside { given: name.to_string(), names: to.names(to.stem(name)) }
            }
        })
    }

    /// The last name in the URL.
    pub(super) fn name(&self) -> &str {
        match self {
            Shape::Folder { name } | Shape::Inside { name, .. } => name,
            Shape::Beside { given, .. } => given,
        }
    }

    /// Whether the URL names a folder.
    pub(super) fn is_folder(&self) -> bool {
        !matches!(self, Shape::Beside { .. })
    }

    /// Whether an object is one of the data set.
    pub(super) fn owns(&self, object: &str) -> bool {
        match self {
            Shape::Folder { name } => key::is_below(name, object),
            Shape::Inside { name, names, .. } => {
                let mut names = names.iter().map(|own| key::below(name, own));
                names.any(|own| own == object || key::is_below(&own, object))
            }
            Shape::Beside { names, .. } => names.iter().any(|own| own == object),
        }
    }

    /// Where whoever opens the data set looks for its manifest first.
    pub(super) fn manifest(&self) -> Option<String> {
        match self {
            Shape::Folder { name } => Some(key::below(name, MANIFEST_FILE)),
            Shape::Inside { name, manifest, .. } => Some(key::below(name, manifest)),
            Shape::Beside { names, .. } => names.iter().find(|name| name.ends_with(MANIFEST_FILE)).cloned(),
        }
    }
}
