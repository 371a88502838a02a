//! What decides an order, in words, and where it changes.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

/// Changes that are written out; of more, the first ones are one hash, so that a state stays small.
const MOST: usize = 6;

/// What decides the first positions of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// What stays the same.
    pub order: String,
    /// What does not, by position, the beginning included; nothing in an order that never changes.
    pub changes: Vec<Change>,
    /// The words of an order that stays as this one begins, where there are such.
    pub unchanged: Option<String>,
}

/// From a position on, an order is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The position.
    pub start: u64,
    /// A hash of what the order is from there on.
    pub hash: u64,
}

impl Described {
    /// The words of the order, and where it changes those of its changes.
    pub fn words(&self) -> (String, Option<String>) {
        match &self.unchanged {
            Some(words) if self.changes.len() <= 1 => return (words.clone(), None),
            _ if self.changes.is_empty() => return (self.order.clone(), None),
            _ => {}
        }
        let (first, last) = self.changes.split_at(self.changes.len().saturating_sub(MOST));
        let text = |changes: &[Change]| changes.iter().map(Change::to_string).collect::<Vec<_>>().join("+");
        let folded = format!("{}#{:016x}+", first.len(), xxh3_64(text(first).as_bytes()));
        let folded = if first.is_empty() { String::new() } else { folded };
        (self.order.clone(), Some(folded + &text(last)))
    }

    /// The first position at which another order differs, by its words; `None` where they do not say it.
    pub fn first_difference(&self, order: &str, changes: Option<&str>) -> Option<u64> {
        let start = |change: &str| change.split_once(':').and_then(|(start, _)| start.parse::<u64>().ok());
        let Some(changes) = changes else {
            // It stays as this one begins.
            return (self.unchanged.as_deref() == Some(order)).then(|| self.changes.get(1))?.map(|c| c.start);
        };
        let unfolded = Described { unchanged: None, ..self.clone() };
        let (ours_order, ours) = unfolded.words();
        if ours_order != order {
            return None;
        }
        let ours = ours.unwrap_or_default();
        let (mut ours, mut theirs) = (ours.split('+'), changes.split('+'));
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return None,
                (one, other) if one == other => {}
                (one, other) => return one.and_then(start).into_iter().chain(other.and_then(start)).min(),
            }
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}", self.start, self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(changes: &[(u64, u64)]) -> Described {
        Described {
            order: "mix".into(),
            changes: changes.iter().map(|&(start, hash)| Change { start, hash }).collect(),
            unchanged: Some(format!("plain {}", changes[0].1)),
        }
    }

    fn difference(ours: &[(u64, u64)], theirs: &[(u64, u64)]) -> Option<u64> {
        let (order, changes) = described(theirs).words();
        described(ours).first_difference(&order, changes.as_deref())
    }

    #[test]
    fn the_first_difference_is_the_first_change_that_is_not_of_both() {
        assert_eq!(difference(&[(0, 1), (9, 2)], &[(0, 1), (9, 2)]), None);
        assert_eq!(difference(&[(0, 1), (9, 2)], &[(0, 1), (9, 3)]), Some(9));
        assert_eq!(difference(&[(0, 1), (9, 2)], &[(0, 1), (5, 2), (9, 2)]), Some(5));
        assert_eq!(difference(&[(0, 1), (9, 2)], &[(0, 1)]), Some(9));
        assert_eq!(difference(&[(0, 1)], &[(0, 1), (9, 2)]), Some(9));
        assert_eq!(difference(&[(0, 4), (9, 2)], &[(0, 1), (9, 2)]), Some(0));
    }

    #[test]
    fn many_changes_stay_short() {
        let many: Vec<(u64, u64)> = (0..100).map(|n| (n * 1000, n)).collect();
        let (_, text) = described(&many).words();
        assert!(text.unwrap().len() < 200);
        let mut other = many.clone();
        other[97].1 = 0;
        assert_eq!(difference(&many, &other), Some(97_000));
        other[3].1 = 0;
        assert_ne!(described(&many).words(), described(&other).words());
    }
}
