//! A thread that samples, during each group of jobs, the devices below them: the probes of `gpuio
//! top`, with the cost of the thread.
//!
//! The first and the last sample of a series are those of the snapshots with which the group's
//! window begins and ends, taken by the run's own thread. In between the thread reads once per
//! interval and sleeps; it waits for no worker.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use gpuio_io::clock::{Clock, Nanos};
use gpuio_record::facts::{Machine, NumaNode};
use gpuio_record::{Gpu, JobPlan};
use gpuio_watch::{Sample, Selection, Watcher};

use crate::evidence::by_foreign_library;

/// Samples kept per group; beyond it every second is dropped and the interval doubles, so that a
/// run of days fits into memory and its record stays readable. At 1 s: more than an hour.
const MOST_SAMPLES: usize = 4096;
/// A last interval shorter than this part of the interval is taken into the one before it: rates of
/// a few milliseconds are noise.
const SHORTEST_PART: u64 = 10;

/// The common part of groups.
#[derive(Debug)]
pub struct DeviceSampler {
    machine: Machine,
    interval_ns: u64,
}

impl DeviceSampler {
    /// A sampler of this machine, whose facts have what lies below files and what arrays are made
    /// of, with a sample per interval (1 ms at least).
    pub fn new(machine: Machine, interval_ns: u64) -> DeviceSampler {
        DeviceSampler { machine, interval_ns: interval_ns.max(1_000_000) }
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn nodes(&self) -> Vec<NumaNode> {
        self.machine.host.numa.nodes.clone()
    }

    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// The devices below the jobs' files, and their GPUs.
    pub(crate) fn selection(&self, jobs: &[JobPlan]) -> Selection {
        let mut words: Vec<String> = Vec::new();
        for target in jobs.iter().flat_map(|job| &job.targets) {
            // Mounts are identified by their mount points, which have no links in them.
            let Ok(path) = Path::new(&target.path).canonicalize() else { continue };
            let path = path.to_string_lossy().into_owned();
            if !words.contains(&path) {
                words.push(path);
            }
        }
        words.extend(jobs.iter().flat_map(hardware).map(|gpu| gpu.uuid.clone()));
        let library = jobs.iter().any(by_foreign_library);
        if library {
            // A library may take its bytes through a GPU that was not named.
            let uuids = self.machine.gpus.iter().filter_map(|gpu| gpu.uuid.known().cloned());
            words.extend(uuids);
        }
        let without: &[&'static str] = match library {
            true => &["process", "checkpoint"],
            false => &["process", "checkpoint", "nvidia_fs", "nvidia_fs_gpu"],
        };
        gpuio_watch::behind(&self.machine, &words).without(without)
    }
}

/// The GPUs of a job that NVML can know.
pub fn hardware(job: &JobPlan) -> impl Iterator<Item = &Gpu> {
    let on_the_way = job.via.iter().map(|via| &via.gpu);
    job.gpus.iter().chain(on_the_way).filter(|gpu| !gpu.software)
}

/// The thread of one group, ready to sample. Dropped, it ends by itself.
pub(crate) struct Sampling {
    /// Sends the start; hanging up ends the thread.
    start: Sender<Start>,
    thread: JoinHandle<Option<Sampled>>,
}

/// The input of the thread.
struct Start {
    watcher: Watcher,
    /// The sample of the snapshot before the group.
    first: Sample,
    /// When workers start, and when the window begins.
    start: Nanos,
    from: Nanos,
}

/// The result of a thread.
pub(crate) struct Sampled {
    pub(crate) watcher: Watcher,
    /// Without the last sample.
    series: Series,
    every: Nanos,
}

pub(crate) struct Series {
    /// The moment at which workers started.
    pub(crate) start: Nanos,
    /// The moment at which the window began.
    pub(crate) from: Nanos,
    /// The first from that moment, the last from just after the last worker's end.
    pub(crate) samples: Vec<Sample>,
    /// Samples taken, dropped ones included.
    pub(crate) count: u64,
    /// CPU time of the thread between start and end.
    pub(crate) cpu_ns: u64,
}

impl Sampling {
    /// Starts the thread, which waits; `None` where no thread could be had, which ends no run.
    pub(crate) fn ready(sampler: &DeviceSampler, clock: Clock) -> Option<Sampling> {
        let (start, received) = mpsc::channel();
        let every = sampler.interval_ns;
        let body = move || sample(&received, clock, every);
        let thread = Builder::new().name("gpuio-watch".to_owned()).spawn(body).ok()?;
        Some(Sampling { start, thread })
    }

    /// Lets it sample from `from` on, which is now or about to be. Gives the watcher back where the
    /// thread broke.
    pub(crate) fn start(
        &self,
        watcher: Watcher,
        first: Sample,
        (start, from): (Nanos, Nanos),
    ) -> Option<Watcher> {
        let sent = self.start.send(Start { watcher, first, start, from });
        sent.err().map(|unsent| unsent.0.watcher)
    }

    /// Ends it; `None` where it broke or was never started. Waits for a sample that is being taken.
    pub(crate) fn end(self) -> Option<Sampled> {
        drop(self.start);
        self.thread.join().ok().flatten()
    }
}

impl Sampled {
    /// The series with its last sample, that of the snapshot after the group.
    pub(crate) fn with_last(self, last: Sample) -> Series {
        let mut series = self.series;
        end_with(&mut series.samples, last, self.every);
        series.count += 1;
        series
    }
}

fn sample(received: &Receiver<Start>, clock: Clock, mut every: Nanos) -> Option<Sampled> {
    let Start { mut watcher, first, start, from } = received.recv().ok()?;
    let before = thread_cpu_ns();
    let mut samples = vec![first];
    let mut next = from + every;
    let mut count = 1;
    loop {
        let wait = Duration::from_nanos(next.saturating_sub(clock.now()));
        if !matches!(received.recv_timeout(wait), Err(RecvTimeoutError::Timeout)) {
            break;
        }
        samples.push(watcher.sample_at(clock.now()));
        count += 1;
        if samples.len() > MOST_SAMPLES {
            thin(&mut samples);
            every *= 2;
        }
        // One that took longer than the interval is not made up for.
        next += every * (1 + clock.now().saturating_sub(next) / every);
    }
    let cpu_ns = thread_cpu_ns().saturating_sub(before);
    Some(Sampled { watcher, series: Series { start, from, samples, count, cpu_ns }, every })
}

/// CPU time of the calling thread (clock_gettime(2), `CLOCK_THREAD_CPUTIME_ID`).
fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Drops every second sample; the first stays.
fn thin(samples: &mut Vec<Sample>) {
    let mut nth = 0_usize;
    samples.retain(|_| {
        nth += 1;
        nth % 2 == 1
    });
}

fn end_with(samples: &mut Vec<Sample>, last: Sample, every: Nanos) {
    let short = |one: &Sample| last.at_ns.saturating_sub(one.at_ns) < every / SHORTEST_PART;
    if samples.len() > 1 && samples.last().is_some_and(short) {
        samples.pop();
    }
    samples.push(last);
}

#[cfg(test)]
mod tests {
    use gpuio_host::Root;

    use super::*;

    fn at(at_ns: u64) -> Sample {
        Sample { at_ns, probes: Vec::new() }
    }

    fn times(samples: &[Sample]) -> Vec<u64> {
        samples.iter().map(|sample| sample.at_ns).collect()
    }

    #[test]
    fn long_runs_keep_every_second_sample_and_the_first() {
        let mut samples: Vec<Sample> = (0..5).map(at).collect();
        thin(&mut samples);
        assert_eq!(times(&samples), [0, 2, 4]);
    }

    #[test]
    fn a_last_interval_of_next_to_nothing_is_taken_into_the_one_before() {
        let ends = |last| {
            let mut samples = vec![at(0), at(1000)];
            end_with(&mut samples, at(last), 1000);
            times(&samples)
        };
        assert_eq!(ends(1099), [0, 1099]);
        assert_eq!(ends(1100), [0, 1000, 1100]);
        let mut short = vec![at(0)];
        end_with(&mut short, at(1), 1000);
        assert_eq!(times(&short), [0, 1], "the first sample stays whatever comes");
    }

    #[test]
    fn it_samples_between_start_and_end() {
        let clock = Clock::start();
        let sampler = DeviceSampler::new(Machine::default(), 20_000_000);
        let sampling = Sampling::ready(&sampler, clock).unwrap();
        let mut watcher = Watcher::new(Root::live(), Vec::new(), Selection::nothing());
        let first = watcher.sample_at(clock.now());
        let now = clock.now();
        assert!(sampling.start(watcher, first, (now, now)).is_none());
        std::thread::sleep(Duration::from_millis(200));
        let mut sampled = sampling.end().unwrap();
        let last = sampled.watcher.sample_at(clock.now());
        let series = sampled.with_last(last);
        // It may come late; it never comes before a sample is due, each interval one.
        let kept = series.samples.len();
        let due = |at: u64| at.saturating_sub(series.start) / 20_000_000;
        let between = &series.samples[1..kept - 1];
        assert!(between.iter().zip(1..).all(|(sample, nth)| due(sample.at_ns) >= nth), "{kept}");
        let merged = series.count - kept as u64;
        assert!(merged <= 1, "all but a short last interval's are kept: {merged}");
        assert!(series.samples[0].at_ns <= series.start);
        assert!(series.samples.is_sorted_by(|a, b| a.at_ns < b.at_ns));
        let cpu_ns = series.cpu_ns;
        assert!(cpu_ns < 200_000_000, "it slept most of the time: {cpu_ns}");
    }

    #[test]
    fn one_that_was_never_started_ends() {
        let sampler = DeviceSampler::new(Machine::default(), 20_000_000);
        assert!(Sampling::ready(&sampler, Clock::start()).unwrap().end().is_none());
    }
}
