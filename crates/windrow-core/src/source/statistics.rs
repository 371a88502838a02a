//! Mean, deviation and largest magnitude of a record, read once in parts, in float64.

/// What was seen of a record so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Statistics {
    n: f64,
    mean: f64,
    /// Squared distances from the mean.
    squares: f64,
    sum: f64,
    most: f32,
}

impl Statistics {
    /// Takes in the next values. The parts in which a record comes decide the last bits: they must be the same each time.
    pub(super) fn add(&mut self, values: &[f32]) {
        if values.is_empty() {
            return;
        }
        let n = values.len() as f64;
        let sum = sum_of(values, |x| x);
        let mean = sum / n;
        let squares = sum_of(values, |x| (x - mean) * (x - mean));
        // Two parts joined: Chan, Golub and LeVeque.
        let delta = mean - self.mean;
        let all = self.n + n;
        self.squares += squares + delta * delta * (self.n * n / all);
        self.mean += delta * (n / all);
        self.n = all;
        self.sum += sum;
        let most = values.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        // `max` leaves NaN out; a NaN must not vanish.
        let most = if sum.is_nan() && values.iter().any(|x| x.is_nan()) { f32::NAN } else { most };
        self.most = if self.most.is_nan() || most.is_nan() { f32::NAN } else { self.most.max(most) };
    }

    /// The largest magnitude; NaN where there is one; 0 of nothing.
    pub(super) fn most(&self) -> f32 {
        self.most
    }

    /// The mean; 0 of nothing.
    pub(super) fn mean(&self) -> f32 {
        match self.mean.is_finite() {
            true => self.mean as f32,
            // Joining infinite parts gives NaN; their sum still tells which infinity it is.
            false => (self.sum / self.n) as f32,
        }
    }

    /// The population's standard deviation (divided by n); 0 of nothing.
    pub(super) fn deviation(&self) -> f32 {
        match self.n == 0.0 {
            true => 0.0,
            false => (self.squares / self.n).sqrt() as f32,
        }
    }
}

// Eight sums side by side: a vector register's worth, and less is lost than in one long sum.
fn sum_of(values: &[f32], term: impl Fn(f64) -> f64) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|&x| term(x.into())).sum();
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += term(x.into());
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&[f32]]) -> [f32; 3] {
        let mut all = Statistics::default();
        parts.iter().for_each(|part| all.add(part));
        [all.mean(), all.deviation(), all.most()]
    }

    #[test]
    fn parts_join_to_the_whole() {
        let values: Vec<f32> = (0..1000).map(|i| ((i * 37) % 101) as f32 - 20.0).collect();
        let mean = values.iter().map(|x| f64::from(*x)).sum::<f64>() / 1000.0;
        let squares = values.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / 1000.0;
        let expected = [mean as f32, squares.sqrt() as f32, 80.0];
        assert_eq!(of(&[&values]), expected);
        assert_eq!(of(&[&values[..1], &[], &values[1..777], &values[777..]]), expected);
    }

    #[test]
    fn a_constant_has_no_deviation_at_all() {
        for x in [0.1f32, 1e30, -7.7] {
            assert_eq!(of(&[&[x; 1001], &[x; 3]]), [x, 0.0, x.abs()]);
        }
        assert_eq!(of(&[]), [0.0; 3]);
        assert_eq!(of(&[&[5.0]]), [5.0, 0.0, 5.0]);
    }

    #[test]
    fn a_large_offset_leaves_the_deviation_whole() {
        let values: Vec<f32> = (0..4096).map(|i| 1e6 + (i % 2) as f32).collect();
        assert_eq!(of(&[&values[..100], &values[100..]]), [1e6 + 0.5, 0.5, 1e6 + 1.0]);
    }

    #[test]
    fn what_is_not_finite_stays_so() {
        let inf = f32::INFINITY;
        assert_eq!(of(&[&[1.0, inf], &[2.0]])[0], inf);
        assert_eq!(of(&[&[1.0], &[-inf, 3.0], &[-inf]])[0], -inf);
        assert!(!of(&[&[1.0, inf], &[2.0]])[1].is_finite());
        assert_eq!(of(&[&[1.0, -inf]])[2], inf);
        assert!(of(&[&[1.0, inf], &[-inf]])[0].is_nan());
        let nan = of(&[&[1.0, f32::NAN], &[9.0]]);
        assert!(nan.iter().all(|x| x.is_nan()), "{nan:?}");
    }
}
