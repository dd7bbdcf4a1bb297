//! The GPU through which the bytes of path `routed` go.

use gpuio_base::catalog::PathInfo;
use gpuio_record::{Gpu, Via};

use super::PlanError;
use super::facts::{Facts, Gpus};
use super::regions::Ground;
use crate::spec::{JobSpec, ViaPeer};

/// The near GPU: the one that was named, else one on the drive's NUMA node.
pub(super) fn resolve(
    requested: &JobSpec,
    path: &PathInfo,
    far: &[Gpu],
    ground: &Ground,
    facts: &Facts<'_>,
) -> Result<Option<Via>, PlanError> {
    let (true, Gpus::Present(present)) = (path.via_gpu, facts.gpus) else {
        return Ok(None);
    };
    let (gpu, why) = match requested.via_gpu {
        Some(index) => (named(requested, index, present)?, None),
        None => by_node(requested, ground, present, facts)?,
    };
    if far.iter().any(|far| far.index == gpu.index) {
        let found = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let what = format!(
            "path {} takes the bytes through GPU {}{found} to another GPU, and the job's bytes end \
             on GPU {}: that is path staged. Name the far GPU with --gpu, or another near one \
             with --via-gpu",
            path.name, gpu.index, gpu.index
        );
        return Err(PlanError::usage(requested, "via_gpu", what));
    }
    Ok(Some(Via { gpu, why, any: requested.via_peer == Some(ViaPeer::Any) }))
}

fn named(requested: &JobSpec, index: u32, present: &[Gpu]) -> Result<Gpu, PlanError> {
    present.iter().find(|gpu| gpu.index == index).cloned().ok_or_else(|| {
        PlanError::unavailable(requested, "via_gpu", super::job::no_gpu(index, present))
    })
}

/// The first GPU on the node of the drive, and the reason.
fn by_node(
    requested: &JobSpec,
    ground: &Ground,
    present: &[Gpu],
    facts: &Facts<'_>,
) -> Result<(Gpu, Option<String>), PlanError> {
    // All files of a job lie beneath one directory, or the first that was named stands for them.
    let place = ground.directory.as_ref().or(ground.paths.first());
    let node = place.and_then(|place| facts.targets.drive_node(place));
    let near = present.iter().find(|gpu| node.is_some() && gpu.numa_node == node);
    let (Some(gpu), Some(node)) = (near, node) else {
        let why = match node {
            Some(node) => format!("no GPU is known to be on the drive's NUMA node {node}"),
            None => "this machine does not report the drive's NUMA node".to_owned(),
        };
        let what = format!(
            "path routed needs a GPU near the drive, and {why}; name it with \
             --via-gpu=N"
        );
        return Err(PlanError::usage(requested, "paths", what));
    };
    Ok((gpu.clone(), Some(format!("it is on the drive's NUMA node {node}"))))
}
