//! A data set that is written as a folder of files with a manifest and block checksums beside them.

use std::path::PathBuf;

use windrow_core::Result;
use windrow_core::format::write::{Begin, Written, no_records};
use windrow_core::manifest::{CHECKSUMS_FILE, FileRow, MANIFEST_FILE, Manifest};
use windrow_core::output::{ChecksumsWriter, Disk, Growing, files};
use windrow_core::store::{Local, Store, read_small};

/// A folder while it is written.
pub(crate) struct WrittenFolder {
    /// Where it is.
    pub(crate) path: PathBuf,
    rows: Vec<FileRow>,
    files: u64,
    bytes: u64,
    sums: ChecksumsWriter,
    disk: Disk,
    fsync: bool,
}

impl WrittenFolder {
    /// An empty one.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn begin(begin: &Begin<'_>) -> Result<WrittenFolder> {
        let path = begin.work.join(begin.name);
        files::make_folder(&path)?;
        Ok(WrittenFolder {
            sums: ChecksumsWriter::at(path.join(CHECKSUMS_FILE), [])?,
            path,
            rows: Vec::new(),
            files: 0,
            bytes: 0,
            disk: Disk::new(begin.fsync),
            fsync: begin.fsync,
        })
    }

    /// Writes a file of records.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put(&mut self, name: String, bytes: &[u8]) -> Result<()> {
        self.files += 1;
        self.bytes += bytes.len() as u64;
        self.put_beside(name, bytes)
    }

    /// Writes a file that describes others and holds no records.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put_beside(&mut self, name: impl Into<String>, bytes: &[u8]) -> Result<()> {
        let name = name.into();
        let file = files::write_on(&self.path.join(&name), bytes, &mut self.disk)?;
        self.rows.push(self.sums.add(name, file)?);
        Ok(())
    }

    /// Writes all files of records again: `edit` takes the number and the bytes of each, and gives those that replace them.
    ///
    /// # Errors
    /// `Io`; what `edit` says.
    pub(crate) fn write_again(
        &mut self,
        edit: &mut dyn FnMut(usize, Vec<u8>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        self.disk.wait()?;
        self.sums = ChecksumsWriter::at(self.path.join(CHECKSUMS_FILE), [])?;
        self.bytes = 0;
        for (number, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            let path = self.path.join(&row.name);
            let bytes = edit(number, read_small(Local::new(&path).open("")?.as_ref(), row.size)?)?;
            self.bytes += bytes.len() as u64;
            let file = files::replace_on(&path, &bytes, &mut self.disk)?;
            self.rows.push(self.sums.add(row.name, file)?);
        }
        Ok(())
    }

    /// Takes a file of records that was grown in the folder.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn keep(&mut self, name: String, file: Growing) -> Result<()> {
        self.files += 1;
        self.bytes += file.size();
        let file = file.finish_on(&mut self.disk)?;
        self.rows.push(self.sums.add(name, file)?);
        Ok(())
    }

    /// Writes the checksums and the manifest, and waits for the disk.
    ///
    /// # Errors
    /// `Config` where no record was written; `Io`.
    pub(crate) fn finish(mut self, mut manifest: Manifest, records: u64) -> Result<Written> {
        if records == 0 {
            return Err(no_records());
        }
        self.sums.finish(self.rows.iter(), self.fsync)?;
        manifest.files = self.rows;
        manifest.records = Some(records);
        files::write(&self.path.join(MANIFEST_FILE), manifest.to_text().as_bytes(), self.fsync)?;
        self.disk.wait()?;
        files::sync_folder(&self.path, self.fsync)?;
        Ok(Written { files: self.files, bytes: self.bytes, manifest })
    }
}
