//! What the names of columns say: that one is an index, or that a line is a series and the columns are its times.

use super::times::Time;

/// Whether pandas, or R, wrote an index into a column of this name; pandas reads a column without a name as `Unnamed: 0`.
pub(super) fn is_unnamed(name: &str) -> bool {
    let number = name.strip_prefix("Unnamed: ");
    name.is_empty() || number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The first of the columns at the end whose names are dates, or are numbered one after the other: `V2`, `V3`; `None` where these are
/// not two.
pub(super) fn first_in_time(names: &[String]) -> Option<usize> {
    let follows = |pair: &[String]| {
        let (before, next) = (numbered(&pair[0])?, numbered(&pair[1])?);
        Some(before.0 == next.0 && before.1.checked_add(1) == Some(next.1))
    };
    let are_numbered = |pair: &[String]| follows(pair).unwrap_or(false);
    let are_dates = |pair: &[String]| pair.iter().all(|name| Time::of(name).is_some());
    let run =
        |is_one: &dyn Fn(&[String]) -> bool| names.windows(2).rev().take_while(|pair| is_one(pair)).count();
    match run(&are_numbered).max(run(&are_dates)) {
        0 => None,
        steps => Some(names.len() - 1 - steps),
    }
}

// What comes before the number that a name ends in, and the number.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    number.parse().ok().map(|number| (prefix, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_go_on_are_times() {
        for (names, first) in [
            ("V1,V2,V3", Some(0)),
            ("id,item_id,d_1,d_2,d_3", Some(2)),
            ("Page,2015-07-01,2015-07-02", Some(1)),
            ("Country Name,1960,1961", Some(1)),
            ("id,x9,x10", Some(1)),
            ("date,x1,y", None),
            ("unique_id,ds,y", None),
            ("a,x1", None),
            ("x2,x1", None),
            ("", None),
        ] {
            let names: Vec<String> = names.split(',').map(str::to_string).collect();
            assert_eq!(first_in_time(&names), first, "{names:?}");
        }
        assert!(is_unnamed("") && is_unnamed("Unnamed: 0"));
        assert!(!is_unnamed("Unnamed") && !is_unnamed("Unnamed: a") && !is_unnamed("index"));
    }
}
