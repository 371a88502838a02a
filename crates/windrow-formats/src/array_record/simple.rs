//! The data of a simple chunk: a codec, the sizes of the records, the records; both compressed by the codec.

use std::cell::RefCell;
use std::io::Read;

use windrow_core::{Error, Result};

use crate::protobuf::Fields;

const WHAT: &str = "the sizes of a chunk";
/// Data may expand to this much, or to [`MOST_RATIO`] times its size; more is refused.
const MOST_EXPANDED: u64 = 64 << 20;
const MOST_RATIO: u64 = 1000;

/// The most that this many bytes may expand to.
pub(super) fn most_expanded(bytes: u64) -> u64 {
    MOST_EXPANDED.max(bytes.saturating_mul(MOST_RATIO))
}

/// Data that declares up to this much, or a multiple of its size, is expanded into memory for all of it at once; for more,
/// memory grows with what comes.
const ALLOCATED: u64 = 1 << 16;
const ALLOCATED_RATIO: u64 = 32;

thread_local! {
    // A frame is often a record of a few bytes: making a decoder takes longer than reading it.
    static DECODER: RefCell<std::io::Result<zstd::bulk::Decompressor<'static>>> =
        RefCell::new(zstd::bulk::Decompressor::new());
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Codec {
    None,
    Brotli,
    Zstd,
    Snappy,
}

/// The data of a chunk as it is stored.
pub(super) struct Parts<'a> {
    codec: Codec,
    sizes: &'a [u8],
    values: &'a [u8],
    /// Records, and bytes of them, as the header of the chunk says.
    records: u64,
    decoded: u64,
}

impl<'a> Parts<'a> {
    /// Takes the data of a chunk apart.
    ///
    /// # Errors
    /// `Corrupt`, without a place.
    pub(super) fn of(data: &'a [u8], records: u64, decoded: u64) -> Result<Parts<'a>> {
        let (codec, size, at) = head(data)?;
        let rest = data.get(at..).unwrap_or_default();
        let size = usize::try_from(size).ok().filter(|size| *size <= rest.len());
        let (sizes, values) = rest.split_at(size.ok_or_else(too_few)?);
        Ok(Parts { codec, sizes, values, records, decoded })
    }

    /// Bytes of data up to where the records begin, of a chunk of `of` bytes that begins so.
    ///
    /// # Errors
    /// `Corrupt` when there are fewer.
    pub(super) fn size_to_sizes(data: &[u8], of: usize) -> Result<usize> {
        let (_, size, at) = head(data)?;
        let end = usize::try_from(size).ok().and_then(|size| size.checked_add(at));
        end.filter(|end| *end <= of).ok_or_else(too_few)
    }

    /// The size of each record.
    ///
    /// # Errors
    /// `Corrupt` when they are not as many as the header says, or do not sum to what it says.
    pub(super) fn sizes(&self) -> Result<Vec<u64>> {
        let mut scratch = Vec::new();
        let bytes = match self.codec {
            Codec::None => self.sizes,
            codec => {
                expand(codec, self.sizes, None, &mut scratch)?;
                scratch.as_slice()
            }
        };
        // A size takes a byte.
        if self.records > bytes.len() as u64 {
            let what = format!("{} records, whose sizes are {} bytes", self.records, bytes.len());
            return Err(Error::corrupt(what));
        }
        let mut fields = Fields::of(WHAT, bytes, 0);
        let mut sizes = Vec::with_capacity(self.records as usize);
        let mut sum = 0u64;
        for _ in 0..self.records {
            let size = fields.varint()?;
            sum = sum.saturating_add(size);
            sizes.push(size);
        }
        if !fields.is_at_end() {
            return Err(Error::corrupt(format!("more sizes than the {} records of a chunk", self.records)));
        }
        if sum == self.decoded { Ok(sizes) } else { Err(differs(sum, self.decoded)) }
    }

    /// The bytes of all records where they are not compressed.
    ///
    /// # Errors
    /// As [`Parts::values`].
    pub(super) fn plain_values(&self) -> Result<Option<&'a [u8]>> {
        if self.codec != Codec::None {
            Ok(None)
        } else if self.values.len() as u64 == self.decoded {
            Ok(Some(self.values))
        } else {
            Err(differs(self.values.len() as u64, self.decoded))
        }
    }

    /// Puts the bytes of all records, one after the other, into `out`.
    ///
    /// # Errors
    /// `Corrupt` when they cannot be expanded, or are not as many as the header says.
    pub(super) fn values_into(&self, out: &mut Vec<u8>) -> Result<()> {
        match self.plain_values()? {
            Some(values) => {
                out.clear();
                out.extend_from_slice(values);
                Ok(())
            }
            None => expand(self.codec, self.values, Some(self.decoded), out),
        }
    }
}

/// The records of a chunk, expanded.
pub(super) struct Records {
    values: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Records {
    /// Those of these data.
    ///
    /// # Errors
    /// `Corrupt`, without a place.
    pub(super) fn of(parts: &Parts<'_>) -> Result<Records> {
        let sizes = parts.sizes()?;
        let mut values = Vec::new();
        parts.values_into(&mut values)?;
        let mut end = 0;
        // Their sum was compared with the bytes that are there.
        let ends = sizes.iter().map(|size| {
            end += *size as usize;
            end
        });
        Ok(Records { ends: ends.collect(), values })
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        self.values.len() + self.ends.len() * size_of::<usize>()
    }

    /// A record.
    pub(super) fn get(&self, record: usize) -> Option<&[u8]> {
        let start = if record == 0 { 0 } else { *self.ends.get(record - 1)? };
        self.values.get(start..*self.ends.get(record)?)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|record| self.get(record).unwrap_or_default())
    }
}

fn differs(found: u64, said: u64) -> Error {
    Error::corrupt(format!("records of {found} bytes, the header of the chunk says {said}"))
}

fn too_few() -> Error {
    Error::corrupt("the sizes of a chunk pass its end")
}

// The codec, bytes of the sizes as they are stored, and where they begin.
fn head(data: &[u8]) -> Result<(Codec, u64, usize)> {
    let codec = match data.first() {
        Some(0) => Codec::None,
        Some(b'b') => Codec::Brotli,
        Some(b'z') => Codec::Zstd,
        Some(b's') => Codec::Snappy,
        Some(other) => return Err(Error::corrupt(format!("a chunk of the unknown codec {other:#04x}"))),
        None => return Err(Error::corrupt("a chunk without data")),
    };
    let mut fields = Fields::of(WHAT, &data[1..], 0);
    let size = fields.varint()?;
    Ok((codec, size, 1 + fields.taken()))
}

// Expands bytes, which begin with how much that is.
fn expand(codec: Codec, bytes: &[u8], expected: Option<u64>, scratch: &mut Vec<u8>) -> Result<()> {
    let mut fields = Fields::of(WHAT, bytes, 0);
    let size = fields.varint()?;
    if let Some(expected) = expected.filter(|expected| *expected != size) {
        return Err(differs(size, expected));
    }
    let packed = &bytes[fields.taken()..];
    let most = most_expanded(packed.len() as u64);
    if size > most {
        let what = format!("{} bytes that expand to {size}, at most {most} are read", packed.len());
        return Err(Error::corrupt(what));
    }
    scratch.clear();
    if size == 0 && packed.is_empty() {
        return Ok(());
    }
    let failed = |name: &str, cause: Box<dyn std::error::Error + Send + Sync>| {
        Error::corrupt(format!("expected {name}")).caused_by(cause)
    };
    match codec {
        Codec::None => {}
        Codec::Zstd if size <= ALLOCATED.max(packed.len() as u64 * ALLOCATED_RATIO) => {
            scratch.reserve_exact(size as usize);
            let read = DECODER.with_borrow_mut(|decoder| match decoder {
                Ok(decoder) => decoder.decompress_to_buffer(packed, scratch),
                Err(cause) => Err(std::io::Error::from(cause.kind())),
            });
            read.map_err(|cause| failed("a zstd frame of the size it declares", cause.into()))?;
        }
        Codec::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(packed);
            let read = decoder.and_then(|decoder| decoder.take(size + 1).read_to_end(scratch));
            read.map_err(|cause| failed("a zstd frame", cause.into()))?;
        }
        Codec::Brotli => {
            // Its ring grows with what it gives, whatever window is declared.
            let decoder = brotli_decompressor::Decompressor::new(packed, packed.len().clamp(1, 4096));
            let read = decoder.take(size + 1).read_to_end(scratch);
            read.map_err(|cause| failed("a brotli stream", cause.into()))?;
        }
        Codec::Snappy => {
            /// An element of three bytes gives at most 64.
            const MOST_SNAPPY: usize = 22;
            let found = snap::raw::decompress_len(packed).map_err(|cause| failed("snappy", cause.into()))?;
            if found as u64 != size || found > packed.len().saturating_mul(MOST_SNAPPY) {
                return Err(Error::corrupt(format!("{found} bytes of snappy, expected {size}")));
            }
            scratch.resize(found, 0);
            let read = snap::raw::Decoder::new().decompress(packed, scratch);
            read.map_err(|cause| failed("snappy", cause.into()))?;
        }
    }
    if scratch.len() as u64 == size {
        Ok(())
    } else if scratch.len() as u64 > size {
        Err(Error::corrupt(format!("data that expands to more than the {size} bytes it declares")))
    } else {
        Err(Error::corrupt(format!("data that expands to {} bytes, it declares {size}", scratch.len())))
    }
}
