//! The ceiling of storage: the same load by path `host`, where bytes end in host memory.

use gpuio_record::{
    CeilingKind, CeilingPlan, CeilingSource, DirectMode, JobPlan, MemoryKind, Towards, VerifyMode,
};

use gpuio_base::catalog::Catalog;

use super::loads::{named, path_choice, unbound};
use super::{CeilingContext, CeilingEntry, Load, Same, Want};
use crate::plan::defaults;

pub(super) const ENTRY: CeilingEntry =
    CeilingEntry { kind: CeilingKind::Storage, plan, load: Some(Load { files: true, job: load }) };

/// Not for path `host`, which would be held against itself, nor for an engine that moves nothing.
/// A GPU that reads in the page cache by itself needs no copy by a CPU, and may be faster.
fn plan(context: &CeilingContext<'_>) -> Vec<Want> {
    let job = context.job;
    let none = !context.path.needs_gpu || context.path.uses_mapping();
    if none || job.engine.actual == "null" {
        return Vec::new();
    }
    // A library has no engine: the one that suits these files is used instead.
    let engine = match context.path.uses_engine() {
        true => job.engine.actual.clone(),
        false => defaults::fitting(job.direct, context.facts.engine_missing).0,
    };
    let want = |direction: Towards| {
        let word = direction.name();
        let mut plan =
            context.ceiling(CeilingKind::Storage, format!("storage of {}, {word}", job.name));
        plan.direction = Some(direction);
        let cache = match job.direct {
            DirectMode::Direct => "",
            DirectMode::Buffered => {
                ", begun as long before it counts, since a cold page cache is no ceiling"
            }
        };
        plan.what = format!("the same load by path host, engine {engine}{cache}");
        plan.engine = Some(engine.clone());
        let load = load(&plan, job, context.catalog());
        if let Some(host) = context.jobs.iter().find(|host| is_it(host, &plan, &load, context)) {
            plan.source = CeilingSource::Result { job: host.name.clone() };
            plan.threads = Some(host.threads);
        }
        Want { plan, same: Same::Load(Box::new(JobPlan { name: String::new(), ..load })) }
    };
    job.directions().iter().copied().map(want).collect()
}

/// Whether a job of the run does what the ceiling would, with no other job running.
fn is_it(
    host: &JobPlan,
    ceiling: &CeilingPlan,
    load: &JobPlan,
    context: &CeilingContext<'_>,
) -> bool {
    let alone = context.jobs.iter().filter(|other| other.group == host.group).count() == 1;
    host.path.choice.actual == "host"
        && Some(&host.engine.actual) == ceiling.engine.as_ref()
        && alone
        && host.is_unhindered()
        && self::load(ceiling, host, context.catalog()) == *load
}

fn load(ceiling: &CeilingPlan, job: &JobPlan, catalog: &Catalog) -> JobPlan {
    let mut load = unbound(ceiling, job);
    load.path = path_choice("host", catalog);
    load.engine = named(ceiling.engine.as_deref().unwrap_or(&job.engine.actual));
    load.verify = if ceiling.restores { VerifyMode::Rewrite } else { VerifyMode::Off };
    if load.direct == DirectMode::Buffered {
        load.ramp_ns = load.stop.runtime_ns.unwrap_or(0);
    }
    load.memory = MemoryKind::Malloc;
    load.streams = 0;
    load.gather_batch = None;
    (load.rings, load.chain) = (None, false);
    load.gather_scatter = None;
    load.register_buffer = None;
    load.gpus = Vec::new();
    for worker in &mut load.workers {
        worker.gpu = None;
    }
    load
}
