//! The requested settings, without defaults: every field is `None` until it is set.

use std::collections::BTreeMap;
use std::sync::Arc;

use gpuio_base::stat::Percentile;
use gpuio_record::{
    Arrivals, BlockShare, Column, Distribution, FadviseHint, FeedCompute, Fill, LayoutKind,
    MemoryKind, RangeKind, ReplayOrder, ReplayPace, SampleOrder, SampleSize, ServiceLevel,
    SteadyFigure, VerifyMode,
};

use crate::spec::dialect::Dialect;
use crate::spec::{Origin, Requested};
use crate::workload::replay::Script;

/// The job's own name, as the first part of the name of a log.
pub(crate) const OWN_NAME: &str = "$jobname";

/// A run: jobs in the order they were written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spec {
    /// The run's name: `name=` in `[global]`.
    pub name: Option<String>,
    /// Jobs, in order. A parsed job file has at least one.
    pub jobs: Vec<JobSpec>,
}

/// A trace that is to be replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayRequest {
    /// Its name.
    pub name: String,
    /// Its format and version, in words.
    pub format: String,
    /// The program that was recorded, where the trace names it.
    pub program: Option<String>,
    /// The parts that the trace reports as missing, in words.
    pub missing: Option<String>,
    /// The calls to repeat.
    pub script: Arc<Script>,
    /// The calls that a call waits for, as the script has it.
    pub order: ReplayOrder,
    /// When it starts.
    pub pace: ReplayPace,
}

/// One requested job. Sizes and offsets are bytes, durations nanoseconds.
///
/// `None` means not set: the plan fills in the default. Nothing here was checked against a machine,
/// a file or the table of paths and engines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobSpec {
    /// The section's name, or the value of `name`. Not unique.
    pub name: String,
    /// The dialect whose meanings apply if dialects differ. Set to gdsio's by its command line and
    /// by a job section with a gdsio-only key, to fio's by a section with `ioengine`; never to
    /// `Dialect::All`.
    pub dialect: Option<Dialect>,
    /// Data paths by name, or `all`.
    pub paths: Option<Vec<String>>,
    /// The I/O engine by name; fio's synchronous engines become `psync`.
    pub engine: Option<String>,
    /// Direction and order.
    pub rw: Option<Rw>,
    /// Nothing is written: `rw` is that of reads in its order.
    pub verify_only: Option<bool>,
    /// fio's number behind a colon there: in order the bytes from the end of an I/O to the next,
    /// by chance the I/Os from each offset.
    pub rw_modifier: Option<i64>,
    /// With it: I/Os from an offset repeat it, instead of being the blocks behind it.
    pub run_same: Option<bool>,
    /// Shares of reads and of writes of a random load that are drawn, in per cent; others follow
    /// the last one.
    pub random_percent: Option<(u8, u8)>,
    /// Values of writes in a mix that has them apart. Set by the plan.
    pub of_writes: Option<Box<OfWrites>>,
    /// Block sizes with their shares, which sum to 100. Never empty.
    pub blocks: Option<Vec<BlockShare>>,
    /// Size of each thread's region of the file, not the amount moved.
    pub size: Option<u64>,
    /// The same as a share of each file that is there, in per cent: 1 to 100.
    pub size_percent: Option<u8>,
    /// Length of each file, which may be longer than the regions in it; at least 1.
    pub file_bytes: Option<u64>,
    /// The longest, where each file gets a length from there on by chance; above `file_bytes`.
    pub file_bytes_most: Option<u64>,
    /// Files of each thread in a directory, among which `size` is divided; at least 1.
    pub files_per_thread: Option<u32>,
    /// A thread with several files takes a block of each in turn.
    pub files_in_turn: Option<bool>,
    /// It takes them by chance.
    pub files_by_chance: bool,
    /// Regions of threads start so many bytes apart.
    pub offset_increment: Option<u64>,
    /// I/Os each thread makes before it stops; at least 1.
    pub number_ios: Option<u64>,
    /// Start after the job of this name has ended.
    pub wait_for: Option<String>,
    /// Whether a file that is not there is made; a block device always is.
    pub create_files: Option<bool>,
    /// Whether a job that writes, or whose files are not there, is refused.
    pub read_only: Option<bool>,
    /// `fsync` after so many writes; 0 for never.
    pub fsync_ios: Option<u64>,
    /// `fdatasync` after so many writes; 0 for never.
    pub fdatasync_ios: Option<u64>,
    /// `fsync` once the last write is done, inside the measured time.
    pub end_fsync: Option<bool>,
    /// The same after the measured time.
    pub fsync_on_close: Option<bool>,
    /// An I/O that takes longer fails and ends the job, in nanoseconds; 0 for none.
    pub max_latency_ns: Option<u64>,
    /// Memory that the page cache is to be without, in bytes.
    pub lock_bytes: Option<u64>,
    /// The latency that a search for the highest load is to stay within, in nanoseconds; above 0.
    pub latency_target_ns: Option<u64>,
    /// The percentile of it; none for the maximum.
    pub latency_percentile: Option<Percentile>,
    /// The jobs that run with it end when it does.
    pub ends_others: Option<bool>,
    /// The hint to the kernel on the accesses to buffered files; none for no hint.
    pub fadvise_hint: Option<Option<FadviseHint>>,
    /// The run fails unless all bytes are proven to have taken the requested path.
    pub require_path: Option<bool>,
    /// The first of two block sizes is for loads in order, the second for random ones.
    pub blocks_by_order: Option<bool>,
    /// Sizes of a range are not multiples of the smallest.
    pub blocks_unaligned: Option<bool>,
    /// How names of files in the directory are made, in fio's words.
    pub filename_format: Option<String>,
    /// Pause after I/Os, in nanoseconds.
    pub think_ns: Option<u64>,
    /// Part of the pause in which the thread computes, in nanoseconds.
    pub think_spin_ns: Option<u64>,
    /// I/Os between two pauses; at least 1.
    pub think_ios: Option<u64>,
    /// First parts of the names of fio's logs, of throughput, latency and I/Os per second; or
    /// `$jobname`.
    pub bw_log: Option<String>,
    /// See `bw_log`.
    pub lat_log: Option<String>,
    /// See `bw_log`.
    pub iops_log: Option<String>,
    /// Time that a line of a log covers, in nanoseconds; 0 for a line of each I/O.
    pub log_ns: Option<u64>,
    /// Whether a line of one I/O has its offset.
    pub log_offset: Option<bool>,
    /// Whether each thread has logs of its own, with its number in their names.
    pub per_job_logs: Option<bool>,
    /// Completions are polled for by the kernel.
    pub polled: Option<bool>,
    /// A thread of the kernel's submits.
    pub submit_thread: Option<bool>,
    /// fio's engine libcufile: `paths` follows from it where none is named.
    pub fio_cufile: Option<bool>,
    /// fio's `cuda_io=posix`: through host memory.
    pub cuda_posix: Option<bool>,
    /// How much each thread moves before it stops.
    pub io_size: Option<IoSize>,
    /// Where the first thread's region starts, in bytes.
    pub offset: Option<u64>,
    /// The same as a share of each file, in per cent: 0 to 100.
    pub offset_percent: Option<u8>,
    /// Threads; at least 1.
    pub threads: Option<u32>,
    /// I/Os in flight per thread; at least 1.
    pub depth: Option<u32>,
    /// How long to run, in nanoseconds.
    pub runtime_ns: Option<u64>,
    /// Repeat the region until `runtime_ns` is up.
    pub time_based: Option<bool>,
    /// Run this long before measuring, in nanoseconds.
    pub ramp_ns: Option<u64>,
    /// End the job once it is steady by this criterion.
    pub steady: Option<SteadyCriterion>,
    /// Length of the window in which it must be steady, in nanoseconds; above 0.
    pub steady_window_ns: Option<u64>,
    /// Start the window this long after the ramp, in nanoseconds.
    pub steady_ramp_ns: Option<u64>,
    /// Time between two values of the window, in nanoseconds; above 0.
    pub steady_check_ns: Option<u64>,
    /// Where the data files are.
    pub directory: Option<String>,
    /// Directories besides that one, which threads take in turn with it.
    pub more_directories: Vec<String>,
    /// First part of the names of files in the directory.
    pub file_prefix: Option<String>,
    /// Data files by name. Never empty.
    pub filenames: Option<Vec<String>>,
    /// Which GPUs, through which driver.
    pub gpu: Option<GpuRequest>,
    /// NUMA node for threads and host memory.
    pub numa: Option<u32>,
    /// CPUs the threads may use: sorted, each once.
    pub cpus: Option<Vec<u32>>,
    /// Whether each thread gets one of those CPUs, in turn, and not all of them.
    pub split_cpus: Option<bool>,
    /// `O_DIRECT` (true) or the page cache (false).
    pub direct: Option<bool>,
    /// Read the files into the page cache before the measurement.
    pub pre_read: Option<bool>,
    /// Drop the files from the page cache before the measurement.
    pub invalidate: Option<bool>,
    /// Give every run the same state of the page cache, by whichever of the two fits it.
    pub cache_alike: Option<bool>,
    /// Whether and when data is verified.
    pub verify: Option<VerifyMode>,
    /// Blocks have fio's headers with CRC-32C.
    pub fio_headers: Option<bool>,
    /// Longest time for verification after the run, in nanoseconds: what fits into it is checked.
    pub verify_ns: Option<u64>,
    /// Whether ceilings are measured, and how long each.
    pub ceilings: Option<Ceilings>,
    /// The percentiles of latencies that tables show, ascending.
    pub percentiles: Option<Vec<Percentile>>,
    /// GPU computation during the job.
    pub beside: Option<ComputationRequest>,
    /// A training feed.
    pub feed: FeedRequest,
    /// Share of the load's size, or of a feed's files, that is used; above 0.
    pub scale: Option<f64>,
    /// Threads of the whole load, of which `threads` run; at least 1.
    pub full_threads: Option<u32>,
    /// Read whole files, or their tensors, instead of regions of one size.
    pub ranges: Option<RangeKind>,
    /// The recorded calls that are made again. No key of a job file: `gpuio replay` sets it.
    pub replay: Option<ReplayRequest>,
    /// Data is verified against the file.
    pub against_file: Option<bool>,
    /// How often the job runs, one time after another; at least 1.
    pub repeat: Option<u32>,
    /// Whether writes go to staged pages in memory first, and to the files from there.
    pub stage: Option<bool>,
    /// Which of these times this is, from 1, and how many there are. Set by the plan.
    pub nth: Option<(u32, u32)>,
    /// Seed of all random choices.
    pub seed: Option<u64>,
    /// Upper limit per thread, in bytes per second.
    pub rate_bytes: Option<u64>,
    /// Upper limit per thread, in I/Os per second.
    pub rate_iops: Option<u64>,
    /// How a rate limit spaces its I/Os.
    pub arrivals: Option<Arrivals>,
    /// Reads per hundred I/Os of a mixed load.
    pub read_percent: Option<u8>,
    /// Whether a random load accesses every block before any block twice.
    pub coverage: Option<bool>,
    /// Distribution of random offsets.
    pub distribution: Option<Distribution>,
    /// Random offsets are multiples of this many bytes.
    pub align: Option<u64>,
    /// Random offsets are not 4 KiB aligned, on purpose.
    pub unaligned: Option<bool>,
    /// Wait this long before the first I/O, in nanoseconds.
    pub start_delay_ns: Option<u64>,
    /// Number of passes over the whole region; at least 1.
    pub loops: Option<u64>,
    /// Start after every job before this one has ended.
    pub stonewall: Option<bool>,
    /// All threads use the same files; thread `i` starts at `offset + i * size`.
    pub shared_files: Option<bool>,
    /// How the data of all threads, and of all ranks, lie in files.
    pub layout: Option<LayoutKind>,
    /// The data that each rank reads.
    pub read_shift: Option<ReadShift>,
    /// End when all bytes were moved, not by time; or, after a time, once all threads have moved as
    /// many as the fastest.
    pub wear_out: Option<bool>,
    /// All threads use one descriptor per file.
    pub shared_fd: Option<bool>,
    /// Destination (or source) memory.
    pub memory: Option<MemoryKind>,
    /// Content of written blocks.
    pub fill: Option<Fill>,
    /// Percentage of the data that repeats, so that storage can compress it.
    pub compress_percent: Option<u8>,
    /// Bytes of the chunks that this is a percentage of each of: a power of two.
    pub compress_chunk: Option<u32>,
    /// Fill the buffer again before every write.
    pub refill: Option<bool>,
    /// `O_DSYNC`: a write completes when its data is on the medium.
    pub sync: Option<bool>,
    /// Faults to inject, in the syntax of the engine that injects them.
    pub inject: Option<String>,
    /// Keep the data files after the run.
    pub keep: Option<bool>,
    /// GPU streams per thread; at least 1.
    pub streams: Option<u32>,
    /// Blocks per launch on path `gather`, per submit on cuFile's batch paths; at least 1.
    pub gather_batch: Option<u32>,
    /// On path `gather`: blocks get separate, non-adjacent locations in the destination.
    pub gather_scatter: Option<bool>,
    /// On path `initiated`: rings per thread; at least 1.
    pub rings: Option<u32>,
    /// On path `initiated`: each block's offset comes out of the bytes read before.
    pub chain: Option<bool>,
    /// On path `routed`: the GPU near the drive that the bytes go through.
    pub via_gpu: Option<u32>,
    /// On path `routed`: which routes copies between the GPUs may take.
    pub via_peer: Option<ViaPeer>,
    /// Do not register buffers with the path's library.
    pub skip_bufregister: Option<bool>,
    /// gdsio's `-p`: let cuFile copy between GPUs over NVLink.
    pub nvlinks: Option<bool>,
    /// gdsio's transfer type 0 to 7; `paths` names what it stands for.
    pub xfer_type: Option<u8>,
    /// gdsio's `-B`: I/Os per batch; at least 1.
    pub batch: Option<u32>,
    /// gdsio's `-P`.
    pub rdma_url: Option<String>,
    /// gdsio's `-M`: mixed read and write percentage of its batch mode. Its help text does not say
    /// which of the two the number is.
    pub mix_percent: Option<u8>,
    /// cuFile settings by the path of their keys (`properties.allow_compat_mode`), which override
    /// its configuration file. cuFile reads them once per process, for all jobs.
    pub cufile: BTreeMap<&'static str, CufileSetting>,
    /// Paths that are named and can't run here are left out with their reason, as those of `all`.
    pub paths_if_here: bool,
    /// Whether this is one of many runs whose keys were checked together: a key without effect on
    /// this run is noted, not refused.
    pub one_of_many: bool,
    /// This process's place among the ranks, where the same job runs on several: files of a
    /// directory, scratch and random choices are then this rank's own.
    pub rank: Option<RankPlace>,
    /// Accepted settings that have no effect here, with the reason.
    pub notes: Vec<String>,
    /// Keys about writes that are refused where the job writes, and have no effect where it does
    /// not.
    pub for_writes: Vec<WriteRefusal>,
    /// The key that set each field, by the field's name.
    pub requested: BTreeMap<&'static str, Requested>,
}

impl JobSpec {
    /// An empty job.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Whether fio's meanings apply where dialects differ.
    pub fn is_fio(&self) -> bool {
        self.dialect == Some(Dialect::Fio)
    }

    /// Whether the load repeats until its time is up, whatever else would end it (fio's HOWTO,
    /// `time_based`).
    pub fn repeats_for_runtime(&self) -> bool {
        self.time_based == Some(true) && self.runtime_ns.is_some()
    }

    /// The latency that a search keeps to; fio's 0 is none.
    pub fn latency_limit_ns(&self) -> Option<u64> {
        self.latency_target_ns.filter(|limit| *limit > 0)
    }

    /// Reads of all I/Os, in per cent.
    pub fn reads_percent(&self) -> u8 {
        let mixed = self.read_percent.unwrap_or(50);
        let percent = match self.rw.unwrap_or(Rw::Read) {
            Rw::Read | Rw::RandRead => 100,
            Rw::Write | Rw::RandWrite => 0,
            Rw::ReadWrite | Rw::RandRw => mixed,
        };
        // gdsio's -M mixes whatever its -I says; paths that have no -M refuse it.
        self.mix_percent.unwrap_or(percent)
    }

    /// Whether it is a training feed.
    pub fn is_feed(&self) -> bool {
        self.requested.keys().any(|field| field.starts_with("feed."))
    }

    /// The same of gdsio's.
    pub fn is_gdsio(&self) -> bool {
        self.dialect == Some(Dialect::Gdsio)
    }

    /// The origin of `field` (a field name of this type, such as `"blocks"`), or `None` if it was
    /// not set.
    pub fn origin(&self, field: &str) -> Option<&Origin> {
        self.requested.get(field).map(|requested| &requested.origin)
    }
}

/// Values that a mix has for its writes, where they are not those of its reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfWrites {
    /// See [`JobSpec::blocks`].
    pub blocks: Option<Vec<BlockShare>>,
    /// See [`JobSpec::rate_bytes`].
    pub rate_bytes: Option<u64>,
    /// See [`JobSpec::rate_iops`].
    pub rate_iops: Option<u64>,
}

/// A key that a job which writes can't have.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteRefusal {
    /// The key.
    pub name: &'static str,
    /// Where it was set.
    pub origin: Origin,
    /// Why it is refused, and what to use instead.
    pub why: String,
}

/// A training feed: samples that are read for accelerators which compute meanwhile. As in
/// [`JobSpec`], `None` means not set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeedRequest {
    /// Files of the whole data set.
    pub files: Option<u64>,
    /// Samples of each file; at least 1.
    pub samples_per_file: Option<u64>,
    /// Size of the samples.
    pub sample_size: Option<SampleSize>,
    /// Columns of a sample. Never empty.
    pub columns: Option<Vec<Column>>,
    /// Samples that are read together; at least 1.
    pub sample_group: Option<u64>,
    /// Samples of a step; at least 1.
    pub batch_samples: Option<u64>,
    /// How many times smaller samples are stored than they are; at least 1.
    pub ratio: Option<f64>,
    /// Order in an epoch.
    pub order: Option<SampleOrder>,
    /// Bytes of host memory that keeps samples which were read; above 0.
    pub cache_memory: Option<u64>,
    /// Passes over the data set; at least 1.
    pub epochs: Option<u64>,
    /// Accelerators; at least 1.
    pub accelerators: Option<u32>,
    /// Reader threads of each accelerator; at least 1.
    pub readers: Option<u32>,
    /// Batches that each reader may be ahead; at least 1.
    pub prefetch: Option<u32>,
    /// The work of an accelerator on a batch.
    pub compute: Option<FeedCompute>,
    /// How long that takes, in nanoseconds; above 0.
    pub compute_ns: Option<u64>,
    /// The same for each sample of a full batch, in addition; above 0.
    pub sample_compute_ns: Option<u64>,
    /// Utilisation to reach, in per cent.
    pub utilisation: Option<f64>,
    /// Times in which batches are to be there.
    pub slo: Option<ServiceLevel>,
}

/// A process among those that run the same job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankPlace {
    /// Its number, from 0.
    pub rank: u32,
    /// How many there are.
    pub ranks: u32,
    /// The rank with the same local number on the next host; why there is none.
    pub on_next_host: Result<u32, String>,
}

/// The data that a rank reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadShift {
    /// That of the rank so many further on; above 0.
    Ranks(u32),
    /// That of the rank with the same local number on the next host.
    Node,
}

/// A value for a key of cuFile's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CufileSetting {
    /// The value as JSON.
    pub json: String,
    /// Its origin.
    pub origin: Origin,
}

/// Direction and order of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rw {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Reads at random offsets.
    RandRead,
    /// Writes at random offsets.
    RandWrite,
    /// Sequential, reads and writes mixed.
    ReadWrite,
    /// Random offsets, reads and writes mixed.
    RandRw,
}

impl Rw {
    /// Reads in the same order.
    pub(super) fn reading(self) -> Rw {
        match self {
            Rw::Read | Rw::Write | Rw::ReadWrite => Rw::Read,
            Rw::RandRead | Rw::RandWrite | Rw::RandRw => Rw::RandRead,
        }
    }
}

/// Which GPUs, through which driver. The two are set separately: `gpu=software` in `[global]` and
/// `gpu_dev_id=2` in a job combine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GpuRequest {
    /// Which driver, if set.
    pub driver: Option<GpuDriver>,
    /// Which devices.
    pub which: GpuWhich,
}

/// A CUDA driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuDriver {
    /// The installed driver.
    System,
    /// gpuio's driver in software: needs no GPU, measures no GPU.
    Software,
}

/// A choice of GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum GpuWhich {
    /// Not set.
    #[default]
    Unset,
    /// No GPU.
    None,
    /// Every GPU of the driver.
    All,
    /// These device numbers, in this order, repeats kept.
    List(Vec<u32>),
}

/// Whether ceilings are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceilings {
    /// No.
    Off,
    /// Yes, for the default time.
    On,
    /// Yes, each for this long, in nanoseconds; at least 1.
    For(u64),
}

/// GPU computation during a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ComputationRequest {
    /// None.
    Off,
    /// Arithmetic in registers, on this share of a GPU's multiprocessors in per cent: above 0, at
    /// most 100.
    Compute(f64),
    /// A stream over GPU memory, by this share of its multiprocessors.
    Memory(f64),
}

/// The steady-state criterion of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyCriterion {
    /// As written.
    pub words: String,
    /// The figure to check.
    pub of: SteadyFigure,
    /// Check the slope of the window instead of its largest deviation.
    pub slope: bool,
    /// Above 0: I/Os per second, bytes per second or nanoseconds (per check for a slope), or a
    /// percentage of the mean.
    pub limit: f64,
    /// Whether the limit is a percentage of the mean.
    pub percent: bool,
}

/// Which routes copies between two GPUs may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViaPeer {
    /// From one to the other only.
    Peer,
    /// Also through host memory, if they can't reach one another.
    Any,
}

/// How much a thread moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoSize {
    /// Bytes, above 0.
    Bytes(u64),
    /// Per cent of its size, above 0; over 100 it goes over the region again.
    OfSize(u32),
}

impl IoSize {
    /// Bytes of a thread whose size is `size`; at least 1.
    pub fn bytes(self, size: u64) -> u64 {
        match self {
            IoSize::Bytes(bytes) => bytes,
            IoSize::OfSize(percent) => {
                let bytes = u128::from(size) * u128::from(percent) / 100;
                u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
            }
        }
    }
}
