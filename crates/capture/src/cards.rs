//! Network cards that one text names and another lists by their PCI functions.

use std::collections::BTreeSet;

use gpuio_record::facts::{Machine, PciFacts};

use crate::{Captured, network, pci_names};

/// How RDMA devices of Mellanox, now NVIDIA, are named, before a number; `NIC0` in a matrix without
/// its legend.
const NAMES: [&str; 3] = ["mlx5_", "mlx4_", "NIC"];

/// More cards of one maker than a machine has, without their functions.
const MOST: usize = 64;
/// Matrices that are held against the tree.
const MOST_MATRICES: usize = 4;

/// Gives named cards their functions: the one in a name that udev made, else by their numbers.
pub(crate) fn join(captured: &mut Captured) {
    let listed: BTreeSet<&String> =
        functions(&captured.machine).into_iter().map(|one| &one.address).collect();
    let own = captured.machine.nics.iter().enumerate().filter_map(|(at, nic)| {
        let name = nic.rdma.iter().find_map(|one| network::function_of(&one.name))?;
        (nic.pci.is_none() && listed.contains(&name)).then_some((at, name))
    });
    let own: Vec<(usize, String)> = own.take(MOST).collect();
    place(&mut captured.machine, own);
    NAMES.into_iter().for_each(|start| by_number(captured, start));
}

/// A card of a name with a number.
struct Named<'m> {
    number: u32,
    /// Its place in the list.
    at: usize,
    node: Option<u32>,
    /// Host bridges of GPUs, and whether a matrix puts it below them.
    bridges: Vec<(&'m str, bool)>,
}

impl Named<'_> {
    fn fits(&self, function: &PciFacts) -> bool {
        let own = function.host_bridge.as_deref();
        let apart =
            |(bridge, below): &(&str, bool)| own.is_some_and(|own| (own == *bridge) != *below);
        self.node.zip(function.node).is_none_or(|(a, b)| a == b) && !self.bridges.iter().any(apart)
    }
}

/// Where there are as many names as functions of the maker: the only one that fits each, or those
/// of the same places in the order, which is noted. A function does not fit where a matrix or NUMA
/// nodes put it elsewhere.
fn by_number(captured: &mut Captured, start: &str) {
    let machine = &captured.machine;
    let mut listed = functions(machine);
    listed.retain(|one| one.vendor == Some(pci_names::MELLANOX));
    let bare = machine.nics.iter().enumerate().filter(|(_, nic)| nic.pci.is_none());
    let named = bare.filter_map(|(at, nic)| {
        let [rdma] = nic.rdma.as_slice() else { return None };
        let number = rdma.name.strip_prefix(start)?.parse().ok()?;
        Some((Named { number, at, node: nic.node, bridges: Vec::new() }, &rdma.name))
    });
    let mut named: Vec<(Named<'_>, &String)> = named.take(MOST + 1).collect();
    if named.is_empty() || named.len() != listed.len() || named.len() > MOST {
        return;
    }
    named.sort_unstable_by_key(|(one, _)| one.number);
    let gpus = machine.gpus.iter().zip(0u32..).take(MOST).filter_map(|(gpu, place)| {
        let number = gpu.index.known().copied().unwrap_or(place);
        let bridge = machine.function(gpu.pci.as_deref()?)?.host_bridge.as_deref()?;
        Some((format!("GPU{number}"), bridge))
    });
    let gpus: Vec<(String, &str)> = gpus.collect();
    for (one, name) in &mut named {
        let name: &str = name;
        let cells = captured.matrices.iter().take(MOST_MATRICES).flat_map(|matrix| {
            let of_gpus = gpus.iter();
            of_gpus.filter_map(move |(gpu, bridge)| Some((*bridge, matrix.cell(gpu, name)?)))
        });
        one.bridges.extend(cells.filter_map(|(bridge, cell)| match cell {
            "PIX" | "PXB" | "PHB" => Some((bridge, true)),
            "NODE" | "SYS" => Some((bridge, false)),
            _ => None,
        }));
    }
    let only = named.iter().filter_map(|(one, _)| {
        let mut all = listed.iter().filter(|function| one.fits(function));
        let first = all.next()?;
        all.next().is_none().then_some(first.address.as_str())
    });
    let only: Vec<&str> = only.collect();
    let by_fit = only.iter().collect::<BTreeSet<_>>().len() == named.len();
    if !by_fit && !named.iter().zip(&listed).all(|((one, _), function)| one.fits(function)) {
        return;
    }
    let (first, more) = (&listed[0].address, listed.len() - 1);
    let note = format!(
        "{} and {more} more are taken for {first} and {more} more, in the order of both: no text \
         has both.",
        named[0].1
    );
    let in_order = listed.iter().map(|one| one.address.as_str()).collect();
    let addresses = if by_fit { only } else { in_order };
    let cards = named.iter().zip(addresses).map(|((one, _), to)| (one.at, to.to_owned()));
    let cards: Vec<(usize, String)> = cards.collect();
    place(&mut captured.machine, cards);
    if !by_fit {
        captured.remark(note);
    }
}

/// Functions of cards that no text gives an RDMA device, by address.
fn functions(machine: &Machine) -> Vec<&PciFacts> {
    let bare = machine.nics.iter().filter(|nic| nic.rdma.is_empty());
    let addresses: BTreeSet<&String> = bare.filter_map(|nic| nic.pci.as_ref()).collect();
    machine.pci.iter().filter(|one| addresses.contains(&one.address)).collect()
}

/// Gives cards, by their places in the list, the functions at these addresses.
fn place(machine: &mut Machine, cards: Vec<(usize, String)>) {
    for (at, address) in cards {
        let is_it = |pci: Option<&String>| pci == Some(&address);
        let Some(other) = machine.nics.iter().position(|nic| is_it(nic.pci.as_ref())) else {
            continue;
        };
        let interfaces = std::mem::take(&mut machine.nics[other].interfaces);
        machine.nics[other].pci = None;
        machine.nics[at].pci = Some(address);
        machine.nics[at].interfaces.extend(interfaces);
    }
    machine
        .nics
        .retain(|nic| nic.pci.is_some() || !nic.rdma.is_empty() || !nic.interfaces.is_empty());
}

#[cfg(test)]
mod tests {
    use crate::Captured;

    const MATRIX: &str = "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n\
                          GPU0\t X \tSYS\tSYS\tPIX\t0-31\t0\nGPU1\tSYS\t X \tPIX\tSYS\t32-63\t1\n\
                          NIC0\tSYS\tPIX\t X \tSYS\nNIC1\tPIX\tSYS\tSYS\t X \n\
                          NIC Legend:\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";
    const CARDS: &str = "19:00.0 Infiniband controller: Mellanox Technologies MT28908\n\
                         9c:00.0 Infiniband controller: Mellanox Technologies MT28908\n\
                         1a:00.0 Ethernet controller: Intel Corporation Ethernet X710\n";

    fn cards(texts: &[&str]) -> (Vec<(String, String)>, String) {
        let mut captured = Captured::default();
        texts.iter().for_each(|text| crate::read("text", text, &mut captured).unwrap());
        captured.finish();
        let name = |nic: &gpuio_record::facts::NicFacts| {
            let rdma = nic.rdma.first().map(|one| one.name.clone());
            (rdma.unwrap_or_default(), nic.pci.clone().unwrap_or_default())
        };
        let cards = captured.machine.nics.iter().map(name).collect();
        (cards, captured.remarks().join(" "))
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn a_card_of_a_matrix_is_that_of_lspci() {
        let other = ("", "0000:1a:00.0");
        // As many of one maker, in the order of both.
        let (all, note) = cards(&[MATRIX, CARDS]);
        let wanted = [("mlx5_0", "0000:19:00.0"), other, ("mlx5_1", "0000:9c:00.0")];
        assert_eq!(all, pairs(&wanted));
        assert!(note.contains("mlx5_0 and 1 more are taken for 0000:19:00.0 and 1 more"), "{note}");
        // Nodes, or host bridges with the matrix, show which is which.
        let wanted = [("mlx5_1", "0000:19:00.0"), other, ("mlx5_0", "0000:9c:00.0")];
        let nodes = "19:00.0 Infiniband controller: Mellanox Technologies MT28908\n\
                     \tNUMA node: 0\n9c:00.0 Infiniband controller: Mellanox Technologies \
                     MT28908\n\tNUMA node: 1\n1a:00.0 Ethernet controller: Intel X710\n\
                     \tNUMA node: 0\n";
        let (all, note) = cards(&[MATRIX, nodes]);
        assert_eq!((all, note.as_str()), (pairs(&wanted), ""));
        let tree = "-+-[0000:17]-+-01.0-[18]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]\n\
                    \x20|           \\-02.0-[19]----00.0  Mellanox Technologies MT28908 Family\n\
                    \x20\\-[0000:9a]-+-01.0-[9b]----00.0  NVIDIA Corporation GA100 [A100]\n\
                    \x20            \\-02.0-[9c]----00.0  Mellanox Technologies MT28908 Family\n";
        let (all, note) = cards(&[MATRIX, tree]);
        assert_eq!((all, note.as_str()), (pairs(&[wanted[0], wanted[2]]), ""));
        // A third card of the maker: nothing is guessed, and that is said once.
        let three =
            format!("{CARDS}20:00.0 Infiniband controller: Mellanox Technologies MT28908\n");
        let (all, note) = cards(&[MATRIX, &three]);
        assert_eq!(all.iter().filter(|(_, pci)| pci.is_empty()).count(), 2, "{all:?}");
        assert_eq!(note.matches("may be the same").count(), 1, "{note}");
        // A name of udev's has the address.
        let named = "CA 'ibp25s0'\n\tPort 1:\n\t\tState: Active\n";
        assert!(cards(&[named, &three]).0.contains(&pairs(&[("ibp25s0", "0000:19:00.0")])[0]));
    }
}
