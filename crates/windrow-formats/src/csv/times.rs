//! Times of a table: read from text, and the step by which they go on, found and checked as `wr.from_frame` does it.

use std::collections::HashMap;

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;
/// What pandas calls a step of so many nanoseconds, the longest first.
const FIXED: [(&str, i128); 8] = [
    ("W", 7 * DAY),
    ("D", DAY),
    ("h", 3600 * SECOND),
    ("min", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];
const WEEKDAYS: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
/// Steps of different lengths that are counted: more are no frequency.
const MOST_STEPS: usize = 64;

/// A date or a time of the clock without a zone, or a whole number that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Time {
    /// Nanoseconds since 1970.
    Date(i128),
    Number(i64),
}

impl Time {
    /// A date as `2021-03-05` or `2021/3/5`, alone or with a time of the clock as `13:45`, `13:45:30` or `13:45:30.5`; `2021-03` is its
    /// first day.
    pub(super) fn of(text: &str) -> Option<Time> {
        let text = text.trim();
        let (date, clock) = text.split_once([' ', 'T']).unwrap_or((text, ""));
        let mark = if date.contains('/') { '/' } else { '-' };
        let mut parts = date.split(mark);
        let year = parts.next().filter(|year| year.len() == 4).and_then(digits)?;
        let month = parts.next().filter(|month| month.len() <= 2).and_then(digits)?;
        let day = parts.next().map_or(Some(1), |day| digits(day).filter(|_| day.len() <= 2))?;
        let is_date = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
        let clock = if clock.is_empty() { 0 } else { nanoseconds(clock.trim_start())? };
        let is_one = is_date && year > 0 && parts.next().is_none();
        is_one.then(|| Time::Date(i128::from(days_to(year, month, day)) * DAY + clock))
    }

    /// A whole number.
    pub(super) fn counted(text: &str) -> Option<Time> {
        text.trim().parse().ok().map(Time::Number)
    }

    fn number(self) -> i128 {
        match self {
            Time::Date(nanoseconds) => nanoseconds,
            Time::Number(number) => number.into(),
        }
    }

    fn after(self, step: i128) -> String {
        match self {
            Time::Date(nanoseconds) => shown(nanoseconds + step),
            Time::Number(number) => (i128::from(number) + step).to_string(),
        }
    }

    /// As ISO 8601 has it.
    pub(super) fn iso(self) -> String {
        self.after(0)
    }
}

/// Whether a text looks like a time that is written in another way: `1/2/2024`, `13:45`, `1-Jan-2020`, `2024-01-01T00:00Z`.
pub(super) fn looks_like_time(text: &str) -> bool {
    let mut parts = text.trim().split(['/', '-', '.', ':', ' ', 'T']);
    let is_number = |part: &str| part.len() <= 4 && digits(part).is_some();
    let is_month = |part: &str| {
        part.get(..3).is_some_and(|name| MONTHS.iter().any(|month| name.eq_ignore_ascii_case(month)))
    };
    let (Some(first), Some(second), third) = (parts.next(), parts.next(), parts.next()) else { return false };
    let is_clock = text.contains(':') && is_number(second);
    is_number(first) && (is_clock || is_month(second) || is_number(second) && third.is_some_and(is_number))
        || is_month(first) && is_number(second)
}

fn digits(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

// Of a time of the clock.
fn nanoseconds(clock: &str) -> Option<i128> {
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':').map(|part| digits(part).filter(|_| part.len() <= 2));
    let hour = parts.next()??;
    let minute = parts.next()??;
    let second = parts.next().unwrap_or(Some(0))?;
    let is_time = hour < 24 && minute < 60 && second < 60 && parts.next().is_none() && fraction.len() <= 9;
    let fraction = digits(fraction)? * 10i64.pow(9u32.saturating_sub(fraction.len() as u32));
    is_time.then(|| i128::from(hour * 3600 + minute * 60 + second) * SECOND + i128::from(fraction))
}

fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

// Since 1970. Years begin with March, so that leap days end them.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

// Year, month and day of a day since 1970.
fn date_of(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = (from_march + 2) % 12 + 1;
    (era * 400 + year + i64::from(month <= 2), month, of_year - (153 * from_march + 2) / 5 + 1)
}

fn shown(nanoseconds: i128) -> String {
    let (year, month, day) = date_of(day_of(nanoseconds));
    let seconds = nanoseconds.rem_euclid(DAY) / SECOND;
    let fraction = match nanoseconds.rem_euclid(SECOND) {
        0 => String::new(),
        rest => format!(".{rest:09}").trim_end_matches('0').to_string(),
    };
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}")
}

fn day_of(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds.div_euclid(DAY)).unwrap_or(i64::MAX)
}

// 0 is Monday: 1970 began with a Thursday.
fn weekday_of(day: i64) -> i64 {
    (day + 3).rem_euclid(7)
}

fn month_of(day: i64) -> i64 {
    let (year, month, _) = date_of(day);
    year * 12 + month - 1
}

/// What is wrong with a line.
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) hint: &'static str,
    /// The byte at which it begins.
    pub(super) place: u64,
    /// Where the line begins that it contradicts, if that is not the one before.
    pub(super) other: Option<u64>,
    /// The file is damaged, not in another order.
    pub(super) is_corrupt: bool,
}

impl Wrong {
    pub(super) fn new(what: String, place: u64, hint: &'static str) -> Wrong {
        Wrong { what, hint, place, other: None, is_corrupt: false }
    }
}

/// How times go on, of all series of a table.
pub(super) struct Steps {
    before: Option<(Time, String)>,
    /// How many steps are so long, and the first of them.
    found: HashMap<i128, Step>,
    /// Months from one time to the next, where all are as many.
    months: Option<i64>,
    are_months: bool,
    are_first_days: bool,
    are_last_days: bool,
    are_business_days: bool,
}

struct Step {
    count: u64,
    place: u64,
    time: String,
    before: (Time, String),
}

impl Steps {
    pub(super) fn none() -> Steps {
        Steps {
            before: None,
            found: HashMap::new(),
            months: None,
            are_months: true,
            are_first_days: true,
            are_last_days: true,
            are_business_days: true,
        }
    }

    /// What comes next is the first time of another series.
    pub(super) fn begin(&mut self) {
        self.before = None;
    }

    /// Takes in the next time of the series, which was written so in the line at this byte.
    ///
    /// # Errors
    /// `Config` for one that is not later.
    pub(super) fn add(&mut self, time: Time, text: &str, place: u64) -> Result<(), Wrong> {
        if let Some((before, written)) = self.before.take() {
            if time <= before {
                let what = format!("{text} comes after {written}, expected a later time");
                let hint = "sort the lines by time, those of several series by their ID first (a column unique_id); of lines with the \
                            same time keep one";
                return Err(Wrong::new(what, place, hint));
            }
            self.step(before, time);
            let length = time.number() - before.number();
            if let Some(step) = self.found.get_mut(&length) {
                step.count += 1;
            } else if self.found.len() < MOST_STEPS {
                let (time, before) = (text.to_string(), (before, written));
                self.found.insert(length, Step { count: 1, place, time, before });
            }
        }
        self.before = Some((time, text.to_string()));
        Ok(())
    }

    // What it says of months and business days.
    fn step(&mut self, before: Time, time: Time) {
        let (Time::Date(before), Time::Date(time)) = (before, time) else { return };
        let is_day = |time: i128| time.rem_euclid(DAY) == 0;
        let days = [before, time].map(day_of);
        let are_days = is_day(before) && is_day(time);
        if self.are_months {
            let months = month_of(days[1]) - month_of(days[0]);
            self.are_months = are_days && *self.months.get_or_insert(months) == months;
            self.are_first_days &= days.iter().all(|day| date_of(*day).2 == 1);
            self.are_last_days &= days.iter().all(|day| date_of(day + 1).2 == 1);
        }
        let weekdays = days.map(weekday_of);
        let to_next = if weekdays[0] == 4 { 3 } else { 1 };
        self.are_business_days &=
            are_days && weekdays.iter().all(|day| *day < 5) && days[1] - days[0] == to_next;
    }

    /// By what all times go on; `None` where no series has two, and where they are numbers.
    ///
    /// # Errors
    /// `Config` for times that do not go on by one step, with the first line of another one than most.
    pub(super) fn frequency(&self) -> Result<Option<Every>, Wrong> {
        let Some(shortest) = self.found.keys().min() else { return Ok(None) };
        let is_date = self.found.values().all(|step| matches!(step.before.0, Time::Date(_)));
        if let (true, true, Some(months)) = (is_date && *shortest >= 28 * DAY, self.are_months, self.months)
            && (self.are_first_days || self.are_last_days)
        {
            return Ok(Some(Every::Months(months, if self.are_first_days { 'S' } else { 'E' })));
        }
        match (self.found.len(), is_date) {
            (1, true) => Ok(Some(Every::Step(*shortest))),
            (1, false) => Ok(None),
            (_, true) if self.are_business_days => Ok(Some(Every::BusinessDay)),
            _ => Err(self.irregular()),
        }
    }

    fn irregular(&self) -> Wrong {
        let most = self.found.iter().max_by_key(|(_, step)| (step.count, u64::MAX - step.place));
        let most = most.map_or(0, |(length, _)| *length);
        let others = self.found.iter().filter(|(length, _)| **length != most);
        let Some((_, first)) = others.min_by_key(|(_, step)| step.place) else {
            return Wrong::new("times of no frequency".to_string(), 0, "");
        };
        let (before, written) = &first.before;
        let what = format!(
            "{} comes after {written}, expected {}, as in most lines",
            first.time,
            before.after(most)
        );
        let hint = "fill the gaps with lines of empty cells: asfreq() in pandas, upsample() in polars, fill_gaps() in utilsforecast; a file \
                    without the column of times is read line by line as it is";
        Wrong::new(what, first.place, hint)
    }
}

/// How far times are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Every {
    /// Nanoseconds.
    Step(i128),
    BusinessDay,
    /// Months, and whether times are their starts, `S`, or ends, `E`.
    Months(i64, char),
}

impl Every {
    /// What pandas calls it for a series that begins at this time: weeks are named by its day, quarters and years by its month.
    pub(super) fn named(self, first: Time) -> String {
        let Time::Date(first) = first else { return String::new() };
        let day = day_of(first);
        let many = |n: i128| if n == 1 { String::new() } else { n.to_string() };
        let month = month_of(day).rem_euclid(12) as usize;
        match self {
            Every::BusinessDay => "B".to_string(),
            Every::Step(step) => {
                let (name, size) = FIXED.into_iter().find(|(_, size)| step % size == 0).unwrap_or(("ns", 1));
                let anchor = match name {
                    "W" => format!("-{}", WEEKDAYS[weekday_of(day) as usize]),
                    _ => String::new(),
                };
                format!("{}{name}{anchor}", many(step / size))
            }
            Every::Months(n, end) if n % 12 == 0 => {
                format!("{}Y{end}-{}", many((n / 12).into()), MONTHS[month])
            }
            // By the month in which a year of them begins, or ends.
            Every::Months(3, end) => {
                format!("Q{end}-{}", MONTHS[month % 3 + if end == 'S' { 0 } else { 9 }])
            }
            Every::Months(n, end) => format!("{}M{end}", many(n.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for (text, iso) in [
            ("1970-01-01", "1970-01-01 00:00:00"),
            ("2016/7/1 0:00", "2016-07-01 00:00:00"),
            ("2024-02-29T13:45:30.5", "2024-02-29 13:45:30.5"),
            (" 1899-12-31 23:59:59.000000001 ", "1899-12-31 23:59:59.000000001"),
            ("2024-03", "2024-03-01 00:00:00"),
            ("0001-01-01", "0001-01-01 00:00:00"),
        ] {
            assert_eq!(Time::of(text).unwrap().iso(), iso, "{text}");
        }
        for text in [
            "",
            "a",
            "2023-02-29",
            "2024-13-01",
            "2024-01-01 24:00",
            "2024-01-01 1",
            "1/2/2024",
            "2024",
            "2024-01-01T00:00:00Z",
            "2024-01-01 00:00+01:00",
            "2024-01-01-01",
            "20240101",
            "2024-1-001",
            "2024-01-01 00:00:00.0000000001",
            "+2024-01-01",
        ] {
            assert_eq!(Time::of(text), None, "{text}");
        }
        for text in ["1/2/2024", "01.02.2024", "13:45", "1-Jan-2020", "Jan 2020", "2024-01-01T00:00:00Z"] {
            assert!(looks_like_time(text), "{text}");
        }
        for text in ["a", "shop 1", "FOODS_1_001", "2330.TW", "1-2", "H1", "", "S-1", "Mayor 5th"] {
            assert!(!looks_like_time(text), "{text}");
        }
    }

    #[test]
    fn frequencies_are_found() {
        for (times, wanted) in [
            (&["2024-01-01", "2024-01-02", "2024-01-03"][..], "D"),
            (&["2024-01-01 00:00", "2024-01-01 00:15", "2024-01-01 00:30"], "15min"),
            (&["2024-01-01", "2024-01-08"], "W-MON"),
            (&["2024-01-04", "2024-01-05", "2024-01-08"], "B"),
            (&["2024-01-01", "2024-02-01", "2024-03-01"], "MS"),
            (&["2024-01-31", "2024-02-29", "2024-03-31"], "ME"),
            (&["2024-01-01", "2024-04-01", "2024-07-01"], "QS-JAN"),
            (&["2024-03-31", "2024-06-30"], "QE-DEC"),
            (&["2023-01-01", "2024-01-01", "2025-01-01"], "YS-JAN"),
            (&["2024-01-01", "2024-03-01", "2024-05-01"], "2MS"),
        ] {
            let mut steps = Steps::none();
            for (line, text) in (2..).zip(times) {
                steps.add(Time::of(text).unwrap(), text, line).ok().unwrap();
            }
            let found = steps.frequency().ok().flatten().unwrap();
            assert_eq!(found.named(Time::of(times[0]).unwrap()), wanted);
        }
    }
}
