//! What describes a zarr array, v2 or v3: where it lies, and what it says of shape, chunks and dtype.

use std::num::NonZeroU64;
use std::sync::Arc;

use windrow_core::store::{Object, Store, key};
use windrow_core::{DType, Error, Result};
use zarrs::array::{ArrayMetadata, DataType};
use zarrs::metadata::v2::{ArrayMetadataV2, DataTypeMetadataV2, MetadataV2};
use zarrs::metadata_ext::chunk_grid::regular::RegularChunkGridConfiguration;

use crate::layout::{METADATA_V2, METADATA_V3};

/// No array's metadata is larger.
pub(crate) const MOST_METADATA: u64 = 4 << 20;

/// The metadata of the array in `folder`.
///
/// # Errors
/// `NotFound`; `Io`.
pub(crate) fn open(store: &dyn Store, folder: &str) -> Result<Arc<dyn Object>> {
    for name in [METADATA_V3, METADATA_V2] {
        match store.open(&key::below(folder, name)) {
            Err(e) if e.is_absent() => {}
            found => return found,
        }
    }
    Err(Error::not_found("no zarr array: neither zarr.json nor .zarray").at(store.display(folder)))
}

/// What the text of a metadata file describes, and whether the numbers are stored as differences.
///
/// # Errors
/// `Corrupt`; `Unsupported` for filters that cannot be undone.
pub(crate) fn parse(text: &[u8], is_v3: bool) -> Result<(ArrayMetadata, bool)> {
    let broken = |e| Error::corrupt("no metadata of a zarr array").caused_by(e);
    if is_v3 {
        return serde_json::from_slice(text).map(|v3| (ArrayMetadata::V3(v3), false)).map_err(broken);
    }
    let mut v2: ArrayMetadataV2 = serde_json::from_slice(text).map_err(broken)?;
    let filters = v2.filters.take().unwrap_or_default();
    let (delta, others): (Vec<_>, Vec<_>) = filters.into_iter().partition(|f| f.id() == "delta");
    v2.filters = Some(others).filter(|f| !f.is_empty());
    if let Some(delta) = delta.first() {
        check_delta(delta, &v2.dtype)?;
    }
    if v2.filters.is_some() && !delta.is_empty() || delta.len() > 1 {
        return Err(Error::unsupported("differences beside other filters").field("filters"));
    }
    Ok((ArrayMetadata::V2(v2), !delta.is_empty()))
}

// Differences of numbers as wide as the array's own, signed or not: others add up to something else.
fn check_delta(delta: &MetadataV2, dtype: &DataTypeMetadataV2) -> Result<()> {
    let dtype = dtype.to_string();
    let signed = dtype.replace('u', "i");
    let said = |name: &str| delta.configuration().get(name).map(|found| found.as_str().unwrap_or("no text"));
    // What is not declared of the stored ones is that of the numbers.
    for found in [said("dtype"), said("astype").or(said("dtype"))] {
        if found != Some(&dtype) && found != Some(&signed) {
            let what = format!("differences of {}, expected {dtype}", found.unwrap_or("no dtype"));
            return Err(Error::unsupported(what).field("filters"));
        }
    }
    Ok(())
}

/// How many values there are, and how many a chunk holds.
///
/// # Errors
/// `Corrupt` for any other shape; `Unsupported` for chunks of different sizes.
pub(crate) fn one_dimension(metadata: &ArrayMetadata) -> Result<(u64, NonZeroU64)> {
    let (shape, chunks) = match metadata {
        ArrayMetadata::V2(v2) => (&v2.shape, v2.chunks.to_vec()),
        ArrayMetadata::V3(v3) => {
            let grid: Result<RegularChunkGridConfiguration, _> = v3.chunk_grid.to_typed_configuration();
            match grid {
                Ok(grid) if v3.chunk_grid.name() == "regular" => (&v3.shape, grid.chunk_shape.to_vec()),
                _ => {
                    let what = format!("chunks of {:?}, expected regular ones", v3.chunk_grid.name());
                    return Err(Error::unsupported(what).field("chunk_grid"));
                }
            }
        }
    };
    match (&shape[..], &chunks[..]) {
        (&[len], &[chunk]) => Ok((len, chunk)),
        _ => Err(Error::corrupt(format!("shape {shape:?} in chunks of {chunks:?}, expected one dimension"))
            .field("shape")),
    }
}

/// The dtype, where it is one that flat-tokens have.
pub(crate) fn dtype_of(found: &DataType) -> Option<DType> {
    use zarrs::array::data_type;
    let known = [(data_type::uint32(), DType::U32), (data_type::uint64(), DType::U64)];
    known.into_iter().find(|(known, _)| known == found).map(|(_, dtype)| dtype)
}
