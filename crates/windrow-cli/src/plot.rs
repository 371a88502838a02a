//! A series as a small drawing of dots.

use windrow::preview::series::{Facts, parts, share};

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
    fn missing_numbers_leave_a_gap() {
        let numbers = [0.0, 0.0, f64::NAN, f64::INFINITY, 1.0, 1.0];
        assert_eq!(braille(&numbers, 10, 1), ["⣀⠀⠉"]);
    }

    #[test]
    fn extreme_numbers_are_drawn() {
        assert_eq!(braille(&[f64::MIN, f64::MAX], 10, 1), braille(&[0.0, 1.0], 10, 1));
    }
}
