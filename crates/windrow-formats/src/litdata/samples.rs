//! Items as samples with columns: the keys of the dict that an item is, or the item itself.

use std::ops::Range;
use std::sync::Arc;

use windrow_core::format::Format;
use windrow_core::format::data_files::DataFiles;
use windrow_core::store::Object;
use windrow_core::{DType, Error, Result, Row, Value};

use super::LitData;
use super::chunks::Chunks;
use super::index::{Index, Items};
use super::leaf::{Leaf, MOST_HEAD};
use super::tree::Tree;
use windrow_core::format::columns::{self, Column, Found, Kind};

/// The items of a data set.
pub(super) struct Samples {
    chunks: Chunks,
    items: Items,
    columns: Vec<Column>,
    /// The part of the tree that each column is.
    parts: Vec<Tree>,
    hash: u64,
}

impl Samples {
    pub(super) fn new(chunks: Chunks, index: Index) -> Samples {
        let (mut columns, mut parts) = (Vec::new(), Vec::new());
        let mut add = |name: &str, holds: &str, kind| {
            let (name, holds) = (name.to_string(), holds.to_string());
            columns.push(Column { name, holds, exact: String::new(), kind });
        };
        match &index.items {
            Items::Tokens(leaf) => add("", "tokens", kind(leaf)),
            Items::Temporal(temporal) => temporal.fields.iter().for_each(|field| {
                add(&field.name, &format!("frames of {}", field.dtype), Kind::Array(Some(field.dtype), None));
            }),
            Items::Trees { leaves, tree } => {
                let named: Vec<(String, Tree)> = match tree {
                    Tree::Dict(children) => children.clone(),
                    other => vec![(String::new(), other.clone())],
                };
                for (name, part) in named {
                    match &part {
                        Tree::Leaf(leaf) => add(&name, &describe(&leaves[*leaf]), kind(&leaves[*leaf])),
                        Tree::List(_) => add(&name, "list", Kind::Value),
                        Tree::Dict(_) => add(&name, "dict", Kind::Value),
                    }
                    parts.push(part);
                }
            }
        }
        Samples { chunks, hash: index.hash, items: index.items, columns, parts }
    }

    /// The chunk of an item, and the item's number in it.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub(super) fn find(&self, item: u64) -> Result<(usize, u64)> {
        self.chunks.find(item)
    }

    // The bytes of an item, and where it begins in its file where it is there as it is.
    fn with<T>(&self, sample: u64, take: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let (chunk, local) = self.chunks.find(sample)?;
        let mut scratch = Vec::new();
        let item = self.chunks.item(chunk, local, &mut scratch).map_err(|e| e.record(sample))?;
        take(item).map_err(|e| self.at(sample, e))
    }

    // An error with the place of an item.
    fn at(&self, sample: u64, error: Error) -> Error {
        let place = || {
            let (chunk, local) = self.chunks.find(sample).ok()?;
            Some((chunk, self.chunks.place(chunk, local).ok()?))
        };
        match place() {
            Some((chunk, place)) => error.at(self.chunks.files.name(chunk)).record(sample).byte(place.start),
            None => error.record(sample),
        }
    }

    // Where each leaf is in an item of `len` bytes: sizes first, then the leaves.
    fn leaves(&self, sizes: &[u8], n: usize, len: usize) -> Result<Vec<Range<usize>>> {
        let mut start = 4 * n;
        let mut places = Vec::with_capacity(n);
        for number in 0..n {
            let size = sizes.get(4 * number..4 * number + 4).and_then(|word| word.first_chunk::<4>());
            let size = size.map(|word| u32::from_le_bytes(*word) as usize);
            let end = size.and_then(|size| start.checked_add(size)).filter(|end| *end <= len);
            let end =
                end.ok_or_else(|| Error::corrupt(format!("leaf {number} of an item of {len} bytes")))?;
            places.push(start..end);
            start = end;
        }
        if start == len {
            Ok(places)
        } else {
            Err(Error::corrupt(format!("leaves of {start} bytes in an item of {len}")))
        }
    }

    // The array of a column in an item of `len` bytes that begins at `base`, parts of which `read` gives.
    fn found(
        &self,
        file: usize,
        base: u64,
        len: usize,
        column: usize,
        dtype: Option<DType>,
        read: &mut dyn FnMut(usize, usize) -> Result<Vec<u8>>,
    ) -> Result<Found> {
        let (leaf, place) = match &self.items {
            Items::Trees { leaves, .. } => match &self.parts[column] {
                Tree::Leaf(leaf) => {
                    let sizes = read(0, len.min(4 * leaves.len()))?;
                    (&leaves[*leaf], self.leaves(&sizes, leaves.len(), len)?[*leaf].clone())
                }
                _ => return Err(Error::unsupported("a column that is not an array")),
            },
            Items::Tokens(leaf) => (leaf, 0..len),
            Items::Temporal(_) => return Err(Error::unsupported("frames are not one after the other")),
        };
        let start = base + place.start as u64;
        if let Some(dtype) = dtype {
            return match place.len() % dtype.size() {
                0 => Ok(Found {
                    dtype,
                    shape: columns::Shape::from_slice(&[(place.len() / dtype.size()) as u64]),
                    file,
                    start,
                }),
                _ => Err(Error::corrupt(format!("{} bytes, expected {dtype} numbers", place.len()))),
            };
        }
        let head = match leaf {
            Leaf::Bare(_) => leaf.head(&[], place.len())?,
            _ => leaf.head(&read(place.start, place.len().min(MOST_HEAD))?, place.len())?,
        };
        Ok(Found { dtype: head.dtype, shape: head.shape, file, start: start + head.size as u64 })
    }

    fn value(&self, item: &[u8], column: usize) -> Result<Value> {
        match &self.items {
            Items::Tokens(leaf) => leaf.value(item),
            Items::Temporal(temporal) => temporal.array(item, column).map(Value::Array),
            Items::Trees { leaves, .. } => {
                let places = self.leaves(item, leaves.len(), item.len())?;
                value(&self.parts[column], leaves, &places, item)
            }
        }
    }
}

fn value(tree: &Tree, leaves: &[Leaf], places: &[Range<usize>], item: &[u8]) -> Result<Value> {
    Ok(match tree {
        Tree::Leaf(leaf) => leaves[*leaf].value(&item[places[*leaf].clone()])?,
        Tree::List(children) => Value::List(
            children.iter().map(|child| value(child, leaves, places, item)).collect::<Result<_>>()?,
        ),
        Tree::Dict(children) => {
            let named =
                children.iter().map(|(name, child)| Ok((name.clone(), value(child, leaves, places, item)?)));
            Value::Struct(named.collect::<Result<Row>>()?)
        }
    })
}

fn kind(leaf: &Leaf) -> Kind {
    match leaf {
        Leaf::Bare(dtype) => Kind::Array(Some(*dtype), None),
        Leaf::Array { .. } => Kind::Array(None, None),
        Leaf::Bytes => Kind::Bytes,
        _ => Kind::Value,
    }
}

fn describe(leaf: &Leaf) -> String {
    match leaf {
        Leaf::Int => "int64".to_string(),
        Leaf::Float => "float64".to_string(),
        Leaf::Bool => "bool".to_string(),
        Leaf::Text => "text".to_string(),
        Leaf::Bytes => "bytes".to_string(),
        Leaf::Bare(dtype) => format!("array {dtype} [T]"),
        Leaf::Array { .. } => "array".to_string(),
        Leaf::Json => "JSON".to_string(),
        Leaf::Pickle => "pickle".to_string(),
    }
}

impl columns::Samples for Samples {
    fn format(&self) -> &'static str {
        LitData.name()
    }

    fn count(&self) -> u64 {
        self.chunks.count()
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn row(&self, sample: u64, columns: &[usize]) -> Result<Row> {
        self.with(sample, |item| {
            let named = columns.iter().map(|column| {
                let name = &self.columns[*column].name;
                let value = self.value(item, *column).map_err(|e| e.field(name.clone()))?;
                Ok((name.clone(), value))
            });
            named.collect()
        })
    }

    fn array(&self, sample: u64, column: usize, dtype: Option<DType>) -> Result<Found> {
        if let Items::Temporal(temporal) = &self.items {
            let (chunk, _) = self.chunks.find(sample)?;
            let array = self.with(sample, |item| temporal.array(item, column))?;
            return Ok(Found { dtype: array.dtype, shape: array.shape.into(), file: chunk, start: 0 });
        }
        let (chunk, local) = self.chunks.find(sample)?;
        if !self.chunks.is_plain() {
            return self.with(sample, |item| {
                self.found(chunk, 0, item.len(), column, dtype, &mut |start, size| {
                    Ok(item[start..start + size].to_vec())
                })
            });
        }
        // Sizes and heads alone are read: a view asks for the lengths of all items.
        let place = self.chunks.place(chunk, local).map_err(|e| e.record(sample))?;
        let object = self.chunks.object(chunk).map_err(|e| e.record(sample))?;
        let mut read = |start: usize, size: usize| {
            object.read(place.start + start as u64, size, &mut Vec::new()).map(<[u8]>::to_vec)
        };
        let size = (place.end - place.start) as usize;
        self.found(chunk, place.start, size, column, dtype, &mut read).map_err(|e| self.at(sample, e))
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
        if let Items::Temporal(temporal) = &self.items {
            *scratch = self.with(sample, |item| temporal.array(item, column).map(|array| array.bytes))?;
        } else if self.chunks.is_plain() {
            return self.chunks.object(found.file)?.read(start, size, scratch);
        } else {
            *scratch = self.with(sample, |item| Ok(item.to_vec()))?;
        }
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let part = scratch.get(start..start.saturating_add(size));
        part.ok_or_else(|| Error::new(windrow_core::Kind::Stale, "the item became shorter").record(sample))
    }

    fn object(&self, _column: usize, file: usize) -> Result<Option<&Arc<dyn Object>>> {
        match self.items {
            Items::Temporal(_) => Ok(None),
            _ if self.chunks.is_plain() => self.chunks.object(file).map(Some),
            _ => Ok(None),
        }
    }

    fn locate(&self, sample: u64, _column: Option<usize>) -> Result<(String, Range<u64>)> {
        let (chunk, local) = self.chunks.find(sample)?;
        let place = self.chunks.place(chunk, local).map_err(|e| e.record(sample))?;
        Ok((self.chunks.files.name(chunk), place))
    }

    fn prefetch(&self, sample: u64) {
        let place = || {
            let (chunk, local) = self.chunks.find(sample).ok()?;
            Some((chunk, self.chunks.place(chunk, local).ok()?))
        };
        if let Some((chunk, place)) = place()
            && let Ok(object) = self.chunks.object(chunk)
        {
            object.prefetch(place.start, place.end - place.start);
        }
    }

    fn files(&self) -> &DataFiles {
        &self.chunks.files
    }

    fn fingerprint(&self, of: &str) -> Result<u64> {
        self.chunks.files.fingerprint(&[LitData.name().as_bytes(), &self.hash.to_le_bytes(), of.as_bytes()])
    }
}
