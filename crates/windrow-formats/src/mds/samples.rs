//! Where the values of a sample are in its shard, and what they are.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use windrow_core::format::Format;
use windrow_core::format::data_files::DataFiles;
use windrow_core::store::Object;
use windrow_core::{DType, Error, Result, Row, Value};

use super::Mds;
use super::encoding::{Encoding, MOST_HEAD};
use super::index::{Column, Index};
use super::shards::{Shards, word};
use windrow_core::format::columns::{self, Found, Kind};

/// Where the value of each column is.
type Places = SmallVec<[Range<u64>; 4]>;

/// The samples of a data set.
pub(super) struct Samples {
    shards: Shards,
    columns: Vec<Column>,
    described: Vec<columns::Column>,
    hash: u64,
}

impl Samples {
    pub(super) fn new(shards: Shards, index: Index) -> Samples {
        let described = index.columns.iter().map(|column| columns::Column {
            name: column.name.clone(),
            holds: column.text.clone(),
            exact: String::new(),
            kind: match &column.encoding {
                Encoding::Array(dtype, shape) => Kind::Array(*dtype, shape.clone()),
                Encoding::Bytes => Kind::Bytes,
                Encoding::Pickle => Kind::LeftOut,
                _ => Kind::Value,
            },
        });
        Samples { described: described.collect(), shards, columns: index.columns, hash: index.hash }
    }

    /// The shard of a sample, and where the value of each column is in its file.
    fn places(&self, sample: u64) -> Result<(usize, Places)> {
        let (shard, local) = self.shards.find(sample)?;
        let at = |e: Error| e.record(sample);
        let place = self.shards.place(shard, local).map_err(at)?;
        let object = self.shards.object(shard).map_err(at)?;
        let sizes = 4 * self.columns.iter().filter(|column| column.size.is_none()).count() as u64;
        let wrong = |found: String| {
            Error::corrupt(format!("{found} in a sample of {} bytes", place.end - place.start))
                .at(object.name())
                .record(sample)
                .byte(place.start)
                .hint("the shard is damaged: copy it again")
        };
        if sizes > place.end - place.start {
            return Err(wrong(format!("{sizes} bytes of sizes")));
        }
        let mut scratch = Vec::new();
        let words = object.read(place.start, sizes as usize, &mut scratch).map_err(at)?;
        let (mut start, mut variable) = (place.start + sizes, 0);
        let mut places = Places::new();
        for column in &self.columns {
            let size = column.size.unwrap_or_else(|| {
                variable += 4;
                word(words, variable - 4)
            });
            let end = start.checked_add(size).filter(|end| *end <= place.end);
            let end = end.ok_or_else(|| wrong(format!("a value of {:?} of {size} bytes", column.name)))?;
            places.push(start..end);
            start = end;
        }
        if start == place.end {
            Ok((shard, places))
        } else {
            Err(wrong(format!("values of {} bytes", start - place.start)))
        }
    }

    fn value(&self, sample: u64, shard: usize, column: usize, place: &Range<u64>) -> Result<Value> {
        let column = &self.columns[column];
        let object = self.shards.object(shard)?;
        let mut scratch = Vec::new();
        let bytes = object.read(place.start, (place.end - place.start) as usize, &mut scratch)?;
        column
            .encoding
            .value(bytes)
            .map_err(|e| e.at(object.name()).record(sample).byte(place.start).field(column.name.clone()))
    }
}

impl columns::Samples for Samples {
    fn format(&self) -> &'static str {
        Mds.name()
    }

    fn count(&self) -> u64 {
        self.shards.len()
    }

    fn columns(&self) -> &[columns::Column] {
        &self.described
    }

    fn row(&self, sample: u64, columns: &[usize]) -> Result<Row> {
        let (shard, places) = self.places(sample)?;
        let named = columns.iter().map(|column| {
            let value = self.value(sample, shard, *column, &places[*column])?;
            Ok((self.columns[*column].name.clone(), value))
        });
        named.collect()
    }

    fn array(&self, sample: u64, column: usize, dtype: Option<DType>) -> Result<Found> {
        let (shard, places) = self.places(sample)?;
        let place = places[column].clone();
        let (object, size) = (self.shards.object(shard)?, place.end - place.start);
        let named = |e: Error| {
            e.at(object.name()).record(sample).byte(place.start).field(self.columns[column].name.clone())
        };
        match dtype {
            Some(dtype) => match size % dtype.size() as u64 {
                0 => {
                    let shape = columns::Shape::from_slice(&[size / dtype.size() as u64]);
                    Ok(Found { dtype, shape, file: shard, start: place.start })
                }
                _ => Err(named(Error::corrupt(format!("{size} bytes, expected {dtype} numbers")))),
            },
            None => {
                let mut scratch = Vec::new();
                let bytes = object.read(place.start, size.min(MOST_HEAD) as usize, &mut scratch)?;
                let head = self.columns[column].encoding.head(bytes, size).map_err(named)?;
                let start = place.start + head.size;
                Ok(Found { dtype: head.dtype, shape: head.shape, file: shard, start })
            }
        }
    }

    fn bytes<'a>(
        &'a self,
        _sample: u64,
        _column: usize,
        found: &Found,
        start: u64,
        size: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        self.shards.object(found.file)?.read(start, size, scratch)
    }

    fn object(&self, _column: usize, file: usize) -> Result<Option<&Arc<dyn Object>>> {
        self.shards.object(file).map(Some)
    }

    fn locate(&self, sample: u64, column: Option<usize>) -> Result<(String, Range<u64>)> {
        let (shard, places) = self.places(sample)?;
        let place = match column {
            Some(column) => places[column].clone(),
            None => {
                let (shard, local) = self.shards.find(sample)?;
                self.shards.place(shard, local)?
            }
        };
        Ok((self.shards.files.name(shard), place))
    }

    fn prefetch(&self, sample: u64) {
        let place = || {
            let (shard, local) = self.shards.find(sample).ok()?;
            Some((shard, self.shards.place(shard, local).ok()?))
        };
        if let Some((shard, place)) = place()
            && let Ok(object) = self.shards.object(shard)
        {
            object.prefetch(place.start, place.end - place.start);
        }
    }

    fn files(&self) -> &DataFiles {
        &self.shards.files
    }

    fn fingerprint(&self, of: &str) -> Result<u64> {
        self.shards.files.fingerprint(&[Mds.name().as_bytes(), &self.hash.to_le_bytes(), of.as_bytes()])
    }
}
