//! Splits told by words in file names: `train.bin` beside `val.bin`, `fineweb_val_000000.bin`. Joined, they would give what
//! is meant for validation to training.

use std::collections::BTreeMap;

use super::Look;
use crate::error::{Error, Result};
use crate::store::key;

/// Words of one meaning, the first of them its name.
const SPLITS: &[&[&str]] = &[
    &["train", "training"],
    &["validation", "valid", "val", "dev"],
    &["test", "testing", "eval", "evaluation"],
];

/// The split that a name says, by a word between characters that are no letters; `None` for no such word, or for words of
/// several splits.
pub(crate) fn of_name(name: &str) -> Option<&'static str> {
    let words: Vec<String> = name.split(|c: char| !c.is_alphabetic()).map(str::to_ascii_lowercase).collect();
    let mut found = SPLITS.iter().filter(|split| words.iter().any(|word| split.contains(&word.as_str())));
    match (found.next(), found.next()) {
        (Some(split), None) => Some(split[0]),
        _ => None,
    }
}

/// Refuses files of several splits as one data set.
///
/// # Errors
/// `Config` naming the splits and a file of each; `at` is the folder.
pub(crate) fn refuse_several<'k>(keys: impl Iterator<Item = &'k str>, at: &str) -> Result<()> {
    let splits = among(keys);
    match splits.len() {
        0 | 1 => Ok(()),
        _ => {
            let choices: Vec<String> = splits.keys().map(|split| format!("split=\"{split}\"")).collect();
            Err(Error::config(format!("the folder holds several splits: {}", listed(&splits)))
                .at(at)
                .field("split")
                .hint(format!("open one of them with {}, or name a file", choices.join(" or "))))
        }
    }
}

/// The splits among files: how many files each has, and the first of them.
pub(crate) fn among<'k>(keys: impl Iterator<Item = &'k str>) -> BTreeMap<&'static str, (usize, &'k str)> {
    let mut splits = BTreeMap::new();
    for key in keys {
        let name = key::name_of(key);
        if let Some(split) = of_name(name) {
            splits.entry(split).or_insert((0, name)).0 += 1;
        }
    }
    splits
}

/// The splits in words.
pub(crate) fn listed(splits: &BTreeMap<&'static str, (usize, &str)>) -> String {
    let told: Vec<String> = splits
        .iter()
        .map(|(split, (count, first))| match count {
            1 => format!("{split} ({first})"),
            n => format!("{split} ({first} and {} more)", n - 1),
        })
        .collect();
    told.join(", ")
}

impl Look {
    /// The same folder with the files of one split alone, as words in their names say. Files without such a word are the
    /// training split where no other file is.
    ///
    /// # Errors
    /// `NotFound` where none is of that split, naming those there are.
    pub fn only_split(mut self, split: &str) -> Result<Look> {
        let word = split.to_ascii_lowercase();
        let wanted = SPLITS.iter().find(|words| words.contains(&word.as_str())).map(|words| words[0]);
        let splits = among(self.entries.iter().map(|entry| entry.key.as_str()));
        let is_rest = wanted == Some("train") && !splits.is_empty() && !splits.contains_key("train");
        let has = is_rest || wanted.is_some_and(|wanted| splits.contains_key(wanted));
        if !has {
            let error =
                Error::not_found(format!("no folder is called {split:?}, and no file is of that split"))
                    .at(self.display())
                    .field("split");
            return Err(match splits.is_empty() {
                true => error,
                false => error.hint(format!("there are {}", listed(&splits))),
            });
        }
        self.entries.retain(|entry| {
            let split = of_name(key::name_of(&entry.key));
            if is_rest { split.is_none() } else { split == wanted }
        });
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_between_other_characters_says_the_split() {
        for (name, split) in [
            ("train.bin", Some("train")),
            ("val.bin", Some("validation")),
            ("fineweb_val_000000.bin", Some("validation")),
            ("c4-validation.00000-of-00008.json.gz", Some("validation")),
            ("data-test2.bin", Some("test")),
            ("DEV.bin", Some("validation")),
            ("trainer.bin", None),
            ("contest.bin", None),
            ("train_test_split.bin", None),
            ("tokens.bin", None),
        ] {
            assert_eq!(of_name(name), split, "{name}");
        }
    }

    #[test]
    fn several_are_named() {
        assert!(refuse_several(["train_0.bin", "train_1.bin", "x.bin"].into_iter(), "d").is_ok());
        let error =
            refuse_several(["d/train_0.bin", "d/train_1.bin", "d/val.bin"].into_iter(), "d").unwrap_err();
        assert!(error.message().ends_with("train (train_0.bin and 1 more), validation (val.bin)"), "{error}");
        assert!(error.hint_text().is_some_and(|hint| hint.contains("split=\"train\"")), "{error}");
    }
}
