//! Where the frames of a file end: found by one walk over their lengths, kept in the cache where there are many.
//!
//! The table is the end of each frame, u64 little-endian. Only the version that wrote it reads it; what the walk did not find
//! is an error there, too.

use std::io::Write;
use std::ops::Range;

use windrow_core::store::{Draft, Memory, Store, cached};
use windrow_core::{Error, Kind, Result};

use super::{AFTER, BEFORE, Shared, index, length};

/// Part of the cache file's name: a new number makes every table be made again.
const VERSION: &str = "frames 1";
const WIDTH: u64 = 8;
/// Files up to this size are walked through each time.
const SHORT: u64 = 4 << 20;

/// The ends of a file's frames.
pub(super) struct Ends {
    table: Shared,
    /// Bytes of the file.
    size: u64,
    /// The index that lists them, where they were not walked through.
    listed_by: Option<String>,
}

impl Ends {
    /// Walks through the file, or takes the table from the cache, or a large file's from the index that `find_index` finds.
    ///
    /// # Errors
    /// `Corrupt` with the byte of a frame that is not one.
    pub(super) fn of(object: Shared, find_index: impl FnOnce() -> Option<Shared>) -> Result<Ends> {
        let size = object.size();
        if size > SHORT {
            if let Some(listed) = find_index().and_then(|index| Ends::listed(&index, size)) {
                return Ok(listed);
            }
            match cached(object.as_ref(), "places of records", VERSION, |draft: &mut Draft| {
                walk(&object, draft)
            }) {
                Ok(table) => return Ends { table, size, listed_by: None }.checked(),
                Err(e) if e.kind() != Kind::Io && e.kind() != Kind::Config => return Err(e),
                Err(e) => windrow_core::warn!(
                    "the places of the records of {} are held in memory, as the cache cannot keep them: {e:#}",
                    object.name()
                ),
            }
        }
        let mut bytes = Vec::new();
        walk(&object, &mut bytes)?;
        let name = object.name();
        Ends { table: Memory::new().with(name, bytes).open(name)?, size, listed_by: None }.checked()
    }

    // As an index lists them; `None` where it does not fit the file.
    fn listed(index: &Shared, size: u64) -> Option<Ends> {
        let listed = cached(index.as_ref(), "places of records", index::VERSION, |draft: &mut Draft| {
            index::ends(index.as_ref(), size, draft)
        });
        let listed_by = Some(index.name().to_string());
        let found = listed.and_then(|table| Ends { table, size, listed_by }.checked());
        found.map_err(|e| windrow_core::warn!("the index {} is not used: {e:#}", index.name())).ok()
    }

    /// The index that lists the frames: each of them is compared with it when it is read.
    pub(super) fn listed_by(&self) -> Option<&str> {
        self.listed_by.as_deref()
    }

    fn checked(self) -> Result<Ends> {
        let last = match self.count() {
            0 => 0,
            count => self.end(count - 1)?,
        };
        if self.table.size().is_multiple_of(WIDTH) && last == self.size {
            Ok(self)
        } else {
            Err(self.damaged())
        }
    }

    fn damaged(&self) -> Error {
        Error::corrupt("a file of the cache is damaged")
            .at(self.table.name())
            .hint("delete it: it is made again")
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
        if least.is_some_and(|least| least <= end) && end <= self.size {
            Ok(start..end)
        } else {
            Err(self.damaged())
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
