//! What every writer rests on: files that become visible as a whole, on the disk before they do, from checkpoints that a
//! killed task continues from, with checksums of every block.

mod absolute;
mod checkpoints;
mod checksums;
mod commit;
mod disk;
pub mod files;
mod growing;
mod handle;
mod lock;
pub mod replaced;
mod site;
mod taken;
mod whole_file;
mod whole_folder;
mod work_folder;

pub use absolute::absolute;
pub use checkpoints::Checkpoints;
pub use checksums::{ChecksumsWriter, names_beside, write_manifest_beside};
pub use disk::Disk;
pub use growing::{Finished, Growing, hash_of, hex};
pub use handle::Unsynced;
pub use lock::Lock;
pub use site::Site;
pub use taken::{differs, exists};
pub use whole_file::{write_whole, write_whole_and_checksums};
pub use whole_folder::WholeFolder;
pub use work_folder::WorkFolder;
