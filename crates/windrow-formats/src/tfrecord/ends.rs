//! Where the frames of a file end: found by one walk over their lengths, kept in the cache where there are many.
//!
//! The table is the end of each frame, u64 little-endian. Only the version that wrote it reads it; what the walk did not find
//! is an error there, too.

use std::io::Write;
use std::ops::Range;

use windrow_core::store::{Draft, Memory, Store, cached};
use windrow_core::{Error, Kind, Result};

use super::{AFTER, BEFORE, Shared, length};

/// Part of the cache file's name: another number, and every table is made anew.
const VERSION: &str = "frames 1";
const WIDTH: u64 = 8;
/// Files up to this size are walked through each time.
const SHORT: u64 = 4 << 20;

/// The ends of a file's frames.
pub(super) struct Ends {
    table: Shared,
    /// Bytes of the file.
    size: u64,
}

impl Ends {
    /// Walks through the file, or takes the table from the cache.
    ///
    /// # Errors
    /// `Corrupt` with the byte of a frame that is not one.
    pub(super) fn of(object: Shared) -> Result<Ends> {
        let size = object.size();
        if size > SHORT {
            match cached(object.as_ref(), "places of records", VERSION, |draft: &mut Draft| {
                walk(&object, draft)
            }) {
                Ok(table) => return Ends { table, size }.checked(),
                Err(e) if e.kind() != Kind::Io && e.kind() != Kind::Config => return Err(e),
                Err(e) => log::warn!(
                    "the places of the records of {} are held in memory, as the cache cannot keep them: {e}",
                    object.name()
                ),
            }
        }
        let mut bytes = Vec::new();
        walk(&object, &mut bytes)?;
        let name = object.name();
        Ends { table: Memory::new().with(name, bytes).open(name)?, size }.checked()
    }

    fn checked(self) -> Result<Ends> {
        let last = match self.count() {
            0 => 0,
            count => self.end(count - 1)?,
        };
        match self.table.size().is_multiple_of(WIDTH) && last == self.size {
            true => Ok(self),
            false => Err(self.damaged()),
        }
    }

    fn damaged(&self) -> Error {
        Error::corrupt("a file of the cache is damaged")
            .at(self.table.name())
            .hint("delete it: it is made anew")
    }

    /// Records in the file.
    pub(super) fn count(&self) -> u64 {
        self.table.size() / WIDTH
    }

    fn end(&self, record: u64) -> Result<u64> {
        let mut scratch = Vec::new();
        let bytes = self.table.read(record * WIDTH, WIDTH as usize, &mut scratch)?;
        bytes.first_chunk::<8>().map(|word| u64::from_le_bytes(*word)).ok_or_else(|| self.damaged())
    }

    /// The frame of a record that is there.
    ///
    /// # Errors
    /// `Corrupt` when the cache was damaged.
    pub(super) fn frame(&self, record: u64) -> Result<Range<u64>> {
        let start = if record == 0 { 0 } else { self.end(record - 1)? };
        let end = self.end(record)?;
        let least = start.checked_add(BEFORE + AFTER);
        match least.is_some_and(|least| least <= end) && end <= self.size {
            true => Ok(start..end),
            false => Err(self.damaged()),
        }
    }
}

fn walk(object: &Shared, out: &mut dyn Write) -> Result<()> {
    let failed = |cause: std::io::Error| match cause.downcast::<Error>() {
        Ok(error) => error,
        Err(cause) => Error::new(Kind::Io, "cannot keep the places of records").caused_by(cause),
    };
    let mut at = 0;
    while at < object.size() {
        at += BEFORE + length(object.as_ref(), at)? + AFTER;
        out.write_all(&at.to_le_bytes()).map_err(failed)?;
    }
    Ok(())
}
