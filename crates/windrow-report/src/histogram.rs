//! Counts by length: bars of one width, or of one factor where lengths are far apart.

use std::ops::Range;

use crate::near::{left_out, most, near};
use crate::page::Page;
use crate::svg::Svg;
use windrow::preview::text;

const BARS: u64 = 32;
/// Where the longest is this many times the shortest, bars of one width would leave nearly all in the first.
const WIDE: u64 = 50;
/// Bars of one factor show something only where nearly all lengths take this share of them.
const SHARE: f64 = 0.2;

/// How many there are of each length.
pub(crate) struct Histogram<'a> {
    lengths: &'a [u64],
    drawn: Range<usize>,
    bars: Vec<u64>,
    is_wide: bool,
}

impl Histogram<'_> {
    /// Of numbers in ascending order; `None` where there are none.
    pub(crate) fn of(lengths: &[u64]) -> Option<Histogram<'_>> {
        let (min, max) = (*lengths.first()?, *lengths.last()?);
        let is_wide = max / WIDE >= min.max(1);
        let drawn = near(lengths, |length| length as f64);
        if is_wide && (drawn.len() == lengths.len() || share(lengths) >= SHARE) {
            let bars = growing(lengths, min, max);
            return Some(Histogram { lengths, drawn: 0..lengths.len(), bars, is_wide });
        }
        let near = &lengths[drawn.clone()];
        let bars = even(near, *near.first()?, *near.last()?);
        Some(Histogram { lengths, drawn, bars, is_wide: false })
    }

    /// Draws it; `said` is how a length is called.
    pub(crate) fn show(&self, what: &str, said: impl Fn(u64) -> String, page: &mut Page) {
        let most = text::count(self.bars.iter().max().copied().unwrap_or(0));
        let mut caption = format!("{what}; the highest bar counts {most}");
        if self.is_wide {
            caption += "; each bar spans lengths longer by the same factor";
        }
        caption += &left_out(self.lengths.len(), &self.drawn, ["shorter", "longer"]);
        let end = |length: Option<&u64>| length.map_or_else(String::new, |length| said(*length));
        let near = &self.lengths[self.drawn.clone()];
        page.figure(&caption, &Svg::bars(&self.bars), [&end(near.first()), &end(near.last())]);
    }
}

/// The columns of [`shares`].
pub(crate) const SHARES: [&str; 6] = ["shortest", "25 %", "median", "75 %", "95 %", "longest"];

/// The shortest, the quarters, the longest of numbers in ascending order, of which there is at least one.
pub(crate) fn shares<T: Copy>(sorted: &[T]) -> [T; 6] {
    [0, 25, 50, 75, 95, 100].map(|percent| sorted[(sorted.len() - 1) * percent / 100])
}

fn log(length: u64) -> f64 {
    (length.max(1) as f64).ln()
}

// How much of bars of one factor nearly all lengths would take.
fn share(lengths: &[u64]) -> f64 {
    let ends = (lengths.first(), lengths.last(), most(lengths, log));
    let (Some(min), Some(max), Some((low, high))) = ends else { return 1.0 };
    (high - low) / (log(*max) - log(*min))
}

fn even(lengths: &[u64], min: u64, max: u64) -> Vec<u64> {
    let width = ((max - min) / BARS).saturating_add(1);
    let mut bars = vec![0u64; ((max - min) / width) as usize + 1];
    lengths.iter().for_each(|length| bars[((length - min) / width) as usize] += 1);
    bars
}

fn growing(lengths: &[u64], min: u64, max: u64) -> Vec<u64> {
    let mut bars = vec![0u64; BARS as usize];
    for length in lengths {
        let share = (log(*length) - log(min)) / (log(max) - log(min));
        bars[((share * BARS as f64) as usize).min(BARS as usize - 1)] += 1;
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_in_a_bar() {
        let lengths = [0, 1, 2, 3, 1_000, 1 << 32];
        let bars = growing(&lengths, 0, 1 << 32);
        assert_eq!((bars.len(), bars.iter().sum::<u64>()), (32, 6));
        assert_eq!((bars[0], bars[1], bars[31]), (2, 2, 1));
        assert_eq!(even(&[5, 5, 7], 5, 7), [2, 0, 1]);
        assert_eq!(even(&[9], 9, 9), [1]);
    }

    #[test]
    fn one_length_that_is_far_from_the_others_leaves_their_bars_as_they_are() {
        let plain: Vec<u64> = (90..120).flat_map(|length| [length; 3]).collect();
        for far in [200, 4_000, 45_525, u64::MAX] {
            let with_far = [&plain[..], &[far]].concat();
            let histogram = Histogram::of(&with_far).unwrap();
            let filled = histogram.bars.iter().filter(|count| **count > 0).count();
            assert!(filled >= 8, "{far}: {:?}", histogram.bars);
            assert_eq!(histogram.drawn == (0..90), far > 350, "{far}: {:?}", histogram.drawn);
        }
        // Where most lengths are far apart, each bar spans a factor, and all are drawn.
        let growing: Vec<u64> = (0..400).map(|i| (f64::from(i) / 40.0).exp2() as u64 * 10).collect();
        let with_far = [&growing[..], &[1_000_000]].concat();
        let histogram = Histogram::of(&with_far).unwrap();
        assert!(histogram.is_wide && histogram.bars.iter().sum::<u64>() == 401, "{:?}", histogram.bars);
    }

    #[test]
    fn shares_are_numbers_that_occur() {
        assert_eq!(shares(&[1, 2, 3, 4, 100]), [1, 2, 3, 4, 4, 100]);
        assert_eq!(shares(&[7.5]), [7.5; 6]);
    }
}
