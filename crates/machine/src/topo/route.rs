//! The route between two devices.

use gpuio_record::facts::{Fact, Machine, NvLinkEnd, NvLinkPeer};
use serde::Serialize;

use crate::topo::graph::{Graph, Port, RootPath};
use crate::topo::{Class, Device, DeviceKind, Link};

/// Where a class is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// PCI functions and NUMA nodes.
    Facts,
    /// A matrix that `nvidia-smi topo` printed; the facts do not have it.
    Printed,
    /// That matrix, for another pair across the same two host bridges.
    PrintedElsewhere,
}

/// The route between two devices over PCIe, and their NVLinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    /// Name of one device.
    pub a: String,
    /// Name of the other.
    pub b: String,
    /// How far they are from each other over PCIe, NVLinks aside (`nvidia-smi topo -mp`).
    pub class: Fact<Class>,
    /// Where that is from.
    pub evidence: Evidence,
    /// NVLinks between two GPUs, straight or through NVSwitches; 0 when there are none.
    pub nvlinks: Fact<u32>,
    /// Bridges that bytes pass, each port of a switch being one and the one where the paths meet
    /// counted once; `null` when the paths are not known.
    pub bridges: Option<u32>,
    /// Switches that bytes pass; `null` too where a cut listing leaves open which port is which.
    pub switches: Option<u32>,
    /// The listing left ports out: `bridges` and `switches` are the least there can be.
    pub at_least: bool,
    /// Where the paths meet below the host bridge: the switch, or the device that both are
    /// functions of; `null` when they meet at a host bridge or beyond.
    pub meets: Option<String>,
    /// The link that both use to reach processor and memory: at the same time they share
    /// it. `null` when there is none or it is not known.
    pub shared_link: Option<Link>,
    /// Address of the function whose link to the root both share, with or without its speed.
    pub shared_above: Option<String>,
}

impl Route {
    /// As `nvidia-smi topo -m` prints it: NVLinks before PCIe, `?` where it is not known.
    pub fn cell(&self) -> String {
        match (self.nvlinks.known(), self.class.known()) {
            (Some(links), _) if *links > 0 => format!("NV{links}"),
            (_, Some(class)) => class.name().to_owned(),
            (_, None) => "?".to_owned(),
        }
    }

    /// For choosing the nearer: class, then switches, then bridges.
    pub(crate) fn rank(&self) -> Option<(Class, u32, u32)> {
        let far = u32::MAX;
        let class = *self.class.known()?;
        Some((class, self.switches.unwrap_or(far), self.bridges.unwrap_or(far)))
    }
}

/// Devices with their paths to the root, for routes between many.
pub(crate) struct Routes<'m> {
    pub(crate) machine: &'m Machine,
    /// For each device, the paths of its functions.
    pub(crate) root_paths: Vec<Vec<RootPath<'m>>>,
}

/// A route from two paths, before names and NVLinks.
struct Met {
    class: Fact<Class>,
    bridges: Option<u32>,
    switches: Option<u32>,
    at_least: bool,
    meets: Option<String>,
    shared: Option<(String, Option<Link>)>,
}

impl<'m> Routes<'m> {
    pub(crate) fn of(machine: &'m Machine, graph: &Graph<'m>, devices: &[Device]) -> Self {
        let paths_of =
            |device: &Device| device.pci.iter().filter_map(|pci| graph.root_path(pci)).collect();
        Routes { machine, root_paths: devices.iter().map(paths_of).collect() }
    }

    /// The host bridge above all of a device's functions, where it is known.
    pub(crate) fn host_bridge(&self, device: usize) -> Option<&'m str> {
        let mut bridges = self.root_paths[device].iter().map(|path| path.host_bridge);
        let first = bridges.next()??;
        bridges.all(|other| other == Some(first)).then_some(first)
    }

    /// The route between two devices by their indices in the list: the nearest of all paths.
    pub(crate) fn between(&self, devices: &[Device], a: usize, b: usize) -> Route {
        let one = &devices[a];
        let two = &devices[b];
        let nodes = (one.node, two.node);
        let mut best: Option<Met> = None;
        for path in &self.root_paths[a] {
            for other in &self.root_paths[b] {
                let met = self.meet(path, other, nodes);
                if best.as_ref().is_none_or(|best| key(&met) < key(best)) {
                    best = Some(met);
                }
            }
        }
        let met = best.unwrap_or_else(|| self.unplaced(a, one, two));
        let (shared_above, shared_link) = met.shared.unzip();
        Route {
            a: one.name.clone(),
            b: two.name.clone(),
            class: met.class,
            evidence: Evidence::Facts,
            nvlinks: nvlinks(self.machine, one, two),
            bridges: met.bridges,
            switches: met.switches,
            at_least: met.at_least,
            meets: met.meets,
            shared_link: shared_link.flatten(),
            shared_above,
        }
    }

    /// The route where a device's position is not known: only NUMA nodes may help.
    fn unplaced(&self, a: usize, one: &Device, two: &Device) -> Met {
        let lost = if self.root_paths[a].is_empty() { one } else { two };
        let class = match (one.node, two.node) {
            (Some(left), Some(right)) if left != right => Fact::Known(Class::Sys),
            _ => Fact::unknown(format!("no PCI function of {} is known", lost.name)),
        };
        Met { class, bridges: None, switches: None, at_least: false, meets: None, shared: None }
    }

    fn meet(&self, a: &RootPath<'_>, b: &RootPath<'_>, nodes: (Option<u32>, Option<u32>)) -> Met {
        let (up_a, up_b) = common(a, b);
        let below = a.steps[..up_a].iter().chain(&b.steps[..up_b]);
        let at_least = below.clone().any(|step| step.gap);
        let is_switch = |port: Port| matches!(port, Port::Up | Port::Bridge);
        let is_bridge = |port: Port| !matches!(port, Port::End | Port::Inside);
        let mut switches = count(below.clone().filter(|step| is_switch(step.port)));
        let mut bridges = count(below.filter(|step| is_bridge(step.port)));
        let met = a.steps.get(up_a).filter(|step| step.port != Port::Inside);
        let Some(met) = met else {
            // Above, the host bridge: paths that were cut have no number.
            let (class, known) = self.apart(a, b, nodes);
            return Met {
                class,
                bridges: known.then_some(bridges),
                switches: known.then_some(switches),
                at_least,
                meets: None,
                shared: None,
            };
        };
        switches += u32::from(is_switch(met.port));
        bridges += u32::from(is_bridge(met.port));
        let mut passed = a.steps[..up_a].iter().chain(&b.steps[..up_b]).chain([met]);
        let sure = passed.all(|step| step.sure);
        let class = match (switches, bridges) {
            // Through one switch lead three ports at most.
            (_, 4..) => Fact::Known(Class::Pxb),
            (0 | 1, _) if sure && !at_least => Fact::Known(Class::Pix),
            (2.., _) if sure => Fact::Known(Class::Pxb),
            _ => Fact::unknown("the listing leaves out ports between them"),
        };
        // Below a downstream port is one device, whose link its functions share.
        let lower = if matches!(met.port, Port::Root | Port::Down) {
            up_a.checked_sub(1)
        } else {
            Some(up_a)
        };
        let shared = lower.map(|lower| (a.steps[lower].facts.address.clone(), a.link(lower)));
        Met {
            class,
            bridges: Some(bridges),
            switches: sure.then_some(switches),
            at_least,
            meets: Some(met.facts.address.clone()),
            shared,
        }
    }

    /// The class of paths that meet at a host bridge or beyond, and whether both are known up to
    /// there.
    fn apart(
        &self,
        a: &RootPath<'_>,
        b: &RootPath<'_>,
        (one, two): (Option<u32>, Option<u32>),
    ) -> (Fact<Class>, bool) {
        let bridges = a.host_bridge.zip(b.host_bridge);
        if bridges.is_some_and(|(a, b)| a == b) {
            // Above the end of a path that was cut they may meet in a switch.
            let cut = |path: &RootPath<'_>| path.steps.last().is_some_and(|step| step.gap);
            if cut(a) || cut(b) {
                return (Fact::unknown("the listing leaves out bridges above them"), false);
            }
            return (Fact::Known(Class::Phb), true);
        }
        let known = bridges.is_some();
        let numa = &self.machine.host.numa.nodes;
        let class = match (one, two) {
            (Some(one), Some(two)) if one != two => Fact::Known(Class::Sys),
            (Some(_), Some(_)) if known => Fact::Known(Class::Node),
            (Some(node), Some(_)) => Fact::unknown(format!(
                "both are at NUMA node {node}, PHB or NODE, as the host bridges above them are not \
                 known"
            )),
            _ if !known => Fact::unknown("the host bridges above them are not known"),
            _ if self.machine.listed.nodes && numa.len() == 1 => Fact::Known(Class::Node),
            _ => Fact::unknown("they hang on different host bridges of unknown NUMA nodes"),
        };
        (class, known)
    }
}

fn count<T>(all: impl Iterator<Item = T>) -> u32 {
    u32::try_from(all.count()).unwrap_or(u32::MAX)
}

fn key(met: &Met) -> (bool, Option<Class>, Option<u32>) {
    let class = met.class.known().copied();
    (class.is_none(), class, met.bridges)
}

/// Steps up each path to the first function that both have; all of both when they have none.
fn common(a: &RootPath<'_>, b: &RootPath<'_>) -> (usize, usize) {
    for (up_a, step) in a.steps.iter().enumerate() {
        let same = |other: &crate::topo::graph::Step<'_>| other.facts.address == step.facts.address;
        if let Some(up_b) = b.steps.iter().position(same) {
            return (up_a, up_b);
        }
    }
    (a.steps.len(), b.steps.len())
}

/// NVLinks between two GPUs: those that lead straight to each other, or the fewer of those that
/// lead to NVSwitches, which join all GPUs.
fn nvlinks(machine: &Machine, one: &Device, two: &Device) -> Fact<u32> {
    if one.kind != DeviceKind::Gpu || two.kind != DeviceKind::Gpu {
        return Fact::Known(0);
    }
    let facts = |device: &Device| machine.gpus.iter().find(|gpu| device.is_gpu(gpu));
    let peers = |device: &Device| -> Fact<&Vec<NvLinkPeer>> {
        match facts(device).map(|gpu| &gpu.nvlinks) {
            Some(Fact::Known(peers)) => Fact::Known(peers),
            Some(Fact::Unknown(why)) => Fact::unknown(why.clone()),
            None => Fact::unknown("the GPU's PCI address is not known"),
        }
    };
    let (left, right) = match (peers(one), peers(two)) {
        (Fact::Known(left), Fact::Known(right)) => (left, right),
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => return Fact::Unknown(why),
    };
    // Who has none has none to anybody.
    if left.is_empty() || right.is_empty() {
        return Fact::Known(0);
    }
    // Without an address no link is known to lead between these two.
    if one.pci.is_empty() || two.pci.is_empty() {
        return Fact::unknown("the GPU's PCI address is not known");
    }
    let sum = |peers: &[NvLinkPeer], leads: &dyn Fn(&NvLinkPeer) -> bool| -> u32 {
        peers.iter().filter(|peer| leads(peer)).map(|peer| peer.links).sum()
    };
    let straight = |peer: &NvLinkPeer| peer.pci.is_some() && peer.pci.as_ref() == two.pci.first();
    let switched = |peer: &NvLinkPeer| peer.kind == NvLinkEnd::Switch;
    let direct = sum(left, &straight);
    let through = sum(left, &switched).min(sum(right, &switched));
    let links = if direct > 0 { direct } else { through };
    let is_gpu = |peer: &NvLinkPeer| {
        peer.pci.is_some() && machine.gpus.iter().any(|gpu| gpu.pci == peer.pci)
    };
    let lost =
        |peers: &[NvLinkPeer]| sum(peers, &|peer| peer.kind == NvLinkEnd::Unknown && !is_gpu(peer));
    match lost(left).min(lost(right)) {
        lost @ 1.. if links == 0 => {
            Fact::unknown(format!("{lost} of each are up, and NVML does not say where they lead"))
        }
        _ => Fact::Known(links),
    }
}
