//! Rings of kernels: `crates/gpu/kernels/gpuio_device.cuh` in threads of the device, while a thread
//! does what the operating system's does (`io_sq_thread` in Linux), and
//! `crates/gpu/src/initiated/waking.rs` looks whether that one sleeps.
//!
//! The device's half is a copy and not the source: whoever changes the protocol there changes it
//! here. The functions have the names of the header, with their steps in its order and with its
//! memory orders. PTX's `ld.acquire`, `st.release`, `atom.acquire`, `fence.acq_rel` and their
//! relaxed forms are C11's ("Memory Consistency Model" in the PTX ISA), at the scope of the GPU and
//! of the system alike: each word is accessed at one scope that has all its users. A warp and a
//! block are one thread, which they are between two barriers. Entries, completions and the bytes of
//! buffers are no atomics here: two accesses that are not in order end the test.
//!
//! loom does not end where several threads poll for one that is late. So a thread polls without a
//! limit only where no other does, and yields then; others poll a few times, as a kernel with a
//! limit of its own does, and their results are looked at in the end.

use std::io;
use std::sync::Arc;

use loom::sync::atomic::{AtomicU32 as Word, AtomicU64 as Near};
use loom::thread;

use self::source::{Polled, look};
use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::sync::{Condvar, Guarded, Mutex, yield_now};
use crate::{Row, breaks, holds, interrupted, often};

#[path = "../../../crates/gpu/src/initiated/waking.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

pub const ROWS: &[Row] = &[
    holds("each thread gets its own I/O's result, and sees the bytes", || {
        own_results(FIRST, Fault::None);
    }),
    holds("so it does where the counters wrap", || own_results(WRAPS, Fault::None)).slow(),
    breaks("a result that is stored without the fence shows no bytes", "ausality", || {
        own_results(FIRST, Fault::NoFence);
    }),
    breaks("without the lock a completion is taken twice", "results of", || {
        own_results(FIRST, Fault::NoLock);
    }),
    holds("entries are published whole, in the order of their tickets", || starts(Fault::None)),
    breaks("threads that take no turns publish an entry of another's", "ausality", || {
        starts(Fault::NoTurn);
    }),
    holds("a third start waits for one of the ring's two places", || third_start(Fault::None)),
    breaks("and overwrites an entry if it does not look for room", "ausality", || {
        third_start(Fault::NoRoom);
    }),
    holds("so does one for a place that another thread gives back", other_start),
    holds("a buffer's next I/O has its own result", next_io),
    holds("two threads wait for their results, and each is delivered once", || waiters([0, 1])),
    holds("two threads wait for one result", || waiters([0, 0])),
    holds("looks wake a thread that falls asleep", || asleep(looks)),
    holds("the look that sees an entry is the last one that it needs", || asleep(last_look)),
    breaks("and is not without its fence", "deadlock", || asleep(without_fence)),
    breaks("nor where it looks at the flag first", "deadlock", || asleep(flag_first)),
    breaks("a flag that was looked at once, before the entry, wakes no thread", "deadlock", || {
        asleep(flag_once);
    }),
    holds("a look at two rings of one thread wakes it for either", two_rings),
];

/// Counters of a new ring, and of one after 2^32 - 1 entries.
const FIRST: u32 = 0;
const WRAPS: u32 = u32::MAX;

const ENTRIES: usize = 2;
const COMPLETIONS: usize = 4;
const BUFFERS: usize = 3;

const NEED_WAKEUP: u32 = 1;

const GPUIO_READ: u32 = 4;
const GPUIO_WRITE: u32 = 5;
const GPUIO_DONE: u64 = 1 << 32;
const GPUIO_TAKING: u64 = 1 << 32;
/// More than one, as on the device.
const GPUIO_LOOKS: u32 = 2;

/// A step that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The fence before results.
    NoFence,
    /// The wait for the tickets before.
    NoTurn,
    /// The wait for places.
    NoRoom,
    /// The lock of who takes completions.
    NoLock,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    op: u32,
    offset: u64,
    buffer: u32,
    user: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Completion {
    user: u64,
    result: i32,
}

/// `gpuio_queue`, `gpuio_ring` and their memory.
struct Ring {
    sq_head: AtomicU32,
    sq_tail: AtomicU32,
    sq_flags: AtomicU32,
    cq_head: Word,
    cq_tail: Word,
    entries: [Guarded<Entry>; ENTRIES],
    completions: [Guarded<Completion>; COMPLETIONS],
    buffers: [Guarded<u64>; BUFFERS],
    next: Word,
    published: Near,
    taken: Near,
    /// Changed with each access of `taken`: see [`note`].
    noted: Word,
    results: [Near; BUFFERS],
    /// The last tail that was stored: only whoever has its turn writes it.
    tail: Guarded<u32>,
    /// How many results each buffer got: only whoever takes completions writes it.
    delivered: [Guarded<u32>; BUFFERS],
    thread: Arc<Asleep>,
    fault: Fault,
}

/// Whether the operating system's thread is in its queue of sleepers.
#[derive(Debug, Default)]
struct Asleep {
    sleeps: Mutex<bool>,
    changed: Condvar,
}

impl Ring {
    fn new(first: u32, fault: Fault, thread: &Arc<Asleep>) -> Self {
        Self {
            sq_head: AtomicU32::new(first),
            sq_tail: AtomicU32::new(first),
            sq_flags: AtomicU32::new(0),
            cq_head: Word::new(first),
            cq_tail: Word::new(first),
            entries: std::array::from_fn(|_| Guarded::new(Entry::default())),
            completions: std::array::from_fn(|_| Guarded::new(Completion::default())),
            buffers: std::array::from_fn(|_| Guarded::new(0)),
            next: Word::new(first),
            published: Near::new(first.into()),
            taken: Near::new(first.into()),
            noted: Word::new(0),
            results: std::array::from_fn(|_| Near::new(0)),
            tail: Guarded::new(first),
            delivered: std::array::from_fn(|_| Guarded::new(0)),
            thread: Arc::clone(thread),
            fault,
        }
    }
}

/// The bytes at an offset of the file, and the result of I/O there.
fn bytes_at(offset: u64) -> u64 {
    offset + 1000
}

fn result_at(offset: u64) -> i32 {
    offset as i32 + 100
}

// The device's half.

fn gpuio_near_swap(at: &Near, from: u64, to: u64) -> bool {
    at.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

fn gpuio_near_fence() {
    fence(Ordering::AcqRel);
}

fn gpuio_pause() {
    yield_now();
}

fn gpuio_prepare(ring: &Ring, number: u32, op: u32, offset: u64, buffer: u32, user: u64) {
    let place = &ring.entries[number as usize % ENTRIES];
    // SAFETY: whether another thread uses it now is what the model checks.
    unsafe { *place.write() = Entry { op, offset, buffer, user } };
}

fn gpuio_publish(ring: &Ring, number: u32) {
    // SAFETY: as above.
    let before = std::mem::replace(unsafe { &mut *ring.tail.write() }, number);
    assert_eq!(number.wrapping_sub(before), 1, "the tail goes from {before} to {number}");
    ring.sq_tail.set(number, Ordering::Release);
}

fn gpuio_completions(ring: &Ring) -> u32 {
    ring.cq_tail.load(Ordering::Acquire)
}

fn gpuio_completed(ring: &Ring, number: u32) -> Completion {
    let place = &ring.completions[number as usize % COMPLETIONS];
    // SAFETY: as above.
    unsafe { *place.read() }
}

fn gpuio_look(ring: &Ring, taken: u32) -> u32 {
    let mut there = gpuio_completions(ring);
    let mut look = 1;
    while look < GPUIO_LOOKS && there == taken {
        there = gpuio_completions(ring);
        look += 1;
    }
    there
}

fn gpuio_give_back(ring: &Ring, taken: u32) {
    ring.cq_head.store(taken, Ordering::Relaxed);
}

/// loom tries the other order of an access and the last one of the same word. Where a thread loads
/// the word and then changes it, that is its own load, and loads of others stay unnoticed. A change
/// of another word, in no order with anything, stands for each.
fn note(ring: &Ring) {
    ring.noted.fetch_add(1, Ordering::Relaxed);
}

fn gpuio_progress(ring: &Ring) {
    note(ring);
    let before = ring.taken.load(Ordering::Acquire);
    let locks = ring.fault != Fault::NoLock;
    if (before & GPUIO_TAKING != 0 || !gpuio_near_swap(&ring.taken, before, before | GPUIO_TAKING))
        && locks
    {
        return;
    }
    let there = gpuio_look(ring, before as u32);
    if ring.fault != Fault::NoFence {
        gpuio_near_fence();
    }
    let mut number = before as u32;
    while number != there {
        let one = gpuio_completed(ring, number);
        // SAFETY: as above.
        unsafe { *ring.delivered[one.user as usize].write() += 1 };
        let result = GPUIO_DONE | u64::from(one.result.cast_unsigned());
        ring.results[one.user as usize].store(result, Ordering::Relaxed);
        number = number.wrapping_add(1);
    }
    if there != before as u32 {
        gpuio_give_back(ring, there);
    }
    ring.taken.store(there.into(), Ordering::Release);
}

fn gpuio_has_room(ring: &Ring, number: u32) -> bool {
    note(ring);
    let taken = ring.taken.load(Ordering::Acquire) as u32;
    number.wrapping_sub(taken) <= ENTRIES as u32
}

fn gpuio_publish_in_turn(ring: &Ring, first: u32, next: u32) {
    while ring.published.load(Ordering::Acquire) as u32 != first && ring.fault != Fault::NoTurn {
        gpuio_pause();
    }
    gpuio_publish(ring, next);
    ring.published.store(next.into(), Ordering::Release);
}

fn gpuio_start(ring: &Ring, op: u32, offset: u64, buffer: u32) {
    ring.results[buffer as usize].store(0, Ordering::Relaxed);
    let ticket = ring.next.fetch_add(1, Ordering::Relaxed);
    while !gpuio_has_room(ring, ticket.wrapping_add(1)) && ring.fault != Fault::NoRoom {
        gpuio_progress(ring);
        yield_now();
    }
    gpuio_prepare(ring, ticket, op, offset, buffer, buffer.into());
    gpuio_publish_in_turn(ring, ticket, ticket.wrapping_add(1));
}

fn gpuio_test(ring: &Ring, buffer: u32) -> Option<i32> {
    let word = ring.results[buffer as usize].load(Ordering::Acquire);
    (word & GPUIO_DONE != 0).then_some((word as u32).cast_signed())
}

fn gpuio_wait(ring: &Ring, buffer: u32) -> i32 {
    loop {
        if let Some(result) = gpuio_test(ring, buffer) {
            return result;
        }
        gpuio_progress(ring);
        yield_now();
    }
}

// The operating system's half.

/// `io_sq_thread`, until it has taken so many entries of the rings. It falls asleep whenever it
/// finds none: how long it polled before makes no difference, since it may come late to that.
fn io_sq_thread(rings: &[Arc<Ring>], mut left: u32) {
    let mut taken: Vec<u32> =
        rings.iter().map(|ring| ring.sq_head.load(Ordering::Relaxed)).collect();
    loop {
        for (ring, taken) in rings.iter().zip(&mut taken) {
            left -= submit(ring, taken);
        }
        if left == 0 {
            return;
        }
        // prepare_to_wait
        *rings[0].thread.sleeps.lock().unwrap() = true;
        let has_none = rings.iter().zip(&taken).all(|(ring, taken)| {
            ring.sq_flags.fetch_or(NEED_WAKEUP, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            ring.sq_tail.load(Ordering::Acquire) == *taken
        });
        if has_none {
            let guard = rings[0].thread.sleeps.lock().unwrap();
            drop(rings[0].thread.changed.wait_while(guard, |sleeps| *sleeps));
        }
        for ring in rings {
            ring.sq_flags.fetch_and(!NEED_WAKEUP, Ordering::Relaxed);
        }
    }
}

/// Takes the entries that there are, in their order, and then does their I/O, the last one first.
/// How many there were. The device counts completions before it overwrites an entry, whichever they
/// are: it relies on entries being taken in their order.
fn submit(ring: &Ring, taken: &mut u32) -> u32 {
    let tail = ring.sq_tail.load(Ordering::Acquire);
    let count = tail.wrapping_sub(*taken);
    assert!(count <= ENTRIES as u32, "the tail was {taken} and is {tail}");
    let take = |nth: u32| {
        let place = &ring.entries[taken.wrapping_add(nth) as usize % ENTRIES];
        // SAFETY: as above.
        unsafe { *place.read() }
    };
    let entries: Vec<Entry> = (0..count).map(take).collect();
    // Each entry has one completion, so both are counted alike.
    for (nth, entry) in (0..).zip(entries.into_iter().rev()) {
        serve(ring, entry, taken.wrapping_add(nth));
    }
    *taken = tail;
    // As Linux, behind the completions.
    ring.sq_head.store(tail, Ordering::Release);
    count
}

/// Does an entry's I/O, as completion `number`.
fn serve(ring: &Ring, entry: Entry, number: u32) {
    let buffer = &ring.buffers[entry.buffer as usize];
    match entry.op {
        // SAFETY: as above.
        GPUIO_READ => unsafe { *buffer.write() = bytes_at(entry.offset) },
        // SAFETY: as above.
        GPUIO_WRITE => assert_eq!(unsafe { *buffer.read() }, bytes_at(entry.offset)),
        op => panic!("an entry that was not written: {op}"),
    }
    let used = number.wrapping_sub(ring.cq_head.load(Ordering::Acquire));
    assert!(used < COMPLETIONS as u32, "no place for a completion");
    let completion = Completion { user: entry.user, result: result_at(entry.offset) };
    // SAFETY: as above.
    unsafe { *ring.completions[number as usize % COMPLETIONS].write() = completion };
    ring.cq_tail.store(number.wrapping_add(1), Ordering::Release);
}

impl Polled for Arc<Ring> {
    fn flags(&self) -> &AtomicU32 {
        &self.sq_flags
    }

    fn head(&self) -> &AtomicU32 {
        &self.sq_head
    }

    fn tail(&self) -> &AtomicU32 {
        &self.sq_tail
    }

    fn enter(&self) -> io::Result<()> {
        *self.thread.sleeps.lock().unwrap() = false;
        self.thread.changed.notify_all();
        Ok(())
    }
}

// The program.

fn ring(first: u32, fault: Fault) -> Arc<Ring> {
    Arc::new(Ring::new(first, fault, &Arc::default()))
}

/// A thread of the operating system that does not sleep, and serves so many entries.
fn serves(ring: &Arc<Ring>, entries: u32) -> thread::JoinHandle<()> {
    let ring = Arc::clone(ring);
    thread::spawn(move || {
        let (mut taken, mut left) = (ring.sq_head.load(Ordering::Relaxed), entries);
        loop {
            left -= submit(&ring, &mut taken);
            if left == 0 {
                return;
            }
            yield_now();
        }
    })
}

/// One that looks for entries so many times.
fn passes_by(ring: &Arc<Ring>, times: u32) -> thread::JoinHandle<()> {
    let ring = Arc::clone(ring);
    thread::spawn(move || {
        let mut taken = ring.sq_head.load(Ordering::Relaxed);
        for _ in 0..times {
            submit(&ring, &mut taken);
        }
    })
}

fn start(ring: &Ring, op: u32, offset: u64, buffer: u32) {
    if op == GPUIO_WRITE {
        // SAFETY: as above.
        unsafe { *ring.buffers[buffer as usize].write() = bytes_at(offset) };
    }
    gpuio_start(ring, op, offset, buffer);
}

/// The result is the I/O's own, and so are the bytes.
fn check(ring: &Ring, offset: u64, buffer: u32, result: i32) {
    assert_eq!(result, result_at(offset));
    // SAFETY: as above.
    assert_eq!(unsafe { *ring.buffers[buffer as usize].read() }, bytes_at(offset));
}

/// A wait with a limit, for the I/O at the offset of the buffer's number.
fn poll(ring: &Ring, buffer: u32, times: u32) {
    for _ in 0..times {
        gpuio_progress(ring);
        if let Some(result) = gpuio_test(ring, buffer) {
            return check(ring, buffer.into(), buffer, result);
        }
    }
}

/// The other threads have ended. Entries that the operating system has not taken are taken now; one
/// look takes the completions that are left. Each of the buffers, with I/O at the offset of its
/// number, has had one result.
fn ends(ring: &Ring, buffers: u32) {
    submit(ring, &mut ring.sq_head.load(Ordering::Relaxed));
    gpuio_progress(ring);
    for buffer in 0..buffers {
        let result = gpuio_test(ring, buffer).expect("the result was lost");
        check(ring, buffer.into(), buffer, result);
        assert_eq!(delivered(ring, buffer), 1, "results of {buffer}");
    }
}

fn delivered(ring: &Ring, buffer: u32) -> u32 {
    // SAFETY: as above.
    unsafe { *ring.delivered[buffer as usize].read() }
}

/// Two threads, each with an I/O of its own: a read and a write.
fn own_results(first: u32, fault: Fault) {
    interrupted(2, move || {
        let ring = ring(first, fault);
        let system = passes_by(&ring, 2);
        let theirs = Arc::clone(&ring);
        let other = thread::spawn(move || {
            start(&theirs, GPUIO_WRITE, 1, 1);
            poll(&theirs, 1, 1);
        });
        start(&ring, GPUIO_READ, 0, 0);
        poll(&ring, 0, 1);
        other.join().unwrap();
        system.join().unwrap();
        ends(&ring, 2);
    });
}

fn starts(fault: Fault) {
    often(move || {
        let ring = ring(WRAPS, fault);
        let system = passes_by(&ring, 2);
        let theirs = Arc::clone(&ring);
        let other = thread::spawn(move || start(&theirs, GPUIO_READ, 1, 1));
        start(&ring, GPUIO_READ, 0, 0);
        other.join().unwrap();
        system.join().unwrap();
        ends(&ring, 2);
    });
}

fn third_start(fault: Fault) {
    often(move || {
        let ring = ring(FIRST, fault);
        let system = serves(&ring, 3);
        (0..3).for_each(|buffer| start(&ring, GPUIO_READ, buffer.into(), buffer));
        (0..3).for_each(|buffer| check(&ring, buffer.into(), buffer, gpuio_wait(&ring, buffer)));
        system.join().unwrap();
        ends(&ring, 3);
    });
}

/// A thread waits for a place, and another may take the completion that gives it back.
fn other_start() {
    interrupted(2, || {
        let ring = ring(WRAPS, Fault::None);
        (0..2).for_each(|buffer| start(&ring, GPUIO_READ, buffer.into(), buffer));
        let system = serves(&ring, 2);
        let theirs = Arc::clone(&ring);
        let other = thread::spawn(move || start(&theirs, GPUIO_WRITE, 2, 2));
        poll(&ring, 0, 1);
        other.join().unwrap();
        system.join().unwrap();
        ends(&ring, 3);
    });
}

/// While another thread takes completions too.
fn next_io() {
    interrupted(2, || {
        let ring = ring(FIRST, Fault::None);
        start(&ring, GPUIO_READ, 5, 0);
        let system = serves(&ring, 1);
        let theirs = Arc::clone(&ring);
        let other = thread::spawn(move || gpuio_progress(&theirs));
        check(&ring, 5, 0, gpuio_wait(&ring, 0));
        start(&ring, GPUIO_READ, 0, 0);
        system.join().unwrap();
        submit(&ring, &mut 1);
        check(&ring, 0, 0, gpuio_wait(&ring, 0));
        other.join().unwrap();
        assert_eq!(delivered(&ring, 0), 2);
    });
}

fn waiters(waits_for: [u32; 2]) {
    interrupted(2, move || {
        let ring = ring(FIRST, Fault::None);
        (0..2).for_each(|buffer| start(&ring, GPUIO_READ, buffer.into(), buffer));
        let system = passes_by(&ring, 2);
        let [mine, others] = waits_for;
        let theirs = Arc::clone(&ring);
        let other = thread::spawn(move || poll(&theirs, others, 1));
        poll(&ring, mine, 2);
        other.join().unwrap();
        system.join().unwrap();
        ends(&ring, 2);
    });
}

/// An entry is published while the thread falls asleep; `wakes` is what wakes it. A thread that is
/// not woken is a deadlock.
fn asleep(wakes: fn(&[Arc<Ring>])) {
    often(move || {
        let ring = Arc::new(Ring::new(FIRST, Fault::None, &Arc::default()));
        let rings = [Arc::clone(&ring)];
        let theirs = Arc::clone(&ring);
        let system = thread::spawn(move || io_sq_thread(&[theirs], 1));
        let theirs = Arc::clone(&ring);
        let device = thread::spawn(move || start(&theirs, GPUIO_READ, 0, 0));
        wakes(&rings);
        system.join().unwrap();
        device.join().unwrap();
        ends(&ring, 1);
    });
}

/// As the thread of ours: until the entry is completed.
fn looks(rings: &[Arc<Ring>]) {
    let mut seen = vec![FIRST; rings.len()];
    while rings[0].cq_tail.load(Ordering::Relaxed) == FIRST {
        look(rings, &mut seen, |_| {});
        yield_now();
    }
}

/// As the thread of ours, which then looks again much later: until the entry was seen.
fn last_look(rings: &[Arc<Ring>]) {
    let (mut seen, mut is_busy) = (vec![FIRST; rings.len()], false);
    while !is_busy {
        look(rings, &mut seen, |_| is_busy = true);
        yield_now();
    }
}

fn without_fence(rings: &[Arc<Ring>]) {
    let mut published = FIRST;
    while published == FIRST {
        published = rings[0].published();
        if rings[0].published() != rings[0].sq_head.load(Ordering::Acquire) {
            rings[0].wake().unwrap();
        }
        yield_now();
    }
}

fn flag_first(rings: &[Arc<Ring>]) {
    let mut published = FIRST;
    while published == FIRST {
        let sleeps = rings[0].sq_flags.load(Ordering::Acquire) & NEED_WAKEUP != 0;
        fence(Ordering::SeqCst);
        published = rings[0].published();
        if sleeps && published != rings[0].sq_head.load(Ordering::Acquire) {
            rings[0].enter().unwrap();
        }
        yield_now();
    }
}

fn flag_once(rings: &[Arc<Ring>]) {
    let sleeps = rings[0].sq_flags.load(Ordering::Acquire) & NEED_WAKEUP != 0;
    while rings[0].published() == FIRST {
        yield_now();
    }
    if sleeps {
        rings[0].enter().unwrap();
    }
}

/// Two rings of one thread, with an entry in one of them.
fn two_rings() {
    for busy in 0..2 {
        interrupted(2, move || {
            let thread = Arc::default();
            let ring = |_| Arc::new(Ring::new(FIRST, Fault::None, &thread));
            let rings: [_; 2] = std::array::from_fn(ring);
            let theirs = rings.clone();
            let system = thread::spawn(move || io_sq_thread(&theirs, 1));
            let theirs = Arc::clone(&rings[busy]);
            let device = thread::spawn(move || start(&theirs, GPUIO_READ, 0, 0));
            last_look(&rings);
            system.join().unwrap();
            device.join().unwrap();
            ends(&rings[busy], 1);
        });
    }
}
