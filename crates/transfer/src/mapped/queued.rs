//! Copies of mapped ranges by a program's stream: no thread waits for them.
//!
//! Each ends when the stream has stored a value. Nothing has to be quick then: a range that is kept
//! for too long only stays registered. So whoever adds a copy looks at the others, and the mapper
//! looks while it has something to retire.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::MappedRange;
use crate::device::Device;

/// The copies that may not have ended.
#[derive(Debug, Default)]
pub(super) struct QueuedCopies(Mutex<Vec<QueuedCopy>>);

/// A copy that a stream makes.
#[derive(Debug)]
struct QueuedCopy {
    /// Stays registered until this is dropped.
    _range: MappedRange,
    device: &'static Device,
    /// The stream stores `value` or a later one (modulo 2^32) after the copy.
    semaphore: &'static AtomicU32,
    value: u32,
}

impl QueuedCopy {
    fn has_ended(&self) -> bool {
        // Acquire: what the stream did before is done.
        self.semaphore.load(Ordering::Acquire).wrapping_sub(self.value).cast_signed() >= 0
    }
}

impl QueuedCopies {
    fn lock(&self) -> MutexGuard<'_, Vec<QueuedCopy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a range until the stream has stored `value`. Calls no driver.
    pub(super) fn add(
        &self,
        range: MappedRange,
        device: &'static Device,
        (semaphore, value): (&'static AtomicU32, u32),
    ) {
        let mut copies = self.lock();
        copies.retain(|copy| !copy.has_ended());
        copies.push(QueuedCopy { _range: range, device, semaphore, value });
    }

    /// Lets go of the ranges whose copies ended, or never will because the device was reset. Calls
    /// the driver.
    pub(super) fn sweep(&self) {
        self.lock().retain(|copy| !copy.has_ended() && !copy.device.context().is_reset());
    }
}
