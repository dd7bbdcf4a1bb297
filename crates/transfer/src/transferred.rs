//! The bytes that a call transferred, and by which route.

use crate::file::FileBytes;

/// The bytes of a call by route. The file side and the memory side are counted separately; each
/// adds up to all bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteBytes {
    /// File side: through the page cache.
    pub cached: u64,
    /// The part of these that the GPU read or wrote in the page cache by itself: no host memory of
    /// ours held them.
    pub mapped: u64,
    /// File side: past the page cache, by a descriptor with `O_DIRECT`.
    pub direct: u64,
    /// Memory side: between page-locked memory, ours or a file's pages, and the GPU by a kernel of
    /// ours.
    pub by_kernel: u64,
    /// Memory side: the same by copies of the driver.
    pub by_copy: u64,
    /// Memory side: directly from or to the caller's host memory.
    pub by_host: u64,
}

impl RouteBytes {
    /// Adds another part of the same work.
    pub fn add(&mut self, other: &Self) {
        self.cached += other.cached;
        self.mapped += other.mapped;
        self.direct += other.direct;
        self.by_kernel += other.by_kernel;
        self.by_copy += other.by_copy;
        self.by_host += other.by_host;
    }

    /// Adds bytes of the file side.
    pub(crate) fn file(&mut self, file_bytes: FileBytes) {
        self.cached += file_bytes.cached as u64;
        self.direct += file_bytes.direct as u64;
    }
}

/// The bytes that a call transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transferred {
    /// Bytes from the start of the range. Fewer than requested only if a read meets the end of the
    /// file.
    pub bytes: usize,
    /// Their route. Bytes beyond an end of file that another thread set during the call count here
    /// and not in `bytes`.
    pub route: RouteBytes,
}

impl Transferred {
    /// Bytes that went through page-locked memory.
    pub(crate) fn through(file_bytes: FileBytes, by_kernel: bool) -> Self {
        let bytes = file_bytes.total();
        let mut route = RouteBytes::default();
        route.file(file_bytes);
        *(if by_kernel { &mut route.by_kernel } else { &mut route.by_copy }) = bytes as u64;
        Self { bytes, route }
    }

    /// Bytes that the GPU read in the page cache.
    pub(crate) fn mapped(bytes: usize, by_kernel: bool) -> Self {
        let file_bytes = FileBytes { cached: bytes, direct: 0 };
        let mut transferred = Self::through(file_bytes, by_kernel);
        transferred.route.mapped = bytes as u64;
        transferred
    }

    /// Bytes that the GPU wrote into the page cache, and the ends of their range: through the page
    /// cache and past it.
    pub(crate) fn filled(bytes: u64, (cached, direct): (usize, usize)) -> Self {
        let filled = usize::try_from(bytes).unwrap_or(usize::MAX);
        let whole = FileBytes { cached: filled + cached, direct };
        let mut transferred = Self::through(whole, false);
        transferred.route.mapped = bytes;
        transferred
    }
}
