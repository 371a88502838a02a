//! Times of a table: read from text, and the step by which they go on, found and checked as `wr.from_frame` does it.

use std::collections::HashMap;
use std::hash::Hash;

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;
/// What pandas calls a step, with its nanoseconds, the longest first.
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

/// What mends times that are not in order.
const SORT: &str = "sort the lines by time, those of several series by their ID first (a column unique_id); of lines with the same time \
                    keep one";
/// What mends a date that comes twice.
const JOIN: &str = "if another column holds the hour, write both into one column, as 2021-03-05 13:00:00; lines of several series are \
                    sorted by an ID (a column unique_id) first; of lines with the same time keep one";

/// What mends dates that are read as whole numbers.
const DATES: &str = "write dates with hyphens, as 2024-01-31: without them they are whole numbers that count";

/// A date or a time of the clock without a zone, or a whole number that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Time {
    /// Nanoseconds since 1970.
    Date(i128),
    Number(i64),
}

impl Time {
    /// A date as `2021-03-05` or `2021/3/5`, alone or with a time of the clock as `13:45`, `13:45:30` or `13:45:30.5`; `2021-03`,
    /// `2021M03` and `2021Q1` are their first days.
    pub(super) fn of(text: &str) -> Option<Time> {
        let text = text.trim();
        if let Some((year, month)) = month_of_text(text) {
            return Some(Time::Date(i128::from(days_to(year, month, 1)) * DAY));
        }
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

/// Whether a time has no time of the clock in it.
pub(super) fn is_date_alone(text: &str) -> bool {
    !text.contains(':')
}

// Year and month of `2021M03` and `2021Q1`, also with a `-` or a space between.
fn month_of_text(text: &str) -> Option<(i64, i64)> {
    let (year, part) = (text.get(..4)?, text.get(4..)?);
    let part = part.strip_prefix(['-', ' ']).unwrap_or(part);
    let year = digits(year).filter(|year| *year > 0)?;
    let number = digits(part.get(1..)?).filter(|_| part.len() <= 3)?;
    match part.as_bytes().first()?.to_ascii_uppercase() {
        b'Q' if (1..=4).contains(&number) => Some((year, number * 3 - 2)),
        b'M' if (1..=12).contains(&number) => Some((year, number)),
        _ => None,
    }
}

/// Whether a text looks like a time that is written in another way: `1/2/2024`, `13:45`, `1-Jan-2020`, `2024-01-01T00:00Z`, `Q1 2024`,
/// `2024-W05`.
pub(super) fn looks_like_time(text: &str) -> bool {
    if is_quarter_or_week(text.trim()) {
        return true;
    }
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

// `Q1 2024`, `1Q2024`, `2024-W05`.
fn is_quarter_or_week(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| !matches!(c, ' ' | '-' | '/')).collect();
    let is_year = |text: Option<&str>| text.is_some_and(|text| text.len() == 4 && digits(text).is_some());
    let is_of = |part: Option<&str>| {
        let part = part.unwrap_or_default();
        part.len() == 2 && part.contains(['Q', 'q']) && part.contains(['1', '2', '3', '4'])
    };
    let week = plain.get(4..).and_then(|part| part.strip_prefix(['W', 'w']));
    let is_week = week.is_some_and(|week| (1..=2).contains(&week.len()) && digits(week).is_some());
    is_year(plain.get(2..)) && is_of(plain.get(..2)) || is_year(plain.get(..4)) && is_week
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
    /// How many steps have each length, and the first of them.
    found: HashMap<i128, Step>,
    /// Steps in months, as long as all times are first days of months, or all last days.
    months: HashMap<i64, Step>,
    are_first_days: bool,
    are_last_days: bool,
    /// How many steps are from a business day to the next, and the first other one, as long as all times are business days.
    business: u64,
    other: Option<Step>,
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
            months: HashMap::new(),
            are_first_days: true,
            are_last_days: true,
            business: 0,
            other: None,
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
                let hint = if time == before && is_date_alone(text) { JOIN } else { SORT };
                return Err(Wrong::new(what, place, hint));
            }
            let step = || Step { count: 1, place, time: text.to_string(), before: (before, written.clone()) };
            count(&mut self.found, time.number() - before.number(), step);
            if let (Time::Date(before), Time::Date(time)) = (before, time) {
                self.add_days(before, time, step);
            }
        }
        self.before = Some((time, text.to_string()));
        Ok(())
    }

    // What the step says of months and business days.
    fn add_days(&mut self, before: i128, time: i128, step: impl Fn() -> Step) {
        let days = [before, time].map(day_of);
        let are_days = [before, time].iter().all(|time| time.rem_euclid(DAY) == 0);
        if self.are_in_months() {
            let is_long = are_days && days[1] - days[0] >= 28;
            self.are_first_days &= is_long && days.iter().all(|day| date_of(*day).2 == 1);
            self.are_last_days &= is_long && days.iter().all(|day| date_of(day + 1).2 == 1);
            count(&mut self.months, month_of(days[1]) - month_of(days[0]), &step);
        }
        let weekdays = days.map(weekday_of);
        self.are_business_days &= are_days && weekdays.iter().all(|day| *day < 5);
        if next_business_day(days[0]) == days[1] {
            self.business += 1
        } else if self.other.is_none() {
            self.other = Some(step())
        }
    }

    fn are_in_months(&self) -> bool {
        self.are_first_days || self.are_last_days
    }

    /// The step of all times; `None` where no series has two, and where they are numbers.
    ///
    /// # Errors
    /// `Config` for times that do not go on by one step, with the first line of another one than most.
    pub(super) fn frequency(&self) -> Result<Option<Every>, Wrong> {
        let Some(shortest) = self.found.keys().min() else { return Ok(None) };
        let is_date = self.found.values().all(|step| matches!(step.before.0, Time::Date(_)));
        if let (true, Some(months), 1) = (self.are_in_months(), self.months.keys().next(), self.months.len())
        {
            return Ok(Some(Every::Months(*months, if self.are_first_days { 'S' } else { 'E' })));
        }
        match (self.found.len(), is_date) {
            (1, true) => Ok(Some(Every::Step(*shortest))),
            (1, false) => Ok(None),
            (_, true) if self.are_business_days && self.other.is_none() => Ok(Some(Every::BusinessDay)),
            _ => Err(self.irregular()),
        }
    }

    // Of the steps that most lines have, days of months and business days are those of a calendar.
    fn irregular(&self) -> Wrong {
        let (most, count, first) = most_of(&self.found);
        let is_business = self.are_business_days && self.business > count;
        let (first, expected) = match (&self.other, self.months.is_empty() || !self.are_in_months()) {
            (_, false) => {
                let (months, _, first) = most_of(&self.months);
                (first, first.and_then(|step| self.after_months(step, months)))
            }
            (Some(other), true) if is_business => (Some(other), other.next_business_day()),
            _ => (first, first.map(|step| step.before.0.after(most))),
        };
        let Some((first, expected)) = first.zip(expected) else {
            return Wrong::new("times of no frequency".to_string(), 0, "");
        };
        let what =
            format!("{} comes after {}, expected {expected}, as in most lines", first.time, first.before.1);
        let is_written_plainly =
            matches!(first.before.0, Time::Number(number) if is_plain_date(number as f64));
        let hint = "fill the gaps with lines of empty cells: asfreq() in pandas, upsample() in polars, fill_gaps() in utilsforecast; a file \
                    without the column of times is read line by line as it is";
        Wrong::new(what, first.place, if is_written_plainly { DATES } else { hint })
    }

    fn after_months(&self, step: &Step, months: i64) -> Option<String> {
        let Time::Date(before) = step.before.0 else { return None };
        let month = month_of(day_of(before)) + months + i64::from(!self.are_first_days);
        let day =
            days_to(month.div_euclid(12), month.rem_euclid(12) + 1, 1) - i64::from(!self.are_first_days);
        Some(shown(i128::from(day) * DAY))
    }
}

impl Step {
    fn next_business_day(&self) -> Option<String> {
        let Time::Date(before) = self.before.0 else { return None };
        Some(shown(i128::from(next_business_day(day_of(before))) * DAY))
    }
}

/// Whether a whole number may be a date: `20240131`, of some year that data is from.
pub(super) fn is_plain_date(number: f64) -> bool {
    let (year, month, day) = (number / 10_000.0, number / 100.0 % 100.0, number % 100.0);
    number.fract() == 0.0
        && (1700.0..2300.0).contains(&year)
        && (1.0..13.0).contains(&month)
        && (1.0..32.0).contains(&day)
}

fn next_business_day(day: i64) -> i64 {
    day + if weekday_of(day) == 4 { 3 } else { 1 }
}

fn count<K: Hash + Eq>(found: &mut HashMap<K, Step>, key: K, step: impl FnOnce() -> Step) {
    if let Some(known) = found.get_mut(&key) {
        known.count += 1;
    } else if found.len() < MOST_STEPS {
        found.insert(key, step());
    }
}

// The step that most lines have, how many these are, and the first line of another one.
fn most_of<K: Copy + Default + PartialEq>(found: &HashMap<K, Step>) -> (K, u64, Option<&Step>) {
    let most = found.iter().max_by_key(|(_, step)| (step.count, u64::MAX - step.place));
    let (most, count) = most.map_or((K::default(), 0), |(key, step)| (*key, step.count));
    let others = found.iter().filter(|(key, _)| **key != most);
    (most, count, others.map(|(_, step)| step).min_by_key(|step| step.place))
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
            ("2024M03", "2024-03-01 00:00:00"),
            ("2024-m3", "2024-03-01 00:00:00"),
            ("2024Q1", "2024-01-01 00:00:00"),
            ("2024-Q4", "2024-10-01 00:00:00"),
            ("2024 q2", "2024-04-01 00:00:00"),
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
            "2024Q5",
            "2024M13",
            "2024Q",
            "0000Q1",
            "2024é1",
        ] {
            assert_eq!(Time::of(text), None, "{text}");
        }
        for text in ["1/2/2024", "01.02.2024", "13:45", "1-Jan-2020", "Jan 2020", "2024-01-01T00:00:00Z"] {
            assert!(looks_like_time(text), "{text}");
        }
        for text in ["Q1 2024", "Q1-2024", "1Q2024", "2024-W05", "2024W5"] {
            assert!(looks_like_time(text), "{text}");
        }
        for text in ["Q1", "Q5 2024", "Y1", "Q12024x", "QQ 2024", "2024-X05", "é 2024"] {
            assert!(!looks_like_time(text), "{text}");
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
