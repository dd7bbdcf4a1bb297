//! CPU time of jobs against the kernel's own figure for the process (getrusage(2)). Each case is a
//! process of its own, so that nothing else is in it.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpuio_io::engine::ENGINES;
use gpuio_load::run::{Ran, RunObserver, Tick};
use gpuio_record::{CpuScope, JobPlan, JobResult, Plan};
use rustix::time::{ClockId, clock_gettime};

use crate::lab::{Lab, child_passes};

/// CPU time of the process, or of the calling thread.
fn used(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap()).as_secs_f64()
}

/// What the process used from a group's start to its results.
#[derive(Default)]
struct Meter {
    from: Mutex<f64>,
    used: Mutex<f64>,
}

impl RunObserver for Meter {
    fn making(&self, _: u64, _: u64) {}
    fn started(&self, _: &[JobPlan]) {
        *self.from.lock().unwrap() = used(ClockId::ProcessCPUTime);
    }
    fn tick(&self, _: &Tick) {}
    fn verifying(&self, _: &[JobPlan]) {}
    fn job_done(&self, _: &JobPlan, _: &JobResult) {
        *self.used.lock().unwrap() = used(ClockId::ProcessCPUTime) - *self.from.lock().unwrap();
    }
    fn group_done(&self, _: &Plan, _: &Ran) {}
}

fn measured(lines: &str) -> (JobResult, f64) {
    let lab = Lab::new();
    let mut plan = lab.plan(&format!("[a]\ndirectory=${{DIR}}\n{lines}\n"));
    plan.interval_ns = 1_000_000_000;
    let meter = Meter::default();
    let mut ran = lab.carry_out_reported(&mut plan, &meter).unwrap();
    let used = *meter.used.lock().unwrap();
    (ran.jobs.remove(0), used)
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
        child_passes("cpu::of_an_engine", &[("GPUIO_TEST_ENGINE", row.info.name)]);
    }
}

#[test]
#[ignore = "run by every_engines_cpu_time_is_the_kernels_figure, in a process of its own"]
fn of_an_engine() {
    let engine = std::env::var("GPUIO_TEST_ENGINE").unwrap();
    let waits = gpuio_io::engine::find(&engine).is_some_and(|row| !row.info.asynchronous);
    let depth = if waits { 1 } else { 8 };
    let lines = "bs=16k\nsize=8m\ndirect=0\nthreads=2\nruntime=2\nrw=randread";
    let (job, process) = measured(&format!("engine={engine}\ndepth={depth}\n{lines}"));
    let said = job.cpu.user_s + job.cpu.system_s;
    assert!((said / process - 1.0).abs() < 0.05, "{engine}: {said} of {process} s");
    assert!(!job.cpu.scope.is_at_least(), "{engine}: {:?}", job.cpu);
    // A pool's threads do the work: the two workers are a small part of it.
    let own = if engine.starts_with("io_uring") { CpuScope::Process } else { CpuScope::AllThreads };
    assert_eq!(job.cpu.scope, own, "{engine}");
}

#[test]
fn a_busy_thread_that_nobody_knows_is_in_the_figure_of_a_job_alone() {
    child_passes("cpu::beside_a_busy_thread", &[]);
}

#[test]
#[ignore = "run by a_busy_thread_that_nobody_knows_is_in_the_figure_of_a_job_alone"]
fn beside_a_busy_thread() {
    let done = AtomicBool::new(false);
    // The software GPU's path, whose threads nobody can tell apart; next to no load of its own.
    let lab = Lab::with_gpu();
    let lines = "[a]\ndirectory=${DIR}\npath=staged\ngpu=software\nbs=4k\nsize=1m\ndirect=0\n\
                 engine=psync\nrate_iops=10\nruntime=2\n";
    let mut plan = lab.plan(lines);
    let meter = Meter::default();
    let (ran, known) = std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for n in 0..10_000 {
                    let _ = black_box(n);
                }
            }
            used(ClockId::ThreadCPUTime)
        });
        let ran = lab.carry_out_reported(&mut plan, &meter).unwrap();
        done.store(true, Ordering::Relaxed);
        (ran, busy.join().unwrap())
    });
    let cpu = ran.jobs[0].cpu;
    assert_eq!(cpu.scope, CpuScope::Process);
    let said = cpu.user_s + cpu.system_s;
    let process = *meter.used.lock().unwrap();
    assert!((said / process - 1.0).abs() < 0.05, "{said} of {process} s");
    // It was busy before and after as well, while files were made and results put together.
    assert!(said > 0.5 * known, "{said} s, of which the thread alone used some {known}");
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
