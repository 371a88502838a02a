//! What a position read, and which positions read a record: the plan forwards and backwards.

use std::ops::Range;

use super::{Identity, Plan};
use crate::collate::whole_span;
use crate::error::{Error, Kind, Result};
use crate::record::{Draw, Piece, Span};
use crate::sampler::Turn;
use crate::source::{Location, whole};
use crate::view::View;

/// What was at one position of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Number of the view in a mixture, 0 else.
    pub feed: usize,
    /// The sample's number in its view.
    pub sample: u64,
    /// How often its view was gone through before in this epoch.
    pub pass: u64,
    /// What it is made of, in order.
    pub pieces: Vec<Piece>,
    /// The values among that: what it read, of records of the source; [`Feed::number_of`](super::Feed::number_of) tells what they
    /// are called where some are chosen or left out.
    pub spans: Vec<Span>,
    /// Where each of them lies.
    pub locations: Vec<Location>,
}

/// One position that reads a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The sample's number in its view.
    pub sample: u64,
    /// Its position in the epoch.
    pub position: u64,
}

impl Plan {
    /// The plan's identity: the same for the same data, cut, order and layout.
    ///
    /// # Errors
    /// `Io` when a source cannot be read.
    pub fn identity(&self) -> Result<Identity> {
        Identity::of(self)
    }

    /// What the sample at `position` of `epoch` is made of.
    ///
    /// # Errors
    /// `OutOfRange`; what reading an index says.
    pub fn trace(&self, epoch: u64, position: u64) -> Result<Traced> {
        whole(|| self.traced(epoch, position))
    }

    fn traced(&self, epoch: u64, position: u64) -> Result<Traced> {
        if let Some(len) = self.sampler().len(epoch)
            && position >= len
        {
            return Err(Error::out_of_range("position", position, len));
        }
        let turn = self.sampler().turn(epoch, position);
        let (feed, sample) = self.feed_of(turn.sample);
        let mut pieces = Vec::new();
        let draw = self.draw(epoch, turn, feed);
        let from = &self.feeds()[feed];
        from.view().pieces(sample, draw, &mut pieces).map_err(|e| from.numbered(e))?;
        from.collate().cut(0, &mut pieces, &mut Vec::new());
        let spans = pieces.iter().filter_map(|p| match p {
            Piece::Read(span) => Some(*span),
            Piece::Value(_) | Piece::Fill(_) => None,
        });
        let source = from.source().as_ref();
        let spans: Result<Vec<Span>> = match from.collate().rows() {
            // A view of whole records asks for no lengths.
            Some(_) => spans.map(|span| whole_span(source, span.record)).collect(),
            None => spans.filter_map(|span| read_span(from.view(), sample, draw, span).transpose()).collect(),
        };
        let spans = spans.map_err(|e| from.numbered(e))?;
        let mut locations = Vec::new();
        for span in &spans {
            locations.extend(source.locate(*span).map_err(|e| from.numbered(e))?);
        }
        Ok(Traced { feed, sample, pass: turn.pass, pieces, spans, locations })
    }

    /// The inverse: the positions of `epoch` whose samples may read from `record` of the data set of view `feed`, at most `most`,
    /// in the order of their samples, pass by pass where a pass has an order of its own; none for a record that is not chosen, or left
    /// out.
    ///
    /// # Errors
    /// `OutOfRange`; what reading an index says.
    pub fn find(&self, feed: usize, record: u64, epoch: u64, most: usize) -> Result<Vec<Found>> {
        self.find_while(feed, record, epoch, most, &|_| true, &|| true)
    }

    /// Finds only positions that count, as long as the result is wanted.
    ///
    /// # Errors
    /// As [`Plan::find`]; `Interrupted`.
    pub fn find_while(
        &self,
        feed: usize,
        record: u64,
        epoch: u64,
        most: usize,
        counts: &dyn Fn(u64) -> bool,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<Found>> {
        let from = self
            .feeds()
            .get(feed)
            .ok_or_else(|| Error::out_of_range("view", feed, self.feeds().len() as u64))?;
        if record >= from.numbers() {
            return Err(Error::out_of_range("record", record, from.numbers()));
        }
        let Some(first) = from.record_of(record) else { return Ok(Vec::new()) };
        let records = first..first + from.per_record();
        let search = Search { plan: self, feed, epoch, most, counts, is_wanted };
        match from.view().is_reshuffled() {
            true => search.pass_by_pass(records),
            false => search.sample_by_sample(records),
        }
    }
}

/// A search for the positions of an epoch that read records of a view.
struct Search<'p> {
    plan: &'p Plan,
    feed: usize,
    epoch: u64,
    most: usize,
    counts: &'p dyn Fn(u64) -> bool,
    is_wanted: &'p dyn Fn() -> bool,
}

/// Passes without a sample of a record after which it is not searched for any longer: the end of the stream, which no sample reads, holds
/// a document at most every second time.
const PASSES_WITHOUT: u32 = 64;

impl Search<'_> {
    // Each sample is the same in all passes. The records are one, unless its channels are apart.
    fn sample_by_sample(&self, records: Range<u64>) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        for record in records {
            self.samples_of(record, 0, |sample| {
                // A mixture may go through its smaller part several times in one epoch.
                for pass in 0.. {
                    if found.len() >= self.most {
                        return Ok(false);
                    }
                    match self.position(sample, pass)? {
                        Some(position) => found.extend(self.counted(sample, position)),
                        None => break,
                    }
                }
                Ok(true)
            })?;
        }
        Ok(found)
    }

    // Each pass has other samples of a record.
    fn pass_by_pass(&self, records: Range<u64>) -> Result<Vec<Found>> {
        let (mut found, mut n_without) = (Vec::new(), 0);
        for pass in 0..self.passes() {
            let (mut n_samples, mut is_whole) = (0, true);
            for record in records.clone() {
                self.samples_of(record, pass, |sample| {
                    n_samples += 1;
                    match self.position(sample, pass)? {
                        Some(position) => found.extend(self.counted(sample, position)),
                        None => is_whole = false,
                    }
                    Ok(found.len() < self.most)
                })?;
            }
            n_without = if n_samples == 0 { n_without + 1 } else { 0 };
            // A pass of which a sample never comes is the last one.
            if found.len() >= self.most || !is_whole || n_without == PASSES_WITHOUT {
                break;
            }
        }
        found.truncate(self.most);
        Ok(found)
    }

    // The passes of the view that the epoch begins.
    fn passes(&self) -> u64 {
        let sampler = self.plan.sampler();
        let Some(len) = sampler.len(self.epoch) else { return u64::MAX };
        let samples = sampler.samples_of_views(len).get(self.feed).copied().unwrap_or(len);
        samples.div_ceil(self.plan.feeds()[self.feed].len().max(1))
    }

    // Gives the samples that read a record in a pass, as long as they are taken.
    fn samples_of(&self, record: u64, pass: u64, mut take: impl FnMut(u64) -> Result<bool>) -> Result<()> {
        let from = &self.plan.feeds()[self.feed];
        let pass = self.plan.pass(self.epoch, pass, self.feed);
        let samples = whole(|| from.view().samples_of(record, pass)).map_err(|e| from.numbered(e))?;
        let is_one = samples.end - samples.start == 1;
        let mut pieces = Vec::new();
        for sample in samples {
            self.check_wanted()?;
            if !is_one {
                // Samples of other records may be among them.
                let draw = pass.draw(self.plan.starts[self.feed] + sample);
                whole(|| {
                    pieces.clear();
                    from.view().pieces(sample, draw, &mut pieces)
                })
                .map_err(|e| from.numbered(e))?;
                let is_read = |piece: &Piece| matches!(piece, Piece::Read(span) if span.record == record);
                if !pieces.iter().any(is_read) {
                    continue;
                }
            }
            if !take(sample)? {
                break;
            }
        }
        Ok(())
    }

    // The position of a sample in a pass, where it has one.
    fn position(&self, sample: u64, pass: u64) -> Result<Option<u64>> {
        self.check_wanted()?;
        let turn = Turn { sample: self.plan.starts[self.feed] + sample, pass };
        Ok(self.plan.sampler().position(self.epoch, turn))
    }

    fn check_wanted(&self) -> Result<()> {
        match (self.is_wanted)() {
            true => Ok(()),
            false => Err(Error::new(Kind::Interrupted, "stopped before the end")),
        }
    }

    fn counted(&self, sample: u64, position: u64) -> Option<Found> {
        (self.counts)(position).then_some(Found { sample, position })
    }
}

// The span, where the sample reads it. One without values may only name the record before an EOS: nothing of it is read.
fn read_span(view: &dyn View, sample: u64, draw: Draw, span: Span) -> Result<Option<Span>> {
    let is_read = span.len > 0 || view.samples_of(span.record, draw.pass())?.contains(&sample);
    Ok(is_read.then_some(span))
}
