//! Network cards: `/sys/class/net` (Documentation/ABI/testing/sysfs-class-net) and
//! `/sys/class/infiniband` (Documentation/ABI/stable/sysfs-class-infiniband), joined by their PCI
//! function.

use std::collections::BTreeMap;

use gpuio_record::facts::{InterfaceFacts, LinkLayer, NicFacts, PciFacts, RdmaFacts, RdmaPort};

use crate::block::last_pci_address;
use crate::parse::{devices_in, gigabits, keep};
use crate::{HostError, Root};

/// Interfaces stacked deeper than this are a loop in a broken tree.
const MAX_DEPTH: usize = 8;

/// Cards by PCI address, then interfaces without hardware by name. Interfaces that lead to no
/// card (`lo`, pairs of containers, tunnels) are left out. A value that cannot be understood goes
/// to `problems`.
pub fn read(root: &Root, pci: &[PciFacts], problems: &mut Vec<HostError>) -> Vec<NicFacts> {
    let mut cards: BTreeMap<String, NicFacts> = BTreeMap::new();
    let mut loose = Vec::new();
    let names = devices_in(root, "sys/class/net", problems);
    for name in names {
        let dir = format!("sys/class/net/{name}");
        let interface = interface(root, name, problems);
        match function(root, &dir) {
            Some(address) => cards.entry(address).or_default().interfaces.push(interface),
            None if !interface.lower.is_empty() || root.exists(format!("{dir}/device")) => {
                loose.push(NicFacts { interfaces: vec![interface], ..NicFacts::default() });
            }
            None => {}
        }
    }
    let names = devices_in(root, "sys/class/infiniband", problems);
    for name in names {
        let dir = format!("sys/class/infiniband/{name}");
        let device = rdma(root, &dir, name, problems);
        match function(root, &dir) {
            Some(address) => cards.entry(address).or_default().rdma.push(device),
            None => loose.push(NicFacts { rdma: vec![device], ..NicFacts::default() }),
        }
    }
    let node = |address: &str| pci.iter().find(|function| function.address == address)?.node;
    let cards = cards.into_iter().map(|(address, mut card)| {
        join(&mut card);
        NicFacts { node: node(&address), pci: Some(address), ..card }
    });
    cards.chain(loose).collect()
}

/// PCI functions that an interface's packets go through: its own, or those of the interfaces
/// below it. Ascending, each once.
pub fn functions_of(nics: &[NicFacts], interface: &str) -> Vec<String> {
    let mut found = Vec::new();
    gather(nics, interface, MAX_DEPTH, &mut found);
    found.sort();
    found.dedup();
    found
}

fn gather(nics: &[NicFacts], name: &str, depth: usize, found: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for nic in nics {
        for interface in nic.interfaces.iter().filter(|interface| interface.name == name) {
            found.extend(nic.pci.clone());
            if nic.pci.is_none() {
                interface.lower.iter().for_each(|lower| gather(nics, lower, depth, found));
            }
        }
    }
}

/// The PCI function that a class's entry leads to.
fn function(root: &Root, dir: &str) -> Option<String> {
    let itself = root.resolve(dir).and_then(|dir| last_pci_address(&dir));
    itself.or_else(|| last_pci_address(&root.resolve(format!("{dir}/device"))?))
}

/// One interface, with or without hardware. A value that cannot be understood goes to `problems`.
pub fn interface(root: &Root, name: String, problems: &mut Vec<HostError>) -> InterfaceFacts {
    let dir = format!("sys/class/net/{name}");
    let mut word = |file: &str| keep(root.word(format!("{dir}/{file}")), problems);
    let (kind, state, speed) = (word("type"), word("operstate"), word("speed"));
    let mtu_bytes = keep(root.number(format!("{dir}/mtu")), problems);
    let entries = keep(root.list(&dir).map(Some), problems).unwrap_or_default();
    let lower = entries.iter().filter_map(|entry| entry.strip_prefix("lower_"));
    InterfaceFacts {
        name,
        // ARPHRD_ETHER and ARPHRD_INFINIBAND of if_arp.h.
        carries: match kind.as_deref() {
            Some("1") => Some(LinkLayer::Ethernet),
            Some("32") => Some(LinkLayer::Infiniband),
            _ => None,
        },
        state,
        mtu_bytes,
        // The kernel prints -1 where the driver does not know.
        megabits: speed.and_then(|speed| speed.parse().ok()).filter(|speed| *speed > 0),
        lower: lower.map(str::to_owned).collect(),
    }
}

fn rdma(root: &Root, dir: &str, name: String, problems: &mut Vec<HostError>) -> RdmaFacts {
    let firmware = keep(root.word(format!("{dir}/fw_ver")), problems);
    let numbers = keep(root.list(format!("{dir}/ports")).map(Some), problems).unwrap_or_default();
    let mut numbers: Vec<u64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    numbers.sort_unstable();
    let ports = numbers.into_iter().map(|number| port(root, dir, number, problems)).collect();
    RdmaFacts { name, firmware, ports }
}

fn port(root: &Root, dir: &str, port: u64, problems: &mut Vec<HostError>) -> RdmaPort {
    let mut word = |file: &str| keep(root.word(format!("{dir}/ports/{port}/{file}")), problems);
    // States are printed as number and name: `4: ACTIVE`.
    let named = |state: Option<String>| {
        state.map(|state| state.split_once(": ").map_or(state.clone(), |(_, name)| name.to_owned()))
    };
    let rate = word("rate");
    RdmaPort {
        port,
        state: named(word("state")),
        physical_state: named(word("phys_state")),
        megabits: rate.as_deref().and_then(gigabits),
        rate,
        carries: match word("link_layer").as_deref() {
            Some("InfiniBand") => Some(LinkLayer::Infiniband),
            Some("Ethernet") => Some(LinkLayer::Ethernet),
            _ => None,
        },
        interface: word("gid_attrs/ndevs/0"),
    }
}

/// InfiniBand ports do not name their interface: with one of each on a function there is no doubt.
fn join(card: &mut NicFacts) {
    let [interface] = card.interfaces.as_slice() else { return };
    let mut ports = card.rdma.iter_mut().flat_map(|device| device.ports.iter_mut());
    if let (Some(port), None) = (ports.next(), ports.next())
        && port.interface.is_none()
    {
        port.interface = Some(interface.name.clone());
    }
}
