//! What a call transferred, and by which route.

use crate::file::FileBytes;

/// The bytes of a call by route. The file side and the memory side are counted separately; each
/// adds up to all bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteBytes {
    /// File side: through the page cache.
    pub cached: u64,
    /// File side: past the page cache, by a descriptor with `O_DIRECT`.
    pub direct: u64,
    /// Memory side: between page-locked memory and the GPU by a kernel of ours.
    pub by_kernel: u64,
    /// Memory side: between page-locked memory and the GPU by copies of the driver.
    pub by_copy: u64,
    /// Memory side: directly from or to the caller's host memory.
    pub by_host: u64,
}

impl RouteBytes {
    /// Adds another part of the same work.
    pub fn add(&mut self, other: &Self) {
        self.cached += other.cached;
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

/// What a call transferred.
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
}
