//! What `prepare` writes: byte for byte the recorded cases, and the same after every stop.

#[cfg(test)]
#[allow(dead_code)] // Shared: each test binary uses a part of it.
#[path = "../../../windrow-core/tests/it/alone.rs"]
mod alone;
#[cfg(test)]
mod conversions;
#[cfg(test)]
#[allow(dead_code)] // Shared: each test binary uses a part of it.
#[path = "../../../windrow-formats/tests/it/disk.rs"]
mod disk;
#[cfg(test)]
mod encoders;
#[cfg(test)]
mod faults;
#[cfg(test)]
#[allow(dead_code)] // Shared: each test binary uses a part of it.
#[path = "../../../windrow-core/tests/it/folder.rs"]
mod folder;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod handed;
#[cfg(test)]
mod series;
#[cfg(test)]
mod sums;
#[cfg(test)]
mod tokens;
#[cfg(test)]
#[allow(dead_code)] // Shared: each test binary uses a part of it.
#[path = "../../../windrow-core/tests/it/toy.rs"]
mod toy;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod verify;
#[cfg(test)]
mod verify_folders;
#[cfg(test)]
#[allow(dead_code)] // Shared: each test binary uses a part of it.
#[path = "../../../windrow-formats/tests/it/writing.rs"]
mod writing;
