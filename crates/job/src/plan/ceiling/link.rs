//! The ceiling of the link between host and GPU memory: large copies from and to page-locked
//! memory, with no file behind them.

use gpuio_base::catalog::{Catalog, MAPPED_COPY_BYTES};
use gpuio_record::{BlockShare, CeilingKind, CeilingPlan, JobPlan, Order, Towards};

use super::loads::{path_choice, without_files};
use super::{CeilingContext, CeilingEntry, Load, Same, Want};

pub(super) const ENTRY: CeilingEntry =
    CeilingEntry { kind: CeilingKind::GpuLink, plan, load: Some(Load { files: false, job: load }) };

/// Bytes of a copy: large enough that launching it is noise in comparison, small enough that a
/// thread's ring is quickly page-locked.
const BLOCK_MOST: u64 = 4 << 20;
/// Bytes page-locked by all threads together at most.
const RINGS_MOST: u64 = 512 << 20;
/// Copies in flight per thread, and the streams that they share: one runs while the next waits.
const DEPTH: u32 = 4;
const STREAMS: u32 = 2;
/// Blocks that a thread goes over before it starts again: any number, no file is there.
const BLOCKS: u64 = 64;

/// Path `gather` is bounded by its own ceiling: its kernels move bytes, not the copy engines.
/// Kernels move most bytes of gpuio's library core too, and the short blocks of path `mapped`.
fn plan(context: &CeilingContext<'_>) -> Vec<Want> {
    let job = context.job;
    let gathers = context.path.batches && context.path.uses_engine();
    let short = |share: &BlockShare| share.min_bytes < MAPPED_COPY_BYTES;
    let mapped = context.path.uses_mapping() && job.blocks.iter().any(short);
    let by_kernels = gathers || mapped || context.path.uses_library();
    if !context.ends_in_gpu_memory() || by_kernels || job.gpus.is_empty() {
        return Vec::new();
    }
    let indices: Vec<String> = context.gpus().iter().map(|gpu| gpu.index.to_string()).collect();
    let want = |direction| {
        let way = if direction == Towards::Read { "to" } else { "from" };
        let name = format!("link {way} GPU {}", indices.join(","));
        let mut plan = context.ceiling(CeilingKind::GpuLink, name);
        plan.direction = Some(direction);
        plan.gpus = context.gpus().iter().map(|gpu| gpu.index).collect();
        plan.software_gpu = job.gpus.iter().any(|gpu| gpu.software);
        let size = gpuio_base::units::format_bytes(block(job.threads));
        plan.what = format!(
            "copies of {size} between page-locked and GPU memory, {DEPTH} under way per thread, \
             no file"
        );
        let load = load(&plan, job, context.catalog());
        Want { plan, same: Same::Load(Box::new(JobPlan { name: String::new(), ..load })) }
    };
    job.directions().iter().copied().map(want).collect()
}

/// A power of two, so that the rings of all threads stay within their bound.
fn block(threads: u32) -> u64 {
    let most = RINGS_MOST / u64::from(DEPTH) / u64::from(threads.max(1));
    let most = most.clamp(64 << 10, BLOCK_MOST);
    1 << most.ilog2()
}

fn load(ceiling: &CeilingPlan, job: &JobPlan, catalog: &Catalog) -> JobPlan {
    let block = block(job.threads);
    let mut load = without_files(ceiling, job, path_choice("staged", catalog), block * BLOCKS);
    (load.order, load.follow) = (Order::Sequential, None);
    load.write_blocks = Vec::new();
    load.blocks =
        vec![BlockShare { min_bytes: block, max_bytes: block, step_bytes: 0, percent: 100 }];
    load.depth = DEPTH;
    load.streams = STREAMS;
    load.gather_batch = None;
    (load.rings, load.chain) = (None, false);
    load.gather_scatter = None;
    load.seed = 1;
    for worker in &mut load.workers {
        worker.seed = 1;
    }
    load
}
