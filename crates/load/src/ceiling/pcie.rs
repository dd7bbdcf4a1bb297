//! What PCIe gives in theory: generation times width of the links between a device and the
//! processor, the lowest of them.

use std::path::{Path, PathBuf};

use gpuio_host::Root;
use gpuio_host::pci::{self, PciFunction};
use gpuio_record::{
    CeilingKind, CeilingPlan, CeilingSource, DirectMode, JobPlan, TargetKind, TargetPlan,
};

use super::{Bench, CeilingContext, CeilingEntry, Reading, Same, Want};

pub(super) const GPU: CeilingEntry =
    CeilingEntry { kind: CeilingKind::PcieGpu, plan: plan_gpu, find: find_gpu };
pub(super) const NVME: CeilingEntry =
    CeilingEntry { kind: CeilingKind::PcieNvme, plan: plan_nvme, find: find_nvme };

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
    let places = paths_of(job);
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
fn paths_of(job: &JobPlan) -> Vec<PathBuf> {
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

/// With several GPUs the sum: each has a link of its own, and what they share further up is in the
/// lowest of each.
fn find_gpu(plan: &CeilingPlan, job: &JobPlan, bench: &mut dyn Bench) -> Result<Reading, String> {
    let mut bytes_per_s = 0.0;
    let mut words: Vec<String> = Vec::new();
    for index in &plan.gpus {
        let Some(gpu) = job.gpus.iter().find(|gpu| gpu.index == *index) else { continue };
        let (rate, link) = above(bench.root(), &gpu.pci)?;
        bytes_per_s += rate;
        words.push(link);
    }
    Ok(Reading { bytes_per_s, iops: None, detail: Some(words.join("; ")) })
}

fn find_nvme(_: &CeilingPlan, job: &JobPlan, bench: &mut dyn Bench) -> Result<Reading, String> {
    let mut drives: Vec<(String, String)> = Vec::new();
    for place in paths_of(job) {
        let drive = drive(bench.root(), &place)?;
        if !drives.contains(&drive) {
            drives.push(drive);
        }
    }
    match drives.as_slice() {
        [(name, address)] => {
            let (bytes_per_s, link) = above(bench.root(), address)?;
            Ok(Reading { bytes_per_s, iops: None, detail: Some(format!("{name}: {link}")) })
        }
        several => Err(format!(
            "the files lie on {} drives, and which of them an I/O asks is not known",
            several.len()
        )),
    }
}

/// Name and PCI address of the one NVMe drive behind a path.
fn drive(root: &Root, place: &Path) -> Result<(String, String), String> {
    let shown = place.display();
    let storage = gpuio_host::target_storage(root, place, &mut Vec::new());
    let Some(mut device) = storage.device else {
        return Err(format!("no block device of this machine is behind {shown}"));
    };
    while device.members.len() == 1 {
        device = device.members.remove(0);
    }
    let name = device.disk.clone().unwrap_or_else(|| device.name.clone());
    if device.members.len() > 1 {
        let count = device.members.len();
        return Err(format!("{name} behind {shown} is made of {count} devices"));
    }
    if !name.starts_with("nvme") || device.transport.as_deref().is_some_and(|way| way != "pcie") {
        return Err(format!("{name} behind {shown} is no NVMe drive on PCIe"));
    }
    match device.pci_address {
        Some(address) => Ok((name, address)),
        None => Err(format!("the kernel does not say where {name} behind {shown} hangs")),
    }
}

fn above(root: &Root, address: &str) -> Result<(f64, String), String> {
    let way = pci::way_up(root, address).map_err(|error| error.to_string())?;
    let way = way.ok_or_else(|| format!("the kernel shows no PCI device {address}"))?;
    lowest(&way).ok_or_else(|| {
        format!(
            "the kernel says nothing of the PCIe links above {address}, as in many virtual machines"
        )
    })
}

/// The lowest link of a route in bytes per second of one direction, and that link in words. Both
/// ends of a link are functions of the route, so the lower of their two bounds is the link's.
pub(super) fn lowest(way: &[PciFunction]) -> Option<(f64, String)> {
    let known = way.iter().filter_map(|function| Some((function, rate(function)?)));
    let (function, (rate, words)) = known.min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
    let unknown = way.iter().filter(|function| self::rate(function).is_none()).count();
    let mut words = format!("{} {words}", function.address);
    if unknown > 0 {
        words.push_str(&format!("; {unknown} of {} links on the way unknown", way.len()));
    }
    Some((rate, words))
}

/// The most that one end of a link can do, at the width it came up with: width is fixed when the
/// link trains, speed rises and falls with the load.
fn rate(function: &PciFunction) -> Option<(f64, String)> {
    let speed = function.most.mega_transfers.or(function.now.mega_transfers)?;
    let width = function.now.width.or(function.most.width)?;
    let generation = gpuio_units::pcie_generation(speed)?;
    let rate = gpuio_units::pcie_bytes_per_second(speed, width)?;
    #[expect(clippy::cast_precision_loss, reason = "figures of a few digits")]
    let rate = rate as f64;
    let mut words = format!("PCIe {generation}.0 x{width}");
    if let Some(most) = function.most.width.filter(|most| *most > width) {
        words.push_str(&format!(" (could be x{most})"));
    }
    if let Some(now) = function.now.mega_transfers.filter(|now| *now < speed) {
        let (whole, part) = (now / 1000, now % 1000 / 100);
        words.push_str(&format!(" (at {whole}.{part} GT/s when read: an idle link may slow down)"));
    }
    Some((rate, words))
}
