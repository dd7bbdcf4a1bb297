//! Any machine: everybody has something, nobody could be nearer, and the lists' order says nothing.

use std::collections::BTreeMap;

use gpuio_machine::pair::{Pairing, Wanted, pair};
use gpuio_machine::topo::{Class, Topology};
use gpuio_record::facts::{
    BlockDevice, BlockFacts, BlockKind, DeviceNumber, Fact, GpuFacts, Machine, MountFacts,
    MountKind, MountedStorage, NumaNode, PciFacts, PciPort,
};
use proptest::prelude::*;

/// Where a device hangs: a host bridge, and below it straight or under one of two switches.
#[derive(Debug, Clone, Copy)]
struct Place {
    bridge: usize,
    switch: Option<bool>,
}

#[derive(Debug, Clone)]
struct Plan {
    /// NUMA nodes of host bridges.
    bridges: Vec<u32>,
    gpus: Vec<Place>,
    drives: Vec<Place>,
    /// Whether drives have file systems.
    mounted: bool,
}

fn plans(most: usize) -> impl Strategy<Value = Plan> {
    let place = (0usize..3, prop::option::of(any::<bool>()))
        .prop_map(|(bridge, switch)| Place { bridge, switch });
    let gpus = prop::collection::vec(place.clone(), 1..=most);
    let drives = prop::collection::vec(place, 1..=most);
    let bridges = prop::collection::vec(0u32..2, 3);
    (bridges, gpus, drives, any::<bool>()).prop_map(|(bridges, gpus, drives, mounted)| Plan {
        bridges,
        gpus,
        drives,
        mounted,
    })
}

fn function(
    address: &str,
    parent: Option<&str>,
    bridge: usize,
    port: PciPort,
    plan: &Plan,
) -> PciFacts {
    PciFacts {
        address: address.to_owned(),
        parent: parent.map(str::to_owned),
        host_bridge: Some(format!("0000:{bridge}0")),
        node: Some(plan.bridges[bridge]),
        port: Fact::Known(port),
        ..PciFacts::default()
    }
}

/// Hangs a device below a port of its own.
fn hang(machine: &mut Machine, place: Place, number: usize, plan: &Plan) -> String {
    let bridge = place.bridge;
    let mut add = |address: String, parent: Option<&str>, port| {
        if !machine.pci.iter().any(|known| known.address == address) {
            machine.pci.push(function(&address, parent, bridge, port, plan));
        }
        address
    };
    let above = match place.switch {
        None => add(format!("0000:{bridge}0:{:02x}.0", number + 8), None, PciPort::RootPort),
        Some(second) => {
            let switch = 1 + u8::from(second);
            let root = format!("0000:{bridge}0:0{switch}.0");
            let root = add(root, None, PciPort::RootPort);
            let up = format!("0000:{bridge}{switch}:00.0");
            let up = add(up, Some(&root), PciPort::SwitchUpstream);
            let down = format!("0000:{bridge}{}:{number:02x}.0", switch + 2);
            add(down, Some(&up), PciPort::SwitchDownstream)
        }
    };
    add(format!("0000:{:02x}:00.0", 0x80 + number), Some(&above), PciPort::Endpoint)
}

fn drive(name: &str, pci: String) -> BlockDevice {
    let facts = BlockFacts {
        size_bytes: Some(1 << 40),
        ..BlockFacts::unread(name, DeviceNumber::default(), BlockKind::Disk)
    };
    BlockDevice { pci: vec![pci], ..BlockDevice::of(facts) }
}

fn machine(plan: &Plan) -> Machine {
    let mut machine = Machine::default();
    machine.host.numa.nodes = (0..2).map(|node| NumaNode { node, ..NumaNode::default() }).collect();
    for (number, place) in plan.gpus.iter().enumerate() {
        let pci = Some(hang(&mut machine, *place, number, plan));
        let index = Fact::Known(u32::try_from(number).unwrap());
        machine.gpus.push(GpuFacts { pci, index, ..GpuFacts::default() });
    }
    for (number, place) in plan.drives.iter().enumerate() {
        let name = format!("nvme{number}n1");
        let pci = hang(&mut machine, *place, plan.gpus.len() + number, plan);
        machine.block.push(drive(&name, pci.clone()));
        if plan.mounted {
            let mount = MountFacts {
                mount_point: format!("/data{number}"),
                fs_type: "xfs".to_owned(),
                source: format!("/dev/{name}"),
                fs_root: "/".to_owned(),
                device: DeviceNumber::default(),
                options: Vec::new(),
                super_options: Vec::new(),
            };
            let (kind, devices) = (MountKind::Block, vec![name]);
            machine.mounts.push(MountedStorage { mount, kind, devices, pci: vec![pci], nfs: None });
        }
    }
    machine
}

fn paired(machine: &Machine) -> (Topology, Pairing) {
    let topology = Topology::of(machine, &[]);
    let pairing = pair(machine, &topology, &Wanted::default()).unwrap();
    (topology, pairing)
}

fn class(topology: &Topology, gpu: &str, drive: &str) -> usize {
    let route = topology.route(topology.find(gpu).unwrap(), topology.find(drive).unwrap());
    let class = *route.unwrap().class.known().unwrap();
    Class::ALL.iter().position(|known| *known == class).unwrap()
}

/// Below a switch, on the same node, or beyond: what is farther than a GPU's nearest by this is
/// left out.
fn reach(class: usize) -> usize {
    [2, 4].iter().filter(|most| class > **most).count()
}

/// The class of a pair as it counts: far beyond all others where the GPU has something nearer.
fn counted(topology: &Topology, plan: &Plan, gpu: usize, drive: usize) -> usize {
    let class = |drive: usize| class(topology, &format!("GPU{gpu}"), &format!("nvme{drive}n1"));
    let nearest = (0..plan.drives.len()).map(class).min().unwrap();
    class(drive) + if reach(class(drive)) > reach(nearest) { 1000 } else { 0 }
}

/// Drives that some GPU has nothing nearer than.
fn kept(topology: &Topology, plan: &Plan) -> Vec<usize> {
    let near =
        |drive: &usize| (0..plan.gpus.len()).any(|gpu| counted(topology, plan, gpu, *drive) < 1000);
    (0..plan.drives.len()).filter(near).collect()
}

/// GPU and drive of every pair.
fn given(pairing: &Pairing) -> Vec<(String, String)> {
    let pairs = pairing.pairs.iter().flat_map(|pair| {
        let gpu = pair.gpu.clone().unwrap();
        pair.stores.iter().map(move |store| (gpu.clone(), store.drives[0].clone()))
    });
    pairs.collect()
}

/// The least sum of classes with as many drives for each GPU, by trying everything.
fn least(
    cost: &dyn Fn(usize, usize) -> usize,
    gpus: &mut Vec<usize>,
    drives: &[usize],
    mut uses: Vec<usize>,
) -> Option<usize> {
    let Some(gpu) = gpus.pop() else { return Some(0) };
    let mut best = None;
    for drive in drives {
        if uses[*drive] == 0 {
            continue;
        }
        uses[*drive] -= 1;
        let rest = least(cost, gpus, drives, uses.clone()).map(|rest| rest + cost(gpu, *drive));
        best = best.into_iter().chain(rest).min();
        uses[*drive] += 1;
    }
    gpus.push(gpu);
    best
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn everybody_has_something_and_nothing_lies_idle_for_want_of_giving(plan in plans(9)) {
        let (topology, pairing) = paired(&machine(&plan));
        let kept = kept(&topology, &plan);
        let (gpus, drives) = (plan.gpus.len(), kept.len());
        let pairs = given(&pairing);
        for name in (0..plan.drives.len()).filter(|n| !kept.contains(n)) {
            let (raw, mount) = (format!("/dev/nvme{name}n1"), format!("/data{name}"));
            let far = pairing.not_used.iter().find(|one| one.name == raw || one.name == mount);
            prop_assert!(far.is_some_and(|one| one.why.contains("nearer")), "{name}: {far:?}");
        }
        for gpu in &pairing.pairs {
            prop_assert!(!gpu.stores.is_empty(), "{:?}", gpu.gpu);
        }
        prop_assert_eq!(pairs.len(), gpus.max(drives));
        let mut used: BTreeMap<&str, usize> = BTreeMap::new();
        pairs.iter().for_each(|(_, drive)| *used.entry(drive).or_default() += 1);
        if drives >= gpus {
            prop_assert_eq!(used.len(), drives);
            prop_assert!(used.values().all(|count| *count == 1));
        } else {
            for name in kept.iter().map(|n| format!("nvme{n}n1")) {
                let left = pairing.not_used.iter().any(|one| one.name.contains(&name)
                    || one.name == name.replace("nvme", "/data").replace("n1", ""));
                prop_assert!(used.contains_key(name.as_str()) || left, "{name}");
            }
        }
    }

    #[test]
    fn no_other_assignment_of_the_same_size_is_nearer(plan in plans(5)) {
        let (topology, pairing) = paired(&machine(&plan));
        let pairs = given(&pairing);
        let cost = |gpu: usize, drive: usize| counted(&topology, &plan, gpu, drive);
        let of = |pair: &(String, String)| pair.0[3..].parse::<usize>().unwrap();
        let drive = |pair: &(String, String)| {
            let number = pair.1.trim_start_matches("nvme").trim_end_matches("n1");
            number.parse::<usize>().unwrap()
        };
        let ours: usize = pairs.iter().map(|pair| cost(of(pair), drive(pair))).sum();
        let mut gpus: Vec<usize> = pairs.iter().map(of).collect();
        let drives = kept(&topology, &plan);
        // Drives may be shared only where GPUs are more.
        let uses = if drives.len() >= plan.gpus.len() { 1 } else { gpus.len() };
        let best = least(&cost, &mut gpus, &drives, vec![uses; plan.drives.len()]);
        prop_assert_eq!(Some(ours), best);
    }

    #[test]
    fn the_order_of_lists_changes_nothing(plan in plans(7), seed in any::<u64>()) {
        let straight = machine(&plan);
        let mut turned = straight.clone();
        // A shuffle by the seed: any order will do.
        let mut state = seed | 1;
        let mut next = |count: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % count
        };
        for last in (1..turned.gpus.len()).rev() {
            turned.gpus.swap(last, next(last + 1));
        }
        for last in (1..turned.block.len()).rev() {
            turned.block.swap(last, next(last + 1));
        }
        for last in (1..turned.mounts.len()).rev() {
            turned.mounts.swap(last, next(last + 1));
        }
        prop_assert_eq!(paired(&straight).1, paired(&turned).1);
        prop_assert_eq!(paired(&straight).1, paired(&straight).1);
    }
}
