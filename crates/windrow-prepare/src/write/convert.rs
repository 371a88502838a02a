//! All records of a source in another format.

use std::path::Path;

use windrow_core::collate::{is_mask, learned};
use windrow_core::format::write::{WriteFormat, WriteOptions};
use windrow_core::source::{Kind, Source};
use windrow_core::{Error, Progress, Result, Span, Watch, check, store};

use super::inputs::refuse_inputs;
use super::origin::Origin;
use super::writer::{PART, Writer};
use crate::Report;

/// Writes all records of a source in another format.
///
/// # Errors
/// As [`Writer`]; `Config` when the output would replace what the source reads; what reading it says; `Interrupted`. After an
/// error nothing visible has changed.
pub fn convert(
    source: &dyn Source,
    out: &Path,
    format: &dyn WriteFormat,
    options: &WriteOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    refuse_inputs(source, out, format)?;
    refuse_empty(source, options)?;
    convert_from(source, source, &Origin::of(source)?, out, format, options, watch)
}

/// Refuses a source without records, unless an empty output is meant.
///
/// # Errors
/// `NotFound`.
pub(crate) fn refuse_empty(source: &dyn Source, options: &WriteOptions) -> Result<()> {
    if source.is_empty() && !options.allow_empty {
        let file = source.files().into_iter().next().map(|info| info.file);
        Err(Error::config("there are no records to convert").at(file.unwrap_or_default()).hint(
                "a copy that was cut short may be empty: fetch it again; @allow_empty=true@ writes an empty output",
            ))
    } else {
        Ok(())
    }
}

/// Converts where the values are elsewhere too, as the writer of the format takes them: all else is asked of `source`, which
/// comes from `origin`.
pub(crate) fn convert_from(
    source: &dyn Source,
    values: &dyn Source,
    origin: &Origin,
    out: &Path,
    format: &dyn WriteFormat,
    options: &WriteOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let (writer, input_bytes) =
        store::whole_at_once(|| written(source, values, origin, out, format, options, watch))?;
    Ok(Report { input_bytes, ..writer.finish()? })
}

/// A writer that has taken all records, and the bytes of their values.
fn written(
    source: &dyn Source,
    stored: &dyn Source,
    origin: &Origin,
    out: &Path,
    format: &dyn WriteFormat,
    options: &WriteOptions,
    watch: &dyn Watch,
) -> Result<(Writer, u64)> {
    let lengths = sum_of_lengths(source)?;
    let mut writer = Writer::convert(out, source.schema(), format, options, lengths, origin)?;
    let others = source.schema().stored_tracks().map(|(_, track)| track.name.as_str());
    let others: Vec<&str> = others.filter(|name| !is_mask(name)).collect();
    if !others.is_empty() {
        windrow_core::warn!("the arrays that run beside the values are left out: {}", others.join(", "));
    }
    let width = source.schema().element.size() as u64 * source.schema().channels.unwrap_or(1) as u64;
    let total_bytes = lengths.saturating_mul(width);
    let mut scratch = Vec::new();
    let report = |done_bytes, records| {
        watch.progress(Progress { done_bytes, total_bytes: lengths, records });
        check(watch)
    };
    match source.schema().kind {
        Kind::Rows => {
            for row in source.rows_from(0) {
                writer.add_row(&source.schema().value_of(row?).into_row())?;
                report(writer.records, writer.records)?;
            }
            return Ok((writer, source.files().iter().map(|file| file.size).sum()));
        }
        Kind::Json => {
            let mut done = 0;
            for record in 0..source.len() {
                let text = source.read_whole(record, &mut scratch)?;
                done += text.bytes.len() as u64;
                writer.add_json(text.bytes)?;
                report(done, writer.records)?;
            }
            return Ok((writer, source.files().iter().map(|file| file.size).sum()));
        }
        Kind::Numbers => {}
    }
    for record in 0..source.len() {
        let len = stored.length(record)?;
        let mask =
            if writer.mask.is_taken() { learned(source, Span { record, start: 0, len })? } else { None };
        let extras = writer.mask.kept(source.extras(record)?, mask.as_deref());
        let most = if writer.takes_parts() { PART } else { len };
        let mut start = 0;
        // A record without values is one part, too.
        while start < len || start == 0 {
            check(watch)?;
            let span = Span { record, start, len: most.min(len - start) };
            let values = stored.read(span, &mut scratch)?;
            // Within the record.
            let mask = mask.as_ref().map(|mask| &mask[start as usize..][..span.len as usize]);
            writer.add_part(&values, start, len, &extras, mask)?;
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

pub(crate) fn sum_of_lengths(source: &dyn Source) -> Result<u64> {
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
