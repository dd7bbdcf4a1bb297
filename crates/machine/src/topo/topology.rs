//! The whole answer.

use std::collections::{BTreeMap, BTreeSet};

use gpuio_record::facts::{Fact, InterfaceFacts, Machine, MountedStorage};
use serde::Serialize;

use crate::topo::across::Across;
use crate::topo::affinity::{self, Affinity};
use crate::topo::branch::{self, Branch};
use crate::topo::coherent;
use crate::topo::device::devices;
use crate::topo::graph::Graph;
use crate::topo::route::Routes;
use crate::topo::{Class, Coherent, Device, DeviceKind, Evidence, Route};

/// Version of [`Topology`]'s JSON.
const SCHEMA: u32 = 1;

/// One cell of a matrix that `nvidia-smi topo` printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Printed<'t> {
    /// The device of the row: `GPU0`, `mlx5_0`.
    pub row: &'t str,
    pub column: &'t str,
    /// The cell: `PIX`, `NV6`.
    pub cell: &'t str,
}

impl Printed<'_> {
    /// All that is among the facts of a machine.
    pub fn all(machine: &Machine) -> Vec<Printed<'_>> {
        let cells = machine.printed.iter();
        cells.map(|one| Printed { row: &one.row, column: &one.column, cell: &one.cell }).collect()
    }
}

/// The place of each device, and how far any two devices are from each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topology {
    /// Version of this form.
    pub gpuio_topo: u32,
    /// GPUs by number, network cards by address, drives by name.
    pub devices: Vec<Device>,
    /// NUMA nodes with their host bridges, switches and devices.
    pub tree: Vec<Branch>,
    /// Devices whose position in the tree is not known, by name.
    pub unplaced: Vec<String>,
    /// Each pair of devices once, in the order of `devices`.
    pub routes: Vec<Route>,
    /// The devices near to each GPU.
    pub affinity: Vec<Affinity>,
    /// Links of GPUs to processors that are not PCIe.
    pub coherent: Vec<Coherent>,
    /// Facts that are unknown or do not agree, as sentences.
    pub notes: Vec<String>,
}

impl Topology {
    /// The topology of a machine. `printed` fills in what its facts do not report it, and is held
    /// against what they do.
    pub fn of(machine: &Machine, printed: &[Printed<'_>]) -> Topology {
        let graph = Graph::of(machine);
        let devices = devices(machine, &graph);
        let root_paths = Routes::of(machine, &graph, &devices);
        let mut routes = Vec::new();
        for a in 0..devices.len() {
            routes.extend((a + 1..devices.len()).map(|b| root_paths.between(&devices, a, b)));
        }
        let (tree, unplaced) = branch::tree(machine, &graph, &devices);
        let mut topology = Topology {
            gpuio_topo: SCHEMA,
            devices,
            tree,
            unplaced,
            routes,
            affinity: Vec::new(),
            coherent: Vec::new(),
            notes: Vec::new(),
        };
        topology.hold_against(printed);
        topology.fill_across(&root_paths, printed);
        topology.affinity = affinity::table(machine, &topology);
        topology.coherent = coherent::all(machine, &topology.devices);
        topology.note_unknown();
        topology.note_names(machine);
        topology
    }

    /// The route between two devices by their indices in [`Topology::devices`]; `None` from a
    /// device to itself.
    pub fn route(&self, a: usize, b: usize) -> Option<&Route> {
        self.routes.get(self.pair_index(a, b)?)
    }

    /// The devices of one kind, with their indices.
    pub fn of_kind(&self, kind: DeviceKind) -> impl Iterator<Item = (usize, &Device)> {
        self.devices.iter().enumerate().filter(move |(_, device)| device.kind == kind)
    }

    /// The index of the device with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        let exact = self.devices.iter().position(|device| device.name == name);
        exact.or_else(|| self.devices.iter().position(|device| device.is_called(name)))
    }

    /// The indices of the cards that a network mount's traffic goes through.
    pub fn cards_to(&self, machine: &Machine, mount: &MountedStorage) -> Vec<usize> {
        let cards = machine.cards_to(mount);
        let is_one = |device: &Device| {
            cards.iter().any(|nic| {
                let names = nic.rdma.iter().map(|one| &one.name);
                let mut names = names.chain(nic.interfaces.iter().map(|one| &one.name));
                match &nic.pci {
                    Some(pci) => device.pci.contains(pci),
                    None => names.any(|name| device.is_called(name)),
                }
            })
        };
        let devices = self.of_kind(DeviceKind::Nic);
        devices.filter(|(_, device)| is_one(device)).map(|(index, _)| index).collect()
    }

    /// Notes on cards that have two names and no place in the tree, which would show both, and on
    /// the mounts whose cards are known by a name alone.
    fn note_names(&mut self, machine: &Machine) {
        let both = machine.nics.iter().filter(|nic| nic.pci.is_none()).filter_map(|nic| {
            let (rdma, interface) = (nic.rdma.first()?, nic.interfaces.first()?);
            Some(format!("{} is {}", rdma.name, interface.name))
        });
        let both: Vec<String> = both.collect();
        if !both.is_empty() {
            self.notes.push(format!("Interfaces of these cards: {}.", both.join(", ")));
        }
        let down = machine.nics.iter().flat_map(|nic| {
            let down = |one: &&InterfaceFacts| one.state.as_deref() == Some("down");
            nic.interfaces.iter().filter(down).map(|one| match nic.rdma.first() {
                Some(rdma) => format!("{} ({})", one.name, rdma.name),
                None => one.name.clone(),
            })
        });
        let is_switch = |name: &String| name.contains("NVSwitch");
        let switches = machine.pci.iter().filter(|one| one.name.as_ref().is_some_and(is_switch));
        let switches = switches.map(|one| crate::topo::link::short(&one.address).to_owned());
        let lists = [
            ("Interfaces that are down", down.collect::<Vec<String>>()),
            ("NVSwitches, which no I/O passes", switches.collect()),
        ];
        let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
        self.notes.extend(lists.map(|(what, names)| format!("{what}: {}.", names.join(", "))));
        let by_name = machine.mounts.iter().filter_map(|mount| {
            let route = machine.server_route(mount).filter(|path| path.by_name)?;
            Some(format!("{} ({})", mount.mount.mount_point, route.interface))
        });
        let by_name: Vec<String> = by_name.collect();
        if !by_name.is_empty() {
            self.notes.push(format!(
                "The routes to these mounts' servers are not known; their interfaces are those \
                 that the mount points are named after: {}. `ip route` would show them.",
                by_name.join(", ")
            ));
        }
    }

    fn pair_index(&self, a: usize, b: usize) -> Option<usize> {
        let (low, high) = (a.min(b), a.max(b));
        let count = self.devices.len();
        // Before row `low` stand the rows of count - 1, count - 2, … pairs.
        let before = low * (2 * count).checked_sub(low + 1)? / 2;
        (low < high && high < count).then(|| before + high - low - 1)
    }

    fn hold_against(&mut self, printed: &[Printed<'_>]) {
        let mut differing = Vec::new();
        let is_linked = |cell: &Printed<'_>| cell.cell.starts_with("NV");
        let linked: BTreeSet<(&str, &str)> =
            printed.iter().filter(|cell| is_linked(cell)).map(|c| (c.row, c.column)).collect();
        for cell in printed {
            let Some((a, b)) = self.find(cell.row).zip(self.find(cell.column)) else { continue };
            let Some(index) = self.pair_index(a, b) else { continue };
            let Some(route) = self.routes.get_mut(index) else { continue };
            let links = cell.cell.strip_prefix("NV").and_then(|links| links.parse::<u32>().ok());
            if let Some(links) = links {
                match route.nvlinks.known() {
                    None => route.nvlinks = Fact::Known(links),
                    Some(known) if *known != links => differing.push(format!(
                        "{}–{}: {known} NVLinks by other texts, {} by nvidia-smi",
                        cell.row, cell.column, cell.cell
                    )),
                    Some(_) => {}
                }
                continue;
            }
            // A matrix with NVLinks has them in every cell where there are any.
            let pair = [(cell.row, cell.column), (cell.column, cell.row)];
            let none = !linked.is_empty() && !pair.iter().any(|pair| linked.contains(pair));
            if none && route.nvlinks.known().is_none() {
                route.nvlinks = Fact::Known(0);
            }
            let Some(class) = Class::parse(cell.cell) else { continue };
            match route.class.known() {
                Some(known) if *known == class => {}
                Some(_) if route.evidence == Evidence::Printed => {}
                Some(known) => differing.push(format!(
                    "{}–{}: {} by PCI, {} by nvidia-smi",
                    cell.row,
                    cell.column,
                    known.name(),
                    cell.cell
                )),
                None => {
                    route.class = Fact::Known(class);
                    route.evidence = Evidence::Printed;
                }
            }
        }
        if !differing.is_empty() {
            let words = "nvidia-smi's printed matrix differs (nothing was changed)";
            self.notes.push(format!("{words}: {}.", several(&differing)));
        }
    }

    /// Gives pairs across two host bridges the class that was printed for another one.
    fn fill_across(&mut self, paths: &Routes<'_>, printed: &[Printed<'_>]) {
        let bridge = |device: usize| paths.host_bridge(device);
        let mut across = Across::default();
        for cell in printed {
            let Some(class) = Class::parse(cell.cell) else { continue };
            let Some((a, b)) = self.find(cell.row).zip(self.find(cell.column)) else { continue };
            let Some((a, b)) = bridge(a).zip(bridge(b)).filter(|(a, b)| a != b) else { continue };
            across.note(class, a, b);
        }
        for a in 0..self.devices.len() {
            for b in a + 1..self.devices.len() {
                let Some((one, other)) = bridge(a).zip(bridge(b)) else { continue };
                let Some(index) = self.pair_index(a, b) else { continue };
                across.complete(&mut self.routes[index], one, other);
            }
        }
    }

    fn note_unknown(&mut self) {
        let mut classes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut links: BTreeMap<&str, u32> = BTreeMap::new();
        let lost = |name: &String| self.unplaced.contains(name);
        for route in &self.routes {
            // For devices without a position one note is enough, and NVLinks hide PCIe's distance.
            let linked = route.nvlinks.known().is_some_and(|links| *links > 0);
            let lost = lost(&route.a) || lost(&route.b) || linked;
            if let Some(why) = route.class.why().filter(|_| !lost) {
                classes.entry(why).or_default().push(format!("{}–{}", route.a, route.b));
            }
            if let Some(why) = route.nvlinks.why() {
                *links.entry(why).or_default() += 1;
            }
        }
        let classes = classes
            .into_iter()
            .map(|(why, pairs)| format!("Distance unknown, {why}: {}.", several(&pairs)));
        let links = links.into_keys().map(|why| format!("NVLinks between GPUs unknown: {why}."));
        let printed =
            self.routes.iter().filter(|route| route.evidence == Evidence::Printed).count();
        let printed = (printed > 0).then(|| {
            let pairs = if printed == 1 { "pair has" } else { "pairs have" };
            format!("{printed} {pairs} the class that nvidia-smi printed; PCI does not show it.")
        });
        let elsewhere = |route: &&Route| route.evidence == Evidence::PrintedElsewhere;
        let elsewhere = self.routes.iter().filter(elsewhere).count();
        let elsewhere = (elsewhere > 0).then(|| {
            format!(
                "{elsewhere} pairs have the class that nvidia-smi printed for another pair across \
                 the same host bridges."
            )
        });
        let has_address =
            |name: &&String| self.find(name).is_some_and(|at| !self.devices[at].pci.is_empty());
        let (addressed, bare): (Vec<&String>, Vec<&String>) =
            self.unplaced.iter().partition(has_address);
        let unplaced = [
            ("no PCI function is known", bare),
            ("the PCIe tree does not show their addresses", addressed),
        ];
        let unplaced = unplaced.into_iter().filter(|(_, names)| !names.is_empty());
        let unplaced = unplaced.map(|(why, names)| {
            let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
            format!("Distances unknown where nothing else is shown, {why}: {}.", names.join(", "))
        });
        let words: Vec<String> =
            unplaced.chain(classes).chain(links).chain(printed).chain(elsewhere).collect();
        self.notes.extend(words);
        if self.of_kind(DeviceKind::Gpu).next().is_none() {
            self.notes.push("No NVIDIA GPU is known, so there is no affinity table.".to_owned());
        }
    }
}

/// The first few, and how many more.
fn several(all: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = all[..all.len().min(SHOWN)].join(", ");
    match all.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}
