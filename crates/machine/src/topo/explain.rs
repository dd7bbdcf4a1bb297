//! One pair, hop by hop.

use gpuio_record::facts::Machine;
use serde::Serialize;

use crate::topo::graph::{Graph, Port, RootPath, Step};
use crate::topo::{Device, Link, Route, Topology};

/// The route from one device to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The facts about the pair.
    pub route: Route,
    /// The parts that bytes pass, from the first device to the second; empty where they are not
    /// known.
    pub hops: Vec<Hop>,
    /// The slowest link on the route; `null` when one of them is not known.
    pub narrowest: Option<Link>,
}

/// A station on the route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hop {
    pub what: String,
    /// Its PCI function or host bridge; `null` for the interconnect of processors.
    pub address: Option<String>,
    /// The link that leads on from here to the next station, where one does and is known.
    pub link: Option<Link>,
    /// Whether a link of PCIe leads on from here: inside a switch none does.
    pub leads_on: bool,
}

/// Follows the route between two devices by their indices in the list; `None` from a device to
/// itself. A drive with several controllers is followed on the route's own path.
pub fn explain(machine: &Machine, topology: &Topology, a: usize, b: usize) -> Option<Explanation> {
    let (one, two) = (topology.devices.get(a)?, topology.devices.get(b)?);
    let route = topology.route(a, b);
    let (a, b) = (one.name.clone(), two.name.clone());
    let route = Route { a, b, ..route?.clone() };
    let graph = Graph::of(machine);
    let paths_of = |device: &Device| -> Vec<RootPath<'_>> {
        device.pci.iter().filter_map(|pci| graph.root_path(pci)).collect()
    };
    let (from, to) = (paths_of(one), paths_of(two));
    let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
    // The pair of paths of this route meets where the route says.
    let meets = |path: &RootPath<'_>| {
        route.meets.as_ref().is_none_or(|at| path.steps.iter().any(|s| s.facts.address == *at))
    };
    let Some((from, to)) = pairs.into_iter().find(|(from, to)| meets(from) && meets(to)) else {
        return Some(Explanation { route, hops: Vec::new(), narrowest: None });
    };
    let hops = hops((one, from), (two, to), &route);
    let links = hops.iter().filter(|hop| hop.leads_on).map(|hop| hop.link.as_ref());
    let rates: Option<Vec<&Link>> =
        links.map(|link| link.filter(|link| link.bytes_per_second.is_some())).collect();
    let narrowest = rates.unwrap_or_default().into_iter().min_by_key(|link| link.bytes_per_second);
    let narrowest = narrowest.cloned().filter(|_| !route.at_least);
    Some(Explanation { route, hops, narrowest })
}

fn hops(from: (&Device, &RootPath<'_>), to: (&Device, &RootPath<'_>), route: &Route) -> Vec<Hop> {
    let end = |path: &RootPath<'_>| {
        let meets = |step: &Step<'_>| route.meets.as_deref() == Some(&step.facts.address);
        path.steps.iter().position(meets).unwrap_or(path.steps.len())
    };
    let (top_a, top_b) = (end(from.1), end(to.1));
    let mut hops: Vec<Hop> = (0..top_a).map(|index| up(from, index)).collect();
    match from.1.steps.get(top_a) {
        Some(step) => hops.push(Hop {
            what: format!("{}, where both meet", what(step, &from.0.name)),
            address: Some(step.facts.address.clone()),
            link: None,
            leads_on: matches!(step.port, Port::Root | Port::Down),
        }),
        None => hops.extend(across(from.1, to.1)),
    }
    let mut down: Vec<Hop> = (0..top_b).map(|index| up(to, index)).collect();
    down.reverse();
    // Upwards a link belongs to its lower end; downwards to the station before.
    let links: Vec<(Option<Link>, bool)> =
        down.iter().map(|hop| (hop.link.clone(), hop.leads_on)).collect();
    for (index, (link, leads_on)) in links.into_iter().enumerate() {
        let before = if index == 0 { hops.last_mut() } else { down.get_mut(index - 1) };
        if let Some(before) = before {
            (before.link, before.leads_on) = (link, leads_on);
        }
    }
    if let Some(last) = down.last_mut() {
        (last.link, last.leads_on) = (None, false);
    }
    hops.extend(down);
    hops
}

fn up((device, path): (&Device, &RootPath<'_>), index: usize) -> Hop {
    let step = &path.steps[index];
    let below_port = path
        .steps
        .get(index + 1)
        .is_some_and(|upper| matches!(upper.port, Port::Root | Port::Down | Port::Bridge));
    let gap = if step.gap { "; ports above it are not known" } else { "" };
    Hop {
        what: format!("{}{gap}", what(step, &device.name)),
        address: Some(step.facts.address.clone()),
        link: path.link(index),
        leads_on: below_port && !matches!(step.port, Port::Down | Port::Root),
    }
}

fn what(step: &Step<'_>, device: &str) -> String {
    match step.port {
        Port::Root => "root port".to_owned(),
        Port::Up => "switch".to_owned(),
        Port::Down => "port of that switch".to_owned(),
        Port::Bridge => "bridge of conventional PCI".to_owned(),
        Port::Inside => "device of the root complex".to_owned(),
        Port::End => device.to_owned(),
    }
}

fn across(from: &RootPath<'_>, to: &RootPath<'_>) -> Vec<Hop> {
    let hop = |what: &str, address: Option<&str>| Hop {
        what: what.to_owned(),
        address: address.map(str::to_owned),
        link: None,
        leads_on: false,
    };
    let bridge = |path: &RootPath<'_>| hop("host bridge", path.host_bridge);
    if from.host_bridge.is_some() && from.host_bridge == to.host_bridge {
        return vec![bridge(from)];
    }
    vec![bridge(from), hop("inside or between processors", None), bridge(to)]
}
