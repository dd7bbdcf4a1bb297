//! GPUs' PCIe links: those that were not requested, and those that were.

use std::collections::BTreeSet;

use gpuio_record::{Gpu as Asked, WarningKind};

use super::counted::Gpu;
use super::{FLOWS, Flow, GroupContext, float, whole};

/// A GPU at rest carries less than 1 MB/s (dcgmi on a DGX-2 and a DGX A100: 0.06 to 0.9 MB/s).
const AT_REST_PER_S: f64 = 16e6;

/// Another GPU is named from a tenth of the load on. A link that was requested should carry the
/// load with up to a quarter of packet headers and requests on top (13 % on a DGX-2), or more
/// where others use the GPU too; below half it went elsewhere. Rates that the driver sampled over
/// 20 ms say nothing of the link's whole time, and are used for other GPUs only.
pub(super) fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let requested: Vec<&Asked> = seen.moving().flat_map(|(job, _)| gpus(job)).collect();
    let seconds = seen.counted.seconds;
    if requested.is_empty() || seconds <= 0.0 || requested.iter().any(|gpu| gpu.software) {
        return Vec::new();
    }
    let per_s = |flow| float(seen.bytes(flow)) / seconds;
    let load = per_s(Flow::Read) + per_s(Flow::Write);
    let is_asked = |gpu: &&Gpu| requested.iter().any(|one| gpu.uuid.as_ref() == Some(&one.uuid));
    let indices: BTreeSet<u32> =
        seen.counted.gpus.iter().filter(is_asked).map(|gpu| gpu.index).collect();
    let mut found = Vec::new();
    // Without the numbers of ours, no other can be distinguished from them.
    if !indices.is_empty() {
        for gpu in seen.counted.gpus.iter().filter(|gpu| !is_asked(gpu)) {
            let carried = gpu.received_per_s.max(gpu.sent_per_s);
            if carried >= AT_REST_PER_S && carried >= load / 10.0 {
                let kind = WarningKind::OtherGpu {
                    requested: indices.iter().copied().collect(),
                    other: gpu.index,
                    other_bytes_per_s: whole(carried),
                    bytes_per_s: whole(load),
                };
                found.push((None, kind));
            }
        }
    }
    found.extend(FLOWS.into_iter().filter_map(|flow| Some((None, less(seen, flow, per_s(flow))?))));
    found
}

fn gpus(job: &gpuio_record::JobPlan) -> impl Iterator<Item = &Asked> {
    job.gpus.iter().chain(job.via.iter().map(|via| &via.gpu))
}

/// The links of the GPUs requested together, where they carried less than half of a direction.
fn less(seen: &GroupContext<'_>, flow: Flow, load: f64) -> Option<WarningKind> {
    let mut uuids: Vec<&String> = Vec::new();
    for (job, _) in seen.moving() {
        // A GPU on the route carries the bytes too, and host memory is no GPU's.
        if job.via.is_some() || job.path.choice.actual == "host" {
            return None;
        }
        uuids.extend(job.gpus.iter().map(|gpu| &gpu.uuid));
    }
    uuids.sort();
    uuids.dedup();
    let of = |uuid: &&String| {
        let gpu = seen.counted.gpus.iter().find(|gpu| gpu.uuid.as_ref() == Some(uuid))?;
        (!gpu.sampled).then_some(gpu)
    };
    let links: Vec<&Gpu> = uuids.iter().map(of).collect::<Option<_>>()?;
    let carried: f64 = links
        .iter()
        .map(|gpu| if flow == Flow::Read { gpu.received_per_s } else { gpu.sent_per_s })
        .sum();
    let names: Vec<String> = links.iter().map(|gpu| format!("GPU {}", gpu.index)).collect();
    (load >= AT_REST_PER_S && carried < load / 2.0).then(|| WarningKind::LinkDisagrees {
        link: format!("{} (PCIe)", names.join(", ")),
        direction: flow.name().to_owned(),
        bytes_per_s: whole(load),
        counted_bytes_per_s: whole(carried),
    })
}
