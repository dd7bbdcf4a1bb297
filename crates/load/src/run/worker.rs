//! One worker thread, from opening its files to its last verified block.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use gpuio_io::engine;
use gpuio_io::engine::fault::Inject;
use gpuio_io::engine::monitor::LegCounters;
use gpuio_io::path::{
    self, CufileSide, FanOut, FanOutCounters, GpuSide, InitiatedCounters, InitiatedSide,
    LibraryCounters, MappedCounters, PatternBlock, RouteCounters, Via,
};
use gpuio_record::{
    DirectMode, FanOutResult, FileLegCounters, InitiatedResult, InjectedFaults, JobPlan,
    LibraryBytes, LibraryResult, SegmentBytes, VerifyMode, ViaResult, WorkerPlan,
};

use super::RunError;
use super::affinity;
use super::feed::Feed;
use super::files::Files;
use super::gate::Stage;
use super::pattern_keys;
use super::task::{Ready, Routes, Task, Tools};
use super::timed::{self, Timed};
use super::verify::{self, Findings};
use super::worker_slot;

/// The results of a worker.
pub(super) struct Outcome {
    /// The results of its measured loop.
    pub(super) timed: Timed,
    /// The counts of its path when the clock stopped.
    pub(super) legs: WorkerLegs,
    /// Number within the job.
    pub(super) thread: u32,
    pub(super) findings: Option<Findings>,
}

/// The counters of a worker when the clock stopped.
pub(super) struct WorkerLegs {
    pub(super) file: FileLegCounters,
    /// The legs through another GPU.
    pub(super) via: Option<ViaResult>,
    /// The copies to several GPUs.
    pub(super) fan_out: Option<FanOutResult>,
    /// The counts of gpuio's library core.
    pub(super) library: Option<LibraryResult>,
    /// Bytes that the GPU read out of mappings and wrote into them.
    pub(super) mapped: [MappedMoved; 2],
    /// The I/Os that the GPU started by itself.
    pub(super) initiated: Option<InitiatedResult>,
}

/// The body of a worker thread. `None` when the group was abandoned before the start (the reason
/// went through `ready`).
pub(super) fn work(
    task: &Task<'_>,
    ready: Sender<Result<Ready, RunError>>,
) -> Option<Result<Outcome, RunError>> {
    let mut tools = match open(task) {
        Ok(tools) => tools,
        Err(error) => {
            // The receiver outlives the workers; if it is gone, so is the run.
            let _ = ready.send(Err(error));
            return None;
        }
    };
    let _ = ready.send(Ok(tools.ready.clone()));
    // Once all have answered or died the run's thread hears that nothing else will.
    drop(ready);
    let Stage::Running(start) = task.gate.await_start() else { return None };
    let running = task.gate.running();
    let timed = timed::run(task, &mut tools, start);
    let legs = WorkerLegs {
        file: file_leg(&tools.counters),
        via: via(task.job, &tools.routes.segments),
        fan_out: fan_out(task, &tools.routes.fan_out),
        library: library(task.job, &tools.routes.library),
        mapped: mapped(&tools.routes.mapped),
        initiated: initiated(task.job, &tools.routes.initiated),
    };
    drop(running);
    task.gate.await_after();
    Some(timed.and_then(|timed| finish(task, &mut tools, timed, legs)))
}

/// A reading of the counters at the engine's interface.
fn file_leg(counters: &LegCounters) -> FileLegCounters {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    FileLegCounters {
        read_ios: load(&counters.read.ios),
        read_bytes: load(&counters.read.bytes),
        write_ios: load(&counters.write.ios),
        write_bytes: load(&counters.write.bytes),
        short_ios: load(&counters.short_ios),
        faults: load(&counters.read.faults) + load(&counters.write.faults),
        injected: InjectedFaults {
            eio: load(&counters.injected.eio),
            enospc: load(&counters.injected.enospc),
            lost: load(&counters.injected.lost),
            short: load(&counters.injected.short),
            delay: load(&counters.injected.delay),
            stall: load(&counters.injected.stall),
        },
    }
}

/// A reading of the counters of the legs through another GPU.
fn via(job: &JobPlan, segments: &RouteCounters) -> Option<ViaResult> {
    let via = job.via.as_ref()?;
    let bytes = |segments: &path::SegmentCounters| SegmentBytes {
        host_near_bytes: segments.host_near.load(Ordering::Relaxed),
        near_far_bytes: segments.near_far.load(Ordering::Relaxed),
    };
    Some(ViaResult {
        gpu: via.gpu.index,
        through_host: segments.through_host.load(Ordering::Relaxed),
        read: bytes(&segments.read),
        write: bytes(&segments.write),
    })
}

/// A reading of the counters of copies to several GPUs. The bytes placed follow from the job's
/// bytes.
fn fan_out(task: &Task<'_>, counters: &FanOutCounters) -> Option<FanOutResult> {
    task.job.fan_out?;
    Some(FanOutResult {
        gpus: u32::try_from(1 + task.others.len()).unwrap_or(u32::MAX),
        from_host_bytes: counters.from_host.load(Ordering::Relaxed),
        between_gpus_bytes: counters.between.load(Ordering::Relaxed),
        through_host: counters.through_host.load(Ordering::Relaxed),
        ..FanOutResult::default()
    })
}

/// A reading of what gpuio's library core counted.
fn library(job: &JobPlan, counters: &LibraryCounters) -> Option<LibraryResult> {
    let row = path::find(&job.path.choice.actual)?;
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let bytes = |counters: &path::LibraryOpCounters| LibraryBytes {
        cached_bytes: load(&counters.cached),
        direct_bytes: load(&counters.direct),
        by_kernel_bytes: load(&counters.by_kernel),
        by_copy_bytes: load(&counters.by_copy),
    };
    let all = LibraryResult { read: bytes(&counters.read), write: bytes(&counters.write) };
    row.info.uses_library().then_some(all)
}

/// Bytes by kernel, and by copy.
pub(super) type MappedMoved = (u64, u64);

/// A reading of what the GPU read out of mappings and wrote into them.
fn mapped(counters: &MappedCounters) -> [MappedMoved; 2] {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    [&counters.read, &counters.write].map(|one| (load(&one.by_kernel), load(&one.by_copy)))
}

/// A reading of what the GPU started.
fn initiated(job: &JobPlan, counters: &InitiatedCounters) -> Option<InitiatedResult> {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (entries, commands) = (load(&counters.entries), load(&counters.commands));
    job.rings.map(|rings| InitiatedResult { entries, commands, rings })
}

fn finish(
    task: &Task<'_>,
    tools: &mut Tools,
    mut timed: Timed,
    legs: WorkerLegs,
) -> Result<Outcome, RunError> {
    let findings = match task.job.verify {
        VerifyMode::Off => None,
        VerifyMode::Pass | VerifyMode::Rewrite => Some(verify::pass(task, tools, &timed.left)?),
        VerifyMode::Inline => {
            let mut findings = std::mem::take(&mut timed.inline);
            if task.replay.is_some() && task.job.read_percent < 100 {
                verify::replayed(task, tools, verify::Replayed::Writes, &mut findings)?;
            }
            Some(findings)
        }
    };
    let findings = findings.map(|mut findings| {
        findings.injected = file_leg(&tools.counters).injected - legs.file.injected;
        findings
    });
    Ok(Outcome { timed, legs, thread: task.plan.thread, findings })
}

fn open(task: &Task<'_>) -> Result<Tools, RunError> {
    affinity::pin(&task.plan.cpus)?;
    let files = match &task.shared_files {
        Some(files) => files.clone(),
        None => Files::open(task.job, &own_targets(task.plan), task.held)?,
    };
    let counters = Arc::new(LegCounters::default());
    let routes = Routes::default();
    let config = path_config(task, &files, &counters, &routes)?;
    let row = path::find(&task.job.path.choice.actual).ok_or_else(|| broken(task, "path"))?;
    let path_error = |source| RunError::Path {
        job: task.job.name.clone(),
        thread: task.plan.thread,
        source: Box::new(source),
    };
    let mut opened = (row.open)(config).map_err(path_error)?;
    if task.job.read_percent < 100 {
        prefill(task, &files, opened.path.as_mut()).map_err(path_error)?;
    }
    let worker_slot = worker_slot::take(task, &opened.actual_engine, files.targets.len());
    let ready = Ready {
        live_index: task.live_index,
        actual_engine: opened.actual_engine,
        steps_down: opened.steps_down,
        direct: files.mode(),
    };
    let helpers = opened.helpers;
    Ok(Tools { path: opened.path, files, counters, worker_slot, helpers, routes, ready })
}

/// Targets of a worker, each once, in order.
pub(super) fn own_targets(plan: &WorkerPlan) -> Vec<u32> {
    let mut targets: Vec<u32> = plan.regions.iter().map(|region| region.target).collect();
    targets.dedup();
    targets
}

/// A plan names only rows of our own tables; this is for a plan read from elsewhere.
fn broken(task: &Task<'_>, what: &str) -> RunError {
    RunError::InvalidPlan {
        job: task.job.name.clone(),
        what: format!("the plan names a {what} that this gpuio does not have"),
    }
}

fn path_config(
    task: &Task<'_>,
    files: &Files,
    counters: &Arc<LegCounters>,
    routes: &Routes,
) -> Result<path::PathConfig, RunError> {
    let job = task.job;
    let memory = job.memory;
    let block_max = job.sizes().map(|block| block.max_bytes).max().unwrap_or(0);
    let row = path::find(&job.path.choice.actual).ok_or_else(|| broken(task, "path"))?;
    let engine = match row.info.uses_engine() {
        true => Some(engine::find(&job.engine.actual).ok_or_else(|| broken(task, "engine"))?),
        false => None,
    };
    let inject = match &job.inject {
        None => None,
        Some(text) => Some(text.parse::<Inject>().map_err(|error| RunError::InvalidPlan {
            job: job.name.clone(),
            what: format!("inject: {error}"),
        })?),
    };
    Ok(path::PathConfig {
        slots: job.depth,
        block_max: u32::try_from(block_max).map_err(|_| broken(task, "block size"))?,
        engine,
        files: files.for_engine(),
        direct: job.direct == DirectMode::Direct,
        direct_alignment: alignment(job),
        memory,
        tier: task.feed.and_then(Feed::tier_memory),
        gpu: task.context.clone().map(|context| GpuSide {
            context,
            memory,
            streams: job.streams.max(1),
            batch: job.gather_batch.unwrap_or(1),
            scatter: job.gather_scatter.unwrap_or(false),
            via: task.near.clone().map(|near| Via {
                near,
                any: job.via.as_ref().is_some_and(|via| via.any),
                counters: Arc::clone(&routes.segments),
            }),
            fan_out: job.fan_out.map(|fan_out| FanOut {
                others: task.others.clone(),
                any: fan_out.any,
                counters: Arc::clone(&routes.fan_out),
            }),
        }),
        cufile: task.cufile.clone().map(|driver| CufileSide {
            driver,
            register: job.register_buffer == Some(true),
            stall_timeout: path::CUFILE_STALL_TIMEOUT,
        }),
        fio_headers: job.fio_headers,
        inject,
        counters: Arc::clone(counters),
        library: Arc::clone(&routes.library),
        mappings: task.mappings.map(|all| all.of(&files.targets)).unwrap_or_default(),
        mapped: Arc::clone(&routes.mapped),
        initiated: InitiatedSide {
            rings: job.rings.unwrap_or(1),
            chain: chain(task),
            counters: Arc::clone(&routes.initiated),
        },
    })
}

/// The blocks of the worker's chain, where its job is one. They lie in its only region.
fn chain(task: &Task<'_>) -> Option<path::Chain> {
    let region = task.plan.regions.first().filter(|_| task.job.chain)?;
    let len = u32::try_from(task.job.blocks.first()?.max_bytes).ok()?;
    let count = region.length / u64::from(len.max(1));
    Some(path::Chain { begin: region.offset, len, count })
}

/// The alignment of direct I/O. Plans of before it was kept have 4 KiB, which every logical block
/// size divides.
fn alignment(job: &JobPlan) -> u32 {
    let alignment = if job.direct_alignment_bytes > 0 { job.direct_alignment_bytes } else { 4096 };
    u32::try_from(alignment).unwrap_or(4096)
}

/// Gives every slot data to write before the clock starts: the pattern of as many blocks from the
/// worker's first region, or of a random key. Nothing is generated while the clock runs, unless
/// refilling was requested.
fn prefill(
    task: &Task<'_>,
    files: &Files,
    path: &mut dyn path::Path,
) -> Result<(), path::PathError> {
    let job = task.job;
    let Some(region) = task.plan.regions.first() else { return Ok(()) };
    let block = job.sizes().map(|block| block.max_bytes).max().unwrap_or(0);
    let len = u32::try_from(block).unwrap_or(u32::MAX);
    let target = files.targets.first().copied().unwrap_or(region.target);
    let key = match job.fill {
        gpuio_record::Fill::Random => pattern_keys::random_key(job, task.plan.seed),
        gpuio_record::Fill::Pattern => pattern_keys::key(job, target),
        gpuio_record::Fill::Zero => pattern_keys::zeros(),
    };
    for slot in 0..job.depth {
        let offset = region.place((u64::from(slot) * block) % region.length.max(1));
        let offset = pattern_keys::offset(job, offset);
        path.generate(PatternBlock::new(slot, key, offset, len))?;
    }
    Ok(())
}
