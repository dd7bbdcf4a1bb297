//! Rules about links: PCIe of GPUs, and the network card under NFS.

use std::collections::BTreeSet;

use gpuio_record::{Gpu as RequestedGpu, JobPlan, NOISE_BYTES, WarningKind};

use super::counted::{Gpu, Link};
use super::{GroupContext, float, whole};
use crate::evidence::group::{FLOWS, Flow};

/// A GPU at rest carries less than 1 MB/s (dcgmi on a DGX-2 and a DGX A100: 0.06 to 0.9 MB/s).
const AT_REST_PER_S: f64 = 16e6;

/// GPUs' PCIe links: those that were not requested, and those that were.
///
/// Another GPU is named from a tenth of the load on. A link that was requested should carry the
/// load with up to a quarter of packet headers and requests on top (13 % on a DGX-2), or more
/// where others use the GPU too; below half it went elsewhere. Rates that the driver sampled over
/// 20 ms show nothing of the link's whole time, and are used for other GPUs only.
pub(super) fn gpus(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let requested: Vec<&RequestedGpu> = group.moving().flat_map(|(job, _)| of_job(job)).collect();
    let seconds = group.counted.seconds;
    if requested.is_empty() || seconds <= 0.0 || requested.iter().any(|gpu| gpu.software) {
        return Vec::new();
    }
    let per_s = |flow| float(group.bytes_in_window(flow, |_, _| true)) / seconds;
    let load = per_s(Flow::Read) + per_s(Flow::Write);
    let is_requested =
        |gpu: &&Gpu| requested.iter().any(|one| gpu.uuid.as_ref() == Some(&one.uuid));
    let indices: BTreeSet<u32> =
        group.counted.gpus.iter().filter(is_requested).map(|gpu| gpu.index).collect();
    let mut found = Vec::new();
    // Without the numbers of ours, no other can be distinguished from them.
    if !indices.is_empty() {
        for gpu in group.counted.gpus.iter().filter(|gpu| !is_requested(gpu)) {
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
    found
        .extend(FLOWS.into_iter().filter_map(|flow| Some((None, less(group, flow, per_s(flow))?))));
    found
}

fn of_job(job: &JobPlan) -> impl Iterator<Item = &RequestedGpu> {
    job.gpus.iter().chain(job.via.iter().map(|via| &via.gpu))
}

/// The links of the GPUs requested together, where they carried less than half of a direction.
fn less(group: &GroupContext<'_>, flow: Flow, load: f64) -> Option<WarningKind> {
    let mut uuids: Vec<&String> = Vec::new();
    for (job, _) in group.moving() {
        // A GPU on the route carries the bytes too, and host memory is no GPU's.
        if job.via.is_some() || job.path.choice.actual == "host" {
            return None;
        }
        uuids.extend(job.gpus.iter().map(|gpu| &gpu.uuid));
    }
    uuids.sort();
    uuids.dedup();
    let of = |uuid: &&String| {
        let gpu = group.counted.gpus.iter().find(|gpu| gpu.uuid.as_ref() == Some(uuid))?;
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

/// The network card against the bytes of NFS mounts over it.
///
/// Headers of Ethernet, IP, TCP and RPC are 4 to 7 % of full packets (66 of 1514 bytes at an MTU
/// of 1500), and a little is sent again: up to a fifth over is no finding. Below nine tenths, bytes
/// came by another path.
pub(super) fn network(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let links = group.counted.links.iter();
    links.flat_map(|link| FLOWS.map(|flow| off(group, link, flow))).flatten().collect()
}

fn off(group: &GroupContext<'_>, link: &Link, flow: Flow) -> Option<(Option<usize>, WarningKind)> {
    let (bytes, counted) = match flow {
        Flow::Read => (link.nfs_read_bytes, link.received_bytes),
        Flow::Write => (link.nfs_written_bytes, link.sent_bytes),
    };
    let slack = float(NOISE_BYTES);
    let fits = counted >= bytes * 0.9 - slack && counted <= bytes * 1.2 + slack;
    // A direction in which nothing was requested is the other's acknowledgements.
    if fits || bytes < slack || group.counted.seconds <= 0.0 {
        return None;
    }
    let kind = WarningKind::LinkDisagrees {
        link: link.name.clone(),
        direction: flow.name().to_owned(),
        bytes_per_s: whole(bytes / group.counted.seconds),
        counted_bytes_per_s: whole(counted / group.counted.seconds),
    };
    Some((None, kind))
}
