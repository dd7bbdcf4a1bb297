//! `library`: gpuio's own library core moves the bytes, as in our `libcufile.so.0`, by synchronous
//! calls on the worker's thread.
//!
//! The file side is counted by the core as cached or direct, the memory side by kernel or by copy.
//! When a byte changes sides it does not report, so the whole time counts as the file leg, and
//! there is no GPU leg.

pub(super) mod core;

use gpuio_gpu::MemoryKind;
use gpuio_transfer::Ahead;

use self::core::{LibraryBuffers, Rest};
use super::blocking::{self, BlockingCalls};
use super::{
    Backend, Calls, Fault, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, Request,
};

const NAME: &str = "library";

/// Memory in which the paths of the core end: host memory would take none of what the core does.
pub(super) const MEMORY: &[MemoryKind] = &[MemoryKind::Device, MemoryKind::Vmm];

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: None,
        gdsio_name: "LIBRARY",
        summary: "gpuio's library core, as its libcufile.so.0 ships it: blocking calls",
        needs_gpu: true,
        via_gpu: false,
        fans_out: false,
        buffered_only: false,
        buffered_because: None,
        backend: Backend::Library(Calls::Blocking),
        batches: false,
        streams: false,
        memory: MEMORY,
        has_tier: false,
    },
    open,
};

/// Opened on the worker's thread, which from then on has the GPU's context current.
fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let ahead = Ahead::Calls { len: config.block_max as usize };
    let buffers = LibraryBuffers::open(NAME, &config, ahead)?;
    Ok(buffers.opened(|buffers| blocking::assemble(&config, buffers)))
}

impl BlockingCalls for LibraryBuffers {
    fn call(&self, request: &Request, done: u32) -> Result<usize, Fault> {
        let Rest { address, len, offset } = self.rest(request, done);
        let (transfer, file) = (&self.transfer, self.file(request));
        // SAFETY: the range lies in this slot's own part of the destination, which lives and which
        // nothing uses until this returns; what filled the slot for a write was waited for.
        let outcome =
            unsafe { transfer.call(request.op, file, self.location, address, len, offset) };
        self.counters.outcome(request.op, outcome)
    }
}
