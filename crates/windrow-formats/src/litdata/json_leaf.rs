//! A leaf of JSON: text, or tagged values, little-endian, as litdata packs them.

use windrow_core::{Error, Place, Result, Row, Value};

use crate::json_value::json_value;

/// Values nested deeper are refused.
const MOST_DEPTH: usize = 128;

/// The value of a leaf.
///
/// # Errors
/// `Corrupt` naming the byte in the leaf.
pub(super) fn value(bytes: &[u8]) -> Result<Value> {
    // What begins with a tag is no text: JSON begins with a printed character.
    if bytes.first().is_none_or(|first| *first > 0x20) {
        return json_value(bytes, &Place::default());
    }
    let mut reader = Reader { bytes, at: 0 };
    let value = reader.value(0)?;
    if reader.at == bytes.len() { Ok(value) } else { Err(reader.wrong("bytes behind a value")) }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn wrong(&self, what: &str) -> Error {
        Error::corrupt(format!("expected packed JSON, found {what}")).byte(self.at as u64)
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(size);
        let Some(found) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return Err(self.wrong(&format!("{size} bytes that are cut short")));
        };
        self.at += size;
        Ok(found)
    }

    fn word(&mut self) -> Result<usize> {
        let bytes = self.take(4)?;
        Ok(bytes.first_chunk::<4>().map_or(0, |word| u32::from_le_bytes(*word)) as usize)
    }

    fn eight(&mut self) -> Result<[u8; 8]> {
        Ok(self.take(8)?.first_chunk().copied().unwrap_or_default())
    }

    fn text(&mut self) -> Result<String> {
        let size = self.word()?;
        let bytes = self.take(size)?;
        std::str::from_utf8(bytes).map(str::to_string).map_err(|_| self.wrong("text that is not UTF-8"))
    }

    // How many values follow, of at least one byte each.
    fn count(&mut self) -> Result<usize> {
        let count = self.word()?;
        if count <= self.bytes.len() - self.at {
            Ok(count)
        } else {
            Err(self
                .wrong(&format!("{count} values, of which {} bytes are there", self.bytes.len() - self.at)))
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        if depth > MOST_DEPTH {
            return Err(self.wrong("values that nest too deep"));
        }
        let tag = self.take(1)?[0];
        Ok(match tag {
            0 => {
                let size = self.word()?;
                json_value(self.take(size)?, &Place::default())?
            }
            1 => {
                let count = self.count()?;
                Value::List((0..count).map(|_| self.text().map(Value::Text)).collect::<Result<_>>()?)
            }
            2 => {
                let count = self.count()?;
                Value::List(
                    (0..count)
                        .map(|_| Ok(Value::I64(i64::from_le_bytes(self.eight()?))))
                        .collect::<Result<_>>()?,
                )
            }
            3 => {
                let count = self.count()?;
                Value::List(
                    (0..count)
                        .map(|_| Ok(Value::F64(f64::from_le_bytes(self.eight()?))))
                        .collect::<Result<_>>()?,
                )
            }
            4 => {
                let count = self.count()?;
                Value::List(self.take(count)?.iter().map(|byte| Value::Bool(*byte != 0)).collect())
            }
            5 => {
                let count = self.count()?;
                let mut row = Row::new();
                for _ in 0..count {
                    let key = self.text()?;
                    row.insert(key, self.value(depth + 1)?);
                }
                Value::Struct(row)
            }
            6 => self.records()?,
            7 => Value::Text(self.text()?),
            8 => Value::I64(i64::from_le_bytes(self.eight()?)),
            9 => Value::F64(f64::from_le_bytes(self.eight()?)),
            10 => Value::Bool(self.take(1)?[0] != 0),
            11 => Value::Null,
            other => return Err(self.wrong(&format!("the tag {other}"))),
        })
    }

    // Dicts of the same keys: the keys once, then the values of each.
    fn records(&mut self) -> Result<Value> {
        let rows = self.word()?;
        let n_keys = self.count()?;
        let keys: Vec<String> = (0..n_keys).map(|_| self.text()).collect::<Result<_>>()?;
        if rows
            .checked_mul(keys.len().max(1))
            .is_none_or(|values| values > self.bytes.len() - self.at && !keys.is_empty())
            || (keys.is_empty() && rows > self.bytes.len())
        {
            return Err(
                self.wrong(&format!("{rows} rows, of which {} bytes are there", self.bytes.len() - self.at))
            );
        }
        let mut found = Vec::with_capacity(rows);
        for _ in 0..rows {
            let mut row = Row::new();
            for key in &keys {
                let value = match self.take(1)?[0] {
                    0x10 => Value::Null,
                    0x11 => Value::Text(self.text()?),
                    0x12 => Value::I64(i64::from_le_bytes(self.eight()?)),
                    0x13 => Value::F64(f64::from_le_bytes(self.eight()?)),
                    0x14 => Value::Bool(self.take(1)?[0] != 0),
                    other => return Err(self.wrong(&format!("the tag {other} of a value of a row"))),
                };
                row.insert(key.clone(), value);
            }
            found.push(Value::Struct(row));
        }
        Ok(Value::List(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_the_digits_of_whole_numbers() {
        let big = Value::Big("-18446744073709551616".to_string());
        assert_eq!(value(b"-18446744073709551616").unwrap(), big);
        let packed = [&[0u8][..], &21u32.to_le_bytes(), b"-18446744073709551616"].concat();
        assert_eq!(value(&packed).unwrap(), big);
    }
}
