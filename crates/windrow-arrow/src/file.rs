//! One Parquet file: its footer, compared with itself, and its rows as an Arrow stream.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;
use windrow_core::store::{Memory, Object, Store, or_compressed};
use windrow_core::{Error, Kind, Result, caught, stop, threads};
use windrow_ipc::Table;

use crate::int96;
use crate::object::Reader;

/// Bytes of the rows that are decoded at once.
const BATCH: u64 = 4 << 20;
/// Bytes of the rows that are decoded where a few are asked for.
const PART: u64 = 64 << 10;
/// Rows that are decoded at once, at most.
const MOST_ROWS: u64 = 8192;
/// Batches that wait while an earlier row group is written.
const WAITING: usize = 32;

/// A file whose footer was read.
pub(crate) struct File {
    reader: Reader,
    meta: ArrowReaderMetadata,
    /// The footer with the places of pages, for single rows.
    indexed: OnceLock<ArrowReaderMetadata>,
    /// The number of the first row of each row group, and of all rows at the end.
    firsts: Vec<u64>,
}

impl File {
    /// Reads the footer.
    ///
    /// # Errors
    /// `Corrupt` when it cannot be read, or says other numbers than its row groups; `Unsupported` for encryption.
    pub(crate) fn open(object: Arc<dyn Object>) -> Result<File> {
        File::of(object.clone()).map_err(|e| or_compressed(e, object.as_ref()))
    }

    fn of(object: Arc<dyn Object>) -> Result<File> {
        let reader = Reader::new(object);
        refuse_encrypted(&reader)?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Skip);
        let meta = guarded(&reader, || {
            let meta = ArrowReaderMetadata::load(&reader, options.clone());
            meta.and_then(|meta| int96::in_microseconds(meta, options)).map_err(|e| wrong(&reader, e))
        })?;
        let mut firsts = vec![0u64];
        for group in meta.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows()).ok();
            let end = rows.and_then(|rows| firsts[firsts.len() - 1].checked_add(rows));
            firsts.push(
                end.ok_or_else(|| damaged(&reader, format!("a row group of {} rows", group.num_rows())))?,
            );
            for column in group.columns() {
                let (start, size) = chunk_range(column);
                let end = start.checked_add(size);
                if end.is_none_or(|end| end > reader.0.size()) {
                    return Err(damaged(&reader, format!("a column of {size} bytes at byte {start}")));
                }
            }
        }
        let file = File { firsts, indexed: OnceLock::new(), meta, reader };
        let claimed = file.meta.metadata().file_metadata().num_rows();
        if u64::try_from(claimed) == Ok(file.rows()) {
            Ok(file)
        } else {
            Err(damaged(&file.reader, format!("{claimed} rows, its row groups have {}", file.rows())))
        }
    }

    /// Rows in it.
    pub(crate) fn rows(&self) -> u64 {
        self.firsts[self.firsts.len() - 1]
    }

    /// The bytes of each column of each row group.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Range<u64>> {
        let groups = self.meta.metadata().row_groups().iter();
        let chunks = groups.flat_map(|group| group.columns()).map(chunk_range);
        chunks.map(|(start, size)| start..start.saturating_add(size))
    }

    /// The object.
    pub(crate) fn object(&self) -> &Arc<dyn Object> {
        &self.reader.0
    }

    /// Its columns, as a table without rows.
    pub(crate) fn schema(&self) -> Result<Table> {
        let mut stream = Vec::new();
        let written =
            StreamWriter::try_new(&mut stream, self.meta.schema()).and_then(|mut writer| writer.finish());
        written.map_err(|e| self.wrong_arrow(e))?;
        self.table(stream)
    }

    // A stream in memory, under the name of the file.
    fn table(&self, stream: Vec<u8>) -> Result<Table> {
        let object = Memory::new().with(self.reader.0.name(), stream).open(self.reader.0.name())?;
        Table::open(object, u64::MAX)
    }

    fn mask(&self, names: &[String]) -> ProjectionMask {
        let schema = self.meta.parquet_schema();
        let fields = schema.root_schema().get_fields().iter().enumerate();
        let wanted = fields.filter(|(_, field)| names.iter().any(|name| name == field.name()));
        ProjectionMask::roots(schema, wanted.map(|(at, _)| at).collect::<Vec<_>>())
    }

    // How many rows of these columns come to `bytes` bytes.
    fn rows_of(&self, bytes: u64, names: &[String]) -> u64 {
        let groups = self.meta.metadata().row_groups().iter();
        let columns = groups.flat_map(|group| group.columns());
        let wanted = columns
            .filter(|column| column.column_path().parts().first().is_some_and(|root| names.contains(root)));
        let size: u64 = wanted
            .map(|column| u64::try_from(column.uncompressed_size()).unwrap_or(0))
            .fold(0, u64::saturating_add);
        (bytes / (size / self.rows().max(1)).max(1)).clamp(1, MOST_ROWS)
    }

    /// The rows that are decoded together with this one, for a few.
    pub(crate) fn beside(&self, row: u64, names: &[String]) -> Range<u64> {
        let rows = self.rows_of(PART, names);
        let first = row / rows * rows;
        first..(first + rows).min(self.rows())
    }

    /// Some rows of some columns.
    ///
    /// # Errors
    /// `Corrupt` for pages that cannot be decoded.
    pub(crate) fn decode(&self, names: &[String], rows: Range<u64>) -> Result<Table> {
        let meta = match self.indexed.get() {
            Some(meta) => meta,
            None => {
                let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
                // A page index that cannot be read only costs time.
                let meta = guarded(&self.reader, || {
                    let meta = ArrowReaderMetadata::load(&self.reader, options.clone());
                    let meta = meta.and_then(|meta| int96::in_microseconds(meta, options));
                    Ok(meta.unwrap_or_else(|_| self.meta.clone()))
                })?;
                self.indexed.get_or_init(|| meta)
            }
        };
        let groups: Vec<usize> = (0..self.firsts.len() - 1)
            .filter(|group| self.firsts[*group] < rows.end && self.firsts[group + 1] > rows.start)
            .collect();
        let base = groups.first().map_or(0, |group| self.firsts[*group]);
        let end = groups.last().map_or(0, |group| self.firsts[group + 1]);
        let within = (rows.start - base) as usize..(rows.end - base) as usize;
        let stream = guarded(&self.reader, || {
            let builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(self.reader.clone(), meta.clone())
                    .with_projection(self.mask(names))
                    .with_row_groups(groups)
                    .with_row_selection(RowSelection::from_consecutive_ranges(
                        std::iter::once(within),
                        (end - base) as usize,
                    ))
                    .with_batch_size((rows.end - rows.start).max(1) as usize);
            let reader = builder.build().map_err(|e| self.wrong(e))?;
            let mut stream = Vec::new();
            let mut writer =
                StreamWriter::try_new(&mut stream, &reader.schema()).map_err(|e| self.wrong_arrow(e))?;
            for batch in reader {
                let batch = batch.map_err(|e| self.wrong_arrow(e))?;
                writer.write(&batch).map_err(|e| self.wrong_arrow(e))?;
            }
            writer.finish().map_err(|e| self.wrong_arrow(e))?;
            drop(writer);
            Ok(stream)
        })?;
        let table = self.table(stream)?;
        if table.rows() == rows.end - rows.start {
            Ok(table)
        } else {
            Err(damaged(&self.reader, format!("{} rows of {rows:?}", table.rows())))
        }
    }

    /// Begins to read a column of some rows; [`File::next_batch`] gives them.
    ///
    /// # Errors
    /// As [`File::decode`].
    pub(crate) fn column(&self, name: &str, rows: Range<u64>) -> Result<ParquetRecordBatchReader> {
        let first = self.firsts.partition_point(|first| *first <= rows.start).saturating_sub(1);
        let end = self.firsts.partition_point(|first| *first < rows.end).min(self.firsts.len() - 1);
        let base = self.firsts[first];
        let within = (rows.start - base) as usize..(rows.end - base) as usize;
        let all = self.firsts[end.max(first)].saturating_sub(base) as usize;
        let name = [name.to_string()];
        guarded(&self.reader, || {
            let builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(self.reader.clone(), self.meta.clone())
                    .with_projection(self.mask(&name))
                    .with_row_groups((first..end).collect())
                    .with_batch_size(MOST_ROWS as usize);
            let builder = match within.start == 0 && within.end == all {
                true => builder,
                false => builder
                    .with_row_selection(RowSelection::from_consecutive_ranges(std::iter::once(within), all)),
            };
            builder.build().map_err(|e| self.wrong(e))
        })
    }

    /// The next of these rows, some of them together; `None` at the end.
    ///
    /// # Errors
    /// As [`File::decode`].
    pub(crate) fn next_batch(&self, rows: &mut ParquetRecordBatchReader) -> Result<Option<RecordBatch>> {
        guarded(&self.reader, || rows.next().transpose().map_err(|e| self.wrong_arrow(e)))
    }

    /// The type of a column.
    pub(crate) fn type_of(&self, name: &str) -> Option<&DataType> {
        self.meta.schema().field_with_name(name).ok().map(|field| field.data_type())
    }

    /// Begins to read some columns of all rows from one on; [`File::next`] gives them.
    ///
    /// # Errors
    /// As [`File::decode`].
    pub(crate) fn rows_from(&self, names: &[String], row: u64) -> Result<ParquetRecordBatchReader> {
        let group = self.firsts.partition_point(|first| *first <= row).saturating_sub(1);
        let rest = group..self.firsts.len() - 1;
        let skipped = row.saturating_sub(self.firsts[group]) as usize;
        let all = self.rows().saturating_sub(self.firsts[group]) as usize;
        guarded(&self.reader, || self.groups(names, rest, skipped..all))
    }

    /// The next of these rows, some of them together; `None` at the end.
    ///
    /// # Errors
    /// As [`File::decode`].
    pub(crate) fn next(&self, rows: &mut ParquetRecordBatchReader) -> Result<Option<Table>> {
        let stream = guarded(&self.reader, || {
            let Some(batch) = rows.next() else { return Ok(None) };
            let batch = batch.map_err(|e| self.wrong_arrow(e))?;
            let mut stream = Vec::new();
            let writer = StreamWriter::try_new(&mut stream, &batch.schema());
            let written = writer.and_then(|mut writer| writer.write(&batch).and_then(|()| writer.finish()));
            written.map_err(|e| self.wrong_arrow(e))?;
            Ok(Some(stream))
        })?;
        stream.map(|stream| self.table(stream)).transpose()
    }

    /// Writes some columns of all rows as an Arrow stream, on `most` threads; `limit` bytes at most.
    ///
    /// # Errors
    /// As [`File::decode`]; `Config` where the columns are larger than the limit.
    pub(crate) fn convert(
        &self,
        names: &[String],
        most: usize,
        limit: u64,
        out: &mut dyn Write,
    ) -> Result<()> {
        let mut out = Limited { out, left: limit, refused: false };
        let meta = guarded(&self.reader, || self.groups(names, 0..0, 0..0).map(|reader| reader.schema()))?;
        let mut rows = 0;
        let mut writer = StreamWriter::try_new(&mut out, &meta).map_err(|e| self.wrong_arrow(e))?;
        let done = self.batches(names, most, &mut |batch| {
            stop::go_on()?;
            rows += batch.num_rows() as u64;
            writer.write(&batch).map_err(|e| self.wrong_arrow(e))
        });
        let done = done.and_then(|()| writer.finish().map_err(|e| self.wrong_arrow(e)));
        drop(writer);
        if out.refused {
            return Err(Error::config(format!(
                "columns {} of a file of {} bytes take more than the {limit} bytes of cache that they may",
                names.join(", "),
                self.reader.0.size()
            ))
            .at(self.reader.0.name())
            .field("cache_limit")
            .hint("allow more with cache_limit, or `windrow convert` the columns to a format that is read in place"));
        }
        done?;
        if rows == self.rows() {
            Ok(())
        } else {
            Err(damaged(&self.reader, format!("{rows} rows of {}", self.rows())))
        }
    }

    // Row groups from the first of their rows to be read on, to the end.
    fn groups(
        &self,
        names: &[String],
        groups: Range<usize>,
        rows: Range<usize>,
    ) -> Result<ParquetRecordBatchReader> {
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.reader.clone(), self.meta.clone())
                .with_projection(self.mask(names))
                .with_row_groups(groups.collect())
                .with_batch_size(self.rows_of(BATCH, names) as usize);
        let builder = match rows.start {
            0 => builder,
            _ => {
                let all = rows.end;
                builder.with_row_selection(RowSelection::from_consecutive_ranges(std::iter::once(rows), all))
            }
        };
        builder.build().map_err(|e| self.wrong(e))
    }

    // Gives all batches in order; row groups are decoded beside each other.
    fn batches(
        &self,
        names: &[String],
        most: usize,
        take: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let count = self.firsts.len() - 1;
        let threads = most.min(count).max(1);
        std::thread::scope(|scope| {
            let mut running: VecDeque<Receiver<Result<RecordBatch>>> = VecDeque::new();
            let mut next = 0;
            loop {
                while running.len() < threads && next < count {
                    let (sender, receiver) = sync_channel(WAITING);
                    let group = next;
                    let work = move || {
                        let sent = guarded(&self.reader, || {
                            for batch in self.groups(names, group..group + 1, 0..0)? {
                                // After an error the reader panics where it is asked for more, and nobody waits for it.
                                let batch = batch.map_err(|e| self.wrong_arrow(e));
                                let is_last = batch.is_err();
                                if sender.send(batch).is_err() || is_last {
                                    break;
                                }
                            }
                            Ok(())
                        });
                        if let Err(error) = sent {
                            let _ = sender.send(Err(error));
                        }
                    };
                    let thread = Builder::new().name("windrow-columns".to_string()).spawn_scoped(scope, work);
                    thread.map_err(threads::refused)?;
                    running.push_back(receiver);
                    next += 1;
                }
                let Some(receiver) = running.pop_front() else { return Ok(()) };
                for batch in receiver {
                    take(batch?)?;
                }
            }
        })
    }

    /// The bytes of the file that hold a row: of some columns, or of all.
    pub(crate) fn place(&self, row: u64, name: Option<&str>) -> Range<u64> {
        let group = self.firsts.partition_point(|first| *first <= row).saturating_sub(1);
        let Some(group) = self.meta.metadata().row_groups().get(group) else { return 0..0 };
        let is_wanted = |root: Option<&String>| name.is_none_or(|name| root.is_some_and(|root| root == name));
        let ranges = group.columns().iter().filter(|column| is_wanted(column.column_path().parts().first()));
        let ranges = ranges.map(chunk_range).map(|(start, size)| start..start + size);
        ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
    }

    fn wrong(&self, error: ParquetError) -> Error {
        wrong(&self.reader, error)
    }

    fn wrong_arrow(&self, error: ArrowError) -> Error {
        match error {
            ArrowError::IoError(_, cause) => match cause.downcast::<Error>() {
                Ok(own) => own.or_at(self.reader.0.name()),
                Err(cause) => Error::new(Kind::Io, "cannot keep decoded columns").caused_by(cause),
            },
            ArrowError::ExternalError(inner) => self.wrong(ParquetError::External(inner)),
            other => self.wrong(other.into()),
        }
    }
}

// The first byte of a column in a row group, dictionary included, and its size.
fn chunk_range(column: &parquet::file::metadata::ColumnChunkMetaData) -> (u64, u64) {
    let whole = |number: i64| u64::try_from(number).unwrap_or(u64::MAX);
    let data = whole(column.data_page_offset());
    let start = column
        .dictionary_page_offset()
        .map(whole)
        .filter(|place| *place > 0)
        .map_or(data, |place| place.min(data));
    (start, whole(column.compressed_size()))
}

// The crate says of an encrypted footer only that it was built without its feature.
fn refuse_encrypted(reader: &Reader) -> Result<()> {
    let mut tail = [0; 4];
    if let Some(at) = reader.0.size().checked_sub(4) {
        reader.0.read_into(at, &mut tail)?;
    }
    if &tail == b"PARE" {
        Err(Error::unsupported("an encrypted file").at(reader.0.name()).hint("write it without encryption"))
    } else {
        Ok(())
    }
}

fn wrong(reader: &Reader, error: ParquetError) -> Error {
    if let Some(cause) = reader.cause() {
        return cause.or_at(reader.0.name());
    }
    match error {
        ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(own) => own.or_at(reader.0.name()),
            Err(other) => damaged(reader, format!("it cannot be decoded as Parquet: {other}")),
        },
        ParquetError::NYI(what) => {
            Error::unsupported(format!("what is not read yet: {what}")).at(reader.0.name())
        }
        other => damaged(reader, format!("it cannot be decoded as Parquet: {other}")),
    }
}

fn damaged(reader: &Reader, what: String) -> Error {
    Error::corrupt(what)
        .at(reader.0.name())
        .hint("the file is damaged, or its copy unfinished: fetch it again")
}

// A panic of the crate about bytes of a file is an error of that file.
fn guarded<T>(reader: &Reader, work: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(work).unwrap_or_else(|_| Err(damaged(reader, "it cannot be decoded as Parquet".to_string())))
}

// A sink that takes a limited number of bytes.
struct Limited<'a> {
    out: &'a mut dyn Write,
    left: u64,
    refused: bool,
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            self.refused = true;
            io::Error::other("more than the limit")
        })?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
