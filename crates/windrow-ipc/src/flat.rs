//! Flatbuffer tables, as far as Arrow's messages need them. Every place is checked against the bytes of the message.
//!
//! Source: flatbuffers.dev/internals.

use windrow_core::{Error, Result};

/// A table in the bytes of a message.
#[derive(Clone, Copy)]
pub(crate) struct Flat<'a> {
    bytes: &'a [u8],
    /// The byte of the file at which the message begins, for errors.
    base: u64,
    at: usize,
    vtable: usize,
    fields: usize,
    size: usize,
}

impl<'a> Flat<'a> {
    /// The table that a message begins with.
    ///
    /// # Errors
    /// `Corrupt` with the byte in the file, as of all functions here.
    pub(crate) fn root(bytes: &'a [u8], base: u64) -> Result<Flat<'a>> {
        let place = word(bytes, 0).ok_or_else(|| wrong("a message without a table", base, 0))?;
        Flat::at(bytes, base, place as usize)
    }

    fn at(bytes: &'a [u8], base: u64, at: usize) -> Result<Flat<'a>> {
        let bad = || wrong("a table that leaves its message", base, at);
        let back = word(bytes, at).ok_or_else(bad)?.cast_signed();
        let vtable = usize::try_from(at as i64 - i64::from(back)).map_err(|_| bad())?;
        let (sizes, size) = (half(bytes, vtable), half(bytes, vtable + 2));
        let (vsize, size) = (sizes.ok_or_else(bad)? as usize, size.ok_or_else(bad)? as usize);
        let fits = |from: usize, size: usize| from.checked_add(size).is_some_and(|end| end <= bytes.len());
        if vsize >= 4 && vsize.is_multiple_of(2) && fits(vtable, vsize) && size >= 4 && fits(at, size) {
            Ok(Flat { bytes, base, at, vtable, fields: (vsize - 4) / 2, size })
        } else {
            Err(bad())
        }
    }

    // Where a field of this width is; `None` where it has its default.
    fn place(&self, field: usize, width: usize) -> Result<Option<usize>> {
        if field >= self.fields {
            return Ok(None);
        }
        let offset = half(self.bytes, self.vtable + 4 + 2 * field).unwrap_or(0) as usize;
        match offset {
            0 => Ok(None),
            offset if offset >= 4 && offset + width <= self.size => Ok(Some(self.at + offset)),
            _ => Err(wrong("a field outside its table", self.base, self.at)),
        }
    }

    fn number<const N: usize>(&self, field: usize) -> Result<Option<[u8; N]>> {
        let place = self.place(field, N)?;
        Ok(place.and_then(|at| self.bytes.get(at..at + N)?.first_chunk().copied()))
    }

    pub(crate) fn u8(&self, field: usize) -> Result<u8> {
        Ok(self.number::<1>(field)?.map_or(0, |[byte]| byte))
    }

    pub(crate) fn i16(&self, field: usize, default: i16) -> Result<i16> {
        Ok(self.number(field)?.map_or(default, i16::from_le_bytes))
    }

    pub(crate) fn i32(&self, field: usize, default: i32) -> Result<i32> {
        Ok(self.number(field)?.map_or(default, i32::from_le_bytes))
    }

    pub(crate) fn i64(&self, field: usize) -> Result<i64> {
        Ok(self.number(field)?.map_or(0, i64::from_le_bytes))
    }

    pub(crate) fn has(&self, field: usize) -> Result<bool> {
        Ok(self.place(field, 4)?.is_some())
    }

    // What the field at `at` points to.
    fn follow(&self, at: usize) -> Result<usize> {
        let to = word(self.bytes, at).and_then(|word| at.checked_add(word as usize));
        to.filter(|to| *to < self.bytes.len())
            .ok_or_else(|| wrong("a place outside its message", self.base, at))
    }

    pub(crate) fn table(&self, field: usize) -> Result<Option<Flat<'a>>> {
        match self.place(field, 4)? {
            None => Ok(None),
            Some(at) => Flat::at(self.bytes, self.base, self.follow(at)?).map(Some),
        }
    }

    // The number of elements of a vector and its first byte; all of them lie in the message.
    fn vector(&self, field: usize, width: usize) -> Result<(usize, usize)> {
        let Some(at) = self.place(field, 4)? else { return Ok((0, 0)) };
        let to = self.follow(at)?;
        let bad = || wrong("a list longer than its message", self.base, to);
        let count = word(self.bytes, to).ok_or_else(bad)? as usize;
        let end = count.checked_mul(width).and_then(|size| size.checked_add(to + 4));
        if end.is_some_and(|end| end <= self.bytes.len()) { Ok((count, to + 4)) } else { Err(bad()) }
    }

    pub(crate) fn text(&self, field: usize) -> Result<&'a str> {
        let (count, at) = self.vector(field, 1)?;
        std::str::from_utf8(&self.bytes[at..at + count])
            .map_err(|_| wrong("a name that is not UTF-8", self.base, at))
    }

    pub(crate) fn tables(&self, field: usize) -> Result<Vec<Flat<'a>>> {
        let (count, at) = self.vector(field, 4)?;
        (0..count).map(|i| Flat::at(self.bytes, self.base, self.follow(at + 4 * i)?)).collect()
    }

    /// The structs of a vector, each of `N` words of 64 bits.
    pub(crate) fn words<const N: usize>(&self, field: usize) -> Result<Vec<[i64; N]>> {
        let (count, at) = self.vector(field, 8 * N)?;
        let bytes = &self.bytes[at..at + 8 * N * count];
        Ok(bytes
            .chunks_exact(8 * N)
            .map(|one| {
                let mut words = [0; N];
                for (word, bytes) in words.iter_mut().zip(one.chunks_exact(8)) {
                    *word = bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
                }
                words
            })
            .collect())
    }

    /// The error that this is wrong, with its byte in the file.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> Error {
        wrong(what, self.base, self.at)
    }
}

fn wrong(what: impl Into<String>, base: u64, at: usize) -> Error {
    Error::corrupt(what.into())
        .byte(base.saturating_add(at as u64))
        .hint("the file is damaged: copy it again")
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}
