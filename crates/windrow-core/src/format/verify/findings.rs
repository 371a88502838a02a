//! What `verify` looked at, and what was wrong with it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A declared value that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// The record, where it is one record's problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// What was looked at: `size`, `xxh3`, `records`, `row`, `id`, `JSON`, …
    pub what: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// What is known of a file once it was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A checksum covers it, and holds.
    Checked,
    /// It was read, and there was no checksum to compare: a changed value is not seen.
    Read,
    /// A problem names it.
    Bad,
}

/// A file that was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// What is known of it.
    pub state: State,
    /// The checksum that covers it, of a file that is [`State::Checked`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What was looked at and what was wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Every data file, and every file with a problem, by its name below what was verified.
    pub files: BTreeMap<String, Verified>,
    /// Those that are [`State::Checked`].
    pub checked_files: u64,
    /// Those that are [`State::Read`].
    pub read_files: u64,
    /// Those that are [`State::Bad`].
    pub bad_files: u64,
    /// Bytes that were read of data files.
    pub checked_bytes: u64,
    /// Records that were looked at.
    pub checked_records: u64,
    /// Declared values that do not hold, the first thousand of them.
    pub problems: Vec<Problem>,
    /// How many there are in all.
    pub n_problems: u64,
    /// What could not be checked, what was left behind, what was tidied up.
    pub notes: Vec<String>,
    /// The files of all problems, those beyond the first thousand too.
    #[serde(skip)]
    named: BTreeSet<String>,
}

impl Findings {
    /// Adds one.
    pub fn problem(&mut self, file: &str, record: Option<u64>, what: &str, expected: String, found: String) {
        const MOST: u64 = 1_000;
        if !self.named.contains(file) {
            self.named.insert(file.to_string());
        }
        if self.n_problems < MOST {
            let (file, what) = (file.to_string(), what.to_string());
            self.problems.push(Problem { file, record, what, expected, found });
        }
        self.n_problems += 1;
    }

    /// Those of data that cannot be looked at, as `error` says.
    pub fn refused(file: &str, error: &Error) -> Findings {
        let mut findings = Findings::default();
        findings.problem(file, None, "data", "to be there".to_string(), error.message().to_string());
        findings.settle(&BTreeSet::new(), &BTreeMap::new(), &str::to_string);
        findings
    }

    /// Adds those of other data; `name` gives a file's name here.
    pub fn take_all(&mut self, other: Findings, name: &dyn Fn(&str) -> String) {
        let kept = other.problems.len() as u64;
        for problem in other.problems {
            let file = name(&problem.file);
            self.problem(&file, problem.record, &problem.what, problem.expected, problem.found);
        }
        self.n_problems += other.n_problems - kept;
        self.count(other.files.into_iter().map(|(file, verified)| (name(&file), verified)));
        self.checked_bytes += other.checked_bytes;
        self.checked_records += other.checked_records;
        self.notes.extend(other.notes);
    }

    /// The state of all, where any file is bad, else where any was only read; `Read` where there is no file.
    pub fn state(&self) -> State {
        match (self.n_problems, self.read_files, self.checked_files) {
            (1.., ..) => State::Bad,
            (0, 0, 1..) => State::Checked,
            _ => State::Read,
        }
    }

    /// What became of `looked`, the data files, where `covered` are those that a checksum covers, and by which; `name` gives what
    /// the file of a problem is called among them.
    pub(super) fn settle(
        &mut self,
        looked: &BTreeSet<String>,
        covered: &BTreeMap<String, &'static str>,
        name: &dyn Fn(&str) -> String,
    ) {
        // A part of a file is named after it.
        let whole = |file: &String| match file.split_once('#') {
            Some((whole, _)) if looked.contains(whole) => whole.to_string(),
            _ => file.clone(),
        };
        let bad: BTreeSet<String> = self.named.iter().map(|file| whole(&name(file))).collect();
        let state = |file: &String| match covered.get(file) {
            _ if bad.contains(file) => Verified { state: State::Bad, by: None },
            Some(by) => Verified { state: State::Checked, by: Some(by.to_string()) },
            None => Verified { state: State::Read, by: None },
        };
        let files: BTreeMap<String, Verified> =
            looked.union(&bad).map(|file| (file.clone(), state(file))).collect();
        self.count(files.into_iter());
    }

    // Adds these files.
    fn count(&mut self, files: impl Iterator<Item = (String, Verified)>) {
        for (file, verified) in files {
            let Entry::Vacant(place) = self.files.entry(file) else { continue };
            *match verified.state {
                State::Checked => &mut self.checked_files,
                State::Read => &mut self.read_files,
                State::Bad => &mut self.bad_files,
            } += 1;
            place.insert(verified);
        }
    }

    /// What could be had; an error about the data is a problem of `file`, and there is nothing then.
    ///
    /// # Errors
    /// One that is about the run and not about the data.
    pub fn take<T>(
        &mut self,
        file: &str,
        what: &str,
        expected: &str,
        result: Result<T>,
    ) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(e) if e.is_of_the_run() => Err(e),
            Err(e) => {
                self.problem(file, None, what, expected.to_string(), e.message().to_string());
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn what_the_system_refuses_is_an_error_of_the_run_and_what_is_missing_a_finding() {
        let mut findings = Findings::default();
        let mut take = |code| {
            let error = Error::io("open the file", "a.bin", std::io::Error::from_raw_os_error(code));
            findings.take::<()>("a.bin", "file", "to be there", Err(error))
        };
        assert_eq!(take(libc::EMFILE).unwrap_err().kind(), Kind::Io);
        assert_eq!(take(libc::EIO).unwrap_err().kind(), Kind::Io);
        assert_eq!(take(libc::ENOENT).unwrap(), None);
        assert_eq!(findings.n_problems, 1);
    }
}
