//! Shared by the tests of transfers: files in both modes, and memory of every kind.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]

pub(crate) mod hot;

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gpuio_gpu::{Context, DevPtr, DeviceBuf, Driver, MemoryKind, Stream};
pub(crate) use gpuio_testkit::gpu::which;
pub(crate) use gpuio_testkit::random_bytes;
use gpuio_transfer::{Settings, Transfer};
use tempfile::TempDir;

/// Short pieces, so that short files are split, and helpers even on two cores.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.driver = which();
    settings.max_workers = 3;
    settings.max_active = 3;
    settings.max_piece_bytes = 64 << 10;
    settings.max_staging_bytes = 2 << 20;
    settings
}

pub(crate) fn transfer() -> Transfer {
    Transfer::new(settings())
}

/// A directory on a file system that has `O_DIRECT`, which `/tmp` often has not.
pub(crate) fn dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

pub(crate) fn memory_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// How a file is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    Direct,
}

pub(crate) fn open(path: &Path, mode: Mode) -> File {
    let flags = if mode == Mode::Direct { libc::O_DIRECT } else { 0 };
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags)
        .open(path)
        .unwrap()
}

pub(crate) fn file(transfer: &Transfer, path: &Path, mode: Mode) -> gpuio_transfer::File {
    // The descriptor is closed at once: the transfer has its own.
    transfer.file(open(path, mode).as_fd()).unwrap()
}

pub(crate) struct Gpu {
    pub(crate) context: Context,
    pub(crate) stream: Stream,
}

pub(crate) fn gpu() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| {
        let driver = Driver::load(&which()).unwrap();
        let context = Context::new(&driver, 0).unwrap();
        let stream = Stream::new(&context).unwrap();
        Gpu { context, stream }
    })
}

/// Memory of a kind, which a test may fill and read.
pub(crate) struct Memory {
    buffer: DeviceBuf,
}

impl Memory {
    pub(crate) fn new(kind: MemoryKind, len: usize) -> Self {
        Self { buffer: DeviceBuf::alloc(&gpu().context, kind, len).unwrap() }
    }

    pub(crate) fn address(&self) -> u64 {
        self.buffer.ptr().0
    }

    pub(crate) fn put(&self, at: usize, bytes: &[u8]) {
        let gpu = gpu();
        let to = self.buffer.ptr().byte_add(at as u64);
        let from = DevPtr(bytes.as_ptr() as u64);
        let done = gpu.context.entered(|| {
            // SAFETY: a range of the test's own; the wait follows.
            unsafe { gpu.stream.copy(to, from, bytes.len()).unwrap() };
            gpu.stream.sync()
        });
        done.unwrap().unwrap();
    }

    pub(crate) fn take(&self, at: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0_u8; len];
        self.take_into(at, &mut bytes);
        bytes
    }

    /// Fills `bytes` with those from `at` on.
    pub(crate) fn take_into(&self, at: usize, bytes: &mut [u8]) {
        let gpu = gpu();
        let from = self.buffer.ptr().byte_add(at as u64);
        let to = DevPtr(bytes.as_mut_ptr() as u64);
        let done = gpu.context.entered(|| {
            // SAFETY: a range of the test's own; the wait follows.
            unsafe { gpu.stream.copy(to, from, bytes.len()).unwrap() };
            gpu.stream.sync()
        });
        done.unwrap().unwrap();
    }
}

/// Drops the file from the page cache as far as the kernel does.
pub(crate) fn chill(path: &Path) {
    use std::os::fd::AsRawFd;
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: the call takes numbers only.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

pub(crate) fn written(dir: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
