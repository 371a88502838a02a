//! tf.train.Example: features by name, each a list of int64, of float32 or of bytes; a message of Protocol Buffers.

use windrow_core::{Array, DType, Error, Result, Row, Value};

use crate::protobuf::{Fields, Wire};

const WHAT: &str = "a tf.train.Example";

/// The features of an example.
///
/// # Errors
/// `Corrupt` with the byte of what is not one.
pub(super) fn parse(bytes: &[u8]) -> Result<Row> {
    let mut features = Row::new();
    for field in Fields::of(WHAT, bytes, 0) {
        // Features { map<string, Feature> feature = 1 }, of which the last counts; joined as messages are.
        if let (1, Wire::Bytes(bytes, base)) = field? {
            for entry in Fields::of(WHAT, bytes, base) {
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
    for field in Fields::of(WHAT, bytes, base) {
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
    for field in Fields::of(WHAT, bytes, base) {
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
    for field in Fields::of(WHAT, bytes, base) {
        if let (1, Wire::Bytes(bytes, _)) = field? {
            found.push(Value::Bytes(bytes.to_vec()));
        }
    }
    Ok(found)
}

fn floats(bytes: &[u8], base: u64) -> Result<Array> {
    let mut found = Vec::new();
    for field in Fields::of(WHAT, bytes, base) {
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
    for field in Fields::of(WHAT, bytes, base) {
        match field? {
            (1, Wire::Number(number)) => found.extend(number.to_le_bytes()),
            (1, Wire::Bytes(packed, base)) => {
                let mut numbers = Fields::of(WHAT, packed, base);
                while !numbers.is_at_end() {
                    found.extend(numbers.varint()?.to_le_bytes());
                }
            }
            _ => {}
        }
    }
    Ok(Array { dtype: DType::I64, shape: vec![(found.len() / 8) as u64], bytes: found })
}
