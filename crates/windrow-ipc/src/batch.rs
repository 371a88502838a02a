//! One record batch: how many rows, and where the buffers of each column are. Nothing is read but its message.

use std::ops::Range;

use windrow_core::{Error, Result};

use crate::flat::Flat;
use crate::schema::{Counts, Kind, Node};

/// A run of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) start: u64,
    pub(crate) size: u64,
}

/// How the buffers of a batch are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Lz4,
    Zstd,
}

/// How many values a column has in a batch, and how many of them are null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) values: u64,
    pub(crate) nulls: u64,
}

/// A record batch, or the values of a dictionary.
pub(crate) struct Batch {
    pub(crate) rows: u64,
    pub(crate) counts: Box<[Count]>,
    pub(crate) slots: Box<[Place]>,
    /// The buffers behind the views of each column of views.
    pub(crate) views: Box<[Box<[Place]>]>,
    pub(crate) codec: Option<Codec>,
    /// Its bytes in the file.
    pub(crate) body: Range<u64>,
}

impl Batch {
    /// What the message of a batch says, compared with what the columns need and with the bytes of its body.
    ///
    /// # Errors
    /// `Corrupt` with the byte; `Unsupported` for an unknown compression.
    pub(crate) fn of(head: Flat<'_>, columns: &[Node], needed: Counts, body: Range<u64>) -> Result<Batch> {
        let rows = u64::try_from(head.i64(0)?).map_err(|_| head.wrong("a batch of less than no rows"))?;
        let counts = head.words::<2>(1)?;
        let buffers = head.words::<2>(2)?;
        let data = head.words::<1>(4)?;
        let codec = match head.table(3)? {
            None => None,
            Some(table) => Some(match (table.u8(0)?, table.u8(1)?) {
                (0, 0) => Codec::Lz4,
                (1, 0) => Codec::Zstd,
                (codec, method) => {
                    return Err(Error::unsupported(format!(
                        "buffers compressed in an unknown way ({codec}, {method})"
                    )));
                }
            }),
        };
        if counts.len() != needed.nodes {
            return Err(head.wrong(format!(
                "a batch of {} columns, expected {}",
                counts.len(),
                needed.nodes
            )));
        }
        let data: Vec<usize> = if data.len() == needed.views {
            data.iter().map(|[count]| usize::try_from(*count).unwrap_or(usize::MAX)).collect()
        } else {
            return Err(head.wrong(format!("buffers of {} views, expected {}", data.len(), needed.views)));
        };
        let all = data.iter().try_fold(needed.slots, |sum, count| sum.checked_add(*count));
        if all != Some(buffers.len()) {
            return Err(head.wrong(format!(
                "a batch of {} buffers, expected {}",
                buffers.len(),
                needed.slots
            )));
        }
        let size = body.end - body.start;
        let place = |[start, length]: &[i64; 2]| {
            let (start, length) = (u64::try_from(*start).ok()?, u64::try_from(*length).ok()?);
            (start.checked_add(length)? <= size).then_some(Place { start: body.start + start, size: length })
        };
        let places: Option<Vec<Place>> = buffers.iter().map(place).collect();
        let places =
            places.ok_or_else(|| head.wrong(format!("a buffer outside its batch of {size} bytes")))?;
        let count = |[values, nulls]: &[i64; 2]| {
            let values = u64::try_from(*values).ok()?;
            // Unknown is written as -1.
            let nulls = if *nulls == -1 { values } else { u64::try_from(*nulls).ok()? };
            (nulls <= values).then_some(Count { values, nulls })
        };
        let counts: Option<Box<[Count]>> = counts.iter().map(count).collect();
        let counts = counts.ok_or_else(|| head.wrong("a column with more nulls than values"))?;

        let mut batch = Batch {
            rows,
            counts,
            slots: vec![Place::default(); needed.slots].into(),
            views: vec![Box::default(); needed.views].into(),
            codec,
            body,
        };
        let mut places = places.into_iter();
        for column in columns {
            batch.assign(column, &mut places, &data);
        }
        Ok(batch)
    }

    // Gives a column, and what is in it, their buffers.
    fn assign(&mut self, node: &Node, places: &mut impl Iterator<Item = Place>, data: &[usize]) {
        for slot in node.slot..node.slot + node.kind.buffers() {
            self.slots[slot] = places.next().unwrap_or_default();
        }
        if let Kind::View(_) = node.kind {
            self.views[node.view] = places.take(data[node.view]).collect();
        }
        for child in &node.children {
            self.assign(child, places, data);
        }
    }

    /// That every column has the buffers that its number of values needs; not while they are compressed.
    ///
    /// # Errors
    /// `Corrupt` naming the column.
    pub(crate) fn check(&self, columns: &[Node]) -> Result<()> {
        columns.iter().try_for_each(|column| self.check_node(column, self.rows))
    }

    fn check_node(&self, node: &Node, expected: u64) -> Result<()> {
        let Count { values, nulls } = self.counts[node.node];
        let wrong = |what: String| {
            Error::corrupt(format!("column {:?}: {what}", node.name))
                .byte(self.body.start)
                .hint("the file is damaged: copy it again")
        };
        if values < expected {
            return Err(wrong(format!("{values} values where {expected} are needed")));
        }
        let bits = values.div_ceil(8);
        let has = |buffer: usize, needed: Option<u64>| {
            let found = self.slots[node.slot + buffer].size;
            if needed.is_some_and(|needed| needed <= found) {
                Ok(())
            } else {
                Err(wrong(format!("a buffer of {found} bytes for {values} values")))
            }
        };
        if node.kind.buffers() > 0 && nulls > 0 {
            has(0, Some(bits))?;
        }
        let each = |width: usize| values.checked_mul(width as u64);
        let offsets = |width: usize| match values {
            0 => Some(0),
            _ => values.checked_add(1).and_then(|count| count.checked_mul(width as u64)),
        };
        match &node.kind {
            Kind::Null => {}
            Kind::Number(dtype) | Kind::Dictionary(_, dtype, _) => has(1, each(dtype.size()))?,
            Kind::Bool => has(1, Some(bits))?,
            Kind::Bool8 => has(1, each(1))?,
            Kind::Timestamp(..) | Kind::Duration(_) => has(1, each(8))?,
            Kind::Decimal(width, _) | Kind::Date(width) | Kind::Time(width, _) => has(1, each(*width))?,
            Kind::Fixed(width) | Kind::Other(_, width) => has(1, each(*width))?,
            Kind::Text(width) | Kind::Bytes(width) | Kind::List(width) => has(1, offsets(*width))?,
            Kind::Map => has(1, offsets(4))?,
            Kind::View(_) => has(1, each(16))?,
            Kind::FixedList(count) => {
                let needed = values.checked_mul(*count);
                let needed = needed.ok_or_else(|| wrong(format!("{values} lists of {count}")))?;
                self.check_node(&node.children[0], needed)?;
                return Ok(());
            }
            Kind::Struct => {
                return node.children.iter().try_for_each(|child| self.check_node(child, values));
            }
        }
        node.children.iter().try_for_each(|child| self.check_node(child, 0))
    }
}
