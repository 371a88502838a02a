//! The numbers of a span, as they are read.

use serde_json::{Value, json};
use windrow_core::source::Source;
use windrow_core::store::whole;
use windrow_core::values::copy_values;
use windrow_core::{DType, Decode, Error, Result, Span, Values};

/// The whole numbers of a span, channel by channel within a value.
///
/// # Errors
/// Those of [`Source::read`]; `Corrupt` for a number that int64 does not hold.
pub fn whole_numbers(source: &dyn Source, span: Span) -> Result<Vec<i64>> {
    read(source, span, |values| copied(values, DType::I64))
}

/// The numbers of a span as float64, channel by channel within a value: to draw, so whole numbers beyond 2^53 are rounded.
///
/// # Errors
/// Those of [`Source::read`].
pub fn floats(source: &dyn Source, span: Span) -> Result<Vec<f64>> {
    // What turns a stored number into a fraction gives a float by itself.
    let is_whole = |values: &Values<'_>| matches!(values.decode, Decode::Plain | Decode::Shift { .. });
    read(source, span, |values| match values.element.dtype {
        DType::I64 if is_whole(values) => {
            Ok(copied::<i64>(values, DType::I64)?.into_iter().map(|n| n as f64).collect())
        }
        DType::U64 if is_whole(values) => {
            Ok(copied::<u64>(values, DType::U64)?.into_iter().map(|n| n as f64).collect())
        }
        _ => copied(values, DType::F64),
    })
}

/// The numbers of a span as JSON, channel by channel within a value: whole ones with all their digits, null for NaN and infinity.
///
/// # Errors
/// Those of [`Source::read`].
pub fn json(source: &dyn Source, span: Span) -> Result<Vec<Value>> {
    match source.schema().element.dtype {
        DType::U64 => {
            let numbers = read(source, span, |values| copied::<u64>(values, DType::U64))?;
            Ok(numbers.into_iter().map(Value::from).collect())
        }
        dtype if dtype.is_integer() => {
            Ok(whole_numbers(source, span)?.into_iter().map(Value::from).collect())
        }
        _ => Ok(floats(source, span)?.into_iter().map(|number| json!(number)).collect()),
    }
}

fn copied<T: bytemuck::Pod>(values: &Values<'_>, dtype: DType) -> Result<Vec<T>> {
    // The source read that many: they fit memory.
    let n = values.bytes.len() / values.element.size();
    let mut out = vec![T::zeroed(); n];
    copy_values(values, 0, bytemuck::cast_slice_mut(&mut out), dtype)?;
    Ok(out)
}

fn read<T>(
    source: &dyn Source,
    span: Span,
    numbers: impl Fn(&Values<'_>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let mut scratch = Vec::new();
    whole(|| {
        let values = source.read(span, &mut scratch)?;
        numbers(&values).map_err(|e| placed(e, source, span))
    })
}

// A number by itself does not say which one it is.
fn placed(error: Error, source: &dyn Source, span: Span) -> Error {
    let error = error.record(span.record);
    match source.locate(span).ok().and_then(|found| found.into_iter().next()) {
        Some(location) => error.or_at(location.file),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_core::Element;
    use windrow_core::source::{Extras, HeldBytes, InMemory};

    use super::*;

    fn source<T: bytemuck::Pod>(dtype: DType, numbers: &[T]) -> InMemory {
        let held: HeldBytes = Arc::new(bytemuck::cast_slice::<T, u8>(numbers).to_vec());
        InMemory::new("test", Element::little(dtype), None, vec![(held, Extras::new())]).unwrap()
    }

    const ALL: Span = Span { record: 0, start: 0, len: 2 };

    #[test]
    fn whole_numbers_beyond_float64_are_rounded_to_draw_and_whole_in_json() {
        let signed = source(DType::I64, &[(1i64 << 53) + 1, i64::MIN + 1]);
        assert_eq!(floats(&signed, ALL).unwrap(), [(1u64 << 53) as f64, i64::MIN as f64]);
        assert_eq!(json(&signed, ALL).unwrap(), [json!(9_007_199_254_740_993i64), json!(i64::MIN + 1)]);
        let unsigned = source(DType::U64, &[u64::MAX, 1]);
        assert_eq!(floats(&unsigned, ALL).unwrap(), [u64::MAX as f64, 1.0]);
        assert_eq!(json(&unsigned, ALL).unwrap(), [json!(u64::MAX), json!(1)]);
    }

    #[test]
    fn what_is_not_finite_is_null_in_json() {
        let floats = source(DType::F64, &[0.5, f64::NAN]);
        assert_eq!(json(&floats, ALL).unwrap(), [json!(0.5), Value::Null]);
    }

    #[test]
    fn an_error_names_the_record_and_its_file() {
        let e = whole_numbers(&source(DType::U64, &[1, u64::MAX]), ALL).unwrap_err();
        assert_eq!((e.place().record, e.place().file.as_deref()), (Some(0), Some("memory:test")));
    }
}
