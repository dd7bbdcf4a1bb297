//! Carries out a plan: groups one after another, the jobs of a group together.

pub(crate) mod affinity;
mod ceilings;
mod computation;
mod data;
mod error;
mod failures;
mod feed;
mod files;
pub(crate) mod gate;
mod group;
mod mapped;
mod page_cache;
mod pattern_keys;
mod peers;
mod reached;
mod replay;
mod restated;
mod results;
mod rusage;
mod sample;
mod so_far;
mod steady;
mod stonewall;
mod stops;
mod task;
mod threads;
mod timed;
mod total;
mod verify;
mod warn;
mod worker;
mod worker_slot;
mod written;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::evidence::DeviceSampler;
use gpuio_base::stat::{IoLines, LogSpace};
use gpuio_gpu::{Context, Driver};
use gpuio_host::Root;
use gpuio_io::clock::Clock;
use gpuio_io::path::CufileDriver;
use gpuio_record::facts::HostFacts;
use gpuio_record::{
    Ceiling, CeilingSource, EndedHow, JobPlan, JobResult, LeftOut, Plan, RunTotals, SetupTimes,
    Warning, Watched,
};

use computation::Computation;
use data::DataSet;
pub use data::{DataSetError, check_all};
pub use error::RunError;
pub use gpuio_dataset::Looks;
pub use gpuio_dataset::ownership::Permit;
use gpuio_dataset::{MakeError, scratch};
use gpuio_job::spec::TakenKeys;
use gpuio_job::workload::replay::Script;
use group::Group;
pub use peers::{OpenError, Peers, Start};
pub use restated::{Unrestated, restated, unrestated};
pub use sample::Tick;
pub use steady::{Interval, SteadyWindow};

/// Receives the progress of a run. Called from the run's own thread, never from a worker.
pub trait RunObserver: Sync {
    /// Files are being made: bytes written so far and bytes to write.
    fn making(&self, done: u64, of: u64);
    /// A file that a run did not finish is being looked at, to see whose it is: bytes so far and
    /// its size.
    fn looking(&self, _done: u64, _of: u64) {}
    /// Files are being read into the page cache: bytes read so far and bytes to read.
    fn reading(&self, _done: u64, _of: u64) {}
    /// A group's jobs have started.
    fn started(&self, jobs: &[JobPlan]);
    /// An interval of a group has passed.
    fn tick(&self, tick: &Tick);
    /// Whether results so far are wanted now, while a group runs without other processes.
    fn wants_results(&self) -> bool {
        false
    }
    /// Results so far: of finished groups in `ran`, of the running one in `jobs`, without evidence
    /// and percentiles of parts.
    fn so_far(&self, _ran: &Ran, _jobs: Vec<JobResult>) {}
    /// The clock of a group has stopped; verification begins.
    fn verifying(&self, jobs: &[JobPlan]);
    fn job_done(&self, job: &JobPlan, result: &JobResult);
    /// The logs of the job's threads by their numbers, where it has logs: outside every clock.
    fn logged(&self, _job: &JobPlan, _logs: Vec<IoLines>) {}
    /// A group has its results, the last of `ran`, and nothing of the next one has begun: outside
    /// every clock.
    fn group_done(&self, plan: &Plan, ran: &Ran);
    /// A group runs without the computation that will be concurrent.
    fn alone(&self, _jobs: &[JobPlan]) {}
    /// The ceiling of this name is measured now, outside every job's clock.
    fn ceiling(&self, _name: &str) {}
    /// Something that a person should know and that belongs to no result.
    fn note(&self, _line: &str) {}
}

/// The needs of a run in addition to its plan.
#[derive(Debug)]
pub struct Means<'a> {
    /// The driver, where the plan has GPUs.
    pub driver: Option<&'a Driver>,
    pub host: &'a HostFacts,
    /// Set from outside to end the run early with partial results.
    pub stop: Arc<AtomicBool>,
    /// cuFile, where the plan has paths that need it.
    pub cufile: Option<CufileDriver>,
    /// The targets that may be overwritten.
    pub permit: Permit,
    /// Where workers count for `gpuio stats`; none where that is off or can't be.
    pub live_page: Option<gpuio_watch::page::LivePage>,
    /// Whether the devices behind the jobs are sampled while they run.
    pub watched: bool,
    /// The calls that the jobs that are replays repeat; all of a run repeat the same.
    pub replay: Option<Arc<Script>>,
    /// Other processes that run the same plan at the same time; none where this one runs alone.
    pub peers: Option<&'a dyn Peers>,
    /// The keys that warnings may advise to set.
    pub keys: TakenKeys,
}

/// The results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    pub ended: EndedHow,
    /// Times outside the clock.
    pub setup: SetupTimes,
    /// One result per job that ran, in plan order.
    pub jobs: Vec<JobResult>,
    /// One per group that ran.
    pub totals: Vec<RunTotals>,
    /// The most that could have been reached, where the plan asks for it.
    pub ceilings: Vec<Ceiling>,
    /// The work of devices at the same time, where that was watched.
    pub watched: Option<Watched>,
    pub warnings: Vec<Warning>,
    /// The error that ended the run, where one did: results so far stand all the same.
    pub error: Option<String>,
}

impl Ran {
    /// Before anything ran.
    fn nothing() -> Ran {
        Ran {
            ended: EndedHow::Complete,
            setup: SetupTimes::default(),
            jobs: Vec::new(),
            totals: Vec::new(),
            ceilings: Vec::new(),
            watched: None,
            warnings: Vec::new(),
            error: None,
        }
    }
}

/// Runs the plan. Errors that end a group end the run; the groups before it keep their results
/// (the error stands in [`Ran::error`]).
///
/// # Errors
/// Nothing at all ran: the data set could not be made or was not allowed to be touched, or the
/// first group failed before its clock started.
pub fn run(
    plan: &mut Plan,
    means: &Means<'_>,
    observer: &dyn RunObserver,
) -> Result<Ran, RunError> {
    let (_watch, clock) = (stops::StopWatch::begin(), Clock::start());
    let root = Root::live();
    let report = |done, of| observer.looking(done, of);
    let looks = Looks::new(&report, &means.stop, &SystemTime::now);
    scratch::clear(&plan.jobs, &root, &looks).iter().for_each(|line| observer.note(line));
    let mut data = DataSet::guard(plan, &means.permit, &root, &looks)?.with(means.peers);
    let mut ran = Ran::nothing();
    let contexts = contexts(plan, means)?;
    computation::try_out(&plan.jobs, &contexts)?;
    let interval_ns = plan.interval_ns;
    let sampler = means.watched.then(|| device_sampler(&plan.jobs, interval_ns));
    let mut why = None;
    let groups = plan.jobs.chunk_by(|a, b| a.group == b.group).map(<[JobPlan]>::to_vec);
    let groups: Vec<Vec<JobPlan>> = groups.collect();
    let (sampler, log_space) = (sampler.as_ref(), &log_space(&plan.jobs));
    let run = Run { means, contexts: &contexts, clock, interval_ns, sampler, log_space };
    for jobs in groups.iter().map(Vec::as_slice) {
        if means.stop.load(Ordering::Relaxed) {
            ran.ended = EndedHow::Interrupted;
            break;
        }
        let known = ran.totals.len();
        let began = clock.now();
        let made = prepare(&mut data, jobs, means, observer, &mut ran);
        ran.setup.data_set_ns += clock.now() - began;
        let outcome = made.and_then(|()| run.group(jobs, &mut data, observer, &mut ran));
        let wrote = data.finalize(jobs, &ran.jobs, outcome.is_ok());
        if ran.totals.len() > known {
            observer.group_done(plan, &ran);
        }
        match outcome.and(wrote.map_err(RunError::from)) {
            Ok(()) => {}
            Err(error) if ran.totals.len() == known && one_of_all(jobs, &error) => {
                if let (Some(peers), RunError::Path { .. }) = (means.peers, &error) {
                    peers.not_opened(jobs, &error.to_string());
                }
                leave_out(plan, jobs, &error);
                why.get_or_insert(error);
            }
            Err(error) if ran.jobs.is_empty() => {
                // The first error says more than one of clean-up after it.
                let _ = data.finish();
                return Err(error);
            }
            Err(error) => {
                // Ctrl-C while files are made or read in is an interrupt like any other.
                let stopped = matches!(
                    error,
                    RunError::Stopped { .. }
                        | RunError::DataSet(DataSetError::Make(MakeError::Stopped { .. }))
                );
                // The others would wait for this process in the next exchange.
                if let Some(peers) = means.peers.filter(|_| !stopped) {
                    peers.fail(&error.to_string());
                }
                ran.ended = if stopped { EndedHow::Interrupted } else { EndedHow::Failed };
                ran.error = Some(error.to_string());
                break;
            }
        }
    }
    if let Some(error) = why.filter(|_| ran.jobs.is_empty()) {
        let _ = data.finish();
        return Err(error);
    }
    mapped::break_even(&plan.jobs, &mut ran.jobs);
    let began = clock.now();
    ceilings::find(plan, means, clock, &contexts, &mut data, observer, &mut ran);
    ran.setup.ceilings_ns = clock.now() - began;
    close(data, clock, &mut ran);
    ran.ended = overall(&ran, means.stop.load(Ordering::Relaxed));
    Ok(ran)
}

/// Space for the lines of logs: an eighth of the memory that is available, as the text that is
/// written of them needs space too, and at most this.
const LOG_BYTES_MOST: u64 = 2 << 30;

fn log_space(jobs: &[JobPlan]) -> LogSpace {
    if jobs.iter().all(|job| job.logs.is_none()) {
        return LogSpace::default();
    }
    let available = gpuio_host::memory::available_bytes(&Root::live());
    LogSpace::of_bytes(available.map_or(LOG_BYTES_MOST / 8, |bytes| bytes / 8).min(LOG_BYTES_MOST))
}

/// The sampler of the devices below the jobs. It reads the machine, with NVML where jobs use GPUs
/// of hardware: that may take a second.
fn device_sampler(jobs: &[JobPlan], interval_ns: u64) -> DeviceSampler {
    let root = Root::live();
    let machine = if jobs.iter().any(|job| crate::evidence::hardware(job).next().is_some()) {
        crate::machine::read(&root)
    } else {
        gpuio_host::machine::read(&root)
    };
    DeviceSampler::new(machine, interval_ns)
}

/// The common state of the groups of a run.
struct Run<'a> {
    means: &'a Means<'a>,
    contexts: &'a BTreeMap<u32, Context>,
    clock: Clock,
    interval_ns: u64,
    sampler: Option<&'a DeviceSampler>,
    log_space: &'a LogSpace,
}

impl Run<'_> {
    /// Runs a group; one with a concurrent computation without that first.
    fn group(
        &self,
        jobs: &[JobPlan],
        data: &mut DataSet<'_>,
        observer: &dyn RunObserver,
        ran: &mut Ran,
    ) -> Result<(), RunError> {
        let Run { means, contexts, clock, interval_ns, sampler, log_space } = *self;
        let (live_page, held, computation) = (means.live_page.as_ref(), &data.targets(), None);
        let group = Group {
            jobs,
            held,
            means,
            contexts,
            clock,
            interval_ns,
            live_page,
            sampler,
            computation,
            log_space: None,
        };
        if !computation::is_wanted(jobs) {
            return Group { log_space: Some(log_space), ..group }.run(observer, ran);
        }
        match computation::alone(&group, data, observer, ran)? {
            // Interrupted: what ran is not what the record is of.
            None => Ok(()),
            Some(alone) => {
                let (held, computation) = (&data.targets(), Some(Computation { alone: &alone }));
                let log_space = Some(log_space);
                Group { held, computation, log_space, ..group }.run(observer, ran)
            }
        }
    }
}

/// Lays out the files of a group, and puts the page cache into the state that its jobs ask for.
fn prepare(
    data: &mut DataSet<'_>,
    jobs: &[JobPlan],
    means: &Means<'_>,
    observer: &dyn RunObserver,
    ran: &mut Ran,
) -> Result<(), RunError> {
    // Before files are made that would stay behind.
    threads::check(jobs)?;
    let laid_out = data.prepare(jobs, &means.stop, &|done, of| observer.making(done, of))?;
    ran.setup.laid_out_bytes += laid_out;
    page_cache::prepare(jobs, &data.targets(), &means.stop, observer)
}

fn close(data: DataSet<'_>, clock: Clock, ran: &mut Ran) {
    let began = clock.now();
    if let Err(error) = data.finish() {
        ran.error.get_or_insert(error.to_string());
    }
    ran.setup.close_ns = clock.now() - began;
}

/// Whether a path that was not named, one of all, could not be opened: then it is left out with its
/// reason like those that the plan left out.
fn one_of_all(jobs: &[JobPlan], error: &RunError) -> bool {
    let all = jobs.iter().all(|job| job.path.choice.requested == "all");
    all && matches!(error, RunError::Path { .. } | RunError::Elsewhere { .. })
}

/// Takes jobs out of the plan, and out of the ceilings that were planned for them.
fn leave_out(plan: &mut Plan, jobs: &[JobPlan], error: &RunError) {
    let gone = |name: &String| jobs.iter().any(|job| job.name == *name);
    let runtime_ns = jobs.iter().find_map(|job| job.ceilings_ns).unwrap_or(0);
    for ceiling in &mut plan.ceilings {
        ceiling.jobs.retain(|name| !gone(name));
        if matches!(&ceiling.source, CeilingSource::Result { job } if gone(job)) {
            ceiling.source = CeilingSource::Measured { runtime_ns };
        }
    }
    plan.ceilings.retain(|ceiling| !ceiling.jobs.is_empty());
    plan.jobs.retain(|job| !gone(&job.name));
    let why = error.to_string();
    let out = |job: &JobPlan| LeftOut { path: job.path.choice.actual.clone(), why: why.clone() };
    plan.left_out.extend(jobs.iter().map(out));
}

fn overall(ran: &Ran, stopped: bool) -> EndedHow {
    let any = |how| ran.jobs.iter().any(|job| job.ended == how);
    if ran.ended == EndedHow::Failed || any(EndedHow::Failed) {
        EndedHow::Failed
    } else if stopped || ran.ended == EndedHow::Interrupted || any(EndedHow::Interrupted) {
        EndedHow::Interrupted
    } else {
        EndedHow::Complete
    }
}

/// One context per GPU of the plan, those on the route included, shared by all of its workers.
fn contexts(plan: &Plan, means: &Means<'_>) -> Result<BTreeMap<u32, Context>, RunError> {
    let mut contexts = BTreeMap::new();
    let on_the_way = |job: &JobPlan| job.via.as_ref().map(|via| via.gpu.clone());
    let all = plan.jobs.iter().flat_map(|job| job.gpus.iter().cloned().chain(on_the_way(job)));
    for gpu in all {
        if contexts.contains_key(&gpu.index) {
            continue;
        }
        let error = |what: String| RunError::Gpu { index: gpu.index, what };
        let driver = means.driver.ok_or_else(|| error("no CUDA driver is loaded".into()))?;
        let context =
            Context::new(driver, gpu.index).map_err(|failed| error(failed.to_string()))?;
        contexts.insert(gpu.index, context);
    }
    Ok(contexts)
}
