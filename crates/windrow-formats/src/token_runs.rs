//! Records that are runs of values in token files: which file, from where and how many, an index, a header or nothing says.

use std::sync::Arc;

use windrow_core::format::verify::Verifier;
use windrow_core::format::vocabulary::check_asked;
use windrow_core::format::{Format, Options, Probe};
use windrow_core::source::{Extras, FileInfo, Location, Schema, SharedSource, Source, Stored, check_span};
use windrow_core::store::{Object, at_once};
use windrow_core::{Decode, Element, Error, Kind, Lengths, Result, Span, Values};

use windrow_core::format::data_files::DataFiles;

/// Where one record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The number of its file.
    pub(super) file: usize,
    /// Its first value, from the first one of the file.
    pub(super) start: u64,
    /// Its number of values.
    pub(super) len: u64,
}

/// Where records are. A run is compared with its file before it is read.
pub(super) trait Runs: Send + Sync {
    /// How many records there are.
    fn count(&self) -> u64;

    /// Where a record is; only asked for those below [`Runs::count`].
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn run(&self, record: u64) -> Result<Run>;

    /// What else is known of a record.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn metadata(&self, record: u64) -> Result<Extras> {
        let _ = record;
        Ok(Extras::new())
    }
}

/// Token files with their runs.
pub(super) struct TokenRuns<R> {
    /// The files with the values.
    pub(super) files: DataFiles,
    /// Bytes before the first value of each.
    pub(super) header: u64,
    /// Of each file the array beside its values, one byte a value; none without such arrays.
    pub(super) track: Option<DataFiles>,
    /// The files that say where records are.
    pub(super) indices: Arc<DataFiles>,
    pub(super) runs: R,
    pub(super) schema: Schema,
    pub(super) format: &'static str,
}

impl<R: Runs + 'static> TokenRuns<R> {
    /// Them as a source, their token IDs below the vocabulary that is asked for.
    ///
    /// # Errors
    /// As [`check_ids`](windrow_core::format::vocabulary::check_ids).
    pub(super) fn open(mut self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let known = probe.manifest.as_ref().and_then(|manifest| manifest.vocab_size);
        self.schema.vocab_size = options.vocab_size.or(known);
        check_asked(&self, options.vocab_size, known)?;
        Ok(Arc::new(self))
    }
}

impl<R: Runs> TokenRuns<R> {
    fn run(&self, record: u64) -> Result<Run> {
        if record < self.runs.count() {
            self.runs.run(record)
        } else {
            Err(Error::out_of_range("record", record, self.runs.count()))
        }
    }

    // File, first byte and number of bytes of a span.
    fn place(&self, span: Span) -> Result<(usize, u64, u64)> {
        let run = self.run(span.record)?;
        check_span(span, run.len)?;
        let start = self.byte(run.start + span.start);
        let start = start.ok_or_else(|| Error::out_of_range("value", span.start, run.len))?;
        Ok((run.file, start, span.len * self.schema.element.size() as u64))
    }

    // Where a value of a file is in it; `None` beyond 64 bits.
    fn byte(&self, value: u64) -> Option<u64> {
        value.checked_mul(self.schema.element.size() as u64)?.checked_add(self.header)
    }
}

impl<R: Runs> Lengths for TokenRuns<R> {
    fn len(&self) -> u64 {
        self.runs.count()
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.run(record).map(|run| run.len)
    }
}

impl<R: Runs> Source for TokenRuns<R> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (file, start, size) = self.place(span)?;
        read(self.files.get(file)?, start, size, self.schema.element, scratch)
    }

    fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (Some(files), Some(said)) = (&self.track, self.schema.tracks.get(track)) else {
            return Err(Error::out_of_range("track", track, self.schema.tracks.len() as u64));
        };
        let run = self.run(span.record)?;
        check_span(span, run.len)?;
        read(files.get(run.file)?, run.start + span.start, span.len, said.element, scratch)
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        self.run(record)?;
        self.runs.metadata(record)
    }

    fn touch(&self, span: Span) {
        if let Ok((file, start, size)) = self.place(span)
            && let Ok(object) = self.files.get(file)
        {
            object.touch(start, size);
        }
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok((file, start, size)) = self.place(span) {
                self.files.prefetch(file, start, size);
            }
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (file, start, size) = self.place(span)?;
        Ok(vec![Location { file: self.files.name(file), start, size }])
    }

    fn stored(&self, record: u64) -> Result<Option<Stored>> {
        let run = self.run(record)?;
        let start = self.byte(run.start).ok_or_else(|| Error::out_of_range("value", 0, run.len))?;
        Ok(Some(Stored { object: run.file as u64, start, len: run.len }))
    }

    fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
        self.files.object(usize::try_from(number).unwrap_or(usize::MAX))
    }

    fn files(&self) -> Vec<FileInfo> {
        let tracks = self.track.as_ref().map_or_else(Vec::new, DataFiles::infos);
        [self.files.infos(), self.indices.infos(), tracks].concat()
    }

    fn fingerprint(&self) -> Result<u64> {
        let dtype = self.schema.element.dtype.name().as_bytes();
        let indices = self.indices.fingerprint(&[])?.to_le_bytes();
        let tracks = self.track.as_ref().map_or(Ok(0), |track| track.fingerprint(&[]))?.to_le_bytes();
        self.files.fingerprint(&[self.format.as_bytes(), dtype, &indices, &tracks])
    }

    fn format(&self) -> &'static str {
        self.format
    }
}

/// Verifies each file by itself. What the files do not say, and opening asks for, cannot be checked without it.
///
/// # Errors
/// As [`Verify::records`](windrow_core::format::verify::Verify::records).
pub(super) fn verify_each(
    format: &dyn Format,
    probe: &Probe,
    keys: &[String],
    out: &mut Verifier<'_>,
) -> Result<()> {
    for key in keys {
        let file = Probe::at(probe.table, probe.store.clone(), key)?;
        match format.open(&file, &Options::default()) {
            Err(error) if error.kind() == Kind::Config => {
                out.note(format!("{}: not read: {}", file.display(), error.message()));
                out.reads(file.display());
            }
            _ => out.read(format, &file)?,
        }
    }
    Ok(())
}

fn read<'a>(
    object: &'a dyn Object,
    start: u64,
    size: u64,
    element: Element,
    scratch: &'a mut Vec<u8>,
) -> Result<Values<'a>> {
    let bytes = object.read(start, at_once(size)?, scratch)?;
    Ok(Values { bytes, element, channels: 1, decode: Decode::Plain })
}
