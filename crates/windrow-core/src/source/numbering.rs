//! What the records of a data set are called: by the numbers that they have where they were chosen from, or left out of.

use std::sync::Arc;

use super::{Chosen, LeftOut};
use crate::error::Error;

/// Numbers of records of which some were chosen, and of those some left out.
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    chosen: Option<Arc<Chosen>>,
    /// By their places among those that were chosen.
    left_out: LeftOut,
}

impl Numbering {
    /// Of chosen records, all where there is `None`, without those at these places.
    pub fn new(chosen: Option<Arc<Chosen>>, left_out: LeftOut) -> Numbering {
        Numbering { chosen, left_out }
    }

    /// The number of the record at a place.
    pub fn number(&self, place: u64) -> u64 {
        let place = self.left_out.number(place);
        match &self.chosen {
            Some(chosen) if place < chosen.len() => chosen.number(place),
            _ => place,
        }
    }

    /// The place of a record by its number; `None` where it was not chosen, or is left out.
    pub fn place(&self, number: u64) -> Option<u64> {
        let place = match &self.chosen {
            None => number,
            Some(chosen) => chosen.place(number)?,
        };
        self.left_out.place(place)
    }

    /// An error that names a record by its place, with its number instead.
    #[must_use]
    pub fn numbered(&self, error: Error) -> Error {
        match error.place().record {
            Some(place) if !self.is_plain() => error.record(self.number(place)),
            _ => error,
        }
    }

    /// Numbers and places are the same.
    pub fn is_plain(&self) -> bool {
        self.chosen.is_none() && self.left_out.is_empty()
    }

    /// Those that were chosen; `None` where all were.
    pub fn chosen(&self) -> Option<&Arc<Chosen>> {
        self.chosen.as_ref()
    }

    /// What is left out, by places among those that were chosen.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Records that have numbers, where `left` are left.
    pub fn of(&self, left: u64) -> u64 {
        match &self.chosen {
            Some(chosen) => chosen.of(),
            None => left.saturating_add(self.left_out.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Numbers;

    #[test]
    fn numbers_are_those_of_all_records() {
        let chosen = Chosen::new(Numbers::list(vec![8, 3, 5, 1]), 10).unwrap();
        let left = Numbering::new(Some(Arc::new(chosen)), LeftOut::new(vec![1].into()));
        assert_eq!([0, 1, 2].map(|place| left.number(place)), [8, 5, 1]);
        assert_eq!(
            [8, 5, 1, 3, 4, 10].map(|number| left.place(number)),
            [Some(0), Some(1), Some(2), None, None, None]
        );
        assert_eq!(left.of(3), 10);
        let error = left.numbered(Error::corrupt("x").record(1));
        assert_eq!(error.place().record, Some(5));
    }
}
