//! One file of frames, as TensorFlow's TFRecordWriter writes it, and its manifest.

use windrow_core::format::Payload;
use windrow_core::format::write::{Begin, OwnOptions, RecordWriter, Target, WriteFormat, WriteInfo};
use windrow_core::output::Growing;
use windrow_core::{DType, Error, Result};

use super::{INFO, checksum};
use crate::payload::{self, Layout};

const USUAL_COLUMN: &str = "tokens";

/// A file of examples.
pub(super) struct WriteTfRecord {
    column: String,
}

impl WriteTfRecord {
    /// With these options.
    pub(super) fn of(options: &mut OwnOptions) -> Result<WriteTfRecord> {
        let column = options.text("to_column")?;
        Ok(WriteTfRecord { column: column.unwrap_or_else(|| USUAL_COLUMN.to_string()) })
    }
}

impl WriteFormat for WriteTfRecord {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            holds_rows: true,
            keeps_metadata: true,
            bytes_per_number: Some(1),
            ..WriteInfo::of(INFO.name, Target::File(&[".tfrecord", ".tfrecords"]))
        }
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        match (given, asked) {
            (_, Some(dtype @ (DType::I64 | DType::F32))) => Ok(dtype),
            (DType::F64, None) => Err(Error::config("tf.train.Example holds float32, and these are float64")
                .field("dtype")
                .hint("choose @as_dtype=float32@")),
            (given, None) if given.is_integer() || given == DType::Bool => Ok(DType::I64),
            (_, None) => Ok(DType::F32),
            (_, Some(dtype)) => Err(Error::config(format!("tf.train.Example holds no {dtype} values"))
                .field("dtype")
                .hint("choose @as_dtype=int64@ or @as_dtype=float32@")),
        }
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        payload::begin(begin, "TFRecord", Payload::Example, Some(self.column.clone()), Frames)
    }
}

struct Frames;

impl Layout for Frames {
    fn put(&mut self, record: &[u8], file: &mut Growing) -> Result<()> {
        let length = (record.len() as u64).to_le_bytes();
        file.write(&length)?;
        file.write(&checksum(&length).to_le_bytes())?;
        file.write(record)?;
        file.write(&checksum(record).to_le_bytes())
    }

    fn end(&mut self, _file: &mut Growing) -> Result<()> {
        Ok(())
    }
}
