//! Reads of mapped files in a program's streams: they show what the file has when the stream
//! arrives, compared with `pread`, and never memory that was given back.
//!
//! The software GPU keeps the bytes of a registration, as in `mapped.rs`.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(clippy::print_stdout, reason = "what is skipped is to be seen")]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]

mod program;
mod support;

use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use gpuio_gpu::MemoryKind;
use gpuio_transfer::{Op, Param, Params, ResolvedParams, Transferred};
use program::{Completion, Gate, Made, alone};
use support::hot::{EXTENT, FILE, HANG, Hot, content, transfer};
use support::{Memory, dir, gpu, random_bytes};

/// A read of the file into the memory of [`Hot`] from its start on.
fn params(offset: u64, len: usize) -> Params {
    Params {
        max_size: len,
        size: Param::Immediate(len),
        file_offset: Param::Immediate(offset.cast_signed()),
        buffer_offset: Param::Immediate(0),
    }
}

fn put(stream: &Made, hot: &Hot, params: Params) -> Completion {
    stream.put(transfer(), (Op::Read, &hot.file), hot.memory.address(), params).unwrap()
}

fn moved(completion: &Completion) -> Transferred {
    completion.try_recv().expect("the stream has passed").1.unwrap()
}

/// Reads a range in a stream and compares it with `pread`.
fn checked(stream: &Made, hot: &Hot, offset: u64, len: usize) -> Transferred {
    hot.memory.put(0, &vec![0xA5; len]);
    let completion = put(stream, hot, params(offset, len));
    stream.sync();
    compare(hot, &completion, offset, len)
}

/// Compares what a read brought with what the file has now.
fn compare(hot: &Hot, completion: &Completion, offset: u64, len: usize) -> Transferred {
    let done = moved(completion);
    let mut expected = vec![0; len];
    let filled = hot.own.read_at(&mut expected, offset).unwrap();
    assert_eq!(done.bytes, filled, "{len} bytes at {offset}");
    let (route, bytes) = (done.route, done.bytes as u64);
    assert_eq!((route.cached + route.direct, route.by_kernel), (bytes, bytes));
    assert!(hot.memory.take(0, filled) == expected[..filled], "{len} bytes at {offset}: {route:?}");
    done
}

/// A mapped file.
fn heated(len: usize) -> Hot {
    let hot = Hot::of(len);
    if len == FILE {
        hot.heat();
        return hot;
    }
    let clock = Instant::now();
    while hot.checked(0, len).route.mapped == 0 {
        assert!(clock.elapsed() < HANG, "not mapped");
    }
    hot
}

#[test]
fn mapped_bytes_are_the_files() {
    let _alone = alone();
    let hot = heated(FILE);
    let stream = Made::new();
    // Longer ones are chunks of half a staging buffer; of a chunk all bytes are mapped or none.
    let whole = [
        (0, 1),
        (4097, 3000),
        (8192, 64 << 10),
        (1, 200_000),
        (EXTENT as u64 - 8192, 64 << 10),
        (EXTENT as u64 + 1_000_000, FILE - EXTENT - 1_000_000),
        (FILE as u64 - 1, 4096),
        (0, EXTENT),
    ];
    for (offset, len) in whole {
        let done = checked(&stream, &hot, offset, len);
        assert_eq!(done.route.mapped, done.bytes as u64, "{len} bytes at {offset}");
    }
    for (offset, len) in [(FILE as u64, 4096), (FILE as u64 + 5, 1 << 20), (3, 0)] {
        assert_eq!(checked(&stream, &hot, offset, len).bytes, 0);
    }
    // A launch is for one piece more than the fewest: across two extents there may be two more.
    for (offset, len) in [(EXTENT as u64 - 100_001, 300_003), (0, FILE), (12_345, FILE)] {
        assert!(checked(&stream, &hot, offset, len).route.mapped > 0 || len < FILE);
    }
}

#[test]
fn reads_in_streams_make_a_file_hot() {
    let _alone = alone();
    for len in [300_000, 4096] {
        let hot = Hot::of(2 << 20);
        let stream = Made::new();
        let clock = Instant::now();
        let mut offset = 0;
        assert_eq!(checked(&stream, &hot, offset, len).route.mapped, 0, "a first read is none");
        while checked(&stream, &hot, offset, len).route.mapped == 0 {
            // Faster than each compared.
            let completions: Vec<_> =
                (0..64).map(|_| put(&stream, &hot, params(offset, len))).collect();
            stream.sync();
            assert!(completions.iter().all(|completion| moved(completion).bytes == len));
            offset = (offset + len as u64) % ((2 << 20) - len as u64);
            assert!(clock.elapsed() < HANG, "not mapped");
        }
    }
}

#[test]
fn parameters_count_when_the_stream_arrives() {
    let _alone = alone();
    let hot = heated(FILE);
    let stream = Made::new();
    let gate = Gate::new();
    stream.hold(gate);
    let read: &'static mut ResolvedParams =
        Box::leak(Box::new(ResolvedParams { size: 5, file_offset: 7, buffer_offset: 9 }));
    let params = Params {
        max_size: 200_000,
        size: Param::Deferred(&raw const read.size),
        file_offset: Param::Deferred(&raw const read.file_offset),
        buffer_offset: Param::Deferred(&raw const read.buffer_offset),
    };
    let completion = put(&stream, &hot, params);
    let changed = ResolvedParams { size: 190_001, file_offset: 60_001, buffer_offset: 123 };
    // SAFETY: the stream is held, so no thread reads it.
    unsafe { std::ptr::from_mut(read).write_volatile(changed) };
    gate.open();
    stream.sync();
    let done = moved(&completion);
    assert_eq!((done.bytes, done.route.mapped), (190_001, 190_001));
    assert!(hot.memory.take(123, 190_001) == content()[60_001..250_002]);
}

/// Changes a mapped file while reads of it wait in a held stream, and compares them with the file
/// as it is when the stream goes on.
fn changed_before_the_stream_arrives(change: impl FnOnce(&Hot)) {
    /// A longer read is so many operations that the driver waits for space in the held stream.
    const LEN: usize = 1_000_000;
    let hot = heated(FILE);
    let stream = Made::new();
    let target = Memory::new(MemoryKind::Device, LEN);
    let gate = Gate::new();
    stream.hold(gate);
    let completion = put(&stream, &hot, params(0, LEN));
    // Another one right behind it.
    let second = stream
        .put(transfer(), (Op::Read, &hot.file), target.address(), params(4096, 100_000))
        .unwrap();
    let clock = Instant::now();
    change(&hot);
    assert!(clock.elapsed() < HANG / 6, "a lease is kept for a stream that is held");
    gate.open();
    stream.sync();
    assert_eq!(compare(&hot, &completion, 0, LEN).route.mapped, 0, "the rule ended");
    let done = moved(&second);
    let mut expected = vec![0; 100_000];
    let filled = hot.own.read_at(&mut expected, 4096).unwrap();
    assert_eq!(done.bytes, filled);
    assert!(target.take(0, filled) == expected[..filled]);
}

#[test]
fn written_through_the_page_cache() {
    let _alone = alone();
    changed_before_the_stream_arrives(|hot| {
        hot.writer(0).write_all_at(&random_bytes(2, 3 << 20), 123).unwrap();
    });
}

#[test]
fn written_past_the_page_cache() {
    let _alone = alone();
    changed_before_the_stream_arrives(|hot| {
        let page = random_bytes(3, 2 << 20);
        let start = page.as_ptr().align_offset(4096);
        match OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(&hot.path) {
            Ok(writer) => {
                writer.write_all_at(&page[start..start + (1 << 20)], 8192).unwrap();
            }
            // As on tmpfs before Linux 6.6. The kernel wanted the lease back all the same.
            Err(why) => println!("SKIPPED: written_past_the_page_cache: O_DIRECT: {why}"),
        }
    });
}

#[test]
fn written_by_another_process() {
    let _alone = alone();
    changed_before_the_stream_arrives(|hot| {
        let script = r#"printf changed | dd of="$0" bs=7 seek=600 conv=notrunc status=none"#;
        let done = std::process::Command::new("sh").args(["-c", script]).arg(&hot.path).status();
        assert!(done.unwrap().success());
    });
}

#[test]
fn written_by_the_library() {
    let _alone = alone();
    changed_before_the_stream_arrives(|hot| {
        let own = OpenOptions::new().read(true).write(true).open(&hot.path).unwrap();
        let file = transfer().file(own.as_fd()).unwrap();
        // Host memory: to free a GPU's memory waits for the stream that is held.
        let memory = random_bytes(4, 300_000);
        let address = memory.as_ptr().expose_provenance() as u64;
        let location = transfer().locate(address).unwrap();
        // SAFETY: memory of the test's own.
        let done = unsafe { transfer().call(Op::Write, &file, location, address, 300_000, 77) };
        assert_eq!(done.unwrap().bytes, 300_000);
    });
}

#[test]
fn truncated() {
    let _alone = alone();
    changed_before_the_stream_arrives(|hot| truncate(&hot.path, 50_000));
}

#[test]
fn a_hole_is_punched() {
    let _alone = alone();
    changed_before_the_stream_arrives(|hot| {
        let writer = hot.writer(0);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: numbers only.
        let done = unsafe { libc::fallocate(writer.as_raw_fd(), mode, 4096, 1 << 20) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    });
}

fn truncate(path: &Path, len: i64) {
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a NUL-terminated path.
    assert_eq!(unsafe { libc::truncate(path.as_ptr(), len) }, 0);
}

#[test]
fn the_files_child_does_not_disturb_a_held_read() {
    let _alone = alone();
    let hot = heated(FILE);
    let stream = Made::new();
    let gate = Gate::new();
    stream.hold(gate);
    let completion = put(&stream, &hot, params(1, 300_000));
    // SAFETY: the child ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a number to write.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    gate.open();
    stream.sync();
    assert_eq!(compare(&hot, &completion, 1, 300_000).route.mapped, 300_000);
}

/// A read between its lookup and its copy: the stream waits until `go` is dropped.
struct Arrived {
    stream: Made,
    completion: Receiver<Transferred>,
    go: Sender<()>,
}

impl Arrived {
    /// Waits until the stream has reached the read, and its bytes were found mapped.
    fn of(hot: &Hot, len: usize) -> Self {
        let stream = Made::new();
        let (report, completion) = channel();
        let (go, waits) = channel::<()>();
        let (arrived, arrival) = channel();
        let on_completion = Box::new(move |_, outcome: Result<Transferred, _>| {
            arrived.send(()).unwrap();
            // Until it is dropped.
            let _ = waits.recv();
            report.send(outcome.unwrap()).unwrap();
        });
        let at = (hot.location, hot.memory.address());
        let read = (Op::Read, &hot.file);
        hot.memory.put(0, &vec![0xA5; len]);
        // SAFETY: memory of the test's, which lives until the stream was passed.
        unsafe { transfer().enqueue(stream.raw(), read, at, params(0, len), on_completion) }
            .unwrap();
        arrival.recv_timeout(HANG).unwrap();
        Self { stream, completion, go }
    }

    /// Lets the stream go on. The bytes come out of the mapping: on the software GPU, which keeps
    /// those of the registration, `expected`; a GPU may see those that came `later`, or zeros.
    fn ends_with(self, hot_memory: &Memory, expected: &[u8], later: &[u8]) {
        drop(self.go);
        self.stream.sync();
        let done = self.completion.recv_timeout(HANG).unwrap();
        assert_eq!((done.bytes, done.route.mapped), (expected.len(), expected.len() as u64));
        let got = hot_memory.take(0, expected.len());
        if gpu().context.driver().is_software() {
            assert!(got == expected);
        } else {
            let known = |at: usize| [expected[at], later[at], 0].contains(&got[at]);
            assert!((0..got.len()).all(known));
        }
    }
}

/// Whether the library has the file mapped.
fn is_mapped(path: &Path) -> bool {
    // As the kernel names it: the build's directory may be a link.
    let dir = path.parent().unwrap().canonicalize().unwrap();
    let name = dir.join(path.file_name().unwrap());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| line.contains(name.to_str().unwrap()))
}

/// The longest pause of the thread that unregisters is 0.5 s.
fn wait_until_unmapped(path: &Path) {
    let clock = Instant::now();
    while is_mapped(path) {
        assert!(clock.elapsed() < HANG, "a range whose copy has ended stays registered");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_writer_does_not_wait_for_a_queued_copy_which_keeps_its_pages() {
    let _alone = alone();
    // One chunk of the staging buffers of these tests.
    const LEN: usize = 200_000;
    let hot = heated(2 << 20);
    let arrived = Arrived::of(&hot, LEN);
    let clock = Instant::now();
    let writer = hot.writer(0);
    assert!(clock.elapsed() < HANG / 6, "the lease was kept");
    let later = random_bytes(21, LEN);
    writer.write_all_at(&later, 0).unwrap();
    writer.set_len(0).unwrap();
    // Longer than the thread takes that unregisters.
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_mapped(&hot.path), "a copy will read it");
    arrived.ends_with(&hot.memory, &content()[..LEN], &later);
    wait_until_unmapped(&hot.path);
    drop(writer);
    assert_eq!(checked(&Made::new(), &hot, 0, LEN).bytes, 0, "the file is empty now");
}

/// To unregister memory waits for all streams, and launches of other threads wait for it: here that
/// stream waits for this thread.
#[test]
fn a_mapped_file_that_ends_waits_for_no_stream() {
    let _alone = alone();
    let hot = heated(2 << 20);
    let stream = Made::new();
    let gate = Gate::new();
    stream.hold(gate);
    let completion = put(&stream, &hot, params(0, 300_000));
    truncate(&hot.path, 1 << 20);
    wait_until_unmapped(&hot.path);
    let target = Memory::new(MemoryKind::Device, 100_000);
    let location = transfer().locate(target.address()).unwrap();
    // SAFETY: memory of the test's own.
    let done =
        unsafe { transfer().call(Op::Read, &hot.file, location, target.address(), 100_000, 4096) };
    assert_eq!(done.unwrap().bytes, 100_000);
    assert!(target.take(0, 100_000) == content()[4096..104_096]);
    gate.open();
    stream.sync();
    compare(&hot, &completion, 0, 300_000);
}

#[test]
fn a_file_that_is_closed_gives_its_lease_back_and_keeps_the_pages_of_a_queued_copy() {
    let _alone = alone();
    const LEN: usize = 200_000;
    let hot = heated(2 << 20);
    // Freed after the stream goes on, also where the test fails: to free it waits for the stream.
    let memory;
    let arrived = Arrived::of(&hot, LEN);
    let (kept, path);
    {
        let Hot { dir, path: of, file, own, memory: its, .. } = hot;
        drop((file, own));
        (kept, path, memory) = (dir, of, its);
    }
    // The transfer itself still has the file; its last holder goes with its last chunk.
    std::thread::sleep(Duration::from_millis(50));
    OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_mapped(&path), "a copy will read it");
    arrived.ends_with(&memory, &content()[..LEN], &content()[..LEN]);
    wait_until_unmapped(&path);
    drop(kept);
}

#[test]
fn a_file_that_is_closed_after_a_read_in_a_stream_is_not_kept_open() {
    let _alone = alone();
    let hot = heated(2 << 20);
    let stream = Made::new();
    assert_eq!(checked(&stream, &hot, 0, 100_000).route.mapped, 100_000);
    let Hot { dir: kept, path, file, own, .. } = hot;
    drop((file, own));
    // No transfer comes after it.
    wait_until_unmapped(&path);
    // With a lease it would fail, and without one it does not wait.
    OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
    drop((kept, dir()));
}

#[test]
fn many_streams_beside_writers_never_see_what_was_there_before() {
    let _alone = alone();
    const LEN: usize = 1 << 20;
    let version = |number: u64| number.to_le_bytes().repeat(LEN / 8);
    let hot = heated(2 << 20);
    hot.writer(0).write_all_at(&version(0), 0).unwrap();
    let streams: Vec<Made> = (0..4).map(|_| Made::new()).collect();
    let targets: Vec<_> = (0..4).map(|_| Memory::new(MemoryKind::Device, LEN)).collect();
    for number in 1..4_u64 {
        let clock = Instant::now();
        let mut mapped = 0;
        while mapped == 0 {
            let reads: Vec<_> = streams
                .iter()
                .zip(&targets)
                .flat_map(|(stream, target)| (0..8).map(move |turn| (stream, target, turn)))
                .map(|(stream, target, turn)| {
                    let params = params(turn * 131_072, 131_072);
                    let params = Params {
                        buffer_offset: Param::Immediate((turn * 131_072).cast_signed()),
                        ..params
                    };
                    stream.put(transfer(), (Op::Read, &hot.file), target.address(), params).unwrap()
                })
                .collect();
            streams.iter().for_each(Made::sync);
            mapped = reads.iter().map(|read| moved(read).route.mapped).sum();
            for target in &targets {
                assert!(target.take(0, LEN) == version(number - 1), "of version {number}");
            }
            assert!(clock.elapsed() < HANG, "not mapped before version {number}");
        }
        // A writer while reads are on their way: each shows the old bytes or the new ones.
        let reads: Vec<_> = streams
            .iter()
            .zip(&targets)
            .map(|(stream, target)| {
                stream
                    .put(transfer(), (Op::Read, &hot.file), target.address(), params(0, LEN))
                    .unwrap()
            })
            .collect();
        hot.writer(0).write_all_at(&version(number), 0).unwrap();
        streams.iter().for_each(Made::sync);
        assert!(reads.iter().all(|read| moved(read).bytes == LEN));
        for target in &targets {
            let got = target.take(0, LEN);
            let words = got.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            assert!(words.clone().all(|word| word == number || word == number - 1));
        }
    }
}

/// The same again in a process whose streams can't wait for semaphore values.
#[test]
fn all_tests_without_waits_for_semaphore_values() {
    transfer();
    if !gpu().context.driver().is_software() {
        println!("SKIPPED: only the software GPU can do without");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let mut again = std::process::Command::new(own);
    again.args(["--skip", "all_tests_without_waits"]).env("GPUIO_SOFT_STREAM_WORDS", "0");
    assert!(again.status().unwrap().success());
}
