//! Descriptors of the library's in the program's table.
//!
//! A program may close any number (a daemon closes all) and put another file there (`dup2(2)`), and
//! the kernel gives a number that is free to the next file that is opened. So a descriptor here
//! knows its file: device, inode, and when that began. Before a write, a long read and its own end
//! it looks whether the number still is of that file; before a short read it looks once in some
//! milliseconds, since a look costs a tenth of such a read. And the numbers are high, where neither
//! loops over the first few hundred nor the kernel's next descriptors come. A program that closes
//! one and opens the same file again gets the same number and file, which no look can tell apart.
//!
//! Beside the duplicate of each file there are others that can be opened again at any time
//! ([`Spare`]). They take what the process has left (`count`), but for a part that is the
//! program's: the more descriptors the program, its libraries and CUDA's driver have, the fewer.
//! Where the limit is 1024 and nothing else is open, all of 270 files may have one, none of 450.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;

use super::closing;
use super::magic::{BTRFS, EXT, F2FS, TMPFS, XFS};

/// A file, for comparison among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// When the inode began, in nanoseconds since 1970; 0 if unknown. Numbers of inodes are used
    /// again (tmpfs with `inode32` counts them with 32 bits).
    pub(crate) birth: u64,
}

/// A number and the file that it was of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) fd: RawFd,
    pub(crate) file: FileId,
}

/// Where numbers begin, if the limit has room there. Higher ones would make the kernel's table
/// large, which each fork copies.
const FIRST: RawFd = 512;
/// Whether numbers stay in the kernel's table as it is. To make it larger, the kernel waits for all
/// processors where a process has several threads (`expand_fdtable`, Linux 6.18): 8 to 14 ms, a
/// twentieth of the first read of 8 GiB.
static KEEPS_TABLE: AtomicBool = AtomicBool::new(false);
/// Above the standard streams: a program that closed one of those may open it again.
const LEAST: RawFd = 3;

/// A descriptor that the library opened and closes. One that the program closed, or put another
/// file in the place of, is left to it.
#[derive(Debug)]
pub struct KeptFd {
    fd: RawFd,
    file: FileId,
    /// The tick of the last look.
    looked: AtomicU32,
    _count: Count,
}

impl KeptFd {
    /// A duplicate of a descriptor of the program's.
    ///
    /// # Errors
    /// The descriptor is not open, or the process has as many as it may have.
    pub fn duplicate(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let own = above(fd)?;
        match file_of(own.as_raw_fd()) {
            Ok(file) => Ok(Self::new(own, file, Count::duplicate())),
            Err(errno) => {
                closing::close(own, FileId::default());
                Err(errno)
            }
        }
    }

    /// The file of another one, opened again through its link in `/proc` (proc(5)), which also
    /// works for files whose name was removed. The error is the errno.
    pub(super) fn reopened(
        of: &Self,
        flags: libc::c_int,
        spare: Option<Spare>,
    ) -> Result<Self, i32> {
        let link = std::ffi::CString::new(format!("/proc/self/fd/{}", of.fd));
        // O_NONBLOCK and O_NOCTTY: this must not wait, nor take a terminal.
        let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
        let link = link.map_err(|_| libc::EINVAL)?;
        // SAFETY: the path is NUL-terminated; no flag asks for a mode.
        let fd = unsafe { libc::open(link.as_ptr(), flags) };
        if fd < 0 {
            return Err(super::sys::errno());
        }
        // SAFETY: just opened, and not owned elsewhere.
        let fd = unsafe { owned(fd) };
        if !is_of(fd.as_raw_fd(), of.file) {
            let file = file_of(fd.as_raw_fd()).unwrap_or_default();
            closing::close(fd, file);
            return Err(libc::EBADF);
        }
        let file = of.file;
        let high = match above(fd.as_fd()) {
            Ok(high) => {
                closing::close(fd, file);
                high
            }
            Err(_) if fd.as_raw_fd() >= LEAST => fd,
            Err(errno) => {
                closing::close(fd, file);
                return Err(errno.raw_os_error());
            }
        };
        let count = spare.map_or(Count::None, |leave| Count::Spare { _leave: leave });
        Ok(Self::new(high, file, count))
    }

    fn new(fd: OwnedFd, file: FileId, count: Count) -> Self {
        let looked = AtomicU32::new(tick());
        Self { fd: fd.into_raw_fd(), file, looked, _count: count }
    }

    pub(crate) fn place(&self) -> Place {
        Place { fd: self.fd, file: self.file }
    }

    /// Its number, which the caller has looked at.
    pub fn raw(&self) -> RawFd {
        self.fd
    }

    /// Whether the number still is of this file. A file system that does not answer is not asked
    /// again here: the I/O will say why.
    pub fn is_ours(&self) -> bool {
        match is_same(self.fd, self.file) {
            Ok(true) => {
                self.looked.store(tick(), Ordering::Relaxed);
                true
            }
            Ok(false) => false,
            Err(errno) => errno != Errno::BADF,
        }
    }

    /// The same; unless `surely`, a look of the last milliseconds is enough.
    pub(crate) fn looks_ours(&self, surely: bool) -> bool {
        !surely && self.looked.load(Ordering::Relaxed) == tick() || self.is_ours()
    }
}

impl AsFd for KeptFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open as long as this lives. If the program closed it, calls on the number fail or
        // are of another file, which is why callers look before; no memory depends on it.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }
}

impl Drop for KeptFd {
    fn drop(&mut self) {
        // Otherwise the number is the program's.
        if self.is_ours() {
            // SAFETY: this value's own, and not used any more.
            closing::close(unsafe { owned(self.fd) }, self.file);
        }
    }
}

/// Whether a number is of this file. Calls nothing that a child of `fork(2)` may not call.
pub(crate) fn is_of(fd: RawFd, file: FileId) -> bool {
    is_same(fd, file) == Ok(true)
}

/// The same, or why that is not known. Times of birth count where they never change: servers, and
/// programs that serve a file system, may report another one later.
fn is_same(fd: RawFd, file: FileId) -> Result<bool, Errno> {
    let found = file_of(fd)?;
    if (found.device, found.inode) != (file.device, file.inode) {
        return Ok(false);
    }
    if found.birth == file.birth || found.birth == 0 || file.birth == 0 {
        return Ok(true);
    }
    // SAFETY: only its number is used.
    let kind = super::magic::of(unsafe { BorrowedFd::borrow_raw(fd) });
    Ok(!kind.is_some_and(|kind| [BTRFS, EXT, F2FS, TMPFS, XFS].contains(&kind)))
}

/// A descriptor's file, without a question to a server.
fn file_of(fd: RawFd) -> Result<FileId, Errno> {
    // SAFETY: only its number is used, and the kernel says whether it is open.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    match rustix::fs::statx(fd, c"", how, StatxFlags::INO | StatxFlags::BTIME) {
        Ok(facts) => {
            let device = u64::from(facts.stx_dev_major) << 32 | u64::from(facts.stx_dev_minor);
            let began = facts.stx_btime.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000);
            let began = began.wrapping_add(u64::from(facts.stx_btime.tv_nsec));
            let is_known = facts.stx_mask & StatxFlags::BTIME.bits() != 0;
            let birth = if is_known { began } else { 0 };
            Ok(FileId { device, inode: facts.stx_ino, birth })
        }
        // Linux before 4.11, or a filter of system calls.
        Err(Errno::NOSYS | Errno::PERM) => {
            let facts = rustix::fs::fstat(fd)?;
            Ok(FileId { device: facts.st_dev, inode: facts.st_ino, birth: 0 })
        }
        Err(errno) => Err(errno),
    }
}

/// From now on numbers are only as high as the kernel's table has room: for a process whose
/// descriptors here live as long as a call.
pub(crate) fn keep_table() {
    KEEPS_TABLE.store(true, Ordering::Relaxed);
}

/// The middle of the kernel's table of descriptors as it is (proc(5), `FDSize`).
fn middle() -> Option<RawFd> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"))?;
    size.trim().parse().ok().map(|size: RawFd| size / 2)
}

/// A duplicate with a high number, or with any above the standard streams.
fn above(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let half = RawFd::try_from(limit() / 2).unwrap_or(RawFd::MAX);
    let kept = if KEEPS_TABLE.load(Ordering::Relaxed) { middle() } else { None };
    let first = kept.unwrap_or(FIRST).min(FIRST).min(half).max(LEAST);
    rustix::io::fcntl_dupfd_cloexec(fd, first)
        .or_else(|_| rustix::io::fcntl_dupfd_cloexec(fd, LEAST))
}

/// The process's limit of descriptors.
fn limit() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.unwrap_or(u64::MAX)
}

/// A time in steps of some milliseconds, as coarse as the kernel's.
fn tick() -> u32 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    #[expect(clippy::cast_possible_truncation, reason = "neighbours differ, which is enough")]
    #[expect(clippy::cast_sign_loss, reason = "the kernel's are not negative")]
    let tick = (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000) as u32;
    tick
}

/// How many duplicates there are in this process.
static DUPLICATES: AtomicU32 = AtomicU32::new(0);
/// How many spares are had, and how many of them are fixed.
static SPARES: AtomicU32 = AtomicU32::new(0);
static FIXED: AtomicU32 = AtomicU32::new(0);

/// The kind of a descriptor in the count.
#[derive(Debug)]
enum Count {
    Duplicate,
    Spare {
        _leave: Spare,
    },
    /// Opened for one use, or for one that a program asked for.
    None,
}

impl Count {
    fn duplicate() -> Self {
        DUPLICATES.fetch_add(1, Ordering::Relaxed);
        Self::Duplicate
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        if matches!(self, Self::Duplicate) {
            DUPLICATES.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Leave to have one descriptor that can be opened again.
#[derive(Debug)]
pub(super) struct Spare {
    /// It stays until its file ends, or the mapped files give it back.
    is_fixed: bool,
}

impl Spare {
    /// The part of the limit that is the program's, and that fixed ones may take.
    const PART: u64 = 12;

    /// `None` where as many are had as may be.
    pub(super) fn take() -> Option<Self> {
        one_more(&SPARES, most_spares()).then(|| Self { is_fixed: false })
    }

    /// The same for one that is not closed as soon as there are too many.
    pub(super) fn take_fixed() -> Option<Self> {
        let part = u32::try_from(limit() / Self::PART).unwrap_or(u32::MAX);
        if !one_more(&FIXED, part) {
            return None;
        }
        if !one_more(&SPARES, most_spares()) {
            FIXED.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self { is_fixed: true })
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        SPARES.fetch_sub(1, Ordering::Relaxed);
        if self.is_fixed {
            FIXED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Counts one more, if there are fewer than `most`.
fn one_more(had: &AtomicU32, most: u32) -> bool {
    let more = |had: u32| (had < most).then_some(had + 1);
    had.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

/// Most spares: three quarters of what is left beside the duplicates, what others in this process
/// have open, and the program's part.
fn most_spares() -> u32 {
    let (limit, files) = (limit(), DUPLICATES.load(Ordering::Relaxed));
    let others = super::count::LOOK.others(files, SPARES.load(Ordering::Relaxed), tick());
    let taken = u64::from(files) + others + limit / Spare::PART;
    u32::try_from(limit.saturating_sub(taken) / 4 * 3).unwrap_or(u32::MAX)
}

/// How many spares there are too many.
pub(super) fn spares_too_many() -> u32 {
    SPARES.load(Ordering::Relaxed).saturating_sub(most_spares())
}

/// Whether the process has so few descriptors left that those which stay are wanted back.
pub(crate) fn are_fixed_too_many() -> bool {
    FIXED.load(Ordering::Relaxed) > 0 && spares_too_many() > 0
}

/// A use of a spare, which is not closed meanwhile.
pub(crate) struct SpareUse<'file>(pub(super) &'file AtomicU32);

impl Drop for SpareUse<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

pub(crate) enum Descriptor<'file> {
    /// The file's duplicate.
    Own(&'file KeptFd),
    /// A spare of the file's.
    Spare { kept: &'file KeptFd, _used: SpareUse<'file> },
    /// Opened for this use, and closed with it.
    Opened(KeptFd),
}

impl Descriptor<'_> {
    pub(crate) fn raw(&self) -> RawFd {
        match self {
            Self::Own(kept) | Self::Spare { kept, .. } => kept.raw(),
            Self::Opened(opened) => opened.raw(),
        }
    }
}

/// Takes ownership of a descriptor that a system call just returned.
///
/// # Safety
/// `fd` is open and not owned elsewhere.
pub(super) unsafe fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: the caller's promise.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn file() -> std::fs::File {
        tempfile::tempfile().unwrap()
    }

    #[test]
    fn a_number_that_is_of_another_file_is_noticed_and_not_closed() {
        let (own, other) = (file(), file());
        let kept = KeptFd::duplicate(own.as_fd()).unwrap();
        assert!(kept.is_ours() && kept.looks_ours(false));
        // SAFETY: what a program may do with any number.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), kept.raw()) }, kept.raw());
        assert!(!kept.is_ours());
        let fd = kept.raw();
        drop(kept);
        assert!(file_of(fd).is_ok(), "it is the program's now");
        // SAFETY: made by the call above.
        unsafe { libc::close(fd) };
    }

    #[test]
    fn a_number_that_was_closed_is_noticed() {
        let own = file();
        let kept = KeptFd::duplicate(own.as_fd()).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { libc::close(kept.raw()) }, 0);
        assert!(!kept.is_ours());
        // Another thread of this process may have a file of that number by now.
        let refused = KeptFd::reopened(&kept, libc::O_RDONLY, None).err();
        assert!(matches!(refused, Some(libc::ENOENT | libc::EBADF)), "{refused:?}");
    }

    #[test]
    fn a_file_that_began_at_another_time_is_another() {
        let own = rustix::fs::memfd_create(c"born", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let kept = KeptFd::duplicate(own.as_fd()).unwrap();
        let Place { fd, file } = kept.place();
        assert!(is_of(fd, file) && is_of(fd, FileId { birth: 0, ..file }));
        // tmpfs says so from Linux 6.1 on.
        assert!(file.birth == 0 || !is_of(fd, FileId { birth: 1, ..file }));
    }

    #[test]
    fn what_was_seen_to_be_of_another_file_is_not_trusted_after() {
        let (own, other) = (file(), file());
        let kept = KeptFd::duplicate(own.as_fd()).unwrap();
        // SAFETY: as above.
        unsafe { libc::dup2(other.as_raw_fd(), kept.raw()) };
        assert!(!kept.is_ours() && !kept.is_ours());
        kept.looked.store(tick().wrapping_sub(1000), Ordering::Relaxed);
        assert!(!kept.looks_ours(false) && !kept.looks_ours(false));
        // SAFETY: made by the call above.
        unsafe { libc::close(kept.raw()) };
    }

    #[test]
    fn what_is_refused_is_not_counted() {
        let had = AtomicU32::new(2);
        assert!(one_more(&had, 3) && !one_more(&had, 3) && !one_more(&had, 3));
        assert_eq!(had.load(Ordering::Relaxed), 3);
        let before = FIXED.load(Ordering::Relaxed);
        drop(Spare::take_fixed());
        // Other tests have none that are fixed.
        assert_eq!(FIXED.load(Ordering::Relaxed), before);
    }

    #[test]
    fn numbers_are_not_among_the_first() {
        let own = file();
        let kept = KeptFd::duplicate(own.as_fd()).unwrap();
        let again = KeptFd::reopened(&kept, libc::O_RDWR, None).unwrap();
        let half = RawFd::try_from(limit() / 2).unwrap_or(RawFd::MAX);
        assert!(kept.raw() >= FIRST.min(half) && again.raw() >= FIRST.min(half));
        assert_eq!(kept.file, again.file);
    }
}
