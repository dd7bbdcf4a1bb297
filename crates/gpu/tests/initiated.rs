//! I/O that a kernel starts, against `pread(2)` and `pwrite(2)`, on gpuio's software GPU, or with
//! `GPUIO_TEST_GPU=system` on the system's.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(unsafe_code, reason = "the copies and kernels of the API are unsafe")]
#![allow(clippy::print_stderr, reason = "what is skipped is to be seen")]

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use gpuio_gpu::initiated::{
    Chain, Command, Direction, ENTRIES, Outcome, Request, Ring, RingError, available,
};
use gpuio_gpu::resident::LIFETIME;
use gpuio_gpu::{Context, DevPtr, DeviceBuf, Driver, MemoryKind, Stream};
use gpuio_testkit::gpu::which;

const LEN: u64 = 64 << 10;

struct Bench {
    // Dropped first: the kernel uses the destination.
    ring: Ring,
    device: DeviceBuf,
    stream: Stream,
    context: Context,
}

/// A ring over these files; nothing, and said so, where the machine has no such rings.
fn bench(files: &[RawFd], entries: u32) -> Option<Bench> {
    chain_bench(files, entries, None)
}

/// The same, for I/Os that are a chain.
fn chain_bench(files: &[RawFd], entries: u32, chain: Option<Chain>) -> Option<Bench> {
    if let Err(why) = available() {
        eprintln!("skipped: {why}");
        return None;
    }
    let driver = Driver::load(&which()).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    context.make_current().unwrap();
    let room = usize::try_from(LEN * u64::from(entries)).unwrap();
    let device = DeviceBuf::alloc(&context, MemoryKind::Device, room).unwrap();
    let request =
        Request { files, entries, len: LEN, destination: device.ptr(), stride: LEN, chain };
    let ring = Ring::new(&context, &request).unwrap();
    let stream = Stream::new(&context).unwrap();
    Some(Bench { ring, device, stream, context })
}

fn read(entry: u32, offset: u64, len: u32) -> Command {
    Command { entry, direction: Direction::Read, file: 0, offset, skip: 0, len }
}

fn write(entry: u32, offset: u64, len: u32) -> Command {
    Command { direction: Direction::Write, ..read(entry, offset, len) }
}

impl Bench {
    fn submit(&mut self, command: &Command) {
        // SAFETY: the test uses no entry that is in flight, and the destination outlives the ring.
        unsafe { self.ring.submit(command) }.unwrap();
    }

    /// The results of all that is in flight.
    fn wait(&mut self) -> Vec<Outcome> {
        let (began, mut outcomes) = (Instant::now(), Vec::new());
        while self.ring.in_flight() > 0 {
            self.ring.take(&mut outcomes).unwrap();
            assert!(began.elapsed() < Duration::from_secs(180), "no result");
        }
        outcomes
    }

    fn one(&mut self, command: &Command) -> Result<u32, i32> {
        self.submit(command);
        let [outcome] = self.wait()[..] else { panic!("one result for one command") };
        assert_eq!(outcome.entry, command.entry);
        outcome.result
    }

    fn at(&self, entry: u32) -> DevPtr {
        self.device.ptr().byte_add(u64::from(entry) * LEN)
    }

    fn on_device(&self, entry: u32) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(LEN).unwrap()];
        let to = DevPtr(bytes.as_mut_ptr() as u64);
        // SAFETY: ranges of the test's own; the wait follows.
        unsafe { self.stream.copy(to, self.at(entry), bytes.len()).unwrap() };
        self.stream.sync().unwrap();
        bytes
    }

    fn fill(&self, entry: u32, bytes: &[u8]) {
        let from = DevPtr(bytes.as_ptr() as u64);
        // SAFETY: ranges of the test's own; the wait follows.
        unsafe { self.stream.copy(self.at(entry), from, bytes.len()).unwrap() };
        self.stream.sync().unwrap();
    }
}

fn data(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| at.wrapping_mul(seed * 2 + 0x9E37).to_le_bytes()[1]).collect()
}

/// A file of this many bytes, and what it holds.
fn file(len: usize) -> (tempfile::TempDir, File, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("file");
    let bytes = data(3, len);
    std::fs::write(&name, &bytes).unwrap();
    let file = File::options().read(true).write(true).open(name).unwrap();
    (directory, file, bytes)
}

/// Pairs of (file offset, length), odd ones among them.
const BLOCKS: [(u64, u32); 8] = [
    (0, 4096),
    (1, 1),
    (4095, 2),
    (8191, 4097),
    (65_521, 65_536),
    (131_072, 15),
    (200_003, 16_384),
    (196_608, 65_535),
];

#[test]
fn blocks_of_any_length_cross_in_both_directions() {
    let (_directory, file, mut bytes) = file(512 << 10);
    let Some(mut bench) = bench(&[file.as_raw_fd()], 8) else { return };
    for (nth, &(offset, len)) in BLOCKS.iter().enumerate() {
        let (entry, from, length) =
            (u32::try_from(nth).unwrap(), usize::try_from(offset).unwrap(), len as usize);
        let before = bench.on_device(entry);
        assert_eq!(bench.one(&read(entry, offset, len)), Ok(len));
        let there = bench.on_device(entry);
        assert_eq!(there[..length], bytes[from..from + length], "{len} bytes at {offset}");
        assert_eq!(there[length..], before[length..], "past {len} bytes at {offset}");
        let new = data(offset, length);
        bench.fill(entry, &new);
        assert_eq!(bench.one(&write(entry, offset, len)), Ok(len));
        bytes[from..from + length].copy_from_slice(&new);
        let mut found = vec![0; bytes.len()];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found == bytes, "the file after {len} bytes at {offset}");
    }
    assert_eq!(bench.ring.completed(), 2 * BLOCKS.len() as u64);
}

#[test]
fn a_full_ring_many_times_over_loses_nothing() {
    let (_directory, file, bytes) = file(1 << 20);
    let Some(mut bench) = bench(&[file.as_raw_fd()], ENTRIES) else { return };
    let mut wanted = vec![None; ENTRIES as usize];
    let (mut submitted, mut ended) = (0_u64, 0_u64);
    let mut outcomes = Vec::new();
    // More commands than the ring, its completions and both mailboxes have places.
    while ended < 1000 {
        for entry in 0..ENTRIES {
            if wanted[entry as usize].is_none() && submitted < 1000 {
                let offset = submitted * 7919 % ((1 << 20) - 4096);
                bench.submit(&read(entry, offset, 4096));
                wanted[entry as usize] = Some(offset);
                submitted += 1;
            }
        }
        bench.ring.take(&mut outcomes).unwrap();
        for outcome in outcomes.drain(..) {
            let offset = wanted[outcome.entry as usize].take().unwrap();
            assert_eq!(outcome.result, Ok(4096));
            let from = usize::try_from(offset).unwrap();
            if ended.is_multiple_of(16) {
                assert_eq!(bench.on_device(outcome.entry)[..4096], bytes[from..from + 4096]);
            }
            ended += 1;
        }
    }
    assert_eq!((bench.ring.completed(), bench.ring.in_flight()), (1000, 0));
}

/// Each block of the chain decides about the next: the host learns where it was, and finds there
/// what the device read. A rest is where it is said to be.
#[test]
fn a_chain_follows_the_bytes() {
    let (_directory, file, bytes) = file(1 << 20);
    let chain = Chain { begin: 4096, len: 512, count: 2000 };
    for entries in [1, 5] {
        let Some(mut bench) = chain_bench(&[file.as_raw_fd()], entries, Some(chain)) else {
            return;
        };
        let (mut outcomes, mut order) = (Vec::new(), Vec::new());
        let mut free: Vec<u32> = (0..entries).collect();
        let (mut submitted, mut ended) = (0_u64, 0);
        while ended < 300 {
            for entry in free.drain(..) {
                let offset = 4096 + submitted * 7 % 2000 * 512;
                bench.submit(&read(entry, offset, 512));
                order.push(offset);
                submitted += 1;
            }
            bench.ring.take(&mut outcomes).unwrap();
            for outcome in outcomes.drain(..) {
                assert_eq!(outcome.result, Ok(512));
                free.push(outcome.entry);
                let from = usize::try_from(outcome.offset).unwrap();
                assert_eq!(bench.on_device(outcome.entry)[..512], bytes[from..from + 512]);
                // One at a time, so results come in the commands' order.
                let next = u64::from_le_bytes(bytes[from..from + 8].try_into().unwrap());
                let named = (order[ended] - 4096) / 512;
                if ended > 0 {
                    assert_eq!(outcome.offset, 4096 + moved(named, order[ended - 1]) * 512);
                }
                order[ended] = next;
                ended += 1;
            }
        }
        bench.wait();
        let rest = Command { skip: 100, ..read(0, 5000, 33) };
        bench.submit(&rest);
        assert_eq!(bench.wait()[0].offset, 5000);
    }
}

/// The block that one which was named becomes by a word.
fn moved(named: u64, word: u64) -> u64 {
    named.wrapping_add(word) % 2000
}

#[test]
fn ends_of_files_and_errors_are_results() {
    let (_directory, file, bytes) = file(10_000);
    let zeros = File::options().write(true).open("/dev/full").unwrap();
    // Byte 0 of a process's memory is never mapped: the read is answered with EIO.
    let memory = File::open("/proc/self/mem").unwrap();
    let only_read = File::open("/proc/self/exe").unwrap();
    let files = [&file, &zeros, &memory, &only_read].map(AsRawFd::as_raw_fd);
    let Some(mut bench) = bench(&files, 4) else { return };
    assert_eq!(bench.one(&read(0, 8192, 4096)), Ok(1808), "a file ends within the block");
    assert_eq!(bench.on_device(0)[..1808], bytes[8192..]);
    assert_eq!(bench.one(&read(0, 10_000, 4096)), Ok(0), "a file ends before the block");
    assert_eq!(bench.one(&read(1, 1 << 40, 1)), Ok(0));
    assert_eq!(bench.one(&Command { file: 1, ..write(1, 0, 512) }), Err(libc::ENOSPC));
    assert_eq!(bench.one(&Command { file: 2, ..read(2, 0, 512) }), Err(libc::EIO));
    assert_eq!(bench.one(&Command { file: 3, ..write(2, 0, 512) }), Err(libc::EBADF));
    assert_eq!(bench.one(&Command { file: 4, ..read(3, 0, 512) }), Err(libc::EBADF));
    // The file shrinks, grows, and is unlinked: the descriptor is what counts.
    file.set_len(4096).unwrap();
    assert_eq!(bench.one(&read(0, 0, 8192)), Ok(4096));
    file.set_len(8192).unwrap();
    assert_eq!(bench.one(&read(0, 0, 8192)), Ok(8192));
    drop(_directory);
    assert_eq!(bench.one(&read(0, 0, 4096)), Ok(4096));
    // The rest of a block that stopped short goes behind what is there.
    bench.fill(3, &data(9, 8192));
    assert_eq!(bench.one(&Command { skip: 100, ..read(3, 50, 33) }), Ok(33));
    let there = bench.on_device(3);
    assert_eq!((&there[..100], &there[133..8192]), (&data(9, 8192)[..100], &data(9, 8192)[133..]));
    assert_eq!(there[100..133], bytes[50..83]);
}

#[test]
fn a_kernel_that_went_is_launched_again_and_a_sleeping_thread_is_woken() {
    let (_directory, file, bytes) = file(1 << 20);
    let Some(mut bench) = bench(&[file.as_raw_fd()], 2) else { return };
    for (round, leaves) in (0..).zip([true, false, true, true, false]) {
        assert_eq!(bench.one(&read(1, round * 4096, 4096)), Ok(4096));
        let from = usize::try_from(round * 4096).unwrap();
        assert_eq!(bench.on_device(1)[..4096], bytes[from..from + 4096], "round {round}");
        if leaves {
            // Until the kernel has found nothing to do, and has left; and the operating system's
            // thread sleeps, after 50 ms.
            bench.context.synchronize().unwrap();
            std::thread::sleep(Duration::from_millis(120));
        }
    }
    assert!(bench.ring.launches() >= 4, "{} launches", bench.ring.launches());
}

#[test]
fn a_kernel_that_always_has_work_goes_in_the_end_and_nothing_is_lost() {
    let (_directory, file, _) = file(1 << 20);
    let Some(mut bench) = bench(&[file.as_raw_fd()], 3) else { return };
    let (began, mut outcomes) = (Instant::now(), Vec::new());
    let (mut free, mut submitted) = (vec![0, 1, 2], 0_u64);
    while began.elapsed() < LIFETIME * 3 || submitted <= 300 {
        for entry in free.drain(..) {
            bench.submit(&read(entry, submitted % 200 * 4096, 4096));
            submitted += 1;
        }
        bench.ring.take(&mut outcomes).unwrap();
        for outcome in outcomes.drain(..) {
            assert_eq!(outcome.result, Ok(4096));
            free.push(outcome.entry);
        }
    }
    bench.wait();
    assert!(bench.ring.launches() > 1, "{} launches", bench.ring.launches());
    assert_eq!(bench.ring.completed(), submitted);
}

/// I/O that does not end: a read of a pipe, for which nothing comes. The kernel goes all the same,
/// the whole device can be waited for, and the read ends when there are bytes.
#[test]
fn an_io_that_does_not_end_keeps_no_kernel_and_loses_nothing() {
    let (_directory, file, bytes) = file(8192);
    let (from, mut to) = std::io::pipe().unwrap();
    let Some(mut bench) = bench(&[file.as_raw_fd(), from.as_raw_fd()], 2) else { return };
    bench.submit(&Command { file: 1, ..read(0, 0, 4096) });
    let (began, mut outcomes) = (Instant::now(), Vec::new());
    // A kernel that loses its processor may go before it has seen the command: the time counts too.
    while bench.ring.launches() < 3 || began.elapsed() < Duration::from_secs(2) {
        bench.ring.take(&mut outcomes).unwrap();
        assert_eq!(outcomes, []);
        assert!(began.elapsed() < Duration::from_secs(60), "the kernel does not go");
    }
    // Others go on beside it.
    bench.submit(&read(1, 4096, 4096));
    while outcomes.is_empty() {
        bench.ring.take(&mut outcomes).unwrap();
    }
    assert_eq!((outcomes[0].entry, outcomes[0].result), (1, Ok(4096)));
    assert_eq!(bench.on_device(1)[..4096], bytes[4096..]);
    to.write_all(&bytes[..100]).unwrap();
    let [outcome] = bench.wait()[..] else { panic!("the read ended once") };
    assert_eq!((outcome.entry, outcome.result), (0, Ok(100)));
    assert!(outcome.file_ns > 500_000_000, "{outcome:?}");
    assert_eq!(bench.on_device(0)[..100], bytes[..100]);
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn locked_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPin:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Other tests of this program have threads and rings too, some at most.
#[test]
fn a_thousand_starts_and_teardowns_leave_no_thread_and_no_locked_memory() {
    let (_directory, file, _) = file(1 << 20);
    let before = (threads(), locked_kib());
    for round in 0..1000 {
        let Some(mut bench) = bench(&[file.as_raw_fd()], 2) else { return };
        if round % 10 == 0 {
            // Left in flight.
            bench.submit(&read(0, 0, 4096));
        }
    }
    // The kernel ends rings behind the close.
    let began = Instant::now();
    while threads() > before.0 + 64 || locked_kib() > before.1 + (64 << 10) {
        let left = (threads(), locked_kib());
        assert!(began.elapsed() < Duration::from_secs(60), "{before:?} before, {left:?} left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn requests_that_do_not_suit_are_refused() {
    let (_directory, file, _) = file(4096);
    let files = [file.as_raw_fd()];
    let Some(bench) = bench(&files, 1) else { return };
    let good = Request {
        files: &files,
        entries: 1,
        len: 4096,
        destination: bench.device.ptr(),
        stride: 4096,
        chain: None,
    };
    let chain = |len, count| Some(Chain { begin: 0, len, count });
    for (request, words) in [
        (Request { entries: 0, ..good }, "a ring takes 1 to 64"),
        (Request { entries: ENTRIES + 1, ..good }, "a ring takes 1 to 64"),
        (Request { files: &[], ..good }, "0 files"),
        (Request { len: 0, ..good }, "multiples of 4096"),
        (Request { len: 4097, ..good }, "multiples of 4096"),
        (Request { len: 2 << 30, ..good }, "up to 1073741824"),
        (Request { chain: chain(4, 9), ..good }, "8 bytes at least"),
        (Request { chain: chain(512, 0), ..good }, "8 bytes at least"),
        (Request { files: &[i32::MAX], ..good }, "io_uring_register"),
    ] {
        match Ring::new(&bench.context, &request) {
            Err(error @ (RingError::Request(_) | RingError::Kernel { .. })) => {
                assert!(error.to_string().contains(words), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}
