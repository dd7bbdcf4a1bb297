//! GPU INFO and PLATFORM INFO.

use gpuio_record::facts::{Bar1Facts, Fact, GdsCheck, GdsGpu, GdsNote, GpuFacts, Machine};

use super::Software;
use crate::check::machine::{
    KERNEL_NOT_READ, count, kernel_was_read, module, modules_not_read, modules_were_read,
};
use crate::check::rule::acs;

/// A line per GPU, in the order of the list: by PCI address.
pub(super) fn gpus(machine: &Machine) -> Vec<GdsGpu> {
    machine.gpus.iter().map(|gpu| one(machine, gpu)).collect()
}

fn one(machine: &Machine, gpu: &GpuFacts) -> GdsGpu {
    let bytes = |bar1: &Bar1Facts| Fact::Known(bar1.total_bytes);
    GdsGpu {
        index: gpu.index.clone(),
        name: gpu.name.clone(),
        bar1_bytes: match &gpu.bar1 {
            Fact::Known(bar1) => bytes(bar1),
            Fact::Unknown(why) => Fact::unknown(why.clone()),
        },
        // Without the words that scripts look for.
        support: Fact::unknown("only NVIDIA's library knows whether it supports this GPU"),
        iommu: of_gpu(machine, gpu),
    }
}

/// In gdscheck's words, which do not distinguish passing through from translating.
fn of_gpu(machine: &Machine, gpu: &GpuFacts) -> Fact<String> {
    let pci = gpu.pci.as_deref().and_then(|address| machine.function(address));
    match pci {
        Some(function) if function.iommu_group.is_some() => {
            Fact::Known("Pass-through or Enabled".to_owned())
        }
        Some(_) if kernel_was_read(machine) => Fact::Known("Disabled".to_owned()),
        _ => Fact::unknown(KERNEL_NOT_READ),
    }
}

pub(super) fn iommu(machine: &Machine) -> Fact<String> {
    let grouped = machine.pci.iter().any(|function| function.iommu_group.is_some());
    if grouped || !machine.settings.iommu_units.is_empty() {
        Fact::Known("Pass-through or enabled".to_owned())
    } else if kernel_was_read(machine) && machine.listed.pci {
        Fact::Known("disabled".to_owned())
    } else {
        Fact::unknown(KERNEL_NOT_READ)
    }
}

/// Bridges above GPUs, drives and cards that redirect, and what could not be seen.
pub(super) fn acs(machine: &Machine) -> (Vec<String>, Vec<GdsNote>) {
    let bridges = acs::bridges(machine);
    let on = bridges.iter().filter(|bridge| bridge.acs.known().is_some_and(acs::redirects));
    let on = on.map(|bridge| bridge.address.clone()).collect();
    let hidden: Vec<_> = bridges.iter().filter_map(|bridge| bridge.acs.why()).collect();
    let note = hidden.first().map(|why| GdsNote {
        line: 0,
        text: format!("note: ACS of {} is not known: {why}", count(hidden.len(), "bridge")),
    });
    (on, note.into_iter().collect())
}

pub(super) fn driver_status(machine: &Machine, software: &Software) -> Fact<String> {
    if !modules_were_read(machine) {
        return Fact::unknown(modules_not_read(machine));
    }
    if !module(machine, "nvidia").is_some_and(|module| module.loaded) {
        return Fact::Known("Unsupported (NVIDIA's driver is not loaded)".to_owned());
    }
    match &software.open_driver {
        // Word for word: scripts look for it.
        Fact::Known(true) => Fact::Known("Supported(Nvidia Open Driver Installed)".to_owned()),
        Fact::Known(false) => {
            Fact::unknown("NVIDIA's driver is the closed one, which releases treat differently")
        }
        Fact::Unknown(why) => Fact::unknown(format!("whether the driver is the open one, {why}")),
    }
}

pub(super) fn product(machine: &Machine, software: &Software) -> Fact<String> {
    let kernel = &machine.host.kernel;
    let Some(release) = &kernel.release else { return Fact::unknown(KERNEL_NOT_READ) };
    let product = kernel.containment.product.as_deref().unwrap_or("product not reported");
    let arch = software.architecture.known().map_or("not reported", String::as_str);
    Fact::Known(format!("{product}, Arch: {arch}(Linux {release})"))
}

/// Whether the platform is fit, which gdscheck reports of nearly all. It does not apply where there
/// is no GPU. It failed where there is no driver, or where no kind of storage can be opened; it
/// succeeded where the driver shows the GPUs and at least one kind of storage can reach them;
/// else it is unknown.
pub(super) fn verification(machine: &Machine, check: &GdsCheck) -> Fact<String> {
    let failed = || Fact::Known("failed".to_owned());
    let storage = || check.drivers.iter().take(super::drivers::STORAGE.len());
    if machine.gpus.is_empty() && machine.listed.pci {
        return Fact::unknown("not applicable, as no NVIDIA GPU is here");
    }
    let values: Vec<&Fact<String>> = storage().map(|line| &line.value).collect();
    if values.iter().all(|value| value.known().is_some_and(|word| word == "Unsupported")) {
        return failed();
    }
    let open = |value: &&Fact<String>| value.known().is_some_and(|word| word != "Unsupported");
    if values.iter().any(open) {
        return Fact::Known("succeeded".to_owned());
    }
    let why = values.iter().find_map(|value| value.why()).unwrap_or("no storage is known");
    Fact::unknown(why)
}
