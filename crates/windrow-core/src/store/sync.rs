//! The names in a folder, brought to the disk.

use std::fs::File;
use std::io;
use std::path::Path;

/// Waits until what was made, renamed and removed in a folder is on the disk. Some network file systems cannot be asked
/// for that, and say so by these codes; a disk that fails says something else.
///
/// # Errors
/// What the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EBADF | libc::ENOTSUP)) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_brought_to_a_disk_is_no_error_and_what_is_not_there_is() {
        let folder = tempfile::tempdir().unwrap();
        sync_folder(folder.path()).unwrap();
        // The system answers a device as some file systems answer a folder.
        let device = Path::new("/dev/null");
        assert_eq!(File::open(device).unwrap().sync_all().unwrap_err().raw_os_error(), Some(libc::EINVAL));
        sync_folder(device).unwrap();
        assert_eq!(sync_folder(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
