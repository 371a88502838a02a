//! Times as Python and numpy pickle them, as text: they stand beside a series, and nothing is reckoned with them.

use super::machine::{Machine, Node, Value};
use super::names::Name;
use crate::error::Result;

/// What `datetime` and `zoneinfo` make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    DateTime,
    Date,
    Time,
    Span,
    /// An offset from UTC.
    Offset,
    /// The class of zones by name, what gives its reader, and that reader.
    ZoneClass,
    GetAttr,
    Zone,
}

/// A time as text; of a span or an offset also its seconds.
pub(super) struct Told {
    pub(super) text: String,
    pub(super) seconds: Option<i64>,
}

/// What one of these makes of what it is given.
///
/// # Errors
/// `Corrupt` when that is not what Python writes; `Unsupported` for a call of anything else.
pub(super) fn reduce<'a>(machine: &mut Machine<'a, '_>, kind: Kind, given: &[Value]) -> Result<Value> {
    let bytes = |value: &Value| match machine.node(*value) {
        Some(Node::Bytes(bytes)) => Some(bytes.to_vec()),
        _ => None,
    };
    let told = match (kind, given) {
        (Kind::DateTime, [state, zone @ ..]) => {
            bytes(state).and_then(|state| Some(text(date_time(&state)? + &in_zone(machine, zone)?)))
        }
        (Kind::Date, [state]) => bytes(state).and_then(|state| date(&state)).map(text),
        (Kind::Time, [state, zone @ ..]) => {
            bytes(state).and_then(|state| Some(text(clock(&state)? + &in_zone(machine, zone)?)))
        }
        (Kind::Span, [Value::Int(days), Value::Int(seconds), Value::Int(micros)]) => {
            span(*days, *seconds, *micros)
        }
        (Kind::Offset, [offset, ..]) => match machine.node(*offset) {
            Some(Node::Time(span)) => span
                .seconds
                .map(|seconds| Told { text: format!("UTC{}", offset_of(seconds)), seconds: Some(seconds) }),
            _ => None,
        },
        (Kind::Zone, [name, ..]) => machine.text(*name).map(|name| text(name.to_string())),
        (Kind::GetAttr, given) => {
            let reads_zone = matches!(given, &[class, name]
                if matches!(machine.node(class), Some(Node::Name(Name::Time(Kind::ZoneClass))))
                    && machine.text(name) == Some("_unpickle"));
            return match reads_zone {
                true => machine.make(Node::Name(Name::Time(Kind::Zone))),
                false => Err(machine.refused("builtins.getattr of anything but a time zone")),
            };
        }
        _ => None,
    };
    let told = told.ok_or_else(|| machine.wrong(format!("{kind:?} is given what Python does not write")))?;
    machine.budget.take(told.text.len() as u64)?;
    machine.make(Node::Time(Box::new(told)))
}

fn text(text: String) -> Told {
    Told { text, seconds: None }
}

// What stands behind a time: its offset, or its zone in brackets.
fn in_zone(machine: &Machine<'_, '_>, zone: &[Value]) -> Option<String> {
    match zone {
        [] | [Value::None] => Some(String::new()),
        [zone] => match machine.node(*zone)? {
            Node::Time(told) => Some(match told.seconds {
                Some(seconds) => offset_of(seconds),
                None => format!("[{}]", told.text),
            }),
            _ => None,
        },
        _ => None,
    }
}

fn offset_of(seconds: i64) -> String {
    let (sign, all) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
    let rest = if all % 60 == 0 { String::new() } else { format!(":{:02}", all % 60) };
    format!("{sign}{:02}:{:02}{rest}", all / 3600, all / 60 % 60)
}

// Year in two bytes, month with a flag for the hour that comes twice, day.
fn date(state: &[u8]) -> Option<String> {
    let &[high, low, month, day] = state else { return None };
    let month = month & 0x7f;
    ((1..=12).contains(&month) && (1..=31).contains(&day))
        .then(|| format!("{:04}-{month:02}-{day:02}", u16::from_be_bytes([high, low])))
}

fn date_time(state: &[u8]) -> Option<String> {
    Some(format!("{}T{}", date(state.get(..4)?)?, clock(state.get(4..)?)?))
}

fn clock(state: &[u8]) -> Option<String> {
    let &[hour, minute, second, a, b, c] = state else { return None };
    let (hour, micros) = (hour & 0x7f, u32::from_be_bytes([0, a, b, c]));
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    (hour < 24 && minute < 60 && second < 60 && micros < 1_000_000)
        .then(|| format!("{hour:02}:{minute:02}:{second:02}{fraction}"))
}

// As Python prints it.
fn span(days: i64, seconds: i64, micros: i64) -> Option<Told> {
    let is_one = days.unsigned_abs() < 1_000_000_000;
    if !is_one || !(0..86_400).contains(&seconds) || !(0..1_000_000).contains(&micros) {
        return None;
    }
    let whole = match days {
        0 => String::new(),
        1 | -1 => format!("{days} day, "),
        _ => format!("{days} days, "),
    };
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    let text = format!("{whole}{}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(Told { text, seconds: Some(days * 86_400 + seconds) })
}

/// The unit of numpy's `datetime64` and `timedelta64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
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
    /// Of the dtype that numpy calls so; its unit is told later.
    pub(super) fn of(name: &str) -> Option<Unit> {
        let is_span = match name {
            "M8" => false,
            "m8" => true,
            _ => return None,
        };
        Some(Unit { is_span, unit: None, count: 1 })
    }

    /// The same with what a state says: the unit's letter, and how many of it a number counts.
    pub(super) fn with(self, letter: &str, count: i64) -> Option<Unit> {
        let unit = UNITS.iter().position(|unit| unit.0 == letter);
        (unit.is_some() && count > 0).then_some(Unit { unit, count, ..self })
    }

    /// A number of it as text, as numpy prints it.
    pub(super) fn text(self, number: i64) -> String {
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

    #[test]
    fn what_python_would_not_write_is_none() {
        assert_eq!(date_time(&[7, 228, 0x81, 2, 3, 4, 5, 0, 2, 166]).unwrap(), "2020-01-02T03:04:05.000678");
        assert_eq!(date(&[7, 228, 13, 1]), None);
        assert_eq!(date_time(&[7, 228, 1, 2, 25, 0, 0, 0, 0, 0]), None);
        assert_eq!(clock(&[1, 2]), None);
        assert_eq!(span(-1, 5, 7).unwrap().text, "-1 day, 0:00:05.000007");
        assert!(span(0, 86_400, 0).is_none() && span(i64::MAX, 0, 0).is_none());
        assert_eq!(offset_of(-12_600), "-03:30");
    }
}
