//! NCCL's topology (`NCCL_TOPO_DUMP_FILE`): processors with their NUMA nodes, bridges, GPUs with
//! NVLinks, network cards.
//!
//! It has the switches above GPUs and cards, no ports, no host bridges and no drives.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{
    Fact, GpuFacts, Lanes, LinkLayer, NumaNode, NvLinkEnd, NvLinkPeer, PciFacts, PciPort,
    RdmaFacts, RdmaPort,
};

use crate::merge::function;
use crate::xml::{Tag, Tags, error};
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, MOST_FUNCTIONS, MOST_GPUS, merge};

pub(crate) const KIND: Kind = Kind {
    command: "NCCL_TOPO_DUMP_FILE",
    gives: "GPUs, cards, the switches above them, NVLinks, NUMA nodes",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.contains("<pci busid=\"") && (text.contains("<gpu ") || text.contains("<nic"))
            || text.contains("<system version=") && text.contains("<cpu ")
    },
    add,
};

const WHY: &str = "NCCL's topology does not have it";
/// NCCL nests a few bridges.
const MOST_DEEP: usize = 100;

/// A tag that is open.
enum Open {
    /// A processor's NUMA node.
    Cpu(Option<u32>),
    Pci(String),
    /// A GPU, by its position among those found.
    Gpu(usize),
    Other,
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    functions: Vec<PciFacts>,
    gpus: Vec<GpuFacts>,
    cards: Vec<(Option<String>, RdmaFacts)>,
    nodes: Vec<NumaNode>,
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut reader = Reader::default();
    let mut tags = Tags::of(text);
    while let Some(tag) = tags.next_understood(captured)? {
        if tag.closes {
            reader.open.pop();
            continue;
        }
        if reader.is_full() {
            return Err(error(text, tag.at, "fewer devices"));
        }
        let open = match reader.tag(&tag) {
            Ok(open) => open,
            Err(wanted) => {
                tags.skip(captured, error(text, tag.at, wanted))?;
                Open::Other
            }
        };
        if tag.opens {
            reader.open.push(open);
        }
    }
    reader.put(captured);
    Ok(())
}

impl Reader {
    fn is_full(&self) -> bool {
        self.open.len() > MOST_DEEP
            || self.functions.len() == MOST_FUNCTIONS
            || self.gpus.len() == MOST_GPUS
            || self.cards.len() == MOST_DEVICES
            || self.nodes.len() == MOST_DEVICES
    }

    fn tag(&mut self, tag: &Tag<'_>) -> Result<Open, &'static str> {
        Ok(match tag.name {
            "cpu" => self.cpu(tag),
            "pci" => self.pci(tag)?,
            "gpu" => self.gpu(tag),
            "net" => {
                self.net(tag);
                Open::Other
            }
            "nvlink" => {
                self.nvlink(tag);
                Open::Other
            }
            _ => Open::Other,
        })
    }

    fn node(&self) -> Option<u32> {
        self.open.iter().rev().find_map(|open| match open {
            Open::Cpu(node) => Some(*node),
            _ => None,
        })?
    }

    fn above(&self) -> Option<&String> {
        self.open.iter().rev().find_map(|open| match open {
            Open::Pci(address) => Some(address),
            _ => None,
        })
    }

    fn cpu(&mut self, tag: &Tag<'_>) -> Open {
        // -1 where there is one node, or none is known.
        let node = tag.get("numaid").and_then(|node| node.parse::<u32>().ok());
        let cpus = tag.get("affinity").and_then(crate::hwloc::bits_of_words);
        if let Some(node) = node.filter(|node| self.nodes.iter().all(|known| known.node != *node)) {
            self.nodes.push(NumaNode { node, cpus, ..NumaNode::default() });
        }
        Open::Cpu(node)
    }

    fn pci(&mut self, tag: &Tag<'_>) -> Result<Open, &'static str> {
        let wanted = "busid with an address, like 0000:07:00.0";
        let address = tag.get("busid").and_then(normalize_pci).ok_or(wanted)?;
        let mut facts = function(address.clone(), WHY);
        facts.parent = self.above().cloned();
        facts.node = self.node();
        facts.class = tag.get("class").and_then(hex);
        let short = |key: &str| tag.get(key).and_then(hex).and_then(|id| u16::try_from(id).ok());
        (facts.vendor, facts.device) = (short("vendor"), short("device"));
        facts.subsystem_vendor = short("subsystem_vendor");
        facts.subsystem_device = short("subsystem_device");
        facts.link_now = Lanes {
            mega_transfers: tag.get("link_speed").and_then(speed),
            width: tag.get("link_width").and_then(|width| width.parse().ok()),
        };
        // NCCL goes up two functions at a time (`ncclTopoGetXmlFromSys`): of a switch it has the
        // port towards the root, of the root complex nothing.
        if facts.class.is_some_and(|class| class >> 8 == 0x0604) {
            facts.port = Fact::Known(PciPort::SwitchUpstream);
        }
        self.functions.push(facts);
        Ok(Open::Pci(address))
    }

    fn gpu(&mut self, tag: &Tag<'_>) -> Open {
        let Some(pci) = self.above().cloned() else { return Open::Other };
        // RCCL writes the same for GPUs of other makers.
        let vendor =
            self.functions.iter().find(|one| one.address == pci).and_then(|one| one.vendor);
        if vendor.is_some_and(|vendor| vendor != crate::pci_names::NVIDIA) {
            return Open::Other;
        }
        // The order of `dev` is NVML's.
        let index = tag.get("dev").and_then(|dev| dev.parse().ok());
        self.gpus.push(GpuFacts {
            pci: Some(pci),
            index: Fact::or_unknown(index, WHY),
            node: self.node(),
            name: Fact::unknown(WHY),
            nvlinks: Fact::Known(Vec::new()),
            ..GpuFacts::default()
        });
        Open::Gpu(self.gpus.len() - 1)
    }

    fn nvlink(&mut self, tag: &Tag<'_>) {
        let gpu = self.open.iter().rev().find_map(|open| match open {
            Open::Gpu(at) => Some(*at),
            _ => None,
        });
        let Some(gpu) = gpu.and_then(|at| self.gpus.get_mut(at)) else { return };
        let target = tag.get("target").and_then(normalize_pci);
        // The classes that NCCL knows (`topo.cc`, kvDictPciClass).
        let kind = match tag.get("tclass").and_then(hex) {
            Some(0x06_8001) => NvLinkEnd::Cpu,
            Some(class) if class >> 16 == 0x06 => NvLinkEnd::Switch,
            Some(class) if class >> 16 == 0x03 => NvLinkEnd::Gpu,
            _ => NvLinkEnd::Unknown,
        };
        let links = tag.get("count").and_then(|count| count.parse().ok()).unwrap_or(1);
        let peer = NvLinkPeer { pci: target, kind, links, version: None, bytes_per_second: None };
        if let Fact::Known(peers) = &mut gpu.nvlinks {
            peers.push(peer);
        }
    }

    fn net(&mut self, tag: &Tag<'_>) {
        let Some(name) = tag.get("name") else { return };
        let port = tag.get("port").and_then(|port| port.parse().ok()).unwrap_or(1);
        let megabits = tag.get("speed").and_then(|speed| speed.parse().ok());
        let infiniband = self.above().and_then(|pci| {
            let class = self.functions.iter().find(|one| one.address == *pci)?.class?;
            (class >> 8 == 0x0207).then_some(LinkLayer::Infiniband)
        });
        let port = RdmaPort { port, megabits, carries: infiniband, ..RdmaPort::default() };
        let rdma = RdmaFacts { name: name.to_owned(), ports: vec![port], ..RdmaFacts::default() };
        self.cards.push((self.above().cloned(), rdma));
    }

    fn put(self, captured: &mut Captured) {
        merge::functions(captured, self.functions);
        let machine = &mut captured.machine;
        gpuio_host::nvidia_gpu::merge(&mut machine.gpus, self.gpus);
        for (pci, rdma) in self.cards {
            let card = merge::card(machine, pci.as_deref(), Some(&rdma.name), None);
            if !card.rdma.iter().any(|one| one.name == rdma.name) {
                card.rdma.push(rdma);
            }
        }
        for node in self.nodes {
            if !machine.host.numa.nodes.iter().any(|known| known.node == node.node) {
                machine.host.numa.nodes.push(node);
            }
        }
        machine.host.numa.nodes.sort_by_key(|node| node.node);
    }
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

/// `16 GT/s`, `16.0 GT/s PCIe`, in millions of transfers.
fn speed(text: &str) -> Option<u64> {
    let number = text.split_whitespace().next()?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let tenths: u64 = part.get(..1)?.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(tenths * 100)
}
