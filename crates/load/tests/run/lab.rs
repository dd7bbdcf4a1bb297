//! A directory, a machine and a way to run job files on them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gpuio_drivers::cufile::{Library, Search};
use gpuio_gpu::{Driver, Which};
use gpuio_host::Root;
use gpuio_job::plan::{Facts, Gpus, plan};
use gpuio_job::spec::TakenKeys;
use gpuio_load::live_targets::LiveTargets;
use gpuio_load::run::{Means, Permit, Ran, RunError, RunObserver, Tick, run};
use gpuio_record::facts::HostFacts;
use gpuio_record::{JobPlan, JobResult, Plan};
use gpuio_testkit::gpu::software_gpu;

/// When the stop flag is to be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Never,
    /// This long after a group has started, from another thread, as Ctrl-C comes.
    Started {
        after_ms: u64,
    },
    Verifying,
    /// This long after the first ceiling has begun to be measured.
    Ceiling {
        after_ms: u64,
    },
}

/// Writes down what is reported to it.
pub(crate) struct Diary {
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) flag: Arc<AtomicBool>,
    stop: Stop,
    /// Done once when the clock has stopped and verification begins.
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Diary {
    fn note(&self, what: &str, jobs: &[JobPlan]) {
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        self.lines.lock().unwrap().push(format!("{what} {}", names.join(" ")));
    }

    /// Does this once, the next time that verification begins.
    #[allow(dead_code, reason = "for the tests that change what a load wrote")]
    pub(crate) fn when_verifying(&self, what: impl FnOnce() + Send + 'static) {
        *self.then.lock().unwrap() = Some(Box::new(what));
    }

    fn raise(&self, after_ms: u64) {
        let flag = Arc::clone(&self.flag);
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(after_ms));
            flag.store(true, Ordering::Relaxed);
        });
    }
}

impl RunObserver for Diary {
    fn making(&self, done: u64, of: u64) {
        assert!(done <= of, "{done} of {of}");
    }

    fn started(&self, jobs: &[JobPlan]) {
        self.note("started", jobs);
        if let Stop::Started { after_ms } = self.stop {
            self.raise(after_ms);
        }
    }

    fn tick(&self, _: &Tick) {}

    fn verifying(&self, jobs: &[JobPlan]) {
        self.note("verifying", jobs);
        if let Some(then) = self.then.lock().unwrap().take() {
            then();
        }
        if self.stop == Stop::Verifying {
            self.flag.store(true, Ordering::Relaxed);
        }
    }

    fn job_done(&self, job: &JobPlan, result: &JobResult) {
        assert_eq!(job.name, result.name);
        self.note("done", std::slice::from_ref(job));
    }

    fn group_done(&self, plan: &Plan, ran: &Ran) {
        let total = ran.totals.last().unwrap();
        let of_group = |job: &&JobPlan| job.group == total.group;
        let jobs: Vec<JobPlan> = plan.jobs.iter().filter(of_group).cloned().collect();
        assert!(jobs.iter().all(|job| ran.jobs.iter().any(|done| done.name == job.name)));
        self.note("kept", &jobs);
    }

    fn ceiling(&self, name: &str) {
        self.lines.lock().unwrap().push(format!("ceiling {name}"));
        if let Stop::Ceiling { after_ms } = self.stop {
            self.raise(after_ms);
        }
    }
}

/// Where runs happen.
pub(crate) struct Lab {
    directory: tempfile::TempDir,
    host: HostFacts,
    driver: Option<Driver>,
    cufile: Option<gpuio_drivers::cufile::Driver>,
    gpus: Gpus,
    pub(crate) diary: Diary,
    /// Where workers count for other processes.
    pub(crate) page: Option<gpuio_watch::page::LivePage>,
}

impl Lab {
    pub(crate) fn new() -> Lab {
        Lab::stopping(Stop::Never)
    }

    pub(crate) fn stopping(stop: Stop) -> Lab {
        Lab {
            directory: tempfile::tempdir().unwrap(),
            host: gpuio_host::collect(&Root::live()),
            driver: None,
            cufile: None,
            page: None,
            gpus: Gpus::Absent { why: "this test has none".into() },
            diary: Diary {
                lines: Mutex::default(),
                flag: Arc::default(),
                stop,
                then: Mutex::default(),
            },
        }
    }

    pub(crate) fn with_gpu() -> Lab {
        Lab::with_gpu_stopping(Stop::Never)
    }

    /// The same, to be interrupted.
    pub(crate) fn with_gpu_stopping(stop: Stop) -> Lab {
        let driver = Driver::load(&Which::Software).unwrap();
        let gpus = Gpus::Present(driver.devices().unwrap().iter().map(software_gpu).collect());
        Lab { driver: Some(driver), gpus, ..Lab::stopping(stop) }
    }

    /// With the software GPU and the stand-in for cuFile.
    pub(crate) fn with_cufile() -> Lab {
        let lab = Lab::with_gpu();
        let search = Search { stand_in: true, ..Search::default() };
        let library = Library::load(&search).unwrap();
        let cufile = gpuio_drivers::cufile::Driver::open(library, None, true).unwrap();
        Lab { cufile: Some(cufile), ..lab }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The plan of a job file in which `${DIR}` is this lab's directory.
    pub(crate) fn plan(&self, text: &str) -> Plan {
        let directory = self.directory.path().display().to_string();
        let env = |name: &str| (name == "DIR").then(|| directory.clone());
        let spec = gpuio_job::spec::parse_job_file("f", text, &env).unwrap_or_else(|errors| {
            panic!("{:?}", errors.iter().map(ToString::to_string).collect::<Vec<_>>())
        });
        let places = LiveTargets::default();
        let missing = |_: &str| None;
        let (host, gpus) = (&self.host, &self.gpus);
        let facts = Facts {
            catalog: gpuio_io::CATALOG,
            host,
            gpus,
            targets: &places,
            engine_missing: &missing,
            cufile_missing: &|_| self.cufile.is_none().then(|| "not opened".to_owned()),
            cufile_direct: Err("not opened"),
        };
        plan(&spec, &facts).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn carry_out(&self, plan: &mut Plan) -> Result<Ran, RunError> {
        self.carry_out_reported(plan, &self.diary)
    }

    /// The same, reported to somebody else.
    pub(crate) fn carry_out_reported(
        &self,
        plan: &mut Plan,
        watch: &dyn RunObserver,
    ) -> Result<Ran, RunError> {
        let permit = Permit { make_missing: true, ..Permit::default() };
        let stop = Arc::clone(&self.diary.flag);
        let cufile = self.cufile.clone();
        let (driver, host) = (self.driver.as_ref(), &self.host);
        let page = self.page.clone();
        let means = Means {
            driver,
            host,
            stop,
            cufile,
            permit,
            live_page: page,
            replay: None,
            watched: true,
            peers: None,
            keys: TakenKeys::of(&[], &plan.jobs),
        };
        run(plan, &means, watch)
    }

    pub(crate) fn run(&self, text: &str) -> Ran {
        let mut plan = self.plan(text);
        let ran = self.carry_out(&mut plan).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(ran.error, None);
        ran
    }

    /// The result of a job file with one job, `[a]`, in this lab's directory.
    pub(crate) fn job(&self, lines: &str) -> JobResult {
        let mut ran = self.run(&format!("[a]\ndirectory=${{DIR}}\n{lines}\n"));
        assert_eq!(ran.jobs.len(), 1);
        ran.jobs.remove(0)
    }
}

pub(crate) const MS: u64 = 1_000_000;
