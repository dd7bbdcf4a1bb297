//! The continuation of short transfers, over an engine that answers by a script.
#![allow(unsafe_code)]

use crate::engine_support::{PAGE, Slots, drain, one, push};
use gpuio_io::engine::whole::Whole;
use gpuio_io::engine::{Done, Engine, EngineError, Io, IoFault, LegCounters, Op, Push};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Answers I/Os in the order of the script, the last first when it is asked to turn them.
struct Scripted {
    answers: VecDeque<Result<u32, IoFault>>,
    out: Vec<Io>,
    depth: usize,
    synchronous: bool,
}

impl Scripted {
    fn answer(&mut self, io: Io) -> Done {
        let result = self.answers.pop_front().unwrap_or(Ok(io.span.len()));
        Done { io, result }
    }
}

impl Engine for Scripted {
    fn push(&mut self, io: Io) -> Push {
        if self.synchronous {
            return Push::Done(self.answer(io));
        }
        if self.out.len() == self.depth {
            return Push::Full(io);
        }
        self.out.push(io);
        Push::Taken
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn reap(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError> {
        for _ in 0..at_least.min(self.out.len()) {
            let io = self.out.pop().unwrap();
            let back = self.answer(io);
            done.push(back);
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.out.len()
    }

    fn synchronous(&self) -> bool {
        self.synchronous
    }
}

fn whole(
    answers: &[Result<u32, IoFault>],
    synchronous: bool,
    alignment: Option<u32>,
) -> (Whole, Arc<LegCounters>) {
    let counters = Arc::new(LegCounters::default());
    let answers = answers.iter().copied().collect();
    let inner = Box::new(Scripted { answers, out: Vec::new(), depth: 4, synchronous });
    (Whole::new(inner, alignment, Arc::clone(&counters)), counters)
}

fn result(
    op: Op,
    answers: &[Result<u32, IoFault>],
    alignment: Option<u32>,
) -> Result<u32, IoFault> {
    let slots = Slots::new(1, 2 * PAGE);
    let io = slots.io(op, 0, 0, 8192);
    let [here, later] = [true, false].map(|synchronous| {
        let (mut engine, _) = whole(answers, synchronous, alignment);
        one(&mut engine, io).result
    });
    assert_eq!(here, later);
    here
}

#[test]
fn pieces_add_up() {
    assert_eq!(result(Op::Read, &[Ok(8192)], None), Ok(8192));
    assert_eq!(result(Op::Read, &[Ok(1), Ok(8191)], None), Ok(8192));
    assert_eq!(result(Op::Write, &[Ok(100), Ok(7000), Ok(1092)], None), Ok(8192));
}

#[test]
fn an_end_counts_all_pieces() {
    let end = |bytes| Err(IoFault::EndOfFile(bytes));
    assert_eq!(result(Op::Read, &[Ok(0)], None), end(0));
    assert_eq!(result(Op::Read, &[Ok(100), Ok(50), Ok(0)], None), end(150));
    assert_eq!(result(Op::Read, &[Ok(100), Err(IoFault::EndOfFile(7))], None), end(107));
}

#[test]
fn a_write_that_goes_nowhere_is_an_error() {
    let broken = Err(IoFault::Errno(libc::EIO));
    assert_eq!(result(Op::Write, &[Ok(0)], None), broken);
    assert_eq!(result(Op::Write, &[Ok(100), Ok(0)], None), broken);
}

#[test]
fn a_fault_in_the_rest_is_the_fault_of_the_io() {
    let space = Err(IoFault::Errno(libc::ENOSPC));
    assert_eq!(result(Op::Write, &[Ok(4096), space], None), space);
}

const SECTORS: Option<u32> = Some(512);

#[test]
fn a_rest_is_requested_at_a_multiple_of_the_drives_own_blocks_only() {
    // The 4 KiB drive ended after 512 bytes: at its end, since it would answer EINVAL to the rest.
    let blocks = Some(4096);
    let cut = [Ok(512), Err(IoFault::Errno(libc::EINVAL))];
    assert_eq!(result(Op::Read, &cut, blocks), Err(IoFault::EndOfFile(512)));
    assert_eq!(result(Op::Read, &[Ok(4096), Ok(512)], blocks), Err(IoFault::EndOfFile(4608)));
    assert_eq!(result(Op::Write, &[Ok(512)], blocks), Err(IoFault::Errno(libc::EIO)));
    assert_eq!(result(Op::Read, &[Ok(4096), Ok(4096)], blocks), Ok(8192));
}

#[test]
fn direct_rests_stay_aligned() {
    assert_eq!(result(Op::Read, &[Ok(512), Ok(7680)], SECTORS), Ok(8192));
    assert_eq!(result(Op::Read, &[Ok(700)], SECTORS), Err(IoFault::EndOfFile(700)));
    let rest_cut = [Ok(512), Ok(100)];
    assert_eq!(result(Op::Read, &rest_cut, SECTORS), Err(IoFault::EndOfFile(612)));
    assert_eq!(result(Op::Write, &[Ok(700)], SECTORS), Err(IoFault::Errno(libc::EIO)));
}

#[test]
fn short_ios_are_counted_once_each() {
    let slots = Slots::new(1, 2 * PAGE);
    let answers = [Ok(1), Ok(1), Ok(8190), Ok(8192), Ok(5), Ok(8187)];
    let (mut engine, counters) = whole(&answers, true, None);
    for _ in 0..3 {
        assert_eq!(one(&mut engine, slots.io(Op::Read, 0, 0, 8192)).result, Ok(8192));
    }
    assert_eq!(counters.short_ios.load(Ordering::Relaxed), 2);
}

#[test]
fn rests_of_many_do_not_mix_and_wait_for_room() {
    let slots = Slots::new(4, 2 * PAGE);
    // Four out, all cut once or twice, answered newest first.
    let answers = [Ok(10), Ok(20), Ok(30), Ok(40), Ok(50), Ok(60)];
    let (mut engine, counters) = whole(&answers, false, None);
    let mut done = Vec::new();
    for slot in 0..4 {
        push(&mut engine, slots.io(Op::Read, slot, u64::from(slot) * 8192, 8192), &mut done);
    }
    engine.reap(&mut done, 1).unwrap();
    assert!(!done.is_empty());
    assert_eq!(engine.in_flight() + done.len(), 4);
    drain(&mut engine, &mut done);
    let mut seen: Vec<_> = done.iter().map(|done| (done.io.token, done.io.offset)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(0, 0), (1, 8192), (2, 16384), (3, 24576)]);
    assert!(done.iter().all(|done| done.result == Ok(8192) && done.io.span.len() == 8192));
    assert!(counters.short_ios.load(Ordering::Relaxed) > 0);
}

#[test]
fn nothing_out_does_not_wait() {
    let (mut engine, _) = whole(&[], false, None);
    let mut done = Vec::new();
    engine.reap(&mut done, 3).unwrap();
    assert!(done.is_empty());
    assert_eq!(engine.in_flight(), 0);
}
