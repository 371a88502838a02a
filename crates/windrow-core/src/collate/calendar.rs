//! Times that go on by a frequency, as pandas counts its periods, and what is learned of them.

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime};

use crate::error::{Error, Result};

/// How far one value is from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    n: i64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// This number of seconds: a second, minute, hour or day.
    Seconds(i64),
    /// Monday to Friday.
    Business,
    /// Weeks, by the day that ends them: 0 is Monday.
    Week(i64),
    Month,
    /// Quarters, by the month that ends a year of them: 0 is January.
    Quarter(i64),
}

/// What is learned of a time: a number from -0.5 to 0.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFeature {
    /// 0 to 59.
    SecondOfMinute,
    /// 0 to 59.
    MinuteOfHour,
    /// 0 to 23.
    HourOfDay,
    /// Monday is the first.
    DayOfWeek,
    /// Of 31.
    DayOfMonth,
    /// Of 366.
    DayOfYear,
    /// Of 53, as ISO 8601 counts them.
    WeekOfYear,
    /// Of 12.
    MonthOfYear,
}

use TimeFeature::{
    DayOfMonth, DayOfWeek, DayOfYear, HourOfDay, MinuteOfHour, MonthOfYear, SecondOfMinute, WeekOfYear,
};

const SECONDS: [TimeFeature; 6] = [SecondOfMinute, MinuteOfHour, HourOfDay, DayOfWeek, DayOfMonth, DayOfYear];
const DAY: i64 = 86_400;
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

impl Frequency {
    /// From the words of pandas, older ones too: `h`, `15min`, `D`, `B`, `W-SUN`, `MS`, `QE-NOV`.
    ///
    /// # Errors
    /// `Config` for what has no time features, with what has some.
    pub fn parse(text: &str) -> Result<Frequency> {
        let refused = || {
            Error::config(format!("the frequency {text:?} has no time features")).field("freq").hint(
                "frequencies of pandas have some: s, min, h, D, B, W-SUN, MS, ME, QS, QE and multiples such as 15min",
            )
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let n: i64 = if digits == 0 { 1 } else { text[..digits].parse().map_err(|_| refused())? };
        let (name, anchor) = text[digits..].split_once('-').unwrap_or((&text[digits..], ""));
        let number_of = |names: &[&str], default: usize| match anchor {
            "" => Ok(default as i64),
            _ => names.iter().position(|name| *name == anchor).map(|at| at as i64).ok_or_else(refused),
        };
        let unit = match name {
            "s" | "S" => Unit::Seconds(1),
            "min" | "T" => Unit::Seconds(60),
            "h" | "H" => Unit::Seconds(3600),
            "D" => Unit::Seconds(DAY),
            "B" => Unit::Business,
            "W" => Unit::Week(number_of(&WEEKDAYS, 6)?),
            "M" | "ME" | "MS" => Unit::Month,
            "Q" | "QE" => Unit::Quarter(number_of(&MONTHS, 11)?),
            "QS" => Unit::Quarter((number_of(&MONTHS, 0)? + 11) % 12),
            _ => return Err(refused()),
        };
        let is_anchored = matches!(unit, Unit::Week(_) | Unit::Quarter(_));
        // More than a step of years leaves what can be counted.
        if (1..=1_000_000).contains(&n) && (is_anchored || anchor.is_empty()) {
            Ok(Frequency { n, unit })
        } else {
            Err(refused())
        }
    }

    /// Whether times are as far from each other, weeks that end on another day, say.
    pub(super) fn is_as_long_as(self, other: Frequency) -> bool {
        use Unit::{Quarter, Week};
        let is_same = match (self.unit, other.unit) {
            (Week(_), Week(_)) | (Quarter(_), Quarter(_)) => true,
            (ours, theirs) => ours == theirs,
        };
        is_same && self.n == other.n
    }

    /// What is learned of its times: of those that change within it none.
    pub fn features(self) -> &'static [TimeFeature] {
        match self.unit {
            Unit::Seconds(1) => &SECONDS,
            Unit::Seconds(60) => &SECONDS[1..],
            Unit::Seconds(3600) => &SECONDS[2..],
            Unit::Seconds(_) | Unit::Business => &SECONDS[3..],
            Unit::Week(_) => &[DayOfMonth, WeekOfYear],
            Unit::Month | Unit::Quarter(_) => &[MonthOfYear],
        }
    }

    /// The number of the period that holds this many seconds since 1970.
    pub fn period_of(self, seconds: i64) -> i64 {
        let day = seconds.div_euclid(DAY);
        match self.unit {
            Unit::Seconds(unit) => seconds.div_euclid(unit),
            Unit::Business => {
                let (week, weekday) = (monday(day).div_euclid(7), monday(day).rem_euclid(7));
                // A weekend is the Monday after it.
                if weekday > 4 { (week + 1) * 5 } else { week * 5 + weekday }
            }
            Unit::Week(end) => (monday(day) + 6 - end).div_euclid(7),
            Unit::Month => month_of(day),
            Unit::Quarter(end) => (month_of(day) + 11 - end).div_euclid(3),
        }
    }

    /// Writes a row of features for each value from `first` on of a series that begins with `period`.
    pub fn write(self, period: i64, first: u64, out: &mut [f32]) {
        let features = self.features();
        let mut known = None;
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        for (at, row) in (0..).zip(out.chunks_exact_mut(features.len())) {
            let period = period.saturating_add(first.saturating_add(at).saturating_mul(self.n));
            let (day, second) = self.time_of(period);
            // Most times are of the day before them.
            let date = match known {
                Some(date @ Date { day: found, .. }) if found == day => date,
                _ => Date::of(day),
            };
            known = Some(date);
            features.iter().zip(row).for_each(|(feature, out)| *out = feature.of(&date, second));
        }
    }

    // The day, and second in it, of which pandas tells the features of a period: the last day of a long one.
    fn time_of(self, period: i64) -> (i64, i64) {
        // No farther than dates are computed.
        let period = period.clamp(-1 << 40, 1 << 40);
        match self.unit {
            Unit::Seconds(unit) => {
                let seconds = period * unit;
                (seconds.div_euclid(DAY), seconds.rem_euclid(DAY))
            }
            Unit::Business => (from_monday(period.div_euclid(5) * 7 + period.rem_euclid(5)), 0),
            Unit::Week(end) => (from_monday(period * 7 + end), 0),
            Unit::Month => (last_day(period), 0),
            Unit::Quarter(end) => (last_day(period * 3 + 2 - (11 - end)), 0),
        }
    }
}

impl TimeFeature {
    fn of(self, date: &Date, second: i64) -> f32 {
        let (number, most) = match self {
            SecondOfMinute => (second % 60, 59),
            MinuteOfHour => (second / 60 % 60, 59),
            HourOfDay => (second / 3600, 23),
            DayOfWeek => (date.weekday, 6),
            DayOfMonth => (date.day_of_month, 30),
            DayOfYear => (date.day_of_year, 365),
            WeekOfYear => (date.week, 52),
            MonthOfYear => (date.month, 11),
        };
        (number as f64 / f64::from(most) - 0.5) as f32
    }
}

/// Numbers of a day, all from 0.
#[derive(Clone, Copy)]
struct Date {
    /// Since 1970.
    day: i64,
    month: i64,
    day_of_month: i64,
    day_of_year: i64,
    weekday: i64,
    /// Of ISO 8601.
    week: i64,
}

impl Date {
    fn of(day: i64) -> Date {
        let date = date_of(day);
        Date {
            day,
            month: date.month0().into(),
            day_of_month: date.day0().into(),
            day_of_year: date.ordinal0().into(),
            weekday: date.weekday().num_days_from_monday().into(),
            week: date.iso_week().week0().into(),
        }
    }
}

// The nearest that there is: years go to some 262,000.
fn date_of(day: i64) -> NaiveDate {
    let date = i32::try_from(day).ok().and_then(NaiveDate::from_epoch_days);
    date.unwrap_or(if day < 0 { NaiveDate::MIN } else { NaiveDate::MAX })
}

// Days since the Monday before 1970, which began with a Thursday.
fn monday(day: i64) -> i64 {
    day + 3
}

fn from_monday(days: i64) -> i64 {
    days - 3
}

fn month_of(day: i64) -> i64 {
    let date = date_of(day);
    i64::from(date.year()) * 12 + i64::from(date.month0())
}

fn last_day(month: i64) -> i64 {
    let next = month + 1;
    let year = i32::try_from(next.div_euclid(12)).unwrap_or(i32::MAX);
    let first = NaiveDate::from_ymd_opt(year, next.rem_euclid(12) as u32 + 1, 1).unwrap_or(NaiveDate::MAX);
    i64::from(first.to_epoch_days()) - 1
}

/// Whether frequencies in pandas's words are of the same length, and months, quarters and years on the same side where both say it,
/// whatever a week or a year begins with; `None` for other words.
pub(super) fn agree(one: &str, other: &str) -> Option<bool> {
    let are_on_one_side = side_of(one).zip(side_of(other)).is_none_or(|(one, other)| one == other);
    Some(length_of(one)? == length_of(other)? && are_on_one_side)
}

// Whether times are the starts of months, quarters or years, `S`, or their ends, `E`.
pub(super) fn side_of(text: &str) -> Option<char> {
    let name = text.trim_start_matches(|c: char| c.is_ascii_digit()).split('-').next()?;
    let side = name.strip_prefix(['M', 'Q', 'Y', 'A'])?;
    matches!(side, "S" | "E").then(|| side.chars().next()).flatten()
}

// How many of the smallest unit that a frequency is a multiple of: nanoseconds, months, or business days.
pub(super) fn length_of(text: &str) -> Option<(i128, char)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let n: i128 = if digits == 0 { 1 } else { text[..digits].parse().ok()? };
    let name = text[digits..].split('-').next().unwrap_or_default();
    let second = 1_000_000_000;
    let (size, unit) = match name {
        "ns" | "N" => (1, 'n'),
        "us" | "U" => (1000, 'n'),
        "ms" | "L" => (1_000_000, 'n'),
        "s" | "S" => (second, 'n'),
        "min" | "T" => (60 * second, 'n'),
        "h" | "H" => (3600 * second, 'n'),
        "D" => (i128::from(DAY) * second, 'n'),
        "W" => (7 * i128::from(DAY) * second, 'n'),
        "B" => (1, 'B'),
        "M" | "MS" | "ME" => (1, 'M'),
        "Q" | "QS" | "QE" => (3, 'M'),
        "Y" | "YS" | "YE" | "A" | "AS" => (12, 'M'),
        _ => return None,
    };
    Some((n.checked_mul(size)?, unit))
}

/// How a time is written as text.
pub(super) const HOW_TIMES_ARE_WRITTEN: &str =
    "a time is written as 2021-03-05 or 2021-03-05 13:45:00, without a zone";

/// A time as text: `2021`, `2021-03`, `2021-03-05`, `2021-03-05 13:45:30.5`, or with a `T` between date and time. `None` for another text.
pub(super) fn time_of(text: &str) -> Option<NaiveDateTime> {
    let (date, time) = text.trim().split_once([' ', 'T']).unwrap_or((text.trim(), ""));
    let date = match date.matches('-').count() {
        0 => format!("{date}-01-01"),
        1 => format!("{date}-01"),
        _ => date.to_string(),
    };
    let time = match time.len() {
        0 => "00:00:00".to_string(),
        2 => format!("{time}:00:00"),
        5 => format!("{time}:00"),
        _ => time.to_string(),
    };
    // Without a sign, which chrono takes too.
    let date = date.starts_with(|c: char| c.is_ascii_digit()).then_some(date)?;
    let date = NaiveDate::parse_from_str(&date, "%Y-%m-%d").ok()?;
    Some(date.and_time(NaiveTime::parse_from_str(&time, "%H:%M:%S%.f").ok()?))
}

/// Seconds since 1970 of the time that a series starts at. Fractions of a second are left out.
///
/// # Errors
/// `Config` for a text that is not a time.
pub(super) fn seconds_of(text: &str) -> Result<i64> {
    time_of(text).map(|time| time.and_utc().timestamp()).ok_or_else(|| {
        Error::config(format!("the start {text:?} is not a time")).field("start").hint(HOW_TIMES_ARE_WRITTEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("1970", 0),
            ("1970-02", 31 * DAY),
            ("1970-01-02 03:04", DAY + 11_040),
            ("1970-01-02T03:04:05.678", DAY + 11_045),
            ("1969-12-31 23:59:59", -1),
        ] {
            assert_eq!(seconds_of(text).unwrap(), seconds, "{text}");
        }
        for text in ["", "now", "2021-02-30", "2021-13-01", "2021-01-01 24:00", "2021-01-01 00:00Z", "+2021"]
        {
            assert!(seconds_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn frequencies_agree_in_length_and_side() {
        for (one, other, agrees) in [
            ("MS", "MS", Some(true)),
            ("M", "ME", Some(true)),
            ("MS", "ME", Some(false)),
            ("QE-DEC", "QS-JAN", Some(false)),
            ("YS", "AS-FEB", Some(true)),
            ("24h", "D", Some(true)),
            ("W-SUN", "W", Some(true)),
            ("3M", "QS", Some(true)),
            ("3ME", "QS", Some(false)),
            ("ms", "MS", Some(false)),
            ("x", "D", None),
        ] {
            assert_eq!(agree(one, other), agrees, "{one} {other}");
        }
    }

    #[test]
    fn frequencies_are_those_that_have_features() {
        for text in ["s", "15min", "T", "h", "2H", "D", "B", "W", "W-WED", "MS", "M", "QE-NOV", "QS"] {
            assert!(Frequency::parse(text).is_ok(), "{text}");
        }
        for text in ["", "YS", "ms", "D-MON", "W-XXX", "0D", "99999999999999999999h", "é"] {
            assert!(Frequency::parse(text).is_err(), "{text}");
        }
    }
}
