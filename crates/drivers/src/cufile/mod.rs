//! NVIDIA's cuFile library (`libcufile.so.0`), loaded at run time, with safe owners.
//!
//! Nothing here links it: [`Library::load`] looks in the directories where installations and
//! Python wheels put it. A missing library is a value that lists what was tried. The declarations
//! are gpuio's own, from the public "cuFile API Reference Guide" (GPUDirect Storage, releases 1.0
//! to 1.16).
//!
//! The owners form a chain, each keeping the one before it alive: [`Library`], [`Driver`], then
//! [`Handle`] (a registered file) and [`Buffer`] (a registered range of memory). Bytes move by
//! blocking calls of the handle, by a [`Batch`], or by [`StreamIo`] in the order of a stream.
//! Functions that a release lacks are a value ([`FunctionAbsent`]). A process has one library and
//! one configuration: an [`Environment`] is applied before the first thread starts, and one
//! [`Driver`] is opened.
//!
//! Threads: every owner may move to another thread. cuFile finds the GPU by address, but a thread
//! makes the context of that GPU current before it moves bytes, as the guide advises. A submit of
//! more I/Os than the library's pool has buffers never returns, so `pool` limits them.
#![allow(unsafe_code)]

pub mod abi;
mod absent;
mod batch;
mod calls;
mod codes;
mod config;
mod diagnosis;
mod driver;
mod pool;
mod properties;
mod search;
mod stats;
mod stream;
mod table;
mod transfer;
mod vendor;

pub use absent::Absent;
pub use batch::{Batch, Completion};
pub use calls::{FunctionAbsent, InterfaceAbsent};
pub use codes::{CufileError, explain, meaning};
pub use config::{Base, ConfigDirectory, ConfigError, Environment, Setting, reserve};
pub use diagnosis::Diagnosis;
pub use driver::{Driver, Facts};
pub use gpuio_base::catalog::Calls;
pub use properties::Abilities;
pub use search::{Search, stand_in_candidates};
pub use stats::{
    Counting, DirectionStats, MoreOfGpu, PerGpu, STATS_WORDS, Stats, StatsAbsent, parse_stats,
};
pub use stream::{StreamIo, StreamRegistration};
pub use table::Library;
pub use transfer::{Buffer, Handle, IoError, IoRange};
pub use vendor::{Vendor, is_gpuio_library};
