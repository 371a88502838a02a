//! Mean, deviation, range and magnitudes of a record, read once in parts, in float64.

/// What was seen of a record so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Statistics {
    /// Taken off every value before it is summed: digits of a large offset leave none for what varies.
    offset: f64,
    n: f64,
    /// Without the offset.
    mean: f64,
    /// Squared distances from the mean.
    squares: f64,
    /// Without the offset.
    sum: f64,
    /// The sum of all magnitudes, with the offset.
    magnitudes: f64,
    least: f64,
    greatest: f64,
    most: f64,
}

impl Statistics {
    /// Of values around `offset`: any of them, or 0.
    pub(super) fn around(offset: f64) -> Statistics {
        Statistics {
            offset: if offset.is_finite() { offset } else { 0.0 },
            n: 0.0,
            mean: 0.0,
            squares: 0.0,
            sum: 0.0,
            magnitudes: 0.0,
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
            most: 0.0,
        }
    }

    /// Takes in the next values. The parts in which a record comes decide the last bits: they must be the same each time.
    pub(super) fn add(&mut self, values: &[f64]) {
        if values.is_empty() {
            return;
        }
        let (n, offset) = (values.len() as f64, self.offset);
        let sum = sum_of(values, |x| x - offset);
        let mean = sum / n;
        let squares = sum_of(values, |x| (x - offset - mean) * (x - offset - mean));
        // Two parts joined: Chan, Golub and LeVeque.
        let delta = mean - self.mean;
        let all = self.n + n;
        self.squares += squares + delta * delta * (self.n * n / all);
        self.mean += delta * (n / all);
        self.n = all;
        self.sum += sum;
        self.magnitudes += sum_of(values, f64::abs);
        self.least = values.iter().fold(self.least, |least, x| least.min(*x));
        self.greatest = values.iter().fold(self.greatest, |greatest, x| greatest.max(*x));
        let most = self.least.abs().max(self.greatest.abs());
        // `min` and `max` leave NaN out; a NaN must not vanish.
        let is_nan = self.most.is_nan() || (sum.is_nan() && values.iter().any(|x| x.is_nan()));
        self.most = if is_nan { f64::NAN } else { most };
    }

    /// Nothing was seen.
    pub(super) fn is_empty(&self) -> bool {
        self.n == 0.0
    }

    /// The largest magnitude; NaN where there is one; 0 of nothing.
    pub(super) fn most(&self) -> f64 {
        self.most
    }

    /// The mean of the magnitudes; 0 of nothing.
    pub(super) fn mean_magnitude(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.magnitudes / self.n }
    }

    /// The least and the greatest value; NaN where there is one; 0 of nothing.
    pub(super) fn range(&self) -> [f64; 2] {
        match (self.is_empty(), self.most.is_nan()) {
            (true, _) => [0.0; 2],
            (false, true) => [f64::NAN; 2],
            (false, false) => [self.least, self.greatest],
        }
    }

    /// The mean; 0 of nothing.
    pub(super) fn mean(&self) -> f64 {
        if !self.mean.is_finite() {
            // Joining infinite parts gives NaN; their sum still tells which infinity it is.
            self.sum / self.n
        } else if self.is_constant() {
            // A mean that is rounded would leave a constant a deviation.
            self.least
        } else if self.is_empty() {
            0.0
        } else {
            self.offset + self.mean
        }
    }

    /// The population's standard deviation (divided by n); 0 of nothing, and of a constant.
    pub(super) fn deviation(&self) -> f64 {
        if self.is_empty() || self.is_constant() { 0.0 } else { (self.squares / self.n).sqrt() }
    }

    fn is_constant(&self) -> bool {
        self.least == self.greatest && self.least.is_finite() && !self.most.is_nan()
    }
}

// Eight sums side by side: a vector register's worth, and less is lost than in one long sum.
fn sum_of(values: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|&x| term(x)).sum();
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += term(x);
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&[f64]]) -> [f64; 3] {
        let mut all = Statistics::around(parts.first().and_then(|part| part.first()).copied().unwrap_or(0.0));
        parts.iter().for_each(|part| all.add(part));
        [all.mean(), all.deviation(), all.most()]
    }

    #[test]
    fn parts_join_to_the_whole() {
        let values: Vec<f64> = (0..1000).map(|i| ((i * 37) % 101) as f64 - 20.0).collect();
        let mean = values.iter().sum::<f64>() / 1000.0;
        let squares = values.iter().map(|x| (*x - mean).powi(2)).sum::<f64>() / 1000.0;
        let expected = [mean, squares.sqrt(), 80.0];
        let near = |found: [f64; 3]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-13 * b);
        assert!(near(of(&[&values])), "{:?}", of(&[&values]));
        assert!(near(of(&[&values[..1], &[], &values[1..777], &values[777..]])));
    }

    #[test]
    fn a_constant_has_no_deviation_at_all() {
        for x in [0.1f64, 1e30, -7.7] {
            assert_eq!(of(&[&[x; 1001], &[x; 3]]), [x, 0.0, x.abs()]);
        }
        assert_eq!(of(&[]), [0.0; 3]);
        assert_eq!(of(&[&[5.0]]), [5.0, 0.0, 5.0]);
    }

    #[test]
    fn a_large_offset_leaves_the_deviation_whole() {
        for offset in [1e6, 1e9, 1e15] {
            let values: Vec<f64> = (0..4096).map(|i| offset + (i % 2) as f64).collect();
            assert_eq!(of(&[&values[..100], &values[100..]]), [offset + 0.5, 0.5, offset + 1.0]);
        }
    }

    #[test]
    fn what_is_not_finite_stays_so() {
        let inf = f64::INFINITY;
        assert_eq!(of(&[&[1.0, inf], &[2.0]])[0], inf);
        assert_eq!(of(&[&[1.0], &[-inf, 3.0], &[-inf]])[0], -inf);
        assert!(!of(&[&[1.0, inf], &[2.0]])[1].is_finite());
        assert_eq!(of(&[&[1.0, -inf]])[2], inf);
        assert!(of(&[&[1.0, inf], &[-inf]])[0].is_nan());
        let nan = of(&[&[1.0, f64::NAN], &[9.0]]);
        assert!(nan.iter().all(|x| x.is_nan()), "{nan:?}");
    }
}
