//! A column of numbers that seem to be times: counted ones, or dates without hyphens.

use super::times::is_plain_date;

/// Whether the numbers of the first column with a name go on by one step in every series, or are dates: times that are not read.
pub(super) struct Counter {
    pub(super) column: Option<usize>,
    before: Option<f64>,
    step: Option<f64>,
    /// Some step was as long as the one before.
    is_steady: bool,
    is_other: bool,
    are_dates: bool,
}

impl Counter {
    /// Nothing yet.
    pub(super) fn none() -> Counter {
        Counter { column: None, before: None, step: None, is_steady: false, is_other: false, are_dates: true }
    }

    /// Takes in the number of the next line, with which another series may begin.
    pub(super) fn add(&mut self, number: f64, begins: bool) {
        if let Some(before) = self.before.filter(|_| !begins) {
            let step = number - before;
            self.is_steady |= self.step == Some(step);
            self.is_other |= *self.step.get_or_insert(step) != step;
        }
        // Times are whole numbers, and go on.
        self.is_other |= number.fract() != 0.0 || self.step.is_some_and(|step| step <= 0.0);
        self.are_dates &= is_plain_date(number);
        self.before = Some(number);
    }

    /// What its numbers seem to be, where they seem to be times.
    pub(super) fn said(&self) -> Option<String> {
        match self.step.filter(|_| self.is_steady && !self.is_other) {
            _ if self.are_dates => {
                Some("holds dates without hyphens, which are not read as times".to_string())
            }
            Some(step) => Some(format!("counts by {step} from line to line, as times do that are counted")),
            None => None,
        }
    }
}
