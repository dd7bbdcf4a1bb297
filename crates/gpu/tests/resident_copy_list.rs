//! Commands that name a list of blocks, on the software GPU, or on a real one with
//! `GPUIO_TEST_GPU=system`.
#![allow(unsafe_code, reason = "commands name addresses")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use gpuio_gpu::resident_copy::{CommandQueue, Outcome, Timing};
use gpuio_gpu::{Context, DevPtr, DeviceBuf, Driver, Locked, MemoryKind, PageSize, Piece};
use gpuio_gpu::{Stream, pattern};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Bytes of either side.
const ROOM: usize = 1 << 20;
/// Most entries of a list.
const MOST: usize = 300;

fn context() -> Context {
    Context::new(&Driver::load(&gpuio_testkit::gpu::which()).unwrap(), 0).unwrap()
}

fn bytes(memory: &Locked) -> &[u8] {
    // SAFETY: live memory that nobody writes while the test looks at it.
    unsafe { std::slice::from_raw_parts(memory.as_ptr().as_ptr(), memory.len()) }
}

/// Has the memory hold what `write` makes of it.
fn written(memory: &Locked, write: impl FnOnce(&mut [u8])) {
    // SAFETY: live memory that nobody else uses meanwhile.
    write(unsafe { std::slice::from_raw_parts_mut(memory.as_ptr().as_ptr(), memory.len()) });
}

#[test]
fn all_pieces_of_a_list_are_moved_and_nothing_beside_them() {
    let context = context();
    let timing = Timing {
        start_timeout: Duration::from_secs(20),
        probe_interval: Duration::ZERO,
        ..Timing::default()
    };
    let queue = CommandQueue::new(&context, timing).unwrap();
    let submitter = RefCell::new(queue.submitter());
    let stream = Stream::new(&context).unwrap();
    let locked = |len| Locked::new(&context, len, PageSize::Plain).unwrap();
    let (near, there, back) = (locked(ROOM), locked(MOST * size_of::<Piece>()), locked(ROOM));
    let device = DeviceBuf::alloc(&context, MemoryKind::Device, ROOM).unwrap();
    // Where a piece begins behind the one before, on either side, and its bytes.
    let piece = (0_usize..40, 0_usize..40, prop_oneof![0_usize..40, 4000_usize..4200, Just(4096)]);
    let strategy = (prop::collection::vec(piece, 0..MOST), any::<u64>(), any::<bool>());
    let mut runner = TestRunner::new(Config { cases: 60, ..Config::default() });
    let check = |(cut, key, write): (Vec<(usize, usize, usize)>, u64, bool)| {
        let (mut from, mut to, mut moves) = (0, 0, Vec::new());
        for (skip, gap, len) in cut {
            (from, to) = (from + skip, to + gap);
            if from.max(to) + len > ROOM {
                break;
            }
            moves.push((from, to, len));
            (from, to) = (from + len, to + len);
        }
        written(&near, |bytes| pattern::fill(bytes, key, 0));
        written(&back, |bytes| bytes.fill(0xa5));
        let mut wanted = vec![0xa5; ROOM];
        for &(from, to, len) in &moves {
            wanted[to..to + len].copy_from_slice(&bytes(&near)[from..from + len]);
        }
        // To the device: from `near`. From it: the same bytes were brought there before.
        let copy = |dst, src| {
            let copied = context.entered(|| {
                // SAFETY: live memory of that length; the wait follows.
                unsafe { stream.copy(dst, src, ROOM) }?;
                stream.sync()
            });
            copied.unwrap().unwrap();
        };
        let (src, dst) =
            if write { (device.ptr(), back.ptr()) } else { (near.ptr(), device.ptr()) };
        copy(device.ptr(), if write { near.ptr() } else { back.ptr() });
        for (number, &(from, to, len)) in moves.iter().enumerate() {
            let (src, dst) = (src.byte_add(from as u64), dst.byte_add(to as u64));
            let entry = Piece::new(src, dst, len as u64);
            let at = there.as_ptr().as_ptr().cast::<Piece>().wrapping_add(number);
            // SAFETY: the list has room for the most entries.
            unsafe { at.write(entry) };
        }
        let count = u32::try_from(moves.len()).unwrap();
        let mut submitter = submitter.borrow_mut();
        // SAFETY: live ranges that nobody else uses until the end is seen, and no two overlap.
        let posted = unsafe { submitter.submit_list(there.ptr(), count) }.unwrap();
        assert_eq!(posted == Outcome::Copied, count == 0);
        assert_eq!(submitter.wait().unwrap(), Outcome::Copied);
        if !write {
            copy(back.ptr(), device.ptr());
        }
        prop_assert!(bytes(&back)[..] == wanted[..], "{} pieces", moves.len());
        Ok(())
    };
    runner.run(&strategy, check).unwrap();
}

#[test]
#[should_panic(expected = "a list at")]
fn a_list_that_is_not_aligned_is_refused() {
    let queue = CommandQueue::new(&context(), Timing::default()).unwrap();
    let mut submitter = queue.submitter();
    // SAFETY: nothing is read of it.
    let _ = unsafe { submitter.submit_list(DevPtr(4104), 1) };
}

#[test]
fn a_list_may_be_overwritten_once_its_end_was_seen() {
    /// Pieces of a list, and bytes of each.
    const PIECES: usize = 24;
    const LEN: usize = 64;
    let context = context();
    // Launches follow each other quickly, and some commands find none in time.
    let timing = Timing {
        idle: Duration::from_micros(50),
        start_timeout: Duration::from_millis(5),
        backoff: Duration::from_micros(500),
        ..Timing::default()
    };
    let queue = CommandQueue::new(&context, timing).unwrap();
    let copied = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let (context, queue, copied) = (&context, &queue, &copied);
            scope.spawn(move || {
                let locked = |len| Locked::new(context, len, PageSize::Plain).unwrap();
                let (from, to, trap) =
                    (locked(PIECES * LEN), locked(PIECES * LEN), locked(PIECES * LEN));
                let list = locked(PIECES * size_of::<Piece>());
                let name = |dst: &Locked| {
                    for number in 0..PIECES {
                        let at = (number * LEN) as u64;
                        let (src, dst) = (from.ptr().byte_add(at), dst.ptr().byte_add(at));
                        let entry = Piece::new(src, dst, LEN as u64);
                        let to = list.as_ptr().as_ptr().cast::<Piece>().wrapping_add(number);
                        // SAFETY: the list has room for so many; the kernel is done with it.
                        unsafe { to.write(entry) };
                    }
                };
                written(&trap, |bytes| bytes.fill(0xa5));
                let mut submitter = queue.submitter();
                let began = Instant::now();
                // On a busy machine the kernel may begin too late for many rounds.
                let enough = |round| {
                    let late = began.elapsed() > Duration::from_secs(60);
                    round >= 400 && (late || copied.load(Ordering::Relaxed) > 0)
                };
                for round in (0_u32..).take_while(|round| !enough(*round)) {
                    let byte = round.to_le_bytes()[0] ^ thread;
                    written(&from, |bytes| bytes.fill(byte));
                    written(&to, |bytes| bytes.fill(!byte));
                    name(&to);
                    let count = u32::try_from(PIECES).unwrap();
                    // SAFETY: this thread's ranges, side by side, until the end is seen.
                    let submitted = unsafe { submitter.submit_list(list.ptr(), count) }.unwrap();
                    let mut outcome = submitted;
                    if submitted == Outcome::Pending {
                        outcome = submitter.wait().unwrap();
                    }
                    // Whoever still read the list would write there.
                    name(&trap);
                    if outcome == Outcome::Copied {
                        copied.fetch_add(1, Ordering::Relaxed);
                        assert!(bytes(&to).iter().all(|found| *found == byte), "round {round}");
                    }
                }
                assert!(bytes(&trap).iter().all(|found| *found == 0xa5), "thread {thread}");
            });
        }
    });
    assert!(copied.into_inner() > 0, "the kernel never ran");
}
