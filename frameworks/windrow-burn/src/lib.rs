//! A batch as burn tensors: by name, one copy each.
//!
//! ```
//! use burn_tensor::{DType, Device, Int, Tensor};
//! use windrow_burn::ToBurn;
//!
//! # fn main() -> windrow::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("tokens.bin");
//! # windrow::prepare::dummy(&path, 1000, 10_000, 0, false)?;
//! let mut loader = windrow::open(&path)?.pack(128)?.loader().batch_size(8).seed(7).build()?;
//! let batch = loader.next_batch().expect("an endless loader")?;
//!
//! let device = Device::default();
//! let inputs = Tensor::<2, Int>::from_data(batch.tensor_data("input_ids")?, (&device, DType::I64));
//! assert_eq!((inputs.dims(), inputs.dtype()), ([8, 128], DType::I64));
//! # Ok(())
//! # }
//! ```
//!
//! # Copies
//!
//! A batch is in memory that goes back to its loader when the batch is dropped; what burn makes a tensor of, it owns. Each tensor
//! therefore takes one copy on the host.

#[cfg(doctest)]
mod pages;

use burn_tensor::{BoolStore, DType as Burn, TensorData};
use windrow_core::collate::{Batch, Field};
use windrow_core::{DType, Error, Result};

/// Gives the fields of a batch as what burn makes tensors of, `[rows, …]` of the fields' own dtypes.
pub trait ToBurn {
    /// The field `name`, for [`Tensor::from_data`](burn_tensor::Tensor::from_data), which takes the dtype and the device.
    ///
    /// # Errors
    /// `NotFound` when there is no such field.
    fn tensor_data(&self, name: &str) -> Result<TensorData>;
}

impl ToBurn for Batch {
    fn tensor_data(&self, name: &str) -> Result<TensorData> {
        let found = self.fields().iter().position(|field| field.name == name);
        let number = found.ok_or_else(|| {
            let names: Vec<_> = self.fields().iter().map(|field| &field.name).collect();
            Error::not_found(format!("the batch has no field {name:?}")).hint(format!("it has {names:?}"))
        })?;
        let Field { dtype, shape, .. } = &self.fields()[number];
        let shape: Vec<usize> = std::iter::once(self.rows()).chain(shape.iter().copied()).collect();
        Ok(TensorData::from_bytes_vec(self.bytes(number).to_vec(), shape, burns(*dtype)))
    }
}

/// burn has every dtype of a batch.
fn burns(dtype: DType) -> Burn {
    match dtype {
        DType::Bool => Burn::Bool(BoolStore::Native),
        DType::U8 => Burn::U8,
        DType::U16 => Burn::U16,
        DType::U32 => Burn::U32,
        DType::U64 => Burn::U64,
        DType::I8 => Burn::I8,
        DType::I16 => Burn::I16,
        DType::I32 => Burn::I32,
        DType::I64 => Burn::I64,
        DType::F16 => Burn::F16,
        DType::Bf16 => Burn::BF16,
        DType::F32 => Burn::F32,
        DType::F64 => Burn::F64,
    }
}
