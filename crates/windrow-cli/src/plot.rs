//! A series as a small drawing of dots, and what is said of its numbers.

/// What a run of numbers holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Facts {
    /// Smallest and largest finite number, where there is one.
    pub(crate) range: Option<(f64, f64)>,
    pub(crate) n: u64,
    pub(crate) nan: u64,
    pub(crate) infinite: u64,
}

impl Facts {
    pub(crate) fn of(numbers: &[f64]) -> Facts {
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

/// Where `x` lies between `low` and `high`, from 0 to 1; the middle where they are one. Halved first: the distance
/// of two numbers may be more than any number.
pub(crate) fn share(x: f64, (low, high): (f64, f64)) -> f64 {
    let wide = high / 2.0 - low / 2.0;
    if wide > 0.0 { ((x / 2.0 - low / 2.0) / wide).clamp(0.0, 1.0) } else { 0.5 }
}

/// Every `channels`-th number from `channel` on.
pub(crate) fn channel(numbers: &[f64], channels: usize, channel: usize) -> Vec<f64> {
    numbers.iter().skip(channel).step_by(channels.max(1)).copied().collect()
}

/// At most `most` parts of the numbers, in order, none empty.
pub(crate) fn parts(numbers: &[f64], most: usize) -> impl Iterator<Item = &[f64]> {
    let n = numbers.len().min(most);
    (0..n).map(move |i| &numbers[i * numbers.len() / n..(i + 1) * numbers.len() / n])
}

/// Lines of braille, `rows` high and at most `columns` wide, two numbers or more to a character: each column of dots
/// reaches from the smallest to the largest of its numbers, and to where the one before it ended.
pub(crate) fn braille(numbers: &[f64], columns: usize, rows: usize) -> Vec<String> {
    // The dots of a character, from the top down, left and right.
    const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
    let Some(range) = Facts::of(numbers).range else { return Vec::new() };
    let levels = rows * 4;
    let level = |x: f64| ((share(x, range) * levels as f64) as usize).min(levels.saturating_sub(1));
    let width = numbers.len().min(columns * 2).div_ceil(2);
    let mut cells = vec![vec![0u32; width]; rows];
    let mut before: Option<usize> = None;
    for (x, part) in parts(numbers, columns * 2).enumerate() {
        let known: Vec<usize> = part.iter().filter(|x| x.is_finite()).map(|x| level(*x)).collect();
        let (Some(low), Some(high), Some(last)) = (known.iter().min(), known.iter().max(), known.last())
        else {
            before = None;
            continue;
        };
        // The step from the number before is drawn up to, not over, that number's own dot.
        let low = before.filter(|b| b < low).map_or(*low, |b| b + 1);
        let high = before.filter(|b| b > high).map_or(*high, |b| b - 1);
        for y in low.min(high)..=high.max(low) {
            let down = levels - 1 - y;
            cells[down / 4][x / 2] |= DOTS[down % 4][x % 2];
        }
        before = Some(*last);
    }
    let drawn = |cell: &u32| char::from_u32(0x2800 + cell).unwrap_or(' ');
    cells.iter().map(|row| row.iter().map(drawn).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_goes_from_the_lower_left_to_the_upper_right() {
        let rise: Vec<f64> = (0..8).map(f64::from).collect();
        assert_eq!(braille(&rise, 10, 2), ["⠀⠀⡠⠊", "⡠⠊⠀⠀"]);
        assert_eq!(braille(&[1.0; 4], 10, 1), ["⠒⠒"]);
        assert_eq!(braille(&[], 10, 2), Vec::<String>::new());
    }

    #[test]
    fn missing_numbers_leave_a_gap_and_are_counted() {
        let numbers = [0.0, 0.0, f64::NAN, f64::INFINITY, 1.0, 1.0];
        assert_eq!(braille(&numbers, 10, 1), ["⣀⠀⠉"]);
        let facts = Facts::of(&numbers);
        assert_eq!((facts.range, facts.n, facts.nan, facts.infinite), (Some((0.0, 1.0)), 6, 1, 1));
        assert_eq!(Facts::of(&[f64::NAN]).range, None);
    }

    #[test]
    fn extreme_numbers_are_drawn() {
        assert_eq!(braille(&[f64::MIN, f64::MAX], 10, 1), braille(&[0.0, 1.0], 10, 1));
        assert_eq!(share(f64::MAX, (f64::MIN, f64::MAX)), 1.0);
    }
}
