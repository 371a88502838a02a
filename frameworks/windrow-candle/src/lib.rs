//! A batch as candle tensors: by name, on a device, one copy each.
//!
//! ```
//! use candle_core::{DType, Device};
//! use windrow_candle::ToCandle;
//!
//! # fn main() -> windrow::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("tokens.bin");
//! # windrow::prepare::dummy(&path, 1000, 10_000, 0, false)?;
//! let mut loader = windrow::open(&path)?.pack(128)?.loader().batch_size(8).seed(7).build()?;
//! let batch = loader.next_batch().expect("an endless loader")?;
//!
//! let inputs = batch.tensor("input_ids", &Device::Cpu)?;
//! assert_eq!((inputs.dims(), inputs.dtype()), (&[8, 128][..], DType::I64));
//!
//! // All of them, by name.
//! let tensors = batch.tensors(&Device::Cpu)?;
//! assert_eq!(tensors["labels"].dims(), [8, 128]);
//! # Ok(())
//! # }
//! ```
//!
//! # Copies
//!
//! A batch is in 64-byte aligned memory that goes back to its loader when the batch is dropped. A candle tensor on the
//! CPU owns a `Vec` of its numbers and frees it with their own alignment, so memory of another owner or another alignment
//! cannot become one. Each tensor therefore takes one allocation of its own size and one copy into it, and the batch's
//! memory is used again for a later batch. On another device the batch's memory is what is sent: nothing is copied on
//! the host before.

#[cfg(doctest)]
mod pages;

use std::borrow::Cow;
use std::collections::HashMap;

use candle_core::{Device, Tensor, WithDType};
use half::{bf16, f16};
use windrow_core::collate::{Batch, Field};
use windrow_core::{DType, Error, Kind, Result};

/// The dtypes that a batch and candle share, as the error lists them.
const SHARED: &str = "uint8, uint32, int16, int32, int64, float16, bfloat16, float32 and float64";

/// Gives the fields of a batch as tensors `[rows, …]` of the fields' own dtypes; `bool` becomes `U8`, 0 or 1.
pub trait ToCandle {
    /// The field `name`, on `device`.
    ///
    /// # Errors
    /// `NotFound` when there is no such field; `Unsupported` naming its dtype when candle has none like it: int8, uint16
    /// and uint64; what the device says.
    fn tensor(&self, name: &str, device: &Device) -> Result<Tensor>;

    /// All fields by name, on `device`. Lists beside them are left out.
    ///
    /// # Errors
    /// As [`ToCandle::tensor`]; `Unsupported` for a batch of records that are not stacked.
    fn tensors(&self, device: &Device) -> Result<HashMap<Cow<'static, str>, Tensor>>;
}

impl ToCandle for Batch {
    fn tensor(&self, name: &str, device: &Device) -> Result<Tensor> {
        let found = self.fields().iter().position(|field| field.name == name);
        let number = found.ok_or_else(|| {
            let names: Vec<_> = self.fields().iter().map(|field| &field.name).collect();
            Error::not_found(format!("the batch has no field {name:?}")).hint(format!("it has {names:?}"))
        })?;
        to_tensor(self, number, device)
    }

    fn tensors(&self, device: &Device) -> Result<HashMap<Cow<'static, str>, Tensor>> {
        if !self.records().is_empty() {
            return Err(Error::unsupported("a batch of records has no tensors")
                .hint("rows with stack makes tensors of their columns"));
        }
        let names = self.fields().iter().map(|field| field.name.clone());
        names.enumerate().map(|(number, name)| Ok((name, to_tensor(self, number, device)?))).collect()
    }
}

fn to_tensor(batch: &Batch, number: usize, device: &Device) -> Result<Tensor> {
    let field = &batch.fields()[number];
    let to_tensor = match field.dtype {
        DType::Bool | DType::U8 => from_bytes::<u8>,
        DType::U32 => from_bytes::<u32>,
        DType::I16 => from_bytes::<i16>,
        DType::I32 => from_bytes::<i32>,
        DType::I64 => from_bytes::<i64>,
        DType::F16 => from_bytes::<f16>,
        DType::Bf16 => from_bytes::<bf16>,
        DType::F32 => from_bytes::<f32>,
        DType::F64 => from_bytes::<f64>,
        DType::I8 | DType::U16 | DType::U64 => return Err(no_such_dtype(field)),
    };
    to_tensor(batch.bytes(number), &shape(field, batch.rows()), device).map_err(|e| {
        Error::new(Kind::Io, format!("field {:?} could not be made a tensor", field.name)).caused_by(e)
    })
}

fn shape(field: &Field, rows: usize) -> Vec<usize> {
    std::iter::once(rows).chain(field.shape.iter().copied()).collect()
}

fn from_bytes<T: WithDType + bytemuck::Pod>(
    bytes: &[u8],
    shape: &[usize],
    device: &Device,
) -> candle_core::Result<Tensor> {
    Tensor::from_slice(bytemuck::cast_slice::<u8, T>(bytes), shape, device)
}

fn no_such_dtype(field: &Field) -> Error {
    let (name, dtype) = (&field.name, field.dtype);
    let wider = match dtype {
        DType::I8 => "I16",
        DType::U16 => "U32",
        _ => "I64",
    };
    Error::unsupported(format!("field {name:?} holds {dtype}, which candle does not have; it has {SHARED}"))
        .field(name.clone())
        .hint(format!("ask for the batch in another dtype: samples.with_dtype(DType::{wider})"))
}
