//! Files in memory that are written again and again: the GPU fills their pages by itself.
//!
//! An extent of a file on tmpfs, or of a memfd, is mapped and registered after it was written
//! twice. A later write whose bytes all lie in registered extents is one copy of the driver's into
//! the page cache ([`find_written`]), and then a `pwrite(2)` of what is left: the bytes before the
//! first page that is filled, and those from the start of the last page on. So the file's
//! times, limits (`RLIMIT_FSIZE`), errors and its length are those of a `pwrite(2)` that ends where
//! the range does. The last part is also written before: what the kernel refuses changes no byte,
//! and a process that is killed meanwhile leaves no file with new bytes and old times, or with
//! set-user-ID.
//!
//! The pages are mapped by the program's own open file description (`map`). One that only writes
//! can't be mapped.
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
//! mapper unregisters (`filler` says why it may). Who closes the last file waits for a registration
//! that is under way, since that has the file mapped: no lock is held meanwhile, and registering
//! waits for no work of the device. Where a driver takes longer than [`PIN_WAIT`], the file stays
//! open until it answers.
//!
//! [`find_written`]: MappedFiles::find_written

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsFd, FromRawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gpuio_gpu::{COPIED_BY_DEVICE, MappedFile, PageWatch};
use rustix::fs::SealFlags;

use super::extent::EXTENT;
use super::filler::{FillCopy, Filler};
use super::{MappedFiles, SHORTEST, tick};
use crate::device::Device;
use crate::fault::FileFault;
use crate::file::{FileId, KeptFd, OpenFile};

/// Shorter writes are not filled, bytes: what they save is less than the look costs.
pub(crate) const SHORTEST_WRITE: u64 = 128 << 10;
/// How often an extent is written before it is registered: at first and at most.
const PASSES: (u64, u64) = (2, 64);
/// How long the end of a file waits for a registration of it that is under way: some milliseconds
/// on every driver that was seen.
const PIN_WAIT: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 2 });

/// A file in memory that is written.
#[derive(Debug)]
pub(crate) struct WrittenInode {
    pub(super) files: &'static MappedFiles,
    id: FileId,
    /// How many of the library's files are of it; changed under the lock of all.
    handles: AtomicU32,
    extents: Mutex<HashMap<u64, WrittenExtent>>,
    /// Its last file has ended; changed under the lock of its extents.
    ended: AtomicBool,
    passes: AtomicU64,
    refused: AtomicBool,
}

/// One of the library's files is of this inode. With the last of them it ends.
#[derive(Debug)]
struct WrittenFile(Arc<WrittenInode>);

impl Drop for WrittenFile {
    fn drop(&mut self) {
        let (inode, files) = (&self.0, self.0.files);
        // In a child of `fork(2)` all of it is the parent's, and a thread that the child does not
        // have may have the locks.
        if !files.is_here() {
            return;
        }
        let mut inodes = files.lock_written();
        if inode.handles.fetch_sub(1, Ordering::Relaxed) == 1 {
            inodes.remove(&inode.id);
            drop(inodes);
            inode.end();
        }
    }
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

    /// Copies the bytes at `address` into the pages, and writes the ends of the range to the file:
    /// the tail before and after. Returns how many bytes of the ends went through the page cache,
    /// and how many past it.
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
        let mut written = [(0, 0); 2];
        let write = |end: usize, at: *const u8| {
            let (_, _, len) = ends[end];
            let offset = if end == 0 { head.start } else { tail.start };
            // SAFETY: `len` bytes of the lane's slot, which is this thread's.
            let more = unsafe { file.write(at, len, offset) }?;
            written[end] = (more.cached, more.direct);
            Ok(())
        };
        // SAFETY: the extents stay registered for as long as `self`; the caller's promise.
        let done = unsafe { filler.copy(&copy, write) };
        done.map_err(|_| FillError::Gpu)?.map_err(FillError::File)?;
        let [head, tail] = written;
        Ok((head.0 + tail.0, head.1 + tail.1))
    }
}

impl WrittenInode {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, WrittenExtent>> {
        self.extents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of all, and of what is being registered.
    fn end(&self) {
        let mut extents = self.lock();
        self.ended.store(true, Ordering::Relaxed);
        extents.clear();
        drop(extents);
        self.files.mapper.wait_for_pin(self.id, PIN_WAIT);
    }

    /// Whether its last file has ended.
    pub(super) fn has_ended(&self) -> bool {
        let _extents = self.lock();
        self.ended.load(Ordering::Relaxed)
    }

    /// Puts in what was registered for a device, or that this failed.
    pub(super) fn publish(&self, index: u64, pinned: Option<(u32, PinnedExtent)>, tick: u32) {
        let pinned = pinned.map(|(device, one)| (device, Arc::new(one)));
        let mut extents = self.lock();
        if self.ended.load(Ordering::Relaxed) {
            return;
        }
        let extent = extents.entry(index).or_default();
        let last_used = if pinned.is_some() { tick } else { extent.last_used };
        *extent = WrittenExtent { pinned, last_used, ..Default::default() };
    }

    /// Lets go of the registrations that `which` says, by the index of the extent and its last
    /// use; in-flight users keep them so long. Under the lock: its end waits until they are gone.
    fn let_go_of(&self, mut which: impl FnMut(u64, u32, &PinnedExtent) -> bool) {
        for (index, extent) in self.lock().iter_mut() {
            let last_used = extent.last_used;
            if extent.pinned.take_if(|(_, one)| which(*index, last_used, one)).is_some() {
                extent.heat = 0;
            }
        }
    }

    /// No more of it is registered.
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
        self.let_go_of(|_, _, _| true);
    }

    /// Lets go of extents whose first page is not the file's any more: they lie behind its end, or
    /// in a hole.
    pub(super) fn look_at_size(&self) {
        let Some(table) = self.files.page_table() else { return };
        self.let_go_of(|index, _, one| one.has_lost_of(table, index * EXTENT..index * EXTENT + 1));
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
        let inode = written(file)?;
        if len < SHORTEST_WRITE || inode.refused.load(Ordering::Relaxed) {
            return None;
        }
        let end = offset.checked_add(len)?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        let is_refused = limit.is_some_and(|limit| end > limit) || file.has_begun_to_append();
        if is_refused || !file.is_still_ours() {
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
        let Some(inode) = written(file) else { return };
        let more = |passes: u64| Some((passes * 2).min(PASSES.1));
        let _ = inode.passes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let indices = range.whole.start / EXTENT..=(range.whole.end - 1) / EXTENT;
        inode.let_go_of(|index, _, _| indices.contains(&index));
    }

    /// Fills no pages of this file any more: a copy failed.
    pub(crate) fn give_up_written(&'static self, file: &OpenFile) {
        if let Some(inode) = written(file) {
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
        let known = file.written_or_else(|| self.written_file(file).map(Arc::new));
        let Some(inode) = known.map(|known| Arc::clone(&known.0)) else { return };
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
                hot.push(index * EXTENT..index * EXTENT + bytes);
            }
            at = next;
        }
        drop(extents);
        for part in hot {
            self.mapper.pin_soon(self, &inode, (part, file.place()), device);
        }
    }

    /// A file that is written; `None` if its pages can't be filled.
    fn written_file(&'static self, file: &OpenFile) -> Option<WrittenFile> {
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
        let id = file.place().file;
        let mut inodes = self.lock_written();
        let inode = inodes.entry(id).or_insert_with(|| {
            Arc::new(WrittenInode {
                files: self,
                id,
                handles: AtomicU32::new(0),
                extents: Mutex::default(),
                ended: AtomicBool::new(false),
                passes: AtomicU64::new(PASSES.0),
                refused: AtomicBool::new(false),
            })
        });
        inode.handles.fetch_add(1, Ordering::Relaxed);
        Some(WrittenFile(Arc::clone(inode)))
    }

    fn lock_written(&self) -> MutexGuard<'_, HashMap<FileId, Arc<WrittenInode>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that are there.
    pub(super) fn all_written(&self) -> Vec<Arc<WrittenInode>> {
        self.lock_written().values().cloned().collect()
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
            inodes[nth].let_go_of(|one, last_used, _| one == index && last_used == used);
        }
    }
}

/// The inode of a file, if it is known to be one that may be filled.
fn written(file: &OpenFile) -> Option<Arc<WrittenInode>> {
    file.written::<WrittenFile>().map(|file| Arc::clone(&file.0))
}

#[cfg(test)]
mod tests {
    use gpuio_gpu::{Context, Driver, FilePages, Which};

    use super::*;
    use crate::settings::{Settings, UncachedReads};

    #[test]
    fn the_end_of_a_file_waits_for_a_registration_that_is_under_way() {
        const LEN: u64 = 1 << 20;
        let primary = Context::new(&Driver::load(&Which::Software).unwrap(), 0).unwrap();
        let settings = Settings { driver: Which::Software, ..Settings::default() };
        let files: &'static MappedFiles = Box::leak(Box::new(MappedFiles::new(&settings)));
        let filler = &*Box::leak(Box::new(Filler::new(&primary).unwrap().unwrap()));
        let fd = rustix::fs::memfd_create(c"pinning", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, LEN).unwrap();
        let opened = crate::file::File::new(fd.as_fd(), UncachedReads::default()).unwrap();
        let (first, last) = [(); 2].map(|()| files.written_file(&opened.0).unwrap()).into();
        let inode = Arc::clone(&first.0);
        drop(first);
        assert!(Arc::ptr_eq(&inode, &last.0) && !inode.has_ended(), "one is left");
        // As the mapper does.
        files.mapper.pins(Some(inode.id));
        let watch = PageWatch::new(fd.as_fd(), 0..LEN).unwrap();
        let pages = FilePages::map_to_write(fd.as_fd(), 0..LEN).unwrap();
        let file = pages.register(&filler.context, false).unwrap();
        let has_returned = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(last);
                has_returned.store(true, Ordering::Release);
            });
            while !inode.has_ended() {
                std::thread::yield_now();
            }
            inode.publish(0, Some((0, PinnedExtent::new(files, filler, watch, file))), 0);
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            assert!(!maps.contains("/memfd:pinning "), "it is let go of");
            assert!(!has_returned.load(Ordering::Acquire));
            files.mapper.pins(None);
        });
        // Another file with the same inode begins anew.
        let next = files.written_file(&opened.0).unwrap();
        assert!(!Arc::ptr_eq(&inode, &next.0));
    }
}
