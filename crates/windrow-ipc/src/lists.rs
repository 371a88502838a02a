//! Lists of numbers as arrays of the stored dtype.

use windrow_core::{Array, DType, Result};

use crate::batch::Place;
use crate::schema::{Kind, Node};
use crate::value::Reader;

impl Reader<'_> {
    /// Elements of a list as an array: numbers, truth values, or lists of one number of them each, at any depth. A null among
    /// floats is NaN; `None` for a null among others, and for elements that are not numbers.
    ///
    /// # Errors
    /// As [`Reader::value`].
    pub(crate) fn array(&self, child: &Node, first: u64, end: u64) -> Result<Option<Array>> {
        match &child.kind {
            Kind::Number(_) | Kind::Bool | Kind::Bool8 => {
                let shape = vec![end - first];
                Ok(self.flat(child, first, end)?.map(|(dtype, bytes)| Array { dtype, shape, bytes }))
            }
            Kind::FixedList(_) => {
                let (mut inner, mut shape, mut range) = (child, vec![end - first], (first, end));
                while let Kind::FixedList(width) = inner.kind {
                    if self.has_nulls(inner, range.0, range.1)? {
                        return Ok(None);
                    }
                    shape.push(width);
                    // The number of elements was compared with the lists when the file was opened.
                    range = (range.0 * width, range.1 * width);
                    inner = &inner.children[0];
                }
                if !matches!(inner.kind, Kind::Number(_) | Kind::Bool | Kind::Bool8) {
                    return Ok(None);
                }
                let flat = self.flat(inner, range.0, range.1)?;
                Ok(flat.map(|(dtype, bytes)| Array { dtype, shape, bytes }))
            }
            _ => Ok(None),
        }
    }

    fn flat(&self, node: &Node, first: u64, end: u64) -> Result<Option<(DType, Vec<u8>)>> {
        let nulls = self.has_nulls(node, first, end)?;
        let Kind::Number(dtype) = node.kind else {
            if nulls {
                return Ok(None);
            }
            if node.kind == Kind::Bool8 {
                let start = self.batch.slots[node.slot + 1].start + first;
                let bytes = self.read(Place { start, size: end - first })?;
                return Ok(Some((DType::Bool, bytes.into_iter().map(|byte| u8::from(byte != 0)).collect())));
            }
            let bits = (first..end).map(|at| self.bit(node, 1, at).map(u8::from));
            return Ok(Some((DType::Bool, bits.collect::<Result<_>>()?)));
        };
        if nulls && dtype.is_integer() {
            return Ok(None);
        }
        let width = dtype.size() as u64;
        let place = self.batch.slots[node.slot + 1];
        let mut bytes =
            self.read(Place { start: place.start + first * width, size: (end - first) * width })?;
        if nulls {
            let nan = nan(dtype);
            for (number, at) in bytes.chunks_exact_mut(dtype.size()).zip(first..end) {
                if !self.is_valid(node, at)? {
                    number.copy_from_slice(nan);
                }
            }
        }
        Ok(Some((dtype, bytes)))
    }
}

fn nan(dtype: DType) -> &'static [u8] {
    const DOUBLE: [u8; 8] = f64::NAN.to_le_bytes();
    const SINGLE: [u8; 4] = f32::NAN.to_le_bytes();
    const HALF: [u8; 2] = half::f16::NAN.to_le_bytes();
    match dtype {
        DType::F64 => &DOUBLE,
        DType::F32 => &SINGLE,
        _ => &HALF,
    }
}
