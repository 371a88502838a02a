//! Temporary folders with files.

use std::fs;
use std::path::{Path, PathBuf};

/// A temporary folder with these files; their folders are made too.
pub(crate) fn folder_of<B: AsRef<[u8]>>(files: &[(&str, B)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        put(folder.path(), name, bytes.as_ref());
    }
    folder
}

/// Writes one file below a folder.
pub(crate) fn put(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // A new file in the old one's place: some file systems wait for the disk when a file is cut and written again.
    let _ = fs::remove_file(&path);
    fs::write(path, bytes).unwrap();
}

/// Every path below a folder, hidden ones too.
pub(crate) fn names(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(path) = folders.pop() {
        for item in fs::read_dir(&path).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    found
}
