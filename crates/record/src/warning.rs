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
        /// Bytes that reached the block layer meanwhile, where known.
        to_storage: Option<u64>,
    },
    /// Synchronous writes: each waits for stable storage.
    SyncWrites,
    /// O_DIRECT writes may still sit in the device's volatile cache.
    DirectWritesInDeviceCache {
        /// The device.
        device: String,
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
    /// Accepted settings without effect.
    Note {
        /// The note.
        note: String,
    },
}
