//! How the value of a column is written, and what it is.

use windrow_core::format::columns::Shape;
use windrow_core::{Array, DType, Error, Result, Value};

use crate::json_value::with_digits;

/// An encoding of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// One number.
    Number(DType),
    /// UTF-8.
    Text,
    /// Bytes, also those of pictures.
    Bytes,
    /// JSON in UTF-8.
    Json,
    /// A number as text.
    WholeText,
    /// A fraction as text.
    FractionText,
    /// An array: its dtype and shape, where all have the same.
    Array(Option<DType>, Option<Vec<u64>>),
    /// Several byte strings; with four bytes before their number or without.
    List {
        /// Whether those four bytes are there.
        padded: bool,
    },
    /// A pickle, which is never executed.
    Pickle,
}

/// Codes of dtypes that an array without a declared one begins with.
const CODES: [(u8, DType); 11] = [
    (8, DType::U8),
    (9, DType::I8),
    (16, DType::U16),
    (17, DType::I16),
    (18, DType::F16),
    (32, DType::U32),
    (33, DType::I32),
    (34, DType::F32),
    (64, DType::U64),
    (65, DType::I64),
    (66, DType::F64),
];

/// The head of an array's value: what its numbers are, and where they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    /// Bytes before the numbers.
    pub(super) size: u64,
}

impl Head {
    /// Numbers in the array; `None` beyond 64 bits.
    pub(super) fn numbers(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |all, axis| all.checked_mul(*axis))
    }
}

/// The longest head: a code, the number of axes, and 63 axes of 8 bytes.
pub(super) const MOST_HEAD: u64 = 2 + 63 * 8;

impl Encoding {
    /// The encoding of this name.
    ///
    /// # Errors
    /// `Unsupported` for an unknown one; `Corrupt` for an impossible shape.
    pub(super) fn parse(text: &str) -> Result<Encoding> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let arguments: Vec<&str> = parts.collect();
        let unknown = || Error::unsupported(format!("an unknown encoding {text:?}"));
        if name == "ndarray" {
            let dtype = match arguments.first() {
                Some(dtype) => Some(number(dtype).ok_or_else(unknown)?),
                None => None,
            };
            let shape = match arguments.get(1) {
                Some(shape) => {
                    let axes = shape.split(',').map(|axis| axis.parse().ok().filter(|n: &u64| *n > 0));
                    Some(axes.collect::<Option<Vec<u64>>>().ok_or_else(|| {
                        Error::corrupt(format!("the shape {shape:?}, expected whole numbers of 1 or more"))
                    })?)
                }
                None => None,
            };
            if arguments.len() > 2 {
                return Err(unknown());
            }
            let encoding = Encoding::Array(dtype, shape);
            return match &encoding {
                Encoding::Array(Some(_), Some(_)) if encoding.size().is_none() => {
                    Err(Error::corrupt(format!("the shape of {text:?} has more bytes than 64 bits count")))
                }
                _ => Ok(encoding),
            };
        }
        if !arguments.is_empty() {
            return Err(unknown());
        }
        Ok(match name {
            "int" => Encoding::Number(DType::I64),
            "str" => Encoding::Text,
            "bytes" | "pil" | "jpeg" | "png" => Encoding::Bytes,
            "json" => Encoding::Json,
            "str_int" => Encoding::WholeText,
            "str_float" => Encoding::FractionText,
            "str_decimal" => Encoding::Text,
            "list[pil]" | "list[jpeg]" | "list[png]" => Encoding::List { padded: true },
            "jpeg_array" | "jpegarray" => Encoding::List { padded: false },
            "pkl" => Encoding::Pickle,
            name => Encoding::Number(number(name).ok_or_else(unknown)?),
        })
    }

    /// Bytes of every value, where it says so itself.
    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Encoding::Number(dtype) => Some(dtype.size() as u64),
            Encoding::Array(Some(dtype), Some(shape)) => {
                shape.iter().try_fold(dtype.size() as u64, |all, axis| all.checked_mul(*axis))
            }
            _ => None,
        }
    }

    /// The head of an array whose value has `size` bytes, the first of which are `head`.
    ///
    /// # Errors
    /// `Corrupt` where the bytes are not those of the shape; `Unsupported` for an unknown dtype.
    pub(super) fn head(&self, head: &[u8], size: u64) -> Result<Head> {
        let Encoding::Array(dtype, shape) = self else {
            return Err(Error::unsupported("a value that is not an array"));
        };
        let short = || Error::corrupt(format!("an array of {size} bytes, which end in its head"));
        let mut at = 0;
        let dtype = match dtype {
            Some(dtype) => *dtype,
            None => {
                let code = *head.first().ok_or_else(short)?;
                at = 1;
                let known = CODES.iter().find(|(known, _)| *known == code);
                known
                    .map(|(_, dtype)| *dtype)
                    .ok_or_else(|| Error::corrupt(format!("an unknown dtype code {code}")))?
            }
        };
        let shape = match shape {
            Some(shape) => Shape::from_slice(shape),
            None => {
                let first = *head.get(at).ok_or_else(short)?;
                let (axes, width) = (usize::from(first >> 2), 1usize << (first & 3));
                at += 1;
                let bytes = head.get(at..at + axes * width).ok_or_else(short)?;
                at += axes * width;
                let axis = |bytes: &[u8]| {
                    let mut wide = [0; 8];
                    wide[..bytes.len()].copy_from_slice(bytes);
                    u64::from_le_bytes(wide)
                };
                bytes.chunks_exact(width).map(axis).collect()
            }
        };
        let found = Head { dtype, shape, size: at as u64 };
        let bytes = found.numbers().and_then(|n| n.checked_mul(dtype.size() as u64));
        match bytes.and_then(|bytes| bytes.checked_add(at as u64)) {
            Some(expected) if expected == size => Ok(found),
            _ => Err(Error::corrupt(format!("an array {dtype} {:?} in {size} bytes", found.shape))),
        }
    }

    /// The value in these bytes.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are none; `Unsupported` for pickles.
    pub(super) fn value(&self, bytes: &[u8]) -> Result<Value> {
        Ok(match self {
            Encoding::Number(dtype) => one_number(*dtype, bytes)?,
            Encoding::Text => Value::Text(text(bytes)?.to_string()),
            Encoding::Bytes => Value::Bytes(bytes.to_vec()),
            Encoding::Json => {
                let parsed: serde_json::Value = serde_json::from_slice(bytes)
                    .map_err(|cause| Error::corrupt("expected JSON").caused_by(cause))?;
                with_digits(bytes, parsed)
            }
            Encoding::WholeText => whole_number(text(bytes)?)?,
            Encoding::FractionText => {
                let text = text(bytes)?;
                let number = text.parse::<f64>();
                Value::F64(
                    number
                        .map_err(|_| Error::corrupt(format!("expected a number, found {:?}", shown(text))))?,
                )
            }
            Encoding::Array(..) => {
                let head = self.head(bytes, bytes.len() as u64)?;
                let numbers = bytes.get(head.size as usize..).unwrap_or_default();
                Value::Array(Array { dtype: head.dtype, shape: head.shape.to_vec(), bytes: numbers.to_vec() })
            }
            Encoding::List { padded } => Value::List(list(bytes, if *padded { 4 } else { 0 })?),
            Encoding::Pickle => {
                return Err(
                    Error::unsupported("a pickle, which is never executed").hint("@columns@ leaves it out")
                );
            }
        })
    }
}

fn whole_number(text: &str) -> Result<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    match (text.parse::<i64>(), text.parse::<u64>()) {
        (Ok(whole), _) => Ok(Value::I64(whole)),
        (Err(_), Ok(whole)) => Ok(Value::U64(whole)),
        _ if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(Value::Big(text.trim_start_matches('+').to_string()))
        }
        _ => Err(Error::corrupt(format!("expected a whole number, found {:?}", shown(text)))),
    }
}

fn number(name: &str) -> Option<DType> {
    CODES.iter().map(|(_, dtype)| *dtype).find(|dtype| dtype.name() == name)
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| {
        Error::corrupt(format!("expected UTF-8, found another byte at {} of the text", e.valid_up_to()))
    })
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

fn one_number(dtype: DType, bytes: &[u8]) -> Result<Value> {
    let mut wide = [0; 8];
    if bytes.len() != dtype.size() {
        return Err(Error::corrupt(format!("{} bytes, expected {dtype} of {}", bytes.len(), dtype.size())));
    }
    wide[..bytes.len()].copy_from_slice(bytes);
    let whole = u64::from_le_bytes(wide);
    let signed = |bits: u32| i64::from_le_bytes(wide) << (64 - bits) >> (64 - bits);
    Ok(match dtype {
        DType::I8 => Value::I64(signed(8)),
        DType::I16 => Value::I64(signed(16)),
        DType::I32 => Value::I64(signed(32)),
        DType::I64 => Value::I64(signed(64)),
        DType::F16 => Value::F64(half::f16::from_bits(whole as u16).to_f64()),
        DType::F32 => Value::F64(f32::from_bits(whole as u32).into()),
        DType::F64 => Value::F64(f64::from_bits(whole)),
        _ => Value::from(whole),
    })
}

// A number of byte strings, their sizes, and the strings.
fn list(bytes: &[u8], at: usize) -> Result<Vec<Value>> {
    let broken =
        || Error::corrupt(format!("a list in {} bytes, which its sizes do not make up", bytes.len()));
    let word = |at: usize| {
        let word = bytes.get(at..at.checked_add(4)?)?;
        word.try_into().ok().map(|word| u32::from_le_bytes(word) as usize)
    };
    let count = word(at).ok_or_else(broken)?;
    let sizes = count.checked_mul(4).and_then(|size| bytes.get(at + 4..)?.get(..size)).ok_or_else(broken)?;
    let mut rest = &bytes[at + 4 + sizes.len()..];
    let mut values = Vec::with_capacity(count);
    for place in 0..count {
        let size = word(at + 4 + 4 * place).ok_or_else(broken)?;
        let (value, after) = rest.split_at_checked(size).ok_or_else(broken)?;
        values.push(Value::Bytes(value.to_vec()));
        rest = after;
    }
    if rest.is_empty() { Ok(values) } else { Err(broken()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_known_by_name_and_others_are_refused() {
        assert_eq!(Encoding::parse("ndarray:int32:2,3").unwrap().size(), Some(24));
        assert_eq!(Encoding::parse("int").unwrap().size(), Some(8));
        assert_eq!(Encoding::parse("uint16").unwrap(), Encoding::Number(DType::U16));
        for bad in
            ["", "bool", "ndarray:bool", "ndarray:int32:0", "ndarray:int32:-1", "ndarray:int8:1:2", "str:x"]
        {
            assert!(Encoding::parse(bad).is_err(), "{bad}");
        }
        assert!(Encoding::parse("ndarray:float64:4294967296,4294967296").is_err());
    }

    #[test]
    fn json_keeps_the_digits_of_whole_numbers() {
        let found = Encoding::parse("json").unwrap().value(b"[123456789012345678901234567890]").unwrap();
        assert_eq!(found, Value::List(vec![Value::Big("123456789012345678901234567890".to_string())]));
    }

    #[test]
    fn an_array_is_as_many_bytes_as_its_shape_says() {
        let any = Encoding::parse("ndarray").unwrap();
        let bytes = [33, 1 << 2, 2, 1, 0, 0, 0, 255, 255, 255, 255];
        let expected = Array { dtype: DType::I32, shape: vec![2], bytes: bytes[3..].to_vec() };
        assert_eq!(any.value(&bytes).unwrap(), Value::Array(expected));
        for cut in 0..bytes.len() {
            assert!(any.value(&bytes[..cut]).is_err(), "{cut}");
        }
        // Four axes of 2^16 numbers each are more bytes than there are.
        assert!(any.value(&[33, 4 << 2 | 1, 255, 255, 255, 255, 255, 255, 255, 255]).is_err());
    }

    #[test]
    fn numbers_are_those_of_their_dtype() {
        let value = |text: &str, bytes: &[u8]| Encoding::parse(text).unwrap().value(bytes);
        assert_eq!(value("int8", &[255]).unwrap(), Value::I64(-1));
        assert_eq!(value("uint64", &[255; 8]).unwrap(), Value::U64(u64::MAX));
        assert_eq!(value("int", &[254, 255, 255, 255, 255, 255, 255, 255]).unwrap(), Value::I64(-2));
        assert_eq!(value("float16", &[0, 0x3c]).unwrap(), Value::F64(1.0));
        assert_eq!(value("str_int", b"18446744073709551615").unwrap(), Value::U64(u64::MAX));
        assert_eq!(
            value("str_int", b"-30000000000000000000").unwrap(),
            Value::Big("-30000000000000000000".into())
        );
        for (text, bytes) in [
            ("int8", &b"ab"[..]),
            ("str_int", b"1.5"),
            ("str_float", b"x"),
            ("json", b"{"),
            ("str", b"\xff"),
            ("pkl", b"N."),
        ] {
            assert!(value(text, bytes).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_is_its_sizes_and_nothing_more() {
        let list = Encoding::List { padded: false };
        let bytes = [2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', b'c'];
        let expected = Value::List(vec![vec![b'a'].into(), vec![b'b', b'c'].into()]);
        assert_eq!(list.value(&bytes).unwrap(), expected);
        for cut in 0..bytes.len() {
            assert!(list.value(&bytes[..cut]).is_err(), "{cut}");
        }
        assert!(list.value(&[255; 12]).is_err());
    }
}
