//! What a call moved, and which way.

use crate::file::Got;

/// The bytes of a call by the ways that they went. The file's side and the memory's are counted
/// apart: each adds up to all bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Route {
    /// File side: through the page cache.
    pub cached: u64,
    /// File side: past it, by a descriptor with `O_DIRECT`.
    pub direct: u64,
    /// Memory side: between page-locked memory and the GPU by a kernel.
    pub by_kernel: u64,
    /// Memory side: between page-locked memory and the GPU by copies of the driver.
    pub by_copy: u64,
    /// Memory side: straight from or to the caller's memory of the host.
    pub by_host: u64,
}

impl Route {
    /// Adds what another part of the same work moved.
    pub fn add(&mut self, other: &Self) {
        self.cached += other.cached;
        self.direct += other.direct;
        self.by_kernel += other.by_kernel;
        self.by_copy += other.by_copy;
        self.by_host += other.by_host;
    }

    /// Adds what came from a file, or went there.
    pub(crate) fn file(&mut self, got: Got) {
        self.cached += got.cached as u64;
        self.direct += got.direct as u64;
    }
}

/// What a call moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Bytes, from the start of the range on. A read moves fewer than asked only where the file
    /// ends, a write never.
    pub bytes: usize,
    /// Which way they went. Bytes that were moved beyond an end of file that another thread made
    /// meanwhile are counted here and not in `bytes`.
    pub route: Route,
}

impl Moved {
    /// What went through page-locked memory.
    pub(crate) fn through(got: Got, by_kernel: bool) -> Self {
        let bytes = got.bytes();
        let mut route = Route::default();
        route.file(got);
        *(if by_kernel { &mut route.by_kernel } else { &mut route.by_copy }) = bytes as u64;
        Self { bytes, route }
    }
}
