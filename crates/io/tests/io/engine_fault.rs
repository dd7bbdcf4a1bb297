//! The behaviour of engines when I/Os fail: every fault reaches the I/O that was hit, and no other;
//! no I/O is lost or handed back twice.
#![allow(unsafe_code)]

use crate::engine_support::{
    PAGE, Slots, byte_at, config, drain, make_file, on_any_file, one, open, open_direct, push,
};
use gpuio_io::engine::{Done, EngineConfig, EngineEntry, EngineFile, Inject, IoFault, Op, find};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const BLOCK: u32 = 4096;
const SPACE: Result<u32, IoFault> = Err(IoFault::Errno(libc::ENOSPC));
const BAD_FILE: Result<u32, IoFault> = Err(IoFault::Errno(libc::EBADF));
const BROKEN: Result<u32, IoFault> = Err(IoFault::Errno(libc::EIO));

fn end_of_file(bytes: u32) -> Result<u32, IoFault> {
    Err(IoFault::EndOfFile(bytes))
}

fn with_files() -> impl Iterator<Item = &'static EngineEntry> {
    on_any_file().filter(|row| row.info.name != "null")
}

fn expected_byte(index: usize, offset: u64) -> u8 {
    byte_at(offset + index as u64)
}

/// Pushes reads and writes in turn, block `n` by I/O `n`, and gives back each one's answer by
/// its number. Each must come back once, whole, and with its bytes moved, or not at all.
fn faults_of(
    row: &EngineEntry,
    inject: &Inject,
    direct: bool,
) -> Option<Vec<Result<u32, IoFault>>> {
    const COUNT: u32 = 300;
    const SIZE: u32 = 2 * BLOCK;
    let len = (COUNT * SIZE) as usize;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut file = make_file(&path, len);
    if direct {
        file = open_direct(&path)?;
    }
    // One slot for each I/O, so that its memory can be looked at when all is over.
    let mut slots = Slots::new(COUNT, SIZE as usize);
    let mut config = config(&[&file], len, COUNT, &slots, direct);
    config.depth = 8;
    let (mut engine, counters) = open(row, &config, Some(inject))?;
    let mut done = Vec::new();
    for number in 0..COUNT {
        let op = if number % 2 == 0 { Op::Read } else { Op::Write };
        let fill = if op == Op::Read { 0 } else { 0x55 };
        slots.bytes(number).fill(fill);
        let io = slots.io(op, number, u64::from(number * SIZE), SIZE);
        push(engine.as_mut(), io, &mut done);
    }
    drain(engine.as_mut(), &mut done);
    drop(engine);
    let mut answers = vec![None; COUNT as usize];
    for done in &done {
        assert_eq!(done.io.span.len(), SIZE, "handed back as it was pushed");
        let answer = answers[done.io.token as usize].replace(done.result);
        assert!(answer.is_none(), "{}: I/O {} came back twice", row.info.name, done.io.token);
    }
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect("none is lost")).collect();
    let count = |op: Op| {
        let counters = counters.of(op);
        let (ios, bytes) = (&counters.ios, &counters.bytes);
        assert_eq!(bytes.load(Ordering::Relaxed), ios.load(Ordering::Relaxed) * u64::from(SIZE));
        (ios.load(Ordering::Relaxed), counters.faults.load(Ordering::Relaxed))
    };
    let ((reads, bad_reads), (writes, bad_writes)) = (count(Op::Read), count(Op::Write));
    assert_eq!(reads + bad_reads, u64::from(COUNT / 2));
    assert_eq!(writes + bad_writes, u64::from(COUNT / 2));
    assert_eq!(
        answers.iter().filter(|answer| answer.is_err()).count() as u64,
        bad_reads + bad_writes
    );
    assert_eq!(counters.short_ios.load(Ordering::Relaxed) > 0, inject.short > 0.0);
    if row.info.name != "null" {
        let bytes = std::fs::read(&path).unwrap();
        check_bytes(row, &answers, SIZE, &mut slots, &bytes, inject);
    }
    Some(answers)
}

fn check_bytes(
    row: &EngineEntry,
    answers: &[Result<u32, IoFault>],
    size: u32,
    slots: &mut Slots,
    file: &[u8],
    inject: &Inject,
) {
    for (number, answer) in (0_u32..).zip(answers) {
        let offset = number * size;
        let block = &file[offset as usize..][..size as usize];
        let fresh = |bytes: &[u8]| {
            bytes.iter().enumerate().all(|(i, &b)| b == expected_byte(i, u64::from(offset)))
        };
        let context = format!("{}: I/O {number}: {answer:?}", row.info.name);
        let memory = &slots.bytes(number)[..size as usize];
        match (number % 2 == 0, answer) {
            (true, Ok(moved)) => {
                assert_eq!(*moved, size, "{context}");
                assert!(fresh(memory), "{context}");
            }
            (false, Ok(moved)) => {
                assert_eq!(*moved, size, "{context}");
                assert!(block.iter().all(|&byte| byte == 0x55), "{context}");
            }
            // A fault may hit the rest of an I/O that was cut before.
            (true, Err(_)) if inject.short == 0.0 => {
                assert!(memory.iter().all(|&byte| byte == 0), "{context}");
            }
            (false, Err(_)) if inject.short == 0.0 => assert!(fresh(block), "{context}"),
            (_, Err(_)) => {}
        }
    }
}

#[test]
fn faults_hit_their_own_io_on_every_engine() {
    let inject: Inject = "eio=20%,enospc=20%,delay=300us@20%,seed=11".parse().unwrap();
    for row in on_any_file() {
        for direct in [false, true] {
            let Some(answers) = faults_of(row, &inject, direct) else {
                continue;
            };
            let count = |wanted| answers.iter().filter(|&&answer| answer == wanted).count();
            let (broken, space) = (count(BROKEN), count(SPACE));
            assert!((30..=90).contains(&broken), "{}: {broken} of 300 at 20%", row.info.name);
            assert!((8..=48).contains(&space), "{}: {space} of 150 at 16%", row.info.name);
            let reads = answers.iter().step_by(2);
            assert!(reads.clone().all(|&answer| answer != SPACE), "reads need no space");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_faults() {
    // Without short transfers the pushes are the same on every engine.
    let inject: Inject = "eio=10%,enospc=10%,delay=100us@5%,seed=3".parse().unwrap();
    let mut first = None;
    for row in on_any_file() {
        let Some(answers) = faults_of(row, &inject, false) else {
            continue;
        };
        assert_eq!(*first.get_or_insert_with(|| answers.clone()), answers, "{}", row.info.name);
    }
    let other = Inject { seed: 4, ..inject };
    let row = find("psync").unwrap();
    assert_ne!(first, faults_of(row, &other, false));
}

#[test]
fn short_transfers_are_healed_on_every_engine() {
    for text in ["short=100%,seed=1", "short=50%,delay=50us@30%,seed=2", "short=40%,eio=10%"] {
        let inject: Inject = text.parse().unwrap();
        for row in on_any_file() {
            for direct in [false, true] {
                let Some(answers) = faults_of(row, &inject, direct) else {
                    continue;
                };
                let bad = answers.iter().filter(|answer| answer.is_err()).count();
                assert_eq!(bad > 0, inject.eio > 0.0, "{} {text}", row.info.name);
            }
        }
    }
}

#[test]
fn a_read_past_the_end_says_how_much_there_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for tail in [0_u32, 512, 100] {
        let len = 4 * PAGE + tail as usize;
        let buffered = make_file(&path, len);
        for direct in [false, true] {
            let opened = if direct { open_direct(&path) } else { buffered.try_clone().ok() };
            let Some(file) = opened else { continue };
            for row in with_files() {
                let mut slots = Slots::new(2, 4 * PAGE);
                let config = config(&[&file], 16 * PAGE, 2, &slots, direct);
                let Some((mut engine, counters)) = open(row, &config, None) else {
                    continue;
                };
                let context = format!("{} direct {direct} tail {tail}", row.info.name);
                let over = slots.io(Op::Read, 0, 2 * u64::from(BLOCK), 4 * BLOCK);
                let moved = 2 * BLOCK + tail;
                assert_eq!(one(engine.as_mut(), over).result, end_of_file(moved), "{context}");
                let memory = &slots.bytes(0)[..moved as usize];
                let same = |(i, &b): (usize, &u8)| b == expected_byte(i, 2 * u64::from(BLOCK));
                assert!(memory.iter().enumerate().all(same), "{context}");
                let past = slots.io(Op::Read, 1, 8 * u64::from(BLOCK), BLOCK);
                assert_eq!(one(engine.as_mut(), past).result, end_of_file(0), "{context}");
                assert_eq!(counters.read.faults.load(Ordering::Relaxed), 2, "{context}");
            }
        }
    }
}

#[test]
fn a_bad_descriptor_fails_its_own_ios_only() {
    let directory = tempfile::tempdir().unwrap();
    let file = make_file(&directory.path().join("file"), 8 * PAGE);
    for row in with_files() {
        for bad in [-1, 1_000_000] {
            let slots = Slots::new(8, PAGE);
            let mut config = config(&[&file], 8 * PAGE, 8, &slots, false);
            config.files.push(EngineFile { fd: bad, len: 4096, writable: true });
            if row.info.name == "mmap" {
                // It has to map each file before the first I/O, so it says so then.
                let error = (row.open)(&config).unwrap_err().to_string();
                assert!(error.contains("file 1") && error.contains("os error 9"), "{error}");
                continue;
            }
            let Some((mut engine, _)) = open(row, &config, None) else {
                continue;
            };
            let mut done = Vec::new();
            for slot in 0..8 {
                let op = if slot < 4 { Op::Read } else { Op::Write };
                let mut io = slots.io(op, slot, u64::from(slot * BLOCK), BLOCK);
                io.file = slot % 3;
                push(engine.as_mut(), io, &mut done);
            }
            drain(engine.as_mut(), &mut done);
            done.sort_by_key(|done| done.io.token);
            let answers: Vec<_> = done.iter().map(|done| done.result).collect();
            let (good, bad) = (Ok(BLOCK), BAD_FILE);
            assert_eq!(answers, [good, bad, bad, good, bad, bad, good, bad], "{}", row.info.name);
        }
    }
}

#[test]
fn a_full_device_is_enospc() {
    let Ok(full) = OpenOptions::new().read(true).write(true).open("/dev/full") else {
        eprintln!("skipped: there is no /dev/full");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let good = make_file(&directory.path().join("file"), 8 * PAGE);
    for row in with_files().filter(|row| row.info.name != "mmap") {
        let slots = Slots::new(8, PAGE);
        let config = config(&[&full, &good], 8 * PAGE, 8, &slots, false);
        let Some((mut engine, counters)) = open(row, &config, None) else {
            continue;
        };
        let mut done = Vec::new();
        for slot in 0..8 {
            let mut io = slots.io(Op::Write, slot, u64::from(slot * BLOCK), BLOCK);
            io.file = slot % 2;
            push(engine.as_mut(), io, &mut done);
        }
        drain(engine.as_mut(), &mut done);
        for done in &done {
            let expected = if done.io.file == 0 { SPACE } else { Ok(BLOCK) };
            let refused = Err(IoFault::Errno(libc::EINVAL));
            if row.info.name == "libaio" && done.io.file == 0 && done.result == refused {
                // io_submit(2) takes no device whose driver lacks vectored I/O.
                continue;
            }
            assert_eq!(done.result, expected, "{} {}", row.info.name, done.io.token);
        }
        assert_eq!(done.len(), 8);
        assert_eq!(counters.write.faults.load(Ordering::Relaxed), 4);
    }
}

#[test]
fn a_file_not_open_for_writing_refuses_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    drop(make_file(&path, 4 * PAGE));
    let file = File::open(&path).unwrap();
    for row in with_files() {
        let slots = Slots::new(2, PAGE);
        let mut config = config(&[&file], 4 * PAGE, 2, &slots, false);
        config.files[0].writable = false;
        let Some((mut engine, _)) = open(row, &config, None) else {
            continue;
        };
        let write = one(engine.as_mut(), slots.io(Op::Write, 0, 0, BLOCK));
        assert_eq!(write.result, BAD_FILE, "{}", row.info.name);
        let read = one(engine.as_mut(), slots.io(Op::Read, 1, 0, BLOCK));
        assert_eq!(read.result, Ok(BLOCK), "{}", row.info.name);
    }
}

#[test]
fn a_file_that_shrinks_under_the_run_is_an_end_of_file() {
    let directory = tempfile::tempdir().unwrap();
    for row in with_files() {
        let file = make_file(&directory.path().join(row.info.name), 16 * PAGE);
        let mut slots = Slots::new(1, 4 * PAGE);
        let config = config(&[&file], 16 * PAGE, 1, &slots, false);
        let Some((mut engine, _)) = open(row, &config, None) else {
            continue;
        };
        let mut read = |block: u32, blocks: u32| {
            let io = slots.io(Op::Read, 0, u64::from(block * BLOCK), blocks * BLOCK);
            one(engine.as_mut(), io).result
        };
        assert_eq!(read(8, 4), Ok(4 * BLOCK), "{}", row.info.name);
        file.set_len(10 * PAGE as u64).unwrap();
        assert_eq!(read(8, 4), end_of_file(2 * BLOCK), "{}", row.info.name);
        assert_eq!(read(12, 1), end_of_file(0), "{}", row.info.name);
        assert_eq!(read(7, 3), Ok(3 * BLOCK), "{}", row.info.name);
        let memory = &slots.bytes(0)[..3 * PAGE];
        let same = |(i, &b): (usize, &u8)| b == expected_byte(i, 7 * u64::from(BLOCK));
        assert!(memory.iter().enumerate().all(same), "{}", row.info.name);
    }
}

#[test]
fn a_page_lost_to_a_mapping_stays_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let file = make_file(&path, 16 * PAGE);
    let slots = Slots::new(1, 4 * PAGE);
    let config = config(&[&file], 16 * PAGE, 1, &slots, false);
    let (mut engine, _) = open(find("mmap").unwrap(), &config, None).unwrap();
    let mut go = |op, block: u32, blocks: u32| {
        let io = slots.io(op, 0, u64::from(block * BLOCK), blocks * BLOCK);
        one(engine.as_mut(), io).result
    };
    assert_eq!(go(Op::Read, 0, 1), Ok(BLOCK));
    file.set_len(8 * PAGE as u64).unwrap();
    // Inside the size that the engine last saw: the copy meets SIGBUS, on a read and a write.
    assert_eq!(go(Op::Write, 7, 2), end_of_file(BLOCK));
    assert_eq!(go(Op::Read, 8, 1), end_of_file(0));
    file.set_len(16 * PAGE as u64).unwrap();
    assert_eq!(go(Op::Read, 8, 1), BROKEN);
    assert_eq!(go(Op::Write, 6, 4), BROKEN);
    assert_eq!(go(Op::Read, 9, 1), Ok(BLOCK));
    assert_eq!(go(Op::Write, 7, 1), Ok(BLOCK));
}

/// The other half of `a_foreign_bus_error_kills`: opens the engine, then breaks a mapping of
/// its own. Run by that test in a process of its own.
#[test]
#[ignore = "dies by SIGBUS, on purpose, in a process that a_foreign_bus_error_kills starts"]
fn break_a_foreign_mapping() {
    let directory = tempfile::tempdir().unwrap();
    let file = make_file(&directory.path().join("file"), 2 * PAGE);
    let slots = Slots::new(1, PAGE);
    let config = config(&[&file], 2 * PAGE, 1, &slots, false);
    let _engine = open(find("mmap").unwrap(), &config, None).unwrap();
    let (fd, none) = (file.as_raw_fd(), std::ptr::null_mut());
    // SAFETY: a new mapping.
    let base = unsafe { libc::mmap(none, 2 * PAGE, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    file.set_len(0).unwrap();
    // The directory is gone with the process's memory only, so it goes now.
    drop(directory);
    // SAFETY: mapped; the kernel answers with SIGBUS, and that is the test.
    let byte = unsafe { base.cast::<u8>().read_volatile() };
    panic!("read {byte} from a page that is not there");
}

#[test]
fn a_foreign_bus_error_kills() {
    use std::os::unix::process::ExitStatusExt;
    let output = gpuio_testkit::child::output(break_a_foreign_mapping, &[]);
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{output:?}");
}

#[test]
fn a_drop_waits_for_what_is_out() {
    const DEPTH: u32 = 16;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let len = 2 * DEPTH as usize * PAGE;
    let buffered = make_file(&path, len);
    let inject: Inject = "short=50%,delay=1ms@50%".parse().unwrap();
    for row in with_files().filter(|row| row.info.asynchronous) {
        for (direct, submitted) in [(false, true), (false, false), (true, true), (true, false)] {
            let opened = if direct { open_direct(&path) } else { buffered.try_clone().ok() };
            let Some(file) = opened else { continue };
            let mut slots = Slots::new(DEPTH, PAGE);
            let config = config(&[&file], len, DEPTH, &slots, direct);
            let Some((mut engine, _)) = open(row, &config, None) else {
                continue;
            };
            for slot in 0..DEPTH {
                let io = slots.io(Op::Read, slot, u64::from(slot * BLOCK), BLOCK);
                push(engine.as_mut(), io, &mut Vec::new());
            }
            if submitted {
                engine.submit().unwrap();
            }
            assert_eq!(engine.in_flight(), DEPTH as usize);
            drop(engine);
            // All have completed, and nothing completes any more.
            for slot in 0..DEPTH {
                let memory = slots.bytes(slot);
                let same = |(i, &b): (usize, &u8)| b == expected_byte(i, u64::from(slot * BLOCK));
                assert!(
                    memory.iter().enumerate().all(same),
                    "{} {direct} {submitted}",
                    row.info.name
                );
            }
            // With decorators that hold I/Os back it must not hang or break either.
            let Some((mut engine, _)) = open(row, &config, Some(&inject)) else {
                continue;
            };
            for slot in 0..DEPTH {
                let io = slots.io(Op::Read, slot, u64::from(slot * BLOCK), BLOCK);
                push(engine.as_mut(), io, &mut Vec::new());
            }
            drop(engine);
        }
    }
}

#[test]
fn delayed_ios_are_passed_by_others_and_come_back() {
    const DEPTH: u32 = 32;
    let row = find("null").unwrap();
    let slots = Slots::new(DEPTH, PAGE);
    let (region, direct, direct_alignment) = (None, false, 512);
    let config = EngineConfig { depth: DEPTH, files: Vec::new(), region, direct, direct_alignment };
    let inject: Inject = "delay=30ms@30%,seed=5".parse().unwrap();
    let (mut engine, _) = open(row, &config, Some(&inject)).unwrap();
    let start = Instant::now();
    let mut done = Vec::new();
    for slot in 0..DEPTH {
        push(engine.as_mut(), slots.io(Op::Read, slot, 0, BLOCK), &mut done);
    }
    engine.reap(&mut done, 1).unwrap();
    let early = done.len();
    assert!(0 < early && early < DEPTH as usize, "{early} came back at once");
    assert_eq!(engine.in_flight() + early, DEPTH as usize);
    drain(engine.as_mut(), &mut done);
    assert!(start.elapsed() >= Duration::from_millis(30));
    let order: Vec<u32> = done.iter().map(|done| done.io.token).collect();
    assert!(!order.is_sorted(), "those delayed come last");
    let mut tokens = order;
    tokens.sort_unstable();
    assert_eq!(tokens, (0..DEPTH).collect::<Vec<_>>());
}

#[test]
fn a_rate_is_not_exceeded() {
    let directory = tempfile::tempdir().unwrap();
    let file = make_file(&directory.path().join("file"), 16 * PAGE);
    for row in on_any_file() {
        for text in ["rate=1M", "iops=256"] {
            let inject: Inject = text.parse().unwrap();
            let slots = Slots::new(4, PAGE);
            let config = config(&[&file], 16 * PAGE, 4, &slots, false);
            let Some((mut engine, _)) = open(row, &config, Some(&inject)) else {
                continue;
            };
            let (start, mut done) = (Instant::now(), Vec::new());
            // 256 I/Os a second either way; the first goes at once.
            for number in 0..16 {
                let slot = number % 4;
                push(engine.as_mut(), slots.io(Op::Read, slot, 0, BLOCK), &mut done);
            }
            drain(engine.as_mut(), &mut done);
            assert_eq!(done.len(), 16);
            let least = Duration::from_micros(15 * 3906 - 1000);
            assert!(start.elapsed() >= least, "{} {text}: {:?}", row.info.name, start.elapsed());
        }
    }
}

#[test]
fn a_full_engine_hands_the_io_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = make_file(&directory.path().join("file"), 16 * PAGE);
    for row in on_any_file().filter(|row| row.info.asynchronous) {
        let slots = Slots::new(4, PAGE);
        let config = config(&[&file], 16 * PAGE, 3, &slots, false);
        let Some((mut engine, _)) = open(row, &config, None) else {
            continue;
        };
        let mut done: Vec<Done> = Vec::new();
        for slot in 0..3 {
            push(engine.as_mut(), slots.io(Op::Read, slot, 0, BLOCK), &mut done);
        }
        assert_eq!((engine.in_flight(), done.len()), (3, 0), "{}", row.info.name);
        push(engine.as_mut(), slots.io(Op::Read, 3, 0, BLOCK), &mut done);
        assert!(!done.is_empty(), "{}: the fourth had to wait for one", row.info.name);
        drain(engine.as_mut(), &mut done);
        assert_eq!(done.len(), 4);
    }
}
