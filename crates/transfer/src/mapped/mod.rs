//! Mapped files: what is read again and again, the GPU reads in the page cache by itself.
//!
//! A file is divided into extents of 16 MiB. Reads from the page cache heat them ([`observe`]). A
//! hot extent is mapped and registered with the driver (`gpuio_gpu::MappedFile`) by a thread of
//! its own, the mapper, within a budget. A read whose bytes all lie in registered extents needs no
//! `pread(2)` and no page-locked memory of ours: a kernel or a copy of the driver reads the page
//! cache ([`find`]). All other reads go as they always do.
//!
//! A registration keeps pages, not the bytes of a file, so it is used only while a rule makes sure
//! that these do not change (`rule`): the file is immutable, or this process holds a read lease on
//! it (`lease`). A second thread, the watcher, gets a signal when the kernel wants a lease back. It
//! closes the file's extents and returns the lease, without waiting for anything else; the one who
//! opens the file for writing waits that long. It does the same where the process has few
//! descriptors left: a mapped file has two. The watcher also looks at all leases each second,
//! and says when it did. A reader that finds this too long ago uses no lease: after a process was
//! stopped, the kernel may have taken its leases away. Each read under a lease also looks at the
//! file's size and time of change: truncation through overlayfs ends no lease.
//!
//! Who uses an extent counts as its user, and it is not retired meanwhile: the thread that
//! waits for a copy, or for a copy in a program's stream, which no thread waits for, an entry in a
//! list (`queued`). Neither keeps a lease, so the file may become shorter before its bytes are
//! copied: the GPU's copies outlive that, and the host's go through the kernel (`pages`).
//!
//! Writes go the other way where files are in memory (`written`).
//!
//! Nothing here is on the way of the first read of a file but one addition to a counter, for each
//! large read and for one of sixteen small ones.
//!
//! [`observe`]: MappedFiles::observe
//! [`find`]: MappedFiles::find

mod extent;
mod filler;
mod inode;
mod lease;
mod map;
mod mapper;
mod mapping;
mod pages;
mod queued;
mod rule;
mod users;
mod written;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::clock::{Clock, Nanos};
use crate::device::Device;
use crate::file::{FileId, KeptFd, OpenFile};
use crate::fork::ProcessMark;
use crate::settings::Settings;
use extent::{EXTENT, Ended, ExtentUse};
pub(crate) use inode::MappedInode;
use lease::Watcher;
use mapper::Mapper;
pub use mapping::{FileMapping, MappingError, MappingState};
pub(crate) use pages::copy_pages;
use queued::QueuedCopies;
use written::WrittenInode;
pub(crate) use written::{FillError, SHORTEST_WRITE};

/// Shorter files are not mapped, bytes.
const SHORTEST: u64 = 1 << 20;
/// Longer ones neither: their extents' state would take too much memory.
const LONGEST: u64 = 1 << 42;
/// One of so many small reads is counted, for all of them.
const SAMPLED: u32 = 16;
/// Seconds between two looks at all leases.
const LOOK: i64 = 1;
/// The same without any file: the first lease wakes the watcher.
const NOTHING: i64 = 3600;

#[derive(Debug)]
pub(crate) struct MappedFiles {
    mark: ProcessMark,
    clock: Clock,
    /// Most registered bytes; `None` for a share of the machine's memory. 0: no file is mapped.
    budget: Option<u64>,
    /// Bytes that make an extent hot.
    hot: u64,
    inodes: Mutex<HashMap<FileId, Weak<MappedInode>>>,
    written: Mutex<HashMap<FileId, Arc<WrittenInode>>>,
    /// The process's page table, once it was needed; `None` if it can't be read.
    page_table: OnceLock<Option<KeptFd>>,
    mapper: Mapper,
    queued: QueuedCopies,
    /// The watcher's thread; 0 before it runs.
    watcher: OnceLock<Watcher>,
    /// When all leases were last known to be held.
    looked: AtomicU64,
    /// For how long that is enough, nanoseconds; 0 if no lease may be used.
    enough: AtomicU64,
    /// The driver registered nothing and refused often.
    off: AtomicBool,
    refusals: AtomicI32,
}

/// A range of a file that is mapped, whole or up to the end of the file.
#[derive(Debug)]
pub(crate) struct MappedRange {
    /// Its first part.
    first: ExtentUse,
    rest: Vec<ExtentUse>,
    offset: u64,
    /// Bytes: as requested, or fewer if the file ends before.
    pub(crate) len: usize,
}

/// A part of a range, in one extent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MappedPart {
    /// Bytes before it in the range.
    pub(crate) before: usize,
    /// The first byte, for copies by the driver. The host never reads it.
    pub(crate) at: *const u8,
    /// The first byte as kernels see it.
    pub(crate) device_ptr: gpuio_gpu::DevPtr,
    pub(crate) len: usize,
}

impl MappedRange {
    /// Its parts in order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = MappedPart> + '_ {
        let end = self.offset + self.len as u64;
        std::iter::once(&self.first).chain(&self.rest).map(move |one| {
            let start = one.part.start.max(self.offset);
            let skip = usize::try_from(start - one.part.start).unwrap_or(0);
            MappedPart {
                before: usize::try_from(start - self.offset).unwrap_or(0),
                at: one.at.wrapping_add(skip),
                device_ptr: one.device_ptr.byte_add(skip as u64),
                len: usize::try_from(one.part.end.min(end) - start).unwrap_or(0),
            }
        })
    }
}

impl MappedFiles {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            mark: ProcessMark::new(),
            clock: Clock::start(),
            budget: settings.max_mapped_bytes,
            hot: settings.bytes_until_mapped,
            inodes: Mutex::default(),
            written: Mutex::default(),
            page_table: OnceLock::new(),
            mapper: Mapper::new(),
            queued: QueuedCopies::default(),
            watcher: OnceLock::new(),
            looked: AtomicU64::new(0),
            enough: AtomicU64::new(0),
            off: AtomicBool::new(false),
            refusals: AtomicI32::new(0),
        }
    }

    fn is_here(&self) -> bool {
        self.mark.is_here()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FileId, Weak<MappedInode>>> {
        self.inodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file's bytes from `offset` on, `len` of them or up to its end, if all are mapped for
    /// this device and sure not to change.
    pub(crate) fn find(
        &'static self,
        file: &OpenFile,
        device: &Device,
        offset: u64,
        len: usize,
    ) -> Option<MappedRange> {
        let inode = file.mapped()?;
        let now = self.clock.now();
        if len == 0 || !inode.is_sure(now) {
            return None;
        }
        let tick = tick(now);
        let enter = |at: u64| {
            let index = usize::try_from(at / EXTENT).ok()?;
            inode.cells.get(index)?.enter(device.serial(), tick)
        };
        let end = offset.checked_add(len as u64)?;
        let first = enter(offset)?;
        // After the extent, so that a read of others does not pay for the system call. Its use
        // keeps the pages; the bytes are read later than the look.
        if !inode.is_unchanged(|| file.stamp()) {
            drop(first);
            inode.revoke(now);
            self.mapper.sweep_soon(self, inode);
            return None;
        }
        let mut reached = first.part.end;
        let mut ends_file = first.ends_file;
        let mut rest = Vec::new();
        while reached < end && !ends_file {
            let next = enter(reached)?;
            (reached, ends_file) = (next.part.end, next.ends_file);
            rest.push(next);
        }
        let len = reached.min(end).checked_sub(offset).filter(|len| *len > 0)?;
        Some(MappedRange { first, rest, offset, len: usize::try_from(len).ok()? })
    }

    /// Keeps a range registered until a stream of the device has stored the value, or a later one
    /// (modulo 2^32), to the semaphore: a copy by that stream reads it. Calls no driver.
    pub(crate) fn keep_until(
        &self,
        range: MappedRange,
        device: &'static Device,
        stored: (&'static AtomicU32, u32),
    ) {
        self.queued.add(range, device, stored);
    }

    /// Counts a read of `len` bytes from the page cache to a device; a sampled one counts
    /// `weight` times. Hot extents are then mapped.
    pub(crate) fn observe(
        &'static self,
        file: &OpenFile,
        device: &'static Device,
        offset: u64,
        (len, weight): (u64, u32),
    ) {
        if self.budget == Some(0) || len == 0 || self.off.load(Ordering::Relaxed) {
            return;
        }
        let Some(inode) = file.mapped_or_else(|| self.inode(file)) else { return };
        if inode.refused.load(Ordering::Relaxed) {
            return;
        }
        let end = offset.saturating_add(len);
        let mut at = offset;
        while at < end {
            let next = end.min((at / EXTENT + 1) * EXTENT);
            let index = usize::try_from(at / EXTENT).unwrap_or(usize::MAX);
            let Some(cell) = inode.cells.get(index) else { return };
            if cell.heats((next - at).saturating_mul(u64::from(weight)), self.hot) {
                if inode.has_fd(file) {
                    self.mapper.map_soon(self, inode, index, device);
                } else {
                    // It is tried again when it is hot again.
                    cell.cool();
                }
            }
            at = next;
        }
    }

    /// Counts a small read, if its turn has come: one of [`SAMPLED`] of a thread counts for all.
    pub(crate) fn observe_small(
        &'static self,
        file: &OpenFile,
        device: &'static Device,
        offset: u64,
        len: u64,
    ) {
        thread_local! {
            static READS: Cell<u32> = const { Cell::new(0) };
        }
        // A thread that is ending counts no more.
        let counts = READS.try_with(|reads| {
            reads.set(reads.get().wrapping_add(1));
            reads.get().is_multiple_of(SAMPLED)
        });
        if counts == Ok(true) {
            self.observe(file, device, offset, (len, SAMPLED));
        }
    }

    /// Maps this file no more: a copy out of a mapping of it failed.
    pub(crate) fn give_up(&'static self, file: &OpenFile) {
        if let Some(inode) = file.mapped() {
            inode.refused.store(true, Ordering::Relaxed);
            inode.revoke(self.clock.now());
            self.mapper.sweep_soon(self, inode);
        }
    }

    /// Descriptors of mapped files are closed soon, if the process still has too few left then.
    pub(crate) fn return_descriptors_soon(&self) {
        if let Some(watcher) = self.watcher().filter(|_| self.is_here()) {
            watcher.wake();
        }
    }

    /// The inode of a file; `None` if it can't be mapped.
    fn inode(&'static self, file: &OpenFile) -> Option<Arc<MappedInode>> {
        let (id, size) = file.identity_and_size()?;
        if !(SHORTEST..=LONGEST).contains(&size) {
            return None;
        }
        if let Some(known) = self.lock().get(&id).and_then(Weak::upgrade) {
            return Some(known);
        }
        let made = Arc::new(MappedInode::new(self, id, size));
        let mut inodes = self.lock();
        if let Some(known) = inodes.get(&id).and_then(Weak::upgrade) {
            // Dropped when the lock is free: its end takes it.
            drop(inodes);
            return Some(known);
        }
        inodes.insert(id, Arc::downgrade(&made));
        Some(made)
    }

    /// Forgets an inode that ended. Another one may have its number by now.
    fn remove(&self, id: FileId) {
        let mut inodes = self.lock();
        if inodes.get(&id).is_some_and(|one| one.strong_count() == 0) {
            inodes.remove(&id);
        }
    }

    fn watcher(&self) -> Option<Watcher> {
        self.watcher.get().copied()
    }

    /// Whether the leases were looked at so lately that the kernel can't have taken one away since.
    fn leases_are_fresh(&self, now: Nanos) -> bool {
        let looked = self.looked.load(Ordering::Acquire);
        now.saturating_sub(looked) < self.enough.load(Ordering::Relaxed)
    }

    /// Retires registrations, in the mapper's thread.
    fn retire_soon(&'static self, ended: impl Iterator<Item = Ended>) {
        let ended: Vec<_> = ended.collect();
        if !ended.is_empty() {
            self.mapper.retire_soon(self, ended);
        }
    }

    /// The watcher's work.
    fn watch(&'static self) {
        loop {
            let now = self.clock.now();
            // A third: who waits for a lease does so for this long after the signal.
            let enough = lease::break_time().saturating_mul(1_000_000_000) / 3;
            let inodes: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
            for inode in &inodes {
                let is_short = crate::file::are_fixed_too_many() && inode.gives_fd_back();
                if is_short || inode.lost_its_lease() {
                    inode.revoke(self.clock.now());
                    self.mapper.sweep_soon(self, inode);
                }
            }
            self.enough.store(enough, Ordering::Relaxed);
            self.looked.store(now, Ordering::Release);
            let written = self.all_written();
            for inode in &written {
                inode.look_at_size();
            }
            let wait = if inodes.is_empty() && written.is_empty() { NOTHING } else { LOOK };
            drop((inodes, written));
            lease::wait(wait);
        }
    }
}

/// A time in steps of about a second.
fn tick(now: Nanos) -> u32 {
    u32::try_from(now >> 30).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_that_were_not_looked_at_lately_are_not_used() {
        let settings = Settings { driver: gpuio_gpu::Which::Software, ..Settings::default() };
        let files = MappedFiles::new(&settings);
        let second = 1_000_000_000;
        assert!(!files.leases_are_fresh(0), "before the watcher's first look");
        files.looked.store(100 * second, Ordering::Release);
        files.enough.store(15 * second, Ordering::Release);
        assert!(files.leases_are_fresh(114 * second));
        // As after a process was stopped for so long: the kernel may have taken leases away.
        assert!(!files.leases_are_fresh(115 * second));
        // The kernel waits for no lease.
        files.enough.store(0, Ordering::Release);
        assert!(!files.leases_are_fresh(100 * second));
    }

    #[test]
    fn parts_of_a_range_follow_each_other() {
        use users::Users;
        let users: &'static Users = Box::leak(Box::new(Users::new()));
        users.open();
        let extent = |start: u64, end: u64, address: u64| ExtentUse {
            users,
            shard: users.enter().unwrap_or(0),
            part: start..end,
            at: std::ptr::without_provenance(usize::try_from(address).unwrap_or(0)),
            device_ptr: gpuio_gpu::DevPtr(address + 1),
            ends_file: false,
        };
        let rest =
            vec![extent(EXTENT, 2 * EXTENT, 1 << 40), extent(2 * EXTENT, 3 * EXTENT, 2 << 40)];
        let (offset, len) = (EXTENT - 5, 5 + 16_777_216 + 3);
        let range = MappedRange { first: extent(0, EXTENT, 1 << 30), rest, offset, len };
        let parts: Vec<_> = range
            .parts()
            .map(|part| (part.before, part.at.addr() as u64, part.device_ptr.0, part.len))
            .collect();
        let expected = [
            (0, (1 << 30) + EXTENT - 5, (1 << 30) + EXTENT - 4, 5),
            (5, 1 << 40, (1 << 40) + 1, 16_777_216),
            (16_777_221, 2 << 40, (2 << 40) + 1, 3),
        ];
        assert_eq!(parts, expected);
        assert!(!users.is_idle());
        drop(range);
        assert!(users.is_idle());
    }
}
