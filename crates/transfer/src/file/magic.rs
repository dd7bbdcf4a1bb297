//! Magic numbers of file systems (statfs(2); linux/magic.h).

use std::os::fd::AsFd;

pub(crate) const EXT: u64 = 0xEF53;
pub(crate) const XFS: u64 = 0x5846_5342;
pub(crate) const BTRFS: u64 = 0x9123_683E;
pub(crate) const F2FS: u64 = 0xF2F5_2010;
pub(crate) const TMPFS: u64 = 0x0102_1994;
pub(crate) const SQUASHFS: u64 = 0x7371_7368;
pub(crate) const EROFS: u64 = 0xE0F5_E1E2;
pub(crate) const ISO9660: u64 = 0x9660;
pub(crate) const CRAMFS: u64 = 0x28CD_3D45;

/// The number of a file's file system.
pub(crate) fn of(file: impl AsFd) -> Option<u64> {
    let kind = rustix::fs::fstatfs(file).ok()?.f_type;
    #[expect(clippy::cast_sign_loss, reason = "a number of 32 bits in a signed type")]
    let kind = kind as u64 & 0xFFFF_FFFF;
    Some(kind)
}
