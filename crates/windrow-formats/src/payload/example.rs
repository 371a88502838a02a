//! tf.train.Example: features by name, each a list of int64, of float32 or of bytes; a message of Protocol Buffers, read as
//! its documentation describes the wire format.

use windrow_core::{Array, DType, Error, Result, Row, Value};

/// The features of an example.
///
/// # Errors
/// `Corrupt` with the byte of what is not one.
pub(super) fn parse(bytes: &[u8]) -> Result<Row> {
    let mut features = Row::new();
    for field in (Fields { bytes, at: 0, base: 0 }) {
        // Features { map<string, Feature> feature = 1 }, of which the last counts; joined as messages are.
        if let (1, Wire::Bytes(bytes, base)) = field? {
            for entry in (Fields { bytes, at: 0, base }) {
                if let (1, Wire::Bytes(bytes, base)) = entry? {
                    let (name, value) = feature(bytes, base)?;
                    features.insert(name, value);
                }
            }
        }
    }
    Ok(features)
}

// An entry of the map: its name and its value.
fn feature(bytes: &[u8], base: u64) -> Result<(String, Value)> {
    let (mut name, mut value) = (String::new(), Value::Null);
    for field in (Fields { bytes, at: 0, base }) {
        match field? {
            (1, Wire::Bytes(bytes, at)) => {
                let text = std::str::from_utf8(bytes);
                name = text
                    .map_err(|_| Error::corrupt("the name of a feature is not UTF-8").byte(at))?
                    .to_string();
            }
            (2, Wire::Bytes(bytes, base)) => value = kind(bytes, base)?,
            _ => {}
        }
    }
    Ok((name, value))
}

// Feature { oneof kind { BytesList = 1; FloatList = 2; Int64List = 3 } }: the last one counts.
fn kind(bytes: &[u8], base: u64) -> Result<Value> {
    let mut value = Value::Null;
    for field in (Fields { bytes, at: 0, base }) {
        match field? {
            (1, Wire::Bytes(bytes, base)) => value = Value::List(byte_strings(bytes, base)?),
            (2, Wire::Bytes(bytes, base)) => value = Value::Array(floats(bytes, base)?),
            (3, Wire::Bytes(bytes, base)) => value = Value::Array(whole(bytes, base)?),
            _ => {}
        }
    }
    Ok(value)
}

fn byte_strings(bytes: &[u8], base: u64) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for field in (Fields { bytes, at: 0, base }) {
        if let (1, Wire::Bytes(bytes, _)) = field? {
            found.push(Value::Bytes(bytes.to_vec()));
        }
    }
    Ok(found)
}

fn floats(bytes: &[u8], base: u64) -> Result<Array> {
    let mut found = Vec::new();
    for field in (Fields { bytes, at: 0, base }) {
        match field? {
            (1, Wire::Four(number)) => found.extend(number),
            (1, Wire::Bytes(packed, at)) => match packed.len() % 4 {
                0 => found.extend(packed),
                _ => {
                    return Err(
                        Error::corrupt(format!("{} bytes are not whole floats", packed.len())).byte(at)
                    );
                }
            },
            _ => {}
        }
    }
    Ok(Array { dtype: DType::F32, shape: vec![(found.len() / 4) as u64], bytes: found })
}

fn whole(bytes: &[u8], base: u64) -> Result<Array> {
    let mut found: Vec<u8> = Vec::new();
    for field in (Fields { bytes, at: 0, base }) {
        match field? {
            (1, Wire::Number(number)) => found.extend(number.to_le_bytes()),
            (1, Wire::Bytes(packed, base)) => {
                let mut numbers = Fields { bytes: packed, at: 0, base };
                while numbers.at < packed.len() {
                    found.extend(numbers.varint()?.to_le_bytes());
                }
            }
            _ => {}
        }
    }
    Ok(Array { dtype: DType::I64, shape: vec![(found.len() / 8) as u64], bytes: found })
}

/// A value of the wire format.
enum Wire<'a> {
    Number(u64),
    Eight,
    /// Bytes, and where they begin in the record.
    Bytes(&'a [u8], u64),
    Four([u8; 4]),
}

/// The fields of a message, by their numbers.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the message begins in the record.
    base: u64,
}

impl<'a> Fields<'a> {
    fn wrong(&self, what: &str) -> Error {
        Error::corrupt(format!("expected a tf.train.Example, found {what}")).byte(self.base + self.at as u64)
    }

    fn varint(&mut self) -> Result<u64> {
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
        if self.at >= self.bytes.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.bytes.len();
        }
        Some(field)
    }
}
