//! cuFile, direct by the kernel's own peer-to-peer DMA.

use gpuio_base::cufilejson;
use gpuio_record::facts::Fact;

use super::{Mode, shared};
use crate::check::configuration::{Setting, p2pdma, switch};
use crate::check::gdscheck::interpret::printed;
use crate::check::machine::{linux, module, root_port};
use crate::check::verdict::layer::{self, Disk};
use crate::check::verdict::{About, Answer, Gpu, Need, Pair, gpu};

pub(super) const MODE: Mode = Mode {
    name: "p2pdma",
    is: "cuFile, direct between drive and GPU by the kernel's peer-to-peer DMA",
    source: "NVIDIA, GDS Support for NVMe Drives Using Linux PCI P2PDMA; NVIDIA, GPUDirect Storage \
             Installation and Troubleshooting Guide, NVMe P2PDMA Troubleshooting (CUDA 12.8); \
             NVIDIA, gds-diag (RAID0: Grace, or Linux 7.1); \
             Documentation/driver-api/pci/p2pdma.rst",
    needs,
};

/// The switch of the mode in cuFile's file.
const SWITCH: &str = "properties.use_pci_p2pdma";

fn needs(pair: &Pair<'_>) -> Vec<Need> {
    let file_system = shared::local_file_system(pair);
    let local = file_system.met == Answer::Yes;
    let mut needs = vec![gpu::real(pair)];
    if matches!(pair.gpu, Gpu::Real(_)) {
        needs.push(gpu::listed(pair));
        needs.extend(gpu::open_driver(pair));
        needs.push(static_bar1(pair));
    }
    needs.push(kernel(pair));
    needs.extend(release(pair));
    needs.push(file_system);
    needs.push(shared::not_forced(pair));
    needs.push(switched_on((SWITCH, p2pdma(pair.machine))));
    if local {
        let release = linux(pair.machine);
        needs.extend(shared::layers(pair, |name, level| array(name, level, release)));
        needs.extend(routes(pair));
        needs.extend(multipath(pair));
        needs.push(meeting(pair));
    }
    needs.push(shared::udev(pair));
    let printed = shared::nothing_direct(pair);
    needs.extend(printed.map(|need| need.fix("`gdscheck -p` again: it has to name p2pdma")));
    needs
}

/// That a release of GDS that gdscheck printed knows the mode: its switch came with one.
fn release(pair: &Pair<'_>) -> Option<Need> {
    let (check, printed) = printed(pair.machine)?;
    let here = check.release.known()?;
    let first = cufilejson::find(SWITCH).and_then(|key| key.since)?;
    let numbers = |text: &str| -> Option<(u32, u32)> {
        let mut parts = text.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next()??))
    };
    let is_older = numbers(here)? < numbers(first)?;
    let found = format!("{printed} `GDS release version: {here}`");
    Some(match is_older {
        true => Need::no(About::Library, format!("{found}; {first} was the first with this mode"))
            .fix(format!("install cuFile of GDS {first} or later")),
        false => Need::yes(About::Library, found),
    })
}

fn kernel(pair: &Pair<'_>) -> Need {
    match linux(pair.machine) {
        None => return Need::unknown(About::Kernel, "the kernel's release is not reported"),
        Some((major, minor)) if (major, minor) < (6, 2) => {
            return Need::no(About::Kernel, format!("Linux {major}.{minor}; 6.2 was the first"))
                .fix("use 6.2 or later");
        }
        Some(_) => {}
    }
    let option = pair.machine.config.options.get("CONFIG_PCI_P2PDMA").map(String::as_str);
    match (option, pair.machine.config.source.why()) {
        (Some("y"), _) => Need::yes(About::Kernel, "Linux 6.2 or later with CONFIG_PCI_P2PDMA"),
        (Some(_), _) => {
            Need::no(About::Kernel, "CONFIG_PCI_P2PDMA is off").fix("use a kernel that has it")
        }
        (None, why) => Need::unknown(
            About::Kernel,
            format!(
                "whether the kernel has CONFIG_PCI_P2PDMA is not known: {}",
                why.unwrap_or("the option is not in its configuration")
            ),
        )
        .fix("`grep p2pdma_pgmap_ops /proc/kallsyms`"),
    }
}

fn static_bar1(pair: &Pair<'_>) -> Need {
    let parameters = module(pair.machine, "nvidia").map(|module| &module.parameters);
    let fix = "`options nvidia NVreg_RegistryDwords=\"RMForceStaticBar1=1;\
                RmForceDisableIomapWC=1;\"` in /etc/modprobe.d, then boot";
    // An empty string is not kept among the parameters: with others there, it was empty.
    match parameters.filter(|parameters| !parameters.is_empty()) {
        None => Need::unknown(
            About::Driver,
            "whether NVIDIA's driver has RMForceStaticBar1=1 is not known",
        )
        .fix(fix),
        Some(all)
            if all.get("RegistryDwords").is_some_and(|w| w.contains("RMForceStaticBar1=1")) =>
        {
            Need::yes(
                About::Driver,
                "NVIDIA's driver maps all GPU memory at once (RMForceStaticBar1)",
            )
        }
        Some(_) => {
            Need::no(About::Driver, "NVIDIA's driver does not have RMForceStaticBar1=1").fix(fix)
        }
    }
}

fn switched_on((path, setting): (&str, Setting<bool>)) -> Need {
    match setting.value {
        Fact::Known(true) => {
            Need::yes(About::Configuration, format!("{path} is on ({})", setting.from))
        }
        Fact::Known(false) => {
            Need::no(About::Configuration, format!("{path} is off ({})", setting.from))
                .fix(format!("set {path} to true in cufile.json"))
        }
        Fact::Unknown(why) => Need::unknown(About::Configuration, why),
    }
}

/// The switch of each kind of storage on the path: without it cuFile does not take this mode there.
fn routes(pair: &Pair<'_>) -> Vec<Need> {
    let all = layer::below(pair.machine, pair.mount);
    let disks: Vec<Disk> =
        all.iter().filter(|one| layer::is_disk(one)).map(|one| layer::disk(one)).collect();
    let has_array = all.iter().any(|one| one.array.is_some());
    let wanted = [
        (disks.contains(&Disk::Nvme), "block.nvme.use_pci_p2pdma"),
        (disks.contains(&Disk::NvmeRdma), "block.nvmeof.use_pci_p2pdma"),
        (has_array, "block.raid.use_pci_p2pdma"),
    ];
    let wanted = wanted.into_iter().filter(|(there, _)| *there);
    // No variable stands above these.
    let switch = |path| (path, switch(pair.machine, path, "", false));
    wanted.map(|(_, path)| switched_on(switch(path))).collect()
}

/// That NVMe's own multipath is off, unless all drives are others.
fn multipath(pair: &Pair<'_>) -> Option<Need> {
    let all = layer::below(pair.machine, pair.mount);
    let mut disks = all.iter().filter(|one| layer::is_disk(one)).map(|one| layer::disk(one));
    let is_other = |disk: Disk| disk == Disk::Other;
    if disks.next().is_some_and(is_other) && disks.all(is_other) {
        return None;
    }
    let nvme = module(pair.machine, "nvme_core");
    Some(match nvme.and_then(|nvme| nvme.parameters.get("multipath")).map(String::as_str) {
        Some("N") => Need::yes(About::Storage, "NVMe's own multipath is off"),
        Some(_) => Need::no(About::Storage, "NVMe's own multipath is on (nvme_core.multipath)")
            .fix("boot with nvme_core.multipath=N"),
        None => Need::unknown(About::Storage, "the setting of NVMe's own multipath is not known"),
    })
}

/// The kernel lets peers meet below one switch, or across host bridges that it knows.
fn meeting(pair: &Pair<'_>) -> Need {
    let Gpu::Real(gpu) = pair.gpu else { return gpu::real(pair) };
    let machine = pair.machine;
    let disks = layer::below(machine, pair.mount).into_iter().filter(|disk| layer::is_disk(disk));
    let disks: Vec<_> = disks.collect();
    let drives: Vec<&str> = disks.iter().flat_map(|disk| &disk.pci).map(String::as_str).collect();
    let at = |address: &str| root_port(machine, address);
    let lost = layer::cut_off(machine, pair.mount).is_some();
    if lost || drives.is_empty() || disks.iter().any(|disk| disk.pci.is_empty()) {
        let why = "the PCIe paths from the drives to their root ports are not known";
        return Need::unknown(About::Pcie, why);
    }
    let Some(gpu_at) = gpu.pci.as_deref().and_then(at) else {
        return Need::unknown(
            About::Pcie,
            "the PCIe path from the GPU to its root port is not known",
        );
    };
    let drives: Option<Vec<_>> = drives.into_iter().map(at).collect();
    let Some(drives) = drives else {
        let why = "the PCIe paths from the drives to their root ports are not known";
        return Need::unknown(About::Pcie, why);
    };
    let far: Vec<_> = drives.into_iter().filter(|drive| *drive != gpu_at).collect();
    if far.is_empty() {
        return Need::yes(About::Pcie, "GPU and drives meet below one root port");
    }
    Need::unknown(About::Pcie, format!(
        "{} and the GPU meet in the root complex, which the kernel allows for host bridges that it \
         knows alone",
        crate::check::machine::count(far.len(), "drive")
    ))
    .fix("confirm it with --prove; the list is in drivers/pci/p2pdma.c, pci_p2pdma_whitelist")
}

fn array(name: &str, level: &str, linux: Option<(u32, u32)>) -> Need {
    match (level, linux) {
        ("raid0", Some(release)) if release >= (7, 1) => {
            Need::yes(About::Storage, format!("{name} is a RAID0"))
        }
        ("raid0", Some((major, minor))) => Need::no(
            About::Storage,
            format!("{name} is a RAID0, which needs Linux 7.1 (here {major}.{minor})"),
        ),
        ("raid0", None) => {
            Need::unknown(About::Storage, format!("{name} is a RAID0, which needs Linux 7.1"))
        }
        (other, _) => {
            Need::no(About::Storage, format!("{name} is {other}: of arrays only RAID0 can"))
        }
    }
}
