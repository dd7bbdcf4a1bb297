//! Sources that were not read make no answer: whatever is left out, each data path, each answer of
//! `why` and each rule is what it is with all sources, or unknown.

use std::collections::BTreeMap;

use crate::check::worst;
use gpuio_machine::check::{Answer, Gpu, Pair, Severity, narrow, verdict, why};
use gpuio_record::facts::{Fact, GpuFacts, KernelConfig, Machine, MountKind, MountedStorage};
use gpuio_testkit::machines::{self, DGX_2, DGX_A100, R7525, VIRTUAL};

/// A source of facts, and the machine without it: as it is made from texts that lack it.
type Source = (&'static str, fn(&mut Machine));

const SOURCES: [Source; 12] = [
    ("PCI functions", |machine| {
        machine.pci.clear();
        machine.listed.pci = false;
        for drive in &mut machine.block {
            drive.pci.clear();
            (drive.facts.pci_address, drive.facts.numa_node) = (None, None);
        }
        machine.nics.iter_mut().for_each(|nic| nic.pci = None);
        machine.mounts.iter_mut().for_each(|mount| mount.pci.clear());
    }),
    ("GPUs", |machine| {
        machine.gpus.clear();
        machine.listed.pci = false;
    }),
    ("block devices", |machine| {
        machine.block.clear();
        machine.listed.block = false;
        machine.mounts.iter_mut().for_each(|mount| mount.devices.clear());
    }),
    ("transports of drives", |machine| {
        for drive in &mut machine.block {
            (drive.nvme, drive.facts.transport) = (None, None);
        }
    }),
    ("what volumes and arrays are made of", |machine| {
        machine.block.iter_mut().for_each(|device| device.made_of.clear());
        let disk = gpuio_record::facts::BlockKind::Disk;
        machine.block.retain(|device| device.facts.kind != disk);
        machine.listed.block = false;
    }),
    ("network cards", |machine| {
        machine.nics.clear();
        machine.listed.nics = false;
    }),
    ("states of ports", |machine| {
        for nic in &mut machine.nics {
            nic.interfaces.iter_mut().for_each(|one| one.state = None);
            let ports = nic.rdma.iter_mut().flat_map(|device| &mut device.ports);
            ports.for_each(|port| port.state = None);
        }
    }),
    ("types and options of file systems", |machine| {
        for mount in machine.mounts.iter_mut().filter(|one| one.kind == MountKind::Block) {
            mount.mount.fs_type.clear();
            mount.mount.options.clear();
            mount.mount.super_options.clear();
        }
    }),
    ("modules", |machine| machine.modules.clear()),
    ("the kernel", |machine| {
        machine.host.kernel = Default::default();
        machine.config = KernelConfig::default();
        machine.settings = Default::default();
    }),
    ("cuFile's configuration", |machine| machine.cufile = Default::default()),
    ("NUMA nodes", |machine| {
        machine.host.numa.nodes.clear();
        machine.listed.nodes = false;
        machine.gpus.iter_mut().for_each(|gpu| gpu.node = None);
        machine.nics.iter_mut().for_each(|nic| nic.node = None);
        machine.block.iter_mut().for_each(|device| device.facts.numa_node = None);
        machine.pci.iter_mut().for_each(|function| function.node = None);
    }),
];

/// The machines of the tables, each narrowed to one mount of each kind and its first GPU.
fn narrowed() -> Vec<(String, Machine)> {
    let tables = [("dgx-2", DGX_2), ("dgx-a100", DGX_A100), ("r7525", R7525), ("virtual", VIRTUAL)];
    let mut all = Vec::new();
    for (name, text) in tables {
        let machine = machines::read(text);
        let mut seen: Vec<(MountKind, bool)> = Vec::new();
        for mount in &machine.mounts {
            let array = mount.devices.iter().any(|device| device.starts_with("md"));
            if seen.contains(&(mount.kind, array)) {
                continue;
            }
            seen.push((mount.kind, array));
            let small = narrow(&pair(&machine, mount));
            all.push((format!("{name} {}", mount.mount.mount_point), small));
        }
    }
    all.extend(all.clone().into_iter().map(|(name, machine)| (name + ", works", good(machine))));
    all
}

/// The same with all that direct paths need, and Lustre where there was NFS.
fn good(mut machine: Machine) -> Machine {
    machine.settings.nvidia_fs_drivers =
        Fact::Known(["nvme", "lnet", "rpcrdma"].map(str::to_owned).to_vec());
    machine.settings.udev_runtime = Fact::Known(true);
    machine.cufile.text = Fact::Known(None);
    machine.cufile.library = Fact::Known(Some("/usr/lib/libcufile.so.0".to_owned()));
    machine.modules.iter_mut().for_each(|module| module.loaded = true);
    machine.pci.iter_mut().for_each(|function| function.iommu_group = None);
    let ports = machine.nics.iter_mut().flat_map(|nic| &mut nic.rdma);
    ports.flat_map(|one| &mut one.ports).for_each(|port| port.state = Some("ACTIVE".to_owned()));
    for mount in machine.mounts.iter_mut().filter(|mount| mount.kind == MountKind::Nfs) {
        (mount.kind, mount.nfs) = (MountKind::Lustre, None);
        mount.mount.fs_type = "lustre".to_owned();
    }
    machine
}

fn pair<'m>(machine: &'m Machine, mount: &'m MountedStorage) -> Pair<'m> {
    let gpu: Option<&GpuFacts> = machine.gpus.first();
    Pair { machine, mount, gpu: gpu.map_or(Gpu::None, Gpu::Real) }
}

/// The machine without the sources whose bits are set, and their names.
fn without(machine: &Machine, left_out: usize) -> (Machine, Vec<&'static str>) {
    let mut machine = machine.clone();
    let mut names = Vec::new();
    for (_, (name, remove)) in SOURCES.iter().enumerate().filter(|(at, _)| left_out >> at & 1 == 1)
    {
        remove(&mut machine);
        names.push(*name);
    }
    (machine, names)
}

#[test]
fn no_data_path_is_judged_by_what_was_not_read() {
    let mut answers = BTreeMap::new();
    for (name, machine) in narrowed() {
        let judge = |machine: &Machine| verdict(&pair(machine, &machine.mounts[0]), "/x");
        let whole = judge(&machine);
        let whole_why = why::of(&whole);
        whole.modes.iter().for_each(|mode| *answers.entry(mode.works.word()).or_insert(0) += 1);
        for left_out in 0..1 << SOURCES.len() {
            let (part, names) = without(&machine, left_out);
            let judged = judge(&part);
            for (now, was) in judged.modes.iter().zip(&whole.modes) {
                assert!(
                    now.works == Answer::Unknown || now.works == was.works,
                    "{name}: {} was {:?} without {names:?}: {now:#?}",
                    now.mode,
                    was.works
                );
            }
            let why = why::of(&judged);
            assert!(
                why.gds == Answer::Unknown || why.gds == whole_why.gds,
                "{name} without {names:?}: {}",
                why.conclusion
            );
            let says_off = why.conclusion.starts_with("GDS is off");
            assert_eq!(says_off, why.gds == Answer::No, "{name}: {}", why.conclusion);
            assert!(!why.conclusion.contains("()"), "{name}: {}", why.conclusion);
            for (now, was) in why.ways.iter().zip(&whole_why.ways) {
                let less = now.mode.is_none() || now.mode == Some("host");
                assert!(less || now.mode == was.mode, "{name} without {names:?}: {now:?}");
            }
        }
    }
    assert!(answers.contains_key("yes") && answers.contains_key("no"), "{answers:?}");
}

#[test]
fn no_rule_finds_a_fault_or_none_by_what_was_not_read() {
    for (name, machine) in narrowed() {
        let before = worst(&machine);
        // Two sources and fewer are left out, or kept.
        let few = |bits: usize| bits.count_ones() < 3;
        let all = (1 << SOURCES.len()) - 1;
        for left_out in (0..=all).filter(|bits| few(*bits) || few(all ^ bits)) {
            let (part, names) = without(&machine, left_out);
            for (rule, now) in worst(&part) {
                let was = before[rule];
                let made_up = match now {
                    Severity::Fail => was != Severity::Fail,
                    Severity::Warn => was > Severity::Warn,
                    Severity::Pass => !matches!(was, Severity::Pass | Severity::NotApplicable),
                    Severity::NotApplicable => was != Severity::Unknown && was != now,
                    Severity::Unknown | Severity::Info => false,
                };
                assert!(!made_up, "{name}: {rule} was {was:?}, is {now:?} without {names:?}");
            }
        }
    }
}

/// The kernel's list and a text's differ: what a text leaves out is not absent.
#[test]
fn a_name_that_a_list_lacks_is_not_taken_for_absent() {
    let mount = |kind, fs_type: &str| {
        let mut mount = MountedStorage { kind, ..MountedStorage::default() };
        mount.mount.mount_point = "/data".to_owned();
        mount.mount.fs_type = fs_type.to_owned();
        mount
    };
    for (kind, fs_type) in [
        (MountKind::Lustre, "lustre"),
        (MountKind::Beegfs, "beegfs"),
        (MountKind::Weka, "wekafs"),
        (MountKind::Gpfs, "gpfs"),
        (MountKind::Block, "ext4"),
        (MountKind::Block, ""),
    ] {
        let machine = Machine { mounts: vec![mount(kind, fs_type)], ..Machine::default() };
        let why = why::of(&verdict(&pair(&machine, &machine.mounts[0]), "/data"));
        assert_eq!(why.gds, Answer::Unknown, "{fs_type}: {}", why.conclusion);
        assert!(why.conclusion.contains("unknown"), "{}", why.conclusion);
    }
}
