//! Defaults of a job. Each function is one decision, with its reason.

use std::sync::Arc;

use gpuio_base::catalog::{Calls, GATHER_PLAIN_BYTES, MAPPED_COPY_BYTES, PathInfo, RING_ENTRIES};
use gpuio_record::{
    BlockShare, ComputationKind, ComputationPlan, DirectMode, Distribution, JobPlan, Order, Stop,
};

use super::PlanError;
use super::facts::{DirectAnswer, Facts, TargetInfo};
use crate::spec::{Ceilings, ComputationRequest, JobSpec, Rw};

/// I/Os in flight for asynchronous engines: enough for an NVMe drive at small blocks (its queue
/// saturates near 32 to 128), fewer for large ones, which fill the link with a handful.
const DEPTH_SMALL: u32 = 32;
const DEPTH_LARGE: u32 = 8;
/// Blocks above this are large.
const LARGE_BYTES: u64 = 128 << 10;
/// Slots of a GPU path's ring on a synchronous engine: one is filled while others are copied.
const DEPTH_RING: u32 = 4;
/// Path `gather`: bytes that a launch moves, by block size. Measured on an H100 with a warm file
/// and 12 to 16 threads: at 4 KiB, from 128 blocks on a larger batch gained nothing, and from 512
/// on it lost, because the ring had left the cache; at 16 KiB, 0.5, 1 and 2 MiB made 40.7, 42.3
/// and 47.0 GiB/s; at 64 KiB, 1 and 2 MiB made 43.0 and 47.2; at 1 MiB, 2 and 4 MiB in two batches
/// on one stream made 45.8 and 48.8 (0.96 of the link), and three batches of 4 MiB 43.4.
const BATCH_BYTES: u64 = 512 << 10;
const BATCH_BYTES_MIDDLE: u64 = 2 << 20;
const BATCH_BYTES_LARGE: u64 = 4 << 20;
/// Blocks from here on, in bytes, are moved in batches of the middle size.
const BATCH_MIDDLE_FROM: u64 = 16 << 10;
const BATCH_MOST: u64 = 128;
/// Slots, and as many streams, of path `gds-stream`; slots and I/Os per batch of cuFile's batch
/// paths: 4 threads stay within the 64 buffers that cuFile's pool has in compatibility mode.
const DEPTH_CUFILE: u32 = 8;
const BATCH_CUFILE: u32 = 16;
/// I/Os in batches of all threads together: without nvidia-fs each takes a buffer of cuFile's pool,
/// which has 64 for blocks above 4 KiB unless it is configured otherwise.
const POOL_CUFILE: u32 = 64;
/// The same for blocks above 1 MiB.
const POOL_CUFILE_LARGE: u32 = 32;
/// Streams per thread that were not requested, at most: each takes a channel of the GPU.
const STREAMS_MOST: u32 = 16;
/// Batches of path `gather`: one is filled while two are in flight. Each has a stream of its own,
/// so that the launch of one waits for no other.
const BATCHES: u32 = 3;
/// The same for blocks that get a plain copy each: one is filled while the other crosses, on one
/// stream, since one copy engine serves them all.
const BATCHES_LARGE: u32 = 2;
/// Path `gather`: most bytes in flight of a job, unless each thread then had less than a block in
/// each batch. More than this does not stay in the processor's cache until the GPU has read it:
/// with two H100 and 24 threads of 1 MiB, 48, 72, 96, 144 and 192 MiB made 76, 82, 81, 73 and 62
/// GiB/s.
const GATHER_IN_FLIGHT: u64 = 96 << 20;
/// Path `mapped`: bytes in flight of a job. An H100's link takes 0.7 ms for them, several times
/// what a sleeping thread takes to wake on a virtual machine: with a quarter, one thread had 30 of
/// 45 GiB/s.
const MAPPED_IN_FLIGHT: u64 = 32 << 20;
/// The fewest bytes in flight of each thread.
const MAPPED_THREAD_LEAST: u64 = 8 << 20;
/// Groups in flight of a thread with [`MAPPED_THREAD_LEAST`]. Each is one launch or some copies,
/// with one event.
const MAPPED_GROUPS: u32 = 4;
/// The fewest and most bytes of a group, and the most blocks.
const MAPPED_GROUP: (u64, u64) = (2 << 20, 4 << 20);
const MAPPED_BATCH_MOST: u64 = 1024;
/// The same of copies, which cost the driver a call each: bytes of a group, and the fewest copies
/// in flight.
const MAPPED_COPIES_BYTES: u64 = 8 << 20;
const MAPPED_COPIES_LEAST: u64 = 2;
/// How long a native job runs by default.
pub(super) const RUNTIME_NS: u64 = 10_000_000_000;
/// Bytes per thread of a data set that gpuio makes, by default.
pub(super) const SIZE: u64 = 1 << 30;
/// How long a ceiling is measured by default: enough for a rate, short compared with the job.
const CEILING_NS: u64 = 1_000_000_000;
/// Salt of the pattern. One constant, so that any run can verify what any other wrote.
pub(super) const SALT: u64 = 0x6770_7569_6f5f_3031;
/// End of the reason for buffered I/O that was not requested; the file system's name precedes it.
pub const REFUSES_DIRECT: &str = " refuses O_DIRECT";
/// Off the 4 KiB grid by this much where unaligned offsets were requested.
const SKEW: u64 = 512;

/// Keys that were not set, of those whose values distinguish loads. A dialect's own default counts
/// as unset: it was not chosen for this load.
pub(super) fn unset(job: &JobSpec) -> Vec<String> {
    let keys = [
        ("bs", job.blocks.is_none()),
        ("depth", job.depth.is_none()),
        ("gather_batch", job.gather_batch.is_none() && job.batch.is_none()),
        ("rings", job.rings.is_none()),
        ("streams", job.streams.is_none()),
        ("threads", job.threads.is_none()),
    ];
    keys.into_iter().filter(|(_, unset)| *unset).map(|(key, _)| key.to_owned()).collect()
}

/// Share of reads and the order of offsets.
pub(super) fn mix_and_order(job: &JobSpec) -> (u8, Order) {
    let percent = job.reads_percent();
    if !matches!(job.rw, Some(Rw::RandRead | Rw::RandWrite | Rw::RandRw)) {
        return (percent, Order::Sequential);
    }
    let distribution = job.distribution.clone().unwrap_or(Distribution::Uniform);
    // Full coverage is fio's default and ours; gdsio draws each offset anew. A skewed
    // distribution can't cover.
    let uniform = distribution == Distribution::Uniform;
    // So can't I/Os that follow one another from offsets by chance.
    let alone = job.rw_modifier.is_none() && job.random_percent.is_none_or(|it| it == (100, 100));
    let coverage =
        uniform && alone && job.coverage.unwrap_or(!job.is_gdsio() && job.unaligned != Some(true));
    (percent, Order::Random { distribution, coverage })
}

fn all_paths(job: &JobSpec) -> bool {
    job.paths.as_ref().is_some_and(|paths| paths.iter().any(|path| path == "all"))
}

/// Whether the files are read into the page cache first, and whether they are dropped from it. All
/// paths side by side, and runs that ask for it, are each to find the cache alike: warm for reads
/// through it, where it holds the files with room to spare. For all others only the state without
/// them can be had again, and what goes around the cache may still have to write it back first. A
/// job of fio's drops its files, as fio does by default.
pub(super) fn cache(job: &JobSpec, plan: &JobPlan, facts: &Facts<'_>) -> (bool, bool) {
    let lengths = plan.targets.iter().map(|target| target.length_bytes);
    let bytes = lengths.fold(0, u64::saturating_add);
    let memory = facts.host.memory.usable_bytes.unwrap_or(0);
    let cached = plan.direct == DirectMode::Buffered && plan.read_percent > 0;
    let alike = job.cache_alike == Some(true);
    let fits = (all_paths(job) || alike) && cached && bytes <= memory / 2;
    // A value that was requested by name stands, and excludes the other where that was not
    // requested.
    let pre_read = job.pre_read.unwrap_or(fits && job.invalidate != Some(true));
    let drops = alike && job.pre_read.is_none() || job.is_fio() && job.cache_alike.is_none();
    let invalidate = job.invalidate.unwrap_or(drops && !pre_read);
    (pre_read, invalidate)
}

/// Block sizes: 4 KiB for random and for fio's dialect, 1 MiB for sequential.
pub(super) fn blocks(job: &JobSpec, order: &Order) -> Vec<BlockShare> {
    if let Some(blocks) = &job.blocks {
        return blocks.clone();
    }
    let small = job.is_fio() || matches!(order, Order::Random { .. });
    let size = if small { 4 << 10 } else { 1 << 20 };
    vec![BlockShare { min_bytes: size, max_bytes: size, step_bytes: 0, percent: 100 }]
}

/// Block sizes of writes, where a mix has others for its reads; else none.
pub(super) fn write_blocks(job: &JobSpec) -> Vec<BlockShare> {
    let Some(writes) = &job.of_writes else { return Vec::new() };
    let order = mix_and_order(job).1;
    let sizes = |of: &Option<Vec<BlockShare>>| {
        blocks(&JobSpec { blocks: of.clone(), dialect: job.dialect, ..JobSpec::default() }, &order)
    };
    let of_writes = sizes(&writes.blocks);
    if of_writes == sizes(&job.blocks) { Vec::new() } else { of_writes }
}

/// I/Os in flight: fio's and gdsio's own default is one.
pub(super) fn depth(job: &JobSpec, asynchronous: bool, ring: bool, block_max: u64) -> u32 {
    if let Some(depth) = job.depth {
        return depth;
    }
    if job.is_fio() || job.is_gdsio() {
        return 1;
    }
    match (asynchronous, ring) {
        (true, _) if block_max > LARGE_BYTES => DEPTH_LARGE,
        (true, _) => DEPTH_SMALL,
        (false, true) => DEPTH_RING,
        (false, false) => 1,
    }
}

/// The shape of path `gather`: depth, blocks per launch, streams, and whether blocks are scattered.
pub(super) struct Gather {
    pub(super) depth: u32,
    pub(super) batch: u32,
    pub(super) streams: u32,
    pub(super) scatter: bool,
}

/// Depth is that of all batches, for any engine: a batch waits for its last block. A depth that was
/// given is cut into as many batches in turn.
pub(super) fn gather(job: &JobSpec, order: &Order, block_max: u64) -> Gather {
    let (bytes, batches, streams) = match block_max {
        GATHER_PLAIN_BYTES.. => (BATCH_BYTES_LARGE, BATCHES_LARGE, 1),
        BATCH_MIDDLE_FROM.. => (BATCH_BYTES_MIDDLE, BATCHES, BATCHES),
        _ => (BATCH_BYTES, BATCHES, BATCHES),
    };
    let threads = u64::from(job.threads.unwrap_or(1).max(1));
    let bytes = bytes.min(GATHER_IN_FLIGHT / threads / u64::from(batches));
    let fits = (bytes / block_max.max(1)).clamp(1, BATCH_MOST);
    // At most BATCH_MOST after the line above.
    let fits = u32::try_from(fits).unwrap_or(1);
    let dialect = (job.is_fio() || job.is_gdsio()).then_some(1);
    let depth = job.depth.or(dialect);
    let batch = job.gather_batch.unwrap_or(depth.map_or(fits, |d| fits.min(d.div_ceil(batches))));
    let depth = depth.unwrap_or(batch.saturating_mul(batches));
    let batch = batch.clamp(1, depth.max(1));
    Gather {
        depth,
        batch,
        streams: job.streams.unwrap_or(streams).min(depth.div_ceil(batch)),
        // Blocks that come from anywhere go anywhere; those that follow one another end in one
        // buffer, one behind the other.
        scatter: job.gather_scatter.unwrap_or(matches!(order, Order::Random { .. })),
    }
}

/// The shape of path `mapped`: depth, blocks per launch, streams.
pub(super) struct Groups {
    pub(super) depth: u32,
    pub(super) batch: u32,
    pub(super) streams: u32,
}

/// One copy engine serves all blocks that get a copy each. A depth that was given is cut into
/// [`MAPPED_GROUPS`].
pub(super) fn mapped(job: &JobSpec, block_max: u64) -> Groups {
    let block = block_max.max(1);
    let copies = block >= MAPPED_COPY_BYTES;
    let threads = u64::from(job.threads.unwrap_or(1).max(1));
    let in_flight = (MAPPED_IN_FLIGHT / threads).max(MAPPED_THREAD_LEAST);
    let group = match copies {
        true => MAPPED_COPIES_BYTES.min(in_flight / u64::from(MAPPED_GROUPS)),
        false => (in_flight / 8).clamp(MAPPED_GROUP.0, MAPPED_GROUP.1),
    };
    let fits = (group / block).clamp(1, MAPPED_BATCH_MOST);
    let deep = match copies {
        true => (in_flight / block).max(MAPPED_COPIES_LEAST),
        false => in_flight / group * fits,
    };
    // A few thousand at most after the lines above.
    let [fits, deep] = [fits, deep].map(|n| u32::try_from(n).unwrap_or(1));
    let dialect = (job.is_fio() || job.is_gdsio()).then_some(1);
    let depth = job.depth.or(dialect);
    let batch = job.gather_batch;
    let batch = batch.unwrap_or(depth.map_or(fits, |d| fits.min(d.div_ceil(MAPPED_GROUPS))));
    let depth = depth.unwrap_or(match job.gather_batch {
        Some(batch) => batch.saturating_mul(MAPPED_GROUPS),
        None => deep,
    });
    let batch = batch.clamp(1, depth.max(1));
    let streams = job.streams.unwrap_or(if copies { 1 } else { MAPPED_GROUPS });
    Groups { depth, batch, streams: streams.min(depth.div_ceil(batch)) }
}

/// The shape of a path of a library, cuFile or gpuio's own: depth, streams, and blocks per batch.
pub(super) struct LibraryShape {
    pub(super) depth: u32,
    pub(super) streams: u32,
    pub(super) batch: Option<u32>,
}

/// A batch is as deep as it has I/Os, and gdsio's `-B` is both. A stream runs one I/O after
/// another, so without a word about streams each slot, or each batch, has one.
pub(super) fn library(
    job: &JobSpec,
    path: &PathInfo,
    calls: Calls,
    block_max: u64,
) -> LibraryShape {
    let theirs = job.is_fio() || job.is_gdsio();
    let (depth, batch) = if path.batches {
        let requested = job.batch.or(job.gather_batch);
        let batch = requested.unwrap_or_else(|| match (job.depth, theirs) {
            (Some(depth), true) => depth,
            (None, true) => 1,
            (Some(depth), false) => depth.min(BATCH_CUFILE),
            (None, false) if path.cufile() == Some(Calls::Batch) => {
                let pool = if block_max > 1 << 20 { POOL_CUFILE_LARGE } else { POOL_CUFILE };
                BATCH_CUFILE.min(pool / job.threads.unwrap_or(1).max(1)).max(1)
            }
            (None, false) => BATCH_CUFILE,
        });
        let depth = job.depth.unwrap_or(batch);
        (depth, Some(batch.clamp(1, depth.max(1))))
    } else {
        let default = if theirs || calls == Calls::Blocking { 1 } else { DEPTH_CUFILE };
        (job.depth.unwrap_or(default), None)
    };
    let groups = depth.div_ceil(batch.unwrap_or(1).max(1));
    let streams = match path.streams {
        true => job.streams.unwrap_or(STREAMS_MOST).min(groups),
        false => 0,
    };
    LibraryShape { depth, streams, batch }
}

/// Rings of a thread on path `initiated`: no more than there are I/Os in flight, and as many as
/// these need.
pub(super) fn rings(job: &JobSpec, depth: u32) -> u32 {
    job.rings.unwrap_or_else(|| depth.div_ceil(RING_ENTRIES)).clamp(1, depth.max(1))
}

/// O_DIRECT or page cache, and why, and the alignment of offsets and lengths in bytes.
pub(super) fn direct(
    job: &JobSpec,
    path: &PathInfo,
    infos: &[Arc<TargetInfo>],
) -> (DirectMode, Option<String>, u64) {
    let alignment = infos
        .iter()
        .map(|place| match place.direct {
            DirectAnswer::Works { alignment } => u64::from(alignment.max(1)),
            DirectAnswer::Refused | DirectAnswer::Unknown => 4096,
        })
        .max()
        .unwrap_or(4096);
    let buffered = |why: String| (DirectMode::Buffered, Some(why), 1);
    if path.buffered_only {
        return buffered("this path is the one through the page cache".into());
    }
    let refused = infos.iter().find(|place| place.direct == DirectAnswer::Refused);
    match job.direct {
        Some(true) => (DirectMode::Direct, None, alignment),
        Some(false) => (DirectMode::Buffered, None, 1),
        None if job.is_fio() => buffered("fio's default is direct=0".into()),
        None if job.engine.as_deref() == Some("mmap") => {
            buffered("a mapping is always the page cache".into())
        }
        None if let Some(why) = path.buffered_because => buffered(why.into()),
        None => match refused {
            Some(place) => {
                let filesystem = place.filesystem.as_deref().unwrap_or("the file system");
                buffered(format!("{filesystem}{REFUSES_DIRECT}"))
            }
            None => {
                (DirectMode::Direct, Some("storage itself is to be measured".into()), alignment)
            }
        },
    }
}

/// The chosen mode, or the page cache where the data lies at multiples of so many bytes that
/// O_DIRECT could not read it: `what` lies there, in the words of the reason.
pub(super) fn direct_if_aligned(
    job: &JobSpec,
    chosen: (DirectMode, Option<String>, u64),
    (has, what): (u64, &str),
) -> Result<(DirectMode, Option<String>, u64), PlanError> {
    let (mode, _, alignment) = chosen;
    if mode == DirectMode::Buffered || has.is_multiple_of(alignment) {
        return Ok(chosen);
    }
    let at = match has {
        1 => "at any byte".to_owned(),
        has => format!("at multiples of {has} bytes"),
    };
    let why = format!("{what} {at}, and O_DIRECT here needs multiples of {alignment}");
    match job.direct {
        Some(true) => Err(PlanError::usage(job, "direct", format!("{why}; use --buffered"))),
        _ => Ok((DirectMode::Buffered, Some(why), 1)),
    }
}

/// The engine, and why, where it was not named.
pub(super) fn engine(
    job: &JobSpec,
    path: &PathInfo,
    direct: DirectMode,
    facts: &Facts<'_>,
) -> (String, Option<String>) {
    if let Some(engine) = &job.engine {
        return (engine.clone(), None);
    }
    let because = |name: &str, why: &str| (name.to_owned(), Some(why.to_owned()));
    if job.is_gdsio() {
        return because("psync", "gdsio does one blocking I/O per thread");
    }
    if job.is_fio() {
        return because("psync", "fio's default");
    }
    // A ring of a GPU path has its depth whatever the engine.
    let deep = job.depth.is_some_and(|depth| depth > 1) && !path.times_gpu_leg();
    if deep && direct == DirectMode::Buffered {
        let why = "the depth requested needs an engine that does not wait for each I/O";
        // libaio waits for each on files without O_DIRECT (io_submit(2)).
        return match (facts.engine_missing)("io_uring") {
            None => because("io_uring", why),
            Some(_) => because("pool", why),
        };
    }
    fitting(direct, facts.engine_missing)
}

/// The engine that suits O_DIRECT or the page cache, of those that can run here, and why.
pub(crate) fn fitting(
    direct: DirectMode,
    missing: &dyn Fn(&str) -> Option<String>,
) -> (String, Option<String>) {
    let because = |name: &str, why: &str| (name.to_owned(), Some(why.to_owned()));
    if direct == DirectMode::Buffered {
        return because("psync", "buffered I/O is served by copying on the calling thread");
    }
    match missing("io_uring") {
        None => because("io_uring", "O_DIRECT I/O gains from depth"),
        Some(why) => match missing("libaio") {
            None => because("libaio", &format!("io_uring can't run here: {why}")),
            Some(_) => because("psync", "neither io_uring nor libaio can run here"),
        },
    }
}

/// How long each ceiling of a job is measured, if at all: on by default where paths are compared.
pub(super) fn ceilings(job: &JobSpec) -> Option<u64> {
    let all = || all_paths(job);
    match job.ceilings {
        Some(Ceilings::Off) => None,
        Some(Ceilings::On) => Some(CEILING_NS),
        Some(Ceilings::For(time)) => Some(time),
        None => all().then_some(CEILING_NS),
    }
}

/// The computation that keeps the GPUs busy during the job.
pub(super) fn beside(job: &JobSpec) -> Option<ComputationPlan> {
    let (with, share_percent) = match job.beside? {
        ComputationRequest::Off => return None,
        ComputationRequest::Compute(percent) => (ComputationKind::Compute, percent),
        ComputationRequest::Memory(percent) => (ComputationKind::Memory, percent),
    };
    Some(ComputationPlan { with, share_percent })
}

/// How long a job is under way from its start if only its time ends it, nanoseconds.
pub fn whole_time_ns(job: &JobSpec) -> u64 {
    [job.start_delay_ns, job.ramp_ns, job.runtime_ns.or(Some(RUNTIME_NS))]
        .into_iter()
        .flatten()
        .fold(0, u64::saturating_add)
}

/// When the job ends.
pub(super) fn stop(job: &JobSpec, size: u64) -> Stop {
    let passes = |n: u64| size.saturating_mul(n);
    let bytes = job.io_size.map(|one| one.bytes(size)).or(job.loops.map(passes));
    // fio's `runtime` without `time_based` is a cap on one pass; gdsio's -T and ours is the time.
    let timed = job.time_based.unwrap_or(!job.is_fio());
    let bytes = bytes.filter(|_| !job.repeats_for_runtime());
    let wear_out = job.wear_out == Some(true);
    let bytes = bytes.or((wear_out && job.runtime_ns.is_none()).then_some(size));
    match (job.runtime_ns, bytes) {
        (Some(t), None) if timed => Stop { runtime_ns: Some(t), bytes_per_thread: None, wear_out },
        (Some(t), None) => {
            Stop { runtime_ns: Some(t), bytes_per_thread: Some(size), wear_out: false }
        }
        (Some(t), Some(b)) => {
            Stop { runtime_ns: Some(t), bytes_per_thread: Some(b), wear_out: false }
        }
        (None, Some(b)) => Stop { runtime_ns: None, bytes_per_thread: Some(b), wear_out: false },
        (None, None) if job.is_fio() || job.is_gdsio() => {
            Stop { runtime_ns: None, bytes_per_thread: Some(size), wear_out: false }
        }
        (None, None) => {
            Stop { runtime_ns: Some(RUNTIME_NS), bytes_per_thread: None, wear_out: false }
        }
    }
}

/// Offset grid and the deliberate distance from it.
pub(super) fn alignment(
    job: &JobSpec,
    blocks: &[BlockShare],
    order: &Order,
    alignment: u64,
) -> (u64, u64) {
    let smallest = blocks.iter().map(|b| b.min_bytes).min().unwrap_or(alignment);
    let align = match (job.align, order) {
        (Some(align), _) => align,
        (None, Order::Random { .. }) => smallest.max(alignment),
        (None, Order::Sequential) => alignment,
    };
    let skew = if job.unaligned == Some(true) { SKEW.max(alignment) } else { 0 };
    (align.max(1), skew)
}
