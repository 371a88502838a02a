//! Samples of archives: their key and members, decoded by suffix.

use std::ops::Range;

use windrow_core::format::{Format, Options};
use windrow_core::store::{Object, at_once};
use windrow_core::{Array, DType, Error, Kind as ErrorKind, Result, Row, Value};

use super::WebDataset;
use super::names::{key_and_suffix, key_text};
use super::table::{MOST_SUFFIXES, Table, too_many};
use super::tar::Walk;
use super::values::{Coding, Holds};
use crate::firsts::Firsts;
use crate::npy::{Header, MOST_PREFIX};
use windrow_core::format::columns::{self, Column, Found, Kind};
use windrow_core::format::data_files::DataFiles;

/// The column of the key, beside those of the suffixes.
pub(super) const KEY: &str = "__key__";
/// The name of the column that is the record itself.
const WHOLE: &str = "";

/// An archive with its samples.
struct Shard {
    table: Table,
    /// Numbers of samples that are left out; sorted, each below the number of samples.
    excluded: Vec<u64>,
}

impl Shard {
    fn count(&self) -> u64 {
        self.table.count() - self.excluded.len() as u64
    }

    // The number in the archive of a sample that is not left out.
    fn number(&self, local: u64) -> u64 {
        let before = |at: usize| self.excluded[at] - at as u64;
        let (mut low, mut high) = (0, self.excluded.len());
        while low < high {
            let middle = low.midpoint(high);
            if before(middle) <= local { low = middle + 1 } else { high = middle }
        }
        local + low as u64
    }
}

/// The samples of some archives.
pub(super) struct Samples {
    files: DataFiles,
    shards: Vec<Shard>,
    firsts: Firsts,
    columns: Vec<Column>,
    /// A row has all the columns that are asked for, with null for members that a sample lacks.
    fills: bool,
}

/// A sample: where its members are.
struct Sample {
    file: usize,
    key: String,
    /// By suffix.
    members: Vec<(String, Range<u64>)>,
}

impl Sample {
    fn member(&self, suffix: &str) -> Option<&Range<u64>> {
        self.members.iter().find(|(name, _)| name == suffix).map(|(_, place)| place)
    }
}

impl Samples {
    /// The samples of these files, those numbers of each left out.
    ///
    /// # Errors
    /// What walking through the archives says.
    pub(super) fn open(files: DataFiles, excluded: Vec<Vec<u64>>, options: &Options) -> Result<Samples> {
        let (mut shards, mut firsts) = (Vec::new(), Firsts::new());
        for (file, excluded) in excluded.into_iter().enumerate() {
            let object = files.object(file)?.clone();
            let table = Table::of(&object)?;
            if let Some(number) = excluded.last().filter(|number| **number >= table.count()) {
                return Err(Error::corrupt(format!(
                    "sample {number} is excluded, of an archive of {} samples",
                    table.count()
                ))
                .at(object.name())
                .field("exclude"));
            }
            let shard = Shard { table, excluded };
            firsts.push(shard.count());
            shards.push(shard);
        }
        let mut suffixes: Vec<&str> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for (file, shard) in shards.iter().enumerate() {
            suffixes
                .extend(shard.table.suffixes.iter().map(String::as_str).filter(|name| known.insert(*name)));
            if suffixes.len() > MOST_SUFFIXES {
                return Err(too_many(files.get(file)?));
            }
        }
        let is_uniform = shards
            .iter()
            .filter(|shard| shard.table.count() > 0)
            .all(|shard| shard.table.is_uniform && shard.table.suffixes.len() == suffixes.len());
        let column = |name: &str, holds: &str, kind| {
            let (name, holds) = (name.to_string(), holds.to_string());
            Column { name, holds, exact: String::new(), kind }
        };
        // Samples with other members each are records of their own, not rows of the same columns.
        let columns = if is_uniform || options.column.is_some() || options.columns.is_some() {
            let of = |suffix: &&str| column(suffix, Coding::of(suffix).describe(), Coding::of(suffix).kind());
            std::iter::once(column(KEY, "text", Kind::Value)).chain(suffixes.iter().map(of)).collect()
        } else {
            vec![column(WHOLE, "members by suffix", Kind::Value)]
        };
        Ok(Samples { columns, files, shards, firsts, fills: options.columns.is_some() })
    }

    // The archive of a sample, and where its headers and members are.
    fn place(&self, sample: u64) -> Result<(usize, Range<u64>)> {
        let (file, number) = self.firsts.find(sample)?;
        let shard = &self.shards[file];
        Ok((file, shard.table.range(shard.number(number))?))
    }

    fn sample(&self, sample: u64) -> Result<Sample> {
        let (file, place) = self.place(sample)?;
        let object = self.files.get(file)?;
        let mut found = Sample { file, key: String::new(), members: Vec::new() };
        let start = place.start;
        let mut walk = Walk::within(object, place);
        while let Some(member) = walk.member().map_err(|e| e.record(sample))? {
            let Some((key, suffix)) = key_and_suffix(&member.name) else { continue };
            if found.members.is_empty() {
                found.key = key_text(key);
            }
            if suffix == KEY || found.member(&suffix).is_some() {
                let name = String::from_utf8_lossy(&member.name);
                return Err(Error::corrupt(format!(
                    "the sample {:?} has {suffix:?} twice: {name:?}",
                    found.key
                ))
                .at(object.name())
                .record(sample)
                .byte(member.first)
                .field(suffix)
                .hint("the members of a sample have different suffixes"));
            }
            found.members.push((suffix, member.data));
        }
        if found.members.is_empty() {
            Err(Error::new(ErrorKind::Stale, "the file changed after it was opened")
                .at(object.name())
                .record(sample)
                .byte(start))
        } else {
            Ok(found)
        }
    }

    // What `take` makes of the bytes of a member; its error names the member.
    fn with<T>(
        &self,
        number: u64,
        sample: &Sample,
        suffix: &str,
        place: &Range<u64>,
        take: impl FnOnce(Coding, &[u8]) -> Result<T>,
    ) -> Result<T> {
        let (object, coding) = (self.files.get(sample.file)?, Coding::of(suffix));
        let mut scratch = Vec::new();
        let bytes = read(object, place, &mut scratch).map_err(|e| e.record(number))?;
        take(coding, bytes).map_err(|e| member_error(e, object, number, sample, suffix, place))
    }

    fn value(&self, number: u64, sample: &Sample, suffix: &str, place: &Range<u64>) -> Result<Value> {
        self.with(number, sample, suffix, place, Coding::value)
    }

    // The member that is the record.
    fn of_record<'s>(&self, number: u64, sample: &'s Sample, suffix: &str) -> Result<&'s Range<u64>> {
        sample.member(suffix).ok_or_else(|| {
            let names: Vec<&str> = sample.members.iter().map(|(name, _)| name.as_str()).collect();
            let object = self.files.name(sample.file);
            Error::corrupt(format!("the sample {:?} has no member {suffix:?}", sample.key))
                .at(object)
                .record(number)
                .field(suffix)
                .hint(format!("its members: {}", names.join(", ")))
        })
    }

    // The array of a member that is not there as numbers: compressed, JSON, or in another order.
    fn array_in(&self, number: u64, sample: &Sample, suffix: &str, dtype: Option<DType>) -> Result<Array> {
        let place = self.of_record(number, sample, suffix)?;
        self.with(number, sample, suffix, place, |coding, bytes| {
            let array = coding.array(bytes)?;
            match dtype {
                None => Ok(array),
                Some(dtype) => {
                    Ok(Array { shape: vec![whole_numbers(array.bytes.len() as u64, dtype)?], dtype, ..array })
                }
            }
        })
    }
}

fn whole_numbers(size: u64, dtype: DType) -> Result<u64> {
    match size % dtype.size() as u64 {
        0 => Ok(size / dtype.size() as u64),
        _ => Err(Error::corrupt(format!("{size} bytes, expected {dtype} numbers"))),
    }
}

// The bytes of a member.
fn read<'a>(object: &'a dyn Object, place: &Range<u64>, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    let size = at_once(place.end - place.start).map_err(|e| e.at(object.name()))?;
    object.read(place.start, size, scratch)
}

// What is wrong with a member, with its name and place.
fn member_error(
    error: Error,
    object: &dyn Object,
    number: u64,
    sample: &Sample,
    suffix: &str,
    place: &Range<u64>,
) -> Error {
    if matches!(error.kind(), ErrorKind::Io | ErrorKind::Memory | ErrorKind::Interrupted | ErrorKind::Stale) {
        return error.record(number);
    }
    let byte = place.start + error.place().byte.unwrap_or(0);
    let hint = error.hint_text().unwrap_or("@columns@ leaves it out").to_string();
    Error::corrupt(format!("the member {:?}: {}", format!("{}.{suffix}", sample.key), error.message()))
        .at(object.name())
        .record(number)
        .byte(byte)
        .field(suffix)
        .hint(hint)
}

impl columns::Samples for Samples {
    fn format(&self) -> &'static str {
        WebDataset.name()
    }

    fn count(&self) -> u64 {
        self.firsts.count()
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn row(&self, sample: u64, columns: &[usize]) -> Result<Row> {
        let found = self.sample(sample)?;
        if let [Column { name, .. }] = self.columns.as_slice()
            && name == WHOLE
        {
            let key = std::iter::once(Ok((KEY.to_string(), Value::Text(found.key.clone()))));
            let members = found
                .members
                .iter()
                .map(|(suffix, place)| Ok((suffix.clone(), self.value(sample, &found, suffix, place)?)));
            let row: Row = key.chain(members).collect::<Result<_>>()?;
            return Ok(Row::from_iter([(WHOLE, row)]));
        }
        let mut row = Row::new();
        for column in columns {
            let name = &self.columns[*column].name;
            let value = match (name == KEY, found.member(name)) {
                (true, _) => Value::Text(found.key.clone()),
                (false, Some(place)) => self.value(sample, &found, name, place)?,
                (false, None) if self.fills => Value::Null,
                (false, None) => continue,
            };
            row.insert(name.clone(), value);
        }
        Ok(row)
    }

    fn array(&self, sample: u64, column: usize, dtype: Option<DType>) -> Result<Found> {
        let found = self.sample(sample)?;
        let suffix = &self.columns[column].name;
        let place = self.of_record(sample, &found, suffix)?;
        let (object, coding) = (self.files.get(found.file)?, Coding::of(suffix));
        let wrong = |e| member_error(e, object, sample, &found, suffix, place);
        if !coding.is_packed {
            let size = place.end - place.start;
            if let Some(dtype) = dtype {
                let shape = vec![whole_numbers(size, dtype).map_err(wrong)?];
                return Ok(Found { dtype, shape: shape.into(), file: found.file, start: place.start });
            }
            if coding.holds == Holds::Npy {
                let mut scratch = Vec::new();
                let head = place.start..place.start + size.min(MOST_PREFIX as u64);
                let head = read(object, &head, &mut scratch).map_err(|e| e.record(sample))?;
                let header = Header::of_prefix(head, size, object.name()).map_err(wrong)?;
                if !header.fortran && !header.element.big_endian {
                    let start = place.start + header.data_start;
                    return Ok(Found {
                        dtype: header.element.dtype,
                        shape: header.shape.into(),
                        file: found.file,
                        start,
                    });
                }
            }
        }
        let array = self.array_in(sample, &found, suffix, dtype)?;
        Ok(Found { dtype: array.dtype, shape: array.shape.into(), file: found.file, start: 0 })
    }

    fn bytes<'a>(
        &'a self,
        sample: u64,
        column: usize,
        found: &Found,
        start: u64,
        size: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        // No member begins at byte 0, where the header of the first one is: what begins there is made.
        if found.start > 0 {
            return self.files.get(found.file)?.read(start, size, scratch);
        }
        let suffix = &self.columns[column].name;
        let member = self.sample(sample)?;
        let dtype = (Coding::of(suffix).holds == Holds::Bytes).then_some(found.dtype);
        *scratch = self.array_in(sample, &member, suffix, dtype)?.bytes;
        columns::part(scratch, start, size, sample)
    }

    fn is_stored(&self, _column: usize, found: &Found) -> Result<bool> {
        Ok(found.start > 0)
    }

    fn locate(&self, sample: u64, column: Option<usize>) -> Result<(String, Range<u64>)> {
        let (file, place) = self.place(sample)?;
        let place = match column.map(|column| &self.columns[column].name) {
            Some(name) if name != KEY && name != WHOLE => {
                let found = self.sample(sample)?;
                found.member(name).cloned().unwrap_or(place)
            }
            _ => place,
        };
        Ok((self.files.name(file), place))
    }

    fn prefetch(&self, sample: u64) {
        if let Ok((file, place)) = self.place(sample) {
            self.files.prefetch(file, place.start, place.end - place.start);
        }
    }

    fn files(&self) -> &DataFiles {
        &self.files
    }

    fn fingerprint(&self, of: &str) -> Result<u64> {
        let excluded: Vec<u8> =
            self.shards.iter().flat_map(|shard| &shard.excluded).flat_map(|n| n.to_le_bytes()).collect();
        self.files.fingerprint(&[WebDataset.name().as_bytes(), of.as_bytes(), &excluded])
    }
}
