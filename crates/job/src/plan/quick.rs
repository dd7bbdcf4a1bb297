//! The load of `gpuio bench` without arguments.

use gpuio_record::{Plan, VerifyMode};

use super::interval_of;
use crate::spec::{Ceilings, JobSpec, Rw, Spec};

/// All measured times of the quick run together, and those of all verifications.
const MEASURED_NS: u64 = 16_000_000_000;
const VERIFIED_NS: u64 = 8_000_000_000;
/// Shortest and longest time of one job, and of one verification. A job of less than a second is
/// too short for a rate, and others beside it would not be seen.
const JOB_NS: (u64, u64) = (1_100_000_000, 2_000_000_000);
const VERIFY_NS: (u64, u64) = (100_000_000, 1_000_000_000);

/// Size of the quick run, chosen by the caller from disk and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuickSize {
    /// Threads.
    pub threads: u32,
    /// Bytes per thread.
    pub size_bytes: u64,
}

/// Large sequential and small random reads on every path that the machine has, then writes on the
/// paths `host` and `staged`; one after another, verified, on gpuio's own scratch data set.
pub fn quick_spec(size: QuickSize) -> Spec {
    let jobs = [
        ("read-1M", Rw::Read, ["all"].as_slice()),
        ("randread-4K", Rw::RandRead, &["all"]),
        ("write-1M", Rw::Write, &["host", "staged"]),
        ("randwrite-4K", Rw::RandWrite, &["host", "staged"]),
    ];
    let job = |(name, rw, paths): (&str, Rw, &[&str])| JobSpec {
        paths: Some(paths.iter().map(|&path| path.to_owned()).collect()),
        paths_if_here: true,
        rw: Some(rw),
        threads: Some(size.threads),
        size: Some(size.size_bytes),
        runtime_ns: Some(JOB_NS.1),
        verify: Some(VerifyMode::Pass),
        verify_ns: Some(VERIFY_NS.1),
        ceilings: Some(Ceilings::Off),
        stonewall: Some(true),
        ..JobSpec::new(name)
    };
    Spec { name: None, jobs: jobs.into_iter().map(job).collect() }
}

/// Divides the time of the quick run among its jobs, so that it ends in one to two minutes however
/// many paths the machine has; times that were requested stay.
pub fn fit_quick(plan: &mut Plan, runtime_requested: bool) {
    let jobs = plan.jobs.len().max(1) as u64;
    for job in &mut plan.jobs {
        if !runtime_requested {
            job.stop.runtime_ns = Some((MEASURED_NS / jobs).clamp(JOB_NS.0, JOB_NS.1));
        }
        let share = (VERIFIED_NS / jobs).clamp(VERIFY_NS.0, VERIFY_NS.1);
        job.verify_ns = job.verify_ns.map(|_| share);
    }
    plan.interval_ns = interval_of(&plan.jobs);
}
