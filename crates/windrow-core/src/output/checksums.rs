//! Block checksums on their way to the file beside the data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::files;
use super::growing::{Finished, Growing};
use crate::error::Result;
use crate::manifest::{
    BlockChecksums, CHECKSUMS_FILE, Checksums, FileRow, MANIFEST_FILE, Manifest, checksums_size,
    checksums_table,
};
use crate::store::{Local, Object, Store};

/// Bytes that are read at a time.
const PART: u64 = 1 << 20;

/// The block checksums of files, each added once it is complete.
pub struct ChecksumsWriter {
    file: Growing,
}

impl ChecksumsWriter {
    /// Behind the sums of files that are complete already.
    ///
    /// # Errors
    /// `Corrupt` when there are fewer than theirs; `Io`.
    pub fn at<'r>(
        path: impl Into<PathBuf>,
        complete: impl IntoIterator<Item = &'r FileRow>,
    ) -> Result<ChecksumsWriter> {
        let sizes = complete.into_iter().map(|row| checksums_size(row.size));
        let size = sizes.fold(0, u64::saturating_add);
        Ok(ChecksumsWriter { file: Growing::at(path, size)? })
    }

    /// The first sums of the file that is added next.
    pub fn begin(&mut self, sums: &[u8]) -> Result<()> {
        self.file.write(sums)
    }

    /// The sums of one more file, or the rest of them. Its row, under this name.
    pub fn add(&mut self, name: impl Into<String>, file: Finished) -> Result<FileRow> {
        self.file.write(&file.sums)?;
        Ok(file.row_called(name))
    }

    /// The file that they are written to.
    pub fn file(&mut self) -> &mut Growing {
        &mut self.file
    }

    /// Completes it with the names and sizes of all files, in the order in which they were added.
    pub fn finish<'r>(mut self, files: impl IntoIterator<Item = &'r FileRow>, fsync: bool) -> Result<()> {
        self.file.write(&checksums_table(files.into_iter().map(|row| (row.name.as_str(), row.size))))?;
        self.file.finish(fsync).map(drop)
    }
}

/// The names of a file, of its block checksums and of its manifest.
pub fn names_beside(name: &str) -> [String; 3] {
    [name.to_string(), format!("{name}.{CHECKSUMS_FILE}"), format!("{name}.{MANIFEST_FILE}")]
}

/// Writes the block checksums and the manifest of one file beside it; the manifest, with the file in it.
///
/// # Errors
/// `Io`.
pub fn write_manifest_beside(
    folder: &Path,
    name: &str,
    manifest: Manifest,
    file: Finished,
    fsync: bool,
) -> Result<Manifest> {
    let [name, of_checksums, of_manifest] = names_beside(name);
    let mut sums = ChecksumsWriter::at(folder.join(of_checksums), [])?;
    let files = vec![sums.add(name, file)?];
    sums.finish(&files, fsync)?;
    let manifest = Manifest { files, ..manifest };
    files::write(&folder.join(of_manifest), manifest.to_text().as_bytes(), fsync)?;
    Ok(manifest)
}

/// The block checksums of the files of a folder, each of which may be written again or removed until all are there.
///
/// A thousandth of what is written would not always fit into memory: they are kept in a file on the way.
pub(super) struct FolderChecksums {
    on_the_way: PathBuf,
    kept: Growing,
    /// Size of each file, and where its sums are among those that are kept.
    files: BTreeMap<String, (u64, u64)>,
}

impl FolderChecksums {
    /// None yet; they are kept in a file of this name.
    pub(super) fn create(on_the_way: PathBuf) -> Result<FolderChecksums> {
        Ok(FolderChecksums { kept: Growing::create(&on_the_way)?, on_the_way, files: BTreeMap::new() })
    }

    /// Those of a file that was written, in place of those that it had.
    pub(super) fn add(&mut self, name: &str, size: u64, sums: &[u8]) -> Result<()> {
        self.files.insert(name.to_string(), (size, self.kept.size()));
        self.kept.write(sums)
    }

    /// Those of a file as it is found now; its size.
    pub(super) fn add_found(&mut self, name: &str, object: &dyn Object) -> Result<u64> {
        let (mut sums, mut scratch) = (BlockChecksums::default(), Vec::new());
        each_part(object.size(), |at, size| {
            sums.update(object.read(at, size, &mut scratch)?);
            Ok(())
        })?;
        self.add(name, object.size(), &sums.finish())?;
        Ok(object.size())
    }

    /// Those of a file that were kept before, and hold for it still.
    pub(super) fn take_over(&mut self, name: &str, before: &Checksums) -> Result<()> {
        let Some((from, size)) = before.find(name) else { return Ok(()) };
        self.files.insert(name.to_string(), (size, self.kept.size()));
        let mut scratch = Vec::new();
        each_part(checksums_size(size), |at, size| {
            self.kept.write(before.stored(from + at, size, &mut scratch)?)
        })
    }

    /// The file is not there any more.
    pub(super) fn remove(&mut self, name: &str) {
        self.files.remove(name);
    }

    /// Writes all of them, the files in the order of their names.
    pub(super) fn finish(self, to: &Path, disk: &mut Disk) -> Result<()> {
        self.kept.finish(false)?;
        let kept = Local::new(&self.on_the_way).open("")?;
        let mut file = Growing::create(to)?;
        let mut scratch = Vec::new();
        for (size, from) in self.files.values() {
            each_part(checksums_size(*size), |at, size| {
                file.write(kept.read(from + at, size, &mut scratch)?)
            })?;
        }
        file.write(&checksums_table(self.files.iter().map(|(name, (size, _))| (name.as_str(), *size))))?;
        file.finish_on(disk)?;
        files::remove(&self.on_the_way)
    }
}

fn each_part(size: u64, mut take: impl FnMut(u64, usize) -> Result<()>) -> Result<()> {
    (0..size).step_by(PART as usize).try_for_each(|at| take(at, (size - at).min(PART) as usize))
}
