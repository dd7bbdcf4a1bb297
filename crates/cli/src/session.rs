//! From a job specification to a record: used by all verbs that run a load.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use gpuio_base::catalog::GPU_RINGS;
use gpuio_base::stat::IoLines;
use gpuio_base::units::human_bytes;
use gpuio_dataset::space;
use gpuio_host::Root;
use gpuio_io::{CATALOG, engine};
use gpuio_job::plan::Facts;
use gpuio_job::spec::{Spec, TakenKeys};
use gpuio_job::workload::replay::Script;
use gpuio_load::live_targets::LiveTargets;
use gpuio_load::run::{self, Means, Peers, Permit, Ran, RunObserver, Tick};
use gpuio_machine::flow::Figures;
use gpuio_record::facts::{HostFacts, Machine};
use gpuio_record::{EndedHow, GuardNote, JobExpected, JobPlan, JobResult, Plan, Record, Towards};
use gpuio_watch::page::{LivePage, LivePageRoot};

use crate::args::CufileFlags;
use crate::child;
use crate::cufile::{self, Cufile, Trial, UNTRIED};
use crate::driver::{self, Loaded};
use crate::failure::Failure;
use crate::fio_logs::Logs;
use crate::head::{Head, look_at_storage};
use crate::interrupt;
use crate::jobs;
use crate::journal::{self, Due, Journal};
use crate::output;
use crate::ranks::{Joined, Learned, Synchronised};
use crate::ui::Progress;

/// A plan with what is needed to run it.
pub(crate) struct Session {
    pub(crate) plan: Plan,
    host: HostFacts,
    // Dropped before the driver, whose contexts it uses.
    cufile: Cufile,
    loaded: Loaded,
    permit: Permit,
    /// The calls that jobs that are replays repeat.
    replay: Option<Arc<Script>>,
    /// Figures of hardware, for the expected performance of the jobs.
    pub(crate) figures: Figures,
    /// Whether workers publish counters for `gpuio stats`.
    pub(crate) counts: bool,
    /// Whether the devices of the jobs are sampled during the run.
    pub(crate) watched: bool,
}

impl Session {
    /// Inspects the machine and resolves the specification. Opens and creates no data files; a dry
    /// run creates no other file either.
    pub(crate) fn prepare(
        spec: &Spec,
        permit: Permit,
        flags: &CufileFlags,
        only_shown: bool,
    ) -> Result<Session, Failure> {
        let trial = if only_shown { Trial::Not } else { Trial::Made };
        let mut spec = spec.clone();
        cufile::set(&mut spec, flags)?;
        jobs::answer(&mut spec)?;
        let spec = &spec;
        let configured = cufile::configure(spec, flags)?;
        let loaded = driver::load(spec)?;
        let mut cufile = cufile::open(spec, flags, configured, &loaded, trial);
        let host = gpuio_host::collect(&Root::live());
        let targets = LiveTargets::default();
        let missing = |name: &str| match name {
            GPU_RINGS => gpuio_io::path::rings_available().err(),
            name => engine::find(name).and_then(|row| (row.available)().err()),
        };
        let facts = Facts {
            catalog: CATALOG,
            host: &host,
            gpus: &loaded.gpus,
            targets: &targets,
            engine_missing: &missing,
            cufile_missing: &|calls| cufile.missing(calls),
            cufile_direct: cufile.direct.as_deref().map_err(String::as_str),
        };
        let mut plan = gpuio_job::plan::plan(spec, &facts)?;
        unneeded(&permit, &mut plan);
        cufile::is_used(spec, flags, &plan)?;
        // `auto` queried it and chose another path: threads of the library must not run during the
        // load.
        if !plan.takes_cufile(&CATALOG) {
            cufile.driver = None;
        }
        let figures = Figures::built_in();
        let replay = spec.jobs.iter().find_map(|job| job.replay.as_ref());
        let replay = replay.map(|replay| Arc::clone(&replay.script));
        let (counts, watched) = (true, true);
        Ok(Session { plan, host, cufile, loaded, permit, replay, figures, counts, watched })
    }

    /// The resolved plan as a job file, after the guard has checked every target.
    pub(crate) fn dry_run(&mut self) -> Result<String, Failure> {
        if self.cufile.untried {
            message!("note: {UNTRIED}");
        }
        let reported = std::cell::Cell::new(false);
        let report_reading = |_, of| {
            if !reported.replace(true) {
                let of = gpuio_base::units::format_bytes(of);
                message!(
                    "note: checking which files of an earlier run are gpuio's: reading {of} of \
                    one"
                );
            }
        };
        let stop = interrupt::flag();
        let looks = run::Looks::new(&report_reading, &stop, &std::time::SystemTime::now);
        run::check_all(&mut self.plan, &self.permit, &Root::live(), &looks)
            .map_err(|error| Failure::from(run::RunError::from(error)))?;
        Ok(gpuio_report::format::plan::plan_text(&self.plan))
    }

    /// Prints the resolved plan, and below it how much room there is for what it writes. That is no
    /// part of the plan, which is the same the next time.
    pub(crate) fn print_plan(&mut self) -> Result<(), Failure> {
        output::put(&self.dry_run()?)?;
        let jobs = self.plan.jobs.iter();
        let made = jobs
            .flat_map(|job| &job.targets)
            .find(|target| matches!(target.guard, GuardNote::Make | GuardNote::Remake));
        let places = made.map(|made| Path::new(&made.path).ancestors().skip(1));
        let here = |place: &Path| match place.as_os_str().is_empty() {
            true => rustix::fs::statvfs("."),
            false => rustix::fs::statvfs(place),
        };
        let found = places.into_iter().flatten().find_map(|place| Some((place, here(place).ok()?)));
        if let Some((place, system)) = found {
            let free = human_bytes((system.f_bavail * system.f_frsize) as f64);
            let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
            message!("Free on the file system of {}: {free}", place.display());
        }
        if let Err(error) = space::check_plan(&self.plan.jobs) {
            message!("Does not fit: {error}");
        }
        Ok(())
    }

    /// Processors that this process may run on.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        self.host.cpu.allowed.clone().unwrap_or_default()
    }

    /// The live page, with a slot for each thread that counts by itself. If it can't be created,
    /// the run goes on without it.
    fn live_page(&self, progress: &Progress) -> Option<LivePage> {
        let threads = self.plan.jobs.iter().fold(0_u32, |sum, job| sum.saturating_add(job.threads));
        let now = jiff::Timestamp::now().as_nanosecond();
        let began_ns = u64::try_from(now).unwrap_or(0);
        let made = self
            .counts
            .then(|| LivePage::create(&LivePageRoot::live(), threads, "gpuio", began_ns))?;
        made.map_err(|error| {
            progress.print_line(&format!("note: gpuio stats can't see this run: {error}"))
        })
        .ok()
    }

    /// Runs the plan, and saves the results in the journal after each group of jobs.
    /// The lines of logs that the plan requests go to `logs`.
    pub(crate) fn run(
        self,
        progress: &Progress,
        journal: &Journal,
        logs: &Logs,
    ) -> Result<Record, Failure> {
        self.carry_out(progress, journal, logs, None).map(|(record, _)| record)
    }

    /// The same as one of several ranks, with what rank 0 learned of them. The journal also has
    /// results of the running group.
    pub(crate) fn run_on_ranks(
        self,
        progress: &Progress,
        journal: &Journal,
        joined: &Joined,
    ) -> Result<(Record, Learned), Failure> {
        self.carry_out(progress, journal, &Logs::none(), Some(joined))
    }

    fn carry_out(
        mut self,
        progress: &Progress,
        journal: &Journal,
        logs: &Logs,
        joined: Option<&Joined>,
    ) -> Result<(Record, Learned), Failure> {
        let head = Head {
            rank: joined.map(Joined::rank_of),
            command: std::env::args_os().map(|word| word.display().to_string()).collect(),
            started_at: jiff::Timestamp::now().to_string(),
            driver_version: self.loaded.driver.as_ref().map(gpuio_gpu::Driver::version),
            cufile: self.cufile.driver.as_ref().map(cufile::used),
            host: &self.host,
            storage: look_at_storage(&self.plan),
        };
        let live_page = self.live_page(progress);
        // Every rank's results lie on disk before a launcher can end the process.
        let snapshots = joined.is_some() || journal.takes_running(&self.plan);
        let plan = snapshots.then(|| self.plan.clone());
        std::thread::scope(|scope| {
            let saver = plan.map(|plan| (plan, saver(scope, journal, progress)));
            let (synchronised, running) = match (joined, saver) {
                (Some(joined), Some((plan, to))) => {
                    (Some(Synchronised::new(joined, &head, plan, to)), None)
                }
                (None, Some((plan, to))) => {
                    (None, Some(Running { plan, to, due: Mutex::new(Due::begin()) }))
                }
                (_, None) => (None, None),
            };
            let means = Means {
                driver: self.loaded.driver.as_ref(),
                host: &self.host,
                stop: interrupt::flag(),
                cufile: self.cufile.driver.clone(),
                permit: self.permit.clone(),
                live_page,
                watched: self.watched,
                replay: self.replay.clone(),
                peers: synchronised.as_ref().map(|peers| peers as &dyn Peers),
                keys: TakenKeys::of(&head.command, &self.plan.jobs),
            };
            let others = synchronised.as_ref();
            let kept = Kept { progress, journal, logs, head: &head, synchronised: others, running };
            let ran = run::run(&mut self.plan, &means, &kept)?;
            drop((means, kept));
            let mut record = head.record(&self.plan, &ran);
            let machine = gpuio_host::machine::read(&Root::live());
            record.expected = expected(&machine, &record, &self.figures);
            let mut learned = synchronised.map(Synchronised::learned).unwrap_or_default();
            if joined.is_some() {
                let (plan, storage) = (&record.plan, &record.storage);
                learned.portions =
                    gpuio_machine::flow::portions_of_jobs(&machine, &self.figures, plan, storage);
            }
            Ok((record, learned))
        })
    }
}

/// Notes a permission to write where nothing writes. A run of a sweep has that of all its runs.
fn unneeded(permit: &Permit, plan: &mut Plan) {
    let reads = plan.jobs.iter().all(|job| !job.directions().contains(&Towards::Write));
    let given =
        [("--overwrite", permit.overwrite), ("--destroy-data-on", !permit.devices.is_empty())];
    let given = given.into_iter().filter(|(_, given)| *given && reads);
    for (flag, _) in given.filter(|_| !child::is_of_a_sweep()) {
        let note = format!("{flag}: it has no effect here: no job writes; leave it out");
        plan.jobs.iter_mut().for_each(|job| job.notes.push(note.clone()));
    }
}

/// A run without other ranks whose running group is saved now and then, by a thread of its own.
struct Running {
    plan: Plan,
    to: SyncSender<Record>,
    due: Mutex<Due>,
}

impl Running {
    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that saves records of a running group. It ends with the sender.
fn saver<'scope>(
    scope: &'scope Scope<'scope, '_>,
    journal: &'scope Journal,
    progress: &Progress,
) -> SyncSender<Record> {
    let (to, from) = sync_channel(1);
    let save = move || from.iter().for_each(|one| save_running(journal, &one));
    let builder = std::thread::Builder::new().name("gpuio-journal".to_owned());
    if let Err(error) = builder.spawn_scoped(scope, save) {
        progress.print_line(&format!(
            "note: results of a running group are not saved: a thread could not be started: {error}"
        ));
    }
    to
}

/// A save that fails now may work later: the last one reports its error.
fn save_running(journal: &Journal, record: &Record) {
    let _ = journal.save_running(record);
}

/// The expected performance of each job. The machine is read after the run, so that this is not
/// measured.
fn expected(machine: &Machine, record: &Record, figures: &Figures) -> Vec<JobExpected> {
    let mut expected =
        gpuio_machine::flow::of_jobs(machine, figures, &record.plan, &record.storage);
    gpuio_machine::flow::hold_against(&mut expected, &record.jobs);
    expected
}

/// Shows progress, and keeps the journal.
struct Kept<'a> {
    progress: &'a Progress,
    journal: &'a Journal,
    logs: &'a Logs,
    head: &'a Head<'a>,
    /// The other ranks, where there are any.
    synchronised: Option<&'a Synchronised<'a>>,
    /// Without other ranks.
    running: Option<Running>,
}

impl Kept<'_> {
    fn step(&self) {
        if let Some(synchronised) = self.synchronised {
            synchronised.step();
        }
    }
}

impl RunObserver for Kept<'_> {
    fn making(&self, done: u64, of: u64) {
        self.step();
        self.progress.making(done, of);
    }

    fn looking(&self, done: u64, of: u64) {
        self.step();
        self.progress.looking(done, of);
    }

    fn reading(&self, done: u64, of: u64) {
        self.step();
        self.progress.reading(done, of);
    }

    fn started(&self, jobs: &[JobPlan]) {
        if let Some(running) = &self.running {
            *running.due() = Due::begin();
        }
        self.progress.started(jobs);
    }

    fn wants_results(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.due().is_now())
    }

    fn so_far(&self, ran: &Ran, jobs: Vec<JobResult>) {
        let Some(running) = &self.running else { return };
        let mut ran = ran.clone();
        ran.jobs.extend(jobs);
        let record = self.head.record(&running.plan, &ran);
        // While the one before is still being written, this one is left out.
        let _ = running.to.try_send(Record { ended: EndedHow::Unfinished, ..record });
    }

    fn tick(&self, tick: &Tick) {
        let all = self.synchronised.map(|synchronised| synchronised.tick(tick));
        self.progress.tick(all.as_ref().unwrap_or(tick));
    }

    fn verifying(&self, jobs: &[JobPlan]) {
        self.progress.verifying(jobs);
    }

    fn job_done(&self, job: &JobPlan, result: &JobResult) {
        self.progress.job_done(job, result);
    }

    fn logged(&self, job: &JobPlan, lines: Vec<IoLines>) {
        self.logs.keep(job, lines);
    }

    fn alone(&self, jobs: &[JobPlan]) {
        self.progress.alone(jobs);
    }

    fn ceiling(&self, name: &str) {
        self.progress.ceiling(name);
    }

    fn note(&self, line: &str) {
        self.progress.print_line(&format!("note: {line}"));
    }

    fn group_done(&self, plan: &Plan, ran: &Ran) {
        self.progress.group_done(plan, ran);
        if let Some(synchronised) = self.synchronised {
            synchronised.group_done(plan, ran);
            return;
        }
        // The results of a group that was saved in part replace that part.
        let has_part = self.running.as_ref().is_some_and(|running| running.due().has_been());
        if !journal::is_due(plan) && !has_part {
            return;
        }
        let record = Record { ended: EndedHow::Unfinished, ..self.head.record(plan, ran) };
        if let Some(line) = self.journal.keep(&record) {
            self.progress.print_line(&line);
        }
    }
}
