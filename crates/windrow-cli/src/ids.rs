//! The numbers of a span as they are read, and the text they stand for.

use windrow::Span;
use windrow::source::Source;
use windrow::store::whole;
use windrow::text::Tokenizer;
use windrow::values::copy_values;
use windrow::{DType, Result};

/// The whole numbers of a span, channel by channel within a value.
pub(crate) fn whole_numbers(source: &dyn Source, span: Span) -> Result<Vec<i64>> {
    numbers(source, span, DType::I64)
}

/// The numbers of a span as float64.
pub(crate) fn floats(source: &dyn Source, span: Span) -> Result<Vec<f64>> {
    numbers(source, span, DType::F64)
}

/// The text of token ids; ids that the tokenizer lacks give none.
pub(crate) fn decoded(tokenizer: &Tokenizer, ids: &[i64]) -> Option<String> {
    let ids: Vec<u32> = ids.iter().map(|id| u32::try_from(*id)).collect::<Result<_, _>>().ok()?;
    tokenizer.decode(&ids).ok()
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
