//! The slots of commands: who has them, and which had commands recently. Atomics alone: whoever
//! claims a slot is the only one to use it until the slot is released, and sees what the slot's
//! last user wrote.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// All slots of a queue, 64 at most.
#[derive(Debug)]
pub(super) struct CommandSlots {
    slots: Box<[SlotState]>,
    /// A bit for each slot that is dedicated to one submitter.
    dedicated: AtomicU64,
    /// A bit for each slot that had a command recently.
    active: AtomicU64,
}

/// The host's state of a slot, on a cache line of its own.
#[repr(align(128))]
#[derive(Debug)]
struct SlotState {
    /// A submitter uses it now.
    claimed: AtomicBool,
    /// The number of the slot's last command that was submitted and not cancelled.
    submitted: AtomicU64,
}

impl CommandSlots {
    pub(super) fn new(count: u32) -> Self {
        let free = |_| SlotState { claimed: AtomicBool::new(false), submitted: AtomicU64::new(0) };
        Self {
            slots: (0..count).map(free).collect(),
            dedicated: AtomicU64::new(0),
            active: AtomicU64::new(0),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// Dedicates the lowest slot that no submitter has; `None` if there is none.
    pub(super) fn dedicate(&self) -> Option<u32> {
        let count = self.count();
        let lowest_free =
            |taken: u64| ((taken.trailing_ones() as usize) < count).then(|| taken | (taken + 1));
        let before = self.dedicated.fetch_update(Ordering::AcqRel, Ordering::Acquire, lowest_free);
        before.ok().map(u64::trailing_ones)
    }

    /// Ends the dedication of a slot.
    pub(super) fn give_back(&self, slot: u32) {
        self.dedicated.fetch_and(!(1 << slot), Ordering::AcqRel);
    }

    /// How many are dedicated.
    pub(super) fn dedicated(&self) -> u32 {
        self.dedicated.load(Ordering::Relaxed).count_ones()
    }

    /// Claims the preferred slot, or the next free one after it.
    pub(super) fn claim(&self, preferred: u32) -> Option<u32> {
        let count = self.slots.len();
        let first = preferred as usize;
        let free = (first..first + count).map(|at| at % count).find(|&at| {
            let claimed = &self.slots[at].claimed;
            // Acquires what the slot's last user wrote.
            !claimed.load(Ordering::Relaxed) && !claimed.swap(true, Ordering::Acquire)
        })?;
        let free = u32::try_from(free).ok()?;
        if free != preferred {
            self.set_active(free);
        }
        Some(free)
    }

    pub(super) fn release(&self, slot: u32) {
        self.slots[slot as usize].claimed.store(false, Ordering::Release);
    }

    /// Records that the slot has commands.
    pub(super) fn set_active(&self, slot: u32) {
        let bit = 1 << slot;
        if self.active.load(Ordering::Relaxed) & bit == 0 {
            self.active.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The slots that had commands since the last [`CommandSlots::take_active`], as bits.
    pub(super) fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// The same, and begins anew.
    pub(super) fn take_active(&self) -> u64 {
        self.active.swap(0, Ordering::Relaxed)
    }

    /// The number of the last command in a slot that the caller has claimed.
    pub(super) fn submitted(&self, slot: u32) -> u64 {
        self.slots[slot as usize].submitted.load(Ordering::Relaxed)
    }

    pub(super) fn set_submitted(&self, slot: u32, number: u64) {
        self.slots[slot as usize].submitted.store(number, Ordering::Relaxed);
    }
}
