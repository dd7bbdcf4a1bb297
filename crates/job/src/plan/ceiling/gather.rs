//! The ceiling of path `gather` where no file has to keep up: launches from a ring that is not
//! refilled.

use gpuio_base::catalog::Catalog;
use gpuio_record::{CeilingKind, CeilingPlan, JobPlan, Towards};

use super::loads::{path_choice, without_files};
use super::{CeilingContext, CeilingEntry, Load, Same, Want};

pub(super) const ENTRY: CeilingEntry =
    CeilingEntry { kind: CeilingKind::Gather, plan, load: Some(Load { files: false, job: load }) };

fn plan(context: &CeilingContext<'_>) -> Vec<Want> {
    let job = context.job;
    // With engine `null` the job is this ceiling itself.
    if !(context.path.batches && context.path.uses_engine()) || job.engine.actual == "null" {
        return Vec::new();
    }
    let want = |direction| {
        let word = if direction == Towards::Read { "read" } else { "write" };
        let name = format!("gather of {}, {word}", job.name);
        let mut plan = context.ceiling(CeilingKind::Gather, name);
        plan.direction = Some(direction);
        plan.gpus = context.gpus().iter().map(|gpu| gpu.index).collect();
        plan.software_gpu = job.gpus.iter().any(|gpu| gpu.software);
        let batch = job.gather_batch.unwrap_or(1);
        plan.what = format!("the same blocks, {batch} to a launch, from a ring without a file");
        let load = load(&plan, job, context.catalog());
        Want { plan, same: Same::Load(Box::new(JobPlan { name: String::new(), ..load })) }
    };
    job.directions().iter().copied().map(want).collect()
}

/// Blocks, order, batch, streams and positions are the job's.
fn load(ceiling: &CeilingPlan, job: &JobPlan, catalog: &Catalog) -> JobPlan {
    let block = job.sizes().map(|share| share.max_bytes).max().unwrap_or(1);
    let mut load =
        without_files(ceiling, job, path_choice("gather", catalog), job.size_bytes.max(block));
    load.align_bytes = job.align_bytes;
    load
}
