//! `index.json`: which shards there are, and what their columns hold. Everything in it is a declared value.

use std::collections::BTreeMap;

use serde::Deserialize;
use windrow_core::store::{Object, read_small};
use windrow_core::{Error, Result};

use super::encoding::Encoding;

/// Larger ones are none: a shard takes some 600 bytes.
const MOST_BYTES: u64 = 1 << 30;

/// The shards of a data set, and their columns.
pub(super) struct Index {
    /// In the order of their samples.
    pub(super) shards: Vec<Shard>,
    /// In the order in which a sample holds them.
    pub(super) columns: Vec<Column>,
    /// A hash of the text.
    pub(super) hash: u64,
}

/// A column of all shards.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) encoding: Encoding,
    /// As it is written: `ndarray:int32`.
    pub(super) text: String,
    /// Bytes of every value, where all have as many.
    pub(super) size: Option<u64>,
}

/// A shard as the index describes it.
pub(super) struct Shard {
    pub(super) samples: u64,
    /// The file as samples are in it.
    pub(super) raw: Part,
    /// The compressed file, and how it is compressed.
    pub(super) zip: Option<(Part, String)>,
}

/// A file as the index describes it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Part {
    /// Below the folder of the index.
    pub(super) basename: String,
    pub(super) bytes: u64,
    /// By the name of the algorithm, in hexadecimal.
    #[serde(default)]
    pub(super) hashes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct IndexText {
    version: u64,
    shards: Vec<ShardText>,
}

#[derive(Deserialize)]
struct ShardText {
    version: u64,
    format: String,
    #[serde(default)]
    column_names: Vec<String>,
    #[serde(default)]
    column_encodings: Vec<String>,
    #[serde(default)]
    column_sizes: Vec<Option<i64>>,
    compression: Option<String>,
    raw_data: Part,
    samples: u64,
    zip_data: Option<Part>,
}

impl Index {
    /// Reads and checks it.
    ///
    /// # Errors
    /// `Corrupt` naming the shard and field; `Unsupported` for other versions, formats and encodings.
    pub(super) fn read(object: &dyn Object) -> Result<Index> {
        let text = read_small(object, MOST_BYTES)?;
        let read: IndexText = serde_json::from_slice(&text).map_err(|cause| {
            Error::corrupt("expected the index of a Streaming data set").at(object.name()).caused_by(cause)
        })?;
        let index = Index::checked(read, xxhash_rust::xxh3::xxh3_64(&text));
        index.map_err(|e| e.at(object.name()))
    }

    fn checked(text: IndexText, hash: u64) -> Result<Index> {
        if text.version != 2 {
            return Err(Error::unsupported(format!("version {} of index.json, expected 2", text.version))
                .field("version"));
        }
        let mut columns: Option<Vec<Column>> = None;
        let mut shards = Vec::with_capacity(text.shards.len());
        for (number, shard) in text.shards.into_iter().enumerate() {
            let (shard, of_shard) = shard.checked().map_err(|e| in_shard(e, number))?;
            match &columns {
                None => columns = Some(of_shard),
                Some(before) if *before == of_shard => {}
                Some(before) => {
                    return Err(Error::mismatch(difference(before, &of_shard))
                        .field(format!("shards[{number}].column_names"))
                        .hint("open the parts one by one"));
                }
            }
            shards.push(shard);
        }
        let Some(columns) = columns else {
            return Err(Error::corrupt("expected shards, found none").field("shards"));
        };
        Ok(Index { shards, columns, hash })
    }
}

// In what the columns of a shard are not those of the first one.
fn difference(first: &[Column], columns: &[Column]) -> String {
    let of = |columns: &[Column], name: &str| columns.iter().find(|column| column.name == name).cloned();
    for column in columns {
        let (name, text) = (&column.name, &column.text);
        match of(first, name) {
            None => return format!("a column {name:?} of {text}, which the first shard lacks"),
            Some(before) if before.text != *text => {
                return format!("column {name:?} is {text}, but {} in the first shard", before.text);
            }
            Some(_) => {}
        }
    }
    match first.iter().find(|column| of(columns, &column.name).is_none()) {
        Some(Column { name, text, .. }) => format!("no column {name:?}, which is {text} in the first shard"),
        None => "its columns are of other sizes, or in another order, than in the first shard".to_string(),
    }
}

fn in_shard(error: Error, number: usize) -> Error {
    let field = error.place().field.clone().unwrap_or_default();
    error.field(format!("shards[{number}].{field}"))
}

impl ShardText {
    fn checked(self) -> Result<(Shard, Vec<Column>)> {
        if self.version != 2 {
            return Err(Error::unsupported(format!("version {} of a shard, expected 2", self.version))
                .field("version"));
        }
        if self.format != "mds" {
            return Err(Error::unsupported(format!("a shard of the format {:?}, expected mds", self.format))
                .field("format")
                .hint("write the data as MDS, or its files as JSON Lines"));
        }
        let n = self.column_names.len();
        if n == 0 || self.column_encodings.len() != n || self.column_sizes.len() != n {
            return Err(Error::corrupt(format!(
                "{n} column names, {} encodings and {} sizes: expected the same number of each, at least one",
                self.column_encodings.len(),
                self.column_sizes.len()
            ))
            .field("column_names"));
        }
        let mut columns: Vec<Column> = Vec::with_capacity(n);
        let described = self.column_names.into_iter().zip(self.column_encodings).zip(self.column_sizes);
        for ((name, text), size) in described {
            if columns.iter().any(|column| column.name == name) {
                return Err(Error::corrupt(format!("two columns called {name:?}")).field("column_names"));
            }
            columns.push(column(name, text, size)?);
        }
        for (part, field) in [(Some(&self.raw_data), "raw_data"), (self.zip_data.as_ref(), "zip_data")] {
            part.map_or(Ok(()), |part| check_name(&part.basename))
                .map_err(|e| e.field(format!("{field}.basename")))?;
        }
        if self.samples > 0 && offsets_end(self.samples) > self.raw_data.bytes {
            let (samples, bytes) = (self.samples, self.raw_data.bytes);
            return Err(Error::corrupt(format!("{samples} samples, which its {bytes} bytes cannot hold"))
                .field("samples")
                .hint("the index is damaged: copy it again"));
        }
        let zip = match (self.zip_data, self.compression) {
            (Some(part), Some(compression)) => Some((part, compression)),
            (None, _) => None,
            (Some(_), None) => {
                return Err(Error::corrupt("a compressed file without a compression").field("compression"));
            }
        };
        Ok((Shard { samples: self.samples, raw: self.raw_data, zip }, columns))
    }
}

/// The first byte after the offsets of `samples` samples.
pub(super) fn offsets_end(samples: u64) -> u64 {
    samples.saturating_add(1).saturating_mul(4).saturating_add(4)
}

fn column(name: String, text: String, size: Option<i64>) -> Result<Column> {
    let encoding = Encoding::parse(&text).map_err(|e| e.field(format!("column_encodings: {name}")))?;
    let size = match size {
        None => None,
        Some(size) => Some(u64::try_from(size).ok().filter(|size| *size > 0).ok_or_else(|| {
            Error::corrupt(format!("the size {size} of {name:?}, expected at least 1")).field("column_sizes")
        })?),
    };
    match (encoding.size(), size) {
        (own, said) if own == said => Ok(Column { name, encoding, text, size }),
        // What has no size of its own may be declared to have one.
        (None, Some(_)) => Ok(Column { name, encoding, text, size }),
        (own, said) => Err(Error::corrupt(format!(
            "values of {name:?} are {text} of {} bytes, and the index says {}",
            own.unwrap_or(0),
            said.map_or("that they differ".to_string(), |said| said.to_string())
        ))
        .field("column_sizes")),
    }
}

// A name below the folder.
fn check_name(name: &str) -> Result<()> {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !name.contains(['\\', '\0']) && name.split('/').all(is_plain) {
        Ok(())
    } else {
        Err(Error::corrupt(format!("the file name {name:?} leads outside of the folder"))
            .hint("a name is a path below the folder of index.json"))
    }
}
