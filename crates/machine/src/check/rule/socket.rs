//! GPUs and the drives and network cards of their own socket.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{
    Placed, gpu_name, nic_name, none_of, one_node, placed_drives, placed_nics, without_gpu,
};

pub(super) const RULE: Rule = Rule {
    name: "socket",
    question: "Does each GPU have data drives and network cards on its own processor socket?",
    why: "Traffic between a GPU and a drive or card of another socket crosses the link between \
          processors: latency grows, all pairs share the link, and direct transfers between peers \
          fall far below what PCIe gives.",
    fix: "Move drives or cards to slots of the GPU's socket, or give that GPU's jobs files on \
           drives near it.",
    source: "NVIDIA, GPUDirect Storage Benchmarking and Configuration Guide, GPU and storage \
             affinity; ACPI, System Locality Information Table (distances of 20 and more are \
             another socket)",
    shown_by: "lspci -vv",
    evaluate,
};

const DRIVE: &str = "data drive";
/// Distance from which a node counts as another socket: Linux's REMOTE_DISTANCE
/// (include/linux/topology.h). Nodes of one socket are at 11 to 12.
const REMOTE: u32 = 20;

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    if one_node(machine) {
        return vec![Found::not_applicable("one NUMA node only")];
    }
    let mut found: Vec<Found> = near(machine, DRIVE, &placed_drives(machine)).into_iter().collect();
    found.extend(near(machine, "network card", &cards(machine)));
    if found.is_empty() {
        let listed = machine.listed;
        let whole = listed.pci && listed.block && listed.nics;
        found.push(none_of(whole, "data drive and no network card on PCI"));
    }
    found
}

/// Cards in use, and those whose node a printed matrix shows, without their PCI function.
fn cards(machine: &Machine) -> Vec<Placed> {
    let unplaced = machine.nics.iter().filter(|nic| nic.pci.is_none() && !nic.rdma.is_empty());
    let unplaced = unplaced.map(|nic| Placed {
        name: nic_name(nic).to_owned(),
        pci: Vec::new(),
        node: nic.node,
    });
    let mut cards: Vec<Placed> = unplaced.collect();
    // A function that no text names may be one of those cards: it is not counted beside them.
    let named = |card: &Placed| {
        let own = machine.nics.iter().filter(|nic| nic.pci.as_ref() == card.pci.first());
        own.into_iter().any(|nic| !nic.interfaces.is_empty() || !nic.rdma.is_empty())
    };
    let is_matrix = !cards.is_empty();
    cards.extend(placed_nics(machine).into_iter().filter(|card| !is_matrix || named(card)));
    cards
}

/// How near `others` of one kind are to the GPUs; nothing where there are none.
fn near(machine: &Machine, kind: &str, others: &[Placed]) -> Option<Found> {
    if others.is_empty() {
        return None;
    }
    let placed: Vec<u32> = others.iter().filter_map(|other| other.node).collect();
    let (mut alone, mut unplaced) = (Vec::new(), Vec::new());
    for gpu in &machine.gpus {
        let name = gpu_name(gpu).into_owned();
        let Some(node) = gpu.node else {
            unplaced.push(name);
            continue;
        };
        let fars: Vec<Option<bool>> =
            placed.iter().map(|other| is_far(machine, node, *other)).collect();
        if fars.contains(&Some(false)) {
            continue;
        }
        if fars.contains(&None) || placed.len() < others.len() {
            unplaced.push(name);
        } else {
            alone.push(name);
        }
    }
    // A device that is missing from an incomplete list may be near.
    let listed = machine.listed;
    let whole = listed.pci && if kind == DRIVE { listed.block } else { listed.nics };
    if !whole {
        unplaced.append(&mut alone);
    }
    if !alone.is_empty() {
        let observed = format!("no {kind} is at the socket of these GPUs: all their I/O crosses");
        let fix = format!(
            "move a {kind} to their socket, or aim their jobs at what is reached over the network \
             or from host memory of their node"
        );
        return Some(Found::warn(observed, fix).at(alone));
    }
    if !unplaced.is_empty() {
        let why = match whole {
            true => format!(
                "the NUMA nodes of these GPUs or of a {kind}, or their distance, are not reported"
            ),
            false => format!("no {kind} at their socket is among what was read"),
        };
        return Some(Found::unknown(why).at(unplaced));
    }
    let near = format!("each GPU has a {kind} at its socket");
    let pairs = machine.gpus.len() * others.len();
    let nodes = machine.gpus.iter().filter_map(|gpu| gpu.node);
    let all: Vec<(u32, u32)> =
        nodes.flat_map(|node| placed.iter().map(move |other| (node, *other))).collect();
    let far: Option<Vec<bool>> =
        all.iter().map(|(node, other)| is_far(machine, *node, *other)).collect();
    Some(match far.map(|far| far.into_iter().filter(|far| *far).count()) {
        _ if all.len() < pairs => {
            Found::info(format!("{near}; how far the others are is not known"))
        }
        None => {
            let crossing = all.iter().filter(|(node, other)| node != other).count();
            Found::info(format!(
                "{near}; {crossing} of {pairs} pairs would cross NUMA nodes; whether these are \
                 sockets is not known (`numactl -H` shows their distances)"
            ))
        }
        Some(0) => Found::pass(format!("every GPU and {kind} are at one socket")),
        Some(crossing) => {
            Found::info(format!("{near}; {crossing} of {pairs} pairs would cross sockets"))
        }
    })
}

/// Whether two nodes are of different sockets; `None` without their distance.
fn is_far(machine: &Machine, one: u32, other: u32) -> Option<bool> {
    if one == other {
        return Some(false);
    }
    let nodes = &machine.host.numa.nodes;
    let from = nodes.iter().find(|node| node.node == one)?;
    let to = nodes.iter().position(|node| node.node == other)?;
    Some(*from.distances.as_ref()?.get(to)? >= REMOTE)
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{NicFacts, NumaNode, PciFacts, RdmaFacts};

    use super::*;
    use crate::check::{Severity, sample};

    fn two_nodes(distance: u32, gpu: Option<u32>) -> Machine {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let node = |node, distances: [u32; 2]| NumaNode {
            node,
            distances: Some(distances.to_vec()),
            ..NumaNode::default()
        };
        machine.host.numa.nodes = vec![node(0, [10, distance]), node(1, [distance, 10])];
        machine.gpus[0].node = gpu;
        machine
    }

    #[test]
    fn a_gpu_without_a_drive_at_its_socket_is_named() {
        let found = evaluate(&two_nodes(21, Some(1)));
        assert_eq!(found[0].severity, Severity::Warn);
        assert_eq!(found[0].locations, [sample::GPU]);
    }

    #[test]
    fn nodes_of_one_socket_are_near() {
        assert_eq!(evaluate(&two_nodes(12, Some(1)))[0].severity, Severity::Pass);
        assert_eq!(evaluate(&two_nodes(21, Some(0)))[0].severity, Severity::Pass);
    }

    #[test]
    fn pairs_that_cross_are_counted_where_each_gpu_has_a_drive() {
        let mut machine = two_nodes(21, Some(0));
        machine.block.push(sample::disk("nvme1n1", "0000:80:00.0"));
        machine.block[1].facts.numa_node = Some(1);
        let found = evaluate(&machine);
        assert_eq!(found[0].severity, Severity::Info);
        assert!(found[0].observed.contains("1 of 2 pairs"), "{}", found[0].observed);
    }

    #[test]
    fn a_list_that_is_not_whole_proves_no_absence() {
        let mut machine = two_nodes(21, Some(1));
        machine.listed.block = false;
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
    }

    /// As a printed matrix has them: nodes without distances, and cards without functions.
    #[test]
    fn cards_of_a_matrix_count_and_unknown_distances_are_no_crossing() {
        let mut machine = Machine { gpus: Vec::new(), ..Machine::default() };
        for node in 0..2 {
            machine.gpus.push(sample::gpu(&format!("0000:0{node}:00.0"), node));
            let rdma = vec![RdmaFacts { name: format!("mlx5_{node}"), ..RdmaFacts::default() }];
            machine.nics.push(NicFacts { node: Some(node), rdma, ..NicFacts::default() });
        }
        let found = evaluate(&machine);
        assert_eq!(found[0].severity, Severity::Info, "{found:?}");
        assert!(found[0].observed.contains("not known"), "{found:?}");
        assert!(found[0].observed.contains("2 of 4 pairs would cross NUMA nodes"), "{found:?}");
        // The same cards by lspci alone are not counted again.
        let card = |bus: &str| PciFacts {
            address: format!("0000:{bus}:00.0"),
            class: Some(0x02_0000),
            node: Some(0),
            ..PciFacts::default()
        };
        machine.pci = vec![card("10"), card("20")];
        machine.listed.nics = false;
        let found = evaluate(&machine);
        assert!(found.iter().any(|one| one.observed.contains("2 of 4 pairs")), "{found:?}");
    }

    #[test]
    fn a_gpu_without_node_is_unknown() {
        assert_eq!(evaluate(&two_nodes(21, None))[0].severity, Severity::Unknown);
    }
}
