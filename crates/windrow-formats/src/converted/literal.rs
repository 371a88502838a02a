//! Numbers as tables of text have them: in digits, or one of the words for a gap or for infinity.

/// What other programs write for a missing value, in small letters.
const GAPS: [&str; 13] = [
    "nan", "na", "n/a", "null", "none", "<na>", "#n/a", "#na", "#n/a n/a", "1.#ind", "-1.#ind", "1.#qnan",
    "-1.#qnan",
];

/// A number that was written in digits or as a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Literal {
    /// The float64 next to it; NaN for a gap.
    pub(crate) value: f64,
    /// It is finite, and beyond float64.
    pub(crate) is_beyond: bool,
}

impl Literal {
    pub(crate) const GAP: Literal = Literal { value: f64::NAN, is_beyond: false };

    /// What a text says; `None` where it is not a number. Space around it is ignored, and text of space alone is not one.
    pub(crate) fn of(text: &[u8]) -> Option<Literal> {
        let text = text.trim_ascii();
        let first = text.first()?;
        // What most texts begin with, so that they cost nothing.
        if !(first.is_ascii_digit() || b"+-.nNiI#<".contains(first)) {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        match text.parse::<f64>() {
            // An infinity that was written as a word holds no digits.
            Ok(value) => {
                let is_beyond = value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
                Some(Literal { value, is_beyond })
            }
            Err(_) => GAPS.iter().any(|gap| text.eq_ignore_ascii_case(gap)).then_some(Literal::GAP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_gaps_and_infinities_are_told_from_text() {
        for (text, wanted) in [
            ("1", 1.0),
            (" -1.5e3 ", -1500.0),
            ("+.5", 0.5),
            ("5.", 5.0),
            ("123456789012345678901234567890", 123_456_789_012_345_678_901_234_567_890.0),
            // Half way between two floats, and a digit more.
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("9007199254740993.0000000000000000000000000000000000001", 9_007_199_254_740_994.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            let found = Literal::of(text.as_bytes()).unwrap();
            assert_eq!((found.value.to_bits(), found.is_beyond), (wanted.to_bits(), false), "{text}");
        }
        for text in ["nan", "NaN", "-nan", "NA", "null", "None", "n/a", "#N/A", "<NA>"] {
            assert!(Literal::of(text.as_bytes()).unwrap().value.is_nan(), "{text}");
        }
        assert!(Literal::of(b"1e400").unwrap().is_beyond && Literal::of(b"-1e400").unwrap().is_beyond);
        for text in
            ["", " ", "two", "1_000", "1,5", "2016-07-01", "0x10", "1e", "True", "nanny", "1 2", "\u{661}"]
        {
            assert!(Literal::of(text.as_bytes()).is_none(), "{text}");
        }
    }
}
