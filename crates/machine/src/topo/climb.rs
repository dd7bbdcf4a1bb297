//! The links from one function up to its host bridge.

use gpuio_record::facts::Machine;

use crate::topo::Link;
use crate::topo::graph::{Graph, Port};

/// The links from a function up to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Climb {
    /// Links in upward order.
    pub links: Vec<Crossed>,
    /// The host bridge by domain and root bus; `None` where not known.
    pub host_bridge: Option<String>,
    /// NUMA node; `None` where not known.
    pub node: Option<u32>,
    /// The facts have every port on the path.
    pub complete: bool,
}

/// A link on the path up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crossed {
    /// The function at its lower end: a device, or a switch's port towards the root.
    pub address: String,
    /// The port at its upper end.
    pub port: String,
    /// Names the link itself: the same for all functions of a device, whose one link they share.
    /// The port at the upper end, since below one stands one device; where ports in between were
    /// not known, the device by bus and slot.
    pub key: String,
    /// The link; `None` when nothing is known of it.
    pub link: Option<Link>,
}

/// The links above a function; `None` when the function is not known. Inside switches and the
/// root complex there is none.
pub fn climb(machine: &Machine, address: &str) -> Option<Climb> {
    let graph = Graph::of(machine);
    let path = graph.root_path(address)?;
    let mut links = Vec::new();
    for (index, step) in path.steps.iter().enumerate() {
        let Some(upper) = path.steps.get(index + 1) else { break };
        let leads = matches!(upper.port, Port::Root | Port::Down | Port::Bridge);
        if leads && !matches!(step.port, Port::Root | Port::Down | Port::Inside) {
            links.push(Crossed {
                address: step.facts.address.clone(),
                port: upper.facts.address.clone(),
                key: match step.gap {
                    true => slot(&step.facts.address).to_owned(),
                    false => upper.facts.address.clone(),
                },
                link: path.link(index),
            });
        }
    }
    Some(Climb {
        links,
        host_bridge: path.host_bridge.map(str::to_owned),
        node: graph.node(address),
        complete: path.host_bridge.is_some() && !path.steps.iter().any(|step| step.gap),
    })
}

/// A function's address without its number: the device (`0000:3b:00` of `0000:3b:00.1`).
pub fn slot(address: &str) -> &str {
    address.rsplit_once('.').map_or(address, |(slot, _)| slot)
}
