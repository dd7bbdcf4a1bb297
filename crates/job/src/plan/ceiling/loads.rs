//! The common code of the ceilings that run a load: loads as fast as they can, and without a file.

use gpuio_base::catalog::Catalog;
use gpuio_record::{
    CeilingPlan, CeilingSource, Choice, DirectMode, Fill, GuardNote, JobPlan, PathChoice, Region,
    Stop, TargetKind, TargetPlan, Towards, VerifyMode,
};

/// Stands for a file where engine `null` moves nothing: unowned data.
const NO_FILE: &str = "/dev/null";
/// Part of a ceiling's time that runs before it counts: the first copies wake GPU and processor.
const RAMP_PART: u64 = 10;

pub(super) fn named(name: &str) -> Choice {
    Choice { requested: name.to_owned(), actual: name.to_owned(), why: None }
}

/// A path by name. The names are those of our own table, where a test looks them up.
pub(super) fn path_choice(name: &str, catalog: &Catalog) -> PathChoice {
    let row = catalog.path(name);
    PathChoice {
        choice: named(name),
        gdsio: row.and_then(|row| row.gdsio),
        gdsio_name: row.map_or("", |row| row.gdsio_name).to_owned(),
    }
}

/// The job's threads, depth and blocks for as long as the ceiling is measured, as fast as they can:
/// no rate, no delay, nothing verified or generated while the clock runs.
pub fn unbound(ceiling: &CeilingPlan, job: &JobPlan) -> JobPlan {
    let runtime = match ceiling.source {
        CeilingSource::Measured { runtime_ns } => Some(runtime_ns),
        _ => None,
    };
    JobPlan {
        name: ceiling.name.clone(),
        group: 0,
        stop: Stop { runtime_ns: runtime, bytes_per_thread: None, wear_out: false },
        bytes_of: None,
        steady: None,
        think: None,
        flush: None,
        logs: None,
        ramp_ns: runtime.unwrap_or(0) / RAMP_PART,
        start_delay_ns: 0,
        pacing: None,
        write_pacing: None,
        max_latency_ns: None,
        ends_others: false,
        fadvise_hint: None,
        require_path: false,
        direct_why: None,
        pre_read: false,
        invalidate: false,
        verify: VerifyMode::Off,
        verify_ns: None,
        own_verification: false,
        fio_headers: false,
        refill: false,
        ceilings_ns: None,
        beside: None,
        feed: None,
        replay: None,
        part: None,
        ranges: None,
        against_file: false,
        repeat: None,
        fan_out: None,
        defaulted: None,
        notes: Vec::new(),
        workers: job
            .workers
            .iter()
            .map(|worker| gpuio_record::WorkerPlan { placed_by: None, ..worker.clone() })
            .collect(),
        ..job.clone()
    }
}

/// The same without the job's files: engine `null` on a path with a GPU leg. Each thread goes over
/// `span` bytes that are nowhere.
pub(super) fn without_files(
    ceiling: &CeilingPlan,
    job: &JobPlan,
    path: PathChoice,
    span: u64,
) -> JobPlan {
    let mut load = unbound(ceiling, job);
    load.path = path;
    load.engine = named("null");
    load.read_percent = if ceiling.direction == Some(Towards::Write) { 0 } else { 100 };
    load.direct = DirectMode::Buffered;
    load.direct_alignment_bytes = 1;
    load.sync = false;
    load.inject = None;
    load.keep = true;
    load.fill = Fill::Pattern;
    load.register_buffer = None;
    load.shared_fd = false;
    load.shared_files = false;
    load.layout = None;
    load.directory = None;
    load.file_prefix = String::new();
    load.size_bytes = span;
    load.size_percent = None;
    load.offset_bytes = 0;
    load.align_bytes = 1;
    load.skew_bytes = 0;
    load.targets = vec![TargetPlan {
        path: NO_FILE.to_owned(),
        kind: TargetKind::File,
        length_bytes: span,
        guard: GuardNote::ForeignReadOnly,
        file_number: 0,
        holes: Vec::new(),
    }];
    for worker in &mut load.workers {
        worker.regions = vec![Region::range(0, 0, span)];
    }
    load
}
