//! A file read once from its beginning to its end, a part at a time, and hashed on the way.

use windrow_core::store::Object;
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are read at a time.
const PART: usize = 256 << 10;

/// An object as a stream: what is ahead, and how far it was read.
pub(crate) struct Parts<'o> {
    object: &'o dyn Object,
    part: Vec<u8>,
    /// What of the part was consumed, and where it begins.
    at: usize,
    start: u64,
    hash: Xxh3,
}

impl<'o> Parts<'o> {
    pub(crate) fn new(object: &'o dyn Object) -> Self {
        Parts { object, part: Vec::new(), at: 0, start: 0, hash: Xxh3::new() }
    }

    pub(crate) fn object(&self) -> &'o dyn Object {
        self.object
    }

    /// Bytes that come next; none at the end of the file.
    ///
    /// # Errors
    /// What reading says.
    pub(crate) fn ahead(&mut self) -> Result<&[u8]> {
        if self.at == self.part.len() {
            self.start += self.at as u64;
            let size = (self.object.size() - self.start).min(PART as u64) as usize;
            self.part.resize(size, 0);
            self.at = 0;
            self.object.read_into(self.start, &mut self.part)?;
            self.hash.update(&self.part);
        }
        Ok(&self.part[self.at..])
    }

    /// Moves on by `size` of the bytes ahead.
    pub(crate) fn consume(&mut self, size: usize) {
        self.at = (self.at + size).min(self.part.len());
    }

    /// How many bytes were consumed.
    pub(crate) fn place(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Of all bytes, where all were read.
    pub(crate) fn hash(&self) -> u64 {
        self.hash.digest()
    }

    /// Consumes bytes up to and with the first one of `ends`, which is given back, and puts those before it into `out`.
    /// `None` where the file ends first.
    ///
    /// # Errors
    /// `Corrupt` when they are more than `most`; what reading says.
    pub(crate) fn until(&mut self, ends: [u8; 3], most: usize, out: &mut Vec<u8>) -> Result<Option<u8>> {
        out.clear();
        let start = self.place();
        loop {
            let ahead = self.ahead()?;
            if ahead.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr3(ends[0], ends[1], ends[2], ahead);
            let taken = &ahead[..end.unwrap_or(ahead.len())];
            if out.len() + taken.len() > most {
                return Err(Error::corrupt(format!("a value of more than {most} bytes"))
                    .at(self.object.name())
                    .byte(start));
            }
            out.extend_from_slice(taken);
            let (found, size) = (end.map(|end| ahead[end]), taken.len() + usize::from(end.is_some()));
            self.consume(size);
            if found.is_some() {
                return Ok(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::store::{Memory, Store};

    use super::*;

    #[test]
    fn parts_join_to_the_whole() {
        let text: Vec<u8> = (0..3 * PART + 7).map(|i| if i % 1000 == 999 { b'\n' } else { b'a' }).collect();
        let object = Memory::new().with("x", text.clone()).open("x").unwrap();
        let mut parts = Parts::new(object.as_ref());
        let (mut out, mut joined) = (Vec::new(), Vec::new());
        while let Some(end) = parts.until([b'\n'; 3], 1000, &mut out).unwrap() {
            joined.extend_from_slice(&out);
            joined.push(end);
        }
        joined.extend_from_slice(&out);
        assert!(joined == text && parts.place() == text.len() as u64);
        assert_eq!(parts.hash(), xxhash_rust::xxh3::xxh3_64(&text));
        let error = Parts::new(object.as_ref()).until([b'x'; 3], 10, &mut out).unwrap_err();
        assert_eq!(error.place().byte, Some(0));
    }
}
