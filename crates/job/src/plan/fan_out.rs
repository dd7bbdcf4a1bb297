//! Path `fan-out`: each block is read once and placed in all GPUs of the job.

use gpuio_base::catalog::PathInfo;
use gpuio_record::{FanOut, Gpu};

use super::PlanError;
use crate::spec::{JobSpec, ViaPeer};

/// Streams per thread by default: copies from the host and copies to other GPUs go by different
/// engines, and in one stream they would follow each other. A guess: not measured.
const STREAMS: u32 = 4;

/// How blocks get into all GPUs, on the path that does that.
pub(super) fn resolve(
    requested: &JobSpec,
    path: &PathInfo,
    gpus: &[Gpu],
) -> Result<Option<FanOut>, PlanError> {
    if !path.fans_out {
        return Ok(None);
    }
    if count(gpus) < 2 {
        let only = gpus.first().map(|gpu| format!(", GPU {}", gpu.index)).unwrap_or_default();
        let what = format!(
            "path {} places each block in several GPUs, and the job has one{only}: that is path \
             staged. Name more with --gpu (all, or 0,1)",
            path.name
        );
        return Err(PlanError::usage(requested, "gpu", what));
    }
    Ok(Some(FanOut { any: requested.via_peer == Some(ViaPeer::Any) }))
}

/// The default number of threads: each GPU takes a share of the blocks.
pub(super) fn threads(fan_out: Option<FanOut>, gpus: &[Gpu]) -> u32 {
    if fan_out.is_some() { count(gpus) } else { 1 }
}

/// The default number of streams, where it is the path's own.
pub(super) fn streams(path: &PathInfo) -> Option<u32> {
    path.fans_out.then_some(STREAMS)
}

fn count(gpus: &[Gpu]) -> u32 {
    let mut indices: Vec<u32> = gpus.iter().map(|gpu| gpu.index).collect();
    indices.sort_unstable();
    indices.dedup();
    u32::try_from(indices.len()).unwrap_or(u32::MAX)
}
