//! Files that are read again and again are read in the page cache by the GPU itself, and never
//! show bytes that `pread(2)` would not.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(
    clippy::print_stdout,
    reason = "what is skipped is to be seen, and a child is to be heard"
)]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]

mod support;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpuio_gpu::MemoryKind;
use gpuio_testkit::child;
use gpuio_transfer::{Batch, Entry, Op};
use support::hot::{EXTENT, FILE, HANG, Hot, content, leased_dir, transfer};
use support::{Memory, dir, random_bytes};

#[test]
fn a_hot_file_is_mapped_and_its_bytes_are_the_files() {
    let hot = Hot::new();
    assert_eq!(hot.checked(0, FILE).route.mapped, 0, "a first read is none");
    hot.heat();
    let mapped = hot.check_ranges();
    // All but the ranges behind the end.
    let all = 1 + 4096 + 3000 + 5000 + (64 << 10) + 200_000 + (1 << 20);
    let tail = FILE - (EXTENT + 1_000_000);
    assert_eq!(mapped, (all + tail + 1 + FILE) as u64);
    let done = hot.read(0, FILE);
    assert_eq!((done.route.cached, done.route.by_copy), (FILE as u64, FILE as u64));
    // Other tests may have the resident kernel stop for a while; a copy then does it.
    let clock = Instant::now();
    loop {
        let done = hot.read(0, 4096);
        assert_eq!(done.route.mapped, 4096);
        if done.route.by_kernel == 4096 {
            break;
        }
        assert!(clock.elapsed() < HANG, "not by the kernel");
    }
}

#[test]
fn small_reads_make_a_file_hot_too() {
    let hot = Hot::of(EXTENT);
    let clock = Instant::now();
    let mut number = 0_u64;
    while hot.checked(number % 4096 * 4096, 4096).route.mapped == 0 {
        number = number.wrapping_mul(5).wrapping_add(12_345);
        // Faster than each compared.
        for at in 0..64 {
            hot.read((number + at) % 4096 * 4096, 4096);
        }
        assert!(clock.elapsed() < HANG, "not mapped");
    }
}

#[test]
fn a_file_that_is_read_once_is_not_mapped() {
    let hot = Hot::new();
    for offset in (0..FILE as u64).step_by(1 << 20) {
        assert_eq!(hot.checked(offset, 1 << 20).route.mapped, 0);
    }
    let other = Hot::new();
    other.heat();
    assert_eq!(hot.checked(0, 4096).route.mapped, 0);
}

#[test]
fn batches_read_mapped_bytes() {
    let hot = Hot::new();
    hot.heat();
    let batch: Batch = transfer().batch(128);
    let at = |number: u64| (number * 299_993) % (FILE as u64 - 9000);
    let entries = (0..128).map(|number| Entry {
        op: Op::Read,
        file: hot.file.clone(),
        location: hot.location,
        address: hot.memory.address() + number * 9000,
        len: 9000,
        offset: at(number),
        cookie: number,
    });
    // SAFETY: ranges of the test's own, side by side; the batch ends in this function.
    unsafe { batch.submit(entries.collect()) }.unwrap();
    let events = batch.events(128, 128, Some(HANG));
    assert_eq!(events.len(), 128);
    for event in events {
        let done = event.outcome.unwrap();
        assert_eq!((done.bytes, done.route.mapped), (9000, 9000));
        let mut expected = vec![0; 9000];
        hot.own.read_exact_at(&mut expected, at(event.cookie)).unwrap();
        let start = usize::try_from(event.cookie).unwrap() * 9000;
        assert!(hot.memory.take(start, 9000) == expected, "entry {}", event.cookie);
    }
}

/// Changes a mapped file, and compares before, meanwhile and after.
fn changed_by(change: impl FnOnce(&Hot)) {
    let hot = Hot::new();
    hot.heat();
    assert!(hot.check_ranges() > 0);
    change(&hot);
    assert_eq!(hot.check_ranges(), 0, "the rule ended with the change");
}

#[test]
fn written_through_the_page_cache() {
    changed_by(|hot| {
        let writer = hot.writer(0);
        hot.check_ranges();
        writer.write_all_at(&random_bytes(2, 3 << 20), 123).unwrap();
        hot.check_ranges();
    });
}

#[test]
fn written_past_the_page_cache() {
    changed_by(|hot| {
        // At a multiple of a page, as O_DIRECT wants memory, offset and length.
        let page = random_bytes(3, 2 << 20);
        let start = page.as_ptr().align_offset(4096);
        let mut writer = OpenOptions::new();
        match writer.write(true).custom_flags(libc::O_DIRECT).open(&hot.path) {
            Ok(writer) => {
                let part = &page[start..start + (1 << 20)];
                writer.write_all_at(part, EXTENT as u64 - 8192).unwrap();
            }
            // As on tmpfs before Linux 6.6. The kernel wanted the lease back all the same.
            Err(why) => println!("SKIPPED: written_past_the_page_cache: O_DIRECT: {why}"),
        }
    });
}

#[test]
fn written_by_another_process() {
    changed_by(|hot| {
        let script = r#"printf changed | dd of="$0" bs=7 seek=5 conv=notrunc status=none"#;
        let done = std::process::Command::new("sh").args(["-c", script]).arg(&hot.path).status();
        assert!(done.unwrap().success());
    });
}

#[test]
fn written_by_the_library() {
    changed_by(|hot| {
        let own = OpenOptions::new().read(true).write(true).open(&hot.path).unwrap();
        let file = transfer().file(own.as_fd()).unwrap();
        hot.memory.put(0, &random_bytes(4, 300_000));
        let (location, address) = (hot.location, hot.memory.address());
        // SAFETY: memory of the test's own.
        let done = unsafe { transfer().call(Op::Write, &file, location, address, 300_000, 77) };
        assert_eq!(done.unwrap().bytes, 300_000);
        hot.check_ranges();
    });
}

#[test]
fn written_through_a_mapping() {
    changed_by(|hot| {
        let writer = OpenOptions::new().read(true).write(true).open(&hot.path).unwrap();
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping touches no other.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), 8192, prot, flags, writer.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED);
        // The mapping alone keeps the file open for writing.
        drop(writer);
        hot.heat_in_vain();
        // SAFETY: 8192 bytes of the mapping; the GPU only reads the page cache.
        unsafe { at.cast::<u8>().write_bytes(0x5A, 8192) };
        hot.check_ranges();
        // SAFETY: mapped above.
        unsafe { libc::munmap(at, 8192) };
    });
}

#[test]
fn truncated() {
    changed_by(|hot| {
        let path = std::ffi::CString::new(hot.path.to_str().unwrap()).unwrap();
        // SAFETY: a NUL-terminated path.
        let cut = |len: i64| assert_eq!(unsafe { libc::truncate(path.as_ptr(), len) }, 0);
        cut(1_000_000);
        hot.check_ranges();
        // Longer again: zeros where bytes were.
        cut(i64::try_from(FILE).unwrap());
        hot.check_ranges();
    });
}

#[test]
fn emptied_by_opening() {
    changed_by(|hot| drop(OpenOptions::new().write(true).truncate(true).open(&hot.path).unwrap()));
}

#[test]
fn appended() {
    changed_by(|hot| {
        let mut writer = OpenOptions::new().append(true).open(&hot.path).unwrap();
        writer.write_all(&random_bytes(5, 5000)).unwrap();
    });
}

#[test]
fn a_hole_is_punched() {
    changed_by(|hot| {
        let writer = hot.writer(0);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: numbers only.
        let done = unsafe { libc::fallocate(writer.as_raw_fd(), mode, 4096, 1 << 20) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    });
}

#[test]
fn renamed_over_and_removed() {
    let hot = Hot::new();
    hot.heat();
    let other = hot.dir.path().join("other");
    std::fs::write(&other, random_bytes(9, FILE)).unwrap();
    std::fs::rename(&other, &hot.path).unwrap();
    // The descriptor names the file that it was opened for, as ever.
    assert!(hot.check_ranges() > 0, "nothing changed in it");
    let new = File::open(&hot.path).unwrap();
    let new = Hot::with(transfer(), dir(), hot.path.clone(), new);
    new.heat();
    new.check_ranges();
    std::fs::remove_file(&hot.path).unwrap();
    assert!(hot.check_ranges() > 0);
    assert!(new.check_ranges() > 0);
}

#[test]
fn a_file_that_is_open_for_writing_is_not_mapped() {
    let hot = Hot::new();
    let writer = hot.writer(0);
    hot.heat_in_vain();
    writer.write_all_at(b"changed", 0).unwrap();
    hot.check_ranges();
    drop(writer);
    // Its pause over, the file is.
    hot.heat();
}

#[test]
fn a_descriptor_for_reading_and_writing_is_not_mapped() {
    let dir = dir();
    let path = dir.path().join("hot");
    std::fs::write(&path, content()).unwrap();
    let own = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    Hot::with(transfer(), dir, path, own).heat_in_vain();
}

#[test]
fn after_the_writer_it_is_mapped_again_with_the_new_bytes() {
    let hot = Hot::new();
    for seed in 11..13 {
        hot.heat();
        hot.writer(0).write_all_at(&random_bytes(seed, FILE), 0).unwrap();
        assert_eq!(hot.checked(0, FILE).route.mapped, 0);
    }
    hot.heat();
    assert!(hot.check_ranges() > 0);
}

#[test]
fn several_descriptors_share_a_mapping() {
    let hot = Hot::new();
    hot.heat();
    let own = File::open(&hot.path).unwrap();
    let second = transfer().file(own.as_fd()).unwrap();
    // One read makes the second file known as the first one's.
    let address = hot.memory.address();
    // SAFETY: memory of the test's own.
    let read =
        || unsafe { transfer().call(Op::Read, &second, hot.location, address, FILE, 0) }.unwrap();
    assert_eq!(read().route.mapped, 0);
    assert_eq!(read().route.mapped, FILE as u64);
}

#[test]
fn a_lease_ends_with_the_last_file() {
    let hot = Hot::new();
    hot.heat();
    let path = hot.path.clone();
    let Hot { dir, file, .. } = hot;
    drop(file);
    // Without a lease this does not wait, and with one it would fail.
    let flags = libc::O_NONBLOCK;
    OpenOptions::new().write(true).custom_flags(flags).open(&path).unwrap();
    drop(dir);
}

/// A file of `memfd_create(2)`, with its first descriptor.
fn memfd() -> (File, PathBuf) {
    // SAFETY: a NUL-terminated name.
    let fd = unsafe { libc::memfd_create(c"hot".as_ptr(), libc::MFD_ALLOW_SEALING) };
    assert!(fd >= 0);
    // SAFETY: just opened, and not owned elsewhere.
    let mut own = unsafe { File::from_raw_fd(fd) };
    own.write_all(content()).unwrap();
    (own, PathBuf::from(format!("/proc/self/fd/{fd}")))
}

#[test]
fn a_file_in_memory_is_not_mapped_for_a_reader_while_its_maker_can_write() {
    let (maker, path) = memfd();
    // The kernel would grant a lease: the descriptor that writes does not count.
    let hot = Hot::at(&path);
    hot.heat_in_vain();
    maker.write_all_at(&random_bytes(2, 1 << 20), 4096).unwrap();
    maker.set_len(EXTENT as u64).unwrap();
    hot.check_ranges();
}

#[test]
fn a_sealed_file_in_memory_is_mapped_though_it_is_open_for_writing() {
    let (own, path) = memfd();
    let fd = own.as_raw_fd();
    let hot = Hot::with(transfer(), dir(), path, own);
    hot.heat_in_vain();
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: numbers only.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) }, 0);
    hot.heat();
    assert!(hot.check_ranges() > 0);
    assert!(hot.own.write_at(b"x", 0).is_err(), "sealed");
}

/// Blocks of 4 KiB which each hold a number, everywhere the same.
fn versions(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(FILE / 8)
}

#[test]
fn readers_beside_a_writer_never_see_what_was_there_before() {
    let hot = Hot::new();
    let written = AtomicU64::new(0);
    let end = AtomicBool::new(false);
    let mapped = AtomicU64::new(0);
    hot.writer(0).write_all_at(&versions(0), 0).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (hot, written, end, mapped) = (&hot, &written, &end, &mapped);
            scope.spawn(move || {
                let memory = Memory::new(MemoryKind::Device, FILE);
                let location = transfer().locate(memory.address()).unwrap();
                let mut turn = thread;
                while !end.load(Ordering::Acquire) {
                    turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let len = [4096, 64 << 10, 1 << 20][usize::try_from(turn >> 60).unwrap() % 3];
                    let offset = (turn >> 20) % ((FILE - len) as u64 / 4096) * 4096;
                    let before = written.load(Ordering::Acquire);
                    let at = memory.address();
                    // SAFETY: memory of this thread's own.
                    let done =
                        unsafe { transfer().call(Op::Read, &hot.file, location, at, len, offset) }
                            .unwrap();
                    mapped.fetch_add(done.route.mapped, Ordering::Relaxed);
                    let got = memory.take(0, len);
                    let oldest = got.as_chunks::<8>().0.iter().map(|it| u64::from_le_bytes(*it));
                    let oldest = oldest.min().unwrap();
                    assert!(oldest >= before, "version {oldest} at {offset} after {before}");
                }
            });
        }
        for number in 1..4 {
            // Not before it is mapped again.
            let seen = mapped.load(Ordering::Relaxed);
            let clock = Instant::now();
            while mapped.load(Ordering::Relaxed) == seen {
                assert!(clock.elapsed() < HANG, "not mapped before version {number}");
                std::thread::sleep(Duration::from_millis(10));
            }
            let writer = hot.writer(0);
            writer.write_all_at(&versions(number), 0).unwrap();
            written.store(number, Ordering::Release);
        }
        end.store(true, Ordering::Release);
    });
}

#[test]
fn a_child_that_outlives_its_parent_keeps_no_lease() {
    if let Some(path) = std::env::var_os("GPUIO_TEST_HOT") {
        return parent_of_a_survivor(Path::new(&path));
    }
    let dir = leased_dir();
    let path = dir.path().join("hot");
    std::fs::write(&path, content()).unwrap();
    let hot = [("GPUIO_TEST_HOT", path.to_str().unwrap())];
    let parent = child::output(a_child_that_outlives_its_parent_keeps_no_lease, &hot);
    let text = String::from_utf8_lossy(&parent.stdout);
    let number = text.lines().find_map(|line| line.strip_prefix("survivor ")).expect(&text);
    let survivor: i32 = number.trim().parse().unwrap();
    // The parent is gone, its child is not.
    // SAFETY: numbers only.
    assert_eq!(unsafe { libc::kill(survivor, 0) }, 0, "the child lives");
    let opened = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&path);
    // SAFETY: numbers only.
    unsafe { libc::kill(survivor, libc::SIGKILL) };
    opened.expect("a lease is left");
}

#[test]
fn mapped_files_give_their_descriptors_back_where_few_are_left() {
    const CHILD: &str = "GPUIO_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let test = mapped_files_give_their_descriptors_back_where_few_are_left;
        return child::passes(test, &[(CHILD, "1")]);
    }
    let limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
    // SAFETY: a valid structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let hot = [Hot::new(), Hot::new(), Hot::new()];
    let before = count();
    hot.iter().for_each(Hot::heat);
    assert!(count() >= before + 6, "two for each: {before}, {}", count());
    let mut own: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    own.truncate(own.len() - 40);
    // It is seen when a file is registered; without that within a second.
    let full = count();
    let other = Hot::of(1 << 20);
    let clock = Instant::now();
    while count() > full - 6 + 2 {
        assert!(clock.elapsed() < HANG, "{} of {full} are open", count());
        std::thread::sleep(Duration::from_millis(1));
    }
    for one in &hot {
        assert_eq!(one.check_ranges(), 0);
    }
    drop((own, other));
    hot[0].heat();
    assert!(hot[0].check_ranges() > 0);
}

/// Maps the file, forks and ends.
fn parent_of_a_survivor(path: &Path) {
    let own = File::open(path).unwrap();
    let hot = Hot::with(transfer(), dir(), path.to_owned(), own);
    hot.heat();
    // SAFETY: the child sleeps until it is killed, or for a while.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A child of a program with threads: closes the pipe to the test and sleeps.
        // SAFETY: numbers only; nothing here uses the descriptor.
        unsafe { libc::close(1) };
        // SAFETY: as above.
        unsafe { libc::close(2) };
        // SAFETY: numbers only.
        unsafe { libc::sleep(600) };
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    println!("survivor {child}");
    std::io::stdout().flush().unwrap();
    let Hot { dir, .. } = hot;
    std::mem::forget(dir);
    // As a program that is killed: nothing is given back but by the kernel.
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) };
}
