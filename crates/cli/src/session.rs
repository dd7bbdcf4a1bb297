//! From a spec to a record: the one way that all verbs that run a load go.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gpuio_host::Root;
use gpuio_io::engine;
use gpuio_load::places::LivePlaces;
use gpuio_load::plan::{self, Machine};
use gpuio_load::run::{self, Means, Permit, Watch};
use gpuio_record::facts::{HostFacts, TargetStorage};
use gpuio_record::{Plan, Record, SCHEMA_VERSION, TargetKind, Tool};
use gpuio_spec::Spec;

use crate::args::CufileFlags;
use crate::cufile::{self, Cufile};
use crate::driver::{self, Loaded};
use crate::failure::Failure;
use crate::interrupt;

/// A plan with what is needed to run it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) plan: Plan,
    host: HostFacts,
    // Goes before the driver, whose contexts it uses.
    cufile: Cufile,
    loaded: Loaded,
    permit: Permit,
}

impl Session {
    /// Looks at the machine and resolves the spec. Opens and makes nothing of the data set.
    pub(crate) fn prepare(
        spec: &Spec,
        permit: Permit,
        flags: &CufileFlags,
    ) -> Result<Session, Failure> {
        let configured = cufile::configure(spec, flags)?;
        let loaded = driver::load(spec)?;
        let cufile = cufile::open(spec, flags, configured, &loaded);
        let host = gpuio_host::collect(&Root::live());
        let places = LivePlaces::default();
        let missing = |name: &str| engine::find(name).and_then(|row| (row.available)().err());
        let machine = Machine {
            host: &host,
            gpus: &loaded.gpus,
            places: &places,
            engine_missing: &missing,
            cufile_missing: cufile.missing.as_deref(),
        };
        let plan = plan::plan(spec, &machine)?;
        Ok(Session { plan, host, cufile, loaded, permit })
    }

    /// The resolved plan as a job file, after the guard has judged every target.
    pub(crate) fn dry_run(&mut self) -> Result<String, Failure> {
        run::judge_all(&mut self.plan, &self.permit, &Root::live())
            .map_err(|error| Failure::from(run::RunError::from(error)))?;
        Ok(gpuio_report::format::plan::plan_text(&self.plan))
    }

    /// Runs the plan.
    pub(crate) fn run(mut self, watch: &dyn Watch) -> Result<Record, Failure> {
        let started_at = jiff::Timestamp::now().to_string();
        let means = Means {
            driver: self.loaded.driver.as_ref(),
            host: &self.host,
            stop: interrupt::flag(),
            cufile: self.cufile.driver.clone(),
            permit: self.permit.clone(),
        };
        let ran = run::run(&mut self.plan, &means, watch)?;
        drop(means);
        Ok(Record {
            schema_version: SCHEMA_VERSION,
            tool: Tool { name: "gpuio".into(), version: env!("CARGO_PKG_VERSION").into() },
            command: std::env::args_os().map(|word| word.display().to_string()).collect(),
            started_at,
            storage: storage(&self.plan),
            host: self.host,
            driver_version: self.loaded.driver.as_ref().map(gpuio_gpu::Driver::version),
            cufile: self
                .cufile
                .driver
                .as_ref()
                .filter(|_| takes_cufile(&self.plan))
                .map(cufile::used),
            plan_text: gpuio_report::format::plan::plan_text(&self.plan),
            plan: self.plan,
            ended: ran.ended,
            error: ran.error,
            setup: ran.setup,
            jobs: ran.jobs,
            totals: ran.totals,
            ceilings: ran.ceilings,
            warnings: ran.warnings,
        })
    }
}

/// Whether a job of the plan runs over cuFile.
fn takes_cufile(plan: &Plan) -> bool {
    plan.jobs.iter().any(|job| job.register_buffer.is_some())
}

/// File system and device behind each directory or device of the plan, each once.
fn storage(plan: &Plan) -> Vec<TargetStorage> {
    let targets = plan.jobs.iter().flat_map(|job| &job.targets);
    let place = |target: &gpuio_record::TargetPlan| -> PathBuf {
        let path = Path::new(&target.path);
        match target.kind {
            TargetKind::BlockDevice => path.to_owned(),
            TargetKind::File => match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            },
        }
    };
    let places: BTreeSet<PathBuf> = targets.map(place).collect();
    let look = |place: &PathBuf| gpuio_host::target_storage(&Root::live(), place, &mut Vec::new());
    places.iter().map(look).collect()
}
