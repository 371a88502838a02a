//! Where the samples of an archive are: found by one walk over its headers, kept in the cache where there are many bytes.
//!
//! The table is the place of each sample's first header and the end of the last sample, u64 little-endian; then the suffixes of
//! all members as JSON, the number of samples, the size of that JSON, and whether all samples have the same suffixes. Only
//! the version that wrote it reads it.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use windrow_core::store::{Draft, Memory, Object, Store, cached};
use windrow_core::{Error, Kind, Result};

use super::names::key_and_suffix;
use super::tar::Walk;

/// Part of the cache file's name: a new number makes every table be made again.
const VERSION: &str = "tar samples 1";
const WIDTH: u64 = 8;
/// Bytes behind the suffixes.
const TAIL: u64 = 3 * WIDTH;
/// Archives up to this size are walked through each time.
const SHORT: u64 = 4 << 20;
/// More suffixes are those of names with a dot in what should be their key.
pub(super) const MOST_SUFFIXES: usize = 10_000;

/// The samples of an archive.
pub(super) struct Table {
    table: Arc<dyn Object>,
    count: u64,
    /// Those of all members, in the order in which they first come.
    pub(super) suffixes: Vec<String>,
    /// Whether every sample has all of them.
    pub(super) is_uniform: bool,
    /// Bytes of the archive.
    size: u64,
}

impl Table {
    /// Walks through the archive, or takes the table from the cache.
    ///
    /// # Errors
    /// What the walk says; `Unsupported` for very many suffixes.
    pub(super) fn of(object: &Arc<dyn Object>) -> Result<Table> {
        let size = object.size();
        if size > SHORT {
            match cached(object.as_ref(), "places of records", VERSION, |draft: &mut Draft| {
                walk(object.as_ref(), draft)
            }) {
                Ok(table) => return Table::read(table, size),
                Err(e) if e.kind() != Kind::Io && e.kind() != Kind::Config => return Err(e),
                Err(e) => windrow_core::warn!(
                    "the places of the records of {} are held in memory, as the cache cannot keep them: {e:#}",
                    object.name()
                ),
            }
        }
        let mut bytes = Vec::new();
        walk(object.as_ref(), &mut bytes)?;
        let name = object.name();
        Table::read(Memory::new().with(name, bytes).open(name)?, size)
    }

    fn read(table: Arc<dyn Object>, size: u64) -> Result<Table> {
        let damaged = || damaged(table.as_ref());
        let tail = table.size().checked_sub(TAIL).ok_or_else(damaged)?;
        let [count, text, uniform] = [0, 1, 2].map(|at| word(table.as_ref(), tail + at * WIDTH));
        let (count, text, is_uniform) = (count?, text?, uniform? == 1);
        let places = count.checked_add(1).and_then(|places| places.checked_mul(WIDTH));
        let suffixes = places.filter(|places| places.checked_add(text) == Some(tail)).ok_or_else(damaged)?;
        let mut scratch = Vec::new();
        let text = table.read(suffixes, text as usize, &mut scratch)?;
        let suffixes = serde_json::from_slice(text).map_err(|_| damaged())?;
        let found = Table { count, suffixes, is_uniform, size, table };
        if found.place(count)? <= size { Ok(found) } else { Err(found.damaged()) }
    }

    fn damaged(&self) -> Error {
        damaged(self.table.as_ref())
    }

    /// How many samples there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Where the sample's first header begins; of one behind the last, where that ends.
    pub(super) fn place(&self, sample: u64) -> Result<u64> {
        word(self.table.as_ref(), sample * WIDTH)
    }

    /// The headers and members of a sample that is there.
    ///
    /// # Errors
    /// `Corrupt` when the cache was damaged.
    pub(super) fn range(&self, sample: u64) -> Result<Range<u64>> {
        let (start, end) = (self.place(sample)?, self.place(sample + 1)?);
        if start < end && end <= self.size { Ok(start..end) } else { Err(self.damaged()) }
    }
}

fn damaged(table: &dyn Object) -> Error {
    Error::corrupt("a file of the cache is damaged").at(table.name()).hint("delete it: it is made again")
}

fn word(table: &dyn Object, at: u64) -> Result<u64> {
    let mut scratch = Vec::new();
    let bytes = table.read(at, WIDTH as usize, &mut scratch)?;
    bytes.first_chunk::<8>().map(|word| u64::from_le_bytes(*word)).ok_or_else(|| damaged(table))
}

/// The suffixes that were seen, and whether samples differ in theirs.
#[derive(Default)]
struct Suffixes {
    numbers: HashMap<String, usize>,
    names: Vec<String>,
    /// Of the first sample, and of the current one; sorted, each once.
    first: Option<Vec<usize>>,
    current: Vec<usize>,
    differ: bool,
}

impl Suffixes {
    // One more member of the current sample.
    fn add(&mut self, suffix: String) {
        let next = self.names.len();
        let number = *self.numbers.entry(suffix).or_insert_with_key(|suffix| {
            self.names.push(suffix.clone());
            next
        });
        if let Err(at) = self.current.binary_search(&number) {
            self.current.insert(at, number);
        }
    }

    // The current sample is whole.
    fn end_sample(&mut self) {
        let current = std::mem::take(&mut self.current);
        match &self.first {
            None => self.first = Some(current),
            Some(first) => self.differ |= *first != current,
        }
    }
}

fn walk(object: &dyn Object, out: &mut dyn Write) -> Result<()> {
    let failed = |cause: std::io::Error| match cause.downcast::<Error>() {
        Ok(error) => error,
        Err(cause) => Error::new(Kind::Io, "cannot keep the places of records").caused_by(cause),
    };
    let (mut walk, mut suffixes) = (Walk::whole(object), Suffixes::default());
    let (mut key, mut count, mut end) = (None, 0u64, 0);
    while let Some(member) = walk.member()? {
        let Some((of, suffix)) = key_and_suffix(&member.name) else { continue };
        if key.as_deref() != Some(of) {
            if count > 0 {
                suffixes.end_sample();
            }
            out.write_all(&member.first.to_le_bytes()).map_err(failed)?;
            count += 1;
            key = Some(of.to_vec());
        }
        end = member.end();
        suffixes.add(suffix);
        if suffixes.names.len() > MOST_SUFFIXES {
            return Err(too_many(object).byte(member.first));
        }
    }
    if count > 0 {
        suffixes.end_sample();
    }
    let text = serde_json::Value::from(suffixes.names).to_string();
    for part in [
        &end.to_le_bytes()[..],
        text.as_bytes(),
        &count.to_le_bytes(),
        &(text.len() as u64).to_le_bytes(),
        &u64::from(!suffixes.differ).to_le_bytes(),
    ] {
        out.write_all(part).map_err(failed)?;
    }
    Ok(())
}

/// The error of data whose members have very many suffixes.
pub(super) fn too_many(object: &dyn Object) -> Error {
    Error::unsupported(format!("members with more than {MOST_SUFFIXES} different suffixes"))
        .at(object.name())
        .hint("a suffix is all that follows the first dot of a name: the key of a sample has no dot")
}
