//! The header of an array in numpy's file format: which numbers follow, and that the file holds that many.

use windrow_core::store::Object;
use windrow_core::{DType, Element, Error, Result};

/// How such a file begins.
const MAGIC: &[u8] = b"\x93NUMPY";
/// numpy's own limit is 10,000 characters; nothing but a structured dtype comes near it.
const MOST_HEADER: usize = 64 << 10;
/// What the dimensions of an array without numbers may multiply to, those of 0 left out.
const MOST_SPREAD: u64 = 1 << 40;
/// The bytes in which a header must end.
pub(crate) const MOST_PREFIX: usize = MOST_HEADER + 12;

/// What the header says, checked against the size of what it heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Type and byte order of a number.
    pub element: Element,
    /// First index fastest.
    pub fortran: bool,
    /// The array's shape.
    pub shape: Vec<u64>,
    /// Where the numbers begin.
    pub data_start: u64,
}

impl Header {
    /// The header at the beginning of an object.
    ///
    /// # Errors
    /// As [`Header::of_prefix`].
    pub(crate) fn of(object: &dyn Object) -> Result<Header> {
        let mut scratch = Vec::new();
        let size = object.size().min(MOST_PREFIX as u64) as usize;
        Self::of_prefix(object.read(0, size, &mut scratch)?, object.size(), object.name())
    }

    /// The header in the first bytes (at most [`MOST_PREFIX`]) of `size` bytes called `name`.
    ///
    /// # Errors
    /// `Corrupt` naming the byte where the header is wrong, or when header and size contradict each other;
    /// `Unsupported` for numbers that are not series: objects, structures, complex numbers, text, times.
    pub(crate) fn of_prefix(prefix: &[u8], size: u64, name: &str) -> Result<Header> {
        parse(prefix, size).map_err(|e| e.or_at(name))
    }
}

/// Where the pickle begins in a file whose numbers are Python objects; `None` for all others.
pub(crate) fn objects_start(bytes: &[u8]) -> Option<usize> {
    let (start, length) = match bytes.get(6..12)? {
        [1, 0, a, b, ..] => (10usize, usize::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, 0, a, b, c, d] => (12, usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok()?),
        _ => return None,
    };
    let text = bytes.get(start..start.checked_add(length.min(MOST_HEADER))?)?;
    let is_objects = bytes.starts_with(MAGIC) && memchr::memmem::find(text, b"'|O'").is_some();
    is_objects.then_some(start + length)
}

fn parse(prefix: &[u8], size: u64) -> Result<Header> {
    let cut = |wanted: usize| {
        Error::corrupt(format!("expected a header of {wanted} bytes, found {size} bytes"))
            .byte(prefix.len() as u64)
            .hint("the copy looks unfinished")
    };
    if !prefix.starts_with(&MAGIC[..prefix.len().min(MAGIC.len())]) || prefix.is_empty() {
        return Err(Error::corrupt(format!(
            "expected an array starting {:?}, found {:?}",
            String::from_utf8_lossy(&MAGIC[1..]),
            String::from_utf8_lossy(&prefix[..prefix.len().min(MAGIC.len())])
        ))
        .byte(0)
        .hint("numpy.save writes one"));
    }
    let (Some(version), Some(length)) = (prefix.get(6..8), prefix.get(8..12)) else { return Err(cut(12)) };
    let (start, length) = match version {
        [1, 0] => (10, usize::from(u16::from_le_bytes([length[0], length[1]]))),
        [2 | 3, 0] => {
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
            (12, usize::try_from(length).unwrap_or(usize::MAX))
        }
        other => {
            let message = format!("array file of version {other:?}; known are 1.0, 2.0 and 3.0");
            return Err(Error::unsupported(message).byte(6));
        }
    };
    if length > MOST_HEADER {
        return Err(Error::corrupt(format!("a header of {length} bytes; expected at most {MOST_HEADER}"))
            .byte(8)
            .field("header length"));
    }
    let text = prefix.get(start..start + length).ok_or_else(|| cut(start + length))?;
    let mut header = Literal { text, at: 0 }.header().map_err(|e| {
        let byte = e.place().byte.map_or(start as u64, |at| at + start as u64);
        e.byte(byte)
    })?;
    header.data_start = (start + length) as u64;
    check_size(&header, size)?;
    Ok(header)
}

fn check_size(header: &Header, size: u64) -> Result<()> {
    let Header { shape, element, .. } = header;
    let wrong = |what: String| Error::corrupt(what).field("shape");
    let numbers = shape.iter().try_fold(1u64, |n, dimension| n.checked_mul(*dimension));
    let bytes = numbers.and_then(|n| n.checked_mul(element.size() as u64));
    let there = size - header.data_start;
    match bytes {
        Some(bytes) if bytes == there => {}
        Some(bytes) => {
            let hint = if bytes > there {
                "the copy looks unfinished"
            } else {
                "several arrays in one file are read from an .npz (numpy.savez)"
            };
            return Err(wrong(format!(
                "the header promises {shape:?} numbers of {}, {bytes} bytes; {there} bytes follow it",
                element.dtype
            ))
            .byte(header.data_start)
            .hint(hint));
        }
        None => {
            return Err(wrong(format!(
                "the header promises {shape:?} numbers of {}, more than any file holds; {there} bytes follow it",
                element.dtype
            )));
        }
    }
    // No byte backs the shape of an array that holds nothing: it is believed as far as a real one would go.
    let spread = shape.iter().filter(|n| **n > 0).try_fold(1u64, |n, dimension| n.checked_mul(*dimension));
    let rows = shape.first().copied().unwrap_or(0);
    if numbers == Some(0) && (rows > size || spread.is_none_or(|n| n > MOST_SPREAD)) {
        Err(wrong(format!("the header promises {shape:?} numbers, none, in a file of {size} bytes")))
    } else {
        Ok(())
    }
}

/// A reader of the one Python literal that a header is: a dict of a string, a bool and a tuple of whole numbers.
struct Literal<'a> {
    text: &'a [u8],
    at: usize,
}

impl Literal<'_> {
    fn header(mut self) -> Result<Header> {
        let (mut element, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let start = self.at;
            let key = self.string()?;
            self.expect(b':')?;
            let again = match key.as_str() {
                "descr" => element.replace(self.descr()?).is_some(),
                "fortran_order" => fortran.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.tuple()?).is_some(),
                _ => return Err(self.wrong_at(start, "expected descr, fortran_order or shape")),
            };
            if again {
                return Err(self.wrong_at(start, &format!("expected {key:?} once")));
            }
            if !self.accept(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.wrong_at(self.at, "expected nothing after the dict"));
        }
        let missing =
            |key: &str| Error::corrupt(format!("expected {key:?} in the header, found none")).field(key);
        Ok(Header {
            element: element.ok_or_else(|| missing("descr"))?,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
            data_start: 0,
        })
    }

    fn descr(&mut self) -> Result<Element> {
        self.skip_space();
        let start = self.at;
        if matches!(self.text.get(start), Some(b'[' | b'(')) {
            return Err(Error::unsupported("a structured dtype; a series holds plain numbers")
                .byte(start as u64)
                .field("descr")
                .hint("save its fields as arrays of their own, in an .npz"));
        }
        let name = self.string()?;
        element(&name).map_err(|e| e.byte(start as u64).field("descr"))
    }

    fn boolean(&mut self) -> Result<bool> {
        self.skip_space();
        let rest = &self.text[self.at..];
        for (word, value) in [("True", true), ("False", false)] {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong_at(self.at, "expected True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<u64>> {
        self.expect(b'(')?;
        let mut numbers = Vec::new();
        while !self.accept(b')') {
            // numpy knows no more than 64 dimensions, earlier versions 32.
            if numbers.len() == 64 {
                return Err(self.wrong_at(self.at, "expected at most 64 dimensions"));
            }
            numbers.push(self.number()?);
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(numbers)
    }

    fn number(&mut self) -> Result<u64> {
        self.skip_space();
        let start = self.at;
        let digits = self.text[start..].iter().take_while(|b| b.is_ascii_digit()).count();
        self.at += digits;
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        let Ok(number) = text.parse() else {
            return Err(self.wrong_at(start, "expected a whole number from 0 to 2^64 - 1").field("shape"));
        };
        // Python 2 wrote long numbers so.
        if self.text.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        Ok(number)
    }

    fn string(&mut self) -> Result<String> {
        self.skip_space();
        let start = self.at;
        let quote = match self.text.get(start) {
            Some(quote @ (b'\'' | b'"')) => *quote,
            _ => return Err(self.wrong_at(start, "expected a quoted name")),
        };
        let rest = &self.text[start + 1..];
        match rest.iter().position(|b| *b == quote || *b == b'\\') {
            Some(end) if rest[end] == quote => {
                self.at = start + 1 + end + 1;
                Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
            }
            _ => Err(self.wrong_at(start, "expected a name between quotes, without a backslash")),
        }
    }

    fn skip_space(&mut self) {
        let space = self.text[self.at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.at += space;
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.accept(byte) {
            Ok(())
        } else {
            Err(self.wrong_at(self.at, &format!("expected {:?}", char::from(byte))))
        }
    }

    fn wrong_at(&self, at: usize, expected: &str) -> Error {
        let rest = &self.text[at.min(self.text.len())..];
        let found = match rest {
            [] => "the end of the header".to_string(),
            rest => format!("{:?}", String::from_utf8_lossy(&rest[..rest.len().min(24)])),
        };
        Error::corrupt(format!("{expected}, found {found}")).byte(at as u64).field("header")
    }
}

/// The number that numpy's type string names: `<f4`, `|u1`, `>i8`; without a byte order it is little-endian.
///
/// # Errors
/// `Unsupported` when it is not a bool, integer or float of 1 to 8 bytes.
pub(crate) fn element(descr: &str) -> Result<Element> {
    let (order, name) = match descr.chars().next() {
        Some(order @ ('<' | '>' | '|' | '=')) => (order, &descr[1..]),
        _ => ('|', descr),
    };
    let dtype = match name {
        "b1" | "?" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        _ => return Err(no_number(descr, name)),
    };
    Ok(Element { dtype, big_endian: order == '>' && dtype.size() > 1 })
}

fn no_number(descr: &str, name: &str) -> Error {
    let (what, hint) = match name.chars().next() {
        Some('O') => (
            "an object array: Python objects in a pickle",
            "save rows of one length as a 2-D array, or each row under a name of its own with numpy.savez",
        ),
        Some('c') => ("complex numbers", "save the real and the imaginary part as channels"),
        Some('S' | 'U' | 'a') => ("text", "a series holds numbers"),
        Some('M' | 'm') => ("times", "convert them with .astype(\"int64\")"),
        Some('V') => ("raw bytes", "bfloat16 is saved so: convert it with .astype(\"float32\")"),
        Some('f') => ("floats of this size", "convert them with .astype(\"float64\")"),
        _ => ("no numbers that are known", "convert them with .astype(\"float32\")"),
    };
    Error::unsupported(format!("dtype {descr:?}: {what}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::Kind;

    fn file(text: &str, data: usize) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    fn of(bytes: &[u8]) -> Result<Header> {
        Header::of_prefix(bytes, bytes.len() as u64, "x.npy")
    }

    #[test]
    fn headers_of_numpy_and_of_others_are_read() {
        for (text, data, dtype, big, fortran, shape) in [
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n",
                24,
                DType::F32,
                false,
                false,
                &[2, 3][..],
            ),
            ("{\"shape\":(2L,),\"descr\":\">i8\",\"fortran_order\":True}", 16, DType::I64, true, true, &[2]),
            ("{'descr':'|b1','fortran_order':False,'shape':()}", 1, DType::Bool, false, false, &[]),
            ("{'descr':'>u1','fortran_order':False,'shape':(0,)}", 0, DType::U8, false, false, &[0]),
            (
                "{'descr':'f2','fortran_order':False,'shape':( 1 , 1, 1 )}",
                2,
                DType::F16,
                false,
                false,
                &[1, 1, 1],
            ),
        ] {
            let header = of(&file(text, data)).unwrap();
            assert_eq!(header.element, Element { dtype, big_endian: big });
            assert_eq!((header.fortran, header.shape.as_slice()), (fortran, shape));
            assert_eq!(header.data_start, 10 + text.len() as u64);
        }
    }

    #[test]
    fn what_is_no_header_is_refused_with_its_byte() {
        let whole = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        for (from, to, byte, says) in [
            ("descr", "dtype", 11, "expected descr"),
            ("(2,)", "(-2,)", 61, "whole number"),
            ("(2,)", "(2.0,)", 62, "expected ')'"),
            ("(2,)", "2", 60, "expected '('"),
            ("(2,)", "(99999999999999999999,)", 61, "whole number"),
            ("(2,)", "((2,),)", 61, "whole number"),
            ("False", "false", 44, "expected True or False"),
            ("False", "__import__('os')", 44, "expected True or False"),
            ("'<f4'", "'<f4\\x00'", 20, "without a backslash"),
            (", }", "} 1", 66, "nothing after"),
            ("(2,), }", "(2,), 'shape': (2,)}", 66, "once"),
            ("}", "", 66, "the end of the header"),
        ] {
            let error = of(&file(&whole.replacen(from, to, 1), 8)).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{to}: {error}");
            assert!(format!("{error:#}").contains(says), "{to}: {error}");
            assert_eq!(error.place().byte, Some(byte), "{to}: {error}");
        }
        let missing = of(&file("{'descr': '<f4', 'shape': (2,)}", 8)).unwrap_err();
        assert!(missing.to_string().contains("fortran_order"), "{missing}");
    }

    #[test]
    fn what_is_no_number_is_refused_by_name() {
        for (descr, says) in [
            ("'|O'", "object array"),
            ("[('a', '<f4')]", "structured"),
            ("'<c8'", "complex"),
            ("'<U3'", "text"),
            ("'<M8[ns]'", "times"),
            ("'|V2'", "raw bytes"),
            ("'<f16'", "floats of this size"),
            ("'<é4'", "no numbers"),
            ("''", "no numbers"),
        ] {
            let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,)}}");
            let error = of(&file(&text, 8)).unwrap_err();
            assert_eq!(error.kind(), Kind::Unsupported, "{descr}: {error}");
            assert!(format!("{error:#}").contains(says) && error.hint_text().is_some(), "{error}");
        }
    }

    #[test]
    fn shapes_are_compared_with_the_size() {
        for (shape, data) in [
            ("(2,)", 7),
            ("(2,)", 9),
            ("(4611686018427387904, 4)", 0),
            ("(18446744073709551615, 18446744073709551615)", 8),
            ("(1000000000, 0)", 0),
            ("(1, 0, 9223372036854775808)", 0),
            ("(0, 1099511627777)", 0),
        ] {
            let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
            let error = of(&file(&text, data)).unwrap_err();
            assert_eq!(
                (error.kind(), error.place().field.as_deref()),
                (Kind::Corrupt, Some("shape")),
                "{error}"
            );
        }
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec();
        long.resize(70, b' ');
        assert!(of(&long).unwrap_err().to_string().contains("4294967295 bytes"));
        let whole = file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8);
        for end in 0..whole.len() {
            let error = of(&whole[..end]).unwrap_err();
            assert_eq!(
                (error.kind(), error.place().file.as_deref()),
                (Kind::Corrupt, Some("x.npy")),
                "{end}"
            );
        }
        let mut later = whole;
        later[6] = 4;
        assert_eq!(of(&later).unwrap_err().kind(), Kind::Unsupported);
    }
}
