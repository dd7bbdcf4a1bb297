//! When a key has no effect on a job, and why: what rows of the table say by [`Key::unused`].
//!
//! Keys without it have an effect wherever they are accepted: what comes of them stands in the
//! plan, and the plan's own checks refuse what no path can do.

use gpuio_base::catalog::{Catalog, Inject, PathInfo};
use gpuio_base::units::{format_bytes, format_duration_ns};
use gpuio_record::facts::NumaNode;
use gpuio_record::{
    Arrivals, BlockShare, DirectMode, Distribution, FeedCompute, Fill, JobPlan, Order, SampleOrder,
};

use crate::spec::job::{GpuDriver, GpuWhich, JobSpec, Rw};

#[cfg(doc)]
use super::Key;

/// A job on one path, and its plan with the value in question.
#[derive(Debug)]
pub struct KeyContext<'a> {
    /// The request.
    pub requested: &'a JobSpec,
    /// The path.
    pub path: &'static PathInfo,
    /// The paths and engines that there are.
    pub catalog: &'a Catalog,
    /// The plan.
    pub plan: &'a JobPlan,
    /// Whether the spec has no other job.
    pub alone: bool,
    /// NUMA nodes with their CPUs.
    pub nodes: &'a [NumaNode],
}

/// The reason, where there is one.
pub(super) fn when(unused: bool, why: impl Into<String>) -> Option<String> {
    unused.then(|| why.into())
}

pub(super) const WHOLE_RUNTIME: &str = "the load repeats until the runtime is up (fio's \
                                        time_based, gdsio's runtime); leave one out";
pub(super) const IN_ORDER: &str = "the load goes through its files in order; use rw=randread, \
                                   randwrite or randrw, or leave it out";
pub(super) const NO_WRITES: &str =
    "the load writes nothing; use rw=write, randwrite or a mix, or leave it out";
pub(super) const NOT_THIS_WAY: &str = "its value is for the direction that the load does not have; \
                                       give one for this one, or leave it out";
pub(super) const NOT_STEADY: &str = "it says how steadystate is checked, which is not requested; \
                                     add steadystate=iops:2%, or leave it out";
pub(super) const NO_PAUSE: &str =
    "it shapes the pause of thinktime; add thinktime, or leave it out";
pub(super) const NO_RING: &str = "only engine io_uring polls; use engine=io_uring, or leave it out";
pub(super) const OWN_FILES: &str =
    "in a directory each thread has a file of its own; name files with filename, or leave it out";

impl KeyContext<'_> {
    /// Whether the engine is the form of io_uring with this.
    pub(super) fn polls(&self, how: &str) -> bool {
        self.plan.engine.actual.ends_with(how)
    }

    pub(super) fn sequential(&self) -> bool {
        self.plan.order == Order::Sequential
    }

    pub(super) fn skewed(&self) -> bool {
        let Order::Random { distribution, .. } = &self.plan.order else { return false };
        *distribution != Distribution::Uniform
    }

    /// Whether reads and writes are mixed by what `rw` says.
    pub(super) fn mixed(&self) -> bool {
        matches!(self.requested.rw, Some(Rw::RandRw | Rw::ReadWrite))
    }

    pub(super) fn only_reads(&self) -> bool {
        self.plan.read_percent == 100
    }

    /// Whether anything of the load is drawn by the seed: offsets, sizes, directions, arrivals or
    /// contents.
    pub(super) fn draws(&self) -> bool {
        let plan = self.plan;
        let several = |sizes: &[BlockShare]| sizes.len() > 1;
        let sizes = several(&plan.blocks)
            || several(&plan.write_blocks)
            || plan.file_bytes_most.is_some()
            || plan.sizes().any(|b| b.min_bytes < b.max_bytes);
        let pacing = plan.pacing.or(plan.write_pacing);
        let poisson = pacing.is_some_and(|p| p.arrivals == Arrivals::Poisson);
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
pub(super) fn computes_nothing(s: &KeyContext<'_>) -> Option<String> {
    let none = s.plan.feed.as_ref().is_some_and(|feed| feed.compute == FeedCompute::None);
    when(none, "nothing is computed (compute=none); leave it out, or use compute=kernel or sleep")
}

/// Bytes end a job that has no time, and in other tools' dialects one without either. After a time
/// it lets slower threads go on.
pub(super) fn wear_out(s: &KeyContext<'_>) -> Option<String> {
    let requested = s.requested;
    if requested.wear_out != Some(true) {
        return None;
    }
    let bytes = requested.io_size.is_some() || requested.loops.is_some();
    let timed = requested.runtime_ns.is_some();
    let alone = requested.rank.as_ref().is_none_or(|place| place.ranks == 1);
    when(
        bytes || requested.is_fio() || requested.is_gdsio(),
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
            "one thread runs, and after its runtime it would have to catch up with none; \
             leave it out, or leave out runtime to move the whole size",
        )
    })
}

/// The grid of random blocks. Where all are touched once, it is not finer than the smallest.
pub(super) fn align(s: &KeyContext<'_>) -> Option<String> {
    let align = s.requested.align?;
    let least = s.plan.sizes().map(|b| b.min_bytes).min()?;
    let alignment = s.plan.direct_alignment_bytes.max(1);
    match &s.plan.order {
        Order::Sequential => when(align != alignment, IN_ORDER),
        Order::Random { coverage: true, .. } => (align < least).then(|| {
            format!(
                "with full coverage, offsets are multiples of the smallest block ({}); add \
                     norandommap, or leave it out",
                format_bytes(least)
            )
        }),
        Order::Random { .. } => None,
    }
}

/// The kernel reads ahead only for reads through the page cache, and for mappings by other advice.
pub(super) fn fadvise_hint(s: &KeyContext<'_>) -> Option<String> {
    s.plan.fadvise_hint?;
    let engine = s.plan.engine.actual.as_str();
    let reads = s.path.uses_engine() && !["mmap", "null"].contains(&engine);
    when(
        !reads,
        "no descriptor of this engine or path is read through the page cache; leave it out",
    )
    .or_else(|| {
        when(
            s.plan.direct == DirectMode::Direct,
            "O_DIRECT goes around the page cache; add direct=0, or leave it out",
        )
    })
}

/// A computation needs a GPU, and one that the job uses.
pub(super) fn beside(s: &KeyContext<'_>) -> Option<String> {
    when(
        s.plan.beside.is_some() && s.plan.gpus.is_empty(),
        format!(
            "path {} uses no GPU that a computation could keep busy; add path=staged or \
             another path to GPU memory, or leave it out",
            s.path.name
        ),
    )
}

/// Faults of writes alone, those that no I/O of the load can have, and a seed without chances.
pub(super) fn inject(s: &KeyContext<'_>) -> Option<String> {
    let inject: Inject = s.requested.inject.as_ref()?.parse().ok()?;
    let Inject { eio, enospc, lost, short, delay, stall, seed, .. } = inject;
    let direct = s.plan.direct == DirectMode::Direct;
    let whole = |share: &BlockShare| {
        Inject::cuts(u32::try_from(share.max_bytes).unwrap_or(u32::MAX), direct).1 == 0
    };
    let over_ns = s.plan.time_over_ns().unwrap_or(u64::MAX);
    let by_chance = [eio, enospc, lost, short, delay.0].iter().any(|p| *p > 0.0 && *p < 1.0);
    // Where an I/O is cut is drawn too.
    let drawn = by_chance || short > 0.0;
    when(
        s.only_reads() && (enospc > 0.0 || lost > 0.0),
        "enospc and lost are faults of writes, and the load writes nothing; leave them out",
    )
    .or_else(|| {
        when(
            short > 0.0 && s.plan.sizes().all(whole),
            "no I/O of the load can be short: a cut leaves whole blocks of 4 KiB with O_DIRECT, \
             else a byte; use larger blocks, or leave short out",
        )
    })
    .or_else(|| {
        let (after, _) = stall.filter(|(after, _)| *after >= over_ns)?;
        Some(format!(
            "its stall begins {} after the first I/O, and the load is over then; give an earlier \
             time, or leave stall out",
            format_duration_ns(after)
        ))
    })
    .or_else(|| {
        when(
            seed != 0 && !drawn,
            "its seed is for faults by chance, and there is none; leave it out",
        )
    })
}

/// A GPU on a path to host memory says where threads run, unless something else does. gdsio's users
/// name one with every type.
pub(super) fn gpu(s: &KeyContext<'_>) -> Option<String> {
    let gpu = s.requested.gpu.as_ref()?;
    if s.path.needs_gpu || !s.plan.gpus.is_empty() || gpu.which == GpuWhich::None {
        return None;
    }
    let placed = s.requested.cpus.is_some() || s.requested.numa.is_some();
    let software = gpu.driver == Some(GpuDriver::Software);
    when(
        !s.requested.is_gdsio() && (placed || software),
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
pub(super) fn numa(s: &KeyContext<'_>) -> Option<String> {
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

/// Without a list of CPUs there is none to split.
pub(super) fn split_cpus(s: &KeyContext<'_>) -> Option<String> {
    when(
        s.requested.split_cpus == Some(true) && s.requested.cpus.is_none(),
        "it gives each thread one of the job's CPUs, and none are named; add cpus_allowed=0-3, or \
         leave it out",
    )
}

/// More than one I/O in flight, where each call blocks and nothing else is in flight.
pub(super) fn depth(s: &KeyContext<'_>) -> Option<String> {
    let row = s.catalog.engine(&s.plan.engine.actual);
    let asynchronous = s.path.uses_engine() && row.is_some_and(|row| row.asynchronous);
    if s.plan.depth == 1 || asynchronous || s.path.times_gpu_leg() || s.path.overlaps() {
        return None;
    }
    Some(match s.path.uses_engine() {
        true => format!(
            "engine {} has one I/O in flight for each thread; use engine=io_uring, libaio or pool, \
             or threads={} instead; without depth it runs at 1, as fio does",
            s.plan.engine.actual, s.plan.depth
        ),
        false => format!(
            "path {} has one call in flight for each thread; raise threads, or use path={}-stream",
            s.path.name, s.path.name
        ),
    })
}

pub(super) fn streams(s: &KeyContext<'_>) -> Option<String> {
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

pub(super) fn gather_batch(s: &KeyContext<'_>) -> Option<String> {
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

pub(super) fn rings(s: &KeyContext<'_>) -> Option<String> {
    let requested = s.requested.rings?;
    match s.plan.rings {
        None => Some(format!(
            "it concerns path initiated, and path {} has no rings that the GPU fills; leave it out",
            s.path.name
        )),
        Some(rings) => when(
            rings < requested,
            format!("I/Os at depth {} fill {rings}; raise depth, or lower it", s.plan.depth),
        ),
    }
}

pub(super) fn not_between_gpus(s: &KeyContext<'_>) -> Option<String> {
    when(
        !s.path.needs_gpus(),
        format!(
            "it concerns paths routed and fan-out, and path {} copies nothing from GPU \
             to GPU; leave it out",
            s.path.name
        ),
    )
}

pub(super) fn not_routed(s: &KeyContext<'_>) -> Option<String> {
    when(
        !s.path.via_gpu,
        format!(
            "it concerns path routed, and path {} goes through no other GPU; leave it out",
            s.path.name
        ),
    )
}
