//! Calls of one thread on their way to the writer.
//!
//! One thread puts calls in, the writer takes them out; neither waits for the other. `head` counts
//! what was put in and is written by the thread, `tail` what was taken out and is written by the
//! writer. A slot between the two is read only, one outside is the thread's.

use gpuio_base::trace::Call;

use crate::sync::Guarded;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Calls that fit. The writer looks every few milliseconds.
const SLOTS: usize = 4096;

/// On cache lines of its own: processors fetch two lines together.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Counter(AtomicU64);

/// The calls of one thread.
pub(crate) struct Ring {
    slots: Box<[Guarded<Call>]>,
    head: Counter,
    tail: Counter,
    /// Calls for which there was no space.
    lost: AtomicU64,
    /// The thread has ended.
    closed: AtomicBool,
}

// SAFETY: a slot is written by its thread only while it is outside `tail..head`, and read by the
// writer only while it is inside; both counters are published with release and read with acquire.
unsafe impl Sync for Ring {}

impl Ring {
    pub(crate) fn new() -> Ring {
        Ring {
            slots: (0..SLOTS).map(|_| Guarded::new(Call::NONE)).collect(),
            head: Counter::default(),
            tail: Counter::default(),
            lost: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn slot(&self, at: u64) -> &Guarded<Call> {
        // The remainder is below the number of slots.
        &self.slots[usize::try_from(at % SLOTS as u64).unwrap_or(0)]
    }

    /// Puts a call in, or counts it as lost. Only its thread calls this.
    pub(crate) fn put(&self, call: Call) {
        let head = self.head.0.load(Ordering::Relaxed);
        if head - self.tail.0.load(Ordering::Acquire) >= SLOTS as u64 {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // SAFETY: the slot is outside `tail..head`, so the writer does not read it, and this is the
        // only thread that writes.
        unsafe { self.slot(head).write().write(call) };
        self.head.0.store(head + 1, Ordering::Release);
    }

    /// Up to where calls were put in, for [`Ring::take`].
    pub(crate) fn head(&self) -> u64 {
        self.head.0.load(Ordering::Acquire)
    }

    /// Takes the calls before `head` out. Only the writer calls this, with a value of
    /// [`Ring::head`].
    pub(crate) fn take(&self, head: u64, mut each: impl FnMut(&Call)) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        for at in tail..head {
            // SAFETY: the slot is inside `tail..head`, so its thread does not write it.
            let call = unsafe { self.slot(at).read().read() };
            each(&call);
        }
        self.tail.0.store(head, Ordering::Release);
    }

    /// How many were lost since this was called last.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// The thread puts no more in.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether all of a thread that has ended was taken.
    pub(crate) fn is_done(&self) -> bool {
        self.closed.load(Ordering::Acquire)
            && self.head.0.load(Ordering::Acquire) == self.tail.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn calls_come_out_in_order_and_what_does_not_fit_is_counted() {
        let ring = Ring::new();
        for offset in 0..SLOTS as u64 + 10 {
            ring.put(Call { offset, ..Call::NONE });
        }
        let mut seen = Vec::new();
        ring.take(ring.head(), |call| seen.push(call.offset));
        assert_eq!(seen, (0..SLOTS as u64).collect::<Vec<_>>());
        assert_eq!((ring.take_lost(), ring.take_lost(), ring.is_done()), (10, 0, false));
        ring.close();
        assert!(ring.is_done());
    }

    #[test]
    fn a_thread_and_the_writer_at_once() {
        const COUNT: u64 = 200_000;
        let ring = Arc::new(Ring::new());
        let theirs = Arc::clone(&ring);
        let thread = std::thread::spawn(move || {
            for offset in 0..COUNT {
                theirs.put(Call { offset, bytes: offset ^ 0x55, ..Call::NONE });
            }
            theirs.close();
        });
        let (mut count, mut lost, mut last) = (0, 0, None);
        while !ring.is_done() {
            ring.take(ring.head(), |call| {
                assert_eq!(call.bytes, call.offset ^ 0x55);
                assert!(last.is_none_or(|last| call.offset > last));
                (count, last) = (count + 1, Some(call.offset));
            });
            lost += ring.take_lost();
        }
        thread.join().unwrap();
        assert_eq!(count + lost + ring.take_lost(), COUNT);
    }
}
