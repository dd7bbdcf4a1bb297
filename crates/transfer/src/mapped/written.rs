//! Files in memory that are written again and again: the GPU fills their pages by itself.
//!
//! An extent of a file on tmpfs, or of a memfd, is mapped and registered after it was written
//! twice. A later write whose bytes all lie in registered extents is one copy of the driver's into
//! the page cache ([`find_written`]), and then a `pwrite(2)` of what is left: the bytes before the
//! first page that is filled, and those from the start of the last page on. So the file's
//! times, limits (`RLIMIT_FSIZE`), errors and its length are those of a `pwrite(2)` that ends where
//! the range does.
//!
//! Nothing keeps others from changing the file meanwhile: they may truncate it or punch holes into
//! it. Bytes in pages that it has lost by then are in no file. So after the copy and the `pwrite`,
//! a look into the page table (`gpuio_gpu::PageWatch`) says whether all pages of the range, the
//! last one too, have been the file's all the time. If one has not, the whole range is written
//! again, by `pwrite` alone: as if the change had come before the write. The range then is mapped
//! no more until it was written twice as often as before. A truncation to an offset inside a page
//! that was filled takes away the page behind it, so it is seen. A change inside one page, or
//! another writer's of the same bytes, may come before the copy of a part of them and after that of
//! another part.
//!
//! Pages are filled only where the file has them: an extent with a hole is not registered, and what
//! is written behind the end neither. Files that may be sealed against writing (`F_ADD_SEALS`) are
//! left alone: the kernel refuses the seal while pages are pinned. On hugetlbfs there is no
//! `pwrite(2)` at all. Other file systems track dirty pages, and the kernel pins none for writing.
//!
//! A registration ends with the last of the library's files of the inode, after a look that misses
//! a page, when the file has become shorter (within a second), and where the budget is wanted for
//! others. The file is let go of at once then, so that it is not open for writing any more, and the
//! mapper unregisters (`filler` says why it may).
//!
//! [`find_written`]: MappedFiles::find_written

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsFd, FromRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpuio_gpu::{COPIED_BY_DEVICE, MappedFile, PageWatch};
use rustix::fs::SealFlags;

use super::extent::EXTENT;
use super::filler::{FillCopy, Filler};
use super::inode::InodeId;
use super::{MappedFiles, SHORTEST, tick};
use crate::device::Device;
use crate::fault::FileFault;
use crate::file::{KeptFd, OpenFile};

/// Shorter writes are not filled, bytes: what they save is less than the look costs.
pub(crate) const SHORTEST_WRITE: u64 = 128 << 10;
/// How often an extent is written before it is registered: at first and at most.
const PASSES: (u64, u64) = (2, 64);

/// A file in memory that is written. The library's files hold it, and with the last of them it
/// ends.
#[derive(Debug)]
pub(crate) struct WrittenInode {
    files: &'static MappedFiles,
    id: InodeId,
    /// Open for reading and writing, from when it is hot until the process has too few descriptors
    /// left.
    fd: Mutex<Option<Arc<KeptFd>>>,
    extents: Mutex<HashMap<u64, WrittenExtent>>,
    passes: AtomicU64,
    refused: AtomicBool,
}

#[derive(Debug, Default)]
struct WrittenExtent {
    /// Bytes written while it was not registered.
    heat: u64,
    is_queued: bool,
    /// In steps of [`tick`].
    last_used: u32,
    /// With the index of the device.
    pinned: Option<(u32, Arc<PinnedExtent>)>,
}

/// A registered extent, for as long as something uses it.
#[derive(Debug)]
pub(super) struct PinnedExtent {
    files: &'static MappedFiles,
    filler: &'static Filler,
    /// Made before the pages were pinned.
    watch: ManuallyDrop<PageWatch>,
    file: ManuallyDrop<MappedFile>,
}

impl PinnedExtent {
    pub(super) fn new(
        files: &'static MappedFiles,
        filler: &'static Filler,
        watch: PageWatch,
        file: MappedFile,
    ) -> Self {
        let (watch, file) = (ManuallyDrop::new(watch), ManuallyDrop::new(file));
        Self { files, filler, watch, file }
    }

    /// Whether one of its pages may have been lost before it was pinned or since.
    pub(super) fn has_lost(&self, table: &KeptFd) -> bool {
        self.has_lost_of(table, self.file.part())
    }

    /// The same of the pages of some bytes of the file.
    fn has_lost_of(&self, table: &KeptFd, part: Range<u64>) -> bool {
        if !table.is_ours() {
            return true;
        }
        // SAFETY: open, and never closed by this value.
        let table = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(table.raw()) });
        !self.watch.lost_bytes(&*table, part).is_ok_and(|lost| lost == 0)
    }
}

impl Drop for PinnedExtent {
    fn drop(&mut self) {
        // In a child of `fork(2)`, which has neither mapping, all of it is the parent's.
        if self.files.is_here() {
            self.file.let_go_of_file();
            // SAFETY: taken once, here.
            drop(unsafe { ManuallyDrop::take(&mut self.watch) });
            // SAFETY: as above.
            let file = unsafe { ManuallyDrop::take(&mut self.file) };
            self.files.mapper.unpin_soon(self.files, file);
        }
    }
}

/// A range of a file whose pages are all registered.
#[derive(Debug)]
pub(crate) struct WrittenRange {
    extents: Vec<Arc<PinnedExtent>>,
    /// All bytes, and those that are filled: whole pages, which end before the range does.
    whole: Range<u64>,
    filled: Range<u64>,
}

/// Why a range was not filled.
#[derive(Debug)]
pub(crate) enum FillError {
    /// The driver refused a copy.
    Gpu,
    /// The `pwrite(2)` of its head or tail.
    File(FileFault),
}

impl WrittenRange {
    /// The range of these extents, which follow each other; `None` if that is not worth it.
    fn new(extents: Vec<Arc<PinnedExtent>>, whole: Range<u64>) -> Option<Self> {
        let page = rustix::param::page_size() as u64;
        let most = COPIED_BY_DEVICE as u64;
        let (first, last) = (extents.first()?.file.part(), extents.last()?.file.part());
        let mut start = whole.start.next_multiple_of(page);
        // The last byte is never filled.
        let mut end = (whole.end - 1) / page * page;
        // The processor may make shorter copies, and die of a page that is lost.
        if first.end.min(end).saturating_sub(start) < most {
            start = first.end;
        }
        if end.saturating_sub(last.start.max(start)) < most {
            end = last.start;
        }
        (start < end && end - start >= most).then_some(Self { extents, whole, filled: start..end })
    }

    /// Bytes that are filled.
    pub(crate) fn filled(&self) -> u64 {
        self.filled.end - self.filled.start
    }

    /// Copies the bytes at `address` into the pages, then writes the ends of the range to the
    /// file. Returns how many bytes of the ends went through the page cache, and how many past it.
    ///
    /// # Safety
    /// The range's memory stays live and unwritten until this returns.
    pub(crate) unsafe fn fill(
        &self,
        file: &OpenFile,
        address: u64,
    ) -> Result<(usize, usize), FillError> {
        let Some(filler) = self.extents.first().map(|one| one.filler) else {
            return Ok((0, 0));
        };
        let long = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let parts: Vec<_> = self
            .extents
            .iter()
            .filter_map(|one| {
                let part = one.file.part();
                let (start, end) =
                    (part.start.max(self.filled.start), part.end.min(self.filled.end));
                let at = one.file.as_ptr().wrapping_add(long(start.saturating_sub(part.start)));
                let len = long(end.checked_sub(start).filter(|len| *len > 0)?);
                Some((start - self.whole.start, at.cast_mut(), len))
            })
            .collect();
        let (head, tail) = (self.whole.start..self.filled.start, self.filled.end..self.whole.end);
        let ends = [&head, &tail].map(|end| {
            let before = end.start - self.whole.start;
            (before, file.skip(end.start), long(end.end - end.start))
        });
        let copy = FillCopy { address, parts: &parts, ends };
        let (mut cached, mut direct) = (0, 0);
        let write = |end: usize, at: *const u8| {
            let (_, _, len) = ends[end];
            let offset = if end == 0 { head.start } else { tail.start };
            // SAFETY: `len` bytes of the lane's slot, which is this thread's.
            let more = unsafe { file.write(at, len, offset) }?;
            cached += more.cached;
            direct += more.direct;
            Ok(())
        };
        // SAFETY: the extents stay registered for as long as `self`; the caller's promise.
        let done = unsafe { filler.copy(&copy, write) };
        done.map_err(|_| FillError::Gpu)?.map_err(FillError::File)?;
        Ok((cached, direct))
    }
}

impl WrittenInode {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, WrittenExtent>> {
        self.extents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its descriptor, if it has one and the program has not closed it.
    pub(super) fn fd(&self) -> Option<Arc<KeptFd>> {
        let fd = self.fd.lock().unwrap_or_else(PoisonError::into_inner).clone();
        fd.filter(|fd| fd.is_ours())
    }

    fn has_fd(&self, of: &OpenFile) -> bool {
        let mut fd = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
        if fd.is_none() {
            match of.reopened_to_write() {
                Ok(opened) => *fd = Some(Arc::new(opened)),
                Err(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR) => {}
                Err(_) => self.refused.store(true, Ordering::Relaxed),
            }
        }
        fd.is_some()
    }

    /// Closes its descriptor, when those who use it are done. Registrations stay.
    pub(super) fn gives_fd_back(&self) {
        drop(self.fd.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Puts in what was registered for a device, or that this failed.
    pub(super) fn publish(&self, index: u64, pinned: Option<(u32, PinnedExtent)>, tick: u32) {
        let pinned = pinned.map(|(device, one)| (device, Arc::new(one)));
        let mut extents = self.lock();
        let extent = extents.entry(index).or_default();
        let last_used = if pinned.is_some() { tick } else { extent.last_used };
        let before =
            std::mem::replace(extent, WrittenExtent { pinned, last_used, ..Default::default() });
        // Its end takes other locks.
        drop(extents);
        drop(before);
    }

    /// Lets go of the registrations that `which` says, by the index of the extent and its last
    /// use; in-flight users keep them so long.
    fn let_go_of(&self, mut which: impl FnMut(u64, u32) -> bool) {
        let mut gone = Vec::new();
        let mut extents = self.lock();
        for (index, extent) in extents.iter_mut() {
            if extent.pinned.is_some() && which(*index, extent.last_used) {
                gone.extend(extent.pinned.take());
                extent.heat = 0;
            }
        }
        drop(extents);
        drop(gone);
    }

    /// No more of it is registered.
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
        self.let_go_of(|_, _| true);
    }

    /// Lets go of what lies behind the file's end.
    pub(super) fn look_at_size(&self) {
        let Some(size) = self.fd().and_then(|fd| rustix::fs::fstat(fd.as_ref()).ok()) else {
            return;
        };
        let size = u64::try_from(size.st_size).unwrap_or(0);
        self.let_go_of(|index, _| index * EXTENT >= size);
    }
}

impl Drop for WrittenInode {
    fn drop(&mut self) {
        if self.files.is_here() {
            self.files.remove_written(self.id);
        }
    }
}

impl MappedFiles {
    /// The range of a write whose pages are all registered for this device; `None` if they are
    /// not, or `pwrite(2)` has something to say about the write. Calls no driver.
    pub(crate) fn find_written(
        &'static self,
        file: &OpenFile,
        device: &Device,
        offset: u64,
        len: u64,
    ) -> Option<WrittenRange> {
        let inode: Arc<WrittenInode> = file.written()?;
        if len < SHORTEST_WRITE || inode.refused.load(Ordering::Relaxed) {
            return None;
        }
        let end = offset.checked_add(len)?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        if limit.is_some_and(|limit| end > limit) || !file.is_still_ours() {
            return None;
        }
        let index = device.context().device();
        let tick = tick(self.clock.now());
        let mut extents = inode.lock();
        let mut found = Vec::new();
        let mut at = offset;
        while at < end {
            let extent = extents.get_mut(&(at / EXTENT))?;
            let (_, pinned) = extent.pinned.as_ref().filter(|(device, _)| *device == index)?;
            at = pinned.file.part().end;
            if at < end && !at.is_multiple_of(EXTENT) {
                // The file has become longer: it is registered anew when it is hot again.
                let short = extent.pinned.take();
                extent.heat = 0;
                drop(extents);
                drop(short);
                return None;
            }
            found.push(Arc::clone(pinned));
            extent.last_used = tick;
        }
        drop(extents);
        WrittenRange::new(found, offset..end)
    }

    /// Whether a page of the range may have been lost since it was registered: then its bytes may
    /// be in no file.
    pub(crate) fn has_lost(&self, range: &WrittenRange) -> bool {
        let Some(table) = self.page_table() else { return true };
        range.extents.iter().any(|one| one.has_lost_of(table, range.whole.clone()))
    }

    /// This process's page table (proc(5), pagemap), if it can be read.
    pub(super) fn page_table(&self) -> Option<&KeptFd> {
        let open = || {
            let file = std::fs::File::open("/proc/self/pagemap").ok()?;
            KeptFd::duplicate(file.as_fd()).ok()
        };
        self.page_table.get_or_init(open).as_ref()
    }

    /// The file has lost pages of a range.
    pub(crate) fn forget_written(&'static self, file: &OpenFile, range: &WrittenRange) {
        let Some(inode) = file.written::<WrittenInode>() else { return };
        let more = |passes: u64| Some((passes * 2).min(PASSES.1));
        let _ = inode.passes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let indices = range.whole.start / EXTENT..=(range.whole.end - 1) / EXTENT;
        inode.let_go_of(|index, _| indices.contains(&index));
    }

    /// Fills no pages of this file any more: a copy failed.
    pub(crate) fn give_up_written(&'static self, file: &OpenFile) {
        if let Some(inode) = file.written::<WrittenInode>() {
            inode.refuse();
        }
    }

    /// Counts a write of `len` bytes by `pwrite(2)` from a device. Hot extents are then mapped.
    pub(crate) fn observe_written(
        &'static self,
        file: &OpenFile,
        device: &'static Device,
        offset: u64,
        len: u64,
    ) {
        if self.budget == Some(0) || len < SHORTEST_WRITE || self.off.load(Ordering::Relaxed) {
            return;
        }
        let Some(inode) = file.written_or_else(|| self.written_inode(file)) else { return };
        let Some(size) = file.size().filter(|size| *size >= SHORTEST) else { return };
        if inode.refused.load(Ordering::Relaxed) {
            return;
        }
        let end = offset.saturating_add(len).min(size);
        let passes = inode.passes.load(Ordering::Relaxed);
        let mut hot = Vec::new();
        let mut extents = inode.lock();
        let mut at = offset;
        while at < end {
            let index = at / EXTENT;
            let next = end.min((index + 1) * EXTENT);
            let extent = extents.entry(index).or_default();
            extent.heat += next - at;
            let bytes = EXTENT.min(size - index * EXTENT);
            if extent.heat >= bytes * passes && !extent.is_queued && extent.pinned.is_none() {
                extent.is_queued = true;
                hot.push(index);
            }
            at = next;
        }
        drop(extents);
        let has_fd = hot.is_empty() || inode.has_fd(file);
        for index in hot {
            if has_fd {
                self.mapper.pin_soon(self, &inode, index, device);
            } else {
                // It is tried again when it is hot again.
                inode.publish(index, None, 0);
            }
        }
    }

    /// The inode of a file that is written; `None` if its pages can't be filled.
    fn written_inode(&'static self, file: &OpenFile) -> Option<Arc<WrittenInode>> {
        if !file.is_in_memory() || !file.can_be_filled() {
            return None;
        }
        let seals = file.seals()?;
        // The seals of files that have a name are these, and never change.
        if !seals.contains(SealFlags::SEAL)
            || seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE)
        {
            return None;
        }
        let (id, _) = file.identity_and_size()?;
        let mut inodes = self.lock_written();
        if let Some(known) = inodes.get(&id).and_then(std::sync::Weak::upgrade) {
            return Some(known);
        }
        let made = Arc::new(WrittenInode {
            files: self,
            id,
            fd: Mutex::default(),
            extents: Mutex::default(),
            passes: AtomicU64::new(PASSES.0),
            refused: AtomicBool::new(false),
        });
        inodes.insert(id, Arc::downgrade(&made));
        Some(made)
    }

    fn lock_written(&self) -> MutexGuard<'_, HashMap<InodeId, std::sync::Weak<WrittenInode>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that are there.
    pub(super) fn all_written(&self) -> Vec<Arc<WrittenInode>> {
        self.lock_written().values().filter_map(std::sync::Weak::upgrade).collect()
    }

    /// Forgets an inode that ended. Another one may have its number by now.
    fn remove_written(&self, id: InodeId) {
        let mut inodes = self.lock_written();
        if inodes.get(&id).is_some_and(|one| one.strong_count() == 0) {
            inodes.remove(&id);
        }
    }

    /// Lets go of extents that were not used since `before`, for at least `bytes` of others. They
    /// are unregistered soon.
    pub(super) fn let_go_of_written(&self, bytes: u64, before: u32) {
        let inodes = self.all_written();
        let mut oldest: Vec<_> = inodes
            .iter()
            .enumerate()
            .flat_map(|(nth, inode)| {
                let extents = inode.lock();
                let pinned = extents.iter().filter(|(_, one)| one.pinned.is_some());
                let pinned = pinned.map(|(index, one)| (one.last_used, nth, *index));
                pinned.filter(|(used, ..)| *used < before).collect::<Vec<_>>()
            })
            .collect();
        oldest.sort_unstable();
        let extents = usize::try_from(bytes.div_ceil(EXTENT)).unwrap_or(usize::MAX);
        for &(used, nth, index) in oldest.iter().take(extents) {
            inodes[nth].let_go_of(|one, last_used| one == index && last_used == used);
        }
    }
}
