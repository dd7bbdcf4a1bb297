//! Threads with a rate take turns: arrivals as somebody else counts them, by the millisecond.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpuio_host::Root;
use gpuio_watch::page::{LivePage, LivePageRoot, read};

use crate::lab::Lab;

#[test]
fn arrivals_of_threads_with_a_rate_are_no_bursts() {
    let mut lab = Lab::new();
    let place = LivePageRoot::at(lab.file(""));
    lab.page = Some(LivePage::create(&place, 8, "test", 0).unwrap());
    let done = AtomicBool::new(false);
    let (job, steps) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut before, mut steps) = (0, Vec::new());
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
                let listing = read::find(&place, &Root::live(), std::process::id());
                let found = listing.found.first().and_then(|found| found.page.as_ref().ok());
                let Some(page) = found else { continue };
                let now = page.total().read.ios();
                if now > before {
                    steps.push(now - before);
                }
                before = now;
            }
            steps
        });
        // 8 threads at 2 a second each: one of them every 62 ms, or all 8 every 500 ms. Even where
        // it takes the watcher tens of milliseconds to look, these are not alike.
        let lines = "engine=null\nsize=1m\nbs=4k\nthreads=8\nrate_iops=2\nruntime=4";
        let job = lab.job(lines);
        done.store(true, Ordering::Relaxed);
        (job, watcher.join().unwrap())
    });
    assert_eq!(job.read.ios + job.never_started.unwrap().ios, 64);
    let mut sorted = steps.clone();
    sorted.sort_unstable();
    assert!(sorted[sorted.len() / 2] <= 2, "arrivals come in bursts: {steps:?}");
}
