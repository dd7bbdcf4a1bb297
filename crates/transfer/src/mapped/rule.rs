//! Rules that make sure that a file's bytes do not change.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use super::lease::{Lease, Watcher};
use crate::file::{KeptFd, magic};

/// Why the bytes of a file stay what they are.
#[derive(Debug)]
pub(super) enum Rule {
    /// For as long as the file exists: nothing can write it.
    Immutable,
    /// Until the kernel wants the lease back.
    Lease(Lease),
}

/// Why there is no rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleAbsent {
    /// Somebody has the file open for writing. That may end.
    Writer,
    /// The process has as many leases as it may have. That may end.
    Full,
    /// The file can't be opened again; the errno.
    Reopen(i32),
    /// There will be none.
    Never,
}

/// `STATX_ATTR_VERITY` (statx(2), Linux 5.5).
const VERITY: u64 = 0x0010_0000;

/// Finds the rule for a file that is open for reading.
///
/// - File systems that Linux can't write. A mount that is merely read-only is not enough: it may be
///   written through another mount, or be mounted for writing later, which is not announced. There
///   a lease does.
/// - fs-verity (Documentation/filesystems/fsverity.rst): the file can't be opened for writing any
///   more, nor truncated.
/// - A memfd or file of tmpfs that is sealed against writing, shrinking and growing
///   (`F_ADD_SEALS`, fcntl(2)), which the kernel only does while there is no writable mapping.
/// - A read lease on file systems whose bytes only this kernel changes. Not on those of networks,
///   of user space or of layers, which have other ways to a file. Not on a memfd: its first
///   descriptor writes, and does not count as a writer (Linux 6.18 grants the lease).
///
/// The kernel keeps pages that the driver pinned in the page cache, unless somebody writes past it
/// or removes them, which needs a writer too.
///
/// `is_spare`: the lease's descriptor is one that the library can do without.
pub(super) fn find(kept: &KeptFd, watcher: Watcher, is_spare: bool) -> Result<Rule, RuleAbsent> {
    let file = kept.as_fd();
    match magic::of(file).ok_or(RuleAbsent::Never)? {
        magic::SQUASHFS | magic::EROFS | magic::ISO9660 | magic::CRAMFS => Ok(Rule::Immutable),
        magic::TMPFS if is_sealed(file) => Ok(Rule::Immutable),
        magic::EXT | magic::BTRFS | magic::F2FS | magic::XFS if has_verity(file) => {
            Ok(Rule::Immutable)
        }
        // It may be sealed later.
        magic::TMPFS if is_memfd(file) => Err(RuleAbsent::Writer),
        magic::EXT | magic::XFS | magic::BTRFS | magic::F2FS | magic::TMPFS => {
            Lease::take(kept, watcher, is_spare).map(Rule::Lease)
        }
        _ => Err(RuleAbsent::Never),
    }
}

fn is_sealed(file: BorrowedFd<'_>) -> bool {
    use rustix::fs::SealFlags;
    let wanted = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW;
    rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals.contains(wanted))
}

/// Whether it is a file of `memfd_create(2)`: these have a file system instance of their own. Yes
/// if that can't be found out.
fn is_memfd(file: BorrowedFd<'_>) -> bool {
    static DEVICE: OnceLock<Option<u64>> = OnceLock::new();
    let device = DEVICE.get_or_init(|| {
        let made = rustix::fs::memfd_create(c"gpuio", rustix::fs::MemfdFlags::CLOEXEC).ok()?;
        Some(rustix::fs::fstat(made).ok()?.st_dev)
    });
    let own = rustix::fs::fstat(file).ok().map(|facts| facts.st_dev);
    device.is_none() || own.is_none() || *device == own
}

fn has_verity(file: BorrowedFd<'_>) -> bool {
    use rustix::fs::{AtFlags, StatxFlags};
    let facts = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE);
    facts.is_ok_and(|facts| {
        facts.stx_attributes.bits() & facts.stx_attributes_mask.bits() & VERITY != 0
    })
}
