//! The value of a column in a row of a batch.

use std::collections::BTreeMap;

use half::f16;
use windrow_core::store::Object;
use windrow_core::{DType, Error, Result, Row, Value};

use crate::batch::{Batch, Place};
use crate::schema::{Kind, Node};
use crate::stacked::stacked;
use crate::times;

/// Most values of a list that take no bytes (nulls, empty structs).
const MOST_BARE: u64 = 1 << 20;

/// Reads values of one batch.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) data: &'a dyn Object,
    pub(crate) batch: &'a Batch,
    pub(crate) parts: &'a [Batch],
    pub(crate) dictionaries: &'a BTreeMap<i64, Vec<usize>>,
}

impl Reader<'_> {
    /// The value with this number in a column; the number is below that of its values.
    ///
    /// # Errors
    /// `Corrupt` with the byte.
    pub(crate) fn value(&self, node: &Node, at: u64) -> Result<Value> {
        if !self.is_valid(node, at)? {
            return Ok(Value::Null);
        }
        Ok(match &node.kind {
            Kind::Null => Value::Null,
            Kind::Number(dtype) => self.number(node, *dtype, at)?,
            Kind::Bool => Value::Bool(self.bit(node, 1, at)?),
            Kind::Bool8 => Value::Bool(self.whole(node, 1, at)? != 0),
            Kind::Decimal(width, scale) => {
                Value::Text(times::decimal(&self.bytes(node, *width, at)?, *scale))
            }
            Kind::Date(4) => Value::Text(times::date(self.whole(node, 4, at)?)),
            Kind::Date(_) => Value::Text(times::date(self.whole(node, 8, at)?.div_euclid(86_400_000))),
            Kind::Time(width, digits) => Value::Text(times::time(self.whole(node, *width, at)?, *digits)),
            Kind::Timestamp(digits, zoned) => {
                Value::Text(times::timestamp(self.whole(node, 8, at)?, *digits, *zoned))
            }
            Kind::Duration(digits) => Value::Text(times::duration(self.whole(node, 8, at)?, *digits)),
            Kind::Text(width) => self.text(self.run(node, *width, at)?)?,
            Kind::Bytes(width) => Value::Bytes(self.read(self.run(node, *width, at)?)?),
            Kind::View(is_text) => {
                let place = self.viewed(node, at)?;
                if *is_text { self.text(place)? } else { Value::Bytes(self.read(place)?) }
            }
            Kind::Fixed(width) => Value::Bytes(self.bytes(node, *width, at)?),
            Kind::List(_) | Kind::FixedList(_) | Kind::Map => {
                let (first, end) = self.elements(node, at)?;
                self.list(node, first, end)?
            }
            Kind::Struct => {
                let values =
                    node.children.iter().map(|child| Ok((child.name.clone(), self.value(child, at)?)));
                Value::Struct(values.collect::<Result<Row>>()?)
            }
            Kind::Dictionary(id, dtype, values) => {
                let index = self.whole(node, dtype.size(), at)?;
                // As many bits as there are: one of 64 bits without a sign is never that large.
                let index = match dtype {
                    DType::U8 => index & 0xff,
                    DType::U16 => index & 0xffff,
                    DType::U32 => index & 0xffff_ffff,
                    _ => index,
                };
                self.looked_up(*id, values, index)?
            }
            Kind::Other(name, _) => {
                return Err(Error::unsupported(format!("values of type {name}"))
                    .hint("@columns@ leaves the column out"));
            }
        })
    }

    /// Whether a value is there.
    pub(crate) fn is_valid(&self, node: &Node, at: u64) -> Result<bool> {
        match node.kind {
            Kind::Null => Ok(false),
            _ if self.batch.counts[node.node].nulls > 0 => self.bit(node, 0, at),
            _ => Ok(true),
        }
    }

    /// Whether any of these values is null.
    pub(crate) fn has_nulls(&self, node: &Node, first: u64, end: u64) -> Result<bool> {
        if node.kind != Kind::Null && self.batch.counts[node.node].nulls == 0 {
            return Ok(false);
        }
        for at in first..end {
            if !self.is_valid(node, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The numbers of a list's elements: from, and up to.
    ///
    /// # Errors
    /// `Corrupt` for offsets that go back or pass the elements.
    pub(crate) fn elements(&self, node: &Node, at: u64) -> Result<(u64, u64)> {
        let (first, end) = match &node.kind {
            Kind::FixedList(count) => (at * count, (at + 1) * count),
            Kind::Map => self.offsets(node, 4, at)?,
            Kind::List(width) => self.offsets(node, *width, at)?,
            _ => (0, 0),
        };
        let values = self.batch.counts[node.children[0].node].values;
        if first <= end && end <= values {
            Ok((first, end))
        } else {
            Err(self.wrong(node, 1, format!("a list from {first} to {end} of {values} values")))
        }
    }

    // A list of numbers is an array; see `lists`.
    fn list(&self, node: &Node, first: u64, end: u64) -> Result<Value> {
        let child = &node.children[0];
        if let Some(array) = self.array(child, first, end)? {
            return Ok(Value::Array(array));
        }
        let is_bare = child.kind.buffers() == 0
            || matches!(&child.kind, Kind::Struct if child.children.is_empty())
            || matches!(child.kind, Kind::FixedList(0) | Kind::Fixed(0));
        if is_bare && end - first > MOST_BARE {
            return Err(self.wrong(node, 1, format!("a list of {} values without bytes", end - first)));
        }
        let mut values = Vec::new();
        for at in first..end {
            let value = self.value(child, at)?;
            values.push(match (&node.kind, value) {
                (Kind::Map, Value::Struct(pair)) => {
                    Value::List(pair.into_iter().map(|(_, value)| value).collect())
                }
                (_, value) => value,
            });
        }
        if let Some(shape) = &node.shape
            && let Some(array) = stacked(&values, shape)
        {
            return Ok(Value::Array(array));
        }
        Ok(Value::List(values))
    }

    fn looked_up(&self, id: i64, values: &Node, index: i64) -> Result<Value> {
        let mut left = u64::try_from(index).unwrap_or(u64::MAX);
        let parts = self.dictionaries.get(&id).map_or(&[][..], Vec::as_slice);
        for part in parts {
            let part = &self.parts[*part];
            if left < part.rows {
                return Reader { batch: part, ..*self }.value(values, left);
            }
            left -= part.rows;
        }
        Err(Error::corrupt(format!("value {index} of a dictionary that has fewer"))
            .byte(self.batch.body.start)
            .hint("the file is damaged: copy it again"))
    }

    /// Where the bytes of a text, or of bytes, are.
    ///
    /// # Errors
    /// As [`Reader::value`].
    pub(crate) fn place(&self, node: &Node, at: u64) -> Result<Place> {
        match &node.kind {
            Kind::Text(width) | Kind::Bytes(width) => self.run(node, *width, at),
            Kind::View(_) => self.viewed(node, at),
            Kind::Fixed(width) => {
                let place = self.batch.slots[node.slot + 1];
                Ok(Place { start: place.start + at * *width as u64, size: *width as u64 })
            }
            _ => Err(self.wrong(node, 0, "a value without bytes of its own".to_string())),
        }
    }

    // A whole number of `width` bytes, with its sign.
    fn whole(&self, node: &Node, width: usize, at: u64) -> Result<i64> {
        let mut word = [0; 8];
        self.fill(node, 1, at, &mut word[..width.min(8)])?;
        let unused = 64 - 8 * width.min(8) as u32;
        Ok((i64::from_le_bytes(word) << unused) >> unused)
    }

    fn number(&self, node: &Node, dtype: DType, at: u64) -> Result<Value> {
        let mut word = [0; 8];
        self.fill(node, 1, at, &mut word[..dtype.size()])?;
        let wide = u64::from_le_bytes(word);
        Ok(match dtype {
            DType::F16 => Value::F64(f16::from_bits(wide as u16).to_f64()),
            DType::F32 => Value::F64(f64::from(f32::from_bits(wide as u32))),
            DType::F64 => Value::F64(f64::from_bits(wide)),
            DType::I8 => Value::I64(i64::from(wide as i8)),
            DType::I16 => Value::I64(i64::from(wide as i16)),
            DType::I32 => Value::I64(i64::from(wide as i32)),
            DType::I64 => Value::I64(wide.cast_signed()),
            _ => Value::from(wide),
        })
    }

    fn bytes(&self, node: &Node, width: usize, at: u64) -> Result<Vec<u8>> {
        let place = self.batch.slots[node.slot + 1];
        self.read(Place { start: place.start + at * width as u64, size: width as u64 })
    }

    /// Bit `at` of a buffer.
    pub(crate) fn bit(&self, node: &Node, buffer: usize, at: u64) -> Result<bool> {
        let place = self.batch.slots[node.slot + buffer];
        let mut byte = [0];
        self.data.read_into(place.start + at / 8, &mut byte)?;
        Ok(byte[0] >> (at % 8) & 1 == 1)
    }

    // Element `at` of a buffer, whose size was compared with the number of values.
    fn fill(&self, node: &Node, buffer: usize, at: u64, out: &mut [u8]) -> Result<()> {
        let place = self.batch.slots[node.slot + buffer];
        self.data.read_into(place.start + at * out.len() as u64, out)
    }

    // Offsets `at` and `at + 1`, as numbers without a sign: those below zero pass the end.
    fn offsets(&self, node: &Node, width: usize, at: u64) -> Result<(u64, u64)> {
        let place = self.batch.slots[node.slot + 1];
        let mut words = [0; 16];
        let words = &mut words[..2 * width];
        self.data.read_into(place.start + at * width as u64, words)?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word[..width].copy_from_slice(&words[at * width..(at + 1) * width]);
            u64::from_le_bytes(word)
        };
        Ok((word(0), word(1)))
    }

    // The bytes of a text.
    fn run(&self, node: &Node, width: usize, at: u64) -> Result<Place> {
        let (first, end) = self.offsets(node, width, at)?;
        let place = self.batch.slots[node.slot + 2];
        if first <= end && end <= place.size {
            Ok(Place { start: place.start + first, size: end - first })
        } else {
            Err(self.wrong(node, 1, format!("a value from byte {first} to {end} of {}", place.size)))
        }
    }

    // The bytes of a view: in the view itself up to 12, else in one of the buffers behind it.
    fn viewed(&self, node: &Node, at: u64) -> Result<Place> {
        const INSIDE: u64 = 12;
        let mut view = [0; 16];
        self.fill(node, 1, at, &mut view)?;
        let word =
            |at: usize| view[at..].first_chunk().map_or(0, |word| u64::from(u32::from_le_bytes(*word)));
        let (size, buffer, first) = (word(0), word(8), word(12));
        if size <= INSIDE {
            return Ok(Place { start: self.batch.slots[node.slot + 1].start + 16 * at + 4, size });
        }
        let data = self.batch.views[node.view].get(buffer as usize).copied().unwrap_or_default();
        if first + size <= data.size {
            Ok(Place { start: data.start + first, size })
        } else {
            Err(self.wrong(
                node,
                1,
                format!("a value from byte {first} to {} of {}", first + size, data.size),
            ))
        }
    }

    fn text(&self, place: Place) -> Result<Value> {
        let bytes = self.read(place)?;
        if simdutf8::basic::from_utf8(&bytes).is_ok() {
            Ok(Value::Text(String::from_utf8(bytes).unwrap_or_default()))
        } else {
            Err(Error::corrupt("a text that is not UTF-8").byte(place.start))
        }
    }

    pub(crate) fn read(&self, place: Place) -> Result<Vec<u8>> {
        let size = usize::try_from(place.size)
            .map_err(|_| Error::unsupported(format!("a value of {} bytes on this machine", place.size)))?;
        let mut scratch = Vec::new();
        Ok(self.data.read(place.start, size, &mut scratch)?.to_vec())
    }

    pub(crate) fn wrong(&self, node: &Node, buffer: usize, what: String) -> Error {
        let place = self.batch.slots.get(node.slot + buffer).copied().unwrap_or_default();
        Error::corrupt(what).byte(place.start).hint("the file is damaged: copy it again")
    }
}
