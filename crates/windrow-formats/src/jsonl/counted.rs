//! Lines of files of which a manifest declares how many each has: a file is looked through when a line of it is first read.

use std::slice;
use std::sync::OnceLock;

use windrow_core::format::data_files::DataFiles;
use windrow_core::format::lines::is_named;
use windrow_core::format::{Format, Probe, later};
use windrow_core::store::plain_name;
use windrow_core::{Error, Kind, Result};

use super::{Jsonl, Starts};
use crate::firsts::Firsts;
use crate::foreign;
use crate::json_lines::{Row, Rows};

/// Bytes of a file that is not looked through yet that are asked for ahead.
const AHEAD: u64 = 1 << 20;

/// The lines of files, counted before.
pub(super) struct Counted {
    firsts: Firsts,
    /// Where the lines of each file begin, once it was looked through.
    starts: Vec<OnceLock<Box<[u64]>>>,
}

impl Counted {
    /// These files and their lines, where it is declared how many each has.
    ///
    /// # Errors
    /// As [`DataFiles::checked_by`].
    pub(super) fn declared(probe: &Probe, keys: &[String]) -> Result<Option<(Counted, DataFiles)>> {
        // Whether a file of another name holds lines, its content shows.
        let are_plain = keys.iter().all(|key| is_named(key) && plain_name(key) == key);
        let counts = later::counts(Jsonl.name(), probe, keys).filter(|_| are_plain);
        let Some((counts, files)) = counts.zip(DataFiles::declared(Jsonl.name(), probe, keys)) else {
            return Ok(None);
        };
        let mut firsts = Firsts::new();
        for (file, count) in counts.into_iter().enumerate() {
            // A line has a byte.
            if count > files.size(file)? || firsts.checked_push(count).is_none() {
                return Ok(None);
            }
        }
        let starts = keys.iter().map(|_| OnceLock::new()).collect();
        Ok(Some((Counted { firsts, starts }, files.checked_by(foreign::refuse_as_text)?)))
    }

    // Where the lines of a file begin.
    fn starts(&self, file: usize, files: &DataFiles) -> Result<&[u64]> {
        match self.starts[file].get() {
            Some(starts) => Ok(starts),
            None => self.look_through(file, files),
        }
    }

    #[cold]
    fn look_through(&self, file: usize, files: &DataFiles) -> Result<&[u64]> {
        let found = Starts::scan(slice::from_ref(files.object(file)?))?.starts;
        let (found_count, declared) = (found.len() as u64, self.firsts.count_of(file));
        if found_count != declared {
            return Err(Error::new(
                Kind::Stale,
                format!("the manifest says {declared} lines, found {found_count}"),
            )
            .at(files.name(file))
            .hint("`windrow manifest` lists the folder again"));
        }
        Ok(self.starts[file].get_or_init(|| found.into()))
    }
}

impl Rows for Counted {
    fn count(&self) -> u64 {
        self.firsts.count()
    }

    fn row(&self, record: u64, files: &DataFiles) -> Result<Row> {
        let (file, line) = self.firsts.find(record)?;
        let starts = self.starts(file, files)?;
        // It was found to have the lines that are declared.
        let (start, next) = (starts[line as usize], starts.get(line as usize + 1));
        let end = next.map_or_else(|| files.size(file), |next| Ok(*next))?;
        Ok(Row { file, start, size: end - start })
    }

    fn ahead(&self, record: u64, files: &DataFiles) -> Option<Row> {
        let (file, _) = self.firsts.find(record).ok()?;
        match self.starts[file].get() {
            Some(_) => self.row(record, files).ok(),
            None => Some(Row { file, start: 0, size: files.size(file).ok()?.min(AHEAD) }),
        }
    }
}
