//! Codecs of compressed shards that only the index names: brotli, bzip2, and snappy without frames.

use std::io::{self, Read};

use windrow_core::store::Object;
use windrow_core::{Error, Result};

/// What 64 bytes take at least, as a copy of 3: so much may a stream of snappy come to.
const SNAPPY_MOST: u64 = 64 / 3 + 1;

#[derive(Clone, Copy)]
pub(super) enum Codec {
    Brotli,
    Bzip2,
    Snappy,
}

impl Codec {
    /// As MDSWriter calls it.
    pub(super) fn named(name: &str) -> Option<Codec> {
        Some(match name {
            "br" => Codec::Brotli,
            "bz2" => Codec::Bzip2,
            "snappy" => Codec::Snappy,
            _ => return None,
        })
    }

    /// The bytes of a shard, `most` as the index says.
    ///
    /// # Errors
    /// `Corrupt` when the stream is damaged, or comes to more or fewer bytes.
    pub(super) fn expand(self, object: &dyn Object, most: u64) -> Result<Vec<u8>> {
        let corrupt = |what: String| {
            Error::corrupt(what).at(object.name()).hint("the copy looks unfinished or damaged")
        };
        let mut scratch = Vec::new();
        let stored = object.read(0, usize::try_from(object.size()).unwrap_or(usize::MAX), &mut scratch)?;
        let expanded = match self {
            Codec::Brotli => read(brotli_decompressor::Decompressor::new(stored, 4096), most),
            #[cfg(feature = "bzip2")]
            Codec::Bzip2 => read(bzip2::read::MultiBzDecoder::new(stored), most),
            #[cfg(not(feature = "bzip2"))]
            Codec::Bzip2 => return Err(Error::built_without("bzip2").at(object.name())),
            Codec::Snappy => match snap::raw::decompress_len(stored).map(|found| found as u64) {
                Ok(found) if found > most || found > SNAPPY_MOST * object.size() => {
                    return Err(corrupt(format!(
                        "a stream that says it is {found} bytes, the index says {most}"
                    )));
                }
                _ => snap::raw::Decoder::new().decompress_vec(stored).map_err(io::Error::other),
            },
        };
        let expanded =
            expanded.map_err(|e| corrupt("the compressed shard is damaged".to_string()).caused_by(e))?;
        if expanded.len() as u64 == most {
            Ok(expanded)
        } else {
            Err(corrupt(format!("{} bytes or more, expanded; the index says {most}", expanded.len())))
        }
    }
}

// One byte more than there may be, so that too many are seen.
fn read(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut expanded = Vec::new();
    stream.take(most.saturating_add(1)).read_to_end(&mut expanded).map(|_| expanded)
}
