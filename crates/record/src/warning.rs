//! What to beware of in a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A warning about one job's numbers (or about all, without a job).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The job it is about.
    pub job: Option<String>,
    /// What was seen.
    #[serde(flatten)]
    pub kind: WarningKind,
    /// The warning in words: what was seen, why it matters, what to do next.
    pub text: String,
}

/// Kinds of warning, with the readings that they rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "warning")]
pub enum WarningKind {
    /// Reads came from the page cache, not from storage.
    PageCacheServedReads {
        /// Bytes that the job read.
        bytes: u64,
        /// Bytes that storage delivered to the process meanwhile.
        from_storage: u64,
    },
    /// O_DIRECT was asked for, yet the page cache was at work.
    DirectButCached {
        /// Bytes that the job read.
        bytes: u64,
        /// Bytes that storage delivered to the process meanwhile.
        from_storage: u64,
    },
    /// Bytes of the job's files lie in holes or extents that were never written.
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
    /// The file system takes no O_DIRECT.
    DirectRefused {
        /// File system type.
        filesystem: String,
    },
    /// A depth above 1 on an engine and path that do one I/O at a time.
    DepthOnSynchronousEngine {
        /// Depth asked for.
        depth: u32,
        /// The engine.
        engine: String,
    },
    /// An asynchronous engine on buffered files.
    AsyncEngineOnBufferedFile {
        /// The engine.
        engine: String,
    },
    /// The block layer cut or merged I/Os.
    SplitByBlockLayer {
        /// Mean size of the tool's I/Os.
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
        /// Bytes that the device took meanwhile from all who write to it, where known: no more than
        /// that can be the job's.
        to_storage: Option<u64>,
    },
    /// Synchronous writes: each waits for stable storage.
    SyncWrites,
    /// O_DIRECT writes may still sit in the device's volatile cache.
    DirectWritesInDeviceCache {
        /// The device.
        device: String,
        /// Whether the kernel says that it has such a cache; `false` where it does not say. Where
        /// it says that there is none, there is no warning.
        #[serde(default)]
        known: bool,
    },
    /// The run was too short for its percentiles or rate.
    RunTooShort {
        /// Time measured.
        elapsed_ns: u64,
        /// I/Os measured.
        ios: u64,
    },
    /// Data set smaller than memory on a buffered run.
    DataSetFitsMemory {
        /// Bytes of the data set.
        data_bytes: u64,
        /// Usable memory.
        memory_bytes: u64,
    },
    /// The engine is not what was asked.
    EngineSteppedDown {
        /// What was asked.
        asked: String,
        /// What ran.
        got: String,
        /// Reasons.
        why: Vec<String>,
    },
    /// A rate was asked for and not reached.
    RateNotReached {
        /// Share of the asked rate that was reached, 0 to 1.
        reached: f64,
    },
    /// I/Os were due before the end and never started.
    NeverStarted {
        /// How many.
        ios: u64,
        /// How many were started and landed.
        landed: u64,
        /// How long the first of them had been due, nanoseconds.
        longest_wait_ns: u64,
    },
    /// The job ended before it had settled by the criterion asked for.
    NotSteady {
        /// The criterion, as asked.
        asked: String,
        /// Slope or deviation of the last window, in the limit's unit; absent where no window was
        /// full.
        seen: Option<f64>,
    },
    /// Workers finished at very different times.
    UnevenFinish {
        /// First worker done.
        first_done_ns: u64,
        /// Last worker done.
        last_done_ns: u64,
    },
    /// The GPUs are gpuio's software GPU.
    SoftwareGpu,
    /// Faults were injected on purpose.
    FaultsInjected {
        /// As given.
        inject: String,
    },
    /// Data was generated or checked between I/Os: the wall clock contains it.
    WorkBetweenIos {
        /// Time, summed over workers.
        between_ns: u64,
        /// Share of the workers' time, 0 to 1.
        share: f64,
    },
    /// More threads than CPUs that they may run on.
    MoreThreadsThanCpus {
        /// Threads of the group.
        threads: u32,
        /// CPUs allowed.
        cpus: u32,
    },
    /// A worker runs on another NUMA node than its GPU.
    FarFromGpu {
        /// GPU index.
        gpu: u32,
        /// Node of the worker.
        worker_node: u32,
        /// Node of the GPU.
        gpu_node: u32,
    },
    /// The kernel read more from storage than the job asked for.
    ReadAhead {
        /// Bytes that the jobs of the group read.
        bytes: u64,
        /// Bytes that storage delivered to the process meanwhile.
        from_storage: u64,
        /// Whether blocks came one after another.
        sequential: bool,
    },
    /// A device moved more than this process caused.
    OtherTraffic {
        /// The device, or devices joined by `+`.
        device: String,
        /// `read` or `write`.
        direction: String,
        /// Bytes that this process moved there or caused to be moved.
        ours_bytes: u64,
        /// Bytes that the device counted.
        device_bytes: u64,
    },
    /// Members of an array took unequal parts of its traffic.
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
    /// Several ways lead to a device, and some of them carried next to nothing.
    PathIdle {
        /// The device.
        device: String,
        /// Ways that carried next to nothing.
        idle: Vec<String>,
        /// The way that carried most.
        busiest: String,
        /// Its bytes, both directions.
        busiest_bytes: u64,
        /// How ways are chosen, where known.
        policy: Option<String>,
    },
    /// A device had fewer requests under way than were asked for.
    DepthNotReached {
        /// The device.
        device: String,
        /// I/Os that the jobs could have under way.
        asked: u64,
        /// Requests under way at the device on average.
        seen: f64,
    },
    /// A GPU that nobody asked for carried traffic like that of the jobs.
    OtherGpu {
        /// GPUs that were asked for, as NVML numbers them.
        asked: Vec<u32>,
        /// The other.
        other: u32,
        /// What its PCIe link carried in the busier direction, bytes per second.
        other_bytes_per_s: u64,
        /// What the jobs moved, bytes per second.
        bytes_per_s: u64,
    },
    /// A link carried much less or much more than passed over it.
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
    /// Accepted settings without effect.
    Note {
        /// The note.
        note: String,
    },
}
