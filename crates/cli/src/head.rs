//! A record's facts besides plan and results: the command, the machine, the storage.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gpuio_host::Root;
use gpuio_io::CATALOG;
use gpuio_load::run::Ran;
use gpuio_record::facts::{HostFacts, TargetStorage};
use gpuio_record::{
    ContentDigest, CufileUsed, Plan, RankOf, Record, SCHEMA_VERSION, TargetKind, Tool,
};

/// The facts of a record besides plan and results.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) rank: Option<RankOf>,
    pub(crate) command: Vec<String>,
    pub(crate) started_at: String,
    pub(crate) driver_version: Option<(u32, u32)>,
    pub(crate) cufile: Option<CufileUsed>,
    pub(crate) host: &'a HostFacts,
    /// The storage under the files before the run: a drive may vanish in it.
    pub(crate) storage: Vec<TargetStorage>,
}

impl Head<'_> {
    pub(crate) fn record(&self, plan: &Plan, ran: &Ran) -> Record {
        Record {
            schema_version: SCHEMA_VERSION,
            content_sha256: ContentDigest::Intact,
            answers: Vec::new(),
            tool: Tool { name: "gpuio".into(), version: env!("CARGO_PKG_VERSION").into() },
            command: self.command.clone(),
            started_at: self.started_at.clone(),
            storage: storage(plan, &self.storage),
            host: self.host.clone(),
            boot: boot(),
            driver_version: self.driver_version,
            cufile: self.cufile.clone().filter(|_| plan.takes_cufile(&CATALOG)),
            plan_text: gpuio_report::format::plan::plan_text(plan),
            plan: plan.clone(),
            ended: ran.ended,
            error: ran.error.clone(),
            setup: ran.setup,
            jobs: ran.jobs.clone(),
            totals: ran.totals.clone(),
            ceilings: ran.ceilings.clone(),
            expected: Vec::new(),
            watched: ran.watched.clone(),
            warnings: ran.warnings.clone(),
            rank: self.rank.clone(),
            run_of: crate::child::run_of(),
            ranks: None,
        }
    }
}

/// Identifies this boot of the kernel.
pub(crate) fn boot() -> Option<String> {
    let boot = gpuio_host::process::boot(&Root::live()).unwrap_or_default();
    Some(boot).filter(|boot| !boot.is_empty())
}

/// File system and device of each directory or device of the plan, each once; as it was before the
/// run where the device or the mount has gone since.
fn storage(plan: &Plan, before: &[TargetStorage]) -> Vec<TargetStorage> {
    let still = |now: TargetStorage| {
        let mount = |one: &TargetStorage| one.mount.as_ref().map(|mount| mount.device);
        let has_gone = |was: &&TargetStorage| {
            was.path == now.path
                && (was.device.is_some() && now.device.is_none() || mount(was) != mount(&now))
        };
        before.iter().find(has_gone).cloned().unwrap_or(now)
    };
    look_at_storage(plan).into_iter().map(still).collect()
}

pub(crate) fn look_at_storage(plan: &Plan) -> Vec<TargetStorage> {
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
