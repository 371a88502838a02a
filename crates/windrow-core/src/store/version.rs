//! Which version of a file an object holds: what tells it from every other, whichever path led to it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use super::file_system::FileSystem;
use super::times::{changed_ns, modified_ns};

/// One version of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub(super) file_system: FileSystem,
    pub(super) inode: u64,
    /// Of the file, whatever its content expands to.
    pub(super) size: u64,
    pub(super) modified_ns: u64,
    pub(super) changed_ns: u64,
    /// The object is what the file expands to.
    pub(super) is_expanded: bool,
}

impl Version {
    /// Whether inode and times alone name it, so that its path says nothing more. A change time without a fraction of a
    /// second comes from a file system that keeps whole seconds, or was set when an image was made.
    pub(super) fn names_itself(&self) -> bool {
        self.file_system == FileSystem::Kept && !self.changed_ns.is_multiple_of(1_000_000_000)
    }

    /// Whether the file that is found later is still the same. File systems of other machines may make up all but size
    /// and time.
    pub(super) fn is_still(&self, later: &Metadata) -> bool {
        let same = later.len() == self.size && modified_ns(later) == Some(self.modified_ns);
        let kept = self.file_system == FileSystem::Kept;
        same && (!kept || (later.ino() == self.inode && changed_ns(later) == Some(self.changed_ns)))
    }
}
