//! Several NFS mounts that share one interface.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gpuio_record::facts::{Machine, NfsFacts, NicFacts};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{interface, nfs_mounts, without_nfs};

pub(super) const RULE: Rule = Rule {
    name: "shared-nic",
    question: "Do NFS mounts spread over the network interfaces?",
    why: "Mounts that are reached through one interface share its rate; a machine with a card for \
          each GPU then uses one of them.",
    fix: "Give server and client an address in one subnet per card, and mount through the address \
           whose card is near the GPU.",
    source: "NVIDIA, GPUDirect Storage Benchmarking and Configuration Guide, NFS mounts and NICs; \
             ip-route(8)",
    shown_by: "mount",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_nfs(machine) {
        return vec![found];
    }
    let mut by_interface: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, nfs) in nfs_mounts(machine) {
        match (nfs.interface.known(), nfs.interface.why()) {
            (Some(name), _) => by_interface.entry(name).or_default().push(at),
            (None, why) => {
                let why = why.unwrap_or_default();
                found.push(Found::unknown(format!("its interface is not known: {why}")).at([at]));
            }
        }
    }
    for (name, mounts) in by_interface.iter().filter(|(_, mounts)| mounts.len() > 1) {
        let rate = interface(machine, name).and_then(|interface| interface.megabits);
        let rate = rate.map(|megabits| format!(" of {} Gb/s", megabits / 1000)).unwrap_or_default();
        let observed = format!("{} mounts share interface {name}{rate}", mounts.len());
        let elsewhere = nfs_mounts(machine).into_iter().filter(|(at, _)| mounts.contains(at));
        let joined: Vec<String> = elsewhere.filter_map(|(at, nfs)| joined(at, nfs)).collect();
        found.push(if !joined.is_empty() {
            let observed = format!("{observed}: {}", joined.join("; "));
            Found::warn(observed, JOINED).at(mounts.iter().copied())
        } else if cards_up(machine) > 1 {
            let fix =
                "mount some of them through addresses of the server that another card leads to";
            Found::warn(observed, fix).at(mounts.iter().copied())
        } else {
            let other = if machine.listed.nics { "is up" } else { "is known to be up" };
            Found::info(format!("{observed}; no other card {other}")).at(mounts.iter().copied())
        });
    }
    if found.is_empty() {
        found.push(Found::pass("each NFS mount has an interface of its own"));
    }
    found
}

/// Linux has one connection to a server for all NFS 4.1 mounts, whatever address they name: it
/// recognises the server by what this says of itself (RFC 8881, 2.10.5, trunking).
const JOINED: &str = "NFS 4 has one connection to a server for all mounts, that of the first: \
                      mount by `-o vers=3`, or with `-o max_connect=2` (Linux 5.15) all mounts use \
                      both addresses";

/// That a mount named one address and uses the connection to another.
fn joined(at: &str, nfs: &NfsFacts) -> Option<String> {
    let address = nfs.address.as_deref()?;
    let named: IpAddr = nfs.server.trim_matches(['[', ']']).parse().ok()?;
    let other = address.parse::<IpAddr>().is_ok_and(|address| address != named);
    other.then(|| format!("{at} named the server {named} and uses the connection to {address}"))
}

/// Cards that are up, or of unknown state. `ibdev2netdev` names cards without their addresses;
/// what has neither address nor RDMA is made of others (bonds, VLANs).
fn cards_up(machine: &Machine) -> usize {
    let is_card = |nic: &&NicFacts| nic.pci.is_some() || !nic.rdma.is_empty();
    let up = |nic: &&NicFacts| {
        let states = nic.interfaces.iter().map(|port| port.state.as_deref());
        nic.interfaces.is_empty() || states.into_iter().any(|state| state.is_none_or(|s| s == "up"))
    };
    machine.nics.iter().filter(is_card).filter(up).count()
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{Fact, InterfaceFacts, RdmaFacts};

    use super::*;
    use crate::check::{Severity, sample};

    #[test]
    fn two_mounts_behind_one_card_of_two() {
        let mounts = vec![sample::nfs("/a", "rdma", "ib0"), sample::nfs("/b", "rdma", "ib0")];
        let mut machine = Machine { mounts, ..Machine::default() };
        assert_eq!(evaluate(&machine)[0].severity, Severity::Info);
        let card = |address: &str| NicFacts {
            pci: Some(address.to_owned()),
            rdma: vec![RdmaFacts::default()],
            ..NicFacts::default()
        };
        machine.nics = vec![card("0000:0c:00.0"), card("0000:0d:00.0")];
        let found = evaluate(&machine);
        assert_eq!(
            (found[0].severity, &found[0].locations[..]),
            (Severity::Warn, &["/a".to_owned(), "/b".to_owned()][..])
        );
        machine.mounts[1].nfs.as_mut().unwrap().interface = Fact::Known("ib1".to_owned());
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass);
        machine.mounts[1].nfs.as_mut().unwrap().interface = Fact::unknown("no route");
        assert!(evaluate(&machine)[0].observed.ends_with("no route"));
    }

    /// Linux 6.1 shows this for a second mount of one server by another address.
    #[test]
    fn a_mount_that_joined_another_s_connection_is_named() {
        let mounts = vec![sample::nfs("/a", "tcp", "eth0"), sample::nfs("/b", "tcp", "eth0")];
        let mut machine = Machine { mounts, ..Machine::default() };
        for (mount, server) in machine.mounts.iter_mut().zip(["10.9.0.1", "10.9.1.1"]) {
            let nfs = mount.nfs.as_mut().unwrap();
            nfs.server = server.to_owned();
            nfs.address = Some("10.9.0.1".to_owned());
        }
        let found = &evaluate(&machine)[0];
        assert_eq!(found.severity, Severity::Warn);
        let named = "/b named the server 10.9.1.1 and uses the connection to 10.9.0.1";
        assert!(found.observed.ends_with(named), "{found:?}");
        machine.mounts[1].nfs.as_mut().unwrap().address = None;
        assert_eq!(evaluate(&machine)[0].severity, Severity::Info);
    }

    /// As `ibdev2netdev` prints it: names and states, no addresses.
    #[test]
    fn cards_without_a_known_address_are_cards() {
        let mounts = vec![sample::nfs("/a", "rdma", "ib0"), sample::nfs("/b", "rdma", "ib0")];
        let mut machine = Machine { mounts, ..Machine::default() };
        let card = |name: &str, state: &str| NicFacts {
            rdma: vec![RdmaFacts::default()],
            interfaces: vec![InterfaceFacts {
                name: name.to_owned(),
                state: Some(state.to_owned()),
                ..InterfaceFacts::default()
            }],
            ..NicFacts::default()
        };
        machine.nics = vec![card("ib0", "up"), card("ib1", "down")];
        let found = evaluate(&machine);
        assert!(found[0].observed.ends_with("no other card is known to be up"), "{found:?}");
        machine.nics.push(card("ib2", "up"));
        assert_eq!(evaluate(&machine)[0].severity, Severity::Warn);
    }
}
