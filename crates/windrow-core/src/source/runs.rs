//! Where records lie, kept; those that lie end to end are one run: one copy where each record would take its own.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::{FileInfo, Kind, Location, Schema, SharedSource, Source, Stored, check_span};
use crate::array::Element;
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
    /// What its values are.
    element: Element,
    channels: usize,
    /// The objects that runs lie in, each with its number in the source, once it was asked for.
    objects: Vec<(u64, OnceLock<Arc<dyn Object>>)>,
    runs: Vec<Run>,
}

/// Values that lie end to end.
struct Run {
    /// Which of the objects.
    object: usize,
    /// Byte of the first value.
    start: u64,
    /// Number of values.
    len: u64,
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
        let (element, channels) = (schema.element, schema.channels.unwrap_or(1));
        let width = width(element, channels);
        let (mut runs, mut objects, mut places) = (Vec::<Run>::new(), Vec::<(u64, _)>::new(), HashMap::new());
        for record in 0..source.len() {
            let stored = source.stored(record).ok()??;
            if stored.len == 0 {
                continue;
            }
            let Stored { object: number, start, len } = stored;
            let object = match runs.last() {
                Some(run) if objects[run.object].0 == number => run.object,
                _ => *places.entry(number).or_insert_with(|| {
                    objects.push((number, OnceLock::new()));
                    objects.len() - 1
                }),
            };
            let is_full = runs.len() >= MOST_RUNS;
            match runs.last_mut().filter(|run| run.object == object && run.end(width) == Some(start)) {
                Some(run) => run.len += len,
                None if is_full => return None,
                None => runs.push(Run { object, start, len }),
            }
        }
        Some(Runs { source: source.clone(), element, channels, objects, runs })
    }

    /// Asks the processor for what says where a record lies, and so mostly where the next ones do. Its values are asked for later.
    pub fn touch_place(&self, record: u64) {
        if let Some(run) = usize::try_from(record).ok().and_then(|at| self.runs.get(at)) {
            touch(bytemuck::bytes_of(&run.start));
        }
    }

    fn run(&self, record: u64) -> Result<&Run> {
        let run = usize::try_from(record).ok().and_then(|at| self.runs.get(at));
        run.ok_or_else(|| Error::out_of_range("record", record, self.runs.len() as u64))
    }

    // What holds a span, its first byte and the number of its bytes.
    fn place(&self, span: Span) -> Result<(&dyn Object, u64, u64)> {
        let run = self.run(span.record)?;
        check_span(span, run.len)?;
        let width = width(self.element, self.channels);
        Ok((self.object_of(run)?, run.start + span.start * width, span.len * width))
    }

    // What holds a run: kept here, since the source asks one source after the other for it, each time.
    fn object_of(&self, run: &Run) -> Result<&dyn Object> {
        let (number, kept) = &self.objects[run.object];
        if let Some(object) = kept.get() {
            return Ok(object.as_ref());
        }
        let object = self.source.object(*number)?.clone();
        Ok(kept.get_or_init(|| object).as_ref())
    }
}

impl Run {
    // The byte behind it.
    fn end(&self, width: u64) -> Option<u64> {
        self.start.checked_add(self.len.checked_mul(width)?)
    }
}

// Bytes of a value.
fn width(element: Element, channels: usize) -> u64 {
    (element.size() * channels) as u64
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
        let bytes = object.read(start, size, scratch)?;
        Ok(Values { bytes, element: self.element, channels: self.channels, decode: Decode::Plain })
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok((object, start, size)) = self.place(span) {
                object.prefetch(start, size);
            }
        }
    }

    fn touch(&self, span: Span) {
        // A sample continues in the next run, which mostly is a few bytes after this one.
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
