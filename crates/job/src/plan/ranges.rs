//! Files that are read as a whole, or tensor by tensor.

use gpuio_base::units::{format_bytes, many};
use gpuio_record::{Gpu, RangeKind, RangesPlan, Region};

use super::PlanError;
use super::facts::Facts;
use super::regions::{Ground, Laid};
use super::work::refuse_others;
use crate::spec::{JobSpec, LoadKind, Rw};

/// Ranges of a job. Without regions until its files are looked at.
pub(super) struct Ranged {
    pub(super) plan: RangesPlan,
    /// The regions of each thread.
    regions: Vec<Vec<Region>>,
    /// The unit of all offsets and lengths.
    pub(super) alignment: u64,
    /// Why fewer threads read than usually do.
    pub(super) note: Option<String>,
}

/// Threads that read whole files by default (fastsafetensors).
const OF_FILES: u32 = 16;

/// Threads by default: as many as loaders have and at least one for each GPU, but no more than
/// there is to read.
pub(super) fn threads(
    job: &JobSpec,
    kind: RangeKind,
    gpus: &[Gpu],
    block_max: u64,
    facts: &Facts<'_>,
) -> u32 {
    let names = job.filenames.as_deref().unwrap_or_default();
    let each_gpu = u32::try_from(gpus.len().max(1)).unwrap_or(u32::MAX);
    // Files that can't be read are refused where they are looked at for the plan.
    let (wanted, parts) = match kind {
        RangeKind::Files => {
            let lengths = names.iter().filter_map(|name| facts.targets.look(name).length_bytes);
            (OF_FILES.max(each_gpu), lengths.map(|length| blocks_of(length, block_max)).sum())
        }
        RangeKind::Tensors => {
            let tensors = names.iter().filter_map(|name| facts.targets.tensors(name).ok());
            (each_gpu, tensors.flatten().filter(|(_, length)| *length > 0).count() as u64)
        }
    };
    wanted.min(u32::try_from(parts.max(1)).unwrap_or(u32::MAX))
}

fn blocks_of(length: u64, block_max: u64) -> u64 {
    length.div_ceil(block_max.max(1))
}

/// Ranges of this kind, if the job has nothing that contradicts them.
pub(super) fn of(job: &JobSpec, kind: RangeKind) -> Result<Ranged, PlanError> {
    let usage = |field: &str, what: &str| Err(PlanError::usage(job, field, what));
    refuse_others(job, LoadKind::Ranges, None, "ranges reads all of the named files")?;
    if job.rw.is_some_and(|rw| rw != Rw::Read) {
        return usage("rw", "ranges reads files from begin to end; use rw=read");
    }
    if job.filenames.is_none() {
        return usage("ranges", "it reads files that are there; name them in filename");
    }
    if job.rank.as_ref().is_some_and(|place| place.ranks > 1) {
        return usage("ranges", "ranges runs in one process; start it without mpirun or srun");
    }
    let plan = RangesPlan { kind, count: 0, empty: 0, bytes: 0, passes: job.loops.unwrap_or(1) };
    Ok(Ranged { plan, regions: Vec::new(), alignment: 1, note: None })
}

impl Ranged {
    /// Looks at the files, and divides their ranges among the threads.
    pub(super) fn find(
        &mut self,
        job: &JobSpec,
        threads: u32,
        ground: &Ground,
        block_max: u64,
        facts: &Facts<'_>,
    ) -> Result<(), PlanError> {
        let kind = self.plan.kind;
        let mut all = all(job, kind, ground, facts)?;
        let given = all.len();
        all.retain(|region| region.length > 0);
        let bytes: u64 = all.iter().map(|region| region.length).sum();
        if bytes == 0 {
            let what = format!("there is nothing to read: all of its {} are empty", kind.word());
            return Err(PlanError::usage(job, "filenames", what));
        }
        (self.plan.count, self.plan.bytes) = (all.len() as u64, bytes);
        self.plan.empty = (given - all.len()) as u64;
        self.regions = match kind {
            RangeKind::Files => divided(&all, threads, block_max),
            RangeKind::Tensors => dealt(&all, threads),
        };
        if self.regions.iter().any(Vec::is_empty) {
            let parts = match kind {
                RangeKind::Files => {
                    let blocks: u64 = all.iter().map(|one| blocks_of(one.length, block_max)).sum();
                    format!("{} of {}", many(blocks, "block"), format_bytes(block_max))
                }
                RangeKind::Tensors => many(all.len() as u64, "tensor"),
            };
            let what = format!(
                "{} for {parts}: some would have nothing to read; lower threads, or bs; without \
                 them as many threads run as suit the files",
                many(threads.into(), "thread")
            );
            return Err(PlanError::usage(job, "threads", what));
        }
        if kind == RangeKind::Files && job.threads.is_none() && threads < OF_FILES {
            let block = format_bytes(block_max);
            self.note = Some(format!(
                "threads {threads} instead of {OF_FILES}: the files have as many blocks of {block}"
            ));
        }
        let edges = all.iter().flat_map(|region| [region.offset, region.length]);
        let zeros = edges.filter(|edge| *edge > 0).map(u64::trailing_zeros).min().unwrap_or(0);
        self.alignment = 1 << zeros.min(32);
        Ok(())
    }

    /// The regions that each thread reads.
    pub(super) fn lay(&mut self, ground: &mut Ground) -> Laid {
        let mut targets = ground.targets(0);
        for (target, place) in targets.iter_mut().zip(&ground.infos) {
            target.length_bytes = place.length_bytes.unwrap_or(0);
        }
        let regions = std::mem::take(&mut self.regions);
        let of = |regions: &Vec<Region>| regions.iter().map(|region| region.length).sum();
        let size_bytes = regions.iter().map(of).max().unwrap_or(0);
        Laid::of_files(size_bytes, targets, regions)
    }
}

/// The ranges of all files.
fn all(
    job: &JobSpec,
    kind: RangeKind,
    ground: &Ground,
    facts: &Facts<'_>,
) -> Result<Vec<Region>, PlanError> {
    let wrong = |what: String| PlanError::usage(job, "filenames", what);
    let mut all: Vec<Region> = Vec::new();
    for (file, (path, place)) in (0_u32..).zip(ground.paths.iter().zip(&ground.infos)) {
        let Some(length) = place.length_bytes.filter(|_| !place.device) else {
            return Err(wrong(format!("{path}: there is no such file; name one")));
        };
        match kind {
            RangeKind::Files => all.push(Region::range(file, 0, length)),
            RangeKind::Tensors => {
                let tensors = facts.targets.tensors(path);
                let tensors = tensors.map_err(|what| wrong(format!("{path}: {what}")))?;
                all.extend(tensors.iter().map(|(at, length)| Region::range(file, *at, *length)));
            }
        }
    }
    Ok(all)
}

/// Each thread's part of all files, one behind the other, in whole blocks.
fn divided(all: &[Region], threads: u32, block: u64) -> Vec<Vec<Region>> {
    let block = block.max(1);
    let blocks: u64 = all.iter().map(|region| blocks_of(region.length, block)).sum();
    let threads = u64::from(threads);
    let begin = |thread: u64| {
        u64::try_from(u128::from(blocks) * u128::from(thread) / u128::from(threads)).unwrap_or(0)
    };
    let part = |thread: u64| {
        let (from, to) = (begin(thread), begin(thread + 1));
        let mut before = 0;
        let mut regions = Vec::new();
        for region in all {
            let count = blocks_of(region.length, block);
            let (first, last) = (from.max(before), to.min(before + count));
            if first < last {
                let offset = (first - before) * block;
                let end = ((last - before) * block).min(region.length);
                regions.push(Region::range(region.target, offset, end - offset));
            }
            before += count;
        }
        regions
    };
    (0..threads).map(part).collect()
}

/// One after another to each thread in turn.
fn dealt(all: &[Region], threads: u32) -> Vec<Vec<Region>> {
    let mut regions = vec![Vec::new(); threads as usize];
    for (region, at) in all.iter().zip((0..threads as usize).cycle()) {
        regions[at].push(*region);
    }
    regions
}
