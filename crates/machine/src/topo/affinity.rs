//! The devices near to each GPU.

use std::cmp::Reverse;

use gpuio_record::facts::{BlockKind, Machine, MountKind};
use serde::Serialize;

use crate::topo::{Class, DeviceKind, Topology};

/// A GPU and what is near to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Affinity {
    pub gpu: String,
    /// Its PCI address; `null` when not known.
    pub pci: Option<String>,
    /// The nearest drives: fewest switches between, all that are as near. Where several are,
    /// those that are nearer to another GPU are left out.
    pub drives: Vec<Near>,
    /// Arrays and mounts that lie on those drives or behind those cards.
    pub storage: Vec<NearStorage>,
    /// The nearest network cards, chosen as the drives are.
    pub nics: Vec<Near>,
    /// NUMA node; `null` when not known.
    pub node: Option<u32>,
    /// The nodes that the driver calls near, where those are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near_nodes: Vec<u32>,
    /// Processors of that node or those nodes, ascending; `null` when not known.
    pub cpus: Option<Vec<u32>>,
}

/// A device near to a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Near {
    pub name: String,
    pub class: Class,
    /// Switches between; `null` when not known.
    pub switches: Option<u32>,
}

/// A mount or array of which at least one drive or card is near.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearStorage {
    /// Where it is mounted; `null` for an array that is not.
    pub mount: Option<String>,
    /// The block devices of the mount, or the array; of a mount over a card, the kind of its file
    /// system.
    pub on: Vec<String>,
    /// PCI functions below that are near.
    pub near: usize,
    /// PCI functions below.
    pub of: usize,
}

/// One row for each GPU.
pub(crate) fn table(machine: &Machine, topology: &Topology) -> Vec<Affinity> {
    topology.of_kind(DeviceKind::Gpu).map(|(index, _)| row(machine, topology, index)).collect()
}

fn row(machine: &Machine, topology: &Topology, index: usize) -> Affinity {
    let gpu = &topology.devices[index];
    let drives = nearest(topology, index, DeviceKind::Drive);
    let nics = nearest(topology, index, DeviceKind::Nic);
    let node = machine.host.numa.nodes.iter().find(|node| Some(node.node) == gpu.node);
    let facts = machine.gpus.iter().find(|facts| gpu.is_gpu(facts));
    let near = |indices: &[usize]| -> Vec<Near> {
        let known = indices.iter().filter_map(|other| {
            let route = topology.route(index, *other)?;
            let class = *route.class.known()?;
            let name = topology.devices[*other].name.clone();
            Some(Near { name, class, switches: route.switches })
        });
        known.collect()
    };
    Affinity {
        gpu: gpu.name.clone(),
        pci: gpu.pci.first().cloned(),
        storage: storage(machine, topology, &drives, &nics),
        drives: near(&drives),
        nics: near(&nics),
        node: gpu.node,
        near_nodes: facts.map(|facts| facts.near_nodes.clone()).unwrap_or_default(),
        cpus: node.and_then(|node| node.cpus.clone()).or_else(|| facts?.near_cpus.clone()),
    }
}

impl Affinity {
    /// Its NUMA node or nodes in words: `0`, `0-1`, or `?` where not known.
    pub fn node_text(&self) -> String {
        node_text(self.node, &self.near_nodes)
    }
}

/// A NUMA node, or several that are near, in words.
pub(crate) fn node_text(node: Option<u32>, near: &[u32]) -> String {
    match (node, near) {
        (Some(node), _) => node.to_string(),
        (None, []) => "?".to_owned(),
        (None, several) => gpuio_base::units::format_cpu_list(several),
    }
}

/// Indices of the devices of a kind that are nearest to a GPU.
fn nearest(topology: &Topology, gpu: usize, kind: DeviceKind) -> Vec<usize> {
    let rank = |gpu: usize, index: usize| -> Option<(Class, u32)> {
        let (class, switches, _) = topology.route(gpu, index)?.rank()?;
        Some((class, switches))
    };
    let all = topology.of_kind(kind).filter_map(|(index, _)| Some((index, rank(gpu, index)?)));
    let all: Vec<(usize, (Class, u32))> = all.collect();
    let Some(best) = all.iter().map(|(_, rank)| *rank).min() else { return Vec::new() };
    let near: Vec<usize> =
        all.iter().filter(|(_, rank)| *rank == best).map(|(index, _)| *index).collect();
    let elsewhere = |index: usize| {
        let mut others = topology.of_kind(DeviceKind::Gpu);
        others.any(|(other, _)| rank(other, index).is_some_and(|rank| rank < best))
    };
    let own: Vec<usize> = near.iter().copied().filter(|index| !elsewhere(*index)).collect();
    if own.is_empty() { near } else { own }
}

fn storage(
    machine: &Machine,
    topology: &Topology,
    drives: &[usize],
    nics: &[usize],
) -> Vec<NearStorage> {
    let drives: Vec<&String> =
        drives.iter().flat_map(|index| &topology.devices[*index].pci).collect();
    let mut found = Vec::new();
    let mut mounted: Vec<&String> = Vec::new();
    for mount in &machine.mounts {
        mounted.extend(&mount.devices);
        let (near, of, on) = if mount.kind == MountKind::Block {
            let near = mount.pci.iter().filter(|pci| drives.contains(pci)).count();
            (near, mount.pci.len(), mount.devices.clone())
        } else {
            let cards = topology.cards_to(machine, mount);
            let near = cards.iter().filter(|card| nics.contains(card)).count();
            (near, cards.len(), vec![mount.mount.fs_type.clone()])
        };
        let mount = Some(mount.mount.mount_point.clone());
        found.push(NearStorage { mount, on, near, of });
    }
    let arrays = machine.block.iter().filter(|device| device.facts.kind == BlockKind::Md);
    for array in arrays.filter(|array| !mounted.contains(&&array.facts.name)) {
        found.push(NearStorage {
            mount: None,
            on: vec![array.facts.name.clone()],
            near: array.pci.iter().filter(|pci| drives.contains(pci)).count(),
            of: array.pci.len(),
        });
    }
    found.retain(|storage| storage.near > 0);
    // Storage on near drives alone comes first.
    found.sort_by_key(|storage| Reverse(storage.near == storage.of));
    found
}
