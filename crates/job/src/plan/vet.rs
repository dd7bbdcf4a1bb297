//! Contradictions and impossible asks, refused by name with what to do.

use gpuio_base::catalog::{Catalog, Inject, PathInfo, RING_ENTRIES};
use gpuio_base::units::{ShellLine, format_duration_ns};
use gpuio_record::{
    BlockShare, DirectMode, Distribution, Fill, JobPlan, Order, VerifyMode, WorkerPlan,
};

use super::defaults::mix_and_order;
use super::{PlanError, layout, no_engine, read_back};
use crate::spec::{JobSpec, Origin, Spec};
use crate::workload::blocks;
use crate::workload::sequence::BlockSequence;

/// A slot's length is a u32 in the kernel's interfaces, and Linux moves at most 2 GiB − 4 KiB in
/// one call (read(2)).
const BLOCK_MOST: u64 = 0x7fff_f000;
/// Threads that a plan may ask for: past this the scheduler is measured, not storage.
const THREADS_MOST: u32 = 65_536;
/// Files that all threads of a plan may open together: each is planned, opened and recorded.
const OPENS_MOST: u64 = 1 << 20;
/// Bytes of fio's header in a block.
const FIO_HEADER: u64 = 44;
const NO_PATTERN: &str = "zeros are alike everywhere, so that lost writes would not be found; \
                          leave it out, or leave out --verify";
/// 100 years: delay, ramp and time together stay far below the 584 years of the run's clock.
const TIME_MOST_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

/// Threads times files over all jobs and their paths, before anything is laid out for them.
pub(super) fn opens(spec: &Spec, catalog: &Catalog) -> Result<(), PlanError> {
    let mut all = 0_u64;
    for requested in &spec.jobs {
        let files = requested.filenames.as_ref().map_or(1, Vec::len) as u64;
        // A number of threads that never works is refused by name ([`keys`]).
        let threads = requested.threads.filter(|threads| *threads <= THREADS_MOST).unwrap_or(1);
        let threads = u64::from(threads);
        let count = |name: &String| if name == "all" { catalog.paths.len() as u64 } else { 1 };
        let paths =
            requested.paths.as_ref().map_or(1, |paths| paths.iter().map(count).sum::<u64>());
        all = all.saturating_add(threads.saturating_mul(files).saturating_mul(paths));
        if all > OPENS_MOST {
            let field = if files > 1 { "filenames" } else { "threads" };
            let what = format!(
                "{threads} threads with {files} files each, over {paths} paths, make {all} files \
                 to open with the jobs before; {OPENS_MOST} is the most: name fewer in filename, \
                 or lower threads (numjobs)"
            );
            return Err(PlanError::usage(requested, field, what));
        }
    }
    Ok(())
}

/// Keys that name something which does not exist on any path built in, or too many threads.
pub(super) fn keys(requested: &JobSpec, path: &PathInfo) -> Result<(), PlanError> {
    // Before anything is laid out for every thread.
    let threads = requested.threads.unwrap_or(1);
    if threads == 0 || threads > THREADS_MOST {
        let what = format!("{threads} threads; 1 to {THREADS_MOST} work");
        return Err(PlanError::usage(requested, "threads", what));
    }
    let batch_path = path.batches && path.uses_cufile();
    if requested.batch.is_some() && !batch_path {
        let number = path.gdsio.map(|number| format!("{number} ")).unwrap_or_default();
        let what = format!(
            "a batch size belongs to transfer types 6 and 7, and this is {number}({}); {}",
            path.name,
            if path.batches { "use gather_batch" } else { "remove it" }
        );
        return Err(PlanError::usage(requested, "batch", what));
    }
    if batch_path
        && requested.gather_batch.is_some_and(|two| requested.batch.is_some_and(|b| b != two))
    {
        let what =
            "batch and gather_batch have the same meaning on this path, and differ; leave one out";
        return Err(PlanError::usage(requested, "batch", what));
    }
    if batch_path && requested.batch.is_some_and(|batch| requested.depth.is_some_and(|d| d < batch))
    {
        let what = "a batch holds no more I/Os than the depth has; raise depth, or lower batch";
        return Err(PlanError::usage(requested, "batch", what));
    }
    if requested.nvlinks == Some(true) && !path.needs_gpus() {
        let what = format!(
            "enable_nvlinks (-p) has no effect on path {}: of gpuio's paths only routed and \
             fan-out copy from GPU to GPU (--path=routed; they take NVLink where the GPUs have \
             it), and \
             what cuFile does between GPUs follows its configuration \
             (properties.rdma_dynamic_routing); leave it out",
            path.name
        );
        return Err(PlanError::usage(requested, "nvlinks", what));
    }
    if requested.rdma_url.is_some() {
        let what = "an RDMA URL needs cuFile's user-space path, which is not built into this gpuio";
        return Err(PlanError::unavailable(requested, "rdma_url", what));
    }
    if requested.mix_percent.is_some() && !batch_path {
        let what = "a mixed percentage (-M) belongs to the batch transfer types 6 and 7; use \
                    rw=randrw with rwmixread";
        return Err(PlanError::usage(requested, "mix_percent", what));
    }
    of_fio(requested)?;
    of_path(requested, path)
}

/// Keys of fio that fit no load like this one.
fn of_fio(requested: &JobSpec) -> Result<(), PlanError> {
    if let (0..100, Some(refused)) = (mix_and_order(requested).0, requested.for_writes.first()) {
        let at = Some(format!("job '{}', {} ({})", requested.name, refused.name, refused.origin));
        return Err(PlanError::Usage { at, what: refused.why.clone() });
    }
    if requested.files_by_chance
        && requested.files_per_thread.is_some_and(|files| files > 1)
        && mix_and_order(requested).1 == Order::Sequential
    {
        let what = "files are not chosen by chance where their blocks come in order; use \
                    file_service_type=roundrobin or sequential, or rw=randread";
        return Err(PlanError::usage(requested, "files_in_turn", what));
    }
    if requested.latency_percentile.is_some() && requested.latency_target_ns.is_none() {
        let what = "it belongs to latency_target; add that, or leave it out";
        return Err(PlanError::usage(requested, "latency_percentile", what));
    }
    Ok(())
}

/// A limit on latencies is for a search, which takes one job.
pub(super) fn targets(spec: &Spec) -> Result<(), PlanError> {
    let limited = |job: &&JobSpec| job.latency_limit_ns().is_some() && !job.one_of_many;
    let Some(requested) = spec.jobs.iter().find(limited) else { return Ok(()) };
    let target = requested.latency_target_ns.unwrap_or_default();
    let within = format!("{} stays within {}", latency_at(requested), format_duration_ns(target));
    let file = match requested.origin("latency_target_ns") {
        Some(Origin::File { file, .. }) => file.as_ref(),
        _ => "FILE",
    };
    let sweep = ShellLine::new("gpuio sweep").file(file);
    let what = match spec.jobs.len() {
        1 => format!("a run has one load; `{sweep}` searches the highest one whose {within}"),
        _ => format!(
            "a run has one load, and a search takes one job. To run all jobs without the limit \
             add --set latency_target=0 to the command. For the highest load of [{}] whose \
             {within}, put that section, with what it needs of [global], into a file of its own: \
             {}",
            requested.name,
            ShellLine::new("gpuio sweep").file(format!("{}.fio", requested.name))
        ),
    };
    Err(PlanError::usage(requested, "latency_target_ns", what))
}

/// The percentile of a latency target; fio's default, all I/Os, is the highest that is searched.
pub fn latency_at(requested: &JobSpec) -> String {
    requested.latency_percentile.map_or_else(|| "p99.99".to_owned(), |at| at.label())
}

/// Refuses values that this path can't serve, whatever the rest of the plan is.
fn of_path(requested: &JobSpec, path: &PathInfo) -> Result<(), PlanError> {
    if !path.uses_engine() {
        let refused =
            [("engine", requested.engine.is_some()), ("inject", requested.inject.is_some())];
        if let Some((field, _)) = refused.iter().find(|(_, set)| *set) {
            let what = format!(
                "path {} has no engine: {}; leave out {field}, or use --path=staged",
                path.name,
                no_engine(path)
            );
            return Err(PlanError::usage(requested, field, what));
        }
    }
    if path.fans_out && mix_and_order(requested).0 < 100 {
        let what = format!(
            "path {} only reads: it places each block in all GPUs; use rw=read or randread, or \
             --path=staged",
            path.name
        );
        return Err(PlanError::usage(requested, "rw", what));
    }
    // gdsio's -O 0 is its default and says nothing of the type that has no O_DIRECT.
    if path.buffered_only && requested.direct == Some(true) && !requested.is_gdsio() {
        let what = format!(
            "path {} is the one through the page cache and can't be direct; use --path=staged",
            path.name
        );
        return Err(PlanError::usage(requested, "direct", what));
    }
    Ok(())
}

/// The whole plan of a job against itself.
pub(super) fn plan(requested: &JobSpec, plan: &JobPlan, alignment: u64) -> Result<(), PlanError> {
    let wrong = |field: &str, what: String| Err(PlanError::usage(requested, field, what));
    if plan.depth == 0 || plan.depth > 65_535 {
        return wrong("depth", format!("a depth of {}; 1 to 65535 work", plan.depth));
    }
    blocks(requested, plan, alignment)?;
    if let Some(bytes) = requested.lock_bytes.filter(|bytes| *bytes > 0)
        && plan.direct == DirectMode::Buffered
    {
        let what = format!(
            "gpuio locks no memory; a limit from outside leaves the page cache less: \
             'systemd-run --scope -p MemoryMax=BYTES gpuio bench FILE' with {bytes} less than the \
             machine has"
        );
        return wrong("lock_bytes", what);
    }
    if plan.pre_read && plan.invalidate {
        return Err(cache_state(requested));
    }
    if requested.read_only == Some(true) && plan.read_percent < 100 {
        let what = "the job writes; use rw=read or rw=randread, or leave readonly out";
        return wrong("read_only", what.to_owned());
    }
    direct(requested, plan, alignment)?;
    rings(requested, plan)?;
    if let Some(Err(error)) = plan.inject.as_ref().map(|text| text.parse::<Inject>()) {
        return wrong("inject", error.to_string());
    }
    if plan.stop.bytes_per_thread == Some(0) || plan.stop.runtime_ns == Some(0) {
        return wrong("runtime_ns", "a run of no time or no bytes measures nothing".into());
    }
    if plan.verify != VerifyMode::Off && plan.fill != Fill::Pattern && plan.read_percent < 100 {
        return wrong("fill", NO_PATTERN.into());
    }
    if let Some((field, what)) = fio_headers(plan) {
        let field = if requested.requested.contains_key(field) { field } else { "verify" };
        return wrong(field, what.to_owned());
    }
    if plan.against_file && (plan.read_percent < 100 || plan.path.choice.actual == "fan-out") {
        let what = "verify=file compares what was read into one GPU with the file; use it for jobs \
                    that only read, on another path than fan-out, or verify=pass";
        return wrong("verify", what.to_owned());
    }
    if let Some(what) = read_back::of_job(plan) {
        return wrong("verify", what);
    }
    layout::strided(requested, plan)?;
    times(requested, plan)?;
    // Samples are read as `workload::feed` has them, and recorded calls as they were.
    if plan.feed.is_some() || plan.replay.is_some() { Ok(()) } else { sequences(requested, plan) }
}

/// The sizes of the blocks, and their alignment where the page cache is passed by.
fn blocks(requested: &JobSpec, plan: &JobPlan, alignment: u64) -> Result<(), PlanError> {
    let wrong = |what: String| Err(PlanError::usage(requested, "blocks", what));
    for block in plan.sizes() {
        if block.min_bytes == 0 || block.max_bytes > BLOCK_MOST {
            let what = format!(
                "blocks of {} bytes; 1 byte to {BLOCK_MOST} bytes work (read(2) moves no more in \
                 one call)",
                size_words(block)
            );
            return wrong(what);
        }
        if plan.direct == DirectMode::Direct
            && !(block.min_bytes.is_multiple_of(alignment)
                && block.max_bytes.is_multiple_of(alignment)
                && block.step_bytes.is_multiple_of(alignment))
        {
            let what = format!(
                "O_DIRECT here needs blocks in multiples of {alignment} bytes, and {} needs \
                 others; use --buffered or another --bs",
                size_words(block)
            );
            return wrong(what);
        }
    }
    Ok(())
}

/// The rings of path `initiated`, and the chain that its blocks may be.
fn rings(requested: &JobSpec, plan: &JobPlan) -> Result<(), PlanError> {
    if let Some(rings) = plan.rings
        && plan.depth.div_ceil(rings) > RING_ENTRIES
    {
        let what = format!(
            "{} I/Os in flight on {rings} rings, and a ring has {RING_ENTRIES} entries; raise \
             rings, or lower depth",
            plan.depth
        );
        return Err(PlanError::usage(requested, "rings", what));
    }
    match not_a_chain(plan) {
        Some(what) => Err(PlanError::usage(requested, "chain", what)),
        None => Ok(()),
    }
}

fn one_size(plan: &JobPlan) -> bool {
    let one = matches!(plan.blocks.as_slice(), [one] if one.min_bytes == one.max_bytes);
    one && plan.write_blocks.is_empty()
}

/// Why the blocks can't be a chain.
fn not_a_chain(plan: &JobPlan) -> Option<&'static str> {
    let one_size = one_size(plan);
    let uniform = Order::Random { distribution: Distribution::Uniform, coverage: true };
    let in_one = |worker: &WorkerPlan| matches!(&*worker.regions, [one] if one.stripe.is_none());
    let why = [
        (
            plan.read_percent < 100 || plan.order != uniform || plan.skew_bytes > 0,
            "the blocks of a chain come from anywhere, and are only read; use rw=randread alone",
        ),
        (
            !one_size || plan.blocks.iter().any(|block| block.min_bytes < 8),
            "the blocks of a chain have one size, of 8 bytes at least; use bs= with one",
        ),
        (
            !plan.workers.iter().all(in_one),
            "each thread's chain lies in one file; use a file for each thread, or one for all",
        ),
    ];
    why.into_iter().find(|(wrong, _)| plan.chain && *wrong).map(|(_, why)| why)
}

/// The field that stands against fio's headers in blocks, and why.
fn fio_headers(plan: &JobPlan) -> Option<(&'static str, &'static str)> {
    let one_size = one_size(plan);
    let large = plan.blocks.iter().all(|block| block.min_bytes > FIO_HEADER);
    let aligned = plan.blocks.iter().all(|block| plan.align_bytes.is_multiple_of(block.max_bytes));
    let random = matches!(plan.order, gpuio_record::Order::Random { .. });
    let why = [
        (
            plan.path.choice.actual != "host",
            "paths",
            "verify=crc32c makes and checks fio's headers in host memory; use path=host, or \
             verify=pass to verify gpuio's pattern in GPU memory",
        ),
        (
            !one_size,
            "blocks",
            "verify=crc32c, with a header of fio's in each block, takes blocks of one size here; \
             verify=pass checks every byte of blocks of any sizes, or give one size: bs=4k",
        ),
        (
            !large,
            "blocks",
            "with verify=crc32c a block must be longer than fio's header of 44 bytes; raise bs",
        ),
        (
            random && !aligned,
            "align",
            "with verify=crc32c blocks must not overlap; leave out blockalign, or use verify=pass",
        ),
        (plan.fill != Fill::Pattern, "fill", NO_PATTERN),
        (
            plan.verify == VerifyMode::Rewrite,
            "verify",
            "verify=rewrite is for gpuio's pattern; use verify=pass with it",
        ),
    ];
    let first = why.into_iter().find(|(wrong, ..)| plan.fio_headers && *wrong);
    first.map(|(_, field, why)| (field, why))
}

/// `4096`, or `4096 to 8192 step 512`.
fn size_words(block: &BlockShare) -> String {
    let BlockShare { min_bytes, max_bytes, step_bytes, .. } = block;
    if min_bytes == max_bytes {
        return min_bytes.to_string();
    }
    format!("{min_bytes} to {max_bytes} step {step_bytes}")
}

/// Both states of the page cache are requested. A flag that contradicts a job file or a preset is
/// the one to leave out: a preset's key can't be taken out of its file.
fn cache_state(requested: &JobSpec) -> PlanError {
    let by_flag = |field: &str| match requested.origin(field) {
        Some(Origin::Flag(flag)) => Some(*flag),
        _ => None,
    };
    for (field, other, [own, its]) in [
        ("pre_read", "invalidate", ["fills", "empties"]),
        ("invalidate", "pre_read", ["empties", "fills"]),
    ] {
        let (Some(flag), None) = (by_flag(field), by_flag(other)) else { continue };
        let Some(set) = requested.requested.get(other) else { continue };
        let what = format!(
            "it {own} the page cache, and {set} {its} it; leave out {flag}, or add --set {other}=0"
        );
        return PlanError::usage(requested, field, what);
    }
    let what = "pre_read fills the page cache and invalidate empties it; leave one out";
    PlanError::usage(requested, "invalidate", what)
}

fn direct(requested: &JobSpec, plan: &JobPlan, alignment: u64) -> Result<(), PlanError> {
    let wrong = |field: &str, what: String| Err(PlanError::usage(requested, field, what));
    if plan.direct == DirectMode::Buffered {
        return Ok(());
    }
    if plan.pre_read {
        let what = "pre_read fills the page cache, which O_DIRECT passes by; use --buffered";
        return wrong("pre_read", what.into());
    }
    if plan.engine.actual == "mmap" {
        let what = "engine mmap goes through the page cache and can't be direct; use --buffered";
        return wrong("direct", what.into());
    }
    if !plan.align_bytes.is_multiple_of(alignment) || !plan.offset_bytes.is_multiple_of(alignment) {
        let field = if plan.align_bytes.is_multiple_of(alignment) { "offset" } else { "align" };
        let what = format!(
            "O_DIRECT here needs offsets in multiples of {alignment} bytes; alignment {} with \
             start offset {} breaks that; use --buffered",
            plan.align_bytes, plan.offset_bytes
        );
        return wrong(field, what);
    }
    let one_file = plan.targets.len() == 1;
    if plan.sharers() > 1 && one_file && !plan.size_bytes.is_multiple_of(alignment) {
        let what = format!(
            "O_DIRECT here needs offsets in multiples of {alignment} bytes, and threads that \
             share a file start {} bytes apart; \
             give a --size that is such a multiple, or use --buffered",
            plan.size_bytes
        );
        return wrong("size", what);
    }
    if plan.skew_bytes > 0 && alignment >= 4096 {
        let what = format!(
            "offsets off the 4 KiB grid need an alignment below 4096 bytes, and O_DIRECT here has \
             {alignment}; use --buffered to measure them through the page cache"
        );
        return wrong("unaligned", what);
    }
    Ok(())
}

/// Times that the run's clock can't hold when they are added up.
fn times(requested: &JobSpec, plan: &JobPlan) -> Result<(), PlanError> {
    let all = [
        ("runtime_ns", plan.stop.runtime_ns.unwrap_or(0)),
        ("ramp_ns", plan.ramp_ns),
        ("start_delay_ns", plan.start_delay_ns),
        ("steady_window_ns", plan.steady.as_ref().map_or(0, |steady| steady.window_ns)),
        ("steady_ramp_ns", plan.steady.as_ref().map_or(0, |steady| steady.ramp_ns)),
        ("ceilings", plan.ceilings_ns.unwrap_or(0)),
        ("verify_ns", plan.verify_ns.unwrap_or(0)),
    ];
    match all.iter().find(|(_, time)| *time > TIME_MOST_NS) {
        None => Ok(()),
        Some((field, _)) => {
            let what = "a time above 100 years; give a shorter one";
            Err(PlanError::usage(requested, field, what))
        }
    }
}

/// The blocks of each kind of worker: what it refuses would else end the run at its start. Regions
/// of threads differ in their offsets by multiples of one number, which the second one shows.
fn sequences(requested: &JobSpec, plan: &JobPlan) -> Result<(), PlanError> {
    for worker in plan.workers.iter().take(2) {
        let config = blocks::config(plan, worker, Some);
        if let Err(error) = BlockSequence::new(&config) {
            return Err(PlanError::usage(requested, "size", error.to_string()));
        }
    }
    Ok(())
}
