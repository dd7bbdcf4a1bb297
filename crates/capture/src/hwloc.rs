//! `lstopo --of xml` (hwloc 1.11 to 3.0): bridges, PCI devices with what the system calls them and
//! their models, NUMA nodes, and the NVLinks between GPUs.
//!
//! A bridge lists its buses, so a device's bridge is found by its bus, which works on fragments
//! too, where tags are cut out. The link's speed is the product of speed and width.

use std::collections::BTreeMap;

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{
    BlockKind, Fact, GpuFacts, InterfaceFacts, LinkLayer, Machine, NumaNode, PciFacts, RdmaFacts,
};

use crate::hwloc_links::Links;
use crate::merge::function;
use crate::xml::{Tag, Tags, error};
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, MOST_FUNCTIONS, MOST_GPUS, merge};

pub(crate) const KIND: Kind = Kind {
    command: "lstopo --of xml",
    gives: "the tree, NUMA nodes, drives and cards by name, models, NVLinks",
    most_bytes: crate::LONG,
    looks_like: |text| text.contains("<object type=\""),
    add,
};

const WHY: &str = "lstopo does not report it";
const NVIDIA: u16 = 0x10de;
/// Class of an InfiniBand controller.
const INFINIBAND: u32 = 0x02_0700;
/// hwloc's own objects are nested about 30 deep.
const MOST_DEEP: usize = 1000;

/// An object that is open.
#[derive(Default)]
struct Open {
    /// Its PCI address, where it is a device or a bridge.
    pci: Option<String>,
    /// The NUMA node that it belongs to, where that is one.
    node: Option<u32>,
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    found: Vec<PciFacts>,
    /// Bridges by domain and the bus right below: their address, and their root bus.
    above: BTreeMap<(u32, u8), Above>,
    nodes: Vec<NumaNode>,
    /// How many of `found` are GPUs.
    gpus: usize,
    /// Names of the system, with the device that they belong to.
    names: Vec<Name>,
    /// Kinds of system devices are bits since hwloc 3.
    bits: bool,
    /// The object that `info` tags belong to.
    last: Last,
    links: Links,
}

/// A name that the system has for a device.
pub(crate) struct Name {
    pub(crate) pci: String,
    pub(crate) name: String,
    pub(crate) kind: Named,
    pub(crate) model: Option<String>,
}

/// The object that was opened last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    Function,
    Name,
    #[default]
    Other,
}

#[derive(Clone)]
struct Above {
    bridge: Option<String>,
    root: Option<String>,
    node: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Block,
    Network,
    Rdma,
    Gpu,
}

impl Named {
    /// By the number or word of `osdev_type`: numbers until hwloc 2, bits since 3 (hwloc.h,
    /// `hwloc_obj_osdev_type_e`), words in texts of both.
    fn of(kind: &str, bits: bool) -> Option<Named> {
        let by_bit = |mask: u32| {
            let kinds = [(5, Named::Rdma), (4, Named::Network), (2, Named::Gpu), (3, Named::Gpu)];
            let found = kinds.into_iter().find(|(bit, _)| mask >> bit & 1 != 0);
            // Storage that is memory too (NVDIMM) has no controller on PCI.
            found.map(|(_, named)| named).or((mask & 3 == 1).then_some(Named::Block))
        };
        match (kind.parse::<u32>(), kind) {
            (Ok(mask), _) if bits => by_bit(mask),
            (Ok(0), _) | (_, "Block" | "Storage") => Some(Named::Block),
            (Ok(1 | 5), _) | (_, "GPU" | "CoProc") => Some(Named::Gpu),
            (Ok(2), _) | (_, "Network" | "Net") => Some(Named::Network),
            (Ok(3), _) | (_, "OpenFabrics") => Some(Named::Rdma),
            _ => None,
        }
    }
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut reader = Reader::default();
    let mut tags = Tags::of(text);
    while let Some(tag) = tags.next_understood(captured)? {
        if reader.links.tag(&tag, &tags) {
            continue;
        }
        match tag.name {
            "topology" => reader.bits |= tag.get("version").is_some_and(|v| v.starts_with('3')),
            "info" => reader.info(&tag),
            _ => {}
        }
        if tag.name != "object" {
            continue;
        }
        if tag.closes {
            reader.open.pop();
            continue;
        }
        if reader.open.len() == MOST_DEEP {
            return Err(error(text, tag.at, "objects that are nested less deep"));
        }
        if reader.is_full() {
            return Err(error(text, tag.at, "fewer devices"));
        }
        let mut open = match reader.object(&tag) {
            Ok(open) => open,
            Err(wanted) => {
                tags.skip(captured, error(text, tag.at, wanted))?;
                Open::default()
            }
        };
        if tag.opens {
            open.node = open.node.or(reader.open.last().and_then(|above| above.node));
            reader.open.push(open);
        }
    }
    reader.put(captured, text.contains("</topology>"));
    Ok(())
}

impl Reader {
    fn object(&mut self, tag: &Tag<'_>) -> Result<Open, &'static str> {
        let node = tag.get("nodeset").and_then(only_bit);
        let mut pci = None;
        self.last = Last::Other;
        match tag.get("type").unwrap_or_default() {
            "Bridge" => pci = self.bridge(tag, node)?,
            "PCIDev" => pci = Some(self.device(tag)?),
            "OSDev" => self.name(tag),
            "NUMANode" => self.node(tag),
            _ => {}
        }
        Ok(Open { pci, node })
    }

    fn is_full(&self) -> bool {
        self.found.len() == MOST_FUNCTIONS
            || self.names.len() == MOST_DEVICES
            || self.nodes.len() == MOST_DEVICES
            || self.gpus == MOST_GPUS
    }

    fn around(&self) -> Option<u32> {
        self.open.last().and_then(|open| open.node)
    }

    fn node(&mut self, tag: &Tag<'_>) {
        let Some(node) = tag.get("os_index").and_then(|index| index.parse().ok()) else { return };
        self.nodes.push(NumaNode {
            node,
            cpus: tag.get("cpuset").and_then(bits),
            total_bytes: tag.get("local_memory").and_then(|bytes| bytes.parse().ok()),
            ..NumaNode::default()
        });
    }

    /// A bridge of type `1-1` is a PCI function, one of `0-1` a host bridge.
    fn bridge(&mut self, tag: &Tag<'_>, own: Option<u32>) -> Result<Option<String>, &'static str> {
        let wanted = "bridge_pci with a domain and buses, like 0000:[02-13]";
        let buses = tag.get("bridge_pci").ok_or(wanted)?;
        let (domain, first, last) = range(buses).ok_or(wanted)?;
        let host = tag.get("bridge_type").is_some_and(|kind| kind.starts_with("0-"));
        let (bridge, root, node) = if host {
            (None, Some(format!("{domain:04x}:{first:02x}")), own.or(self.around()))
        } else {
            let mut facts = self.function(tag)?;
            (facts.secondary_bus, facts.subordinate_bus) = (Some(first), Some(last));
            let known = (Some(facts.address.clone()), facts.host_bridge.clone(), facts.node);
            self.found.push(facts);
            self.last = Last::Function;
            known
        };
        // Bus numbers increase downwards.
        let own = bridge.as_deref().and_then(domain_and_bus);
        if own.is_none_or(|own| own.0 == domain && own.1 < first) {
            self.above.insert((domain, first), Above { bridge: bridge.clone(), root, node });
        }
        Ok(bridge)
    }

    fn device(&mut self, tag: &Tag<'_>) -> Result<String, &'static str> {
        let facts = self.function(tag)?;
        self.gpus += usize::from(is_gpu(&facts));
        let address = facts.address.clone();
        self.found.push(facts);
        self.last = Last::Function;
        Ok(address)
    }

    /// Names of vendor and device of a function, and the model of a drive or GPU.
    fn info(&mut self, tag: &Tag<'_>) {
        let Some((key, value)) = tag.get("name").zip(tag.get("value")) else { return };
        match (self.last, key) {
            (Last::Function, "PCIVendor") => {
                if let Some(one) = self.found.last_mut() {
                    one.name = Some(value.to_owned());
                }
            }
            (Last::Function, "PCIDevice") => {
                if let Some(one) = self.found.last_mut() {
                    let vendor = one.name.take().map(|vendor| format!("{vendor} "));
                    one.name = Some(format!("{}{value}", vendor.unwrap_or_default()));
                }
            }
            (Last::Name, "Model" | "GPUModel") => {
                if let Some(name) = self.names.last_mut() {
                    name.model = Some(value.to_owned());
                }
            }
            _ => {}
        }
    }

    fn function(&self, tag: &Tag<'_>) -> Result<PciFacts, &'static str> {
        let wanted = "pci_busid with an address, like 0000:07:00.0";
        let address = tag.get("pci_busid").and_then(normalize_pci).ok_or(wanted)?;
        let (domain, bus) = domain_and_bus(&address).ok_or(wanted)?;
        let mut facts = function(address, WHY);
        if let Some(above) = self.above.get(&(domain, bus)) {
            facts.parent.clone_from(&above.bridge);
            facts.host_bridge.clone_from(&above.root);
            facts.node = above.node;
        }
        facts.node = facts.node.or(self.around());
        let wanted = "pci_type with class and numbers, like 0302 [10de:20b2] [10de:1463] a1";
        let kind = tag.get("pci_type").ok_or(wanted)?;
        let (class, ids) = kind.split_once(' ').ok_or(wanted)?;
        let class = u32::from_str_radix(class, 16).map_err(|_| wanted)?;
        // Two of three bytes are known; NVMe and AHCI have no other programming interface in use.
        facts.class = Some(
            class << 8
                | match class {
                    0x0108 => 2,
                    0x0106 => 1,
                    _ => 0,
                },
        );
        let mut pairs = ids.split(['[', ']']).filter_map(|part| part.split_once(':'));
        let mut next = || {
            let (vendor, device) = pairs.next()?;
            Some((u16::from_str_radix(vendor, 16).ok()?, u16::from_str_radix(device, 16).ok()?))
        };
        let (vendor, device) = next().ok_or(wanted)?;
        (facts.vendor, facts.device) = (Some(vendor), Some(device));
        if let Some((vendor, device)) = next() {
            (facts.subsystem_vendor, facts.subsystem_device) = (Some(vendor), Some(device));
        }
        facts.link_bytes_per_second = tag.get("pci_link_speed").and_then(gigabytes);
        Ok(facts)
    }

    fn name(&mut self, tag: &Tag<'_>) {
        let Some(kind) = tag.get("osdev_type").and_then(|kind| Named::of(kind, self.bits)) else {
            return;
        };
        let Some(name) = tag.get("name") else { return };
        let device = self.open.iter().rev().find_map(|open| open.pci.clone());
        if let Some(pci) = device {
            self.links.named(tag, &pci);
            self.names.push(Name { pci, name: name.to_owned(), kind, model: None });
            self.last = Last::Name;
        }
    }

    /// `whole` where the text has its end.
    fn put(self, captured: &mut Captured, whole: bool) {
        let gpus = self.found.iter().filter(|one| is_gpu(one));
        let gpus = gpus.map(|one| GpuFacts {
            pci: Some(one.address.clone()),
            node: one.node,
            name: Fact::unknown(WHY),
            nvlinks: self.links.of(&one.address),
            ..GpuFacts::default()
        });
        gpuio_host::nvidia_gpu::merge(&mut captured.machine.gpus, gpus.collect());
        let infiniband = self.found.iter().filter(|one| one.class == Some(INFINIBAND));
        let infiniband: Vec<String> = infiniband.map(|one| one.address.clone()).collect();
        merge::functions(captured, self.found);
        let machine = &mut captured.machine;
        if !self.nodes.is_empty() {
            machine.host.numa.nodes = self.nodes;
            machine.host.numa.nodes.sort_by_key(|node| node.node);
            machine.listed.nodes |= whole;
        }
        for name in self.names {
            // A card for both has the class of what it was set up for.
            let carries = infiniband.contains(&name.pci).then_some(LinkLayer::Infiniband);
            put_name(machine, name, carries);
        }
    }
}

/// Gives a device the name that the system has for it; `carries` concerns a network interface.
pub(crate) fn put_name(machine: &mut Machine, name: Name, carries: Option<LinkLayer>) {
    let Name { pci, name, kind, model } = name;
    match kind {
        Named::Block => {
            let block = merge::block(machine, &namespace(&name), BlockKind::Disk);
            block.facts.pci_address = Some(pci.clone());
            block.facts.model = model.or(block.facts.model.take());
            block.pci = vec![pci];
        }
        Named::Network => {
            let card = merge::card(machine, Some(&pci), None, Some(&name));
            if !card.interfaces.iter().any(|one| one.name == name) {
                let new = InterfaceFacts { name, carries, ..InterfaceFacts::default() };
                card.interfaces.push(new);
            }
        }
        Named::Rdma => {
            let card = merge::card(machine, Some(&pci), Some(&name), None);
            if !card.rdma.iter().any(|one| one.name == name) {
                card.rdma.push(RdmaFacts { name, ..RdmaFacts::default() });
            }
        }
        Named::Gpu => {
            let gpu = machine.gpus.iter_mut().find(|gpu| gpu.pci.as_ref() == Some(&pci));
            let Some(gpu) = gpu else { return };
            if let Some(model) = model {
                gpu.name = Fact::Known(model);
            }
            // NVML's number is nvidia-smi's; CUDA's may differ.
            let number = name.strip_prefix("nvml").and_then(|number| number.parse().ok());
            if let Some(number) = number {
                gpu.index = Fact::Known(number);
            }
        }
    }
}

fn is_gpu(one: &PciFacts) -> bool {
    one.vendor == Some(NVIDIA) && one.class.is_some_and(|class| class >> 16 == 3)
}

/// The disk of one of its paths: `nvme0n1` for `nvme0c0n1`, which can't be opened.
pub(crate) fn namespace(name: &str) -> String {
    let parts = name.strip_prefix("nvme").and_then(|rest| {
        let (subsystem, rest) = rest.split_once('c')?;
        let (controller, namespace) = rest.split_once('n')?;
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (digits(subsystem) && digits(controller)).then(|| format!("nvme{subsystem}n{namespace}"))
    });
    parts.unwrap_or_else(|| name.to_owned())
}

/// `0000:[02-13]`.
fn range(text: &str) -> Option<(u32, u8, u8)> {
    let (domain, buses) = text.split_once(":[")?;
    let (first, last) = buses.strip_suffix(']')?.split_once('-')?;
    let bus = |text: &str| u8::from_str_radix(text, 16).ok();
    Some((u32::from_str_radix(domain, 16).ok()?, bus(first)?, bus(last)?))
}

/// Domain and bus of a PCI address.
pub(crate) fn domain_and_bus(address: &str) -> Option<(u32, u8)> {
    let mut parts = address.split(':');
    let domain = u32::from_str_radix(parts.next()?, 16).ok()?;
    Some((domain, u8::from_str_radix(parts.next()?, 16).ok()?))
}

/// `31.507692` GB/s in bytes per second; 0 is hwloc's word for unknown.
pub(crate) fn gigabytes(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let part =
        part.get(..part.len().min(9)).filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?;
    let nano: u64 = format!("{part:0<9}").parse().ok()?;
    let rate = whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nano)?;
    (rate > 0).then_some(rate)
}

/// Bits that are set in a mask like `0x0000ffff,0xffff0000`, the highest word first; `None` for
/// infinite masks (`0xf...f`) and what is no mask.
fn bits(mask: &str) -> Option<Vec<u32>> {
    let mut set = Vec::new();
    for (word, at) in mask.rsplit(',').zip(0u32..) {
        let word = word.strip_prefix("0x").unwrap_or(word);
        // An empty word is 0.
        let word = if word.is_empty() { 0 } else { u32::from_str_radix(word, 16).ok()? };
        let first = at.checked_mul(32)?;
        set.extend((0..32).filter(|bit| word >> bit & 1 != 0).map(|bit| first + bit));
    }
    Some(set)
}

/// As [`bits`], of masks without `0x` (`ffff0000,00000000`).
pub(crate) fn bits_of_words(mask: &str) -> Option<Vec<u32>> {
    let words = mask.split(',').all(|word| word.len() <= 8 && !word.contains('.'));
    words.then(|| bits(mask))?.map(|mut bits| {
        bits.sort_unstable();
        bits
    })
}

fn only_bit(mask: &str) -> Option<u32> {
    match bits(mask)?.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}
