//! Files in memory that are written again and again: the GPU fills their pages, and what is in the
//! file is always what `pwrite(2)` would have left there.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]

mod support;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_gpu::MemoryKind;
use gpuio_testkit::child;
use gpuio_transfer::{Batch, Entry, Fault, MemoryLocation, Op, Transfer, Transferred};
use support::hot::{EXTENT, FILE, HANG};
use support::{Memory, dir, memory_dir, random_bytes, settings};

/// A file that the library writes, and memory of the GPU.
struct Written {
    transfer: Transfer,
    file: gpuio_transfer::File,
    /// For looks at the file.
    own: File,
    memory: Memory,
    location: MemoryLocation,
}

/// On a driver whose writes go to the pages that were registered, and not to those that the file
/// has there since.
fn transfer(max_mapped: usize) -> Transfer {
    static KEEPS: Once = Once::new();
    // SAFETY: each test comes here first, so no other thread of the process uses the environment,
    // and the driver is not loaded yet.
    KEEPS.call_once(|| unsafe { std::env::set_var("GPUIO_SOFT_KEEP_PAGES", "1") });
    let mut settings = settings();
    settings.max_mapped_bytes = Some(max_mapped as u64);
    Transfer::new(settings)
}

fn opened(path: &Path, flags: i32) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).custom_flags(flags);
    options.open(path).unwrap()
}

fn memfd(flags: libc::c_uint) -> File {
    // SAFETY: a NUL-terminated name.
    let fd = unsafe { libc::memfd_create(c"written".as_ptr(), flags) };
    assert!(fd >= 0);
    // SAFETY: just opened, and not owned elsewhere.
    unsafe { File::from_raw_fd(fd) }
}

impl Written {
    fn new(own: File) -> Self {
        Self::by(transfer(1 << 30), own)
    }

    fn by(transfer: Transfer, own: File) -> Self {
        let memory = Memory::new(MemoryKind::Device, FILE);
        let location = transfer.locate(memory.address()).unwrap();
        let file = transfer.file(own.as_fd()).unwrap();
        Self { transfer, file, own, memory, location }
    }

    fn in_memory(dir: &Path) -> Self {
        Self::new(opened(&dir.join("file"), 0))
    }

    /// Writes the first `len` bytes of the memory.
    fn try_to_write(&self, offset: u64, len: usize) -> Result<Transferred, Fault> {
        let address = self.memory.address();
        // SAFETY: memory of the test's own, as long as this.
        unsafe { self.transfer.call(Op::Write, &self.file, self.location, address, len, offset) }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Transferred {
        self.memory.put(0, bytes);
        let done = self.try_to_write(offset, bytes.len()).unwrap();
        assert_eq!(done.bytes, bytes.len());
        done
    }

    /// Writes bytes and compares the whole file with `expected`, which gets them too.
    fn checked(&self, offset: usize, bytes: &[u8], expected: &mut Vec<u8>) -> Transferred {
        let done = self.write(offset as u64, bytes);
        expected.resize(expected.len().max(offset + bytes.len()), 0);
        expected[offset..offset + bytes.len()].copy_from_slice(bytes);
        let mapped = done.route.mapped;
        let len = bytes.len();
        assert!(self.content() == *expected, "{len} bytes at {offset}, {mapped} of them mapped");
        done
    }

    fn content(&self) -> Vec<u8> {
        content(&self.own)
    }

    /// Writes the whole file, twice by `pwrite`, and then until the GPU fills its pages.
    fn heat(&self) -> Vec<u8> {
        let (clock, mut expected) = (Instant::now(), Vec::new());
        for seed in 0.. {
            let done = self.checked(0, &random_bytes(seed, FILE), &mut expected);
            if done.route.mapped > 0 {
                assert!(seed > 1, "it was not written twice before");
                break;
            }
            assert!(clock.elapsed() < HANG, "the file is written again and again, and not mapped");
            std::thread::sleep(Duration::from_millis(20));
        }
        expected
    }

    /// Writes it for longer than it takes to be mapped.
    fn is_never_filled(&self) {
        let mut expected = Vec::new();
        for seed in 0..3 {
            self.checked(0, &random_bytes(seed, FILE), &mut expected);
        }
        // One thread maps what is hot, in its order. Another file that is hot now comes later.
        Self::by(self.transfer.clone(), memfd(0)).heat();
        assert_eq!(self.checked(0, &expected.clone(), &mut expected).route.mapped, 0);
    }
}

fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// How many of this process's mappings are of a file.
fn mappings(of: &File) -> usize {
    let inode = of.metadata().unwrap().ino().to_string();
    let mut maps = String::new();
    File::open("/proc/self/maps").unwrap().read_to_string(&mut maps).unwrap();
    maps.lines().filter(|line| line.split_whitespace().nth(4) == Some(&inode)).count()
}

/// As page-aligned, short and long ranges, at borders and over the end.
fn writes_of_all_kinds(file: &Written, mut expected: Vec<u8>) {
    let page = 4096;
    let ranges = [
        (0, 1 << 20, true),
        (page, 1 << 20, true),
        (1, 1 << 20, true),
        (page - 1, (1 << 20) + 2, true),
        (12_345, 200_000, true),
        (0, 128 << 10, true),
        (0, (128 << 10) - 1, false),
        (EXTENT - 100_001, 1 << 20, true),
        (EXTENT - page, 1 << 20, true),
        (EXTENT - (1 << 20) + page, 1 << 20, true),
        (EXTENT - (64 << 10), 128 << 10, true),
        (EXTENT + 3, 1 << 20, true),
        (FILE - (1 << 20), 1 << 20, true),
        (0, FILE, true),
    ];
    for (seed, (offset, len, filled)) in ranges.into_iter().enumerate() {
        let bytes = random_bytes(100 + seed as u64, len);
        let done = file.checked(offset, &bytes, &mut expected);
        let all = done.route.cached + done.route.direct;
        assert_eq!((all, done.bytes), (len as u64, len), "at {offset}");
        // The ends, and parts of extents that are too short.
        let most = if filled { len as u64 } else { 1 };
        assert!(done.route.mapped < most, "{len} at {offset}: {:?}", done.route);
        let least = if filled { len.saturating_sub(150_000).max(1) as u64 } else { 0 };
        assert!(done.route.mapped >= least, "{len} at {offset}: {:?}", done.route);
        assert_eq!(done.route.mapped % page as u64, 0);
    }
    // Behind the end: as ever.
    let done = file.checked(FILE - 5000, &random_bytes(3, 1 << 20), &mut expected);
    assert_eq!(done.route.mapped, 0);
    let done = file.checked(FILE + (2 << 20), &random_bytes(4, 1 << 20), &mut expected);
    assert_eq!(done.route.mapped, 0);
}

#[test]
fn a_file_of_tmpfs_is_filled_after_it_was_written_twice() {
    let dir = memory_dir();
    let file = Written::in_memory(dir.path());
    let expected = file.heat();
    let before = file.own.metadata().unwrap().modified().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(file.write(0, &expected[..1 << 20]).route.mapped > 0);
    assert!(file.own.metadata().unwrap().modified().unwrap() > before, "as by pwrite");
    writes_of_all_kinds(&file, expected);
}

#[test]
fn a_file_with_o_direct_and_one_without_a_name_are_filled() {
    let dir = memory_dir();
    let path = dir.path().join("file");
    // tmpfs refuses the flag before Linux 6.6.
    let mut direct = OpenOptions::new();
    direct.write(true).create_new(true).custom_flags(libc::O_DIRECT);
    if direct.open(&path).is_ok() {
        let file = Written::new(opened(&path, libc::O_DIRECT));
        let own = Written { own: opened(&path, 0), ..file };
        writes_of_all_kinds(&own, own.heat());
    }
    let file = Written::new(memfd(0));
    writes_of_all_kinds(&file, file.heat());
}

#[test]
fn batches_fill_pages_too() {
    let file = Written::new(memfd(0));
    let mut expected = file.heat();
    let bytes = random_bytes(7, 8 << 20);
    file.memory.put(0, &bytes);
    let batch: Batch = file.transfer.batch(8);
    let entries = (0..8_u64).map(|number| Entry {
        op: Op::Write,
        file: file.file.clone(),
        location: file.location,
        address: file.memory.address() + (number << 20),
        len: 1 << 20,
        offset: (number << 20) + 100,
        cookie: number,
    });
    // SAFETY: ranges of the test's own, side by side; the batch ends in this function.
    unsafe { batch.submit(entries.collect()) }.unwrap();
    for event in batch.events(8, 8, Some(HANG)) {
        assert!(event.outcome.unwrap().route.mapped > 0);
    }
    expected[100..100 + (8 << 20)].copy_from_slice(&bytes);
    assert!(file.content() == expected);
}

#[test]
fn what_can_not_be_filled_is_written_as_ever() {
    // A file that may be sealed: it can be, which pinned pages would forbid.
    let file = Written::new(memfd(libc::MFD_ALLOW_SEALING));
    file.is_never_filled();
    // SAFETY: numbers only.
    let sealed =
        unsafe { libc::fcntl(file.own.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
    assert_eq!(sealed, 0, "{}", std::io::Error::last_os_error());
    assert!(file.try_to_write(0, FILE).is_err());
    // One that is appended to, and a file system with a disk.
    let memory = memory_dir();
    Written::new(opened(&memory.path().join("file"), libc::O_APPEND)).is_never_filled();
    let disk = dir();
    if rustix::fs::statfs(disk.path()).unwrap().f_type != 0x0102_1994 {
        Written::in_memory(disk.path()).is_never_filled();
    }
    // A descriptor that only writes: it can't be mapped.
    let path = memory.path().join("written");
    let only = OpenOptions::new().write(true).create(true).truncate(false).open(&path).unwrap();
    Written { own: opened(&path, 0), ..Written::new(only) }.is_never_filled();
    // A descriptor that only reads.
    let path = memory.path().join("read");
    std::fs::write(&path, random_bytes(1, FILE)).unwrap();
    let file = Written::new(File::open(&path).unwrap());
    assert!(file.try_to_write(0, FILE).is_err());
}

#[test]
fn a_hole_stays_one() {
    let file = Written::new(memfd(0));
    file.own.set_len(FILE as u64).unwrap();
    let bytes = random_bytes(1, FILE);
    // All but a page.
    for _ in 0..8 {
        file.write(0, &bytes[..5 << 20]);
        file.write((5 << 20) + 4096, &bytes[..FILE - (5 << 20) - 4096]);
        std::thread::sleep(Duration::from_millis(20));
    }
    let blocks = file.own.metadata().unwrap().blocks();
    assert_eq!(blocks * 512, (FILE as u64 - 4096).next_multiple_of(4096));
    // Its other extent has none.
    let expected = file.content();
    file.memory.put(0, &expected);
    assert_eq!(file.try_to_write(0, 5 << 20).unwrap().route.mapped, 0);
    assert!(file.content() == expected);
}

#[test]
fn a_file_is_let_go_of_with_its_last_handle_and_its_pages_are_unpinned() {
    let dir = memory_dir();
    // Room for one of them.
    let transfer = transfer(FILE + (1 << 20));
    let mut number = 0;
    let mut next = || {
        number += 1;
        opened(&dir.path().join(format!("file{number}")), 0)
    };
    for _ in 0..3 {
        let file = Written::by(transfer.clone(), next());
        file.heat();
        assert!(mappings(&file.own) >= 2);
        let Written { own, file, .. } = file;
        drop(file);
        assert_eq!(mappings(&own), 0, "at once");
        // No descriptor that writes is left: the kernel grants this to readers of a file alone.
        let read = File::open(format!("/proc/self/fd/{}", own.as_raw_fd())).unwrap();
        drop(own);
        // SAFETY: numbers only.
        let lease = unsafe { libc::fcntl(read.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
        assert_eq!(lease, 0, "{}", std::io::Error::last_os_error());
    }
    // One that stays open gives way to another, when it was not written for some seconds.
    let first = Written::by(transfer.clone(), next());
    first.heat();
    Written::by(transfer, next()).heat();
    assert_eq!(mappings(&first.own), 0);
    let mut expected = first.content();
    first.checked(5, &random_bytes(9, 1 << 20), &mut expected);
}

#[test]
fn a_file_that_became_shorter_keeps_no_pages() {
    let file = Written::new(memfd(0));
    file.heat();
    file.own.set_len(100).unwrap();
    let clock = Instant::now();
    // Its beginning is registered still.
    while mappings(&file.own) > 2 {
        assert!(clock.elapsed() < HANG);
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut expected = file.content();
    file.checked(0, &random_bytes(9, FILE), &mut expected);
}

#[test]
fn a_file_that_becomes_longer_is_registered_anew() {
    let file = Written::new(memfd(0));
    for len in [2 << 20, 3 << 20] {
        let bytes = random_bytes(1, len);
        let clock = Instant::now();
        while file.write(0, &bytes).route.mapped < len as u64 - 4096 {
            assert!(clock.elapsed() < HANG);
        }
        assert!(file.content() == bytes);
    }
}

/// Punches a hole.
fn punch(file: &File, at: u64, len: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let (at, len) = (i64::try_from(at).unwrap(), i64::try_from(len).unwrap());
    // SAFETY: numbers only.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), mode, at, len) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// The same writes, truncations, holes and forks by the library and by `pwrite` leave the same.
#[test]
fn the_same_as_a_twin_that_pwrite_writes() {
    let file = Written::new(memfd(0));
    let twin = memfd(0);
    let first = file.heat();
    twin.write_all_at(&first, 0).unwrap();
    let mut state = 12_345_u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(state >> 33).unwrap() % end
    };
    let noise = random_bytes(99, FILE + 4096);
    let (mut filled, mut again) = (0, 0);
    for turn in 0..400 {
        match below(20) {
            0 => {
                let len = (FILE - below(3 << 20)) as u64;
                file.own.set_len(len).unwrap();
                twin.set_len(len).unwrap();
            }
            1 => {
                let (at, len) = (below(FILE) as u64, 1 + below(300_000) as u64);
                punch(&file.own, at, len);
                punch(&twin, at, len);
            }
            2 => {
                // Through another descriptor.
                let (at, len) = (below(FILE - 100_000), 1 + below(100_000));
                file.own.write_all_at(&noise[..len], at as u64).unwrap();
                twin.write_all_at(&noise[..len], at as u64).unwrap();
            }
            3 => forks(&file.own),
            _ => {
                let lens = [4096 * (1 + below(700)), 1 + below(3 << 20), FILE];
                let len = lens[[0, 0, 1, 1, 1, 2][below(6)]];
                let at = if len == FILE { 0 } else { below(FILE - len) };
                let at = if below(2) == 0 { at / 4096 * 4096 } else { at };
                let from = below(4096);
                let bytes = &noise[from..from + len];
                let mapped = file.write(at as u64, bytes).route.mapped;
                twin.write_all_at(bytes, at as u64).unwrap();
                filled += u32::from(mapped > 0);
                again += u32::from(mapped == 0);
                // Time to be mapped again.
                std::thread::sleep(Duration::from_millis(u64::from(mapped == 0)));
            }
        }
        if turn % 8 == 0 {
            assert!(file.content() == content(&twin), "turn {turn}: {filled} filled, {again} not");
        }
    }
    assert!(file.content() == content(&twin));
    assert!(filled > 5 && again > 5, "{filled} {again}");
}

/// A child that has none of the mappings, and ends.
fn forks(file: &File) {
    // SAFETY: the child reads a file of /proc and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = i32::from(mappings(file) > 0);
        // SAFETY: ends the process.
        unsafe { libc::_exit(code) };
    }
    let mut status = -1;
    // SAFETY: `status` is valid for the write of an int.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child has a mapping");
}

/// A change of a file during a write.
#[derive(Debug, Clone, Copy)]
enum Change {
    Cut(usize),
    /// Whole pages.
    Hole(usize, usize),
}

impl Change {
    fn make(self, file: &File) {
        match self {
            Self::Cut(len) => file.set_len(len as u64).unwrap(),
            Self::Hole(at, len) => punch(file, at as u64, len as u64),
        }
    }

    /// Whether a file is what this and a write of `value` over its `len` bytes leave. `whole`: one
    /// came after the other; else the write may be in pieces, and this between them.
    fn leaves(self, found: &[u8], len: usize, value: u8, whole: bool) -> bool {
        let (at, bytes) = match self {
            Self::Cut(at) => (at, len - at),
            Self::Hole(at, bytes) => (at, bytes),
        };
        let is = |part: &[u8], value: u8| part.iter().all(|byte| *byte == value);
        if found.len() < len {
            return matches!(self, Self::Cut(at) if found.len() == at) && is(found, value);
        }
        let inside = &found[at..at + bytes];
        let fits = match self {
            Self::Cut(_) if whole => is(inside, value),
            Self::Hole(..) if whole => is(inside, value) || is(inside, 0),
            _ => inside.iter().all(|byte| *byte == value || *byte == 0),
        };
        fits && is(&found[..at], value) && is(&found[at + bytes..], value)
    }
}

/// Another thread truncates the file or punches a hole beside a write that fills pages: the two are
/// as if one had come after the other.
#[test]
fn changes_beside_a_write_come_before_or_after_it() {
    const LEN: usize = (2 << 20) + 1234;
    let file = Written::new(memfd(0));
    let mut state = 1_u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(state >> 33).unwrap() % end
    };
    let (mut filled, mut again) = (0, 0);
    let (clock, mut took) = (Instant::now(), Duration::ZERO);
    while (filled < 8 || again < 8) && clock.elapsed() < HANG {
        // Whole, and mapped.
        let heats = Instant::now();
        let is_mapped = || file.try_to_write(0, LEN).unwrap().route.mapped > 0;
        while !is_mapped() && heats.elapsed() < HANG {}
        let at = below(LEN - (600 << 10));
        let change = match below(2) {
            0 => Change::Cut(at),
            _ => Change::Hole(at / 4096 * 4096, 4096 << below(8)),
        };
        let value = 1 + u8::try_from(below(250)).unwrap();
        file.memory.put(0, &vec![value; LEN]);
        let delay = took * u32::try_from(below(150)).unwrap() / 100;
        let begun = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !begun.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                let clock = Instant::now();
                while clock.elapsed() < delay {
                    std::hint::spin_loop();
                }
                change.make(&file.own);
            });
            begun.store(true, Ordering::Release);
            let clock = Instant::now();
            let done = file.try_to_write(0, LEN).unwrap();
            took = clock.elapsed().min(Duration::from_millis(50));
            done
        });
        let mapped = done.route.mapped > 0;
        *(if mapped { &mut filled } else { &mut again }) += 1;
        let found = file.content();
        assert!(change.leaves(&found, LEN, value, mapped), "{change:?}, {mapped}");
    }
    assert!(filled > 0 && again > 0, "{filled} {again}");
}

#[test]
fn a_limit_of_the_files_size_holds() {
    if !child::is_child(a_limit_of_the_files_size_holds) {
        return child::passes(a_limit_of_the_files_size_holds, &[]);
    }
    let file = Written::new(memfd(0));
    let before = file.heat();
    let limit = libc::rlimit { rlim_cur: 3 << 20, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a number and a constant.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    // SAFETY: a valid structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
    file.memory.put(0, &random_bytes(5, FILE));
    let refused = file.try_to_write(1 << 20, 8 << 20).unwrap_err();
    assert!(matches!(refused, Fault::File { errno: libc::EFBIG, .. }), "{refused}");
    assert!(file.content()[3 << 20..] == before[3 << 20..], "nothing behind the limit");
    let done = file.try_to_write(0, 3 << 20).unwrap();
    assert!(done.route.mapped > 0);
}

/// The description is the program's: its flags may change.
#[test]
fn a_file_that_is_appended_to_by_now_is_not_filled() {
    let file = Written::new(memfd(0));
    let mut expected = file.heat();
    let set = |flags| rustix::fs::fcntl_setfl(&file.own, flags).unwrap();
    set(rustix::fs::OFlags::APPEND);
    let bytes = random_bytes(5, (1 << 20) + 77);
    assert_eq!(file.write(100, &bytes).route.mapped, 0);
    expected.extend(&bytes);
    assert!(file.content() == expected, "all of it at the end");
    set(rustix::fs::OFlags::empty());
    assert!(file.checked(100, &bytes, &mut expected).route.mapped > 0);
}

#[test]
fn the_position_of_the_programs_descriptor_stays() {
    let file = Written::new(memfd(0));
    rustix::fs::seek(&file.own, rustix::fs::SeekFrom::Start(17)).unwrap();
    file.heat();
    assert_eq!(rustix::fs::tell(&file.own).unwrap(), 17);
}

/// Opening the file again would end it, by a signal, and so would not close it.
#[test]
fn a_write_lease_of_the_program_stays() {
    child::alone(&[], || {
        let dir = memory_dir();
        let file = Written::in_memory(dir.path());
        let lease = |call: i32, kind: i32| {
            // SAFETY: numbers only.
            unsafe { libc::fcntl(file.own.as_raw_fd(), call, kind) }
        };
        assert_eq!(lease(libc::F_SETLEASE, libc::F_WRLCK), 0);
        file.heat();
        let (address, len) = (file.memory.address(), FILE);
        // SAFETY: memory of the test's own, as long as this.
        let read =
            unsafe { file.transfer.call(Op::Read, &file.file, file.location, address, len, 0) };
        assert_eq!(read.unwrap().bytes, FILE);
        assert_eq!(lease(libc::F_GETLEASE, 0), libc::F_WRLCK);
    });
}

/// How many descriptors of this process are of a file.
fn descriptors(path: &Path) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link == path).count()
}

/// Closing any descriptor of the file would drop them.
#[test]
fn record_locks_of_the_program_stay() {
    for dir in [memory_dir(), dir()] {
        let path = dir.path().canonicalize().unwrap().join("file");
        let file = Written::new(opened(&path, 0));
        let seen = opened(&path, 0);
        let lock = |own: &File, call, kind: i32| {
            let l_type = libc::c_short::try_from(kind).unwrap();
            let mut lock = libc::flock64 { l_type, l_whence: 0, l_start: 5, l_len: 1, l_pid: 0 };
            // SAFETY: a valid structure.
            assert_eq!(unsafe { libc::fcntl(own.as_raw_fd(), call, &raw mut lock) }, 0);
            i32::from(lock.l_type)
        };
        let is_locked = || lock(&seen, libc::F_OFD_GETLK, libc::F_WRLCK) == libc::F_WRLCK;
        let read = || {
            let (address, len) = (file.memory.address(), FILE);
            // SAFETY: memory of the test's own, as long as this.
            let read =
                unsafe { file.transfer.call(Op::Read, &file.file, file.location, address, len, 0) };
            assert_eq!(read.unwrap().bytes, FILE);
        };
        let mut expected = Vec::new();
        file.checked(0, &random_bytes(1, FILE), &mut expected);
        // Cold, so that it is read past the page cache, where there is a disk.
        file.own.sync_all().unwrap();
        rustix::fs::fadvise(&file.own, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        lock(&file.own, libc::F_SETLK, libc::F_WRLCK);
        read();
        file.checked(0, &random_bytes(2, FILE), &mut expected);
        assert!(is_locked(), "while it is used");
        assert_eq!(descriptors(&path), 3, "opened again");
        lock(&file.own, libc::F_SETLK, libc::F_UNLCK);
        rustix::fs::fadvise(&file.own, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        read();
        lock(&file.own, libc::F_SETLK, libc::F_WRLCK);
        let Written { own, file, transfer, .. } = file;
        drop(file);
        assert!(is_locked(), "after the last handle");
        assert!(descriptors(&path) >= 3, "the library's are there");
        lock(&own, libc::F_SETLK, libc::F_UNLCK);
        // Another thread may look at them just now.
        let clock = Instant::now();
        while descriptors(&path) > 2 {
            drop(transfer.file(memfd(0).as_fd()).unwrap());
            assert!(clock.elapsed() < HANG);
        }
    }
}

/// The program's context is lost meanwhile: ours copies, and that is no success.
#[test]
fn a_lost_context_of_the_program_is_an_error() {
    let test = a_lost_context_of_the_program_is_an_error;
    if gpuio_testkit::gpu::on_system() {
        eprintln!("skipped: only the software GPU fails when it shall");
        return;
    }
    if !child::is_child(test) {
        return child::passes(test, &[("GPUIO_SOFT_FAIL", "cuStreamQuery:700")]);
    }
    let file = Written::new(memfd(0));
    file.memory.put(0, &random_bytes(1, FILE));
    let clock = Instant::now();
    loop {
        match file.try_to_write(0, FILE) {
            Ok(done) => assert_eq!(done.route.mapped, 0),
            Err(error) => break assert!(matches!(error, Fault::Gpu(_)), "{error}"),
        }
        assert!(clock.elapsed() < HANG);
    }
}

/// Errors of the driver: where the context can't be made, and in a copy into pages.
#[test]
fn where_the_driver_refuses_pwrite_writes() {
    let test = where_the_driver_refuses_pwrite_writes;
    if gpuio_testkit::gpu::on_system() {
        eprintln!("skipped: only the software GPU fails when it shall");
        return;
    }
    if !child::is_child(test) {
        child::passes(test, &[("GPUIO_SOFT_FAIL", "cuCtxCreate_v2:2")]);
        // The third copy, most often one into pages.
        return child::passes(test, &[("GPUIO_SOFT_FAIL", "cuMemcpyAsync:2:2:1")]);
    }
    let file = Written::new(memfd(0));
    let gpu = support::gpu();
    let clock = Instant::now();
    let (mut filled, mut of_staging) = (0, 0);
    for seed in 0..12 {
        let bytes = random_bytes(seed, FILE);
        let put = gpu.context.entered(|| {
            // SAFETY: both are as long as this, and the stream is waited for.
            unsafe {
                gpu.stream.h2d(gpuio_gpu::DevPtr(file.memory.address()), bytes.as_ptr(), FILE)
            }?;
            gpu.stream.sync()
        });
        put.unwrap().unwrap();
        // A copy into staging memory that fails is the caller's error, and the next write works.
        let done = file.try_to_write(0, FILE).or_else(|_| {
            of_staging += 1;
            file.try_to_write(0, FILE)
        });
        filled += u32::from(done.unwrap().route.mapped > 0);
        assert!(file.content() == bytes, "pass {seed}");
        std::thread::sleep(Duration::from_millis(50));
        assert!(clock.elapsed() < HANG);
    }
    assert!(of_staging <= 1 && (of_staging == 1 || filled < 3), "{filled} passes");
}

#[test]
fn two_handles_of_a_file_share_its_pages() {
    let dir = memory_dir();
    let path: PathBuf = dir.path().join("file");
    let file = Written::new(opened(&path, 0));
    let mut expected = file.heat();
    let count = mappings(&file.own);
    let second = Written::by(file.transfer.clone(), opened(&path, 0));
    // Its first write makes it known.
    second.checked(0, &random_bytes(1, 1 << 20), &mut expected);
    assert!(second.checked(0, &random_bytes(2, 1 << 20), &mut expected).route.mapped > 0);
    assert_eq!(mappings(&file.own), count);
}
