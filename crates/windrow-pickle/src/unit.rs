//! The units of numpy's times, and numbers of them as text.

/// The unit of numpy's `datetime64` and `timedelta64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    is_span: bool,
    /// One of [`UNITS`]; `None` before its state is set.
    unit: Option<usize>,
    /// How many of it a number counts.
    count: i64,
}

// numpy's letters, what it calls many of them, and how many are in a day where they are shorter.
const UNITS: [(&str, &str, i64); 10] = [
    ("Y", "years", 0),
    ("M", "months", 0),
    ("W", "weeks", 0),
    ("D", "days", 1),
    ("h", "hours", 24),
    ("m", "minutes", 1_440),
    ("s", "seconds", 86_400),
    ("ms", "milliseconds", 86_400_000),
    ("us", "microseconds", 86_400_000_000),
    ("ns", "nanoseconds", 86_400_000_000_000),
];

impl Unit {
    /// Of the dtype that numpy calls so; its unit comes later.
    pub fn of(name: &str) -> Option<Unit> {
        let is_span = match name {
            "M8" => false,
            "m8" => true,
            _ => return None,
        };
        Some(Unit { is_span, unit: None, count: 1 })
    }

    /// Adds what a state declares: the unit's letter, and how many of it a number counts.
    pub fn with(self, letter: &str, count: i64) -> Option<Unit> {
        let unit = UNITS.iter().position(|unit| unit.0 == letter);
        (unit.is_some() && count > 0).then_some(Unit { unit, count, ..self })
    }

    /// A number of it as text, as numpy prints it.
    pub fn text(self, number: i64) -> String {
        let Some(unit) = self.unit.filter(|_| number != i64::MIN) else { return "NaT".to_string() };
        let Some(number) = number.checked_mul(self.count) else { return "NaT".to_string() };
        let (letter, name, per_day) = UNITS[unit];
        if self.is_span {
            return format!("{number} {name}");
        }
        let (day, within) = match letter {
            "Y" => return (number.saturating_add(1970)).to_string(),
            "M" => {
                return format!(
                    "{:04}-{:02}",
                    number.div_euclid(12).saturating_add(1970),
                    number.rem_euclid(12) + 1
                );
            }
            "W" => (number.saturating_mul(7), 0),
            _ => (number.div_euclid(per_day), number.rem_euclid(per_day)),
        };
        let (year, month, day) = civil(day);
        let date = format!("{year:04}-{month:02}-{day:02}");
        if per_day <= 1 {
            return date;
        }
        let second = i128::from(within) * 86_400 / i128::from(per_day);
        let (hour, minute) = (second / 3600, second / 60 % 60);
        let parts = match letter {
            "h" => format!("{hour:02}"),
            "m" => format!("{hour:02}:{minute:02}"),
            _ => format!("{hour:02}:{minute:02}:{:02}", second % 60),
        };
        let per_second = per_day / 86_400;
        let fraction = match per_second {
            0 | 1 => String::new(),
            _ => format!(".{:0width$}", within % per_second, width = per_second.ilog10() as usize),
        };
        format!("{date}T{parts}{fraction}")
    }
}

// The date of a day since 1970 (Hinnant, "chrono-compatible low-level date algorithms").
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day.saturating_add(719_468);
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_as_numpy_does() {
        let text = |name: &str, letter, count, number| {
            Unit::of(name).unwrap().with(letter, count).unwrap().text(number)
        };
        for (letter, number, wanted) in [
            ("Y", 50, "2020"),
            ("M", 599, "2019-12"),
            ("M", -1, "1969-12"),
            ("W", 1, "1970-01-08"),
            ("D", 18_321, "2020-02-29"),
            ("D", -1, "1969-12-31"),
            ("h", 438_315, "2020-01-02T03"),
            ("m", -1, "1969-12-31T23:59"),
            ("s", 86_399, "1970-01-01T23:59:59"),
            ("ms", 1, "1970-01-01T00:00:00.001"),
            ("ns", 1_577_934_245_000_000_678, "2020-01-02T03:04:05.000000678"),
            ("s", i64::MIN, "NaT"),
        ] {
            assert_eq!(text("M8", letter, 1, number), wanted);
        }
        assert_eq!(text("M8", "m", 15, 4), "1970-01-01T01:00");
        assert_eq!(text("m8", "D", 1, -3), "-3 days");
        assert_eq!(Unit::of("M8").unwrap().with("as", 1), None);
        assert_eq!(Unit::of("f8"), None);
    }
}
