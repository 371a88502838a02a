//! Counts by length: bars of one width, or of one factor where lengths are far apart.

use crate::page::Page;
use crate::svg::Svg;
use windrow::preview::text;

const BARS: u64 = 32;
/// Where the longest is this many times the shortest, bars of one width would leave nearly all in the first.
const WIDE: u64 = 50;

/// How many there are of each length.
pub(crate) struct Histogram {
    bars: Vec<u64>,
    is_wide: bool,
}

impl Histogram {
    /// Of numbers in ascending order; `None` where there are none.
    pub(crate) fn of(sorted: &[u64]) -> Option<Histogram> {
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let is_wide = max / WIDE >= min.max(1);
        let bars = if is_wide { growing(sorted, min, max) } else { even(sorted, min, max) };
        Some(Histogram { bars, is_wide })
    }

    /// Draws it; `ends` are what the shortest and the longest are called.
    pub(crate) fn show(&self, what: &str, ends: [&str; 2], page: &mut Page) {
        let most = text::count(self.bars.iter().max().copied().unwrap_or(0));
        let mut caption = format!("{what}; the highest bar counts {most}");
        if self.is_wide {
            caption += "; each bar spans lengths longer by the same factor";
        }
        page.figure(&caption, &Svg::bars(&self.bars), ends);
    }
}

/// The columns of [`shares`].
pub(crate) const SHARES: [&str; 6] = ["shortest", "25 %", "median", "75 %", "95 %", "longest"];

/// The shortest, the quarters, the longest of numbers in ascending order, of which there is at least one.
pub(crate) fn shares<T: Copy>(sorted: &[T]) -> [T; 6] {
    [0, 25, 50, 75, 95, 100].map(|percent| sorted[(sorted.len() - 1) * percent / 100])
}

fn even(lengths: &[u64], min: u64, max: u64) -> Vec<u64> {
    let width = ((max - min) / BARS).saturating_add(1);
    let mut bars = vec![0u64; ((max - min) / width) as usize + 1];
    lengths.iter().for_each(|length| bars[((length - min) / width) as usize] += 1);
    bars
}

fn growing(lengths: &[u64], min: u64, max: u64) -> Vec<u64> {
    let log = |length: u64| (length.max(1) as f64).ln();
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
    fn shares_are_numbers_that_occur() {
        assert_eq!(shares(&[1, 2, 3, 4, 100]), [1, 2, 3, 4, 4, 100]);
        assert_eq!(shares(&[7.5]), [7.5; 6]);
    }
}
