//! What can be relied on where a file is: whether another machine serves it, and whether inode and times tell its versions apart.

use std::fs::File;

/// Whether another machine, or a program, serves the mount that this file or folder is on: NFS, SMB, Lustre, FUSE and others.
/// `false` also where the system does not say.
///
/// ```
/// let folder = std::fs::File::open(std::env::temp_dir())?;
/// if windrow_core::store::is_of_another_machine(&folder) {
///     println!("each read of a map there may wait for a network");
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn is_of_another_machine(file: &File) -> bool {
    FileSystem::of(file) == FileSystem::Remote
}

/// What a mount promises about its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileSystem {
    /// The kernel keeps inode numbers and change times, in nanoseconds: together they name one version of one file.
    Kept,
    /// Another machine, or a program, is asked for the bytes: each fault of a map would wait for it, what another machine
    /// changes may never show, and inode numbers may change at each mount.
    Remote,
    /// Images whose times were all set alike, FAT, and whatever else; everything, where the system does not say.
    Other,
}

impl FileSystem {
    /// That of an open file.
    #[cfg(target_os = "linux")]
    pub(super) fn of(file: &File) -> FileSystem {
        // Linux, include/uapi/linux/magic.h, and the file systems' own headers; a type has 32 bits.
        const REMOTE: [u32; 14] = [
            0x6969,      // NFS
            0x517B,      // SMB
            0xFE53_4D42, // SMB 2
            0xFF53_4D42, // CIFS
            0x5346_414F, // AFS
            0x6B41_4653, // AFS of the kernel
            0x7375_7245, // Coda
            0x0102_1997, // 9P
            0x00C3_6400, // Ceph
            0x0BD0_0BD0, // Lustre
            0x4750_4653, // GPFS
            0x1983_0326, // BeeGFS
            0xAAD7_AAEA, // PanFS
            0x6573_5546, // FUSE: object stores, sshfs
        ];
        const KEPT: [u32; 8] = [
            0xEF53,      // ext2, ext3, ext4
            0x5846_5342, // XFS
            0x9123_683E, // Btrfs
            0x2FC1_2FC1, // ZFS
            0xF2F5_2010, // F2FS
            0xCA45_1A4E, // bcachefs
            0x0102_1994, // tmpfs
            0x794C_7630, // overlayfs
        ];
        match rustix::fs::fstatfs(file) {
            Ok(found) if REMOTE.contains(&(found.f_type as u32)) => FileSystem::Remote,
            Ok(found) if KEPT.contains(&(found.f_type as u32)) => FileSystem::Kept,
            _ => FileSystem::Other,
        }
    }

    /// Nobody says.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_file: &File) -> FileSystem {
        FileSystem::Other
    }
}
