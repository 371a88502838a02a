//! What every layout implements, and what it is told.

use std::path::Path;

use super::options::SeriesOptions;
use super::origin::Origin;
use crate::array::{Buffer, DType, Element};
use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::record::{Decode, Values};
use crate::source::Extras;
use crate::values::copy_values;

/// One record as it is stored, or a part of it.
pub(super) struct Stored<'a> {
    pub(super) number: u64,
    /// Little-endian, of the writer's dtype.
    pub(super) bytes: &'a [u8],
    /// Values `T` of `[T]` or `[T, C]`, of the whole record.
    pub(super) len: u64,
    pub(super) extras: &'a Extras,
    /// It begins here.
    pub(super) is_first: bool,
    /// Nothing of it follows.
    pub(super) is_last: bool,
}

/// A layout that is being written.
pub(super) trait Body: Send {
    /// Whether records may come in parts.
    fn takes_parts(&self) -> bool {
        true
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()>;

    /// Completes the files.
    fn finish(self: Box<Self>) -> Result<Written>;
}

/// What a layout wrote.
pub(super) struct Written {
    /// Names below the work folder that become visible, the last one last.
    pub(super) targets: Vec<String>,
    /// Data files.
    pub(super) files: u64,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// What all layouts are told when they begin.
pub(super) struct Begin<'a> {
    pub(super) work: &'a Path,
    pub(super) name: &'a str,
    pub(super) dtype: DType,
    pub(super) channels: Option<usize>,
    /// What is known of the numbers as ids: they are below this.
    pub(super) vocab_size: Option<u64>,
    pub(super) options: &'a SeriesOptions,
    pub(super) total_values: Option<u64>,
    /// What the records come from, where that is known.
    pub(super) origin: Option<&'a Origin>,
    /// What is to be told of the whole, in place of that.
    pub(super) told: Option<&'a Manifest>,
}

impl Begin<'_> {
    /// That the numbers are ids which a layout can hold.
    pub(super) fn only(&self, dtypes: &[DType], what: &str) -> Result<()> {
        if self.channels.is_none() && dtypes.contains(&self.dtype) {
            return Ok(());
        }
        let channels = self.channels.map_or(String::new(), |c| format!(" of {c} channels"));
        let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
        Err(Error::config(format!("{what} hold no {} values{channels}", self.dtype))
            .hint(format!("records [T] of {}: choose dtype", names.join(", "))))
    }

    /// A manifest that says what was asked for and where the records come from.
    pub(super) fn manifest(&self, format: &str) -> Manifest {
        let mut manifest =
            self.origin.map_or_else(|| Manifest::new(format), |origin| origin.manifest(format));
        (manifest.dtype, manifest.eos, manifest.vocab_size) =
            (Some(self.dtype), self.options.eos, self.options.vocab_size);
        // Numbers that are no ids any more have none of that.
        if let Some(of) = self.options.of.as_ref().filter(|_| self.dtype.is_integer()) {
            manifest.take_ids_of(of);
        }
        manifest
    }
}

// The type of numbers on disk: little-endian always.
pub(super) fn element(dtype: DType) -> Element {
    Element::little(dtype)
}

// Stored numbers as float64, one after the other.
pub(super) fn each_number(bytes: &[u8], dtype: DType) -> Result<Vec<f64>> {
    let mut out = Buffer::zeroed(bytes.len() / dtype.size() * 8);
    let values = Values { bytes, element: element(dtype), channels: 1, decode: Decode::Plain };
    copy_values(&values, 0, out.bytes_mut(), DType::F64)?;
    Ok(bytemuck::cast_slice(out.bytes()).to_vec())
}
