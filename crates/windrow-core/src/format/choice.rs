//! Which records were chosen, as options and plans hold it.

use serde::{Deserialize, Serialize};

use crate::source::{Condition, Numbers};

/// Numbers that a plan's text holds; of more it holds how many there are, and their hash.
pub const MOST_IN_TEXT: u64 = 4096;

/// One choice of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "InText", from = "InText")]
pub enum Choice {
    /// Those with these numbers, which are those of all records, whatever was chosen before.
    Numbers(Numbers),
    /// Numbers of which only this is known.
    Hashed {
        /// How many there are.
        n: u64,
        /// XXH3-64 of them as little-endian u64.
        xxh3: u64,
    },
    /// Those for which a comparison holds.
    Where(Condition),
    /// A part of a split.
    Split(Split),
}

/// One of the two parts that a seeded split by whole records gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Records of the validation part.
    pub n_validation: u64,
    /// Keys which records these are.
    pub seed: u64,
    /// This is the validation part; else it is all that is left.
    pub is_validation: bool,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum InText {
    Slice { start: u64, step: i64, n: u64 },
    Numbers(Vec<u64>),
    Hashed { n: u64, xxh3: String },
    Where(Condition),
    Split(Split),
}

impl From<Choice> for InText {
    fn from(choice: Choice) -> InText {
        match choice {
            Choice::Numbers(Numbers::Slice { start, step, n }) => InText::Slice { start, step, n },
            Choice::Numbers(numbers) if numbers.len() <= MOST_IN_TEXT => {
                InText::Numbers(numbers.iter().collect())
            }
            Choice::Numbers(numbers) => {
                InText::Hashed { n: numbers.len(), xxh3: format!("{:016x}", numbers.hash()) }
            }
            Choice::Hashed { n, xxh3 } => InText::Hashed { n, xxh3: format!("{xxh3:016x}") },
            Choice::Where(comparison) => InText::Where(comparison),
            Choice::Split(split) => InText::Split(split),
        }
    }
}

impl From<InText> for Choice {
    fn from(text: InText) -> Choice {
        match text {
            InText::Slice { start, step, n } => Choice::Numbers(Numbers::Slice { start, step, n }),
            InText::Numbers(numbers) => Choice::Numbers(Numbers::list(numbers)),
            // What is not a hash is that of no numbers.
            InText::Hashed { n, xxh3 } => {
                Choice::Hashed { n, xxh3: u64::from_str_radix(&xxh3, 16).unwrap_or_default() }
            }
            InText::Where(comparison) => Choice::Where(comparison),
            InText::Split(split) => Choice::Split(split),
        }
    }
}

impl Choice {
    /// Puts numbers in the place of their hash; says whether it is theirs.
    pub(super) fn fill(&mut self, numbers: &Numbers) -> bool {
        let is_theirs =
            matches!(*self, Choice::Hashed { n, xxh3 } if n == numbers.len() && xxh3 == numbers.hash());
        if is_theirs {
            *self = Choice::Numbers(numbers.clone());
        }
        is_theirs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Given, Op};

    #[test]
    fn choices_are_short_in_text_and_read_again() {
        let score = Condition { column: "score".to_string(), op: Op::GreaterEqual, value: Given::from(0.8) };
        for (choice, text) in [
            (Choice::Numbers(Numbers::list(vec![9, 7, 5])), r#"{"slice":{"start":9,"step":-2,"n":3}}"#),
            (Choice::Numbers(Numbers::list(vec![9, 1, 5])), r#"{"numbers":[9,1,5]}"#),
            (Choice::Where(score), r#"{"where":{"column":"score","op":">=","value":0.8}}"#),
            (
                Choice::Split(Split { n_validation: 3, seed: 0, is_validation: true }),
                r#"{"split":{"n_validation":3,"seed":0,"is_validation":true}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&choice).unwrap(), text);
            assert_eq!(serde_json::from_str::<Choice>(text).unwrap(), choice);
        }
    }

    #[test]
    fn of_long_lists_text_has_the_hash_and_the_list_fits_it_again() {
        let numbers = Numbers::list((0..MOST_IN_TEXT + 1).map(|i| i * i).collect());
        let text = serde_json::to_string(&Choice::Numbers(numbers.clone())).unwrap();
        assert_eq!(text, format!(r#"{{"hashed":{{"n":4097,"xxh3":"{:016x}"}}}}"#, numbers.hash()));
        let mut read: Choice = serde_json::from_str(&text).unwrap();
        assert!(!read.fill(&Numbers::list((0..MOST_IN_TEXT + 1).map(|i| i * i + 1).collect())));
        assert!(read.fill(&numbers) && read == Choice::Numbers(numbers));
    }
}
