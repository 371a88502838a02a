//! Batches within a budget of tokens: how long the rows of views are, and the order of a plan cut by that.

use std::sync::Arc;

use super::{Feed, Own, Plan, Step};
use crate::error::{Error, Result};
use crate::record::{Draw, Piece};
use crate::sampler::{Budget, Budgeted, RowLengths, Sampler, Turn};
use crate::source::whole;

/// Samples whose lengths are asked for at once.
const AT_ONCE: usize = 4096;

/// How long the row of each sample of these views is, in batches that are as long as their longest row, for a budget of `tokens`.
///
/// # Errors
/// `Config` for a view whose rows are all equally long, and for more samples than memory holds; what lengths say.
pub fn row_lengths(feeds: &[&Feed], tokens: u64) -> Result<RowLengths> {
    let views = feeds.iter().map(|feed| Feed::clone(feed).to_longest().row_lengths(tokens));
    let buckets = feeds.first().map_or(&[][..], |feed| feed.collate().buckets());
    RowLengths::new(views.collect::<Result<_>>()?, buckets)
}

impl Feed {
    fn row_lengths(&self, tokens: u64) -> Result<Vec<u32>> {
        let n = self.len();
        let mut found: Vec<u32> = Vec::new();
        let room = usize::try_from(n).ok().and_then(|n| found.try_reserve_exact(n).ok());
        room.ok_or_else(|| Error::memory(format!("the lengths of {n} rows, 4 bytes each")))?;
        let mut some = [0; AT_ONCE];
        while (found.len() as u64) < n {
            let first = found.len() as u64;
            let some = &mut some[..(n - first).min(AT_ONCE as u64) as usize];
            whole(|| self.view().values(first, some)).map_err(|e| self.numbered(e))?;
            for (sample, values) in (first..).zip(some) {
                let length = self.collate().row_length(*values).ok_or_else(|| self.all_alike(tokens))?;
                found.push(u32::try_from(length).map_err(|_| {
                    Error::config(format!(
                        "sample {sample} is {length} long, and rows of a budget are below 2^32"
                    ))
                    .field("max_tokens")
                })?);
            }
        }
        Ok(found)
    }

    fn all_alike(&self, tokens: u64) -> Error {
        let error = Error::config(format!(
            "@max_tokens@ of a view whose rows are all equally long: {}",
            self.view().describe()
        ))
        .field("max_tokens");
        if self.collate().rows().is_some() {
            return error.hint(
                "say how long each record is: @lengths@, a column of whole numbers or one for each sample",
            );
        }
        error.hint(format!(
            "@global_batch_size={}@ is the same; records with @pad=longest@, crop and codes have rows of many lengths",
            (tokens / self.view().positions().max(1)).max(1)
        ))
    }
}

impl Plan {
    /// Cuts its order into batches within a budget of tokens, of rows with these lengths.
    ///
    /// # Errors
    /// As [`Budgeted::new`], with the record that is too long.
    pub fn within(self, budget: Budget, lengths: Arc<RowLengths>) -> Result<Plan> {
        let inner: Arc<dyn Sampler> = self.sampler.clone();
        let sampler =
            Budgeted::new(inner, lengths, budget, self.seed).map_err(|e| match e.place().record {
                Some(sample) => self.at_sample(e, sample),
                None => e,
            })?;
        let feeds = self.feeds.into_iter().map(Feed::to_longest).collect();
        Ok(Plan { feeds, sampler: Arc::new(sampler), ..self })
    }

    /// The values of the longest row of a step, where all ranks have to know it for their own rows.
    pub(super) fn longest_of(&self, step: &Step, turns: &mut Vec<Turn>) -> Result<Option<u64>> {
        let is_needed = self.feeds.iter().any(|feed| !feed.collate().buckets().is_empty());
        if !is_needed || step.in_order() == step.all {
            return Ok(None);
        }
        self.turns((step.epoch, step.end()), &Own::Run(step.all.clone()), turns)?;
        let mut longest = 0;
        for turn in turns.iter() {
            let (feed, sample) = self.feed_of(turn.sample);
            let from = &self.feeds[feed];
            let mut values = [0];
            from.view().values(sample, &mut values).map_err(|e| from.numbered(e))?;
            longest = longest.max(values[0]);
        }
        Ok(Some(longest))
    }

    // An error about a sample, with the record that it reads instead.
    fn at_sample(&self, error: Error, sample: u64) -> Error {
        let (feed, sample) = self.feed_of(sample);
        let from = &self.feeds[feed];
        let mut pieces = Vec::new();
        let read = whole(|| from.view().pieces(sample, Draw::new(0, 0, 0, sample), &mut pieces));
        let span = pieces.iter().find_map(|piece| match piece {
            Piece::Read(span) => Some(*span),
            Piece::Value(_) | Piece::Fill(_) => None,
        });
        let Some(span) = span.filter(|_| read.is_ok()) else { return error };
        let places = from.source().locate(span).ok().and_then(|places| places.into_iter().next());
        let error = from.numbered(error.record(span.record));
        match places {
            Some(place) => error.at(place.file),
            None => error,
        }
    }
}
