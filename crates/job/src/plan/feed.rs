//! Training feeds: the data set of samples, and who reads them for which accelerator.

use gpuio_base::catalog::PathInfo;
use gpuio_base::units::whole;
use gpuio_record::{
    BlockShare, ComputationKind, Distribution, FeedCompute, FeedPlan, Fill, Gpu, JobPlan, Order,
    Region, SampleOrder, TierPlan, VerifyMode,
};

use super::PlanError;
use super::regions::{Ground, Laid};
use super::work::{refuse_others, refuse_sizes};
use crate::spec::{FeedRequest, JobSpec, LoadKind, Origin, Requested, Rw};
use crate::workload::feed::Shape;
use crate::workload::short;

/// Blocks that long samples are cut into, unless another size is requested.
const BLOCK_MOST: u64 = 1 << 20;
/// Files of a data set: each is planned, opened and recorded.
const FILES_MOST: u64 = 1 << 21;
/// Longest computation of a step: a day.
const STEP_MOST_NS: u64 = 86_400_000_000_000;
/// Readings that are counted: a byte for each unit in each epoch.
const COUNTED_MOST: u64 = 1 << 32;

/// The feed of a job, and its GPUs in the order of the accelerators.
pub(super) fn resolve(
    job: &JobSpec,
    path: &PathInfo,
    gpus: &mut Vec<Gpu>,
) -> Result<FeedPlan, PlanError> {
    let requested = &job.feed;
    let Some(full_files) = requested.files else {
        let field = job.requested.keys().find(|field| field.starts_with("feed."));
        let what = "it is of a training feed, which needs files, sample_size, batch_samples and \
                    compute_time; add files, or leave it out";
        return Err(PlanError::usage(job, field.copied().unwrap_or("feed.files"), what));
    };
    vet(job, path)?;
    let missing = |field: &str, what: &str| PlanError::usage(job, field, what.to_owned());
    let needs = "a training feed needs files, sample_size, batch_samples and compute_time; add";
    let sample = requested
        .sample_size
        .ok_or_else(|| missing("feed.sample_size", &format!("{needs} sample_size")))?;
    let batch_samples = requested
        .batch_samples
        .ok_or_else(|| missing("feed.batch_samples", &format!("{needs} batch_samples")))?;
    let compute = compute(job, path)?;
    let compute_ns = match (compute, step_ns(requested, batch_samples)) {
        (FeedCompute::None, _) => 0,
        (_, Some(time)) if time <= STEP_MOST_NS => time,
        (_, Some(_)) => {
            let what = "a step would take more than a day; lower compute_time, \
                        sample_compute_time or batch_samples";
            return Err(missing("feed.batch_samples", what));
        }
        (_, None) => {
            let what = format!("{needs} compute_time, or compute=none");
            return Err(missing("feed.compute", &what));
        }
    };
    let scale = job.scale.unwrap_or(1.0);
    let plan = FeedPlan {
        full_files,
        scale,
        files: scaled(full_files, scale),
        samples_per_file: requested.samples_per_file.unwrap_or(1),
        sample,
        ratio: requested.ratio.unwrap_or(1.0),
        writes: job.rw == Some(Rw::Write),
        columns: requested.columns.clone().unwrap_or_default(),
        sample_group: requested.sample_group.unwrap_or(1),
        batch_samples,
        order: requested.order.unwrap_or(SampleOrder::Shuffle),
        epochs: requested.epochs.unwrap_or(1),
        accelerators: accelerators(job, gpus)?,
        readers: requested.readers.unwrap_or(4),
        prefetch: requested.prefetch.unwrap_or(2),
        compute,
        compute_ns,
        slo: requested.slo,
        least_utilisation_percent: requested.utilisation.filter(|_| compute != FeedCompute::None),
        tier: None,
        changed: changed(job),
    };
    sizes(job, &plan)?;
    let tier = requested.cache_memory.map(|bytes| tier(job, path, &plan, bytes)).transpose()?;
    Ok(FeedPlan { tier, ..plan })
}

/// Fields that make a feed another one than its source defines. MLPerf Storage leaves others open
/// (rules of its closed division): files, readers, what they read ahead, accelerators.
const DEFINED: [&str; 10] = [
    "feed.samples_per_file",
    "feed.sample_size",
    "feed.columns",
    "feed.sample_group",
    "feed.ratio",
    "feed.batch_samples",
    "feed.order",
    "feed.epochs",
    "feed.compute_ns",
    "feed.sample_compute_ns",
];

/// The settings that aren't the workload's own: all of `--try` but the share of the data, which the
/// plan has, and gpuio's verification, and other flags' of [`DEFINED`].
fn changed(job: &JobSpec) -> Vec<String> {
    let is_changed = |(field, one): &(&&'static str, &Requested)| match one.origin {
        Origin::Flag(short::FLAG) => !["scale", "verify"].contains(*field),
        Origin::Flag(_) => DEFINED.contains(*field),
        Origin::File { .. } | Origin::Preset(_) => false,
    };
    job.requested.iter().filter(is_changed).map(|(_, one)| one.to_string()).collect()
}

/// The tier in so many bytes of host memory: places for whole samples, as long as the longest.
fn tier(
    job: &JobSpec,
    path: &PathInfo,
    plan: &FeedPlan,
    requested_bytes: u64,
) -> Result<TierPlan, PlanError> {
    let refused = |what: String| Err(PlanError::usage(job, "feed.cache_memory", what));
    if let Some(why) = no_tier(path) {
        return refused(format!("{why}; use path=staged or cached, or leave it out"));
    }
    if plan.writes {
        let what = "it keeps samples that are read; those that are written go to storage at once, \
                    as nothing is written back later: give it to the job that reads";
        return refused(what.to_owned());
    }
    if !plan.columns.is_empty() {
        let what = "it keeps whole samples, and of these only some columns are read; leave out \
                    columns, or cache_memory";
        return refused(what.to_owned());
    }
    let shape = Shape::new(plan);
    let place_bytes = shape.longest_unit();
    let places = requested_bytes.checked_div(place_bytes).unwrap_or(0).min(shape.units());
    match u32::try_from(places) {
        Ok(0) => refused(format!(
            "{requested_bytes} bytes hold no whole sample: the longest that are read together have \
             {place_bytes} bytes; give at least as many"
        )),
        Ok(places) => Ok(TierPlan { requested_bytes, places, place_bytes }),
        Err(_) => refused(format!("{places} samples; give less, 4294967295 are the most")),
    }
}

pub const TIER_KEY: &str = "cache_memory";

/// Bytes of a feed's tier in host memory.
pub(super) fn tier_bytes(job: &JobPlan) -> u64 {
    job.feed.as_ref().and_then(|feed| feed.tier).map_or(0, TierPlan::bytes)
}

/// Why a path of `all` can't feed accelerators.
pub(super) fn lacks(job: &JobSpec, path: &PathInfo) -> Option<String> {
    if path.fans_out {
        return Some("each accelerator of a training feed has samples of its own".to_owned());
    }
    job.feed.cache_memory.and_then(|_| no_tier(path))
}

/// Why a path can't have a tier in host memory.
fn no_tier(path: &PathInfo) -> Option<String> {
    (!path.has_tier).then(|| {
        format!(
            "path {} makes no copy of its own from host memory to GPU memory for each block, with \
             which samples could come from cache_memory",
            path.name
        )
    })
}

/// Time of a step's computation: so much, and so much more for each sample.
fn step_ns(requested: &FeedRequest, batch_samples: u64) -> Option<u64> {
    let samples = requested.sample_compute_ns.map(|each| each.saturating_mul(batch_samples));
    match (requested.compute_ns, samples) {
        (None, None) => None,
        (step, samples) => Some(step.unwrap_or(0).saturating_add(samples.unwrap_or(0))),
    }
}

/// How a feed is verified unless another way is requested: samples on arrival, and written ones
/// afterwards where they are bytes that can be told.
pub(super) fn verify(job: &JobSpec) -> VerifyMode {
    let is_pattern = job.fill.is_none_or(|fill| fill == Fill::Pattern);
    match job.rw {
        Some(Rw::Write) if !is_pattern || job.engine.as_deref() == Some("null") => VerifyMode::Off,
        Some(Rw::Write) => VerifyMode::Pass,
        _ => VerifyMode::Inline,
    }
}

/// Refuses keys that a feed can't be combined with.
fn vet(job: &JobSpec, path: &PathInfo) -> Result<(), PlanError> {
    let usage = |field: &str, what: String| Err(PlanError::usage(job, field, what));
    if job.requested.contains_key("threads") {
        let what = "it has no effect here: this workload has no ranks, and readers of accelerators \
                    move its samples; leave it out, or use --readers or --accelerators";
        return usage("threads", what.to_owned());
    }
    let in_turn = matches!(job.rw, Some(Rw::Read | Rw::Write)).then_some("rw");
    let why = "files, samples, batches and readers say what this workload moves (docs/workload.md)";
    refuse_others(job, LoadKind::Feed, in_turn, why)?;
    if job.against_file == Some(true) {
        let what = "samples of a training feed have gpuio's pattern; use verify=inline or \
                    verify=pass";
        return usage("verify", what.to_owned());
    }
    if job.fio_headers == Some(true) {
        let what = "blocks with fio's headers have one size and place each, and samples of a \
                    training feed have gpuio's pattern; use verify=inline or verify=pass";
        return usage("verify", what.to_owned());
    }
    refuse_sizes(job, "samples of a training feed")?;
    if path.fans_out {
        let what = "path fan-out places each block in all GPUs, and each accelerator of a training \
                    feed has samples of its own; use another path";
        return usage("paths", what.to_owned());
    }
    if job.rank.as_ref().is_some_and(|place| place.ranks > 1) {
        let what = "a training feed runs in one process, for all GPUs of the machine; start it \
                    without mpirun or srun";
        return usage("feed.files", what.to_owned());
    }
    Ok(())
}

/// The work of accelerators. Without a GPU nothing can be kept busy.
fn compute(job: &JobSpec, path: &PathInfo) -> Result<FeedCompute, PlanError> {
    let default = match path.needs_gpu {
        true => FeedCompute::Kernel { with: ComputationKind::Compute, share_percent: 100.0 },
        false => FeedCompute::Sleep,
    };
    let compute = job.feed.compute.unwrap_or(default);
    if matches!(compute, FeedCompute::Kernel { .. }) && !path.needs_gpu {
        let what = format!(
            "path {} uses no GPU that a kernel could keep busy; use compute=sleep, or path=staged \
             or another path to GPU memory",
            path.name
        );
        return Err(PlanError::usage(job, "feed.compute", what));
    }
    Ok(compute)
}

/// The number of accelerators. They are spread over the GPUs evenly; GPUs that would have none are
/// left out.
fn accelerators(job: &JobSpec, gpus: &mut Vec<Gpu>) -> Result<u32, PlanError> {
    let present = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
    let count = job.feed.accelerators.unwrap_or(present.max(1));
    if count < present {
        gpus.truncate(count as usize);
        return Ok(count);
    }
    if !count.is_multiple_of(present.max(1)) {
        let what = format!(
            "{count} accelerators are no multiple of the {present} GPUs, so that these would not \
             have as many each; use {} or {}, or other GPUs",
            count / present * present,
            count.div_ceil(present) * present
        );
        return Err(PlanError::usage(job, "feed.accelerators", what));
    }
    Ok(count)
}

/// So many files, and one at least.
fn scaled(files: u64, scale: f64) -> u64 {
    if scale.total_cmp(&1.0).is_eq() { files } else { whole((files as f64 * scale).round()).max(1) }
}

/// Numbers that go too far, or do not fit together.
fn sizes(job: &JobSpec, plan: &FeedPlan) -> Result<(), PlanError> {
    let usage = |field: &str, what: String| Err(PlanError::usage(job, field, what));
    if plan.files > FILES_MOST {
        let what = format!(
            "{} files; {FILES_MOST} is the most: lower scale, now {}",
            plan.files, plan.scale
        );
        return usage("feed.files", what);
    }
    if !plan.samples_per_file.is_multiple_of(plan.sample_group) {
        let what = format!(
            "{} samples of a file are no whole groups of {}; give a sample_group that divides them",
            plan.samples_per_file, plan.sample_group
        );
        return usage("feed.sample_group", what);
    }
    if let SampleOrder::Zipf { theta } = plan.order
        && !(theta.is_finite() && theta > 0.0)
    {
        return usage("feed.order", "expected a theta above 0, such as zipf:1.2".to_owned());
    }
    if plan.writes && plan.order.draws() {
        let what = "a feed that writes makes each sample once, and this order draws some often and \
                    others never; use another sample_order";
        return usage("feed.order", what.to_owned());
    }
    if plan.writes && (plan.epochs > 1 || !plan.columns.is_empty()) {
        let what =
            "a feed that writes makes whole samples, each once; leave out epochs and columns";
        return usage("rw", what.to_owned());
    }
    if plan.ratio > 1.0 && !plan.columns.is_empty() {
        let what = "columns are read as they lie in their files; leave out ratio, or columns";
        return usage("feed.ratio", what.to_owned());
    }
    if plan.sample.deviation_bytes > 0 && (plan.samples_per_file > 1 || !plan.columns.is_empty()) {
        let what = "sizes of samples differ only where each is a file of its own; leave out the \
                    deviation, or samples_per_file and columns";
        return usage("feed.sample_size", what.to_owned());
    }
    let wide: u64 = plan.columns.iter().map(|column| u64::from(column.bytes)).sum();
    if !plan.columns.is_empty() && wide != plan.sample.mean_bytes {
        let what = format!(
            "the columns have {wide} bytes, and a sample {}; correct one of them",
            plan.sample.mean_bytes
        );
        return usage("feed.columns", what);
    }
    let groups = plan.samples_per_file / plan.sample_group;
    let unit = u128::from(plan.sample.mean_bytes) * u128::from(plan.sample_group) + 4096;
    let file = unit * u128::from(groups);
    if unit > u128::from(u32::MAX) << 10 || file * u128::from(plan.files) > i64::MAX as u128 {
        let what = "the data set is past the largest file system; lower files, samples or scale";
        return usage("feed.files", what.to_owned());
    }
    let readings = plan.files.saturating_mul(groups).saturating_mul(plan.epochs);
    if readings > COUNTED_MOST || plan.epochs > COUNTED_MOST {
        let what = format!(
            "{readings} samples or groups in all epochs; {COUNTED_MOST} are the most: lower epochs \
             or scale"
        );
        return usage("feed.epochs", what);
    }
    if u64::from(plan.readers) * u64::from(plan.accelerators) > 65_536 {
        let what = "more than 65536 reader threads in all; lower readers or accelerators";
        return usage("feed.readers", what.to_owned());
    }
    Ok(())
}

/// Threads of all accelerators.
pub(super) fn threads(plan: &FeedPlan) -> u32 {
    plan.accelerators.saturating_mul(plan.readers)
}

/// Files that are used: at most [`FILES_MOST`].
pub(super) fn files(plan: &FeedPlan) -> u32 {
    u32::try_from(plan.files).unwrap_or(u32::MAX)
}

/// Order of the files, as far as a load of blocks has a word for it.
pub(super) fn order(plan: &FeedPlan) -> Order {
    match plan.order {
        SampleOrder::Shuffle => {
            Order::Random { distribution: Distribution::Uniform, coverage: true }
        }
        SampleOrder::Zipf { theta } => {
            Order::Random { distribution: Distribution::Zipf { theta }, coverage: false }
        }
        SampleOrder::ShuffleFiles | SampleOrder::InOrder | SampleOrder::Reverse => {
            Order::Sequential
        }
    }
}

/// The blocks that samples are cut into: one for a short sample.
pub(super) fn blocks(job: &JobSpec, plan: &FeedPlan) -> Vec<BlockShare> {
    let size = Shape::new(plan).longest_part().clamp(1, BLOCK_MOST);
    let one = BlockShare { min_bytes: size, max_bytes: size, step_bytes: 0, percent: 100 };
    job.blocks.clone().unwrap_or_else(|| vec![one])
}

/// The unit of the ranges of the samples.
pub(super) fn alignment(plan: &FeedPlan) -> u64 {
    Shape::new(plan).alignment()
}

/// Files with the lengths of their samples. Each is verified by one thread, all are read by all.
pub(super) fn lay(plan: &FeedPlan, ground: &mut Ground) -> Laid {
    let shape = Shape::new(plan);
    let mut targets = ground.targets(0);
    for (file, target) in (0_u64..).zip(&mut targets) {
        target.length_bytes = shape.file_bytes(file);
    }
    let threads = threads(plan);
    let whole = |file: u32| Region::range(file, 0, targets[file as usize].length_bytes);
    let of_thread =
        |thread: u32| (thread..files(plan)).step_by(threads.max(1) as usize).map(whole).collect();
    let regions = (0..threads).map(of_thread).collect();
    let all: u64 = targets.iter().map(|target| target.length_bytes).sum();
    Laid::of_files(all / u64::from(threads), targets, regions)
}
