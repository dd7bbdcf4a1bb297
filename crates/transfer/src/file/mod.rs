//! Files, opened from callers' descriptors.

mod closing;
mod count;
mod edges;
pub(crate) mod kept;
pub(crate) mod magic;
mod read;
mod reopen;
mod residency;
mod shards;
mod spares;
mod sys;
mod write;

use std::any::Any;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use rustix::fs::OFlags;

use crate::Op;
use crate::fault::{Fault, FileError, FileFault};
use crate::mapped::MappedInode;
use crate::settings::{BypassCache, UncachedReads};
pub(crate) use closing::has_write_lease;
pub use kept::KeptFd;
use kept::owned;
pub(crate) use kept::{Descriptor, FileId, Place, are_fixed_too_many, is_of};
pub(crate) use read::{CacheLookup, FileBytes, ReadBuffer, UncachedRead};
use reopen::ReopenedFd;
pub(crate) use reopen::{HAS_LOCKS, reopen_to_read};
use residency::CacheResidency;
use shards::DescriptorShards;

/// A file, held by a duplicate of the caller's descriptor; the caller may close its own at any
/// time. Cloning is cheap. The duplicate is closed with the last clone; calls in progress hold one.
///
/// There may be more descriptors of the same file, opened through `/proc/self/fd` when first
/// needed: one in the other mode (with or without `O_DIRECT`), and if many threads read the file
/// three more without `O_DIRECT` (`shards`). The more files there are, the fewer of these (`kept`);
/// then a use opens the one that it needs. The caller's advice
/// (`posix_fadvise(2)`) does not apply to them. None is opened nor closed while the process has a
/// POSIX record lock on the file (`fcntl(2)`, `F_SETLK`): closing any descriptor would drop it.
#[derive(Debug, Clone)]
#[expect(clippy::redundant_allocation, reason = "the outer one is a count, see `with_own_count`")]
pub struct File(pub(crate) Arc<Arc<OpenFile>>);

impl File {
    /// The same file with a reference count of its own. All clones of one `File` share a count,
    /// whose cache line moves between the processors of threads that clone at the same time. Clones
    /// of the result use another one.
    pub fn with_own_count(&self) -> Self {
        Self(Arc::new(Arc::clone(&self.0)))
    }
}

/// The shared state of all calls on a file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// Itself, for the list of those that have spares.
    itself: Weak<OpenFile>,
    /// The caller's open file description.
    own: KeptFd,
    mode: Mode,
    /// Alignment of offsets, lengths and memory for direct I/O, in bytes: a power of two, 4096 at
    /// least. 0 if direct I/O is not possible.
    align: u32,
    /// Device and inode in one number.
    identity: u64,
    regular: bool,
    uncached: UncachedReads,
    /// Never read from the page cache.
    bypass_cache: bool,
    /// Without `O_DIRECT`.
    buffered: ReopenedFd,
    /// With it.
    direct: ReopenedFd,
    /// The file system accepted `O_DIRECT` and refused a read or write with it.
    direct_refused: AtomicBool,
    /// More descriptors without `O_DIRECT`.
    shards: DescriptorShards,
    residency: CacheResidency,
    /// The same file among those that may be mapped, once that was tried; `None` if it can't be.
    mapped: OnceLock<Option<Arc<MappedInode>>>,
    /// The same of files whose pages the GPU may fill: held for `mapped::written`, which knows what
    /// it is.
    written: OnceLock<Option<Arc<dyn Any + Send + Sync>>>,
    /// Whether it is on a file system in memory, once that was needed.
    in_memory: OnceLock<bool>,
    /// Whether the next read or write panics.
    #[cfg(test)]
    pub(crate) panics: AtomicBool,
}

/// The limit on the speed of a call. Determines how it is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// The processor: bytes are copied out of the page cache.
    Cpu,
    /// The device.
    Device,
    /// The file: the kernel lets only one thread at a time write through the page cache.
    FileLock,
}

/// How the caller's descriptor is open (`fcntl(2)`, `F_GETFL`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    direct: bool,
    /// With `O_APPEND` Linux appends whatever offset a write names (`pwrite(2)`, "BUGS"). Such a
    /// descriptor is used only if the file can't be reopened without it.
    append: bool,
    /// The flags that a reopened descriptor gets too.
    reopen_flags: libc::c_int,
}

/// Offsets and memory of direct I/O are aligned to a page at least, even if a sector would do: so
/// blocks of direct writes never share a page with edges written through the cache.
const ALIGN_LEAST: u32 = 4096;
/// Pieces of calls are no shorter than this, so a larger alignment is impossible.
const ALIGN_MOST: u32 = 64 << 10;

impl File {
    #[cfg(test)]
    pub(crate) fn new(fd: BorrowedFd<'_>, uncached: UncachedReads) -> Result<Self, FileError> {
        Self::open(fd, uncached, BypassCache::default())
    }

    pub(crate) fn open(
        fd: BorrowedFd<'_>,
        uncached: UncachedReads,
        bypass_cache: BypassCache,
    ) -> Result<Self, FileError> {
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
            return Err(FileError::Kind { fd: raw, what: file_type_name(kind) });
        }
        let mode = mode(&own).map_err(|errno| failed("fcntl(F_GETFL)", errno))?;
        let align = direct_alignment(&own);
        // Mixes the halves so that neighbouring files do not share a lock.
        let identity =
            stat.st_ino.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ stat.st_dev.rotate_left(32);
        spares::close_those_too_many();
        closing::close_parked();
        Ok(Self(Arc::new(Arc::new_cyclic(|itself| OpenFile {
            itself: Weak::clone(itself),
            own,
            mode,
            align,
            identity,
            regular: kind.is_file(),
            uncached,
            bypass_cache: mode.direct
                && match bypass_cache {
                    BypassCache::BlockDevices => kind.is_block_device(),
                    BypassCache::All => true,
                    BypassCache::None => false,
                },
            buffered: ReopenedFd::new(mode.append),
            direct: ReopenedFd::new(mode.append),
            direct_refused: AtomicBool::new(false),
            shards: DescriptorShards::new(),
            residency: CacheResidency::new(),
            mapped: OnceLock::new(),
            written: OnceLock::new(),
            in_memory: OnceLock::new(),
            #[cfg(test)]
            panics: AtomicBool::new(false),
        }))))
    }
}

/// A mark that changes when a file's bytes do, by whatever way (`fstat(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Bytes.
    pub(crate) size: u64,
    /// The last change (`st_mtim`), nanoseconds of real time.
    pub(crate) modified_ns: i64,
}

impl Stamp {
    /// The stamp of a descriptor's file; `None` if the kernel refuses.
    pub(crate) fn of(file: impl AsFd) -> Option<Self> {
        let facts = rustix::fs::fstat(file).ok()?;
        let fraction = i64::try_from(facts.st_mtime_nsec).ok()?;
        let modified_ns = facts.st_mtime.wrapping_mul(1_000_000_000).wrapping_add(fraction);
        Some(Self { size: u64::try_from(facts.st_size).ok()?, modified_ns })
    }
}

impl OpenFile {
    /// The likely bottleneck of a call. `large`: the call is large.
    pub(crate) fn bottleneck(&self, op: Op, large: bool) -> Bottleneck {
        match op {
            Op::Write if !self.mode.direct => Bottleneck::FileLock,
            Op::Write => Bottleneck::Device,
            Op::Read if self.bypass_cache => Bottleneck::Device,
            Op::Read
                if self.bypasses_cache(large) && self.align != 0 && self.residency.is_cold() =>
            {
                Bottleneck::Device
            }
            Op::Read => Bottleneck::Cpu,
        }
    }

    /// Panics once if a test requested it.
    #[cfg(test)]
    pub(crate) fn panic_if_requested(&self) {
        assert!(!self.panics.swap(false, Ordering::AcqRel), "requested by a test");
    }

    /// Whether it is most likely the same file.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Whether bytes that are not in the page cache are read with `O_DIRECT`.
    fn bypasses_cache(&self, large: bool) -> bool {
        self.mode.direct || (large && self.uncached == UncachedReads::Direct)
    }

    /// The error if the program closed our duplicate, or put another file there: no byte of that
    /// is read or written. `surely`: a look of the last milliseconds is not enough.
    fn check(&self, surely: bool, offset: u64, len: usize) -> Result<(), FileFault> {
        if self.own.looks_ours(surely) {
            return Ok(());
        }
        let call = "the program closed gpuio's descriptor of the file: an I/O";
        Err(FileFault { call, errno: libc::EBADF, offset, len: len as u64 })
    }

    /// A descriptor without `O_DIRECT`, if there is one.
    fn buffered(&self, surely: bool) -> Option<Descriptor<'_>> {
        let own = || Descriptor::Own(&self.own);
        if !self.mode.direct && !self.mode.append {
            return Some(own());
        }
        let has_opened = || spares::add(&self.itself);
        let (flags, how) = (self.mode.reopen_flags, (true, surely));
        let reopened = self.buffered.get(&self.own, flags, how, has_opened);
        reopened.or_else(|| (!self.mode.direct).then(own))
    }

    /// Like [`OpenFile::buffered`], for reading: the calling thread's own descriptor if many
    /// threads read. None for a file that is never read from the page cache.
    fn reading(&self, surely: bool) -> Option<Descriptor<'_>> {
        if self.bypass_cache {
            return None;
        }
        let first = self.buffered(surely)?;
        let how = (first.raw() != self.own.raw(), surely);
        let has_opened = || spares::add(&self.itself);
        let shard = self.shards.get(&self.own, self.mode.reopen_flags, how, has_opened);
        Some(shard.unwrap_or(first))
    }

    /// Closes the spares that nobody uses.
    fn close_unused_spares(&self) {
        self.buffered.close_unused();
        self.direct.close_unused();
        self.shards.close_unused();
    }

    fn has_spares(&self) -> bool {
        self.buffered.is_open() || self.direct.is_open() || self.shards.are_open()
    }

    /// A descriptor with `O_DIRECT`, if there is one and the file system accepts it.
    fn direct(&self, surely: bool) -> Option<Descriptor<'_>> {
        if self.align == 0 || self.direct_refused.load(Ordering::Relaxed) {
            return None;
        }
        let own = || Descriptor::Own(&self.own);
        if self.mode.direct && !self.mode.append {
            return Some(own());
        }
        let flags = self.mode.reopen_flags | libc::O_DIRECT;
        let has_opened = || spares::add(&self.itself);
        let reopened = self.direct.get(&self.own, flags, (false, surely), has_opened);
        reopened.or_else(|| self.mode.direct.then(own))
    }

    /// The distance in bytes of `offset` from the last multiple of the direct I/O alignment. The
    /// byte at `offset` goes to this position in a slot.
    pub(crate) fn skip(&self, offset: u64) -> usize {
        let align = self.align() as u64;
        #[expect(clippy::cast_possible_truncation, reason = "below the alignment")]
        let skip = (offset % align) as usize;
        skip
    }

    /// The alignment of direct I/O, in bytes: a power of two from 4 KiB to 64 KiB.
    pub(crate) fn align(&self) -> usize {
        self.align.max(ALIGN_LEAST) as usize
    }

    /// The current size of a regular file.
    pub(crate) fn size(&self) -> Option<u64> {
        if !self.regular {
            return None;
        }
        let stat = rustix::fs::fstat(&self.own).ok()?;
        u64::try_from(stat.st_size).ok().filter(|_| self.own.looks_ours(false))
    }

    /// The file among those that may be mapped, if it is known to be one.
    pub(crate) fn mapped(&self) -> Option<&Arc<MappedInode>> {
        self.mapped.get()?.as_ref()
    }

    /// The same, found by `find` at first. A file that is never read from the page cache is none.
    pub(crate) fn mapped_or_else(
        &self,
        find: impl FnOnce() -> Option<Arc<MappedInode>>,
    ) -> Option<&Arc<MappedInode>> {
        let may = self.regular && !self.bypass_cache;
        self.mapped.get_or_init(|| may.then(find).flatten()).as_ref()
    }

    /// The file among those whose pages the GPU may fill, of this type, if it is known to be one.
    pub(crate) fn written<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.written.get()?.as_ref()?).downcast().ok()
    }

    /// The same, found by `find` at first.
    pub(crate) fn written_or_else<T: Any + Send + Sync>(
        &self,
        find: impl FnOnce() -> Option<Arc<T>>,
    ) -> Option<Arc<T>> {
        self.written.get_or_init(|| Some(find()?));
        self.written()
    }

    /// Whether the file can be mapped for writing by the caller's descriptor, which writes at any
    /// offset.
    pub(crate) fn can_be_filled(&self) -> bool {
        let access = self.mode.reopen_flags & libc::O_ACCMODE;
        self.regular && !self.mode.append && access == libc::O_RDWR
    }

    /// Whether a write by the caller's descriptor appends by now.
    pub(crate) fn has_begun_to_append(&self) -> bool {
        rustix::fs::fcntl_getfl(&self.own).map_or(true, |flags| flags.contains(OFlags::APPEND))
    }

    /// Where the caller's open file description is.
    pub(crate) fn place(&self) -> Place {
        self.own.place()
    }

    /// Whether the program has left our duplicate alone.
    pub(crate) fn is_still_ours(&self) -> bool {
        self.own.is_ours()
    }

    /// The seals of the file (`F_GET_SEALS`, fcntl(2)); `None` where it can't have any.
    pub(crate) fn seals(&self) -> Option<rustix::fs::SealFlags> {
        rustix::fs::fcntl_get_seals(&self.own).ok().filter(|_| self.own.is_ours())
    }

    /// Whether the file system has no storage behind the page cache, also for `O_DIRECT`.
    pub(crate) fn is_in_memory(&self) -> bool {
        *self.in_memory.get_or_init(|| magic::of(&self.own) == Some(magic::TMPFS))
    }

    /// The file's stamp, by the calling thread's own descriptor; `None` if the kernel refuses.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let fd = self.reading(false)?;
        // SAFETY: one of this file's descriptors, which are open for as long as it.
        Stamp::of(unsafe { BorrowedFd::borrow_raw(fd.raw()) })
    }

    /// The file and its size.
    pub(crate) fn identity_and_size(&self) -> Option<(FileId, u64)> {
        let stat = rustix::fs::fstat(&self.own).ok().filter(|_| self.own.is_ours())?;
        Some((self.place().file, u64::try_from(stat.st_size).ok()?))
    }

    /// A descriptor of its own for reading, or the errno if the kernel refuses: see
    /// [`reopen_to_read`].
    pub(crate) fn reopened_to_read(&self, is_spare: bool) -> Result<KeptFd, i32> {
        reopen_to_read(&self.own, is_spare)
    }

    /// The error of a call, with the file's name.
    #[cold]
    pub(crate) fn fault(&self, failed: FileFault) -> Fault {
        let FileFault { call, errno, offset, len } = failed;
        let link = PathBuf::from(format!("/proc/self/fd/{}", self.own.raw()));
        let path = match std::fs::read_link(&link) {
            Ok(path) if self.own.is_ours() => path,
            Ok(_) => PathBuf::from("a file that was registered"),
            Err(_) => link,
        };
        Fault::File { call, errno, offset, len, path }
    }
}

fn duplicate(fd: BorrowedFd<'_>) -> Result<KeptFd, FileError> {
    let duplicated = KeptFd::duplicate(fd).or_else(|errno| match errno {
        rustix::io::Errno::MFILE => {
            spares::close_all_unused();
            KeptFd::duplicate(fd)
        }
        errno => Err(errno),
    });
    duplicated.map_err(|errno| FileError::Call {
        call: "fcntl(F_DUPFD_CLOEXEC)",
        fd: fd.as_raw_fd(),
        errno: errno.raw_os_error(),
    })
}

fn mode(fd: impl AsFd) -> Result<Mode, rustix::io::Errno> {
    let flags = rustix::fs::fcntl_getfl(fd)?.bits().cast_signed();
    let reopen_flags = libc::O_ACCMODE | libc::O_SYNC | libc::O_DSYNC | libc::O_NOATIME;
    Ok(Mode {
        direct: flags & libc::O_DIRECT != 0,
        append: flags & libc::O_APPEND != 0,
        reopen_flags: flags & reopen_flags,
    })
}

/// The alignment that the file system requires for direct I/O (`statx(2)`, `STATX_DIOALIGN`, Linux
/// 6.1); a page if it does not report one.
fn direct_alignment(own: &KeptFd) -> u32 {
    // SAFETY: open, and never closed by this value.
    let file = std::mem::ManuallyDrop::new(std::fs::File::from(unsafe { owned(own.raw()) }));
    let limits = gpuio_host::statx::open_file(&file).ok().and_then(|facts| facts.direct);
    let Some(limits) = limits else {
        return ALIGN_LEAST;
    };
    let most = limits.memory_bytes.max(limits.offset_bytes);
    if !limits.supported || most > ALIGN_MOST || !most.is_power_of_two() {
        return 0;
    }
    most.max(ALIGN_LEAST)
}

fn file_type_name(kind: rustix::fs::FileType) -> &'static str {
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

#[cfg(test)]
mod tests;
