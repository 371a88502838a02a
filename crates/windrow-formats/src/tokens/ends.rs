//! Where the documents of a file end: found once, kept in the cache, read where they lie.
//!
//! The table: 6 bytes per document, the number of IDs up to its end; then 32 bytes that say what it is. All numbers are
//! little-endian. It is only ever read by the version that wrote it; a copy that was damaged is an error, never a wrong
//! place. It is in the cache and not beside the data, because data is often read-only and shared, and because
//! the same data may be cut at another id.

use std::io::Write;
use std::sync::Arc;

use windrow_core::store::{Memory, Object, Store, cached};
use windrow_core::{DType, Error, Kind, Result};

use super::scan::{Id, scan};

/// Part of the cache file's name: a new number makes every table be made again.
const VERSION: &str = "documents 1";
const MAGIC: [u8; 8] = *b"wr docs1";
const FOOTER: usize = 32;
/// Bytes of a document's end: enough for 281 million million IDs.
const WIDTH: usize = 6;
/// Files up to this size are looked through each time.
const SHORT: u64 = 1 << 20;

/// The ends of a file's documents.
pub(super) struct Ends {
    object: Arc<dyn Object>,
    documents: u64,
    /// Ids in the file.
    ids: u64,
    /// Length of every document, where all are equal.
    pub(super) uniform: Option<u64>,
}

impl Ends {
    /// Of a file of whole IDs, each document ending with `eos`: looked for now, or taken from the cache.
    ///
    /// # Errors
    /// `Config` when `eos` does not fit the dtype; what reading says.
    pub(super) fn of(object: &dyn Object, dtype: DType, eos: i64) -> Result<Ends> {
        let id = Id::new(dtype, eos)?;
        let ids = object.size() / dtype.size() as u64;
        if ids >> (8 * WIDTH) != 0 {
            return Err(Error::unsupported(format!("a file of {ids} ids")).at(object.name()));
        }
        if object.size() > SHORT {
            let make = |draft: &mut windrow_core::store::Draft| {
                log::info!("looking for the ends of documents in {} once, into the cache", object.name());
                write(object, id, ids, draft)
            };
            match cached(object, "ends of documents", &format!("{VERSION} {dtype} {eos}"), make) {
                Ok(made) => return Ends::open(made, ids),
                Err(e) if e.kind() == Kind::Corrupt => return Err(e),
                Err(e) => windrow_core::warn!(
                    "the ends of documents of {} are held in memory, as the cache cannot keep them: {e:#}",
                    object.name()
                ),
            }
        }
        let mut bytes = Vec::new();
        write(object, id, ids, &mut bytes)?;
        Ends::open(Memory::new().with(object.name(), bytes).open(object.name())?, ids)
    }

    fn open(object: Arc<dyn Object>, ids: u64) -> Result<Ends> {
        let mut scratch = Vec::new();
        let footer = object.size().checked_sub(FOOTER as u64).ok_or_else(|| damaged(object.as_ref()))?;
        let words: Vec<u64> = object
            .read(footer, FOOTER, &mut scratch)?
            .as_chunks::<8>()
            .0
            .iter()
            .map(|w| u64::from_le_bytes(*w))
            .collect();
        let &[magic, documents, in_file, uniform] = words.as_slice() else {
            return Err(damaged(object.as_ref()));
        };
        let is_whole = magic == u64::from_le_bytes(MAGIC)
            && in_file == ids
            && documents.checked_mul(WIDTH as u64) == Some(footer)
            && (uniform == 0 || documents.checked_mul(uniform) == Some(ids));
        if is_whole {
            Ok(Ends { documents, ids, uniform: (uniform != 0).then_some(uniform), object: object.clone() })
        } else {
            Err(damaged(object.as_ref()))
        }
    }

    /// Documents in the file.
    pub(super) fn count(&self) -> u64 {
        self.documents
    }

    /// A document's first id, and how many it has. `document` is below [`Ends::count`].
    ///
    /// # Errors
    /// `Corrupt` when the cache was damaged.
    pub(super) fn place(&self, document: u64) -> Result<(u64, u64)> {
        if let Some(length) = self.uniform {
            return Ok((document * length, length));
        }
        let mut scratch = Vec::new();
        let has_one_before = usize::from(document > 0);
        let first = (document - has_one_before as u64) * WIDTH as u64;
        let bytes = self.object.read(first, WIDTH * (1 + has_one_before), &mut scratch)?;
        let (start, end) = match bytes.as_chunks::<WIDTH>().0 {
            [end] => (0, number(end)),
            [start, end] => (number(start), number(end)),
            _ => return Err(damaged(self.object.as_ref())),
        };
        if start < end && end <= self.ids {
            Ok((start, end - start))
        } else {
            Err(damaged(self.object.as_ref()))
        }
    }

    /// The lengths of consecutive documents, all of this file.
    ///
    /// # Errors
    /// As [`Ends::place`].
    pub(super) fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        if let Some(length) = self.uniform {
            out.fill(length);
            return Ok(());
        }
        let Some(lengths) = out.first_mut() else { return Ok(()) };
        let (mut start, length) = self.place(first)?;
        (*lengths, start) = (length, start + length);
        let mut scratch = Vec::new();
        let rest = &mut out[1..];
        let bytes = self.object.read((first + 1) * WIDTH as u64, rest.len() * WIDTH, &mut scratch)?;
        let mut is_whole = true;
        for (length, end) in rest.iter_mut().zip(bytes.as_chunks::<WIDTH>().0) {
            let end = number(end);
            is_whole &= start < end;
            *length = end.wrapping_sub(start);
            start = end;
        }
        if is_whole && start <= self.ids { Ok(()) } else { Err(damaged(self.object.as_ref())) }
    }
}

fn number(bytes: &[u8; WIDTH]) -> u64 {
    let mut word = [0; 8];
    word[..WIDTH].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn damaged(object: &dyn Object) -> Error {
    Error::corrupt("a file of the cache is damaged").at(object.name()).hint("delete it: it is made again")
}

/// Writes where the documents of `object` end. An ID after the last end is one more document.
fn write(object: &dyn Object, id: Id, ids: u64, out: &mut dyn Write) -> Result<()> {
    let (mut documents, mut last, mut uniform) = (0u64, 0u64, None);
    let mut bytes = Vec::new();
    let mut put = |ends: &mut dyn Iterator<Item = u64>| {
        bytes.clear();
        for end in ends {
            let length = end - last;
            // 0 says that lengths differ: no document is empty, its EOS token is part of it.
            uniform = Some(if uniform.is_none_or(|all| all == length) { length } else { 0 });
            bytes.extend_from_slice(&end.to_le_bytes()[..WIDTH]);
            (documents, last) = (documents + 1, end);
        }
        out.write_all(&bytes).map_err(failed)?;
        Ok(last)
    };
    scan(object, id, &mut |base, found| {
        put(&mut found.iter().map(|at| base + u64::from(*at) + 1)).map(|_| ())
    })?;
    if put(&mut std::iter::empty())? < ids {
        put(&mut std::iter::once(ids))?;
    }
    let words = [u64::from_le_bytes(MAGIC), documents, ids, uniform.unwrap_or(0)];
    words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes())).map_err(failed)
}

fn failed(cause: std::io::Error) -> Error {
    match cause.downcast::<Error>() {
        Ok(error) => error,
        Err(cause) => Error::new(Kind::Io, "cannot keep the ends of documents").caused_by(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(ids: &[u8]) -> Ends {
        let object = Memory::new().with("x", ids).open("x").unwrap();
        Ends::of(object.as_ref(), DType::U8, 0).unwrap()
    }

    fn lengths(ids: &[u8]) -> Vec<u64> {
        let ends = ends(ids);
        let all: Vec<u64> = (0..ends.count()).map(|d| ends.place(d).unwrap().1).collect();
        for first in 0..all.len() {
            let mut some = vec![0; all.len() - first];
            ends.lengths(first as u64, &mut some).unwrap();
            assert_eq!(some, all[first..]);
        }
        all
    }

    #[test]
    fn an_end_id_belongs_to_the_document_before_it() {
        assert_eq!(lengths(&[5, 6, 0, 7, 0]), [3, 2]);
        assert_eq!(lengths(&[5, 6, 0, 7]), [3, 1]);
        assert_eq!(lengths(&[5, 6]), [2]);
        assert_eq!(lengths(&[0, 0, 1, 0, 0]), [1, 1, 2, 1]);
    }

    #[test]
    fn documents_of_one_length_are_known_as_such() {
        assert_eq!(ends(&[1, 0, 1, 0, 1, 2]).uniform, Some(2));
        assert_eq!(ends(&[1, 0, 1, 0, 1]).uniform, None);
        assert_eq!(ends(&[1]).uniform, Some(1));
    }

    #[test]
    fn a_damaged_table_is_an_error() {
        let object = Memory::new().with("x", [5, 0, 6, 6, 0]).open("x").unwrap();
        let mut whole = Vec::new();
        write(object.as_ref(), Id::new(DType::U8, 0).unwrap(), 5, &mut whole).unwrap();
        let read = |bytes: Vec<u8>| {
            let ends = Ends::open(Memory::new().with("t", bytes).open("t")?, 5)?;
            let mut all = vec![0; 2];
            ends.lengths(0, &mut all)?;
            (0..2).map(|d| ends.place(d)).collect::<Result<Vec<_>>>()
        };
        assert_eq!(read(whole.clone()).unwrap(), [(0, 2), (2, 3)]);
        for (at, value) in [(0, 9), (5, 1), (6, 1), (11, 1), (12, 0), (20, 3), (28, 4), (36, 2)] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            assert_eq!(read(bytes).unwrap_err().kind(), Kind::Corrupt, "byte {at}");
        }
        for size in 0..whole.len() {
            assert_eq!(read(whole[..size].to_vec()).unwrap_err().kind(), Kind::Corrupt, "{size} bytes");
        }
    }
}
