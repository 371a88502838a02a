//! A source, the view that cuts it and the layout it takes: a data set of samples by number.

use std::iter;
use std::sync::Arc;

use crate::array::{DType, reserve};
use crate::collate::{
    Batch, Chunk, Collate, Context, Field, OutputOptions, Outputs, Pool, Sample, Scratch, place_of,
};
use crate::error::{Error, Kind, Place, Result};
use crate::record::{Draw, Pass, Piece, Span};
use crate::row::Value;
use crate::source::{FileInfo, Numbering, Runs, SharedSource, Source, StoreSet, gather, whole};
use crate::view::{Coverage, View};

/// A source, the view that cuts it, and the layout its samples take.
#[derive(Clone)]
pub struct Feed {
    source: SharedSource,
    view: Arc<dyn View>,
    collate: Arc<dyn Collate>,
    /// Fewer, longer pieces with the same values, which are read instead.
    runs: Option<(Arc<Runs>, Arc<dyn View>)>,
    /// For batches that are asked for by number; a loader has its own.
    pool: Pool,
    /// Each read may ask another machine, so all of a batch are announced first and run side by side.
    is_far: bool,
    stores: StoreSet,
    has_part_ids: bool,
    /// How the fields leave, where that is not as the layout fills them.
    outputs: Option<Arc<Outputs>>,
    numbering: Numbering,
    /// Records of the source for each record of the data set, where they are its channels.
    channels: Option<u64>,
    /// Among feeds whose tensors may differ, which tensors its are: rows of others are in other batches.
    pub(super) tensors: usize,
}

/// The tensor of feed numbers.
const PART: &str = "part";

/// How much memory is used again, since new memory costs more than filling it: the batch that a caller holds, and the next ones.
const BATCHES_KEPT: usize = 4;

impl Feed {
    /// Puts the three together.
    pub fn new(source: SharedSource, view: Arc<dyn View>, collate: Arc<dyn Collate>) -> Feed {
        let is_far = source.files().iter().any(FileInfo::is_far);
        Feed {
            source,
            view,
            collate,
            runs: None,
            pool: Pool::new(BATCHES_KEPT),
            is_far,
            stores: StoreSet::default(),
            has_part_ids: false,
            outputs: None,
            numbering: Numbering::default(),
            channels: None,
            tensors: 0,
        }
    }

    /// Gives of each row the part that a rank of a context group holds.
    ///
    /// # Errors
    /// `Config` for rows that are not divided so.
    pub fn in_context(self, context: Context) -> Result<Feed> {
        Ok(Feed { collate: self.collate.in_context(context)?, ..self })
    }

    /// Says what the records of the source are called where they were chosen of others, or some are left out.
    #[must_use]
    pub fn called(self, numbering: Numbering) -> Feed {
        Feed { numbering, ..self }
    }

    /// Says that the records of the source are the channels of those of the data set, this many of each.
    #[must_use]
    pub fn apart(self, channels: u64) -> Feed {
        Feed { channels: Some(channels.max(1)), ..self }
    }

    /// Records of the source for each record of the data set.
    pub fn per_record(&self) -> u64 {
        self.channels.unwrap_or(1)
    }

    /// The number of a record of the source in its data set: another one where it was chosen, where some before it are left out, and where it is a channel.
    pub fn number_of(&self, record: u64) -> u64 {
        self.numbering.number(record / self.per_record())
    }

    /// Which channel a record of the source is, where records are channels.
    pub fn channel_of(&self, record: u64) -> Option<u64> {
        self.channels.map(|channels| record % channels)
    }

    // Inside, only the records that are there are counted, and they may be channels.
    pub(super) fn numbered(&self, error: Error) -> Error {
        let error = match (self.channels, error.place().record) {
            (Some(channels), Some(record)) => error.record(record / channels),
            _ => error,
        };
        self.numbering.numbered(error)
    }

    /// The record of the source with a number of the data set, or the first channel of it; `None` where it is not chosen, or left out.
    pub fn record_of(&self, number: u64) -> Option<u64> {
        Some(self.numbering.place(number)? * self.per_record())
    }

    /// Records that have numbers: of the data set, those that are not chosen or left out among them.
    pub fn numbers(&self) -> u64 {
        self.numbering.of(self.source.len() / self.per_record())
    }

    /// Reads the samples from [`Runs`] of the source, by a view that cuts them alike. What a sample
    /// is made of is still asked of the source, and so is a sample that cannot be read: the error then names its record.
    #[must_use]
    pub fn read_in_runs(self, runs: Arc<Runs>, view: Arc<dyn View>) -> Feed {
        debug_assert_eq!(self.view.len(), view.len());
        Feed { runs: Some((runs, view)), ..self }
    }

    /// Has the rows of a batch as long as the longest of them, where the layout can have them so.
    #[must_use]
    pub fn to_longest(self) -> Feed {
        let collate = self.collate.to_longest().unwrap_or_else(|| self.collate.clone());
        Feed { collate, ..self }
    }

    /// Says which stores the source lies in, so that a loader can tell what they were asked for.
    #[must_use]
    pub fn stored_in(self, stores: StoreSet) -> Feed {
        Feed { stores, ..self }
    }

    /// Batches say in `part`, an `int32` for each row, of which feed it is, by number.
    ///
    /// # Errors
    /// `Config` for a view of rows, and for one that has such a tensor.
    pub fn with_part_ids(self) -> Result<Feed> {
        let refused = |what: &str| {
            Err(Error::config(format!("part_ids of {what}"))
                .field("part_ids")
                .hint("@trace@ names the part of each row"))
        };
        if self.collate.rows().is_some() {
            return refused("a view of rows, whose batches hold records as they are");
        }
        if self.collate.fields(&mut iter::empty())?.iter().any(|field| field.name == PART) {
            refused("a view that has a tensor \"part\"")
        } else {
            Ok(Feed { has_part_ids: true, ..self })
        }
    }

    /// Gives the fields of batches other names and dtypes. Called last: what the layout is decides which it has.
    ///
    /// # Errors
    /// `Config` for a view of rows, for names that it does not have, that two fields would have, and dtypes that fields cannot have.
    pub fn with_outputs(self, options: &OutputOptions) -> Result<Feed> {
        if self.collate.rows().is_some() {
            let error =
                Error::config("@names@ and @dtypes@ of a view of rows, whose batches hold what is stored");
            return Err(error.field("names").hint("rename columns in @collate@"));
        }
        let fields = self.with_part(self.collate.fields(&mut iter::empty())?);
        let outputs = Outputs::new(options.clone(), &fields, self.collate.ignored_label())?;
        Ok(Feed { outputs: Some(Arc::new(outputs)), ..self })
    }

    /// The fields that leave, by name and dtype, where these are not the layout's.
    pub fn outputs(&self) -> Option<String> {
        self.outputs.as_ref().map(ToString::to_string)
    }

    // What a batch has beside what the layout fills.
    fn with_part(&self, fields: Arc<[Field]>) -> Arc<[Field]> {
        if !self.has_part_ids {
            return fields;
        }
        fields.iter().cloned().chain([Field::new(PART, DType::I32, [])]).collect()
    }

    /// The words of the layout of its batches.
    pub fn layout(&self) -> String {
        let part_ids = if self.has_part_ids { "+part" } else { "" };
        self.collate.describe() + part_ids
    }

    // What samples are read from.
    fn read_from(&self, by_record: bool) -> (&dyn Source, &dyn View) {
        match &self.runs {
            Some((source, view)) if !by_record => (source.as_ref(), view.as_ref()),
            _ => (self.source.as_ref(), self.view.as_ref()),
        }
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.view.len()
    }

    /// No samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The records.
    pub fn source(&self) -> &SharedSource {
        &self.source
    }

    /// The cut.
    pub fn view(&self) -> &dyn View {
        self.view.as_ref()
    }

    /// The layout.
    pub fn collate(&self) -> &dyn Collate {
        self.collate.as_ref()
    }

    /// Whether each read may ask another machine.
    pub(super) fn is_far(&self) -> bool {
        self.is_far
    }

    /// The stores of the source, as far as they are known.
    pub(super) fn stores(&self) -> &StoreSet {
        &self.stores
    }

    /// What one pass sees of the source.
    ///
    /// # Errors
    /// `Corrupt` when an index on disk is wrong.
    pub fn coverage(&self, pass: Pass) -> Result<Coverage> {
        self.view.coverage(pass).map_err(|e| self.numbered(e))
    }

    /// Assembles the samples with these numbers into one batch; random draws and the order of documents are those of `seed`, epoch 0.
    ///
    /// # Errors
    /// `OutOfRange`; what reading the source says.
    pub fn batch(&self, samples: &[u64], seed: u64) -> Result<Batch> {
        let picks =
            samples.iter().map(|&sample| Pick { feed: 0, sample, draw: Draw::new(seed, 0, 0, sample) });
        batch_of(std::slice::from_ref(self), picks)
    }
}

/// A sample that is asked for by number.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    /// Which feed it is of.
    pub feed: usize,
    /// Its number there.
    pub sample: u64,
    /// Its draws.
    pub draw: Draw,
}

/// Assembles samples of feeds with the same tensors into one batch, in order.
///
/// # Errors
/// `OutOfRange`; what reading the sources says.
pub fn batch_of(feeds: &[Feed], picks: impl Iterator<Item = Pick> + Clone) -> Result<Batch> {
    let pool = feeds.first().map(|feed| &feed.pool);
    Workspace::default().batch(feeds, pool, &mut |workspace| workspace.pick(feeds, picks.clone()))
}

/// The records that samples of views of rows are, in order, also where their batches stack them.
///
/// # Errors
/// As [`batch_of`]; `Config` for views of something else.
pub fn records_of(feeds: &[Feed], picks: impl Iterator<Item = Pick> + Clone) -> Result<Vec<Value>> {
    let mut workspace = Workspace::default();
    whole(|| {
        workspace.clear();
        workspace.pick(feeds, picks.clone())?;
        workspace.records(feeds)
    })
}

/// The samples of one batch before they are assembled; memory to use again.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    rows: Vec<RowPlan>,
    pieces: Vec<Piece>,
    chunks: Vec<Chunk>,
    scratch: Scratch,
    /// As many values as the longest row of the batch has, which another rank may get.
    longest: Option<Piece>,
    /// Reads no runs.
    by_record: bool,
    /// Gives records, also of views that stack them.
    of_records: bool,
}

#[derive(Clone, Copy, Debug)]
struct RowPlan {
    feed: usize,
    // Where its pieces end, and its chunks.
    end: usize,
    chunks: usize,
    draw: Draw,
}

impl Workspace {
    pub(super) fn of_records(of_records: bool) -> Workspace {
        Workspace { of_records, ..Workspace::default() }
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.pieces.clear();
        self.chunks.clear();
        self.longest = None;
    }

    /// Says how many values the longest row of the batch over all ranks has, where that decides the tensors.
    pub(super) fn beside(&mut self, longest: Option<u64>) {
        self.longest = longest.map(|len| Piece::Read(Span { record: 0, start: 0, len }));
    }

    /// Makes room for `samples` samples more, of a piece each.
    ///
    /// # Errors
    /// `Memory` where there is none.
    pub(super) fn reserve(&mut self, samples: usize) -> Result<()> {
        reserve(&mut self.rows, samples)?;
        reserve(&mut self.pieces, samples)
    }

    /// The batch of the samples that `add` adds.
    pub(super) fn batch(
        &mut self,
        feeds: &[Feed],
        pool: Option<&Pool>,
        add: &mut dyn FnMut(&mut Workspace) -> Result<()>,
    ) -> Result<Batch> {
        let mut read = |workspace: &mut Workspace| {
            whole(|| {
                workspace.clear();
                add(workspace)?;
                if feeds.iter().any(|feed| feed.is_far) {
                    workspace.prefetch(feeds, 0);
                }
                workspace.assemble(feeds, pool)
            })
        };
        let batch = read(self);
        // What a scaler or Ctrl-C says is no matter of records: read once more, it could be lost.
        let is_of_data = |e: &Error| !matches!(e.kind(), Kind::Config | Kind::Interrupted);
        if !batch.as_ref().is_err_and(is_of_data) || feeds.iter().all(|feed| feed.runs.is_none()) {
            return batch;
        }
        self.by_record = true;
        let batch = read(self);
        self.by_record = false;
        batch
    }

    pub(super) fn touch(&self, feed: &Feed, sample: u64) {
        feed.read_from(self.by_record).1.touch(sample);
    }

    pub(super) fn add(&mut self, feed: &Feed, number: usize, sample: u64, draw: Draw) -> Result<()> {
        let (_, view) = feed.read_from(self.by_record);
        let first = self.pieces.len();
        view.pieces(sample, draw, &mut self.pieces).map_err(|e| feed.numbered(e))?;
        feed.collate.cut(first, &mut self.pieces, &mut self.chunks);
        if let Some((runs, _)) = &feed.runs
            && let Some(Piece::Read(span)) = self.pieces.get(first)
        {
            runs.touch_place(span.record);
        }
        self.rows.push(RowPlan { feed: number, end: self.pieces.len(), chunks: self.chunks.len(), draw });
        Ok(())
    }

    // The samples of a batch that is asked for by number.
    fn pick(&mut self, feeds: &[Feed], picks: impl Iterator<Item = Pick>) -> Result<()> {
        for Pick { feed: number, sample, draw } in picks {
            let feed =
                feeds.get(number).ok_or_else(|| Error::out_of_range("view", number, feeds.len() as u64))?;
            if sample >= feed.len() {
                return Err(Error::out_of_range("sample", sample, feed.len()));
            }
            self.add(feed, number, sample, draw)?;
        }
        // A loader's threads decode side by side; here is one.
        for (number, feed) in feeds.iter().enumerate() {
            feed.read_from(self.by_record).0.decode_ahead(&mut self.spans_of(number));
        }
        Ok(())
    }

    // What is read of one feed.
    fn spans_of(&self, feed: usize) -> impl Iterator<Item = Span> {
        let starts = [0].into_iter().chain(self.rows.iter().map(|row| row.end));
        let rows = self.rows.iter().zip(starts).filter(move |(row, _)| row.feed == feed);
        rows.flat_map(|(row, start)| &self.pieces[start..row.end]).filter_map(|piece| match piece {
            Piece::Read(span) => Some(*span),
            Piece::Value(_) | Piece::Fill(_) => None,
        })
    }

    pub(super) fn prefetch(&self, feeds: &[Feed], step: u64) {
        gather(|| {
            for (number, feed) in feeds.iter().enumerate() {
                feed.read_from(self.by_record)
                    .0
                    .prefetch(&mut self.spans_of(number).map(|span| (span, step)));
            }
        });
    }

    fn samples<'w>(&'w self, feeds: &'w [Feed]) -> impl Iterator<Item = Sample<'w>> {
        samples(feeds, &self.rows, (&self.pieces, &self.chunks), self.by_record)
    }

    fn records(&self, feeds: &[Feed]) -> Result<Vec<Value>> {
        let feeds_of_rows = self.rows.iter().map(|row| &feeds[row.feed]);
        let record = |(sample, feed): (Sample<'_>, &Feed)| match feed.collate.rows() {
            Some(layout) => layout.read(&sample).map_err(|e| feed.numbered(e)),
            None => Err(Error::config("this view yields tensors, not records")),
        };
        self.samples(feeds).zip(feeds_of_rows).map(record).collect()
    }

    fn assemble(&mut self, feeds: &[Feed], pool: Option<&Pool>) -> Result<Batch> {
        refuse_apart(feeds, self.rows.iter().map(|row| row.feed))?;
        let first = &feeds[self.rows.first().map_or(0, |r| r.feed)];
        let collate = first.collate.as_ref();
        if let Some(layout) = collate.rows() {
            if self.of_records {
                return Ok(Batch::of_records(self.records(feeds)?));
            }
            let place = |row: usize| {
                let sample = self.samples(feeds).nth(row);
                let place = sample.map(|sample| place_of(&sample)).unwrap_or_default();
                let feed = self.rows.get(row).map(|row| &feeds[row.feed]);
                Place { record: feed.zip(place.record).map(|(feed, record)| feed.number_of(record)), ..place }
            };
            return layout.batch(self.records(feeds)?, &place, pool);
        }
        let Workspace { rows, pieces, chunks, scratch, by_record, longest, .. } = self;
        let samples = || samples(feeds, rows, (pieces, chunks), *by_record);
        let longest = longest.as_ref().map(std::slice::from_ref);
        let longest = samples().next().zip(longest).map(|(first, pieces)| Sample { pieces, ..first });
        let fields = first.with_part(collate.fields(&mut samples().chain(longest))?);
        let part = first.has_part_ids.then(|| fields.len() - 1);
        let outputs = first.outputs.as_ref().map(|outputs| outputs.fitting(&fields));
        let mut batch = match &outputs {
            None => Batch::new(fields, rows.len(), pool)?,
            Some(outputs) => outputs.batch(rows.len(), pool)?,
        };
        let mut ahead = samples().skip(1);
        for (i, sample) in samples().enumerate() {
            // While this row is copied, the next one comes from memory.
            if let Some(next) = ahead.next() {
                touch(&next);
            }
            let feed = &feeds[rows[i].feed];
            let mut row = batch.row(i)?;
            let mut filled = feed.collate.fill(&sample, &mut row, scratch);
            if let Some(part) = part {
                row.numbers::<i32>(part)[0] = rows[i].feed as i32;
            }
            if let Some(outputs) = &outputs {
                filled = filled.and_then(|()| outputs.finish(&mut row));
            }
            filled.map_err(|e| feed.numbered(located(&sample, e)))?;
            if !row.is_noted() {
                batch.note_values(sample.pieces.iter().map(|piece| piece.len()).sum());
            }
        }
        Ok(batch)
    }
}

// Asks the processor for the beginning of the first piece, and of the next few for less: a core waits for no more memory at a time.
fn touch(sample: &Sample<'_>) {
    const OTHERS: usize = 3;
    const VALUES: u64 = 32;
    let mut spans = sample.pieces.iter().filter_map(|piece| match piece {
        Piece::Read(span) => Some(*span),
        Piece::Value(_) | Piece::Fill(_) => None,
    });
    if let Some(first) = spans.next() {
        sample.source.touch(first);
    }
    for span in spans.take(OTHERS) {
        sample.source.touch(Span { len: span.len.min(VALUES), ..span });
    }
}

// Refuses rows of views that were told apart in one batch.
fn refuse_apart(feeds: &[Feed], mut of_rows: impl Iterator<Item = usize>) -> Result<()> {
    let Some(first) = of_rows.next() else { return Ok(()) };
    match of_rows.find(|&feed| feeds[feed].tensors != feeds[first].tensors) {
        None => Ok(()),
        Some(other) => Err(Error::mismatch(format!(
            "rows of part {first} and of part {other} in one batch, which have different tensors"
        ))
        .field("batches")
        .hint("with @batches=part@ each batch is of one part: take as many rows as it has, from where one begins")),
    }
}

// Adds the file of the record that an error names. That file is looked up only for the message.
fn located(sample: &Sample<'_>, error: Error) -> Error {
    if error.place().file.is_some() || error.is_of_the_run() {
        return error;
    }
    let span = sample.pieces.iter().find_map(|piece| match piece {
        Piece::Read(span) if error.place().record == Some(span.record) => Some(*span),
        Piece::Read(_) | Piece::Value(_) | Piece::Fill(_) => None,
    });
    let places = span.and_then(|span| sample.source.locate(span).ok());
    match places.and_then(|places| places.into_iter().next()) {
        Some(place) => error.at(place.file),
        None => error,
    }
}

fn samples<'w>(
    feeds: &'w [Feed],
    rows: &'w [RowPlan],
    (pieces, chunks): (&'w [Piece], &'w [Chunk]),
    by_record: bool,
) -> impl Iterator<Item = Sample<'w>> {
    let starts = [(0, 0)].into_iter().chain(rows.iter().map(|row| (row.end, row.chunks)));
    rows.iter().zip(starts).map(move |(row, start)| Sample {
        source: feeds[row.feed].read_from(by_record).0,
        pieces: &pieces[start.0..row.end],
        chunks: &chunks[start.1..row.chunks],
        draw: row.draw,
    })
}
