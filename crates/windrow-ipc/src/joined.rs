//! Tables one after the other as the samples of a data set: columns matched by name, rows in the order of the files.

use std::ops::Range;
use std::sync::Arc;

use windrow_core::format::columns::{self, Column, Found, Kind as Holds, Samples, Shape};
use windrow_core::format::data_files::DataFiles;
use windrow_core::store::Object;
use windrow_core::{Array, DType, Error, Result, Row, Value};

use crate::file::Table;
use crate::fitted::{fitted, recast};
use crate::matched::{Columns, Own, lacking};
use crate::schema::{Kind, Node};
use crate::shaped::{listed, shaped, turned};

/// Tables as one, each with the columns of all: those that it lacks are null.
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
    /// Each column in this table; `None` where it lacks the column.
    columns: Vec<Option<Own>>,
}

struct Chosen {
    tables: Vec<Table>,
    firsts: Vec<u64>,
}

impl Joined {
    /// The tables of these files, which are opened already, with these columns.
    ///
    /// # Errors
    /// `Corrupt` for more rows than 64 bits count.
    pub fn new(
        format: &'static str,
        files: DataFiles,
        tables: Vec<Table>,
        columns: &Columns,
    ) -> Result<Joined> {
        let (mut parts, mut firsts) = (Vec::new(), vec![0u64]);
        for table in tables {
            let end = firsts[firsts.len() - 1].checked_add(table.rows());
            firsts.push(end.ok_or_else(|| {
                Error::corrupt("more rows together than 64 bits count").at(table.stored().name())
            })?);
            parts.push(Part { columns: columns.in_table(&table), table });
        }
        let columns = columns.described().to_vec();
        Ok(Joined { format, files, tables: parts, firsts, columns, chosen: None, lists: false })
    }

    /// Gives lists of numbers as lists in rows, not as arrays: for rows that were JSON.
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

    // A column of numbers in a table.
    //
    // # Errors
    // `Unsupported` where it is not there: records of numbers are not null.
    fn own<'p>(&self, part: &'p Part, sample: u64, column: usize) -> Result<&'p Own> {
        part.columns[column].as_ref().ok_or_else(|| {
            let name = &self.columns[column].name;
            lacking(name).at(part.table.stored().name()).record(sample).field(name.clone())
        })
    }

    // The numbers of a record, which are not in the file as they are: `[C, T]` of GluonTS becomes `[T, C]`, and a file with a
    // narrower type has those of the wider one.
    fn made(&self, part: &Part, row: u64, own: &Own, column: usize) -> Result<Array> {
        if let Some(shape) = own.shape {
            let array = shaped(&part.table, row, own.at, shape).map(turned)?;
            return match &self.columns[column].kind {
                Holds::Array(Some(dtype), _) => recast(array, *dtype),
                _ => Ok(array),
            };
        }
        let Some(to) = &own.to else { return part.table.numbers(row, own.at) };
        let node = &part.table.columns()[own.at];
        let value = part.table.row(row, &[own.at])?.remove(&node.name).unwrap_or(Value::Null);
        let value = fitted(value, node, to).map_err(|e| part.table.named(e, row, &node.name))?;
        match value {
            Value::Bytes(bytes) => Ok(Array { dtype: DType::U8, shape: vec![bytes.len() as u64], bytes }),
            value => part.table.as_numbers(value, row, own.at),
        }
    }

    // Where the bytes of a record are, which are numbers of a dtype.
    fn found_bytes(&self, table: usize, row: u64, own: &Own, column: usize, dtype: DType) -> Result<Found> {
        let part = &self.tables[table];
        let (start, size) = match &own.to {
            None => part.table.bytes(row, own.at)?,
            Some(_) => (0, self.made(part, row, own, column)?.bytes.len() as u64),
        };
        match size % dtype.size() as u64 {
            0 => {
                let shape = Shape::from_slice(&[size / dtype.size() as u64]);
                Ok(Found { dtype, shape, file: table, start })
            }
            _ => Err(Error::corrupt(format!("{size} bytes, expected {dtype} numbers"))
                .at(part.table.stored().name())
                .field(self.columns[column].name.clone())),
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
        let at = |e: Error| e.record(sample);
        let own = columns.iter().filter_map(|column| part.columns[*column].as_ref());
        let own: Vec<usize> = own.map(|own| own.at).collect();
        let mut values = part.table.row(row, &own).map_err(at)?.into_iter();
        let mut found = Vec::with_capacity(columns.len());
        for column in columns {
            let name = self.columns[*column].name.clone();
            let Some(own) = &part.columns[*column] else {
                found.push((name, Value::Null));
                continue;
            };
            let mut value = values.next().map_or(Value::Null, |(_, value)| value);
            if let Some(to) = &own.to {
                let node = &part.table.columns()[own.at];
                value = fitted(value, node, to).map_err(|e| part.table.named(e, row, &name)).map_err(at)?;
            }
            if let Some(shape) = own.shape.filter(|_| !value.is_null()) {
                let array = shaped(&part.table, row, own.at, shape).map_err(at)?;
                value = match value {
                    Value::Array(Array { dtype, .. }) => recast(array, dtype).map_err(at)?.into(),
                    _ => array.into(),
                };
            }
            found.push((name, if self.lists { listed(value) } else { value }));
        }
        Ok(Row::of_distinct(found))
    }

    fn array(&self, sample: u64, column: usize, dtype: Option<DType>) -> Result<Found> {
        let (table, row) = self.find(sample)?;
        let part = &self.tables[table];
        let own = self.own(part, sample, column)?;
        let at = |e: Error| e.record(sample);
        if let Some(dtype) = dtype {
            return self.found_bytes(table, row, own, column, dtype).map_err(at);
        }
        let declared = match &self.columns[column].kind {
            Holds::Array(Some(dtype), _) => *dtype,
            _ => return Err(Error::config("a column without numbers").field("column")),
        };
        if own.shape.is_some() || own.to.is_some() {
            let array = self.made(part, row, own, column).map_err(at)?;
            return Ok(Found { dtype: array.dtype, shape: array.shape.into(), file: table, start: 0 });
        }
        let run = part.table.run(row, own.at).map_err(at)?;
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
        // What begins at 0 is not in the file: there its own beginning is.
        if found.start > 0 {
            return part.table.data().read(start, size, scratch);
        }
        let (_, row) = self.find(sample)?;
        let own = self.own(part, sample, column)?;
        *scratch = self.made(part, row, own, column).map_err(|e| e.record(sample))?.bytes;
        columns::part(scratch, start, size, sample)
    }

    fn object(&self, column: usize, file: usize) -> Result<Option<&Arc<dyn Object>>> {
        let is_there = |part: &&Part| {
            part.columns[column].as_ref().is_some_and(|own| own.shape.is_none() && own.to.is_none())
        };
        Ok(self.tables.get(file).filter(is_there).map(|part| part.table.data()))
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
        if let Some(Own { at, shape: None, to: None }) =
            column.and_then(|column| part.columns[column].as_ref())
            && part.table.is_plain()
            && part.table.columns()[*at].numbers().is_some()
            && let Some(range) = part.table.bytes_of(row, *at)?
        {
            return Ok((name, range));
        }
        Ok((name, part.table.batch_of(row)?))
    }

    fn prefetch(&self, sample: u64) {
        let Ok((table, row)) = self.find(sample) else { return };
        let part = &self.tables[table];
        for own in part.columns.iter().flatten() {
            if let Ok(Some(range)) = part.table.bytes_of(row, own.at) {
                part.table.data().prefetch(range.start, range.end - range.start);
            }
        }
    }

    fn files(&self) -> &DataFiles {
        &self.files
    }
}
