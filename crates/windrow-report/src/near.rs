//! What a drawing leaves out so that it shows the rest: the few numbers that are far from nearly all others.

use std::ops::Range;

use windrow::preview::text;

/// Of fewer numbers none is far from the others.
const LEAST: usize = 20;
/// One number in this many, on either side, may be far.
const OF: usize = 20;
/// Numbers are far where the range of all is this many times the range of nearly all.
const FAR: f64 = 8.0;

/// Which of these numbers, which ascend, are near the others: all, unless some at the ends are far.
pub(crate) fn near<T: Copy>(ascending: &[T], number: impl Fn(T) -> f64) -> Range<usize> {
    let n = ascending.len();
    let all = 0..n;
    let (Some((low, high)), Some(whole)) = (most(ascending, &number), width(ascending, &number)) else {
        return all;
    };
    let most = high - low;
    if n < LEAST || most <= 0.0 || whole <= FAR * most {
        return all;
    }
    let first = ascending.partition_point(|x| number(*x) < low - most);
    first..ascending.partition_point(|x| number(*x) <= high + most)
}

/// The ends of nearly all of these numbers, which ascend.
pub(crate) fn most<T: Copy>(ascending: &[T], number: impl Fn(T) -> f64) -> Option<(f64, f64)> {
    let far = ascending.len().div_ceil(OF);
    let last = ascending.len().checked_sub(far + 1)?;
    Some((number(*ascending.get(far)?), number(ascending[last])))
}

fn width<T: Copy>(ascending: &[T], number: impl Fn(T) -> f64) -> Option<f64> {
    Some(number(*ascending.last()?) - number(*ascending.first()?))
}

/// `; 1 lower and 3 higher ones are not drawn`, or nothing where all are.
pub(crate) fn left_out(n: usize, drawn: &Range<usize>, [lower, higher]: [&str; 2]) -> String {
    let said = |n: usize, word: &str| (n > 0).then(|| format!("{} {word}", text::count(n as u64)));
    let (below, above) = (drawn.start, n - drawn.end);
    let parts: Vec<String> = [said(below, lower), said(above, higher)].into_iter().flatten().collect();
    match below + above {
        0 => String::new(),
        1 => format!("; {} one is not drawn", parts.concat()),
        _ => format!("; {} ones are not drawn", parts.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[f64], expected: &str) {
        let drawn = near(numbers, |x| x);
        assert_eq!(format!("{drawn:?}{}", left_out(numbers.len(), &drawn, ["lower", "higher"])), expected);
    }

    #[test]
    fn the_few_numbers_that_are_far_from_the_others_are_left_out() {
        let plain: Vec<f64> = (0..100).map(f64::from).collect();
        check(&plain, "0..100");
        check(&[&plain[..], &[1e9]].concat(), "0..100; 1 higher one is not drawn");
        check(
            &[&[-1e9, -1e8], &plain[..], &[1e9]].concat(),
            "2..102; 2 lower and 1 higher ones are not drawn",
        );
        check(&[&plain[..], &[1e308, f64::MAX]].concat(), "0..100; 2 higher ones are not drawn");
        // Numbers that grow out of the others are not far.
        check(&(0..100).map(|i| f64::from(i).exp2().ln_1p()).collect::<Vec<_>>(), "0..100");
        // Nearly all are one number: the others are all there is to see.
        check(&[[5.0; 99].as_slice(), &[1e9]].concat(), "0..100");
        check(&[1.0, 2.0, 1e9], "0..3");
        check(&[], "0..0");
    }
}
