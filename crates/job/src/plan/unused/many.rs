//! The same rules for the runs of a sweep, which are planned by processes of their own: before the
//! first of them starts, on a machine that has everything.

use std::sync::Arc;

use gpuio_base::catalog::Catalog;
use gpuio_record::facts::HostFacts;
use gpuio_record::{Gpu, JobPlan};

use super::super::{
    AUTO, Among, DirectAnswer, Errors, Facts, Gpus, PlanError, TargetInfo, TargetLookup, habits,
    paths_of, resolved,
};
use super::Unused;
use crate::spec::{JobSpec, Requested};

/// GPUs of the machine that has everything.
const GPUS: u32 = 64;

/// Nothing is there, and all of it could be made.
struct Room;

impl TargetLookup for Room {
    fn look(&self, _: &str) -> Arc<TargetInfo> {
        let direct = DirectAnswer::Works { alignment: 512 };
        Arc::new(TargetInfo { direct, ..TargetInfo::default() })
    }

    fn tensors(&self, _path: &str) -> Result<Vec<(u64, u64)>, String> {
        Ok(vec![(8, 1 << 20)])
    }

    fn drive_node(&self, _: &str) -> Option<u32> {
        Some(0)
    }
}

/// Refuses a value that none of these runs uses. A run that can't be planned without its machine,
/// or whose path is left to gpuio, counts as one that uses all.
///
/// # Errors
/// The values without effect, each with the source that requested it.
pub fn none_uses(jobs: &[JobSpec], catalog: Catalog) -> Result<(), PlanError> {
    let mut planned = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        match paths(job, at, catalog, &Room, |(_, unused)| unused) {
            Some(paths) => planned.extend(paths.into_iter().map(|unused| (at, unused))),
            None => planned.push((at, Vec::new())),
        }
    }
    Errors(super::refused(jobs, &planned)).none()
}

/// The values that one run of many would not use on any of its paths.
pub fn unused_here(job: &JobSpec, catalog: Catalog) -> Vec<Requested> {
    let Some(mut paths) = paths(job, 0, catalog, &Room, |(_, unused)| unused) else {
        return Vec::new();
    };
    let Some(first) = paths.pop() else { return Vec::new() };
    let everywhere = |one: &Unused| {
        paths.iter().all(|other| other.iter().any(|two| two.key.field() == one.key.field()))
    };
    first.into_iter().filter(|one| everywhere(one)).map(|one| one.requested).collect()
}

/// The depth at which one run of many runs.
pub fn depth_here(job: &JobSpec, catalog: Catalog) -> Option<u32> {
    paths(job, 0, catalog, &Room, |(plan, _)| plan.depth)?.pop()
}

/// The plan of one run of many, with the files that are there, on a machine that has everything
/// else; nothing where it can't be planned so.
pub fn planned(job: &JobSpec, catalog: Catalog, files: &dyn TargetLookup) -> Option<JobPlan> {
    paths(job, 0, catalog, files, |(plan, _)| plan)?.pop()
}

/// The part that is `kept` of the plan and the unused values on each path of a run; nothing where
/// that depends on its machine.
fn paths<T>(
    job: &JobSpec,
    at: usize,
    catalog: Catalog,
    targets: &dyn TargetLookup,
    kept: impl Fn((JobPlan, Vec<Unused>)) -> T,
) -> Option<Vec<T>> {
    let left_to_us = |name: &String| name == AUTO || name == "all";
    if job.paths.iter().flatten().any(left_to_us) {
        return None;
    }
    let gpu = |index: u32| Gpu {
        index,
        name: String::new(),
        uuid: String::new(),
        pci: String::new(),
        numa_node: Some(0),
        memory_bytes: u64::MAX,
        software: false,
        managed_hints: Some(true),
        read_only_register: Some(true),
    };
    let facts = Facts {
        catalog,
        host: &HostFacts::default(),
        gpus: &Gpus::Present((0..GPUS).map(gpu).collect()),
        targets,
        engine_missing: &|_| None,
        cufile_missing: &|_| None,
        cufile_direct: Err(""),
    };
    let job = &habits::of_direction(job);
    let rows = paths_of(job, &facts, &mut Vec::new()).ok()?;
    let alone = true;
    let each = |row| resolved(job, row, Among { at, alone, many: false, group: 0 }, &facts);
    rows.iter().map(|row| each(row).ok().map(&kept)).collect()
}
