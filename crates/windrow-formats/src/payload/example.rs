//! tf.train.Example: features by name, each a list of int64, of float32 or of bytes; a message of Protocol Buffers. A field that
//! it does not have is refused: what is left out would be missed by nobody.

use windrow_core::{Array, DType, Error, Result, Row, Value};

use crate::protobuf::{Fields, Wire};

const WHAT: &str = "a tf.train.Example";
const HINT: &str = "@payload=bytes@ gives the records as they are";

/// The features of an example. Where it was declared to be one, `is_said`, numbers that are not known are skipped, as other
/// readers of Protocol Buffers do; messages and bytes, which may hold features, are not.
///
/// # Errors
/// `Corrupt` with the byte of what is not one; `Unsupported` naming a field that an example does not have, or a
/// tf.train.SequenceExample.
pub(super) fn parse(bytes: &[u8], is_said: bool) -> Result<Row> {
    let (features, odd) = read(bytes, Odd { skips_numbers: is_said, ..Odd::default() })?;
    odd.unknown.map_or(Ok(features), Err)
}

/// Whether a record is an example, where nobody says what it holds.
///
/// # Errors
/// `Unsupported` as [`parse`], where the record has features or feature lists.
pub(super) fn is_one(bytes: &[u8]) -> Result<bool> {
    let Ok((features, odd)) = read(bytes, Odd::default()) else { return Ok(false) };
    match odd.unknown {
        Some(unknown) if odd.has_lists || !features.is_empty() => Err(unknown),
        _ => Ok(!features.is_empty()),
    }
}

fn read(bytes: &[u8], mut odd: Odd) -> Result<(Row, Odd)> {
    let mut features = Row::new();
    odd.fields("tf.train.Example", bytes, 0, |odd, field| match *field {
        // Features { map<string, Feature> feature = 1 }, of which the last counts; joined as messages are.
        (1, Wire::Bytes(bytes, base)) => {
            odd.fields("tf.train.Features", bytes, base, |odd, field| match *field {
                (1, Wire::Bytes(bytes, base)) => {
                    let (name, value) =
                        odd.entry("an entry of tf.train.Features", bytes, base, Odd::feature)?;
                    features.insert(name, value.unwrap_or(Value::Null));
                    KNOWN
                }
                _ => UNKNOWN,
            })
        }
        (2, Wire::Bytes(bytes, base)) => match n_feature_lists(bytes, base) {
            Some(n_lists) => {
                odd.has_lists |= n_lists > 0;
                let what = "the record is a tf.train.SequenceExample, whose feature lists are not read";
                odd.unknown.get_or_insert_with(|| Error::unsupported(what).byte(base).hint(HINT));
                KNOWN
            }
            None => UNKNOWN,
        },
        _ => UNKNOWN,
    })?;
    Ok((features, odd))
}

// How many lists the second field of a SequenceExample holds, FeatureLists { map<string, FeatureList> feature_list = 1 } of
// FeatureList { repeated Feature feature = 1 }; None where it is another field.
fn n_feature_lists(bytes: &[u8], base: u64) -> Option<usize> {
    let (mut n_lists, mut odd) = (0, Odd::default());
    let list = |odd: &mut Odd, bytes: &[u8], base| {
        odd.fields("", bytes, base, |odd, field| match *field {
            (1, Wire::Bytes(bytes, base)) => odd.feature(bytes, base).and(KNOWN),
            _ => UNKNOWN,
        })
    };
    let read = odd.fields("", bytes, base, |odd, field| match *field {
        (1, Wire::Bytes(bytes, base)) => {
            let (_, found) = odd.entry("", bytes, base, list)?;
            n_lists += usize::from(found.is_some());
            KNOWN
        }
        _ => UNKNOWN,
    });
    (read.is_ok() && odd.unknown.is_none()).then_some(n_lists)
}

/// Whether a field is one of its message.
type Known = Result<bool>;
const KNOWN: Known = Ok(true);
const UNKNOWN: Known = Ok(false);

/// What a record has that an example does not have.
#[derive(Default)]
struct Odd {
    /// Whether fields of numbers are none of it.
    skips_numbers: bool,
    /// The first field of it, as an error.
    unknown: Option<Error>,
    /// Whether it has the feature lists of a SequenceExample.
    has_lists: bool,
}

impl Odd {
    // Gives the fields of a message to `known`, and notes the first that it does not know.
    fn fields<'a>(
        &mut self,
        message: &str,
        bytes: &'a [u8],
        base: u64,
        mut known: impl FnMut(&mut Self, &(u64, Wire<'a>)) -> Known,
    ) -> Known {
        let mut fields = Fields::of(WHAT, bytes, base);
        loop {
            let at = base + fields.taken() as u64;
            let Some(field) = fields.next().transpose()? else { return KNOWN };
            let is_known = known(self, &field)? || self.skips_numbers && !matches!(field.1, Wire::Bytes(..));
            if !is_known && self.unknown.is_none() {
                let what = format!("the record has field {} of {message}, which is not known", field.0);
                self.unknown = Some(Error::unsupported(what).byte(at).hint(HINT));
            }
        }
    }

    // An entry of a map: its name, and its value where it has one.
    fn entry<V>(
        &mut self,
        message: &str,
        bytes: &[u8],
        base: u64,
        mut read: impl FnMut(&mut Self, &[u8], u64) -> Result<V>,
    ) -> Result<(String, Option<V>)> {
        let (mut name, mut value) = (String::new(), None);
        self.fields(message, bytes, base, |odd, field| match *field {
            (1, Wire::Bytes(bytes, at)) => {
                let text = std::str::from_utf8(bytes);
                name = text
                    .map_err(|_| Error::corrupt("the name of a feature is not UTF-8").byte(at))?
                    .to_string();
                KNOWN
            }
            (2, Wire::Bytes(bytes, base)) => {
                value = Some(read(odd, bytes, base)?);
                KNOWN
            }
            _ => UNKNOWN,
        })?;
        Ok((name, value))
    }

    // Feature { oneof kind { BytesList = 1; FloatList = 2; Int64List = 3 } }: the last one counts.
    fn feature(&mut self, bytes: &[u8], base: u64) -> Result<Value> {
        let mut value = Value::Null;
        self.fields("tf.train.Feature", bytes, base, |odd, field| {
            value = match *field {
                (1, Wire::Bytes(bytes, base)) => Value::List(odd.byte_strings(bytes, base)?),
                (2, Wire::Bytes(bytes, base)) => Value::Array(odd.floats(bytes, base)?),
                (3, Wire::Bytes(bytes, base)) => Value::Array(odd.whole(bytes, base)?),
                _ => return UNKNOWN,
            };
            KNOWN
        })?;
        Ok(value)
    }

    fn byte_strings(&mut self, bytes: &[u8], base: u64) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        self.fields("tf.train.BytesList", bytes, base, |_, field| match *field {
            (1, Wire::Bytes(bytes, _)) => {
                found.push(Value::Bytes(bytes.to_vec()));
                KNOWN
            }
            _ => UNKNOWN,
        })?;
        Ok(found)
    }

    fn floats(&mut self, bytes: &[u8], base: u64) -> Result<Array> {
        let mut found = Vec::new();
        self.fields("tf.train.FloatList", bytes, base, |_, field| {
            match *field {
                (1, Wire::Four(number)) => found.extend(number),
                (1, Wire::Bytes(packed, _)) if packed.len() % 4 == 0 => found.extend(packed),
                (1, Wire::Bytes(packed, at)) => {
                    let what = format!("{} bytes are not whole floats", packed.len());
                    return Err(Error::corrupt(what).byte(at));
                }
                _ => return UNKNOWN,
            }
            KNOWN
        })?;
        Ok(Array { dtype: DType::F32, shape: vec![(found.len() / 4) as u64], bytes: found })
    }

    fn whole(&mut self, bytes: &[u8], base: u64) -> Result<Array> {
        let mut found: Vec<u8> = Vec::new();
        self.fields("tf.train.Int64List", bytes, base, |_, field| {
            match *field {
                (1, Wire::Number(number)) => found.extend(number.to_le_bytes()),
                (1, Wire::Bytes(packed, base)) => {
                    let mut numbers = Fields::of(WHAT, packed, base);
                    while !numbers.is_at_end() {
                        found.extend(numbers.varint()?.to_le_bytes());
                    }
                }
                _ => return UNKNOWN,
            }
            KNOWN
        })?;
        Ok(Array { dtype: DType::I64, shape: vec![(found.len() / 8) as u64], bytes: found })
    }
}
