//! How many values of a series come before a time, where they follow each other by a frequency.

use std::fmt;

use chrono::{Datelike, NaiveDateTime, Weekday};

use super::calendar::{HOW_TIMES_ARE_WRITTEN, agree, length_of, side_of, time_of};
use crate::error::{Error, Result};
use crate::row::Value;
use crate::source::Extras;

/// The name of the metadata that says when the first value of a series is.
pub(super) const START: &str = "start";
/// The name of the metadata that says how far each value is from the next.
pub(super) const FREQ: &str = "freq";
/// Where both come from.
pub(super) const WHERE_TIMES_COME_FROM: &str = "times come from start and freq beside a record (@extras@), as GluonTS's files and \
     @from_frame@ have them; @freq@ says a frequency that is not there";

/// A time that series are split at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(NaiveDateTime);

impl Moment {
    /// Of a text such as `2021`, `2021-03-05` or `2021-03-05 13:45:30`.
    ///
    /// # Errors
    /// `Config` for another text.
    pub fn parse(text: &str) -> Result<Moment> {
        time_of(text).map(Moment).ok_or_else(|| {
            Error::config(format!("{text:?} is not a time")).field("at").hint(HOW_TIMES_ARE_WRITTEN)
        })
    }

    /// How many values of a series are before it, by the `start` and `freq` among its metadata. `freq` is a frequency that is not
    /// among it.
    ///
    /// # Errors
    /// `Config` for a series that lacks either, for another frequency than that of the series, and for one by which no times are
    /// counted.
    pub fn values_before(self, extras: &Extras, freq: Option<&str>) -> Result<u64> {
        let lacks = |what: &str| {
            Error::config(format!("a split at the time {self} of a record without {what}"))
                .hint(WHERE_TIMES_COME_FROM)
        };
        let Some(Value::Text(start)) = extras.get(START) else { return Err(lacks("a start in time")) };
        let freq = match (freq, extras.get(FREQ)) {
            (Some(said), Some(Value::Text(found))) if agree(said, found) == Some(false) => {
                return Err(Error::config(format!(
                    "@freq={said:?}@, found times of the frequency {found:?}"
                ))
                .field(FREQ)
                .hint("leave @freq@ out: the frequency of these times is known"));
            }
            (_, Some(Value::Text(found))) => found,
            (Some(said), _) => said,
            (None, _) => return Err(lacks("a frequency")),
        };
        let first = time_of(start).ok_or_else(|| {
            Error::config(format!("the start {start:?} is not a time"))
                .field(START)
                .hint(HOW_TIMES_ARE_WRITTEN)
        })?;
        self.count(first, freq)
    }

    fn count(self, first: NaiveDateTime, freq: &str) -> Result<u64> {
        let refused = || {
            Error::config(format!("times cannot be counted by the frequency {freq:?}")).field(FREQ).hint(
                "frequencies of pandas are known: s, min, h, D, B, W-SUN, MS, ME, QS, QE, YS, YE and multiples such as 15min",
            )
        };
        let (size, unit) = length_of(freq).filter(|(size, _)| *size > 0).ok_or_else(refused)?;
        if self.0 <= first {
            return Ok(0);
        }
        let n = match unit {
            'M' => self.months_from(first, size, side_of(freq) != Some('S')),
            'B' => up(self.business_days_from(first).max(0), size),
            _ => up(nanoseconds(self.0) - nanoseconds(first), size),
        };
        Ok(u64::try_from(n).unwrap_or(u64::MAX))
    }

    // Of months, `size` apart, that begin with the first one: a series that begins at the end of a month continues with ends of
    // months.
    fn months_from(self, first: NaiveDateTime, size: i128, may_be_ends: bool) -> i128 {
        let month = |time: NaiveDateTime| i128::from(time.year()) * 12 + i128::from(time.month0());
        let is_end = may_be_ends && first.day() == u32::from(first.num_days_in_month());
        let apart = month(self.0) - month(first);
        let n = apart / size;
        let longest = u32::from(self.0.num_days_in_month());
        let day = if is_end { longest } else { first.day().min(longest) };
        // All values but the last of these are in earlier months.
        let is_before = n * size < apart || (day, first.time()) < (self.0.day(), self.0.time());
        n + i128::from(is_before)
    }

    // A weekend is the Monday after it.
    fn business_days_from(self, first: NaiveDateTime) -> i128 {
        let number = |time: NaiveDateTime| {
            let monday = i128::from(time.num_days_from_ce() - 1);
            monday.div_euclid(7) * 5 + monday.rem_euclid(7).min(5)
        };
        let is_weekend = matches!(self.0.weekday(), Weekday::Sat | Weekday::Sun);
        number(self.0) - number(first) + i128::from(!is_weekend && first.time() < self.0.time())
    }
}

// How many steps of this size reach as far.
fn up(n: i128, size: i128) -> i128 {
    n / size + i128::from(n % size > 0)
}

fn nanoseconds(time: NaiveDateTime) -> i128 {
    let time = time.and_utc();
    i128::from(time.timestamp()) * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos())
}

/// As plans have it: `2021-03-05T13:45:30`.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%dT%H:%M:%S%.f"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start: &str, freq: &str, cases: &[(&str, u64)]) {
        let extras = Extras::from_iter([
            ("start".to_string(), Value::Text(start.to_string())),
            ("freq".to_string(), Value::Text(freq.to_string())),
        ]);
        for (at, n) in cases {
            let found = Moment::parse(at).unwrap().values_before(&extras, None).unwrap();
            assert_eq!(found, *n, "{start} {freq} at {at}");
        }
    }

    #[test]
    fn a_value_at_the_time_is_not_before_it() {
        check(
            "2020-01-01",
            "D",
            &[("2019", 0), ("2020-01-01", 0), ("2020-01-01 00:00:01", 1), ("2020-01-03", 2)],
        );
        check(
            "2020-01-01 00:30",
            "h",
            &[("2020-01-02", 24), ("2020-01-02 00:30", 24), ("2020-01-02 00:31", 25)],
        );
        check("2020-01-01", "15min", &[("2020-01-01 01:00", 4), ("2020-01-01 01:01", 5)]);
        check("2020-01-01", "250ms", &[("2020-01-01 00:00:01.5", 6), ("2020-01-01 00:00:01.501", 7)]);
        check("2020-01-05", "W-SUN", &[("2020-01-12", 1), ("2020-01-13", 2)]);
    }

    #[test]
    fn months_are_counted_by_their_starts_and_ends() {
        check("2020-01-01", "MS", &[("2020-03-01", 2), ("2020-03-15", 3), ("2021", 12)]);
        check("2020-01-31", "ME", &[("2020-02-29", 1), ("2020-03-01", 2), ("2020-04-30", 3)]);
        check("2020-02-29", "M", &[("2020-03-30", 1), ("2020-03-31", 1), ("2020-04-01", 2)]);
        check("2020-01-01", "QS-JAN", &[("2020-04-01", 1), ("2020-05-01", 2)]);
        check("2020-12-31", "YE", &[("2021-12-31", 1), ("2022", 2)]);
        check("2020-01-01", "2MS", &[("2020-03-01", 1), ("2020-04-01", 2), ("2020-05-01", 2)]);
    }

    #[test]
    fn business_days_skip_weekends() {
        // 2020-01-02 is a Thursday.
        check(
            "2020-01-02",
            "B",
            &[("2020-01-03", 1), ("2020-01-04", 2), ("2020-01-06", 2), ("2020-01-07", 3)],
        );
        check("2020-01-02", "2B", &[("2020-01-03", 1), ("2020-01-06", 1), ("2020-01-07", 2)]);
    }

    #[test]
    fn what_is_missing_or_no_frequency_is_said() {
        let of = |beside: &[(&str, &str)], freq: Option<&str>| {
            let text = |(name, value): &(&str, &str)| (name.to_string(), Value::Text(value.to_string()));
            let extras = Extras::from_iter(beside.iter().map(text));
            Moment::parse("2020").unwrap().values_before(&extras, freq).unwrap_err().to_string()
        };
        assert!(of(&[], Some("D")).contains("a record without a start in time"));
        assert!(of(&[("start", "2019")], None).contains("a record without a frequency"));
        assert!(of(&[("start", "now")], Some("D")).contains("is not a time"));
        assert!(of(&[("start", "2019"), ("freq", "D")], Some("h")).contains("found times of the frequency"));
        for freq in ["", "x", "0D"] {
            assert!(of(&[("start", "2019")], Some(freq)).contains("cannot be counted"), "{freq}");
        }
        assert!(Moment::parse("2020-01-01 00:00Z").is_err());
        assert_eq!(Moment::parse("2020").unwrap().to_string(), "2020-01-01T00:00:00");
    }
}
