//! GPUs and the drives and network cards of their own socket.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{
    Placed, count, gpu_name, nic_name, none_of, one_node, placed_drives, placed_nics, without_gpu,
};
use crate::topo::Class;

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

/// How a GPU and another device lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apart {
    /// At one socket.
    Near,
    /// At two NUMA nodes, which may be of one socket.
    Nodes,
    /// At two sockets.
    Sockets,
}

/// How near `others` of one kind are to the GPUs; nothing where there are none.
fn near(machine: &Machine, kind: &str, others: &[Placed]) -> Option<Found> {
    if others.is_empty() {
        return None;
    }
    let (mut alone, mut unplaced) = (Vec::new(), Vec::new());
    let (mut all, mut is_printed) = (Vec::new(), false);
    for (position, gpu) in machine.gpus.iter().enumerate() {
        let number = gpu.index.known().map_or(position, |number| *number as usize);
        let number = format!("GPU{number}");
        let pair = |other: &Placed| {
            let printed = by_matrix(machine, &number, &other.name);
            let nodes = gpu.node.zip(other.node);
            let apart = nodes.map_or(printed, |(one, two)| Some(by_nodes(machine, one, two)));
            (apart, apart.is_some() && apart == printed)
        };
        let pairs: Vec<(Option<Apart>, bool)> = others.iter().map(pair).collect();
        is_printed |= pairs.iter().any(|(_, printed)| *printed);
        let apart: Vec<Option<Apart>> = pairs.into_iter().map(|(apart, _)| apart).collect();
        if apart.iter().all(|one| *one == Some(Apart::Sockets)) {
            alone.push(gpu_name(gpu).into_owned());
        } else if !apart.contains(&Some(Apart::Near)) {
            unplaced.push(gpu_name(gpu).into_owned());
        }
        all.extend(apart);
    }
    // A device that is missing from an incomplete list may be near.
    let listed = machine.listed;
    let whole = listed.pci && if kind == DRIVE { listed.block } else { listed.nics };
    if !whole {
        unplaced.append(&mut alone);
    }
    let source = if is_printed { " (`nvidia-smi topo -m`)" } else { "" };
    if !alone.is_empty() {
        let observed =
            format!("no {kind} is at the socket of these GPUs{source}: all their I/O crosses");
        let fix = format!(
            "move a {kind} to their socket, or aim their jobs at what is reached over the network \
             or from host memory of their node"
        );
        return Some(Found::warn(observed, fix).at(alone));
    }
    if !unplaced.is_empty() {
        let mut why = match whole {
            true => format!(
                "the NUMA nodes of these GPUs or of a {kind}, or their distance, are not reported"
            ),
            false => format!("no {kind} at their socket is among what was read"),
        };
        let others = machine.gpus.len() - unplaced.len();
        if others > 0 {
            let gpus = count(others, "other GPU");
            let have = if others == 1 { "has" } else { "have" };
            why.push_str(&format!("; {gpus} {have} one{source}"));
        }
        return Some(Found::unknown(why).at(unplaced));
    }
    let near = format!("each GPU has a {kind} at its socket{source}");
    let pairs = all.len();
    let crossing = all.iter().filter(|one| **one != Some(Apart::Near)).count();
    Some(if all.contains(&None) {
        Found::info(format!("{near}; how far the others are is not known"))
    } else if all.contains(&Some(Apart::Nodes)) {
        Found::info(format!(
            "{near}; {crossing} of {pairs} pairs would cross NUMA nodes; whether these are sockets \
             is not known (`numactl -H` shows their distances)"
        ))
    } else if crossing == 0 {
        Found::pass(format!("all GPUs and {kind}s are at one socket{source}"))
    } else {
        Found::info(format!("{near}; {crossing} of {pairs} pairs would cross sockets"))
    })
}

/// How two nodes lie to each other.
fn by_nodes(machine: &Machine, one: u32, other: u32) -> Apart {
    if one == other {
        return Apart::Near;
    }
    let nodes = &machine.host.numa.nodes;
    let distance = || {
        let from = nodes.iter().find(|node| node.node == one)?;
        let to = nodes.iter().position(|node| node.node == other)?;
        from.distances.as_ref()?.get(to).copied()
    };
    match distance() {
        None => Apart::Nodes,
        Some(distance) if distance >= REMOTE => Apart::Sockets,
        Some(_) => Apart::Near,
    }
}

/// How two devices lie to each other by the cells of printed matrices; `None` where there is none,
/// or they differ. `SYS` is between NUMA nodes, of which a socket may have several, and `SOC`,
/// which old drivers print for it, between sockets.
fn by_matrix(machine: &Machine, gpu: &str, other: &str) -> Option<Apart> {
    let cells = machine.printed.iter().filter(|one| {
        (one.row == gpu && one.column == other) || (one.row == other && one.column == gpu)
    });
    let apart = |cell: &str| {
        Some(match Class::parse(cell)? {
            Class::Sys if cell == "SOC" => Apart::Sockets,
            Class::Sys => between_nodes(machine),
            Class::X | Class::Pix | Class::Pxb | Class::Phb | Class::Node => Apart::Near,
        })
    };
    let mut all = cells.filter_map(|one| apart(&one.cell));
    let first = all.next()?;
    all.all(|one| one == first).then_some(first)
}

/// How any two nodes lie to each other, where all do alike.
fn between_nodes(machine: &Machine) -> Apart {
    let nodes = &machine.host.numa.nodes;
    let ids = || nodes.iter().map(|node| node.node);
    let pairs =
        ids().flat_map(|one| ids().filter(move |two| *two != one).map(move |two| (one, two)));
    let mut all = pairs.map(|(one, two)| by_nodes(machine, one, two));
    let first = all.next().filter(|_| machine.listed.nodes).unwrap_or(Apart::Nodes);
    if all.all(|one| one == first) { first } else { Apart::Nodes }
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{Fact, NicFacts, NumaNode, PciFacts, PrintedCell, RdmaFacts};

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

    /// Two GPUs and two cards without nodes, as a matrix without `NUMA Affinity` has them.
    fn printed(cells: &[(&str, &str, &str)]) -> Machine {
        let mut machine = Machine { gpus: Vec::new(), ..Machine::default() };
        for number in 0..2 {
            let mut gpu = sample::gpu("", 0);
            (gpu.pci, gpu.node, gpu.index) = (None, None, Fact::Known(number));
            gpu.uuid = Fact::unknown("not printed");
            machine.gpus.push(gpu);
            let rdma = vec![RdmaFacts { name: format!("mlx5_{number}"), ..RdmaFacts::default() }];
            machine.nics.push(NicFacts { rdma, ..NicFacts::default() });
        }
        let cell = |(row, column, cell): &(&str, &str, &str)| PrintedCell {
            row: (*row).to_owned(),
            column: (*column).to_owned(),
            cell: (*cell).to_owned(),
        };
        machine.printed = cells.iter().map(cell).collect();
        machine
    }

    #[test]
    fn a_matrix_says_which_cards_are_near() {
        let (near, other) = (("GPU0", "mlx5_0", "PIX"), ("mlx5_1", "GPU1", "PXB"));
        let one = |far: &str, cells: &[(&str, &str, &str)]| {
            let far = [("GPU0", "mlx5_1", far), ("GPU1", "mlx5_0", far)];
            evaluate(&printed(&[cells, &far].concat())).remove(0)
        };
        let found = one("NODE", &[near, other]);
        assert_eq!(found.severity, Severity::Pass);
        assert!(found.observed.ends_with("at one socket (`nvidia-smi topo -m`)"), "{found:?}");
        // Between nodes is between sockets where there is one node for each.
        let found = one("SYS", &[near, other]);
        assert_eq!(found.severity, Severity::Info);
        assert!(found.observed.contains("2 of 4 pairs would cross NUMA nodes"), "{found:?}");
        let found = one("SOC", &[near, other]);
        assert!(found.observed.ends_with("2 of 4 pairs would cross sockets"), "{found:?}");
        let mut known =
            printed(&[near, other, ("GPU0", "mlx5_1", "SYS"), ("GPU1", "mlx5_0", "SYS")]);
        known.host.numa.nodes = two_nodes(21, None).host.numa.nodes;
        known.listed.nodes = true;
        let found = evaluate(&known).remove(0);
        assert!(found.observed.ends_with("2 of 4 pairs would cross sockets"), "{found:?}");
        // No cell, or two that differ, say nothing.
        let found = evaluate(&printed(&[near, other])).remove(0);
        assert!(found.observed.ends_with("how far the others are is not known"), "{found:?}");
        for other in [("GPU1", "GPU0", "PIX"), ("GPU1", "mlx5_0", "PIX")] {
            let found = one("SYS", &[near, other]);
            assert_eq!(
                (found.severity, &*found.locations),
                (Severity::Unknown, &["GPU1".into()][..])
            );
            assert!(found.observed.contains("1 other GPU has one (`nvidia-smi"), "{found:?}");
        }
        // A card that no matrix shows may be near.
        let mut far = printed(&[("GPU0", "mlx5_0", "SOC"), ("GPU0", "mlx5_1", "SOC")]);
        far.gpus.truncate(1);
        assert_eq!(evaluate(&far)[0].severity, Severity::Unknown);
        (far.listed.pci, far.listed.nics) = (true, true);
        let found = evaluate(&far).remove(0);
        assert_eq!(found.severity, Severity::Warn);
        assert!(found.observed.contains("(`nvidia-smi topo -m`)"), "{found:?}");
    }

    #[test]
    fn a_gpu_without_node_is_unknown() {
        assert_eq!(evaluate(&two_nodes(21, None))[0].severity, Severity::Unknown);
    }
}
