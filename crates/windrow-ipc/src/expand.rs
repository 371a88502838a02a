//! Compressed buffers, expanded once: all of them one after the other in a file of the cache, from which they are read in
//! place like those of a file without compression.

use std::io::{self, Read, Write};
use std::sync::Arc;

use windrow_core::store::{Object, cached};
use windrow_core::{Error, Kind, Result};

use crate::batch::{Batch, Codec, Place};

/// Part of the cache file's name: a new number makes everything be expanded again.
const VERSION: &str = "arrow buffers 1";
/// Where a buffer may begin.
const ALIGN: u64 = 64;
/// Size of the number before a compressed buffer.
const PREFIX: u64 = 8;

/// A file with the buffers of these batches as they are, and the batches with the places in it.
///
/// # Errors
/// `Corrupt` for a buffer that does not expand to what it says; `Config` where all would take more than `limit` bytes.
pub(crate) fn expanded(object: &dyn Object, batches: Vec<&mut Batch>, limit: u64) -> Result<Arc<dyn Object>> {
    let mut work: Vec<(Place, Option<Codec>, u64)> = Vec::new();
    let mut end = 0u64;
    for batch in batches {
        let codec = batch.codec;
        for place in batch.slots.iter_mut().chain(batch.views.iter_mut().flat_map(|view| view.iter_mut())) {
            let (stored, codec, size) = claimed(object, *place, codec)?;
            *place = Place { start: end, size };
            end = size.checked_next_multiple_of(ALIGN).and_then(|size| end.checked_add(size)).ok_or_else(
                || {
                    Error::corrupt("a buffer of more bytes than 64 bits count")
                        .at(object.name())
                        .byte(stored.start)
                },
            )?;
            work.push((stored, codec, size));
        }
    }
    if end > limit {
        return Err(Error::config(format!(
            "buffers of {} bytes that expand to {end}, more than the {limit} bytes of cache that they may take",
            object.size()
        ))
        .at(object.name())
        .field("cache_limit")
        .hint("allow more with cache_limit, or write the file without compression"));
    }
    let made = cached(object, "expanded", VERSION, |draft| {
        log(object, end);
        for (stored, codec, size) in &work {
            expand(object, *stored, *codec, *size, draft).map_err(|e| e.or_at(object.name()))?;
            let padding = size.next_multiple_of(ALIGN) - size;
            draft.write_all(&[0; ALIGN as usize][..padding as usize]).map_err(full)?;
        }
        Ok(())
    })?;
    if made.size() == end {
        Ok(made)
    } else {
        Err(Error::corrupt("a file of the cache is damaged")
            .at(made.name())
            .hint("delete it: it is made again"))
    }
}

// What a buffer says that it expands to, where its bytes are, and whether they are compressed at all.
fn claimed(object: &dyn Object, place: Place, codec: Option<Codec>) -> Result<(Place, Option<Codec>, u64)> {
    if codec.is_none() || place.size == 0 {
        return Ok((place, None, place.size));
    }
    let wrong = |what: String| Error::corrupt(what).at(object.name()).byte(place.start);
    let Some(size) = place.size.checked_sub(PREFIX) else {
        return Err(wrong(format!("a compressed buffer of {} bytes", place.size)));
    };
    let mut word = [0; PREFIX as usize];
    object.read_into(place.start, &mut word)?;
    let inner = Place { start: place.start + PREFIX, size };
    match i64::from_le_bytes(word) {
        -1 => Ok((inner, None, size)),
        claimed => match u64::try_from(claimed) {
            Ok(claimed) => Ok((inner, codec, claimed)),
            Err(_) => Err(wrong(format!("a buffer that expands to {claimed} bytes"))),
        },
    }
}

fn expand(
    object: &dyn Object,
    place: Place,
    codec: Option<Codec>,
    size: u64,
    out: &mut dyn Write,
) -> Result<()> {
    const AT_ONCE: u64 = 1 << 20;
    let wrong =
        |what: String| Error::corrupt(what).byte(place.start).hint("the file is damaged: copy it again");
    let mut scratch = Vec::new();
    let Some(codec) = codec else {
        let mut at = 0;
        while at < size {
            let part = AT_ONCE.min(size - at);
            out.write_all(object.read(place.start + at, part as usize, &mut scratch)?).map_err(full)?;
            at += part;
        }
        return Ok(());
    };
    let bytes =
        usize::try_from(place.size).map_err(|_| wrong(format!("a buffer of {} bytes", place.size)))?;
    let stored = object.read(place.start, bytes, &mut scratch)?;
    let broken = |e: io::Error| wrong("a compressed buffer that is damaged".to_string()).caused_by(e);
    let mut stream: Box<dyn Read + '_> = match codec {
        Codec::Zstd => Box::new(zstd::stream::read::Decoder::new(stored).map_err(broken)?),
        Codec::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(stored)),
    };
    let mut part = vec![0; AT_ONCE.min(size.max(1)) as usize];
    let mut done = 0u64;
    loop {
        let read = match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(broken(e)),
        };
        done += read as u64;
        if done > size {
            break;
        }
        out.write_all(&part[..read]).map_err(full)?;
    }
    if done == size {
        Ok(())
    } else {
        Err(wrong(format!("a buffer that says it expands to {size} bytes, found {done}")))
    }
}

fn full(cause: io::Error) -> Error {
    match cause.downcast::<Error>() {
        Ok(error) => error,
        Err(cause) => Error::new(Kind::Io, "cannot keep expanded buffers").caused_by(cause),
    }
}

fn log(object: &dyn Object, size: u64) {
    log::info!("expanding the buffers of {} once, to {size} bytes of the cache", object.name());
}
