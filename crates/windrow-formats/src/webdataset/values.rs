//! What a member holds, by its suffix: text, a number, JSON, arrays, or bytes.

use std::io::Read;

use windrow_core::store::{Compression, Memory, Store};
use windrow_core::{Array, Error, Result, Row, Value};

use super::super::json_value::{error_byte, with_digits};
use super::super::npy::{Header, descr, header};
use super::super::npz::arrays_in;
use super::super::payload::array_of_list;
use windrow_core::format::columns::Kind;

/// A compressed member may expand to this much, or to [`MOST_RATIO`] times its size; more is refused.
const MOST_EXPANDED: u64 = 1 << 20;
const MOST_RATIO: u64 = 1000;

/// How a member is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coding {
    /// Compressed by gzip.
    pub(super) is_packed: bool,
    pub(super) holds: Holds,
}

/// What is in a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// UTF-8.
    Text,
    /// A whole number in digits.
    Whole,
    /// A JSON value.
    Json,
    /// An array of numpy.
    Npy,
    /// Several of them.
    Npz,
    /// What is not read: pictures, sound, pickles, which are never executed.
    Bytes,
}

impl Coding {
    /// What a suffix says, by its last part, and by the one before where that is `gz`.
    pub(super) fn of(suffix: &str) -> Coding {
        let plain = match suffix {
            "gz" => Some(""),
            suffix => suffix.strip_suffix(".gz"),
        };
        let last = plain.unwrap_or(suffix).rsplit('.').next().unwrap_or_default();
        let holds = match last {
            "txt" | "text" | "transcript" => Holds::Text,
            "cls" | "cls2" | "index" | "inx" | "id" => Holds::Whole,
            "json" | "jsn" => Holds::Json,
            "npy" => Holds::Npy,
            "npz" => Holds::Npz,
            _ => Holds::Bytes,
        };
        Coding { is_packed: plain.is_some(), holds }
    }

    /// What can be made of it as a column.
    pub(super) fn kind(self) -> Kind {
        match self.holds {
            Holds::Npy | Holds::Json => Kind::Array(None, None),
            Holds::Bytes => Kind::Bytes,
            Holds::Text | Holds::Whole | Holds::Npz => Kind::Value,
        }
    }

    /// What a person would call it.
    pub(super) fn describe(self) -> &'static str {
        match self.holds {
            Holds::Text => "text",
            Holds::Whole => "whole number",
            Holds::Json => "JSON",
            Holds::Npy => "array",
            Holds::Npz => "arrays by name",
            Holds::Bytes => "bytes",
        }
    }

    /// The value in a member's bytes.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` saying what is wrong, with the byte in the member where that is known.
    pub(super) fn value(self, bytes: &[u8]) -> Result<Value> {
        if self.is_packed {
            let unpacked = unpack(bytes)?;
            // Of no use in what is compressed.
            self.holds.value(&unpacked).map_err(|e| match e.place().byte {
                Some(at) => {
                    let what = format!("{}, at byte {at} of what it expands to", e.message());
                    let error = Error::new(e.kind(), what);
                    e.hint_text().map(str::to_string).into_iter().fold(error, Error::hint)
                }
                None => e,
            })
        } else {
            self.holds.value(bytes)
        }
    }

    /// The numbers of an array, or of a JSON list of numbers.
    ///
    /// # Errors
    /// As [`Coding::value`].
    pub(super) fn array(self, bytes: &[u8]) -> Result<Array> {
        match self.value(bytes)? {
            Value::Array(array) => Ok(array),
            Value::List(values) => array_of_list(&values).ok_or_else(|| {
                Error::corrupt("expected a list of numbers").hint("@columns@ gives rows with any values")
            }),
            Value::Bytes(bytes) => {
                Ok(Array { dtype: windrow_core::DType::U8, shape: vec![bytes.len() as u64], bytes })
            }
            other => Err(Error::corrupt(format!("expected numbers, found {}", other.shown()))
                .hint("@columns@ gives rows with any values")),
        }
    }
}

impl Holds {
    fn value(self, bytes: &[u8]) -> Result<Value> {
        Ok(match self {
            Holds::Text => Value::Text(text(bytes)?.to_string()),
            Holds::Whole => whole(bytes)?,
            Holds::Json => json(bytes)?,
            Holds::Npy => Value::Array(npy(bytes)?),
            Holds::Npz => {
                const NAME: &str = "npz";
                let object = Memory::new().with(NAME, bytes).open(NAME)?;
                let arrays = arrays_in(object.as_ref())?.into_iter();
                let named = arrays.map(|(name, bytes)| Ok((name, Value::Array(npy(&bytes)?))));
                Value::Struct(named.collect::<Result<Row>>()?)
            }
            Holds::Bytes => Value::Bytes(bytes.to_vec()),
        })
    }
}

/// A value as a member: the column's name, with an ending where that does not say what the value is, and its bytes. `None` for
/// null, which a sample leaves out.
///
/// # Errors
/// `Config` for what no member holds.
pub(super) fn encode(column: &str, value: &Value) -> Result<Option<(String, Vec<u8>)>> {
    let (holds, ending, bytes) = match value {
        Value::Null => return Ok(None),
        Value::Text(text) => (Holds::Text, "txt", text.clone().into_bytes()),
        Value::I64(number) => (Holds::Whole, "cls", number.to_string().into_bytes()),
        Value::U64(number) => (Holds::Whole, "cls", number.to_string().into_bytes()),
        Value::Big(digits) => (Holds::Whole, "cls", digits.clone().into_bytes()),
        Value::Bytes(bytes) => (Holds::Bytes, "bin", bytes.clone()),
        Value::Array(array) => {
            let mut bytes = header(descr(array.dtype)?, array.shape.iter().copied());
            bytes.extend_from_slice(&array.bytes);
            (Holds::Npy, "npy", bytes)
        }
        Value::Bool(_) | Value::F64(_) | Value::List(_) | Value::Struct(_) => {
            let json = value.to_json().ok_or_else(|| {
                Error::config(format!("{}, which JSON does not hold", value.shown()))
                    .hint("make an array of numbers, or columns of their own, of it")
            })?;
            (Holds::Json, "json", json.to_string().into_bytes())
        }
    };
    let name = column.to_lowercase();
    let suffix = if Coding::of(&name) == (Coding { is_packed: false, holds }) && !name.is_empty() {
        name
    } else if name.is_empty() {
        ending.to_string()
    } else {
        format!("{name}.{ending}")
    };
    Ok(Some((suffix, bytes)))
}

/// What a gzip stream expands to.
fn unpack(bytes: &[u8]) -> Result<Vec<u8>> {
    if Compression::of_head(bytes) != Some(Compression::Gzip) {
        return Err(Error::corrupt("expected a gzip stream, found something else").byte(0));
    }
    let most = MOST_EXPANDED.max((bytes.len() as u64).saturating_mul(MOST_RATIO));
    let mut unpacked = Vec::new();
    let stream = Compression::Gzip.decoder(bytes, None);
    match stream.and_then(|stream| stream.take(most + 1).read_to_end(&mut unpacked)) {
        Ok(size) if size as u64 <= most => Ok(unpacked),
        Ok(_) => Err(Error::corrupt(format!("{} bytes that expand to more than {most}", bytes.len()))),
        Err(cause) => Err(Error::corrupt("the gzip stream is damaged").caused_by(cause)),
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    simdutf8::compat::from_utf8(bytes).map_err(|e| {
        let at = e.valid_up_to();
        let found = bytes.get(at).copied().unwrap_or_default();
        Error::corrupt(format!("expected UTF-8, found byte 0x{found:02x}")).byte(at as u64)
    })
}

// As Python's int() reads it.
fn whole(bytes: &[u8]) -> Result<Value> {
    let wrong = || {
        let found = String::from_utf8_lossy(&bytes[..bytes.len().min(24)]);
        Error::corrupt(format!("expected a whole number, found {found:?}")).byte(0)
    };
    let text = std::str::from_utf8(bytes).map_err(|_| wrong())?.trim();
    let (sign, digits) = match text.split_at_checked(1) {
        Some(("-", digits)) => ("-", digits),
        Some(("+", digits)) => ("", digits),
        _ => ("", text),
    };
    let is_grouped =
        digits.split('_').all(|group| !group.is_empty() && group.bytes().all(|d| d.is_ascii_digit()));
    if !is_grouped {
        return Err(wrong());
    }
    let digits = digits.replace('_', "");
    let plain = match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let number = format!("{sign}{plain}");
    Ok(match (number.parse::<i64>(), number.parse::<u64>()) {
        (Ok(number), _) => Value::I64(number),
        (Err(_), Ok(number)) => Value::U64(number),
        _ => Value::Big(number),
    })
}

fn json(bytes: &[u8]) -> Result<Value> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    let plain = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let parsed = serde_json::from_slice::<serde_json::Value>(plain).map_err(|cause| {
        let at = error_byte(plain, &cause);
        let rest = plain.get(at..).unwrap_or_default();
        let found = match rest {
            [] => "its end".to_string(),
            rest => format!("{:?}", String::from_utf8_lossy(&rest[..rest.len().min(24)])),
        };
        let byte = (bytes.len() - plain.len() + at) as u64;
        Error::corrupt(format!("expected JSON, found {found}")).byte(byte).caused_by(cause)
    })?;
    Ok(with_digits(plain, parsed))
}

/// The array in these bytes, its numbers little-endian and in C order.
fn npy(bytes: &[u8]) -> Result<Array> {
    let header = Header::of_prefix(bytes, bytes.len() as u64, "")?;
    let (dtype, width) = (header.element.dtype, header.element.size());
    // The header was compared with the size.
    let stored = bytes.get(header.data_start as usize..).unwrap_or_default();
    let mut numbers = if header.fortran { c_order(stored, width, &header.shape) } else { stored.to_vec() };
    if header.element.big_endian {
        numbers.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    Ok(Array { dtype, shape: header.shape, bytes: numbers })
}

// Numbers whose first index runs fastest, with the last one running fastest.
fn c_order(stored: &[u8], width: usize, shape: &[u64]) -> Vec<u8> {
    let mut steps = Vec::with_capacity(shape.len());
    let mut step = width;
    for axis in shape {
        steps.push(step);
        // Their product is that of the bytes, which are there.
        step = step.saturating_mul(*axis as usize);
    }
    let (mut numbers, mut index, mut at) = (Vec::with_capacity(stored.len()), vec![0; shape.len()], 0usize);
    for _ in 0..stored.len() / width {
        numbers.extend(stored.get(at..at + width).unwrap_or_default());
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += steps[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= steps[axis] * shape[axis] as usize;
            index[axis] = 0;
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_read_as_python_reads_it() {
        for (text, value) in [
            ("7", Some(Value::I64(7))),
            (" -07\n", Some(Value::I64(-7))),
            ("+1_000", Some(Value::I64(1000))),
            ("18446744073709551615", Some(Value::U64(u64::MAX))),
            ("-18446744073709551616", Some(Value::Big("-18446744073709551616".to_string()))),
            ("00", Some(Value::I64(0))),
            ("", None),
            ("-", None),
            ("1.5", None),
            ("1__0", None),
            ("_1", None),
            ("--1", None),
        ] {
            assert_eq!(whole(text.as_bytes()).ok(), value, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_the_digits_of_whole_numbers() {
        let found = json(b"\xef\xbb\xbf[18446744073709551616, 7]").unwrap();
        assert_eq!(found, Value::List(vec![Value::Big("18446744073709551616".to_string()), Value::I64(7)]));
    }

    #[test]
    fn the_last_part_of_a_suffix_says_what_a_member_holds() {
        for (suffix, packed, holds) in [
            ("n.id", false, Holds::Whole),
            ("json.gz", true, Holds::Json),
            ("gz", true, Holds::Bytes),
            ("npy.gz.gz", true, Holds::Bytes),
            ("seg.png", false, Holds::Bytes),
            ("pkl", false, Holds::Bytes),
        ] {
            assert_eq!(Coding::of(suffix), Coding { is_packed: packed, holds }, "{suffix}");
        }
    }

    #[test]
    fn the_first_index_running_fastest_is_turned() {
        // [[0, 1, 2], [3, 4, 5]] by columns.
        assert_eq!(c_order(&[0, 3, 1, 4, 2, 5], 1, &[2, 3]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(c_order(&[0, 2, 1, 3], 1, &[2, 1, 2]), [0, 1, 2, 3]);
        assert_eq!(c_order(&[9], 1, &[]), [9]);
        assert_eq!(c_order(&[], 4, &[0, 3]), [0u8; 0]);
    }
}
