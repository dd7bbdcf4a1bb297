//! CPU time of jobs against the kernel's own figure for the process (getrusage(2)). Each case is a
//! process of its own, so that nothing else is in it.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times of seconds, in microseconds"
)]

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gpuio_io::engine::ENGINES;
use gpuio_load::run::{Ran, RunObserver, Tick};
use gpuio_record::{CpuScope, JobPlan, JobResult, Plan};
use gpuio_testkit::child;
use rustix::time::{ClockId, clock_gettime};

use crate::lab::Lab;

/// CPU time of the process, or of the calling thread.
fn used(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap()).as_secs_f64()
}

/// CPU time from a group's start to its results.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    /// The process's time.
    process: f64,
    /// The time of the run's own thread, which starts workers and puts results together.
    own: f64,
    /// The time of a thread that the test started, in microseconds as it said them.
    busy: f64,
}

/// Takes the time as the run reports its start and its end.
#[derive(Default)]
struct Meter {
    from: Mutex<Used>,
    used: Mutex<Used>,
    busy_us: AtomicU64,
}

impl Meter {
    fn now(&self) -> Used {
        Used {
            process: used(ClockId::ProcessCPUTime),
            own: used(ClockId::ThreadCPUTime),
            busy: self.busy_us.load(Ordering::Relaxed) as f64 / 1e6,
        }
    }

    fn used(&self) -> Used {
        *self.used.lock().unwrap()
    }
}

/// Whether a job says what the process used, but for what its own thread did, and a little for
/// threads that come and go.
#[track_caller]
fn is_of(said: f64, used: Used) {
    let most = used.process * 1.02 + 0.002;
    let least = (used.process - used.own) * 0.95 - 0.02;
    assert!((least..most).contains(&said), "{said} s, and {used:?}");
}

impl RunObserver for Meter {
    fn making(&self, _: u64, _: u64) {}
    fn started(&self, _: &[JobPlan]) {
        *self.from.lock().unwrap() = self.now();
    }
    fn tick(&self, _: &Tick) {}
    fn verifying(&self, _: &[JobPlan]) {}
    fn job_done(&self, _: &JobPlan, _: &JobResult) {
        let (from, now) = (*self.from.lock().unwrap(), self.now());
        *self.used.lock().unwrap() = Used {
            process: now.process - from.process,
            own: now.own - from.own,
            busy: now.busy - from.busy,
        };
    }
    fn group_done(&self, _: &Plan, _: &Ran) {}
}

fn measured(lines: &str) -> (JobResult, Used) {
    let lab = Lab::new();
    let mut plan = lab.plan(&format!("[a]\ndirectory=${{DIR}}\n{lines}\n"));
    plan.interval_ns = 1_000_000_000;
    let meter = Meter::default();
    let mut ran = lab.carry_out_reported(&mut plan, &meter).unwrap();
    (ran.jobs.remove(0), meter.used())
}

#[test]
fn every_engines_cpu_time_is_the_kernels_figure() {
    for row in ENGINES {
        if let Err(why) = (row.available)() {
            eprintln!("skipped: {}: {why}", row.info.name);
            continue;
        }
        if row.info.name == "io_uring-iopoll" {
            eprintln!("skipped: {}: the file is buffered", row.info.name);
            continue;
        }
        child::passes(of_an_engine, &[("GPUIO_TEST_ENGINE", row.info.name)]);
    }
}

#[test]
#[ignore = "run by every_engines_cpu_time_is_the_kernels_figure, in a process of its own"]
fn of_an_engine() {
    let engine = std::env::var("GPUIO_TEST_ENGINE").unwrap();
    let waits = gpuio_io::engine::find(&engine).is_some_and(|row| !row.info.asynchronous);
    let depth = if waits { 1 } else { 8 };
    let lines = "bs=16k\nsize=8m\ndirect=0\nthreads=2\nruntime=2\nrw=randread";
    let (job, used) = measured(&format!("engine={engine}\ndepth={depth}\n{lines}"));
    is_of(job.cpu.user_s + job.cpu.system_s, used);
    assert!(!job.cpu.scope.is_at_least(), "{engine}: {:?}", job.cpu);
    // A pool's threads do the work: the two workers are a small part of it.
    let own = if engine.starts_with("io_uring") { CpuScope::Process } else { CpuScope::AllThreads };
    assert_eq!(job.cpu.scope, own, "{engine}");
}

#[test]
fn a_busy_thread_that_nobody_knows_is_in_the_figure_of_a_job_alone() {
    child::alone(&[], || {
        let done = AtomicBool::new(false);
        // The software GPU's path, whose threads have no names; next to no load of its own.
        let lab = Lab::with_gpu();
        let lines = "[a]\ndirectory=${DIR}\npath=staged\ngpu=software\nbs=4k\nsize=1m\ndirect=0\n\
                     engine=psync\nrate_iops=10\nruntime=2\n";
        let mut plan = lab.plan(lines);
        let meter = Meter::default();
        let ran = std::thread::scope(|scope| {
            let busy = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for n in 0..10_000 {
                        let _ = black_box(n);
                    }
                    let us = used(ClockId::ThreadCPUTime) * 1e6;
                    meter.busy_us.store(us as u64, Ordering::Relaxed);
                }
            });
            let ran = lab.carry_out_reported(&mut plan, &meter).unwrap();
            done.store(true, Ordering::Relaxed);
            busy.join().unwrap();
            ran
        });
        let cpu = ran.jobs[0].cpu;
        assert_eq!(cpu.scope, CpuScope::Process);
        let said = cpu.user_s + cpu.system_s;
        let used = meter.used();
        is_of(said, used);
        // Without it next to nothing would be left.
        assert!(used.busy > 0.0 && said > 0.9 * used.busy - 0.02, "{said} s, and {used:?}");
    });
}

#[test]
fn jobs_beside_each_other_on_such_paths_say_at_least() {
    let lab = Lab::with_gpu();
    let ran = lab.run(
        "[global]\ndirectory=${DIR}\nbs=4k\nsize=1m\nio_size=1m\ndirect=0\nengine=psync\n\
         [a]\npath=staged\ngpu=software\nfile_prefix=a\n[b]\npath=host\nfile_prefix=b\n",
    );
    assert!(ran.jobs[0].cpu.scope.is_at_least(), "{:?}", ran.jobs[0].cpu);
    assert_eq!(ran.jobs[1].cpu.scope, CpuScope::AllThreads);
    assert_eq!(ran.totals[0].cpu.scope, CpuScope::Process);
}
