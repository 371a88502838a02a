//! Which documents have the same neighbours in several epochs, and what each epoch leaves out, from lengths alone: no data is read.

use serde::Serialize;
use windrow_core::plan::Feed;
use windrow_core::store::whole;
use windrow_core::view::{Coverage, View};
use windrow_core::{Pass, Piece, Result};

use crate::run::builder::LoaderBuilder;
use crate::views::recipe::ViewRecipe;
use crate::views::samples::Samples;

/// Epochs that are looked at.
const EPOCHS: u64 = 5;

/// Documents whose neighbours are looked up, about: of more, those of stretches spread over the first epoch.
const MOST_DOCUMENTS: u64 = 50_000;

/// Number of those stretches.
const STRETCHES: u64 = 64;

/// How many documents of a view, or of a part of a mixture, have the neighbours of epoch 0 in later epochs, and what each epoch sees.
/// Of a part that is gone through several times in an epoch, the first time is looked at; of an endless mixture, the first times.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Neighbours {
    /// Whether documents come in another order in each epoch; else all epochs have the same neighbours.
    pub reshuffled: bool,
    /// Whether neighbours are documents that share a row, in any order, as in bins; else each document and the one after it.
    pub in_rows: bool,
    /// Pairs of neighbours in epoch 0 that were looked up in the other epochs; none where documents keep their order.
    pub pairs: u64,
    /// Whether these are all pairs there are.
    pub all_pairs: bool,
    /// For each epoch from 0: the part of these pairs that are neighbours in it.
    pub kept: Vec<f64>,
    /// For each epoch from 0: what one pass through the view sees.
    pub coverage: Vec<Coverage>,
}

impl LoaderBuilder {
    /// How many documents of each view have the neighbours of epoch 0 in epochs 1 to 4, and what each epoch leaves out. Of more than
    /// 50,000 documents a sample is looked up.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// # let documents: Vec<Vec<u32>> = (0..50).map(|i| vec![i; 1 + i as usize % 7]).collect();
    /// # std::fs::write(&path, serde_json::to_string(&documents).unwrap()).unwrap();
    /// use windrow::{Bins, Strategy};
    ///
    /// let data = windrow::open(&path)?;
    /// let same = &data.bins(Bins::new(8))?.loader().rank(0, 1).neighbours()?[0];
    /// assert_eq!(same.kept, [1.0; 5]);
    /// let other = &data.bins(Bins::new(8).reshuffle(true))?.loader().rank(0, 1).neighbours()?[0];
    /// assert!(other.kept[1..].iter().all(|kept| *kept < 0.5), "{other:?}");
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`LoaderBuilder::plan`]; what an index on disk says.
    pub fn neighbours(&self) -> Result<Vec<Neighbours>> {
        let plan = self.plan()?;
        let is_endless = plan.sampler().len(0).is_none();
        let of = |(number, (feed, samples)): (usize, (&Feed, &Samples))| {
            let (seed, view) = (plan.seed(), number as u64);
            let passes: Vec<Pass> = (0..EPOCHS)
                .map(|nth| match is_endless {
                    true => Pass { seed, epoch: 0, pass: nth, view },
                    false => Pass { seed, epoch: nth, pass: 0, view },
                })
                .collect();
            let in_rows = !matches!(samples.recipe().view, ViewRecipe::Pack(_));
            whole(|| Neighbours::of(feed, in_rows, &passes)).map_err(|e| samples.dataset().numbered(e))
        };
        plan.feeds().iter().zip(self.parts()).enumerate().map(of).collect()
    }
}

impl Neighbours {
    fn of(feed: &Feed, in_rows: bool, passes: &[Pass]) -> Result<Neighbours> {
        let view = feed.view();
        if !view.is_reshuffled() {
            let coverage = vec![feed.coverage(Pass::default())?; passes.len()];
            let kept = vec![1.0; passes.len()];
            return Ok(Neighbours { reshuffled: false, in_rows, pairs: 0, all_pairs: false, kept, coverage });
        }
        let n_documents = feed.source().len();
        let (mut groups, mut kept, mut coverage) = (Vec::new(), Vec::new(), Vec::new());
        let mut pairs = 0;
        for (nth, pass) in passes.iter().enumerate() {
            if nth == 0 {
                groups = documents(view, *pass, in_rows, n_documents)?;
                let of = |group: &Vec<u64>| match in_rows {
                    true => pairs_of(group.len()),
                    false => group.len().saturating_sub(1) as u64,
                };
                pairs = groups.iter().map(of).sum();
                kept.push(1.0);
            } else {
                let again = if in_rows { share_a_row } else { follow_each_other };
                let found = groups.iter().map(|group| again(view, *pass, group)).sum::<Result<u64>>()?;
                kept.push(found as f64 / pairs.max(1) as f64);
            }
            coverage.push(feed.coverage(*pass)?);
        }
        let all_pairs = n_documents <= MOST_DOCUMENTS;
        Ok(Neighbours { reshuffled: true, in_rows, pairs, all_pairs, kept, coverage })
    }
}

// Documents in the order of a pass: of each row by itself, or else of each stretch that is looked at.
fn documents(view: &dyn View, pass: Pass, in_rows: bool, n_documents: u64) -> Result<Vec<Vec<u64>>> {
    let stretches = if n_documents <= MOST_DOCUMENTS { 1 } else { STRETCHES };
    let begin = |stretch: u64| (u128::from(view.len()) * u128::from(stretch) / u128::from(stretches)) as u64;
    let (mut groups, mut pieces) = (Vec::new(), Vec::new());
    for stretch in 0..stretches {
        let (mut group, mut found) = (Vec::new(), 0);
        for sample in begin(stretch)..begin(stretch + 1) {
            pieces.clear();
            view.pieces(sample, pass.draw(sample), &mut pieces)?;
            for record in records(&pieces) {
                if group.last() != Some(&record) {
                    group.push(record);
                    found += 1;
                }
            }
            if in_rows {
                groups.push(std::mem::take(&mut group));
            }
            if found >= MOST_DOCUMENTS / stretches {
                break;
            }
        }
        groups.push(group);
    }
    Ok(groups)
}

// Those of which pieces have values.
fn records(pieces: &[Piece]) -> impl Iterator<Item = u64> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Read(span) if span.len > 0 => Some(span.record),
        _ => None,
    })
}

fn pairs_of(n: usize) -> u64 {
    (n as u64) * (n as u64).saturating_sub(1) / 2
}

// Documents of a row of another pass that share one in this.
fn share_a_row(view: &dyn View, pass: Pass, group: &[u64]) -> Result<u64> {
    let mut rows = Vec::with_capacity(group.len());
    for record in group {
        // The rows before the last are filled by the document alone, or are not of it.
        let samples = view.samples_of(*record, pass)?;
        rows.extend((!samples.is_empty()).then(|| samples.end - 1));
    }
    rows.sort_unstable();
    Ok(rows.chunk_by(|a, b| a == b).map(|same| pairs_of(same.len())).sum())
}

// Documents that follow each other in another pass and do so in this.
fn follow_each_other(view: &dyn View, pass: Pass, group: &[u64]) -> Result<u64> {
    let (mut kept, mut pieces) = (0, Vec::new());
    for pair in group.windows(2) {
        let samples = view.samples_of(pair[0], pass)?;
        if samples.is_empty() {
            continue;
        }
        // The next one may begin with the next sample; where documents are empty, only after some.
        let mut has_ended = false;
        for sample in samples.end - 1..view.len() {
            pieces.clear();
            view.pieces(sample, pass.draw(sample), &mut pieces)?;
            let mut after = records(&pieces).skip_while(|record| !has_ended && *record != pair[0]);
            if let Some(next) = after.find(|record| *record != pair[0]) {
                kept += u64::from(next == pair[1]);
                break;
            }
            has_ended = true;
        }
    }
    Ok(kept)
}
