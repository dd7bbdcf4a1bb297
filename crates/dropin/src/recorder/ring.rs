//! Calls of one thread on their way to the writer.
//!
//! One thread puts calls in, the writer takes them out; neither waits for the other. `head` counts
//! the words that were put in and is written by the thread, `tail` what was taken out and is
//! written by the writer. Words between the two are only read, others are the thread's.
//!
//! Calls are in the ring as they stand in the trace: where all processors are busy, a few bytes are
//! moved from one to another instead of a whole call, and the writer only copies.

use gpuio_base::trace::write::Encoded;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::size;

/// Words of eight bytes that fit: a call mostly takes two. The writer looks every few milliseconds.
const WORDS: usize = size(16384, 4);

/// On cache lines of its own: processors fetch two lines together.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Counter(AtomicU64);

/// The calls of one thread. Each begins at a word whose lowest byte is its length; its bytes follow
/// and fill the last word with zeros.
pub(crate) struct Ring {
    /// Its number among all rings.
    pub(crate) number: u32,
    words: Box<[AtomicU64]>,
    head: Counter,
    tail: Counter,
    /// Calls for which there was no space.
    lost: AtomicU64,
    /// The thread has ended.
    closed: AtomicBool,
}

impl Ring {
    pub(crate) fn new(number: u32) -> Ring {
        Ring {
            number,
            words: (0..WORDS).map(|_| AtomicU64::new(0)).collect(),
            head: Counter::default(),
            tail: Counter::default(),
            lost: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        // The remainder is below the number of words.
        &self.words[usize::try_from(at % WORDS as u64).unwrap_or(0)]
    }

    /// Whether one more call fits; otherwise it is counted as lost, and must not be put in. Only
    /// the ring's thread calls this.
    pub(crate) fn fits(&self) -> bool {
        let used = self.head.0.load(Ordering::Relaxed) - self.tail.0.load(Ordering::Acquire);
        let fits = used + Encoded::WORDS_MOST as u64 <= WORDS as u64;
        if !fits {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// Puts a call in, after [`Ring::fits`]. Only the ring's thread calls this.
    pub(crate) fn put(&self, call: &Encoded) {
        let head = self.head.0.load(Ordering::Relaxed);
        let mut at = head;
        for word in call.words() {
            self.word(at).store(word, Ordering::Relaxed);
            at += 1;
        }
        self.head.0.store(at, Ordering::Release);
    }

    /// Up to where calls were put in, for [`Ring::take`].
    pub(crate) fn head(&self) -> u64 {
        self.head.0.load(Ordering::Acquire)
    }

    /// Takes the calls before `head` out and appends their bytes. Only the writer calls this, with
    /// a value of [`Ring::head`].
    pub(crate) fn take(&self, head: u64, bytes: &mut Vec<u8>) {
        let mut at = self.tail.0.load(Ordering::Relaxed);
        while at < head {
            let first = self.word(at).load(Ordering::Relaxed).to_le_bytes();
            let end = bytes.len() + usize::from(first[0]);
            bytes.extend_from_slice(&first[1..]);
            at += 1;
            while bytes.len() < end {
                bytes.extend_from_slice(&self.word(at).load(Ordering::Relaxed).to_le_bytes());
                at += 1;
            }
            bytes.truncate(end);
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

    use gpuio_base::trace::write::{Frame, Source, header};
    use gpuio_base::trace::{Call, TraceFile, read};

    use super::*;

    /// A call of any length.
    fn call(nth: u64) -> Call {
        let offset = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (4 + nth % 60);
        Call { offset, bytes: 1 << (nth % 40), begin_ns: nth, ..Call::NONE }
    }

    /// Puts a call in, if it fits.
    fn put(ring: &Ring, source: &mut Source, call: &Call) {
        if ring.fits() {
            ring.put(&source.encode(call));
        }
    }

    fn calls(encoded: &[u8]) -> Vec<Call> {
        let (mut bytes, mut frame) = (header().to_vec(), Frame::new());
        frame.file(0, &TraceFile::default());
        frame.calls(0, encoded);
        frame.take(&mut bytes);
        read(&bytes).unwrap().calls
    }

    #[test]
    fn calls_come_out_in_order_and_what_does_not_fit_is_counted() {
        let (ring, mut source, mut encoded) = (Ring::new(0), Source::default(), Vec::new());
        let mut wanted = Vec::new();
        // Around the ring's end several times.
        for nth in 0..20_000 {
            if nth % 1000 == 0 {
                ring.take(ring.head(), &mut encoded);
            }
            put(&ring, &mut source, &call(nth));
            wanted.push(call(nth));
        }
        ring.take(ring.head(), &mut encoded);
        assert_eq!(calls(&encoded), wanted);
        assert_eq!(ring.take_lost(), 0);
        (0..WORDS as u64).for_each(|nth| put(&ring, &mut source, &call(nth)));
        encoded.clear();
        ring.take(ring.head(), &mut encoded);
        let lost = ring.take_lost();
        assert!(lost > 0 && ring.take_lost() == 0 && !ring.is_done());
        // A call behind lost ones has its place.
        put(&ring, &mut source, &call(7));
        ring.close();
        assert!(!ring.is_done());
        let mut last = Vec::new();
        ring.take(ring.head(), &mut last);
        assert!(ring.is_done() && !last.is_empty());
    }

    #[test]
    fn a_thread_and_the_writer_at_once() {
        const COUNT: u64 = 200_000;
        let ring = Arc::new(Ring::new(0));
        let theirs = Arc::clone(&ring);
        let thread = std::thread::spawn(move || {
            let mut source = Source::default();
            (0..COUNT).for_each(|nth| put(&theirs, &mut source, &call(nth)));
            theirs.close();
        });
        let (mut encoded, mut lost) = (Vec::new(), 0);
        while !ring.is_done() {
            ring.take(ring.head(), &mut encoded);
            lost += ring.take_lost();
        }
        thread.join().unwrap();
        let calls = calls(&encoded);
        assert_eq!(calls.len() as u64 + lost + ring.take_lost(), COUNT);
        assert!(calls.iter().all(|seen| *seen == call(seen.begin_ns)));
        assert!(calls.is_sorted_by(|a, b| a.begin_ns < b.begin_ns));
    }
}
