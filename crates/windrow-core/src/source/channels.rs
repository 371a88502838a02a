//! The statistics of values `[T, C]`, of each channel or of all together.

use super::floats::Precision;
use super::scaling::{Nan, Scaling};
use super::seen::Seen;

/// What was seen so far of values that come in parts. Used for one record after the other.
pub(super) struct Channels<'a> {
    scaling: &'a Scaling,
    seen: Vec<Option<Seen>>,
    /// Whether there were values at all, counted or not.
    some: bool,
    /// Of each channel, whether one of them is a number.
    has_number: Vec<bool>,
    channel: Vec<f64>,
}

impl<'a> Channels<'a> {
    pub(super) fn new(scaling: &'a Scaling) -> Channels<'a> {
        Channels { scaling, seen: Vec::new(), some: false, has_number: Vec::new(), channel: Vec::new() }
    }

    pub(super) fn scaling(&self) -> &'a Scaling {
        self.scaling
    }

    /// Forgets what was seen: `n` channels are, or with 1 all together.
    pub(super) fn begin(&mut self, n: usize) {
        self.seen.clear();
        self.seen.resize_with(n, || None);
        self.has_number.clear();
        self.has_number.resize(n, false);
        self.some = false;
    }

    /// Takes in whole values, channel by channel.
    pub(super) fn add(&mut self, numbers: &[f64]) {
        let Scaling { scale, nan, precision, .. } = *self.scaling;
        let step = self.seen.len();
        self.some |= !numbers.is_empty();
        for (number, (seen, has_number)) in self.seen.iter_mut().zip(&mut self.has_number).enumerate() {
            let numbers = match (step, nan) {
                (1, Nan::Propagate) => numbers,
                _ => {
                    let own = numbers.iter().skip(number).step_by(step);
                    self.channel.clear();
                    self.channel.extend(own.filter(|x| nan == Nan::Propagate || x.is_finite()));
                    &self.channel[..]
                }
            };
            *has_number = *has_number || numbers.iter().any(|x| !x.is_nan());
            let first = numbers.first().copied().unwrap_or(0.0);
            seen.get_or_insert_with(|| Seen::nothing(scale, precision.offset(first))).add(numbers);
        }
    }

    /// Subtrahend and divisor of each, [`Scaling::NOTHING`] of one whose values are all missing. False where there is one, and missing
    /// values are masked.
    pub(super) fn rows(&mut self, rows: &mut [[f64; 2]]) -> bool {
        let mut known = true;
        let Scaling { scale, nan, precision, .. } = *self.scaling;
        for ((row, seen), has_number) in rows.iter_mut().zip(&mut self.seen).zip(&self.has_number) {
            let seen = seen.get_or_insert_with(|| Seen::nothing(scale, 0.0));
            let counts = !self.some || *has_number;
            *row = match (counts, precision) {
                (false, _) => Scaling::NOTHING,
                (true, Precision::Double) => seen.row(scale),
                (true, Precision::Single) => seen.row(scale).map(|x| f64::from(x as f32)),
            };
            known &= counts || nan == Nan::Propagate;
        }
        known
    }
}
