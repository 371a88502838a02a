//! Items of frames: arrays with the same number of rows, in groups whose fields are next to each other as a C compiler aligns them.

use std::collections::BTreeMap;

use serde::Deserialize;
use windrow_core::{Array, DType, Error, Result};

use crate::npy::element;

/// The fields of an item.
pub(super) struct Temporal {
    /// In the order in which they are given.
    pub(super) fields: Vec<Field>,
    /// Bytes of a row of each group.
    widths: Vec<u64>,
}

/// A field of every frame.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// Behind the axis of the frames.
    shape: Vec<u64>,
    group: usize,
    /// Bytes before it in a row of its group.
    offset: u64,
    /// Bytes of it in a row.
    size: u64,
}

#[derive(Deserialize)]
struct Schema {
    field_order: Vec<String>,
    fields: BTreeMap<String, Described>,
    groups: Vec<Vec<String>>,
    version: u64,
}

#[derive(Deserialize)]
struct Described {
    dtype: String,
    #[serde(default)]
    shape: Vec<u64>,
}

impl Temporal {
    /// The fields that the schema describes.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported` for other versions and dtypes.
    pub(super) fn parse(schema: serde_json::Value) -> Result<Temporal> {
        let schema: Schema = serde_json::from_value(schema)
            .map_err(|cause| Error::corrupt("expected the schema of frames").caused_by(cause))?;
        if schema.version != 1 {
            return Err(Error::unsupported(format!("version {} of the schema, expected 1", schema.version)));
        }
        let (mut found, mut widths) = (BTreeMap::new(), Vec::new());
        for (group, names) in schema.groups.iter().enumerate() {
            let (mut offset, mut alignment) = (0u64, 1u64);
            for name in names {
                let described = schema.fields.get(name);
                let described =
                    described.ok_or_else(|| Error::corrupt(format!("no field is called {name:?}")))?;
                let element = element(&described.dtype)?;
                if element.big_endian {
                    return Err(Error::unsupported(format!("numbers {:?}", described.dtype)));
                }
                let width = element.dtype.size() as u64;
                let size = described.shape.iter().try_fold(width, |all, axis| all.checked_mul(*axis));
                let size = size.ok_or_else(|| Error::corrupt(format!("the shape {:?}", described.shape)))?;
                offset = offset
                    .checked_next_multiple_of(width)
                    .ok_or_else(|| Error::corrupt("rows of more than 64 bits count"))?;
                alignment = alignment.max(width);
                let field = Field {
                    name: name.clone(),
                    dtype: element.dtype,
                    shape: described.shape.clone(),
                    group,
                    offset,
                    size,
                };
                if found.insert(name.clone(), field).is_some() {
                    return Err(Error::corrupt(format!("the field {name:?} is in two groups")));
                }
                offset = offset
                    .checked_add(size)
                    .ok_or_else(|| Error::corrupt("rows of more than 64 bits count"))?;
            }
            let width = offset.checked_next_multiple_of(alignment);
            widths.push(width.ok_or_else(|| Error::corrupt("rows of more than 64 bits count"))?);
        }
        let fields = schema.field_order.iter().map(|name| {
            found.remove(name).ok_or_else(|| Error::corrupt(format!("the field {name:?} is in no group")))
        });
        Ok(Temporal { fields: fields.collect::<Result<_>>()?, widths })
    }

    /// A field of an item, its frames one after the other.
    ///
    /// # Errors
    /// `Corrupt` when the item is not as many rows of each group as it says.
    pub(super) fn array(&self, item: &[u8], field: usize) -> Result<Array> {
        let field = &self.fields[field];
        let frames = item.first_chunk::<4>().map(|word| u64::from(u32::from_le_bytes(*word)));
        let frames = frames.ok_or_else(|| Error::corrupt(format!("an item of {} bytes", item.len())))?;
        let all = self.widths.iter().try_fold(4u64, |all, width| all.checked_add(width.checked_mul(frames)?));
        if all != Some(item.len() as u64) {
            return Err(Error::corrupt(format!("{frames} frames in an item of {} bytes", item.len())));
        }
        // All of it is within the item now.
        let start = 4 + self.widths[..field.group].iter().map(|width| width * frames).sum::<u64>();
        let (width, size) = (self.widths[field.group], field.size as usize);
        let mut bytes = Vec::with_capacity(size * frames as usize);
        for frame in 0..frames {
            let at = (start + frame * width + field.offset) as usize;
            bytes.extend_from_slice(&item[at..at + size]);
        }
        Ok(Array { dtype: field.dtype, shape: [&[frames], field.shape.as_slice()].concat(), bytes })
    }
}
