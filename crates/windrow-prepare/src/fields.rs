//! What an encoder takes of a record that is not a line: the text in a field, or the JSON of some.

use serde_json::Value as Json;
use windrow_core::{Array, DType, Error, Result, Row, Value};

/// What an encoder takes of a row, or of a dict that is handed over.
#[derive(Clone, Copy, Debug)]
pub enum Takes<'a> {
    /// The text in this field: its name, or a path of names with dots.
    Text(&'a str),
    /// The text of a JSON object of these fields: what the line of the same record would be.
    Json(&'a Fields),
}

/// Fields of which an encoder is given a JSON object, where they are there and hold no null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Paths, at least one of which has to be there.
    pub any_of: Vec<String>,
    /// Other paths, and their keys in the object.
    pub also: Vec<(String, String)>,
    /// The option that names the first ones.
    pub option: &'static str,
}

impl Fields {
    /// The JSON text of what `get` finds at the paths. Null in an object is left out, unless nulls are kept.
    ///
    /// # Errors
    /// That of `get`; `Corrupt` for a value that JSON has not.
    pub fn json(
        &self,
        keeps_nulls: bool,
        mut get: impl FnMut(&str) -> Result<Option<Value>>,
    ) -> Result<String> {
        let mut object = Object::default();
        let first = self.any_of.iter().map(|path| (path, path));
        for (path, key) in first.chain(self.also.iter().map(|(path, key)| (path, key))) {
            let Some(value) = get(path)?.filter(|value| keeps_nulls || !value.is_null()) else { continue };
            let refused = |what: &str| Error::corrupt(format!("{path:?} holds {what}, which is not JSON"));
            object
                .add(key, |out| write(value, keeps_nulls, out))
                .map_err(|what| refused(what).field(path.clone()))?;
        }
        Ok(object.closed())
    }

    /// The names that a column may have in which a path begins: all of the path, or what is before one of its dots.
    pub(super) fn may_begin_in(&self) -> Vec<String> {
        let paths = self.any_of.iter().chain(self.also.iter().map(|(path, _)| path));
        paths.flat_map(|path| begins(path).map(str::to_string)).collect()
    }

    /// Those of the columns in which the paths begin.
    ///
    /// # Errors
    /// `Config` where none of the first ones is there.
    pub(super) fn columns(&self, names: &[&str]) -> Result<Vec<String>> {
        let column = |path: &str| begins(path).find(|name| names.contains(name)).map(str::to_string);
        let mut columns: Vec<String> = self.any_of.iter().filter_map(|path| column(path)).collect();
        if columns.is_empty() {
            let wanted: Vec<String> = self.any_of.iter().map(|path| format!("{path:?}")).collect();
            return Err(Error::config(format!("no column {}", wanted.join(" or ")))
                .field(self.option)
                .hint(format!("it has {}; choose one with the option {}", names.join(", "), self.option)));
        }
        for other in self.also.iter().filter_map(|(path, _)| column(path)) {
            if !columns.contains(&other) {
                columns.push(other);
            }
        }
        columns.dedup();
        Ok(columns)
    }
}

// A path, and what is before each of its dots.
fn begins(path: &str) -> impl Iterator<Item = &str> {
    std::iter::once(path).chain(path.rmatch_indices('.').map(|(dot, _)| &path[..dot]))
}

/// The value at a path of names: names may have dots themselves.
pub(super) fn at_path<'r>(row: &'r Row, path: &str) -> Option<&'r Value> {
    let inside = |dot: usize| match row.get(&path[..dot]) {
        Some(Value::Struct(inner)) => at_path(inner, &path[dot + 1..]),
        _ => None,
    };
    row.get(path).or_else(|| path.rmatch_indices('.').find_map(|(dot, _)| inside(dot)))
}

/// What of a value JSON has not.
type Written = std::result::Result<(), &'static str>;

/// The text of a JSON object as it grows. Text rather than a value: numbers have all their digits.
#[derive(Default)]
struct Object(String);

impl Object {
    fn add(&mut self, key: &str, value: impl FnOnce(&mut String) -> Written) -> Written {
        self.0 += if self.0.is_empty() { "{" } else { "," };
        self.0 += &Json::from(key).to_string();
        self.0 += ":";
        value(&mut self.0)
    }

    fn closed(self) -> String {
        if self.0.is_empty() { "{}".to_string() } else { self.0 + "}" }
    }
}

// The JSON of a value.
fn write(value: Value, keeps_nulls: bool, out: &mut String) -> Written {
    let plain = match value {
        Value::Bytes(_) => return Err("bytes"),
        Value::F64(number) => fraction(number)?,
        Value::Big(digits) => {
            *out += &digits;
            return Ok(());
        }
        Value::Array(array) => numbers(&array)?,
        Value::List(values) => {
            *out += "[";
            for (at, value) in values.into_iter().enumerate() {
                *out += if at > 0 { "," } else { "" };
                write(value, keeps_nulls, out)?;
            }
            *out += "]";
            return Ok(());
        }
        Value::Struct(row) => {
            let mut object = Object::default();
            for (name, value) in row.into_iter().filter(|(_, value)| keeps_nulls || !value.is_null()) {
                object.add(&name, |out| write(value, keeps_nulls, out))?;
            }
            *out += &object.closed();
            return Ok(());
        }
        plain => plain.to_json().unwrap_or_default(),
    };
    *out += &plain.to_string();
    Ok(())
}

fn fraction(number: f64) -> std::result::Result<Json, &'static str> {
    if number.is_finite() { Ok(Json::from(number)) } else { Err("NaN or infinity") }
}

// The numbers of an array with one axis.
fn numbers(array: &Array) -> std::result::Result<Json, &'static str> {
    if array.shape.len() != 1 {
        return Err("an array of several axes");
    }
    let number = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        let unused = 64 - 8 * u32::try_from(bytes.len()).unwrap_or(8);
        // Shifted up and down again, its sign fills what is unused.
        let signed = Json::from((bits << unused).cast_signed() >> unused);
        match array.dtype {
            DType::Bool => Ok(Json::Bool(bits != 0)),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Ok(Json::from(bits)),
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Ok(signed),
            DType::F32 => fraction(f32::from_bits(u32::try_from(bits).unwrap_or_default()).into()),
            DType::F64 => fraction(f64::from_bits(bits)),
            DType::F16 | DType::Bf16 => Err("numbers of half precision"),
        }
    };
    let all: std::result::Result<_, _> = array.bytes.chunks_exact(array.dtype.size()).map(number).collect();
    all.map(Json::Array)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(any_of: &[&str], also: &[(&str, &str)]) -> Fields {
        let also = also.iter().map(|(path, key)| (path.to_string(), key.to_string())).collect();
        Fields { any_of: any_of.iter().map(ToString::to_string).collect(), also, option: "messages_field" }
    }

    #[test]
    fn the_json_of_fields_is_that_of_the_line() {
        let list = |dtype: DType, bytes: &[u8]| {
            let shape = vec![(bytes.len() / dtype.size()) as u64];
            Value::Array(Array { dtype, shape, bytes: bytes.to_vec() })
        };
        let row: Row = [
            (
                "m",
                Value::from(json!([{"role": "user", "name": null, "calls": [{"of": {"x": null, "y": 1}}]}])),
            ),
            ("i", list(DType::I16, &[1, 0, 0xff, 0xff])),
            ("b", list(DType::Bool, &[0, 1])),
            ("f", list(DType::F32, &1.5f32.to_le_bytes())),
            (
                "big",
                Value::List(vec![Value::Big("-18446744073709551616".to_string()), 1.into(), "é\"".into()]),
            ),
            ("none", Value::Null),
        ]
        .into_iter()
        .collect();
        let wanted =
            fields(&["m", "n"], &[("i", "I"), ("b", "b"), ("f", "f"), ("big", "big"), ("none", "none")]);
        let get = |path: &str| Ok(at_path(&row, path).cloned());
        let rest = r#""I":[1,-1],"b":[false,true],"f":[1.5],"big":[-18446744073709551616,1,"é\""]"#;
        assert_eq!(
            wanted.json(false, get).unwrap(),
            format!(r#"{{"m":[{{"role":"user","calls":[{{"of":{{"y":1}}}}]}}],{rest}}}"#)
        );
        assert_eq!(
            wanted.json(true, get).unwrap(),
            format!(
                r#"{{"m":[{{"role":"user","name":null,"calls":[{{"of":{{"x":null,"y":1}}}}]}}],{rest},"none":null}}"#
            )
        );
        for value in [Value::Bytes(vec![1]), Value::F64(f64::NAN), list(DType::F16, &[0, 0])] {
            let error =
                fields(&["m"], &[]).json(false, |_| Ok(Some(Value::List(vec![value.clone()])))).unwrap_err();
            assert!(error.message().contains("which is not JSON"), "{error}");
            assert_eq!(error.place().field.as_deref(), Some("m"));
        }
    }

    #[test]
    fn columns_are_those_in_which_paths_begin() {
        let of =
            |any_of: &[&str], also: &[(&str, &str)]| fields(any_of, also).columns(&["json", "tools", "a.b"]);
        assert_eq!(of(&["json.turns"], &[("json.tools", "tools")]).unwrap(), ["json"]);
        assert_eq!(of(&["none", "a.b.c"], &[("tools", "tools"), ("no", "no")]).unwrap(), ["a.b", "tools"]);
        let error = of(&["messages", "conversations"], &[("tools", "tools")]).unwrap_err();
        assert!(format!("{error:#}").contains("no column \"messages\" or \"conversations\""), "{error}");
    }

    #[test]
    fn a_path_goes_into_objects_and_names_may_have_dots() {
        let row = |json: serde_json::Value| match Value::from(json) {
            Value::Struct(row) => row,
            _ => Row::new(),
        };
        let at = |path: &str, json| at_path(&row(json), path).cloned();
        assert_eq!(at("a", json!({"a": "x"})), Some("x".into()));
        assert_eq!(at("a.b", json!({"a": {"b": "x"}})), Some("x".into()));
        assert_eq!(at("a.b", json!({"a": {"b": "y"}, "a.b": "x"})), Some("x".into()));
        assert_eq!(at("a.b.c", json!({"a": {"b.c": "x"}, "a.b": 1})), Some("x".into()));
        assert_eq!(at("a.b.c", json!({"a": {"b": {"c": "x"}}})), Some("x".into()));
        assert_eq!(at("a.b", json!({"a": "x"})), None);
        assert_eq!(at(".", json!({"": {"": "x"}})), Some("x".into()));
    }
}
