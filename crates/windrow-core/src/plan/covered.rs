//! What a range of steps read: samples and values of each view, bytes of each file, distinct records.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Cursor, Feed, Plan, Steps, Traced};
use crate::error::{Error, Kind, Result};
use crate::secrets::without_secrets;
use crate::watch::Watch;

/// What steps read.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Covered {
    /// How many steps: fewer than were asked for where the run ends.
    pub steps: u64,
    /// Of each view, in the order of a mixture.
    pub parts: Vec<CoveredPart>,
}

/// What steps read of one view.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct CoveredPart {
    /// Rows of batches.
    pub samples: u64,
    /// Values that these rows read, each as often as it was read.
    pub values: u64,
    /// Records among which they are, each once.
    pub records: u64,
    /// The files, by name, of URLs without a query or a password.
    pub files: Vec<CoveredFile>,
    /// The records by number, as `[from, to)`, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_ranges: Option<Vec<(u64, u64)>>,
}

/// What steps read of one file.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct CoveredFile {
    /// The file.
    pub file: String,
    /// Bytes, each as often as it was read.
    pub bytes: u64,
    /// Values; of a read from several files the share of its bytes.
    pub values: u64,
}

impl Plan {
    /// What the steps with these numbers read, by the rank of `steps`; of which records only where `with_records`.
    ///
    /// Memory: a name and two numbers per file, and for distinct records at most a quarter of a byte for each of the source.
    ///
    /// # Errors
    /// `OutOfRange` when no run comes to the first of them; what reading an index says; `Interrupted` when `is_wanted` says no.
    pub fn covered(
        &self,
        steps: &Steps,
        numbers: Range<u64>,
        with_records: bool,
        watch: &dyn Watch,
    ) -> Result<Covered> {
        let mut counts: Vec<Counted> =
            self.feeds().iter().map(|feed| Counted::below(feed.numbers())).collect();
        let mut cursor = Cursor::default();
        let steps = &Steps { micro_batches: 1, ..*steps };
        let (mut n_steps, total) = (0, numbers.end.saturating_sub(numbers.start));
        for number in numbers {
            let step = match n_steps {
                0 => Some(steps.find(self.sampler(), None, number)?),
                _ => steps.next(self.sampler(), cursor),
            };
            let Some(step) = step else { break };
            for position in self.own(&step)?.positions() {
                if watch.cancelled() {
                    return Err(Error::new(Kind::Interrupted, "stopped before the end"));
                }
                let traced =
                    self.trace(step.epoch, step.position(self.sampler(), position - step.all.start))?;
                counts[traced.feed].add(&traced, &self.feeds()[traced.feed])?;
            }
            cursor = step.after();
            n_steps += 1;
            watch.counted(n_steps, total, "step");
        }
        let parts = counts.into_iter().map(|counted| counted.finish(with_records)).collect();
        Ok(Covered { steps: n_steps, parts })
    }
}

struct Counted {
    samples: u64,
    values: u64,
    records: Numbers,
    // Bytes and values of each file.
    files: BTreeMap<String, [u64; 2]>,
}

impl Counted {
    fn below(n_records: u64) -> Counted {
        Counted { samples: 0, values: 0, records: Numbers::below(n_records), files: BTreeMap::new() }
    }

    fn add(&mut self, traced: &Traced, feed: &Feed) -> Result<()> {
        self.samples += 1;
        let mut values = 0;
        for span in &traced.spans {
            self.records.add(feed.number_of(span.record))?;
            values += span.len;
        }
        self.values += values;
        let bytes: u64 = traced.locations.iter().map(|l| l.size).sum();
        for location in &traced.locations {
            // Numbers take the same number of bytes each.
            let share = u128::from(values) * u128::from(location.size) / u128::from(bytes.max(1));
            if let Some(file) = self.files.get_mut(&location.file) {
                file[0] += location.size;
                file[1] += share as u64;
            } else {
                self.files.insert(location.file.clone(), [location.size, share as u64]);
            }
        }
        Ok(())
    }

    fn finish(mut self, with_records: bool) -> CoveredPart {
        let ranges = self.records.ranges();
        CoveredPart {
            samples: self.samples,
            values: self.values,
            records: ranges.iter().map(|(from, to)| to - from).sum(),
            files: self
                .files
                .into_iter()
                .map(|(file, [bytes, values])| CoveredFile { file: without_secrets(&file), bytes, values })
                .collect(),
            record_ranges: with_records.then_some(ranges),
        }
    }
}

/// Distinct numbers below a bound: a list, or once that is as long, a bit for each number there is.
struct Numbers {
    below: u64,
    few: Vec<u64>,
    n_sorted: usize,
    bits: Vec<u64>,
}

/// How many new ones are collected before they are sorted.
const UNSORTED: usize = 1024;

impl Numbers {
    fn below(below: u64) -> Numbers {
        Numbers { below, few: Vec::new(), n_sorted: 0, bits: Vec::new() }
    }

    fn add(&mut self, number: u64) -> Result<()> {
        if !self.bits.is_empty() {
            self.set(number);
            return Ok(());
        }
        self.few.push(number);
        if self.few.len() < 2 * self.n_sorted + UNSORTED {
            return Ok(());
        }
        self.sort();
        let words = self.below.div_ceil(64);
        if self.few.len() as u64 >= words {
            let n_words = usize::try_from(words).unwrap_or(usize::MAX);
            self.bits
                .try_reserve_exact(n_words)
                .map_err(|_| Error::memory(format!("a bit for each of {} records", self.below)))?;
            self.bits.resize(n_words, 0);
            std::mem::take(&mut self.few).into_iter().for_each(|number| self.set(number));
        }
        Ok(())
    }

    fn set(&mut self, number: u64) {
        if let Some(word) = usize::try_from(number / 64).ok().and_then(|at| self.bits.get_mut(at)) {
            *word |= 1 << (number % 64);
        }
    }

    fn sort(&mut self) {
        self.few.sort_unstable();
        self.few.dedup();
        self.n_sorted = self.few.len();
    }

    // Ascending, as `[from, to)`.
    fn ranges(&mut self) -> Vec<(u64, u64)> {
        self.sort();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut add = |number| match ranges.last_mut() {
            Some(last) if last.1 == number => last.1 += 1,
            _ => ranges.push((number, number + 1)),
        };
        self.few.iter().copied().for_each(&mut add);
        for (at, word) in (0u64..).zip(&self.bits) {
            (0..64).filter(|bit| word & (1 << bit) != 0).for_each(|bit| add(at * 64 + bit));
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_and_bits_hold_the_same_numbers() {
        for (below, factor) in [(1 << 40, 1 << 20), (5000, 7)] {
            let mut numbers = Numbers::below(below);
            for i in 0..20_000u64 {
                numbers.add(i % 700 * factor % below).unwrap();
            }
            let mut expected: Vec<u64> = (0..700).map(|i| i * factor % below).collect();
            expected.sort_unstable();
            let found = numbers.ranges().into_iter().flat_map(|(from, to)| from..to);
            assert_eq!(found.collect::<Vec<_>>(), expected);
            assert_eq!(numbers.bits.is_empty(), below > 5000);
        }
        assert_eq!(Numbers::below(0).ranges(), []);
        let mut all = Numbers::below(300_000);
        (0..300_000).rev().for_each(|number| all.add(number).unwrap());
        assert_eq!(all.ranges(), [(0, 300_000)]);
    }
}
