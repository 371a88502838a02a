//! Records side by side: each column of numbers as one tensor, each other column as a list.

use std::sync::Arc;

use super::{Batch, Field, List, Pool};
use crate::array::DType;
use crate::error::{Error, Place, Result};
use crate::row::{Row, Value};

/// What the column of records without names is called.
const UNNAMED: &str = "value";

/// The columns of these records: tensors `[rows, …]` of numbers and arrays, lists of anything else. `place` says where the
/// record of a row lies.
///
/// # Errors
/// `Mismatch` naming column and record where records have other columns, or numbers of another shape or dtype, than those
/// before them.
pub(super) fn stacked(
    records: Vec<Value>,
    place: &dyn Fn(usize) -> Place,
    pool: Option<&Pool>,
) -> Result<Batch> {
    let rows = records.len();
    let (names, columns) = columns(records, place)?;
    let mut fields = Vec::new();
    let mut tensors = Vec::new();
    let mut lists = Vec::new();
    for (name, values) in names.into_iter().zip(columns) {
        match common(&name, &values, place)? {
            Some(Numbers { dtype, shape, .. }) => {
                fields.push(Field::new(name, dtype, shape));
                tensors.push(values);
            }
            None => lists.push(List { name, values, n_fields_before: fields.len() }),
        }
    }
    let mut batch = Batch::new(Arc::from(fields), rows, pool)?;
    for (number, values) in tensors.iter().enumerate() {
        let Field { name, dtype, .. } = batch.fields()[number].clone();
        let size = batch.fields()[number].row_size();
        let bytes = batch.bytes_mut(number);
        for (row, value) in values.iter().enumerate() {
            if !write(value, dtype, &mut bytes[row * size..][..size]) {
                let found = value.shown().to_string();
                return Err(at(
                    place(row),
                    Error::mismatch(format!("column {name:?}: {found} does not fit {dtype}")),
                ));
            }
        }
    }
    Ok(batch.with_lists(lists))
}

// Names and values, column by column.
fn columns(records: Vec<Value>, place: &dyn Fn(usize) -> Place) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
    let n_rows = records.len();
    let mut names: Vec<String> = Vec::new();
    let mut columns: Vec<Vec<Value>> = Vec::new();
    for (number, record) in records.into_iter().enumerate() {
        let mut row = match record {
            Value::Struct(row) => row,
            other => Row::from_iter([(UNNAMED, other)]),
        };
        if number == 0 {
            names = row.names().map(str::to_string).collect();
            columns = names.iter().map(|_| Vec::with_capacity(n_rows)).collect();
        }
        if row.names().eq(names.iter().map(String::as_str)) {
            for ((_, value), column) in row.into_iter().zip(&mut columns) {
                column.push(value);
            }
            continue;
        }
        let differs = |what: String| at(place(number), Error::mismatch(what)).hint(HINT);
        let first = place(0).record.unwrap_or(0);
        for (name, column) in names.iter().zip(&mut columns) {
            let value = row.remove(name);
            column.push(
                value.ok_or_else(|| differs(format!("no column {name:?} here, but in record {first}")))?,
            );
        }
        if let Some(name) = row.names().next() {
            return Err(differs(format!("a column {name:?} here, but none in record {first}")));
        }
    }
    Ok((names, columns))
}

const HINT: &str =
    "without @stack@ the rows come as they are, and @collate@ may pad them; @columns@ leaves columns out";

const WHOLE: &str = "write the whole numbers of this column as 1.0, as its fractions are";

// What the numbers of a column have in common; `None` where it has none.
fn common(name: &str, values: &[Value], place: &dyn Fn(usize) -> Place) -> Result<Option<Numbers>> {
    let Some(first) = values.first() else { return Ok(None) };
    let mut common = Numbers::of(first);
    for (row, value) in values.iter().enumerate().skip(1) {
        let found = Numbers::of(value);
        let said = |numbers: &Option<Numbers>, value| match numbers {
            Some(numbers) => numbers.to_string(),
            None => kind(value).to_string(),
        };
        let joined = match (&common, &found) {
            (None, None) => continue,
            (Some(ours), Some(theirs)) => ours.join(theirs, false),
            _ => None,
        };
        if joined.is_none() {
            let (here, there) = (said(&found, value), said(&common, first));
            let first = place(0).record.unwrap_or(0);
            let error = Error::mismatch(format!("column {name:?}: {here} here, {there} in record {first}"));
            let hint = match (&common, &found) {
                // As in one list they would do.
                (Some(ours), Some(theirs)) if ours.join(theirs, true).is_some() => format!("{WHOLE}; {HINT}"),
                _ => HINT.to_string(),
            };
            return Err(at(place(row), error).hint(hint));
        }
        common = joined;
    }
    Ok(common)
}

fn at(place: Place, error: Error) -> Error {
    let error = match place.record {
        Some(record) => error.record(record),
        None => error,
    };
    match place.file {
        Some(file) => error.at(file),
        None => error,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Text(_) => "text",
        Value::Bytes(_) => "bytes",
        Value::Big(_) => "a number beyond 64 bits",
        Value::Struct(_) => "values by name",
        Value::List(_) => "a list that is not an array",
        Value::Bool(_) | Value::I64(_) | Value::U64(_) | Value::F64(_) | Value::Array(_) => "numbers",
    }
}

/// Numbers of one shape.
#[derive(Clone, Debug, PartialEq)]
struct Numbers {
    dtype: DType,
    shape: Vec<usize>,
    /// Written without a dtype: whole numbers among the fractions of one list are fractions.
    is_plain: bool,
}

impl std::fmt::Display for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.shape)
    }
}

impl Numbers {
    fn of(value: &Value) -> Option<Numbers> {
        let plain = |dtype| Some(Numbers { dtype, shape: Vec::new(), is_plain: true });
        match value {
            Value::Bool(_) => plain(DType::Bool),
            Value::I64(_) => plain(DType::I64),
            Value::U64(_) => plain(DType::U64),
            Value::F64(_) => plain(DType::F64),
            Value::Array(array) => {
                let shape = array.shape.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>()?;
                Some(Numbers { dtype: array.dtype, shape, is_plain: false })
            }
            Value::List(values) => {
                let (first, others) = values.split_first()?;
                let first = Numbers::of(first).filter(|numbers| numbers.is_plain)?;
                let mut all =
                    others.iter().try_fold(first, |all, value| all.join(&Numbers::of(value)?, true))?;
                all.shape.insert(0, values.len());
                Some(all)
            }
            Value::Null | Value::Big(_) | Value::Text(_) | Value::Bytes(_) | Value::Struct(_) => None,
        }
    }

    // What holds both, where anything does. A record's list has its dtype by itself; from the records of a batch a column
    // would have another one in the next batch and on the next rank, so there fractions and whole numbers differ.
    fn join(&self, other: &Numbers, is_one_list: bool) -> Option<Numbers> {
        if self.shape != other.shape || self.is_plain != other.is_plain {
            return None;
        }
        let dtype = match (self.dtype, other.dtype) {
            (ours, theirs) if ours == theirs => ours,
            (DType::Bool, _) | (_, DType::Bool) => return None,
            _ if !self.is_plain => return None,
            (DType::F64, _) | (_, DType::F64) => is_one_list.then_some(DType::F64)?,
            // One above those of int64 among others: what is negative does not fit.
            _ => DType::U64,
        };
        Some(Numbers { dtype, ..self.clone() })
    }
}

// Whether the value fits.
fn write(value: &Value, dtype: DType, out: &mut [u8]) -> bool {
    let number: Option<[u8; 8]> = match (value, dtype) {
        (Value::I64(n), DType::I64) => Some(n.to_le_bytes()),
        (Value::I64(n), DType::U64) => u64::try_from(*n).ok().map(u64::to_le_bytes),
        (Value::U64(n), DType::U64) => Some(n.to_le_bytes()),
        (Value::I64(n), DType::F64) => exact(*n as f64, i128::from(*n)),
        (Value::U64(n), DType::F64) => exact(*n as f64, i128::from(*n)),
        (Value::F64(x), DType::F64) => Some(x.to_le_bytes()),
        (Value::Bool(is_true), DType::Bool) => {
            out[0] = u8::from(*is_true);
            return true;
        }
        (Value::Array(array), _) if array.bytes.len() == out.len() => {
            out.copy_from_slice(&array.bytes);
            return true;
        }
        (Value::List(values), _) if !values.is_empty() => {
            let size = out.len() / values.len();
            let mut places = out.chunks_exact_mut(size.max(1));
            return values.iter().all(|value| places.next().is_some_and(|place| write(value, dtype, place)));
        }
        _ => None,
    };
    number.is_some_and(|bytes| {
        out.copy_from_slice(&bytes);
        true
    })
}

fn exact(fraction: f64, whole: i128) -> Option<[u8; 8]> {
    (fraction as i128 == whole).then(|| fraction.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::row::Array;

    fn rows(json: serde_json::Value) -> Vec<Value> {
        json.as_array().unwrap().iter().cloned().map(Value::from).collect()
    }

    fn place(row: usize) -> Place {
        Place { file: Some("data".to_string()), record: Some(10 + row as u64), ..Place::default() }
    }

    fn check(records: serde_json::Value) -> Batch {
        stacked(rows(records), &place, None).unwrap()
    }

    #[track_caller]
    fn refused(records: Vec<Value>, says: &str) {
        let error = stacked(records, &place, None).unwrap_err();
        assert!(format!("{error:#}").starts_with(says), "{error}");
        assert_eq!((error.place().record, error.place().file.as_deref()), (Some(11), Some("data")));
    }

    #[test]
    fn numbers_stack_and_others_are_lists() {
        let batch = check(json!([
            {"t": "a", "n": 1, "x": 0.5, "b": true, "l": [[1, 2], [3.5, 4]], "m": [1, "z"]},
            {"n": 2, "t": "b", "x": 1.0, "b": false, "l": [[5, 6], [7, 8.5]], "m": null},
        ]));
        let fields: Vec<String> =
            batch.fields().iter().map(|f| format!("{} {} {:?}", f.name, f.dtype, f.shape)).collect();
        assert_eq!(fields, ["n int64 []", "x float64 []", "b bool []", "l float64 [2, 2]"]);
        assert_eq!(batch.get::<i64>("n").unwrap(), [1, 2]);
        assert_eq!(batch.get::<f64>("x").unwrap(), [0.5, 1.0]);
        assert_eq!(batch.get::<f64>("l").unwrap(), [1., 2., 3.5, 4., 5., 6., 7., 8.5]);
        assert_eq!(batch.list("t").unwrap(), [Value::from("a"), Value::from("b")]);
        let places: Vec<_> =
            batch.lists().iter().map(|list| (&list.name[..], list.n_fields_before)).collect();
        assert_eq!(places, [("t", 0), ("m", 4)]);
        assert_eq!((batch.rows(), batch.size()), (2, 2 * (8 + 8 + 1 + 32) + 2 + 8 + 1));
    }

    #[test]
    fn arrays_keep_their_dtype() {
        let array = |bytes: &[u8]| {
            let array =
                Array { dtype: DType::I16, shape: vec![bytes.len() as u64 / 2, 1], bytes: bytes.to_vec() };
            Value::Struct([("a", Value::from(array))].into_iter().collect())
        };
        let batch = stacked(vec![array(&[1, 0, 2, 0]), array(&[3, 0, 4, 0])], &place, None).unwrap();
        assert_eq!(batch.fields()[0], Field::new("a", DType::I16, [2, 1]));
        assert_eq!(batch.get::<i16>("a").unwrap(), [1, 2, 3, 4]);
        refused(
            vec![array(&[1, 0, 2, 0]), array(&[3, 0])],
            "column \"a\": int16 [1, 1] here, int16 [2, 1] in record 10",
        );
    }

    #[test]
    fn what_differs_is_named() {
        refused(rows(json!([{"a": 1}, {"a": null}])), "column \"a\": null here, int64 [] in record 10");
        refused(rows(json!([{"a": "x"}, {"a": 2}])), "column \"a\": int64 [] here, text in record 10");
        refused(rows(json!([{"a": true}, {"a": 2}])), "column \"a\": int64 [] here, bool [] in record 10");
        refused(rows(json!([{"a": [1]}, {"a": []}])), "column \"a\": a list that is not an array here");
        refused(rows(json!([{"a": 1}, {"b": 2}])), "no column \"a\" here, but in record 10");
        refused(rows(json!([{"a": 1}, {"a": 2, "b": 2}])), "a column \"b\" here, but none in record 10");
        refused(
            rows(json!([{"a": [0.5, 1]}, {"a": [0.5, u64::MAX]}])),
            "column \"a\": [0.5,18446744073709551615] does not fit float64",
        );
        refused(rows(json!([{"a": u64::MAX}, {"a": -1}])), "column \"a\": -1 does not fit uint64");
    }

    #[test]
    fn fractions_and_whole_numbers_are_not_one_dtype() {
        refused(rows(json!([{"a": 0.5}, {"a": 1}])), "column \"a\": int64 [] here, float64 [] in record 10");
        refused(rows(json!([{"a": 1}, {"a": 0.5}])), "column \"a\": float64 [] here, int64 [] in record 10");
        refused(rows(json!([{"a": [1, 2]}, {"a": [1, 2.5]}])), "column \"a\": float64 [2] here, int64 [2]");
        refused(rows(json!([{"a": 0.5}, {"a": u64::MAX}])), "column \"a\": uint64 [] here, float64 []");
        let hint = |json| {
            let error = stacked(rows(json), &place, None).unwrap_err();
            error.hint_text().unwrap().contains("as 1.0")
        };
        assert!(hint(json!([{"a": 1}, {"a": 0.5}])));
        assert!(!hint(json!([{"a": 1}, {"a": null}])));
        // Whole numbers keep their values in either.
        assert_eq!(check(json!([{"a": 1}, {"a": u64::MAX}])).get::<u64>("a").unwrap(), [1, u64::MAX]);
    }

    #[test]
    fn records_without_names_are_values() {
        assert_eq!(check(json!([3, 4])).get::<i64>("value").unwrap(), [3, 4]);
        assert_eq!(check(json!([])).rows(), 0);
        assert_eq!(check(json!([[], []])).list("value").unwrap().len(), 2);
    }
}
