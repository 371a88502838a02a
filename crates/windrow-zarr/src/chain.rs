//! The codecs of a chunk, undone one after the other; no step may give more bytes than the array's shape allows.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::Read;
use std::sync::Arc;

use windrow_core::{Error, Result};
use zarrs::array::codec::api::{BytesToBytesCodecTraits, CodecMetadataOptions};
use zarrs::array::codec::{
    BloscCodec, BytesCodec, Bz2Codec, CodecChain, GzipCodec, TransposeCodec, ZlibCodec, ZstdCodec,
};
use zarrs::array::{BytesRepresentation, CodecOptions};

use crate::blosc::Blosc;
use crate::decode_error::{broken, wrong_size};
use crate::piece::Piece;

/// What any chunk may decode to, however few bytes it is stored in.
const FLOOR: u64 = 64 << 20;
/// More than this times its stored size no chunk above [`FLOOR`] may decode to.
const MOST_RATIO: u64 = 1024;

/// The codecs between the numbers of a chunk and its bytes in the store.
pub(crate) struct Chain {
    /// In the order of encoding.
    steps: Vec<Step>,
    /// Size of the numbers, in bytes.
    size: u64,
    /// Their byte order.
    pub(crate) big_endian: bool,
}

struct Step {
    codec: Arc<dyn BytesToBytesCodecTraits>,
    kind: Kind,
    /// What it gives when it is undone.
    gives: BytesRepresentation,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Blosc,
    Bz2,
    Gzip,
    Zlib,
    Zstd,
    /// Gives about the same number of bytes as it takes: checksums, shuffles.
    Same,
}

impl Chain {
    /// For chunks whose numbers take `size` bytes.
    ///
    /// # Errors
    /// `Unsupported` for codecs that change numbers, or that put them down in another way than one after the other.
    pub(crate) fn new(codecs: &CodecChain, size: u64) -> Result<Chain> {
        for codec in codecs.array_to_array_codecs() {
            // With one dimension there is nothing to transpose.
            if !codec.as_any().is::<TransposeCodec>() {
                return Err(Error::unsupported(format!("a codec that changes numbers: {codec:?}")));
            }
        }
        let numbers = codecs.array_to_bytes_codec();
        if !numbers.as_any().is::<BytesCodec>() {
            return Err(Error::unsupported(format!("numbers that are put down by {numbers:?}")));
        }
        let mut gives = BytesRepresentation::FixedSize(size);
        let mut steps = Vec::new();
        for codec in codecs.bytes_to_bytes_codecs() {
            let any = codec.as_any();
            let kind = if any.is::<BloscCodec>() {
                Kind::Blosc
            } else if any.is::<Bz2Codec>() {
                Kind::Bz2
            } else if any.is::<GzipCodec>() {
                Kind::Gzip
            } else if any.is::<ZlibCodec>() {
                Kind::Zlib
            } else if any.is::<ZstdCodec>() {
                Kind::Zstd
            } else {
                Kind::Same
            };
            steps.push(Step { codec: codec.clone(), kind, gives });
            gives = codec.encoded_representation(&gives);
        }
        Ok(Chain { steps, size, big_endian: is_big_endian(codecs)? })
    }

    /// The numbers are in the store as they are.
    pub(crate) fn is_plain(&self) -> bool {
        self.steps.is_empty()
    }

    /// How many bytes it takes in the store, where that does not depend on the numbers.
    pub(crate) fn stored_size(&self) -> Option<u64> {
        let start = BytesRepresentation::FixedSize(self.size);
        match self.steps.iter().fold(start, |size, step| step.codec.encoded_representation(&size)) {
            BytesRepresentation::FixedSize(size) => Some(size),
            _ => None,
        }
    }

    /// The size of a piece that can be decoded without the rest of the chunk.
    pub(crate) fn piece_size(&self, stored: &[u8]) -> Result<u64> {
        if !self.is_blosc() {
            return Ok(self.size);
        }
        let stream = Blosc::of(stored, self.size)?;
        if stream.size() as u64 == self.size {
            Ok(stream.piece_size())
        } else {
            Err(wrong_size(stream.size() as u64, self.size))
        }
    }

    fn is_blosc(&self) -> bool {
        matches!(&self.steps[..], [step] if step.kind == Kind::Blosc)
    }

    /// Bytes `start..start + size` of the numbers: what [`Chain::piece_size`] cuts, or all.
    pub(crate) fn piece(&self, stored: &[u8], start: u64, size: u64) -> Result<Piece> {
        if !self.is_blosc() {
            return self.decode(stored, start, size).map(Piece::numbers);
        }
        let stream = Blosc::of(stored, self.size)?;
        if stream.size() as u64 == self.size {
            stream.piece(start, size)
        } else {
            Err(wrong_size(stream.size() as u64, self.size))
        }
    }

    /// Decodes bytes `start..start + size` of the numbers, whatever the codecs are; the whole chunk is decoded.
    pub(crate) fn decode(&self, stored: &[u8], start: u64, size: u64) -> Result<Vec<u8>> {
        let mut bytes = Cow::Borrowed(stored);
        for step in self.steps.iter().rev() {
            bytes = Cow::Owned(step.undo(&bytes)?);
        }
        if bytes.len() as u64 != self.size {
            return Err(wrong_size(bytes.len() as u64, self.size));
        }
        let mut bytes = bytes.into_owned();
        bytes.truncate((start + size) as usize);
        bytes.drain(..start as usize);
        Ok(bytes)
    }
}

impl Step {
    fn undo(&self, stored: &[u8]) -> Result<Vec<u8>> {
        let most = match self.gives {
            BytesRepresentation::FixedSize(size) | BytesRepresentation::BoundedSize(size) => size,
            // Of what is decoded next, nothing is known but that compressors do not make things much larger.
            BytesRepresentation::UnboundedSize => FLOOR.max(stored.len() as u64 * MOST_RATIO),
        };
        let allowed = FLOOR.max((stored.len() as u64).saturating_mul(MOST_RATIO));
        let is_exact = matches!(self.gives, BytesRepresentation::FixedSize(_));
        if is_exact && most > allowed {
            return Err(Error::corrupt(format!(
                "{} stored bytes cannot be a chunk of {most} bytes",
                stored.len()
            )));
        }
        let most = most.min(allowed);
        match self.kind {
            Kind::Gzip => read_bounded(flate2::read::MultiGzDecoder::new(stored), most),
            Kind::Bz2 => read_bounded(bzip2::read::MultiBzDecoder::new(stored), most),
            Kind::Zlib => read_bounded(flate2::read::ZlibDecoder::new(stored), most),
            Kind::Zstd => {
                if is_exact && let Some(bytes) = zstd_at_once(stored, most) {
                    return Ok(bytes);
                }
                let mut decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(broken)?;
                // A window larger than what may come out is a claim that needs no memory.
                let window = (64 - most.leading_zeros()).clamp(23, 27);
                decoder.window_log_max(window).map_err(broken)?;
                read_bounded(decoder, most)
            }
            Kind::Blosc => Blosc::of(stored, most)?.all(),
            Kind::Same => {
                let options = CodecOptions::default().with_concurrent_target(1);
                let decoded = self.codec.decode(Cow::Borrowed(stored), &self.gives, &options);
                Ok(decoded.map_err(broken)?.into_owned())
            }
        }
    }
}

thread_local! {
    // Making one takes longer than decoding a small chunk.
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

// `None` where it is not what was expected: the slower way says why.
fn zstd_at_once(stored: &[u8], size: u64) -> Option<Vec<u8>> {
    ZSTD.with_borrow_mut(|kept| {
        let decoder = match kept {
            Some(decoder) => decoder,
            None => kept.insert(zstd::bulk::Decompressor::new().ok()?),
        };
        decoder
            .decompress(stored, usize::try_from(size).ok()?)
            .ok()
            .filter(|bytes| bytes.len() as u64 == size)
    })
}

fn read_bounded(from: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes).map_err(broken)?;
    if bytes.len() as u64 > most {
        Err(Error::corrupt(format!("the chunk decodes to more than {most} bytes")))
    } else {
        Ok(bytes)
    }
}

fn is_big_endian(codecs: &CodecChain) -> Result<bool> {
    let configuration = codecs.array_to_bytes_codec().configuration_v3(&CodecMetadataOptions::default());
    match configuration.as_ref().and_then(|c| c.get("endian")).and_then(|endian| endian.as_str()) {
        Some("big") => Ok(true),
        Some("little") => Ok(false),
        _ => {
            Err(Error::corrupt("the codec of numbers does not say the order of their bytes").field("codecs"))
        }
    }
}
