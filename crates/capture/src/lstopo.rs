//! `lstopo` as text (hwloc 1.11 to 2.x, `--of console`): objects by indentation.
//!
//! Bridges have no address there, and functions of hwloc 1 none either, unless `-v` was given: such
//! ones get a number (`lstopo#3`), which stands for the position in the text alone. Bridges are
//! enough for distances: who shares which is what the indentation shows.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{Fact, GpuFacts, LinkLayer, NumaNode, PciFacts};

use crate::hwloc::{Name, Named, put_name};
use crate::merge::function;
use crate::{
    CaptureError, Captured, Kind, MOST_DEVICES, MOST_FUNCTIONS, MOST_GPUS, lines, merge, pci_names,
};

pub(crate) const KIND: Kind = Kind {
    command: "lstopo",
    gives: "the tree, drives and cards by name",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let begins = |marks: &[&str]| {
            text.lines().any(|line| marks.iter().any(|mark| line.trim_start().starts_with(mark)))
        };
        begins(&["HostBridge", "PCIBridge", "Machine (", "Machine L#"])
            && begins(&["PCI ", "PCIBridge", "NUMANode L#", "Package L#", "Socket L#", "PU L#"])
    },
    add,
};

const WHY: &str = "lstopo does not report it";

/// An object that is open.
struct Open {
    indent: usize,
    /// NUMA nodes that stand right inside.
    nodes: Vec<u32>,
    /// Set where it is a function or bridge: its address.
    pci: Option<String>,
    host_bridge: Option<String>,
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    functions: Vec<PciFacts>,
    names: Vec<(String, String, Named)>,
    nodes: Vec<NumaNode>,
    numbered: usize,
    gpus: usize,
    /// Memory of the whole machine, and of the nodes that are shown, in GB.
    memory: (f64, f64),
}

/// Objects that are understood and hold nothing that is needed.
const PASSED: [&str; 24] = [
    "Machine",
    "System",
    "Package",
    "Socket",
    "Group",
    "Die",
    "Core",
    "PU",
    "L1",
    "L2",
    "L3",
    "L4",
    "L5",
    "Misc",
    "MemCache",
    "Cluster",
    "Module",
    "DMA",
    "Memory",
    "CoProc",
    "Co-Processor",
    "Network(",
    "depth",
    "NVSwitch",
];

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut reader = Reader::default();
    for (index, line) in lines(text) {
        if !reader.line(line) {
            captured.skip(CaptureError::new(index, line, 0, "an object, like PCIBridge"));
        }
        let full = reader.functions.len() >= MOST_FUNCTIONS
            || reader.names.len() >= MOST_DEVICES
            || reader.nodes.len() >= MOST_DEVICES
            || reader.gpus >= MOST_GPUS;
        if full {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
    }
    reader.put(captured);
    Ok(())
}

impl Reader {
    /// Takes in a line; `false` for one that lstopo does not print.
    fn line(&mut self, line: &str) -> bool {
        let body = line.trim_start();
        let indent = line.len() - body.len();
        while self.open.last().is_some_and(|open| open.indent >= indent) {
            self.open.pop();
        }
        let mut open = Open { indent, nodes: Vec::new(), pci: None, host_bridge: None };
        let word = body.split_whitespace().next().unwrap_or_default();
        match word {
            "Machine" => self.memory.0 += gigabytes(body),
            "NUMANode" => self.memory.1 += gigabytes(body),
            _ => {}
        }
        if word == "HostBridge" {
            self.numbered += 1;
            open.host_bridge = Some(format!("lstopo#{}", self.numbered));
        } else if word.starts_with("PCIBridge") {
            open.pci = Some(self.bridge(body));
        } else if word == "PCI" || word == "PCIDev" {
            open.pci = Some(self.device(body));
        } else if word == "NUMANode" {
            self.node(body, &mut open);
        } else if let Some(kind) = named(word) {
            self.name(body, kind);
        } else if !PASSED.iter().any(|known| word.starts_with(known)) {
            return false;
        }
        self.processor(body);
        self.open.push(open);
        true
    }

    /// The node around: the only one right inside of the nearest object that has any.
    fn around(&self) -> Option<u32> {
        let nearest = self.open.iter().rev().find(|open| !open.nodes.is_empty())?;
        match nearest.nodes.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// `NUMANode L#0 (P#0 256GB)`: beside what it is near to (hwloc 2), or around it (hwloc 1).
    fn node(&mut self, body: &str, open: &mut Open) {
        let number = body
            .split("P#")
            .nth(1)
            .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        let Some(node) = number.and_then(|number| number.parse().ok()) else { return };
        if self.nodes.iter().all(|known| known.node != node) {
            self.nodes.push(NumaNode { node, total_bytes: memory(body), ..NumaNode::default() });
        }
        open.nodes.push(node);
        if let Some(above) = self.open.last_mut() {
            above.nodes.push(node);
        }
    }

    /// `Core L#0 + PU L#0 (P#0)`: a processor of the node around it.
    fn processor(&mut self, body: &str) {
        let Some((_, rest)) = body.split_once("PU L#") else { return };
        let number = rest.split("P#").nth(1).map(|rest| rest.trim_end_matches(')'));
        let (Some(cpu), Some(node)) = (number.and_then(|n| n.parse().ok()), self.around()) else {
            return;
        };
        if let Some(node) = self.nodes.iter_mut().find(|known| known.node == node) {
            node.cpus.get_or_insert_default().push(cpu);
        }
    }

    /// Address in `busid=0000:07:00.0` or `PCI 07:00.0 (3D)`, else a number.
    fn address(&mut self, body: &str) -> String {
        let words = body.split([' ', '(', ')', '"']);
        let found =
            words.filter_map(|word| normalize_pci(word.strip_prefix("busid=").unwrap_or(word)));
        found.into_iter().next().unwrap_or_else(|| {
            self.numbered += 1;
            format!("lstopo#{}", self.numbered)
        })
    }

    fn place(&self, facts: &mut PciFacts) {
        let above = self.open.iter().rev();
        facts.parent = above.clone().find_map(|open| open.pci.clone());
        facts.host_bridge = above.clone().find_map(|open| open.host_bridge.clone());
        facts.node = self.around();
    }

    fn bridge(&mut self, body: &str) -> String {
        let address = self.address(body);
        let mut facts = function(address.clone(), WHY);
        facts.class = Some(0x06_0400);
        self.place(&mut facts);
        let buses = body.split_once("buses=").and_then(|(_, rest)| rest.split_once(":["));
        if let Some((first, last)) =
            buses.and_then(|(_, rest)| rest.split(']').next()?.split_once('-'))
        {
            facts.secondary_bus = u8::from_str_radix(first, 16).ok();
            facts.subordinate_bus = u8::from_str_radix(last, 16).ok();
        }
        facts.link_bytes_per_second = link(body);
        self.functions.push(facts);
        address
    }

    fn device(&mut self, body: &str) -> String {
        let address = self.address(body);
        let mut facts = function(address.clone(), WHY);
        self.place(&mut facts);
        // hwloc 1 has the numbers (`PCI 10de:1db8`), -v the class (`class=0302(3D)`).
        let words = body.split([' ', '(', ')']);
        let ids = words.clone().find_map(|word| {
            let (vendor, device) = word.strip_prefix("id=").unwrap_or(word).split_once(':')?;
            let hex = |text: &str| u16::from_str_radix(text, 16).ok().filter(|_| text.len() == 4);
            Some((hex(vendor)?, hex(device)?))
        });
        (facts.vendor, facts.device) = (ids.map(|ids| ids.0), ids.map(|ids| ids.1));
        let coded = words.clone().find_map(|word| {
            u32::from_str_radix(word.strip_prefix("class=")?, 16).ok().map(|class| class << 8)
        });
        facts.class = coded.or_else(|| words.clone().find_map(class)).or_else(|| {
            let gpu = ids.is_some_and(|(vendor, device)| pci_names::is_gpu(vendor, device));
            gpu.then_some(0x03_0200)
        });
        facts.link_bytes_per_second = link(body);
        self.functions.push(facts);
        address
    }

    /// `Net L#0 "ib0"`, `OpenFabrics "mlx5_0"`, `Block(Disk) "nvme0n1"`, `GPU(NVML) "nvml0"`.
    fn name(&mut self, body: &str, kind: Named) {
        let Some(name) = body.split('"').nth(1) else { return };
        if let Some(pci) = self.open.iter().rev().find_map(|open| open.pci.clone()) {
            self.names.push((pci, name.to_owned(), kind));
        }
    }

    fn put(mut self, captured: &mut Captured) {
        self.gpus_by_name();
        self.name_host_bridges();
        let is_gpu = |one: &&PciFacts| {
            one.vendor == Some(pci_names::NVIDIA) && one.class.is_some_and(|class| class >> 16 == 3)
        };
        let gpus = self.functions.iter().filter(is_gpu).map(|one| GpuFacts {
            pci: Some(one.address.clone()),
            node: one.node,
            name: Fact::unknown(WHY),
            ..GpuFacts::default()
        });
        gpuio_host::nvidia_gpu::merge(&mut captured.machine.gpus, gpus.collect());
        merge::functions(captured, self.functions);
        let machine = &mut captured.machine;
        // The heading has the sum of all nodes: of a text that was cut some are missing.
        let (all, shown) = self.memory;
        let whole = !self.nodes.is_empty() && all > 0.0 && shown > all * 0.95;
        for mut node in self.nodes {
            node.cpus.iter_mut().for_each(|cpus| cpus.sort_unstable());
            if !machine.host.numa.nodes.iter().any(|known| known.node == node.node) {
                machine.host.numa.nodes.push(node);
            }
        }
        machine.host.numa.nodes.sort_by_key(|node| node.node);
        machine.listed.nodes |= whole;
        for (pci, name, kind) in self.names {
            let carries = name.starts_with("ib").then_some(LinkLayer::Infiniband);
            put_name(machine, Name { pci, name, kind, model: None }, carries);
        }
    }

    /// Functions that NVML or CUDA knows are NVIDIA's GPUs.
    fn gpus_by_name(&mut self) {
        for (pci, name, kind) in &self.names {
            let nvidia = name.starts_with("nvml") || name.starts_with("cuda");
            let function = self.functions.iter_mut().find(|one| one.address == *pci);
            // NVIDIA's functions with a display's device are GPUs too.
            let is_gpu = |one: &&mut PciFacts| nvidia || one.vendor == Some(pci_names::NVIDIA);
            let function = function.filter(|_| *kind == Named::Gpu).filter(is_gpu);
            if let Some(function) = function {
                function.vendor = Some(pci_names::NVIDIA);
                function.class =
                    function.class.filter(|class| class >> 16 == 3).or(Some(0x03_0200));
            }
        }
    }

    /// A host bridge's bus is that of a function right below it, where one has an address.
    fn name_host_bridges(&mut self) {
        let mut named = std::collections::BTreeMap::new();
        for one in self.functions.iter().filter(|one| one.parent.is_none()) {
            let root = one.host_bridge.clone();
            let bus = one.address.rsplit_once(':').filter(|_| merge::is_address(&one.address));
            if let Some((root, (bus, _))) = root.zip(bus) {
                named.entry(root).or_insert_with(|| bus.to_owned());
            }
        }
        for one in &mut self.functions {
            if let Some(name) = one.host_bridge.as_ref().and_then(|root| named.get(root)) {
                one.host_bridge = Some(name.clone());
            }
        }
    }
}

/// The kind of a system device by its first word.
fn named(word: &str) -> Option<Named> {
    let kinds = [
        ("Block", Named::Block),
        ("Storage", Named::Block),
        ("Net", Named::Network),
        ("OpenFabrics", Named::Rdma),
        ("GPU", Named::Gpu),
        ("CoProc", Named::Gpu),
        ("Co-Processor", Named::Gpu),
    ];
    let plain = word.split('(').next().unwrap_or(word);
    kinds.into_iter().find(|(name, _)| *name == plain).map(|(_, kind)| kind)
}

/// hwloc's short names of classes (`hwloc_pci_class_string`).
fn class(word: &str) -> Option<u32> {
    Some(match word {
        "3D" => 0x03_0200,
        "VGA" => 0x03_0000,
        "Display" => 0x03_8000,
        "NVMExp" => 0x01_0802,
        "SATA" => 0x01_0601,
        "SAS" => 0x01_0700,
        "RAID" => 0x01_0400,
        "SCSI" => 0x01_0000,
        "IDE" => 0x01_0100,
        "Ethernet" => 0x02_0000,
        "InfiniBand" => 0x02_0700,
        "Fabric" => 0x02_0800,
        "Network" => 0x02_8000,
        "ProcessingAccel" => 0x12_0000,
        "Co-Processor" | "Coprocessor" => 0x0b_4000,
        _ => return None,
    })
}

/// The size in `(504GB total)` or `(P#0 252GB)`, in GB; 0 where there is none.
fn gigabytes(body: &str) -> f64 {
    let words = body.split([' ', '(', ')']);
    let units = [("TB", 1024.0), ("GB", 1.0), ("MB", 1.0 / 1024.0), ("KB", 0.0)];
    let sizes = words.filter_map(|word| {
        let (number, unit) =
            units.iter().find_map(|(unit, size)| Some((word.strip_suffix(unit)?, size)))?;
        Some(number.parse::<f64>().ok()? * unit)
    });
    sizes.sum()
}

/// The memory of `NUMANode L#0 (P#0 7950MB)`, as rounded as it is printed.
fn memory(body: &str) -> Option<u64> {
    let units = [("TB", 40), ("GB", 30), ("MB", 20), ("KB", 10)];
    // From `NUMANode L#0 (P#0 252GB) + L3 L#0 (16MB)` it takes the first.
    let words = body.split(')').next()?.split([' ', '(']);
    words.into_iter().find_map(|word| {
        let (number, power) =
            units.iter().find_map(|(unit, power)| Some((word.strip_suffix(unit)?, power)))?;
        number.parse::<u64>().ok()?.checked_mul(1 << power)
    })
}

/// `link=15.75GB/s`.
fn link(body: &str) -> Option<u64> {
    let (_, rest) = body.split_once("link=")?;
    crate::hwloc::gigabytes(rest.split("GB/s").next()?)
}
