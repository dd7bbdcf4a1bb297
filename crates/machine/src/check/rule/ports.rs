//! Ports of RDMA cards that are down.

use gpuio_record::facts::{Machine, NicFacts, RdmaPort};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{count, none_of};

pub(super) const RULE: Rule = Rule {
    name: "ports",
    question: "Are the ports of the RDMA cards up?",
    why: "A port that is down moves nothing: a mount over it hangs or takes another way, and its \
          rate does not count.",
    fix: "Where its card is meant for data: cable, switch and subnet manager; `ibstat`, `ip link \
           set dev NAME up`.",
    source: "Documentation/networking/operstates.rst; ibstat(8)",
    shown_by: "ibdev2netdev",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let ports = machine.nics.iter().flat_map(|nic| {
        let of_card = nic.rdma.iter().map(move |card| (card, &card.ports));
        of_card.flat_map(move |(card, ports)| ports.iter().map(move |port| (nic, card, port)))
    });
    let (mut down, mut open, mut all) = (Vec::new(), Vec::new(), 0_usize);
    for (nic, card, port) in ports {
        all += 1;
        let interface = port.interface.as_ref().map(|name| format!(" ({name})"));
        let number =
            if card.ports.len() > 1 { format!(" port {}", port.port) } else { String::new() };
        let name = format!("{}{number}{}", card.name, interface.unwrap_or_default());
        match is_up(nic, port) {
            Some(true) => {}
            Some(false) => down.push(name),
            None => open.push(name),
        }
    }
    if all == 0 {
        return vec![none_of(machine.listed.nics, "port of an RDMA card")];
    }
    let mut found = Vec::new();
    if !down.is_empty() {
        let observed = format!("down: {} of {}", down.len(), count(all, "port"));
        found.push(Found::info(observed).at(down));
    }
    if !open.is_empty() {
        found.push(Found::unknown("whether these ports are up was not read").at(open));
    }
    if found.is_empty() {
        found.push(Found::pass(format!("up: {}", count(all, "port"))));
    }
    found
}

/// By the port's own state, else by its interface's.
fn is_up(nic: &NicFacts, port: &RdmaPort) -> Option<bool> {
    if let Some(state) = &port.state {
        return Some(state.eq_ignore_ascii_case("active"));
    }
    let own = port.interface.as_ref();
    let interface = nic.interfaces.iter().find(|one| Some(&one.name) == own)?;
    match interface.state.as_deref()? {
        "up" => Some(true),
        "down" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{InterfaceFacts, RdmaFacts};

    use super::*;
    use crate::check::Severity;

    #[test]
    fn ports_that_are_down_are_named() {
        let nic = |name: &str, interface: &str, state: &str| {
            let port =
                RdmaPort { port: 1, interface: Some(interface.to_owned()), ..RdmaPort::default() };
            let (name, state) = (name.to_owned(), Some(state.to_owned()));
            NicFacts {
                rdma: vec![RdmaFacts { name, ports: vec![port], ..RdmaFacts::default() }],
                interfaces: vec![InterfaceFacts {
                    name: interface.to_owned(),
                    state,
                    ..InterfaceFacts::default()
                }],
                ..NicFacts::default()
            }
        };
        let nics = vec![nic("mlx5_3", "ib3", "up"), nic("mlx5_4", "ib4", "down")];
        let mut machine = Machine { nics, ..Machine::default() };
        let found = evaluate(&machine);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Info), "{found:?}");
        assert_eq!(found[0].observed, "down: 1 of 2 ports");
        assert_eq!(found[0].locations, ["mlx5_4 (ib4)"]);
        // The port's own state counts more than its interface's.
        machine.nics[1].rdma[0].ports[0].state = Some("ACTIVE".to_owned());
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass);
    }
}
