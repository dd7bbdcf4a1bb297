//! The load of `gpuio bench` without arguments.

use gpuio_record::VerifyMode;
use gpuio_spec::{JobSpec, Rw, Spec};

/// Size of the quick run, chosen by the caller from free disk and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuickSize {
    /// Threads.
    pub threads: u32,
    /// Bytes per thread.
    pub size_bytes: u64,
    /// Time of each job, nanoseconds.
    pub runtime_ns: u64,
}

/// Large sequential and small random I/O, reads before writes, on every path that the machine
/// has; one after another, verified, on gpuio's own scratch data set.
#[must_use]
pub fn quick_spec(size: QuickSize) -> Spec {
    let jobs = [
        ("read-1M", Rw::Read),
        ("randread-4K", Rw::RandRead),
        ("write-1M", Rw::Write),
        ("randwrite-4K", Rw::RandWrite),
    ];
    let job = |(name, rw): (&str, Rw)| JobSpec {
        paths: Some(vec!["all".into()]),
        rw: Some(rw),
        threads: Some(size.threads),
        size: Some(size.size_bytes),
        runtime_ns: Some(size.runtime_ns),
        verify: Some(VerifyMode::Pass),
        stonewall: Some(true),
        ..JobSpec::new(name)
    };
    Spec { name: None, jobs: jobs.into_iter().map(job).collect() }
}
