//! Paths move bytes from a file to the requested memory, or back.
//!
//! A path is a small state machine over slots: slot `n` is the memory that request `n` of a worker
//! uses. A path owns its engine and, for GPU paths, its ring, streams and device memory. It keeps
//! no latencies, only counters of bytes and I/Os. Threads are those of its engine, and of
//! `transfer` on the paths `library*`. A new path is one file here, one row in [`PATHS`] and a test
//! `path_NAME` in `tests/io/path_reference.rs`, which another test asks for. Its verdict follows
//! from the row's `PathInfo`. A path with a copy per slot calls `staged::open`: `cached.rs` is the
//! shortest example. Another GPU stage implements `GpuStage` or `Slots`, as `gather.rs` and
//! `managed.rs`. One leg from end to end implements [`Path`], as `gds/mod.rs` for a library and
//! `mapped.rs` and `initiated.rs` for the GPU itself. Where gdsio has a name for the path:
//! `report/src/foreign/gdsio.rs`.

mod blocking;
mod cached;
mod destination;
mod fan_out;
pub mod fio_headers;
mod gather;
mod gds;
mod gds_batch;
mod gds_batch_stream;
mod gds_stream;
mod grouped;
mod host;
mod initiated;
mod launcher;
mod library;
mod library_batch;
mod library_stream;
mod managed;
mod mapped;
mod progress;
mod resident;
mod routed;
mod slot_buffers;
mod staged;
mod stall;
mod stream_queues;
mod streamed;
mod two_legs;
mod verifier;

use std::sync::Arc;
use std::time::Duration;

pub use fan_out::{FanOut, FanOutCounters};
pub use gpuio_base::catalog::{Backend, Calls, MemoryKind, PathInfo};
pub use gpuio_drivers::cufile::Driver as CufileDriver;
use gpuio_gpu::pattern::Key;
use gpuio_gpu::{Context, GpuError, MappedFile, Pinned};
pub use initiated::{Chain, InitiatedCounters, InitiatedSide, rings_available};
pub use library::core::{LibraryCounters, LibraryFault, LibraryOpCounters};
pub use mapped::{MappedCounters, page_table};
pub use routed::{RouteCounters, SegmentCounters, Via};

use crate::clock::{Clock, Nanos};
use crate::engine::fault::Inject;
use crate::engine::monitor::LegCounters;
use crate::engine::{self, EngineError, EngineFile, HostRegion, IoFault, Op};

/// One block to move, as the worker's pattern requested it.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Read brings bytes to the slot, write takes them from it.
    pub op: Op,
    /// Index into [`PathConfig::files`].
    pub file: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes to move, at most [`PathConfig::block_max`].
    pub len: u32,
    /// Slot to use; below [`PathConfig::slots`] and free.
    pub slot: u32,
    /// Where its bytes are in host memory.
    pub place: Place,
    /// When the worker started it, on the run's clock.
    pub started: Nanos,
    /// When it was due; earlier than `started` where a rate was requested and not kept.
    pub due: Nanos,
}

/// Where the bytes of a request are in host memory. Paths whose [`PathInfo::has_tier`] is false,
/// and writes, are given `Slot` alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// In the slot's own memory.
    #[default]
    Slot,
    /// From this byte of [`PathConfig::tier`] on: a read from the file ends there, and the copy to
    /// the slot's destination begins there.
    Into(u64),
    /// They are there already, from this byte of [`PathConfig::tier`] on: nothing is read from the
    /// file.
    Kept(u64),
}

/// The leg of a path in which something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// Between the file and host memory.
    File,
    /// Between host memory and the requested memory.
    Gpu,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The file leg failed.
    File(IoFault),
    /// The GPU leg failed with this CUDA driver code.
    Gpu(i32),
    /// cuFile refused with this code; in which leg, it does not report.
    Cufile(i32),
    /// gpuio's library core failed in neither leg.
    Library(LibraryFault),
}

impl Fault {
    /// The leg that failed, where the path could tell.
    pub fn leg(self) -> Option<Leg> {
        match self {
            Fault::File(_) => Some(Leg::File),
            Fault::Gpu(_) => Some(Leg::Gpu),
            Fault::Cufile(_) | Fault::Library(_) => None,
        }
    }
}

/// A finished request.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// The request as started; in a chain with the offset that the bytes before decided.
    pub request: Request,
    /// Whether all of its bytes were moved.
    pub result: Result<(), Fault>,
    /// When its last leg ended.
    pub ended: Nanos,
    /// Time in the file leg.
    pub file_ns: Nanos,
    /// Time in the GPU leg; 0 on paths without one.
    pub gpu_ns: Nanos,
}

/// Whether a path took a request.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    /// It is in flight (or already completed: see [`Path::advance`]).
    Taken,
    /// No space now; advance, then start it again. With nothing in flight, an advance that waits
    /// does so until the engine may have space.
    Full,
}

/// The path itself failed, as opposed to one request.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PathError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The driver failed outside any request's own copy.
    #[error("path {path}: {source}")]
    Gpu {
        /// Path name.
        path: &'static str,
        /// The driver's answer.
        source: GpuError,
    },
    /// The library that moves the bytes answered what no path can go on with.
    #[error("path {path}: {what}")]
    Broken {
        /// Path name.
        path: &'static str,
        /// Its answer and the consequence.
        what: String,
    },
    /// The library that moves the bytes ended nothing for too long.
    #[error(
        "path {path}: cuFile has ended none of {out} I/Os for {seconds} s, and may never do. Look \
         at the storage; batches wait for ever where they hold more I/Os than cuFile's pool has \
         buffers (properties.posix_pool_slab_count): lower --depth or --threads"
    )]
    Stalled {
        /// Path name.
        path: &'static str,
        /// Requests in flight.
        out: usize,
        /// How long.
        seconds: f64,
    },
    /// Memory for slots could not be had, or the path can't work as configured.
    #[error("path {path}: {what}")]
    Setup {
        /// Path name.
        path: &'static str,
        /// The failure and the remedy.
        what: String,
    },
}

/// A block in a slot's memory, and the pattern that belongs into it.
#[derive(Debug, Clone, Copy)]
pub struct PatternBlock {
    /// The slot.
    pub slot: u32,
    /// The pattern's key.
    pub key: Key,
    /// Byte offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

impl PatternBlock {
    /// The block of `len` bytes at file offset `offset`, in `slot`, with the pattern of `key`.
    pub fn new(slot: u32, key: impl Into<Key>, offset: u64, len: u32) -> Self {
        Self { slot, key: key.into(), offset, len }
    }
}

/// Bytes in a slot that are not what the file should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// Byte offset in the file of the first wrong 8-byte word.
    pub offset: u64,
    /// The word that belongs there.
    pub expected: u64,
    /// The word found.
    pub found: u64,
    /// How many words of the block are wrong; 0 where a checksum or a header of it is, by which
    /// that is not known.
    pub bad_words: u64,
    /// Length of the block, in bytes, whose data has another checksum than its header says:
    /// `offset` is then the block's, `expected` the checksum in the header, `found` that of the
    /// data.
    pub checksum_of: Option<u32>,
    /// The leg in which they went wrong, where the path could tell.
    pub leg: Option<Leg>,
    /// Another GPU than the worker's own, by the driver's index, where the block is wrong only in
    /// its memory (path `fan-out`).
    pub gpu: Option<u32>,
}

/// Moves requests between a file and the requested memory. One worker thread owns it.
///
/// Dropping a path waits for everything in flight. A write that has not completed by then may or
/// may not be in its file.
pub trait Path {
    /// Offers a request. On a path whose [`Path::synchronous`] is true the file leg of a read runs
    /// here, and that of a write here or in [`Path::advance`].
    fn start(&mut self, clock: &Clock, request: Request) -> Start;

    /// Moves requests on and appends those that completed. With `wait`, returns only once one has
    /// completed (or nothing is in flight). Without, it waits for nothing in flight, but a write
    /// of a synchronous path may call its engine here.
    ///
    /// # Errors
    /// The path can't go on; requests in flight are lost to the caller, who ends the run.
    fn advance(
        &mut self,
        clock: &Clock,
        completed: &mut Vec<Completion>,
        wait: bool,
    ) -> Result<(), PathError>;

    /// Sleeps until a request may be moved on by [`Path::advance`], at most `timeout`. Returns
    /// sooner, or at once, where what is in flight can't be waited for with an end: it is never a
    /// promise.
    ///
    /// # Errors
    /// As for [`Path::advance`].
    fn wait_timeout(&mut self, _timeout: Duration) -> Result<(), PathError> {
        Ok(())
    }

    /// Requests started and not yet returned by [`Path::advance`].
    fn in_flight(&self) -> usize;

    /// Whether file legs block the caller, so that each start needs its own time stamp.
    fn synchronous(&self) -> bool {
        false
    }

    /// Fills a slot's memory with a pattern, from which a write of that block begins. Outside the
    /// time of any I/O.
    ///
    /// # Errors
    /// The driver refused the kernel.
    fn generate(&mut self, block: PatternBlock) -> Result<(), PathError>;

    /// Compares a slot's memory, which a read of that block filled, with the pattern. Never within
    /// a clock.
    ///
    /// # Errors
    /// The driver refused the kernel.
    fn check(&mut self, block: PatternBlock) -> Result<Option<Mismatch>, PathError>;

    /// Copies the first bytes of a slot's memory, which a read filled, to host memory. Never within
    /// a clock.
    ///
    /// # Errors
    /// The driver refused the copy.
    fn copy_out(&mut self, slot: u32, into: &mut [u8]) -> Result<(), PathError>;
}

/// The GPU side of a path, resolved by the plan.
#[derive(Debug, Clone)]
pub struct GpuSide {
    /// Context of the GPU.
    pub context: Context,
    /// The kind of the destination memory.
    pub memory: MemoryKind,
    /// Streams over which the copies of one worker are spread, at least 1.
    pub streams: u32,
    /// Blocks for each launch of the `gather` path and for each submit of the batch paths of
    /// libraries, 1 to [`PathConfig::slots`]; what is outside is brought inside. Other paths do
    /// not read it.
    pub batch: u32,
    /// Whether the `gather` path spreads blocks over the destination, so that no launch could be
    /// one plain copy instead. Other paths do not read it.
    pub scatter: bool,
    /// The route of the path `routed`, whose far GPU is this one. Other paths do not read it.
    pub via: Option<Via>,
    /// The other GPUs of the path `fan-out`, whose first GPU is this one. Other paths do not read
    /// it.
    pub fan_out: Option<FanOut>,
}

/// The cuFile side of a path, resolved by the plan.
#[derive(Debug, Clone)]
pub struct CufileSide {
    /// The open library.
    pub driver: CufileDriver,
    /// Whether GPU memory is registered with it.
    pub register: bool,
    /// How long it may end nothing with I/O in flight before a path that is not synchronous gives
    /// up: [`CUFILE_STALL_TIMEOUT`].
    pub stall_timeout: Duration,
}

/// How long cuFile may end nothing with I/O in flight: far above what storage takes that answers at
/// all. NVIDIA's library has states in which it waits for ever (see `docs/gdsio.md`).
pub const CUFILE_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Everything a path is opened with.
#[derive(Debug, Clone)]
pub struct PathConfig {
    /// Requests in flight at once, at least 1.
    pub slots: u32,
    /// Largest request in bytes.
    pub block_max: u32,
    /// Entry of [`crate::engine::ENGINES`], on paths that use one.
    pub engine: Option<&'static engine::EngineEntry>,
    /// The worker's files.
    pub files: Vec<EngineFile>,
    /// Whether they are open with O_DIRECT.
    pub direct: bool,
    /// Bytes of which offsets and lengths are multiples then
    /// ([`engine::EngineConfig::direct_alignment`]).
    pub direct_alignment: u32,
    /// Memory kind where the bytes end on a path without a GPU.
    pub memory: MemoryKind,
    /// Host memory that workers share, on paths with [`PathInfo::has_tier`], for requests with a
    /// [`Place`] in it. Who makes these requests sees to it that nothing else uses a place from
    /// [`Place::Into`] until its request has completed, and that none is read into where one from
    /// [`Place::Kept`] has not.
    pub tier: Option<Arc<Pinned>>,
    /// The GPU, on paths that need one (and for pinned host memory).
    pub gpu: Option<GpuSide>,
    /// cuFile, on paths that need it.
    pub cufile: Option<CufileSide>,
    /// Whether blocks are filled and checked with fio's headers; path `host` only.
    pub fio_headers: bool,
    /// Faults to inject at the engine's interface.
    pub inject: Option<Inject>,
    /// Counters of the file leg, readable from other threads.
    pub counters: Arc<LegCounters>,
    /// The counters of gpuio's library core, readable from other threads. Other paths leave it at
    /// 0.
    pub library: Arc<LibraryCounters>,
    /// On paths that read a mapping ([`PathInfo::uses_mapping`]), of each of [`PathConfig::files`]
    /// the part that requests may name. Workers share mappings: none is registered twice. Dropped
    /// by the path once the GPU reads it no more.
    pub mappings: Vec<Arc<MappedFile>>,
    /// The counters of such a path, readable from other threads. Other paths leave it at 0.
    pub mapped: Arc<MappedCounters>,
    /// The rings of path `initiated`. Other paths do not read it.
    pub initiated: InitiatedSide,
}

/// An open path and what it actually uses.
pub struct OpenedPath {
    /// The path.
    pub path: Box<dyn Path>,
    /// The engine that actually runs.
    pub actual_engine: String,
    /// Fallbacks from the request, with reasons.
    pub steps_down: Vec<String>,
    /// Bytes of host memory that the slots take.
    pub host_bytes: u64,
    /// Bytes of GPU memory that the slots take.
    pub device_bytes: u64,
    /// Threads of its engine ([`engine::OpenedEngine::helpers`]).
    pub helpers: Vec<i32>,
}

impl std::fmt::Debug for OpenedPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedPath")
            .field("actual_engine", &self.actual_engine)
            .finish_non_exhaustive()
    }
}

/// One path that gpuio has.
#[derive(Debug)]
pub struct PathEntry {
    /// Its properties; the plan decides by these.
    pub info: PathInfo,
    /// Opens it on the calling thread, which will drive it.
    pub open: fn(PathConfig) -> Result<OpenedPath, PathError>,
}

/// The meaning of a code of [`Fault::Cufile`], in one line.
pub fn cufile_words(code: i32) -> String {
    gpuio_drivers::cufile::meaning(code)
}

/// Every memory that a copy can end in.
const ANY_MEMORY: &[MemoryKind] = &[
    MemoryKind::Device,
    MemoryKind::Vmm,
    MemoryKind::Pinned,
    MemoryKind::Malloc,
    MemoryKind::Mmap,
];

/// Opens the configured engine, decorators and all; `region` is the path's memory, where the engine
/// may keep it registered.
fn open_engine(
    config: &PathConfig,
    region: Option<HostRegion>,
) -> Result<engine::OpenedEngine, EngineError> {
    let engine_config = engine::EngineConfig {
        depth: config.slots,
        files: config.files.clone(),
        region,
        direct: config.direct,
        direct_alignment: config.direct_alignment,
    };
    let counters = Arc::clone(&config.counters);
    let row = config.engine.ok_or_else(|| EngineError {
        engine: "none",
        call: "open",
        what: "this path needs an engine and none was chosen".into(),
        hint: "name one with --engine".into(),
    })?;
    engine::build(row, &engine_config, config.inject.as_ref(), counters)
}

/// All paths, in the order in which they are shown.
pub const PATHS: &[PathEntry] = &[
    host::ENTRY,
    staged::ENTRY,
    cached::ENTRY,
    managed::ENTRY,
    gather::ENTRY,
    mapped::ENTRY,
    resident::ENTRY,
    initiated::ENTRY,
    routed::ENTRY,
    fan_out::ENTRY,
    library::ENTRY,
    library_stream::ENTRY,
    library_batch::ENTRY,
    gds::ENTRY,
    gds_stream::ENTRY,
    gds_batch::ENTRY,
    gds_batch_stream::ENTRY,
];

/// The path of this name.
pub fn find(name: &str) -> Option<&'static PathEntry> {
    PATHS.iter().find(|row| row.info.name == name)
}
