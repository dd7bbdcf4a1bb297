//! Network cards below the switch that a GPU hangs on.

use gpuio_record::facts::{Lanes, Machine, NicFacts, PciFacts, PciPort};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{data_nics, gpu_name, none_of, placed_nics, root_port, without_gpu};

pub(super) const RULE: Rule = Rule {
    name: "shared-uplink",
    question: "Does the link above a switch carry all that its network cards and GPUs move through \
           host memory?",
    why: "Bytes that go directly between card and GPU stay inside the switch. Bytes that go \
          through host memory (NFS over TCP, compatibility mode, copies of the GPU) take the \
          switch's one link to the root complex, which cards and GPUs below it share.",
    fix: "Read into GPUs below the same switch over RDMA, or reach the server through a card of \
           another switch.",
    source: "NVIDIA, GPUDirect Storage Benchmarking and Configuration Guide, nvidia-smi topo of a \
             DGX-2 (two network cards and four GPUs below a root port); PCI Express Base \
             Specification, Switches",
    shown_by: "lspci -vv",
    evaluate,
};

/// A switch's link up, and what hangs below.
struct Uplink<'m> {
    port: &'m PciFacts,
    gpus: usize,
    /// `None` of a card that is known by its class alone.
    nics: Vec<Option<&'m NicFacts>>,
}

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    let cards = placed_nics(machine);
    if cards.is_empty() {
        let whole = machine.listed.pci && machine.listed.nics;
        return vec![none_of(whole, "network card in use")];
    }
    let mut found = Vec::new();
    let mut uplinks: Vec<Uplink<'_>> = Vec::new();
    for gpu in &machine.gpus {
        let address = gpu.pci.as_deref().unwrap_or_default();
        let route = machine.upstream_path(address);
        if !is_whole(machine, &route) {
            found.push(
                Found::unknown("the PCIe path from a GPU to its root port is not known")
                    .at([gpu_name(gpu)]),
            );
            continue;
        }
        let Some(port) = top(&route) else { continue };
        match uplinks.iter_mut().find(|uplink| uplink.port.address == port.address) {
            Some(uplink) => uplink.gpus += 1,
            None => uplinks.push(Uplink { port, gpus: 1, nics: Vec::new() }),
        }
    }
    for card in &cards {
        let address = card.pci.first().map(String::as_str).unwrap_or_default();
        let route = machine.upstream_path(address);
        if !is_whole(machine, &route) {
            let why = "the PCIe path from a network card to its root port is not known";
            found.push(Found::unknown(why).at([&card.name]));
            continue;
        }
        let Some(port) = top(&route) else { continue };
        let uplink = uplinks.iter_mut().find(|uplink| uplink.port.address == port.address);
        if let Some(uplink) = uplink {
            let nic =
                data_nics(machine).into_iter().find(|nic| nic.pci.as_deref() == Some(address));
            uplink.nics.push(nic);
        }
    }
    let shared = uplinks.iter().filter(|uplink| !uplink.nics.is_empty());
    found.extend(shared.map(one));
    if found.is_empty() {
        found.push(Found::pass("no network card in use hangs below a switch with a GPU"));
    }
    found
}

/// Whether the route reaches the root complex and the kind of each bridge on it is known.
fn is_whole(machine: &Machine, route: &[&PciFacts]) -> bool {
    let Some(end) = route.first() else { return false };
    let known = route.iter().skip(1).all(|bridge| bridge.port.known().is_some());
    known && root_port(machine, &end.address).is_some()
}

/// The port towards the root of the topmost switch.
fn top<'m>(route: &[&'m PciFacts]) -> Option<&'m PciFacts> {
    route.iter().rev().find(|f| f.port.known() == Some(&PciPort::SwitchUpstream)).copied()
}

fn one(uplink: &Uplink<'_>) -> Found {
    // The switch names its devices; those of several switches would look the same.
    let locations = [uplink.port.address.as_str()];
    let rates: Option<Vec<u64>> = uplink.nics.iter().map(|nic| megabits((*nic)?)).collect();
    let (Some(rates), Some(link)) = (rates, link_megabits(uplink.port.link_now)) else {
        let observed = "network cards and GPUs share this link up; its rate or that of a card is \
                    not reported";
        return Found::unknown(observed).at(locations);
    };
    let sum: u64 = rates.iter().sum();
    let observed = format!(
        "{} and {} below the switch share its one link up: the cards bring {} Gb/s, the link has \
         {} Gb/s",
        crate::check::machine::count(uplink.nics.len(), "network card"),
        crate::check::machine::count(uplink.gpus, "GPU"),
        sum / 1000,
        link / 1000,
    );
    if sum > link {
        let fix = "read into these GPUs over RDMA, which stays inside the switch, or reach the \
                    server through cards of several switches";
        Found::warn(observed, fix).at(locations)
    } else {
        Found::info(observed).at(locations)
    }
}

/// The rate of a card's ports that are up; `None` when no port reports one.
fn megabits(nic: &NicFacts) -> Option<u64> {
    let ports = nic.rdma.iter().flat_map(|device| &device.ports);
    let active = ports.filter(|port| port.state.as_deref() == Some("ACTIVE"));
    let rdma: u64 = active.filter_map(|port| port.megabits).sum();
    let up = nic.interfaces.iter().filter(|one| one.state.as_deref() == Some("up"));
    let net: u64 = up.filter_map(|one| one.megabits).sum();
    Some(rdma.max(net)).filter(|rate| *rate > 0)
}

/// The signal rate of the lanes in one direction, before the line code: an upper bound.
fn link_megabits(lanes: Lanes) -> Option<u64> {
    lanes.mega_transfers.zip(lanes.width).map(|(mega, width)| mega * width)
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::InterfaceFacts;

    use super::*;
    use crate::check::{Severity, sample};

    fn with_card(megabits: Option<u64>) -> Found {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let interface = InterfaceFacts {
            name: "ib0".to_owned(),
            state: Some("up".to_owned()),
            megabits,
            ..InterfaceFacts::default()
        };
        machine.nics.push(NicFacts {
            pci: Some(sample::DRIVE.to_owned()),
            interfaces: vec![interface],
            ..NicFacts::default()
        });
        evaluate(&machine).remove(0)
    }

    #[test]
    fn cards_that_bring_more_than_the_link_has() {
        assert_eq!(with_card(Some(400_000)).severity, Severity::Warn);
        let within = with_card(Some(100_000));
        assert_eq!(within.severity, Severity::Info);
        assert!(within.observed.contains("100 Gb/s, the link has 256 Gb/s"), "{}", within.observed);
        assert_eq!(with_card(None).severity, Severity::Unknown);
    }

    #[test]
    fn without_a_card_there_is_nothing_to_share() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        assert_eq!(evaluate(&machine)[0].severity, Severity::NotApplicable);
        machine.listed.nics = false;
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
    }

    #[test]
    fn a_card_that_is_known_by_class_alone_is_no_pass() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.listed.nics = false;
        machine.pci.iter_mut().find(|f| f.address == sample::DRIVE).unwrap().class =
            Some(0x02_0700);
        let found = evaluate(&machine);
        assert_eq!(
            (found[0].severity, &found[0].locations[0][..]),
            (Severity::Unknown, sample::UP)
        );
    }
}
