//! One value of a named column, and a row of them: what a record holds beside its numbers, or instead of them.
//!
//! Formats give the same value for the same content: whole numbers are [`Value::I64`] wherever that holds them, a list
//! of numbers of one stored dtype is a [`Value::Array`], a list of anything else a [`Value::List`].

use serde_json::{Map, Number, Value as Json};

use crate::array::DType;

/// One value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// None.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    I64(i64),
    /// A whole number above those of `I64`, and no other.
    U64(u64),
    /// A whole number beyond 64 bits, in decimal digits.
    Big(String),
    /// A fraction, NaN and the infinities among them.
    F64(f64),
    /// UTF-8 text.
    Text(String),
    /// Bytes that the format says nothing more of: a picture, a sound.
    Bytes(Vec<u8>),
    /// Numbers of one dtype.
    Array(Array),
    /// Any other list.
    List(Vec<Value>),
    /// Values by name.
    Struct(Row),
}

/// Numbers of one dtype, in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Type of a number.
    pub dtype: DType,
    /// Lengths of the axes; their product times the dtype's size is the number of bytes.
    pub shape: Vec<u64>,
    /// Little-endian.
    pub bytes: Vec<u8>,
}

/// Values by name, in the order in which they were put there. A name occurs once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Vec<(String, Value)>);

impl Row {
    /// Without a value.
    pub const fn new() -> Row {
        Row(Vec::new())
    }

    /// Of names that are known to differ: nothing is looked up.
    pub fn of_distinct(values: Vec<(String, Value)>) -> Row {
        Row(values)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// No values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Puts a value there; gives back the one that it replaces.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, place)) => Some(std::mem::replace(place, value)),
            None => {
                self.0.push((name, value));
                None
            }
        }
    }

    /// Takes a value out; the others keep their order.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Puts the values of another one there, by name.
    pub fn extend(&mut self, others: impl Into<Row>) {
        for (name, value) in others.into() {
            self.insert(name, value);
        }
    }

    /// Keeps the values of which `is_kept` says so.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str, &Value) -> bool) {
        self.0.retain(|(name, value)| is_kept(name, value));
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> + Clone {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// As JSON; `None` where a value is something that JSON cannot say, see [`Value::to_json`].
    pub fn to_json(&self) -> Option<Map<String, Json>> {
        self.iter().map(|(name, value)| Some((name.to_string(), value.to_json()?))).collect()
    }

    /// For people: what JSON cannot say is described instead.
    pub fn shown(&self) -> Map<String, Json> {
        self.iter().map(|(name, value)| (name.to_string(), value.shown())).collect()
    }
}

impl IntoIterator for Row {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Row {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(values: I) -> Row {
        let mut row = Row::new();
        for (name, value) in values {
            row.insert(name, value);
        }
        row
    }
}

impl Value {
    /// The values by name that it is, or a row of it alone, called `value`.
    pub fn into_row(self) -> Row {
        match self {
            Value::Struct(row) => row,
            other => Row(vec![("value".to_string(), other)]),
        }
    }

    /// The text, where it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, where it is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::I64(number) => Some(*number),
            _ => None,
        }
    }

    /// Bytes of the content: 8 of a number, names left out.
    pub fn size(&self) -> usize {
        match self {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::I64(_) | Value::U64(_) | Value::F64(_) => 8,
            Value::Big(text) | Value::Text(text) => text.len(),
            Value::Bytes(bytes) | Value::Array(Array { bytes, .. }) => bytes.len(),
            Value::List(values) => values.iter().map(Value::size).sum(),
            Value::Struct(row) => row.iter().map(|(_, value)| value.size()).sum(),
        }
    }

    /// Nothing.
    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    /// The whole number, where it is one that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::I64(number) => u64::try_from(*number).ok(),
            Value::U64(number) => Some(*number),
            _ => None,
        }
    }

    /// Converts it to JSON, without loss; `None` for bytes, arrays, NaN, the infinities, and whole numbers beyond 64 bits.
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::I64(value) => Json::from(*value),
            Value::U64(value) => Json::from(*value),
            Value::F64(value) => Json::Number(Number::from_f64(*value)?),
            Value::Text(text) => Json::String(text.clone()),
            Value::Big(_) | Value::Bytes(_) | Value::Array(_) => return None,
            Value::List(values) => Json::Array(values.iter().map(Value::to_json).collect::<Option<_>>()?),
            Value::Struct(row) => Json::Object(row.to_json()?),
        })
    }

    /// For people: JSON, with a description of what JSON cannot say.
    pub fn shown(&self) -> Json {
        match self {
            Value::F64(value) if !value.is_finite() => Json::String(value.to_string()),
            Value::Big(digits) => Json::String(digits.clone()),
            Value::Bytes(bytes) => Json::String(format!("{} bytes", bytes.len())),
            Value::Array(array) => Json::String(format!("{} {:?}", array.dtype, array.shape)),
            Value::List(values) => Json::Array(values.iter().map(Value::shown).collect()),
            Value::Struct(row) => Json::Object(row.shown()),
            plain => plain.to_json().unwrap_or_default(),
        }
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(whole), _, _) => Value::I64(whole),
                (None, Some(whole), _) => Value::U64(whole),
                (None, None, fraction) => Value::F64(fraction.unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(text),
            Json::Array(values) => Value::List(values.into_iter().map(Value::from).collect()),
            Json::Object(values) => Value::Struct(Row::from(values)),
        }
    }
}

impl From<Map<String, Json>> for Row {
    fn from(values: Map<String, Json>) -> Row {
        Row(values.into_iter().map(|(name, value)| (name, Value::from(value))).collect())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        i64::try_from(value).map_or(Value::U64(value), Value::I64)
    }
}

macro_rules! from {
    ($($type:ty: $variant:ident),*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$variant(value.into())
            }
        }
    )*};
}

from!(bool: Bool, i64: I64, i32: I64, u32: I64, f64: F64, String: Text, &str: Text, Vec<u8>: Bytes, Array: Array, Vec<Value>: List, Row: Struct);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_keeps_the_order_of_its_names_and_each_once() {
        let mut row: Row = [("b", 1u64), ("a", 2)].into_iter().collect();
        assert_eq!(row.insert("b", "new"), Some(Value::I64(1)));
        row.insert("c", Value::Null);
        assert_eq!(row.names().collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(row.remove("a"), Some(Value::I64(2)));
        assert_eq!((row.get("b").and_then(Value::as_text), row.get("a"), row.len()), (Some("new"), None, 2));
    }

    #[test]
    fn json_goes_in_and_out_without_loss() {
        let json = json!({"t": "x", "n": null, "i": -3, "u": u64::MAX, "f": 0.5, "l": [1, {"k": true}]});
        let value = Value::from(json.clone());
        assert_eq!(value.to_json(), Some(json));
        let Value::Struct(row) = value else { panic!("a struct") };
        assert_eq!(row.get("u"), Some(&Value::U64(u64::MAX)));
        assert_eq!(row.get("i").and_then(Value::as_i64), Some(-3));
    }

    #[test]
    fn what_json_cannot_say_is_described() {
        let array = Array { dtype: DType::I16, shape: vec![2, 1], bytes: vec![0; 4] };
        let row: Row = [("a", Value::from(array)), ("b", vec![1u8].into()), ("f", f64::INFINITY.into())]
            .into_iter()
            .collect();
        assert_eq!(row.to_json(), None);
        assert_eq!(json!(row.shown()), json!({"a": "int16 [2, 1]", "b": "1 bytes", "f": "inf"}));
    }
}
