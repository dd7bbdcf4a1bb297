//! Which blocks a worker works on, for [`crate::workload::sequence`].

use gpuio_record::{DirectMode, Follow, JobPlan, Order, WorkerPlan};

use crate::workload::sequence::{RegionSpan, SequenceConfig};

/// The alignment of offsets and lengths in bytes: what everything was aligned to under O_DIRECT, 1
/// through the page cache.
pub fn unit(job: &JobPlan) -> u64 {
    if job.direct == DirectMode::Buffered {
        return 1;
    }
    let sizes = job.sizes().flat_map(|b| [b.min_bytes, b.max_bytes, b.step_bytes]);
    // Threads that share a file start one part after the other.
    let first = job.workers.first().filter(|_| job.sharers() > 1);
    let apart = first.into_iter().flat_map(|worker| &worker.regions).map(|region| region.length);
    let steps = job.offset_increment.unwrap_or(0);
    let gap = match job.follow {
        Some(Follow::Gap { bytes }) => bytes.unsigned_abs(),
        _ => 0,
    };
    let all = sizes.chain([job.align_bytes, job.skew_bytes, job.offset_bytes, steps, gap, 4096]);
    let all = all.chain(apart);
    // The largest power of two that divides all of them.
    1 << all.filter(|n| *n > 0).map(u64::trailing_zeros).min().unwrap_or(0)
}

/// The timed blocks of a worker, without end. `file_of` names the worker's file that is the
/// job's target.
pub fn config(
    job: &JobPlan,
    worker: &WorkerPlan,
    file_of: impl Fn(u32) -> Option<u32>,
) -> SequenceConfig {
    let regions = worker.regions.iter().filter_map(|region| {
        let file = file_of(region.target)?;
        Some(RegionSpan { file, offset: region.offset, length: region.length })
    });
    SequenceConfig {
        order: job.order.clone(),
        follow: job.follow,
        blocks: job.blocks.clone(),
        write_blocks: job.write_blocks.clone(),
        align_bytes: job.align_bytes,
        skew_bytes: job.skew_bytes,
        unit_bytes: unit(job),
        read_percent: job.read_percent,
        regions: regions.collect(),
        stripe: worker.regions.first().and_then(|region| region.stripe),
        in_turn: job.files_in_turn,
        short_regions: job.ranges.is_some(),
        seed: worker.seed,
        passes: job.ranges.map(|ranges| ranges.passes).or_else(|| passes(job, worker)),
    }
}

/// Blocks with a distance between them may come to the end of their region before all bytes were
/// moved: that ends a pass, of which there are as many as the bytes are worth. Blocks that are
/// moved off their places do not fill the region: one pass is not made up from its start again.
/// Without a bound of bytes there is no end.
fn passes(job: &JobPlan, worker: &WorkerPlan) -> Option<u64> {
    let lengths = worker.regions.iter().map(|region| region.length);
    let length = lengths.fold(0, u64::saturating_add).max(1);
    let passes = job.stop.bytes_per_thread.map(|bytes| bytes.div_ceil(length).max(1));
    match job.follow {
        Some(Follow::Gap { .. }) => passes,
        _ if job.order == Order::Sequential && job.skew_bytes > 0 => passes.filter(|all| *all == 1),
        _ => None,
    }
}
