//! Network cards near to a GPU.

use crate::topo::{Affinity, Class, Device};
use gpuio_record::facts::{Machine, NicFacts};

use crate::pair::{NearNic, Pair, Unused};

/// The cards that the topology has as nearest.
pub(crate) fn near(machine: &Machine, devices: &[Device], row: &Affinity) -> Vec<NearNic> {
    let cards = row.nics.iter().map(|near| {
        let device = devices.iter().find(|device| device.name == near.name);
        let facts = device.and_then(|device| facts(machine, device));
        let interfaces = facts.map(|nic| nic.interfaces.iter().map(|one| one.name.clone()));
        NearNic {
            name: near.name.clone(),
            interfaces: interfaces.map(Iterator::collect).unwrap_or_default(),
            class: near.class,
            up: facts.and_then(is_up),
        }
    });
    cards.collect()
}

/// A card of the topology among the machine's facts.
pub(crate) fn facts<'m>(machine: &'m Machine, device: &Device) -> Option<&'m NicFacts> {
    machine.nics.iter().find(|nic| {
        let names = nic.rdma.iter().map(|one| &one.name);
        let mut names = names.chain(nic.interfaces.iter().map(|one| &one.name));
        names.any(|name| *name == device.name)
            || nic.pci.as_ref().is_some_and(|pci| device.pci.contains(pci))
    })
}

/// The rate of a card's fastest port, in Mbit/s.
pub(crate) fn megabits(nic: &NicFacts) -> Option<u64> {
    let ports = nic.rdma.iter().flat_map(|rdma| &rdma.ports).filter_map(|port| port.megabits);
    let interfaces = nic.interfaces.iter().filter_map(|one| one.megabits);
    ports.chain(interfaces).max()
}

/// By the states of its ports, else of its interfaces; one that is up is enough.
fn is_up(nic: &NicFacts) -> Option<bool> {
    let ports = nic.rdma.iter().flat_map(|rdma| &rdma.ports);
    let ports = ports.filter_map(|port| port.state.as_deref()).map(|state| state == "ACTIVE");
    let interfaces = nic.interfaces.iter().filter_map(|one| one.state.as_deref());
    // `unknown` is what drivers say that do not report it.
    let interfaces = interfaces.filter(|state| *state != "unknown").map(|state| state == "up");
    let reported: Vec<bool> = ports.chain(interfaces).collect();
    (!reported.is_empty()).then(|| reported.contains(&true))
}

/// Cards that are up and near to GPUs whose network mounts use another, farther route.
pub(crate) fn unused(pairs: &[Pair]) -> Vec<Unused> {
    let mut found: Vec<Unused> = Vec::new();
    for pair in pairs {
        let Some(gpu) = &pair.gpu else { continue };
        let given = pair.stores.iter().chain(&pair.network);
        let network: Vec<_> = given.filter(|given| given.nic.is_some()).collect();
        if network.is_empty() {
            continue;
        }
        for card in pair.nics.iter().filter(|card| card.up == Some(true)) {
            let farther = |class: Option<Class>| class.is_none_or(|class| class > card.class);
            if !network.iter().all(|given| farther(given.class)) {
                continue;
            }
            match found.iter_mut().find(|unused| unused.nic == card.name) {
                Some(unused) => unused.gpus.push(gpu.clone()),
                None => found.push(Unused {
                    nic: card.name.clone(),
                    interfaces: card.interfaces.clone(),
                    gpus: vec![gpu.clone()],
                }),
            }
        }
    }
    found
}
