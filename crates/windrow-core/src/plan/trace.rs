//! What a position read, and which positions read a record: the plan forwards and backwards.

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
    /// are called where some are left out.
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
        let draw = Draw::new(self.seed(), epoch, turn.pass, turn.sample);
        let from = &self.feeds()[feed];
        from.view().pieces(sample, draw, &mut pieces).map_err(|e| from.numbered(e))?;
        let spans = pieces.iter().filter_map(|p| match p {
            Piece::Read(span) => Some(*span),
            Piece::Value(_) => None,
        });
        let source = from.source().as_ref();
        let spans: Result<Vec<Span>> = match from.collate().rows() {
            // A view of whole records asks for no lengths.
            Some(_) => spans.map(|span| whole_span(source, span.record)).collect(),
            None => spans.filter_map(|span| read_span(from.view(), sample, span).transpose()).collect(),
        };
        let spans = spans.map_err(|e| from.numbered(e))?;
        let mut locations = Vec::new();
        for span in &spans {
            locations.extend(source.locate(*span).map_err(|e| from.numbered(e))?);
        }
        Ok(Traced { feed, sample, pass: turn.pass, pieces, spans, locations })
    }

    /// The inverse: the positions of `epoch` whose samples may read from `record` of the data set of view `feed`, at most `most`,
    /// in the order of their samples; none for a record that is left out.
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
        let view = from.view();
        let (mut pieces, mut found) = (Vec::new(), Vec::new());
        // One, unless its channels are apart.
        'records: for record in first..first + from.per_record() {
            let samples = whole(|| view.samples_of(record)).map_err(|e| from.numbered(e))?;
            let is_one = samples.end - samples.start == 1;
            for sample in samples {
                if !is_one {
                    // Samples of other records may be among them.
                    let draw = Draw::new(self.seed(), epoch, 0, self.starts[feed] + sample);
                    whole(|| {
                        pieces.clear();
                        view.pieces(sample, draw, &mut pieces)
                    })
                    .map_err(|e| from.numbered(e))?;
                    let is_read = |piece: &Piece| matches!(piece, Piece::Read(span) if span.record == record);
                    if !pieces.iter().any(is_read) {
                        continue;
                    }
                }
                // A mixture may go through its smaller part several times in one epoch.
                for pass in 0.. {
                    let turn = Turn { sample: self.starts[feed] + sample, pass };
                    if found.len() >= most {
                        break 'records;
                    }
                    if !is_wanted() {
                        return Err(Error::new(Kind::Interrupted, "stopped before the end"));
                    }
                    match self.sampler().position(epoch, turn) {
                        Some(position) if counts(position) => found.push(Found { sample, position }),
                        Some(_) => {}
                        None => break,
                    }
                }
            }
        }
        Ok(found)
    }
}

// The span, where the sample reads it. One without values may only name the record before an EOS: nothing of it is read.
fn read_span(view: &dyn View, sample: u64, span: Span) -> Result<Option<Span>> {
    let is_read = span.len > 0 || view.samples_of(span.record)?.contains(&sample);
    Ok(is_read.then_some(span))
}
