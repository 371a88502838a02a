//! What the leaf of an item is, and how it is stored.

use windrow_core::format::columns::Shape;
use windrow_core::{Array, DType, Error, Result, Value};

use super::{json_leaf, pickled};

/// A kind of leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// int64.
    Int,
    /// float64.
    Float,
    /// One byte.
    Bool,
    /// UTF-8.
    Text,
    /// Bytes, also those of pictures and sounds.
    Bytes,
    /// Numbers of one axis.
    Bare(DType),
    /// An array with a header of the code of its dtype and its shape; big-endian in torch's, little-endian in numpy's.
    Array {
        /// Whether the header is torch's.
        torch: bool,
    },
    /// JSON, as text or in a form of its own.
    Json,
    /// A pickle, of which data is read and nothing executed.
    Pickle,
}

/// numpy's own limit; torch has the same.
const MOST_AXES: usize = 64;
/// Bytes of the longest head.
pub(super) const MOST_HEAD: usize = 8 + 4 * MOST_AXES;

/// Where the numbers of an array are in its leaf.
pub(super) struct Head {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    /// Bytes before them.
    pub(super) size: usize,
}

impl Leaf {
    /// The kind of this name.
    ///
    /// # Errors
    /// `Unsupported` for an unknown one.
    pub(super) fn parse(text: &str) -> Result<Leaf> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let code = || {
            argument.parse::<u32>().map_err(|_| Error::corrupt(format!("the code of a dtype in {text:?}")))
        };
        Ok(match name {
            "int" => Leaf::Int,
            "float" => Leaf::Float,
            "bool" | "boolean" => Leaf::Bool,
            "str" | "string" | "text" => Leaf::Text,
            "bytes" | "image" | "jpeg" | "jpeg_array" | "pil" | "png" | "audio" | "video" | "file"
            | "pdf" | "tifffile" => Leaf::Bytes,
            "no_header_tensor" => Leaf::Bare(torch(code()?)?),
            "no_header_numpy" => Leaf::Bare(numpy(code()?)?),
            "tensor" => Leaf::Array { torch: true },
            "numpy" => Leaf::Array { torch: false },
            "json" => Leaf::Json,
            "pickle" => Leaf::Pickle,
            _ => {
                return Err(Error::unsupported(format!("an unknown kind of leaf {text:?}"))
                    .hint("write it as arrays, text, bytes or JSON"));
            }
        })
    }

    /// Where the numbers of an array are in a leaf of `size` bytes, the first of which are `bytes`: [`MOST_HEAD`] are enough.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported` for a dtype that is not read.
    pub(super) fn head(&self, bytes: &[u8], size: usize) -> Result<Head> {
        let head = match self {
            Leaf::Bare(dtype) => {
                let whole = size / dtype.size();
                Head { dtype: *dtype, shape: Shape::from_slice(&[whole as u64]), size: 0 }
            }
            Leaf::Array { torch: is_torch } => {
                let word = |at: usize| -> Result<u32> {
                    let word = bytes.get(4 * at..4 * at + 4).and_then(|word| word.first_chunk::<4>());
                    let word = word.ok_or_else(|| Error::corrupt("an array that ends in its header"))?;
                    Ok(if *is_torch { u32::from_be_bytes(*word) } else { u32::from_le_bytes(*word) })
                };
                let (code, axes) = (word(0)?, word(1)? as usize);
                if axes > MOST_AXES {
                    return Err(Error::corrupt(format!("an array of {axes} axes in {size} bytes")));
                }
                let shape = (0..axes).map(|axis| word(2 + axis).map(u64::from)).collect::<Result<_>>()?;
                let dtype = if *is_torch { torch(code)? } else { numpy(code)? };
                Head { dtype, shape, size: 8 + 4 * axes }
            }
            _ => return Err(Error::unsupported("a leaf that is not an array")),
        };
        let numbers =
            head.shape.iter().try_fold(head.dtype.size() as u64, |all, axis| all.checked_mul(*axis));
        if head.size <= size && numbers == Some((size - head.size) as u64) {
            Ok(head)
        } else {
            Err(Error::corrupt(format!("an array {} {:?} in a leaf of {size} bytes", head.dtype, head.shape)))
        }
    }

    /// The value that its bytes are.
    ///
    /// # Errors
    /// As [`Leaf::head`]; `Unsupported` for a pickle that is more than data.
    pub(super) fn value(&self, bytes: &[u8]) -> Result<Value> {
        let eight = |what: &str| {
            let word = bytes.first_chunk::<8>().filter(|_| bytes.len() == 8);
            word.copied()
                .ok_or_else(|| Error::corrupt(format!("{what} of {} bytes, expected 8", bytes.len())))
        };
        Ok(match self {
            Leaf::Int => Value::I64(i64::from_le_bytes(eight("a whole number")?)),
            Leaf::Float => Value::F64(f64::from_le_bytes(eight("a float")?)),
            Leaf::Bool => match bytes {
                [byte] => Value::Bool(*byte != 0),
                _ => return Err(Error::corrupt(format!("a truth value of {} bytes", bytes.len()))),
            },
            Leaf::Text => match std::str::from_utf8(bytes) {
                Ok(text) => Value::Text(text.to_string()),
                Err(_) => return Err(Error::corrupt("text that is not UTF-8")),
            },
            Leaf::Bytes => Value::Bytes(bytes.to_vec()),
            Leaf::Bare(_) | Leaf::Array { .. } => {
                let head = self.head(bytes, bytes.len())?;
                Value::Array(Array {
                    dtype: head.dtype,
                    shape: head.shape.to_vec(),
                    bytes: bytes[head.size..].to_vec(),
                })
            }
            Leaf::Json => json_leaf::value(bytes)?,
            Leaf::Pickle => pickled::value(bytes)?,
        })
    }
}

// The codes of torch's dtypes; of two names for one the higher is written.
fn torch(code: u32) -> Result<DType> {
    Ok(match code {
        0 | 1 => DType::F32,
        2 | 3 => DType::F64,
        8 | 9 => DType::F16,
        10 => DType::Bf16,
        11 => DType::U8,
        12 => DType::I8,
        13 | 14 => DType::I16,
        15 | 16 => DType::I32,
        17 | 18 => DType::I64,
        19 => DType::Bool,
        20 => DType::U16,
        _ => return Err(Error::unsupported(format!("the code {code} of a dtype of torch"))),
    })
}

/// numpy's dtypes by their code.
const NUMPY: [DType; 11] = [
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
];
const NUMPY_BOOL: u32 = 13;

/// The code of a dtype, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Torch(u32),
    Numpy(u32),
}

/// The code of a dtype among torch's, where that is known there, of two the one that is written; else among numpy's.
pub(super) fn code(dtype: DType) -> Code {
    Code::Torch(match dtype {
        DType::F32 => 1,
        DType::F64 => 3,
        DType::F16 => 9,
        DType::Bf16 => 10,
        DType::U8 => 11,
        DType::I8 => 12,
        DType::I16 => 14,
        DType::I32 => 16,
        DType::I64 => 18,
        DType::Bool => 19,
        DType::U16 => 20,
        DType::U32 | DType::U64 => return numpy_code(dtype),
    })
}

/// The code of a dtype among numpy's; of bfloat16, which numpy does not have, that of torch.
pub(super) fn numpy_code(dtype: DType) -> Code {
    match NUMPY.iter().position(|known| *known == dtype) {
        Some(code) => Code::Numpy(code as u32),
        None if dtype == DType::Bool => Code::Numpy(NUMPY_BOOL),
        None => code(dtype),
    }
}

fn numpy(code: u32) -> Result<DType> {
    match code {
        NUMPY_BOOL => Ok(DType::Bool),
        _ => NUMPY
            .get(code as usize)
            .copied()
            .ok_or_else(|| Error::unsupported(format!("the code {code} of a dtype of numpy"))),
    }
}
