//! Records that are left out because they are damaged: how many, the first of them, and whether they are too many.

use serde::{Deserialize, Serialize};
use windrow_core::manifest::Manifest;
use windrow_core::{Error, Kind, Result};

/// The share of damaged records that may be left out by default.
pub const MAX_SKIPPED: f64 = 0.01;
/// The statistic of a manifest and of a part that lists them.
pub(crate) const SKIPPED: &str = "skipped";
/// How many are listed with their places.
const MOST_LISTED: usize = 20;
/// Where this number is left out and none was taken, the rest need not be read to know what is wrong.
const MOST_BEFORE_THE_FIRST: u64 = 10_000;

/// Records that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// The first of them, at most 20.
    pub first: Vec<SkippedRecord>,
}

/// A record that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRecord {
    /// Its file, where it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its number in the input, from 0.
    pub record: u64,
    /// Where in the file it is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte: Option<u64>,
    /// What is wrong with it.
    pub error: String,
}

impl SkippedRecord {
    /// What an error says of the record with this number, unless it names another.
    pub(crate) fn of(error: &Error, record: u64) -> SkippedRecord {
        let place = error.place();
        SkippedRecord {
            file: place.file.clone(),
            record: place.record.unwrap_or(record),
            byte: place.byte,
            error: error.to_string(),
        }
    }
}

impl Skipped {
    pub(crate) fn is_none(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, record: SkippedRecord) {
        self.count += 1;
        if self.first.len() < MOST_LISTED {
            self.first.push(record);
        }
    }

    /// Adds others, which are behind these.
    pub(crate) fn extend(&mut self, others: &Skipped) {
        let room = MOST_LISTED.saturating_sub(self.first.len());
        self.count += others.count;
        self.first.extend(others.first.iter().take(room).cloned());
    }

    /// Counts `records` records before those that were counted.
    pub(crate) fn behind(mut self, records: u64) -> Skipped {
        self.first.iter_mut().for_each(|skipped| skipped.record += records);
        self
    }

    /// Of a part or a manifest.
    pub(crate) fn read(statistics: &serde_json::Map<String, serde_json::Value>) -> Skipped {
        let found = statistics.get(SKIPPED).cloned();
        found.and_then(|found| serde_json::from_value(found).ok()).unwrap_or_default()
    }

    /// Puts them among statistics, where there are some.
    pub(crate) fn write(&self, statistics: &mut serde_json::Map<String, serde_json::Value>) {
        if !self.is_none() {
            // Counts and texts are always JSON.
            statistics.insert(SKIPPED.to_string(), serde_json::to_value(self).unwrap_or_default());
        }
    }

    /// Warns of each that is listed; `before` were left out earlier.
    pub(crate) fn warn(&self, before: u64) {
        let listed = usize::try_from(before).unwrap_or(usize::MAX);
        for skipped in self.first.iter().take(MOST_LISTED.saturating_sub(listed)) {
            windrow_core::warn!("left out: {skipped}");
        }
        if before < MOST_LISTED as u64 && before + self.count >= MOST_LISTED as u64 {
            windrow_core::warn!("more records that are left out are counted, and not named");
        }
    }

    /// That they are at most the share `most` of all; beside them `documents` were taken.
    ///
    /// # Errors
    /// `Corrupt` naming the first.
    pub(crate) fn judge(&self, documents: u64, most: Option<f64>) -> Result<()> {
        let (Some(most), Some(first)) = (most, self.first.first()) else { return Ok(()) };
        let all = documents + self.count;
        let share = self.count as f64 / all as f64;
        if documents > 0 && share <= most {
            return Ok(());
        }
        let (share, most) = (100.0 * share, 100.0 * most);
        Err(Error::corrupt(format!(
            "{} of {all} records are damaged, {share:.3} %, and at most {most} % may be left out; the first: {first}",
            self.count
        ))
        .field("max_skipped")
        .hint("mend the data, or allow a larger share with @max_skipped@"))
    }

    /// That not all of many are left out: then the data is another one than was meant.
    ///
    /// # Errors
    /// `Corrupt` naming the first.
    pub(crate) fn check_begun(&self, documents: u64) -> Result<()> {
        match self.first.first() {
            Some(first) if documents == 0 && self.count >= MOST_BEFORE_THE_FIRST => Err(Error::corrupt(
                format!("all of the first {} records are damaged; the first: {first}", self.count),
            )
            .hint("look whether it is the right data, and the right field")),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for SkippedRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.file.as_deref().map_or_else(String::new, |file| format!("{file}, "));
        let byte = self.byte.map_or_else(String::new, |byte| format!(", byte {byte}"));
        write!(f, "{file}record {}{byte}: {}", self.record, self.error)
    }
}

/// That what a manifest says was left out is at most this share.
///
/// # Errors
/// As [`Skipped::judge`].
pub(crate) fn judge(manifest: &Manifest, most: Option<f64>) -> Result<()> {
    let documents = manifest.statistics.get("documents").and_then(serde_json::Value::as_u64).unwrap_or(0);
    Skipped::read(&manifest.statistics).judge(documents, most)
}

/// Whether a record with this error may be left out: it is the record's fault, not the file's nor the options'.
pub(crate) fn may_be(error: &Error) -> bool {
    error.kind() == Kind::Corrupt
}

/// Adds to an error, where nothing is left out, the option that leaves records out.
pub(crate) fn not_left_out(error: Error) -> Error {
    if !may_be(&error) {
        return error;
    }
    let hint = error.hint_text().map_or_else(String::new, |hint| format!("{hint}; "));
    error.hint(format!("{hint}@skip_corrupt=true@ leaves such records out"))
}

/// Whether a last line ends within its JSON: the file is a part of one, and what else it lacks cannot be counted.
pub(crate) fn is_cut(line: &[u8]) -> bool {
    let cut = |e: &serde_json::Error| e.is_eof();
    !line.trim_ascii().is_empty()
        && serde_json::from_slice::<serde::de::IgnoredAny>(line).as_ref().is_err_and(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(count: u64) -> Skipped {
        let mut skipped = Skipped::default();
        (0..count).for_each(|record| skipped.add(SkippedRecord::of(&Error::corrupt("x"), record)));
        skipped
    }

    #[test]
    fn a_share_is_of_all_records_and_one_that_is_reached_is_allowed() {
        for (count, documents, most, is_good) in [
            (0, 0, Some(0.0), true),
            (1, 99, Some(0.01), true),
            (1, 98, Some(0.01), false),
            (1, 0, Some(1.0), false),
            (9, 1, Some(1.0), true),
            (9, 1, None, true),
        ] {
            assert_eq!(some(count).judge(documents, most).is_ok(), is_good, "{count} {documents} {most:?}");
        }
        let error = some(3).judge(7, Some(0.01)).unwrap_err();
        assert!(
            error.message().starts_with("3 of 10 records are damaged, 30.000 %, and at most 1 %"),
            "{error}"
        );
        assert!(some(10_000).check_begun(0).is_err());
        assert!(some(10_000).check_begun(1).is_ok() && some(9_999).check_begun(0).is_ok());
    }

    #[test]
    fn all_are_counted_and_the_first_are_told_in_their_order() {
        let mut all = some(15);
        all.extend(&some(15).behind(100));
        assert_eq!((all.count, all.first.len()), (30, 20));
        assert_eq!([14, 15].map(|at: usize| all.first[at].record), [14, 100]);
    }

    #[test]
    fn a_last_line_that_ends_within_its_json_is_cut() {
        for (line, want) in [
            (r#"{"text": "ab"#, true),
            ("{", true),
            ("{\"text\": \"caf\u{e9}", true),
            (r#"{"text": 1}"#, false),
            ("not JSON", false),
            (" ", false),
            ("", false),
        ] {
            assert_eq!(is_cut(line.as_bytes()), want, "{line}");
        }
        assert!(is_cut(b"{\"text\": \"caf\xc3"));
    }
}
