//! The inputs of a worker, and the parts that it opens.

use std::sync::Arc;

use gpuio_base::stat::LogSpace;
use gpuio_gpu::Context;
use gpuio_io::clock::Nanos;
use gpuio_io::engine::Op;
use gpuio_io::engine::monitor::LegCounters;
use gpuio_io::path::{
    self, CufileDriver, FanOutCounters, InitiatedCounters, LibraryCounters, MappedCounters,
    RouteCounters,
};
use gpuio_record::{DirectMode, JobPlan, WorkerPlan};
use gpuio_watch::page::{LivePage, WorkerSlot};

use super::feed::Feed;
use super::files::Files;
use super::gate::{FirstDone, Gate};
use super::mapped::Mappings;
use super::reached::ReachedMap;
use super::replay::Replay;
use gpuio_dataset::held::Targets;

/// The inputs of a worker. Everything shared is read-only or atomic.
pub(super) struct Task<'a> {
    pub(super) job: &'a JobPlan,
    pub(super) plan: &'a WorkerPlan,
    /// Which of the gate's live counters are its own.
    pub(super) live_index: usize,
    /// The page that other processes read, where the run has one.
    pub(super) live_page: Option<&'a LivePage>,
    pub(super) gate: &'a Gate,
    /// From the common start until all jobs of the group count.
    pub(super) all_from_ns: Nanos,
    pub(super) first_done: &'a FirstDone,
    /// Those of all jobs of the group.
    pub(super) all_done: &'a [FirstDone],
    /// The group's targets, as they were checked.
    pub(super) held: &'a Targets,
    pub(super) job_live: std::ops::Range<usize>,
    /// The GPU's context, for workers of GPU paths.
    pub(super) context: Option<Context>,
    /// The context of the GPU on the route, for workers of paths that have one.
    pub(super) near: Option<Context>,
    /// The contexts of the job's other GPUs, for workers of paths that place blocks in all.
    pub(super) others: Vec<Context>,
    /// cuFile, for workers of paths that need it.
    pub(super) cufile: Option<CufileDriver>,
    /// The parts of each target that timed writes have reached, where they are read back.
    pub(super) reached_maps: &'a [Arc<ReachedMap>],
    /// Descriptors shared by all threads of the job, where requested.
    pub(super) shared_files: Option<Files>,
    /// The job's mappings for the GPU to read, on paths that have them.
    pub(super) mappings: Option<&'a Mappings>,
    /// The samples that it reads, where the job is a training feed.
    pub(super) feed: Option<&'a Feed>,
    /// The calls that it repeats, where the job is a replay.
    pub(super) replay: Option<&'a Replay>,
    /// Where the lines of its log lie, where the job has logs; none for what was not requested.
    pub(super) log_space: Option<&'a LogSpace>,
}

impl Task<'_> {
    /// Sum of counted bytes of the job's workers until now.
    pub(super) fn counted(&self) -> u64 {
        self.gate.live[self.job_live.clone()].iter().map(|live| live.totals().counted_bytes).sum()
    }
}

/// A worker's report once it is ready to start.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    /// Which of the gate's live counters are the worker's, by which answers find their job.
    pub(super) live_index: usize,
    pub(super) actual_engine: String,
    pub(super) steps_down: Vec<String>,
    pub(super) direct: DirectMode,
}

/// The open parts of a worker.
pub(super) struct Tools {
    // The path goes first: it waits for I/Os on the files.
    pub(super) path: Box<dyn path::Path>,
    pub(super) files: Files,
    pub(super) counters: Arc<LegCounters>,
    /// The view of this worker in `gpuio stats`.
    pub(super) worker_slot: Option<WorkerSlot>,
    /// Threads of its engine, by the kernel's numbers.
    pub(super) helpers: Vec<i32>,
    pub(super) routes: Routes,
    pub(super) ready: Ready,
}

/// The counts that each path keeps of the routes that bytes took.
#[derive(Default)]
pub(super) struct Routes {
    /// Path `routed`.
    pub(super) segments: Arc<RouteCounters>,
    /// Path `fan-out`.
    pub(super) fan_out: Arc<FanOutCounters>,
    /// Paths of gpuio's library core.
    pub(super) library: Arc<LibraryCounters>,
    /// Path `mapped`.
    pub(super) mapped: Arc<MappedCounters>,
    /// Path `initiated`.
    pub(super) initiated: Arc<InitiatedCounters>,
}

/// Index of a direction in pairs of things.
pub(super) fn side(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
    }
}
