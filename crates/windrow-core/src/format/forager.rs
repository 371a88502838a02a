//! Byte-offset index: JSONL files or token samples, found by `index/file_location.txt` and
//! `index/sample_locations.bin`. The layout of data-forager 0.2.0.

use serde::{Deserialize, Serialize};

use super::{About, Certainty, Format, Look, Options};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::source::SharedSource;

/// The folder that holds the index, below the base folder.
pub const INDEX_FOLDER: &str = "index";
/// One path per line, relative to the base folder.
pub(crate) const FILE_LIST: &str = "file_location.txt";
/// Rows of three little-endian u64: file number, first byte, size.
pub(crate) const LOCATIONS: &str = "sample_locations.bin";
/// Which arrays a sample is made of, when there is more than its tokens.
pub(crate) const SAMPLE_SCHEMA: &str = "sample_schema.json";

/// The byte-offset index format.
#[derive(Clone, Copy, Debug)]
pub struct Forager;

/// One row of `sample_locations.bin`.
pub(crate) fn location_row(file: u64, byte: u64, size: u64) -> [u8; 24] {
    let mut row = [0; 24];
    row[..8].copy_from_slice(&file.to_le_bytes());
    row[8..16].copy_from_slice(&byte.to_le_bytes());
    row[16..].copy_from_slice(&size.to_le_bytes());
    row
}

/// The text of `file_location.txt`.
///
/// # Errors
/// `Unsupported` when a path holds a line break: the format cannot say it.
pub(crate) fn file_list(paths: &[String]) -> Result<String> {
    if let Some(bad) = paths.iter().find(|p| p.contains(['\n', '\r'])) {
        return Err(Error::unsupported("the index cannot hold a path with a line break").at(bad));
    }
    Ok(paths.iter().map(|p| format!("{p}\n")).collect())
}

/// `sample_schema.json`: the arrays that follow each other in a sample of `sample_size` tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Tokens per sample.
    pub sample_size: u64,
    /// The tokens first, then the others by name.
    pub arrays: Vec<LayoutArray>,
    /// Bytes per sample.
    pub total_bytes_per_sample: u64,
}

/// One array of a [`Layout`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutArray {
    /// `tokens`, `loss_mask`, …
    pub name: String,
    /// numpy's name of its dtype.
    pub dtype: DType,
    /// First byte within the sample.
    pub offset: u64,
}

impl Format for Forager {
    fn name(&self) -> &'static str {
        "forager"
    }
    fn about(&self) -> About {
        todo!()
    }
    fn recognise(&self, _look: &Look) -> Certainty {
        todo!()
    }
    fn open(&self, _look: &Look, _options: &Options) -> Result<SharedSource> {
        todo!()
    }
}
