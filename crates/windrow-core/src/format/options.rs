//! How to open data; what is not given is found out.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Choice, Format, OpenOption, Split};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::format::FormatInfo;
use crate::source::Numbers;

/// How to open; what is not given is detected.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Name of the format; `None` recognises it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// dtype of a stored number, where the files do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Ids must be below this; checked once over all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocab_size: Option<u64>,
    /// The ID that ends each document in raw token files: documents are records then. Found once, kept in the cache.
    #[serde(rename = "eos", skip_serializing_if = "Option::is_none")]
    pub document_eos: Option<i64>,
    /// Name of the index folder of the byte-offset format, `index` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_folder: Option<String>,
    /// Hash of the tokenizer that must have made the tokens; the facade takes its name or path as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// Accept files that an index names outside its base folder.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_outside: bool,
    /// Accept data whose size or time differs from what the manifest says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trust: bool,
    /// Read missing chunks of a chunked array as zeros instead of refusing them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fill_missing: bool,
    /// Bytes that all of the cache may take, what is expanded, converted and fetched together; if not given what the environment
    /// says, and of one file 1,000 times a compressed one, 16 times a series that is converted, and 64 MiB. Of URLs, 0 keeps
    /// what is fetched in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_limit: Option<u64>,
    /// Of URLs, the folder in which what is fetched is kept; the usual cache folder if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<std::path::PathBuf>,
    /// Of URLs, what their store's own tools call them: `endpoint_url`, `region`, `anon`, `headers.NAME`. They may hold
    /// secrets, so no recipe has them.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub store_options: std::collections::BTreeMap<String, String>,
    /// Of URLs, the longest that a read may take with all its attempts; 300 seconds if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<std::time::Duration>,
    /// Of URLs, bytes that are fetched ahead and held in memory; 256 MiB if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<u64>,
    /// Bytes of decoded chunks that an opened chunked array keeps in memory; 256 MiB if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// The split that is meant, `train` or `validation`: the folder of that name below the path, where the facade goes, else
    /// the files whose names say it ([`Probe::only_split`](crate::format::Probe::only_split)).
    #[serde(rename = "part", skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Files of lines that are all empty hold no records, instead of being refused as unfinished copies.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_empty: bool,
    /// A part of the records, as a split made it; the facade takes it out of what a format opens.
    #[serde(rename = "split", skip_serializing_if = "Option::is_none")]
    pub random_split: Option<Split>,
    /// Records that are left out, by their numbers before any were chosen, of those of the split where there is one, as `[from, to)`;
    /// ascending and apart from each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<(u64, u64)>,
    /// Which records were chosen, one choice of what the one before left; the facade takes them out of what a format opens, before
    /// the split.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<Choice>,
    /// A part of each record in time, as a split by time made it; the facade takes it out of what a format opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<PeriodOfEach>,
    /// The key whose values are the series, of records that are objects; `sequence` if not given, else the only key of
    /// numbers that the first record has. The others are extras.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Only these columns of records that are rows: a record is a row of them. Of CSV the channels, in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Which of the columns beside token IDs say what is learned: masks of 0 and 1, or labels, joined by *and*. `None` finds those of
    /// [`MASK_COLUMNS`](crate::format::MASK_COLUMNS); an empty list is no mask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_column: Option<Vec<String>>,
    /// What a record of bytes holds, where the format does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// What the first axis of an array is; if not given, `[N, T]` are N series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// How local files are read.
    pub io: crate::store::Io,
    /// Compare every block of 4 KiB that is read, each time, with its block checksum; data without them is refused.
    #[serde(rename = "verify", with = "verified", skip_serializing_if = "std::ops::Not::not")]
    pub verify_checksums: bool,
}

/// Options that recipes, states and jobs have under other names, as they were written first.
const STORED: [(&str, &str); 4] =
    [("document_eos", "eos"), ("split", "part"), ("random_split", "split"), ("verify_checksums", "verify")];

/// Whether blocks are verified, in the words of a recipe.
mod verified {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    const WORDS: [&str; 2] = ["at_opening", "always"];

    pub(super) fn serialize<S: Serializer>(verifies: &bool, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(WORDS[usize::from(*verifies)])
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        let word = String::deserialize(from)?;
        let known = WORDS.iter().position(|known| *known == word);
        known.map(|at| at == 1).ok_or_else(|| D::Error::unknown_variant(&word, &WORDS))
    }
}

/// What the first axis of an array `[T, C]` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Axis {
    /// Time: the array is one series of C channels.
    Time,
}

/// What a record of bytes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Bytes; with a dtype numbers.
    Bytes,
    /// UTF-8 text.
    Text,
    /// A JSON value.
    Json,
    /// A tf.train.Example.
    Example,
}

impl Options {
    /// Of options by name, as front ends have them; what is null is not given.
    ///
    /// ```
    /// use serde_json::json;
    /// use windrow_core::format::Options;
    ///
    /// let given = json!({ "split": "train", "timeout": 2.5, "dtype": null });
    /// let options = Options::of(given.as_object().cloned().unwrap_or_default())?;
    /// assert_eq!((options.split.as_deref(), options.timeout.map(|time| time.as_millis())), (Some("train"), Some(2_500)));
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Config` for an unknown option, and for a value that an option cannot have.
    pub fn of(given: Map<String, Value>) -> Result<Options> {
        let mut options = Map::new();
        for (name, value) in given {
            match (name.as_str(), value) {
                (_, Value::Null) => {}
                ("verify_checksums", verifies) => {
                    options.extend((verifies == true).then(|| ("verify".to_string(), "always".into())));
                }
                ("timeout", seconds) => {
                    let time = seconds.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    let time = time.filter(|time| !time.is_zero()).ok_or_else(|| {
                        Error::config(format!("{seconds} seconds, expected a time above 0")).field("timeout")
                    })?;
                    options.insert(name, json!(time));
                }
                (_, value) => match STORED.iter().find(|(ours, stored)| *ours == name || *stored == name) {
                    Some((ours, stored)) if *ours == name => {
                        drop(options.insert((*stored).to_string(), value))
                    }
                    Some((ours, _)) => {
                        let error = Error::config(format!("{name} is not an option of opening")).field(name);
                        return Err(error.hint(format!("it is called {ours}")));
                    }
                    None => drop(options.insert(name, value)),
                },
            }
        }
        serde_json::from_value(options.into())
            .map_err(|e| Error::config("the options of opening cannot be understood").caused_by(e))
    }

    /// Puts numbers in the places where only their hash is known; says whether there was one.
    pub fn fill_numbers(&mut self, numbers: &Numbers) -> bool {
        // Every choice is asked: two may be of the same records.
        let mut is_filled = false;
        self.select.iter_mut().for_each(|choice| is_filled |= choice.fill(numbers));
        is_filled
    }

    // Those that are given, by their names.
    fn given(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(given)) => {
                given.into_iter().map(|(stored, value)| (name_of(stored), value)).collect()
            }
            _ => Map::new(),
        }
    }

    /// The format of `table` that one of the options means.
    pub fn chosen(&self, table: &[&dyn Format]) -> Option<&'static str> {
        let given = self.given();
        let mut infos = table.iter().map(|format| format.info());
        infos.find(|info| info.chosen_by.is_some_and(|name| given.contains_key(name))).map(|info| info.name)
    }

    /// That no option was given which `format` does not follow, though another one of `table` does: it would be without effect.
    ///
    /// # Errors
    /// `Config` naming the option.
    pub fn only_those_of(&self, table: &[&dyn Format], format: &FormatInfo) -> Result<()> {
        if let (Some(column), Some(columns)) = (&self.column, &self.columns) {
            return Err(Error::config(format!("@column={column:?}@ and @columns={columns:?}@ were given"))
                .field("columns")
                .hint("@column@ makes numbers of one column, @columns@ rows of several: give one of them"));
        }
        let given = self.given();
        let of_some = table.iter().flat_map(|format| format.info().open_options);
        let mut without_effect = of_some.filter(|option| !format.takes(option.row.name));
        match without_effect.find(|option| given.contains_key(option.row.name)) {
            None => Ok(()),
            Some(OpenOption { row, why, hint }) => {
                let error = Error::config(format!("@the {}@ was given, but {} {why}", row.name, format.name));
                Err(error.field(row.name).hint(*hint))
            }
        }
    }

    /// That no option of token IDs was given, where records are none.
    ///
    /// # Errors
    /// `Config` naming the option.
    pub fn refuse_those_of_ids(&self, why: &str, hint: &str) -> Result<()> {
        let asked = [
            ("dtype", self.dtype.is_some()),
            ("vocab_size", self.vocab_size.is_some()),
            ("tokenizer", self.tokenizer.is_some()),
        ];
        match asked.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => {
                Err(Error::config(format!("@the {name}@ was given, but {why}")).field(*name).hint(hint))
            }
        }
    }
}

// What an option is called that is stored under this name.
fn name_of(stored: String) -> String {
    STORED.iter().find(|(_, name)| *name == stored).map_or(stored, |(ours, _)| (*ours).to_string())
}

/// One of the parts that a split by time gives.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeriodOfEach {
    /// Where it begins.
    pub from: BorderOfEach,
    /// Where it ends.
    pub to: BorderOfEach,
    /// Values before it that windows may read as their context.
    #[serde(default, skip_serializing_if = "is_none")]
    pub before: u64,
    /// Where the first part ends, by whose statistics scalers scale all parts.
    pub fit: BorderOfEach,
}

/// Where a part in time begins or ends.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum BorderOfEach {
    /// At a fraction of a record's values.
    Fraction(f64),
    /// Before its last values.
    Last {
        /// How many.
        last: u64,
    },
    /// At a time.
    Time {
        /// The time.
        at: String,
        /// The frequency of records that do not say theirs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        freq: Option<String>,
    },
}

fn is_none(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_keep_the_names_that_they_were_written_with() {
        let options = Options {
            document_eos: Some(1),
            split: Some("train".to_string()),
            random_split: Some(Split { n_validation: 2, seed: 3, is_validation: true }),
            verify_checksums: true,
            ..Options::default()
        };
        let stored = json!({
            "eos": 1, "part": "train", "split": { "n_validation": 2, "seed": 3, "is_validation": true },
            "io": "mmap", "verify": "always",
        });
        assert_eq!(serde_json::to_value(&options).unwrap(), stored);
        assert_eq!(serde_json::from_value::<Options>(stored).unwrap(), options);
        let plain = json!({ "verify": "at_opening" });
        assert_eq!(serde_json::from_value::<Options>(plain).unwrap(), Options::default());
        serde_json::from_value::<Options>(json!({ "verify": "never" })).unwrap_err();
    }

    #[test]
    fn options_are_given_by_their_own_names() {
        let of = |given: Value| Options::of(given.as_object().cloned().unwrap());
        let given = json!({ "document_eos": 1, "split": "train", "verify_checksums": true });
        let options = of(given).unwrap();
        assert_eq!((options.document_eos, options.split.as_deref()), (Some(1), Some("train")));
        assert!(options.verify_checksums);
        assert!(!of(json!({ "verify_checksums": false })).unwrap().verify_checksums);
        for (name, ours) in [("eos", "document_eos"), ("part", "split"), ("verify", "verify_checksums")] {
            let error = of(json!({ name: "train" })).unwrap_err();
            assert!(error.hint_text().unwrap().contains(ours), "{error:#}");
        }
    }
}
