//! A stream or file, opened: its columns, and where the rows of each batch are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use windrow_core::store::{Object, or_compressed};
use windrow_core::{Error, Result, Row};

use crate::batch::Batch;
use crate::expand::expanded;
use crate::message::{BATCH, DICTIONARY, SCHEMA, walk};
use crate::schema::{Counts, Node, columns};
use crate::value::Reader;

/// The parts that make up each dictionary, for the batches of a run.
pub(crate) type Dictionaries = Arc<BTreeMap<i64, Vec<usize>>>;

/// A stream or file.
pub struct Table {
    /// The file as it is stored.
    stored: Arc<dyn Object>,
    /// What holds the buffers: the same, or the file of the cache with what they expand to.
    data: Arc<dyn Object>,
    columns: Vec<Node>,
    batches: Vec<Batch>,
    /// The number of the first row of each batch, and of all rows at the end.
    firsts: Vec<u64>,
    /// The dictionaries of each batch.
    dictionaries: Vec<Dictionaries>,
    /// The values of dictionaries, in the order of the file.
    pub(crate) parts: Vec<Batch>,
}

impl Table {
    /// Reads the messages of a file, and expands its buffers where they are compressed, to at most `limit` bytes of the cache.
    ///
    /// # Errors
    /// `Corrupt` for what does not fit the bytes there; `Unsupported` for a type that is not read; `Config` for the limit.
    pub fn open(object: Arc<dyn Object>, limit: u64) -> Result<Table> {
        Table::of(object.clone(), limit).map_err(|e| or_compressed(e.or_at(object.name()), object.as_ref()))
    }

    fn of(object: Arc<dyn Object>, limit: u64) -> Result<Table> {
        let mut found: Option<(Vec<Node>, Counts)> = None;
        let (mut batches, mut firsts, mut states, mut parts) =
            (Vec::new(), vec![0u64], Vec::new(), Vec::new());
        // The column that a part belongs to, for its check.
        let mut owners = Vec::new();
        let mut now = Dictionaries::default();
        walk(object.as_ref(), &mut |kind, head, body| {
            match (kind, &found) {
                (SCHEMA, None) => found = Some(columns(head)?),
                (SCHEMA, Some(_)) => return Err(head.wrong("a second schema")),
                (BATCH, Some((columns, counts))) => {
                    let batch = Batch::of(head, columns, *counts, body)?;
                    let end = firsts[firsts.len() - 1].checked_add(batch.rows);
                    firsts.push(end.ok_or_else(|| head.wrong("more rows than 64 bits count"))?);
                    batches.push(batch);
                    states.push(now.clone());
                }
                (DICTIONARY, Some((columns, _))) => {
                    let mut known = Vec::new();
                    columns.iter().for_each(|column| column.dictionaries(&mut known));
                    let id = head.i64(0)?;
                    let values = known.into_iter().find(|known| known.0 == id);
                    let (_, values) =
                        values.ok_or_else(|| head.wrong(format!("values of no column ({id})")))?;
                    let Some(inner) = head.table(1)? else {
                        return Err(head.wrong("a dictionary without values"));
                    };
                    let batch = Batch::of(inner, std::slice::from_ref(values), values.counts(), body)?;
                    let state = Arc::make_mut(&mut now);
                    let of_id = state.entry(id).or_default();
                    if head.u8(2)? == 0 {
                        of_id.clear();
                    }
                    of_id.push(parts.len());
                    parts.push(batch);
                    owners.push(values.clone());
                }
                (_, None) => return Err(head.wrong("a batch before the schema")),
                (other, _) => return Err(head.wrong(format!("a message of kind {other}"))),
            }
            Ok(())
        })?;
        let Some((columns, _)) = found else {
            return Err(Error::corrupt(format!("{} bytes without a schema", object.size()))
                .hint("not an Arrow stream, or an incomplete copy"));
        };
        let is_compressed = batches.iter().chain(&parts).any(|batch: &Batch| batch.codec.is_some());
        let data = if is_compressed {
            expanded(object.as_ref(), parts.iter_mut().chain(&mut batches).collect(), limit)?
        } else {
            object.clone()
        };
        for batch in &batches {
            batch.check(&columns)?;
        }
        for (part, values) in parts.iter().zip(&owners) {
            part.check(std::slice::from_ref(values))?;
        }
        Ok(Table { stored: object, data, columns, batches, firsts, dictionaries: states, parts })
    }

    /// Rows in it.
    pub fn rows(&self) -> u64 {
        self.firsts[self.batches.len()]
    }

    /// Its columns.
    pub fn columns(&self) -> &[Node] {
        &self.columns
    }

    /// The file as it is stored.
    pub fn stored(&self) -> &dyn Object {
        self.stored.as_ref()
    }

    /// What holds the values: the file itself, or what its buffers expand to.
    pub fn data(&self) -> &Arc<dyn Object> {
        &self.data
    }

    /// Whether the file itself holds the values as they are.
    pub fn is_plain(&self) -> bool {
        self.batches.iter().all(|batch| batch.codec.is_none())
    }

    /// The bytes of a row's batch in the file.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn batch_of(&self, row: u64) -> Result<Range<u64>> {
        Ok(self.batches[self.find(row)?.0].body.clone())
    }

    /// Some columns of a row.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` with the place of the value.
    pub fn row(&self, row: u64, columns: &[usize]) -> Result<Row> {
        let (batch, local) = self.find(row)?;
        let reader = self.reader(batch);
        columns
            .iter()
            .map(|column| {
                let node = &self.columns[*column];
                let value = reader.value(node, local);
                Ok((node.name.clone(), value.map_err(|e| self.named(e, row, &node.name))?))
            })
            .collect()
    }

    /// The batch of a row, and the row's number in it.
    pub(crate) fn find(&self, row: u64) -> Result<(usize, u64)> {
        if row >= self.rows() {
            return Err(Error::out_of_range("record", row, self.rows()));
        }
        let batch = self.firsts.partition_point(|first| *first <= row) - 1;
        Ok((batch, row - self.firsts[batch]))
    }

    pub(crate) fn reader(&self, batch: usize) -> Reader<'_> {
        Reader {
            data: self.data.as_ref(),
            batch: &self.batches[batch],
            parts: &self.parts,
            dictionaries: &self.dictionaries[batch],
        }
    }

    pub(crate) fn named(&self, error: Error, row: u64, column: &str) -> Error {
        error.or_at(self.stored.name()).record(row).field(column)
    }
}
