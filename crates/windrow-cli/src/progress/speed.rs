//! How fast a task is now: what was done in the last seconds, so that neither what an earlier run did nor a slow start counts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const LOOKED_BACK: Duration = Duration::from_secs(10);
/// In less time chance says too much.
const LEAST: Duration = Duration::from_millis(500);

/// What was done when, in the last seconds.
#[derive(Default)]
pub(super) struct Speed(VecDeque<(Instant, u64)>);

impl Speed {
    pub(super) fn add(&mut self, now: Instant, done: u64) {
        // Another part of the work begins.
        if self.0.back().is_some_and(|(_, before)| *before > done) {
            self.0.clear();
        }
        self.0.push_back((now, done));
        while self.0.len() > 2
            && self.0.get(1).is_some_and(|(then, _)| now.duration_since(*then) >= LOOKED_BACK)
        {
            self.0.pop_front();
        }
    }

    /// `None` while it is not known yet.
    pub(super) fn per_second(&self) -> Option<f64> {
        let ((began, first), (now, last)) = (self.0.front()?, self.0.back()?);
        let took = now.duration_since(*began);
        (took >= LEAST && last > first).then(|| (last - first) as f64 / took.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_seconds_count() {
        let (mut speed, start) = (Speed::default(), Instant::now());
        let mut at = |secs: u64, done: u64| {
            speed.add(start + Duration::from_secs(secs), done);
            speed.per_second()
        };
        // A run that continues begins with what was done before.
        assert_eq!([at(0, 1_000), at(1, 1_010), at(2, 1_020)], [None, Some(10.0), Some(10.0)]);
        assert_eq!([at(20, 1_200), at(30, 2_200), at(31, 2_300)], [Some(10.0), Some(100.0), Some(100.0)]);
        assert_eq!([at(32, 5), at(33, 10)], [None, Some(5.0)]);
    }
}
