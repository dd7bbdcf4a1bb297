//! The results of a run.

use gpuio_base::stat::{Histogram, Percentile, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::beside::ComputationCost;
use crate::ceiling::{Ceiling, Towards};
use crate::cost::CpuCost;
use crate::cufile::CufileUsed;
use crate::direction::{DirectionResult, TimeSpan};
use crate::expected::JobExpected;
use crate::facts::{HostFacts, TargetStorage};
use crate::feed::FeedResult;
use crate::holes::{ContentReading, HolesReading};
use crate::injected::InjectedFaults;
use crate::io_failure::IoFailure;
use crate::mapped::MappedResult;
use crate::others::OthersCounted;
use crate::plan::{DirectMode, JobPlan, Plan};
use crate::proof::Proof;
use crate::ranks::{RankOf, RanksResult};
use crate::replay::ReplayResult;
use crate::run_of::RunOf;
use crate::steady::Steady;
use crate::totals::RunTotals;
use crate::verification::VerifyOutcome;
use crate::warning::Warning;
use crate::watched::Watched;

/// One whole run: the request, the plan, the machine, the results and the warnings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Version of this schema.
    pub schema_version: u32,
    /// SHA-256 of all the rest, in hexadecimal: whether the record was changed since it was
    /// written. Absent in older records.
    #[serde(default, skip_serializing_if = "ContentDigest::has_none")]
    pub content_sha256: ContentDigest,
    /// Answers to the questions of the loads, as texts begin with: whether storage is fast enough,
    /// whether a service level is kept. Derived from the rest when the text is written, and not
    /// read; absent where no load has a question, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// The tool that made the record.
    pub tool: Tool,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Wall-clock time at the start, RFC 3339 with offset.
    pub started_at: String,
    /// The machine.
    pub host: HostFacts,
    /// The kernel's boot (`/proc/sys/kernel/random/boot_id`, random(4)), by which a report knows
    /// the machine again; absent where the kernel does not report it and in older
    /// records.
    #[serde(default)]
    pub boot: Option<String>,
    /// File system and device behind each path that the jobs use.
    pub storage: Vec<TargetStorage>,
    /// CUDA driver version as (major, minor), where a driver was loaded.
    pub driver_version: Option<(u32, u32)>,
    /// The cuFile library, where it was opened.
    pub cufile: Option<CufileUsed>,
    /// The plan.
    pub plan: Plan,
    /// The plan as `--dry-run` prints it: a job file that repeats the run.
    pub plan_text: String,
    /// How the run ended.
    pub ended: EndedHow,
    /// The error that ended the run early, where one did; results until then stand.
    pub error: Option<String>,
    /// Times outside the clock.
    pub setup: SetupTimes,
    /// Results, one per job, in plan order.
    pub jobs: Vec<JobResult>,
    /// All jobs together, group by group in order.
    pub totals: Vec<RunTotals>,
    /// Upper bounds of the throughput, where requested.
    #[serde(default)]
    pub ceilings: Vec<Ceiling>,
    /// The throughput that each direction of each job should reach, computed from the figures of
    /// the parts on its route; empty in journals and in older records.
    #[serde(default)]
    pub expected: Vec<JobExpected>,
    /// Device activity during the run; absent where it was not sampled and in older records.
    #[serde(default)]
    pub watched: Option<Watched>,
    /// Warnings about the results.
    pub warnings: Vec<Warning>,
    /// Which of several ranks this record is of; absent where there was one process, and in the
    /// merged record of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<RankOf>,
    /// Which run of a sweep or of `--ab` it is; absent of others, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_of: Option<RunOf>,
    /// The results of the ranks, together and each by itself; absent where there was one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RanksResult>,
}

/// The digest of a record, which is written with its text, and held against the content when that
/// is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Option<String>", into = "Option<String>")]
#[schemars(with = "Option<String>")]
pub enum ContentDigest {
    /// The digest is that of the content: a new one goes into each text.
    #[default]
    Intact,
    /// The record was read, and has no digest. No text of it gets one, which would hide a change.
    NoDigest,
    /// The record was read, and this digest is of other content. It stays in each text.
    Changed(String),
}

impl ContentDigest {
    /// Whether no text has this value: its writer computes the digest, or leaves it out.
    pub(crate) fn has_none(&self) -> bool {
        !matches!(self, ContentDigest::Changed(_))
    }
}

impl From<Option<String>> for ContentDigest {
    fn from(digest: Option<String>) -> ContentDigest {
        digest.map_or(ContentDigest::NoDigest, ContentDigest::Changed)
    }
}

impl From<ContentDigest> for Option<String> {
    fn from(content: ContentDigest) -> Option<String> {
        match content {
            ContentDigest::Changed(digest) => Some(digest),
            ContentDigest::Intact | ContentDigest::NoDigest => None,
        }
    }
}

/// The stonewall of a job that goes on after it, reads and writes together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stonewall {
    /// From the end of the ramp until the last thread had come to it, nanoseconds.
    pub time_ns: u64,
    /// Bytes that all threads had moved when they came to it.
    pub bytes: u64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Bytes that each thread moved in all, at least: the most that one had begun to move by then.
    pub bytes_per_thread: u64,
}

/// The program that made a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `gpuio`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// How a run or job ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedHow {
    /// As planned.
    Complete,
    /// Ctrl-C: results are partial.
    Interrupted,
    /// Errors ended it.
    Failed,
    /// The record was saved between two groups of jobs. Only of a run as a whole.
    #[default]
    Unfinished,
}

/// Times that no result contains, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetupTimes {
    /// Making and filling files, and reading them into the page cache where requested.
    pub data_set_ns: u64,
    /// Bytes written into files in that time; 0 in older records.
    #[serde(default)]
    pub laid_out_bytes: u64,
    /// Opening files, paths, GPU memory, registration, pinning of threads; the slowest worker of
    /// each group, summed.
    pub open_ns: u64,
    /// Verification after the clock.
    pub verify_ns: u64,
    /// Ceilings.
    #[serde(default)]
    pub ceilings_ns: u64,
    /// Runs of jobs and of the computation alone, for comparison with runs at the same time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub alone_ns: u64,
    /// Closing, and removal of files.
    pub close_ns: u64,
}

/// A thread gives up after this many failed I/Os: storage that answers with errors would otherwise
/// be asked millions of times.
pub const FAILURES_MOST: u64 = 1000;

pub(crate) fn is_zero(time: &u64) -> bool {
    *time == 0
}

/// One job's result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobResult {
    /// Name, as in the plan.
    pub name: String,
    /// Group, as in the plan.
    pub group: u32,
    /// How it ended.
    pub ended: EndedHow,
    /// Reads.
    pub read: DirectionResult,
    /// Writes.
    pub write: DirectionResult,
    /// From the end of the ramp until the first worker was done, nanoseconds.
    pub first_done_ns: u64,
    /// Bytes that all workers of the job had moved by then, both directions.
    pub first_done_bytes: u64,
    /// From the end of the ramp until the last I/O of the last worker was back, failed ones
    /// included, nanoseconds. All rates of the job are over this time.
    pub last_done_ns: u64,
    /// The same time on the run's clock; absent where a worker was lost and in older records.
    #[serde(default)]
    pub measured: Option<TimeSpan>,
    /// I/Os that were due by the requested rate and never started; absent without a rate and in
    /// older records.
    #[serde(default)]
    pub never_started: Option<NeverStarted>,
    /// The sizes that were drawn, where the load has several, and those that ran; absent with one
    /// size and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_sizes: Option<DrawnSizes>,
    /// CPU cost over that time.
    pub cpu: CpuCost,
    /// The counts of others on drives and processors meanwhile; absent of an unfinished job, of
    /// several ranks and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersCounted>,
    /// Why it is unknown whether others used the processors; absent where it is known, and in older
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpu_unknown: Option<String>,
    /// The engines that actually ran, one entry for each distinct one.
    pub engine: Vec<ActualEngine>,
    /// The tool's own count of the file leg, ramp included.
    pub file_leg: FileLegCounters,
    /// Direct or buffered as the kernel holds the descriptors (fcntl F_GETFL), read back.
    #[serde(alias = "direct_got")]
    pub direct_actual: DirectMode,
    /// Page cache before and after, over the job's files.
    pub cache: CacheReading,
    /// The data path that the bytes took, with evidence; absent in older records.
    #[serde(default)]
    pub proof: Option<Proof>,
    /// The first failures, at most 16 of each kind.
    pub failures: Vec<IoFailure>,
    /// Failed I/Os in all.
    pub failed: u64,
    /// Verification, where requested.
    pub verify: Option<VerifyOutcome>,
    /// Time spent generating and checking between I/Os, summed over workers: inside the wall
    /// clock, outside all latencies. 0 unless verification is inline or buffers are refilled.
    pub between_ios_ns: u64,
    /// Calls that sent written data to the medium during the measured time, where requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<FlushResult>,
    /// Whether it became steady, where that was requested.
    #[serde(default)]
    pub steady: Option<Steady>,
    /// The bytes moved until the stonewall, for jobs that go on after it; absent for others, and
    /// where a thread ended before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stonewall: Option<Stonewall>,
    /// One point per interval, ramp included (negative times).
    pub series: Vec<Point>,
    /// One entry per worker.
    pub workers: Vec<WorkerResult>,
    /// Bytes and I/Os of each of the job's GPUs, in the plan's order; empty on paths without one.
    #[serde(default)]
    pub gpus: Vec<GpuResult>,
    /// The segments through another GPU; absent on paths without.
    #[serde(default)]
    pub via: Option<ViaResult>,
    /// The bytes placed in several GPUs after they were read once; absent on paths without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<FanOutResult>,
    /// The bytes that gpuio's library core moved, by route; absent on paths without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<LibraryResult>,
    /// The memory mapped for the GPU to read by itself, the cost of that, and the bytes read of it;
    /// absent on paths without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<MappedResult>,
    /// The I/Os that the GPU started by itself; absent on other paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiated: Option<InitiatedResult>,
    /// How much the job and a concurrent computation slow each other; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<ComputationCost>,
    /// The outcome of a training feed; absent where blocks are moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed: Option<FeedResult>,
    /// The outcome of a replay; absent where no recorded calls are made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayResult>,
}

impl JobResult {
    /// The kinds of failed I/Os: those of the load, then those of its verification.
    pub fn all_failures(&self) -> impl Iterator<Item = &IoFailure> {
        self.failures.iter().chain(self.verify.iter().flat_map(|found| &found.failures))
    }
}

impl JobResult {
    /// Whether its bytes pass the page cache as far as the kernel knows.
    pub fn passes_page_cache(&self, job: &JobPlan) -> bool {
        if let Some(library) = self.library {
            return library.read.cached_bytes + library.write.cached_bytes > 0;
        }
        self.direct_actual == DirectMode::Buffered || job.engine.actual == "mmap"
    }

    /// Whether gpuio's library core read with `O_DIRECT` what the page cache lacked, though the
    /// job's descriptors are without.
    pub fn reads_around_cache(&self) -> bool {
        let core = self.library.is_some_and(|library| library.read.direct_bytes > 0);
        core && self.direct_actual == DirectMode::Buffered
    }
}

/// The I/Os that GPUs started by themselves, ramp included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InitiatedResult {
    /// Entries of the rings that the operating system completed, by its own count in each: GPUs
    /// wrote them all.
    pub entries: u64,
    /// I/Os that the job's threads named to the GPUs: its blocks, and the rest of those that
    /// stopped short.
    pub commands: u64,
    /// Rings, of all threads.
    pub rings: u32,
}

/// Calls of fsync(2) or fdatasync(2) in the measured time: inside the wall clock, outside the
/// latencies of writes that were done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlushResult {
    /// How many.
    pub calls: u64,
    /// Their time, summed over workers, nanoseconds.
    pub ns: u64,
    /// How long each took; absent in older records and without a call.
    #[serde(default)]
    pub latency: Option<Summary>,
}

impl FlushResult {
    /// Adds those of another worker or rank.
    pub fn add(&mut self, more: &FlushResult) {
        self.calls += more.calls;
        self.ns += more.ns;
        let all = [&self.latency, &more.latency].into_iter().flatten();
        let mut sum = Histogram::default();
        all.for_each(|one| sum.merge(&Histogram::from_summary(one)));
        self.latency = sum.summary();
    }
}

/// I/Os of a load with a rate that were due and never started. They are in no latency and would be
/// the longest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeverStarted {
    /// How many were due before the end. Counted one by one up to a million per worker, and in
    /// proportion beyond.
    pub ios: u64,
    /// How long the first of them had been due by then, nanoseconds: the largest latency would have
    /// been more.
    pub longest_wait_ns: u64,
}

impl NeverStarted {
    /// Whether they would change the percentiles. One for each thread may be due in the last moment
    /// before the end, whatever the load.
    pub fn matters(&self, threads: u32) -> bool {
        self.ios > u64::from(threads)
    }
}

/// Sizes of I/Os that were drawn from several, ramp included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrawnSizes {
    /// I/Os.
    pub ios: u64,
    /// How many of them were shorter than the size that was drawn: a block ends before what its
    /// pass has accessed, and where its region ends.
    pub cut_ios: u64,
    /// The sum of the sizes that were drawn.
    pub drawn_bytes: u64,
    /// The sum of the sizes of the I/Os.
    pub bytes: u64,
}

impl std::ops::AddAssign for DrawnSizes {
    fn add_assign(&mut self, other: DrawnSizes) {
        self.ios += other.ios;
        self.cut_ios += other.cut_ios;
        self.drawn_bytes += other.drawn_bytes;
        self.bytes += other.bytes;
    }
}

/// An engine as it actually ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActualEngine {
    /// The engine that ran.
    #[serde(alias = "got")]
    pub actual: String,
    /// Fallbacks from the request, with reasons.
    pub steps_down: Vec<String>,
    /// Workers that ran exactly this engine.
    pub workers: u32,
}

/// Counters at the engine's interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLegCounters {
    /// Completed reads.
    pub read_ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Completed writes.
    pub write_ios: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Transfers that completed short and were continued.
    pub short_ios: u64,
    /// I/Os that failed.
    pub faults: u64,
    /// Faults that `inject` made; absent where it made none.
    #[serde(default, skip_serializing_if = "InjectedFaults::is_none")]
    pub injected: InjectedFaults,
}

/// Page cache and storage traffic around a job: from the first I/O of its group to the last, ramps
/// included. Absent figures could not be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheReading {
    /// Share of the job's file bytes in the page cache before it (cachestat(2) or mincore(2)).
    pub resident_before: Option<f64>,
    /// The same after it.
    pub resident_after: Option<f64>,
    /// Bytes that the process caused to be read from storage during it (/proc/self/io
    /// `read_bytes`), all jobs of the group together.
    pub process_read_bytes: Option<u64>,
    /// Bytes that it caused to be sent to storage (`write_bytes`; page-cache writes count when
    /// dirtied).
    pub process_write_bytes: Option<u64>,
    /// Which of the bytes that the job uses no device holds; absent for jobs without regular files,
    /// and in older records.
    #[serde(default)]
    pub holes: Option<HolesReading>,
    /// The content of the files that the job reads; absent for jobs that read none, where it could
    /// not be looked at, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentReading>,
    /// Counters of the block devices under the files during it, other processes included.
    pub storage: Vec<StorageReading>,
    /// Reasons for absent figures.
    pub unknown: Vec<String>,
}

/// Counts of one block device over a group's time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageReading {
    /// Kernel name.
    pub device: String,
    /// Read requests completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes of its cache, which the kernel counts as writes of no bytes unless a write with
    /// bytes asked for it; absent where it does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<u64>,
    /// Whether it, or a member of the array, has a volatile write cache
    /// ([`BlockFacts::volatile_cache`](crate::facts::BlockFacts::volatile_cache)); `null` where
    /// the kernel does not report it.
    #[serde(default)]
    pub volatile_cache: Option<bool>,
}

/// One point of a series: what was counted in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// End of the interval, nanoseconds after the end of the ramp (negative during the ramp).
    pub at_ns: i64,
    /// Length of the interval, nanoseconds.
    pub span_ns: u64,
    /// Bytes read in it.
    pub read_bytes: u64,
    /// Bytes written in it.
    pub write_bytes: u64,
    /// Reads that completed in it.
    pub read_ios: u64,
    /// Writes that completed in it.
    pub write_ios: u64,
    /// Total latency of these reads, added up: divided by their number their mean. Absent in old
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency_ns: Option<u64>,
    /// The same of the writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_latency_ns: Option<u64>,
    /// Median total latency of the I/Os that completed in it, reads and writes together.
    pub p50_ns: Option<u64>,
    /// 99th percentile; absent with fewer than 1000 of them.
    pub p99_ns: Option<u64>,
    /// Largest, within 0.8 %.
    pub max_ns: Option<u64>,
}

impl Point {
    /// The figures of these total latencies in a point that has nothing else.
    pub fn of_latencies(all: &Histogram) -> Point {
        let at = |at: Percentile| all.percentile(at.quantile());
        Point {
            p50_ns: at(Percentile::MEDIAN),
            p99_ns: at(Percentile::TAIL),
            max_ns: all.max(),
            ..Point::default()
        }
    }

    /// Bytes of a direction in it.
    pub fn bytes(&self, direction: Towards) -> u64 {
        match direction {
            Towards::Read => self.read_bytes,
            Towards::Write => self.write_bytes,
        }
    }

    /// I/Os of a direction in it.
    pub fn ios(&self, direction: Towards) -> u64 {
        match direction {
            Towards::Read => self.read_ios,
            Towards::Write => self.write_ios,
        }
    }

    /// A percentile of the total latencies, if it is one that series have.
    pub fn percentile(&self, at: Percentile) -> Option<u64> {
        match at {
            Percentile::MEDIAN => self.p50_ns,
            Percentile::TAIL => self.p99_ns,
            _ => None,
        }
    }
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerResult {
    /// Number within the job.
    pub thread: u32,
    /// Bytes moved, both directions.
    pub bytes: u64,
    /// I/Os that completed.
    pub ios: u64,
    /// From the end of the ramp until its last I/O completed, nanoseconds.
    pub done_ns: u64,
}

/// One GPU's part of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuResult {
    /// The driver's index.
    pub index: u32,
    /// Bytes moved by the workers of this GPU, both directions. On path `fan-out`: its share of
    /// what was read, which all GPUs have then.
    pub bytes: u64,
    /// I/Os of theirs that completed.
    pub ios: u64,
}

/// The route through another GPU, by gpuio's own counters. They begin with the first I/O of the
/// job, ramp included, and count what the driver took, also of I/Os that failed later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ViaResult {
    /// The near GPU's index.
    pub gpu: u32,
    /// Whether the driver copied between the GPUs through host memory, because they can't reach
    /// one another.
    pub through_host: bool,
    /// Bytes from files.
    pub read: SegmentBytes,
    /// Bytes to files.
    pub write: SegmentBytes,
}

/// The bytes that a job read once and placed in the memory of several GPUs. Bytes read and their
/// rate are the job's `read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FanOutResult {
    /// In how many GPUs each block was placed.
    pub gpus: u32,
    /// Bytes placed in all of them together: `gpus` times the bytes read.
    pub placed_bytes: u64,
    /// The same per second, over `last_done_ns`.
    pub placed_bytes_per_s: f64,
    /// Bytes of copies from host memory to a first GPU, by gpuio's own counter: ramp included, and
    /// what the driver took of I/Os that failed later.
    pub from_host_bytes: u64,
    /// Bytes of copies from there to other GPUs, by the same counter.
    pub between_gpus_bytes: u64,
    /// Whether the driver copied between GPUs through host memory, because they can't reach one
    /// another.
    pub through_host: bool,
}

/// The bytes that gpuio's library core moved, by its own counters. The counters begin with the
/// first I/O of the job, ramp included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LibraryResult {
    /// Bytes from files.
    pub read: LibraryBytes,
    /// Bytes to files.
    pub write: LibraryBytes,
}

/// Bytes of one direction by route. All passed page-locked host memory; the file side and the GPU
/// side each add up to all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LibraryBytes {
    /// File side: through the page cache.
    pub cached_bytes: u64,
    /// File side: past the page cache, with O_DIRECT.
    pub direct_bytes: u64,
    /// GPU side: by a kernel of gpuio.
    pub by_kernel_bytes: u64,
    /// GPU side: by copies of the driver.
    pub by_copy_bytes: u64,
}

/// Bytes of one direction, leg by leg.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SegmentBytes {
    /// Between host memory and the near GPU.
    pub host_near_bytes: u64,
    /// Between the near GPU and the far one.
    pub near_far_bytes: u64,
}
