//! A folder of all records one after the other and the byte-offset index of them, as data-forager reads it.

use std::path::PathBuf;

use super::body::{Begin, Body, Stored, Written};
use crate::array::DType;
use crate::error::Result;
use crate::format::{FILE_LIST, INDEX_FOLDER, LOCATIONS, file_list, location_row};
use crate::manifest::CHECKSUMS_FILE;
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::output::ChecksumsWriter;
use crate::output::{Growing, files};
use crate::store::key;

const SAMPLES: &str = "samples.bin";

/// What stands in the folder.
pub(super) const NAMES: [&str; 2] = [SAMPLES, INDEX_FOLDER];

pub(super) struct Forager {
    folder: PathBuf,
    name: String,
    samples: Growing,
    rows: Growing,
    manifest: Manifest,
    records: u64,
    /// Values in every record so far; `None` where they differ, or before the first.
    length: Option<u64>,
    durable: bool,
    warned: bool,
}

impl Forager {
    pub(super) fn begin(begin: &Begin<'_>) -> Result<Forager> {
        begin.only(
            &[DType::U8, DType::U16, DType::U32, DType::U64, DType::I8, DType::I16, DType::I32, DType::I64],
            "token samples",
        )?;
        let folder = begin.work.join(begin.name);
        files::make_folder(&folder.join(INDEX_FOLDER))?;
        Ok(Forager {
            name: begin.name.to_string(),
            samples: Growing::create(folder.join(SAMPLES))?,
            rows: Growing::create(folder.join(INDEX_FOLDER).join(LOCATIONS))?,
            folder,
            manifest: begin.manifest("forager"),
            records: 0,
            length: None,
            durable: begin.options.durable,
            warned: false,
        })
    }
}

impl Body for Forager {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.extras.is_empty() && !self.warned {
            log::warn!("token samples hold ids only: what stands beside them is left out");
            self.warned = true;
        }
        if record.is_first {
            let width = self.manifest.dtype.map_or(0, DType::size) as u64;
            self.rows.write(&location_row(0, self.samples.size(), record.len * width))?;
            self.length = Some(record.len).filter(|len| self.records == 0 || self.length == Some(*len));
            self.records += 1;
        }
        self.samples.write(record.bytes)
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let bytes = self.samples.size();
        let index = self.folder.join(INDEX_FOLDER);
        let mut sums = ChecksumsWriter::at(index.join(CHECKSUMS_FILE), [])?;
        let row = sums.add(SAMPLES, self.samples.finish(self.durable)?)?;
        let rows = sums.add(key::below(INDEX_FOLDER, LOCATIONS), self.rows.finish(self.durable)?)?;
        let paths = [SAMPLES.to_string()];
        let list = files::write(&index.join(FILE_LIST), file_list(&paths)?.as_bytes(), self.durable)?;
        let list = sums.add(key::below(INDEX_FOLDER, FILE_LIST), list)?;
        sums.finish([&row, &rows, &list], self.durable)?;
        let mut manifest = self.manifest;
        (manifest.records, manifest.record_length) = (Some(self.records), self.length);
        (manifest.files, manifest.index) = (vec![row], vec![rows, list]);
        files::write(&index.join(MANIFEST_FILE), manifest.to_text().as_bytes(), self.durable)?;
        files::sync_folder(&index, self.durable)?;
        files::sync_folder(&self.folder, self.durable)?;
        Ok(Written { targets: vec![self.name], files: 1, bytes })
    }
}
