//! Checksums of pages: the CRC-32 of what a page holds as it is stored, which a writer may have put into its header.

use std::ops::Range;

use windrow_core::Result;
use windrow_core::store::Object;

/// A header is not larger: it may hold the least and the greatest value of a page.
const MOST_HEADER: u64 = 1 << 20;
/// Bytes that are read first.
const HEADER: u64 = 512;

/// A page that is not what its header says.
pub(crate) struct BadPage {
    pub(crate) byte: u64,
    pub(crate) said: u32,
    pub(crate) found: u32,
}

/// Compares the pages in these bytes that have a checksum, and reports those that differ; whether all have one. What cannot be
/// understood has none: decoding it says why.
///
/// # Errors
/// What reading says, or `report`.
pub(crate) fn compare(
    object: &dyn Object,
    chunk: Range<u64>,
    report: &mut dyn FnMut(Option<BadPage>) -> Result<()>,
) -> Result<bool> {
    let (mut at, mut all, mut scratch) = (chunk.start, true, Vec::new());
    while at < chunk.end {
        let Some(header) = header_at(object, at, chunk.end)? else { return Ok(false) };
        let start = at + header.size;
        let Some(end) = start.checked_add(header.page).filter(|end| *end <= chunk.end) else {
            return Ok(false);
        };
        match header.crc {
            None => all = false,
            Some(said) => {
                // Within the file: the chunk is.
                let found = crc32fast::hash(object.read(start, (end - start) as usize, &mut scratch)?);
                report((found != said).then_some(BadPage { byte: start, said, found }))?;
            }
        }
        at = end;
    }
    Ok(all)
}

fn header_at(object: &dyn Object, at: u64, end: u64) -> Result<Option<Header>> {
    let mut scratch = Vec::new();
    for size in [HEADER, MOST_HEADER] {
        let bytes = object.read(at, size.min(end - at) as usize, &mut scratch)?;
        if let Some(header) = (Compact { bytes, at: 0 }).header() {
            return Ok(Some(header));
        }
    }
    Ok(None)
}

struct Header {
    /// Its own bytes.
    size: u64,
    /// Bytes of the page behind it.
    page: u64,
    crc: Option<u32>,
}

/// Thrift's compact protocol, as far as headers of pages need it. `None` where the bytes end, or are something else.
struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Structs in structs, at most.
const DEPTH: u32 = 16;

impl Compact<'_> {
    // The fields of a header are numbered: 3 is the size of the page, 4 its checksum, both i32.
    fn header(&mut self) -> Option<Header> {
        const I32: u8 = 5;
        let (mut field, mut page, mut crc) = (0i64, None, None);
        while let Some(kind) = self.field(&mut field)? {
            match (field, kind) {
                (3, I32) => page = Some(u64::try_from(self.signed()?).ok()?),
                (4, I32) => crc = Some(i32::try_from(self.signed()?).ok()?.cast_unsigned()),
                _ => self.skip(kind, DEPTH)?,
            }
        }
        Some(Header { size: self.at as u64, page: page?, crc })
    }

    // The type of the next field, whose number is counted on or given; `None` at the end of a struct.
    fn field(&mut self, number: &mut i64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        let kind = byte & 15;
        if kind == 0 {
            return Some(None);
        }
        *number = match byte >> 4 {
            0 => self.signed()?,
            ahead => number.checked_add(i64::from(ahead))?,
        };
        Some(Some(kind))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // The type is the value.
            1 | 2 => Some(()),
            3 => self.byte().map(drop),
            4..=6 => self.unsigned().map(drop),
            7 => self.pass(8),
            8 => {
                let size = self.unsigned()?;
                self.pass(size)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let count = match byte >> 4 {
                    15 => self.unsigned()?,
                    count => u64::from(count),
                };
                (0..count).try_for_each(|_| match byte & 15 {
                    1 | 2 => self.byte().map(drop),
                    kind => self.skip(kind, depth),
                })
            }
            12 => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth)?;
                }
                Some(())
            }
            // No header has a map.
            _ => None,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn pass(&mut self, size: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(size).ok()?).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }
}
