//! The first step at which two plans give other batches.

use super::{Cursor, Plan, Step, Steps, Workspace};
use crate::collate::Batch;
use crate::error::{Error, Kind, Result};
use crate::sampler::Turn;

/// The first step of two runs that is not the same.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct OtherStep {
    /// Its number in the run, from 0.
    pub step: u64,
    /// Its epoch in the first of the two.
    pub epoch: u64,
    /// What differs first.
    pub what: String,
}

/// A plan, and how it is divided into steps.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// What decides the rows.
    pub plan: &'a Plan,
    /// How many come together.
    pub steps: &'a Steps,
}

/// The first of `most` steps from number `from` on whose batches differ, over all ranks. Steps of the same rows of the same data
/// are not read; all others are, and compared byte by byte.
///
/// # Errors
/// What reading the data says; `Interrupted` when `is_wanted` says no.
pub fn first_difference(
    runs: [Run<'_>; 2],
    from: u64,
    most: u64,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Option<OtherStep>> {
    let [a, b] = runs;
    // Where these agree, the same turn is the same row.
    let identities = [a.plan.identity()?, b.plan.identity()?];
    let same_rows = a.plan.seed() == b.plan.seed()
        && ["source", "view", "layout"]
            .iter()
            .all(|name| identities[0].part(name) == identities[1].part(name));
    let begin = |run: Run<'_>| -> Result<Cursor> {
        Ok(match from {
            0 => Cursor::default(),
            before => run.steps.find(run.plan.sampler(), None, before - 1)?.after(),
        })
    };
    let mut cursors = [begin(a)?, begin(b)?];
    let mut workspace = Workspace::default();
    for number in from..from.saturating_add(most) {
        if !is_wanted() {
            return Err(Error::new(Kind::Interrupted, "stopped before the end"));
        }
        let whole = [a, b].map(|run| Steps { micro_batches: 1, ..*run.steps });
        let next = |of: usize| whole[of].next(runs[of].plan.sampler(), cursors[of]);
        let (first, second) = match (next(0), next(1)) {
            (Some(first), Some(second)) => (first, second),
            (None, None) => return Ok(None),
            (first, _) => {
                let what =
                    format!("only the {} run has it", if first.is_some() { "first" } else { "second" });
                return Ok(Some(OtherStep { step: number, epoch: cursors[0].epoch, what }));
            }
        };
        cursors = [first.after(), second.after()];
        let is_same = same_rows && first.epoch == second.epoch && turns(a, &first) == turns(b, &second);
        if is_same {
            continue;
        }
        let batches =
            [a.plan.batch_of(&first, None, &mut workspace)?, b.plan.batch_of(&second, None, &mut workspace)?];
        if let Some(what) = difference(&batches[0], &batches[1]) {
            return Ok(Some(OtherStep { step: number, epoch: first.epoch, what }));
        }
    }
    Ok(None)
}

fn turns(run: Run<'_>, step: &Step) -> Vec<Turn> {
    let rows = 0..step.all.end - step.all.start;
    rows.map(|row| run.plan.sampler().turn(step.epoch, step.position(run.plan.sampler(), row))).collect()
}

// What of two batches differs, in words.
fn difference(a: &Batch, b: &Batch) -> Option<String> {
    if a.rows() != b.rows() {
        return Some(format!("{} rows, {} rows", a.rows(), b.rows()));
    }
    if a.fields() != b.fields() {
        let shown = |batch: &Batch| {
            let fields = batch.fields().iter().map(|f| format!("{} {} {:?}", f.name, f.dtype, f.shape));
            fields.collect::<Vec<_>>().join(", ")
        };
        return Some(format!("tensors {}; {}", shown(a), shown(b)));
    }
    for (number, field) in a.fields().iter().enumerate() {
        let size = field.row_size().max(1);
        let rows = a.bytes(number).chunks(size).zip(b.bytes(number).chunks(size));
        if let Some(row) = rows.into_iter().position(|(a, b)| a != b) {
            return Some(format!("row {row} of {}", field.name));
        }
    }
    // As text: NaN is the same as NaN.
    let row = (0..a.records().len()).find(|row| {
        let [a, b] = [a, b].map(|batch| batch.records().get(*row));
        a != b && format!("{a:?}") != format!("{b:?}")
    });
    if let Some(row) = row {
        return Some(format!("row {row}"));
    }
    let (ours, theirs) = (format!("{:?}", a.lists()), format!("{:?}", b.lists()));
    (ours != theirs).then(|| "columns that are not numbers".to_string())
}
