//! Mappings: their bytes, their state beside writers, and what is refused.
#![allow(unsafe_code, reason = "the interface under test is unsafe")]
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]

mod support;

use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::time::Instant;

use gpuio_testkit::child;
use support::{
    DRIVER, HANG, Mapped, SURE, WANTED, cuda, dir, file, gpuio, on_system, random_bytes, writer,
};

/// A file that ends inside a page.
const FILE: usize = (3 << 20) + 1234;

/// Offsets and lengths of all kinds.
const RANGES: [(u64, u64); 8] = [
    (0, 1),
    (0, FILE as u64),
    (1, FILE as u64 - 2),
    (4095, 2),
    (4096, 4096),
    (4097, 3000),
    (1_234_567, 1 << 20),
    (FILE as u64 - 1, 1),
];

fn check_ranges(path: &Path) {
    let (gpuio, cuda) = (gpuio(), cuda());
    cuda.start();
    let written = random_bytes(1, FILE);
    let own = file(path, &written);
    let mapped: Vec<Mapped> =
        RANGES.iter().map(|(offset, length)| gpuio.map(&own, *offset, *length)).collect();
    // A mapping does not need the caller's descriptor.
    drop(own);
    for ((offset, length), map) in RANGES.into_iter().zip(mapped) {
        let (first, len) = (usize::try_from(offset).unwrap(), usize::try_from(length).unwrap());
        assert_eq!(gpuio.length(map), length);
        let seen = cuda.get(gpuio.address(map), len);
        assert!(seen == written[first..first + len], "{length} bytes at {offset}");
        assert_eq!(gpuio.state(map), SURE);
        assert_eq!(gpuio.close(map), 0, "{}", gpuio.error());
    }
}

#[test]
fn the_bytes_are_those_of_the_file() {
    let dir = dir();
    check_ranges(&dir.path().join("file"));
    // In memory: another file system.
    check_ranges(&tempfile::tempdir_in("/dev/shm").unwrap().path().join("file"));
}

#[test]
fn threads_map_and_close_at_once() {
    let (dir, written) = (dir(), random_bytes(1, FILE));
    let own = file(&dir.path().join("file"), &written);
    let (gpuio, cuda) = (gpuio(), cuda());
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let (own, written) = (&own, &written);
            scope.spawn(move || {
                cuda.start();
                for turn in 0..16_usize {
                    let (first, len) = (thread * 100_003 + turn * 501, 70_001 + turn);
                    let map = gpuio.map(own, first as u64, len as u64);
                    assert!(cuda.get(gpuio.address(map), len) == written[first..first + len]);
                    assert_eq!(gpuio.close(map), 0);
                }
            });
        }
    });
    assert!(writer(&dir.path().join("file")).is_ok(), "no lease is left");
}

#[test]
fn the_callers_context_stays_current() {
    let (dir, gpuio, cuda) = (dir(), gpuio(), cuda());
    let own = file(&dir.path().join("file"), &random_bytes(1, 5000));
    let current = || {
        let mut context = 1;
        // SAFETY: valid for the write of a pointer.
        assert_eq!(unsafe { (cuda.cuCtxGetCurrent)(&raw mut context) }, 0);
        context
    };
    std::thread::spawn(move || {
        // SAFETY: as the driver's manual has it.
        assert_eq!(unsafe { (cuda.cuInit)(0) }, 0);
        assert_eq!(current(), 0);
        let map = gpuio.map(&own, 0, 5000);
        assert_eq!(current(), 0);
        assert_eq!(gpuio.close(map), 0);
        assert_eq!(current(), 0);
        drop(dir);
    })
    .join()
    .unwrap();
}

#[test]
fn who_wants_to_write_is_refused_until_the_mapping_is_closed() {
    let (dir, gpuio) = (dir(), gpuio());
    let path = dir.path().join("file");
    let map = gpuio.map(&file(&path, &random_bytes(1, FILE)), 100, 1000);
    // Readers change nothing.
    drop(File::open(&path).unwrap());
    assert_eq!(gpuio.state(map), SURE);
    let refused = writer(&path).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EWOULDBLOCK));
    assert_eq!(gpuio.state(map), WANTED);
    // It does not wait any more, and may come back.
    assert_eq!(gpuio.state(map), WANTED);
    assert_eq!(gpuio.close(map), 0);
    writer(&path).unwrap().write_all(b"new").unwrap();
    // A mapping that comes later has the new bytes.
    let map = gpuio.map(&File::open(&path).unwrap(), 0, 3);
    cuda().start();
    assert_eq!(cuda().get(gpuio.address(map), 3), b"new");
    assert_eq!((gpuio.state(map), gpuio.close(map)), (SURE, 0));
}

#[test]
fn who_waits_to_write_is_seen_and_let_in() {
    let (dir, gpuio) = (dir(), gpuio());
    let path = dir.path().join("file");
    for truncates in [false, true] {
        let map = gpuio.map(&file(&path, &random_bytes(1, FILE)), 0, FILE as u64);
        let path = path.clone();
        let waits = std::thread::spawn(move || {
            File::options().write(true).truncate(truncates).open(path).map(drop)
        });
        let began = Instant::now();
        while gpuio.state(map) == SURE {
            assert!(began.elapsed() < HANG, "the writer is not seen");
            std::thread::yield_now();
        }
        assert_eq!(gpuio.state(map), WANTED);
        assert_eq!(gpuio.close(map), 0);
        waits.join().unwrap().unwrap();
    }
}

/// As a change that ends no lease.
#[test]
fn another_time_of_modification_is_seen() {
    let (dir, gpuio) = (dir(), gpuio());
    let own = file(&dir.path().join("file"), &random_bytes(1, 5000));
    let map = gpuio.map(&own, 0, 5000);
    // That of access is none.
    own.set_times(std::fs::FileTimes::new().set_accessed(std::time::UNIX_EPOCH)).unwrap();
    assert_eq!(gpuio.state(map), SURE);
    own.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!((gpuio.state(map), gpuio.state(map)), (WANTED, WANTED));
    assert_eq!(gpuio.close(map), 0);
    let map = gpuio.map(&own, 0, 5000);
    assert_eq!((gpuio.state(map), gpuio.close(map)), (SURE, 0));
}

#[test]
fn a_file_that_is_open_for_writing_is_refused() {
    let (dir, gpuio) = (dir(), gpuio());
    let path = dir.path().join("file");
    let own = file(&path, &random_bytes(1, FILE));
    let other = writer(&path).unwrap();
    assert_eq!(gpuio.refusal(own.as_raw_fd(), 0, 10, 0), -libc::EAGAIN);
    let words = gpuio.error();
    let file = path.display().to_string();
    for word in ["10 bytes at 0", "for GPU 0", file.as_str(), "Close every writer"] {
        assert!(words.contains(word), "{words}");
    }
    drop(other);
    assert_eq!(gpuio.close(gpuio.map(&own, 0, 10)), 0);
    // The caller's own descriptor is a writer too.
    let both = File::options().read(true).write(true).open(&path).unwrap();
    assert_eq!(gpuio.refusal(both.as_raw_fd(), 0, 10, 0), -libc::EAGAIN);
}

#[test]
fn a_memfd_is_mapped_once_it_is_sealed() {
    let gpuio = gpuio();
    let name = CString::new("test").unwrap();
    // SAFETY: a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_ALLOW_SEALING) };
    assert!(fd >= 0);
    // SAFETY: just made, and not owned elsewhere.
    let mut memory = unsafe { File::from_raw_fd(fd) };
    memory.write_all(b"sealed bytes").unwrap();
    assert_eq!(gpuio.refusal(fd, 0, 12, 0), -libc::EAGAIN);
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: numbers only.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) }, 0);
    let map = gpuio.map(&memory, 7, 5);
    cuda().start();
    assert_eq!(cuda().get(gpuio.address(map), 5), b"bytes");
    assert_eq!((gpuio.state(map), gpuio.close(map)), (SURE, 0));
}

#[test]
fn what_can_not_be_mapped_has_an_errno_and_words() {
    let (dir, gpuio) = (dir(), gpuio());
    let own = file(&dir.path().join("file"), &random_bytes(1, 5000));
    let proc = File::open("/proc/version").unwrap();
    let (reader, _writer) = std::io::pipe().unwrap();
    let (fd, pipe) = (own.as_raw_fd(), reader.as_raw_fd());
    let folder = File::open(dir.path()).unwrap();
    for (call, errno, word) in [
        ((fd, 0, 0, 0), libc::EINVAL, "length is 0"),
        ((fd, 1, 5000, 0), libc::EINVAL, "it ends at byte 5000"),
        ((fd, 5000, 1, 0), libc::EINVAL, "it ends at byte 5000"),
        ((fd, u64::MAX, 2, 0), libc::EINVAL, "2^64"),
        ((fd, 1 << 63, 1, 0), libc::EINVAL, "it ends at byte 5000"),
        ((pipe, 0, 1, 0), libc::EINVAL, "a pipe"),
        ((folder.as_raw_fd(), 0, 1, 0), libc::EINVAL, "a directory"),
        ((-1, 0, 1, 0), libc::EBADF, "negative"),
        ((1_000_000, 0, 1, 0), libc::EBADF, "must be open"),
        ((proc.as_raw_fd(), 0, 1, 0), libc::EOPNOTSUPP, "a lease needs ext4"),
        ((fd, 0, 1, -1), libc::ENODEV, "negative"),
        ((fd, 0, 1, 99), libc::ENODEV, "CUDA_ERROR_INVALID_DEVICE"),
    ] {
        let (number, offset, length, device) = call;
        let code = gpuio.refusal(number, offset, length, device);
        let words = gpuio.error();
        assert_eq!(code, -errno, "{call:?}: {words}");
        assert!(words.contains(word), "{call:?}: {words}");
    }
    assert!(writer(&dir.path().join("file")).is_ok(), "no lease is left");
}

#[test]
fn null_is_refused() {
    let (dir, gpuio) = (dir(), gpuio());
    let own = file(&dir.path().join("file"), &random_bytes(1, 5000));
    let null = std::ptr::null_mut();
    // SAFETY: null is allowed here, and below.
    let code = unsafe { (gpuio.gpuio_map_open)(own.as_raw_fd(), 0, 1, 0, std::ptr::null_mut()) };
    assert_eq!(code, -libc::EINVAL);
    assert!(gpuio.error().contains("map is NULL"), "{}", gpuio.error());
    assert_eq!((gpuio.address(Mapped(null)), gpuio.length(Mapped(null))), (0, 0));
    assert_eq!(gpuio.state(Mapped(null)), -libc::EINVAL);
    assert!(gpuio.error().contains("gpuio_map_state"), "{}", gpuio.error());
    assert_eq!(gpuio.close(Mapped(null)), -libc::EINVAL);
    assert!(gpuio.error().contains("gpuio_map_close"), "{}", gpuio.error());
    // Another thread has none.
    let other = std::thread::spawn(|| support::gpuio().error()).join().unwrap();
    assert_eq!(other, "");
}

/// Runs a test again in a process of its own, since a library reads its environment once. False in
/// that process.
fn in_own_process(test: impl Fn(), variable: &str, value: &str) -> bool {
    if std::env::var_os(variable).is_some_and(|now| now == value) {
        return false;
    }
    child::passes(test, &[(variable, value)]);
    true
}

#[test]
fn without_a_driver_the_reason_is_given() {
    const NONE: &str = "/nonexistent/libcuda.so";
    if in_own_process(without_a_driver_the_reason_is_given, DRIVER, NONE) {
        return;
    }
    let (dir, gpuio) = (dir(), gpuio());
    let own = file(&dir.path().join("file"), &random_bytes(1, 5000));
    assert_eq!(gpuio.refusal(own.as_raw_fd(), 0, 1, 0), -libc::ENODEV);
    assert!(gpuio.error().contains(NONE), "{}", gpuio.error());
}

#[test]
fn a_gpu_that_can_not_register_such_memory_is_refused() {
    // Only the software GPU can be made so.
    let test = a_gpu_that_can_not_register_such_memory_is_refused;
    if on_system() || in_own_process(test, "GPUIO_SOFT_READ_ONLY_REGISTER", "0") {
        return;
    }
    let (dir, gpuio) = (dir(), gpuio());
    let own = file(&dir.path().join("file"), &random_bytes(1, 5000));
    assert_eq!(gpuio.refusal(own.as_raw_fd(), 0, 1, 0), -libc::ENODEV);
    assert!(gpuio.error().contains("can't read the page cache"), "{}", gpuio.error());
    assert!(writer(&dir.path().join("file")).is_ok(), "no lease is left");
}
