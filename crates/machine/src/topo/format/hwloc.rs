//! hwloc's XML (its DTD `hwloc2.dtd`, topology version 2.0), for `lstopo -i` and whatever reads it.
//!
//! NUMA nodes are groups, as the facts have no sockets; PCI domains above 0xffff, which hwloc 2
//! can't hold, are left out. Where no processors are known, one represents all: hwloc takes no
//! topology without. A function of which only a name is known (of `nvidia-smi` or `ls -l
//! /dev/disk/by-path`) gets the class that it must have and numbers 0.

use std::collections::{BTreeMap, BTreeSet};

use gpuio_record::facts::{BlockKind, Machine, NumaNode, PciFacts};

use crate::topo::Link;
use gpuio_base::units::markup;

const NVIDIA: u16 = 0x10de;
/// Linux counts to 8192 (`NR_CPUS`); each costs a set of all before it.
const MOST_CPUS: u32 = 8192;
/// Bytes per second in hwloc's unit of a link's speed, GB/s, by which it means powers of ten.
const GIGA: f64 = 1e9;

pub fn hwloc_xml(machine: &Machine) -> String {
    let mut writer = Writer::of(machine);
    writer.machine();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n\
         <topology version=\"2.0\">\n{}</topology>\n",
        writer.out
    )
}

struct Writer<'m> {
    machine: &'m Machine,
    nodes: Vec<NumaNode>,
    /// Functions by the address of the bridge above them, and by host bridge where there is none.
    below: BTreeMap<&'m str, Vec<&'m PciFacts>>,
    roots: BTreeMap<&'m str, Vec<&'m PciFacts>>,
    /// Names of the system by the function that they belong to: name and hwloc's type.
    names: BTreeMap<&'m str, Vec<(&'m str, u8)>>,
    gpus: BTreeSet<&'m str>,
    out: String,
    depth: usize,
    index: u32,
}

impl<'m> Writer<'m> {
    fn of(machine: &'m Machine) -> Self {
        let known: BTreeSet<&str> = machine.pci.iter().map(|one| one.address.as_str()).collect();
        let (mut below, mut roots) = (BTreeMap::new(), BTreeMap::new());
        let fits = |one: &&PciFacts| domain(&one.address).is_some_and(|number| number <= 0xffff);
        for one in machine.pci.iter().filter(fits) {
            let parent = one.parent.as_deref().filter(|parent| known.contains(parent));
            let list: &mut Vec<&PciFacts> = match (parent, one.host_bridge.as_deref()) {
                (Some(parent), _) => below.entry(parent).or_default(),
                (None, Some(bridge)) => roots.entry(bridge).or_default(),
                // A path that was cut: its own bus is used for the host bridge.
                (None, None) => roots.entry(one.address.get(..7).unwrap_or("")).or_default(),
            };
            list.push(one);
        }
        Writer {
            machine,
            nodes: nodes(machine),
            below,
            roots,
            names: names(machine),
            gpus: machine.gpus.iter().filter_map(|gpu| gpu.pci.as_deref()).collect(),
            out: String::new(),
            depth: 1,
            index: 0,
        }
    }

    fn machine(&mut self) {
        let all: Vec<u32> = self.nodes.iter().flat_map(cpus).collect();
        let nodes: Vec<u32> = self.nodes.iter().map(|node| node.node).collect();
        let (cpuset, nodeset) = (mask(&all), mask(&nodes));
        let sets = sets(&cpuset, &nodeset);
        let allowed = format!("allowed_cpuset=\"{cpuset}\" allowed_nodeset=\"{nodeset}\"");
        self.open(&format!("type=\"Machine\" os_index=\"0\" {sets} {allowed}"));
        self.info("Backend", "gpuio");
        for node in std::mem::take(&mut self.nodes) {
            self.node(&node, &cpuset);
        }
        // The firmware does not report where these are.
        self.host_bridges(None);
        self.close();
    }

    fn node(&mut self, node: &NumaNode, machine: &str) {
        let own: Vec<u32> = cpus(node).collect();
        let nodeset = mask(&[node.node]);
        // Memory without processors is that of all of them.
        let cpuset = if own.is_empty() { machine.to_owned() } else { mask(&own) };
        let sets = sets(&cpuset, &nodeset);
        let group = !own.is_empty();
        if group {
            self.open(&format!("type=\"Group\" {sets} kind=\"1001\" subkind=\"0\""));
            self.info("NUMA node", &node.node.to_string());
        }
        let memory = node.total_bytes.unwrap_or(0);
        let index = node.node;
        self.open(&format!(
            "type=\"NUMANode\" os_index=\"{index}\" {sets} local_memory=\"{memory}\""
        ));
        self.close();
        for cpu in own {
            let sets = sets_of_cpu(cpu, &nodeset);
            self.leaf(&format!("type=\"PU\" os_index=\"{cpu}\" {sets}"));
        }
        self.host_bridges(Some(node.node));
        if group {
            self.close();
        }
    }

    fn host_bridges(&mut self, node: Option<u32>) {
        let machine = self.machine;
        let known = |number: &u32| machine.host.numa.nodes.iter().any(|one| one.node == *number);
        for (name, functions) in std::mem::take(&mut self.roots) {
            let own = functions.iter().find_map(|one| one.node).filter(known);
            if own != node {
                self.roots.insert(name, functions);
                continue;
            }
            let last = functions.iter().map(|one| self.last_bus(one)).max().unwrap_or(0);
            let (domain, first) = name.split_once(':').unwrap_or(("0000", "00"));
            let buses = format!("{domain}:[{first}-{last:02x}]");
            // hwloc takes no sets on devices: they are where the object around them is.
            self.open(&format!(
                "type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"{buses}\""
            ));
            functions.iter().for_each(|one| self.function(one, 1));
            self.close();
        }
    }

    fn function(&mut self, one: &'m PciFacts, depth: u32) {
        let address = one.address.as_str();
        let children = self.below.remove(address).unwrap_or_default();
        let mut attributes = format!("pci_busid=\"{address}\" pci_type=\"{}\"", self.kind(one));
        let rate = Link::above(one, None).and_then(|link| link.bytes_per_second);
        let rate = rate.unwrap_or(0) as f64 / GIGA;
        attributes.push_str(&format!(" pci_link_speed=\"{rate:.6}\""));
        let index = os_index(address);
        match (one.secondary_bus, one.subordinate_bus) {
            (Some(first), last) if !children.is_empty() => {
                let last = last.unwrap_or(first);
                let domain = address.split(':').next().unwrap_or("0000");
                self.open(&format!(
                    "type=\"Bridge\" os_index=\"{index}\" bridge_type=\"1-1\" depth=\"{depth}\" \
                     bridge_pci=\"{domain}:[{first:02x}-{last:02x}]\" {attributes}"
                ));
                children.iter().for_each(|one| self.function(one, depth + 1));
                self.close();
            }
            _ => {
                self.open(&format!("type=\"PCIDev\" os_index=\"{index}\" {attributes}"));
                if let Some(name) = &one.name {
                    self.info("PCIDevice", name);
                }
                for (name, kind) in self.names.remove(address).unwrap_or_default() {
                    let name = markup(name);
                    self.leaf(&format!("type=\"OSDev\" name=\"{name}\" osdev_type=\"{kind}\""));
                }
                self.close();
                // Where a port's buses are not known, the devices below it are placed next to it.
                children.iter().for_each(|one| self.function(one, depth));
            }
        }
    }

    /// Class and numbers: `0302 [10de:20b2] [10de:1463] 00`.
    fn kind(&self, one: &PciFacts) -> String {
        let address = one.address.as_str();
        let gpu = self.gpus.contains(address);
        let named = self.names.get(address).and_then(|names| names.first());
        let must = match named {
            _ if one.secondary_bus.is_some() => 0x0604,
            _ if gpu => 0x0302,
            Some((_, 0)) => 0x0108,
            Some(_) => 0x0200,
            None => 0,
        };
        let class = one.class.map_or(must, |class| class >> 8);
        let vendor = one.vendor.unwrap_or(if gpu { NVIDIA } else { 0 });
        format!(
            "{class:04x} [{vendor:04x}:{:04x}] [{:04x}:{:04x}] 00",
            one.device.unwrap_or(0),
            one.subsystem_vendor.unwrap_or(0),
            one.subsystem_device.unwrap_or(0)
        )
    }

    /// The highest bus below a function, its own at least.
    fn last_bus(&self, one: &PciFacts) -> u8 {
        let own = one.address.split(':').nth(1).and_then(|bus| u8::from_str_radix(bus, 16).ok());
        one.subordinate_bus.max(own).unwrap_or(0)
    }

    fn open(&mut self, attributes: &str) {
        self.line(&format!("<object {attributes} gp_index=\"{}\">", self.index + 1));
        self.index += 1;
        self.depth += 1;
    }

    fn leaf(&mut self, attributes: &str) {
        self.line(&format!("<object {attributes} gp_index=\"{}\"/>", self.index + 1));
        self.index += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("</object>");
    }

    fn info(&mut self, name: &str, value: &str) {
        self.line(&format!("<info name=\"{}\" value=\"{}\"/>", markup(name), markup(value)));
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(&"  ".repeat(self.depth));
        self.out.push_str(text);
        self.out.push('\n');
    }
}

/// NUMA nodes; where none is known, one with the processors that are, else with one.
fn nodes(machine: &Machine) -> Vec<NumaNode> {
    let numa = &machine.host.numa.nodes;
    let mut nodes = numa.clone();
    if nodes.is_empty() {
        nodes.push(NumaNode {
            cpus: machine.host.cpu.online.clone(),
            total_bytes: machine.host.memory.total_bytes,
            ..NumaNode::default()
        });
    }
    if nodes.iter().all(|node| cpus(node).next().is_none()) {
        nodes[0].cpus = Some(vec![0]);
    }
    nodes
}

fn cpus(node: &NumaNode) -> impl Iterator<Item = u32> + '_ {
    node.cpus.iter().flatten().copied().filter(|cpu| *cpu < MOST_CPUS)
}

/// Names of disks, interfaces and RDMA devices, with the numbers that hwloc 2 has for their kinds.
fn names(machine: &Machine) -> BTreeMap<&str, Vec<(&str, u8)>> {
    const BLOCK: u8 = 0;
    const NETWORK: u8 = 2;
    const OPENFABRICS: u8 = 3;
    let mut names: BTreeMap<&str, Vec<(&str, u8)>> = BTreeMap::new();
    for disk in machine.block.iter().filter(|disk| disk.facts.kind == BlockKind::Disk) {
        for pci in &disk.pci {
            names.entry(pci).or_default().push((&disk.facts.name, BLOCK));
        }
    }
    for nic in &machine.nics {
        let Some(pci) = nic.pci.as_deref() else { continue };
        let own = names.entry(pci).or_default();
        own.extend(nic.interfaces.iter().map(|one| (one.name.as_str(), NETWORK)));
        own.extend(nic.rdma.iter().map(|one| (one.name.as_str(), OPENFABRICS)));
    }
    names
}

fn domain(address: &str) -> Option<u32> {
    u32::from_str_radix(address.split(':').next()?, 16).ok()
}

/// hwloc's number of a function: domain, bus, device and function in one.
fn os_index(address: &str) -> u32 {
    let number = |text: &str| u32::from_str_radix(text, 16).unwrap_or(0);
    let mut parts = address.split([':', '.']);
    let mut next = || parts.next().map_or(0, number);
    let (domain, bus, device, function) = (next(), next(), next(), next());
    (domain << 20) + (bus << 12) + (device << 4) + function
}

fn sets(cpuset: &str, nodeset: &str) -> String {
    format!(
        "cpuset=\"{cpuset}\" complete_cpuset=\"{cpuset}\" nodeset=\"{nodeset}\" \
         complete_nodeset=\"{nodeset}\""
    )
}

fn sets_of_cpu(cpu: u32, nodeset: &str) -> String {
    sets(&mask(&[cpu]), nodeset)
}

/// Bits as hwloc prints them: words of 32, the highest first, `0x00000001,0x00000000`.
fn mask(bits: &[u32]) -> String {
    let words = bits.iter().max().map_or(1, |most| most / 32 + 1);
    let word = |at: u32| {
        let here = bits.iter().filter(|bit| *bit / 32 == at);
        here.fold(0u32, |word, bit| word | 1 << (bit % 32))
    };
    let all: Vec<String> = (0..words).rev().map(|at| format!("0x{:08x}", word(at))).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_spelled_as_hwloc_does() {
        assert_eq!(mask(&[0, 1]), "0x00000003");
        assert_eq!(mask(&[0, 33, 64]), "0x00000001,0x00000002,0x00000001");
        assert_eq!(mask(&[]), "0x00000000");
        assert_eq!(os_index("0000:3b:00.1"), 0x3b001);
    }
}
