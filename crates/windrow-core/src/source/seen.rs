//! What was seen of the numbers that share statistics, and what they are scaled by.

use super::scaling::Scale;
use super::statistics::Statistics;

/// What a scaler needs to know: sums, or for quantiles the numbers themselves.
pub(super) enum Seen {
    Sums(Statistics),
    Numbers(Vec<f64>),
}

impl Seen {
    /// Nothing yet; sums are taken around `offset`.
    pub(super) fn nothing(scale: Scale, offset: f64) -> Seen {
        match scale {
            Scale::Robust => Seen::Numbers(Vec::new()),
            Scale::Max | Scale::Zero | Scale::MinMax | Scale::MeanAbs => {
                Seen::Sums(Statistics::around(offset))
            }
        }
    }

    /// Takes in the next numbers.
    pub(super) fn add(&mut self, numbers: &[f64]) {
        match self {
            Seen::Sums(statistics) => statistics.add(numbers),
            Seen::Numbers(all) => all.extend_from_slice(numbers),
        }
    }

    /// (subtrahend, divisor). A spread of 0 divides by 1.
    pub(super) fn row(&mut self, scale: Scale) -> [f64; 2] {
        let or_one = |x: f64| if x == 0.0 { 1.0 } else { x };
        match (self, scale) {
            (Seen::Numbers(all), _) => {
                let [low, median, high] = quartiles(all);
                [median, or_one(high - low)]
            }
            (Seen::Sums(seen), Scale::Max) => [0.0, or_one(seen.most())],
            (Seen::Sums(seen), Scale::MinMax) => {
                let [least, greatest] = seen.range();
                [least, or_one(greatest - least)]
            }
            (Seen::Sums(seen), Scale::MeanAbs) => [0.0, or_one(seen.mean_magnitude())],
            (Seen::Sums(seen), Scale::Zero | Scale::Robust) => {
                let deviation = seen.deviation();
                [seen.mean(), if deviation.is_finite() { or_one(deviation) } else { 1.0 }]
            }
        }
    }
}

// At 1/4, 1/2 and 3/4 of the way from the least to the greatest of n numbers, the n - 1 steps between them of equal length:
// numpy's "linear" quantiles. NaN where there is a NaN; 0 of nothing.
fn quartiles(all: &mut [f64]) -> [f64; 3] {
    if all.is_empty() {
        return [0.0; 3];
    }
    if all.iter().any(|x| x.is_nan()) {
        return [f64::NAN; 3];
    }
    let last = all.len() - 1;
    [1, 2, 3].map(|quarter| {
        let (at, fourths) = (last / 4 * quarter + last % 4 * quarter / 4, last % 4 * quarter % 4);
        let (_, low, above) = all.select_nth_unstable_by(at, f64::total_cmp);
        let low = *low;
        let high = match fourths {
            0 => low,
            _ => above.iter().copied().fold(f64::INFINITY, f64::min),
        };
        // From the nearer of the two, as numpy rounds it; equal infinities have no distance.
        let (step, part) = (high - low, fourths as f64 / 4.0);
        match (low == high, fourths < 2) {
            (true, _) => low,
            (false, true) => low + step * part,
            (false, false) => high - step * (1.0 - part),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scale: Scale, numbers: &[f64], row: [f64; 2]) {
        let mut seen = Seen::nothing(scale, 0.0);
        numbers.chunks(2).for_each(|part| seen.add(part));
        let found = seen.row(scale);
        let same = found.iter().zip(row).all(|(a, b)| *a == b || (a.is_nan() && b.is_nan()));
        assert!(same, "{scale:?} of {numbers:?}: {found:?}, expected {row:?}");
    }

    #[test]
    fn quantiles_lie_on_a_line_between_two_numbers() {
        check(Scale::Robust, &[4.0, 1.0, 3.0, 2.0], [2.5, 1.5]);
        check(Scale::Robust, &[5.0, 1.0, 4.0, 2.0, 3.0], [3.0, 2.0]);
        check(Scale::Robust, &[1.0, 9.0], [5.0, 4.0]);
        check(Scale::Robust, &[3.0], [3.0, 1.0]);
        check(Scale::Robust, &[0.0, 0.0, 0.0, 7.0, 0.0], [0.0, 1.0]);
        check(Scale::Robust, &[], [0.0, 1.0]);
        check(Scale::Robust, &[1.0, f64::NAN, 2.0], [f64::NAN, f64::NAN]);
        check(Scale::Robust, &[f64::INFINITY; 3], [f64::INFINITY, f64::NAN]);
    }

    #[test]
    fn a_spread_of_zero_divides_by_one() {
        for scale in [Scale::Max, Scale::Zero, Scale::MinMax, Scale::MeanAbs, Scale::Robust] {
            check(scale, &[0.0; 5], [0.0, 1.0]);
        }
        check(Scale::MinMax, &[-7.0; 5], [-7.0, 1.0]);
    }

    #[test]
    fn ranges_and_magnitudes_are_those_of_all_parts() {
        check(Scale::MinMax, &[3.0, -1.0, 2.0, 7.0, 0.0], [-1.0, 8.0]);
        check(Scale::MeanAbs, &[3.0, -1.0, 2.0, -6.0], [0.0, 3.0]);
        check(Scale::MinMax, &[3.0, f64::NAN, 2.0], [f64::NAN, f64::NAN]);
        check(Scale::MeanAbs, &[3.0, f64::NAN, 2.0], [0.0, f64::NAN]);
    }
}
