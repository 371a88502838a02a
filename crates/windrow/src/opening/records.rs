//! Records of which some were chosen: which, and what a plan says of them.

use std::sync::Arc;

use windrow_core::format::{Choice, Split};
use windrow_core::source::{Chosen, Condition, Kind, Numbers, SharedSource, Subset, Words};
use windrow_core::{Error, Result};

use crate::opening::part::{of_split, validating};

/// A whole column is read where at least one of 1,000 records was chosen.
const SPARSE: u64 = 1000;

/// Records of which some were chosen.
#[derive(Clone)]
pub(crate) struct Records {
    /// All of them.
    base: SharedSource,
    chosen: Option<Arc<Chosen>>,
    words: Words,
}

impl Records {
    /// All of these.
    pub(crate) fn all(base: SharedSource) -> Records {
        Records { base, chosen: None, words: Words::default() }
    }

    /// Those that were chosen; `None` where all were.
    pub(crate) fn chosen(&self) -> Option<&Arc<Chosen>> {
        self.chosen.as_ref()
    }

    /// The records that were chosen, in their order.
    pub(crate) fn source(&self) -> SharedSource {
        match &self.chosen {
            None => self.base.clone(),
            Some(chosen) => Arc::new(Subset::chosen(self.base.clone(), chosen.clone(), self.words.clone())),
        }
    }

    /// What is left of them after one choice more; `stop` ends reading a column.
    ///
    /// # Errors
    /// As [`Chosen::new`]; `Mismatch` where only a hash is known; what reading a column says.
    pub(crate) fn after(&self, choice: &Choice, stop: &dyn Fn() -> bool) -> Result<Records> {
        match choice {
            Choice::Numbers(numbers) => Ok(self.of(Chosen::new(numbers.clone(), self.base.len())?)),
            Choice::Hashed { n, xxh3 } => Err(unknown(*n, *xxh3)),
            Choice::Split(split) => self.split(*split),
            Choice::Where(condition) => self.matching(condition, stop),
        }
    }

    /// One part of a split of them.
    pub(crate) fn split(&self, split: Split) -> Result<Records> {
        let Some(chosen) = &self.chosen else {
            return Ok(Records::all(of_split(self.base.clone(), Some(split))?));
        };
        let of_validation = validating(split, chosen.len())?;
        let places = match split.is_validation {
            true => Numbers::list(of_validation),
            false => {
                let mut out = of_validation.iter().peekable();
                let n = chosen.len() - of_validation.len() as u64;
                let mut next = 0;
                Numbers::collect(n, chosen.len(), |_| {
                    while out.next_if(|place| **place == next).is_some() {
                        next += 1;
                    }
                    next += 1;
                    Ok(next - 1)
                })?
            }
        };
        Ok(self.of(chosen.then(&places)?))
    }

    /// These, in the place of what was chosen by number before.
    pub(crate) fn of(&self, chosen: Chosen) -> Records {
        if chosen.is_all() && self.words.are_none() {
            return Records::all(self.base.clone());
        }
        let words = self.words.clone().selected();
        Records { base: self.base.clone(), chosen: Some(Arc::new(chosen)), words }
    }

    fn matching(&self, condition: &Condition, stop: &dyn Fn() -> bool) -> Result<Records> {
        let matching = |source: &SharedSource| Numbers::matching(source.as_ref(), condition, stop);
        let schema = self.base.schema();
        let is_typed = schema.kind == Kind::Rows && !schema.is_value();
        let chosen = match &self.chosen {
            None => Chosen::new(matching(&self.base)?, self.base.len())?,
            // Values of a column of one type are all compared, or none: those that are not chosen may be read with the others, in the
            // order in which they are stored.
            Some(chosen) if is_typed && chosen.len().saturating_mul(SPARSE) >= chosen.of() => {
                let all = Chosen::new(matching(&self.base)?, chosen.of())?;
                let holds = |place: &u64| all.place(chosen.number(*place)).is_some();
                chosen.then(&Numbers::list((0..chosen.len()).filter(holds).collect()))?
            }
            Some(chosen) => {
                let called = |e: Error| match e.place().record {
                    Some(place) if place < chosen.len() => e.record(chosen.number(place)),
                    _ => e,
                };
                chosen.then(&matching(&self.source()).map_err(called)?)?
            }
        };
        let words = self.words.clone().filtered(self.chosen.as_deref(), condition, &chosen);
        Ok(Records { base: self.base.clone(), chosen: Some(Arc::new(chosen)), words })
    }
}

fn unknown(n: u64, xxh3: u64) -> Error {
    Error::mismatch(format!("the plan is of {n} chosen records, of which it holds only the hash {xxh3:016x}"))
        .field("select")
        .hint("give the numbers as well, as `numbers` of that data set has them: @select_numbers@")
}
