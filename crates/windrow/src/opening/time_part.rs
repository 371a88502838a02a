//! A part in time of every record, with its borders found in each.

use std::sync::Arc;

use windrow_core::collate::Moment;
use windrow_core::format::{BorderOfEach, PeriodOfEach};
use windrow_core::source::{Border, Period, SharedSource, Source};
use windrow_core::{Result, store};

/// A part in time of every record.
#[derive(Clone)]
pub(crate) struct TimePart {
    from: Border,
    to: Border,
    before: u64,
    /// Where the first part ends, which scalers measure.
    pub(crate) fit: Border,
}

/// What times are counted by.
const NAMES: [&str; 2] = ["start", "freq"];

impl TimePart {
    /// The part that options name, of these whole records.
    ///
    /// # Errors
    /// `Config` for a time of records that do not say theirs.
    pub(crate) fn of(period: Option<&PeriodOfEach>, whole: &SharedSource) -> Result<Option<TimePart>> {
        let Some(PeriodOfEach { from, to, before, fit }) = period else { return Ok(None) };
        let border = |border: &BorderOfEach| {
            Ok(match border {
                BorderOfEach::Fraction(fraction) => Border::Fraction(*fraction),
                BorderOfEach::Last { last } => Border::Last(*last),
                BorderOfEach::Time { at, freq } => {
                    let at = Moment::parse(at)?;
                    let before = store::whole(|| values_before(at, freq.as_deref(), whole.as_ref()))?;
                    Border::Time { at: at.to_string().into(), before }
                }
            })
        };
        let (starts, ends) = (border(from)?, border(to)?);
        // One of the two as a rule, which is not counted twice.
        let first = match (fit == to, fit == from) {
            (true, _) => ends.clone(),
            (_, true) => starts.clone(),
            _ => border(fit)?,
        };
        Ok(Some(TimePart { from: starts, to: ends, before: *before, fit: first }))
    }

    /// Moves the part to records that each became `n` records.
    pub(crate) fn repeated(&self, n: u64) -> TimePart {
        let [from, to, fit] = [&self.from, &self.to, &self.fit].map(|border| border.repeated(n as usize));
        TimePart { from, to, fit, before: self.before }
    }

    /// The part of each record of a source of the same records.
    ///
    /// # Errors
    /// `Config` where records are not numbers.
    pub(crate) fn period(&self, source: SharedSource) -> Result<Period> {
        Period::between(source, self.from.clone(), self.to.clone(), self.before)
    }
}

/// The part of each record; all of it where there is none.
pub(crate) fn of_period(source: SharedSource, part: Option<&TimePart>) -> Result<SharedSource> {
    match part {
        Some(part) => Ok(Arc::new(part.period(source)?)),
        None => Ok(source),
    }
}

fn values_before(at: Moment, freq: Option<&str>, records: &dyn Source) -> Result<Arc<[u64]>> {
    records.schema().need_numbers()?;
    let names = NAMES.map(str::to_string);
    (0..records.len())
        .map(|record| {
            let beside = records.beside(record, &names)?;
            at.values_before(&beside, freq).map_err(|e| e.record(record))
        })
        .collect()
}
