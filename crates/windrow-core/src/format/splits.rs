//! Splits named by words in the names of files and folders: `train.bin` beside `val.bin`, `validation/a.jsonl`,
//! `fineweb_val_000000.bin`. Joined, they would give what is meant for validation to training.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::format::Probe;
use crate::store::key;

const TRAIN: &str = "train";
/// What is asked for where the splits of a folder are meant together.
pub const ALL: &str = "all";
/// Words of one meaning, the first of them its name.
const SPLITS: &[&[&str]] = &[
    &[TRAIN, "training"],
    &["validation", "valid", "val", "dev"],
    &["test", "testing", "eval", "evaluation"],
];

/// The split that a name says, by a word between characters that are not letters; `None` for no such word, or for words of
/// several splits.
pub fn of_name(name: &str) -> Option<&'static str> {
    let words: Vec<String> = name.split(|c: char| !c.is_alphabetic()).map(str::to_ascii_lowercase).collect();
    let mut found = SPLITS.iter().filter(|split| words.iter().any(|word| split.contains(&word.as_str())));
    match (found.next(), found.next()) {
        (Some(split), None) => Some(split[0]),
        _ => None,
    }
}

/// The split of a file by the last part of its path that says one, its own name first.
fn of_path(path: &str) -> Option<&'static str> {
    path.rsplit('/').find_map(of_name)
}

/// Refuses several splits in a folder as [`refuse_several`] does, unless all its splits were asked for.
///
/// # Errors
/// As [`refuse_several`].
pub fn refuse_in<'k>(probe: &Probe, names: impl Iterator<Item = &'k str> + Clone) -> Result<()> {
    if probe.joins_splits { Ok(()) } else { refuse_several(names, &probe.display()) }
}

/// Refuses files of several splits as one data set, and files of none beside those of a split that is kept from training.
/// Names are relative to the folder.
///
/// # Errors
/// `Config` naming the splits and a file of each; `at` is the folder.
pub fn refuse_several<'k>(names: impl Iterator<Item = &'k str> + Clone, at: &str) -> Result<()> {
    let splits = among(names.clone());
    if splits.len() > 1 {
        let hint = format!(
            "open one of them with {}, both with @split=\"{ALL}\"@, or name a file",
            choices(&splits)
        );
        return Err(several(&splits, at).hint(hint));
    }
    let mut others = names.filter(|name| of_path(name).is_none());
    match others.next().filter(|_| splits.keys().any(|split| *split != TRAIN)) {
        None => Ok(()),
        Some(other) => {
            let others = with_more(other, others.count());
            let what = format!("the folder holds a split, {}, and files of none: {others}", listed(&splits));
            let choices = choices(&splits);
            Err(Error::config(what)
                .at(at)
                .field("split")
                .hint(format!(
                    "open it with {choices}, the rest with @split=\"{TRAIN}\"@, both with @split=\"{ALL}\"@, or name a file"
                )))
        }
    }
}

/// The error that a folder holds them.
pub fn several(splits: &BTreeMap<&'static str, (usize, &str)>, at: &str) -> Error {
    Error::config(format!("the folder holds several splits: {}", listed(splits)))
        .at(at)
        .field("split")
        .hint(format!("open one of them with {}, or name a file", choices(splits)))
}

fn choices(splits: &BTreeMap<&'static str, (usize, &str)>) -> String {
    let choices: Vec<String> = splits.keys().map(|split| format!("@split=\"{split}\"@")).collect();
    choices.join(" or ")
}

/// The splits among files: how many files each has, and the first of them.
pub fn among<'k>(names: impl Iterator<Item = &'k str>) -> BTreeMap<&'static str, (usize, &'k str)> {
    let mut splits = BTreeMap::new();
    for name in names {
        if let Some(split) = of_path(name) {
            splits.entry(split).or_insert((0, name)).0 += 1;
        }
    }
    splits
}

/// Files in groups, one a split, in their order; those of none are a group too. Names are those that tell the split.
pub fn grouped<'k>(keys: &'k [String], name: impl Fn(&'k str) -> &'k str) -> Vec<Vec<String>> {
    let mut groups: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
    for key in keys {
        groups.entry(of_path(name(key))).or_default().push(key.clone());
    }
    groups.into_values().collect()
}

/// The splits in words.
pub fn listed(splits: &BTreeMap<&'static str, (usize, &str)>) -> String {
    let named: Vec<String> = splits
        .iter()
        .map(|(split, (count, first))| format!("{split} ({})", with_more(first, count - 1)))
        .collect();
    named.join(", ")
}

fn with_more(first: &str, more: usize) -> String {
    match more {
        0 => first.to_string(),
        n => format!("{first} and {n} more"),
    }
}

/// Which of these files are of a split, as words in their names and in those of their folders say. Files without such a word
/// are the training split where no other file is. `at` is where they are. [`ALL`] is all of them.
///
/// # Errors
/// `NotFound` where none is of that split, naming those there are.
pub fn chosen<'k>(names: impl Iterator<Item = &'k str> + Clone, split: &str, at: &str) -> Result<Vec<bool>> {
    if split == ALL {
        return Ok(names.map(|_| true).collect());
    }
    let word = split.to_ascii_lowercase();
    let wanted = SPLITS.iter().find(|words| words.contains(&word.as_str())).map(|words| words[0]);
    let splits = among(names.clone());
    let is_rest =
        wanted == Some(TRAIN) && !splits.contains_key(TRAIN) && names.clone().any(|n| of_path(n).is_none());
    let has = is_rest || wanted.is_some_and(|wanted| splits.contains_key(wanted));
    if !has {
        let what = format!("no folder is called {split:?}, and no file is of that split");
        let error = Error::not_found(what).at(at).field("split");
        return Err(if splits.is_empty() {
            error
        } else {
            error.hint(format!("there are {}", listed(&splits)))
        });
    }
    let is_in = |name: &str| match (is_rest, of_path(name)) {
        (true, of) => of.is_none(),
        (false, of) => of == wanted,
    };
    Ok(names.map(is_in).collect())
}

impl Probe {
    /// Keeps the files of one split alone, as words in their names and in those of their folders say; where they make up
    /// one folder, that folder. Files without such a word are the training split where no other file is. A folder
    /// whose format defines the splits itself is left as it is. With [`ALL`] nothing is left out, and no format refuses several.
    ///
    /// # Errors
    /// `NotFound` where none is of that split, naming those there are.
    pub fn only_split(mut self, split: &str) -> Result<Probe> {
        if self.table.iter().any(|format| format.defines_splits(&self)) {
            return Ok(self);
        }
        if !self.is_folder {
            return chosen([self.file_name().as_str()].into_iter(), split, &self.display()).map(|_| self);
        }
        self.joins_splits = split == ALL;
        let kept = chosen(self.names(), split, &self.display())?;
        let first =
            self.names().zip(&kept).find(|(_, kept)| **kept).and_then(|(name, _)| outermost_folder(name));
        if let Some(folder) = first
            && self.names().zip(&kept).all(|(name, kept)| *kept == key::is_below(folder, name))
        {
            return Probe::at(self.table, self.store.clone(), &self.below(folder));
        }
        let mut kept = kept.into_iter();
        self.entries.retain(|_| kept.next().unwrap_or_default());
        Ok(self)
    }
}

// The first folder of a path that says the split of what is in it.
fn outermost_folder(path: &str) -> Option<&str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).find(|folder| of_name(key::name_of(folder)).is_some())
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
        let error = refuse_several(["train_0.bin", "train_1.bin", "val.bin"].into_iter(), "d").unwrap_err();
        assert!(error.message().ends_with("train (train_0.bin and 1 more), validation (val.bin)"), "{error}");
        assert!(error.hint_text().is_some_and(|hint| hint.contains(".split(\"train\")")), "{error}");
        let error = refuse_several(["a.bin", "b.bin", "val.bin"].into_iter(), "d").unwrap_err();
        assert!(
            error.message().ends_with("validation (val.bin), and files of none: a.bin and 1 more"),
            "{error}"
        );
    }

    #[test]
    fn the_last_part_of_a_path_that_says_a_split_counts() {
        for (path, split) in [
            ("train/a.jsonl", Some("train")),
            ("en/dev-clean/84/a.jsonl", Some("validation")),
            ("eval-suite/train.jsonl", Some("train")),
            ("en/part-0.jsonl", None),
        ] {
            assert_eq!(of_path(path), split, "{path}");
        }
    }
}
