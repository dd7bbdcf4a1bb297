//! Descriptors of the library's in the program's table: how many, and what happens to those that
//! the program closes or replaces.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::batch::{destroy, fetch, set_up, submit};
use crate::client::{
    Cuda, Cufile, Entry, GOOD, alone, cuda, cufile, errno, name, on_system, random_bytes,
};
use crate::stream::{Kept, stream, sync};

const LEN: usize = 64 << 10;
const LIMIT: u64 = 1024;

fn limit() {
    let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
    // SAFETY: a valid structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

/// The numbers that are open, without that of the list itself.
fn open_numbers() -> BTreeSet<RawFd> {
    let list = std::fs::read_dir("/proc/self/fd").unwrap();
    let all = list.map(|one| one.unwrap().file_name().to_str().unwrap().parse().unwrap());
    all.collect::<Vec<RawFd>>().into_iter().filter(|&fd| is_open(fd)).collect()
}

fn is_open(fd: RawFd) -> bool {
    // SAFETY: numbers only.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

fn opened(path: &Path, flags: i32) -> File {
    let with = |flags| OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    // tmpfs takes O_DIRECT from Linux 6.6 on.
    with(flags).or_else(|_| with(0)).unwrap()
}

/// Files with bytes of their own.
fn files(directory: &Path, count: usize) -> Vec<PathBuf> {
    let made = (0..count).map(|number| {
        let path = directory.join(format!("file{number}"));
        std::fs::write(&path, random_bytes(number as u64, LEN)).unwrap();
        path
    });
    made.collect()
}

fn check(cuda: &Cuda, cufile: &Cufile, (handle, number): (usize, usize), memory: u64) {
    for (len, at) in [(LEN, 0), (4096, 8192)] {
        let read = cufile.read(handle, memory, len, i64::from(at), 0);
        assert_eq!(read, len.cast_signed(), "file {number}, errno {}", errno());
        let at = usize::try_from(at).unwrap();
        let expected = &random_bytes(number as u64, LEN)[at..at + len];
        assert!(cuda.get(memory, len) == expected, "file {number}");
    }
}

#[test]
fn two_descriptors_of_450_files_leave_room_for_the_programs_own() {
    const FILES: usize = 450;
    let name = name(two_descriptors_of_450_files_leave_room_for_the_programs_own);
    alone(name, &[], || {
        let directory = tempfile::tempdir().unwrap();
        let paths = files(directory.path(), FILES);
        limit();
        let (cuda, cufile) = (cuda(), cufile());
        let memory = cuda.room(LEN);
        // The system's driver has some dozens for each GPU of the machine, and the program 24.
        let dozens = if on_system() { 0 } else { 50 };
        let _driver: Vec<_> = (0..dozens).map(|_| File::open("/dev/null").unwrap()).collect();
        let files = FILES.min((1024 - open_numbers().len() - 24 - 16) / 2);
        for flags in [libc::O_DIRECT, 0] {
            let mut kept = Vec::new();
            for (number, path) in paths.iter().enumerate().take(files) {
                let file = opened(path, flags);
                let handle = cufile.register(&file).unwrap();
                check(&cuda, &cufile, (handle, number), memory);
                kept.push((file, handle));
            }
            // The program's own, some dozens.
            let own: Vec<_> = (0..24).map(|_| File::open("/dev/null").unwrap()).collect();
            for (number, (_, handle)) in kept.iter().enumerate().rev() {
                check(&cuda, &cufile, (*handle, number), memory);
                assert_eq!(cufile.write(*handle, memory, 4096, 8192, 0), 4096);
            }
            drop(own);
            for (_, handle) in kept {
                cufile.deregister(handle);
            }
        }
    });
}

#[test]
fn files_that_were_closed_and_not_deregistered_take_one_descriptor_each() {
    const FILES: usize = 900;
    let name = name(files_that_were_closed_and_not_deregistered_take_one_descriptor_each);
    alone(name, &[], || {
        let directory = tempfile::tempdir().unwrap();
        let paths = files(directory.path(), 40);
        limit();
        let (cuda, cufile) = (cuda(), cufile());
        let memory = cuda.room(LEN);
        let register = |number: usize| {
            let file = opened(&paths[number % 40], libc::O_DIRECT);
            let handle = cufile.register(&file).unwrap();
            drop(file);
            check(&cuda, &cufile, (handle, number % 40), memory);
            handle
        };
        let handles: Vec<_> = (0..FILES).map(register).collect();
        assert!(File::open("/dev/null").is_ok());
        for (number, handle) in handles.into_iter().enumerate() {
            check(&cuda, &cufile, (handle, number % 40), memory);
        }
    });
}

/// The answer of a transfer, and how many of them there are.
type Case = fn(&Cuda, &Cufile, usize, u64, bool) -> isize;
const CASES: [Case; 5] = [
    |_, cufile, handle, memory, writes| one(cufile, (handle, memory, LEN), writes),
    |_, cufile, handle, memory, writes| one(cufile, (handle, memory, 4096), writes),
    |_, cufile, handle, _, writes| {
        let mut host = vec![0x77_u8; LEN];
        one(cufile, (handle, host.as_mut_ptr().expose_provenance() as u64, LEN), writes)
    },
    |_, cufile, handle, memory, writes| {
        let batch = set_up(cufile, 8).unwrap();
        let entry = |number: i64| Entry {
            mode: 1,
            base: memory,
            file_offset: number * 8192,
            buffer_offset: number * 8192,
            len: 8192,
            handle,
            opcode: i32::from(writes),
            cookie: 0,
        };
        assert_eq!(submit(cufile, batch, &mut (0..8).map(entry).collect::<Vec<_>>()), GOOD);
        let worst = fetch(cufile, batch, 8, 8, None).iter().map(|event| event.result).max();
        destroy(cufile, batch);
        worst.unwrap()
    },
    |cuda, cufile, handle, memory, writes| {
        let stream = stream(cuda);
        let mut kept = Kept::new(LEN, 0, 0);
        let call = if writes { cufile.cuFileWriteAsync } else { cufile.cuFileReadAsync };
        if kept.put(call, handle, memory, stream) != GOOD {
            return -1;
        }
        sync(cuda, stream);
        kept.done()
    },
];

fn one(cufile: &Cufile, (handle, memory, len): (usize, u64, usize), writes: bool) -> isize {
    if writes {
        cufile.write(handle, memory, len, 0, 0)
    } else {
        cufile.read(handle, memory, len, 0, 0)
    }
}

/// Whether numbers that are not looked at may be closed: CUDA's driver does not go on without its
/// own (error 719).
#[expect(clippy::print_stdout, reason = "a test that was left out is named")]
fn may_close_all() -> bool {
    if on_system() {
        println!("SKIPPED: the system's driver needs its descriptors");
    }
    !on_system()
}

/// Drops a file's pages from the cache, so that all ways of reading are used.
fn make_cold(file: &File) {
    file.sync_all().unwrap();
    // SAFETY: numbers only.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// A short read trusts a look of the last milliseconds.
fn wait_for_the_next_look() {
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    let at = |time: rustix::time::Timespec| time.tv_sec * 1000 + time.tv_nsec / 1_000_000;
    let began = at(now());
    while at(now()) < began + 20 {
        std::thread::yield_now();
    }
}

/// Puts a victim in the place of every number of the library's, and transfers.
fn replaced(flags: i32, by_closing: bool) {
    let (cuda, cufile) = (cuda(), cufile());
    let directory = tempfile::tempdir().unwrap();
    let paths = files(directory.path(), 2);
    let (mut file, victim) = (Some(opened(&paths[0], flags)), &paths[1]);
    let memory = cuda.with(&random_bytes(99, LEN));
    let programs = open_numbers();
    let handle = cufile.register(file.as_ref().unwrap()).unwrap();
    for cold in [true, false] {
        for case in CASES {
            if cold {
                make_cold(file.as_ref().unwrap());
            }
            assert!(case(&cuda, &cufile, handle, memory, false) > 0);
            assert!(case(&cuda, &cufile, handle, memory, true) > 0);
        }
    }
    let ours: Vec<RawFd> = open_numbers().difference(&programs).copied().collect();
    assert!(!ours.is_empty());
    let bytes = std::fs::read(victim).unwrap();
    let mut victims = Vec::new();
    if by_closing {
        drop(file.take());
        let last = ours.iter().max().copied().unwrap();
        // SAFETY: the test's and the library's; standard streams stay.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
        while victims.last().is_none_or(|one: &File| one.as_raw_fd() < last) {
            victims.push(opened(victim, flags));
        }
    } else {
        let own = opened(victim, flags);
        for &fd in &ours {
            // SAFETY: what a program may do with any number.
            assert_eq!(unsafe { libc::dup2(own.as_raw_fd(), fd) }, fd);
        }
        victims.push(own);
    }
    wait_for_the_next_look();
    for (number, case) in CASES.iter().enumerate() {
        let context = format!("case {number}, flags {flags:#o}, closed {by_closing}");
        assert!(case(&cuda, &cufile, handle, memory, true) < 0, "{context}: a write");
        assert!(case(&cuda, &cufile, handle, memory, false) < 0, "{context}: a read");
        assert!(std::fs::read(victim).unwrap() == bytes, "{context}: another file was written");
    }
    assert_eq!((cufile.write(handle, memory, 4096, 0, 0), errno()), (-1, libc::EBADF));
    cufile.deregister(handle);
    for &fd in &ours {
        assert!(is_open(fd), "the library closed the program's descriptor {fd}");
    }
    let mut stored = vec![0; LEN];
    victims[0].read_exact_at(&mut stored[..0], 0).unwrap();
    // Files that are registered now are not concerned.
    let other = opened(&paths[0], 0);
    let handle = cufile.register(&other).unwrap();
    assert_eq!(cufile.read(handle, memory, LEN, 0, 0), LEN.cast_signed());
    other.read_exact_at(&mut stored, 0).unwrap();
    assert!(cuda.get(memory, LEN) == stored);
    assert!(std::fs::read(victim).unwrap() == bytes);
}

#[test]
fn numbers_that_a_program_replaced_are_neither_used_nor_closed() {
    let name = name(numbers_that_a_program_replaced_are_neither_used_nor_closed);
    alone(name, &[], || {
        replaced(0, false);
        replaced(libc::O_DIRECT, false);
    });
}

#[test]
fn numbers_that_a_program_closed_and_used_again_are_neither_used_nor_closed() {
    let name = name(numbers_that_a_program_closed_and_used_again_are_neither_used_nor_closed);
    if !may_close_all() {
        return;
    }
    alone(name, &[], || {
        limit();
        replaced(libc::O_DIRECT, true);
    });
}

/// As daemons do.
#[test]
fn a_loop_over_the_first_numbers_takes_nothing_from_the_library() {
    let name = name(a_loop_over_the_first_numbers_takes_nothing_from_the_library);
    if !may_close_all() {
        return;
    }
    alone(name, &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let paths = files(directory.path(), 1);
        let memory = cuda.room(LEN);
        let file = std::mem::ManuallyDrop::new(opened(&paths[0], libc::O_DIRECT));
        let handle = cufile.register(&*file).unwrap();
        for fd in 3..256 {
            // SAFETY: the test's numbers, which it uses no more.
            unsafe { libc::close(fd) };
        }
        check(&cuda, &cufile, (handle, 0), memory);
        assert_eq!(cufile.write(handle, memory, 4096, 8192, 0), 4096);
    });
}
