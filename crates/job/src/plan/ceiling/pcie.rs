//! The theoretical ceiling of PCIe: generation times width of the links between a device and the
//! processor, the lowest of them. The run reads them.

use std::path::{Path, PathBuf};

use gpuio_record::{CeilingKind, CeilingSource, DirectMode, JobPlan, TargetKind, TargetPlan};

use super::{CeilingContext, CeilingEntry, Same, Want};

pub(super) const GPU: CeilingEntry =
    CeilingEntry { kind: CeilingKind::PcieGpu, plan: plan_gpu, load: None };
pub(super) const NVME: CeilingEntry =
    CeilingEntry { kind: CeilingKind::PcieNvme, plan: plan_nvme, load: None };

fn plan_gpu(context: &CeilingContext<'_>) -> Vec<Want> {
    let job = context.job;
    if !context.ends_in_gpu_memory() || job.gpus.is_empty() {
        return Vec::new();
    }
    let indices: Vec<String> = context.gpus().iter().map(|gpu| gpu.index.to_string()).collect();
    let software = job.gpus.iter().any(|gpu| gpu.software);
    let mut plan =
        context.ceiling(CeilingKind::PcieGpu, format!("pcie above GPU {}", indices.join(",")));
    plan.gpus = context.gpus().iter().map(|gpu| gpu.index).collect();
    plan.threads = None;
    plan.software_gpu = software;
    plan.what = "speed and width of the PCIe links above the GPU, before packet headers".to_owned();
    plan.source = match software {
        true => CeilingSource::Absent { why: "no PCIe link leads to a software GPU".to_owned() },
        false => CeilingSource::Theory,
    };
    let same = Same::Thing(plan.name.clone());
    vec![Want { plan, same }]
}

/// Only for O_DIRECT: what the page cache holds has no link to cross.
fn plan_nvme(context: &CeilingContext<'_>) -> Vec<Want> {
    let job = context.job;
    if job.direct != DirectMode::Direct || job.engine.actual == "null" {
        return Vec::new();
    }
    let places = drive_paths(job);
    let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let name = format!("pcie above the drive of {}", names.join(", "));
    let mut plan = context.ceiling(CeilingKind::PcieNvme, name);
    plan.threads = None;
    plan.what =
        "speed and width of the PCIe links above the NVMe drive, before packet headers".to_owned();
    plan.source = CeilingSource::Theory;
    let same = Same::Thing(plan.name.clone());
    vec![Want { plan, same }]
}

/// The directory of each file, and each device, once.
pub fn drive_paths(job: &JobPlan) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    let place = |target: &TargetPlan| match (target.kind, Path::new(&target.path).parent()) {
        (TargetKind::BlockDevice, _) | (_, None) => PathBuf::from(&target.path),
        (TargetKind::File, Some(above)) if above.as_os_str().is_empty() => PathBuf::from("."),
        (TargetKind::File, Some(above)) => above.to_owned(),
    };
    for place in job.targets.iter().map(place) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}
