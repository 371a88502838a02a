//! Tables one after the other as the samples of a data set: columns matched by name, rows in the order of the files.

use std::ops::Range;
use std::sync::Arc;

use windrow_core::format::columns::{self, Column, Found, Kind as Holds, Samples, Shape};
use windrow_core::format::data_files::DataFiles;
use windrow_core::store::Object;
use windrow_core::{Array, DType, Error, Result, Row};

use crate::file::Table;
use crate::matched::{described, matched, refuse_twice, visible};
use crate::schema::{Kind, Node};
use crate::shaped::{listed, shaped, turned};

/// Tables of the same columns, joined.
pub struct Joined {
    format: &'static str,
    files: DataFiles,
    tables: Vec<Part>,
    /// The number of the first row of each table, and of all rows at the end.
    firsts: Vec<u64>,
    columns: Vec<Column>,
    /// Which rows are records, where not all of them are in their order: one column of their numbers.
    chosen: Option<Chosen>,
    /// Rows hold lists of numbers as they hold any others.
    lists: bool,
}

struct Part {
    table: Table,
    /// The number of each column in this table, and of the one with its shape.
    columns: Vec<(usize, Option<usize>)>,
}

struct Chosen {
    tables: Vec<Table>,
    firsts: Vec<u64>,
}

impl Joined {
    /// The tables of these files, which are opened already.
    ///
    /// # Errors
    /// `Corrupt` for a table that lacks a column of the first one, has others, or has one of another type.
    pub fn new(format: &'static str, files: DataFiles, tables: Vec<Table>) -> Result<Joined> {
        let (mut parts, mut firsts, mut columns) = (Vec::new(), vec![0u64], Vec::new());
        let mut first: Option<Vec<Node>> = None;
        for table in tables {
            refuse_twice(&table)?;
            let of_table = match &mut first {
                None => {
                    let visible = visible(table.columns());
                    columns = visible
                        .iter()
                        .map(|(at, shape)| described(&table.columns()[*at], shape.is_some()))
                        .collect();
                    first = Some(table.columns().to_vec());
                    visible
                }
                Some(first) => {
                    let of_table = matched(&table, first)?;
                    for (column, (at, shape)) in columns.iter_mut().zip(&of_table) {
                        let node = &table.columns()[*at];
                        let known = first.iter_mut().find(|known| known.name == node.name);
                        if let Some(known) = known.filter(|known| known.is_unknown() && !node.is_unknown()) {
                            *column = described(node, shape.is_some());
                            *known = node.clone();
                        }
                    }
                    of_table
                }
            };
            let end = firsts[firsts.len() - 1].checked_add(table.rows());
            firsts.push(end.ok_or_else(|| {
                Error::corrupt("more rows together than 64 bits count").at(table.stored().name())
            })?);
            parts.push(Part { table, columns: of_table });
        }
        Ok(Joined { format, files, tables: parts, firsts, columns, chosen: None, lists: false })
    }

    /// The same with lists of numbers as lists in rows, not as arrays: rows that were JSON.
    pub fn with_lists(self) -> Joined {
        Joined { lists: true, ..self }
    }

    /// Only the rows whose numbers are in the one column of these tables, in that order.
    ///
    /// # Errors
    /// `Corrupt` for another column than numbers.
    pub fn choose(self, tables: Vec<Table>) -> Result<Joined> {
        let mut firsts = vec![0u64];
        for table in &tables {
            match table.columns() {
                [Node { kind: Kind::Number(dtype), .. }] if dtype.is_integer() => {}
                _ => {
                    return Err(Error::corrupt("expected one column with the numbers of rows")
                        .at(table.stored().name()));
                }
            }
            firsts.push(firsts[firsts.len() - 1].saturating_add(table.rows()));
        }
        Ok(Joined { chosen: Some(Chosen { tables, firsts }), ..self })
    }

    // The table of a sample, and the number of its row there.
    fn find(&self, sample: u64) -> Result<(usize, u64)> {
        self.check(sample)?;
        let rows = self.firsts[self.tables.len()];
        let row = match &self.chosen {
            None => sample,
            Some(chosen) => {
                let table = chosen.firsts.partition_point(|first| *first <= sample) - 1;
                let (table, at) = (&chosen.tables[table], sample - chosen.firsts[table]);
                let found = table.row(at, &[0])?.into_iter().next().and_then(|(_, value)| value.as_u64());
                found.filter(|row| *row < rows).ok_or_else(|| {
                    Error::corrupt(format!("a row number beyond the {rows} rows"))
                        .at(table.stored().name())
                        .record(sample)
                })?
            }
        };
        let table = self.firsts.partition_point(|first| *first <= row) - 1;
        Ok((table, row - self.firsts[table]))
    }

    // The numbers of a record, which are not in the file as they are: `[C, T]` of GluonTS becomes `[T, C]`.
    fn made(&self, part: &Part, row: u64, (column, shape): (usize, Option<usize>)) -> Result<Array> {
        match shape {
            None => part.table.numbers(row, column),
            Some(shape) => shaped(&part.table, row, column, shape).map(turned),
        }
    }
}

impl Samples for Joined {
    fn format(&self) -> &'static str {
        self.format
    }

    fn count(&self) -> u64 {
        match &self.chosen {
            Some(chosen) => chosen.firsts[chosen.tables.len()],
            None => self.firsts[self.tables.len()],
        }
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn row(&self, sample: u64, columns: &[usize]) -> Result<Row> {
        let (table, row) = self.find(sample)?;
        let part = &self.tables[table];
        let own: Vec<usize> = columns.iter().map(|column| part.columns[*column].0).collect();
        let mut found = part.table.row(row, &own).map_err(|e| e.record(sample))?;
        for column in columns {
            if let (own, Some(shape)) = part.columns[*column]
                && found.get(&self.columns[*column].name).is_some_and(|value| !value.is_null())
            {
                let array = shaped(&part.table, row, own, shape).map_err(|e| e.record(sample))?;
                found.insert(self.columns[*column].name.clone(), array);
            }
        }
        match self.lists {
            true => Ok(found.into_iter().map(|(name, value)| (name, listed(value))).collect()),
            false => Ok(found),
        }
    }

    fn array(&self, sample: u64, column: usize, dtype: Option<DType>) -> Result<Found> {
        let (table, row) = self.find(sample)?;
        let part = &self.tables[table];
        let (own, shape) = part.columns[column];
        let at = |e: Error| e.record(sample);
        if let Some(dtype) = dtype {
            let (start, size) = part.table.bytes(row, own).map_err(at)?;
            return match size % dtype.size() as u64 {
                0 => Ok(Found {
                    dtype,
                    shape: Shape::from_slice(&[size / dtype.size() as u64]),
                    file: table,
                    start,
                }),
                _ => Err(Error::corrupt(format!("{size} bytes, expected {dtype} numbers"))
                    .at(part.table.stored().name())
                    .record(sample)
                    .field(self.columns[column].name.clone())),
            };
        }
        let declared = match &self.columns[column].kind {
            Holds::Array(Some(dtype), _) => *dtype,
            _ => return Err(Error::config("a column without numbers").field("column")),
        };
        if shape.is_some() {
            let array = self.made(part, row, (own, shape)).map_err(at)?;
            return Ok(Found { dtype: array.dtype, shape: array.shape.into(), file: table, start: 0 });
        }
        let run = part.table.run(row, own).map_err(at)?;
        let shape = [run.len].into_iter().chain(run.channels).collect();
        Ok(Found { dtype: declared, shape, file: table, start: run.start.unwrap_or(0) })
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
        if size == 0 {
            return Ok(&[]);
        }
        let part = &self.tables[found.file];
        let (own, shape) = part.columns[column];
        // What begins at 0 is not in the file: there its own beginning is.
        if found.start > 0 {
            return part.table.data().read(start, size, scratch);
        }
        let (_, row) = self.find(sample)?;
        *scratch = self.made(part, row, (own, shape)).map_err(|e| e.record(sample))?.bytes;
        columns::part(scratch, start, size, sample)
    }

    fn object(&self, column: usize, file: usize) -> Result<Option<&Arc<dyn Object>>> {
        let part = self.tables.get(file).filter(|part| part.columns[column].1.is_none());
        Ok(part.map(|part| part.table.data()))
    }

    fn is_stored(&self, column: usize, found: &Found) -> Result<bool> {
        // What compressed buffers expand to is not in the file.
        let is_plain = self.tables.get(found.file).is_some_and(|part| part.table.is_plain());
        Ok(found.start > 0 && is_plain && self.object(column, found.file)?.is_some())
    }

    fn locate(&self, sample: u64, column: Option<usize>) -> Result<(String, Range<u64>)> {
        let (table, row) = self.find(sample)?;
        let part = &self.tables[table];
        let name = part.table.stored().name().to_string();
        if let Some((own, None)) = column.map(|column| part.columns[column])
            && part.table.is_plain()
            && part.table.columns()[own].numbers().is_some()
            && let Some(range) = part.table.bytes_of(row, own)?
        {
            return Ok((name, range));
        }
        Ok((name, part.table.batch_of(row)?))
    }

    fn prefetch(&self, sample: u64) {
        let Ok((table, row)) = self.find(sample) else { return };
        let part = &self.tables[table];
        for (own, _) in &part.columns {
            if let Ok(Some(range)) = part.table.bytes_of(row, *own) {
                part.table.data().prefetch(range.start, range.end - range.start);
            }
        }
    }

    fn files(&self) -> &DataFiles {
        &self.files
    }
}
