//! Files of other machines: each fault of a map would wait for the network, and what another machine changes may never show.

use std::fs::File;

/// Whether the file lies on a mount that asks another machine, or a program, for its bytes. `false` where nobody says.
#[cfg(target_os = "linux")]
pub(super) fn is_remote(file: &File) -> bool {
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
    rustix::fs::fstatfs(file).is_ok_and(|found| REMOTE.contains(&(found.f_type as u32)))
}

/// Nobody says.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_remote(_file: &File) -> bool {
    false
}
