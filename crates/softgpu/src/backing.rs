//! Host memory that backs a device's memory, and the device's budget of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::code::{Answer, OUT_OF_MEMORY};
use crate::fickle;
use crate::managed::Managed;

/// The contents of fresh device memory: no program should read it before it was written.
const POISON: u8 = 0xA5;

/// The memory of one device: how much there is and how much is given out.
#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) fn new(total: u64) -> Self {
        Self { total, used: AtomicU64::new(0) }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn free(&self) -> u64 {
        self.total - self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> Answer<()> {
        let more = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.total);
        let update = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        update.map(|_| ()).map_err(|_| OUT_OF_MEMORY)
    }
}

/// Pages of this process. Copies in flight hold a share, so that they outlive a free that comes too
/// early: the program under test then reads wrong bytes and does not crash the tests.
#[derive(Debug)]
pub(crate) struct Pages {
    start: *mut u8,
    len: usize,
    charged: Option<Arc<Budget>>,
}

// SAFETY: pages may be used and unmapped on any thread.
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives the address only.
unsafe impl Sync for Pages {}

impl Pages {
    /// Poisoned pages, charged to a device.
    pub(crate) fn of_device(budget: &Arc<Budget>, len: usize) -> Answer<Self> {
        budget.take(len as u64)?;
        let mut pages = match Self::of_host(len) {
            Ok(pages) => pages,
            Err(code) => {
                budget.used.fetch_sub(len as u64, Ordering::Relaxed);
                return Err(code);
            }
        };
        pages.charged = Some(Arc::clone(budget));
        // SAFETY: the pages were just mapped for writing, with this length.
        unsafe { pages.start.write_bytes(POISON, len) };
        Ok(pages)
    }

    pub(crate) fn of_host(len: usize) -> Answer<Self> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping where the kernel chooses touches no other.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(OUT_OF_MEMORY);
        }
        Ok(Self { start: start.cast(), len, charged: None })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped with this length and unmapped once.
        let _ = unsafe { libc::munmap(self.start.cast(), self.len) };
        if let Some(budget) = &self.charged {
            budget.used.fetch_sub(self.len as u64, Ordering::Relaxed);
        }
    }
}

/// The longest copy from the host's memory that the processor makes: CUDA 13.0, driver 580.159 on
/// an H100, of registered pages of a file that became shorter (24 KiB a signal, 32 KiB none).
const BY_PROCESSOR: usize = 24 << 10;

/// Bytes that an operation will touch: where they lie, and a share in the pages if they are ours.
#[derive(Debug, Clone)]
pub(crate) struct MemoryRange {
    pub(crate) at: *mut u8,
    pub(crate) _share: Option<Arc<Pages>>,
    /// Managed memory and the first byte in it: where these bytes are is known when they are
    /// touched.
    pub(crate) managed: Option<(Arc<Managed>, usize)>,
    /// Registered pages of a file, which may lose them.
    pub(crate) is_fickle: bool,
}

impl MemoryRange {
    /// Memory of the program that the driver does not know, or of its own with a share in it.
    pub(crate) fn new(at: *mut u8, share: Option<Arc<Pages>>) -> Self {
        Self { at, _share: share, managed: None, is_fickle: false }
    }

    /// Copies `len` bytes from another range. Both were looked up in full, and may overlap: that is
    /// the caller's mistake, but not to be the end of the process.
    pub(crate) fn copy_from(&self, from: &Self, len: usize) -> Answer<()> {
        let (to_now, from_now) = (self.now(len)?, from.now(len)?);
        if self.is_fickle || from.is_fickle {
            fickle::copy(to_now, from_now, len, self.is_fickle);
        } else {
            // SAFETY: what is ours lives in the shares that the ranges hold, the rest is memory
            // that the caller of the driver must keep.
            unsafe { std::ptr::copy(from_now, to_now, len) };
        }
        Ok(())
    }

    /// A copy of the driver's: short ones from host memory are read by the processor, so a page
    /// that a file has lost is a SIGBUS there. Others are read by the device.
    pub(crate) fn copy_by_driver(&self, from: &Self, len: usize) -> Answer<()> {
        let seen = MemoryRange { is_fickle: from.is_fickle && len > BY_PROCESSOR, ..from.clone() };
        self.copy_from(&seen, len)
    }

    /// Sets `len` bytes.
    pub(crate) fn set(&self, value: u8, len: usize) -> Answer<()> {
        let now = self.now(len)?;
        if self.is_fickle {
            fickle::fill(now, value, len);
        } else {
            // SAFETY: as for a copy.
            unsafe { now.write_bytes(value, len) };
        }
        Ok(())
    }

    /// Where `len` bytes of the range are now.
    pub(crate) fn now(&self, len: usize) -> Answer<*mut u8> {
        match &self.managed {
            None => Ok(self.at),
            Some((managed, skip)) => managed.now(*skip, len),
        }
    }
}

// SAFETY: it represents memory that the caller of the driver promised to keep live until the stream
// has passed; which thread touches it does not matter.
unsafe impl Send for MemoryRange {}
