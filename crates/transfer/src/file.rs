//! Files that callers name by a descriptor.

mod edges;
mod read;
mod spread;
mod sys;
mod twin;
mod warmth;
mod write;

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_io::engine::Op;

use crate::fault::{Failed, Fault, FileError};
use crate::settings::{Cold, Strict};
pub(crate) use read::{Absent, Got, Spot, Tried};
use spread::Spread;
use twin::Twin;
use warmth::Warmth;

/// A file, by a duplicate of the caller's descriptor: the caller may close his own at any time.
/// Cloning is cheap; the duplicate is closed with the last clone, calls under way hold one.
///
/// Beside the duplicate there may be a second descriptor of the same file in the other mode, with
/// or without `O_DIRECT`, opened through `/proc/self/fd` when it is first needed, and where many
/// threads read the file three more of the mode without it (`spread`; at most 192 in the process,
/// and an eighth of its limit). Advice (`posix_fadvise(2)`) that the caller gave for its own does
/// not hold for those. Closing any of them drops the POSIX record locks (`fcntl(2)`, `F_SETLK`)
/// that the process holds on the file, as closing any descriptor of a file does; locks of open file
/// descriptions (`F_OFD_SETLK`) stay.
#[derive(Debug, Clone)]
#[expect(clippy::redundant_allocation, reason = "the outer one is a count, see `apart`")]
pub struct File(pub(crate) Arc<Arc<Inner>>);

impl File {
    /// The same file with a count of its own. Clones count themselves in one place, which threads
    /// that clone at the same time pass from processor to processor; clones of this one do so
    /// elsewhere.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self(Arc::new(Arc::clone(&self.0)))
    }
}

/// What the calls of all threads share of a file.
#[derive(Debug)]
pub(crate) struct Inner {
    /// The caller's open file description.
    own: OwnedFd,
    mode: Mode,
    /// What offsets, lengths and memory of direct I/O are aligned to here, in bytes: a power of
    /// two, 4096 at least. 0 where it is not possible.
    align: u32,
    /// Device and inode in one number.
    identity: u64,
    regular: bool,
    cold: Cold,
    /// Never read from the page cache.
    strict: bool,
    /// Without `O_DIRECT`.
    buffered: Twin,
    /// With it.
    direct: Twin,
    /// The file system accepted `O_DIRECT` and refused a read or write with it.
    direct_refused: AtomicBool,
    /// More without it.
    spread: Spread,
    warmth: Warmth,
    /// Whether the next read or write panics.
    #[cfg(test)]
    pub(crate) panics: AtomicBool,
}

/// What the bytes of a call wait for, which tells how to cut it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The processor: they are copied out of the page cache.
    Copies,
    /// The device.
    Waits,
    /// The file: writes through the page cache, which the kernel lets in one at a time.
    Alone,
}

/// How the caller's descriptor is open (`fcntl(2)`, `F_GETFL`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    direct: bool,
    /// Linux appends whatever offset a write names (`pwrite(2)`, "BUGS"), so such a descriptor is
    /// used only where the file can't be opened without.
    append: bool,
    /// What a second descriptor gets too.
    kept: libc::c_int,
}

/// Offsets and memory of direct I/O are aligned to a page at least, also where a sector would do:
/// so the blocks of direct writes and the edges written through the cache never share a page.
const ALIGN_LEAST: u32 = 4096;
/// Pieces of calls are no shorter than this, so no alignment above it can be kept.
const ALIGN_MOST: u32 = 64 << 10;

impl File {
    #[cfg(test)]
    pub(crate) fn new(fd: BorrowedFd<'_>, cold: Cold) -> Result<Self, FileError> {
        Self::open(fd, cold, Strict::default())
    }

    pub(crate) fn open(fd: BorrowedFd<'_>, cold: Cold, strict: Strict) -> Result<Self, FileError> {
        let own = duplicate(fd)?;
        let raw = fd.as_raw_fd();
        let failed = |call, errno: rustix::io::Errno| FileError::Call {
            call,
            fd: raw,
            errno: errno.raw_os_error(),
        };
        let stat = rustix::fs::fstat(&own).map_err(|errno| failed("fstat", errno))?;
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        if !kind.is_file() && !kind.is_block_device() {
            return Err(FileError::Kind { fd: raw, what: words(kind) });
        }
        let mode = mode(&own).map_err(|errno| failed("fcntl(F_GETFL)", errno))?;
        let own = std::fs::File::from(own);
        let align = alignment(&own);
        // The halves are mixed so that neighbours do not meet in one of a few locks.
        let identity =
            stat.st_ino.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ stat.st_dev.rotate_left(32);
        Ok(Self(Arc::new(Arc::new(Inner {
            own: own.into(),
            mode,
            align,
            identity,
            regular: kind.is_file(),
            cold,
            strict: mode.direct
                && match strict {
                    Strict::BlockDevices => kind.is_block_device(),
                    Strict::All => true,
                    Strict::None => false,
                },
            buffered: Twin::new(),
            direct: Twin::new(),
            direct_refused: AtomicBool::new(false),
            spread: Spread::new(),
            warmth: Warmth::new(),
            #[cfg(test)]
            panics: AtomicBool::new(false),
        }))))
    }
}

impl Inner {
    /// What a call is likely to wait for. `large` says that it is.
    pub(crate) fn pace(&self, op: Op, large: bool) -> Pace {
        match op {
            Op::Write if !self.mode.direct => Pace::Alone,
            Op::Write => Pace::Waits,
            Op::Read if self.strict => Pace::Waits,
            Op::Read if self.reads_past(large) && self.align != 0 && self.warmth.is_cold() => {
                Pace::Waits
            }
            Op::Read => Pace::Copies,
        }
    }

    /// Panics if a test asked for it, once.
    #[cfg(test)]
    pub(crate) fn panic_if_asked(&self) {
        assert!(!self.panics.swap(false, Ordering::AcqRel), "asked for by a test");
    }

    /// Whether it is the same file as another, most likely.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Whether what the page cache does not hold is read past it.
    fn reads_past(&self, large: bool) -> bool {
        self.mode.direct || (large && self.cold == Cold::Direct)
    }

    /// A descriptor without `O_DIRECT`, where there is one.
    fn buffered(&self) -> Option<RawFd> {
        let own = self.own.as_raw_fd();
        if !self.mode.direct && !self.mode.append {
            return Some(own);
        }
        let twin = self.buffered.get(own, self.mode.kept, true);
        twin.or_else(|| (!self.mode.direct).then_some(own))
    }

    /// As [`Inner::buffered`], to read by: the calling thread's own where many read. None for a
    /// file that is never read from the page cache.
    fn reading(&self) -> Option<RawFd> {
        if self.strict {
            return None;
        }
        let first = self.buffered()?;
        let advised = first != self.own.as_raw_fd();
        Some(self.spread.get(first, self.mode.kept, advised).unwrap_or(first))
    }

    /// A descriptor with `O_DIRECT`, where there is one and the file system takes it.
    fn direct(&self) -> Option<RawFd> {
        if self.align == 0 || self.direct_refused.load(Ordering::Relaxed) {
            return None;
        }
        let own = self.own.as_raw_fd();
        if self.mode.direct && !self.mode.append {
            return Some(own);
        }
        let twin = self.direct.get(own, self.mode.kept | libc::O_DIRECT, false);
        twin.or_else(|| self.mode.direct.then_some(own))
    }

    /// Bytes from a multiple of the alignment of direct I/O to `offset`: where in a slot the byte
    /// at `offset` shall stand.
    pub(crate) fn skip(&self, offset: u64) -> usize {
        let align = self.align() as u64;
        #[expect(clippy::cast_possible_truncation, reason = "below the alignment")]
        let skip = (offset % align) as usize;
        skip
    }

    /// What direct I/O is aligned to here, in bytes: a power of two from 4 KiB to 64 KiB.
    pub(crate) fn align(&self) -> usize {
        self.align.max(ALIGN_LEAST) as usize
    }

    /// The size of a regular file now.
    pub(crate) fn size(&self) -> Option<u64> {
        if !self.regular {
            return None;
        }
        let stat = rustix::fs::fstat(&self.own).ok()?;
        u64::try_from(stat.st_size).ok()
    }

    /// The call's error, with the file's name.
    #[cold]
    pub(crate) fn fault(&self, failed: Failed) -> Fault {
        let Failed { call, errno, offset, len } = failed;
        let link = PathBuf::from(format!("/proc/self/fd/{}", self.own.as_raw_fd()));
        let path = std::fs::read_link(&link).unwrap_or(link);
        Fault::File { call, errno, offset, len, path }
    }
}

/// A duplicate above the standard streams: a program that closed one of those may open it again.
fn duplicate(fd: BorrowedFd<'_>) -> Result<OwnedFd, FileError> {
    rustix::io::fcntl_dupfd_cloexec(fd, 3).map_err(|errno| FileError::Call {
        call: "fcntl(F_DUPFD_CLOEXEC)",
        fd: fd.as_raw_fd(),
        errno: errno.raw_os_error(),
    })
}

fn mode(fd: &OwnedFd) -> Result<Mode, rustix::io::Errno> {
    let flags = rustix::fs::fcntl_getfl(fd)?.bits().cast_signed();
    let kept = libc::O_ACCMODE | libc::O_SYNC | libc::O_DSYNC | libc::O_NOATIME;
    Ok(Mode {
        direct: flags & libc::O_DIRECT != 0,
        append: flags & libc::O_APPEND != 0,
        kept: flags & kept,
    })
}

/// What the file system asks of direct I/O (`statx(2)`, `STATX_DIOALIGN`, Linux 6.1); a page where
/// it does not say.
fn alignment(file: &std::fs::File) -> u32 {
    let told = gpuio_host::statx::open_file(file).ok().and_then(|facts| facts.direct);
    let Some(told) = told else {
        return ALIGN_LEAST;
    };
    let most = told.memory_bytes.max(told.offset_bytes);
    if !told.supported || most > ALIGN_MOST || !most.is_power_of_two() {
        return 0;
    }
    most.max(ALIGN_LEAST)
}

fn words(kind: rustix::fs::FileType) -> &'static str {
    use rustix::fs::FileType;
    match kind {
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::Symlink => "a symbolic link",
        _ => "of an unknown kind",
    }
}

/// Takes ownership of a descriptor that a system call just gave.
///
/// # Safety
///
/// `fd` is open and nobody else's.
unsafe fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: the caller's promise.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[cfg(test)]
mod tests;
