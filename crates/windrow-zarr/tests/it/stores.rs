//! Stores to test with, and what they hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::format::{Format, Options, Probe};
use windrow_core::source::{SharedSource, Source};
use windrow_core::store::{Io, Local};
use windrow_core::values::copy_values;
use windrow_core::{DType, Result, Span};
use windrow_zarr::FlatTokens;

pub(crate) fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/2_flat_tokens")
}

pub(crate) fn open_with(path: &Path, options: &Options) -> Result<SharedSource> {
    let store = Local::new(path).io(options.io);
    FlatTokens.open(&Probe::at(&[&FlatTokens], Arc::new(store), "")?, options)
}

pub(crate) fn open(path: &Path) -> Result<SharedSource> {
    open_with(path, &Options::default())
}

pub(crate) fn read_with_calls(path: &Path) -> Result<SharedSource> {
    open_with(path, &Options { io: Io::Pread, ..Options::default() })
}

/// The ids of a span.
pub(crate) fn ids(source: &dyn Source, span: Span) -> Result<Vec<i64>> {
    let mut scratch = Vec::new();
    let values = source.read(span, &mut scratch)?;
    let mut out = vec![0i64; span.len as usize];
    copy_values(&values, 0, bytemuck::cast_slice_mut(&mut out), DType::I64)?;
    Ok(out)
}

/// All records.
pub(crate) fn sequences(source: &dyn Source) -> Result<Vec<Vec<i64>>> {
    let whole = |record| {
        let len = source.length(record)?;
        ids(source, Span { record, start: 0, len })
    };
    (0..source.len()).map(whole).collect()
}
