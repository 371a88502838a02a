//! The ids of a data set, whatever its layout and dtype.

use windrow::dev::values::copy_values;
use windrow::{Buffer, DType, Dataset, Span};

/// All of a record.
pub(crate) fn record(data: &Dataset, record: u64) -> Vec<i64> {
    let span = Span { record, start: 0, len: data.length(record).unwrap() };
    let mut scratch = Vec::new();
    let values = data.source().read(span, &mut scratch).unwrap();
    let mut out = Buffer::zeroed(span.len as usize * 8);
    copy_values(&values, 0, out.bytes_mut(), DType::I64).unwrap();
    out.bytes().as_chunks::<8>().0.iter().map(|id| i64::from_le_bytes(*id)).collect()
}

/// All records.
pub(crate) fn records(data: &Dataset) -> Vec<Vec<i64>> {
    (0..data.len()).map(|i| record(data, i)).collect()
}
