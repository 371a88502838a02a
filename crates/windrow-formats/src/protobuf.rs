//! Messages of Protocol Buffers, field by field, as the documentation of the wire format describes them.

use windrow_core::{Error, Result};

/// A value of the wire format.
pub(crate) enum Wire<'a> {
    Number(u64),
    Eight,
    /// Bytes, and where they begin in the record.
    Bytes(&'a [u8], u64),
    Four([u8; 4]),
}

/// The fields of a message, by their numbers.
pub(crate) struct Fields<'a> {
    what: &'static str,
    bytes: &'a [u8],
    at: usize,
    /// Where the message begins in the record.
    base: u64,
}

impl<'a> Fields<'a> {
    /// Those of a message that begins at byte `base` of its record; errors call the record `what`.
    pub(crate) fn of(what: &'static str, bytes: &'a [u8], base: u64) -> Fields<'a> {
        Fields { what, bytes, at: 0, base }
    }

    /// Whether nothing is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// How many bytes were taken.
    pub(crate) fn taken(&self) -> usize {
        self.at
    }

    fn wrong(&self, what: &str) -> Error {
        Error::corrupt(format!("expected {}, found {what}", self.what)).byte(self.base + self.at as u64)
    }

    /// A number of up to 64 bits, seven a byte.
    ///
    /// # Errors
    /// `Corrupt` when it is cut short or larger.
    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut number = 0u64;
        for shift in (0..70).step_by(7) {
            let Some(byte) = self.bytes.get(self.at) else {
                return Err(self.wrong("a number that is cut short"));
            };
            let bits = u64::from(byte & 0x7f);
            // Ten bytes hold 64 bits; of the last one only the lowest counts.
            if shift == 63 && bits > 1 {
                return Err(self.wrong("a number of more than 64 bits"));
            }
            number |= bits << shift;
            self.at += 1;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.wrong("a number of more than 64 bits"))
    }

    fn take(&mut self, size: u64) -> Result<&'a [u8]> {
        let end = usize::try_from(size).ok().and_then(|size| self.at.checked_add(size));
        let Some(found) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return Err(self.wrong(&format!("a field of {size} bytes that is cut short")));
        };
        self.at += found.len();
        Ok(found)
    }

    fn field(&mut self) -> Result<(u64, Wire<'a>)> {
        let tag = self.varint()?;
        if tag >> 3 == 0 {
            return Err(self.wrong("a field with the number 0"));
        }
        let value = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => {
                self.take(8)?;
                Wire::Eight
            }
            2 => {
                let size = self.varint()?;
                let at = self.base + self.at as u64;
                Wire::Bytes(self.take(size)?, at)
            }
            5 => {
                let bytes = self.take(4)?;
                Wire::Four(bytes.first_chunk().copied().unwrap_or_default())
            }
            other => return Err(self.wrong(&format!("the wire type {other}"))),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.bytes.len();
        }
        Some(field)
    }
}

/// Appends a number, seven bits a byte.
pub(crate) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a field of a number.
pub(crate) fn put_number(field: u64, number: u64, out: &mut Vec<u8>) {
    put_varint(field << 3, out);
    put_varint(number, out);
}

/// Appends a field of bytes.
pub(crate) fn put_bytes(field: u64, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(field << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
