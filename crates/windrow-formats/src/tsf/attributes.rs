//! What a `.tsf` file says of each series: attributes with a name and a type, as the lines before `@data` declare them.

use serde_json::Value;

/// An attribute of every series.
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) holds: Holds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Text,
    Number,
    Date,
}

impl Holds {
    /// The type of this name.
    pub(super) fn named(name: &str) -> Option<Holds> {
        [("string", Holds::Text), ("numeric", Holds::Number), ("date", Holds::Date)]
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, holds)| holds)
    }

    /// What is expected of a value, in words.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Holds::Text => "text",
            Holds::Number => "a number",
            Holds::Date => "a date as YYYY-MM-DD HH-MM-SS",
        }
    }

    /// The value of a text; `None` where it is not of this type.
    pub(super) fn value(self, text: &str) -> Option<Value> {
        match self {
            Holds::Text => Some(text.into()),
            Holds::Number => {
                let text = text.trim();
                match text.parse::<i64>() {
                    Ok(number) => Some(number.into()),
                    // What JSON cannot write is not a number here either.
                    Err(_) => serde_json::Number::from_f64(text.parse().ok()?).map(Value::Number),
                }
            }
            Holds::Date => iso_date(text.trim()).map(Value::String),
        }
    }
}

/// `YYYY-MM-DD HH-MM-SS` as `YYYY-MM-DDTHH:MM:SS`.
fn iso_date(text: &str) -> Option<String> {
    let (day, time) = text.split_once(' ')?;
    let [year, month, day] = three(day)?;
    let [hour, minute, second] = three(time.trim_start())?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let is_date = (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days).contains(&day);
    let is_time = hour < 24 && minute < 60 && second < 60;
    (is_date && is_time).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"))
}

fn three(text: &str) -> Option<[u32; 3]> {
    let number = |part: &str| {
        let is_short = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| is_short)
    };
    let mut parts = text.split('-').map(number);
    let found = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_iso_8601() {
        for (text, wanted) in [
            ("2001-03-01 04-05-06", Some("2001-03-01T04:05:06")),
            ("2000-02-29 00-00-00", Some("2000-02-29T00:00:00")),
            ("1900-02-29 00-00-00", None),
            ("2001-04-31 00-00-00", None),
            ("2001-13-01 00-00-00", None),
            ("2001-03-01 24-00-00", None),
            ("2001-03-01 00-00-60", None),
            ("2001-03-01", None),
            ("2001-03-01 00:00:00", None),
            ("2001-03-01 00-00-00-00", None),
            ("2001-03--1 00-00-00", None),
            ("", None),
        ] {
            assert_eq!(iso_date(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn values_are_of_their_type() {
        assert_eq!(Holds::named("String").unwrap().value(" a"), Some(" a".into()));
        assert_eq!(Holds::named("numeric").unwrap().value(" 12 "), Some(12.into()));
        assert_eq!(Holds::Number.value("1.5"), Some(1.5.into()));
        assert!(Holds::Number.value("x").is_none() && Holds::Number.value("nan").is_none());
        assert!(Holds::named("boolean").is_none());
    }
}
