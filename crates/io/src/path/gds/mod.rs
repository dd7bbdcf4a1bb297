//! `gds`: cuFile moves the bytes between file and GPU memory. gdsio's `-x 0`.
//!
//! Each `cuFileRead` and `cuFileWrite` blocks, and the library does not report whether the bytes
//! went through host memory (compatibility mode). So the whole time counts as the file leg, and
//! there is no GPU leg. One handle per file, and each slot a registered
//! buffer.

pub(super) mod buffers;
pub(super) mod streamed;

use super::blocking::{self, BlockingCalls};
use super::{
    ANY_MEMORY, Backend, Calls, Fault, OpenedPath, PathConfig, PathEntry, PathError, PathInfo,
    Request,
};
use buffers::GdsBuffers;

const NAME: &str = "gds";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(0),
        gdsio_name: "GPUD",
        summary: "NVIDIA's cuFile library moves the bytes between file and GPU memory",
        needs_gpu: true,
        backend: Backend::Cufile(Calls::Blocking),
        memory: ANY_MEMORY,
        ..PathInfo::PLAIN
    },
    open,
};

/// Opened on the worker's thread, which from then on has the GPU's context current.
fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let buffers = GdsBuffers::open(NAME, &config)?;
    let (_, cufile) = buffers::sides(NAME, &config)?;
    let open_info = buffers.open_info(&cufile.driver);
    Ok(open_info.of(blocking::assemble(&config, buffers)))
}

impl BlockingCalls for GdsBuffers {
    fn call(&self, request: &Request, done: u32) -> Result<usize, Fault> {
        let range = self.rest(request, done);
        // SAFETY: the range lies in this slot's own part of the destination, which lives and which
        // nothing uses until this returns; what filled the slot for a write was waited for.
        let moved = unsafe { self.handle(request).transfer(request.op, range) };
        moved.map_err(buffers::fault)
    }
}
