//! Files that are read until they are mapped, and compared with `pread` in each read.
//!
//! The software GPU keeps the bytes of a registration (`GPUIO_SOFT_KEEP_PAGES`), as pages do that
//! were replaced since: a read through a registration that no longer holds returns old bytes.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gpuio_gpu::MemoryKind;
use gpuio_transfer::{MemoryLocation, Op, Transfer, Transferred};
use tempfile::TempDir;

use super::{Memory, dir, memory_dir, random_bytes, settings};

pub(crate) const EXTENT: usize = 16 << 20;
/// An extent and a shorter one, which ends inside a page.
pub(crate) const FILE: usize = EXTENT + 1_234_567;
/// Only a hang takes so long.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// The transfer of this process, on a driver that keeps the bytes of registrations.
pub(crate) fn transfer() -> &'static Transfer {
    static TRANSFER: OnceLock<Transfer> = OnceLock::new();
    TRANSFER.get_or_init(|| {
        // SAFETY: each test comes here first, so no other thread of the process uses the
        // environment, and the driver is not loaded yet.
        unsafe { std::env::set_var("GPUIO_SOFT_KEEP_PAGES", "1") };
        let mut settings = settings();
        settings.max_mapped_bytes = Some(1 << 30);
        // Two passes: by default a test would read for seconds.
        settings.bytes_until_mapped = 2 * EXTENT as u64;
        Transfer::new(settings)
    })
}

/// A directory on a file system on which files are mapped under a lease: that of the build, or else
/// memory (a build in a container is often on overlayfs).
pub(crate) fn leased_dir() -> TempDir {
    /// ext4, XFS, Btrfs, F2FS, tmpfs (statfs(2)).
    const LEASED: [i64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];
    let dir = dir();
    let kind = rustix::fs::statfs(dir.path()).unwrap().f_type;
    if LEASED.contains(&kind) { dir } else { memory_dir() }
}

/// The first contents of a file.
pub(crate) fn content() -> &'static [u8] {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    CONTENT.get_or_init(|| random_bytes(1, FILE))
}

/// A file, its reader and memory of the GPU.
pub(crate) struct Hot {
    pub(crate) dir: TempDir,
    pub(crate) path: PathBuf,
    /// The library's, and the descriptor that `pread` compares with.
    pub(crate) file: gpuio_transfer::File,
    pub(crate) own: File,
    pub(crate) memory: Memory,
    pub(crate) location: MemoryLocation,
}

impl Hot {
    /// A file with fresh bytes, read only; nothing of it is mapped.
    pub(crate) fn new() -> Self {
        Self::of(FILE)
    }

    pub(crate) fn of(len: usize) -> Self {
        let transfer = transfer();
        let dir = leased_dir();
        let path = dir.path().join("hot");
        // Written and closed: a writer would keep the lease away.
        std::fs::write(&path, &content()[..len]).unwrap();
        let own = File::open(&path).unwrap();
        Self::with(transfer, dir, path, own)
    }

    /// A file that is there already, with [`content`].
    pub(crate) fn at(path: &Path) -> Self {
        let own = File::open(path).unwrap();
        Self::with(transfer(), dir(), path.to_owned(), own)
    }

    pub(crate) fn with(transfer: &Transfer, dir: TempDir, path: PathBuf, own: File) -> Self {
        let memory = Memory::new(MemoryKind::Device, FILE);
        let location = transfer.locate(memory.address()).unwrap();
        let file = transfer.file(own.as_fd()).unwrap();
        Self { dir, path, file, own, memory, location }
    }

    pub(crate) fn read(&self, offset: u64, len: usize) -> Transferred {
        // SAFETY: memory of the test's own, as long as the file.
        unsafe {
            transfer().call(Op::Read, &self.file, self.location, self.memory.address(), len, offset)
        }
        .unwrap()
    }

    /// Reads a range and compares it with `pread`.
    pub(crate) fn checked(&self, offset: u64, len: usize) -> Transferred {
        thread_local! {
            // Kept: fresh memory for each read takes longer than all else here.
            static BUFFERS: RefCell<[Vec<u8>; 2]> = RefCell::default();
        }
        BUFFERS.with_borrow_mut(|buffers| {
            let [expected, actual] = buffers.each_mut().map(|buffer| {
                buffer.resize(buffer.len().max(len), 0);
                &mut buffer[..len]
            });
            // A read that copies nothing must not find what the one before it did.
            actual.fill(0xA5);
            self.memory.put(0, actual);
            let done = self.read(offset, len);
            let mut filled = 0;
            while filled < len {
                let to = &mut expected[filled..];
                let more = self.own.read_at(to, offset + filled as u64).unwrap();
                if more == 0 {
                    break;
                }
                filled += more;
            }
            assert_eq!(done.bytes, filled, "{len} bytes at {offset}");
            self.memory.take_into(0, &mut actual[..filled]);
            let mapped = done.route.mapped;
            assert!(
                actual[..filled] == expected[..filled],
                "{len} bytes at {offset}, {mapped} of them mapped"
            );
            done
        })
    }

    /// Reads the short extent until it is hot, and the whole file, which is compared.
    fn pass(&self) -> Transferred {
        let short = FILE - EXTENT;
        for _ in 0..EXTENT / short {
            self.read(EXTENT as u64, short);
        }
        self.checked(0, FILE)
    }

    /// Reads the file until all of it is mapped.
    pub(crate) fn heat(&self) {
        let clock = Instant::now();
        while self.pass().route.mapped == 0 {
            assert!(clock.elapsed() < HANG, "the file is read again and again, and not mapped");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Reads the file for longer than it takes to be mapped.
    pub(crate) fn heat_in_vain(&self) {
        for _ in 0..3 {
            assert_eq!(self.pass().route.mapped, 0);
        }
        // One thread maps what is hot, in its order. Another file that is hot now comes later.
        Self::new().heat();
        assert_eq!(self.pass().route.mapped, 0);
        assert_eq!(self.check_ranges(), 0);
    }

    /// All kinds of ranges: short, long, across extents, unaligned, over the end of the file.
    /// Returns how many bytes of them were mapped.
    pub(crate) fn check_ranges(&self) -> u64 {
        let ranges = [
            (0, 1),
            (4096, 4096),
            (4097, 3000),
            (EXTENT as u64 - 2000, 5000),
            (EXTENT as u64 - (40 << 10), 64 << 10),
            (1, 200_000),
            (EXTENT as u64 - 100_001, 1 << 20),
            (EXTENT as u64 + 1_000_000, 1 << 20),
            (FILE as u64 - 1, 4096),
            (FILE as u64, 4096),
            (FILE as u64 + 5, 1 << 20),
            (0, FILE),
        ];
        ranges.map(|(offset, len)| self.checked(offset, len).route.mapped).iter().sum()
    }

    pub(crate) fn writer(&self, flags: i32) -> File {
        OpenOptions::new().write(true).custom_flags(flags).open(&self.path).unwrap()
    }
}
