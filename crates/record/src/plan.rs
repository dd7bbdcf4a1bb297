//! The plan of a run: every setting resolved, none left to a default.

use std::collections::BTreeMap;
use std::ops::Range;

use gpuio_base::catalog::{Catalog, MemoryKind, PathInfo};
use gpuio_base::stat::Percentile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::beside::ComputationPlan;
use crate::ceiling::CeilingPlan;
use crate::feed::FeedPlan;
use crate::log_plan::LogPlan;
use crate::order::{FadviseHint, Follow, Order};
use crate::part::{PartPlan, RepeatPlan};
use crate::replay::ReplayPlan;
use crate::steady::SteadyPlan;
use crate::stop::{BytesOf, Stop};

/// Everything that a run will do, resolved against the facts of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The run's name, where a job file gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Jobs in order. Jobs of one group run together; groups run one after another.
    pub jobs: Vec<JobPlan>,
    /// Time between two points of the series, nanoseconds.
    pub interval_ns: u64,
    /// Paths that `all` would have run and this machine can't take, each once.
    pub left_out: Vec<LeftOut>,
    /// Ceilings that are looked for after the last group.
    #[serde(default)]
    pub ceilings: Vec<CeilingPlan>,
    /// Settings of cuFile that were requested, by the path of their keys, values as JSON. cuFile
    /// reads them once, for all jobs. Empty where no job runs over cuFile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cufile: BTreeMap<String, String>,
    /// Whether the GPUs are gpuio's software GPU: results must not be compared with those of
    /// hardware.
    pub software_gpu: bool,
}

/// A path that did not run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Path name.
    pub path: String,
    /// The missing part.
    pub why: String,
}

/// The user's request, the choice that runs, and why the two differ or how a choice was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The request; `auto` where gpuio chose, `default` for a path when none was requested.
    #[serde(alias = "asked")]
    pub requested: String,
    /// The choice that will run.
    #[serde(alias = "got")]
    pub actual: String,
    /// The reason for the choice; absent when it was named.
    pub why: Option<String>,
}

impl Choice {
    /// The request for a path where nobody made one.
    pub const DEFAULT: &str = "default";
}

/// A path with its number in gdsio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathChoice {
    /// Path name: `host`, `staged`, `cached`, `managed`, `gather`, `mapped`, `resident`,
    /// `initiated`, `routed`, `fan-out`, `library`, `library-stream`, `library-batch`, `gds`,
    /// `gds-stream`, `gds-batch`, `gds-batch-stream`.
    pub choice: Choice,
    /// gdsio's `-x` number; absent for paths that gdsio does not have.
    pub gdsio: Option<u8>,
    /// gdsio's XferType, or a name in its manner.
    pub gdsio_name: String,
}

/// One job: threads that do the same thing to their own targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobPlan {
    /// Name, unique in the plan.
    pub name: String,
    /// Group number; a stonewall begins a new one.
    pub group: u32,
    /// How bytes travel between host memory and their destination.
    pub path: PathChoice,
    /// How bytes travel between files and host memory.
    pub engine: Choice,
    /// Threads.
    pub threads: u32,
    /// I/Os in flight per thread (slots of the path).
    pub depth: u32,
    /// Keys of the job file that were not set, so that gpuio chose the values here: of
    /// `bs`, `depth`, `gather_batch`, `rings`, `streams` and `threads`. Absent in older records.
    #[serde(default)]
    pub defaulted: Option<Vec<String>>,
    /// Share of reads, 0 to 100.
    pub read_percent: u8,
    /// Order of offsets.
    pub order: Order,
    /// Where an I/O begins that the order alone does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<Follow>,
    /// Block sizes and their shares; shares sum to 100.
    pub blocks: Vec<BlockShare>,
    /// The same of writes, where `blocks` is of reads alone; empty where it is of both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_blocks: Vec<BlockShare>,
    /// Offsets are multiples of this, in bytes (plus `skew_bytes`).
    pub align_bytes: u64,
    /// Bytes of which offsets and lengths of direct I/O must be multiples here, the logical block
    /// size as a rule; 1 through the page cache, 0 in older records.
    #[serde(default, alias = "direct_grain_bytes")]
    pub direct_alignment_bytes: u64,
    /// Added to every offset to put it off the 4 KiB grid on purpose; 0 otherwise.
    pub skew_bytes: u64,
    /// When the job ends.
    pub stop: Stop,
    /// The key that the bytes of the end follow from; absent where none end it and in older
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_of: Option<BytesOf>,
    /// The criterion that ends it earlier, once it is steady.
    #[serde(default)]
    pub steady: Option<SteadyPlan>,
    /// Time at the start that runs but does not count, nanoseconds.
    pub ramp_ns: u64,
    /// Pauses between I/Os, where requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<ThinkPlan>,
    /// When written data is sent to the medium, besides `sync`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<FlushPlan>,
    /// Logs in fio's format that are written after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<LogPlan>,
    /// Wait before the first I/O, nanoseconds after the common start.
    pub start_delay_ns: u64,
    /// Requested rate, per thread.
    pub pacing: Option<Pacing>,
    /// The same of writes, where `pacing` is of reads alone and the mix follows from both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_pacing: Option<Pacing>,
    /// An I/O that takes longer is a failure, and ends the job; nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
    /// Whether the jobs that run with it end when it does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ends_others: bool,
    /// The hint to the kernel on the accesses to buffered files; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fadvise_hint: Option<FadviseHint>,
    /// Whether the run fails unless all bytes are proven to have taken the requested path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub require_path: bool,
    /// Seed from which every worker's own seed comes.
    pub seed: u64,
    /// O_DIRECT or page cache.
    pub direct: DirectMode,
    /// Why this direct mode.
    pub direct_why: Option<String>,
    /// Whether the files are read into the page cache before the clock starts, so that no job finds
    /// them colder than another.
    #[serde(default)]
    pub pre_read: bool,
    /// Whether the files are dropped from the page cache before the clock starts. The kernel takes
    /// that as advice; what it left there stands in the result.
    #[serde(default)]
    pub invalidate: bool,
    /// Whether writes wait for stable storage (O_DSYNC).
    pub sync: bool,
    /// Whether and how data is verified.
    pub verify: VerifyMode,
    /// Longest time for verification after the clock, nanoseconds: a random sample of what fits
    /// into it is checked. Absent where all is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_ns: Option<u64>,
    /// Whether nobody requested the verification: it is gpuio's own choice for this run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own_verification: bool,
    /// Whether blocks have fio's headers with CRC-32C instead of the pattern alone, and are checked
    /// by these, so that fio can verify them and gpuio what fio wrote.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fio_headers: bool,
    /// Whether data is compared with the file, read once more by the CPU, and not with the pattern.
    #[serde(default, skip_serializing_if = "is_false")]
    pub against_file: bool,
    /// Salt of the data pattern.
    pub salt: u64,
    /// How much of it repeats, so that storage can compress it; absent where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressible: Option<Compressible>,
    /// The data of writes.
    pub fill: Fill,
    /// Whether write buffers get new data before each write (outside the I/O's clock, inside the
    /// wall clock).
    pub refill: bool,
    /// The kind of the destination memory.
    pub memory: MemoryKind,
    /// GPU streams per thread; 0 on paths that put nothing into streams of theirs.
    pub streams: u32,
    /// Blocks per launch (path `gather`) or submit (cuFile's batch paths); absent on paths that
    /// move each block by itself.
    pub gather_batch: Option<u32>,
    /// Whether blocks are scattered over the destination, so that a batch can't be one plain
    /// copy; absent on paths other than `gather`.
    pub gather_scatter: Option<bool>,
    /// Whether the bytes of each block decide on the GPU which block is read next (path
    /// `initiated`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chain: bool,
    /// Rings of each thread on path `initiated`; absent on the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rings: Option<u32>,
    /// The GPU through which the bytes go on path `routed`; absent on the others.
    pub via: Option<Via>,
    /// How each block gets into the memory of all GPUs on path `fan-out`; absent on the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<FanOut>,
    /// Whether GPU memory is registered with cuFile; absent on paths without it.
    pub register_buffer: Option<bool>,
    /// Whether all threads use one descriptor per file.
    pub shared_fd: bool,
    /// Whether files that this run makes are kept afterwards.
    pub keep: bool,
    /// How long each of the job's ceilings is measured, nanoseconds; absent where none is.
    #[serde(default)]
    pub ceilings_ns: Option<u64>,
    /// The computation that keeps the job's GPUs busy while it runs; absent where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<ComputationPlan>,
    /// The samples that are read, and the accelerators that they are read for; absent where blocks
    /// are moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed: Option<FeedPlan>,
    /// All of the named files that is read, once each pass; absent where regions of one size are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<RangesPlan>,
    /// The recorded calls that are made again; absent where blocks are moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayPlan>,
    /// The larger load of which it is a part; absent where it is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartPlan>,
    /// Which of several times the job runs; absent where it runs once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<RepeatPlan>,
    /// Percentiles of latencies that were asked for, ascending; empty for the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<Percentile>,
    /// Injected faults, as given.
    pub inject: Option<String>,
    /// Directory that holds one file per thread; absent when files are named.
    pub directory: Option<String>,
    /// Directories besides that one: threads take all of them in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_directories: Vec<String>,
    /// First part of the names of files in that directory: `PREFIX.N`.
    pub file_prefix: String,
    /// How names of files in that directory are made, where that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename_format: Option<String>,
    /// Bytes that each thread works on.
    pub size_bytes: u64,
    /// The share of each file that this is, in per cent, where their parts have several lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_percent: Option<u8>,
    /// Where in its file (or in the shared file) the first region starts.
    pub offset_bytes: u64,
    /// Whether all threads work on the same files, region after region.
    pub shared_files: bool,
    /// Files of each thread in a directory, where that is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_per_thread: Option<u32>,
    /// Whether a thread with several files takes a block of each in turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub files_in_turn: bool,
    /// How far apart the regions of threads start, where that was requested, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_increment: Option<u64>,
    /// Length of each file in bytes, where that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// The longest, where each of a thread's files has a length from there on by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes_most: Option<u64>,
    /// How the data of all threads, and of all ranks, lie in files, where that was requested or
    /// another rank's are read; absent where each thread has its own file or region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<LayoutPlan>,
    /// GPUs in use by this job, in the order in which threads take them.
    pub gpus: Vec<Gpu>,
    /// Files and devices of the job.
    pub targets: Vec<TargetPlan>,
    /// One entry per thread.
    pub workers: Vec<WorkerPlan>,
    /// Settings that were accepted and have no effect, with the reason.
    pub notes: Vec<String>,
}

impl Plan {
    /// Whether one of its jobs runs over cuFile, by its path in the catalog.
    pub fn takes_cufile(&self, catalog: &Catalog) -> bool {
        self.jobs.iter().any(|job| job.takes_cufile(catalog))
    }
}

impl JobPlan {
    /// Whether it runs over cuFile, by its path in the catalog.
    pub fn takes_cufile(&self, catalog: &Catalog) -> bool {
        catalog.path(&self.path.choice.actual).is_some_and(PathInfo::uses_cufile)
    }

    /// Whether it uses gpuio's software GPU. A run of several paths may have jobs that use no GPU.
    pub fn uses_software_gpu(&self) -> bool {
        self.gpus.iter().any(|gpu| gpu.software)
    }

    /// Whether one of gpuio's engines takes part. Otherwise a library moves the bytes, and the
    /// engine is called `none` with the library in parentheses.
    pub fn has_engine(&self) -> bool {
        self.register_buffer.is_none() && !self.engine.actual.starts_with("none")
    }

    /// Whether each thread has a part of one size: no sample, no whole file and no recorded call
    /// says what it moves.
    pub fn has_size(&self) -> bool {
        self.feed.is_none() && self.replay.is_none() && self.ranges.is_none()
    }

    /// The load as the `rw` key has it.
    pub fn rw(&self) -> &'static str {
        match (self.read_percent, &self.order) {
            (100.., Order::Sequential) => "read",
            (0, Order::Sequential) => "write",
            (_, Order::Sequential) => "readwrite",
            (100.., Order::Random { .. }) => "randread",
            (0, Order::Random { .. }) => "randwrite",
            (_, Order::Random { .. }) => "randrw",
        }
    }

    /// Whether what its timed writes left is read back. In a replay, every call finds the pattern
    /// and leaves it, and all that was called for is read instead.
    pub fn reads_writes_back(&self) -> bool {
        self.verify == VerifyMode::Pass && self.read_percent < 100 && self.replay.is_none()
    }

    /// Whether the bytes to read are given: files, tensors or recorded calls, which may begin and
    /// end at any byte.
    pub fn of_files(&self) -> bool {
        self.ranges.is_some() || self.replay.is_some()
    }

    /// Threads that have a part of each file: those of all ranks.
    pub fn sharers(&self) -> u64 {
        let ranks = self.layout.as_ref().map_or(1, |layout| u64::from(layout.ranks));
        if self.shared_files { u64::from(self.threads) * ranks } else { 1 }
    }

    /// Whether several ranks have parts of the same files.
    pub fn is_common(&self) -> bool {
        self.layout.as_ref().is_some_and(|layout| layout.ranks > 1 && layout.kind.is_shared())
    }

    /// Block sizes of reads and of writes.
    pub fn sizes(&self) -> impl Iterator<Item = &BlockShare> {
        self.blocks.iter().chain(&self.write_blocks)
    }

    /// The directories of files that are not named, in the order in which threads take them.
    pub fn directories(&self) -> impl Iterator<Item = &str> {
        self.directory.iter().chain(&self.more_directories).map(String::as_str)
    }

    /// The one of them in which a file is.
    #[must_use]
    pub fn directory_of(&self, path: &str) -> Option<&str> {
        let above = |directory: &&str| std::path::Path::new(path).starts_with(directory);
        self.directories().filter(above).max_by_key(|it| it.len()).or(self.directory.as_deref())
    }

    /// Block sizes of one direction.
    pub fn sizes_of(&self, writes: bool) -> &[BlockShare] {
        if writes && !self.write_blocks.is_empty() { &self.write_blocks } else { &self.blocks }
    }

    /// Whether it reads what another rank made.
    pub fn reads_another_rank(&self) -> bool {
        self.layout.as_ref().is_some_and(|layout| layout.reads_rank.is_some())
    }

    /// Whether data is generated or checked between its I/Os: outside their latencies, inside the
    /// wall clock.
    pub fn works_between_ios(&self) -> bool {
        let headers = self.fio_headers && self.read_percent < 100;
        let inline = self.verify == VerifyMode::Inline;
        self.refill || inline || headers || self.reads_writes_back()
    }
}

pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

/// Pauses of each thread between its I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkPlan {
    /// Length of a pause, nanoseconds; it begins when no I/O is in flight.
    pub pause_ns: u64,
    /// Its first part in which the thread computes, nanoseconds.
    pub spin_ns: u64,
    /// I/Os between two pauses, at least 1.
    pub every_ios: u64,
}

/// Files that are read as a whole, by ranges of different lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RangesPlan {
    /// The kind of the ranges.
    pub kind: RangeKind,
    /// Files or tensors that are not empty.
    pub count: u64,
    /// Those without bytes, which nothing reads.
    #[serde(default, skip_serializing_if = "crate::result::is_zero")]
    pub empty: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// How often each is read.
    pub passes: u64,
}

/// The parts of files that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RangeKind {
    /// All bytes of each, from begin to end.
    Files,
    /// The tensors of each, one by one in the order of its header.
    Tensors,
}

impl RangeKind {
    /// The word in job files.
    pub fn word(self) -> &'static str {
        match self {
            RangeKind::Files => "files",
            RangeKind::Tensors => "tensors",
        }
    }
}

/// When written data is sent to the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlushPlan {
    /// After so many writes of a thread; absent where not before the end.
    pub every_ios: Option<u64>,
    /// Whether that is fdatasync(2), and not fsync(2).
    pub data_only: bool,
    /// Whether fsync(2) follows the last write, inside the measured time.
    pub at_end: bool,
    /// The same after the measured time, before files are closed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_close: bool,
}

/// A range of block sizes and its share of the I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockShare {
    /// Smallest size in bytes.
    pub min_bytes: u64,
    /// Largest size in bytes.
    pub max_bytes: u64,
    /// Step between sizes in bytes; 0 when min = max.
    pub step_bytes: u64,
    /// Share of the I/Os in per cent.
    pub percent: u8,
}

/// A rate that each thread keeps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pacing {
    /// Bytes per second.
    pub bytes_per_s: Option<u64>,
    /// I/Os per second.
    pub iops: Option<u64>,
    /// Time between arrivals.
    pub arrivals: Arrivals,
}

/// How arrivals at a rate are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly.
    Steady,
    /// At random, independent of each other: exponential gaps.
    Poisson,
}

/// O_DIRECT or page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DirectMode {
    /// Opened with O_DIRECT.
    Direct,
    /// Through the page cache.
    #[default]
    Buffered,
}

/// Whether and when data is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyMode {
    /// Not at all.
    Off,
    /// After the clock stopped, over the same path. A job that only reads: the blocks that its
    /// timed reads left in memory, then the whole data set read once more. A job that writes: the
    /// blocks of its timed writes, read back; each carries the pattern of its own offset, generated
    /// outside its latency and inside the wall clock. (In older records the data set was rewritten
    /// first, as `rewrite` does.)
    Pass,
    /// As `pass`, but a job that writes first writes the whole data set anew after the clock: that
    /// is what is verified, and timed writes are not.
    Rewrite,
    /// Every timed I/O, between I/Os: outside their latencies, inside the wall clock.
    Inline,
}

impl VerifyMode {
    /// The mode to advise where work between I/Os disturbs a job: it works after the run.
    pub fn after_the_run(writes: bool) -> VerifyMode {
        // Writes that are read back have to carry a pattern, which is made between I/Os.
        if writes { Self::Rewrite } else { Self::Pass }
    }

    /// The value of the key.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Pass => "pass",
            Self::Rewrite => "rewrite",
            Self::Inline => "inline",
        }
    }
}

/// How much of the data repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compressible {
    /// Percentage of each chunk that repeats its first 8 bytes; the rest looks random.
    pub percent: u8,
    /// Bytes of a chunk.
    pub chunk_bytes: u32,
}

/// The data of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// The position-dependent pattern.
    Pattern,
    /// Pseudo-random data from the seed.
    Random,
    /// Zeros.
    Zero,
}

impl Fill {
    /// The value of the key.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pattern => "pattern",
            Self::Random => "random",
            Self::Zero => "zero",
        }
    }
}

/// A GPU of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// The driver's index.
    pub index: u32,
    /// Name as the driver gives it.
    pub name: String,
    /// UUID, `GPU-…`.
    pub uuid: String,
    /// PCI address.
    pub pci: String,
    /// NUMA node of that address, where it is known.
    pub numa_node: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Whether it is gpuio's software GPU.
    pub software: bool,
    /// Whether managed memory takes hints there (concurrent managed access); absent in records of
    /// before that was queried.
    pub managed_hints: Option<bool>,
    /// Whether memory that may only be read can be registered for it and is then pinned, as path
    /// `mapped` needs; absent in records of before that was queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_register: Option<bool>,
}

/// A GPU on the route to a job's GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Via {
    /// The GPU.
    pub gpu: Gpu,
    /// Why this one; absent when it was named.
    pub why: Option<String>,
    /// Whether copies between the GPUs may go through host memory where these can't reach one
    /// another.
    pub any: bool,
}

/// Copies to all GPUs of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FanOut {
    /// Whether copies between the GPUs may go through host memory where these can't reach one
    /// another.
    pub any: bool,
}

/// The kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
}

/// The preparation of a target before the run, and why it is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuardNote {
    /// Absent: gpuio makes it.
    Make,
    /// gpuio made it and it is long enough: used as it is.
    Ours,
    /// gpuio made it, but it is too short, or holds another pattern: made anew.
    Remake,
    /// gpuio made it, or a file of its name, and it is not as gpuio left it: only read.
    Changed,
    /// Another owner's, only read.
    ForeignReadOnly,
    /// Another owner's, to be overwritten because a flag said so.
    ForeignOverwrite,
}

/// A file or device of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetPlan {
    /// Path as opened.
    pub path: String,
    /// File or block device.
    pub kind: TargetKind,
    /// Bytes that must be there before the run starts.
    pub length_bytes: u64,
    /// Its preparation.
    pub guard: GuardNote,
    /// The file's number in the pattern.
    pub file_number: u64,
    /// Ranges without data, in order and apart from each other, where the file is to have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Range<u64>>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerPlan {
    /// Number within the job.
    pub thread: u32,
    /// CPUs it may run on; empty means wherever the process may.
    pub cpus: Vec<u32>,
    /// NUMA node of those CPUs, where one was chosen.
    pub numa_node: Option<u32>,
    /// Why there.
    pub placed_by: Option<String>,
    /// Index into the job's `gpus`.
    pub gpu: Option<u32>,
    /// The parts of targets that it works on.
    pub regions: Vec<Region>,
    /// Its own seed.
    pub seed: u64,
}

/// A part of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Index into the job's `targets`.
    pub target: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes in it.
    pub length: u64,
    /// How its blocks lie apart; absent where it is one range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe: Option<Stripe>,
}

impl Region {
    /// One range.
    pub fn range(target: u32, offset: u64, length: u64) -> Region {
        Region { target, offset, length, stripe: None }
    }

    /// Where in the target the byte of this number lies.
    pub fn place(&self, byte: u64) -> u64 {
        self.offset + self.stripe.map_or(byte, |stripe| stripe.distance(byte))
    }

    /// The byte of the target after its last one.
    pub fn end(&self) -> u64 {
        self.length.checked_sub(1).map_or(self.offset, |last| self.place(last) + 1)
    }
}

/// Blocks of one length, each as far behind the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stripe {
    /// Length of a block in bytes; above 0.
    pub block_bytes: u64,
    /// From the first byte of a block to that of the next, in bytes.
    pub stride_bytes: u64,
}

impl Stripe {
    /// How far behind the first byte the byte of this number lies.
    #[inline]
    pub fn distance(&self, byte: u64) -> u64 {
        byte / self.block_bytes * self.stride_bytes + byte % self.block_bytes
    }
}

/// How the data of all threads lie in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutKind {
    /// A file for each thread of each rank.
    FilePerThread,
    /// One file for all: a contiguous segment for each thread, rank after rank.
    Segmented,
    /// One file for all: block `i` of a thread is followed by block `i` of the next.
    Strided,
}

impl LayoutKind {
    /// The word in job files.
    pub fn word(self) -> &'static str {
        match self {
            LayoutKind::FilePerThread => "file-per-thread",
            LayoutKind::Segmented => "segmented",
            LayoutKind::Strided => "strided",
        }
    }

    /// Whether all threads have a part of the same files.
    pub fn is_shared(self) -> bool {
        self != LayoutKind::FilePerThread
    }
}

/// The layout of a job, and this rank's place in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutPlan {
    /// Which one.
    pub kind: LayoutKind,
    /// Ranks that take part; 1 where there are no others.
    pub ranks: u32,
    /// This rank.
    pub rank: u32,
    /// `read_shift` as requested; absent where each rank reads its own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_shift: Option<String>,
    /// The rank whose data this one reads, with `read_shift`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_rank: Option<u32>,
}
