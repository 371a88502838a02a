//! A data set of chosen records: by number, by a mask, or by what a column holds.

use std::sync::Arc;

use windrow_core::format::{Choice, Options};
use windrow_core::source::{Chosen, Condition, Numbers};
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;

impl Dataset {
    /// A data set of chosen records, in the order that is given; nothing is read. Numbers are those of this data set: of one that was
    /// chosen itself they count in it. [`Dataset::number`] says what a record is called in the first one, and errors, traces and
    /// coverage say it.
    ///
    /// # Errors
    /// `OutOfRange` for a record that is not there; `Config` for one that comes twice; `Memory`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// use windrow::Choose;
    /// std::fs::write(&path, "[[1, 2], [3, 4], [5, 6], [7, 8]]").unwrap();
    /// let data = windrow::open(&path)?;
    /// let some = data.select(Choose::Numbers(vec![3, 0, 2]))?;
    /// assert_eq!((some.len(), some.number(0), some.length(0)?), (3, 3, 2));
    /// let last = some.select(Choose::Slice { start: 2, step: -2, n: 2 })?;
    /// assert_eq!((last.number(0), last.number(1)), (2, 3));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn select(&self, which: Choose<'_>) -> Result<Dataset> {
        let places = which.chosen(self.len())?;
        if places.is_all() && self.numbering.left_out().is_empty() {
            return Ok(self.clone());
        }
        let chosen = match self.numbering.chosen() {
            None if self.numbering.is_plain() => places,
            Some(chosen) if self.numbering.left_out().is_empty() => chosen.then(places.numbers())?,
            _ => {
                let of = self.numbering.of(self.len());
                let number = |place| Ok(self.number(places.number(place)));
                Chosen::new(Numbers::collect(places.len(), of, number)?, of)?
            }
        };
        let mut options = self.chosen_options();
        options.select.pop_if(|last| matches!(last, Choice::Numbers(_)));
        options.select.push(Choice::Numbers(chosen.numbers().clone()));
        self.of_records(self.records.of(chosen), options)
    }

    /// The records for which `column op value` holds: of a column, a key of JSON, or a key of what is beside numbers. A missing value
    /// never matches, NaN only where it is not equal. Whole numbers and fractions are compared without rounding, texts by code
    /// points. The column is read once, on all cores, and which records match is kept in the cache, 4 bytes for each.
    ///
    /// # Errors
    /// `Config` for a column that is not there, with those that are, and for values of another kind, with the record; what reading
    /// says; `Interrupted` when `stop` says so.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("pages.jsonl");
    /// use windrow::{Condition, Op};
    /// std::fs::write(&path, "{\"score\": 0.9}\n{\"score\": 0.5}\n{\"score\": 1}\n").unwrap();
    /// let good = Condition { column: "score".into(), op: Op::GreaterEqual, value: 0.8.into() };
    /// let data = windrow::open(&path)?.filter(good, &|| false)?;
    /// assert_eq!((data.len(), data.number(1)), (2, 2));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn filter(&self, condition: Condition, stop: &dyn Fn() -> bool) -> Result<Dataset> {
        self.filtered(condition, stop).map_err(|e| e.or_at(self.paths().to_string()))
    }

    /// The number of a record in the data set that records were chosen of; its own where none were.
    pub fn number(&self, record: u64) -> u64 {
        self.numbering.number(record)
    }

    /// The records that were chosen of another data set; `None` where none were.
    pub fn chosen(&self) -> Option<&Arc<Chosen>> {
        self.numbering.chosen()
    }

    /// An error of this data set that names a record by its place here, with its [`Dataset::number`] instead.
    #[must_use]
    pub fn numbered(&self, error: Error) -> Error {
        self.numbering.numbered(error)
    }

    fn filtered(&self, condition: Condition, stop: &dyn Fn() -> bool) -> Result<Dataset> {
        if !self.numbering.left_out().is_empty() {
            // What is left out is not chosen.
            return self.select(Choose::Numbers((0..self.len()).collect()))?.filtered(condition, stop);
        }
        let mut options = self.chosen_options();
        let choice = Choice::Where(condition);
        let records = self.records.after(&choice, stop)?;
        options.select.push(choice);
        self.of_records(records, options)
    }

    // Options of what was chosen so far. What is left out is not among what is chosen next.
    fn chosen_options(&self) -> Options {
        let mut options = self.options.clone();
        options.exclude.clear();
        options.select.extend(options.random_split.take().map(Choice::Split));
        options
    }
}

/// Which records are chosen.
#[derive(Clone, Debug)]
pub enum Choose<'a> {
    /// Those with these numbers, in this order.
    Numbers(Vec<u64>),
    /// `n` records: `start`, `start + step`, …, in either direction.
    Slice {
        /// The first one.
        start: u64,
        /// From each to the next.
        step: i64,
        /// How many.
        n: u64,
    },
    /// Those with these numbers, of which negative ones count from the end.
    FromEither(&'a [i64]),
    /// Those whose byte is not 0, of as many bytes as there are records.
    Mask(&'a [u8]),
}

impl Choose<'_> {
    fn chosen(self, of: u64) -> Result<Chosen> {
        let numbers = match self {
            Choose::Numbers(numbers) => Numbers::list(numbers),
            Choose::Slice { start, step, n } => Numbers::Slice { start, step, n },
            Choose::FromEither(numbers) => Numbers::collect(numbers.len() as u64, of, |place| {
                let given = numbers[place as usize];
                let number = match u64::try_from(given) {
                    Ok(number) => Some(number),
                    Err(_) => of.checked_sub(given.unsigned_abs()),
                };
                number.filter(|number| *number < of).ok_or_else(|| Error::out_of_range("record", given, of))
            })?,
            Choose::Mask(mask) if mask.len() as u64 == of => return Chosen::of_mask(mask),
            Choose::Mask(mask) => {
                return Err(Error::config(format!(
                    "a mask of {} values, of a data set of {of} records",
                    mask.len()
                ))
                .field("select")
                .hint("a mask has one value for each record"));
            }
        };
        Chosen::new(numbers, of)
    }
}
