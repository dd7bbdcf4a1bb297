//! The aspects that are compared between hosts.

use gpuio_base::units::{format_bytes, human_bytes};
use gpuio_record::facts::{
    BlockKind, Fact, GpuFacts, Machine, MountKind, MountedStorage, NicFacts,
};

/// A part's name and its value; no value where it is not known.
type Parts = Vec<(String, Option<String>)>;

/// Facts that hosts of one kind have alike.
#[derive(Debug, Clone, Copy)]
pub struct Aspect {
    pub name: &'static str,
    /// Whether a host that lacks the part differs. One aspect of each kind of part reports that it
    /// is missing; the others compare the hosts that have it.
    pub(super) presence: bool,
    /// The parts of a machine with their values; the whole machine has an empty name.
    pub(super) read: fn(&Machine) -> Parts,
}

/// The aspects, in the order in which differences are printed: hardware first.
pub const ASPECTS: &[Aspect] = &[
    Aspect { name: "machine", presence: false, read: product },
    Aspect { name: "processors", presence: false, read: processors },
    Aspect { name: "memory", presence: false, read: memory },
    Aspect { name: "GPU", presence: true, read: gpus },
    Aspect { name: "network card", presence: true, read: cards },
    Aspect { name: "drive", presence: true, read: drives },
    Aspect { name: "PCIe lanes", presence: false, read: lanes },
    Aspect { name: "PCIe speed", presence: false, read: speed },
    Aspect { name: "PCI address", presence: false, read: addresses },
    Aspect { name: "NUMA node", presence: false, read: nodes },
    Aspect { name: "printed distance", presence: false, read: distances },
    Aspect { name: "firmware", presence: false, read: firmware },
    Aspect { name: "network rate", presence: false, read: rates },
    Aspect { name: "network state", presence: false, read: states },
    Aspect { name: "MTU", presence: false, read: mtus },
    Aspect { name: "BAR1", presence: false, read: bar1 },
    Aspect { name: "kernel", presence: false, read: kernel },
    Aspect { name: "module", presence: true, read: modules },
    Aspect { name: "gdscheck", presence: false, read: gdscheck },
    Aspect { name: "module parameters", presence: false, read: parameters },
    Aspect { name: "kernel command line", presence: false, read: command_line },
    Aspect { name: "mount", presence: true, read: mounts },
    Aspect { name: "mount option", presence: false, read: mount_options },
    Aspect { name: "scheduler", presence: false, read: schedulers },
    Aspect { name: "frequency governors", presence: false, read: governors },
    Aspect { name: "NUMA balancing", presence: false, read: balancing },
    Aspect { name: "huge pages", presence: false, read: huge_pages },
    Aspect { name: "ACS", presence: false, read: acs },
];

/// Cells of `nvidia-smi topo`, each pair once.
fn distances(machine: &Machine) -> Parts {
    let pairs = machine.printed.iter().filter(|one| one.row < one.column);
    pairs.map(|one| (format!("{}-{}", one.row, one.column), Some(one.cell.clone()))).collect()
}

fn whole(value: Option<String>) -> Parts {
    vec![(String::new(), value)]
}

fn product(machine: &Machine) -> Parts {
    let known = &machine.host.kernel.containment;
    let words = [&known.system_vendor, &known.product].map(|word| word.clone().unwrap_or_default());
    whole(Some(words.join(" ").trim().to_owned()).filter(|text| !text.is_empty()))
}

fn processors(machine: &Machine) -> Parts {
    let cpu = &machine.host.cpu;
    let count = cpu.online.as_ref().map(Vec::len);
    let model = cpu.model.as_deref().unwrap_or("model not known");
    whole(count.map(|count| format!("{count} × {model}")))
}

/// To whole GiB: firmware of equal machines reserves some MiB more or less.
fn memory(machine: &Machine) -> Parts {
    let text = |bytes: u64| human_bytes(((bytes + (1 << 29)) >> 30 << 30) as f64);
    whole(machine.host.memory.total_bytes.map(text))
}

/// `GPU0` by the driver's number, else by position: NVML may be absent on one host.
fn gpu_name(position: usize, gpu: &GpuFacts) -> String {
    let index = gpu.index.known().map_or(position, |index| *index as usize);
    format!("GPU{index}")
}

fn each_gpu(machine: &Machine, value: impl Fn(&GpuFacts) -> Option<String>) -> Parts {
    let gpus = machine.gpus.iter().enumerate();
    gpus.map(|(position, gpu)| (gpu_name(position, gpu), value(gpu))).collect()
}

fn gpus(machine: &Machine) -> Parts {
    each_gpu(machine, |gpu| gpu.name.known().cloned())
}

fn bar1(machine: &Machine) -> Parts {
    each_gpu(machine, |gpu| gpu.bar1.known().map(|bar1| format_bytes(bar1.total_bytes)))
}

/// Cards on PCI, by their RDMA device or interface.
fn named_cards(machine: &Machine) -> impl Iterator<Item = (String, &NicFacts)> {
    let cards = machine.nics.iter().filter(|nic| nic.pci.is_some());
    cards.map(|nic| (crate::check::machine::nic_name(nic).to_owned(), nic))
}

fn cards(machine: &Machine) -> Parts {
    let value = |(name, nic): (String, &NicFacts)| {
        let function = nic.pci.as_deref().and_then(|pci| machine.function(pci));
        let numbers = function.and_then(|one| Some((one.vendor?, one.device?)));
        (name, numbers.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}")))
    };
    named_cards(machine).map(value).collect()
}

fn firmware(machine: &Machine) -> Parts {
    let devices = machine.nics.iter().flat_map(|nic| &nic.rdma);
    devices.map(|rdma| (rdma.name.clone(), rdma.firmware.clone())).collect()
}

fn rates(machine: &Machine) -> Parts {
    let interfaces = machine.nics.iter().flat_map(|nic| &nic.interfaces);
    let interfaces = interfaces.map(|one| (one.name.clone(), one.megabits.map(gigabits)));
    let ports = machine.nics.iter().flat_map(|nic| &nic.rdma).flat_map(|rdma| {
        rdma.ports
            .iter()
            .map(|port| (format!("{} port {}", rdma.name, port.port), port.rate.clone()))
    });
    interfaces.chain(ports).collect()
}

fn gigabits(megabits: u64) -> String {
    if megabits.is_multiple_of(1000) {
        format!("{} Gb/s", megabits / 1000)
    } else {
        format!("{megabits} Mb/s")
    }
}

fn states(machine: &Machine) -> Parts {
    let interfaces = machine.nics.iter().flat_map(|nic| &nic.interfaces);
    interfaces.map(|one| (one.name.clone(), one.state.clone())).collect()
}

fn mtus(machine: &Machine) -> Parts {
    let interfaces = machine.nics.iter().flat_map(|nic| &nic.interfaces);
    interfaces.map(|one| (one.name.clone(), one.mtu_bytes.map(|mtu| mtu.to_string()))).collect()
}

fn drives(machine: &Machine) -> Parts {
    let disks = machine.block.iter().filter(|device| device.facts.kind == BlockKind::Disk);
    let value = |device: &gpuio_record::facts::BlockDevice| {
        let model = device.facts.model.clone()?;
        let size = device.facts.size_bytes.map(|bytes| human_bytes(bytes as f64));
        Some(size.map_or(model.clone(), |size| format!("{model}, {size}")))
    };
    disks.map(|disk| (disk.facts.name.clone(), value(disk))).collect()
}

/// GPUs, cards and drives with their PCI function.
fn on_pci(machine: &Machine) -> Vec<(String, &str)> {
    let gpus = machine.gpus.iter().enumerate();
    let gpus = gpus.filter_map(|(at, gpu)| Some((gpu_name(at, gpu), gpu.pci.as_deref()?)));
    let cards = named_cards(machine).filter_map(|(name, nic)| Some((name, nic.pci.as_deref()?)));
    let disks = machine.block.iter().filter(|device| device.facts.kind == BlockKind::Disk);
    let disks = disks
        .filter_map(|disk| Some((disk.facts.name.clone(), disk.pci.first().map(String::as_str)?)));
    gpus.chain(cards).chain(disks).collect()
}

fn lanes(machine: &Machine) -> Parts {
    let value = |pci: &str| machine.function(pci)?.link_now.width.map(|width| format!("x{width}"));
    on_pci(machine).into_iter().map(|(name, pci)| (name, value(pci))).collect()
}

/// The most that the link can do: as it is now an idle one may be slower.
fn speed(machine: &Machine) -> Parts {
    let value = |pci: &str| {
        let speed = machine.function(pci)?.link_most.mega_transfers?;
        Some(format!("{}.{} GT/s", speed / 1000, speed % 1000 / 100))
    };
    on_pci(machine).into_iter().map(|(name, pci)| (name, value(pci))).collect()
}

fn addresses(machine: &Machine) -> Parts {
    on_pci(machine).into_iter().map(|(name, pci)| (name, Some(pci.to_owned()))).collect()
}

fn nodes(machine: &Machine) -> Parts {
    let value = |pci: &str| machine.function(pci)?.node.map(|node| node.to_string());
    on_pci(machine).into_iter().map(|(name, pci)| (name, value(pci))).collect()
}

fn kernel(machine: &Machine) -> Parts {
    whole(machine.host.kernel.release.clone())
}

fn modules(machine: &Machine) -> Parts {
    let value = |module: &gpuio_record::facts::ModuleFacts| match (module.loaded, &module.version) {
        (false, _) => "not loaded".to_owned(),
        (true, Some(version)) => version.clone(),
        (true, None) => "loaded".to_owned(),
    };
    machine.modules.iter().map(|module| (module.name.clone(), Some(value(module)))).collect()
}

/// Lines of gdscheck's report, by their names.
fn gdscheck(machine: &Machine) -> Parts {
    let Some(check) = &machine.gdscheck else { return Parts::new() };
    let known = |value: &Fact<String>| value.known().cloned();
    let head = [
        ("release", &check.release),
        ("nvidia_fs", &check.nvidia_fs),
        ("libcufile", &check.libcufile),
        ("IOMMU", &check.iommu),
        ("Platform verification", &check.verification),
    ];
    let head = head.map(|(name, value)| (name.to_owned(), known(value)));
    let lines = check.drivers.iter().chain(&check.settings);
    head.into_iter().chain(lines.map(|line| (line.name.clone(), known(&line.value)))).collect()
}

/// Those that only root may read are compared where root made the capture.
fn parameters(machine: &Machine) -> Parts {
    let modules = machine.modules.iter().filter(|module| module.loaded);
    let each = modules.flat_map(|module| {
        let of = |(name, value): (&String, &String)| {
            (format!("{}.{name}", module.name), Some(value.clone()))
        };
        module.parameters.iter().map(of)
    });
    each.collect()
}

/// Without the image and the root file system, which differ with the kernel and by host.
fn command_line(machine: &Machine) -> Parts {
    whole(machine.settings.command_line.as_ref().map(|words| words.join(" ")))
}

/// Mounts that data may lie on.
fn data_mounts(machine: &Machine) -> impl Iterator<Item = &MountedStorage> {
    machine.mounts.iter().filter(|one| {
        !matches!(one.kind, MountKind::Memory | MountKind::Overlay | MountKind::Other)
    })
}

fn mounts(machine: &Machine) -> Parts {
    let value = |one: &MountedStorage| Some(one.mount.fs_type.clone());
    data_mounts(machine).map(|one| (one.mount.mount_point.clone(), value(one))).collect()
}

/// Options that name a host or a connection.
const OWN: [&str; 4] = ["addr", "clientaddr", "mountaddr", "mountport"];

/// Those with a value each by itself, the others together.
fn mount_options(machine: &Machine) -> Parts {
    let mut parts = Parts::new();
    for one in data_mounts(machine) {
        let point = &one.mount.mount_point;
        let mut words: Vec<&String> =
            one.mount.options.iter().chain(&one.mount.super_options).collect();
        words.sort();
        words.dedup();
        let mut plain: Vec<&str> = Vec::new();
        for word in words {
            match word.split_once('=') {
                Some((name, _)) if OWN.contains(&name) => {}
                Some((name, value)) => {
                    parts.push((format!("{point} {name}"), Some(value.to_owned())));
                }
                None => plain.push(word),
            }
        }
        parts.push((format!("{point} flags"), Some(plain.join(","))));
    }
    parts
}

fn schedulers(machine: &Machine) -> Parts {
    let disks = machine.block.iter().filter(|device| device.facts.kind == BlockKind::Disk);
    disks.map(|disk| (disk.facts.name.clone(), disk.facts.scheduler.clone())).collect()
}

fn governors(machine: &Machine) -> Parts {
    let all = &machine.settings.governors;
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    whole(Some(names.join(", ")).filter(|names| !names.is_empty()))
}

fn balancing(machine: &Machine) -> Parts {
    whole(machine.settings.numa_balancing.map(|value| value.to_string()))
}

fn huge_pages(machine: &Machine) -> Parts {
    whole(machine.host.kernel.transparent_huge_pages.clone())
}

/// Bridges that redirect peers' traffic.
fn acs(machine: &Machine) -> Parts {
    let value = |acs: &Fact<gpuio_record::facts::Acs>| {
        acs.known().map(|acs| if acs.enabled.is_empty() { "off" } else { "on" }.to_owned())
    };
    let bridges = machine.pci.iter().filter(|one| one.secondary_bus.is_some());
    bridges.map(|one| (one.address.clone(), value(&one.acs))).collect()
}
