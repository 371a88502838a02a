//! Which objects a data set is, below the URL that names it.

use windrow_core::format::write::{CorpusPlace, Target};
use windrow_core::manifest::MANIFEST_FILE;
use windrow_core::store::key;
use windrow_core::{Error, Result};
use windrow_remote::Location;

use super::What;

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
    pub(super) fn of(what: &What<'_>, location: &Location) -> Result<Shape> {
        let name = match key::name_of(&location.key) {
            // A bucket as a whole.
            "" => location.root.rsplit('/').next().unwrap_or_default(),
            name => name,
        };
        let name = name.to_string();
        if let What::Records(to) | What::Corpus(to) = what
            && to.info().appends
        {
            return Err(Error::unsupported(format!("{} are written to local disks only", to.name()))
                .at(format!("{}/{}", location.root, location.key))
                .hint("write to a path of this machine, and copy the folder with the store's own tools"));
        }
        Ok(match what {
            What::Index(folder) => {
                let manifest = key::below(folder, MANIFEST_FILE);
                Shape::Inside { name, names: vec![folder.to_string()], manifest }
            }
            What::Corpus(to) => match to.corpus_place() {
                CorpusPlace::Inside { names, leaving, manifest, .. } => {
                    Shape::Inside { name, names: [names, leaving].concat(), manifest }
                }
                CorpusPlace::Whole => Shape::Folder { name },
            },
            What::Records(to) => match to.info().target {
                Target::Folder => Shape::Folder { name },
                Target::File(_) | Target::Pair(_) if location.key.is_empty() => {
                    return Err(Error::config("the URL names no file").at(location.root.as_str()));
                }
                Target::File(_) | Target::Pair(_) => {
                    Shape::Beside { names: to.names(to.info().target.stem(&name)), given: name }
                }
            },
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
