//! One `.npz` archive with its manifest, an array per record, named as `numpy.savez` names them: `arr_0`, `arr_1`, …

use std::io::{self, Write};
use std::path::PathBuf;

use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written, no_records,
};
use windrow_core::manifest::Manifest;
use windrow_core::output::files::{self, Handle};
use windrow_core::output::write_manifest_beside;
use windrow_core::{Error, Result};
use windrow_pickle::archive::MOST_MEMBERS;
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use super::Npz;
use super::latched::Latched;
use crate::npy::{descr, header};

/// An archive of an array per record.
pub(super) struct WriteNpz;

impl WriteFormat for WriteNpz {
    fn info(&self) -> WriteInfo {
        WriteInfo::of(Npz.name(), Target::File(&[".npz"]))
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(Writer {
            archive: ZipWriter::new(Latched::new(files::create(&begin.work.join(begin.name))?)),
            work: begin.work.to_path_buf(),
            name: begin.name.to_string(),
            descr: descr(begin.dtype)?,
            channels: begin.channels,
            records: 0,
            size: 0,
            fsync: begin.fsync,
            warned: false,
        }))
    }
}

struct Writer {
    work: PathBuf,
    name: String,
    archive: ZipWriter<Latched<Handle>>,
    descr: &'static str,
    channels: Option<usize>,
    records: u64,
    size: u64,
    fsync: bool,
    warned: bool,
}

impl Writer {
    fn write(&mut self, record: &Stored<'_>) -> io::Result<()> {
        // Stored as they are, so that a reader maps them; the same bytes whenever it is written.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::DEFAULT)
            .large_file(record.bytes.len() > u32::MAX as usize / 2);
        // An array of two dimensions would be a series per row.
        let shape = match self.channels {
            None => vec![record.len],
            Some(channels) => vec![1, record.len, channels as u64],
        };
        let header = header(self.descr, shape.into_iter());
        self.archive.start_file(format!("arr_{}.npy", record.number), options)?;
        self.archive.write_all(&header)?;
        self.archive.write_all(record.bytes)?;
        self.size += (header.len() + record.bytes.len()) as u64;
        Ok(())
    }
}

impl RecordWriter for Writer {
    fn takes_parts(&self) -> bool {
        false
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.extras.is_empty() && !self.warned {
            windrow_core::warn!("an .npz archive holds numbers only: the metadata of records is left out");
            self.warned = true;
        }
        if record.number >= MOST_MEMBERS {
            return Err(Error::config(format!(
                "more than {MOST_MEMBERS} records: no reader takes an archive with more"
            ))
            .record(record.number)
            .hint("write shards"));
        }
        self.records += 1;
        self.write(record).map_err(|e| Error::io("write the file", self.work.join(&self.name), e))
    }

    fn finish(self: Box<Self>, manifest: Manifest) -> Result<Written> {
        if self.records == 0 {
            return Err(no_records());
        }
        let path = self.work.join(&self.name);
        let archive = self.archive.finish().map_err(io::Error::from).and_then(|archive| archive.is_whole());
        archive.map_err(|e| Error::io("write the file", &path, e))?;
        let file = files::finish(&path, self.fsync)?;
        let manifest = Manifest { records: Some(self.records), ..manifest };
        let manifest = write_manifest_beside(&self.work, &self.name, manifest, file, self.fsync)?;
        Ok(Written { files: 1, bytes: self.size, manifest })
    }
}
