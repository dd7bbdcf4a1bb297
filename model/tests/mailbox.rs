//! Letters to the kernel that stays on a GPU: what `crates/gpu/src/errand/mailbox.rs` and `desk.rs`
//! do with the words of a desk, beside a thread that does what a block of
//! `crates/gpu/kernels/errand.cu` does. A copy and not the sources: whoever changes the protocol
//! there changes it here. Left out is what steers when launches come and leave, which no letter
//! depends on: why one left, that one leaves soon, that one shall leave.
//!
//! PTX's `ld.acquire.sys`, `st.release.sys` and `fence.sc.sys` are C11's acquire, release and
//! sequentially consistent fence ("Memory Consistency Model" in the PTX ISA); what a block's
//! threads do between two barriers is one thread's here, with the three words of a letter read in
//! either order.

use std::sync::Arc;

use loom::thread;

use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{Guarded, yield_now};
use crate::{Row, breaks, holds, often};

pub const ROWS: &[Row] = &[
    holds("what a letter asks for is done once, with its bytes, and so is the next", moved),
    holds("the same, with the words read the other way round", moved_reversed),
    holds("a letter is moved or taken back, and the memory is the host's after either", taken_back),
    holds("a letter in the place of one taken back is read whole", replaced),
    // The kernel reads them by three threads of a warp in one instruction, and leans on that being
    // one access of the bus: PTX promises no order among threads. With word 0 read last, the others
    // may still be those of the letter that was taken back, which had the same number.
    breaks("and would not be with word 0 read last", "words of two letters", replaced_reversed),
    holds("a letter that came as the block left is taken back", left),
    holds("two launches hand a desk over, and each letter is moved once or not", next_launch),
    holds("a letter that was not given back is moved", kept),
];

const BITS: u32 = 48;

/// A desk's words, and two places in memory.
#[derive(Debug, Default)]
struct Desk {
    letter: [AtomicU64; 3],
    answer: AtomicU64,
    gone: AtomicU64,
    here: AtomicU64,
    /// The last launch that has left the desk, for the one behind it.
    left: AtomicU64,
    places: [Place; 2],
}

/// What a letter moves from, and to.
#[derive(Debug)]
struct Place {
    src: Guarded<u64>,
    dst: Guarded<u64>,
}

impl Default for Place {
    fn default() -> Self {
        Self { src: Guarded::new(0), dst: Guarded::new(0) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Letter {
    number: u64,
    place: u64,
}

fn marked(number: u64, value: u64) -> u64 {
    number << BITS | value
}

/// The host's side.
impl Desk {
    /// `Mailbox::put`: all three words name the place, so that a mixture is seen.
    fn put(&self, letter: Letter) {
        for at in [1, 2, 0] {
            self.letter[at].store(marked(letter.number, letter.place), Ordering::Release);
        }
    }

    /// `Mailbox::take_back`.
    fn take_back(&self, letter: Letter) -> bool {
        let before = letter.number - 1;
        self.letter[0].store(marked(before, 0), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.is_here() || self.answered() == letter.number {
            self.letter[0].store(marked(letter.number, letter.place), Ordering::Release);
            return false;
        }
        self.letter[1].store(marked(before, 0), Ordering::Release);
        self.letter[2].store(marked(before, 0), Ordering::Release);
        true
    }

    /// `Inner::is_here`.
    fn is_here(&self) -> bool {
        let left = self.gone.load(Ordering::Acquire);
        self.here.load(Ordering::SeqCst) > left
    }

    fn answered(&self) -> u64 {
        self.answer.load(Ordering::Acquire)
    }

    fn fill(&self, place: usize, value: u64) {
        // SAFETY: whether the block uses it now is what the model asks.
        unsafe { *self.places[place].src.write() = value };
        // SAFETY: as above.
        unsafe { *self.places[place].dst.write() = 0 };
    }

    fn arrived(&self, place: usize) -> u64 {
        // SAFETY: as above.
        unsafe { *self.places[place].dst.read() }
    }
}

/// The device's side: a block of this launch, which leaves after so many letters, or so many looks
/// in vain.
fn block(desk: &Desk, launch: u64, letters: u64, looks: u32, reversed: bool) {
    if desk.left.load(Ordering::Acquire) + 1 < launch {
        // It would wait: what it does then is what another run does that came later.
        return;
    }
    desk.here.store(launch, Ordering::Release);
    fence(Ordering::SeqCst);
    let first = desk.answer.load(Ordering::Acquire) + 1;
    let (mut number, mut vain) = (first, 0);
    while number < first + letters && vain < looks {
        let mut words = [0; 3];
        let order = if reversed { [2, 1, 0] } else { [0, 1, 2] };
        order.into_iter().for_each(|at| words[at] = desk.letter[at].load(Ordering::Acquire));
        if words.iter().any(|word| word >> BITS != number) {
            vain += 1;
            if vain < looks {
                yield_now();
            }
            continue;
        }
        let [src, dst, len] = words.map(|word| word & ((1 << BITS) - 1));
        assert!(src == dst && dst == len, "words of two letters: {src} {dst} {len}");
        let place = &desk.places[src as usize];
        // SAFETY: whether the host uses it now is what the model asks.
        unsafe { *place.dst.write() += *place.src.read() };
        desk.answer.store(number, Ordering::Release);
        number += 1;
    }
    desk.gone.store(launch, Ordering::Release);
    desk.left.store(launch, Ordering::Release);
}

fn start(desk: &Arc<Desk>, letters: u64, looks: u32, reversed: bool) -> thread::JoinHandle<()> {
    let theirs = Arc::clone(desk);
    thread::spawn(move || block(&theirs, 1, letters, looks, reversed))
}

fn two_letters(reversed: bool) {
    often(move || {
        let desk = Arc::new(Desk::default());
        let device = start(&desk, 2, u32::MAX, reversed);
        for number in 1..=2 {
            desk.fill(1, 10 + number);
            desk.put(Letter { number, place: 1 });
            while desk.answered() != number {
                yield_now();
            }
            assert_eq!(desk.arrived(1), 10 + number);
        }
        device.join().unwrap();
    });
}

fn moved() {
    two_letters(false);
}

fn moved_reversed() {
    two_letters(true);
}

/// As `Desk::finish` where a launch is late: true if the letter was moved, else the caller copies.
fn moved_or_not(desk: &Desk, letter: Letter) -> bool {
    loop {
        if desk.answered() == letter.number {
            return true;
        }
        if desk.take_back(letter) {
            return false;
        }
        yield_now();
    }
}

fn taken_back() {
    often(|| {
        let desk = Arc::new(Desk::default());
        let device = start(&desk, 1, 2, false);
        desk.fill(1, 7);
        let letter = Letter { number: 1, place: 1 };
        desk.put(letter);
        let moved = moved_or_not(&desk, letter);
        assert_eq!(desk.arrived(1), if moved { 7 } else { 0 });
        desk.fill(1, 8);
        device.join().unwrap();
        assert_eq!(desk.arrived(1), 0, "moved after it was taken back");
    });
}

/// Two launches that may both be on the device, a letter for each at the most.
fn next_launch() {
    often(|| {
        let desk = Arc::new(Desk::default());
        let (one, two) = (Arc::clone(&desk), Arc::clone(&desk));
        let first = thread::spawn(move || block(&one, 1, 1, 1, false));
        let second = thread::spawn(move || block(&two, 2, 1, 1, false));
        let mut number = 1;
        for value in [7, 8] {
            desk.fill(1, value);
            let letter = Letter { number, place: 1 };
            desk.put(letter);
            let moved = moved_or_not(&desk, letter);
            assert_eq!(desk.arrived(1), if moved { value } else { 0 });
            number += u64::from(moved);
        }
        desk.fill(1, 9);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(desk.arrived(1), 0, "moved after it was taken back");
    });
}

fn kept() {
    often(|| {
        let desk = Arc::new(Desk::default());
        let device = start(&desk, 1, u32::MAX, false);
        desk.fill(1, 7);
        let letter = Letter { number: 1, place: 1 };
        desk.put(letter);
        if desk.take_back(letter) {
            desk.put(letter);
        }
        while desk.answered() != 1 {
            yield_now();
        }
        assert_eq!(desk.arrived(1), 7);
        device.join().unwrap();
    });
}

fn second_in_its_place(reversed: bool) {
    often(move || {
        let desk = Arc::new(Desk::default());
        desk.fill(0, 6);
        desk.fill(1, 7);
        let device = start(&desk, 1, 2, reversed);
        let first = Letter { number: 1, place: 1 };
        desk.put(first);
        if desk.take_back(first) {
            desk.fill(1, 9);
            let second = Letter { number: 1, place: 0 };
            desk.put(second);
            device.join().unwrap();
            if desk.answered() == 1 {
                assert_eq!((desk.arrived(0), desk.arrived(1)), (6, 0));
            } else {
                assert!(desk.take_back(second), "the block is gone");
                assert_eq!(desk.arrived(0), 0);
            }
        } else {
            device.join().unwrap();
        }
    });
}

fn replaced() {
    second_in_its_place(false);
}

fn replaced_reversed() {
    second_in_its_place(true);
}

/// The block looks once and leaves; the host waits until it knows which of the two it was.
fn left() {
    often(|| {
        let desk = Arc::new(Desk::default());
        let device = start(&desk, 1, 1, false);
        desk.fill(1, 7);
        let letter = Letter { number: 1, place: 1 };
        desk.put(letter);
        while desk.gone.load(Ordering::Acquire) < 1 {
            yield_now();
        }
        // What the block did before it left is seen.
        if desk.answered() == 1 {
            assert_eq!(desk.arrived(1), 7);
        } else {
            assert!(desk.take_back(letter), "a block that has left is not here");
            desk.fill(1, 8);
        }
        device.join().unwrap();
    });
}
