//! Chunks of Riegeli: a header, and data with the hash that the header names.

use std::ops::Range;

use windrow_core::store::Object;
use windrow_core::{Error, Kind, Result};

use super::blocks::{end_of, hash, read, word, wrong};
use super::simple::Parts;

/// Bytes of a header: its hash, size and hash of the data, kind and number of records, bytes of the records.
pub(super) const HEADER: u64 = 40;
/// Records one after the other.
pub(super) const SIMPLE: u8 = b'r';
/// Records by the fields of their messages.
const TRANSPOSED: u8 = b't';

/// A chunk whose header was read and compared with its hash.
pub(super) struct Chunk<'a> {
    object: &'a dyn Object,
    start: u64,
    kind: u8,
    /// Records in it, and the bytes of them all: declared values, until the data is read.
    pub(super) records: u64,
    pub(super) decoded: u64,
    /// Bytes of the data, without the headers of blocks.
    size: usize,
    hash: u64,
    /// Where the data begins.
    data: u64,
    /// Its first byte says that nothing is compressed.
    is_plain: bool,
}

impl<'a> Chunk<'a> {
    /// Reads the header of the chunk in these bytes of a file.
    ///
    /// # Errors
    /// `Corrupt` when its hash is another one, or its data would not end there.
    pub(super) fn at(object: &'a dyn Object, place: Range<u64>) -> Result<Chunk<'a>> {
        let mut scratch = Vec::new();
        let start = place.start;
        let Some(data) = end_of(start, HEADER).filter(|data| *data <= place.end) else {
            return Err(wrong(object, "expected a chunk, found too few bytes".to_string(), start));
        };
        // The first byte of the data comes along, where there is one.
        let with_data = end_of(start, HEADER + 1).is_some_and(|end| end <= place.end);
        let bytes = read(object, start, HEADER as usize + usize::from(with_data), &mut scratch)?;
        let (header, codec) = bytes.split_at(HEADER as usize);
        if header.get(8..).is_none_or(|rest| hash(rest) != word(header, 0)) {
            let what = "the header of a chunk has another hash than was written";
            return Err(wrong(object, what.to_string(), start));
        }
        let size = word(header, 8);
        let ends_there =
            HEADER.checked_add(size).and_then(|size| end_of(start, size)).is_some_and(|end| end <= place.end);
        let Some(size) = usize::try_from(size).ok().filter(|_| ends_there) else {
            let room = place.end - start;
            return Err(wrong(object, format!("a chunk of {size} bytes, of which {room} are there"), start));
        };
        let kind = word(header, 24);
        Ok(Chunk {
            object,
            start,
            // The lowest byte, and the 56 bits above it.
            kind: kind.to_le_bytes()[0],
            records: kind >> 8,
            decoded: word(header, 32),
            size,
            hash: word(header, 16),
            data,
            is_plain: codec == [0],
        })
    }

    /// Whether its records are not compressed, as far as the first byte tells.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether its records are stored by the fields of their messages.
    pub(super) fn is_transposed(&self) -> bool {
        self.kind == TRANSPOSED
    }

    /// That something about it is wrong.
    pub(super) fn wrong(&self, what: String) -> Error {
        wrong(self.object, what, self.start)
    }

    fn must_be_simple(&self) -> Result<()> {
        match self.kind {
            SIMPLE => Ok(()),
            TRANSPOSED => Err(self
                .wrong("a transposed chunk, which is not read".to_string())
                .hint("write the file again without `transpose` in the options of ArrayRecordWriter")),
            other => {
                Err(self.wrong(format!("a chunk of the kind {:?}, expected records", char::from(other))))
            }
        }
    }

    /// Its records as they are stored, compared with their hash.
    ///
    /// # Errors
    /// `Corrupt` for another hash, and for a chunk that holds no records; what reading says.
    pub(super) fn parts<'s>(&self, scratch: &'s mut Vec<u8>) -> Result<Parts<'s>>
    where
        'a: 's,
    {
        self.must_be_simple()?;
        let data = read(self.object, self.data, self.size, scratch)?;
        if hash(data) != self.hash {
            return Err(self.wrong("the data of a chunk has another hash than was written".to_string()));
        }
        Parts::of(data, self.records, self.decoded).map_err(|e| self.placed(e))
    }

    /// The sizes of its records, without reading them. The hash is of all of the data, so it is not compared.
    ///
    /// # Errors
    /// `Corrupt` for sizes that do not sum to the bytes of the chunk.
    pub(super) fn sizes(&self) -> Result<Vec<u64>> {
        /// The codec, and the size of the sizes.
        const MOST_BEFORE: usize = 11;
        self.must_be_simple()?;
        let mut scratch = Vec::new();
        let head = read(self.object, self.data, self.size.min(MOST_BEFORE), &mut scratch)?;
        let size = Parts::size_to_sizes(head, self.size).map_err(|e| self.placed(e))?;
        let data = read(self.object, self.data, size, &mut scratch)?;
        let parts = Parts::of(data, self.records, self.decoded);
        parts.and_then(|parts| parts.sizes()).map_err(|e| self.placed(e))
    }

    /// An error of its data.
    pub(super) fn placed(&self, error: Error) -> Error {
        let error = error.at(self.object.name()).byte(self.start);
        match error.kind() {
            Kind::Corrupt => error.hint("the file is damaged: copy it again"),
            _ => error,
        }
    }
}
