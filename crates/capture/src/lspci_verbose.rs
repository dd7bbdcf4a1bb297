//! `lspci` and `lspci -vv` (pciutils), also with `-nn`, `-k`, `-D`, `-x` and `-PP`: a block of
//! lines per function, the first one with its address, the others indented. In a post the first
//! may be indented, too.
//!
//! Bridges list their buses, so functions find the bridge above by their own bus. Without root
//! `lspci` prints `<access denied>` for capabilities, and those facts stay unknown.

use gpuio_host::{numa::normalize_pci, nvidia_gpu};
use gpuio_record::facts::{Acs, AcsControl, Bar1Facts, Fact, GpuFacts, Lanes, PciFacts, PciPort};

use crate::merge::function;
use crate::pci_names::{self, NVIDIA, ids};
use crate::prompt::command_of;
use crate::{CaptureError, Captured, Kind, MOST_FUNCTIONS, MOST_GPUS, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "lspci -vv",
    gives: "functions, classes, links, NUMA nodes, ACS; also `-v`, `-vvv`, `-x`, `-PP`",
    most_bytes: crate::LONG,
    looks_like: |text| {
        let indented = |line: &str| line.starts_with(['\t', ' ']);
        let mut heads = text.lines().filter(|line| !indented(line)).filter_map(head);
        heads.next().is_some() && text.lines().any(|line| indented(line) && line.contains(": "))
            || of_one_function(text)
    },
    add,
};

/// The list without details: functions by class and name, and no way between them.
pub(crate) const PLAIN: Kind = Kind {
    command: "lspci",
    gives: "functions and classes; also `-n`, `-nn`",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().map(str::trim_start).any(|line| is_function(line) || is_numbered(line))
    },
    ..KIND
};

/// Lines of details below a command that names their function, as `grep` leaves them.
fn of_one_function(text: &str) -> bool {
    let mut lines = text.lines().skip_while(|line| selected(line).is_none()).skip(1);
    lines.next().is_some_and(is_detail)
}

/// The function that a command at a prompt shows alone: `$ lspci -vvv -s 41:00.0 | grep -i lnk`.
fn selected(line: &str) -> Option<String> {
    let command = command_of(line)?;
    let mut words = command.split('|').next()?.split_whitespace();
    words.find(|word| word.rsplit('/').next() == Some("lspci"))?;
    let at = words.find(|word| word.starts_with("-s"))?;
    let own = at.strip_prefix("-s").filter(|rest| !rest.is_empty());
    normalize_pci(own.or_else(|| words.next())?)
}

/// A line of a function's links, which `grep` may have parted from it.
fn is_detail(line: &str) -> bool {
    let mut starts = ["LnkCap", "LnkSta", "LnkCtl"].into_iter();
    starts.any(|start| line.trim_start().starts_with(start))
}

/// A function with the name of its class.
fn is_function(line: &str) -> bool {
    head(line).is_some_and(|(_, rest)| {
        let class = rest.split(": ").next().unwrap_or_default();
        let class = class.split(" [").next().unwrap_or_default();
        pci_names::class_named(class).is_some()
    })
}

/// A function of `lspci -n`.
fn is_numbered(line: &str) -> bool {
    head(line)
        .and_then(|(_, rest)| rest.split_once(": "))
        .is_some_and(|(class, _)| class.len() == 4 && u32::from_str_radix(class, 16).is_ok())
}

const WHY: &str = "lspci -vv did not print it";
const DENIED: &str = "lspci was not run as root";

/// The facts found on one function.
struct Block {
    facts: PciFacts,
    is_gpu: bool,
    largest_region: Option<u64>,
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut gpus = 0;
    // Details behind a line that is none of a function belong to none.
    let mut inside = false;
    let mut before = false;
    // How far the functions are indented, as in a quotation: their details are further.
    let mut depth = 0;
    let all: Vec<&str> = text.lines().collect();
    for (index, line) in lines(text) {
        let unindented = line.trim_start();
        let above = index.checked_sub(1).filter(|_| is_detail(line));
        if let Some(address) = above.and_then(|above| selected(all[above])) {
            blocks.push(begin(address, ""));
            (inside, before) = (true, true);
        }
        if inside && is_detail(line) && line == unindented {
            if let Some(Err(why)) = blocks.last_mut().map(|block| detail(index, line, block)) {
                captured.skip(why);
            }
            continue;
        }
        let indent = line.len() - unindented.len();
        let line = if is_function(unindented) { unindented } else { line };
        if is_function(unindented) {
            depth = indent;
        } else if depth > 0 && indent == depth && !line.contains(':') {
            captured.skip(CaptureError::new(index, line, 0, "a detail of the function above"));
            continue;
        }
        if let (Some(block), Some((from, bytes))) =
            (blocks.last_mut().filter(|_| inside), dump(line))
        {
            configuration(from, &bytes, &mut block.facts);
            continue;
        }
        if line.starts_with(['\t', ' ']) {
            match blocks.last_mut().filter(|_| inside) {
                Some(block) => {
                    if let Err(why) = detail(index, line, block) {
                        captured.skip(why);
                    }
                }
                None if !before => {
                    before = true;
                    captured.skip(CaptureError::new(index, line, 0, "a function's address first"));
                }
                None => {}
            }
            continue;
        }
        before = true;
        let found = head(line);
        inside = found.is_some();
        let Some((address, rest)) = found else {
            captured.skip(CaptureError::new(index, line, 0, "an address, like 36:00.0"));
            continue;
        };
        let mut block = begin(address, rest);
        let bridges = bridges_above(line, &block.facts.address);
        block.facts.parent = bridges.last().map(|bridge| bridge.facts.address.clone());
        blocks.extend(bridges);
        blocks.push(block);
        gpus += usize::from(blocks.last().is_some_and(|block| block.is_gpu));
        if blocks.len() > MOST_FUNCTIONS || gpus > MOST_GPUS {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
    }
    let gpus = blocks.iter().filter(|block| block.is_gpu).map(gpu).collect();
    nvidia_gpu::merge(&mut captured.machine.gpus, gpus);
    merge::functions(captured, blocks.into_iter().map(|block| block.facts).collect());
    adopt(&mut captured.machine.pci);
    Ok(())
}

/// `36:00.0 3D controller: …`: the address and the rest. `-PP` prints the way to it:
/// `00:01.0/01:00.0 3D controller: …`.
fn head(line: &str) -> Option<(String, &str)> {
    let (way, rest) = line.split_once(' ')?;
    let address = way.rsplit('/').next().unwrap_or(way);
    Some((normalize_pci(address)?, rest))
}

/// The addresses of the way to a function (`-PP`), its own last.
fn way(line: &str) -> Vec<String> {
    let way = line.split(' ').next().unwrap_or_default();
    way.split('/').map_while(normalize_pci).collect()
}

/// The bridges above a function, by the way that its line shows.
fn bridges_above(line: &str, address: &str) -> Vec<Block> {
    let way = way(line);
    let Some((_, bridges)) = way.split_last().filter(|(own, _)| *own == address) else {
        return Vec::new();
    };
    let mut above: Option<&String> = None;
    let block = bridges.iter().map(|bridge| {
        let mut facts = function(bridge.clone(), WHY);
        facts.class = Some(0x06_0400);
        facts.parent = above.cloned();
        above = Some(bridge);
        Block { facts, is_gpu: false, largest_region: None }
    });
    block.collect()
}

/// A row of configuration space (`-x`): `10: 00 00 c0 f7 …`, its offset and 16 bytes.
fn dump(line: &str) -> Option<(usize, Vec<u8>)> {
    let (offset, rest) = line.split_once(": ")?;
    let hex = |word: &str| u8::from_str_radix(word, 16).ok().filter(|_| word.len() == 2);
    let bytes: Option<Vec<u8>> = rest.split(' ').map(hex).collect();
    let offset = usize::from_str_radix(offset, 16).ok().filter(|offset| offset % 16 == 0)?;
    Some((offset, bytes.filter(|bytes| bytes.len() == 16)?))
}

/// The numbers in the header of configuration space (PCI Local Bus Specification 3.0, 6.1;
/// PCI-to-PCI Bridge Architecture Specification 1.2, 3.2).
fn configuration(from: usize, bytes: &[u8], facts: &mut PciFacts) {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let word = |at: usize| u16::from_le_bytes([byte(at), byte(at + 1)]);
    let is_bridge = facts.class.is_some_and(|class| class >> 8 == 0x0604);
    match from {
        0x00 => {
            (facts.vendor, facts.device) = (Some(word(0)), Some(word(2)));
            let class = [0, byte(11), byte(10), byte(9)];
            facts.class = Some(u32::from_be_bytes(class));
        }
        0x10 if is_bridge => {
            (facts.secondary_bus, facts.subordinate_bus) = (Some(byte(9)), Some(byte(10)));
        }
        0x20 if !is_bridge => {
            let subsystem = (Some(word(12)), Some(word(14)));
            (facts.subsystem_vendor, facts.subsystem_device) = subsystem;
        }
        _ => {}
    }
}

/// `3D controller [0302]: NVIDIA Corporation GA100 [A100] [10de:20b0] (rev a1) (prog-if 00 [x])`.
fn begin(address: String, rest: &str) -> Block {
    let mut facts = function(address, WHY);
    let (class, name) = rest.split_once(": ").unwrap_or((rest, ""));
    // `lspci -n`: `0302: 10de:20b0 (rev a1)`.
    let bare = Some(class).filter(|class| class.len() == 4);
    let bare = bare.and_then(|class| u32::from_str_radix(class, 16).ok());
    let (class_name, number) = match class.rsplit_once(" [") {
        Some((name, code)) => (name, u32::from_str_radix(code.trim_end_matches(']'), 16).ok()),
        None => (class, bare),
    };
    let named = pci_names::class_named(class_name);
    let interface = name
        .split_once("(prog-if ")
        .and_then(|(_, rest)| u32::from_str_radix(rest.get(..2)?, 16).ok());
    let code = number.map(|number| number << 8 | named.map_or(0, |code| code & 0xff)).or(named);
    facts.class = match (code, interface) {
        (Some(code), Some(interface)) => Some(code & 0xff_ff00 | interface),
        (code, _) => code,
    };
    let plain = name.split(" (rev ").next().unwrap_or(name);
    let plain = plain.split(" (prog-if ").next().unwrap_or(plain);
    let numbers = bare.and_then(|_| ids(&format!("[{}]", plain.trim())));
    if let Some((vendor, device)) = numbers.or_else(|| ids(plain)) {
        (facts.vendor, facts.device) = (Some(vendor), Some(device));
    }
    let plain = if numbers.is_some() { "" } else { plain };
    facts.name = Some(plain.to_owned()).filter(|name| !name.is_empty());
    let named = pci_names::vendor(plain) == Some(NVIDIA);
    let nvidia = facts.vendor.map_or(named, |vendor| vendor == NVIDIA);
    let is_gpu = nvidia && facts.class.is_some_and(|class| class >> 16 == 3);
    if nvidia {
        facts.vendor = Some(NVIDIA);
        // An older copy of pci.ids has no name for it.
        let unnamed = plain.split_once(" Device ").map(|(_, number)| number.trim());
        let number = unnamed.and_then(|number| u16::from_str_radix(number, 16).ok());
        facts.device = facts.device.or(number);
    }
    Block { facts, is_gpu, largest_region: None }
}

fn detail(index: usize, line: &str, block: &mut Block) -> Result<(), CaptureError> {
    let Block { facts, largest_region, .. } = block;
    let body = line.trim();
    let wrong = |part: &str, wanted| CaptureError::at(index, line, part, wanted);
    if body.contains("<access denied>") {
        denied(facts);
    } else if let Some(rest) = body.strip_prefix("Subsystem: ") {
        if let Some((vendor, device)) = ids(rest) {
            (facts.subsystem_vendor, facts.subsystem_device) = (Some(vendor), Some(device));
        }
    } else if let Some(rest) = body.strip_prefix("NUMA node: ") {
        // -1 where the firmware does not report it.
        let node: i64 = rest.parse().map_err(|_| wrong(rest, "a node's number"))?;
        facts.node = u32::try_from(node).ok();
    } else if let Some(rest) = body.strip_prefix("Flags: ") {
        // With one -v they stand in one line: `bus master, …, NUMA node 1, IOMMU group 34`.
        for flag in rest.split(", ") {
            let number = |start: &str| flag.strip_prefix(start)?.trim().parse::<u32>().ok();
            facts.node = facts.node.or(number("NUMA node "));
            facts.iommu_group = facts.iommu_group.or(number("IOMMU group "));
        }
    } else if let Some(rest) = body.strip_prefix("Memory at ") {
        *largest_region = (*largest_region).max(region(&format!("Memory at {rest}")));
    } else if let Some(rest) = body.strip_prefix("IOMMU group: ") {
        facts.iommu_group = Some(rest.parse().map_err(|_| wrong(rest, "a group's number"))?);
    } else if let Some(rest) = body.strip_prefix("Kernel driver in use: ") {
        facts.driver = Some(rest.to_owned());
    } else if let Some(rest) = body.strip_prefix("Bus: ") {
        facts.secondary_bus = bus(rest, "secondary=");
        facts.subordinate_bus = bus(rest, "subordinate=");
        if facts.secondary_bus.is_none() || facts.subordinate_bus.is_none() {
            return Err(wrong(rest, "primary=, secondary= and subordinate= in hexadecimal"));
        }
    } else if let Some(rest) = body.strip_prefix("Region ") {
        *largest_region = (*largest_region).max(region(rest));
    } else if body.starts_with("Capabilities: ") {
        if let Some((_, kind)) = body.split_once("] Express ") {
            facts.port = port(kind);
            // The list is there: what it does not hold, the function does not have.
            facts.acs = Fact::Known(Acs::default());
        }
    } else if let Some(rest) = body.strip_prefix("LnkCap:") {
        facts.link_most =
            Lanes::of_lspci(rest).ok_or_else(|| wrong(rest, "Speed …GT/s, Width x…"))?;
    } else if let Some(rest) = body.strip_prefix("LnkSta:") {
        facts.link_now =
            Lanes::of_lspci(rest).ok_or_else(|| wrong(rest, "Speed …GT/s, Width x…"))?;
    } else if let Some(rest) = body.strip_prefix("DevCap:") {
        set(&mut facts.max_payload_supported_bytes, number_after(rest, "MaxPayload "));
    } else if let Some(rest) = body.strip_prefix("ACSCtl:") {
        facts.acs = Fact::Known(Acs { present: true, enabled: controls(rest) });
    } else {
        if body.starts_with("MaxPayload ") {
            set(&mut facts.max_payload_bytes, number_after(body, "MaxPayload "));
            set(&mut facts.max_read_request_bytes, number_after(body, "MaxReadReq "));
        }
        if let Some(at) = body.find("RlxdOrd") {
            let on = body[at + "RlxdOrd".len()..].starts_with('+');
            facts.relaxed_ordering = Fact::Known(on);
        }
    }
    Ok(())
}

fn denied(facts: &mut PciFacts) {
    facts.port = Fact::unknown(DENIED);
    facts.acs = Fact::unknown(DENIED);
    facts.max_payload_bytes = Fact::unknown(DENIED);
    facts.max_payload_supported_bytes = Fact::unknown(DENIED);
    facts.max_read_request_bytes = Fact::unknown(DENIED);
    facts.relaxed_ordering = Fact::unknown(DENIED);
}

fn set(fact: &mut Fact<u32>, value: Option<u32>) {
    if let Some(value) = value {
        *fact = Fact::Known(value);
    }
}

/// `(v2) Root Port (Slot+), MSI 00`.
fn port(kind: &str) -> Fact<PciPort> {
    let kinds = [
        ("Root Complex Integrated Endpoint", PciPort::Integrated),
        ("Root Complex Event Collector", PciPort::EventCollector),
        ("Legacy Endpoint", PciPort::LegacyEndpoint),
        ("Endpoint", PciPort::Endpoint),
        ("Root Port", PciPort::RootPort),
        ("Upstream Port", PciPort::SwitchUpstream),
        ("Downstream Port", PciPort::SwitchDownstream),
        ("PCI-Express to PCI/PCI-X Bridge", PciPort::BridgeToPci),
        ("PCI/PCI-X to PCI-Express Bridge", PciPort::BridgeFromPci),
    ];
    let found = kinds.iter().find(|(name, _)| kind.contains(name)).map(|(_, port)| *port);
    Fact::or_unknown(found, "lspci names a kind of port that is not known here")
}

fn number_after(text: &str, mark: &str) -> Option<u32> {
    let (_, rest) = text.split_once(mark)?;
    rest.split_whitespace().next()?.parse().ok()
}

fn bus(text: &str, mark: &str) -> Option<u8> {
    let (_, rest) = text.split_once(mark)?;
    u8::from_str_radix(rest.get(..2)?, 16).ok()
}

/// The size of a memory region: `1: Memory at 38000000000 (64-bit, prefetchable) [size=64G]`.
fn region(text: &str) -> Option<u64> {
    let (_, size) = text.split_once("Memory at ")?.1.split_once("[size=")?;
    let size = size.split(']').next()?;
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match &size[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << power)
}

fn controls(text: &str) -> Vec<AcsControl> {
    let all = [
        ("SrcValid+", AcsControl::SourceValidation),
        ("TransBlk+", AcsControl::TranslationBlocking),
        ("ReqRedir+", AcsControl::RequestRedirect),
        ("CmpltRedir+", AcsControl::CompletionRedirect),
        ("UpstreamFwd+", AcsControl::UpstreamForwarding),
        ("EgressCtrl+", AcsControl::EgressControl),
        ("DirectTrans+", AcsControl::DirectTranslated),
    ];
    let on = |mark: &str| text.split_whitespace().any(|word| word == mark);
    all.into_iter().filter(|(mark, _)| on(mark)).map(|(_, control)| control).collect()
}

fn gpu(block: &Block) -> GpuFacts {
    let bar1 = block.largest_region.map(|total_bytes| Bar1Facts { total_bytes, used_bytes: None });
    GpuFacts {
        pci: Some(block.facts.address.clone()),
        node: block.facts.node,
        name: Fact::unknown("lspci shows only the chip's name"),
        bar1: Fact::or_unknown(bar1, WHY),
        ..GpuFacts::default()
    }
}

/// Finds the bridge above each function that has none: the one whose next bus is the function's.
/// A bus below no bridge that is listed is a root bus, where all bridges are.
fn adopt(all: &mut [PciFacts]) {
    let domain_and_bus = |address: &str| {
        let mut parts = address.split(':');
        let domain = parts.next()?.to_owned();
        Some((domain, u8::from_str_radix(parts.next()?, 16).ok()?))
    };
    let mut below = std::collections::BTreeMap::new();
    for one in all.iter() {
        // A bridge that is not configured has bus 0 below it, which leads nowhere.
        if let (Some(bus), Some((domain, own))) = (one.secondary_bus, domain_and_bus(&one.address))
            && bus > own
        {
            below.insert((domain, bus), one.address.clone());
        }
    }
    let way_is_known = !below.is_empty();
    for one in all.iter_mut().filter(|one| one.parent.is_none()) {
        let Some(at) = domain_and_bus(&one.address) else { continue };
        one.parent = below.get(&at).filter(|bridge| **bridge != one.address).cloned();
    }
    let parents: std::collections::BTreeMap<String, Option<String>> =
        all.iter().map(|one| (one.address.clone(), one.parent.clone())).collect();
    for one in all.iter_mut().filter(|one| one.host_bridge.is_none() && way_is_known) {
        let mut top = one.address.clone();
        // Bus numbers increase downwards, and there are 256.
        for _ in 0..256 {
            match parents.get(&top).cloned().flatten() {
                Some(parent) => top = parent,
                None => break,
            }
        }
        one.host_bridge = domain_and_bus(&top).map(|(domain, bus)| format!("{domain}:{bus:02x}"));
    }
}
