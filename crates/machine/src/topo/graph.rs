//! PCI functions by address, and the path from one up to its host bridge.

use std::collections::HashMap;

use gpuio_record::facts::{Machine, PciFacts, PciPort, upstream_path};

use crate::topo::Link;

/// The role of a function on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    /// A port of the root complex.
    Root,
    /// A switch's upstream port: it represents the switch.
    Up,
    /// A switch's port away from the root.
    Down,
    /// A bridge to or from conventional PCI.
    Bridge,
    /// A device inside the root complex with root ports of its own below it (Intel VMD).
    Inside,
    End,
}

/// One function on a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'m> {
    pub(crate) facts: &'m PciFacts,
    pub(crate) port: Port,
    /// Ports right above are missing in the facts.
    pub(crate) gap: bool,
    /// `port` is known, or follows from a path without gaps above.
    pub(crate) sure: bool,
}

/// The path from a function up, nearest first; the function itself is the first step.
#[derive(Debug, Clone)]
pub(crate) struct RootPath<'m> {
    pub(crate) steps: Vec<Step<'m>>,
    /// `0000:2b`; `None` where not known.
    pub(crate) host_bridge: Option<&'m str>,
}

/// The machine's functions.
#[derive(Debug)]
pub(crate) struct Graph<'m> {
    by_address: HashMap<&'m str, &'m PciFacts>,
    /// NUMA nodes of host bridges, by what hangs below them.
    nodes: HashMap<&'m str, u32>,
    /// The machine's NUMA node where it has but one: firmware then names none at functions.
    only: Option<u32>,
}

impl<'m> Graph<'m> {
    pub(crate) fn of(machine: &'m Machine) -> Self {
        let by_address = machine.pci.iter().map(|one| (one.address.as_str(), one)).collect();
        let nodes =
            machine.pci.iter().rev().filter_map(|one| one.host_bridge.as_deref().zip(one.node));
        let only = match machine.host.numa.nodes.as_slice() {
            [only] if machine.listed.nodes => Some(only.node),
            _ => None,
        };
        Graph { by_address, nodes: nodes.collect(), only }
    }

    pub(crate) fn function(&self, address: &str) -> Option<&'m PciFacts> {
        self.by_address.get(address).copied()
    }

    /// The path up from a function; `None` when the function is not known.
    pub(crate) fn root_path(&self, address: &str) -> Option<RootPath<'m>> {
        let above = upstream_path(address, |address| self.function(address));
        if above.is_empty() {
            return None;
        }
        let host_bridge = above.iter().find_map(|one| one.host_bridge.as_deref());
        let mut steps: Vec<Step<'m>> = Vec::with_capacity(above.len());
        for (index, facts) in above.iter().enumerate().rev() {
            let upper = steps.last();
            // The parent that was named, or the host bridge, is not in the facts, or the
            // parent's bus is another one.
            let lost = upper.is_none() && (facts.parent.is_some() || host_bridge.is_none());
            let gap = lost || upper.is_some_and(|upper| is_gap(facts, upper.facts));
            let port = port(facts, upper.map(|upper| upper.port), gap, index > 0);
            let known = facts.port.known().is_some() || !is_bridge(facts);
            let sure = known || !gap && upper.is_none_or(|upper| upper.sure);
            steps.push(Step { facts, port, gap, sure });
        }
        steps.reverse();
        Some(RootPath { steps, host_bridge })
    }

    /// NUMA node of a function: its own, that of a bridge above, that of its host bridge, or the
    /// only one that there is.
    pub(crate) fn node(&self, address: &str) -> Option<u32> {
        let path = self.root_path(address)?;
        let own = path.steps.iter().find_map(|step| step.facts.node);
        let bridges = || self.nodes.get(path.host_bridge?).copied();
        own.or_else(bridges).or(self.only)
    }
}

impl RootPath<'_> {
    /// The link above a step; `None` for the ports of the root complex, and what hangs there
    /// without a link.
    pub(crate) fn link(&self, index: usize) -> Option<Link> {
        let step = self.steps.get(index)?;
        // A port that leads down shows the link below it.
        if matches!(step.port, Port::Root | Port::Down | Port::Inside) {
            return None;
        }
        let upper = self.steps.get(index + 1).filter(|_| !step.gap);
        let upper = upper.filter(|upper| matches!(upper.port, Port::Root | Port::Down));
        Link::above(step.facts, upper.map(|upper| upper.facts))
    }
}

/// Whether a function's bus is not the one right below `parent`: ports in between were not known.
fn is_gap(child: &PciFacts, parent: &PciFacts) -> bool {
    let bus = child.address.split(':').nth(1).and_then(|bus| u8::from_str_radix(bus, 16).ok());
    bus.zip(parent.secondary_bus).is_some_and(|(bus, below)| bus != below)
}

fn is_bridge(facts: &PciFacts) -> bool {
    facts.class.is_some_and(|class| class >> 8 == 0x0604) || facts.secondary_bus.is_some()
}

/// The kind of a function: by its capability, else by its position, since the ports of a switch
/// take turns. `leads`: something is below it.
fn port(facts: &PciFacts, above: Option<Port>, gap: bool, leads: bool) -> Port {
    match facts.port.known() {
        Some(PciPort::RootPort) => return Port::Root,
        Some(PciPort::SwitchUpstream) => return Port::Up,
        Some(PciPort::SwitchDownstream) => return Port::Down,
        Some(PciPort::BridgeToPci | PciPort::BridgeFromPci) => return Port::Bridge,
        _ => {}
    }
    if !is_bridge(facts) {
        return if leads { Port::Inside } else { Port::End };
    }
    if facts.port.known() == Some(&PciPort::Conventional) {
        return Port::Bridge;
    }
    match above {
        None if gap => Port::Up,
        None | Some(Port::Inside | Port::End) => Port::Root,
        Some(Port::Root | Port::Down) => Port::Up,
        Some(Port::Up) if gap => Port::Up,
        Some(Port::Up) => Port::Down,
        Some(Port::Bridge) => Port::Bridge,
    }
}
