//! What a line says of how far a task is, and how much of that fits.

use crate::text;

/// A bar is this wide at most, and at least.
const BAR: (usize, usize) = (40, 8);

/// How far a task is.
pub(super) struct At {
    pub(super) done: u64,
    /// 0 where it is not known.
    pub(super) total: u64,
    pub(super) unit: Unit,
}

/// What is counted.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// Bytes, and the number of another thing that was done with them.
    Bytes {
        beside: u64,
        one: &'static str,
    },
    Counted(&'static str),
}

/// A line of a list: all that is known.
pub(super) fn said(doing: &str, at: &At) -> String {
    match at.unit {
        Unit::Bytes { beside, one } => format!("{doing}: {}, {}", at.amount(), text::counted(beside, one)),
        Unit::Counted(_) => format!("{doing}: {}", at.amount()),
    }
}

/// A line for a terminal, at most `columns` wide: what matters less is left out where there is no room.
pub(super) fn drawn(doing: &str, at: &At, per_second: Option<f64>, columns: usize) -> String {
    let share = (at.total > 0).then(|| (at.done as f64 / at.total as f64).min(1.0));
    let percent = share.map(|share| format!("{:>3.0} %", (share * 100.0).floor()));
    let left = per_second.filter(|_| at.total > at.done).map(|rate| (at.total - at.done) as f64 / rate);
    let rate = per_second.map(|rate| match at.unit {
        Unit::Bytes { .. } => text::rate(rate, "B"),
        Unit::Counted(one) => text::rate(rate, &format!("{one}s")),
    });
    // In the order of the line, each with its rank.
    let parts = [
        (0, percent),
        (1, Some(at.amount())),
        (3, rate),
        (2, left.map(|secs| format!("{} left", duration(secs)))),
    ];
    let mut ranked: Vec<(usize, String)> =
        parts.into_iter().filter_map(|(rank, part)| Some((rank, part?))).collect();
    let used =
        |kept: &[(usize, String)]| width(doing) + kept.iter().map(|(_, part)| 2 + width(part)).sum::<usize>();
    while used(&ranked) > columns
        && let Some(last) = (0..ranked.len()).max_by_key(|i| ranked[*i].0)
    {
        ranked.remove(last);
    }
    let room = columns.saturating_sub(used(&ranked) + 2).min(BAR.0);
    let bar = share.filter(|_| room >= BAR.1).map(|share| {
        let full = (share * room as f64) as usize;
        format!("{}{}", "█".repeat(full), "░".repeat(room - full))
    });
    let parts = bar.into_iter().chain(ranked.into_iter().map(|(_, part)| part));
    let line = parts.fold(doing.to_string(), |line, part| format!("{line}  {part}"));
    text::truncated(&line, columns)
}

// Nothing in a line is wider or narrower than a column.
fn width(text: &str) -> usize {
    text.chars().count()
}

impl At {
    fn amount(&self) -> String {
        match (self.unit, self.total) {
            (Unit::Bytes { .. }, 0) => text::size(self.done),
            (Unit::Bytes { .. }, total) => format!("{} of {}", text::size(self.done), text::size(total)),
            (Unit::Counted(one), 0) => text::counted(self.done, one),
            (Unit::Counted(one), total) => {
                format!("{} of {}", text::count(self.done), text::counted(total, one))
            }
        }
    }
}

// `9 s`, `2 min 5 s`, `3 h 12 min`.
fn duration(secs: f64) -> String {
    let secs = secs.ceil() as u64;
    match secs {
        0..60 => format!("{secs} s"),
        60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        _ => format!("{} h {} min", text::count(secs / 3600), secs % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: At =
        At { done: 62_100_000, total: 249_400_000, unit: Unit::Bytes { beside: 3_201, one: "record" } };

    #[test]
    fn what_matters_less_is_left_out_of_a_narrow_line() {
        let at = |columns| drawn("tokenize", &BYTES, Some(1.78e8), columns);
        let bar = |full: usize, empty: usize| "█".repeat(full) + &"░".repeat(empty);
        let rest = "   24 %  62.1 MB of 249 MB  178 MB/s  2 s left";
        assert_eq!(at(120), format!("tokenize  {}{rest}", bar(9, 31)));
        assert_eq!(at(79), format!("tokenize  {}{rest}", bar(5, 18)));
        assert_eq!(at(55), "tokenize   24 %  62.1 MB of 249 MB  178 MB/s  2 s left");
        assert_eq!(at(50), "tokenize   24 %  62.1 MB of 249 MB  2 s left");
        assert_eq!(at(39), "tokenize   24 %  62.1 MB of 249 MB");
        assert_eq!((at(20).as_str(), at(9).as_str()), ("tokenize   24 %", "tokenize"));
        assert_eq!(at(5), "toke…");
        for columns in 1..200 {
            assert!(width(&at(columns)) <= columns, "{columns}: {}", at(columns));
        }
    }

    #[test]
    fn a_total_that_is_not_known_is_not_said() {
        let at = At { total: 0, ..BYTES };
        assert_eq!(drawn("tokenize", &at, Some(1e6), 79), "tokenize  62.1 MB  1.0 MB/s");
        assert_eq!(said("tokenize", &at), "tokenize: 62.1 MB, 3,201 records");
        assert_eq!(said("tokenize", &BYTES), "tokenize: 62.1 MB of 249 MB, 3,201 records");
        let tasks = At { done: 1, total: 17, unit: Unit::Counted("task") };
        assert_eq!(said("join", &tasks), "join: 1 of 17 tasks");
        assert_eq!(drawn("join", &tasks, None, 27), "join    5 %  1 of 17 tasks");
    }

    #[test]
    fn what_is_left_is_said_in_two_units_at_most() {
        assert_eq!(
            [0.2, 60.0, 125.0, 11_520.0].map(duration),
            ["1 s", "1 min 0 s", "2 min 5 s", "3 h 12 min"]
        );
    }
}
