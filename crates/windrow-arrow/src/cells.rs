//! What a column holds, as it is decoded: numbers and texts without a value for each row.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type,
};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::DataType;
use windrow_core::format::columns::TakeCells;
use windrow_core::source::Cells;
use windrow_core::{Error, Result, Value};

use crate::scan::Scan;
use crate::set::{Files, Set};

/// Rows of other types that are given together.
const TOGETHER: usize = 256;

/// Gives what a column of a set holds of some rows, of those of all files.
///
/// # Errors
/// `Corrupt` for pages that cannot be decoded; those of `take`.
pub(crate) fn go_through(
    files: &Files,
    set: &Set,
    name: &str,
    rows: Range<u64>,
    take: &mut TakeCells<'_>,
) -> Result<()> {
    let mut row = rows.start;
    while row < rows.end {
        let (number, first) = files.find(row)?;
        let file = &files.files[number];
        let end = rows.end.min(files.firsts[number + 1]);
        let local = first..first + (end - row);
        match file.type_of(name) {
            Some(of_type) if is_plain(of_type) => {
                let mut reader = file.column(name, local).map_err(|e| e.record(row))?;
                let mut at = row;
                while let Some(batch) = file.next_batch(&mut reader).map_err(|e| e.record(at))? {
                    give(batch.column(0).as_ref(), at, take)?;
                    at += batch.num_rows() as u64;
                }
                if at != end {
                    return Err(Error::corrupt(format!("{} rows, expected {}", at - row, end - row))
                        .at(file.object().name()));
                }
            }
            _ => one_by_one(files, &set.only(name), name, row..end, take)?,
        }
        row = end;
    }
    Ok(())
}

fn is_plain(of_type: &DataType) -> bool {
    use DataType as T;
    matches!(
        of_type,
        T::Int8
            | T::Int16
            | T::Int32
            | T::Int64
            | T::UInt8
            | T::UInt16
            | T::UInt32
            | T::Float16
            | T::Float32
            | T::Float64
            | T::Boolean
            | T::Utf8
            | T::LargeUtf8
            | T::Utf8View
    )
}

fn one_by_one(
    files: &Files,
    only: &Set,
    name: &str,
    rows: Range<u64>,
    take: &mut TakeCells<'_>,
) -> Result<()> {
    let mut values = Vec::with_capacity(TOGETHER);
    let mut first = rows.start;
    let scan = Scan::new(files, only, vec![name], rows.start);
    for (record, row) in rows.clone().zip(scan) {
        values.push(row?.remove(name).unwrap_or(Value::Null));
        if values.len() == TOGETHER || record + 1 == rows.end {
            take(first, Cells::Values(&values))?;
            values.clear();
            first = record + 1;
        }
    }
    Ok(())
}

fn give(array: &dyn Array, first: u64, take: &mut TakeCells<'_>) -> Result<()> {
    use DataType as T;
    match array.data_type() {
        T::Int8 => whole(array.as_primitive::<Int8Type>(), first, take),
        T::Int16 => whole(array.as_primitive::<Int16Type>(), first, take),
        T::Int32 => whole(array.as_primitive::<Int32Type>(), first, take),
        T::Int64 => {
            let array = array.as_primitive::<Int64Type>();
            valid(array, |run| take(first + run.start as u64, Cells::Whole(&array.values()[run])))
        }
        T::UInt8 => whole(array.as_primitive::<UInt8Type>(), first, take),
        T::UInt16 => whole(array.as_primitive::<UInt16Type>(), first, take),
        T::UInt32 => whole(array.as_primitive::<UInt32Type>(), first, take),
        T::Float16 => fractions(array.as_primitive::<Float16Type>(), first, f64::from, take),
        T::Float32 => fractions(array.as_primitive::<Float32Type>(), first, f64::from, take),
        T::Float64 => {
            let array = array.as_primitive::<Float64Type>();
            valid(array, |run| take(first + run.start as u64, Cells::Fractions(&array.values()[run])))
        }
        T::Boolean => {
            let array = array.as_boolean();
            let numbers: Vec<i64> = array.values().iter().map(i64::from).collect();
            valid(array, |run| take(first + run.start as u64, Cells::Whole(&numbers[run])))
        }
        T::Utf8 => texts(array.as_string::<i32>().iter(), first, take),
        T::LargeUtf8 => texts(array.as_string::<i64>().iter(), first, take),
        _ => texts(array.as_string_view().iter(), first, take),
    }
}

fn whole<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, first: u64, take: &mut TakeCells<'_>) -> Result<()>
where
    i64: From<T::Native>,
{
    let numbers: Vec<i64> = array.values().iter().map(|number| i64::from(*number)).collect();
    valid(array, |run| take(first + run.start as u64, Cells::Whole(&numbers[run])))
}

fn fractions<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    first: u64,
    wide: impl Fn(T::Native) -> f64,
    take: &mut TakeCells<'_>,
) -> Result<()> {
    let numbers: Vec<f64> = array.values().iter().map(|number| wide(*number)).collect();
    valid(array, |run| take(first + run.start as u64, Cells::Fractions(&numbers[run])))
}

fn texts<'a>(
    texts: impl Iterator<Item = Option<&'a str>>,
    first: u64,
    take: &mut TakeCells<'_>,
) -> Result<()> {
    let texts: Vec<Option<&str>> = texts.collect();
    take(first, Cells::Texts(&texts))
}

// The runs that hold values.
fn valid(array: &dyn Array, mut each: impl FnMut(Range<usize>) -> Result<()>) -> Result<()> {
    match array.nulls() {
        None => each(0..array.len()),
        Some(nulls) => nulls.valid_slices().try_for_each(|(start, end)| each(start..end)),
    }
}
