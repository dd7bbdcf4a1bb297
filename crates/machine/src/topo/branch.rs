//! The tree: NUMA nodes, host bridges, switches, devices.

use std::collections::BTreeMap;

use gpuio_record::facts::{Machine, MountKind};
use serde::Serialize;

use crate::topo::graph::{Graph, Port, RootPath};
use crate::topo::{Device, Link};

/// A NUMA node and what hangs there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Branch {
    /// Number; `null` for host bridges whose node is not known.
    pub node: Option<u32>,
    /// Its processors, ascending.
    pub cpus: Option<Vec<u32>>,
    /// Its memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The GPUs whose memory it is, for a node without processors.
    pub memory_of: Vec<String>,
    /// Host bridges with a GPU, card or drive below, by number.
    pub host_bridges: Vec<HostBridge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostBridge {
    /// Domain and root bus, `0000:2b`; `null` where not known.
    pub name: Option<String>,
    /// The devices below, by address.
    pub below: Vec<Knot>,
}

/// A switch or a device. A downstream port is shown with the device on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Knot {
    pub kind: KnotKind,
    /// Its PCI function; of a switch, the port towards the root.
    pub address: String,
    /// The port that it is on; `null` for devices inside the root complex, and where it is not
    /// known.
    pub port: Option<String>,
    /// Ports between it and what is above were not known.
    pub gap: bool,
    /// The link above it; `null` when nothing is known of it.
    pub link: Option<Link>,
    /// Names of the GPU, card or drives behind the function.
    pub names: Vec<String>,
    /// Mounts on those drives or through that card.
    pub mounts: Vec<String>,
    pub below: Vec<Knot>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KnotKind {
    /// A PCIe switch.
    Switch,
    /// A bridge to or from conventional PCI.
    Bridge,
    /// A device inside the root complex with ports of its own (Intel VMD).
    RootDevice,
    /// A GPU, card or drive's controller.
    Device,
}

/// The tree, and the devices that are not in it.
pub(crate) fn tree(
    machine: &Machine,
    graph: &Graph<'_>,
    devices: &[Device],
) -> (Vec<Branch>, Vec<String>) {
    let nodes = machine.host.numa.nodes.iter().map(|node| Branch {
        node: Some(node.node),
        cpus: node.cpus.clone(),
        memory_bytes: node.total_bytes,
        memory_of: memory_of(machine, devices, node.node),
        host_bridges: Vec::new(),
    });
    let mut branches: Vec<Branch> = nodes.collect();
    let mut unplaced = Vec::new();
    let nodes = bridge_nodes(graph, devices);
    for device in devices {
        let root_paths: Vec<RootPath<'_>> =
            device.pci.iter().filter_map(|pci| graph.root_path(pci)).collect();
        if root_paths.is_empty() {
            unplaced.push(device.name.clone());
        }
        for path in &root_paths {
            let bridge = path.host_bridge.and_then(|bridge| nodes.get(bridge).copied());
            let node = graph.node(&path.steps[0].facts.address).or(device.node).or(bridge);
            let bridge = host_bridge(&mut branches, node, path.host_bridge);
            hang(machine, &mut bridge.below, path, device);
        }
    }
    branches.sort_by_key(|branch| (branch.node.is_none(), branch.node));
    for bridge in branches.iter_mut().flat_map(|branch| &mut branch.host_bridges) {
        sort(&mut bridge.below);
    }
    for branch in &mut branches {
        branch.host_bridges.sort_by(|a, b| a.name.cmp(&b.name));
    }
    (branches, unplaced)
}

/// The GPUs whose memory a NUMA node is.
fn memory_of(machine: &Machine, devices: &[Device], node: u32) -> Vec<String> {
    let gpus = machine.gpus.iter().filter(|gpu| gpu.memory_node == Some(node));
    let named = gpus.filter_map(|gpu| devices.iter().find(|device| device.is_gpu(gpu)));
    named.map(|device| device.name.clone()).collect()
}

/// NUMA nodes of host bridges, as far as any device below is known to be on one: a host bridge is
/// on one node with all that hangs below it.
fn bridge_nodes<'m>(graph: &Graph<'m>, devices: &[Device]) -> BTreeMap<&'m str, u32> {
    let mut nodes = BTreeMap::new();
    for device in devices {
        for path in device.pci.iter().filter_map(|pci| graph.root_path(pci)) {
            let node = graph.node(&path.steps[0].facts.address).or(device.node);
            if let Some((bridge, node)) = path.host_bridge.zip(node) {
                nodes.entry(bridge).or_insert(node);
            }
        }
    }
    nodes
}

fn host_bridge<'b>(
    branches: &'b mut Vec<Branch>,
    node: Option<u32>,
    name: Option<&str>,
) -> &'b mut HostBridge {
    let at = branches.iter().position(|branch| branch.node == node).unwrap_or_else(|| {
        branches.push(Branch { node, ..Branch::default() });
        branches.len() - 1
    });
    let bridges = &mut branches[at].host_bridges;
    let at = bridges.iter().position(|bridge| bridge.name.as_deref() == name);
    let at = at.unwrap_or_else(|| {
        bridges.push(HostBridge { name: name.map(str::to_owned), below: Vec::new() });
        bridges.len() - 1
    });
    &mut bridges[at]
}

/// Hangs a device below a host bridge, with the switches above it.
fn hang(machine: &Machine, top: &mut Vec<Knot>, path: &RootPath<'_>, device: &Device) {
    let mut below = top;
    for index in (0..path.steps.len()).rev() {
        let step = &path.steps[index];
        let kind = match step.port {
            _ if index == 0 => KnotKind::Device,
            Port::Root | Port::Down => continue,
            Port::Inside | Port::End => KnotKind::RootDevice,
            Port::Up => KnotKind::Switch,
            Port::Bridge => KnotKind::Bridge,
        };
        let address = &step.facts.address;
        let at = below.iter().position(|knot| knot.address == *address).unwrap_or_else(|| {
            let port = path
                .steps
                .get(index + 1)
                .filter(|upper| !step.gap && matches!(upper.port, Port::Root | Port::Down));
            below.push(Knot {
                kind,
                address: address.clone(),
                port: port.map(|port| port.facts.address.clone()),
                gap: step.gap,
                link: path.link(index),
                names: Vec::new(),
                mounts: Vec::new(),
                below: Vec::new(),
            });
            below.len() - 1
        });
        if index == 0 {
            let knot = &mut below[at];
            knot.names.push(device.name.clone());
            for mount in mounts(machine, address) {
                if !knot.mounts.contains(&mount) {
                    knot.mounts.push(mount);
                }
            }
            return;
        }
        below = &mut below[at].below;
    }
}

/// Mounts that lie on a function's drives or go through its card.
fn mounts(machine: &Machine, address: &str) -> Vec<String> {
    let through = |pci: &[String]| pci.iter().any(|function| function == address);
    let mounts = machine.mounts.iter().filter(|mount| through(&mount.pci));
    let words = mounts.map(|mount| match mount.kind {
        MountKind::Block => {
            format!("{} ({})", mount.mount.mount_point, mount.devices.join(" "))
        }
        _ => format!("{} ({})", mount.mount.mount_point, mount.mount.fs_type),
    });
    words.collect()
}

fn sort(knots: &mut [Knot]) {
    knots.sort_by(|a, b| a.address.cmp(&b.address));
    knots.iter_mut().for_each(|knot| sort(&mut knot.below));
}
