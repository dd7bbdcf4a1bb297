//! Results of jobs that still run, from the counters of their workers.

use gpuio_base::stat::{Counted, Live, Tally};
use gpuio_io::clock::Nanos;
use gpuio_record::{CacheReading, EndedHow, JobPlan, JobResult, TimeSpan, WorkerResult};

use super::results::{direct, direction, engines};
use super::sample::SeriesSampler;
use super::task::Ready;

/// One result for each job of the group by now: what completed after the ramp, its latencies and
/// the series. Results known only at the end are absent; the job counts as interrupted.
pub(super) fn results(
    jobs: &[JobPlan],
    (live, readies): (&[Live], &[Ready]),
    sampler: &SeriesSampler,
    now: Nanos,
) -> Vec<JobResult> {
    let each = jobs.iter().zip(sampler.so_far());
    each.map(|(job, (from, pages, points))| {
        let elapsed = now.saturating_sub(from);
        // Ready workers are in the order of their pages.
        let (pages, ready) = (&live[pages.clone()], &readies[pages]);
        let (read, write) = (tally(pages, false), tally(pages, true));
        JobResult {
            name: job.name.clone(),
            group: job.group,
            ended: EndedHow::Interrupted,
            read: direction(&read, elapsed),
            write: direction(&write, elapsed),
            first_done_ns: elapsed,
            first_done_bytes: read.bytes + write.bytes,
            last_done_ns: elapsed,
            measured: Some(TimeSpan { begin_ns: from, end_ns: now.max(from) }),
            engine: engines(ready),
            direct_actual: direct(ready),
            others_cpu_unknown: Some(format!("whether others used the CPUs: {STILL_RAN}")),
            cache: CacheReading { unknown: vec![STILL_RAN.to_owned()], ..CacheReading::default() },
            failed: read.failed + write.failed,
            series: points.to_vec(),
            workers: (0..).zip(pages).map(|(thread, page)| worker(thread, page, elapsed)).collect(),
            ..JobResult::default()
        }
    })
    .collect()
}

/// Why figures that are known at the end are absent.
const STILL_RAN: &str = "the job still ran when this was saved";

/// The counts of one direction, of all workers of a job.
fn tally(pages: &[Live], write: bool) -> Tally {
    let counted = Counted { write, ramp: false };
    let mut tally = Tally::default();
    for page in pages {
        let (bytes, ios, failed) = page.of(counted);
        page.latencies(counted, &mut tally.legs.total);
        (tally.bytes, tally.ios) = (tally.bytes + bytes, tally.ios + ios);
        tally.failed += failed;
    }
    tally
}

fn worker(thread: u32, page: &Live, elapsed_ns: u64) -> WorkerResult {
    let [read, write] = [false, true].map(|write| page.of(Counted { write, ramp: false }));
    let (bytes, ios) = (read.0 + write.0, read.1 + write.1);
    WorkerResult { thread, bytes, ios, done_ns: elapsed_ns }
}
