//! The numbers of a span, as they are read.

use windrow_core::source::Source;
use windrow_core::store::whole;
use windrow_core::values::copy_values;
use windrow_core::{DType, Result, Span};

/// The whole numbers of a span, channel by channel within a value.
///
/// # Errors
/// Those of [`Source::read`].
pub fn whole_numbers(source: &dyn Source, span: Span) -> Result<Vec<i64>> {
    numbers(source, span, DType::I64)
}

/// The numbers of a span as float64, channel by channel within a value.
///
/// # Errors
/// Those of [`Source::read`].
pub fn floats(source: &dyn Source, span: Span) -> Result<Vec<f64>> {
    numbers(source, span, DType::F64)
}

fn numbers<T: bytemuck::Pod>(source: &dyn Source, span: Span, dtype: DType) -> Result<Vec<T>> {
    let mut scratch = Vec::new();
    whole(|| {
        let values = source.read(span, &mut scratch)?;
        // The source read that many: they fit memory.
        let n = values.bytes.len() / values.element.size();
        let mut out = vec![T::zeroed(); n];
        copy_values(&values, 0, bytemuck::cast_slice_mut(&mut out), dtype)?;
        Ok(out)
    })
}
