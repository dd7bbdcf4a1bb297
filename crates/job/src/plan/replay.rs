//! Replays: the files of the recorded program, and the threads that make its calls again.

use std::borrow::Cow;

use gpuio_base::catalog::{Backend, Calls, PathInfo};
use gpuio_record::{BlockShare, Region, ReplayPlan, VerifyMode};

use super::PlanError;
use super::regions::{Ground, Laid};
use super::work::{refuse_others, refuse_sizes};
use crate::spec::{JobSpec, LoadKind, ReplayRequest, Rw, Spec};
use crate::workload::replay::Script;

/// Threads of a replay, and files: each is planned, opened and recorded.
const LANES_MOST: usize = 4096;
const FILES_MOST: usize = 1 << 20;
/// Longest part of a call that is one I/O.
const BLOCK_MOST: u64 = 64 << 20;
/// Memory of all I/Os in flight, as far as parts of calls can be shorter; no part is below the
/// second figure for that.
const MEMORY_MOST: u64 = 4 << 30;
const BLOCK_LEAST: u64 = 1 << 20;
/// I/Os in flight of one thread by default, and of them for parts of one call.
const DEPTH_MOST: u32 = 256;
const PARTS_MOST: u64 = 4;

/// The spec with what traces decide, whatever the path.
pub(super) fn shaped(spec: &Spec) -> Result<Cow<'_, Spec>, PlanError> {
    if spec.jobs.iter().all(|job| job.replay.is_none()) {
        return Ok(Cow::Borrowed(spec));
    }
    let jobs = spec.jobs.iter().map(|job| match &job.replay {
        None => Ok(job.clone()),
        Some(replay) => {
            vet(job, &replay.script)?;
            Ok(of_trace(job, &replay.script))
        }
    });
    Ok(Cow::Owned(Spec { jobs: jobs.collect::<Result<_, _>>()?, ..spec.clone() }))
}

fn vet(job: &JobSpec, script: &Script) -> Result<(), PlanError> {
    let usage = |field: &str, what: String| Err(PlanError::usage(job, field, what));
    let why = "the trace says what is read and written, by which threads, and when it ends \
               (docs/replay.md)";
    refuse_others(job, LoadKind::Replay, None, why)?;
    if job.verify == Some(VerifyMode::Rewrite) {
        let what = "a replay writes what the program wrote; use verify=pass, inline or off";
        return usage("verify", what.to_owned());
    }
    refuse_sizes(job, "long calls")?;
    if script.lanes.len() > LANES_MOST || script.files.len() > FILES_MOST {
        let what = format!(
            "the trace has {} threads and streams at a time, and {} files; {LANES_MOST} and \
             {FILES_MOST} are the most that are replayed",
            script.lanes.len(),
            script.files.len()
        );
        return usage("replay", what);
    }
    Ok(())
}

/// Direction, order and threads of the calls.
fn of_trace(job: &JobSpec, script: &Script) -> JobSpec {
    let sequential = script.is_sequential();
    let rw = match (script.reads, script.calls - script.reads) {
        (_, 0) if sequential => Rw::Read,
        (_, 0) => Rw::RandRead,
        (0, _) if sequential => Rw::Write,
        (0, _) => Rw::RandWrite,
        _ if sequential => Rw::ReadWrite,
        _ => Rw::RandRw,
    };
    let percent = u128::from(script.reads) * 100 / u128::from(script.calls.max(1));
    // Mixed, as soon as there is one of each.
    let percent = u8::try_from(percent).unwrap_or(100).clamp(1, 99);
    JobSpec {
        rw: Some(rw),
        read_percent: matches!(rw, Rw::ReadWrite | Rw::RandRw).then_some(percent),
        // No block is drawn, so that none is left out.
        coverage: Some(false),
        threads: u32::try_from(script.lanes.len()).ok(),
        verify: job.verify.or(Some(VerifyMode::Pass)),
        file_prefix: job.file_prefix.clone().or_else(|| Some("replay".to_owned())),
        ..job.clone()
    }
}

/// The job with the blocks that calls are cut into, and as many in flight as the program had.
pub(super) fn on_path(
    job: &JobSpec,
    script: &Script,
    path: &PathInfo,
) -> Result<JobSpec, PlanError> {
    if path.fans_out {
        let what = "path fan-out places each block in all GPUs, and each thread of a replay ends \
                    in the memory of one; use another path";
        return Err(PlanError::usage(job, "paths", what));
    }
    let blocking = matches!(
        path.backend,
        Backend::Cufile(Calls::Blocking) | Backend::Library(Calls::Blocking)
    );
    let most = u64::from(script.concurrent().min(DEPTH_MOST));
    let of = |block: u64| match (job.depth, blocking) {
        (Some(depth), _) => u64::from(depth),
        (None, true) => 1,
        (None, false) => (most * script.longest.div_ceil(block.max(1)).clamp(1, PARTS_MOST))
            .min(u64::from(DEPTH_MOST)),
    };
    let requested = job.blocks.as_ref().and_then(|blocks| blocks.first());
    let mut block = requested.map_or(BLOCK_MOST, |one| one.max_bytes.max(1));
    if requested.is_none() {
        let all = |block: u64| {
            let each = of(block).saturating_mul(block.min(script.longest));
            each.saturating_mul(script.lanes.len() as u64)
        };
        while all(block) > MEMORY_MOST && block > BLOCK_LEAST {
            block /= 2;
        }
    }
    let longest = block.min(script.longest);
    let one = BlockShare { min_bytes: longest, max_bytes: longest, step_bytes: 0, percent: 100 };
    let depth = u32::try_from(of(block)).unwrap_or(DEPTH_MOST);
    let depth = job.depth.or((!blocking).then_some(depth));
    Ok(JobSpec { blocks: Some(vec![one]), depth, ..job.clone() })
}

/// The number of files: at most [`FILES_MOST`].
pub(super) fn files(script: &Script) -> u32 {
    u32::try_from(script.files.len()).unwrap_or(u32::MAX)
}

/// Files with their lengths and holes. Each is one thread's to lay out, and all are open in all.
pub(super) fn lay(script: &Script, threads: u32, ground: &mut Ground) -> Laid {
    let mut targets = ground.targets(0);
    for (file, target) in script.files.iter().zip(&mut targets) {
        target.length_bytes = file.bytes;
        target.holes.clone_from(&file.holes);
    }
    let threads = threads.max(1);
    let mut regions = vec![Vec::new(); threads as usize];
    for (file, target) in (0_u32..).zip(&targets) {
        let range = Region::range(file, 0, target.length_bytes);
        regions[(file % threads) as usize].push(range);
    }
    let all: u64 = targets.iter().map(|target| target.length_bytes).sum();
    Laid::of_files(all / u64::from(threads), targets, regions)
}

pub(super) fn plan(replay: &ReplayRequest) -> ReplayPlan {
    let script = &replay.script;
    ReplayPlan {
        trace: replay.name.clone(),
        format: replay.format.clone(),
        program: replay.program.clone(),
        calls: script.calls,
        reads: script.reads,
        read_bytes: script.read_bytes,
        written_bytes: script.written_bytes,
        left_out: script.left_out,
        missing: replay.missing.clone(),
        hole_bytes: script.hole_bytes(),
        order: replay.order,
        pace: replay.pace,
        recorded_ns: Some(script.recorded_ns).filter(|time| *time > 0),
        recorded_calls: script.recorded_calls,
    }
}
