//! Commands of the resident copy kernel: what `crates/gpu/src/resident_copy/mailbox.rs` and
//! `submitter.rs` do with the words of a slot, while a thread does what a block of
//! `crates/gpu/kernels/resident_copy.cu` does. A copy and not the sources: whoever changes the
//! protocol there changes it entered. The code that decides when launches begin and exit is left
//! out, since no command depends on it: the reason of an exit, the notice of one, the request for
//! one.
//!
//! PTX's `ld.acquire.sys`, `st.release.sys` and `fence.sc.sys` are C11's acquire, release and
//! sequentially consistent fence ("Memory Consistency Model" in the PTX ISA); what a block's
//! threads do between two barriers is one thread's entered, with the three words of a command read
//! in either order.

use std::sync::Arc;

use loom::sync::Notify;
use loom::thread;

use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{Guarded, yield_now};
use crate::{Row, breaks, holds, interrupted, often};

pub const ROWS: &[Row] = &[
    holds("a command is executed once, with its bytes, and so is the next", executed),
    holds("the same, with the words read the other way round", executed_reversed),
    holds("a command is executed or cancelled, and then the memory is the host's", cancelled),
    holds("a command in the slot of a cancelled one is read whole", replaced),
    // The kernel reads them by two threads of a warp in one instruction, and relies on that being
    // one access of the bus: PTX promises no order among threads. With word 0 read last, the others
    // may still be those of the cancelled command, which had the same number.
    breaks("and would not be with word 0 read last", "words of two commands", replaced_reversed),
    holds("a command that came as the block exited is cancelled", left),
    holds("two launches hand a slot over, and each command is executed once or not", next_launch)
        .slow(),
    holds("a command that could not be cancelled is executed", kept),
];

const BITS: u32 = 48;

/// A slot's words, and two memory ranges.
#[derive(Debug, Default)]
struct Slot {
    command: [AtomicU64; 3],
    completion: AtomicU64,
    exited: AtomicU64,
    entered: AtomicU64,
    /// The last launch that has left the slot, for the next one, and the number of the last command
    /// that was completed then.
    left: AtomicU64,
    left_number: AtomicU64,
    ranges: [Range; 2],
}

/// The source and destination of a command.
#[derive(Debug)]
struct Range {
    src: Guarded<u64>,
    dst: Guarded<u64>,
}

impl Default for Range {
    fn default() -> Self {
        Self { src: Guarded::new(0), dst: Guarded::new(0) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Command {
    number: u64,
    range: u64,
}

fn marked(number: u64, value: u64) -> u64 {
    number << BITS | value
}

/// The host's side.
impl Slot {
    /// `Mailbox::submit`: all three words name the range, so that a mixture is seen.
    fn submit(&self, command: Command) {
        for at in [1, 2, 0] {
            self.command[at].store(marked(command.number, command.range), Ordering::Release);
        }
    }

    /// `Mailbox::cancel`.
    fn cancel(&self, command: Command) -> bool {
        let before = command.number - 1;
        self.command[0].store(marked(before, 0), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.has_block() || self.completed() == command.number {
            self.command[0].store(marked(command.number, command.range), Ordering::Release);
            return false;
        }
        self.command[1].store(marked(before, 0), Ordering::Release);
        self.command[2].store(marked(before, 0), Ordering::Release);
        true
    }

    /// `QueueState::has_block`.
    fn has_block(&self) -> bool {
        let left = self.exited.load(Ordering::Acquire);
        self.entered.load(Ordering::SeqCst) > left
    }

    fn completed(&self) -> u64 {
        self.completion.load(Ordering::Acquire)
    }

    fn fill(&self, range: usize, value: u64) {
        // SAFETY: whether the block uses it now is what the model checks.
        unsafe { *self.ranges[range].src.write() = value };
        // SAFETY: as above.
        unsafe { *self.ranges[range].dst.write() = 0 };
    }

    fn copied(&self, range: usize) -> u64 {
        // SAFETY: as above.
        unsafe { *self.ranges[range].dst.read() }
    }
}

/// Two launches: the second is made after the first has entered. A block that finds the slot not
/// yet left sleeps until the first has exited: loom does not end where two threads poll.
struct TakeOver {
    entered: Notify,
    exited: Notify,
}

/// The device's side: a block of this launch, which exits after so many commands, or so many polls
/// without one.
fn block(slot: &Slot, launch: u64, commands: u64, polls: u32, reversed: bool) {
    block_of(slot, launch, commands, polls, reversed, None);
}

/// The same for launch 1 or 2 of two.
fn block_of(
    slot: &Slot,
    launch: u64,
    commands: u64,
    polls: u32,
    reversed: bool,
    take_over: Option<&TakeOver>,
) {
    if let Some(take_over) = take_over.filter(|_| launch == 2) {
        while slot.entered.load(Ordering::Acquire) == 0 {
            take_over.entered.wait();
        }
    }
    slot.entered.store(launch, Ordering::Release);
    fence(Ordering::SeqCst);
    if let Some(take_over) = take_over {
        match launch {
            1 => take_over.entered.notify(),
            _ => {
                while slot.left.load(Ordering::Acquire) == 0 {
                    take_over.exited.wait();
                }
            }
        }
    }
    let first = slot.left_number.load(Ordering::Relaxed) + 1;
    let (mut number, mut misses) = (first, 0);
    while number < first + commands && misses < polls {
        let mut words = [0; 3];
        let order = if reversed { [2, 1, 0] } else { [0, 1, 2] };
        order.into_iter().for_each(|at| words[at] = slot.command[at].load(Ordering::Acquire));
        if words.iter().any(|word| word >> BITS != number) {
            misses += 1;
            if misses < polls {
                yield_now();
            }
            continue;
        }
        let [src, dst, len] = words.map(|word| word & ((1 << BITS) - 1));
        assert!(src == dst && dst == len, "words of two commands: {src} {dst} {len}");
        let range = &slot.ranges[src as usize];
        // SAFETY: whether the host uses it now is what the model checks.
        unsafe { *range.dst.write() += *range.src.read() };
        slot.completion.store(number, Ordering::Release);
        number += 1;
    }
    // In this order: the next launch may exit at once, and this one must not overwrite its word.
    slot.exited.store(launch, Ordering::Release);
    slot.left_number.store(number - 1, Ordering::Relaxed);
    slot.left.store(launch, Ordering::Release);
    if let Some(take_over) = take_over.filter(|_| launch == 1) {
        take_over.exited.notify();
    }
}

fn start(slot: &Arc<Slot>, commands: u64, polls: u32, reversed: bool) -> thread::JoinHandle<()> {
    let theirs = Arc::clone(slot);
    thread::spawn(move || block(&theirs, 1, commands, polls, reversed))
}

fn two_commands(reversed: bool) {
    often(move || {
        let slot = Arc::new(Slot::default());
        let device = start(&slot, 2, u32::MAX, reversed);
        for number in 1..=2 {
            slot.fill(1, 10 + number);
            slot.submit(Command { number, range: 1 });
            while slot.completed() != number {
                yield_now();
            }
            assert_eq!(slot.copied(1), 10 + number);
        }
        device.join().unwrap();
    });
}

fn executed() {
    two_commands(false);
}

fn executed_reversed() {
    two_commands(true);
}

/// As `Submitter::wait` where a launch is late: true if the command was executed, else the caller
/// copies.
fn executed_or_not(slot: &Slot, command: Command) -> bool {
    loop {
        if slot.completed() == command.number {
            return true;
        }
        if slot.cancel(command) {
            return false;
        }
        yield_now();
    }
}

fn cancelled() {
    often(|| {
        let slot = Arc::new(Slot::default());
        let device = start(&slot, 1, 2, false);
        slot.fill(1, 7);
        let command = Command { number: 1, range: 1 };
        slot.submit(command);
        let executed = executed_or_not(&slot, command);
        assert_eq!(slot.copied(1), if executed { 7 } else { 0 });
        slot.fill(1, 8);
        device.join().unwrap();
        assert_eq!(slot.copied(1), 0, "copied after it was cancelled");
    });
}

/// Two launches that may both be on the device, with at most one command each.
fn next_launch() {
    // Three interruptions take more than five minutes.
    interrupted(2, || {
        let slot = Arc::new(Slot::default());
        let take_over = Arc::new(TakeOver { entered: Notify::new(), exited: Notify::new() });
        let [first, second] = [1, 2].map(|launch| {
            let (slot, take_over) = (Arc::clone(&slot), Arc::clone(&take_over));
            thread::spawn(move || block_of(&slot, launch, 1, 1, false, Some(&take_over)))
        });
        let mut number = 1;
        for value in [7, 8] {
            slot.fill(1, value);
            let command = Command { number, range: 1 };
            slot.submit(command);
            let executed = executed_or_not(&slot, command);
            assert_eq!(slot.copied(1), if executed { value } else { 0 });
            number += u64::from(executed);
        }
        slot.fill(1, 9);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(slot.copied(1), 0, "copied after it was cancelled");
    });
}

fn kept() {
    often(|| {
        let slot = Arc::new(Slot::default());
        let device = start(&slot, 1, u32::MAX, false);
        slot.fill(1, 7);
        let command = Command { number: 1, range: 1 };
        slot.submit(command);
        if slot.cancel(command) {
            slot.submit(command);
        }
        while slot.completed() != 1 {
            yield_now();
        }
        assert_eq!(slot.copied(1), 7);
        device.join().unwrap();
    });
}

fn second_in_its_slot(reversed: bool) {
    often(move || {
        let slot = Arc::new(Slot::default());
        slot.fill(0, 6);
        slot.fill(1, 7);
        let device = start(&slot, 1, 2, reversed);
        let first = Command { number: 1, range: 1 };
        slot.submit(first);
        if slot.cancel(first) {
            slot.fill(1, 9);
            let second = Command { number: 1, range: 0 };
            slot.submit(second);
            device.join().unwrap();
            if slot.completed() == 1 {
                assert_eq!((slot.copied(0), slot.copied(1)), (6, 0));
            } else {
                assert!(slot.cancel(second), "the block has exited");
                assert_eq!(slot.copied(0), 0);
            }
        } else {
            device.join().unwrap();
        }
    });
}

fn replaced() {
    second_in_its_slot(false);
}

fn replaced_reversed() {
    second_in_its_slot(true);
}

/// The block polls once and exits; the host waits until it knows whether the command was executed.
fn left() {
    often(|| {
        let slot = Arc::new(Slot::default());
        let device = start(&slot, 1, 1, false);
        slot.fill(1, 7);
        let command = Command { number: 1, range: 1 };
        slot.submit(command);
        while slot.exited.load(Ordering::Acquire) < 1 {
            yield_now();
        }
        // The block's work before it exited is seen.
        if slot.completed() == 1 {
            assert_eq!(slot.copied(1), 7);
        } else {
            assert!(slot.cancel(command), "a block that has exited is not present");
            slot.fill(1, 8);
        }
        device.join().unwrap();
    });
}
