//! Batches within a budget of tokens: what a loader is given for it, and what the lengths of rows make of that.

use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use windrow_core::plan::row_lengths;
use windrow_core::sampler::{Budget, RowLengths, pool_of};
use windrow_core::source::Cells;
use windrow_core::{Error, Result, Value};

use crate::views::samples::Samples;

/// Lengths that a plan holds as they are: longer lists would make it large.
const MOST_IN_TEXT: usize = 4096;

/// How long records are that a view of rows gives whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LengthsOf {
    /// A column of whole numbers.
    Column(String),
    /// A number for each sample, those of a mixture one part after the other.
    Each(#[serde(with = "shared")] Arc<[u64]>),
}

// A list in text, that clones of a loader share.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(list: &Arc<[u64]>, to: S) -> Result<S::Ok, S::Error> {
        (**list).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u64]>, D::Error> {
        Vec::deserialize(from).map(Into::into)
    }
}

impl From<&str> for LengthsOf {
    fn from(column: &str) -> LengthsOf {
        LengthsOf::Column(column.to_string())
    }
}

impl From<Vec<u64>> for LengthsOf {
    fn from(each: Vec<u64>) -> LengthsOf {
        LengthsOf::Each(each.into())
    }
}

/// What a loader was given in place of a batch size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    pub(crate) most: Option<u64>,
    pub(crate) multiple: Option<u64>,
    pub(crate) pool: Option<u64>,
    pub(crate) lengths: Option<LengthsOf>,
    /// Measured once, however often a plan is made of it.
    measured: Arc<OnceLock<Arc<RowLengths>>>,
}

impl Tokens {
    /// These options, for rows of other lengths.
    pub(crate) fn with_lengths(self, lengths: LengthsOf) -> Tokens {
        Tokens { lengths: Some(lengths), measured: Arc::default(), ..self }
    }

    /// The budget, and the lengths of rows that it is for; `None` where batches have a number of rows.
    ///
    /// # Errors
    /// `Config` for options that do not go together, or not with the view.
    pub(crate) fn budget(&self, parts: &[Samples]) -> Result<Option<(Budget, Arc<RowLengths>)>> {
        let Some(tokens) = self.most else { return Ok(None) };
        if tokens == 0 {
            return Err(Error::config("@max_tokens=0@: no row fits").field("max_tokens"));
        }
        let multiple = NonZeroU64::new(self.multiple.unwrap_or(1)).ok_or_else(|| {
            Error::config("@batch_multiple=0@").field("multiple").hint("give a number of rows, 1 or more")
        })?;
        if parts.iter().any(|samples| samples.grouping.is_some()) {
            return Err(Error::config("@max_tokens@ of records with @group@: both sort rows by length")
                .field("max_tokens")
                .hint("leave group out of records; it is for batches of a fixed number of rows"));
        }
        let lengths = self.measured(|| self.measure(parts, tokens))?;
        let (n, total) = (lengths.len(), lengths.total());
        let pool = self.pool.unwrap_or_else(|| pool_of(tokens, multiple, n, total));
        Ok(Some((Budget { tokens, multiple, pool }, lengths)))
    }

    /// The lengths of rows that were given.
    ///
    /// # Errors
    /// `Config` for lengths of other rows.
    pub(crate) fn given(&self, parts: &[Samples]) -> Result<Option<Arc<RowLengths>>> {
        let given = self.lengths.as_ref();
        given.map(|given| self.measured(|| measure_given(given, parts))).transpose()
    }

    fn measured(&self, measure: impl FnOnce() -> Result<RowLengths>) -> Result<Arc<RowLengths>> {
        if let Some(measured) = self.measured.get() {
            return Ok(measured.clone());
        }
        let measured = Arc::new(measure()?);
        Ok(self.measured.get_or_init(|| measured).clone())
    }

    /// The lengths as the text of a plan has them.
    ///
    /// # Errors
    /// `Config` for more of them than a text is to hold.
    pub(crate) fn lengths_in_text(&self) -> Result<Option<LengthsOf>> {
        match &self.lengths {
            Some(LengthsOf::Each(each)) if each.len() > MOST_IN_TEXT => Err(Error::config(format!(
                "the plan of a loader with {} @lengths@: its text holds {MOST_IN_TEXT} at most",
                each.len()
            ))
            .field("lengths")
            .hint("name a column of the data that has the lengths")),
            lengths => Ok(lengths.clone()),
        }
    }

    /// Refuses what only a budget has where there is none; lengths also say what rows cost.
    ///
    /// # Errors
    /// `Config`.
    pub(crate) fn refuse_alone(&self, is_balanced: bool) -> Result<()> {
        if self.most.is_some() {
            return Ok(());
        }
        let given = [
            ("multiple", "@batch_multiple@", self.multiple.is_some_and(|multiple| multiple != 1)),
            ("pool", "@pool@", self.pool.is_some()),
            ("lengths", "@lengths@", self.lengths.is_some() && !is_balanced),
        ];
        match given.into_iter().find(|(.., is_given)| *is_given) {
            None => Ok(()),
            Some((field, said, _)) => Err(Error::config(format!("{said} without @max_tokens@"))
                .field(field)
                .hint("batches of a number of rows need none of it")),
        }
    }

    fn measure(&self, parts: &[Samples], tokens: u64) -> Result<RowLengths> {
        match &self.lengths {
            Some(given) => measure_given(given, parts),
            None => row_lengths(&parts.iter().map(Samples::feed).collect::<Vec<_>>(), tokens),
        }
    }
}

fn measure_given(given: &LengthsOf, parts: &[Samples]) -> Result<RowLengths> {
    if let Some(other) = parts.iter().map(Samples::feed).find(|feed| feed.collate().rows().is_none()) {
        return Err(Error::config(format!(
            "@lengths@ of a view that is not rows: {}",
            other.view().describe()
        ))
        .field("lengths")
        .hint("leave them out: this view knows how long its rows are"));
    }
    match given {
        LengthsOf::Column(name) => {
            let columns = parts.iter().map(|samples| column(samples, name));
            RowLengths::given(columns.collect::<Result<_>>()?)
        }
        LengthsOf::Each(each) => {
            let n: u64 = parts.iter().map(Samples::len).sum();
            if each.len() as u64 != n {
                return Err(Error::config(format!("{} @lengths@ for {n} samples", each.len()))
                    .field("lengths")
                    .hint("give one for each sample, of a mixture one part after the other"));
            }
            let mut left = each.iter().zip(0u64..);
            let mut of = |samples: &Samples| {
                let some = left.by_ref().take(samples.len() as usize);
                some.map(|(length, sample)| fitting(i128::from(*length), sample)).collect()
            };
            RowLengths::given(parts.iter().map(&mut of).collect::<Result<_>>()?)
        }
    }
}

/// Rows of a batch on average: a whole number of them that every rank gets.
pub(crate) fn mean_rows(budget: &Budget, lengths: &RowLengths) -> u64 {
    let each = u128::from(budget.multiple.get());
    let rows = u128::from(budget.tokens) * u128::from(lengths.len()) / u128::from(lengths.total().max(1));
    u64::try_from(rows / each * each).unwrap_or(u64::MAX).max(budget.multiple.get())
}

// The lengths that a column has, of each record.
fn column(samples: &Samples, name: &str) -> Result<Vec<u32>> {
    let data = samples.dataset();
    let mut found: Vec<u32> = Vec::new();
    let room = usize::try_from(data.len()).ok().and_then(|n| found.try_reserve_exact(n).ok());
    room.ok_or_else(|| Error::memory(format!("the lengths of {} rows, 4 bytes each", data.len())))?;
    // What is read again, as the file changed meanwhile, begins at the first record.
    let read = windrow_core::store::whole(|| {
        found.clear();
        let mut take = |first: u64, cells: Cells<'_>| {
            let mut add = |record: u64, length: Option<i128>, shown: &dyn std::fmt::Display| {
                let length = length.ok_or_else(|| not_whole(name, shown).record(record))?;
                found.push(fitting(length, record)?);
                Ok(())
            };
            let records = first..;
            match cells {
                Cells::Whole(numbers) => {
                    records.zip(numbers).try_for_each(|(record, n)| add(record, Some(i128::from(*n)), n))
                }
                Cells::Values(values) => records
                    .zip(values)
                    .try_for_each(|(record, value)| add(record, whole(value), &value.shown())),
                Cells::Fractions(_) => add(first, None, &"fractions"),
                Cells::Texts(_) => add(first, None, &"texts"),
            }
        };
        data.source().cells(name, 0..data.len(), &mut take)
    });
    read.map_err(|e| {
        let e = if e.kind() == windrow_core::Kind::Config { e.field("lengths") } else { e };
        data.numbered(e).or_at(data.paths().to_string())
    })?;
    Ok(found)
}

fn whole(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

fn fitting(length: i128, record: u64) -> Result<u32> {
    u32::try_from(length).map_err(|_| {
        Error::config(format!("a length of {length}, expected a whole number from 0 to 2^32 - 1"))
            .field("lengths")
            .record(record)
    })
}

fn not_whole(name: &str, found: &dyn std::fmt::Display) -> Error {
    let shown: String = found.to_string().chars().take(80).collect();
    Error::config(format!("expected whole numbers in {name:?}, found {shown}"))
        .field("lengths")
        .hint("name a column of whole numbers, or give the lengths themselves")
}
