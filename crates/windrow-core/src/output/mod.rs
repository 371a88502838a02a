//! What every writer stands on: files that become visible as a whole, on the disk before they do, from checkpoints that a
//! killed task continues from, with checksums of every block.

mod checkpoints;
mod checksums;
mod disk;
pub mod files;
mod growing;
mod lock;
pub mod replaced;
mod site;
mod whole_folder;
mod work_folder;

pub use checkpoints::Checkpoints;
pub use checksums::{ChecksumsWriter, names_beside, write_manifest_beside, write_whole_and_checksums};
pub use disk::Disk;
pub use growing::{Finished, Growing, Unsynced, hash_of, hex};
pub use lock::Lock;
pub use site::{Site, differs, exists};
pub use whole_folder::{WholeFolder, write_whole};
pub use work_folder::WorkFolder;
