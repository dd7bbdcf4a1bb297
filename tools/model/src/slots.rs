//! Claims of slots of commands: `crates/gpu/src/resident_copy/slots.rs`.

use std::sync::Arc;

use loom::thread;

use self::source::CommandSlots;
use crate::sync::Guarded;
use crate::{Row, holds, interrupted, often};

#[path = "../../../crates/gpu/src/resident_copy/slots.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

pub const ROWS: &[Row] = &[
    holds("a slot is one submitter's at a time, who sees what the last one wrote", one_at_a_time),
    holds("two submitters that prefer one slot get two", two_slots),
    holds("three submitters share two slots, or find none", three_submitters),
    holds("a dedicated slot is one submitter's until it is given back", dedicated),
    holds("a slot that has commands is in this launch or in the next", active),
];

/// A queue's slots, and the memory of each, which only whoever claimed it uses.
struct Queue {
    slots: CommandSlots,
    memory: Vec<Guarded<u64>>,
}

fn queue(slots: u32) -> Arc<Queue> {
    let memory = (0..slots).map(|_| Guarded::new(0)).collect();
    Arc::new(Queue { slots: CommandSlots::new(slots), memory })
}

/// A command, as `Submitter` makes it: the slot, if there was one.
fn submits(queue: &Queue, preferred: u32) -> Option<u32> {
    let slot = queue.slots.claim(preferred)?;
    let number = queue.slots.submitted(slot) + 1;
    let memory = &queue.memory[slot as usize];
    // SAFETY: whether another thread uses it now is what the model checks.
    assert_eq!(unsafe { *memory.read() } + 1, number, "the last command's number");
    // SAFETY: as above.
    unsafe { *memory.write() = number };
    queue.slots.set_submitted(slot, number);
    queue.slots.release(slot);
    Some(slot)
}

fn one_at_a_time() {
    often(|| {
        let queue = queue(1);
        let theirs = Arc::clone(&queue);
        let twice = |queue: &Queue| [submits(queue, 0), submits(queue, 0)];
        let other = thread::spawn(move || twice(&theirs));
        let mine = twice(&queue);
        let done = mine.into_iter().chain(other.join().unwrap()).flatten().count();
        assert!((2..=4).contains(&done), "whoever comes first has it twice");
        assert_eq!(queue.slots.submitted(0), done as u64);
    });
}

fn two_slots() {
    often(|| {
        let queue = queue(2);
        let theirs = Arc::clone(&queue);
        let other = thread::spawn(move || submits(&theirs, 1));
        assert!(submits(&queue, 1).is_some(), "one of two is free");
        assert!(other.join().unwrap().is_some(), "one of two is free");
        let all: u64 = (0..2).map(|slot| queue.slots.submitted(slot)).sum();
        assert_eq!(all, 2);
    });
}

fn three_submitters() {
    interrupted(2, || {
        let queue = queue(2);
        let others: Vec<_> = [0, 1]
            .map(|preferred| {
                let theirs = Arc::clone(&queue);
                thread::spawn(move || submits(&theirs, preferred))
            })
            .into();
        let mine = submits(&queue, 0);
        let theirs = others.into_iter().map(|other| other.join().unwrap());
        let done = theirs.chain([mine]).flatten().count() as u64;
        let all: u64 = (0..2).map(|slot| queue.slots.submitted(slot)).sum();
        assert_eq!(all, done);
        assert!(done >= 2);
    });
}

fn dedicated() {
    often(|| {
        let queue = queue(1);
        let theirs = Arc::clone(&queue);
        let takes = |queue: &Queue| {
            let Some(slot) = queue.slots.dedicate() else { return false };
            // SAFETY: as above.
            unsafe { *queue.memory[slot as usize].write() += 1 };
            queue.slots.give_back(slot);
            true
        };
        let other = thread::spawn(move || takes(&theirs));
        let mine = takes(&queue);
        assert!(other.join().unwrap() || mine);
        assert_eq!((queue.slots.dedicated(), queue.slots.dedicate()), (0, Some(0)));
        assert_eq!(queue.slots.dedicate(), None);
    });
}

/// As a launch takes the slots that had commands since the one before.
fn active() {
    often(|| {
        let queue = queue(2);
        queue.slots.set_active(1);
        let theirs = Arc::clone(&queue);
        let submitter = thread::spawn(move || theirs.slots.set_active(1));
        let launch = queue.slots.take_active();
        submitter.join().unwrap();
        assert_eq!((launch | queue.slots.active()) & 0b10, 0b10);
        assert_eq!(launch, 0b10);
    });
}
