//! What a plot of a series needs: its range, what is missing in it, one of its channels, and equal parts of it.

/// What a run of numbers holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Smallest and largest finite number, where there is one.
    pub range: Option<(f64, f64)>,
    /// How many there are, NaN and infinite ones included.
    pub n: u64,
    /// How many are NaN.
    pub nan: u64,
    /// How many are infinite.
    pub infinite: u64,
}

impl Facts {
    /// Counts and compares them.
    pub fn of(numbers: &[f64]) -> Facts {
        let count = |holds: fn(&f64) -> bool| numbers.iter().filter(|x| holds(x)).count() as u64;
        let known = || numbers.iter().copied().filter(|x| x.is_finite());
        let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
        Facts {
            range: (low <= high).then_some((low, high)),
            n: numbers.len() as u64,
            nan: count(|x| x.is_nan()),
            infinite: count(|x| x.is_infinite()),
        }
    }
}

/// Where `x` is between `low` and `high`, from 0 to 1; the middle where they are one. Halved first: the distance
/// of two numbers may be more than any number.
pub fn share(x: f64, (low, high): (f64, f64)) -> f64 {
    let wide = high / 2.0 - low / 2.0;
    if wide > 0.0 { ((x / 2.0 - low / 2.0) / wide).clamp(0.0, 1.0) } else { 0.5 }
}

/// Every `channels`-th number from `channel` on.
pub fn channel(numbers: &[f64], channels: usize, channel: usize) -> Vec<f64> {
    numbers.iter().skip(channel).step_by(channels.max(1)).copied().collect()
}

/// At most `most` parts of the numbers, in order, none empty.
pub fn parts(numbers: &[f64], most: usize) -> impl Iterator<Item = &[f64]> {
    let n = numbers.len().min(most);
    (0..n).map(move |i| &numbers[i * numbers.len() / n..(i + 1) * numbers.len() / n])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_counted_and_has_no_range() {
        let facts = Facts::of(&[0.0, 0.0, f64::NAN, f64::INFINITY, 1.0, 1.0]);
        assert_eq!((facts.range, facts.n, facts.nan, facts.infinite), (Some((0.0, 1.0)), 6, 1, 1));
        assert_eq!(Facts::of(&[f64::NAN]).range, None);
    }

    #[test]
    fn the_most_distant_numbers_have_a_share() {
        assert_eq!(share(f64::MAX, (f64::MIN, f64::MAX)), 1.0);
        assert_eq!(share(2.0, (2.0, 2.0)), 0.5);
    }
}
