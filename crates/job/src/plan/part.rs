//! Jobs that are a part of a larger load, and jobs that run several times.

use std::borrow::Cow;

use gpuio_base::units::whole;
use gpuio_record::{MemoryKind, PartPlan, RepeatPlan};

use super::PlanError;
use crate::spec::{ComputationRequest, JobSpec, Rw, Spec};

/// Sizes are rounded to multiples of this, which suits every logical block size.
const ALIGNMENT: u64 = 4096;
/// How the names of directories for staged pages begin: in a directory that all users share.
pub const STAGE: &str = "/dev/shm/gpuio-stage-";
/// Jobs of all times together.
const JOBS_MOST: usize = 10_000;

/// The load that a job is a part of; nothing where it is all of it. Feeds have a share of their
/// files.
pub(super) fn of(job: &JobSpec, threads: u32) -> Result<Option<PartPlan>, PlanError> {
    if (job.scale.is_none() && job.full_threads.is_none()) || job.is_feed() {
        return Ok(None);
    }
    let full_threads = job.full_threads.unwrap_or(threads);
    if threads > full_threads {
        let what = format!(
            "{threads} threads run, and the whole load has {full_threads}: run fewer, or raise \
             full_threads"
        );
        return Err(PlanError::usage(job, "threads", what));
    }
    let Some(full_size_bytes) = job.size else {
        let field = if job.scale.is_some() { "scale" } else { "full_threads" };
        let what = "a part of a load needs the whole one's bytes of each thread; add size";
        return Err(PlanError::usage(job, field, what.to_owned()));
    };
    Ok(Some(PartPlan { scale: job.scale.unwrap_or(1.0), full_size_bytes, full_threads }))
}

/// The job with the bytes that it really works on.
pub(super) fn scaled(job: &JobSpec) -> Cow<'_, JobSpec> {
    let (Some(scale), Some(size)) = (job.scale, job.size) else { return Cow::Borrowed(job) };
    if job.is_feed() || scale.total_cmp(&1.0).is_eq() {
        return Cow::Borrowed(job);
    }
    let bytes = whole((size as f64 * scale).round());
    let bytes = (bytes - bytes % ALIGNMENT).max(ALIGNMENT);
    Cow::Owned(JobSpec { size: Some(bytes), ..job.clone() })
}

/// Which time of several a job is, in a plan where it has this name.
pub(super) fn repeat(job: &JobSpec, name: String) -> Option<RepeatPlan> {
    job.nth.map(|(nth, times)| RepeatPlan { of: name, nth, times })
}

/// The request with a job for each time. Each time has files of its own in the job's directory, so
/// that the third time of one job reads what the third time of another wrote.
pub(super) fn repeated(spec: &Spec) -> Result<Cow<'_, Spec>, PlanError> {
    let times = |job: &JobSpec| job.repeat.unwrap_or(1);
    if spec.jobs.iter().all(|job| times(job) == 1) {
        return Ok(Cow::Borrowed(spec));
    }
    let mut jobs: Vec<JobSpec> = Vec::new();
    let mut alone = false;
    for job in &spec.jobs {
        let times = times(job);
        if job.is_feed() && job.feed.files.is_some() && times > 1 {
            let what = "it has no effect here: a training feed has epochs; use these";
            return Err(PlanError::usage(job, "repeat", what.to_owned()));
        }
        if jobs.len() + times as usize > JOBS_MOST {
            let what = format!("more than {JOBS_MOST} jobs in all; lower it");
            return Err(PlanError::usage(job, "repeat", what));
        }
        for nth in 1..=times {
            let mut one = job.clone();
            if (nth > 1 || times > 1 || alone) && !jobs.is_empty() {
                one.stonewall = Some(true);
            }
            if times > 1 {
                one.nth = Some((nth, times));
                let prefix = if job.is_gdsio() { "gdsio" } else { "gpuio" };
                let prefix = job.file_prefix.as_deref().unwrap_or(prefix);
                one.file_prefix = Some(format!("{prefix}-{nth}"));
            }
            jobs.push(one);
        }
        alone = times > 1;
    }
    Ok(Cow::Owned(Spec { jobs, ..spec.clone() }))
}

/// Where a job's staged pages are: files in memory, in a directory for each place that is written,
/// so that two runs do not meet. They are removed after the run.
fn stage_of(job: &JobSpec) -> String {
    const LONGEST: usize = 60;
    let written = job.directory.as_deref().unwrap_or("scratch").trim_matches('/').replace('/', "-");
    let first = written.char_indices().rev().take(LONGEST).last().map_or(0, |(at, _)| at);
    format!("{STAGE}{}", &written[first..])
}

/// The request with two jobs for each that writes by way of staged pages: GPU memory to pages that
/// the GPU has registered, whose time is the stall, and such pages to the job's files, beside a
/// computation. Both are loads of paths that are there without `stage`.
pub(super) fn staged(spec: &Spec) -> Result<Cow<'_, Spec>, PlanError> {
    let is_staged = |job: &JobSpec| {
        let writes = matches!(job.rw, Some(Rw::Write | Rw::RandWrite));
        job.stage == Some(true) && writes && !job.is_feed()
    };
    if !spec.jobs.iter().any(is_staged) {
        return Ok(Cow::Borrowed(spec));
    }
    let mut jobs: Vec<JobSpec> = Vec::new();
    let mut alone = false;
    for job in &spec.jobs {
        // Both jobs run alone.
        let stonewall = if alone || is_staged(job) { Some(true) } else { job.stonewall };
        let job = &JobSpec { stonewall, ..job.clone() };
        alone = is_staged(job);
        if !alone {
            jobs.push(job.clone());
            continue;
        }
        let other = |other: &JobSpec| !is_staged(other) && other.paths == job.paths;
        if job.paths.is_some() && !spec.jobs.iter().any(other) {
            let what = "stage=memory has paths of its own, mapped and host; leave one of both out";
            return Err(PlanError::usage(job, "paths", what.to_owned()));
        }
        let of = |part: &str, path: &str| JobSpec {
            name: format!("{}-{part}", job.name),
            paths: Some(vec![path.to_owned()]),
            ..job.clone()
        };
        jobs.push(JobSpec {
            directory: Some(stage_of(job)),
            more_directories: Vec::new(),
            keep: Some(false),
            // The same pages each time, as a program has them.
            file_prefix: None,
            filenames: None,
            filename_format: None,
            engine: None,
            direct: None,
            end_fsync: None,
            fsync_ios: None,
            beside: None,
            ..of("stall", "mapped")
        });
        jobs.push(JobSpec {
            start_delay_ns: None,
            memory: Some(MemoryKind::Pinned),
            beside: job.beside.or(Some(ComputationRequest::Compute(100.0))),
            ..of("drain", "host")
        });
    }
    Ok(Cow::Owned(Spec { jobs, ..spec.clone() }))
}
