//! One `.npz` archive with its manifest, an array per record, named as `numpy.savez` names them: `arr_0`, `arr_1`, …

use std::io::{self, Write};
use std::path::PathBuf;

use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use super::body::{Begin, Body, Stored, Written};
use super::latched::Latched;
use super::npy::{descr, header};
use crate::error::{Error, Result};
use crate::format::MOST_MEMBERS;
use crate::manifest::Manifest;
use crate::output::files;
use crate::output::files::Handle;
use crate::output::write_manifest_beside;
use crate::prepare::no_records;

pub(super) struct Npz {
    work: PathBuf,
    name: String,
    archive: ZipWriter<Latched<Handle>>,
    descr: &'static str,
    channels: Option<usize>,
    records: u64,
    size: u64,
    manifest: Manifest,
    durable: bool,
    warned: bool,
}

impl Npz {
    pub(super) fn begin(begin: &Begin<'_>) -> Result<Npz> {
        Ok(Npz {
            archive: ZipWriter::new(Latched::new(files::create(&begin.work.join(begin.name))?)),
            work: begin.work.to_path_buf(),
            name: begin.name.to_string(),
            descr: descr(begin.dtype)?,
            channels: begin.channels,
            records: 0,
            size: 0,
            manifest: begin.manifest("npz"),
            durable: begin.options.durable,
            warned: false,
        })
    }

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

impl Body for Npz {
    fn takes_parts(&self) -> bool {
        false
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.extras.is_empty() && !self.warned {
            log::warn!("an .npz archive holds numbers only: what stands beside them is left out");
            self.warned = true;
        }
        if record.number >= MOST_MEMBERS {
            return Err(Error::config(format!(
                "more than {MOST_MEMBERS} records: no reader takes an archive of so many"
            ))
            .record(record.number)
            .hint("write shards"));
        }
        self.records += 1;
        self.write(record).map_err(|e| Error::io("write the file", self.work.join(&self.name), e))
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        if self.records == 0 {
            return Err(no_records());
        }
        let path = self.work.join(&self.name);
        let archive = self.archive.finish().map_err(io::Error::from).and_then(|archive| archive.is_whole());
        archive.map_err(|e| Error::io("write the file", &path, e))?;
        let file = files::finish(&path, self.durable)?;
        let manifest = Manifest { records: Some(self.records), ..self.manifest };
        let targets = write_manifest_beside(&self.work, &self.name, manifest, file, self.durable)?.into();
        Ok(Written { targets, files: 1, bytes: self.size })
    }
}
