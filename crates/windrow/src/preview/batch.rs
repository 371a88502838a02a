//! A batch to look at elsewhere: its arrays as an `.npz`, or all of it as text.

use std::fmt::Write;

use windrow_core::collate::{Batch, Field};
use windrow_core::number::{Number, number};
use windrow_core::{Element, Error, Result};
use windrow_formats::{NamedArray, npz_of};

/// What makes text of the token IDs of a row; none where it lacks one of them.
pub type Decode<'a> = &'a dyn Fn(usize, &[i64]) -> Option<String>;

/// The bytes of an `.npz` that holds its tensors by name, `[rows, …]`.
///
/// # Errors
/// `Config` where there are none: rows that are records.
pub fn npz(batch: &Batch) -> Result<Vec<u8>> {
    if batch.fields().is_empty() {
        return Err(Error::config("the rows of this batch are records, which are not arrays")
            .hint("write it as .txt, or cut rows with stack"));
    }
    if let Some(list) = batch.lists().first() {
        windrow_core::warn!("{} is not a column of numbers: it is left out of the arrays", list.name);
    }
    let arrays = batch.fields().iter().enumerate().map(|(number, field)| NamedArray {
        name: &field.name,
        dtype: field.dtype,
        shape: std::iter::once(batch.rows()).chain(field.shape.iter().copied()).map(|n| n as u64).collect(),
        bytes: batch.bytes(number),
    });
    npz_of(&arrays.collect::<Vec<_>>())
}

/// Row by row: a line `row N`, then each tensor as `name: numbers`, or with `decode` the text of its token IDs alone; records and
/// columns of anything else as JSON.
pub fn text(batch: &Batch, decode: Option<Decode<'_>>) -> String {
    let mut out = String::new();
    for row in 0..batch.rows() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "row {row}");
        for (number, field) in batch.fields().iter().enumerate() {
            let numbers = numbers_of(batch, number, row);
            if let Some(decode) = decode.filter(|_| is_ids(field))
                && let Some(text) = ids(&numbers).and_then(|ids| decode(row, &ids))
            {
                out.push_str(&text);
                out.push_str(if text.ends_with('\n') { "" } else { "\n" });
                break;
            }
            let _ = write!(out, "{}:", field.name);
            for number in numbers {
                let _ = match number {
                    Number::Bool(flag) => write!(out, " {}", u8::from(flag)),
                    Number::Int(number) => write!(out, " {number}"),
                    Number::Big(number) => write!(out, " {number}"),
                    Number::Float(number) => write!(out, " {number}"),
                };
            }
            out.push('\n');
        }
        if let Some(record) = batch.records().get(row) {
            let _ = writeln!(out, "{}", record.shown());
        }
        for list in batch.lists() {
            if let Some(value) = list.values.get(row) {
                let _ = writeln!(out, "{}: {}", list.name, value.shown());
            }
        }
    }
    out
}

// Masks and positions are whole numbers too.
fn is_ids(field: &Field) -> bool {
    field.dtype.is_integer() && matches!(&*field.name, "input_ids" | "values")
}

fn ids(numbers: &[Number]) -> Option<Vec<i64>> {
    let whole = |number: &Number| if let Number::Int(id) = number { Some(*id) } else { None };
    numbers.iter().map(whole).collect()
}

fn numbers_of(batch: &Batch, field: usize, row: usize) -> Vec<Number> {
    let of = &batch.fields()[field];
    let bytes = &batch.bytes(field)[row * of.row_size()..][..of.row_size()];
    let numbers = bytes.chunks_exact(of.dtype.size()).map(|bytes| number(bytes, Element::little(of.dtype)));
    numbers.map(|number| number.unwrap_or(Number::Int(0))).collect()
}
