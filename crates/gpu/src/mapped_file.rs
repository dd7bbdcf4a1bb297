//! A part of a file that the device reads or writes in the page cache by itself.

use std::ffi::c_void;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::DevPtr;
use crate::context::Context;
use crate::error::GpuError;
use crate::table::{self, CUdeviceptr};

/// Why a part of a file could not be mapped or registered. The file is for the caller to name.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MapError {
    /// The kernel refused.
    #[error("{call}: {}", io::Error::from_raw_os_error(*errno))]
    Call {
        /// The call.
        call: &'static str,
        /// Its errno.
        errno: i32,
    },
    /// The file ends before the part does. Nobody may touch a mapping past the end of its file.
    #[error("it ends at byte {length}, and bytes up to {end} are to be mapped")]
    Short {
        /// The file's length in bytes.
        length: u64,
        /// The end of the part.
        end: u64,
    },
    /// The file system has no room for pages of the part, or the process may have no more.
    #[error("no page for its bytes from {at} on: {}", io::Error::from_raw_os_error(*errno))]
    Allocate {
        /// The first byte of the pages, in bytes of the file.
        at: u64,
        /// The errno of `fallocate(2)` for them.
        errno: i32,
    },
    /// There is nothing to map, or it is past what addresses can name.
    #[error("bytes {} to {} can't be mapped", .0.start, .0.end)]
    Range(Range<u64>),
    /// The driver refused.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// Shorter copies of the driver's may be made by the processor, inside the call that enqueues them
/// (CUDA 13.0, driver 580.159 on an H100: up to 24 KiB). Where another process has made a mapped
/// file shorter, that is a SIGBUS. Longer ones are read by the device, out of the pages that it has
/// pinned.
pub const COPIED_BY_DEVICE: usize = 64 << 10;

/// Bytes that are brought into the page cache between two looks at whether to go on.
const STEP: usize = 256 << 20;

/// Bytes that a thread allocates between two such looks.
const ALLOCATED: usize = 16 << 20;

/// A part of a file that is mapped, and not registered yet: the first steps of a [`MappedFile`],
/// for callers that time them apart, or may have to stop.
#[derive(Debug)]
pub struct FilePages {
    mapping: Mapping,
    /// The part, in bytes of the file: begins at a page.
    part: Range<u64>,
}

impl FilePages {
    /// Maps the bytes `part` of a file, from the page on in which they begin (`mmap(2)`).
    ///
    /// # Errors
    /// The file is shorter; the kernel refuses: a file that can't be mapped, no memory.
    pub fn map(file: BorrowedFd<'_>, part: Range<u64>) -> Result<Self, MapError> {
        let end = part.end;
        let length = length(file)?;
        if end > length {
            return Err(MapError::Short { length, end });
        }
        let part = part.start / page_size() * page_size()..end;
        Ok(Self { mapping: Mapping::new(file, &part, false)?, part })
    }

    /// As [`FilePages::map`], for the device to write too. The file is open for reading and
    /// writing. Allocates the first page and asks the driver to pin it, before anything is done
    /// to the others: the kernel pins pages for a device to write only of file systems that don't
    /// track dirty pages (tmpfs; since Linux 6.5 none of ext4, XFS and Btrfs).
    ///
    /// # Errors
    /// As there; [`MapError::Gpu`] where the kernel does not pin such pages.
    pub fn map_writable(
        context: &Context,
        file: BorrowedFd<'_>,
        part: Range<u64>,
    ) -> Result<Self, MapError> {
        let Self { part, .. } = Self::map(file, part)?;
        let first = part.start..part.end.min(part.start + page_size());
        let probe = Self { mapping: Mapping::new(file, &first, true)?, part: first };
        probe.allocate_step(file, 0)?;
        probe.register(context, false)?.close()?;
        Ok(Self { mapping: Mapping::new(file, &part, true)?, part })
    }

    /// As [`FilePages::map`], for the device to write too, and without the probe. The pages stay
    /// the parent's where the process forks (`MADV_DONTFORK`). The file is open for reading and
    /// writing. [`FilePages::register`] gives a page to each hole.
    ///
    /// # Errors
    /// As there.
    pub fn map_to_write(file: BorrowedFd<'_>, part: Range<u64>) -> Result<Self, MapError> {
        let Self { part, .. } = Self::map(file, part)?;
        let mapping = Mapping::new(file, &part, true)?;
        mapping.is_ours_alone()?;
        Ok(Self { mapping, part })
    }

    /// Whether the file has a page for each byte of the part, whatever the position of its
    /// descriptor: false if that is not known. Gives it none.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn has_all_pages(&self, file: BorrowedFd<'_>) -> Result<bool, MapError> {
        let pages = self.mapping.len as u64 / page_size();
        let mut found = vec![0; usize::try_from(pages).unwrap_or(0)];
        let start = self.mapping.start.as_ptr().cast::<c_void>();
        // SAFETY: a mapping of ours, and a byte for each of its pages.
        if unsafe { libc::mincore(start, self.mapping.len, found.as_mut_ptr()) } != 0 {
            return Err(refused("mincore"));
        }
        if found.iter().any(|page| page & 1 == 0) {
            return Ok(false);
        }
        // The call says yes to all where the process may not write the file by its permissions
        // (`can_do_mincore`).
        let facts = facts(file)?;
        let size = u64::try_from(facts.st_size).unwrap_or(u64::MAX);
        let blocks = u64::try_from(facts.st_blocks).unwrap_or(0).saturating_mul(512);
        Ok(facts.st_uid == rustix::process::geteuid().as_raw() || blocks >= size)
    }

    /// Allocates all pages, which the file keeps, with so many threads (`madvise(2)`,
    /// `MADV_POPULATE_WRITE`). No byte changes. Kernels before 5.14 leave it to
    /// [`FilePages::register`]. False where `goes_on`, which is called before each 16 MiB, was
    /// false.
    ///
    /// # Errors
    /// There is no room for pages ([`MapError::Allocate`]), or the file became shorter.
    pub fn allocate(
        &self,
        file: BorrowedFd<'_>,
        threads: usize,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, MapError> {
        let next = AtomicUsize::new(0);
        let steps = || {
            loop {
                let at = next.fetch_add(ALLOCATED, Ordering::Relaxed);
                if at >= self.mapping.len {
                    return Ok(true);
                }
                let done = if goes_on() { self.allocate_step(file, at) } else { return Ok(false) };
                if done.is_err() {
                    // The other threads take no further step.
                    next.store(self.mapping.len, Ordering::Relaxed);
                    return done.map(|()| true);
                }
            }
        };
        std::thread::scope(|scope| {
            // Fewer threads take longer, and that is all.
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, steps).ok();
            let others: Vec<_> = (1..threads).filter_map(start).collect();
            let joined = others.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined.fold(steps(), |all, other| match (all, other) {
                (Err(error), _) | (_, Ok(Err(error))) => Err(error),
                (Ok(all), Ok(Ok(other))) => Ok(all && other),
                (_, Err(panic)) => std::panic::resume_unwind(panic),
            })
        })
    }

    /// Allocates the pages of one step from byte `at` of the mapping on.
    fn allocate_step(&self, file: BorrowedFd<'_>, at: usize) -> Result<(), MapError> {
        let len = ALLOCATED.min(self.mapping.len - at);
        let error = match self.mapping.populate(at, len, libc::MADV_POPULATE_WRITE) {
            Err(error @ MapError::Call { errno: libc::EFAULT, .. }) => error,
            done => return done,
        };
        // It says only that an access would be a signal; fallocate(2) says why.
        let (at, length) = (self.part.start + at as u64, length(file)?);
        if self.part.end > length {
            return Err(MapError::Short { length, end: self.part.end });
        }
        let keeps = rustix::fs::FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(file, keeps, at, len as u64) {
            Err(errno) => Err(MapError::Allocate { at, errno: errno.raw_os_error() }),
            Ok(()) => Err(error),
        }
    }

    /// Brings all pages into the page cache and the page table (`madvise(2)`,
    /// `MADV_POPULATE_READ`): reads from storage what the page cache does not hold. Kernels before
    /// 5.14 leave that to [`FilePages::register`]. False where `goes_on`, which is called before
    /// each 256 MiB, was false.
    ///
    /// # Errors
    /// The file became shorter (`EFAULT`), or the kernel could not read it.
    pub fn read_in(&self, goes_on: &dyn Fn() -> bool) -> Result<bool, MapError> {
        for at in (0..self.mapping.len).step_by(STEP) {
            if !goes_on() {
                return Ok(false);
            }
            let len = STEP.min(self.mapping.len - at);
            self.mapping.populate(at, len, libc::MADV_POPULATE_READ)?;
        }
        Ok(true)
    }

    /// Registers the pages (`cuMemHostRegister`): pins them and makes them known to the device.
    /// With `portable`, contexts of other devices may use them too.
    ///
    /// # Errors
    /// The driver's refusal: pages that can't be pinned, for reading a device without
    /// [`DeviceFacts::read_only_register`], no memory, a file that became shorter.
    ///
    /// [`DeviceFacts::read_only_register`]: crate::DeviceFacts::read_only_register
    pub fn register(self, context: &Context, portable: bool) -> Result<MappedFile, GpuError> {
        let Self { mapping, part } = self;
        let _entered = context.enter()?;
        let portable = if portable { table::MEMHOST_PORTABLE } else { 0 };
        let (only, use_) = match mapping.writable {
            false => (table::MEMHOSTREGISTER_READ_ONLY, "to be read only"),
            true => (0, "to be written"),
        };
        let flags = table::MEMHOST_DEVICEMAP | only | portable;
        let call = context.table().cuMemHostRegister_v2;
        // SAFETY: whole pages of a mapping of ours, which is unmapped after it is unregistered.
        let code = unsafe { call(mapping.start.as_ptr().cast::<c_void>(), mapping.len, flags) };
        context
            .check("cuMemHostRegister_v2", code)
            .map_err(|e| e.with(format!("{} bytes of a file, {use_}", mapping.len)))?;
        Ok(MappedFile { context: context.clone(), mapping: Some(mapping), part })
    }
}

/// A part of a file, mapped shared and read-only (`mmap(2)`, `MAP_SHARED`) and registered with the
/// driver as memory that the device only reads (`CU_MEMHOSTREGISTER_READ_ONLY`). The device then
/// reads the pages of the page cache: by a copy from [`MappedFile::as_ptr`], or by a kernel at
/// [`MappedFile::seen_by`]. For file systems whose pages the kernel pins for long.
///
/// The host never reads the mapping, here or through what it hands out: where the file became
/// shorter, that would be a SIGBUS. The device's reads are not affected by that: pages that are
/// pinned stay until they are unregistered.
///
/// The registration keeps the pages, not the file's content. Bytes that `write(2)` puts into the
/// page cache are seen. Changes that replace pages are not: writes with `O_DIRECT`, holes that are
/// punched, truncation, and writes by other hosts of a network file system leave the old bytes
/// visible.
///
/// One of [`FilePages::map_writable`] the device writes too. Its writes are in the file at once, as
/// long as the page is the file's: [`MappedFile::lost_bytes`].
///
/// Dropping it unregisters, then unmaps: no copy out of it may then be under way, which is the
/// contract of the copies in [`Stream`](crate::Stream).
#[derive(Debug)]
pub struct MappedFile {
    context: Context,
    /// Absent once it was given back.
    mapping: Option<Mapping>,
    /// The part, in bytes of the file: begins at a page.
    part: Range<u64>,
}

// SAFETY: it owns its mapping, which no method reads; the driver allows the unregistering on any
// thread.
unsafe impl Send for MappedFile {}
// SAFETY: through a shared reference only addresses can be had.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// [`FilePages::map`], [`FilePages::read_in`] and [`FilePages::register`] in one.
    ///
    /// # Errors
    /// As there.
    pub fn new(
        context: &Context,
        file: BorrowedFd<'_>,
        part: Range<u64>,
        portable: bool,
    ) -> Result<Self, MapError> {
        let pages = FilePages::map(file, part)?;
        pages.read_in(&|| true)?;
        Ok(pages.register(context, portable)?)
    }

    /// The first byte, for copies by the driver. Not to be read by the host.
    pub fn as_ptr(&self) -> *const u8 {
        self.mapping.as_ref().map_or(std::ptr::null(), |mapping| mapping.start.as_ptr())
    }

    /// The first byte as kernels in `context` see it.
    ///
    /// # Errors
    /// The driver's refusal: a context of another device, and it is not portable.
    pub fn seen_by(&self, context: &Context) -> Result<DevPtr, GpuError> {
        let start = self.as_ptr();
        let Some(query) = context.table().cuMemHostGetDevicePointer_v2 else {
            return Ok(DevPtr(start as u64));
        };
        let _entered = context.enter()?;
        let mut seen: CUdeviceptr = 0;
        // SAFETY: `seen` is valid for the write of one address; the memory is registered.
        let code = unsafe { query(&raw mut seen, start.cast_mut().cast(), 0) };
        context.check("cuMemHostGetDevicePointer_v2", code)?;
        Ok(DevPtr(seen))
    }

    /// The bytes of the file that it holds; the first is that at [`MappedFile::as_ptr`].
    pub fn part(&self) -> Range<u64> {
        self.part.clone()
    }

    /// Bytes that are pinned: whole pages.
    pub fn pinned_bytes(&self) -> u64 {
        self.mapping.as_ref().map_or(0, |mapping| mapping.len as u64)
    }

    /// Bytes of `part` of the file whose pages the mapping may have lost since they were pinned:
    /// the file became shorter, or got a hole. The device's writes there, completed before this
    /// call or later ones, may be in no file; all its other writes are.
    ///
    /// `pagemap` is `/proc/self/pagemap` (proc(5), Linux 2.6.25; bit 63 of an entry: the page is
    /// present). The kernel takes a page out of all page tables before it takes it out of the file
    /// (`unmap_mapping_range`), and nothing brings it back, since the host never accesses the
    /// mapping. So a page that is still in this process's page table has been the file's all the
    /// time. The kernel may also unmap pages when memory is short, and all of a folio when one of
    /// its pages is lost; these count as lost.
    ///
    /// # Errors
    /// `pagemap` can't be read.
    pub fn lost_bytes(&self, pagemap: &impl FileExt, part: Range<u64>) -> io::Result<u64> {
        absent_bytes(self.as_ptr(), &self.part, pagemap, &part)
    }

    /// Takes the file out of the addresses, which stay taken, and keeps the registration until
    /// this is dropped: the file is not open for writing any more, and its file system not busy.
    /// Calls no driver.
    pub fn let_go_of_file(&self) {
        if let Some(mapping) = &self.mapping {
            mapping.forget_file();
        }
    }

    /// Whether the device may write it.
    pub fn is_writable(&self) -> bool {
        self.mapping.as_ref().is_some_and(|mapping| mapping.writable)
    }

    /// Unregisters and unmaps it. Dropping it does the same.
    ///
    /// # Errors
    /// The driver's refusal: the mapping then stays for as long as the process lives, since the
    /// device may still know its addresses.
    pub fn close(mut self) -> Result<(), GpuError> {
        self.give_back()
    }

    /// Lets go of the file and keeps the registration: unregistering waits for all work of the
    /// device, and other threads' launches and copies wait for it meanwhile (H100, driver of CUDA
    /// 13.0), so a thread of a library must not do it behind a program's back.
    ///
    /// The addresses stay taken and can't be accessed any more, so that no other memory gets them
    /// while the driver knows them; the file is no longer mapped. Its pinned pages stay in memory
    /// until the context ends. `None`: the context was reset, so nothing is registered and all was
    /// given back. Calls no driver that waits for the device.
    #[must_use]
    pub fn retire(mut self) -> Option<RetiredFile> {
        let mapping = self.mapping.take().map(ManuallyDrop::new)?;
        if self.context.is_reset() {
            drop(ManuallyDrop::into_inner(mapping));
            return None;
        }
        mapping.forget_file();
        Some(RetiredFile { context: self.context.clone(), mapping })
    }

    fn give_back(&mut self) -> Result<(), GpuError> {
        // Where it can't be unregistered the addresses stay taken.
        let Some(mapping) = self.mapping.take().map(ManuallyDrop::new) else { return Ok(()) };
        let _entered = self.context.enter()?;
        // SAFETY: registered by `FilePages::register` and unregistered once; nothing is under way,
        // by the contract of the copies.
        let code = unsafe {
            (self.context.table().cuMemHostUnregister)(mapping.start.as_ptr().cast::<c_void>())
        };
        self.context.check("cuMemHostUnregister", code)?;
        drop(ManuallyDrop::into_inner(mapping));
        Ok(())
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // A drop reports nothing; `close` does.
        let _ = self.give_back();
    }
}

/// A second mapping of a part of a file: which pages the file has lost since it was made. Made
/// before a [`MappedFile`] of the same part, it says so of the pages that are pinned there.
///
/// Nothing accesses it, the driver included, so that no page comes back into the page table (see
/// [`MappedFile::lost_bytes`]): where a driver's copy is made by the processor, that of the mapping
/// which is registered may get a new page.
#[derive(Debug)]
pub struct PageWatch {
    mapping: Mapping,
    /// The part, in bytes of the file: begins at a page.
    part: Range<u64>,
}

impl PageWatch {
    /// Maps the bytes `part` of a file, brings its pages into the page table and forbids access.
    /// The mapping is not inherited by children (`MADV_DONTFORK`), nor dumped: a dump would read
    /// it, and so bring pages back. Its pages stay small (`MADV_NOHUGEPAGE`): another process may
    /// have the kernel collapse those of any mapping (`process_madvise(2)`), which brings pages
    /// into the page table.
    ///
    /// # Errors
    /// The file is shorter, or the kernel refuses.
    pub fn new(file: BorrowedFd<'_>, part: Range<u64>) -> Result<Self, MapError> {
        let FilePages { mapping, part } = FilePages::map(file, part)?;
        mapping.is_ours_alone()?;
        match mapping.advise(libc::MADV_NOHUGEPAGE, "madvise(MADV_NOHUGEPAGE)") {
            // A kernel without huge pages collapses none.
            Ok(()) | Err(MapError::Call { errno: libc::EINVAL, .. }) => {}
            Err(error) => return Err(error),
        }
        mapping.populate(0, mapping.len, libc::MADV_POPULATE_READ)?;
        let start = mapping.start.as_ptr().cast::<c_void>();
        // SAFETY: a mapping of ours, whole, which nothing accesses.
        if unsafe { libc::mprotect(start, mapping.len, libc::PROT_NONE) } != 0 {
            return Err(refused("mprotect"));
        }
        Ok(Self { mapping, part })
    }

    /// Bytes of `part` of the file whose pages are not known to have been the file's since this was
    /// made: whole pages. `pagemap` as in [`MappedFile::lost_bytes`].
    ///
    /// # Errors
    /// `pagemap` can't be read.
    pub fn lost_bytes(&self, pagemap: &impl FileExt, part: Range<u64>) -> io::Result<u64> {
        absent_bytes(self.mapping.start.as_ptr(), &self.part, pagemap, &part)
    }

    /// Takes the file out of the addresses, as [`MappedFile::let_go_of_file`] does.
    pub fn let_go_of_file(&self) {
        self.mapping.forget_file();
    }
}

/// Bytes of `part`, inside the part `of` a file that is mapped at `start`, which are not in the
/// page table: whole pages.
fn absent_bytes(
    start: *const u8,
    of: &Range<u64>,
    pagemap: &impl FileExt,
    part: &Range<u64>,
) -> io::Result<u64> {
    let page = page_size();
    let from = part.start.max(of.start) / page;
    let end = part.end.min(of.end).div_ceil(page);
    let first = start as u64 / page + from - of.start / page;
    let (mut entries, mut absent) = ([0; 8 * 512], 0);
    for at in (0..end.saturating_sub(from)).step_by(512) {
        let count = usize::try_from(end - from - at).map_or(512, |left| left.min(512));
        let some = &mut entries[..8 * count];
        pagemap.read_exact_at(some, (first + at) * 8)?;
        let entries = some.as_chunks::<8>().0.iter().map(|entry| u64::from_ne_bytes(*entry));
        absent += entries.filter(|entry| entry >> 63 == 0).count() as u64;
    }
    Ok(absent * page)
}

/// A registration that outlives its use: see [`MappedFile::retire`]. Dropping it gives nothing
/// back.
#[derive(Debug)]
pub struct RetiredFile {
    context: Context,
    mapping: ManuallyDrop<Mapping>,
}

impl RetiredFile {
    /// Bytes that are pinned: whole pages.
    pub fn pinned_bytes(&self) -> u64 {
        self.mapping.len as u64
    }

    /// Gives the addresses back if the context was reset, and the registration ended with it; else
    /// returns itself.
    #[must_use]
    pub fn released(self) -> Option<Self> {
        if !self.context.is_reset() {
            return Some(self);
        }
        drop(ManuallyDrop::into_inner(self.mapping));
        None
    }
}

/// A shared mapping of whole pages of a file. The host never accesses it.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// Whether it may be written, too.
    writable: bool,
}

// SAFETY: through a shared reference only addresses can be had, and calls of the kernel made that
// change no byte.
unsafe impl Sync for Mapping {}
// SAFETY: it owns its addresses, which nothing accesses.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the pages of `part`, which begins at a page.
    fn new(file: BorrowedFd<'_>, part: &Range<u64>, writable: bool) -> Result<Self, MapError> {
        let wrong = || MapError::Range(part.clone());
        let bytes = part.end.checked_sub(part.start).filter(|bytes| *bytes > 0);
        let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(page_size()));
        let len = bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(wrong)?;
        let offset = i64::try_from(part.start).map_err(|_| wrong())?;
        let write = if writable { libc::PROT_WRITE } else { 0 };
        let (prot, flags) = (libc::PROT_READ | write, libc::MAP_SHARED);
        let (null, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice touches no other.
        let start = unsafe { libc::mmap64(null, len, prot, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(refused("mmap"));
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(wrong)?;
        Ok(Self { start, len, writable })
    }

    /// Takes the file out of the addresses, which stay taken and can't be accessed. A kernel
    /// without memory for that leaves the file mapped.
    fn forget_file(&self) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let start = self.start.as_ptr().cast::<c_void>();
        // SAFETY: replaces a mapping of ours, whole, which no host thread ever accesses.
        let _ = unsafe { libc::mmap64(start, self.len, libc::PROT_NONE, flags, -1, 0) };
    }

    /// Brings the pages of `len` bytes from `at` on, inside the mapping, into the page cache and
    /// into the page table, with `MADV_POPULATE_READ` or `MADV_POPULATE_WRITE`. A file that is too
    /// short by now is an errno here, where touching it would be a signal.
    fn populate(&self, at: usize, len: usize, how: i32) -> Result<(), MapError> {
        debug_assert!(at + len <= self.len);
        let start = self.start.as_ptr().wrapping_add(at).cast::<c_void>();
        // SAFETY: pages of our own mapping, which the call does not change.
        let done = unsafe { libc::madvise(start, len, how) };
        if done == 0 {
            return Ok(());
        }
        match refused("madvise(MADV_POPULATE_READ or WRITE)") {
            // Linux before 5.14: the registration does it.
            MapError::Call { errno: libc::EINVAL, .. } => Ok(()),
            error => Err(error),
        }
    }

    /// Keeps it from children and out of dumps.
    fn is_ours_alone(&self) -> Result<(), MapError> {
        self.advise(libc::MADV_DONTFORK, "madvise(MADV_DONTFORK)")?;
        self.advise(libc::MADV_DONTDUMP, "madvise(MADV_DONTDUMP)")
    }

    /// Advice for the whole mapping, of a kind that changes no page.
    fn advise(&self, how: i32, call: &'static str) -> Result<(), MapError> {
        let start = self.start.as_ptr().cast::<c_void>();
        // SAFETY: pages of our own mapping, which the call does not change.
        match unsafe { libc::madvise(start, self.len, how) } {
            0 => Ok(()),
            _ => Err(refused(call)),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this length and unmapped once.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast::<c_void>(), self.len) };
    }
}

/// The kernel's last refusal in this thread.
fn refused(call: &'static str) -> MapError {
    MapError::Call { call, errno: io::Error::last_os_error().raw_os_error().unwrap_or(0) }
}

fn facts(file: BorrowedFd<'_>) -> Result<rustix::fs::Stat, MapError> {
    let facts = rustix::fs::fstat(file);
    facts.map_err(|errno| MapError::Call { call: "fstat", errno: errno.raw_os_error() })
}

/// The length of a file or block device, in bytes. Moves the position of a descriptor of the
/// latter, which nothing here uses.
fn length(file: BorrowedFd<'_>) -> Result<u64, MapError> {
    let facts = facts(file)?;
    if rustix::fs::FileType::from_raw_mode(facts.st_mode).is_file() {
        return Ok(u64::try_from(facts.st_size).unwrap_or(0));
    }
    // SAFETY: integers only.
    let end = unsafe { libc::lseek64(file.as_raw_fd(), 0, libc::SEEK_END) };
    u64::try_from(end).map_err(|_| refused("lseek"))
}

fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    /// A file without a name.
    fn nameless(what: &str) -> File {
        let name = std::env::temp_dir().join(format!("gpuio-{what}-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&name);
        std::fs::remove_file(&name).expect("it is there");
        file.expect("a temporary file")
    }

    /// Between the look at the length and the registration.
    #[test]
    fn a_file_that_becomes_shorter_is_an_error_and_no_signal() {
        let file = nameless("shorter");
        file.set_len(1 << 20).expect("room for it");
        let mapping = Mapping::new(file.as_fd(), &(0..1 << 20), false).expect("it can be mapped");
        file.set_len(4096).expect("it is ours");
        let error = mapping.populate(0, 1 << 20, libc::MADV_POPULATE_READ);
        let error = error.expect_err("pages past the end");
        // A kernel before 5.14 leaves it to the driver.
        assert!(matches!(error, MapError::Call { errno: libc::EFAULT, .. }), "{error}");
    }

    #[test]
    fn reading_in_stops_between_two_steps() {
        let file = nameless("steps");
        file.set_len(2 * STEP as u64 + 1).expect("room for a hole");
        let part = 0..2 * STEP as u64 + 1;
        let pages = FilePages::map(file.as_fd(), part).expect("it can be mapped");
        let asked = std::cell::Cell::new(0);
        let goes_on = || {
            asked.set(asked.get() + 1);
            asked.get() < 2
        };
        assert!(!pages.read_in(&goes_on).expect("holes can be read"));
        assert_eq!(asked.get(), 2);
    }
}
