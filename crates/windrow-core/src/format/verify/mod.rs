//! How data is verified: what a format says of its own checks, and what they report to.

mod findings;
mod json;
mod verifier;

use std::sync::Arc;

pub use self::findings::{Findings, Problem, State, Verified};
pub use self::verifier::{Opened, Verifier};
use super::{Confidence, Format};
use crate::array::DType;
use crate::error::Result;
use crate::format::Probe;
use crate::manifest::Manifest;
use crate::store::Store;

/// What tells whether the content of a format is good, besides its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Reading every record.
    Records,
    /// Every line is JSON.
    Lines,
    /// The rows of its index, see [`LineIndex::verify`](super::LineIndex::verify).
    Index,
    /// Nothing: any bytes are numbers of it.
    Unknown,
}

/// How a format is verified. All has defaults: opening it, and reading every record.
pub trait Verify: Sync {
    /// What tells whether its content is good.
    fn content(&self) -> Content {
        Content::Records
    }

    /// Checks what is at `probe`, where [`Verify::content`] is [`Content::Records`], or is [`Content::Unknown`] and nothing beside
    /// it says what it should hold.
    ///
    /// # Errors
    /// `Interrupted`; `Io`. What is wrong with the data is reported to `out`.
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        out.read(format, probe)
    }

    /// dtype and vocabulary of files that hold nothing but token IDs, where `manifest` says both.
    fn ids(&self, manifest: &Manifest) -> Option<(DType, u64)> {
        let _ = manifest;
        None
    }

    /// Whether its data files hold nothing but numbers of the dtype in `manifest`, which may be read from one of them alone.
    fn is_bare(&self, manifest: &Manifest) -> bool {
        let _ = manifest;
        false
    }

    /// Whether the names below a folder can only be those of a data set of it, though no manifest is there.
    fn is_described(&self, format: &dyn Format, probe: &Probe) -> bool {
        format.recognise(probe) == Confidence::Yes
    }
}

/// An index that is in a folder beside the data.
#[derive(Clone, Copy)]
pub struct IndexAt<'a> {
    /// Where the data lies.
    pub store: &'a Arc<dyn Store>,
    /// The key of the folder with the data.
    pub key: &'a str,
    /// The name of the index folder in it.
    pub folder: &'a str,
    /// The manifest of the index.
    pub manifest: Option<&'a Manifest>,
}

/// A format without checks of its own: it is opened, and every record read.
#[derive(Clone, Copy, Debug)]
pub struct ByReading;

impl Verify for ByReading {}
