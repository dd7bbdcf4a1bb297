//! When a key has no effect on a job: a line for each key.

use gpuio_catalog::Inject;
use gpuio_record::{Arrivals, Distribution, FeedCompute, Fill, Order, SampleOrder, VerifyMode};
use gpuio_spec::{GpuDriver, GpuWhich};
use gpuio_units::format_bytes;

use super::super::defaults::{is_fio, is_gdsio};
use super::{KeyContext, Rule};

/// A rule for a field that is an `Option`.
macro_rules! rule {
    ($field:ident, $why:expr) => {
        Rule { field: stringify!($field), why: $why, clear: |job| job.$field = None }
    };
}

/// The reason, where there is one.
fn when(unused: bool, why: impl Into<String>) -> Option<String> {
    unused.then(|| why.into())
}

/// Every key that may be without effect. The others have one wherever they are accepted: what comes
/// of them stands in the plan, and the plan's own checks refuse what no path can do.
pub(crate) const RULES: &[Rule] = &[
    rule!(read_percent, |s| when(
        !s.mixed(),
        "the load does not mix reads and writes; use rw=rw or rw=randrw, or leave it out"
    )
    .or_else(|| when(
        s.requested.mix_percent.is_some(),
        "mix_percent (-M) has the same meaning on this path; leave one out"
    ))),
    rule!(coverage, |s| when(s.sequential(), IN_ORDER).or_else(|| when(
        s.requested.coverage == Some(true) && s.skewed(),
        "a distribution other than random does not touch every block once; leave one out"
    ))),
    rule!(distribution, |s| when(s.sequential(), IN_ORDER)),
    rule!(align, align),
    rule!(seed, |s| when(
        s.plan.seed != 1 && !s.draws(),
        "nothing in this load is left to chance; leave it out"
    )),
    rule!(blocks, |s| when(s.requested.blocks.is_none(), NOT_THIS_WAY)),
    rule!(rate_bytes, |s| when(s.requested.rate_bytes.is_none(), NOT_THIS_WAY)),
    rule!(rate_iops, |s| when(s.requested.rate_iops.is_none(), NOT_THIS_WAY)),
    rule!(arrivals, |s| when(
        s.plan.pacing.is_none(),
        "it says how a rate spaces its I/Os, and there is none; add rate_iops or rate, or leave it \
         out"
    )),
    rule!(fill, |s| when(s.requested.fill == Some(Fill::Random) && s.only_reads(), NO_WRITES)),
    rule!(compress_chunk, |s| when(
        s.plan.compressible.is_none(),
        "nothing repeats; add buffer_compress_percentage, or leave it out"
    )),
    rule!(refill, |s| when(s.requested.refill == Some(true) && s.only_reads(), NO_WRITES)),
    rule!(sync, |s| when(s.requested.sync == Some(true) && s.only_reads(), NO_WRITES)),
    rule!(verify, |s| when(
        s.requested.verify == Some(VerifyMode::Rewrite) && s.only_reads(),
        "the load writes nothing, so there is nothing to rewrite; use verify=pass"
    )),
    rule!(offset_increment, |s| when(
        s.plan.directory.is_some() && !s.plan.shared_files,
        OWN_FILES
    )
    .or_else(|| when(
        s.plan.threads == 1,
        "one thread has nothing to be apart from; leave it out"
    ))),
    rule!(files_per_thread, |s| when(
        s.plan.files_per_thread.is_none() && s.requested.files_per_thread != Some(1),
        "the files are named, or all threads share one; use directory, or leave it out"
    )),
    rule!(files_in_turn, |s| when(
        !s.sequential() || s.plan.workers.iter().all(|worker| worker.regions.len() < 2),
        "it orders the blocks of several files, read or written in order; add nrfiles, or leave it \
         out"
    )),
    rule!(fsync_ios, |s| when(s.only_reads(), NO_WRITES)),
    rule!(fdatasync_ios, |s| when(s.only_reads(), NO_WRITES).or_else(|| when(
        s.requested.fsync_ios.is_some_and(|count| count > 0),
        "fsync flushes the same files; leave one out"
    ))),
    rule!(end_fsync, |s| when(s.only_reads(), NO_WRITES)),
    rule!(think_spin_ns, |s| when(s.plan.think.is_none(), NO_PAUSE)),
    rule!(think_ios, |s| when(s.plan.think.is_none(), NO_PAUSE)),
    rule!(log_ns, |s| when(
        s.plan.logs.is_none(),
        "it is the time that a line of a log covers; add write_bw_log, or leave it out"
    )),
    rule!(polled, |s| when(s.requested.polled == Some(true) && !s.polls("iopoll"), NO_RING)),
    rule!(submit_thread, |s| when(
        s.requested.submit_thread == Some(true) && !s.polls("sqpoll"),
        NO_RING
    )),
    rule!(cuda_posix, |s| when(
        s.requested.fio_cufile != Some(true) || s.requested.paths.is_some(),
        "it says which way fio's libcufile takes; add ioengine=libcufile, or use path=gds"
    )),
    rule!(verify_ns, |s| when(
        !matches!(s.plan.verify, VerifyMode::Pass | VerifyMode::Rewrite),
        "it limits verification after the run, which is not requested; add verify=pass, or \
         leave it out"
    )),
    rule!(inject, inject),
    rule!(beside, beside),
    rule!(time_based, |s| match (s.requested.runtime_ns, s.requested.time_based) {
        (None, _) => Some("it needs a runtime; add one, or leave it out".to_owned()),
        (Some(_), on) => when(
            on == Some(true) && (s.requested.io_size.is_some() || s.requested.loops.is_some()),
            "the job ends after its bytes or loops too; leave those out, or this"
        ),
    }),
    rule!(loops, |s| when(
        s.requested.io_size.is_some(),
        "io_size sets how many bytes each thread moves; leave one out"
    )),
    rule!(steady_window_ns, |s| when(s.requested.steady.is_none(), NOT_STEADY)),
    rule!(steady_ramp_ns, |s| when(s.requested.steady.is_none(), NOT_STEADY)),
    rule!(steady_check_ns, |s| when(s.requested.steady.is_none(), NOT_STEADY)),
    rule!(stonewall, |s| when(
        s.requested.stonewall == Some(true) && s.alone,
        "there is no job before this one; leave it out"
    )),
    rule!(cache_alike, |s| when(
        s.requested.cache_alike == Some(true)
            && (s.requested.pre_read.is_some() || s.requested.invalidate == Some(true)),
        "pre_read or invalidate sets the state of the page cache; leave one out"
    )),
    rule!(directory, |s| when(
        s.requested.filenames.iter().flatten().all(|name| name.starts_with('/'))
            && s.requested.filenames.is_some(),
        "every filename begins with '/'; leave it out, or name files below it"
    )),
    rule!(file_prefix, |s| when(
        s.requested.filenames.is_some(),
        "it begins the names of files in a directory, and the files are named; leave it out"
    )),
    rule!(shared_files, |s| when(
        s.requested.shared_files == Some(true)
            && s.requested.filenames.is_none()
            && !s.plan.shared_files,
        OWN_FILES
    )
    .or_else(|| when(
        s.requested.layout.is_some(),
        "layout says how threads share files; leave one out"
    ))),
    rule!(shared_fd, |s| when(
        s.requested.shared_fd == Some(true)
            && s.requested.filenames.is_none()
            && !s.plan.shared_files,
        OWN_FILES
    )),
    rule!(read_shift, |s| when(
        !s.only_reads(),
        "the load writes, and each rank writes its own data; give it to the job that only reads, \
         or leave it out"
    )
    .or_else(|| when(
        !s.plan.reads_another_rank(),
        "one process runs, so there is no other rank whose data it could read; start several with \
         mpirun or srun, or leave it out"
    ))),
    rule!(wear_out, wear_out),
    Rule {
        field: "feed.compute_ns",
        why: computes_nothing,
        clear: |job| job.feed.compute_ns = None,
    },
    Rule {
        field: "feed.sample_compute_ns",
        why: computes_nothing,
        clear: |job| job.feed.sample_compute_ns = None,
    },
    Rule {
        field: "feed.utilisation",
        why: computes_nothing,
        clear: |job| job.feed.utilisation = None,
    },
    rule!(gpu, gpu),
    rule!(numa, numa),
    rule!(depth, depth),
    rule!(streams, streams),
    rule!(gather_batch, gather_batch),
    rule!(gather_scatter, |s| when(
        s.plan.gather_scatter.is_none(),
        format!(
            "it concerns path gather; path {} has one block in each slot; leave it out",
            s.path.name
        )
    )),
    rule!(via_gpu, not_routed),
    rule!(via_peer, not_between_gpus),
    rule!(skip_bufregister, |s| when(
        s.requested.skip_bufregister == Some(true) && !s.path.uses_cufile(),
        format!(
            "path {} registers no buffer with cuFile, so there is none to skip; leave it out",
            s.path.name
        )
    )),
];

const IN_ORDER: &str = "the load goes through its files in order; use rw=randread, randwrite or \
                        randrw, or leave it out";
const NO_WRITES: &str =
    "the load writes nothing; use rw=write, randwrite or a mix, or leave it out";
const NOT_THIS_WAY: &str = "its value is for the direction that the load does not have; give one \
                            for this one, or leave it out";
const NOT_STEADY: &str = "it says how steadystate is checked, which is not requested; add \
                          steadystate=iops:2%, or leave it out";
const NO_PAUSE: &str = "it shapes the pause of thinktime; add thinktime, or leave it out";
const NO_RING: &str = "only engine io_uring polls; use engine=io_uring, or leave it out";
const OWN_FILES: &str =
    "in a directory each thread has a file of its own; name files with filename, or leave it out";

impl KeyContext<'_> {
    /// Whether the engine is the form of io_uring with this.
    fn polls(&self, how: &str) -> bool {
        self.plan.engine.actual.ends_with(how)
    }

    fn sequential(&self) -> bool {
        self.plan.order == Order::Sequential
    }

    fn skewed(&self) -> bool {
        let Order::Random { distribution, .. } = &self.plan.order else { return false };
        *distribution != Distribution::Uniform
    }

    /// Whether reads and writes are mixed by what `rw` says.
    fn mixed(&self) -> bool {
        use gpuio_spec::Rw::{RandRw, ReadWrite};
        matches!(self.requested.rw, Some(RandRw | ReadWrite))
    }

    fn only_reads(&self) -> bool {
        self.plan.read_percent == 100
    }

    /// Whether anything of the load is drawn by the seed: offsets, sizes, directions, arrivals or
    /// contents.
    fn draws(&self) -> bool {
        let plan = self.plan;
        let sizes = plan.blocks.len() > 1 || plan.blocks.iter().any(|b| b.min_bytes < b.max_bytes);
        let poisson = plan.pacing.as_ref().is_some_and(|p| p.arrivals == Arrivals::Poisson);
        let contents = plan.fill == Fill::Random && !self.only_reads();
        let feed = plan
            .feed
            .as_ref()
            .is_some_and(|feed| !matches!(feed.order, SampleOrder::InOrder | SampleOrder::Reverse));
        feed || !self.sequential()
            || sizes
            || (1..100).contains(&plan.read_percent)
            || poisson
            || contents
    }
}

/// Without computation there is neither a time for it nor a utilisation.
fn computes_nothing(s: &KeyContext<'_>) -> Option<String> {
    let none = s.plan.feed.as_ref().is_some_and(|feed| feed.compute == FeedCompute::None);
    when(none, "nothing is computed (compute=none); leave it out, or use compute=kernel or sleep")
}

/// Bytes end a job that has no time, and in other tools' dialects one without either. After a time
/// it lets slower threads go on.
fn wear_out(s: &KeyContext<'_>) -> Option<String> {
    let requested = s.requested;
    if requested.wear_out != Some(true) {
        return None;
    }
    let bytes = requested.io_size.is_some() || requested.loops.is_some();
    let timed = requested.runtime_ns.is_some();
    let alone = requested.rank.as_ref().is_none_or(|place| place.ranks == 1);
    when(
        bytes || is_fio(requested) || is_gdsio(requested),
        "the job ends after its bytes without it; leave it out",
    )
    .or_else(|| {
        when(
            timed && s.plan.steady.is_some(),
            "all threads end once the load is steady; leave one of the two out",
        )
    })
    .or_else(|| {
        when(
            timed && alone && s.plan.threads == 1,
            "one thread runs, and after its runtime it would have to catch up with none; leave it \
             out, or leave out runtime to move the whole size",
        )
    })
}

/// The grid of random blocks. Where all are touched once, it is not finer than the largest of them.
fn align(s: &KeyContext<'_>) -> Option<String> {
    let align = s.requested.align?;
    let sizes = || s.plan.blocks.iter();
    let (least, most) = (sizes().map(|b| b.min_bytes).min()?, sizes().map(|b| b.max_bytes).max()?);
    let alignment = s.plan.direct_alignment_bytes.max(1);
    match &s.plan.order {
        Order::Sequential => when(align != alignment, IN_ORDER),
        Order::Random { coverage: true, .. } => {
            let fine = align < most && align != least.max(alignment);
            fine.then(|| {
                format!(
                    "each block is touched once, on a grid of the largest, {}; add norandommap, or \
                     leave it out",
                    format_bytes(most)
                )
            })
        }
        Order::Random { .. } => None,
    }
}

/// A computation needs a GPU, and one that the job uses.
fn beside(s: &KeyContext<'_>) -> Option<String> {
    when(
        s.plan.beside.is_some() && s.plan.gpus.is_empty(),
        format!(
            "path {} uses no GPU that a computation could keep busy; add path=staged or another \
             path to GPU memory, or leave it out",
            s.path.name
        ),
    )
}

/// Faults of writes alone, and a seed without chances.
fn inject(s: &KeyContext<'_>) -> Option<String> {
    let inject: Inject = s.requested.inject.as_ref()?.parse().ok()?;
    let Inject { eio, enospc, lost, short, delay, seed, .. } = inject;
    let by_chance = [eio, enospc, lost, short, delay.0].iter().any(|p| *p > 0.0 && *p < 1.0);
    // Where an I/O is cut is drawn too.
    let drawn = by_chance || short > 0.0;
    when(
        s.only_reads() && (enospc > 0.0 || lost > 0.0),
        "enospc and lost are faults of writes, and the load writes nothing; leave them out",
    )
    .or_else(|| {
        when(
            seed != 0 && !drawn,
            "its seed is for faults by chance, and there is none; leave it out",
        )
    })
}

/// A GPU on a path to host memory says where threads run, unless something else does. gdsio's users
/// name one with every type.
fn gpu(s: &KeyContext<'_>) -> Option<String> {
    let gpu = s.requested.gpu.as_ref()?;
    if s.path.needs_gpu || !s.plan.gpus.is_empty() || gpu.which == GpuWhich::None {
        return None;
    }
    let placed = s.requested.cpus.is_some() || s.requested.numa.is_some();
    let software = gpu.driver == Some(GpuDriver::Software);
    when(
        !is_gdsio(s.requested) && (placed || software),
        format!(
            "path {} ends in host memory, and {}; add path=staged, or leave it out",
            s.path.name,
            if software {
                "gpuio's software GPU is near no CPU"
            } else {
                "cpus or numa sets where threads run"
            }
        ),
    )
}

/// With a list of CPUs a node is in effect only where it says the same.
fn numa(s: &KeyContext<'_>) -> Option<String> {
    let (node, cpus) = (s.requested.numa?, s.requested.cpus.as_ref()?);
    let known = s.nodes.iter().find(|known| known.node == node);
    let there = known.and_then(|known| known.cpus.as_deref()).unwrap_or_default();
    let on_it = cpus.iter().all(|cpu| there.contains(cpu)) || s.nodes.is_empty();
    when(
        !on_it,
        format!(
            "cpus sets where threads run; not all of those CPUs are on node {node}; leave one out"
        ),
    )
}

/// More than one I/O in flight, where each call blocks and nothing else is in flight.
fn depth(s: &KeyContext<'_>) -> Option<String> {
    let row = s.catalog.engine(&s.plan.engine.actual);
    let asynchronous = s.path.uses_engine() && row.is_some_and(|row| row.asynchronous);
    if s.plan.depth == 1 || asynchronous || s.path.times_gpu_leg() || s.path.overlaps() {
        return None;
    }
    Some(match s.path.uses_engine() {
        true => format!(
            "engine {} has one I/O in flight for each thread; use engine=io_uring, or raise \
             threads",
            s.plan.engine.actual
        ),
        false => format!(
            "path {} has one call in flight for each thread; raise threads, or use path={}-stream",
            s.path.name, s.path.name
        ),
    })
}

fn streams(s: &KeyContext<'_>) -> Option<String> {
    let streams = s.requested.streams?;
    when(
        s.plan.streams == 0,
        format!("path {} puts nothing into streams of ours; leave it out", s.path.name),
    )
    .or_else(|| {
        when(
            s.plan.streams < streams,
            format!(
                "what is in flight at depth {} fills {}; raise depth, or lower streams",
                s.plan.depth, s.plan.streams
            ),
        )
    })
}

fn gather_batch(s: &KeyContext<'_>) -> Option<String> {
    let requested = s.requested.gather_batch?;
    match s.plan.gather_batch {
        None => Some(format!(
            "it concerns paths with batches, and path {} moves each block by itself; leave it out",
            s.path.name
        )),
        Some(batch) => when(
            batch < requested,
            format!(
                "a batch holds no more I/Os than the depth has, {}; raise depth, or lower it",
                s.plan.depth
            ),
        ),
    }
}

fn not_between_gpus(s: &KeyContext<'_>) -> Option<String> {
    when(
        !s.path.needs_gpus(),
        format!(
            "it concerns paths routed and fan-out, and path {} copies nothing from GPU to GPU; \
             leave it out",
            s.path.name
        ),
    )
}

fn not_routed(s: &KeyContext<'_>) -> Option<String> {
    when(
        !s.path.via_gpu,
        format!(
            "it concerns path routed, and path {} goes through no other GPU; leave it out",
            s.path.name
        ),
    )
}
