//! Managed memory: one address for host and device, and pages that are at one of the two.
//!
//! Hardware moves a page to the processor that touches it. Here no access moves one: a page that is
//! on a device has no access right on the host (read(2) into it answers EFAULT, an instruction ends
//! the program), and a kernel that reaches a page that is not on its device fails with an illegal
//! address. So a program that forgets a prefetch, or to wait for one, is caught where hardware
//! would only be slow.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::backing::{Budget, MemoryRange, Pages};
use crate::code::{Answer, ILLEGAL_ADDRESS, UNKNOWN};

/// The granularity at which memory moves, in bytes: the kernel's pages, whose access rights it can
/// change. 4 KiB on x86-64, up to 64 KiB on arm64.
fn page_size() -> usize {
    rustix::param::page_size()
}

fn pages(skip: usize, len: usize) -> Range<usize> {
    skip / page_size()..(skip + len).div_ceil(page_size())
}

/// Where a page is, and where it can be moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Residence {
    Host,
    Device(u32),
}

/// One allocation: pages at the program's address, and their copies that represent a
/// device's memory.
#[derive(Debug)]
pub(crate) struct Managed {
    host: Pages,
    device: Arc<Pages>,
    /// By page. Held while pages move.
    at: Mutex<Vec<Residence>>,
}

impl Managed {
    /// `len` bytes, all on the host. The twins are charged to a device from the beginning, which is
    /// simpler than hardware, where only what is there counts.
    pub(crate) fn new(budget: &Arc<Budget>, len: usize) -> Answer<Self> {
        let whole = len.next_multiple_of(page_size());
        let twins = Arc::new(Pages::of_device(budget, whole)?);
        let at = Mutex::new(vec![Residence::Host; whole / page_size()]);
        Ok(Self { host: Pages::of_host(whole)?, device: twins, at })
    }

    /// The address for host and device.
    pub(crate) fn start(&self) -> *mut u8 {
        self.host.start()
    }

    /// The bytes from `skip` on as a kernel of `device` reaches them: all of their pages must be
    /// there.
    pub(crate) fn by_kernel(&self, device: u32, skip: usize, len: usize) -> Answer<MemoryRange> {
        let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = &at[pages(skip, len)];
        if pages.iter().any(|page| *page != Residence::Device(device)) {
            return Err(ILLEGAL_ADDRESS);
        }
        let at = self.device.start().wrapping_add(skip);
        Ok(MemoryRange::new(at, Some(Arc::clone(&self.device))))
    }

    /// The bytes from `skip` on as a copy reaches them, wherever they are, if they are all at one
    /// place.
    pub(crate) fn now(&self, skip: usize, len: usize) -> Answer<*mut u8> {
        let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = &at[pages(skip, len)];
        let first = pages.first().copied().ok_or(ILLEGAL_ADDRESS)?;
        if pages.iter().any(|page| *page != first) {
            return Err(ILLEGAL_ADDRESS);
        }
        let base = match first {
            Residence::Host => &self.host,
            Residence::Device(_) => &*self.device,
        };
        Ok(base.start().wrapping_add(skip))
    }

    /// Moves the pages that hold a range; those that are there already stay.
    pub(crate) fn migrate(&self, skip: usize, len: usize, to: Residence) -> Answer<()> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = page_size();
        for page in pages(skip, len) {
            let from = std::mem::replace(&mut at[page], to);
            let host = self.host.start().wrapping_add(page * whole);
            let device = self.device.start().wrapping_add(page * whole);
            match (from, to) {
                (Residence::Host, Residence::Device(_)) => {
                    // SAFETY: a page of each of two mappings that live and do not overlap.
                    unsafe { device.copy_from_nonoverlapping(host, whole) };
                    protect(host, libc::PROT_NONE)?;
                }
                (Residence::Device(_), Residence::Host) => {
                    protect(host, libc::PROT_READ | libc::PROT_WRITE)?;
                    // SAFETY: as above.
                    unsafe { host.copy_from_nonoverlapping(device, whole) };
                }
                // Between devices nothing moves: the copies represent all of them.
                (Residence::Host, Residence::Host)
                | (Residence::Device(_), Residence::Device(_)) => {}
            }
        }
        Ok(())
    }
}

/// Sets the access right of one host page.
fn protect(page: *mut u8, right: libc::c_int) -> Answer<()> {
    // SAFETY: a whole page of a mapping of ours; a program that touches it without the right
    // that this driver is there to catch.
    let answer = unsafe { libc::mprotect(page.cast(), page_size(), right) };
    if answer == 0 { Ok(()) } else { Err(UNKNOWN) }
}
