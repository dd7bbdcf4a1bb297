//! Calls from many threads, failing calls, and what a process may do during calls.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]

mod support;

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_gpu::{MemoryKind, Which};
use gpuio_transfer::{Fault, FileError, MemoryLocation, Op, Transfer};
use support::{Memory, Mode, dir, file, gpu, random_bytes, settings, transfer, which, written};

const FILE: usize = 3 << 20;

/// Reads from many threads at once and compares the bytes.
fn read_at_once(transfer: &Transfer, kind: MemoryKind, sizes: &[usize]) {
    let dir = dir();
    let content = random_bytes(1, FILE);
    let path = written(&dir, "file", &content);
    let files = [file(transfer, &path, Mode::Plain), file(transfer, &path, Mode::Direct)];
    std::thread::scope(|scope| {
        for thread in 0..12_usize {
            let (content, files) = (&content, &files);
            scope.spawn(move || {
                let len = sizes[thread % sizes.len()];
                let memory = Memory::new(kind, len);
                let location = transfer.locate(memory.address()).unwrap();
                for turn in 0..20 {
                    let offset = (thread * 100_003 + turn * 37_021) % (FILE - len);
                    let file = &files[turn % 2];
                    let at = memory.address();
                    // SAFETY: memory of this thread's own.
                    let moved =
                        unsafe { transfer.call(Op::Read, file, location, at, len, offset as u64) };
                    assert_eq!(moved.unwrap().bytes, len);
                    assert!(memory.take(0, len) == content[offset..offset + len]);
                }
            });
        }
    });
}

#[test]
fn small_and_large_calls_of_many_threads() {
    read_at_once(&transfer(), MemoryKind::Device, &[4096, 300, 1 << 20, 64 << 10, 200_001]);
}

#[test]
fn large_calls_of_many_threads_with_one_permit_and_one_ring() {
    let mut settings = settings();
    (settings.max_active, settings.max_workers, settings.max_staging_bytes) = (1, 1, 0);
    read_at_once(&Transfer::new(settings), MemoryKind::Device, &[1 << 20, 200_001, 70_000]);
}

#[test]
fn large_reads_by_workers_alone() {
    // As many threads as the oversubscription threshold, and more of them sharing one staging ring.
    for (threshold, workers, ring) in [(1, 1, 2 << 20), (2, 3, 2 << 20), (1, 3, 0)] {
        for resident in [true, false] {
            let mut settings = settings();
            (settings.oversubscription, settings.max_workers) = (Some(threshold), workers);
            (settings.max_staging_bytes, settings.resident) = (ring, resident);
            let sizes = [1 << 20, 200_001, 70_000, 4096];
            read_at_once(&Transfer::new(settings), MemoryKind::Device, &sizes);
        }
    }
}

#[test]
fn reads_by_workers_end_at_the_end_of_the_file_and_report_failures() {
    let mut settings = settings();
    (settings.oversubscription, settings.max_workers) = (Some(1), 2);
    let (transfer, dir) = (Transfer::new(settings), dir());
    let content = random_bytes(1, 1 << 20);
    let whole = file(&transfer, &written(&dir, "file", &content), Mode::Plain);
    // Write-only, so that every read of it fails.
    let path = dir.path().join("closed");
    let closed = std::fs::OpenOptions::new().write(true).create_new(true).open(path).unwrap();
    closed.set_len(1 << 20).unwrap();
    let closed = transfer.file(std::os::fd::AsFd::as_fd(&closed)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let (transfer, whole, closed, content) = (&transfer, &whole, &closed, &content);
            scope.spawn(move || {
                let memory = Memory::new(MemoryKind::Device, 1 << 20);
                let location = transfer.locate(memory.address()).unwrap();
                let read = |file, offset: usize| {
                    let at = memory.address();
                    // SAFETY: memory of this thread's own.
                    unsafe { transfer.call(Op::Read, file, location, at, 1 << 20, offset as u64) }
                };
                for turn in 0..20 {
                    let offset = (thread * 131_071 + turn * 40_009) % (1 << 20);
                    let bytes = read(whole, offset).unwrap().bytes;
                    assert_eq!(bytes, (1 << 20) - offset);
                    assert!(memory.take(0, bytes) == content[offset..]);
                    let failed = read(closed, 0).unwrap_err();
                    assert!(matches!(failed, Fault::File { errno: libc::EBADF, .. }), "{failed}");
                }
            });
        }
    });
}

#[test]
fn callers_alone() {
    let mut settings = settings();
    (settings.max_workers, settings.resident) = (0, false);
    read_at_once(&Transfer::new(settings), MemoryKind::Device, &[1 << 20, 4096]);
}

#[test]
fn host_memory_of_many_threads() {
    read_at_once(&transfer(), MemoryKind::Malloc, &[1 << 20, 4096, 70_001]);
}

#[test]
fn calls_end_at_the_end_of_the_file_and_nowhere_else() {
    let transfer = transfer();
    let dir = dir();
    let path = written(&dir, "file", &random_bytes(1, 200_000));
    let memory = Memory::new(MemoryKind::Device, 1 << 20);
    let location = transfer.locate(memory.address()).unwrap();
    for mode in [Mode::Plain, Mode::Direct] {
        let file = file(&transfer, &path, mode);
        let cases = [
            (0, 1 << 20, 200_000),
            (199_999, 4096, 1),
            (199_680, 4096, 320),
            (200_000, 4096, 0),
            (200_000, 1 << 20, 0),
            (1 << 40, 1 << 20, 0),
            (0, 0, 0),
            (i64::MAX.cast_unsigned(), 1 << 20, 0),
        ];
        for (offset, len, bytes) in cases {
            // SAFETY: memory of the test's own.
            let moved =
                unsafe { transfer.call(Op::Read, &file, location, memory.address(), len, offset) };
            assert_eq!(moved.unwrap().bytes, bytes, "{len} bytes at {offset}, {mode:?}");
        }
    }
}

#[test]
fn a_descriptor_of_one_direction_fails_in_the_other() {
    let transfer = transfer();
    let dir = dir();
    let path = written(&dir, "file", &random_bytes(1, 100_000));
    let read_only = std::fs::File::open(&path).unwrap();
    let write_only = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let read_only = transfer.file(read_only.as_fd()).unwrap();
    let write_only = transfer.file(write_only.as_fd()).unwrap();
    for kind in [MemoryKind::Device, MemoryKind::Malloc] {
        let memory = Memory::new(kind, 1 << 20);
        let (location, at) = (transfer.locate(memory.address()).unwrap(), memory.address());
        for len in [100, 100_000, 1 << 20] {
            // SAFETY: memory of the test's own.
            let read =
                unsafe { transfer.call(Op::Read, &write_only, location, at, len, 0) }.unwrap_err();
            // SAFETY: as above.
            let write =
                unsafe { transfer.call(Op::Write, &read_only, location, at, len, 0) }.unwrap_err();
            for fault in [read, write] {
                assert!(matches!(fault, Fault::File { errno: libc::EBADF, .. }), "{fault}");
                assert!(fault.to_string().contains("file: Bad file descriptor"), "{fault}");
            }
            // SAFETY: as above.
            assert!(unsafe { transfer.call(Op::Read, &read_only, location, at, len, 0) }.is_ok());
            // SAFETY: as above.
            assert!(unsafe { transfer.call(Op::Write, &write_only, location, at, len, 0) }.is_ok());
        }
    }
}

#[test]
fn a_full_device_is_reported_and_loses_no_ring() {
    let mut settings = settings();
    settings.max_staging_bytes = 0;
    let transfer = Transfer::new(settings);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = transfer.file(full.as_fd()).unwrap_err();
    assert!(matches!(error, FileError::Kind { .. }), "{error}");
    let dir = dir();
    let path = written(&dir, "file", &[]);
    let file = file(&transfer, &path, Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, 1 << 20);
    let (location, at) = (transfer.locate(memory.address()).unwrap(), memory.address());
    for _ in 0..5 {
        // Beyond the largest offset of any file system here.
        let offset = i64::MAX.cast_unsigned() - (2 << 20);
        // SAFETY: memory of the test's own.
        let fault =
            unsafe { transfer.call(Op::Write, &file, location, at, 1 << 20, offset) }.unwrap_err();
        assert!(matches!(fault, Fault::File { errno: libc::EFBIG, .. }), "{fault}");
    }
    // SAFETY: as above.
    assert!(unsafe { transfer.call(Op::Write, &file, location, at, 1 << 20, 0) }.is_ok());
}

#[test]
fn the_callers_context_stays_as_it_was() {
    let transfer = transfer();
    let dir = dir();
    let file = file(&transfer, &written(&dir, "file", &random_bytes(1, FILE)), Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, 1 << 20);
    let call = |len| {
        let location = transfer.locate(memory.address()).unwrap();
        // SAFETY: memory of the test's own.
        unsafe { transfer.call(Op::Read, &file, location, memory.address(), len, 0) }.unwrap();
        // Needs a current context, and fails without.
        gpu().stream.query()
    };
    for len in [4096, 1 << 20] {
        let result = call(len);
        // A driver of hardware finds a stream's context without.
        assert!(
            result.is_err() || which() == Which::System,
            "there was no context, and there is none"
        );
    }
    gpu().context.make_current().unwrap();
    for len in [4096, 1 << 20] {
        assert!(call(len).is_ok(), "there was one, and it is there");
    }
}

#[test]
fn files_are_written_while_they_are_read() {
    let transfer = transfer();
    let dir = dir();
    let path = written(&dir, "file", &vec![1; FILE]);
    let file = file(&transfer, &path, Mode::Direct);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let memory = Memory::new(MemoryKind::Device, 300_000);
            memory.put(0, &vec![1; 300_000]);
            let location = transfer.locate(memory.address()).unwrap();
            let mut offset = 13_u64;
            while !over.load(Ordering::Relaxed) {
                // SAFETY: memory of this thread's own.
                let moved = unsafe {
                    transfer.call(Op::Write, &file, location, memory.address(), 300_000, offset)
                };
                assert_eq!(moved.unwrap().bytes, 300_000);
                offset = (offset + 70_001) % (FILE as u64 - 300_000);
            }
        });
        let memory = Memory::new(MemoryKind::Device, 500_000);
        let location = transfer.locate(memory.address()).unwrap();
        for turn in 0..50 {
            memory.put(0, &vec![0; 500_000]);
            // SAFETY: memory of this thread's own.
            let moved = unsafe {
                transfer.call(Op::Read, &file, location, memory.address(), 500_000, turn * 10_001)
            };
            assert_eq!(moved.unwrap().bytes, 500_000);
            assert!(memory.take(0, 500_000).iter().all(|&byte| byte == 1));
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_child_reads_to_its_memory_and_is_refused_that_of_the_gpu() {
    let transfer = transfer();
    let dir = dir();
    let content = random_bytes(1, FILE);
    let file = file(&transfer, &written(&dir, "file", &content), Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, 1 << 20);
    let location = transfer.locate(memory.address()).unwrap();
    let batch = transfer.batch(4);
    for len in [4096, 1 << 20] {
        // SAFETY: memory of the test's own.
        unsafe { transfer.call(Op::Read, &file, location, memory.address(), len, 0) }.unwrap();
    }
    let mut host = vec![0_u8; 1 << 20];
    // SAFETY: the child uses nothing that another thread may hold locked: that is what is tested.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let at = host.as_mut_ptr() as u64;
        // SAFETY: the vector's memory.
        let read =
            unsafe { transfer.call(Op::Read, &file, MemoryLocation::host(), at, host.len(), 5) };
        let right =
            read.is_ok_and(|moved| moved.bytes == 1 << 20) && host[..] == content[5..(1 << 20) + 5];
        // SAFETY: refused before anything is touched.
        let refused =
            unsafe { transfer.call(Op::Read, &file, location, memory.address(), 4096, 0) };
        let empty = batch.outstanding() == 0;
        drop(batch);
        let code = i32::from(right) | i32::from(refused == Err(Fault::Forked)) << 1;
        // SAFETY: leaves at once, running no handler.
        unsafe { libc::_exit(code | i32::from(empty) << 2) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the write of one int.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "{status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 7);
    // SAFETY: memory of the test's own.
    unsafe { transfer.call(Op::Read, &file, location, memory.address(), 1 << 20, 0) }.unwrap();
}
