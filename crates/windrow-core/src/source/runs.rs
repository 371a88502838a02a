//! Where records lie, kept; those that lie end to end are one run: one copy where each record would take its own.

use super::{FileInfo, Kind, Location, Schema, SharedSource, Source, Stored, check_span};
use crate::error::{Error, Result};
use crate::record::{Decode, Lengths, Span, Values};
use crate::store::Object;
use crate::touch;

/// The values of a source, in their order, as fewer and longer records: each is a run of its records that lie end to end.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_core::source::{Runs, SharedSource};
/// # fn joins(documents: SharedSource) -> Option<()> {
/// let runs = Runs::of(&documents)?; // None where records are made of what is stored
/// # Some(()) }
/// ```
pub struct Runs {
    source: SharedSource,
    runs: Vec<Stored>,
}

/// Runs that are kept, 24 bytes for each: of more, each record is looked up where its format says.
const MOST_RUNS: usize = 2 << 20;

impl Runs {
    /// The runs of a source, in one pass over where its records lie; `None` where they are more than two million, and where
    /// a record cannot be found: reading it says why.
    pub fn of(source: &SharedSource) -> Option<Runs> {
        let schema = source.schema();
        if source.len() < 2 || schema.kind != Kind::Numbers || !schema.tracks.is_empty() {
            return None;
        }
        let width = width(schema);
        let mut runs: Vec<Stored> = Vec::new();
        for record in 0..source.len() {
            let stored = source.stored(record).ok()??;
            if stored.len == 0 {
                continue;
            }
            let is_full = runs.len() >= MOST_RUNS;
            match runs.last_mut().filter(|run| is_next(run, &stored, width)) {
                Some(run) => run.len += stored.len,
                None if is_full => return None,
                None => runs.push(stored),
            }
        }
        Some(Runs { source: source.clone(), runs })
    }

    /// Asks the processor for what says where a record lies, and so mostly where the next ones do. Its values are asked for later.
    pub fn touch_place(&self, record: u64) {
        if let Some(run) = usize::try_from(record).ok().and_then(|at| self.runs.get(at)) {
            touch(bytemuck::bytes_of(&run.start));
        }
    }

    fn run(&self, record: u64) -> Result<&Stored> {
        let run = usize::try_from(record).ok().and_then(|at| self.runs.get(at));
        run.ok_or_else(|| Error::out_of_range("record", record, self.runs.len() as u64))
    }

    // What holds a span, its first byte and the number of its bytes.
    fn place(&self, span: Span) -> Result<(&dyn Object, u64, u64)> {
        let run = self.run(span.record)?;
        check_span(span, run.len)?;
        let width = width(self.source.schema());
        Ok((self.source.object(run.object)?, run.start + span.start * width, span.len * width))
    }
}

// Whether a record begins where a run ends.
fn is_next(run: &Stored, record: &Stored, width: u64) -> bool {
    let end = run.len.checked_mul(width).and_then(|size| run.start.checked_add(size));
    run.object == record.object && end == Some(record.start)
}

// Bytes of a value.
fn width(schema: &Schema) -> u64 {
    (schema.element.size() * schema.channels.unwrap_or(1)) as u64
}

impl Lengths for Runs {
    fn len(&self) -> u64 {
        self.runs.len() as u64
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.run(record).map(|run| run.len)
    }
}

impl Source for Runs {
    fn schema(&self) -> &Schema {
        self.source.schema()
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (object, start, size) = self.place(span)?;
        let size = usize::try_from(size)
            .map_err(|_| Error::unsupported(format!("{} values at once on this machine", span.len)))?;
        let Schema { element, channels, .. } = self.schema();
        let bytes = object.read(start, size, scratch)?;
        Ok(Values { bytes, element: *element, channels: channels.unwrap_or(1), decode: Decode::Plain })
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok((object, start, size)) = self.place(span) {
                object.prefetch(start, size);
            }
        }
    }

    fn touch(&self, span: Span) {
        // A sample goes on in the next run, which mostly lies a few bytes behind this one.
        const BEHIND: u64 = 4096;
        if let Ok((object, start, size)) = self.place(span) {
            object.touch(start, size.max(BEHIND));
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (object, start, size) = self.place(span)?;
        Ok(vec![Location { file: object.name().to_string(), start, size }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.source.files()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.source.fingerprint()
    }

    fn format(&self) -> &'static str {
        self.source.format()
    }
}
