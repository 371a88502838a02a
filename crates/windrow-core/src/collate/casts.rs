//! Values copied into a batch, where the dtype may have fewer digits than they.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Sample;
use crate::array::DType;
use crate::error::Result;
use crate::record::{Span, Values};
use crate::values::{Rounded, cast_values};

/// Copies values as numpy casts them, and says once where that made another number of a whole one.
#[derive(Clone, Debug, Default)]
pub(super) struct Casts {
    has_said: Arc<AtomicBool>,
}

impl Casts {
    /// Copies values `skip..` of what was read of `span` into `out`, which they fill.
    ///
    /// # Errors
    /// As [`cast_values`], naming the record.
    pub(super) fn copy(
        &self,
        sample: &Sample<'_>,
        span: &Span,
        values: &Values<'_>,
        skip: usize,
        out: &mut [u8],
        dtype: DType,
    ) -> Result<()> {
        let rounded = cast_values(values, skip, out, dtype).map_err(|e| e.record(span.record))?;
        if let Some(rounded) = rounded
            && !self.has_said.swap(true, Ordering::Relaxed)
        {
            let place = span.start + (skip + rounded.at / values.channels.max(1)) as u64;
            say(sample, *span, place, &rounded, dtype);
        }
        Ok(())
    }
}

fn say(sample: &Sample<'_>, span: Span, place: u64, rounded: &Rounded, dtype: DType) {
    let file = sample.source.locate(span).ok().and_then(|places| places.into_iter().next());
    let file = file.map_or(String::new(), |place| format!("{}: ", place.file));
    let Rounded { stored, result, .. } = rounded;
    let hint = match DType::F64 {
        wide if dtype != wide => "leave @as_dtype@ out for int64, or choose @as_dtype=float64@",
        _ => "leave @as_dtype@ out for int64",
    };
    crate::warn!(
        "{file}record {}: the number {stored} (value {place}) does not fit {dtype} and is {result} in the batch, as others may be; hint: {hint}",
        span.record
    );
}
