//! All records of a source in another format.

use std::path::Path;

use windrow_core::format::write::{WriteFormat, WriteOptions};
use windrow_core::source::{Kind, Schema, Source};
use windrow_core::{Progress, Result, Row, Span, Value, Watch, check, store};

use super::origin::Origin;
use super::writer::{PART, Writer};
use crate::Report;

/// Writes all records of a source in another format.
///
/// # Errors
/// As [`Writer`]; what reading the source says; `Interrupted`. After an error nothing visible has changed.
pub fn convert(
    source: &dyn Source,
    out: &Path,
    format: &dyn WriteFormat,
    options: &WriteOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let (writer, input_bytes) = store::whole_at_once(|| written(source, out, format, options, watch))?;
    Ok(Report { input_bytes, ..writer.finish()? })
}

/// A writer that has taken all records, and the bytes of their values.
fn written(
    source: &dyn Source,
    out: &Path,
    format: &dyn WriteFormat,
    options: &WriteOptions,
    watch: &dyn Watch,
) -> Result<(Writer, u64)> {
    let lengths = sum_of_lengths(source)?;
    let origin = Origin::of(source)?;
    let mut writer = Writer::convert(out, source.schema(), format, options, lengths, &origin)?;
    if !source.schema().tracks.is_empty() {
        log::warn!("only the values are written: the arrays that run beside them are left out");
    }
    let width = source.schema().element.size() as u64 * source.schema().channels.unwrap_or(1) as u64;
    let total_bytes = lengths.saturating_mul(width);
    let mut scratch = Vec::new();
    if source.schema().kind == Kind::Rows {
        for record in 0..source.len() {
            check(watch)?;
            writer.add_row(&named(source.schema(), source.row(record)?))?;
            watch.progress(Progress { done_bytes: record, total_bytes: lengths, records: writer.records });
        }
        return Ok((writer, source.files().iter().map(|file| file.size).sum()));
    }
    for record in 0..source.len() {
        let extras = source.extras(record)?;
        let len = source.length(record)?;
        let most = if writer.takes_parts() { PART } else { len };
        let mut start = 0;
        // A record without values is one part, too.
        while start < len || start == 0 {
            check(watch)?;
            let span = Span { record, start, len: most.min(len - start) };
            let values = source.read(span, &mut scratch)?;
            writer.add_part(&values, start, len, &extras)?;
            watch.progress(Progress {
                done_bytes: writer.values * width,
                total_bytes,
                records: writer.records,
            });
            start += span.len.max(1);
        }
    }
    Ok((writer, total_bytes))
}

// The columns of a row; those of a record that is one value are what the value has, or it is one column.
fn named(schema: &Schema, row: Row) -> Row {
    match schema.is_value() {
        false => row,
        true => match row.into_iter().next() {
            Some((_, Value::Struct(row))) => row,
            value => value.map(|(_, value)| ("value".to_string(), value)).into_iter().collect(),
        },
    }
}

fn sum_of_lengths(source: &dyn Source) -> Result<u64> {
    if let Some(length) = source.uniform() {
        return Ok(source.len().saturating_mul(length));
    }
    const AT_ONCE: u64 = 1 << 12;
    let mut sum = 0u64;
    let mut lengths = Vec::new();
    for first in (0..source.len()).step_by(AT_ONCE as usize) {
        lengths.resize((source.len() - first).min(AT_ONCE) as usize, 0);
        source.lengths(first, &mut lengths)?;
        sum = lengths.iter().fold(sum, |sum, length| sum.saturating_add(*length));
    }
    Ok(sum)
}
