//! A folder with all records in one headerless `.npy`, and where each begins and ends in a `.csv.gz`, as dolma names them.

use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use windrow_core::format::write::{
    Begin, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written, no_ids,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::output::{ChecksumsWriter, Growing, files};
use windrow_core::row::Value;
use windrow_core::{DType, Error, Result};

use super::{DATA, DOCUMENTS, DTYPES, INFO};

/// What dolma calls its first file.
const STEM: &str = "part-0-00000";
/// Bytes of lines that are compressed at a time.
const AT_ONCE: usize = 64 << 10;

/// A folder of token files.
pub(super) struct WriteOlmo;

impl WriteFormat for WriteOlmo {
    fn info(&self) -> WriteInfo {
        WriteInfo::of(INFO.name, Target::Folder)
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        // Token IDs of other types fit, or are refused one by one.
        Ok(asked.unwrap_or(if DTYPES.contains(&given) { given } else { DType::U32 }))
    }

    fn is_own(&self, name: &str) -> bool {
        let own = [format!("{STEM}{DATA}"), format!("{STEM}{DOCUMENTS}")];
        own.iter().any(|own| own == name) || [MANIFEST_FILE, CHECKSUMS_FILE].contains(&name)
    }

    fn is_description(&self, name: &str) -> bool {
        name == MANIFEST_FILE || name == format!("{STEM}{DOCUMENTS}")
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        begin.only(&DTYPES, "OLMo's files")?;
        let folder = begin.work.join(begin.name);
        files::make_folder(&folder)?;
        Ok(Box::new(Writer {
            data: Growing::create(folder.join(format!("{STEM}{DATA}")))?,
            documents: Growing::create(folder.join(format!("{STEM}{DOCUMENTS}")))?,
            lines: GzEncoder::new(Vec::new(), Compression::default()),
            folder,
            dtype: begin.dtype,
            start: 0,
            records: 0,
            fsync: begin.fsync,
            warned: false,
        }))
    }
}

struct Writer {
    folder: PathBuf,
    data: Growing,
    documents: Growing,
    lines: GzEncoder<Vec<u8>>,
    dtype: DType,
    /// The first token of the record that is being written.
    start: u64,
    records: u64,
    fsync: bool,
    warned: bool,
}

impl Writer {
    // A line of the `.csv.gz`: start, end, id, src, loc.
    fn line(&mut self, record: &Stored<'_>, end: u64) -> Result<()> {
        let text = |name: &str| match record.extras.get(name) {
            Some(Value::Text(text)) => text.clone(),
            Some(Value::I64(number)) => number.to_string(),
            _ => String::new(),
        };
        if !self.warned && record.extras.names().any(|name| !["id", "src", "loc"].contains(&name)) {
            windrow_core::warn!(
                "OLMo's files hold id, src and loc of a document: other metadata is left out"
            );
            self.warned = true;
        }
        let loc = record.extras.get("loc").and_then(Value::as_i64).unwrap_or(record.number as i64 + 1);
        let fields = [self.start.to_string(), end.to_string(), text("id"), text("src"), loc.to_string()];
        let failed = |cause: csv::Error| Error::config("a line that CSV does not hold").caused_by(cause);
        csv::Writer::from_writer(&mut self.lines).write_record(&fields).map_err(failed)?;
        self.flush(AT_ONCE)
    }

    // Hands what is compressed to the file, where it is as much as this.
    fn flush(&mut self, least: usize) -> Result<()> {
        let compressed = self.lines.get_mut();
        if compressed.len() >= least {
            self.documents.write(compressed)?;
            compressed.clear();
        }
        Ok(())
    }
}

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        self.data.write(record.bytes)?;
        if record.is_last {
            let end = self.data.size() / self.dtype.size() as u64;
            self.line(record, end)?;
            (self.start, self.records) = (end, self.records + 1);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        let bytes = self.data.size();
        if bytes == 0 {
            return Err(no_ids());
        }
        self.lines.try_finish().map_err(|e| Error::io("compress the documents", &self.folder, e))?;
        self.flush(0)?;
        let mut sums = ChecksumsWriter::at(self.folder.join(CHECKSUMS_FILE), [])?;
        let data = sums.add(format!("{STEM}{DATA}"), self.data.finish(self.fsync)?)?;
        let documents = sums.add(format!("{STEM}{DOCUMENTS}"), self.documents.finish(self.fsync)?)?;
        manifest.files = vec![data, documents];
        manifest.records = Some(self.records);
        sums.finish(&manifest.files, self.fsync)?;
        files::write(&self.folder.join(MANIFEST_FILE), manifest.to_text().as_bytes(), self.fsync)?;
        files::sync_folder(&self.folder, self.fsync)?;
        Ok(Written { files: 1, bytes, manifest })
    }
}
