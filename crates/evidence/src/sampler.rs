//! A thread that samples, during each group of jobs, the devices behind them: the probes of `gpuio
//! top`, with the cost of the thread.
//!
//! It starts NVML, takes its first sample and its last outside the clock of the jobs. While they
//! run it reads once per interval and sleeps in between; nothing asks a worker.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use gpuio_host::Root;
use gpuio_io::clock::{Clock, Nanos};
use gpuio_record::facts::Machine;
use gpuio_record::{Gpu, JobPlan, Watched};
use gpuio_watch::{Sample, Selection, Watcher};

use crate::reconcile::Counted;
use crate::series;

/// Samples kept per group; beyond it every second is dropped and the interval doubles, so that a
/// run of days fits into memory and its record stays readable. At 1 s: more than an hour.
const MOST_SAMPLES: usize = 4096;
/// A last interval shorter than this part of the interval is taken into the one before it: rates of
/// a few milliseconds are noise.
const SHORTEST_PART: u64 = 10;

/// What groups have in common.
#[derive(Debug)]
pub struct DeviceSampler {
    /// Says what is behind files and what arrays are made of.
    machine: Machine,
    clock: Clock,
    interval_ns: u64,
}

impl DeviceSampler {
    /// A sampler of this machine, with a sample per interval (1 ms at least) on this clock.
    #[must_use]
    pub fn new(machine: Machine, interval_ns: u64, clock: Clock) -> DeviceSampler {
        DeviceSampler { machine, clock, interval_ns: interval_ns.max(1_000_000) }
    }

    /// Starts the thread for a group and returns when it is ready to sample; `None` where no
    /// thread could be had, which ends no run.
    pub fn begin(&self, jobs: &[JobPlan]) -> Option<Sampling> {
        let selection = self.selection(jobs);
        let nodes = self.machine.host.numa.nodes.clone();
        let (commands, received) = mpsc::channel();
        let (sender, done) = mpsc::channel();
        let (clock, every) = (self.clock, self.interval_ns);
        let body = move || {
            let watcher = Watcher::new(Root::live(), nodes, selection);
            sample(watcher, clock, every, &received, &sender)
        };
        let thread = Builder::new().name("gpuio-watch".to_owned()).spawn(body).ok()?;
        // It hangs up without a message only by a panic: then `end` has nothing.
        let _ = done.recv();
        Some(Sampling { commands, done, thread })
    }

    /// Puts what a group's thread took into the record; says what devices counted.
    pub fn keep(&self, jobs: &[JobPlan], taken: &Series, watched: &mut Option<Watched>) -> Counted {
        let nothing =
            || Watched { interval_ns: self.interval_ns, samples: 0, cpu_ns: None, groups: vec![] };
        let watched = watched.get_or_insert_with(nothing);
        watched.samples += taken.count;
        watched.cpu_ns = Some(watched.cpu_ns.unwrap_or(0) + taken.cpu_ns);
        let nth = jobs.first().map_or(0, |job| job.group);
        let group = series::group(nth, taken);
        let counted = series::whole(taken)
            .map(|whole| Counted::of(&whole, &group, &self.machine))
            .unwrap_or_default();
        watched.groups.push(group);
        counted
    }

    fn selection(&self, jobs: &[JobPlan]) -> Selection {
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
        let library = jobs.iter().any(by_library);
        if library {
            // A library may take its bytes through a GPU that was not named.
            let uuids = self.machine.gpus.iter().filter_map(|gpu| gpu.uuid.known().cloned());
            words.extend(uuids);
        }
        let without: &[&'static str] =
            if library { &["process"] } else { &["process", "nvidia_fs", "nvidia_fs_gpu"] };
        gpuio_watch::behind(&self.machine, &words).without(without)
    }
}

fn by_library(job: &JobPlan) -> bool {
    let row = gpuio_io::path::find(&job.path.choice.actual);
    row.is_some_and(|row| !row.info.uses_engine())
}

/// The GPUs of a job that NVML can know.
pub fn hardware(job: &JobPlan) -> impl Iterator<Item = &Gpu> {
    let on_the_way = job.via.iter().map(|via| &via.gpu);
    job.gpus.iter().chain(on_the_way).filter(|gpu| !gpu.software)
}

/// The thread of one group. Dropped, it ends by itself.
#[derive(Debug)]
pub struct Sampling {
    /// The first word asks for the first sample, the second is the start; hanging up ends it.
    commands: Sender<Nanos>,
    done: Receiver<()>,
    thread: JoinHandle<Option<Series>>,
}

/// What a thread took.
#[derive(Debug)]
pub struct Series {
    /// The moment at which workers started.
    pub start: Nanos,
    /// The first from just before the start, the last from just after the last worker's end.
    pub samples: Vec<Sample>,
    /// Samples taken, dropped ones included.
    pub count: u64,
    /// CPU time of the thread between start and end.
    pub cpu_ns: u64,
}

impl Sampling {
    /// Takes the first sample and returns.
    pub fn first(&self) {
        let _ = self.commands.send(0);
        let _ = self.done.recv();
    }

    /// Says when workers start, which is about to be.
    pub fn start(&self, at: Nanos) {
        let _ = self.commands.send(at);
    }

    /// Asks for the last sample, and does not wait for it.
    pub fn end(self) -> LastSample {
        // Hanging up is the word.
        drop(self.commands);
        LastSample(self.thread)
    }
}

/// A thread that takes its last sample.
#[derive(Debug)]
pub struct LastSample(JoinHandle<Option<Series>>);

impl LastSample {
    /// What it took; nothing where it broke.
    pub fn taken(self) -> Option<Series> {
        self.0.join().ok().flatten()
    }
}

fn sample(
    mut watcher: Watcher,
    clock: Clock,
    mut every: Nanos,
    commands: &Receiver<Nanos>,
    sender: &Sender<()>,
) -> Option<Series> {
    let _ = sender.send(());
    commands.recv().ok()?;
    let mut samples = vec![watcher.sample_at(clock.now())];
    let _ = sender.send(());
    let start = commands.recv().ok()?;
    let before = thread_cpu_ns();
    let mut next = start + every;
    let mut count = 2;
    loop {
        let wait = Duration::from_nanos(next.saturating_sub(clock.now()));
        if commands.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
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
    end_with(&mut samples, watcher.sample_at(clock.now()), every);
    Some(Series { start, samples, count, cpu_ns })
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
    fn it_samples_while_the_clock_runs_and_once_before_and_after() {
        let clock = Clock::start();
        let job = crate::fixture_test::job("rw=read\npath=host");
        let machine = gpuio_host::machine::read(&Root::live());
        let sampler = DeviceSampler::new(machine, 20_000_000, clock);
        let watching = sampler.begin(std::slice::from_ref(&job)).unwrap();
        watching.first();
        watching.start(clock.now());
        std::thread::sleep(Duration::from_millis(200));
        let taken = watching.end().taken().unwrap();
        // On a busy machine it may come late; it never comes more often.
        let kept = taken.samples.len();
        assert!((2..=12).contains(&kept), "{kept}");
        let merged = taken.count - kept as u64;
        assert!(merged <= 1, "all but a short last interval's are kept: {merged}");
        assert!(taken.samples[0].at_ns <= taken.start);
        assert!(taken.samples.is_sorted_by(|a, b| a.at_ns < b.at_ns));
        let cpu_ns = taken.cpu_ns;
        assert!(cpu_ns < 200_000_000, "it slept most of the time: {cpu_ns}");
    }
}
