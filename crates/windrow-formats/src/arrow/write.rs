//! One file of the Arrow stream format, as `datasets` keeps its own, and its manifest.

use std::path::PathBuf;

use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, OwnOptions, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written,
};
use windrow_core::manifest::Manifest;
use windrow_core::output::{Growing, write_manifest_beside};
use windrow_core::{DType, Result, Row};
use windrow_ipc::{StreamWriter, check_dtype};

use super::Arrow;

const USUAL_COLUMN: &str = "tokens";

/// A file of rows, or of numbers in a column.
pub(super) struct WriteArrow {
    column: String,
}

impl WriteArrow {
    /// With these options.
    pub(super) fn of(options: &mut OwnOptions) -> Result<WriteArrow> {
        let column = options.text("to_column")?;
        Ok(WriteArrow { column: column.unwrap_or_else(|| USUAL_COLUMN.to_string()) })
    }
}

impl WriteFormat for WriteArrow {
    fn info(&self) -> WriteInfo {
        // The other names are those of files with a footer.
        WriteInfo {
            holds_rows: true,
            keeps_metadata: true,
            ..WriteInfo::of(Arrow.name(), Target::File(&[".arrow"]))
        }
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        let dtype = asked.unwrap_or(given);
        check_dtype(dtype).map(|()| dtype)
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(Writer {
            stream: StreamWriter::new(begin, &self.column)?,
            file: Growing::create(begin.work.join(begin.name))?,
            work: begin.work.to_path_buf(),
            name: begin.name.to_string(),
            fsync: begin.fsync,
        }))
    }
}

struct Writer {
    stream: StreamWriter,
    file: Growing,
    work: PathBuf,
    name: String,
    fsync: bool,
}

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        let Writer { stream, file, .. } = self;
        stream.add(record, &mut |part| file.write(part))?;
        if self.fsync {
            self.file.begin_sync();
        }
        Ok(())
    }

    fn add_row(&mut self, number: u64, row: &Row) -> Result<()> {
        let Writer { stream, file, .. } = self;
        stream.add_row(number, row.clone(), &mut |part| file.write(part))?;
        if self.fsync {
            self.file.begin_sync();
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        let Writer { stream, file, .. } = &mut *self;
        stream.finish(&mut |part| file.write(part))?;
        manifest.records = Some(self.stream.records());
        let bytes = self.file.size();
        let file = self.file.finish(self.fsync)?;
        let manifest = write_manifest_beside(&self.work, &self.name, manifest, file, self.fsync)?;
        Ok(Written { files: 1, bytes, manifest })
    }
}
