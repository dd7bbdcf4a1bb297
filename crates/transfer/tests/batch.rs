//! Batches: every entry moves the same bytes as a call of its own, and each completion comes once.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]

mod support;

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_gpu::MemoryKind;
use gpuio_transfer::{Batch, Entry, Event, Fault, File, Op, Transfer};
use support::{Memory, Mode, chill, dir, file, open, random_bytes, settings, transfer, written};

const FILE: usize = 4 << 20;

/// The range of entry `number` in file and memory.
fn range_of(number: usize, sizes: &[usize]) -> (usize, usize, usize) {
    let len = sizes[number % sizes.len()];
    ((number * 10_007) % (FILE - len), number * (80 << 10) + number % 17, len)
}

fn entry(
    transfer: &Transfer,
    file: &File,
    memory: &Memory,
    op: Op,
    number: usize,
    sizes: &[usize],
) -> Entry {
    let (offset, at, len) = range_of(number, sizes);
    let address = memory.address() + at as u64;
    let location = transfer.locate(address).unwrap();
    let (file, offset, cookie) = (file.clone(), offset as u64, number as u64);
    Entry { op, file, location, address, len, offset, cookie }
}

fn all(batch: &Batch) -> BTreeMap<u64, Event> {
    let mut ends = BTreeMap::new();
    while batch.outstanding() > 0 {
        for event in batch.events(1, 7, None) {
            assert!(ends.insert(event.cookie, event).is_none(), "an end came twice");
        }
    }
    ends
}

const SIZES: &[usize] = &[4096, 1, 4096, 40_000, 65_536, 4097, 512, 70_000, 4096, 4096];

fn read_many(transfer: &Transfer, mode: Mode, kind: MemoryKind, count: usize) {
    let dir = dir();
    let content = random_bytes(1, FILE);
    let file = file(transfer, &written(&dir, "file", &content), mode);
    let memory = Memory::new(kind, count * (80 << 10) + 100);
    let batch = transfer.batch(u32::try_from(count).unwrap());
    for round in 0..2 {
        let numbers =
            (0..count).map(|number| entry(transfer, &file, &memory, Op::Read, number, SIZES));
        // SAFETY: the memory outlives the batch's ends, which are all fetched below.
        unsafe { batch.submit(numbers.collect()) }.unwrap();
        let ends = all(&batch);
        assert_eq!(ends.len(), count, "round {round}");
        for (cookie, event) in ends {
            let (from, at, len) = range_of(usize::try_from(cookie).unwrap(), SIZES);
            assert_eq!(event.outcome.unwrap().bytes, len);
            assert!(memory.take(at, len) == content[from..from + len], "entry {cookie}");
        }
    }
}

#[test]
fn more_reads_than_memory_to_device() {
    read_many(&transfer(), Mode::Plain, MemoryKind::Device, 300);
}

#[test]
fn reads_that_no_cache_holds() {
    let transfer = transfer();
    let dir = dir();
    let content = random_bytes(1, FILE);
    let path = written(&dir, "file", &content);
    let memory = Memory::new(MemoryKind::Device, 8 << 20);
    for (mode, sizes) in [(Mode::Direct, &[4096][..]), (Mode::Direct, SIZES), (Mode::Plain, SIZES)]
    {
        let file = file(&transfer, &path, mode);
        let batch = transfer.batch(100);
        chill(&path);
        let entries = (0..100).map(|n| entry(&transfer, &file, &memory, Op::Read, n, sizes));
        // SAFETY: the memory outlives the batch.
        unsafe { batch.submit(entries.collect()) }.unwrap();
        let mut direct = 0;
        for (cookie, event) in all(&batch) {
            let (from, at, len) = range_of(usize::try_from(cookie).unwrap(), sizes);
            let moved = event.outcome.unwrap();
            assert_eq!(moved.bytes, len);
            assert_eq!(moved.route.cached + moved.route.direct, len as u64);
            direct += moved.route.direct;
            assert!(memory.take(at, len) == content[from..from + len], "entry {cookie}");
        }
        assert_eq!(direct > 0, mode == Mode::Direct, "{direct} bytes past the cache");
    }
}

/// Bytes of a file in the page cache, where the kernel tells without touching it (Linux 6.5).
fn cached(path: &std::path::Path) -> Option<u64> {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let found = gpuio_host::residency::residency(&file, 0, u64::MAX >> 1);
    // Only that call tells what is dirty.
    found.dirty_bytes.and(found.cached_bytes)
}

/// Reads every second block of 4 KiB of a file with `O_DIRECT`, in batches and in calls.
fn read_blocks(transfer: &Transfer, path: &std::path::Path, memory: &Memory) {
    let batch = transfer.batch(128);
    for first in (0..FILE / 4096).step_by(256) {
        let file = file(transfer, path, Mode::Direct);
        let entries = (0..128).map(|n| {
            let (offset, address) = ((first + 2 * n) * 4096, memory.address() + n as u64 * 4096);
            let location = transfer.locate(address).unwrap();
            let (op, offset, cookie) = (Op::Read, offset as u64, n as u64);
            Entry { op, file: file.clone(), location, address, len: 4096, offset, cookie }
        });
        // SAFETY: the memory outlives the batch.
        unsafe { batch.submit(entries.collect()) }.unwrap();
        assert!(all(&batch).into_values().all(|event| event.outcome.unwrap().bytes == 4096));
    }
}

/// Pages that the lookups in the page cache bring there stay out of it: no block of a cold file,
/// and none beside the few that are there.
#[test]
fn reads_with_o_direct_bring_nothing_into_the_cache() {
    use std::os::unix::fs::FileExt;
    let (transfer, dir) = (transfer(), dir());
    let path = written(&dir, "file", &random_bytes(3, FILE));
    let memory = Memory::new(MemoryKind::Device, 128 * 4096);
    chill(&path);
    if cached(&path) != Some(0) {
        println!("SKIPPED: the kernel does not tell what is cached, or keeps the file");
        return;
    }
    read_blocks(&transfer, &path, &memory);
    assert_eq!(cached(&path), Some(0), "of a cold file");
    // A block in sixteen, without read-ahead.
    let plain = open(&path, Mode::Plain);
    // SAFETY: the call takes numbers only.
    unsafe { libc::posix_fadvise(plain.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    for offset in (64 << 10..FILE as u64).step_by(64 << 10) {
        plain.read_exact_at(&mut [0; 4096], offset).unwrap();
    }
    let before = cached(&path).unwrap();
    assert!(before > 0);
    for _ in 0..4 {
        read_blocks(&transfer, &path, &memory);
    }
    // The kernel may drop pages at any time.
    let after = cached(&path).unwrap();
    assert!(after <= before, "{after} of {before} bytes of a file that is cached in part");
}

gpuio_testkit::tests! {
    direct_reads_to_device: read_many(&transfer(), Mode::Direct, MemoryKind::Device, 60);
    reads_to_host: read_many(&transfer(), Mode::Direct, MemoryKind::Malloc, 60);
}

#[test]
fn without_workers_the_waiting_thread_works() {
    let mut settings = settings();
    settings.max_workers = 0;
    settings.resident = false;
    let transfer = Transfer::new(settings);
    read_many(&transfer, Mode::Plain, MemoryKind::Device, 40);
}

#[test]
fn a_caller_that_only_polls_gets_all_events() {
    for workers in [0, 2] {
        let mut settings = settings();
        settings.max_workers = workers;
        let transfer = Transfer::new(settings);
        let dir = dir();
        let file = file(&transfer, &written(&dir, "file", &random_bytes(1, FILE)), Mode::Plain);
        let memory = Memory::new(MemoryKind::Device, 8 << 20);
        let batch = transfer.batch(100);
        let entries = (0..100).map(|n| entry(&transfer, &file, &memory, Op::Read, n, SIZES));
        // SAFETY: the memory outlives the batch.
        unsafe { batch.submit(entries.collect()) }.unwrap();
        let (mut count, began) = (0, Instant::now());
        while count < 100 {
            count += batch.events(0, 100, Some(Duration::ZERO)).len();
            assert!(began.elapsed() < Duration::from_secs(60), "{count} of 100 ends");
        }
        assert_eq!(batch.outstanding(), 0);
    }
}

#[test]
fn writes_from_device() {
    let transfer = transfer();
    let dir = dir();
    for mode in [Mode::Plain, Mode::Direct] {
        let path = written(&dir, "file", &[]);
        let file = file(&transfer, &path, mode);
        let count = 50;
        let memory = Memory::new(MemoryKind::Device, count * (80 << 10));
        let held = random_bytes(3, count * (80 << 10));
        memory.put(0, &held);
        let batch = transfer.batch(64);
        let len = 9000;
        let entries = (0..count).map(|number| {
            let address = memory.address() + (number * (80 << 10) + number) as u64;
            Entry {
                op: Op::Write,
                file: file.clone(),
                location: transfer.locate(address).unwrap(),
                address,
                len,
                offset: (number * len) as u64,
                cookie: number as u64,
            }
        });
        // SAFETY: the memory outlives the ends, which are fetched below.
        unsafe { batch.submit(entries.collect()) }.unwrap();
        assert!(all(&batch).values().all(|event| event.outcome.is_ok()));
        let now = std::fs::read(&path).unwrap();
        for number in 0..count {
            let at = number * (80 << 10) + number;
            assert!(now[number * len..][..len] == held[at..at + len], "entry {number}, {mode:?}");
        }
    }
}

#[test]
fn a_full_batch_reports_its_free_space() {
    let transfer = transfer();
    let dir = dir();
    let file = file(&transfer, &written(&dir, "file", &random_bytes(1, FILE)), Mode::Plain);
    let memory = Memory::new(MemoryKind::Malloc, 4 << 20);
    let batch = transfer.batch(10);
    let some = |from: usize, to: usize| -> Vec<Entry> {
        (from..to).map(|n| entry(&transfer, &file, &memory, Op::Read, n, SIZES)).collect()
    };
    // SAFETY: the memory outlives the batch.
    unsafe { batch.submit(some(0, 7)) }.unwrap();
    // SAFETY: as above.
    let full = unsafe { batch.submit(some(7, 11)) }.unwrap_err();
    assert_eq!((full.requested, full.capacity_left), (4, 3));
    // SAFETY: as above.
    unsafe { batch.submit(some(7, 10)) }.unwrap();
    assert_eq!(batch.outstanding(), 10);
    let ends = batch.events(100, 100, None);
    assert_eq!(ends.len(), 10, "no more are waited for than there are");
    assert!(batch.events(5, 10, None).is_empty());
    // SAFETY: as above.
    unsafe { batch.submit(some(0, 10)) }.unwrap();
    assert_eq!(batch.events(10, 3, None).len(), 3, "no more come than there is room for");
}

#[test]
fn cancelled_and_begun_entries_each_end_once() {
    let transfer = transfer();
    let dir = dir();
    let file = file(&transfer, &written(&dir, "file", &random_bytes(1, FILE)), Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, 20 << 20);
    let batch = transfer.batch(200);
    let entries = (0..200).map(|n| entry(&transfer, &file, &memory, Op::Read, n, SIZES));
    // SAFETY: the memory outlives the batch.
    unsafe { batch.submit(entries.collect()) }.unwrap();
    batch.cancel();
    let ends = all(&batch);
    assert_eq!(ends.len(), 200);
    for event in ends.values() {
        let (_, _, len) = range_of(usize::try_from(event.cookie).unwrap(), SIZES);
        match &event.outcome {
            Ok(moved) => assert_eq!(moved.bytes, len),
            Err(fault) => assert_eq!(*fault, Fault::Cancelled),
        }
    }
    // After dropping one with all entries in flight, nothing uses the memory any more.
    let entries = (0..200).map(|n| entry(&transfer, &file, &memory, Op::Read, n, SIZES));
    // SAFETY: as above.
    unsafe { batch.submit(entries.collect()) }.unwrap();
    drop(batch);
    drop(memory);
}

#[test]
fn a_failing_entry_affects_no_other() {
    let transfer = transfer();
    let dir = dir();
    let path = written(&dir, "file", &random_bytes(1, FILE));
    let good = file(&transfer, &path, Mode::Plain);
    let write_only = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let bad = transfer.file(std::os::fd::AsFd::as_fd(&write_only)).unwrap();
    let memory = Memory::new(MemoryKind::Device, 20 << 20);
    let batch = transfer.batch(100);
    let entries = (0..100).map(|number| {
        let file = if number % 10 == 3 { &bad } else { &good };
        let mut entry = entry(&transfer, file, &memory, Op::Read, number, SIZES);
        if number % 10 == 5 {
            entry.offset = FILE as u64 - 5;
        }
        entry
    });
    // SAFETY: the memory outlives the batch.
    unsafe { batch.submit(entries.collect()) }.unwrap();
    for (cookie, event) in all(&batch) {
        let (_, _, len) = range_of(usize::try_from(cookie).unwrap(), SIZES);
        match (cookie % 10, event.outcome) {
            (3, outcome) => {
                let error = outcome.unwrap_err();
                assert!(matches!(error, Fault::File { errno: libc::EBADF, .. }), "{error}");
            }
            (5, outcome) => assert_eq!(outcome.unwrap().bytes, len.min(5)),
            (_, outcome) => assert_eq!(outcome.unwrap().bytes, len),
        }
    }
}

#[test]
fn batches_complete_while_callers_take_every_permit() {
    let mut settings = settings();
    settings.max_active = 1;
    let transfer = &Transfer::new(settings);
    let dir = dir();
    let file = &file(transfer, &written(&dir, "file", &random_bytes(1, FILE)), Mode::Plain);
    let over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                let memory = Memory::new(MemoryKind::Device, 1 << 20);
                let location = transfer.locate(memory.address()).unwrap();
                while !over.load(Ordering::Relaxed) {
                    // SAFETY: memory of this thread's own.
                    let moved = unsafe {
                        transfer.call(Op::Read, file, location, memory.address(), 1 << 20, 0)
                    };
                    assert_eq!(moved.unwrap().bytes, 1 << 20);
                }
            });
        }
        let memory = Memory::new(MemoryKind::Device, 8 << 20);
        for _ in 0..5 {
            let batch = transfer.batch(100);
            let entries = (0..100).map(|n| entry(transfer, file, &memory, Op::Read, n, SIZES));
            // SAFETY: the memory outlives the batch.
            unsafe { batch.submit(entries.collect()) }.unwrap();
            let (mut count, began) = (0, Instant::now());
            while count < 100 {
                // It never waits, so it never helps.
                count += batch.events(0, 100, Some(Duration::ZERO)).len();
                assert!(began.elapsed() < Duration::from_secs(60), "{count} of 100 ends");
                std::thread::yield_now();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}
