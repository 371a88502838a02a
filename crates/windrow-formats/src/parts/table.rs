//! What the manifest says of each part: how many records and values, and the hashes of its files.

use windrow_core::format::Probe;
use windrow_core::manifest::{FileRow, MANIFEST_FILE, Manifest, PartRow};
use windrow_core::output::hex;
use windrow_core::source::Schema;
use windrow_core::store::Entry;
use windrow_core::{DType, Element, Error, Result};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::names::TABLE;

/// The table of more parts is not read: 25 million of them.
const MOST_BYTES: u64 = 1 << 30;
/// More numbers per value than any data has.
const MOST_CHANNELS: u64 = 1 << 16;
const UNFINISHED: &str =
    "the copy looks unfinished, or others changed it; `windrow prep merge` writes it again";

/// What the values of all parts have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) dtype: DType,
    /// Numbers per value, of records `[T, C]`.
    pub(super) channels: Option<usize>,
}

impl Stored {
    /// As a manifest says.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(super) fn of(dtype: Option<DType>, channels: Option<u64>) -> Result<Stored> {
        let dtype = dtype.ok_or_else(|| {
            Error::corrupt("expected the dtype of the values, found none").field("dtype").hint(UNFINISHED)
        })?;
        match channels {
            Some(found) if found == 0 || found > MOST_CHANNELS => {
                Err(Error::corrupt(format!("{found} channels, expected 1 to {MOST_CHANNELS}"))
                    .field("channels"))
            }
            _ => Ok(Stored { dtype, channels: channels.map(|channels| channels as usize) }),
        }
    }

    /// Records of such values.
    pub(super) fn schema(&self, vocab_size: Option<u64>) -> Schema {
        Schema { channels: self.channels, vocab_size, ..Schema::numbers(Element::little(self.dtype)) }
    }

    /// Bytes of a value.
    pub(super) fn width(&self) -> u64 {
        (self.dtype.size() * self.channels.unwrap_or(1)) as u64
    }
}

/// How many records and values come before each part, and what is needed to check it: 24 bytes a part.
pub(super) struct Table {
    /// Number of the first record of each part, and of all records at the end.
    pub(super) records: Vec<u64>,
    /// Number of the first value of each part, and of all values at the end.
    pub(super) values: Vec<u64>,
    /// XXH3-64 of the lengths of each part.
    lengths_xxh3: Vec<u64>,
    /// XXH3-64 of all rows.
    pub(super) content: u64,
}

impl Table {
    /// A table of these rows.
    ///
    /// # Errors
    /// `Corrupt` where a row contradicts itself, or the sums pass 64 bits.
    pub(super) fn new(rows: &[PartRow], stored: Stored) -> Result<Table> {
        let (mut records, mut values) = (vec![0u64], vec![0u64]);
        let mut hash = Xxh3::new();
        for (part, row) in rows.iter().enumerate() {
            let corrupt =
                |what: String| Error::corrupt(what).field(format!("parts[{part}]")).hint(UNFINISHED);
            if row.values.checked_mul(stored.width()) != Some(row.bytes) {
                let width = stored.width();
                let (n, bytes) = (row.values, row.bytes);
                return Err(corrupt(format!("{bytes} bytes of {n} values, which take {width} bytes each")));
            }
            if row.records == 0 && row.values > 0 {
                return Err(corrupt(format!("{} values in no record", row.values)));
            }
            let sum = |before: &[u64], more: u64| before.last().and_then(|sum| sum.checked_add(more));
            let sums = sum(&records, row.records).zip(sum(&values, row.values));
            let (of_records, of_values) =
                sums.ok_or_else(|| corrupt("more records or values together than 64 bits can count".into()))?;
            records.push(of_records);
            values.push(of_values);
            hash.update(&row.to_bytes());
        }
        let lengths_xxh3 = rows.iter().map(|row| row.lengths_xxh3).collect();
        Ok(Table { records, values, lengths_xxh3, content: hash.digest() })
    }

    /// How many parts there are.
    pub(super) fn len(&self) -> usize {
        self.lengths_xxh3.len()
    }

    /// How many records there are.
    pub(super) fn n_records(&self) -> u64 {
        self.records.last().copied().unwrap_or(0)
    }

    /// How many values there are.
    pub(super) fn n_values(&self) -> u64 {
        self.values.last().copied().unwrap_or(0)
    }

    /// Records, values and the hash of the lengths of a part.
    pub(super) fn of(&self, part: usize) -> (u64, u64, u64) {
        let of = |sums: &[u64]| sums[part + 1] - sums[part];
        (of(&self.records), of(&self.values), self.lengths_xxh3[part])
    }

    /// The part that holds the record with this number; only asked for those that there are.
    pub(super) fn part_of_record(&self, record: u64) -> usize {
        last_at_or_before(&self.records, record)
    }

    /// The part that holds the value with this number; only asked for those that there are.
    pub(super) fn part_of_value(&self, value: u64) -> usize {
        last_at_or_before(&self.values, value)
    }
}

// An empty part begins where the next one does.
fn last_at_or_before(begins: &[u64], number: u64) -> usize {
    begins[..begins.len() - 1].partition_point(|begin| *begin <= number).saturating_sub(1)
}

/// The rows of a data set in parts, compared with what the manifest says of all of them.
///
/// # Errors
/// `Corrupt`; `NotFound`; `Io`.
pub(super) fn rows(probe: &Probe, manifest: &Manifest) -> Result<Vec<PartRow>> {
    let at = probe.store.display(&probe.below(MANIFEST_FILE));
    let file = manifest.index.iter().find(|row| row.name == TABLE);
    let rows = match file {
        None => manifest.parts.clone(),
        Some(_) if !manifest.parts.is_empty() => {
            let what =
                format!("{} parts in the manifest, and a table of parts beside it", manifest.parts.len());
            return Err(Error::corrupt(what).at(at).field("parts").hint(UNFINISHED));
        }
        Some(file) => table_file(probe, file)?,
    };
    let sum = |of: fn(&PartRow) -> u64| rows.iter().fold(0u64, |sum, row| sum.saturating_add(of(row)));
    for (field, said, found) in [
        ("records", manifest.records, sum(|row| row.records)),
        ("values", manifest.values, sum(|row| row.values)),
    ] {
        if said != Some(found) {
            let said = said.map_or("none".to_string(), |said| said.to_string());
            let what = format!("the parts hold {found} {field} together, the manifest says {said}");
            return Err(Error::corrupt(what).at(at).field(field).hint(UNFINISHED));
        }
    }
    Ok(rows)
}

fn table_file(probe: &Probe, said: &FileRow) -> Result<Vec<PartRow>> {
    let key = probe.below(TABLE);
    let entry = Entry { key, size: said.size, is_folder: false, modified_ns: None, tag: None };
    let object = probe.store.open_listed(&entry)?;
    let corrupt = |what: String| Error::corrupt(what).at(object.name()).hint(UNFINISHED);
    if object.size() != said.size {
        let (found, said) = (object.size(), said.size);
        return Err(corrupt(format!("the table of parts has {found} bytes, the manifest says {said}")));
    }
    if said.size > MOST_BYTES || !said.size.is_multiple_of(PartRow::SIZE as u64) {
        let size = PartRow::SIZE;
        return Err(corrupt(format!(
            "{} bytes, expected rows of {size} bytes, at most {MOST_BYTES}",
            said.size
        )));
    }
    let mut scratch = Vec::new();
    let bytes = object.read(0, said.size as usize, &mut scratch)?;
    let found = hex(xxh3_64(bytes));
    if said.xxh3.as_ref() != Some(&found) {
        let said = said.xxh3.as_deref().unwrap_or("none");
        return Err(corrupt(format!("the hash of the table of parts is {found}, the manifest says {said}")));
    }
    Ok(bytes.as_chunks::<{ PartRow::SIZE }>().0.iter().map(PartRow::from_bytes).collect())
}
