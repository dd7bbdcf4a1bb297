//! Packets of the interfaces that lead to NFS servers.

use gpuio_record::facts::{Fact, LinkLayer, Machine, NfsFacts};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{interface, nfs_mounts, without_nfs};

pub(super) const RULE: Rule = Rule {
    name: "mtu",
    question: "Do interfaces that lead to NFS servers carry large packets?",
    why: "With 1500 bytes a packet, 100 Gb/s are 8 million packets a second; with 9000 they are a \
          sixth of that, and RoCE can use its packets of 4096.",
    fix: "`ip link set dev NAME mtu 9000`, on every switch and on the server too.",
    source: "ip-link(8); include/rdma/ib_addr.h, iboe_get_mtu (the largest MTU of InfiniBand that \
             fits into the interface's); IBM, Setting the MTU size",
    shown_by: "ip addr",
    evaluate,
};

/// Room for a RoCE packet of 4096 bytes with its heads.
const WANTED: u64 = 4200;

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_nfs(machine) {
        return vec![found];
    }
    nfs_mounts(machine).into_iter().map(|(at, nfs)| one(machine, nfs).at([at])).collect()
}

fn one(machine: &Machine, nfs: &NfsFacts) -> Found {
    let name = match &nfs.interface {
        Fact::Known(name) => name,
        Fact::Unknown(why) => return Found::unknown(format!("its interface is not known: {why}")),
    };
    let Some(found) = interface(machine, name) else {
        return Found::unknown(format!("nothing is known of its interface {name}"));
    };
    let Some(mtu) = found.mtu_bytes else {
        return Found::unknown(format!("the MTU of {name} is not reported"));
    };
    let observed = format!("its interface {name} has an MTU of {mtu}");
    if mtu >= WANTED {
        return Found::pass(observed);
    }
    if found.carries == Some(LinkLayer::Infiniband) {
        return Found::info(format!(
            "{observed}: IP over InfiniBand in datagram mode; RDMA has packets of its own"
        ));
    }
    let fix = format!("`ip link set dev {name} mtu 9000`, on every switch and the server too");
    Found::warn(observed, fix)
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{InterfaceFacts, NicFacts};

    use super::*;
    use crate::check::{Severity, sample};

    fn of(mtu_bytes: Option<u64>, carries: LinkLayer) -> Severity {
        let port = InterfaceFacts {
            name: "p0".to_owned(),
            carries: Some(carries),
            mtu_bytes,
            ..InterfaceFacts::default()
        };
        let machine = Machine {
            nics: vec![NicFacts { interfaces: vec![port], ..NicFacts::default() }],
            mounts: vec![sample::nfs("/n", "tcp", "p0")],
            ..Machine::default()
        };
        evaluate(&machine)[0].severity
    }

    #[test]
    fn small_packets_of_ethernet_cost() {
        assert_eq!(of(Some(1500), LinkLayer::Ethernet), Severity::Warn);
        assert_eq!(of(Some(9000), LinkLayer::Ethernet), Severity::Pass);
        assert_eq!(of(Some(2044), LinkLayer::Infiniband), Severity::Info);
        assert_eq!(of(None, LinkLayer::Ethernet), Severity::Unknown);
    }

    #[test]
    fn an_interface_that_is_not_known_is_unknown() {
        let mounts = vec![sample::nfs("/n", "tcp", "p9")];
        let found = evaluate(&Machine { mounts, ..Machine::default() });
        assert_eq!(found[0].severity, Severity::Unknown);
    }
}
