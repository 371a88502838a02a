//! How long tracks and sound files last.

use serde_json::{Value, json};

use crate::histogram::{Histogram, SHARES, shares};
use crate::page::Page;

const LISTED: usize = 5;

/// Durations in seconds, each with the number of what lasts so long, the shortest first.
pub(crate) struct Durations(Vec<(f64, u64)>);

impl Durations {
    pub(crate) fn new(mut seconds: Vec<(f64, u64)>) -> Durations {
        seconds.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Durations(seconds)
    }

    pub(crate) fn total(&self) -> f64 {
        self.0.iter().map(|(seconds, _)| seconds).sum()
    }

    /// A histogram, and the shortest and longest by name. Nothing where there are none.
    pub(crate) fn show(&self, what: &str, page: &mut Page, named: impl Fn(u64) -> String) {
        let millis: Vec<u64> = self.0.iter().map(|(seconds, _)| (seconds * 1e3).round() as u64).collect();
        let Some(histogram) = Histogram::of(&millis) else { return };
        let row = shares(&self.0).map(|(seconds, _)| said(seconds));
        histogram.show(&format!("{what} by duration"), |millis| said(millis as f64 / 1e3), page);
        page.table(&SHARES, &[row.to_vec()]);
        if self.0.len() < 2 {
            return;
        }
        let each = LISTED.min(self.0.len() / 2);
        let listed = |(seconds, i): &(f64, u64)| vec![said(*seconds), named(*i)];
        let shortest = self.0.iter().take(each).map(listed);
        let longest = self.0.iter().rev().take(each).map(listed);
        let rows: Vec<Vec<String>> = shortest
            .zip(longest)
            .map(|(mut short, long)| {
                short.extend(long);
                short
            })
            .collect();
        page.table(&["shortest", "", "longest", ""], &rows);
    }

    /// The numbers as JSON, in seconds.
    pub(crate) fn to_json(&self, named: impl Fn(u64) -> String) -> Value {
        if self.0.is_empty() {
            return Value::Null;
        }
        let [shortest, quarter, median, three_quarters, most, longest] = shares(&self.0);
        let named = |(seconds, i): (f64, u64)| json!({ "seconds": seconds, "name": named(i) });
        json!({
            "shortest": named(shortest), "percent_25": quarter.0, "median": median.0,
            "percent_75": three_quarters.0, "percent_95": most.0, "longest": named(longest),
        })
    }
}

/// `0.35 s`, `3 min 20.5 s`, `12.25 h`.
pub(crate) fn said(seconds: f64) -> String {
    // What would be rounded to the next unit is given in it.
    match seconds {
        ..59.995 => format!("{seconds:.2} s"),
        ..3599.95 => {
            let tenths = (seconds * 10.0).round();
            format!("{} min {:.1} s", (tenths / 600.0).floor(), tenths % 600.0 / 10.0)
        }
        _ => format!("{:.2} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_said_in_the_unit_that_fits() {
        let all = [0.0, 0.349, 59.994, 59.996, 200.55, 3599.96, 44_100.0].map(said);
        assert_eq!(all, ["0.00 s", "0.35 s", "59.99 s", "1 min 0.0 s", "3 min 20.6 s", "1.00 h", "12.25 h"]);
    }

    #[test]
    fn the_shortest_and_the_longest_are_named() {
        let durations = Durations::new(vec![(2.0, 0), (0.5, 1), (9.0, 2)]);
        let named = durations.to_json(|i| format!("t{i}"));
        assert_eq!((&named["shortest"]["name"], &named["longest"]["name"]), (&json!("t1"), &json!("t2")));
        assert_eq!((named["median"].as_f64(), durations.total()), (Some(2.0), 11.5));
        assert_eq!(Durations::new(Vec::new()).to_json(|_| String::new()), Value::Null);
    }
}
