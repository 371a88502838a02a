//! One `.npz` archive, an array per record, named as `numpy.savez` names them: `arr_0`, `arr_1`, …

use std::io::{self, Write};
use std::path::PathBuf;

use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use super::body::{Begin, Body, Stored, Written};
use super::npy::{descr, header};
use crate::error::{Error, Result};
use crate::format::MOST_MEMBERS;
use crate::prepare::atomic::{self, Handle};

pub(super) struct Npz {
    path: PathBuf,
    name: String,
    archive: ZipWriter<Handle>,
    descr: &'static str,
    channels: Option<usize>,
    size: u64,
    durable: bool,
    warned: bool,
}

impl Npz {
    pub(super) fn begin(begin: &Begin<'_>) -> Result<Npz> {
        let path = begin.work.join(begin.name);
        Ok(Npz {
            archive: ZipWriter::new(atomic::create(&path)?),
            path,
            name: begin.name.to_string(),
            descr: descr(begin.dtype)?,
            channels: begin.channels,
            size: 0,
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
        self.write(record).map_err(|e| Error::io("write the file", &self.path, e))
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let file = self.archive.finish().map_err(|e| Error::io("write the file", &self.path, e.into()))?;
        atomic::sync(&file, &self.path, self.durable)?;
        Ok(Written { targets: vec![self.name], files: 1, bytes: self.size })
    }
}
