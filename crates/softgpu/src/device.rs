//! One device: its memory's budget, its primary context, and whether it was lost.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::backing::Budget;
use crate::code::{Answer, Code, INVALID_CONTEXT};
use crate::pace::Pace;

/// The handle of device 0's primary context; the next device's is 16 more.
pub(crate) const FIRST_CONTEXT: usize = 0x0C70_0000;

/// One software GPU.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) budget: Arc<Budget>,
    retained: AtomicU32,
    /// How often the primary context was reset.
    pub(crate) resets: AtomicU32,
    sticky: AtomicI32,
    /// Flags of the primary context.
    pub(crate) flags: AtomicU32,
    /// The time that kernels that keep it busy and other work take from each other.
    pub(crate) pace: Pace,
}

impl Device {
    pub(crate) fn new(index: u32, memory: u64) -> Self {
        Self {
            index,
            budget: Arc::new(Budget::new(memory)),
            retained: AtomicU32::new(0),
            resets: AtomicU32::new(0),
            sticky: AtomicI32::new(0),
            flags: AtomicU32::new(0),
            pace: Pace::default(),
        }
    }

    /// The handle of the primary context.
    pub(crate) fn context(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(FIRST_CONTEXT + self.index as usize * 16)
    }

    /// Takes one more share in the primary context.
    pub(crate) fn retain(&self) -> *mut c_void {
        self.retained.fetch_add(1, Ordering::AcqRel);
        self.context()
    }

    /// Gives a share back.
    pub(crate) fn release(&self) -> Answer<()> {
        let less = |count: u32| count.checked_sub(1);
        let update = self.retained.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        update.map(|_| ()).map_err(|_| INVALID_CONTEXT)
    }

    /// Whether anybody has a share in the primary context.
    pub(crate) fn is_active(&self) -> bool {
        self.retained.load(Ordering::Acquire) > 0
    }

    pub(crate) fn alive(&self) -> Answer<()> {
        if self.is_active() { Ok(()) } else { Err(INVALID_CONTEXT) }
    }

    /// Answers the failure by which the device was lost.
    pub(crate) fn usable(&self) -> Answer<()> {
        match self.sticky.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.usable().is_err()
    }

    /// From now on every call on this device answers `code`. The first such code stays.
    pub(crate) fn lose(&self, code: Code) {
        let _ = self.sticky.compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Acquire);
    }
}
