//! Warnings about results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A warning about one job's numbers (or about all, without a job).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The job it is about.
    pub job: Option<String>,
    /// What was observed.
    #[serde(flatten)]
    pub kind: WarningKind,
    /// The warning as text: what happened, what it means, what to do.
    pub text: String,
}

/// Kinds of warning, with the figures behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "warning")]
pub enum WarningKind {
    /// Reads came from the page cache, not from storage.
    PageCacheServedReads {
        /// Bytes that the job read.
        bytes: u64,
        /// Bytes that storage delivered to the process during the run.
        from_storage: u64,
    },
    /// The GPU read pages of the page cache that were pinned before: no rate of storage.
    MappedMemory {
        /// Bytes that the job read.
        bytes: u64,
        /// Time to map and register the files, in which storage delivered what the page cache did
        /// not hold, nanoseconds.
        set_up_ns: u64,
    },
    /// Samples came from the job's own tier in host memory, and not from storage.
    TierServedReads {
        /// Bytes that came from the tier.
        from_memory: u64,
        /// Bytes that the job read from files.
        from_storage: u64,
    },
    /// O_DIRECT was requested, but data came from a cache.
    DirectButCached {
        /// Bytes that the job read.
        bytes: u64,
        /// Bytes that storage delivered to the process during the run.
        from_storage: u64,
    },
    /// Some bytes of the job's files are in holes or extents that were never written.
    Holes {
        /// Bytes in holes.
        hole_bytes: u64,
        /// Bytes in extents that were allocated and never written.
        unwritten_bytes: u64,
        /// Bytes of its files that the job uses.
        range_bytes: u64,
        /// Whether the job reads.
        reads: bool,
    },
    /// The file system does not support O_DIRECT.
    DirectRefused {
        /// File system type.
        filesystem: String,
    },
    /// A depth above 1 on an engine and path that do one I/O at a time.
    DepthOnSynchronousEngine {
        /// Requested depth.
        depth: u32,
        /// The engine.
        engine: String,
    },
    /// An asynchronous engine on buffered files.
    AsyncEngineOnBufferedFile {
        /// The engine.
        engine: String,
    },
    /// The block layer split or merged I/Os.
    SplitByBlockLayer {
        /// Mean size of the job's I/Os.
        mean_io_bytes: u64,
        /// Mean size of the device's requests.
        mean_request_bytes: u64,
        /// The device.
        device: String,
    },
    /// Buffered writes without sync: mostly memory speed.
    BufferedWrites {
        /// Bytes written by the job.
        bytes: u64,
        /// Bytes that the device received during the run from all programs, where known: an upper
        /// bound for the job.
        to_storage: Option<u64>,
    },
    /// Synchronous writes: each waits for stable storage.
    SyncWrites,
    /// O_DIRECT writes may still sit in the device's volatile cache.
    DirectWritesInDeviceCache {
        /// The device.
        device: String,
        /// Whether the kernel reports such a cache; `false` if it does not report it either way. If
        /// it reports that there is none, there is no warning.
        #[serde(default)]
        known: bool,
    },
    /// The run was too short for its percentiles or rate.
    RunTooShort {
        /// Time measured.
        elapsed_ns: u64,
        /// I/Os measured.
        ios: u64,
        /// All of the named files is read, so that these say how long the run is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_files: bool,
    },
    /// Data set smaller than memory on a buffered run.
    DataSetFitsMemory {
        /// Bytes of the data set.
        data_bytes: u64,
        /// Usable memory.
        memory_bytes: u64,
    },
    /// The requested engine was replaced by another.
    EngineSteppedDown {
        /// Requested engine.
        #[serde(alias = "asked")]
        requested: String,
        /// Engine that ran.
        #[serde(alias = "got")]
        actual: String,
        /// Reasons.
        why: Vec<String>,
    },
    /// The process was stopped while the clock ran, or the machine slept.
    Stopped {
        /// Time in which the process was stopped, which no figure includes, nanoseconds.
        stopped_ns: u64,
        /// Time in which the machine was suspended, which no figure includes, nanoseconds.
        suspended_ns: u64,
        /// How often.
        times: u32,
        /// I/Os that were in flight meanwhile, and are left out.
        left_out_ios: u64,
    },
    /// The requested rate was not reached.
    RateNotReached {
        /// Share of the requested rate that was reached, 0 to 1.
        reached: f64,
    },
    /// I/Os were due before the end and never started.
    NeverStarted {
        /// How many.
        ios: u64,
        /// How many were started and completed.
        #[serde(alias = "landed")]
        completed: u64,
        /// How long the first of them was overdue, nanoseconds.
        longest_wait_ns: u64,
    },
    /// The job ended before it was steady by the requested criterion.
    NotSteady {
        /// The requested criterion.
        #[serde(alias = "asked")]
        requested: String,
        /// Slope or deviation of the last window, in the limit's unit; absent where no window was
        /// full.
        #[serde(alias = "seen")]
        observed: Option<f64>,
    },
    /// Workers finished at very different times.
    UnevenFinish {
        /// First worker done.
        first_done_ns: u64,
        /// Last worker done.
        last_done_ns: u64,
        /// All of the named files is read, so that the time has no end of its own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_files: bool,
    },
    /// The GPUs are gpuio's software GPU.
    SoftwareGpu,
    /// Faults were injected.
    FaultsInjected {
        /// As given.
        inject: String,
    },
    /// Data was generated or checked between I/Os: the run time includes it.
    WorkBetweenIos {
        /// Time, summed over workers.
        between_ns: u64,
        /// Share of the workers' time, 0 to 1.
        share: f64,
    },
    /// More threads than allowed CPUs.
    MoreThreadsThanCpus {
        /// Threads of the group.
        threads: u32,
        /// CPUs allowed.
        cpus: u32,
    },
    /// A worker ran on another NUMA node than its GPU.
    FarFromGpu {
        /// GPU index.
        gpu: u32,
        /// Node of the worker.
        worker_node: u32,
        /// Node of the GPU.
        gpu_node: u32,
    },
    /// The kernel read more from storage than the job requested.
    ReadAhead {
        /// Bytes that the jobs of the group read.
        bytes: u64,
        /// Bytes that storage delivered to the process during the run.
        from_storage: u64,
        /// Whether blocks were read sequentially.
        sequential: bool,
    },
    /// A device moved more bytes than this process caused.
    OtherTraffic {
        /// The device, or devices joined by `+`.
        device: String,
        /// `read` or `write`.
        direction: String,
        /// Bytes that this process moved or caused to be moved.
        ours_bytes: u64,
        /// Bytes that the device counted.
        device_bytes: u64,
    },
    /// Members of an array carried unequal parts of its traffic.
    ArrayPartUsed {
        /// The array or volume.
        array: String,
        /// What it is, where known: `raid0`, `LVM`.
        level: Option<String>,
        /// Members that were counted.
        members: u32,
        /// The member that moved most.
        busiest: String,
        /// Its bytes, both directions.
        busiest_bytes: u64,
        /// The member that moved least.
        least: String,
        /// Its bytes, both directions.
        least_bytes: u64,
    },
    /// Several paths lead to a device, and some of them carried almost nothing.
    PathIdle {
        /// The device.
        device: String,
        /// Paths that carried almost nothing.
        idle: Vec<String>,
        /// The path that carried most.
        busiest: String,
        /// Its bytes, both directions.
        busiest_bytes: u64,
        /// How paths are chosen, where known.
        policy: Option<String>,
    },
    /// A device had fewer requests in flight than requested.
    DepthNotReached {
        /// The device.
        device: String,
        /// I/Os that the jobs could have in flight.
        #[serde(alias = "asked")]
        requested: u64,
        /// I/Os in flight at the device on average: its requests in flight times the I/Os in each.
        #[serde(alias = "seen")]
        observed: f64,
    },
    /// A GPU that was not requested carried traffic like that of the jobs.
    OtherGpu {
        /// Requested GPUs, as NVML numbers them.
        #[serde(alias = "asked")]
        requested: Vec<u32>,
        /// The other GPU.
        other: u32,
        /// What its PCIe link carried in the busier direction, bytes per second.
        other_bytes_per_s: u64,
        /// What the jobs moved, bytes per second.
        bytes_per_s: u64,
    },
    /// A link carried much less or much more than should have passed over it.
    LinkDisagrees {
        /// The link: an interface with its RDMA ports, or a GPU's PCIe link.
        link: String,
        /// `read` or `write`.
        direction: String,
        /// Bytes per second that should have passed.
        bytes_per_s: u64,
        /// Bytes per second that the link counted.
        counted_bytes_per_s: u64,
    },
    /// A setting that was accepted but has no effect.
    Note {
        /// The note.
        note: String,
    },
}
