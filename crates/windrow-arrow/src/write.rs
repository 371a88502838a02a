//! One Parquet file, and its manifest: the batches of an Arrow stream, encoded by the crate parquet.

use std::path::PathBuf;

use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use windrow_core::format::write::{
    Begin, OwnOptions, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written,
};
use windrow_core::manifest::Manifest;
use windrow_core::output::{Growing, write_manifest_beside};
use windrow_core::{DType, Error, Result, Row};
use windrow_ipc::{StreamWriter, check_dtype};

const USUAL_COLUMN: &str = "tokens";
/// Bytes of a row group, which is in memory until it is complete.
const ROW_GROUP: usize = 64 << 20;
/// zstd's own choice.
const USUAL_LEVEL: i32 = 3;

/// A file of rows, or of numbers in a column.
pub(crate) struct WriteParquet {
    name: &'static str,
    suffixes: &'static [&'static str],
    column: String,
    compression: Compression,
}

impl WriteParquet {
    /// With these options, for the format of this name, whose files end so.
    pub(crate) fn of(
        options: &mut OwnOptions,
        name: &'static str,
        suffixes: &'static [&'static str],
    ) -> Result<WriteParquet> {
        let column = options.text("to_column")?;
        let compression = options.text("compression")?;
        Ok(WriteParquet {
            name,
            suffixes,
            column: column.unwrap_or_else(|| USUAL_COLUMN.to_string()),
            compression: compression_of(compression.as_deref().unwrap_or("zstd"))?,
        })
    }
}

fn compression_of(text: &str) -> Result<Compression> {
    let zstd = |level: i32| ZstdLevel::try_new(level).ok().map(Compression::ZSTD);
    let found = match text.split_once(':') {
        None if text == "zstd" => zstd(USUAL_LEVEL),
        None if text == "snappy" => Some(Compression::SNAPPY),
        None if text == "none" => Some(Compression::UNCOMPRESSED),
        Some(("zstd", level)) => level.parse().ok().and_then(zstd),
        _ => None,
    };
    found.ok_or_else(|| {
        Error::config(format!(
            "compression is {text:?}, expected zstd, zstd:LEVEL of 1 to 22, snappy or none"
        ))
        .field("compression")
    })
}

impl WriteFormat for WriteParquet {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            holds_rows: true,
            keeps_metadata: true,
            // Numbers that repeat are compressed to nearly nothing.
            bytes_per_number: Some(0),
            ..WriteInfo::of(self.name, Target::File(self.suffixes))
        }
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        let dtype = asked.unwrap_or(given);
        check_dtype(dtype).map(|()| dtype)
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(Writer {
            stream: StreamWriter::new(begin, &self.column)?.with_fields_in_structs(),
            complete: Vec::new(),
            decoder: StreamDecoder::new(),
            compression: self.compression,
            pages: None,
            file: Growing::create(begin.work.join(begin.name))?,
            work: begin.work.to_path_buf(),
            name: begin.name.to_string(),
            fsync: begin.fsync,
        }))
    }
}

struct Writer {
    stream: StreamWriter,
    /// What is complete of the stream and not encoded yet.
    complete: Vec<u8>,
    decoder: StreamDecoder,
    compression: Compression,
    /// Begins with the schema. What it wrote waits in memory until it is in the file.
    pages: Option<ArrowWriter<Vec<u8>>>,
    file: Growing,
    work: PathBuf,
    name: String,
    fsync: bool,
}

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        let Writer { stream, complete, .. } = self;
        stream.add(record, &mut |part| keep(part, complete))?;
        self.encode().map_err(|e| e.record(record.number))
    }

    fn add_row(&mut self, number: u64, row: &Row) -> Result<()> {
        let Writer { stream, complete, .. } = self;
        stream.add_row(number, row.clone(), &mut |part| keep(part, complete))?;
        self.encode().map_err(|e| e.record(number))
    }

    fn finish(mut self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        let Writer { stream, complete, .. } = &mut *self;
        stream.finish(&mut |part| keep(part, complete))?;
        self.encode()?;
        if let Some(pages) = self.pages.take() {
            self.file.write(&pages.into_inner().map_err(refused)?)?;
        }
        manifest.records = Some(self.stream.records());
        let bytes = self.file.size();
        let file = self.file.finish(self.fsync)?;
        let manifest = write_manifest_beside(&self.work, &self.name, manifest, file, self.fsync)?;
        Ok(Written { files: 1, bytes, manifest })
    }
}

impl Writer {
    // Encodes the batches that are complete, and writes the row groups that are.
    fn encode(&mut self) -> Result<()> {
        if self.complete.is_empty() {
            return Ok(());
        }
        let mut stream = Buffer::from(std::mem::take(&mut self.complete));
        loop {
            let batch = self.decoder.decode(&mut stream).map_err(|e| refused(e.into()))?;
            if let (None, Some(schema)) = (&self.pages, self.decoder.schema()) {
                let properties = WriterProperties::builder()
                    .set_compression(self.compression)
                    .set_created_by(format!("windrow version {}", env!("CARGO_PKG_VERSION")))
                    .set_max_row_group_bytes(Some(ROW_GROUP))
                    .build();
                let pages = ArrowWriter::try_new(Vec::new(), schema, Some(properties));
                self.pages = Some(pages.map_err(refused)?);
            }
            let Some(pages) = &mut self.pages else { return Ok(()) };
            let is_last = batch.is_none();
            if let Some(batch) = batch {
                pages.write(&batch).map_err(refused)?;
                let written = std::mem::take(pages.inner_mut());
                self.file.write(&written)?;
            }
            if is_last {
                break;
            }
        }
        if self.fsync {
            self.file.begin_sync();
        }
        Ok(())
    }
}

fn keep(part: &[u8], complete: &mut Vec<u8>) -> Result<()> {
    complete.extend_from_slice(part);
    Ok(())
}

fn refused(error: ParquetError) -> Error {
    let error: ArrowError = error.into();
    Error::unsupported(format!("rows that Parquet does not hold: {error}"))
        .hint("@to=arrow@ holds them, or leave columns out")
}
