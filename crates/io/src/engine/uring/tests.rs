use super::setup::{Polling, Setup, forbidden, open_with};
use crate::engine::{Done, EngineConfig, EngineFile, Io, Op, OpenedEngine, Push, Span};
use io_uring::IoUring;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

fn config(file: &std::fs::File) -> EngineConfig {
    let files = vec![EngineFile { fd: file.as_raw_fd(), len: 4096, writable: true }];
    EngineConfig { depth: 4, files, region: None, direct: false, direct_alignment: 512 }
}

fn file() -> std::fs::File {
    let file = tempfile::tempfile().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[9; 4096], 0).unwrap();
    file
}

/// Reads the file's first bytes through the engine, whatever it is.
fn reads(mut opened: OpenedEngine) {
    let mut memory = [0_u8; 4096];
    let ptr = NonNull::new(memory.as_mut_ptr()).unwrap();
    // SAFETY: the array outlives the I/O, which is reaped below.
    let span = unsafe { Span::new(ptr, 4096) };
    let io = Io { op: Op::Read, file: 0, offset: 0, span, token: 5 };
    assert!(matches!(opened.engine.push(io), Push::Taken));
    let mut done: Vec<Done> = Vec::new();
    opened.engine.reap(&mut done, 1).unwrap();
    assert_eq!((done.len(), done[0].io.token, done[0].result), (1, 5, Ok(4096)));
    drop(opened);
    assert_eq!(memory, [9; 4096]);
}

#[test]
fn without_a_ring_the_pool_runs_and_is_reported() {
    for errno in [libc::EPERM, libc::ENOSYS, libc::ENOMEM] {
        let file = file();
        let refuse = |_, _| -> io::Result<IoUring> { Err(io::Error::from_raw_os_error(errno)) };
        let opened = open_with(&config(&file), Polling::None, refuse).unwrap();
        assert_eq!(opened.actual, "pool (4 threads)");
        let reason = &opened.steps_down[0];
        assert!(reason.starts_with("pool instead of io_uring: io_uring_setup:"), "{reason}");
        assert!(reason.contains(&format!("os error {errno}")), "{reason}");
        reads(opened);
    }
}

#[test]
fn an_older_kernel_gets_fewer_flags() {
    for best in [Setup::Cooperative, Setup::Plain] {
        let file = file();
        let requested = std::cell::RefCell::new(Vec::new());
        let make = |setup, entries| {
            requested.borrow_mut().push(setup);
            let better = [Setup::Deferred, Setup::Cooperative];
            let refused = better.iter().take_while(|&&b| b != best).any(|&b| b == setup);
            if refused {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            IoUring::new(entries)
        };
        let opened = open_with(&config(&file), Polling::None, make).unwrap();
        assert_eq!(requested.borrow().last(), Some(&best));
        if super::available().is_err() {
            eprintln!("skipped: io_uring is not available here");
            continue;
        }
        let reason = &opened.steps_down[0];
        assert!(reason.starts_with("io_uring: ring with"), "{reason}");
        assert!(reason.contains("os error 22"), "{reason}");
        reads(opened);
    }
}

#[test]
fn memory_that_can_not_be_registered_is_used_all_the_same() {
    let Ok(()) = super::available() else {
        eprintln!("skipped: io_uring is not available here");
        return;
    };
    let file = file();
    let mut config = config(&file);
    // The address of nothing: the kernel can't pin it.
    let nowhere = NonNull::new(4096 as *mut u8).unwrap();
    config.region = Some(crate::engine::HostRegion { ptr: nowhere, len: 4096 });
    let opened = super::open(&config).unwrap();
    assert_eq!(opened.actual, "io_uring (fixed files)");
    assert!(opened.steps_down.iter().any(|line| line.contains("memory not registered")));
    reads(opened);
}

#[test]
fn a_depth_above_the_ring_is_cut() {
    let file = file();
    let config = EngineConfig { depth: 40_000, ..config(&file) };
    let refuse = |_, entries| -> io::Result<IoUring> {
        assert_eq!(entries, 32_768);
        Err(io::Error::from_raw_os_error(libc::EPERM))
    };
    let opened = open_with(&config, Polling::None, refuse).unwrap();
    assert!(opened.steps_down[0].contains("depth 32768, not 40000"));
}

#[test]
fn a_span_is_fixed_only_inside_one_buffer() {
    const BUFFER: usize = 1 << super::REGISTERED_BITS;
    // Addresses only: nothing is mapped there and nothing is touched.
    let start = 1_usize << 40;
    let at = |address: usize| NonNull::new(address as *mut u8).unwrap();
    let region = crate::engine::HostRegion { ptr: at(start), len: 2 * BUFFER + 4096 };
    let fixed_buffer = |offset: usize, len| {
        // SAFETY: never pushed.
        super::fixed_buffer(region, &unsafe { Span::new(at(start + offset), len) })
    };
    assert_eq!(fixed_buffer(0, 4096), Some(0));
    assert_eq!(fixed_buffer(BUFFER - 4096, 4096), Some(0));
    assert_eq!(fixed_buffer(BUFFER - 4096, 4097), None, "it crosses into the next fixed_buffer");
    assert_eq!(fixed_buffer(BUFFER, 4096), Some(1));
    assert_eq!(fixed_buffer(2 * BUFFER, 4096), Some(2));
    assert_eq!(fixed_buffer(2 * BUFFER, 4097), None, "it ends past the region");
    // SAFETY: never pushed.
    let before = unsafe { Span::new(at(start - 4096), 4096) };
    assert_eq!(super::fixed_buffer(region, &before), None);
}

#[test]
fn a_forbidden_ring_names_the_kernel_s_switch() {
    assert!(forbidden(Some("2\n")).starts_with("kernel.io_uring_disabled is 2"));
    assert!(forbidden(Some("1\n")).starts_with("kernel.io_uring_disabled is 1"));
    assert!(forbidden(Some("0\n")).contains("seccomp"));
    assert!(forbidden(None).contains("seccomp"));
}
