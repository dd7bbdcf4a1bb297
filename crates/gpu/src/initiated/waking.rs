//! Waking the operating system's thread of a ring.
//!
//! A thread that found no entry for a time (`SQPOLL`) sets a flag, has a full barrier, looks at the
//! tail once more, and sleeps if there is still none (`io_sq_thread` in Linux). The device
//! publishes entries and wakes no thread. So a thread of ours looks at both. `tools/model` runs
//! this file's source against the thread's steps.

use std::io;

use crate::sync::atomic::{AtomicU32, Ordering, fence};

/// `IORING_SQ_NEED_WAKEUP`, a flag of the submission queue.
const NEED_WAKEUP: u32 = 1;

/// A ring whose entries a thread of the operating system takes. The words are the submission
/// queue's.
pub(super) trait Polled {
    /// The word of flags.
    fn flags(&self) -> &AtomicU32;

    /// Entries that the thread has taken. Wraps at 2^32.
    fn head(&self) -> &AtomicU32;

    /// Entries that the device has published. Wraps at 2^32.
    fn tail(&self) -> &AtomicU32;

    /// Wakes the thread by a system call.
    ///
    /// # Errors
    /// The kernel refuses.
    fn enter(&self) -> io::Result<()>;

    /// Entries that the device has published. Wraps at 2^32.
    fn published(&self) -> u32 {
        self.tail().load(Ordering::Acquire)
    }

    /// Wakes the thread if it sleeps. One look at a word where it does not.
    ///
    /// An entry that the thread has not seen before it sleeps is there while the flag is set: who
    /// looks at the flag again and again while an entry has no completion wakes the thread in the
    /// end.
    ///
    /// # Errors
    /// The kernel refuses.
    fn wake(&self) -> io::Result<()> {
        match self.flags().load(Ordering::Acquire) & NEED_WAKEUP {
            0 => Ok(()),
            _ => self.enter(),
        }
    }
}

/// Wakes the threads that sleep while there are entries for them. `found` gets the number of each
/// ring where entries were published that were not in `seen`. Each of these entries is taken by a
/// thread that does not sleep before, or that is woken here.
pub(super) fn look<R: Polled>(rings: &[R], seen: &mut [u32], mut found: impl FnMut(usize)) {
    for (nth, (ring, seen)) in rings.iter().zip(seen).enumerate() {
        let published = ring.published();
        if std::mem::replace(seen, published) != published {
            found(nth);
        }
    }
    // With the barrier of a thread that falls asleep: if it does not see an entry that was seen
    // above, its flag is seen below. To acquire the tail alone promises nothing about the flag.
    fence(Ordering::SeqCst);
    for ring in rings {
        if ring.published() != ring.head().load(Ordering::Acquire) {
            // A refusal is found by `Rings::wake`; the next look tries again.
            let _ = ring.wake();
        }
    }
}
