//! Time shows up in the leg in which it went by, and none is hidden.

use gpuio_record::{Latency, WarningKind};
use gpuio_testkit::child;

use crate::lab::{Lab, MS};

fn p50(summary: &Option<gpuio_base::stat::Summary>) -> u64 {
    summary.as_ref().expect("this leg was counted").p50_ns
}

/// A figure that does not depend on how busy the machine is: the delay of one leg in another would
/// be in all.
fn least(summary: &Option<gpuio_base::stat::Summary>) -> u64 {
    summary.as_ref().expect("this leg was counted").min_ns
}

fn legs_sum_up(latency: &Latency) {
    let mean =
        |summary: &Option<gpuio_base::stat::Summary>| summary.as_ref().map_or(0.0, |s| s.mean_ns);
    let sum = mean(&latency.queue) + mean(&latency.file) + mean(&latency.gpu);
    let total = latency.total.mean_ns;
    assert!((sum - total).abs() <= total * 0.001 + 1.0, "{sum} of {total}");
}

const STAGED: &str = "path=staged\ngpu=software\nbs=64k\nsize=1m\nio_size=1m\ndirect=0\n\
                      engine=psync\ndepth=1";

#[test]
fn a_slow_file_is_slow_in_the_file_leg() {
    let lab = Lab::with_gpu();
    for rw in ["read", "write"] {
        let job = lab.job(&format!("{STAGED}\nrw={rw}\ninject=delay=4ms"));
        let direction = if rw == "read" { &job.read } else { &job.write };
        let latency = direction.latency.as_ref().unwrap();
        assert!(p50(&latency.file) >= 4 * MS, "{latency:?}");
        assert!(least(&latency.gpu) < 4 * MS, "{latency:?}");
        assert_eq!(latency.queue, None, "no rate, no queue");
        legs_sum_up(latency);
    }
}

#[test]
fn a_slow_gpu_is_slow_in_the_gpu_leg() {
    child::alone(&[("GPUIO_SOFT_DELAY_US", "4000")], || {
        let lab = Lab::with_gpu();
        for rw in ["read", "write"] {
            let job = lab.job(&format!("{STAGED}\nrw={rw}"));
            let direction = if rw == "read" { &job.read } else { &job.write };
            let latency = direction.latency.as_ref().unwrap();
            assert!(p50(&latency.gpu) >= 4 * MS, "{latency:?}");
            assert!(least(&latency.file) < 4 * MS, "{latency:?}");
            legs_sum_up(latency);
        }
    });
}

#[test]
fn on_the_host_path_all_time_is_the_files() {
    let job = Lab::new().job("bs=4k\nsize=1m\nio_size=1m\ndirect=0\nengine=psync");
    let latency = job.read.latency.unwrap();
    assert_eq!(latency.file.as_ref(), Some(&latency.total));
    assert_eq!((latency.gpu, latency.queue), (None, None));
}

#[test]
fn at_a_rate_that_can_be_kept_nothing_queues() {
    let lab = Lab::new();
    let ran =
        lab.run("[a]\ndirectory=${DIR}\nengine=null\nbs=4k\nsize=1m\nrate_iops=500\nruntime=1\n");
    let job = &ran.jobs[0];
    // A busy machine has some that were due and never began, and makes others wait, never all.
    let never = job.never_started.map_or(0, |never| never.ios);
    assert_eq!(job.read.ios + never, 500, "at 500 a second");
    let latency = job.read.latency.as_ref().unwrap();
    assert!(least(&latency.queue) < MS, "{latency:?}");
    let slow = |kind: &WarningKind| matches!(kind, WarningKind::RateNotReached { .. });
    let slow = ran.warnings.iter().any(|warning| slow(&warning.kind));
    assert!(!slow || never > 0, "{:?}", ran.warnings);
}

#[test]
fn behind_the_requested_rate_the_wait_is_counted() {
    let lab = Lab::new();
    let ran = lab.run(
        "[a]\ndirectory=${DIR}\nengine=psync\ndirect=0\nbs=4k\nsize=1m\nrate_iops=2000\n\
         inject=iops=500\nruntime=1\ndepth=1\n",
    );
    let job = &ran.jobs[0];
    let latency = job.read.latency.as_ref().unwrap();
    // I/O n is due after n half milliseconds and gets its turn after 2 ms for each before it; 1 ms
    // of the device's rate may be saved up. That holds the better the busier the machine is.
    let queue = latency.queue.as_ref().unwrap();
    let last = (job.read.ios - 2) * 3 * MS / 2;
    assert!(queue.max_ns + 3 * MS >= last, "{queue:?}, {last}");
    // A percentile is right to 1 %.
    let p50 = queue.p50_ns + queue.p50_ns / 100;
    assert!(p50 + 3 * MS >= last / 2, "{queue:?}, {last}");
    assert!(latency.total.max_ns >= queue.max_ns);
    legs_sum_up(latency);
    let reached = ran.warnings.iter().find_map(|warning| match warning.kind {
        WarningKind::RateNotReached { reached } => Some(reached),
        _ => None,
    });
    assert!(reached.is_some_and(|reached| reached < 0.27), "{reached:?}");
}

/// One thread, one I/O at a time: latencies and the work between them are disjoint parts of the
/// time, so together they can't exceed it. The work after the last I/O is outside: on a busy
/// machine it may be any part of the whole, so that one of some tries has to show it.
fn work_is_beside_the_latencies(lines: &str, writes: bool) {
    let tried = || {
        let job = Lab::new().job(&format!("bs=1m\nsize=8m\ndirect=0\nengine=psync\n{lines}"));
        let direction = if writes { &job.write } else { &job.read };
        let total = &direction.latency.as_ref().unwrap().total;
        let io_ns = total.mean_ns * total.count as f64;
        let between_ns = job.between_ios_ns as f64;
        let inside = between_ns * (1.0 - 2.0 / total.count as f64);
        assert!(between_ns > 0.0);
        let elapsed_ns = job.last_done_ns as f64;
        let fits = io_ns + inside <= elapsed_ns && io_ns + between_ns > elapsed_ns * 0.5;
        (!fits).then(|| format!("{io_ns} + {between_ns} in {elapsed_ns}"))
    };
    let failed: Vec<String> = (0..6).map_while(|_| tried()).collect();
    assert!(failed.len() < 6, "{failed:?}");
}

#[test]
fn inline_verification_is_between_i_os_and_not_in_their_latencies() {
    work_is_beside_the_latencies("rw=read\nio_size=64m\nverify=inline", false);
    work_is_beside_the_latencies("rw=write\nio_size=64m\nverify=pass", true);
}

#[test]
fn refilling_is_between_i_os_too() {
    work_is_beside_the_latencies("rw=write\nio_size=64m\nrefill=1", true);
    let plain = Lab::new().job("bs=1m\nsize=8m\ndirect=0\nengine=psync\nrw=write\nio_size=8m");
    assert_eq!(plain.between_ios_ns, 0);
}
