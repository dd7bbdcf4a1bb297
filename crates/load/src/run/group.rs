//! The jobs of one group: opened together, started together, measured, verified.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::evidence::{Collector, DeviceSampler, Readings, Setup};
use gpuio_base::stat::{IoLines, Live, LiveTotals, LogSpace};
use gpuio_gpu::Context;
use gpuio_host::Root;
use gpuio_io::clock::stops::Stops;
use gpuio_io::clock::{Clock, Nanos};
use gpuio_record::{
    ComputationCost, EndedHow, Gpu, JobPlan, JobResult, MappedResult, Point, Steady, VerifyMode,
};
use gpuio_watch::page::LivePage;
use rustix::fs::OFlags;

use super::computation::{Computation, Learned, UnderWay};
use super::feed::{Accelerated, Accelerators, Feed, Found};
use super::files::Files;
use super::gate::{FirstDone, Gate, Stage};
use super::mapped::Mappings;
use super::peers::{OpenError, Peers, READING_NS, Start};
use super::replay::{self, Replay};
use super::results::{self, JobParts};
use super::rusage::Usage;
use super::sample::SeriesSampler;
use super::stonewall;
use super::task::{Ready, Task};
use super::total::{self, GroupParts};
use super::worker::{self, Outcome};
use super::{Means, Ran, RunError, RunObserver, computation, feed, reached, so_far, warn};
use gpuio_dataset::held::Targets;

/// Between the moment that the start is announced and the start itself: every worker has long
/// woken by then, so that all begin together.
const LEAD_NS: Nanos = 2_000_000;
/// A worker's stack: its loop keeps its data on the heap, and 10,000 of them must fit.
pub(super) const STACK_BYTES: usize = 256 << 10;

pub(super) struct Group<'a> {
    pub(super) jobs: &'a [JobPlan],
    /// Their targets, as they were checked.
    pub(super) held: &'a Targets,
    pub(super) means: &'a Means<'a>,
    pub(super) contexts: &'a BTreeMap<u32, Context>,
    pub(super) clock: Clock,
    pub(super) interval_ns: u64,
    /// Where workers count for other processes: the run's page for jobs, none for ceilings, whose
    /// loads were not requested.
    pub(super) live_page: Option<&'a LivePage>,
    /// Samples the devices behind the jobs; none where that is off, and for ceilings.
    pub(super) sampler: Option<&'a DeviceSampler>,
    /// Keeps the GPUs of the jobs busy; none where the plan has none, and for what runs alone.
    pub(super) computation: Option<Computation<'a>>,
    /// For the lines of logs; none for ceilings, and for what runs alone.
    pub(super) log_space: Option<&'a LogSpace>,
}

/// The readings of the run's own thread while the workers worked.
struct Measured {
    /// When the window of the group's readings began, on the run's clock.
    from: Nanos,
    usage: Usage,
    series: Vec<(Vec<Point>, Option<Steady>)>,
    readings: Readings,
    learned: Option<Learned>,
    /// How long computations ran alone.
    alone_ns: u64,
    /// How long the paths took to open.
    open_ns: u64,
    /// When verification began, on the run's clock.
    verify_began: Nanos,
    /// Stops of the process while the clock ran.
    stops: Stops,
    /// For each job that maps its files, the cost of that.
    mapped: Vec<Option<MappedResult>>,
    /// For each job that is a training feed, the measurements of its accelerators.
    accelerated: Vec<Vec<Option<Accelerated>>>,
}

/// The shared state of the threads of a group.
struct Shared<'a> {
    gate: &'a Gate,
    firsts: &'a [FirstDone],
    feeds: &'a [Option<Feed>],
    replays: &'a [Option<Replay>],
}

type JoinedWorker = Option<Result<Outcome, RunError>>;

/// The measurements of the accelerators of each job, once they are done.
fn joined(accelerators: Vec<Vec<Accelerators<'_>>>) -> Vec<Vec<Option<Accelerated>>> {
    let of = |job: Vec<Accelerators<'_>>| job.into_iter().flat_map(Accelerators::join).collect();
    accelerators.into_iter().map(of).collect()
}

impl Group<'_> {
    /// Runs the group and adds its results to `ran`.
    pub(super) fn run(&self, observer: &dyn RunObserver, ran: &mut Ran) -> Result<(), RunError> {
        let workers: u32 = self.jobs.iter().map(|job| job.threads).sum();
        let gate = Gate::new(self.clock, workers, Arc::clone(&self.means.stop));
        let firsts: Vec<FirstDone> =
            self.jobs.iter().map(|job| FirstDone::new(job.threads)).collect();
        let all_from = self.jobs.iter().map(JobPlan::measured_from_ns).max();
        let live_ranges = self.live_ranges();
        let reached_maps = reached::of(self.jobs);
        let shared = self.shared_files()?;
        let (opening, mapped) = (self.clock.now(), self.map_files()?);
        let feeds = feed::of(self.jobs, &live_ranges, self.contexts)?;
        let replays = replay::of(self.jobs, self.means.replay.as_ref());
        let (worker_results, readies, mut measured) = std::thread::scope(|scope| {
            let _until_joined = gate.until_joined();
            let (sender, receiver) = channel();
            let mut handles = Vec::new();
            for (at, job) in self.jobs.iter().enumerate() {
                for (nth, plan) in job.workers.iter().enumerate() {
                    let gpu = plan.gpu.and_then(|gpu| job.gpus.get(gpu as usize));
                    let task = Task {
                        job,
                        plan,
                        live_index: live_ranges[at].start + nth,
                        live_page: self.live_page,
                        gate: &gate,
                        all_from_ns: all_from.unwrap_or(0),
                        first_done: &firsts[at],
                        all_done: &firsts,
                        held: self.held,
                        job_live: live_ranges[at].clone(),
                        context: gpu.and_then(|gpu| self.context(gpu)),
                        near: job.via.as_ref().and_then(|via| self.context(&via.gpu)),
                        others: self.others(job, gpu),
                        cufile: self.means.cufile.clone(),
                        reached_maps: &reached_maps[at],
                        shared_files: shared[at].clone(),
                        mappings: mapped[at].as_ref(),
                        feed: feeds[at].as_ref(),
                        replay: replays[at].as_ref(),
                        log_space: self.log_space,
                    };
                    handles.push((at, spawn(scope, task, sender.clone())?));
                }
            }
            drop(sender);
            let readies = match self.gather(&gate, &receiver, &handles) {
                Ok(readies) => readies,
                // A panic says more than the silence that it left.
                Err(error) => return Err(join(self.jobs, handles).err().unwrap_or(error)),
            };
            let measured = self.accelerators(scope, &feeds, &gate).and_then(|accelerators| {
                let group = (&gate, &firsts[..], &readies[..]);
                let measured =
                    self.measure(group, (opening, &feeds), &live_ranges, observer, ran)?;
                Ok(Measured { accelerated: joined(accelerators), ..measured })
            });
            match measured {
                Ok(measured) => Ok((join(self.jobs, handles)?, readies, measured)),
                Err(error) => {
                    gate.open(Stage::Abandoned);
                    join(self.jobs, handles)?;
                    Err(error)
                }
            }
        })?;
        // No worker reads them any more.
        measured.mapped =
            mapped.into_iter().map(|job| job.map(|job| job.close(&self.clock))).collect();
        let shared = Shared { gate: &gate, firsts: &firsts, feeds: &feeds, replays: &replays };
        self.conclude(worker_results, readies, measured, shared, observer, ran)
    }

    /// Starts the accelerators of the jobs that are training feeds; none of the others.
    fn accelerators<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        feeds: &'scope [Option<Feed>],
        gate: &'scope Gate,
    ) -> Result<Vec<Vec<Accelerators<'scope>>>, RunError> {
        let of = |(job, feed): (&'scope JobPlan, &'scope Option<Feed>)| {
            let context = |index: u32| self.contexts.get(&index).cloned();
            let all = feed.iter().map(|feed| Accelerators::begin(scope, feed, job, gate, context));
            all.collect()
        };
        self.jobs.iter().zip(feeds).map(of).collect()
    }

    fn context(&self, gpu: &Gpu) -> Option<Context> {
        self.contexts.get(&gpu.index).cloned()
    }

    /// The job's other GPUs, each once, on the path that places blocks in all of them.
    fn others(&self, job: &JobPlan, own: Option<&Gpu>) -> Vec<Context> {
        let mut indices: Vec<u32> = job.gpus.iter().map(|gpu| gpu.index).collect();
        indices.sort_unstable();
        indices.dedup();
        indices.retain(|index| job.fan_out.is_some() && own.is_some_and(|own| own.index != *index));
        indices.iter().filter_map(|index| self.contexts.get(index).cloned()).collect()
    }

    /// Which of the gate's live counters are those of each job's workers.
    fn live_ranges(&self) -> Vec<Range<usize>> {
        let mut next = 0;
        let of = |job: &JobPlan| {
            let from = next;
            next += job.workers.len();
            from..next
        };
        self.jobs.iter().map(of).collect()
    }

    fn shared_files(&self) -> Result<Vec<Option<Files>>, RunError> {
        let of = |job: &JobPlan| {
            let all: Vec<u32> = (0u32..).take(job.targets.len()).collect();
            let of_all = job.feed.is_some() || job.replay.is_some();
            let same = job.directory.is_none() || job.shared_files || of_all;
            let wanted = job.shared_fd && same;
            wanted.then(|| Files::open(job, &all, self.held)).transpose()
        };
        self.jobs.iter().map(of).collect()
    }

    /// Maps and registers the files of jobs whose path has the GPU read or write them.
    fn map_files(&self) -> Result<Vec<Option<Mappings>>, RunError> {
        let stop = &self.means.stop;
        let goes_on = || !stop.load(Ordering::Relaxed);
        let open = |job| Mappings::open(job, self.held, self.contexts, &self.clock, &goes_on);
        self.jobs.iter().map(open).collect()
    }

    /// Waits until every worker is ready; the first that is not ends all.
    fn gather<T>(
        &self,
        gate: &Gate,
        receiver: &Receiver<Result<Ready, RunError>>,
        handles: &[(usize, T)],
    ) -> Result<Vec<Ready>, RunError> {
        let mut readies = Vec::with_capacity(handles.len());
        let mut failed = None;
        for _ in handles {
            match receiver.recv() {
                Ok(Ok(ready)) => readies.push(ready),
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(_) => {
                    let job = self.jobs.first().map(|job| job.name.clone()).unwrap_or_default();
                    let what = "a thread ended before it was ready".to_owned();
                    failed = failed.or(Some(RunError::Panic { job, what }));
                    break;
                }
            }
        }
        match failed {
            None => {
                // Workers answer in any order; their jobs' results take them in plan order.
                readies.sort_unstable_by_key(|ready| ready.live_index);
                Ok(readies)
            }
            Some(error) => {
                gate.open(Stage::Abandoned);
                Err(error)
            }
        }
    }

    /// Waits until the other processes have opened their paths, too.
    fn await_others(&self) -> Result<(), RunError> {
        let opened = self.means.peers.map_or(Ok(()), |peers| peers.opened(self.jobs));
        opened.map_err(|why| match why {
            OpenError::Ended(what) => RunError::NoStart { what },
            OpenError::Elsewhere(what) => RunError::Elsewhere { what },
        })
    }

    /// Starts the clock, samples until the last worker is done, and lets verification go ahead.
    fn measure(
        &self,
        (gate, firsts, readies): (&Gate, &[FirstDone], &[Ready]),
        (opening, feeds): (Nanos, &[Option<Feed>]),
        live_ranges: &[Range<usize>],
        observer: &dyn RunObserver,
        ran: &Ran,
    ) -> Result<Measured, RunError> {
        let no_start = |what: String| RunError::NoStart { what };
        self.await_others()?;
        let (under_way, mut alone_ns) = self.compute();
        let open =
            |name: &str| self.held.open(name, OFlags::RDONLY).map_err(|error| error.to_string());
        let mut collector = Collector::begin(Setup {
            root: Root::live(),
            jobs: self.jobs,
            open: &open,
            cufile: self.means.cufile.as_ref(),
            clock: self.clock,
            sampler: self.sampler,
        });
        let open_ns = self.clock.now() - opening - alone_ns;
        let mut usage = Usage::of_process();
        let (start, agreed_ns) = self.start().map_err(no_start)?;
        // The offset at the start: after a stop of this process it would be another.
        let (clock_began_ns, stops) = (self.monotonic(), Stops::so_far());
        collector.started(start);
        let mut from = start;
        observer.started(self.jobs);
        feeds.iter().flatten().for_each(Feed::begins);
        gate.open(Stage::Running(start));
        let mut sampler = SeriesSampler::new(self.jobs, live_ranges, start, self.interval_ns);
        let often = self.means.peers.is_some() || self.jobs.iter().any(stonewall::is_of);
        loop {
            let done = gate.await_done(self.timeout(&sampler, &collector, often));
            if !done && let Some(at) = collector.look(|| moved(gate, live_ranges)) {
                (from, usage) = (at, Usage::of_process());
            }
            stonewall::decide(self.jobs, firsts, self.means.peers);
            let now = self.clock.now();
            if let Some(peers) = self.means.peers {
                self.report_moved(peers, gate, live_ranges, now);
                sampler.settle(firsts, peers);
            }
            if done || sampler.due(now) {
                let tick = sampler.sample(&gate.live, firsts, (now, done), self.means.peers);
                observer.tick(&tick);
                let so_far = || so_far::results(self.jobs, (&gate.live, readies), &sampler, now);
                self.report_so_far(so_far, ran, observer);
            }
            if done {
                break;
            }
        }
        let stops = Stops::so_far().since(stops);
        let usage = usage.until(&Usage::of_process());
        let readings = collector.end();
        if let (Some(peers), Some(agreed_ns)) = (self.means.peers, agreed_ns) {
            let last_began_ns = gate.last_began() + clock_began_ns;
            // Why the others are not waited for ends the run on their side, or by the stop flag.
            let _ = peers.stopped(Start { agreed_ns, last_began_ns, clock_began_ns });
        }
        let learned = under_way.map(|under_way| under_way.end(&self.means.stop));
        // Samples that were read ahead are still computed on.
        feeds.iter().flatten().for_each(Feed::await_end);
        alone_ns += learned.as_ref().map_or(0, Learned::alone_after_ns);
        let verifying = self.clock.now();
        self.let_verify(gate, observer);
        Ok(Measured {
            from,
            usage,
            series: sampler.series(),
            readings,
            learned,
            alone_ns,
            open_ns,
            verify_began: verifying,
            stops,
            mapped: Vec::new(),
            accelerated: Vec::new(),
        })
    }

    fn conclude(
        &self,
        worker_results: Vec<Vec<JoinedWorker>>,
        readies: Vec<Ready>,
        measured: Measured,
        shared: Shared<'_>,
        observer: &dyn RunObserver,
        ran: &mut Ran,
    ) -> Result<(), RunError> {
        let Shared { gate, firsts, feeds, replays } = shared;
        ran.setup.open_ns += measured.open_ns;
        ran.setup.alone_ns += measured.alone_ns;
        ran.setup.verify_ns += self.clock.now().saturating_sub(measured.verify_began);
        let mut readies = readies.into_iter();
        let (mut broken, mut left_out) = (None, 0);
        let (begun, readings) = (ran.jobs.len(), &measured.readings);
        let (alone, mut before_all) = (self.jobs.len() == 1, LiveTotals::default());
        let each = self.jobs.iter().zip(worker_results).zip(measured.series).zip(readings.caches());
        let each = each.zip(firsts).zip(measured.mapped);
        let mut fed = feeds.iter().zip(measured.accelerated);
        let mut replayed = replays.iter().map(Option::as_ref);
        for (((((job, worker_results), (series, steady)), cache), first), mapped) in each {
            let ready: Vec<Ready> = readies.by_ref().take(worker_results.len()).collect();
            let mut outcomes = Vec::with_capacity(worker_results.len());
            for worker_result in worker_results {
                match worker_result {
                    Some(Ok(outcome)) => outcomes.push(outcome),
                    Some(Err(error)) => broken = broken.or(Some(error)),
                    None => {}
                }
            }
            let lost = outcomes.len() < job.workers.len();
            outcomes.iter().for_each(|outcome| before_all += outcome.timed.before_all);
            self.hand_over_logs(job, &mut outcomes, observer);
            left_out += outcomes.iter().map(|outcome| outcome.timed.left_out).sum::<u64>();
            let parts = JobParts {
                job,
                ready,
                outcomes,
                series,
                steady,
                cache,
                first,
                lost,
                mapped,
                alone,
            };
            let mut result = results::job(parts);
            result.beside = self.beside_of(job, &result, measured.learned.as_ref());
            if let Some((Some(feed), seen)) = fed.next() {
                let found = Found { job, host: self.means.host, cache: &result.cache };
                let fed = feed::result(feed, seen, found);
                if fed.accelerators.iter().any(|one| one.failed.is_some()) {
                    result.ended = EndedHow::Failed;
                }
                result.feed = Some(fed);
            }
            result.replay = replayed.next().flatten().map(Replay::result);
            observer.job_done(job, &result);
            ran.jobs.push(result);
        }
        readings.prove(self.jobs, &mut ran.jobs[begun..]);
        readings.count_others(self.jobs, &mut ran.jobs[begun..]);
        let done = &ran.jobs[begun..];
        let parts = GroupParts {
            jobs: self.jobs,
            from: measured.from,
            usage: &measured.usage,
            before_all,
            first_end: gate.first_end(),
        };
        let total = total::total(&parts, done);
        readings.add_series(&mut ran.watched);
        let found = readings.disagreements(self.jobs, done);
        ran.warnings.extend(warn::stops(measured.stops, left_out, &self.means.keys));
        let of_machine = (self.means.host, &self.means.keys);
        ran.warnings.extend(warn::group(self.jobs, done, of_machine, found));
        ran.totals.push(total);
        broken.map_or(Ok(()), Err)
    }
}

impl Group<'_> {
    /// The logs of a job's threads; that of a thread that was lost is empty.
    fn hand_over_logs(&self, job: &JobPlan, outcomes: &mut [Outcome], observer: &dyn RunObserver) {
        if job.logs.is_none() || self.log_space.is_none() {
            return;
        }
        let mut logs = vec![IoLines::default(); job.workers.len()];
        for outcome in outcomes {
            if let Some(log) = logs.get_mut(outcome.thread as usize) {
                *log = std::mem::take(&mut outcome.timed.log);
            }
        }
        observer.logged(job, logs);
    }
}

/// With other processes: what was moved while all of them ran is known this well. And after a
/// stonewall threads that go on learn how far within this time.
const READING: Duration = Duration::from_nanos(READING_NS);

impl Group<'_> {
    /// The common start on the run's clock, and the agreed one where there are other processes.
    fn start(&self) -> Result<(Nanos, Option<u64>), String> {
        let Some(peers) = self.means.peers else { return Ok((self.clock.now() + LEAD_NS, None)) };
        let agreed = peers.start(self.jobs)?;
        // Too late for it, all workers of this process begin as soon as they can.
        let soon = self.clock.now() + LEAD_NS;
        Ok((agreed.saturating_sub(self.monotonic()).max(soon), Some(agreed)))
    }

    /// The offset to add to a time of the run's clock for `CLOCK_MONOTONIC`.
    fn monotonic(&self) -> Nanos {
        gpuio_watch::page::monotonic_ns().saturating_sub(self.clock.now())
    }

    /// How long to wait for the workers before something else is due.
    fn timeout(&self, sampler: &SeriesSampler, collector: &Collector<'_>, often: bool) -> Duration {
        let now = self.clock.now();
        let timeout = sampler.timeout(now, self.interval_ns);
        let timeout = if often { timeout.min(READING) } else { timeout };
        let due = collector.due().map(|due| Duration::from_nanos(due.saturating_sub(now)));
        due.map_or(timeout, |due| timeout.min(due))
    }

    fn let_verify(&self, gate: &Gate, observer: &dyn RunObserver) {
        let after = [VerifyMode::Pass, VerifyMode::Rewrite];
        if self.jobs.iter().any(|job| after.contains(&job.verify)) {
            observer.verifying(self.jobs);
        }
        gate.open(Stage::After);
    }

    fn report_moved(&self, peers: &dyn Peers, gate: &Gate, pages: &[Range<usize>], now: Nanos) {
        let bytes: Vec<u64> = moved(gate, pages).iter().map(|job| job.counted_bytes).collect();
        let all = gate.live.iter().map(Live::totals);
        let ios = all.map(|one| one.read_ios + one.write_ios + one.failed).sum();
        peers.moved(now + self.monotonic(), &bytes, ios);
    }

    fn report_so_far(
        &self,
        results: impl FnOnce() -> Vec<JobResult>,
        ran: &Ran,
        observer: &dyn RunObserver,
    ) {
        // The first pass, in which the jobs run alone, is no result.
        if computation::is_wanted(self.jobs) && self.computation.is_none() {
            return;
        }
        match self.means.peers {
            Some(peers) if peers.wants_results() => peers.so_far(ran, results()),
            None if observer.wants_results() => observer.so_far(ran, results()),
            _ => {}
        }
    }

    /// Starts the computation that is to be concurrent, where there is one; and how long it
    /// took to start and ran alone.
    fn compute(&self) -> (Option<UnderWay>, u64) {
        if self.computation.is_none() {
            return (None, 0);
        }
        let began = self.clock.now();
        let under_way = UnderWay::begin(self.jobs, self.contexts, self.clock, &self.means.stop);
        (Some(under_way), self.clock.now() - began)
    }

    /// How much a job and the concurrent computation slow each other, where there was one.
    fn beside_of(
        &self,
        job: &JobPlan,
        result: &JobResult,
        learned: Option<&Learned>,
    ) -> Option<ComputationCost> {
        let alone = self.computation?.alone.iter().find(|one| one.name == job.name)?;
        Some(learned?.of_job(job, result, alone))
    }
}

/// The amounts that each job has moved so far.
fn moved(gate: &Gate, pages: &[Range<usize>]) -> Vec<LiveTotals> {
    let of = |pages: &Range<usize>| {
        let mut all = LiveTotals::default();
        gate.live[pages.clone()].iter().for_each(|page| all += page.totals());
        all
    };
    pages.iter().map(of).collect()
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    task: Task<'scope>,
    sender: Sender<Result<Ready, RunError>>,
) -> Result<ScopedJoinHandle<'scope, JoinedWorker>, RunError> {
    let (job, thread, threads) = (task.job.name.clone(), task.plan.thread, task.job.threads);
    let builder = Builder::new().name(format!("gpuio-{thread}")).stack_size(STACK_BYTES);
    builder
        .spawn_scoped(scope, move || worker::work(&task, sender))
        .map_err(|error| RunError::Spawn { job, thread, threads, what: error.to_string() })
}

fn join(
    jobs: &[JobPlan],
    handles: Vec<(usize, ScopedJoinHandle<'_, JoinedWorker>)>,
) -> Result<Vec<Vec<JoinedWorker>>, RunError> {
    let mut worker_results: Vec<Vec<JoinedWorker>> = jobs.iter().map(|_| Vec::new()).collect();
    let mut panicked = None;
    // All are joined: the scope would panic in turn about one that is left over.
    for (at, handle) in handles {
        match handle.join() {
            Ok(worker_result) => worker_results[at].push(worker_result),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                let what = text.unwrap_or_else(|| "no message".into());
                panicked = panicked.or(Some(RunError::Panic { job: jobs[at].name.clone(), what }));
            }
        }
    }
    panicked.map_or(Ok(worker_results), Err)
}
