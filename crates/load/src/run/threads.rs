//! Whether the threads of a group can be had, before its files are made and anything runs.
//!
//! A limit on threads (`ulimit -u`, cgroup `pids.max`) is found by starting as many. One on address
//! space (`ulimit -v`, setrlimit(2), `RLIMIT_AS`) is not: a thread that gets no memory for its
//! signal stack or its first bytes aborts the process. So that need is estimated.

use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, scope};

use gpuio_base::units::human_bytes;
use gpuio_record::JobPlan;
use rustix::process::{Resource, getrlimit};

use super::RunError;
use super::group::STACK_BYTES;

const MIB: u64 = 1 << 20;
/// A worker: stack, guard page, signal stack, first allocations, rings of its engine.
const WORKER: u64 = MIB / 2;
/// A thread with the standard library's stack: of a pool, of a stream of the software GPU.
const HELPER: u64 = 2 * MIB + MIB / 16;
const POOL_MOST: u64 = 64;
const STREAMS: u64 = 2;
/// An arena of glibc's allocator, of which there are 8 for each processor at most (mallopt(3)).
const ARENA: u64 = 64 * MIB;

/// # Errors
/// [`RunError::Spawn`] of the job whose threads can't all be had.
pub(super) fn check(jobs: &[JobPlan]) -> Result<(), RunError> {
    fits(jobs)?;
    let ends = Mutex::new(());
    scope(|scope| {
        // They wait for it, and end however this does.
        let _held = ends.lock().unwrap_or_else(PoisonError::into_inner);
        for job in jobs {
            for thread in 0..job.threads {
                for _ in 0..=helpers(job, 1) {
                    let builder = Builder::new().name("gpuio-try".to_owned());
                    let builder = builder.stack_size(STACK_BYTES);
                    let started = builder.spawn_scoped(scope, || drop(ends.lock()));
                    started.map_err(|error| refused(job, thread, error.to_string()))?;
                }
            }
        }
        Ok(())
    })
}

fn refused(job: &JobPlan, thread: u32, what: String) -> RunError {
    RunError::Spawn { job: job.name.clone(), thread, threads: job.threads, what }
}

/// Whether they fit into the address space that a limit leaves.
fn fits(jobs: &[JobPlan]) -> Result<(), RunError> {
    let Some(limit) = getrlimit(Resource::As).current else { return Ok(()) };
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let left = limit.saturating_sub(used().unwrap_or(0));
    let need = needed(jobs, cpus);
    let largest = jobs.iter().max_by_key(|job| needed(std::slice::from_ref(job), cpus));
    let Some(job) = largest.filter(|_| need > left) else { return Ok(()) };
    let [need, left] = [need, left].map(|bytes| human_bytes(bytes as f64));
    let what = format!(
        "the threads of the group need about {need} of address space, and its limit (ulimit -v) \
         leaves {left}"
    );
    Err(refused(job, 0, what))
}

/// Address space of this process, in bytes (proc_pid_statm(5)).
fn used() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').next()?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Further threads of a worker: of its pool, of which it takes fewer where there are not more than
/// `pool_most`, and of its streams on the software GPU.
fn helpers(job: &JobPlan, pool_most: u64) -> u64 {
    let depth = u64::from(job.depth.max(1));
    let pool = if job.engine.actual == "pool" { depth.min(pool_most) } else { 0 };
    let software = job.gpus.iter().any(|gpu| gpu.software);
    pool + if software { STREAMS } else { 0 }
}

fn needed(jobs: &[JobPlan], cpus: u64) -> u64 {
    let of = |job: &JobPlan| {
        let depth = u64::from(job.depth.max(1));
        let block = job.sizes().map(|share| share.max_bytes).max().unwrap_or(0);
        let each = WORKER + helpers(job, POOL_MOST) * HELPER + depth.saturating_mul(block);
        each.saturating_mul(u64::from(job.threads))
    };
    let threads = jobs.iter().map(|job| u64::from(job.threads)).sum::<u64>();
    let arenas = threads.min(8 * cpus) * ARENA;
    jobs.iter().map(of).fold(arenas, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuio_testkit::jobs;

    #[test]
    fn what_threads_need_grows_with_all_that_each_has() {
        let job = |threads, depth, engine: &str| {
            let mut job = jobs::job("rw=read\nbs=1m\nsize=1m\nruntime=1");
            (job.threads, job.depth) = (threads, depth);
            job.engine.actual = engine.to_owned();
            job
        };
        let alone = needed(&[job(1, 1, "psync")], 2);
        assert_eq!(alone, ARENA + WORKER + MIB);
        assert_eq!(needed(&[job(4000, 2, "psync")], 2), 16 * ARENA + 4000 * (WORKER + 2 * MIB));
        let pool = needed(&[job(1, 100, "pool")], 2);
        assert_eq!(pool, alone + 64 * HELPER + 99 * MIB);
        // One process that has no such limit, as tests have none, is never refused.
        assert!(used().unwrap() > 0);
        if getrlimit(Resource::As).current.is_none() {
            assert!(fits(&[job(u32::MAX, u32::MAX, "pool")]).is_ok());
        }
    }
}
