//! The CUDA driver, loaded at run time, and safe owners of what it hands out.
//!
//! Nothing here links CUDA: [`Driver::load`] opens `libcuda.so.1` (or gpuio's software GPU, or any
//! library of the same interface) when the program asks for it, so that one binary runs on machines
//! with a GPU and without. The names and the ABI are those of the CUDA driver API, release 11.0 and
//! later ("CUDA Driver API" reference manual).
//!
//! The owners form a chain, each keeping the one before it alive: [`Driver`], [`Context`], then
//! [`Stream`], [`Event`], [`Pinned`], [`Managed`], [`DeviceBuf`], [`Module`]. Dropping one
//! gives its resource back and ignores what the driver returns.
//!
//! [`MappedFile`] is a file in the page cache that the device reads by itself; in [`initiated`] it
//! starts the I/O of any file.
//!
//! For libraries inside another program: [`Driver::pointer`] reports what an
//! address is, [`UserStream`] puts work into the program's streams, [`Context::entered`] leaves a
//! thread's contexts as they were, [`Locked`] is memory that may outlive the driver, and
//! [`resident_copy`] copies for many threads.
//!
//! Threads: every owner may move to another thread and be used from several. A thread calls
//! [`Context::make_current`] once before it uses streams and events of that context; making and
//! dropping owners needs no current context and leaves the thread's own as it was.
#![warn(missing_docs)]
#![allow(unsafe_code)]

mod busy;
mod code;
mod context;
mod digest;
mod driver;
mod error;
mod event;
mod gather;
pub mod initiated;
mod kernels;
mod locked;
mod managed;
mod mapped_file;
mod memops;
mod memory;
mod module;
mod peer;
mod pinned;
mod pointer;
pub mod resident;
pub mod resident_copy;
mod stream;
mod sync;
mod table;
mod user;
mod vmm;

pub use busy::{Busy, BusyWith};
pub use context::{Context, RawContext};
pub use digest::{DigestKernel, Digests, Range};
pub use driver::{DeviceFacts, Driver, Which, software_candidates};
pub use error::{Absent, GpuError};
pub use event::{Event, Wait};
pub use gather::{GatherKernel, Piece, PieceList, Pieces, Shape, most_pieces, pieces};
pub use gpuio_base::catalog::MemoryKind;
pub use gpuio_base::pattern;
pub use gpuio_base::pattern::PatternMismatch;
pub use kernels::{Checker, PatternKernels, REPORT_LEN};
pub use locked::{Leaked, Locked, PageSize};
pub use managed::{Managed, Side};
pub use mapped_file::{COPIED_BY_DEVICE, FilePages, MapError, MappedFile, PageWatch, RetiredFile};
pub use memory::DeviceBuf;
pub use module::{Arg, Kernel, Module};
pub use pinned::{Pinned, Registered};
pub use pointer::{Owner, Pointer};
pub use stream::Stream;
pub use user::{HostFn, RawStream, UserStream};

/// An address as the GPU sees it, in bytes.
///
/// Under unified addressing (every 64-bit Linux driver) a pinned host address and its device
/// address are one number, so this holds host addresses too where a call accepts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevPtr(pub u64);

impl DevPtr {
    /// The address `bytes` further on.
    pub fn byte_add(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl std::fmt::Display for DevPtr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
