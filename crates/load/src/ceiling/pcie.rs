//! The PCIe links between a device and the processor: generation times width, the lowest of them.

use std::path::Path;

use gpuio_host::Root;
use gpuio_host::pci::{self, PciFunction};
use gpuio_job::plan::ceiling::drive_paths;
use gpuio_record::{CeilingPlan, JobPlan};

use super::{Bench, Reading};

/// With several GPUs the sum: each has a link of its own, and what they share further up is in the
/// lowest of each.
pub(super) fn find_gpu(
    plan: &CeilingPlan,
    job: &JobPlan,
    bench: &mut dyn Bench,
) -> Result<Reading, String> {
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

pub(super) fn find_nvme(
    _: &CeilingPlan,
    job: &JobPlan,
    bench: &mut dyn Bench,
) -> Result<Reading, String> {
    let mut drives: Vec<(String, String)> = Vec::new();
    for place in drive_paths(job) {
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
        return Err(format!("{shown} is on no block device of this machine"));
    };
    while device.members.len() == 1 {
        device = device.members.remove(0);
    }
    let name = device.disk.clone().unwrap_or_else(|| device.name.clone());
    if device.members.len() > 1 {
        let count = device.members.len();
        return Err(format!("{name}, the device of {shown}, is made of {count} devices"));
    }
    if !name.starts_with("nvme") || device.transport.as_deref().is_some_and(|way| way != "pcie") {
        return Err(format!("{name}, the device of {shown}, is not an NVMe drive on PCIe"));
    }
    match device.pci_address {
        Some(address) => Ok((name, address)),
        None => Err(format!(
            "the kernel does not report the PCIe address of {name}, the device of {shown}"
        )),
    }
}

fn above(root: &Root, address: &str) -> Result<(f64, String), String> {
    let way = pci::way_up(root, address).map_err(|error| error.to_string())?;
    let way = way.ok_or_else(|| format!("the kernel shows no PCI device {address}"))?;
    lowest(&way).ok_or_else(|| {
        format!(
            "the kernel does not report the PCIe links above {address}, as in many virtual machines"
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
        words.push_str(&format!("; {unknown} of {} links on the path unknown", way.len()));
    }
    Some((rate, words))
}

/// The most that one end of a link can do, at the width it came up with: width is fixed when the
/// link trains, speed rises and falls with the load.
fn rate(function: &PciFunction) -> Option<(f64, String)> {
    let speed = function.most.mega_transfers.or(function.now.mega_transfers)?;
    let width = function.now.width.or(function.most.width)?;
    let generation = gpuio_base::units::pcie_generation(speed)?;
    let rate = gpuio_base::units::pcie_bytes_per_second(speed, width)?;
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
