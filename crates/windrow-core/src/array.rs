//! Numbers as they lie on disk and as they leave: dtypes, byte order, and memory that is aligned for both.

use std::fmt;

use crate::error::{Error, Result};

/// The type of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

const NAMES: [(DType, &str, usize); 13] = [
    (DType::Bool, "bool", 1),
    (DType::U8, "uint8", 1),
    (DType::U16, "uint16", 2),
    (DType::U32, "uint32", 4),
    (DType::U64, "uint64", 8),
    (DType::I8, "int8", 1),
    (DType::I16, "int16", 2),
    (DType::I32, "int32", 4),
    (DType::I64, "int64", 8),
    (DType::F16, "float16", 2),
    (DType::Bf16, "bfloat16", 2),
    (DType::F32, "float32", 4),
    (DType::F64, "float64", 8),
];

impl DType {
    /// numpy's name: `uint16`, `float32`, …
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// Bytes per number.
    pub const fn size(self) -> usize {
        NAMES[self as usize].2
    }

    /// From numpy's name, or the short `u16`, `f32`, …
    ///
    /// # Errors
    /// `Config` when the name is not one of them.
    pub fn parse(name: &str) -> Result<Self> {
        let found = NAMES.iter().find(|(_, long, _)| {
            let short = long.chars().next().into_iter().chain(long.chars().filter(char::is_ascii_digit));
            *long == name || (short.eq(name.chars()) && !long.starts_with('b'))
        });
        found.map(|n| n.0).ok_or_else(|| {
            let names: Vec<_> = NAMES.iter().map(|n| n.1).collect();
            Error::config(format!("unknown dtype {name:?}")).hint(format!("one of {}", names.join(", ")))
        })
    }

    /// The one of this number, where there is one: back from `dtype as u64`.
    pub fn from_number(number: u64) -> Option<Self> {
        NAMES.get(usize::try_from(number).ok()?).map(|name| name.0)
    }

    /// Whether the numbers are whole.
    pub fn is_integer(self) -> bool {
        !matches!(self, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
    }

    /// Whether `id` can be stored without loss; `false` for floats.
    pub fn holds(self, id: i64) -> bool {
        match self {
            DType::Bool => (0..=1).contains(&id),
            DType::U8 => u8::try_from(id).is_ok(),
            DType::U16 => u16::try_from(id).is_ok(),
            DType::U32 => u32::try_from(id).is_ok(),
            DType::U64 => id >= 0,
            DType::I8 => i8::try_from(id).is_ok(),
            DType::I16 => i16::try_from(id).is_ok(),
            DType::I32 => i32::try_from(id).is_ok(),
            DType::I64 => true,
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => false,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl serde::Serialize for DType {
    fn serialize<S: serde::Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for DType {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(d)?;
        DType::parse(&name).map_err(|e| serde::de::Error::custom(e.message()))
    }
}

/// A number on disk: its type and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// The type.
    pub dtype: DType,
    /// Most significant byte first; `false` for nearly all data.
    pub big_endian: bool,
}

impl Element {
    /// Least significant byte first.
    pub const fn little(dtype: DType) -> Self {
        Element { dtype, big_endian: false }
    }

    /// Bytes per number.
    pub const fn size(self) -> usize {
        self.dtype.size()
    }
}

/// Makes room in `list` for `more` values.
///
/// # Errors
/// `Memory` where there is none.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    list.try_reserve(more).map_err(|_| Error::memory(format!("{more} values of {} bytes", size_of::<T>())))
}

/// One cache line: buffers start on it so that vector stores never straddle.
#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory of `size` bytes, zeroed, 64-byte aligned.
pub struct Buffer {
    lines: Vec<Line>,
    size: usize,
}

impl Buffer {
    /// Zeroed memory.
    pub fn zeroed(size: usize) -> Self {
        Buffer { lines: bytemuck::allocation::zeroed_vec(size.div_ceil(64)), size }
    }

    /// Zeroed memory; `None` where there is not so much.
    pub fn try_zeroed(size: usize) -> Option<Self> {
        let lines = bytemuck::allocation::try_zeroed_vec(size.div_ceil(64)).ok()?;
        Some(Buffer { lines, size })
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.size]
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.size]
    }

    /// Gives the memory another size within what it has; the content is left as it is.
    /// Returns false when it is too small.
    pub fn resize_within(&mut self, size: usize) -> bool {
        let fits = size <= self.lines.len() * 64;
        if fits {
            self.size = size;
        }
        fits
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_both_ways() {
        for (dtype, name, size) in NAMES {
            assert_eq!(DType::parse(name).unwrap(), dtype);
            assert_eq!(dtype.size(), size);
        }
        assert_eq!(DType::parse("u16").unwrap(), DType::U16);
        assert_eq!(DType::parse("f32").unwrap(), DType::F32);
        assert!(DType::parse("b16").is_err());
        assert!(DType::parse("complex64").is_err());
    }

    #[test]
    fn buffers_are_aligned() {
        for size in [0, 1, 63, 64, 65, 1000] {
            let b = Buffer::zeroed(size);
            assert_eq!(b.bytes().len(), size);
            assert_eq!(b.bytes().as_ptr() as usize % 64, 0);
        }
    }
}
