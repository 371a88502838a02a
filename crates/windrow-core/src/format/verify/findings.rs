//! What `verify` looked at, and what was wrong with it.

use serde::{Deserialize, Serialize};

use crate::error::Result;

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

/// What was looked at and what was wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Data files that were read.
    pub checked_files: u64,
    /// Bytes that were read.
    pub checked_bytes: u64,
    /// Records that were looked at.
    pub checked_records: u64,
    /// Declared values that do not hold, the first thousand of them.
    pub problems: Vec<Problem>,
    /// How many there are in all.
    pub n_problems: u64,
    /// What could not be checked, what was left behind, what was tidied up.
    pub notes: Vec<String>,
}

impl Findings {
    /// Adds one.
    pub fn problem(&mut self, file: &str, record: Option<u64>, what: &str, expected: String, found: String) {
        const MOST: u64 = 1_000;
        if self.n_problems < MOST {
            let (file, what) = (file.to_string(), what.to_string());
            self.problems.push(Problem { file, record, what, expected, found });
        }
        self.n_problems += 1;
    }

    /// Adds those of other data; `name` gives a file's name here.
    pub fn take_all(&mut self, other: Findings, name: &dyn Fn(&str) -> String) {
        let kept = other.problems.len() as u64;
        for problem in other.problems {
            let file = name(&problem.file);
            self.problem(&file, problem.record, &problem.what, problem.expected, problem.found);
        }
        self.n_problems += other.n_problems - kept;
        self.checked_files += other.checked_files;
        self.checked_bytes += other.checked_bytes;
        self.checked_records += other.checked_records;
        self.notes.extend(other.notes);
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
    use crate::error::{Error, Kind};

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
